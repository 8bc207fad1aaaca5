"""JSON lines: one object a row."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc

from glfm_cli.errors import OutputError, TableError
from glfm_cli.io.csv_read import check_names
from glfm_cli.io.mixed import cells_of, table_of_cells


class _RepeatedKey(Exception):
    """A key that an object has twice."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise _RepeatedKey(next(name for name in names if names.count(name) > 1))
    return found


def read(data: bytes, layout: str, file: str, options: Mapping[str, str]) -> pa.Table:
    """Return the objects in a file as rows; a key that a row lacks is null.

    Texts that look like dates stay texts.
    """
    names: dict[str, None] = {}
    rows = []
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line, object_pairs_hook=_object)
        except _RepeatedKey as error:
            raise TableError(
                f"line {number} has the key '{error}' twice", file=file, expected="each key once"
            ) from None
        except (ValueError, RecursionError) as error:
            if "digits" in str(error):  # Python reads no longer ones
                raise TableError(
                    f"line {number} has a number of thousands of digits",
                    file=file,
                    hint="Write it between quotes, as a text, or shorten it.",
                ) from None
            row = None
        if not isinstance(row, dict):
            raise TableError(
                f"line {number} is not a JSON object",
                file=file,
                expected='an object a line, such as {"age": 5, "city": "Oslo"}',
            )
        names |= dict.fromkeys(row)
        rows.append(row)
    if not rows or not names:
        raise TableError("has no rows", file=file, expected="a JSON object a line")
    check_names(list(names), file)
    return table_of_cells(list(names), [[row.get(n) for row in rows] for n in names], file)


def write(table: pa.Table, file: IO[Any], layout: str, shown: str) -> None:
    """Write a table to an open binary file, one object a row."""
    names = table.column_names
    for field in table.schema:
        if pa.types.is_duration(field.type) or pa.types.is_interval(field.type):
            raise OutputError(
                f"JSON cannot hold values of type {field.type}",
                file=shown,
                column=field.name,
                hint="Write to a .parquet or .arrow file instead.",
            )
    for batch in table.to_batches(max_chunksize=1 << 14):
        fields = table.schema
        columns = [_cells(c, field) for c, field in zip(batch.columns, fields, strict=True)]
        for row in zip(*columns, strict=True):
            cells = dict(zip(names, row, strict=True))
            try:
                line = json.dumps(cells, ensure_ascii=False, allow_nan=False, default=_plain)
            except (TypeError, ValueError):
                raise OutputError(
                    "JSON cannot hold a value of the table (bytes, or an infinite number)",
                    file=shown,
                    hint="Write to a .parquet or .arrow file instead.",
                ) from None
            file.write(line.encode() + b"\n")


def _cells(column: pa.Array, field: pa.Field) -> list[Any]:
    if isinstance(field.type, pa.JsonType):
        return [None if v is None else json.loads(v) for v in column.storage.to_pylist()]
    if pa.types.is_floating(field.type):  # which JSON has no word for
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, field.type), column)
    return cells_of(column, field)


def _plain(value: object) -> object:
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    if isinstance(value, Decimal):  # without a fraction an id, of more digits than a float has
        return float(value) if int(value.as_tuple().exponent) < 0 else int(value)
    raise TypeError
