"""New rows to the arrays that a fit sees, by the levels and types that it was made with."""

from __future__ import annotations

import fnmatch
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from glfm_cli.arrays import Array
from glfm_cli.encoding.calendar import calendar_of
from glfm_cli.encoding.data import Data, EncodedColumn, Mask
from glfm_cli.encoding.encode import data_of, encoded_column
from glfm_cli.encoding.levels import can_hold, encode_known_levels
from glfm_cli.encoding.not_completed import SLIPS, UNFIT, UNREAD, UNSEEN
from glfm_cli.encoding.notes import slips_note
from glfm_cli.encoding.number_style import NumberStyle
from glfm_cli.encoding.numeric import Numbers, encode_numbers
from glfm_cli.encoding.source import Source, is_text_type, open_modelled
from glfm_cli.encoding.successes import encode_successes, shares
from glfm_cli.errors import SchemaError, TableError
from glfm_cli.io.arrow_types import holds_anything
from glfm_cli.schema import Column, Schema
from glfm_cli.schema.atoms import zero_is_far
from glfm_cli.schema.moments import ISO, MomentStyle
from glfm_cli.schema.phrases import closest
from glfm_cli.schema.schema import is_pattern


@dataclass(frozen=True)
class LearntColumn:
    """One modelled column of a fit.

    levels : its levels by code, empty for a numeric column
    sample : values that show its size, spread and zeros
    style : how its numbers are written; None where nothing is known of it
    """

    column: Column
    levels: tuple[str, ...]
    sample: Array
    style: NumberStyle | MomentStyle | None = None


def encode_rows(
    table: pa.Table,
    schema: Schema,
    learnt: Sequence[LearntColumn],
    *,
    unseen_is_missing: bool | None = False,
    nearest: bool = False,
    groups: Sequence[str] = (),
    file: str | None = None,
) -> Data:
    """Return the columns of a fit as another table has them, every observed cell checked.

    table : new rows; columns in any order
    learnt : the fit's modelled columns; those of the result are in the same order
    unseen_is_missing : take a level that the fit does not know, a number that its column cannot
        hold, and a text among numbers, for a missing value, and leave the cell as it is; None
        where nobody can ask for that
    nearest : take such a number for the nearest that its column can hold, where it would be missing
    groups : the groups that the fit knows

    Raises TableError: there are no rows, a modelled column is missing, or a cell does not fit its
        column; SchemaError: a column is covered by no entry of the types.
    """
    if table.num_rows == 0:
        raise TableError("the table has no rows", file=file, expected="at least one row of data")
    _check_complete(table, learnt, file)
    table = with_types(table, learnt)
    columns = _resolve(table.column_names, schema, learnt)
    place = {name: index for index, name in enumerate(table.column_names)}
    encoded, notes, kept = [], [], {}
    for known in learnt:
        if known.column.calendar is not None:
            continue
        index = place[known.column.name]
        source = open_modelled(table, index, known.column, file)
        if known.column.binomial:
            x, trials, left = shares(encode_successes(table, columns, source))
            column = encoded_column(source, index, x, left, (), None, trials)
            odd: Mapping[str, Mapping[str, int]] = {}
        else:
            column, odd, slips = _encode_column(source, index, known, unseen_is_missing, nearest)
            if slips:
                notes.append(slips_note(known.column.name, slips))
                kept[known.column.name, SLIPS] = slips
        encoded.append(_in_style(column, source, known.style))
        for why, cells in odd.items():
            moved = nearest and why == UNFIT
            notes.append(_odd_note(known.column.name, why, list(cells), moved=moved))
            if not moved:
                kept[known.column.name, why] = sum(cells.values())
    found = {one.column.name: one for one in (*encoded, *calendar_of(encoded, len(columns)))}
    known_as = [replace(found[k.column.name], sample=k.sample) for k in learnt]
    return data_of(table, columns, known_as, notes, file, groups, kept)


def _check_complete(table: pa.Table, learnt: Sequence[LearntColumn], file: str | None) -> None:
    names = set(table.column_names)
    own = [k.column for k in learnt if k.column.calendar is None]
    needed = dict.fromkeys(name for column in own for name in (column.name, column.trials))
    absent = [f"'{name}'" for name in needed if name is not None and name not in names]
    if absent:
        columns = "a column" if len(absent) == 1 else f"{len(absent)} columns"
        others = [name for name in names if name not in needed]
        near = closest(absent[0].strip("'"), others)
        add = f"Add {'it' if len(absent) == 1 else 'them'}, with empty cells if nothing is known."
        raise TableError(
            f"the table lacks {columns} that the fit models: {', '.join(absent[:12])}"
            + (", ..." if len(absent) > 12 else ""),
            file=file,
            hint=add if near is None else f"If '{near}' is {absent[0]}, rename it. {add}",
        )


def _resolve(
    names: Sequence[str], schema: Schema, learnt: Sequence[LearntColumn]
) -> tuple[Column, ...]:
    """Return what every column of the table is; those that are not modelled may be absent."""
    known = set(names)
    there = [
        c for c in schema.columns if c.name in known or any(_matches(c.name, one) for one in names)
    ]
    try:
        columns = replace(schema, columns=tuple(there)).resolve(names)
    except SchemaError as error:
        raise SchemaError(
            "the fit's types have no entry for this column"
            if error.problem.startswith("the types file has no entry")
            else error.problem,
            file=error.file,
            column=error.column,
            value=error.value,
            hint="Remove the column; fits made with `rest: ignore` let such columns pass through."
            if error.problem.startswith("the types file has no entry")
            else error.hint,
        ) from None
    fitted = {k.column.name for k in learnt}
    for column in columns:
        if column.modelled and column.name not in fitted:
            raise TableError(
                f"has {column.type or 'a type'} in the fit's types, but the fit has no such column",
                column=column.name,
                hint="Remove the column, or fit again with it.",
            )
    return columns


def _matches(pattern: str, name: str) -> bool:
    return is_pattern(pattern) and fnmatch.fnmatchcase(name, pattern)


def _encode_column(
    source: Source,
    index: int,
    known: LearntColumn,
    unseen_is_missing: bool | None,
    nearest: bool,
) -> tuple[EncodedColumn, Mapping[str, Mapping[str, int]], int]:
    """Return a column, how often it has which odd values, by why, and how many zeros are slips."""
    column, ends, slips = known.column, None, 0
    if column.numeric:
        zeros = bool(np.any(known.sample == 0.0))
        far = not zeros and zero_is_far(column, known.sample)
        sample = known.sample if nearest and known.sample.size else None
        x, left, ends, unfit, unread = _numbers(source, zeros or far, unseen_is_missing, sample)
        if far:
            slip = x == 0.0
            x, left, slips = np.where(slip, np.nan, x), left | slip, int(slip.sum())
        odd = {UNFIT: _counts(source, unfit), UNREAD: _counts(source, unread)}
    else:
        x, left, unseen = encode_known_levels(
            source, known.levels, unseen_is_missing=unseen_is_missing
        )
        odd = {UNSEEN: unseen}
    encoded = encoded_column(source, index, x, left, known.levels, ends)
    return encoded, {why: cells for why, cells in odd.items() if cells}, slips


def _counts(source: Source, rows: Mask) -> Mapping[str, int]:
    return Counter(str(x) for x in source.values.filter(pa.array(rows)).to_pylist())


def _numbers(
    source: Source, zeros: bool, unfit_is_missing: bool | None, known: Array | None
) -> Numbers:
    """Return the cells of a column of numbers; errors tell a mend that leaves the fit's types."""

    def read(unfit_is_missing: bool) -> Numbers:
        return encode_numbers(
            source, zeros=zeros, intervals=True, unfit_is_missing=unfit_is_missing, known=known
        )

    try:
        return read(bool(unfit_is_missing))
    except TableError as error:
        again = "fit again with types that allow the value."
        error.hint = f"Leave the cell empty if it stands for a missing one, or {again}"
        if unfit_is_missing is False:
            with suppress(TableError):
                read(True)
                error.hint = f"Treat such cells as missing with `--unseen missing`, or {again}"
        raise


def with_types(table: pa.Table, learnt: Sequence[LearntColumn]) -> pa.Table:
    """Return new rows whose columns without a value have a type that holds completed cells.

    pandas and others write a column without a type, or as NaN, when all of its cells are missing.
    """
    every = {known.column.name: known for known in learnt}
    columns, fields = table.columns, list(table.schema)
    for index, field in enumerate(fields):
        known = every.get(field.name)
        if known is not None and _is_untyped(columns[index], known):
            kind = _kind_of(known)
            columns[index] = pa.chunked_array([pa.nulls(table.num_rows, kind)])
            fields[index] = field.with_type(kind)
    return pa.table(columns, schema=pa.schema(fields, table.schema.metadata))


def _is_untyped(cells: pa.ChunkedArray, known: LearntColumn) -> bool:
    """Return whether no cell has a value, and the type is none that could hold one."""
    kind = cells.type.value_type if pa.types.is_dictionary(cells.type) else cells.type
    if pa.types.is_null(kind):
        return True
    if is_text_type(kind) or holds_anything(kind) or pa.types.is_run_end_encoded(kind):
        return False
    if not pc.all(pc.is_null(cells, nan_is_null=pa.types.is_floating(kind))).as_py():
        return False
    if known.column.moment is not None:
        return not pa.types.is_temporal(kind)
    if known.column.numeric:
        return pa.types.is_boolean(kind) or pa.types.is_temporal(kind)
    return not can_hold(known.levels, kind)


def _kind_of(known: LearntColumn) -> pa.DataType:
    column = known.column
    if not column.numeric or column.moment is not None:
        return pa.bool_() if {*known.levels} == {"false", "true"} else pa.string()
    return pa.int64() if column.integral else pa.float64()


def _in_style(
    encoded: EncodedColumn, source: Source, style: NumberStyle | MomentStyle | None
) -> EncodedColumn:
    """Return a column of new rows, written in the fit's style where its cells show none."""
    own = encoded.style
    if isinstance(style, MomentStyle):
        if isinstance(own, MomentStyle) and own.zone and style.zone:
            own = replace(own, zone=style.zone)  # the clock that the fit has learnt from
            encoded = replace(encoded, style=own)
        # A fit of Arrow's own dates does not know the format.
        usable = encoded.column.format in (None, ISO, style.form)
    else:
        usable = style is not None and source.is_text
    if not usable:
        return encoded
    if not encoded.observed.any():
        return replace(encoded, style=style)
    if isinstance(own, NumberStyle) and isinstance(style, NumberStyle):
        return replace(encoded, style=own.with_places_of(style))
    return encoded


def _odd_note(name: str, why: str, cells: list[str], *, moved: bool) -> str:
    shown = ", ".join(f"'{cell}'" for cell in cells[:5]) + (", ..." if len(cells) > 5 else "")
    singular, plural, reason = {
        UNSEEN: ("a level", "levels", "that the fit has not seen"),
        UNFIT: ("a number", "numbers", "that the fit cannot hold"),
        UNREAD: ("a text", "texts", "among numbers"),
    }[why]
    count = singular if len(cells) == 1 else f"{len(cells)} {plural}"
    then = "taken for missing, and left unchanged"
    if moved:
        then = "taken for the nearest that it can hold"
    return f"column '{name}': {count} {reason} ({shown}): {then}"
