"""Cells among numbers that are known only to lie between two: `<0.5`, `30-39`, `5+`."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from glfm_cli.guess.codes import below_limits
from glfm_cli.guess.profile import Kind, Profile
from glfm_cli.io.numerals import INTERVAL, Between, parse_interval
from glfm_cli.schema import Column, ColumnType

FILLED = "`impute: censored` fills such cells in"
NO_PAIR = "values of pairs can be no intervals: list such cells under `missing`"
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
    numbers, found = column.is_number, _as_intervals(column)
    known = column.numbers[numbers]
    # Few counts that go on, such as 0, 1, 2, 3+, are numbers, too.
    goes_on = numbers.sum() > 1 and np.array_equal(np.sort(known), np.arange(known.size))
    goes_on = goes_on and any(one and (one.low, one.high) == (known.size, np.inf) for one in found)
    if numbers.sum() < LEAST_BESIDE and not goes_on:
        return column, []
    are = np.array([one is not None for one in found])
    return column.keep(~are), [one for one in found if one is not None]


def _as_intervals(column: Profile) -> list[Censored | None]:
    """Return each distinct text as an interval, None where it is none or a number."""
    # There may be as many texts as rows, and mostly none is an interval: whole arrays are asked,
    # not each text.
    likely = pc.match_substring_regex(column.texts, INTERVAL).to_numpy(zero_copy_only=False)
    places = np.flatnonzero(likely & ~column.is_number)
    parsed = {int(i): parse_interval(column.texts[i].as_py()) for i in places}
    ends = [end for one in parsed.values() if one for end in (one.low, one.high) if end]
    plain = column.written.read(pa.array(ends, pa.string())).plain.to_pylist()
    numbers = dict(zip(ends, plain, strict=True))
    return [_ends(text, parsed.get(i), numbers) for i, text in enumerate(column.words())]


def _ends(text: str, found: Between | None, numbers: dict[str, str | None]) -> Censored | None:
    """Return a cell as an interval, None where it is none; both ends are numbers in order.

    numbers : what each end is in digits, None where it is no number
    """
    if found is None:
        return None
    digits = [numbers[end] for end in (found.low, found.high) if end]
    ends = [float(end) for end in digits if end is not None]
    if not ends or len(ends) != len(digits) or ends != sorted(ends):
        return None
    low = ends[0] if found.low else -np.inf
    return Censored(text, low, ends[-1] if found.high else np.inf, found.strict)


def part_limits(column: Profile) -> tuple[Profile, list[Censored]]:
    """Take -L that mean less than L out of a column of numbers, and return them, the last largest.

    The column of all numbers below zero has one limit, the largest.
    """
    found = below_limits(column)
    limits = -column.numbers[found]
    largest = float(limits.max(initial=0.0))
    texts = [column.keep(found).words()[i] for i in np.argsort(limits)]
    return column.keep(~found), [Censored(one, -np.inf, largest, True) for one in texts]


def with_limits(guessed: Column, column: Profile, limits: list[Censored]) -> Column:
    """Return the guess for numbers beside -L that mean less than L."""
    if guessed.bounds[0]:  # a floor
        guessed = replace(guessed, bounds=(None, guessed.bounds[1]))
    return replace(with_intervals(guessed, column, limits), censored_below=limits[-1].high)


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
