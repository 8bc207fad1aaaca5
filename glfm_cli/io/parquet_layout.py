"""How a Parquet file was written, so that the completed table is written like it.

The layout travels in the metadata of the table's schema, unless it is what is written anyway, and
is taken out of them before a file is written.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pyarrow as pa

_KEY = b"glfm.parquet"
_USUAL = "snappy"  # Arrow's own, and ours
# As files name what Arrow can write; a level of compression is nowhere in a file.
_CODECS = {
    "UNCOMPRESSED": "none",
    "SNAPPY": _USUAL,
    "GZIP": "gzip",
    "BROTLI": "brotli",
    "ZSTD": "zstd",
    "LZ4": "lz4",
    "LZ4_RAW": "lz4",
}


def with_layout(schema: pa.Schema, found: Any, *, groups: bool = True) -> pa.Schema:
    """Return the schema of a file, its layout among the metadata.

    found : `pyarrow.parquet.FileMetaData`
    groups : whether the size of row groups is part of it
    """
    layout: dict[str, Any] = {}
    if found.num_row_groups:
        first = found.row_group(0)
        used = Counter(first.column(i).compression for i in range(first.num_columns))
        codec = _CODECS.get(used.most_common(1)[0][0], _USUAL) if used else _USUAL
        if codec != _USUAL:
            layout["compression"] = codec
        if groups and found.num_row_groups > 1 and first.num_rows:
            layout["row_group_size"] = first.num_rows
    if not layout:
        return schema
    return schema.with_metadata({**(schema.metadata or {}), _KEY: json.dumps(layout).encode()})


def layout_of(schema: pa.Schema) -> dict[str, Any]:
    """Return the layout, as options of `pyarrow.parquet.write_table`; empty where none is known."""
    return dict(json.loads((schema.metadata or {}).get(_KEY, b"{}")))


def without_layout(table: pa.Table) -> pa.Table:
    """Return a table as it is written: the metadata without the layout."""
    metadata = dict(table.schema.metadata or {})
    if metadata.pop(_KEY, None) is None:
        return table
    return table.replace_schema_metadata(metadata or None)
