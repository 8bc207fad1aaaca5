"""Columns that hold numbers and text: all text in Arrow, each cell written as what it was."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from glfm_cli.errors import TableError
from glfm_cli.io.dialect import NUMBER

KEY = b"glfm.mixed"  # of a field: the texts that look like numbers though they are text
WHOLE_KEY = b"glfm.whole"  # of a field of floats: its whole numbers are written without a point
_MOST_EXACT = 2**53
_NUMBER = re.compile(NUMBER, re.ASCII)


def mixed_column(values: Sequence[Any], texts: Sequence[str | None]) -> tuple[pa.Array, dict]:
    """Return a column of text, and the metadata of its field.

    values : cells as the file holds them
    texts : the same as text
    """
    lookalikes = {v for v in values if isinstance(v, str) and _NUMBER.fullmatch(v)}
    return pa.array(texts, pa.string()), {KEY: json.dumps(sorted(lookalikes)).encode()}


def table_of_cells(names: Sequence[str], columns: Sequence[Sequence[Any]], file: str) -> pa.Table:
    """Return columns of Python's values as a table.

    Raises TableError: a column mixes types other than numbers and text.
    """
    arrays, fields = [], []
    for name, values in zip(names, columns, strict=True):
        kinds, metadata = {type(value) for value in values if value is not None}, None
        try:
            if str in kinds and len(kinds) > 1 and kinds <= {str, int, float}:
                texts = [None if v is None else str(v) for v in values]
                array, metadata = mixed_column(values, texts)
            else:
                array = pa.array(values)
                if kinds == {int, float} and not any(map(_is_whole_float, values)):
                    metadata = {WHOLE_KEY: b"1"}
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            array = _as_json(values, name, file)
        arrays.append(array)
        fields.append(pa.field(name, array.type, metadata=metadata))
    return pa.table(arrays, schema=pa.schema(fields))


def _is_whole_float(value: Any) -> bool:
    return isinstance(value, float) and value.is_integer() and abs(value) < _MOST_EXACT


def _as_json(values: Sequence[Any], name: str, file: str) -> pa.Array:
    """Return values of several types as JSON, which a column that is not modelled may hold.

    Raises TableError: there is one that JSON does not have, as a date.
    """
    try:
        texts = [None if v is None else json.dumps(v, ensure_ascii=False) for v in values]
    except TypeError:
        raise TableError(
            "the column holds values of several types",
            file=file,
            column=name,
            hint="Write all its values as numbers, or all as text.",
        ) from None
    return pa.ExtensionArray.from_storage(pa.json_(pa.string()), pa.array(texts, pa.string()))


def cells_of(column: pa.Array, field: pa.Field) -> list[Any]:
    """Return the cells of a column to write: of a mixed one, numbers as numbers."""
    values: list[Any] = column.to_pylist()
    metadata = field.metadata or {}
    if WHOLE_KEY in metadata:
        return [int(v) if _is_whole_float(v) else v for v in values]
    mixed = metadata.get(KEY)
    if mixed is None:
        return values
    texts = set(json.loads(mixed))
    return [_number(v) if v and v not in texts and _NUMBER.fullmatch(v) else v for v in values]


def _number(text: str) -> float | int:
    return int(text) if re.fullmatch(r"[+-]?\d{1,300}", text) else float(text)
