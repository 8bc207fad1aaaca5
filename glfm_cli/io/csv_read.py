"""CSV and TSV files to tables of text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from glfm_cli.errors import TableError
from glfm_cli.io.csv_split import (
    CR,
    LF,
    CellSpans,
    byte_at,
    data_row_at,
    line_end,
    split_cells,
)
from glfm_cli.io.csv_text import BYTE_ORDER_MARKS, encoding_of, find_header, sniff_delimiter
from glfm_cli.io.dialect import Dialect, Quoting, describe_quoting, with_dialect
from glfm_cli.io.footnotes import MIN_COLUMNS, MOST, SAMPLE, count_footnotes
from glfm_cli.io.formats import check_is_text
from glfm_cli.io.units import ROWS_LOOKED_AT, count_rows_below, with_rows_below

MOST_SHOWN = 5  # names that stand twice
MAX_STRING_BYTES = 2**31 - 1  # of one Arrow string array; beyond it offsets need 64 bits


class Top(NamedTuple):
    """What is known of a text whose rows come in parts, each under the same header.

    skipped : bytes above the header;  below : rows of units, labels or ids of questions below it
    row_names : whether the header has no field for the first column
    ends : whether the part is the last, below which notes may stand
    """

    skipped: int
    delimiter: str
    below: int
    row_names: bool
    ends: bool = False


def read(
    raw: bytes, layout: str, file: str, options: Mapping[str, str], known: Top | None = None
) -> pa.Table:
    """Return a CSV file as a table of text columns that carries its dialect.

    raw : the whole file, unpacked
    layout : "csv", "tsv" or "txt"; the delimiter of `tsv` is the tab; otherwise it is told from the
        rows
    options : None
    known : what is not to be told from the rows, which are a part
    """
    data, encoding, bom = _decode(raw, file)
    if not data.strip():
        raise TableError("is empty", file=file, expected="a header line and at least one row")
    skipped, delimiter = known[:2] if known else find_header(data)
    preamble, data = data[:skipped].decode(), data[skipped:]
    if layout == "tsv":
        delimiter = "\t"
    delimiter = delimiter or sniff_delimiter(data)
    cells = split_cells(data, delimiter, file)
    row_names = known.row_names if known else _has_row_names(data, cells)
    if row_names:
        cells = _with_first_name(cells)
    n_columns = int(np.argmax(cells.last_in_row)) + 1
    names = [_text(data, cells, i) for i in range(n_columns)]
    n_cells = _count_cells(cells, n_columns)
    if known is None or known.ends:
        n_cells = _without_footnotes(data, cells, n_cells, n_columns)
    tail = data[int(cells.ends[n_cells - 1] + cells.quoted[n_cells - 1]) :].decode()
    n_blank = _blank_columns(cells, n_cells, n_columns)
    names = names[: n_columns - n_blank]
    check_names(names, file)
    _check_rows(cells, n_cells, n_columns, file)

    below = _rows_below(data, cells, n_columns, n_cells, len(names), known and known.below)
    first = n_columns * (1 + len(below))
    buffer = np.frombuffer(data, dtype=np.uint8)
    arrays, quotings = [], []
    for j in range(len(names)):
        which = slice(first + j, n_cells, n_columns)
        quoted = cells.quoted[which]
        text = _gather(buffer, cells.starts[which], cells.ends[which])
        if quoted.any():
            text = _undouble(text, quoted)
        arrays.append(text)
        quotings.append(_quoting(text, quoted, delimiter))
    shown = slice(int(row_names), len(names))
    every = all(q.rule == "all" for q in quotings)
    dialect = Dialect(
        layout=layout,
        delimiter=delimiter,
        newline=_usual_newline(data, cells),
        encoding=encoding,
        bom=bom,
        tail=tail,
        header=_quoting(pa.array(names[shown], pa.string()), cells.quoted[shown], delimiter),
        below=tuple(
            _quoting(pa.array(row), cells.quoted[start : start + len(row)], delimiter)
            for start, row in zip(range(n_columns, first, n_columns), below, strict=True)
        ),
        new_columns=Quoting("all") if every else Quoting(),
        preamble=preamble,
        row_names=row_names,
        blank_columns=n_blank,
        columns={name: q for name, q in zip(names, quotings, strict=True) if q != Quoting()},
    )
    table = with_dialect(pa.table(arrays, names=names), dialect)
    if not below:
        return table
    return with_rows_below(table, [dict(zip(names, row, strict=True)) for row in below])


def _has_row_names(data: bytes, cells: CellSpans) -> bool:
    """Return whether each row has one field more than the header, a name of its own in front."""
    stops = np.flatnonzero(cells.last_in_row) + 1
    n_names, starts, stops = int(stops[0]), stops[:-1], stops[1:]
    there = (stops - starts > 1) | (cells.ends[starts] > cells.starts[starts])
    starts, stops = starts[there], stops[there]
    if n_names < 2 or not starts.size or np.any(stops - starts != n_names + 1):
        return False
    if not np.any(cells.ends[stops - 1] > cells.starts[stops - 1]):
        return False  # a delimiter ends every row
    names = {data[cells.starts[i] : cells.ends[i]] for i in starts}
    return len(names) == starts.size and b"" not in names


def _with_first_name(cells: CellSpans) -> CellSpans:
    """Return the cells with an empty one in front."""
    return CellSpans(*(np.concatenate([np.zeros(1, part.dtype), part]) for part in cells))


def _blank_columns(cells: CellSpans, n_cells: int, n_columns: int) -> int:
    """Return how many last columns have neither a name nor a cell, as spreadsheets leave them."""
    stop = n_cells // n_columns * n_columns
    if not cells.last_in_row[n_columns - 1 : stop : n_columns].all():
        return 0  # a row is too short or too long
    blank = (cells.ends[:stop] == cells.starts[:stop]) & ~cells.quoted[:stop]
    filled = np.flatnonzero(~blank.reshape(-1, n_columns).all(axis=0))
    return n_columns - int(filled[-1]) - 1 if filled.size else 0


def _rows_below(
    data: bytes, cells: CellSpans, n_columns: int, n_cells: int, width: int, known: int | None
) -> list[list[str]]:
    """Return the rows below the header that are no rows of the table.

    width : the columns with a name;  known : how many the rows are, if that is known
    """
    last = min(n_cells, n_columns * (1 + (ROWS_LOOKED_AT if known is None else known)))
    rows = [
        [_text(data, cells, i) for i in range(start, start + width)]
        for start in range(n_columns, last, n_columns)
    ]
    return rows[: count_rows_below(rows)] if known is None else rows


def check_names(names: list[str], file: str) -> None:
    """Raise TableError when a column has no name, or two have the same."""
    seen: dict[str, int] = {}
    again: dict[str, tuple[int, int]] = {}
    for position, name in enumerate(names, start=1):
        # R and pandas leave the first name, that of the row names, empty.
        row_names = position == 1 < len(names) and not name
        if not name.strip() and not row_names:
            raise TableError(
                f"column {position} of {len(names)} has no name",
                file=file,
                hint="Give it a name in the header, which is one row; only the first, that of row "
                "names, can do without.",
            )
        if name in seen:
            again.setdefault(name, (seen[name], position))
        seen.setdefault(name, position)
    if again:
        (name, (first, second)), *more = again.items()
        shown = ", ".join(f"'{other}' ({i} and {j})" for other, (i, j) in more[:MOST_SHOWN])
        likewise = f"; likewise {shown}{', ...' * (len(more) > MOST_SHOWN)}" if more else ""
        raise TableError(
            f"columns {first} and {second} have the same name",
            file=file,
            column=name,
            hint=f"Rename one of them in the header{likewise}.",
        )


def _decode(raw: bytes, file: str) -> tuple[bytes, str, bool]:
    """Return the text as UTF-8 bytes without byte-order mark, and how it was encoded."""
    for encoding, mark in BYTE_ORDER_MARKS.items():
        if raw.startswith(mark):
            data = raw[len(mark) :]
            if encoding != "utf-8":
                try:
                    data = data.decode(encoding).encode()
                except UnicodeDecodeError as error:
                    raise TableError(
                        f"its byte-order mark says {encoding[:-3].upper()}, but byte "
                        f"{error.start + len(mark) + 1} of the file does not fit",
                        file=file,
                        hint="The file may be cut off; export it again as UTF-8.",
                    ) from None
            _check_text(data, file, skipped=len(mark))
            return data, encoding, True
    check_is_text(raw, file)
    encoding = encoding_of(raw)
    data = raw if encoding == "utf-8" else raw.decode(encoding).encode()
    _check_text(data, file, skipped=0)
    return data, encoding, False


def _check_text(data: bytes, file: str, *, skipped: int) -> None:
    """Raise TableError when the bytes after `skipped` ones of the file are no UTF-8 text."""
    nul = data.find(b"\0")
    if nul >= 0:
        raise TableError(
            f"byte {skipped + nul + 1} of the file is NUL, so it is not plain text",
            file=file,
            row=data_row_at(data, nul),
            hint="It may be a binary file, or UTF-16 without byte-order mark: "
            "export it again as CSV in UTF-8.",
        )
    try:
        data.decode()
    except UnicodeDecodeError as error:
        row = data_row_at(data, error.start)
        where = f"byte {skipped + error.start + 1} of the file{'' if row else ' (in the header)'}"
        raise TableError(
            f"{where} is not UTF-8",
            file=file,
            row=row,
            value=f"byte 0x{data[error.start]:02X}",
            expected="text in UTF-8, or in UTF-16 with a byte-order mark",
            hint="Export it again as UTF-8, or convert it; Japanese text of Excel, for example: "
            "iconv -f CP932 -t UTF-8 old.csv > new.csv",
        ) from None


def _text(data: bytes, cells: CellSpans, i: int) -> str:
    raw = data[cells.starts[i] : cells.ends[i]].decode()
    return raw.replace('""', '"') if cells.quoted[i] else raw


def _count_cells(cells: CellSpans, n_columns: int) -> int:
    """Return the number of cells up to the last row with any.

    In a table of one column every line is a row, a blank one an empty cell.
    """
    if n_columns == 1:
        return len(cells.ends)
    alone = cells.last_in_row & np.append(True, cells.last_in_row[:-1])
    blank = alone & ~cells.quoted & (cells.ends == cells.starts)
    return int(np.flatnonzero(~blank)[-1]) + 1


def _without_footnotes(data: bytes, cells: CellSpans, n_cells: int, n_columns: int) -> int:
    """Return the number of cells above notes under the table."""
    if n_columns < MIN_COLUMNS:
        return n_cells
    stops = np.flatnonzero(cells.last_in_row[:n_cells])[-(MOST + SAMPLE + 1) :] + 1
    starts, stops = stops[:-1], stops[1:]  # without the header, and a row more above
    filled = cells.ends > cells.starts
    counts = [int(filled[i:j].sum()) for i, j in zip(starts, stops, strict=True)]
    n = count_footnotes([_text(data, cells, i).strip() for i in starts], counts)
    return int(stops[-1 - n]) if n else n_cells


def _check_rows(cells: CellSpans, n_cells: int, n_columns: int, file: str) -> None:
    """Raise TableError when there is no data row, or one has not `n_columns` cells."""
    counts = np.diff(np.flatnonzero(cells.last_in_row[:n_cells]), prepend=-1)
    if counts.size == 1:
        raise TableError("has a header but no rows", file=file)
    wrong = np.flatnonzero(counts != n_columns)
    if not wrong.size:
        return
    row = int(wrong[0])
    found = int(counts[row])
    first = int(counts[:row].sum())
    if found == 1 and cells.ends[first] == cells.starts[first]:
        below = counts[row + 1 :]
        hint = "Delete the line."
        if below.size <= MOST and np.all(below != n_columns):
            lines = "line" if below.size == 1 else f"{below.size} lines"
            hint = f"Delete it, and the {lines} below it, which look like notes under the table."
        raise TableError("the line is blank", file=file, row=row, hint=hint)
    if np.all(counts[1:] == n_columns + 1):
        hint = "The header lacks one name: add it, or delete the delimiter that ends every row."
    elif row >= counts.size - MOST and np.all(counts[row:] < min(n_columns, 3)):
        lines = "this line" if row == counts.size - 1 else f"the last {counts.size - row} lines"
        hint = f"Delete {lines}, if notes under the table; else add the missing delimiters."
    elif found > n_columns:
        hint = "Put a cell that contains the delimiter in quotes."
    else:
        hint = "Add the missing delimiters: an empty cell still needs its own."
    raise TableError(
        file=file,
        row=row,
        value=f"{found} field{'s' if found > 1 else ''}",
        expected=f"{n_columns}, as in the header",
        hint=hint,
    )


def _gather(buffer: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> pa.Array:
    """Return the cells as one text array, copying their bytes side by side."""
    lengths = ends - starts
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    total = int(offsets[-1])
    taken = buffer[np.arange(total) + np.repeat(starts - offsets[:-1], lengths)]
    wide = total > MAX_STRING_BYTES
    kind = pa.LargeStringArray if wide else pa.StringArray
    places = offsets.astype(np.int64 if wide else np.int32)
    return kind.from_buffers(len(lengths), pa.py_buffer(places), pa.py_buffer(taken))


def _undouble(text: pa.Array, quoted: np.ndarray) -> pa.Array:
    doubled = pc.and_(pa.array(quoted), pc.match_substring(text, '""'))
    if not pc.any(doubled).as_py():
        return text
    return pc.if_else(doubled, pc.replace_substring(text, '""', '"'), text)


def _quoting(text: pa.Array, quoted: np.ndarray, delimiter: str) -> Quoting:
    bare = not quoted.any() and not pc.any(pc.match_substring(text, '"')).as_py()
    return Quoting() if bare else describe_quoting(text, quoted, delimiter)


def _usual_newline(data: bytes, cells: CellSpans) -> str:
    """Return the line end of most rows."""
    if line_end(data) == CR:
        return "\r"
    after = (cells.ends + cells.quoted)[cells.last_in_row]
    after = after[after < len(data)]  # the last row may have none
    crlf = byte_at(np.frombuffer(data, dtype=np.uint8), after, LF) == CR
    return "\r\n" if 2 * np.sum(crlf) > after.size else "\n"
