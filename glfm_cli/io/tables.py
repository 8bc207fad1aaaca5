"""Read and write a table in any of the formats."""

from __future__ import annotations

import io
import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import glfm_cli.io.arrow_files as arrow_files
import glfm_cli.io.excel as excel
import glfm_cli.io.many_files as many_files
import glfm_cli.io.sql as sql
import glfm_cli.io.variable_names as variable_names
from glfm_cli.errors import OutputError, TableError
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
    CSV_LAYOUTS,
    Format,
    format_of_input,
    format_of_location,
    is_told_by_bytes,
)
from glfm_cli.io.frames import table_of
from glfm_cli.io.location import Location, locate
from glfm_cli.io.packed import unpack, write_packed
from glfm_cli.io.texts import check_texts

MOST_SHEETS = 8  # that an error names


def read_table(source: PathLike, *, format: str | None = None) -> pa.Table:
    """Return the table in a file.

    Parameters
    ----------
    source : path or "-"
        A file of one of `formats.FORMATS`, by its suffix; text also packed (`.gz`, `.zst`, `.bz2`,
        `.xz`, `.zip`).
        A folder or pattern of Parquet files; a table of a database, as `duckdb:FILE?table=NAME`.
        `-` is standard input, whose format is told by its first bytes; `https://...` is downloaded.
    format : str, optional
        A name in `formats.FORMATS`, instead of what the suffix says.

    Returns
    -------
    pyarrow.Table
        Of CSV and TSV every column is text, exactly as in the file, and the table remembers how
        the file was written. The others keep types and metadata.

    Raises
    ------
    TableError
        The file is missing, empty, damaged, in another encoding, or its rows are uneven.
    UsageError
        The format is not known.
    """
    file, place = file_label(source), locate(source)
    of_parquet = format == "parquet" or Path(place.path).suffix in ("", ".parquet", ".pq")
    if place.is_many and of_parquet and place.scheme is None:
        return many_files.read_many(place, file)
    if not (place.is_web or is_told_by_bytes(place)):
        found = format_of_location(place, format)  # said before anything is read
        if found.file_format.is_database:
            return found.file_format.load().read_database(place, found.layout, file)
    data = read_bytes(place.path)
    found = format_of_input(place, format, data)
    if found.packing is not None:
        data = unpack(data, found.packing, file)
    with naming_sheets(source):
        return found.file_format.load().read(data, found.layout, file, place.options)


@contextmanager
def naming_sheets(source: object) -> Iterator[None]:
    """Let errors of a table that was read from a workbook's first sheet name the others."""
    try:
        yield
    except TableError as error:
        if error.hint is None and (others := _other_sheets(source)):
            listed = ", ".join(f"'{name}'" for name in others[:MOST_SHEETS])
            more = ", ..." if len(others) > MOST_SHEETS else ""
            error.hint = (
                f"The workbook has other sheets: {listed}{more}. Read one as "
                f"{shlex.quote(f'{source}?sheet={others[0]}')}."
            )
        raise


def _other_sheets(source: object) -> list[str]:
    """Return the sheets of a workbook besides the first, which is read where none is named."""
    if not isinstance(source, str | os.PathLike):
        return []
    place = locate(source)
    if place.is_standard or place.is_web or "sheet" in place.options:
        return []
    if Path(place.path).suffix.lower() not in (".xlsx", ".xlsm", ".xls", ".xlsb", ".ods"):
        return []
    return excel.sheet_names(place.path)[1:]


def write_table(
    table: Any, target: PathLike, *, format: str | None = None, like: pa.Table | None = None
) -> None:
    """Write a table to a file, all at once.

    Parameters
    ----------
    table : table, data frame or matrix
        What to write, as `impute` takes it; without the index of a frame.
    target : path or "-"
        The suffix gives the format; `-` is standard output, CSV unless `format` says otherwise.
        An existing file is replaced only when the new one is complete.
    format : str, optional
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
        The format is not known, or what is given is no table.
    """
    table = table_of(table)
    kind = _format_of_target(target, format)
    if kind.file_format.is_database:
        sql.write_database(_typed(table), locate(target), kind.layout, str(target))
        return
    blocks = _blocks(table, target, kind, like=like, follows=format is None)
    if os.fspath(target) == STANDARD:
        write_stdout(blocks)
        return
    with atomic_write(target) as file:
        write_packed(blocks, file, kind.packing, _inner_name(target))


def write_parts(
    parts: Iterable[pa.Table], target: PathLike, *, like: pa.Table | None = None
) -> None:
    """Write tables of the same columns below each other into one file, all at once.

    Memory is that of one part at a time (of all in an Arrow file with dictionary columns).

    parts : at least one; all of one schema
    target, like : as in `write_table`
    """
    kind = _format_of_target(target, None)
    if kind.file_format.is_database:
        write_table(pa.concat_tables(parts), target)
        return
    blocks = _part_blocks(iter(parts), target, kind, like)
    if os.fspath(target) == STANDARD:
        write_stdout(blocks)
        return
    with atomic_write(target) as file:
        if kind.layout in ("parquet", "arrow", "arrows"):
            typed = (_typed(part) for part in parts)
            arrow_files.write_parts(typed, file, kind.layout, file_label(target))
        else:
            write_packed(blocks, file, kind.packing, _inner_name(target))


def _part_blocks(
    parts: Iterator[pa.Table], target: PathLike, kind: Format, like: pa.Table | None
) -> Iterator[bytes]:
    """Yield the bytes of a file whose rows come in parts."""
    if kind.layout not in CSV_LAYOUTS:
        yield from _blocks(pa.concat_tables(parts), target, kind, like=None, follows=False)
        return
    part, first, n_before = next(parts), True, 0
    dialect = dialect_of(like if like is not None else part)
    dialect = _dialect_for(kind.layout, dialect, os.fspath(target) == STANDARD)
    while part is not None:
        following = next(parts, None)
        check_texts(part, kind.layout, file_label(target), n_before)
        n_before += part.num_rows
        own = dialect if like is not None else _quoted_as(dialect, part)
        yield from csv_blocks(part, own, first=first, last=following is None)
        part, first = following, False


def _quoted_as(dialect: Dialect, part: pa.Table) -> Dialect:
    """Return a dialect with the quotes and the end of one part of a table."""
    own = dialect_of(part)
    if own is None:
        return dialect
    return replace(dialect, columns=own.columns, new_columns=own.new_columns, tail=own.tail)


def check_target(target: PathLike, table: pa.Table, n_rows: int = 1) -> None:
    """Raise, before long work, the error that `write_table` would, and leave no trace.

    target : path or "-"; where the table shall be written
    table : one with the columns that will be written, and at least one row
    n_rows : that will be written
    """
    kind = _format_of_target(target, None)
    if kind.file_format.is_database:
        sql.check_database(place := locate(target), kind.layout, str(target))
        check_writable(place.path)
        return
    if kind.file_format.module == ".excel":
        excel.check_size(n_rows, table.num_columns, file_label(target))
    for _ in _blocks(table.slice(0, 1), target, kind, like=None, follows=True):
        pass
    if os.fspath(target) != STANDARD:
        check_writable(target)


def check_cells(target: PathLike, table: pa.Table) -> None:
    """Raise, before long work, the error that `write_table` would for the texts of a table."""
    check_texts(table, _format_of_target(target, None).layout, file_label(target))


def renamed_note(target: PathLike, names: Sequence[str]) -> str | None:
    """Return the line that says which columns have other names in a file; None where none has."""
    layout = _format_of_target(target, None).layout
    return variable_names.renamed_note(names, layout) if layout in variable_names.NAMING else None


def _format_of_target(target: PathLike, stated: str | None) -> Format:
    """Return the format to write; CSV for standard output and other devices unless stated."""
    if os.fspath(target) == STANDARD or (stated is None and is_device(target)):
        standard = Location(STANDARD)
        return Format("csv" if stated is None else format_of_location(standard, stated).layout)
    place = locate(target)
    if place.is_web:
        raise OutputError(
            "an address of the web can be read, but not written",
            file=place.path,
            hint="Write to a file, and upload that.",
        )
    found = format_of_location(place, stated, written=True)
    if found.layout in _ONLY_READ:
        raise OutputError(
            f"files of format {found.layout} can be read, but not written",
            file=str(target),
            hint=f"Write to a {_ONLY_READ[found.layout]}, .csv or .parquet file.",
        )
    return found


# Formats that no library at hand writes, and what to write in their place.
_ONLY_READ = {"xls": ".xlsx", "sas": ".sav"}


def _blocks(
    table: pa.Table, target: PathLike, kind: Format, *, like: pa.Table | None, follows: bool
) -> Iterator[bytes]:
    """Return the bytes of a table in a format, block by block."""
    if kind.layout not in CSV_LAYOUTS:
        return _whole(_typed(table), kind, file_label(target))
    check_texts(table, kind.layout, file_label(target))
    dialect = dialect_of(like if like is not None else table)
    follows &= os.fspath(target) == STANDARD
    return csv_blocks(table, _dialect_for(kind.layout, dialect, follows))


def _whole(table: pa.Table, kind: Format, shown: str) -> Iterator[bytes]:
    buffer = io.BytesIO()
    kind.file_format.load().write(table, buffer, kind.layout, shown)
    yield buffer.getvalue()


def _inner_name(target: PathLike) -> str:
    """Return what a packed file is called inside an archive."""
    stem = Path(target).stem
    return stem if Path(stem).suffix else f"{stem}.csv"


def _dialect_for(layout: str, known: Dialect | None, follows: bool) -> Dialect:
    """Return the dialect for a target: that of the source, with the delimiter of the suffix."""
    if known is None:
        return Dialect(layout=layout, delimiter="\t" if layout == "tsv" else ",")
    if follows or layout in (known.layout, "txt"):
        return known
    delimiter = "\t" if layout == "tsv" else ","
    return replace(known, layout=layout, delimiter=delimiter, preamble="")


def _typed(table: pa.Table) -> pa.Table:
    """Return a table of text as one for Parquet: marked columns as numbers, empty cells null."""
    if not is_text_table(table):
        return table
    parts = [_typed_column(*one) for one in zip(table.schema, table.columns, strict=True)]
    metadata = dict(table.schema.metadata or {})
    metadata.pop(METADATA_KEY, None)
    schema = pa.schema([field for field, _ in parts], metadata=metadata or None)
    return pa.Table.from_arrays([values for _, values in parts], schema=schema)


def _typed_column(field: pa.Field, text: pa.ChunkedArray) -> tuple[pa.Field, pa.ChunkedArray]:
    """Return a column for Parquet, as `_typed` does."""
    if not (pa.types.is_string(field.type) or pa.types.is_large_string(field.type)):
        return field, text
    metadata = dict(field.metadata or {})
    requested = metadata.pop(WRITTEN_TYPE_KEY, None)
    trimmed = pc.utf8_trim_whitespace(text)
    if requested is None:
        values = pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, text.type), text)
    else:
        # What is no number here is a code for a missing value.
        kind, numerals = written_type(requested)
        values = numerals.read(trimmed).plain.cast(pa.float64()).cast(kind)
    return pa.field(field.name, values.type, metadata=metadata), values
