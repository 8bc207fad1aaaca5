"""How a CSV file was written, so that it can be written the same way again.

Reading keeps the text of every cell; what surrounds the text (delimiter, line ends, byte-order
mark, which cells stood in quotes) is a `Dialect`, kept as JSON in the table's schema metadata.
Writers decide on quotes by a rule (where needed; everything; everything but numbers), mostly one
for each column, with a few texts treated otherwise: R quotes all text but leaves NA bare. So a
column's quoting is the rule that fits it best and the texts that are exceptions to it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from glfm_cli.io.footnotes import FOOTNOTES_KEY, MOST, count_summaries
from glfm_cli.io.numerals import PLAIN, Numerals
from glfm_cli.io.row_notes import RowsNote
from glfm_cli.io.units import labels_of, rows_below, units_of

METADATA_KEY = b"glfm.csv"
WRITTEN_TYPE_KEY = b"glfm.type"
NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
_ENCODINGS = {
    "cp1252": "Windows-1252",
    "latin-1": "Latin-1",
    "utf-16-le": "UTF-16",
    "utf-16-be": "UTF-16",
}
MAX_EXCEPTIONS = 256  # a column that breaks every rule more often is written by its best rule


@dataclass(frozen=True)
class Quoting:
    """Which cells of a column stand in quotes: a rule, and texts that do the opposite."""

    rule: str = "minimal"
    exceptions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Dialect:
    """Everything about a CSV file but the text of its cells."""

    layout: str = "csv"
    delimiter: str = ","
    newline: str = "\n"
    encoding: str = "utf-8"
    bom: bool = False
    tail: str = "\n"  # after the last row
    header: Quoting = field(default_factory=Quoting)
    below: tuple[Quoting, ...] = ()  # of the rows below the header that are none of the table
    new_columns: Quoting = field(default_factory=Quoting)  # those added after reading
    columns: Mapping[str, Quoting] = field(default_factory=dict)
    preamble: str = ""  # above the header
    row_names: bool = False  # the first column has no field in the header, as R writes tables
    blank_columns: int = 0  # after the last one, without a name or a cell


def rule_mask(rule: str, text: pa.Array, delimiter: str) -> pa.Array:
    """Return which cells a rule puts in quotes, a boolean array."""
    if rule == "minimal":
        return pc.match_substring_regex(text, f'["\r\n{re.escape(delimiter)}]')
    if rule == "nonnumeric":
        return pc.invert(pc.match_substring_regex(text, f"^(?:{NUMBER})$"))
    return pa.array(np.ones(len(text), dtype=bool))


def describe_quoting(text: pa.Array, quoted: np.ndarray, delimiter: str) -> Quoting:
    """Return the rule and exceptions that reproduce which cells were quoted."""
    best, wrong = "minimal", np.ones(len(text), dtype=bool)
    for rule in ("minimal", "all", "nonnumeric"):
        differs = rule_mask(rule, text, delimiter).to_numpy(zero_copy_only=False) != quoted
        if rule == "minimal" or differs.sum() < wrong.sum():
            best, wrong = rule, differs
    if not wrong.any():
        return Quoting(best)
    texts = pc.unique(text.filter(pa.array(wrong)))
    return Quoting(best, tuple(texts.to_pylist()) if len(texts) <= MAX_EXCEPTIONS else ())


def dialect_of(table: pa.Table) -> Dialect | None:
    """Return the dialect a table carries, None when it did not come from a CSV file."""
    kept = (table.schema.metadata or {}).get(METADATA_KEY)
    if kept is None:
        return None
    values: dict[str, Any] = json.loads(kept)
    for one in ("header", "new_columns"):
        values[one] = _quoting(values[one])
    values["below"] = tuple(map(_quoting, values["below"]))
    values["columns"] = {name: _quoting(value) for name, value in values["columns"].items()}
    return Dialect(**values)


def _quoting(values: Mapping[str, Any]) -> Quoting:
    return Quoting(values["rule"], tuple(values["exceptions"]))


def notes_of(table: pa.Table) -> tuple[str, ...]:
    """Return what a user should know of how a text file was read, one line each."""
    dialect, metadata = dialect_of(table) or Dialect(), table.schema.metadata or {}
    notes: list[str] = []
    name = _ENCODINGS.get(dialect.encoding)
    if name is not None and not dialect.bom:
        notes.append(f"the file is not UTF-8: it was read as {name}")
    if not dialect.preamble.lower().lstrip('"').startswith("sep="):
        notes += _outside(len(dialect.preamble.splitlines()), "above the header")
    if len(rows := rows_below(table)) > 1:
        notes.append("the two rows below the header hold labels and ids, and are written back")
    elif rows:
        what = "labels" if labels_of(table) else "units" if units_of(table) else "ids of questions"
        notes.append(f"the row below the header holds {what}, and is written back")
    lines = [line.strip(f' "{dialect.delimiter}') for line in dialect.tail.splitlines()]
    lines += ["".join(row) for row in json.loads(metadata.get(FOOTNOTES_KEY, b"[]"))]
    notes += _outside(len(list(filter(None, lines))), "below the table")
    return (*notes, *_summary_note(table))


def _outside(n: int, where: str) -> list[str]:
    """Return the note, if any, on lines of a file that are no rows of the table."""
    if n == 1:
        return [f"the line {where} stands for no row, and is written back"]
    return [f"the {n} lines {where} stand for no rows, and are written back"] if n else []


def _summary_note(table: pa.Table) -> tuple[str, ...]:
    """Return the note that the last rows look like totals or means of the others, if they do."""
    for name in table.column_names if table.num_rows > 2 else ():
        column = table[name]
        if not pa.types.is_string(column.type) and not pa.types.is_large_string(column.type):
            continue
        last = [str(cell or "") for cell in column[-MOST:].to_pylist()]
        n = count_summaries(last)
        if n and pc.sum(pc.is_in(column, pa.array(last[-n:], column.type))).as_py() == n:
            rows = range(table.num_rows - n + 1, table.num_rows + 1)
            about = (name, *(cell.strip() for cell in last[-n:]))
            return (RowsNote(_summary, about, n, rows, only_last=True),)
    return ()


def _summary(about: tuple[str, ...], n: int, rows: tuple[int, ...]) -> str:
    cells = ", ".join(f"'{cell}'" for cell in about[1:])
    if n > 1:
        return (
            f"the last {n} rows, from {rows[0]}, look like totals of the others "
            f"('{about[0]}' is {cells}) and are taken for data: delete them if they are"
        )
    return (
        f"the last row, {rows[0]}, looks like a total of the others "
        f"('{about[0]}' is {cells}) and is taken for data: delete it if it is one"
    )


def with_dialect(table: pa.Table, dialect: Dialect) -> pa.Table:
    """Return the table with the dialect in its metadata."""
    metadata = dict(table.schema.metadata or {})
    metadata[METADATA_KEY] = json.dumps(asdict(dialect)).encode()
    return table.replace_schema_metadata(metadata)


def is_text_table(table: pa.Table) -> bool:
    """Return True when the table was read from CSV: all text, each cell as it was written."""
    return METADATA_KEY in (table.schema.metadata or {})


def mark_written_type(field: pa.Field, type_name: str, numerals: Numerals = PLAIN) -> pa.Field:
    """Return a text field marked to become numbers when written to a file of typed columns.

    `numerals` is how the texts write them.
    """
    mark = json.dumps([type_name, asdict(numerals)]).encode()
    return field.with_metadata({**(field.metadata or {}), WRITTEN_TYPE_KEY: mark})


def written_type(mark: bytes) -> tuple[pa.DataType, Numerals]:
    """Return the type that marked texts become, and how they write their numbers."""
    type_name, numerals = json.loads(mark)
    return pa.type_for_alias(type_name), Numerals(**numerals)
