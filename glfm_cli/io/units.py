"""Units of measurement, and the rows of them, or of labels, that may stand below a header."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

import pyarrow as pa

KEY = b"glfm.units"  # of the schema: the rows of units or labels, each by column
CURRENCIES = frozenset("$€£¥₹₩₽₺₪฿") | frozenset(
    ["R$", "US$", "USD", "EUR", "GBP", "CHF", "JPY", "INR", "kr", "Kč", "zł", "Fr.", "Rs", "Rs."]
)
_UNITS = """
m mm cm dm km µm μm nm in ft yd mi kg g mg µg μg ng t lb lbs oz l L ml mL dl dL µl μl s
ms min h hr hrs d kcal cal kJ J W kW kWh V mV A mA Hz kHz MHz GHz Pa hPa kPa bar mbar
mmHg °C °F ° K mol mmol µmol μmol mmol/l mmol/L µmol/l µmol/L mg/dl mg/dL g/dl g/dL g/l
g/L mg/l mg/L µg/l µg/L μg/l μg/L ug/l ug/L ng/l ng/L ng/ml ng/mL µg/m³ μg/m³ µg/m3 μg/m3 ug/m3
mg/kg µg/kg μg/kg µS/cm μS/cm uS/cm U/l U/L IU/l IU/L km/h m/s mph bpm m² m2 m³ m3 km² km2 ha ppm
dB kg/m² kg/m2 px KB MB GB TB years Jahre ans años
kPa(g) bar(g) bar(a) barg bara psi psig psia inHg inH2O mmH2O mH2O mWS MWh GWh MW GJ MJ kVA kVAr
Nm³ Nm3 Sm³ Sm3 NTU FNU FTU FAU TE/F S mS µS μS uS cP cSt Pa·s mPa·s rpm RPM U/min 1/min 1/s gpm
GPM MGD mgd cfm CFM scfm SCFM ppb gal day days week month °dH °Bx °Brix pH %RH %rF Vol.-% vol% wt%
"""
UNITS = frozenset(_UNITS.split())
_IN_BRACKETS = re.compile(r"[\[(]\s*([^\d\[\]()][^\[\]()]{0,19})\s*[\])]")
_QUESTION_ID = re.compile(r"""\{["']ImportId["']:.*\}""")  # of Qualtrics, below the questions
_NO_UNIT = frozenset({"", "-", "--", "—", "1", "n/a", "none", "text", "string"})
NUMBER = re.compile(r"(?:[<>]=?|[≤≥])?\s*[+\u2212-]?[.,]?\d[\d.,'\u2019\s]*(?:[eE][+-]?\d+)?")
ROWS_LOOKED_AT = 52  # under a header
FEWEST = 5  # numbers below a label, in two columns or more
WORD = 4  # letters that a label above numbers has, as codes among them do not
MOSTLY = 0.8  # of them are numbers in a column with a unit


def unit_in(cell: str) -> str | None:
    """Return the unit that a cell below the header names, None where it names none."""
    cell = cell.strip()
    inside = _IN_BRACKETS.fullmatch(cell)
    if inside is not None:
        return inside[1].strip()
    if cell == "%" or cell in UNITS | CURRENCIES:
        return cell
    # A flow or a price: one unit over another, such as m³/h or kWh/t.
    above, slash, under = cell.partition("/")
    return cell if slash and above in UNITS | CURRENCIES and under in UNITS else None


def is_units_row(cells: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Return whether the cells under a header are units, and no row of the table.

    cells : the row under the header
    below : the cells under each of them
    """
    if not any(map(unit_in, cells)):
        return False
    for cell, column in zip(cells, below, strict=True):
        filled = [text.strip() for text in column if text.strip()]
        numbers = [text for text in filled if NUMBER.fullmatch(text)]
        if unit_in(cell) is None:
            if cell.strip().casefold() not in _NO_UNIT:
                return False
        elif not filled or len(numbers) < MOSTLY * len(filled):
            return False
    return True


def is_labels_row(cells: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Return whether the cells under a header are labels of its columns, and no row of the table.

    All are words, of which none recurs, with whatever digits (P12 above P13), in two columns or
    more above numbers.

    cells : the row under the header
    below : the cells under each of them
    """
    above = [cells[j].strip() for j in columns_of_numbers(cells, below)]
    named = sum(" " in one or sum(map(str.isalpha, one)) >= WORD for one in above)
    return len(above) > 1 and 2 * named > len(above)


def columns_of_numbers(labels: Sequence[str], below: Sequence[Sequence[str]]) -> list[int]:
    """Return which labels stand above numbers; none where they are no labels of their columns.

    All are words, of which none recurs or is like a cell below it, with whatever digits.

    below : the cells under each of them
    """
    labels = [label.strip() for label in labels]
    if not all(any(map(str.isalpha, label)) for label in labels):
        return []
    if len({label.casefold() for label in labels}) < len(labels):
        return []
    numbers = []
    for j, (label, column) in enumerate(zip(labels, below, strict=True)):
        filled = [text.strip() for text in column if text.strip()]
        if _shape(label) in map(_shape, filled):
            return []
        n = sum(NUMBER.fullmatch(text) is not None for text in filled)
        if n >= max(FEWEST, MOSTLY * len(filled)):
            numbers.append(j)
    return numbers


def _shape(text: str) -> str:
    return re.sub(r"\d+", "0", text)


def count_rows_below(rows: Sequence[Sequence[str]]) -> int:
    """Return how many of the rows under a header are no rows of the table: 0, 1 or 2.

    One of units or of labels, or one of the ids of questions, which may have labels above it.

    rows : the first rows under the header, equally long
    """
    for n in (1, 2):
        if len(rows) > n and _are_question_ids(rows[n - 1]):
            return n
    below = list(zip(*rows[1:], strict=True))
    if below and (is_units_row(rows[0], below) or is_labels_row(rows[0], below)):
        return 1
    return 0


def _are_question_ids(cells: Sequence[str]) -> bool:
    filled = [cell for cell in cells if cell]  # columns that were added have none
    return bool(filled) and all(map(_QUESTION_ID.fullmatch, filled))


def with_rows_below(table: pa.Table, rows: Sequence[Mapping[str, str]]) -> pa.Table:
    """Return the table with the rows below its header, each by column, in its metadata."""
    metadata = dict(table.schema.metadata or {})
    return table.replace_schema_metadata(metadata | {KEY: json.dumps(rows).encode()})


def rows_below(table: pa.Table) -> list[dict[str, str]]:
    """Return the rows that stood below the header, each by column."""
    return json.loads((table.schema.metadata or {}).get(KEY, b"[]"))


def units_of(table: pa.Table) -> dict[str, str]:
    """Return the row of units or labels below the header, by column; empty if there was none."""
    rows = rows_below(table)
    return {} if not rows or _are_question_ids(list(rows[0].values())) else rows[0]


def labels_of(table: pa.Table) -> dict[str, str]:
    """Return the row of labels that stood below the header, by column; empty if there was none."""
    row = units_of(table)
    units = all(unit_in(cell) or cell.strip().casefold() in _NO_UNIT for cell in row.values())
    return {} if units else row
