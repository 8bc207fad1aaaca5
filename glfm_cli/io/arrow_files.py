"""Parquet and Arrow IPC files, types and metadata kept.

Arrow's Parquet and data set parts take 60 MB and are loaded when such a file is met.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

import pyarrow as pa
import pyarrow.ipc

from glfm_cli.errors import OutputError, TableError
from glfm_cli.io.csv_read import check_names
from glfm_cli.io.formats import ARROW_FILE, PARQUET
from glfm_cli.io.parquet_layout import layout_of, with_layout, without_layout

_WHAT = {"parquet": "Parquet", "arrow": "Arrow", "arrows": "Arrow"}

_NEW = {"arrow": pa.ipc.new_file, "arrows": pa.ipc.new_stream}


def read(data: bytes, layout: str, file: str, options: Mapping[str, str]) -> pa.Table:
    """Return the table in the bytes of a Parquet file, or of an Arrow IPC file or stream."""
    if not data:
        raise TableError("is empty", file=file, expected=f"{_WHAT[layout]} data")
    if layout == "parquet" and not data.startswith(PARQUET):
        raise TableError("is not a Parquet file", file=file, hint="Check its suffix.")
    try:
        table = _read_parquet(data) if layout == "parquet" else _read_ipc(data)
    except MemoryError:  # Arrow's own is an ArrowException, too
        raise
    except (pa.ArrowException, OSError, EOFError, UnicodeDecodeError):
        raise TableError(
            f"cannot be read as {_WHAT[layout]}: it is damaged, cut off or another kind of file",
            file=file,
            hint="Copy or export it again, and check its suffix.",
        ) from None
    check_names(table.column_names, file)
    if table.num_columns == 0:
        raise TableError("has no columns", file=file)
    if table.num_rows == 0:
        raise TableError("has columns but no rows", file=file)
    return table


def _read_parquet(data: bytes) -> pa.Table:
    from pyarrow.parquet import ParquetFile

    # A file, not a data set: nothing is read out of the names of its folders.
    file = ParquetFile(pa.BufferReader(data))
    table = file.read()
    return table.replace_schema_metadata(with_layout(table.schema, file.metadata).metadata)


def _read_ipc(data: bytes) -> pa.Table:
    source = pa.BufferReader(data)
    opened = pa.ipc.open_file(source) if data.startswith(ARROW_FILE) else pa.ipc.open_stream(source)
    table = opened.read_all()
    table.validate(full=True)
    return table


def write(table: pa.Table, file: IO[Any], layout: str, shown: str) -> None:
    """Write a table to an open binary file, as Parquet or as an Arrow IPC file or stream."""
    options, table = layout_of(table.schema), without_layout(table)
    with _refusals(layout, shown):
        if layout == "parquet":
            from pyarrow.parquet import write_table

            # The names inside lists stay as they are, too.
            write_table(table, file, use_compliant_nested_type=False, **options)
            return
        with _NEW[layout](file, table.schema) as writer:
            writer.write_table(table)


def write_parts(parts: Iterator[pa.Table], file: IO[Any], layout: str, shown: str) -> None:
    """Write tables of one schema below each other; in Parquet each begins a row group."""
    first = next(parts)
    compression = layout_of(first.schema).get("compression", "snappy")
    first, parts = without_layout(first), (without_layout(part) for part in parts)
    with _refusals(layout, shown):
        if layout == "parquet":
            from pyarrow.parquet import ParquetWriter

            options = {"use_compliant_nested_type": False, "compression": compression}
            writer: Any = ParquetWriter(file, first.schema, **options)
        else:
            if any(pa.types.is_dictionary(kind) for kind in first.schema.types):
                # An IPC file holds one dictionary a column, so it must be known from the start.
                first = pa.concat_tables([first, *parts]).unify_dictionaries()
                parts = iter(())
            writer = _NEW[layout](file, first.schema)
        with writer:
            writer.write_table(first)
            for part in parts:
                writer.write_table(part)


@contextmanager
def _refusals(layout: str, shown: str) -> Iterator[None]:
    """Turn Arrow's refusal to write a type into an OutputError."""
    try:
        yield
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise OutputError(
            f"cannot be written as {_WHAT[layout]} ({' '.join(str(error).split())[:120]})",
            file=shown,
            hint="Write to a .arrow file, which holds every type."
            if layout == "parquet"
            else "Write to a .parquet file instead.",
        ) from None
