"""Which format a file has: by its suffix, by the user's word, or by its first bytes."""

from __future__ import annotations

import os
from dataclasses import dataclass

from glfm_cli.errors import TableError, UsageError
from glfm_cli.io.files import STANDARD, PathLike

SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".txt": "txt",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
TEXT_FORMATS = ("csv", "tsv", "txt")
FORMATS = ("csv", "tsv", "parquet", "arrow")

GZIP = b"\x1f\x8b"
PARQUET = b"PAR1"
ARROW_FILE = b"ARROW1"
ARROW_STREAM = b"\xff\xff\xff\xff"

# What people hand over by mistake: first bytes, what it is, what to do.
_FOREIGN = (
    (b"PK\x03\x04", "an Excel workbook or a zip archive", "Save the sheet as CSV, or unpack it."),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook", "Save the sheet as CSV."),
    (b"%PDF", "a PDF document", "Export the table as CSV."),
    (b"BZh", "bzip2 data", "Unpack it first; only gzip is read directly."),
    (b"\xfd7zXZ\x00", "xz data", "Unpack it first; only gzip is read directly."),
    (b"\x28\xb5\x2f\xfd", "Zstandard data", "Unpack it first; only gzip is read directly."),
    (b"SQLite format 3\x00", "an SQLite database", "Export the table as CSV or Parquet."),
    (b"\x89HDF\r\n", "an HDF5 file", "Export the table as CSV or Parquet."),
    (PARQUET, "Parquet data", "Rename the file to .parquet, or state the format."),
    (ARROW_FILE, "Arrow data", "Rename the file to .arrow, or state the format."),
    (ARROW_STREAM, "Arrow data", "Rename the file to .arrow, or state the format."),
    (GZIP, "gzip data", "Rename the file so that it ends in .gz."),
)


@dataclass(frozen=True)
class Format:
    """A layout (`csv`, `tsv`, `txt`, `parquet`, `arrow`) and whether gzip is around it."""

    layout: str
    gzip: bool = False


def format_of_path(path: PathLike, stated: str | None) -> Format:
    """Return a file's format from its suffix; `stated` wins over the suffix, but for `.gz`."""
    if stated is not None and stated not in FORMATS:
        raise UsageError(
            "unknown table format", value=f"'{stated}'", expected=f"one of {', '.join(FORMATS)}"
        )
    stem, suffix = os.path.splitext(os.fspath(path))
    zipped = suffix.lower() == ".gz"
    if zipped:
        suffix = os.path.splitext(stem)[1]
    layout = stated or SUFFIXES.get(suffix.lower())
    if layout is None or (zipped and layout not in TEXT_FORMATS):
        raise UsageError(
            "the name does not tell the table's format",
            file=str(path),
            expected=f"a name ending in {', '.join(SUFFIXES)}, or .csv.gz, .tsv.gz, .txt.gz",
            hint="Save the sheet as CSV." if suffix.lower() in (".xls", ".xlsx", ".ods") else None,
        )
    return Format(layout, zipped)


def format_of_input(source: PathLike, stated: str | None, data: bytes) -> Format:
    """Return the format of what was read; standard input is told by its first bytes."""
    if os.fspath(source) != STANDARD:
        return format_of_path(source, stated)
    if stated is not None:
        return Format(format_of_path(source, stated).layout, data.startswith(GZIP))
    if data.startswith(GZIP):
        return Format("csv", gzip=True)
    if data.startswith(PARQUET):
        return Format("parquet")
    if data.startswith((ARROW_FILE, ARROW_STREAM)):
        return Format("arrow")
    return Format("csv")


def check_is_text(data: bytes, file: str) -> None:
    """Raise TableError when bytes that should be text are a known other kind of file."""
    for magic, what, hint in _FOREIGN:
        if data.startswith(magic):
            raise TableError(f"holds {what}, not text", file=file, hint=hint)
