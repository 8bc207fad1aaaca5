"""Characters that the files of some programs cannot hold."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from glfm_cli.errors import OutputError
from glfm_cli.io.arrow_types import computable

_CONTROL = r"[\x00-\x08\x0b\x0c\x0e-\x1f]"
_REFUSED = {"sav": r"\x00", "dta": r"\x00", "ods": _CONTROL}  # where the first two end a text


def check_texts(table: pa.Table, layout: str, shown: str) -> None:
    """Raise OutputError for the first text that a format does not hold; names row and column."""
    pattern = _REFUSED.get(layout)
    if pattern is None:
        return
    for name, column in zip(table.column_names, table.columns, strict=True):
        for start, chunk in _chunks(column):
            if not (pa.types.is_string(chunk.type) or pa.types.is_large_string(chunk.type)):
                break
            bad = pc.fill_null(pc.match_substring_regex(chunk, pattern), False)
            if (place := pc.index(bad, True).as_py()) >= 0:
                raise OutputError(
                    f"a .{layout} file cannot hold this control character",
                    file=shown,
                    row=start + place + 1,
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
