"""A toy file format: a card a row, its cells as pairs of JSON, and the table's schema on top."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import IO, Any

import pyarrow as pa

from glfm_cli.errors import TableError
from glfm_cli.io.formats import FileFormat

MAGIC = b"%cards "
CARDS = FileFormat((".cards",), __name__, text=True, magic=(MAGIC,))


def read(data: bytes, layout: str, file: str, options: Mapping[str, str]) -> pa.Table:
    head, _, body = data.partition(b"\n")
    try:
        packed = base64.b64decode(head.removeprefix(MAGIC), validate=True)
        schema = pa.ipc.read_schema(pa.py_buffer(packed))
        cards = [card.splitlines() for card in body.decode().split("\n\n") if card.strip()]
        rows = [dict(json.loads(cell) for cell in card) for card in cards]
        if any(row.keys() != set(schema.names) for row in rows):
            raise ValueError("a card has other cells")
        return pa.Table.from_pylist(rows, schema)
    except (ValueError, TypeError, pa.ArrowException):
        raise TableError(
            "holds damaged cards", file=file, expected='cells such as ["age", 5], a card a row'
        ) from None


def write(table: pa.Table, file: IO[Any], layout: str, shown: str) -> None:
    file.write(MAGIC + base64.b64encode(table.schema.serialize().to_pybytes()) + b"\n")
    for row in table.to_pylist():
        file.write("".join(f"{json.dumps(cell)}\n" for cell in row.items()).encode() + b"\n")
