"""Cells among numbers that are known only to lie between two: `<0.5`, `30-39`, `5+`."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from glfm_cli.guess.profile import Kind, Profile
from glfm_cli.io.numerals import parse_interval
from glfm_cli.schema import Column, ColumnType

LEAST_BESIDE = 5  # different numbers beside cells that are intervals


class Censored(NamedTuple):
    """A cell known only to lie between two numbers, infinite where it has one end."""

    text: str
    low: float
    high: float
    strict: bool

    @property
    def holds_count(self) -> bool:
        """True when the ends are those of a count, which it may be."""
        whole = all(np.isinf(end) or end == np.floor(end) for end in (self.low, self.high))
        return bool(whole and (self.high > 0 or (self.high == 0 and not self.strict)))


def part_intervals(column: Profile) -> tuple[Profile, list[Censored]]:
    """Take cells such as `<0.5`, `30-39` and `5+` out of a column of numbers, and return them."""
    if column.kind is not Kind.TEXT or column.order is not None:
        return column, []
    numbers, texts = column.is_number, column.words()
    found = [None if n else _ends(t, column) for n, t in zip(numbers, texts, strict=True)]
    known = column.numbers[numbers]
    # Few counts that go on, such as 0, 1, 2, 3+, are numbers, too.
    goes_on = numbers.sum() > 1 and np.array_equal(np.sort(known), np.arange(known.size))
    goes_on = goes_on and any(one and (one.low, one.high) == (known.size, np.inf) for one in found)
    if numbers.sum() < LEAST_BESIDE and not goes_on:
        return column, []
    are = np.array([one is not None for one in found])
    return column.keep(~are), [one for one in found if one is not None]


def _ends(text: str, column: Profile) -> Censored | None:
    """Return a cell as an interval, None where it is none; both ends are numbers in order."""
    found = parse_interval(text)
    ends = [end for end in (found.low, found.high) if end] if found else []
    plain = column.written.read(pa.array(ends, pa.string())).plain.to_pylist()
    numbers = [float(end) for end in plain if end is not None]
    if found is None or not ends or len(numbers) != len(ends) or numbers != sorted(numbers):
        return None
    low = numbers[0] if found.low else -np.inf
    return Censored(text, low, numbers[-1] if found.high else np.inf, found.strict)


def with_intervals(guessed: Column, column: Profile, intervals: list[Censored]) -> Column:
    """Return the guess for numbers beside intervals, each of which holds a value of its type."""
    guessed = replace(guessed, levels=None, aliases=(), atom=None)
    count = guessed.type is ColumnType.COUNT or (not guessed.numeric and column.all_whole)
    if guessed.type is not ColumnType.REAL and column.numbers.min() >= 0:
        if count and all(one.holds_count for one in intervals):
            return replace(guessed, type=ColumnType.COUNT)
        lower, upper = (
            end or other for end, other in zip(guessed.bounds, (0.0, np.inf), strict=True)
        )
        if all(one.high > lower and one.low < upper for one in intervals):
            return replace(guessed, type=ColumnType.POSITIVE)
    return replace(guessed, type=ColumnType.REAL, bounds=(None, None))
