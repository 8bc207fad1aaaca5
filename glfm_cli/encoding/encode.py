"""A table and its schema to the arrays that models see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.encoding.calendar import calendar_of
from glfm_cli.encoding.data import Data, EncodedColumn, Mask
from glfm_cli.encoding.groups import group_notes, groups_of
from glfm_cli.encoding.levels import encode_levels
from glfm_cli.encoding.not_completed import SLIPS, not_completed
from glfm_cli.encoding.notes import between_notes, column_notes, table_notes
from glfm_cli.encoding.number_style import NumberStyle
from glfm_cli.encoding.numeric import encode_numbers, is_numeric, style_of
from glfm_cli.encoding.source import Source, open_modelled
from glfm_cli.encoding.successes import encode_successes, shares
from glfm_cli.encoding.weights import weights_of
from glfm_cli.errors import SchemaError, TableError
from glfm_cli.io import is_text_table, notes_of
from glfm_cli.schema import Column, Role, Schema
from glfm_cli.schema.atoms import zeros_are_slips

# A split is for `evaluate` alone; completing passes it through like an id.
_UNUSED_ROLES = (Role.ROW, Role.COLUMN, Role.VALUE, Role.TASK, Role.LABEL)


def encode(
    table: pa.Table, schema: Schema, *, file: str | None = None, labels: bool = False
) -> Data:
    """Return the modelled columns of a table as arrays, every observed cell checked.

    labels : the rows may have labels, as those of a table of features

    Raises TableError: a cell does not fit its column's type; names row (from 1), column, value,
        expectation; SchemaError: the schema does not fit the table, or asks for what no model here
        does.
    """
    columns = schema.resolve(table.column_names)
    for column in columns:
        if not (labels and column.role is Role.LABEL):
            _check_modelled(column, schema.file)
    encoded, notes, kept = [], [], {}
    sums = {column.parts_of for column in columns}
    for index, column in enumerate(columns):
        if column.modelled:
            source = open_modelled(table, index, column, file)
            if column.type is None:
                source = _with_type(source)
                notes.append(
                    f"column '{column.name}': no type given, taken as {source.column.type}"
                )
            one, slips = _encode_column(source, index, table, columns)
            encoded.append(one)
            notes += column_notes(one, slips, has_parts=column.name in sums)
            kept[column.name, SLIPS] = slips
    notes += between_notes(encoded)
    encoded += calendar_of(encoded, table.num_columns, schema.file)
    data = data_of(table, columns, encoded, notes, file, kept=kept)
    return replace(data, notes=(*data.notes, *group_notes(data.groups, data.columns)))


def data_of(
    table: pa.Table,
    columns: Sequence[Column],
    encoded: Sequence[EncodedColumn],
    notes: Sequence[str],
    file: str | None,
    groups: Sequence[str] = (),
    kept: Mapping[tuple[str, str], int] | None = None,
) -> Data:
    """Return a table whose columns are encoded, with what it says besides of its rows.

    groups : those that a fit knows;  kept : as `not_completed` takes it
    """
    all_notes = (*notes, *table_notes(encoded, table.num_rows), *notes_of(table))
    ids = tuple(column.name for column in columns if column.role is Role.ID)
    rest = not_completed(table, columns, encoded, kept)
    together = groups_of(table, columns, encoded, file, groups)
    weights = weights_of(table, columns, file)
    modelled = tuple(_as_beside(encoded, columns) if is_text_table(table) else encoded)
    more = rest, together, weights, table.select(ids)
    return Data(table.num_rows, modelled, all_notes, ids, *more)


def _as_beside(encoded: Sequence[EncodedColumn], columns: Sequence[Column]) -> list[EncodedColumn]:
    """Return the columns, those of whole numbers beside decimal commas to be written as whole.

    A point would make text of them for who reads the file.
    """
    if all(column.decimal != "," for column in columns):
        return list(encoded)
    whole = NumberStyle(places=0)
    return [
        replace(one, style=whole)
        if one.column.numeric and one.style is None and np.all(one.typical % 1.0 == 0.0)
        else one
        for one in encoded
    ]


def _encode_column(
    source: Source, index: int, table: pa.Table, columns: Sequence[Column]
) -> tuple[EncodedColumn, int]:
    """Return a column, and how many of its zeros are slips, which count as missing."""
    levels: tuple[str, ...] = ()
    ends = trials = None
    slips = 0
    if source.column.binomial:
        x, trials, left = shares(encode_successes(table, columns, source))
    elif source.column.numeric:
        x, left, ends = encode_numbers(source, intervals=True)[:3]
        if ends is None and zeros_are_slips(source.column, x[~np.isnan(x)]):
            slip = x == 0.0
            x, left, slips = np.where(slip, np.nan, x), left | slip, int(slip.sum())
    else:
        x, left, levels = encode_levels(source)
    if np.isnan(x).all() and ends is None:
        raise TableError(
            "no cell of it is observed, so there is nothing to learn from",
            file=source.file,
            column=source.column.name,
            expected="at least one value",
            hint=f"Set `role: ignore` for '{source.column.name}' in the types file.",
        )
    return encoded_column(source, index, x, left, levels, ends, trials), slips


def encoded_column(
    source: Source,
    index: int,
    x: Array,
    left: Mask,
    levels: tuple[str, ...],
    ends: Array | None = None,
    trials: Array | None = None,
) -> EncodedColumn:
    """Return a column whose values x (n_rows,) were read; `left` says which must stay missing."""
    x = np.ascontiguousarray(x, dtype=np.float64)
    observed = ~np.isnan(x)
    requested = ~observed & ~left if source.column.completed else np.zeros(x.size, dtype=bool)
    if ends is not None and not source.column.impute_censored:
        requested &= np.isnan(ends[:, 0])
    if source.column.missingness is not None:
        ends = np.full((x.size, 2), np.nan) if ends is None else ends
        ends[~observed & ~left & np.isnan(ends[:, 0])] = -np.inf, np.inf
    for array in (x, observed, requested):
        array.setflags(write=False)
    style = None if levels else style_of(source, x)
    return EncodedColumn(
        *(source.column, index, x, observed, requested, levels),
        style=style,
        ends=ends,
        trials=trials,
    )


def _with_type(source: Source) -> Source:
    """Return a predictor that was given no type as real if it holds numbers, else categorical."""
    column = source.column
    return replace(source, column=column.of_numbers() if is_numeric(source) else column.of_levels())


def _check_modelled(column: Column, file: str | None) -> None:
    if column.role in _UNUSED_ROLES:
        raise SchemaError(
            f"role {column.role} is not used by any model that completes a table",
            file=file,
            column=column.name,
            hint="Set `role: ignore`, or give the column a type.",
        )
