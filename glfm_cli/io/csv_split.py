"""Cut the bytes of a CSV file into cells, remembering which of them stood in quotes.

A quote opens a quoted cell only at the start of a cell; inside, a doubled quote is one quote and
delimiters and line ends are text. Elsewhere a quote is an ordinary character (`5" pipe`).
The usual case, where every quote opens, closes or is doubled, is done by whole-array operations;
a file with a quote elsewhere is read cell by cell.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from glfm_cli.errors import TableError

Array = NDArray[np.int64]
Mask = NDArray[np.bool_]

QUOTE, LF, CR = b'"'[0], b"\n"[0], b"\r"[0]


class CellSpans(NamedTuple):
    """Where the cells are: the text of cell i is bytes `starts[i]:ends[i]`, quotes left off."""

    starts: Array
    ends: Array
    quoted: Mask
    last_in_row: Mask


def line_end(data: bytes) -> int:
    """Return the byte that ends a row: a line feed, or a carriage return where there is none.

    A line feed in quotes ends no row: so a spreadsheet writes cells of several lines.
    """
    if CR not in data or b"\r\n" in data:
        return LF
    return LF if LF in data and row_ends(data, LF).size else CR


def split_cells(data: bytes, delimiter: str, file: str) -> CellSpans:
    """Return all cells of a file that is not empty, row after row.

    Raises TableError: a quoted cell is never closed, or text follows its closing quote; names the
        data row.
    """
    newline = line_end(data)
    at, is_quote, is_newline = _special_bytes(data, ord(delimiter), newline)
    if is_quote.any():
        if not _quotes_are_regular(data, at[is_quote], ord(delimiter), newline):
            return _scan_cells(data, delimiter, newline, file)
        separates = ~is_quote & (np.cumsum(is_quote) % 2 == 0)
        at, is_newline = at[separates], is_newline[separates]
    if not at.size or at[-1] != len(data) - 1 or not is_newline[-1]:
        at, is_newline = np.append(at, len(data)), np.append(is_newline, True)
    buffer = np.frombuffer(data, dtype=np.uint8)
    starts, ends = np.concatenate(([0], at[:-1] + 1)), at.copy()
    if newline == LF:
        # The carriage return of CRLF; at the end of a file without a last line end it is text.
        before = is_newline & (ends > starts) & (ends < len(data))
        ends[before] -= buffer[ends[before] - 1] == CR
    quoted = ends > starts
    quoted[quoted] = buffer[starts[quoted]] == QUOTE
    return CellSpans(starts + quoted, ends - quoted, quoted, is_newline)


def row_ends(data: bytes, newline: int) -> Array:
    """Return where rows end: at line ends that are not between quotes."""
    at, is_quote, is_newline = _special_bytes(data, newline, newline)
    return at[is_newline & (np.cumsum(is_quote) % 2 == 0)]


def fields_per_row(data: bytes, delimiter: str) -> Array:
    """Return the number of cells of each whole row, by counting delimiters outside quotes."""
    _, is_quote, is_newline = _special_bytes(data, ord(delimiter), line_end(data))
    separates = ~is_quote & (np.cumsum(is_quote) % 2 == 0)
    return np.diff(np.flatnonzero(is_newline[separates]), prepend=-1)


def data_row_at(data: bytes, position: int) -> int | None:
    """Return the data row, from 1, that holds a byte; None for the header."""
    before = data[:position]
    _, is_quote, is_newline = _special_bytes(before, QUOTE, line_end(data))
    row = int((is_newline & (np.cumsum(is_quote) % 2 == 0)).sum())
    return row or None


def byte_at(buffer: NDArray[np.uint8], positions: Array, beyond: int) -> NDArray[np.uint8]:
    """Return the bytes at some positions; `beyond` where the file has ended."""
    inside = buffer[np.minimum(positions, buffer.size - 1)]
    return np.where(positions < buffer.size, inside, np.uint8(beyond))


def _special_bytes(data: bytes, delimiter: int, newline: int) -> tuple[Array, Mask, Mask]:
    buffer = np.frombuffer(data, dtype=np.uint8)
    special = np.zeros(256, dtype=bool)
    special[[delimiter, newline, QUOTE]] = True
    at = np.flatnonzero(special[buffer])
    kind = buffer[at]
    return at, kind == QUOTE, kind == newline


def _quotes_are_regular(data: bytes, quotes: Array, delimiter: int, newline: int) -> bool:
    """Return True when each quote opens a cell, closes it before a separator, or is doubled."""
    if quotes.size % 2:
        return False
    buffer = np.frombuffer(data, dtype=np.uint8)
    opening, closing = quotes[::2], quotes[1::2]
    doubled = opening[1:] == closing[:-1] + 1
    separator = np.zeros(256, dtype=bool)
    separator[[delimiter, newline]] = True
    starts_cell = (opening == 0) | separator[buffer[opening - 1]]
    if not (starts_cell[0] and np.all(starts_cell[1:] | doubled)):
        return False
    after = byte_at(buffer, closing + 1, newline)
    ends_cell = separator[after]
    if newline == LF:
        ends_cell |= (after == CR) & (byte_at(buffer, closing + 2, CR) == LF)
    return bool(ends_cell[-1] and np.all(ends_cell[:-1] | doubled))


def _scan_cells(data: bytes, delimiter: str, newline: int, file: str) -> CellSpans:
    """Cut cell by cell: the exact rules, for files whose quotes are not all quoting."""
    sep = re.escape(delimiter.encode())
    end = b"\r?\n" if newline == LF else b"\r"
    stop = b"\n" if newline == LF else b"\r"
    cell = re.compile(
        b'(?:"([^"]*(?:""[^"]*)*)"|((?!")[^%b%b]*?))(%b|%b|\\Z)' % (sep, stop, sep, end)
    )
    starts, ends, quoted, last = [], [], [], []
    position, row = 0, 0
    while True:
        match = cell.match(data, position)
        if match is None:
            raise _quote_error(data, position, row, file)
        group = 1 if match.start(1) >= 0 else 2
        starts.append(match.start(group))
        ends.append(match.end(group))
        quoted.append(group == 1)
        last.append(match[3] != delimiter.encode())
        row += last[-1]
        position = match.end()
        if not match[3] or (position == len(data) and last[-1]):
            break
    return CellSpans(
        np.array(starts, dtype=np.int64),
        np.array(ends, dtype=np.int64),
        np.array(quoted, dtype=bool),
        np.array(last, dtype=bool),
    )


def _quote_error(data: bytes, position: int, row: int, file: str) -> TableError:
    closed = re.compile(b'"[^"]*(?:""[^"]*)*"').match(data, position)
    shown = data[position : position + 40].decode("utf-8", "replace")
    where = "the header" if row == 0 else None
    if closed is None:
        problem = "a cell opens with a quote that is never closed"
    else:
        problem = "text follows the closing quote of a cell"
    return TableError(
        f"{where}: {problem}" if where else problem,
        file=file,
        row=row or None,
        value=shown,
        hint="Inside quotes, write a quote twice.",
    )
