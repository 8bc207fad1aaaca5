"""Characters that the files of some programs cannot hold."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from glfm_cli.errors import OutputError
from glfm_cli.io.arrow_types import computable
from glfm_cli.io.dialect import dialect_of
from glfm_cli.io.formats import CSV_LAYOUTS

_CONTROL = r"[\x00-\x08\x0b\x0c\x0e-\x1f]"
# A NUL ends a text of SPSS and Stata, and no CSV file with one is read again.
_REFUSED = {"ods": _CONTROL, **dict.fromkeys(("sav", "dta", *CSV_LAYOUTS), r"\x00")}


def check_texts(table: pa.Table, layout: str, shown: str, n_before: int = 0) -> None:
    """Raise OutputError for the first text that a format does not hold; names row and column.

    n_before : rows that were written before
    """
    pattern = _REFUSED.get(layout)
    if pattern is None or (layout in CSV_LAYOUTS and dialect_of(table) is not None):
        return  # what was read from CSV has none
    for name, column in zip(table.column_names, table.columns, strict=True):
        if layout in CSV_LAYOUTS and "\0" in name:
            raise OutputError(
                f"a .{layout} file cannot hold a control character in the name of a column",
                file=shown,
                value=repr(name),
                hint="Rename the column, or write to a .parquet file.",
            )
        for start, chunk in _chunks(column):
            if not (pa.types.is_string(chunk.type) or pa.types.is_large_string(chunk.type)):
                break
            bad = pc.fill_null(pc.match_substring_regex(chunk, pattern), False)
            if (place := pc.index(bad, True).as_py()) >= 0:
                raise OutputError(
                    f"a .{layout} file cannot hold this control character",
                    file=shown,
                    row=n_before + start + place + 1,
                    column=name,
                    value=repr(chunk[place].as_py()),
                    hint="Remove it, or write to a .parquet file.",
                )


def _chunks(column: pa.ChunkedArray) -> list[tuple[int, pa.Array]]:
    """Return the parts of a column without dictionaries, each with the number of its first row."""
    found, start = [], 0
    for chunk in column.chunks:
        values = computable(chunk)
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        found.append((start, values))
        start += len(chunk)
    return found
