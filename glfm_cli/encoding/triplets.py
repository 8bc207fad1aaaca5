"""A table of triplets (row, column, value) to the observed cells of a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.encoding.data import EncodedColumn
from glfm_cli.encoding.levels import distinct_texts, encode_known_levels, encode_levels
from glfm_cli.encoding.new_rows import LearntColumn
from glfm_cli.encoding.numeric import encode_numbers, style_of
from glfm_cli.encoding.source import Source, open_column, text_of
from glfm_cli.encoding.successes import encode_successes
from glfm_cli.encoding.trials import pack_trials, trials_of
from glfm_cli.errors import SchemaError, TableError
from glfm_cli.schema import Column, Role, Schema
from glfm_cli.schema.types import EXPECTED_COUNT, LARGEST_COUNT, SMALLER_COUNT


@dataclass(frozen=True)
class Ids:
    """The units of one side of a matrix.

    name : of the column that holds their ids
    keys : the text of each id; numbers that are equal have one text
    values : pyarrow.Array, each id as the table has it
    labels : what each is called; none where they have no other name
    """

    name: str
    keys: tuple[str, ...]
    values: pa.Array
    labels: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.keys)

    def with_more(self, other: Ids) -> Ids:
        """Return these and, behind them, those that only `other` has."""
        known = set(self.keys)
        new = [i for i, key in enumerate(other.keys) if key not in known]
        if not new:
            return self
        more = other.values.take(pa.array(new))
        if more.type != self.values.type:
            more = text_of(more).cast(self.values.type)
        values = pa.concat_arrays([self.values, more])
        return Ids(self.name, (*self.keys, *(other.keys[i] for i in new)), values)

    def places(self, keys: Sequence[str]) -> Array:
        """Return the number (n,) of each key, -1 where it is not known."""
        place = {key: i for i, key in enumerate(self.keys)}
        return np.array([place.get(key, -1) for key in keys], dtype=np.int64)


@dataclass(frozen=True)
class Triplets:
    """The observed cells of a matrix, ascending by row, then by column.

    rows, columns : the ids of either side
    row, column : (m,) int32
    value : what the values are, `x` (m,) those of the cells; of a binomial one see trials.py. Where
        absent pairs are zeros, NaN of pairs that are missing all the same
    blank : row and column (k,) int64 of what the table lists without a value, in its order
    """

    rows: Ids
    columns: Ids
    row: Array
    column: Array
    value: EncodedColumn
    blank: tuple[Array, Array] = (np.empty(0, np.int64), np.empty(0, np.int64))

    @property
    def trials(self) -> Array | None:
        """The trials (m,) of a binomial value, else None."""
        return None if self.value.column.trials is None else trials_of(self.value.x)


def layout_of(schema: Schema) -> str:
    """Return what a types file describes: "dense", "sparse", or "counts" with absent zeros."""
    values = [column for column in schema.columns if column.role is Role.VALUE]
    if not values:
        return "dense"
    return "sparse" if values[0].absent is None else "counts"


def is_triplets(schema: Schema) -> bool:
    """Return whether a types file is that of a table of triplets."""
    return any(column.role is Role.VALUE for column in schema.columns)


def encode_triplets(
    table: pa.Table,
    schema: Schema,
    *,
    learnt: LearntColumn | None = None,
    unseen_is_missing: bool = False,
    file: str | None = None,
) -> Triplets:
    """Return the observed cells of the matrix that a table lists.

    A row without a value, or without trials, only names its ids. Pairs that are there twice are an
    error, but for binomial values: their successes and trials are summed. `learnt` is the value
    column of a fit, whose levels hold; there need be no value then, and one of a level that the fit
    does not know is an error unless `unseen_is_missing`.

    Raises TableError: an id or a value is wrong, or a pair is there twice; names row (from 1) and
        column; SchemaError: the schema does not fit the table, or has columns besides that nothing
        would use.
    """
    columns = schema.resolve(table.column_names)
    place = {column.role: i for i, column in enumerate(columns)}
    for column in columns:
        if column.modelled or column.role in (Role.TASK, Role.GROUP, Role.WEIGHT):
            raise SchemaError(
                "a table of triplets has one value, and no other column enters its model",
                file=schema.file,
                column=column.name,
                hint="Set `role: ignore`; what is known of rows and columns has files of its own "
                "(--row-features, --column-features).",
            )
    sources = {
        role: open_column(table, place[role], columns[place[role]], file)
        for role in (Role.ROW, Role.COLUMN, Role.VALUE)
    }
    rows, row = encode_ids(sources[Role.ROW])
    ids, column_of = encode_ids(sources[Role.COLUMN])
    if learnt is None:
        x, trials, levels = _values(table, columns, sources[Role.VALUE], file)
    else:
        x, trials = _known_values(table, columns, sources[Role.VALUE], learnt, unseen_is_missing)
        levels = learnt.levels
    known = ~np.isnan(x)
    zeros = columns[place[Role.VALUE]].absent is not None  # then a pair without a value is missing
    seen = np.arange(x.size) if zeros else np.flatnonzero(known)
    if not np.any(x[known] > 0.0 if zeros else known) and learnt is None:
        raise TableError(
            "no cell of it is observed, so there is nothing to learn from",
            file=file,
            column=columns[place[Role.VALUE]].name,
            expected="at least one count above 0" if zeros else "at least one value",
        )
    if zeros and np.any(x > LARGEST_COUNT):
        large = x > LARGEST_COUNT
        raise sources[Role.VALUE].cell_error(large, EXPECTED_COUNT, SMALLER_COUNT)
    order = seen[np.lexsort((column_of[seen], row[seen]))]
    first = np.ones(order.size, dtype=bool)
    first[1:] = (np.diff(row[order]) != 0) | (np.diff(column_of[order]) != 0)
    if trials is None and not first.all():
        raise _twice(file, rows, ids, row, column_of, order, first)
    group = np.cumsum(first) - 1
    found: Array = x[order][first].astype(np.float64)
    if trials is not None:
        successes = np.bincount(group, weights=x[order])
        found = pack_trials(successes, np.bincount(group, weights=trials[order]))
    value = EncodedColumn(
        columns[place[Role.VALUE]],
        place[Role.VALUE],
        found,
        ~np.isnan(found),
        np.zeros(found.size, dtype=bool),
        levels,
        style=style_of(sources[Role.VALUE], x),
    )
    kept, blank = order[first], (row[~known], column_of[~known])
    where = row[kept].astype(np.int32), column_of[kept].astype(np.int32)
    return Triplets(rows, ids, *where, value, blank)


def encode_ids(source: Source) -> tuple[Ids, Array]:
    """Return the distinct ids of a column and which one each row has (n,).

    Raises TableError: an id is missing, or one id is written in two ways.
    """
    keys, of_row = distinct_texts(source)
    if None in keys:
        gone = np.array([key is None for key in keys])[of_row]
        raise source.cell_error(gone, "an id", "Every row needs the ids of its row and column.")
    first: dict[str, int] = {}
    for i, key in enumerate(keys):
        if first.setdefault(str(key), i) != i:
            other = source.values[int(np.argmax(of_row == first[str(key)]))].as_py()
            raise source.cell_error(
                of_row == i,
                f"one way to write the id '{other}'",
                "Numbers that are equal, and texts that differ in spaces around them, are one id.",
            )
    where = np.zeros(len(keys), dtype=np.int64)
    where[of_row[::-1]] = np.arange(of_row.size)[::-1]
    values = source.values.take(pa.array(where))
    return Ids(source.column.name, tuple(str(key) for key in keys), values), of_row


def _values(
    table: pa.Table, columns: Sequence[Column], source: Source, file: str | None
) -> tuple[Array, Array | None, tuple[str, ...]]:
    """Return the values (n,), NaN where there is none, the trials of successes, and the levels."""
    column = source.column
    if column.type is None:
        raise SchemaError("the column with role value needs a type", file=file, column=column.name)
    if column.numeric:
        return _numbers(source), None, ()
    if not column.binomial:
        x, _, levels = encode_levels(source)
        return x, None, levels
    successes, trials, _ = encode_successes(table, columns, source)
    return np.where(trials > 0.0, successes, np.nan), np.nan_to_num(trials), ()


def _known_values(
    table: pa.Table,
    columns: Sequence[Column],
    source: Source,
    learnt: LearntColumn,
    unseen_is_missing: bool,
) -> tuple[Array, Array | None]:
    """Return values and trials as `_values` does, by the types and levels of a fit."""
    if learnt.column.binomial:
        return _values(table, columns, source, source.file)[:2]
    if learnt.column.numeric:
        return _numbers(source, zeros=bool(np.any(learnt.sample == 0.0))), None
    return encode_known_levels(source, learnt.levels, unseen_is_missing=unseen_is_missing)[0], None


def _numbers(source: Source, *, zeros: bool | None = None) -> Array:
    """Return the values (n,) that are numbers, NaN where there is none.

    Raises TableError: one is no number, or only an interval such as <0.5.
    """
    found = encode_numbers(source, zeros=zeros, intervals=source.is_text)
    if found.ends is not None:
        raise source.cell_error(
            ~np.isnan(found.ends[:, 0]),
            "a number, as values of pairs can be no intervals",
            "List the text under the column's `missing:`, and the pair counts as unknown.",
        )
    return found.x


def _twice(
    file: str | None, rows: Ids, columns: Ids, row: Array, column: Array, order: Array, first: Array
) -> TableError:
    again = int(order[~first].min())
    same = (row == row[again]) & (column == column[again])
    return TableError(
        f"the pair {rows.name} '{rows.keys[row[again]]}', {columns.name} "
        f"'{columns.keys[column[again]]}' was in row {int(np.argmax(same)) + 1} already",
        file=file,
        row=again + 1,
        expected="one value for each pair",
        hint="Keep one of them, or their mean.",
    )
