"""Before a CSV file can be cut into cells: its encoding, and what stands above its header."""

from __future__ import annotations

import codecs
import re

import numpy as np

from glfm_cli.io.csv_split import fields_per_row, line_end
from glfm_cli.io.units import NUMBER, columns_of_numbers

# UTF-32 first: its little-endian mark begins with that of UTF-16.
BYTE_ORDER_MARKS = {
    "utf-8": codecs.BOM_UTF8,
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
}
MOST_TITLES = 20  # lines above the header that are looked for
SNIFFED_BYTES = 1 << 18
SAMPLE = 50  # lines below a title that are looked at
EVEN_SHARE = 0.9  # of the rows below a title have as many fields as the header
MIN_FIELDS = 3  # a row of fewer cannot be told from a title
DELIMITERS = ",\t;|"
_QUOTED_WORDS = re.compile(rb'"[^"]*"(?: "[^"]*")+\r?[\n\r]')  # a header of R's write.table

_SEPARATOR_LINE = re.compile(rb'"?sep=(.)"?\r?(?:\n|\r)', re.IGNORECASE)
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x19\x1b-\x1f]")


def encoding_of(raw: bytes) -> str:
    """Return the encoding of a text without byte-order mark.

    What is no UTF-8 is UTF-16 if every other byte is NUL, and Windows-1252 if it has no control
    characters (Latin-1, where a byte means nothing in Windows-1252): every such byte is a letter,
    and is written back as the same byte. A file that is mostly UTF-8 stays one, with an error.
    """
    if b"\0" in raw:
        sample = np.frombuffer(raw[:SNIFFED_BYTES], dtype=np.uint8)
        for start, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
            if len(raw) % 2 == 0 and np.mean(sample[start::2] == 0) > 0.5 > np.mean(
                sample[1 - start :: 2] == 0
            ):
                return encoding if _decodes(raw, encoding) else "utf-8"
        return "utf-8"
    if _decodes(raw, "utf-8") or _CONTROL.search(raw):
        return "utf-8"
    high = sum(byte >= 0x80 for byte in raw[:SNIFFED_BYTES])
    letters = raw[:SNIFFED_BYTES].decode(errors="ignore")
    in_sequences = sum(len(char.encode()) for char in letters if ord(char) >= 0x80)
    if 2 * in_sequences > high:
        return "utf-8"
    if _decodes(raw, "cp1252"):
        return "cp1252"
    # Bytes 0x80 to 0x9F are control characters in Latin-1: many of them are no text.
    controls = sum(0x80 <= byte < 0xA0 for byte in raw[:SNIFFED_BYTES])
    return "latin-1" if 20 * controls < min(len(raw), SNIFFED_BYTES) else "utf-8"


def _decodes(raw: bytes, encoding: str) -> bool:
    try:
        raw.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def find_header(data: bytes) -> tuple[int, str | None]:
    """Return where the header of a text begins, and the delimiter if a line in front names it.

    In front may stand `sep=;`, as Excel writes and reads it, or a title: up to 20 lines with at
    most one filled cell above rows of at least three, and below them one that names groups of
    columns.
    """
    first = _SEPARATOR_LINE.match(data)
    if first is not None:
        return first.end(), first[1].decode("latin-1")
    sample, newline = _whole_rows(data), bytes([line_end(data)])
    top = data.split(newline, MOST_TITLES + SAMPLE)[: MOST_TITLES + SAMPLE]
    begins = []
    for delimiter in DELIMITERS:
        counts = fields_per_row(sample, delimiter)
        usual = int(np.bincount(counts).argmax()) if counts.size else 0
        titles = 0
        while titles < min(len(top) - 1, MOST_TITLES) and _is_title(top[titles], delimiter):
            titles += 1
        titles += _names_groups(top[titles : titles + SAMPLE], delimiter)
        if (
            usual < (MIN_FIELDS if titles else 2)
            or titles >= counts.size
            or counts[titles] != usual
        ):
            continue
        if np.mean(counts[titles:] == usual) > EVEN_SHARE:
            begins.append(titles)
    # A header that some delimiter cuts like the rows is no title to another one.
    skipped = min(begins, default=0)
    return sum(len(line) + 1 for line in top[:skipped]), None


def _is_title(line: bytes, delimiter: str) -> bool:
    return sum(bool(cell.strip(b' \t\r"')) for cell in line.split(delimiter.encode())) <= 1


def _names_groups(lines: list[bytes], delimiter: str) -> bool:
    """Return whether the first line has names of groups of columns, above that of the columns.

    A group's name stands above its first column, as spreadsheets write merged cells. No header has
    such gaps. The line below is taken for one if its words are all different, and unlike the cells
    below them, which are numbers in two columns or more.
    """
    if len(lines) < 3:
        return False
    groups, names = (_cells(line, delimiter) for line in lines[:2])
    width = max((j for j, name in enumerate(names, 1) if name), default=0)
    if width < MIN_FIELDS or len(groups) != len(names) or any(groups[width:]):
        return False
    if all(groups[1:width]) or sum(map(bool, groups)) < 2 or any(map(NUMBER.fullmatch, groups)):
        return False
    rows = [row for line in lines[2:] if len(row := _cells(line, delimiter)) == len(names)]
    columns = [[row[j] for row in rows] for j in range(width)]
    return len(columns_of_numbers(names[:width], columns)) > 1


def _cells(line: bytes, delimiter: str) -> list[str]:
    return [cell.strip(' \t\r"') for cell in line.decode(errors="replace").split(delimiter)]


def _whole_rows(data: bytes) -> bytes:
    """Return the whole rows of the first 256 kB."""
    newline = bytes([line_end(data)])
    if len(data) > SNIFFED_BYTES:
        data = data[: data.rfind(newline, 0, SNIFFED_BYTES) + 1 or SNIFFED_BYTES]
    return data.rstrip(b"\r\n") + newline


def sniff_delimiter(data: bytes) -> str:
    """Return the delimiter that cuts the rows most evenly; the comma for a single column.

    Judged on whole rows of the first 256 kB. The share of rows with as many cells as the header
    decides, then the number of cells, then the order comma, tab, semicolon, bar. A blank is one
    where it alone stands between the names, all in quotes.
    """
    if _QUOTED_WORDS.match(data):
        return " "
    sample = _whole_rows(data)
    best, best_score = ",", (0.0, 1)
    for delimiter in DELIMITERS:
        counts = fields_per_row(sample, delimiter)
        if counts.size and counts[0] > 1:
            score = (float(np.mean(counts == counts[0])), int(counts[0]))
            if score > best_score:
                best, best_score = delimiter, score
    return best
