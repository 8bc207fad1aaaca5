"""Spreadsheets read by python-calamine; `.xlsx` written by openpyxl, `.ods` by odfpy.

A column whose cells are all numbers (dates, booleans) has their type; one that mixes numbers and
text is text. Its texts that look like numbers are remembered, so that every cell is written as
what it was. Formats, formulas and other sheets are not kept.
"""

from __future__ import annotations

import importlib
import io
import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import IO, Any

import pyarrow as pa

from glfm_cli.errors import OutputError, TableError
from glfm_cli.io.csv_read import check_names
from glfm_cli.io.extras import need
from glfm_cli.io.footnotes import FOOTNOTES_KEY, MIN_COLUMNS, MOST, SAMPLE, count_footnotes
from glfm_cli.io.mixed import cells_of, mixed_column
from glfm_cli.io.units import ROWS_LOOKED_AT, count_rows_below, rows_below, with_rows_below

TITLE_KEY = b"glfm.title"  # of the schema: the rows above the header
SHEET_KEY = b"glfm.sheet"  # likewise: the name of the sheet
MOST_TITLES = 20  # rows above the header that are looked for
MOST_ROWS, MOST_COLUMNS = 1_048_576, 16_384  # of a sheet
_TIMES = (datetime, date, time, timedelta)
MOST_LETTERS = 32_767  # of a cell of .xlsx
MOST_EXACT = 2**53  # below which whole numbers are floats, as a sheet keeps them
FIRST_YEAR = 1900  # of the dates of .xlsx
# What XML cannot hold; .xlsx writes it, and what would be read as such, by its code.
_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_CODED = re.compile(f"_(?=x[0-9A-Fa-f]{{4}}_)|\r|{_NO_XML.pattern}")
_NAME = re.compile(r"[^\[\]:*?/\\]{1,31}")  # of a sheet of .xlsx
_LONG = re.compile(r"PT(\d+)H(\d+)M(\d+(?:\.\d+)?)S")
Rows = Sequence[Sequence[Any]]


def read(data: bytes, layout: str, file: str, options: Mapping[str, str]) -> pa.Table:
    """Return a sheet, the first unless `sheet` says otherwise; `header` is the row of the names.

    Raises TableError: the file is no workbook, the sheet is not there or empty, or a column has no
        name; UsageError: python-calamine is not installed.
    """
    rows, sheet = _rows(data, file, options.get("sheet"))
    if layout == "ods":
        rows = [[_duration(cell) for cell in row] for row in rows]
    header = _header(rows, file, options.get("header"))
    names = [_text(cell) for cell in rows[header]]
    body = rows[header + 1 :]
    while body and not any(_filled(cell) for cell in body[-1]):
        body.pop()
    width = len(names)
    while width and not names[width - 1] and not any(_filled(row[width - 1]) for row in body):
        width -= 1
    check_names(names[:width], file)
    if not body:
        raise TableError("has a header but no rows", file=file)
    top = [[_text(cell) for cell in row[:width]] for row in body[:ROWS_LOOKED_AT]]
    n_below = count_rows_below(top)
    below = [dict(zip(names, row, strict=False)) for row in top[:n_below]]
    body, notes = _without_footnotes(body[n_below:], width)
    columns, fields = [], []
    for j in range(width):
        column, metadata = _column([row[j] for row in body])
        columns.append(column)
        fields.append(pa.field(names[j], column.type, metadata=metadata))
    title = [[_text(cell) for cell in row] for row in rows[:header]]
    metadata = {SHEET_KEY: sheet.encode()}
    if title:
        metadata[TITLE_KEY] = json.dumps(title).encode()
    if notes:
        metadata[FOOTNOTES_KEY] = json.dumps(notes).encode()
    table = pa.table(columns, schema=pa.schema(fields, metadata=metadata))
    return with_rows_below(table, below) if below else table


def _without_footnotes(
    body: list[list[Any]], width: int
) -> tuple[list[list[Any]], list[list[str]]]:
    """Return the rows of a table, and the rows below them that hold notes."""
    last = [[_text(cell) for cell in row[:width]] for row in body[1:][-(MOST + SAMPLE) :]]
    counts = [len(list(filter(None, row))) for row in last]
    n = count_footnotes([row[0].strip() for row in last], counts) if width >= MIN_COLUMNS else 0
    return (body[:-n], last[-n:]) if n else (body, [])


def _rows(data: bytes, file: str, sheet: str | None) -> tuple[list[list[Any]], str]:
    """Return the rows of a sheet, and its name."""
    calamine = need("python_calamine", "excel", file)
    try:
        book = calamine.load_workbook(io.BytesIO(data))
    except Exception:  # a class of its own for every kind of damage
        raise TableError(
            "cannot be read as a workbook: it is damaged, locked or another kind of file",
            file=file,
            hint="Save it again as .xlsx, without a password.",
        ) from None
    names = book.sheet_names
    chosen = names[0] if sheet is None and names else sheet
    if chosen not in names and chosen is not None and chosen.isdecimal():
        chosen = names[int(chosen) - 1] if 0 < int(chosen) <= len(names) else chosen
    if chosen not in names:
        raise TableError("has no such sheet", file=file, value=sheet, expected=", ".join(names))
    rows: list[list[Any]] = book.get_sheet_by_name(chosen).to_python(skip_empty_area=False)
    if not any(_filled(cell) for row in rows for cell in row):
        raise TableError(f"the sheet '{chosen}' is empty", file=file, expected="a header and rows")
    return rows, str(chosen)


def sheet_names(file: str) -> list[str]:
    """Return the names of the sheets of a file, none where it is no workbook that can be read."""
    try:
        with open(file, "rb") as opened:
            book = need("python_calamine", "excel", file).load_workbook(opened)
    except Exception:  # a class of its own for every kind of damage
        return []
    return list(book.sheet_names)


def _header(rows: Sequence[Sequence[Any]], file: str, stated: str | None) -> int:
    """Return the row of the names: the one that is stated, or the first that is filled."""
    if stated is not None:
        if not stated.isdecimal() or not 0 < int(stated) <= len(rows):
            raise TableError(
                "header", file=file, value=stated, expected=f"a row from 1 to {len(rows)}"
            )
        return int(stated) - 1
    filled = [sum(map(_filled, row)) for row in rows[: MOST_TITLES + 1]]
    most = max(filled)
    # A title fills a cell or two; the first cell of the header may be blank above row names.
    for i, n in enumerate(filled):
        if n >= most - 1 and all(isinstance(c, str) for c in rows[i] if _filled(c)):
            return i
    return next(i for i, n in enumerate(filled) if n)


def _duration(cell: Any) -> Any:
    """Return a cell of an OpenDocument, of which a duration above a day is read as text."""
    found = _LONG.fullmatch(cell) if isinstance(cell, str) else None
    if found is None:
        return cell
    return timedelta(hours=int(found[1]), minutes=int(found[2]), seconds=float(found[3]))


def _length(moment: time) -> timedelta:
    return datetime.combine(date.min, moment) - datetime.combine(date.min, time())


def _filled(cell: Any) -> bool:
    return cell is not None and cell != ""


def _column(cells: list[Any]) -> tuple[pa.Array, dict | None]:
    """Return the cells of a column as an array, and what must be kept to write them again."""
    values = [cell if _filled(cell) else None for cell in cells]
    kinds = {type(value) for value in values if value is not None}
    if kinds == {time, timedelta}:
        values = [_length(v) if isinstance(v, time) else v for v in values]
        kinds = {timedelta}
    if kinds <= {int, float}:
        if all(value is None or float(value).is_integer() for value in values) and all(
            value is None or abs(value) < 2**53 for value in values
        ):
            return pa.array([None if v is None else int(v) for v in values], pa.int64()), None
        return pa.array(values, pa.float64()), None
    if len(kinds) == 1 and kinds <= {str, bool, *_TIMES}:
        return pa.array(values), None
    if kinds == {date, datetime}:
        midnight = [
            v if v is None or isinstance(v, datetime) else datetime.combine(v, time())
            for v in values
        ]
        return pa.array(midnight), None
    texts = [None if value is None else _text(value) for value in values]
    return mixed_column(values, texts)


def _text(cell: Any) -> str:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, _TIMES) and not isinstance(cell, timedelta):
        return cell.isoformat()
    return "" if cell is None else str(cell)


def write(table: pa.Table, file: IO[Any], layout: str, shown: str) -> None:
    """Write a table to an open binary file as a workbook of one sheet.

    Raises OutputError: the table is larger than a sheet, or holds lists or bytes; UsageError:
        openpyxl, or for `.ods` odfpy, is not installed.
    """
    write_rows = _write_ods if layout == "ods" else _write_xlsx
    metadata = table.schema.metadata or {}
    title = json.loads(metadata.get(TITLE_KEY, b"[]"))
    notes = json.loads(metadata.get(FOOTNOTES_KEY, b"[]"))
    named = metadata.get(SHEET_KEY, b"").decode()
    sheet = named if _NAME.fullmatch(named) else "Sheet1"
    check_size(table.num_rows + len(title) + len(notes), table.num_columns, shown)
    below = [[row.get(name) for name in table.column_names] for row in rows_below(table)]
    rows = itertools.chain(_rows_of(table, shown), notes)
    write_rows((*title, table.column_names, *below), rows, file, sheet, shown)


def check_size(n_rows: int, n_columns: int, shown: str) -> None:
    """Raise OutputError when a table with a header is larger than a sheet."""
    if n_rows >= MOST_ROWS or n_columns > MOST_COLUMNS:
        raise OutputError(
            f"a sheet has {MOST_ROWS - 1} rows and {MOST_COLUMNS} columns at most",
            file=shown,
            hint="Write to a .parquet or .csv file.",
        )


def _rows_of(table: pa.Table, shown: str) -> Iterator[tuple[Any, ...]]:
    for batch in table.to_batches(max_chunksize=1 << 14):
        columns = (
            _cells(column, field, shown)
            for column, field in zip(batch.columns, table.schema, strict=True)
        )
        yield from zip(*columns, strict=True)


def _write_xlsx(
    head: Rows, rows: Iterator[Sequence[Any]], file: IO[Any], name: str, shown: str
) -> None:
    openpyxl: Any = need("openpyxl", "excel", shown)
    book, new_cell = openpyxl.Workbook(write_only=True), openpyxl.cell.WriteOnlyCell
    sheet = book.create_sheet(name)
    try:
        for row in itertools.chain(head, rows):
            sheet.append([_xlsx_value(value, sheet, new_cell, shown) for value in row])
    except OutputError:
        sheet.close()  # else it complains of what it was not given
        raise
    book.save(file)


def _xlsx_value(value: Any, sheet: Any, new_cell: Any, shown: str) -> Any:
    """Return what openpyxl writes as the value is: a text that looks like a formula is a text.

    Raises OutputError: a text is longer than a cell.
    """
    if isinstance(value, str):
        if len(value) > MOST_LETTERS:
            raise OutputError(
                f"a cell of a workbook has {MOST_LETTERS} letters at most",
                file=shown,
                value=f"a text of {len(value)}",
                hint="Write to a .parquet or .csv file.",
            )
        value = _CODED.sub(lambda found: f"_x{ord(found[0]):04X}_", value)
        if value.startswith(("=", "#")):
            cell = new_cell(sheet, value)
            cell.data_type = "s"
            return cell
    elif isinstance(value, date) and value.year < FIRST_YEAR:
        return value.isoformat()
    return value


def _write_ods(
    head: Rows, rows: Iterator[Sequence[Any]], file: IO[Any], name: str, shown: str
) -> None:
    book = need("odf.opendocument", "excel", shown).OpenDocumentSpreadsheet()
    table, text = (importlib.import_module(f"odf.{name}") for name in ("table", "text"))
    sheet = table.Table(name=name)
    for row in itertools.chain(head, rows):
        made = table.TableRow()
        for value in row:
            cell = table.TableCell(**_ods_value(value))
            if isinstance(value, str) and value:
                if _NO_XML.search(value):
                    raise OutputError(
                        "an .ods file cannot hold control characters",
                        file=shown,
                        value=repr(value),
                        hint="Write to a .xlsx, .parquet or .csv file.",
                    )
                cell.addElement(text.P(text=value))
            made.addElement(cell)
        sheet.addElement(made)
    book.spreadsheet.addElement(sheet)
    book.write(file)


def _ods_value(value: Any) -> dict[str, Any]:
    """Return the attributes of a cell [OpenDocument 1.3, part 3, 19.385 and others]."""
    match value:
        case None | "":
            return {}
        case bool():
            return {"valuetype": "boolean", "booleanvalue": str(value).lower()}
        case int() | float() | Decimal():
            return {"valuetype": "float", "value": str(value)}
        case date():  # with its time or without
            return {"valuetype": "date", "datevalue": value.isoformat()}
        case time():
            value = _length(value)
    if isinstance(value, timedelta):
        minutes, seconds = divmod(value.total_seconds(), 60)
        hours, minutes = divmod(int(minutes), 60)
        shown = f"{seconds:09.6f}".rstrip("0").rstrip(".")
        return {"valuetype": "time", "timevalue": f"PT{hours:02d}H{minutes:02d}M{shown}S"}
    return {"valuetype": "string"}


def _cells(column: pa.Array, field: pa.Field, shown: str) -> list[Any]:
    kind = field.type
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        raise OutputError(
            f"a workbook cannot hold values of type {kind}",
            file=shown,
            column=field.name,
            hint="Write to a .parquet or .arrow file instead.",
        )
    values = cells_of(column, field)
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return [None if value is None else value.isoformat() for value in values]
    return [_as_number(v) if isinstance(v, int | float | Decimal) else v for v in values]


def _as_number(value: Any) -> Any:
    """Return a number as a sheet keeps it: none for NaN, a text for what is no float."""
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    if isinstance(value, Decimal):
        return value if Decimal(repr(float(value))) == value else str(value)
    return value if abs(value) < MOST_EXACT else str(value)
