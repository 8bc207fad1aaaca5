"""Arrow types with which Arrow itself computes little, as the ones that it computes with."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_ONLY_HELD = {
    pa.string_view(): pa.large_string(),
    pa.binary_view(): pa.large_binary(),
}


def holds_anything(kind: pa.DataType) -> bool:
    """Return whether a column has values of several types, which can only be passed through."""
    return isinstance(kind, pa.JsonType | pa.OpaqueType)


def computable_type(kind: pa.DataType) -> pa.DataType:
    """Return the type that holds the same values, and for which Arrow has its functions.

    Views become large texts and bytes, decimals of 32 and 64 bits ones of 128, runs of equal
    values plain values; so do the values of dictionaries.
    """
    if pa.types.is_decimal32(kind) or pa.types.is_decimal64(kind):
        return pa.decimal128(kind.precision, kind.scale)
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, computable_type(kind.value_type), kind.ordered)
    if pa.types.is_run_end_encoded(kind):
        return computable_type(kind.value_type)
    return _ONLY_HELD.get(kind, kind)


def computable(values: pa.Array) -> pa.Array:
    """Return an array in its computable type."""
    kind = computable_type(values.type)
    if pa.types.is_run_end_encoded(values.type):
        values = pc.run_end_decode(values)
    return values if kind == values.type else _as_type(values, kind)


def computable_table(table: pa.Table) -> pa.Table:
    """Return a table whose columns have computable types; metadata are kept."""
    kinds = [computable_type(field.type) for field in table.schema]
    if kinds == table.schema.types:
        return table
    columns, fields = table.columns, list(table.schema)
    for i, (field, column, kind) in enumerate(zip(fields, columns, kinds, strict=True)):
        if kind != field.type:
            chunks = [computable(chunk) for chunk in column.chunks]
            columns[i], fields[i] = pa.chunked_array(chunks, kind), field.with_type(kind)
    return pa.table(columns, schema=pa.schema(fields, table.schema.metadata))


def in_type(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return computable values in the type that they had."""
    if pa.types.is_run_end_encoded(kind):
        plain = _as_type(values, kind.value_type)
        return pc.run_end_encode(plain, run_end_type=kind.run_end_type)
    return _as_type(values, kind)


def _as_type(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if not pa.types.is_dictionary(kind):
        return values.cast(kind)
    # Arrow casts no dictionary to one whose values have another of these types.
    dictionary = values.dictionary.cast(kind.value_type)
    return pa.DictionaryArray.from_arrays(values.indices, dictionary, ordered=kind.ordered)
