"""Recognise how the columns of a table write their numbers: `3.041,30`, `8,6%`, `148 cm`, `$5`.

A cell is parted into digits and what stands beside them (percent sign, currency, unit). Then the
decimal mark and the thousands separator are those that read most cells. Where both `1,234` and
`1.234` could be either, the other columns of the table decide, then the delimiter of the file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

import glfm_cli.guess.codes as codes
from glfm_cli.guess.names import words
from glfm_cli.guess.profile import Kind, Profile
from glfm_cli.io.numerals import MINUS, PLAIN, SPACES, Numerals, parse_interval
from glfm_cli.io.units import CURRENCIES, UNITS

SAMPLE = 5000  # distinct texts that are looked at one by one
NUMBER_SHARE = 0.9  # of the cells, where a few texts stand among the numbers
MAX_STRAY = 5  # such texts
RECURRING_SHARE = 1 / 3  # of the cells, at most, that hold one or two texts, each in several rows
MAX_RECURRING = 2  # such texts
LEAST_MARKED = 3  # numbers beside a text from which it is a unit
LEAST_NUMBERS = 10  # different ones beside which a text that recurs is no level

_NO_UNITS = words("am pm a.m. p.m. uhr st nd rd th o'clock bc ad") | {"a", "b"}
_SIZES = {"k", "M", "mn", "bn"}  # of thousands and more: 45k
_AROUND = "|".join(sorted(map(re.escape, CURRENCIES), key=len, reverse=True))
_SIGN = f"[+{MINUS}]?"
_CELL = re.compile(
    rf"{_SIGN}[{SPACES}]*(?P<before>(?:{_AROUND})?)[{SPACES}]*{_SIGN}[{SPACES}]*"
    rf"(?P<body>[.,]?\d(?:[\d.,'’{SPACES}]*\d)?[.,]?(?:[eE][+-]?\d+)?)"
    rf"(?P<gap>[{SPACES}]*)(?P<behind>(?:%|°?[^\W\d_][^\d,;:|()]{{0,14}}|°|{_AROUND})?)"
)
_BRACKETED = re.compile(rf"([^\d()+{MINUS}]*)\(([^()+{MINUS}]+)\)([^\d()]*)")
_POINT = (Numerals(), Numerals(".", ","), Numerals(".", " "), Numerals(".", "'"))
_COMMA = (Numerals(","), Numerals(",", "."), Numerals(",", " "), Numerals(",", "'"))
_BETWEEN = {",": "commas", ".": "points", " ": "spaces", "'": "apostrophes"}


class _Parts(NamedTuple):
    """A cell with a number in it: the digits, and the mark beside them, empty for none.

    bracketed : whether brackets stand around the digits
    """

    text: str
    body: str
    mark: str
    cells: int
    bracketed: bool = False


def recognise(columns: Sequence[Profile], delimiter: str | None) -> list[Profile]:
    """Return the columns of a table, those of numbers in a form of their own read as numbers.

    delimiter : of the file, if it was one of text
    """
    parts = [_parted(column) for column in columns]
    votes = Counter(vote for one in parts if one and (vote := _vote(one)) is not None)
    comma = votes[","] > votes["."] or (not votes and delimiter == ";")
    return [
        column if not one else _read(column, one, comma=comma)
        for column, one in zip(columns, parts, strict=True)
    ]


def are_strays(texts: Sequence[int], cells: int, n_numbers: int) -> bool:
    """Return whether texts stand among numbers: a few in few cells, or one or two that recur.

    texts : how many cells hold each
    cells : of numbers and such texts
    n_numbers : different ones
    """
    if len(texts) <= MAX_STRAY and sum(texts) <= (1 - NUMBER_SHARE) * cells:
        return True
    recur = len(texts) <= MAX_RECURRING and min(texts) >= 2
    return recur and sum(texts) <= RECURRING_SHARE * cells and n_numbers >= LEAST_NUMBERS


def in_words(numerals: Numerals) -> str:
    """Return how numbers are written, for the reason of a guess."""
    phrases = ["decimal commas"] if numerals.decimal == "," else []
    if numerals.thousands:
        phrases.append(f"{_BETWEEN[numerals.thousands]} between thousands")
    if numerals.mark:
        phrases.append("in percent" if numerals.percent else f"in {numerals.unit}")
    return ", ".join(phrases)


def _parted(column: Profile) -> list[_Parts]:
    """Return the numbers of a column of text; none if it holds mostly something else."""
    if column.kind is not Kind.TEXT or column.order is not None or not len(column.raw):
        return []
    gaps = codes.GAP_WORDS | codes.DOUBTFUL_WORDS | codes.NO_QUESTION_WORDS
    found: list[_Parts] = []
    others: list[int] = []
    cells = 0
    for text, count in zip(column.raw[:SAMPLE].to_pylist(), column.raw_counts, strict=False):
        if text.lower() in gaps:
            continue
        cells += int(count)
        part = _part(text, int(count)) or _interval_part(text, int(count))
        if part is None:
            others.append(int(count))
        else:
            found.append(part)
    odd = [part for part in found if part.bracketed and not part.mark]
    if odd and not _are_accounts(found, odd):
        found = [part for part in found if not part.bracketed or part.mark]
        others += [part.cells for part in odd]
    few = are_strays(others, cells, len(found))
    return found if few and (len(found) >= 3 or not others) else []


def _part(text: str, count: int) -> _Parts | None:
    if bracketed := _BRACKETED.fullmatch(text):  # ($5) and $(5) of accounts are -$5
        inside = _part(f"{bracketed[1]}{bracketed[2]}{bracketed[3]}", count)
        return inside._replace(text=text, bracketed=True) if inside else None
    match = _CELL.fullmatch(text)
    if match is None or (match["before"] and match["behind"]):
        return None
    behind, spaced = match["behind"].strip(), bool(match["gap"])
    if not _is_known(behind) and (not spaced or behind.casefold() in _NO_UNITS):
        return None
    return _Parts(text, match["body"], match["before"] or behind, count)


def _are_accounts(parts: list[_Parts], bracketed: list[_Parts]) -> bool:
    """Return whether brackets without a currency mean numbers below zero, and are no remarks.

    Many numbers have them, others have none, and fewer have a minus.
    """
    many = len(bracketed) > MAX_STRAY and len(bracketed) < len(parts)
    minus = sum(part.cells for part in parts if part.text[0] in MINUS)
    return many and minus < sum(part.cells for part in bracketed)


def _interval_part(text: str, count: int) -> _Parts | None:
    """Return a number of a cell such as `<0,5` or `30-39 kg`, with the mark if one has it."""
    if (found := parse_interval(text)) is None:
        return None
    parts = [_part(end, count) for end in (found.high, found.low) if end is not None]
    if any(part is None or part.mark in _SIZES for part in parts):  # 1k-5k is a step of a scale
        return None
    marked = next((part for part in parts if part and part.mark), parts[0])
    return marked and marked._replace(text=text)


def _vote(parts: list[_Parts]) -> str | None:
    """Return the decimal mark that a column must have, None where it may be either or neither."""
    point, comma = (max(_hits(parts, form) for form in forms) for forms in (_POINT, _COMMA))
    if point == comma:
        return None
    return "." if point > comma else ","


def _hits(parts: list[_Parts], form: Numerals) -> int:
    pattern = re.compile(form.digits)
    return sum(bool(pattern.fullmatch(part.body)) for part in parts)


def _marks(parts: list[_Parts]) -> Counter[str]:
    """Return how many cells have which mark."""
    cells = Counter[str]()
    for part in parts:
        cells[part.mark] += part.cells
    return cells


def _is_known(mark: str) -> bool:
    return not mark or mark == "%" or mark in UNITS | CURRENCIES | _SIZES


def _is_unit(mark: str, parts: list[_Parts]) -> bool:
    """Return whether a mark of several numbers is a unit such as `sq ft`, no remark of letters."""
    return len(mark) > 2 and len({part.body for part in parts if part.mark == mark}) >= LEAST_MARKED


def _read(column: Profile, parts: list[_Parts], *, comma: bool) -> Profile:
    """Return a column with its numbers read, or with the word on why they cannot be."""
    forms: Sequence[Numerals] = (*_COMMA, *_POINT) if comma else (*_POINT, *_COMMA)
    if all(part.body.isdecimal() for part in parts):
        forms = _POINT  # nothing shows another decimal mark
    form = max(forms, key=lambda one: _hits(parts, one))
    pattern = re.compile(form.digits)
    good = [part for part in parts if pattern.fullmatch(part.body)]
    marks = _marks(good)
    if not marks:
        return column
    mark = marks.most_common(1)[0][0]
    # Such as `5,1 H` among `4,9`: a remark, not another way to write numbers.
    remarks = [p.cells for p in parts if p.mark != mark and not _is_known(p.mark)]
    if remarks and are_strays(remarks, sum(p.cells for p in parts), len(parts) - len(remarks)):
        parts = [p for p in parts if p.mark == mark or _is_known(p.mark)]
        good = [p for p in parts if pattern.fullmatch(p.body)]
        marks = _marks(good)
    odd = next((p for p in parts if not pattern.fullmatch(p.body) or p.mark != mark), None)
    if odd is not None:
        like = next(part.text for part in good if part.mark == mark)
        known = all(_is_known(one) or _is_unit(one, good) for one in marks)
        in_some_form = all(any(re.fullmatch(f.digits, p.body) for f in forms) for p in parts)
        several = f"numbers written in several ways, such as {like} and {odd.text}"
        return replace(column, mixture=several) if known and in_some_form else column
    form = replace(form, percent=mark == "%", unit="" if mark == "%" else mark)
    typeset = form == PLAIN and any(MINUS[0] in part.text for part in parts)
    if typeset or (not (mark or form.thousands) and any(part.bracketed for part in parts)):
        form = replace(form, thousands="," if form.decimal == "." else ".")  # for such signs
    if form == PLAIN:
        return column
    plain = form.read(column.raw).plain
    numbers = np.array(plain.cast(pa.float64()).to_numpy(zero_copy_only=False))
    numbers[~np.isfinite(numbers)] = np.nan
    return replace(
        column, texts=column.raw, counts=column.raw_counts, numbers=numbers, written=form
    )
