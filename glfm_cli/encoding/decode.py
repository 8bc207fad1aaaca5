"""Completed cells back into the table, each in the form its column has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from glfm_cli.arrays import Array
from glfm_cli.encoding.data import Data, EncodedColumn
from glfm_cli.encoding.levels import distinct_texts, level_key, level_value, truth_writings
from glfm_cli.encoding.numeric import numerals_of
from glfm_cli.encoding.source import (
    is_null,
    is_text_type,
    one_chunk,
    open_column,
    plain,
    text_of,
    to_mask,
)
from glfm_cli.encoding.values import number_texts, typed_numbers
from glfm_cli.errors import NumericalError, OutputError
from glfm_cli.io import is_text_table, mark_written_type
from glfm_cli.io.arrow_types import computable, computable_type, in_type


def decode(table: pa.Table, data: Data, fills: Mapping[str, Array]) -> pa.Table:
    """Return the table with its missing cells completed and every other cell as it was.

    fills : column name to (requested.sum(),) float64; for each column with missing cells,
        their values in the column's own unit, or level codes

    Returns: with the same columns and types, and structural values in place. Text tables get
        numbers as text; numeric columns of them are marked to be numbers when written to Parquet
        or Arrow.
    Raises NumericalError: a value to fill in is not finite; OutputError: a dictionary column has no
        room for another value.
    """
    table = _with_structural(table, data)
    columns, fields = table.columns, list(table.schema)
    for encoded in (one.as_written for one in data.in_table):
        fields[encoded.index] = _field(table, encoded)
        if encoded.requested.any():
            fill = _checked(encoded, fills[encoded.column.name])
            columns[encoded.index] = _filled(table, encoded, fill)
    return pa.table(columns, schema=pa.schema(fields, table.schema.metadata))


def blank(table: pa.Table, data: Data) -> pa.Table:
    """Return the table with the missing cells that `decode` would complete empty (text) or null.

    Whatever code stood for missing there; every other cell is as it was, and the columns are
    those of a completed table.
    """
    columns, fields, is_text = table.columns, list(table.schema), is_text_table(table)
    for encoded in (one.as_written for one in data.in_table):
        field = _field(table, encoded)
        column = columns[encoded.index]
        if encoded.requested.any():
            if is_text:
                missing = pa.scalar("", column.type)
                column = pc.if_else(pa.array(encoded.requested), missing, column)
            else:
                place = pa.array(np.arange(len(column)), mask=encoded.requested)
                column = in_type(computable(one_chunk(column)).take(place), column.type)
                field = field.with_nullable(True)
        columns[encoded.index], fields[encoded.index] = column, field
    return pa.table(columns, schema=pa.schema(fields, table.schema.metadata))


def _with_structural(table: pa.Table, data: Data) -> pa.Table:
    """Return the table with the cells filled of which `otherwise` says what they are."""
    for encoded in (one.as_written for one in data.in_table):
        if encoded.structural is not None:
            here = ~np.isnan(encoded.structural)
            column = _filled(table, replace(encoded, requested=here), encoded.structural[here])
            field = table.schema.field(encoded.index)
            table = table.set_column(encoded.index, field, column)
    return table


def _field(table: pa.Table, encoded: EncodedColumn) -> pa.Field:
    """Return a column's field; text that holds numbers alone is marked to be written as such."""
    field = table.schema.field(encoded.index)
    numbers = encoded.column.numeric and encoded.column.moment is None
    if is_text_table(table) and numbers and not (encoded.between & ~encoded.requested).any():
        kind = "int64" if encoded.column.integral else "double"
        field = mark_written_type(field, kind, numerals_of(encoded.column))
    return field


def cell_texts(table: pa.Table, encoded: EncodedColumn, rows: Array) -> pa.Array:
    """Return some cells of a column as text, just as they stand in the table."""
    values = computable(one_chunk(table.column(encoded.index))).take(pa.array(rows))
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    return text_of(plain(values)).cast(pa.string())


def _checked(encoded: EncodedColumn, fill: Array) -> Array:
    """Return the fill values of one column, as float64."""
    values = np.asarray(fill, dtype=np.float64)
    if values.shape != (int(encoded.requested.sum()),):
        raise ValueError(f"{encoded.column.name}: {values.shape} values for its missing cells")
    bad = ~np.isfinite(values)
    if bad.any():
        row = int(np.flatnonzero(encoded.requested)[int(np.argmax(bad))]) + 1
        raise NumericalError(
            "the model gave no finite value for this cell", row=row, column=encoded.column.name
        )
    if encoded.levels and not np.all(np.isin(values, np.arange(len(encoded.levels)))):
        raise ValueError(f"{encoded.column.name}: a value is no level code")
    return values


def _filled(table: pa.Table, encoded: EncodedColumn, fill: Array) -> pa.Array:
    """Return one column with its missing cells filled, in the column's own Arrow type."""
    old = one_chunk(table.column(encoded.index))
    if computable_type(old.type) != old.type:
        table = table.set_column(encoded.index, encoded.column.name, computable(old))
        return in_type(_filled(table, encoded, fill), old.type)
    kind = old.type.value_type if pa.types.is_dictionary(old.type) else old.type
    if encoded.levels:
        codes = pa.array(fill.astype(np.int64))
        new = _level_values(table, encoded, kind).take(codes)
    elif is_text_type(kind):
        ends = None if encoded.ends is None else encoded.ends[encoded.requested]
        new = pa.array(number_texts(encoded, fill, ends), kind)
    else:
        new = typed_numbers(encoded, fill, kind)
    _check_complete(new, encoded)
    if pa.types.is_dictionary(old.type):
        return _replace_in_dictionary(old, encoded, new)
    return _replace(old, encoded.requested, new)


def _replace(old: pa.Array, requested: Array, new: pa.Array) -> pa.Array:
    """Return `old` with `new` in the wanted cells; works for every type that can be joined."""
    place = np.arange(len(old))
    place[requested] = len(old) + np.arange(len(new))
    return pa.concat_arrays([old, new]).take(pa.array(place))


def _replace_in_dictionary(old: pa.Array, encoded: EncodedColumn, new: pa.Array) -> pa.Array:
    dictionary = old.dictionary
    added = pc.unique(new.filter(pc.invert(pc.is_in(new, dictionary))))
    if len(added):
        dictionary = pa.concat_arrays([dictionary, added])
    where = pc.index_in(new, dictionary)
    try:
        indices = _replace(old.indices, encoded.requested, where.cast(old.type.index_type))
    except pa.ArrowInvalid:
        raise OutputError(
            f"the column's dictionary is full: its {old.type.index_type} indices "
            f"have no room for {len(added)} more values",
            column=encoded.column.name,
            hint="Store the column with a wider dictionary index, or without a dictionary.",
        ) from None
    return pa.DictionaryArray.from_arrays(indices, dictionary, ordered=old.type.ordered)


def _level_values(table: pa.Table, encoded: EncodedColumn, kind: pa.DataType) -> pa.Array:
    """Return each level as a value of the column: as it is mostly written there."""
    source = open_column(table, encoded.index, encoded.column, None)
    texts, of_row = distinct_texts(source)
    counts = np.bincount(of_row[encoded.observed], minlength=len(texts))
    first_row = _first_rows(of_row, len(texts))
    usual: dict[str, int] = {}
    for which in np.argsort(-counts, kind="stable"):
        text = texts[which]
        if counts[which] and text is not None:
            usual.setdefault(text, int(first_row[which]))
    for text, level in truth_writings(encoded.levels).items():
        if text in usual:
            usual.setdefault(level_key(level), usual[text])
    values = []
    for level in encoded.levels:
        row = usual.get(level_key(level))
        if row is None:
            values.append(pa.repeat(level_value(level, kind), 1))
        else:
            values.append(source.values.slice(row, 1).cast(kind))
    return pa.concat_arrays(values)


def _first_rows(of_row: Array, n: int) -> Array:
    first = np.zeros(n, dtype=np.int64)
    first[of_row[::-1]] = np.arange(of_row.size)[::-1]
    return first


def _check_complete(new: pa.Array, encoded: EncodedColumn) -> None:
    """Raise RuntimeError, a bug, when a completed cell would still be a missing cell."""
    missing = is_null(new)
    if pa.types.is_floating(new.type):
        missing |= np.isnan(new.to_numpy(zero_copy_only=False).astype(float))
    elif is_text_type(new.type):
        missing |= to_mask(pc.equal(pc.utf8_trim_whitespace(new.cast(pa.large_string())), ""))
    if missing.any():
        raise RuntimeError(f"{encoded.column.name}: a completed cell is still empty")
