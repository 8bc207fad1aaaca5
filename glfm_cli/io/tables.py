"""Read and write a table in any of the formats."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc

from glfm_cli.errors import TableError
from glfm_cli.io.arrow_files import read_arrow, write_arrow, write_arrow_parts
from glfm_cli.io.csv_read import read_csv
from glfm_cli.io.csv_write import csv_blocks
from glfm_cli.io.dialect import (
    METADATA_KEY,
    WRITTEN_TYPE_KEY,
    Dialect,
    dialect_of,
    is_text_table,
    written_type,
)
from glfm_cli.io.files import (
    STANDARD,
    PathLike,
    atomic_write,
    check_writable,
    file_label,
    is_device,
    read_bytes,
    write_stdout,
)
from glfm_cli.io.formats import (
    GZIP,
    TEXT_FORMATS,
    Format,
    format_of_input,
    format_of_path,
)


def read_table(source: PathLike, *, format: str | None = None) -> pa.Table:
    """Return the table in a file.

    Parameters
    ----------
    source : path or "-"
        A CSV, TSV, Parquet or Arrow file, by its suffix; the text formats also with `.gz`.
        `-` is standard input, whose format is told by its first bytes.
    format : "csv", "tsv", "parquet" or "arrow", optional
        Instead of what the suffix says.

    Returns
    -------
    pyarrow.Table
        Of CSV and TSV every column is text, exactly as in the file, and the table remembers how
        the file was written. Parquet and Arrow keep types and metadata.

    Raises
    ------
    TableError
        The file is missing, empty, damaged, in another encoding, or its rows are uneven.
    UsageError
        The format is not known.
    """
    file = file_label(source)
    if os.fspath(source) != STANDARD:
        format_of_path(source, format)  # an unknown suffix is said before anything is read
    data = read_bytes(source)
    found = format_of_input(source, format, data)
    if found.gzip:
        data = _unpack(data, file)
    if found.layout in TEXT_FORMATS:
        return read_csv(data, found.layout, file)
    return read_arrow(data, found.layout, file)


def write_table(
    table: pa.Table,
    target: PathLike,
    *,
    format: str | None = None,
    like: pa.Table | None = None,
) -> None:
    """Write a table to a file, all at once.

    Parameters
    ----------
    table : pyarrow.Table
        What to write.
    target : path or "-"
        The suffix gives the format; `-` is standard output, CSV unless `format` says otherwise.
        An existing file is replaced only when the new one is complete.
    format : "csv", "tsv", "parquet" or "arrow", optional
        Instead of what the suffix says.
    like : pyarrow.Table, optional
        A table read from CSV, whose way of writing (delimiter, quotes, line ends) is followed;
        by default `table` itself.

    Raises
    ------
    OutputError
        The folder is missing or not writable, the disk is full, or the format cannot hold a
        column's type.
    UsageError
        The format is not known.
    """
    kind = _format_of_target(target, format)
    blocks = _blocks(table, target, kind, like=like, follows=format is None)
    if os.fspath(target) == STANDARD:
        write_stdout(blocks)
        return
    with atomic_write(target) as file:
        _write_blocks(blocks, file, zipped=kind.gzip)


def write_parts(
    parts: Iterable[pa.Table], target: PathLike, *, like: pa.Table | None = None
) -> None:
    """Write tables of the same columns below each other into one file, all at once.

    Memory is that of one part at a time (of all in an Arrow file with dictionary columns).

    Parameters
    ----------
    parts : iterable of pyarrow.Table
        At least one; all of one schema.
    target, like
        As in `write_table`.
    """
    kind = _format_of_target(target, None)
    blocks = _part_blocks(iter(parts), target, kind, like)
    if os.fspath(target) == STANDARD:
        write_stdout(blocks)
        return
    with atomic_write(target) as file:
        if kind.layout in TEXT_FORMATS:
            _write_blocks(blocks, file, zipped=kind.gzip)
        else:
            typed = (_typed(part) for part in parts)
            write_arrow_parts(typed, file, kind.layout, file_label(target))


def _part_blocks(
    parts: Iterator[pa.Table], target: PathLike, kind: Format, like: pa.Table | None
) -> Iterator[bytes]:
    """Yield the bytes of a text file whose rows come in parts."""
    part, first = next(parts), True
    dialect = dialect_of(like if like is not None else part)
    dialect = _dialect_for(kind.layout, dialect, os.fspath(target) == STANDARD)
    while part is not None:
        following = next(parts, None)
        yield from csv_blocks(part, dialect, first=first, last=following is None)
        part, first = following, False


def check_target(target: PathLike, table: pa.Table, *, format: str | None = None) -> None:
    """Raise, before long work, the error that `write_table` would, and leave no trace.

    Parameters
    ----------
    target : path or "-"
        Where the table shall be written.
    table : pyarrow.Table
        One with the columns that will be written, and at least one row.
    format : "csv", "tsv", "parquet" or "arrow", optional
        As in `write_table`.
    """
    kind = _format_of_target(target, format)
    for _ in _blocks(table.slice(0, 1), target, kind, like=None, follows=True):
        pass
    if os.fspath(target) != STANDARD:
        check_writable(target)


def _format_of_target(target: PathLike, stated: str | None) -> Format:
    """Return the format to write; CSV for standard output and other devices unless stated."""
    if os.fspath(target) == STANDARD or (stated is None and is_device(target)):
        return Format("csv" if stated is None else format_of_path("-", stated).layout)
    return format_of_path(target, stated)


def _blocks(
    table: pa.Table, target: PathLike, kind: Format, *, like: pa.Table | None, follows: bool
) -> Iterator[bytes]:
    """Return the bytes of a table in a format, block by block."""
    if kind.layout not in TEXT_FORMATS:
        return _arrow_blocks(_typed(table), kind.layout, file_label(target))
    dialect = dialect_of(like if like is not None else table)
    follows &= os.fspath(target) == STANDARD
    return csv_blocks(table, _dialect_for(kind.layout, dialect, follows))


def _unpack(data: bytes, file: str) -> bytes:
    if not data.startswith(GZIP):
        raise TableError("is not gzip data, though its name ends in .gz", file=file)
    try:
        return gzip.decompress(data)
    except (EOFError, OSError, zlib.error):
        raise TableError(
            "is damaged or cut off: its gzip data cannot be unpacked whole",
            file=file,
            hint="Copy or export it again.",
        ) from None


def _write_blocks(blocks: Iterator[bytes], file: IO[bytes], *, zipped: bool) -> None:
    if not zipped:
        file.writelines(blocks)
        return
    # Neither name nor time inside: the same table gives the same bytes.
    with gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) as packed:
        for block in blocks:
            packed.write(block)


def _arrow_blocks(table: pa.Table, layout: str, shown: str) -> Iterator[bytes]:
    buffer = io.BytesIO()
    write_arrow(table, buffer, layout, shown)
    yield buffer.getvalue()


def _dialect_for(layout: str, known: Dialect | None, follows: bool) -> Dialect:
    """Return the dialect for a target: that of the source, with the delimiter of the suffix."""
    if known is None:
        return Dialect(layout=layout, delimiter="\t" if layout == "tsv" else ",")
    if follows or layout in (known.layout, "txt"):
        return known
    return replace(known, layout=layout, delimiter="\t" if layout == "tsv" else ",")


def _typed(table: pa.Table) -> pa.Table:
    """Return a table of text as one for Parquet: marked columns as numbers, empty cells null."""
    if not is_text_table(table):
        return table
    for i, field in enumerate(table.schema):
        if not (pa.types.is_string(field.type) or pa.types.is_large_string(field.type)):
            continue
        metadata = dict(field.metadata or {})
        requested = metadata.pop(WRITTEN_TYPE_KEY, None)
        text = table.column(i)
        trimmed = pc.utf8_trim_whitespace(text)
        if requested is None:
            values = pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, text.type), text)
        else:
            # What is no number here is a code for a missing value.
            kind, numerals = written_type(requested)
            values = numerals.read(trimmed).plain.cast(pa.float64()).cast(kind)
        table = table.set_column(i, pa.field(field.name, values.type, metadata=metadata), values)
    metadata = dict(table.schema.metadata or {})
    metadata.pop(METADATA_KEY, None)
    return table.replace_schema_metadata(metadata or None)
