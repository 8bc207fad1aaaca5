"""The formats of tables, and which one a file has: by its suffix, the user's word, or its bytes."""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass
from types import ModuleType

from glfm_cli.errors import TableError, UsageError
from glfm_cli.io.files import is_device
from glfm_cli.io.location import Location
from glfm_cli.io.packed import BZIP2, GZIP, PACKINGS, XZ, ZIP, ZSTD, packing_of
from glfm_cli.io.web import path_of

PARQUET = b"PAR1"
ARROW_FILE = b"ARROW1"
ARROW_STREAM = b"\xff\xff\xff\xff"
SQLITE = b"SQLite format 3\x00"
SPSS, SPSS_PACKED = b"$FL2", b"$FL3"


@dataclass(frozen=True)
class FileFormat:
    """One format of files.

    suffixes : of its files
    module : as of `glfm_cli.io`, imported when first needed; it has `read(data, layout, file,
        options)`, and `write(table, file, layout, shown)` if it can write
    text : whether a file is text, which may be packed, and which standard output may take
    is_database : whether a file holds several tables; the module then has
        `read_database(place, layout, file)` and `write_database(table, place, layout, file)`
    options : what may stand behind a `?`, by name
    written : the suffixes of files that can be written; None for all
    magic : first bytes, one of which tells standard input in this format
    """

    suffixes: tuple[str, ...]
    module: str
    text: bool = False
    is_database: bool = False
    options: tuple[tuple[str, str], ...] = ()
    written: tuple[str, ...] | None = None
    magic: tuple[bytes, ...] = ()

    def load(self) -> ModuleType:
        """Return the module that reads and writes the format."""
        return importlib.import_module(self.module, __package__)


_SHEET = (("sheet", "NAME or number"), ("header", "the row of the names"))
_NAMES = (("columns", "a file of their names"), ("rows", "a file of their names"))
_TABLE = (("table", "NAME"), ("query", "SELECT ..."))

_JSON = (
    "An object a line is .jsonl; a list of objects becomes that by "
    "`jq -c '.[]' table.json > table.jsonl`."
)

FORMATS = {
    "csv": FileFormat((".csv",), ".csv_read", text=True),
    "tsv": FileFormat((".tsv",), ".csv_read", text=True),
    "txt": FileFormat((".txt",), ".csv_read", text=True),
    "jsonl": FileFormat((".jsonl", ".ndjson"), ".json_lines", text=True, magic=(b'{"',)),
    "parquet": FileFormat((".parquet", ".pq"), ".arrow_files", magic=(PARQUET,)),
    "arrow": FileFormat(
        (".arrow", ".feather", ".ipc"), ".arrow_files", magic=(ARROW_FILE, ARROW_STREAM)
    ),
    "arrows": FileFormat((".arrows",), ".arrow_files"),
    "xlsx": FileFormat((".xlsx", ".xlsm"), ".excel", options=_SHEET),
    "xls": FileFormat((".xls", ".xlsb"), ".excel", options=_SHEET, written=()),
    "ods": FileFormat((".ods",), ".excel", options=_SHEET),
    "sav": FileFormat((".sav", ".zsav"), ".statistics"),
    "dta": FileFormat((".dta",), ".statistics"),
    "sas": FileFormat((".sas7bdat", ".xpt"), ".statistics", written=()),
    "mtx": FileFormat((".mtx",), ".sparse_matrices", text=True, options=_NAMES, written=()),
    "svmlight": FileFormat(
        (".svmlight", ".libsvm"), ".sparse_matrices", text=True, options=_NAMES, written=()
    ),
    "sqlite": FileFormat((".sqlite", ".sqlite3", ".db"), ".sql", is_database=True, options=_TABLE),
    "duckdb": FileFormat((".duckdb", ".ddb"), ".sql", is_database=True, options=_TABLE),
}
# Workbooks are archives, which list their files at the end.
_BOOKS = {
    "xlsx": b"xl/workbook.xml",
    "xls": b"xl/workbook.bin",  # .xlsb
    "ods": b"mimetypeapplication/vnd.oasis.opendocument.spreadsheet",
}
CSV_LAYOUTS = ("csv", "tsv", "txt")  # of which every cell is kept as text

# What people hand over by mistake: first bytes, what it is, what to do.
_FOREIGN = (
    (ZIP, "an Excel workbook or a zip archive", "Rename it so that it ends in .xlsx or .zip."),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook", "Rename it so that it ends in .xls."),
    (b"%PDF", "a PDF document", "Export the table as CSV."),
    (b"<!DOCTYPE", "a web page", "Download the table itself, or export it as CSV."),
    (b"<html", "a web page", "Download the table itself, or export it as CSV."),
    (b'[{"', "a JSON array", "Write it with an object a line, as .jsonl."),
    (b'{"', "JSON", "Rename it to .jsonl if it has an object a line."),
    (BZIP2, "bzip2 data", "Rename the file so that it ends in .bz2."),
    (XZ, "xz data", "Rename the file so that it ends in .xz."),
    (ZSTD, "Zstandard data", "Rename the file so that it ends in .zst."),
    (SQLITE, "an SQLite database", "Read it as `sqlite:FILE?table=NAME`."),
    (SPSS, "an SPSS file", "Rename the file to .sav."),
    (SPSS_PACKED, "an SPSS file", "Rename the file to .zsav."),
    (b"<stata_dta>", "a Stata file", "Rename the file to .dta."),
    (b"\x89HDF\r\n", "an HDF5 file", "Export the table as CSV or Parquet."),
    (PARQUET, "Parquet data", "Rename the file to .parquet, or state the format."),
    (ARROW_FILE, "Arrow data", "Rename the file to .arrow, or state the format."),
    (ARROW_STREAM, "Arrow data", "Rename the file to .arrow, or state the format."),
    (GZIP, "gzip data", "Rename the file so that it ends in .gz."),
)


@dataclass(frozen=True)
class Format:
    """A layout, one of `FORMATS`, and what is packed around it, if anything."""

    layout: str
    packing: str | None = None

    @property
    def file_format(self) -> FileFormat:
        """Return what is known of the layout."""
        return FORMATS[self.layout]


def suffixes(*, written: bool = False) -> dict[str, str]:
    """Return the suffixes of files, or of those that can be written, each with its format."""
    return {
        suffix: name
        for name, one in FORMATS.items()
        for suffix in one.suffixes
        if not written or one.written is None or suffix in one.written
    }


def format_of_location(place: Location, stated: str | None, *, written: bool = False) -> Format:
    """Return a file's format: the one stated, that of the scheme in front, or of the suffix.

    written : whether the file is to be written, so that messages name such formats
    """
    if stated is not None and stated not in FORMATS:
        raise UsageError(
            "unknown table format", value=f"'{stated}'", expected=f"one of {', '.join(FORMATS)}"
        )
    stem, suffix = os.path.splitext(path_of(place.path) if place.is_web else place.path)
    packing = PACKINGS.get(suffix.lower())
    if packing is not None:
        suffix = os.path.splitext(stem)[1]
        if packing == "zip" and suffix.lower() not in suffixes():
            suffix = ".csv"  # `table.zip`
    layout = stated or place.scheme or suffixes().get(suffix.lower())
    if layout is None or (packing is not None and not FORMATS[layout].text):
        raise UsageError(
            "the name does not tell the table's format",
            file=place.path,
            expected=f"a name ending in {', '.join(suffixes(written=written))}, or of text also in "
            f"{', '.join(PACKINGS)}",
            hint=_JSON if suffix.lower() == ".json" else None,
        )
    found = Format(layout, packing)
    place.check_options(dict(found.file_format.options))
    return found


def is_told_by_bytes(place: Location) -> bool:
    """Return whether the first bytes tell a format: of standard input, and where no suffix does.

    That is what has an address of the web, and pipes such as /dev/stdin or those of a shell.
    """
    suffix = os.path.splitext(path_of(place.path) if place.is_web else place.path)[1].lower()
    streams = place.is_web or is_device(place.path)
    return place.is_standard or (streams and suffix not in {**suffixes(), **PACKINGS})


def format_of_input(place: Location, stated: str | None, data: bytes) -> Format:
    """Return the format of what was read, of some by its first bytes."""
    if not is_told_by_bytes(place):
        return format_of_location(place, stated)
    packing = packing_of(data)
    if stated is not None:
        return Format(format_of_location(place, stated).layout, packing)
    if packing == "zip" and (book := next((n for n, path in _BOOKS.items() if path in data), None)):
        return Format(book)
    if packing is not None:
        return Format("csv", packing)
    return Format(next((n for n, one in FORMATS.items() if data.startswith(one.magic)), "csv"))


def check_is_text(data: bytes, file: str) -> None:
    """Raise TableError when bytes that should be text are a known other kind of file."""
    for magic, what, hint in _FOREIGN:
        if data.startswith(magic):
            raise TableError(f"holds {what}, not text", file=file, hint=hint)
