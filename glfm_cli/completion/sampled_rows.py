"""Rows of a file that is not read as a whole, which what all rows share is learnt from.

One pass gives every row a random key. Those with the smallest are a simple random sample; beside
them are held the first of each level, of known and of missing cells of a column (`learning_rows`
says why), and the rows of the least and the largest numbers. O(n + rare rows) memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.completion.learning_rows import FEWEST, SHARE
from glfm_cli.encoding import encode_numbers, open_column
from glfm_cli.encoding.levels import distinct_texts
from glfm_cli.encoding.source import is_null
from glfm_cli.inference.folding import BATCH
from glfm_cli.io import read_batches, rows_after
from glfm_cli.io.files import PathLike, file_label
from glfm_cli.schema import Column, Schema
from glfm_cli.streams import LEARN, Streams

Name = tuple[str, str | None]  # of a column, and of a level of it or what is known of a number
Cells = tuple[Array, list[str | None], Array | None]  # codes, what each stands for; numbers


def sample_rows(source: PathLike, schema: Schema, n: int, seed: int) -> tuple[pa.Table, int]:
    """Return about n rows of a file, in their order, and how many it has.

    They are more than n where each level, and each column's ends, take more.

    Raises
    ------
    GlfmError
        A cell does not fit its column; rows are counted from the first of the file.
    """
    chooser, file = _Chooser(n, Streams(seed, 0).get(LEARN)), file_label(source)
    for table in read_batches(source, BATCH):
        with rows_after(chooser.n_rows):
            columns = schema.resolve(table.column_names)
            cells = {
                column.name: _cells(table, index, column, file)
                for index, column in enumerate(columns)
                if column.modelled
            }
        chooser.add(table, cells)
    return chooser.table.take(chooser.chosen()), chooser.n_rows


def _cells(table: pa.Table, index: int, column: Column, file: str | None) -> Cells:
    source = open_column(table, index, column, file)
    if column.type is None or column.binomial:
        return is_null(source.values).astype(int), ["known", "missing"], None
    if not column.numeric:
        labels, of_row = distinct_texts(source)
        return of_row, labels, None
    x = encode_numbers(source, intervals=True).x
    return np.isnan(x).astype(int), ["known", "missing"], x


class _Stratum(NamedTuple):
    """Rows that share something: how many there are, and of the first keys and rows, ascending."""

    size: int
    key: Array
    row: Array

    def joined(self, other: _Stratum) -> _Stratum:
        key = np.concatenate([self.key, other.key])
        first = np.argsort(key)[:FEWEST]
        row = np.concatenate([self.row, other.row])
        return _Stratum(self.size + other.size, key[first], row[first])


@dataclass
class _Chooser:
    """What is held of the rows so far: a table, and of each row of it the key and the number."""

    n: int
    rng: np.random.Generator
    n_rows: int = 0
    table: pa.Table = None
    key: Array = field(default_factory=lambda: np.empty(0))
    row: Array = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    strata: dict[Name, _Stratum] = field(default_factory=dict)
    ends: dict[Name, tuple[float, int]] = field(default_factory=dict)

    def add(self, table: pa.Table, cells: dict[str, Cells]) -> None:
        """Take a batch in, and the cells of its columns."""
        key = self.rng.random(table.num_rows)
        row = self.n_rows + np.arange(table.num_rows)
        for name, (code, labels, x) in cells.items():
            for label, stratum in _first_of_each(code, labels, key, row):
                known = self.strata.get((name, label))
                self.strata[name, label] = stratum if known is None else known.joined(stratum)
            if x is not None:
                self._see_ends(name, x, row)
        self.n_rows += table.num_rows
        plain = table.replace_schema_metadata(None)
        self.table = plain if self.table is None else pa.concat_tables([self.table, plain])
        self.key, self.row = np.append(self.key, key), np.append(self.row, row)
        kept = np.flatnonzero(np.isin(self.row, self._rare()) | self._smallest(self.n))
        self.table, self.key, self.row = self.table.take(kept), self.key[kept], self.row[kept]

    def chosen(self) -> Array:
        """Return the places, in what is held, of the rows that are learnt from, ascending."""
        must = [row for _, row in self.ends.values()]
        must += [stratum.row[0] for stratum in self.strata.values()]
        taken = self._smallest(self.n - int(SHARE * self.n)) | np.isin(self.row, must)
        budget = max(0, self.n - int(taken.sum()))
        for stratum in sorted(self.strata.values(), key=lambda one: one.size):
            some = stratum.row[~np.isin(stratum.row, self.row[taken])][:budget]
            taken |= np.isin(self.row, some)
            budget -= some.size
        rest = np.flatnonzero(~taken)
        taken[rest[np.argsort(self.key[rest])][:budget]] = True
        return np.flatnonzero(taken)

    def _see_ends(self, name: str, x: Array, row: Array) -> None:
        known = np.flatnonzero(~np.isnan(x))
        if known.size:
            for sign, label in ((1, "least"), (-1, "largest")):
                at = known[np.argmin(sign * x[known])]
                new = float(sign * x[at]), int(row[at])
                self.ends[name, label] = min(self.ends.get((name, label), new), new)

    def _rare(self) -> Array:
        """Return the numbers of the rows that are held for what they are."""
        rows = [stratum.row for stratum in self.strata.values()]
        return np.concatenate([*rows, [row for _, row in self.ends.values()]])

    def _smallest(self, n: int) -> Array:
        """Return which of the held rows have the n smallest keys."""
        if n >= self.key.size:
            return np.ones(self.key.size, dtype=bool)
        return self.key <= np.partition(self.key, n - 1)[n - 1] if n else self.key < 0


def _first_of_each(
    code: Array, labels: list[str | None], key: Array, row: Array
) -> Iterator[tuple[str | None, _Stratum]]:
    """Yield the stratum of each label, of the rows of a batch."""
    order = np.lexsort((key, code))
    starts = np.searchsorted(code[order], np.arange(len(labels) + 1))
    for label, start, end in zip(labels, starts[:-1], starts[1:], strict=True):
        if end > start:
            first = order[start : min(end, start + FEWEST)]
            yield label, _Stratum(int(end - start), key[first], row[first])
