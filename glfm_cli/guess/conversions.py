"""Columns that are another one in another unit: pounds and kilograms, degrees of two scales.

Sought are c = k a and c = k a + b, within what both columns are rounded to, and the time between
two dates or times of day in days, hours, minutes or seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations, permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

DIGITS = range(1, 9)  # of a factor and a shift; the fewest that fit are taken
FEWEST = 5  # different numbers of each column
LEAST_ROWS = 20  # in which both are known
MOST_ROUNDED = 0.02  # half a unit of the last decimal, in sds
EXACT = 1e-9  # relative: what is left of arithmetic in doubles
# In days, hours, minutes, seconds, of dates in days and of times of day in minutes.
FACTORS = {"date": (1.0, 24.0, 1440.0, 86400.0), "duration": (1.0, 1 / 60, 60.0)}


class Conversion(NamedTuple):
    """Column c by column a, both by place: c = factor * a + shift, and how many rows show it.

    both : whether it holds only as far as both columns are rounded, not of a as it stands
    """

    c: int
    a: int
    factor: str
    shift: str
    n_rows: int
    both: bool


def conversions(X: Values, half: Values) -> Iterator[Conversion]:
    """Yield which column is another one in another unit.

    X : (n, p) float64; rows of the table, NaN where a cell has no number
    half : (p,) float64; half a unit of the last decimal of each column, 0 if it is not rounded
    """
    rounding = [_rounding(x, one) for x, one in zip(X.T, half, strict=True)]
    for pair in combinations(range(X.shape[1]), 2):
        known = np.isfinite(X[:, pair].sum(axis=1))
        if known.sum() < LEAST_ROWS:
            continue
        # Of coarse numbers only what holds without any rounding: an age by the year of birth.
        slack = half if max(rounding[d] for d in pair) <= MOST_ROUNDED else 0.0 * half
        found = [
            one
            for c, a in (pair[::-1], pair)
            if (one := _conversion(X[known, c], X[known, a], (slack[c], slack[a]), (c, a)))
        ]
        # What was computed from the other as it stands; else the finer column tells the factor.
        found.sort(key=lambda one: (one.both, rounding[one.c], len(one.factor) + len(one.shift)))
        yield from found[:1]


def _rounding(x: Values, half: float) -> float:
    """Return half a unit of a column's last decimal in sds, infinite where it does not vary."""
    seen = x[np.isfinite(x)]
    sd = float(seen.std()) if seen.size else 0.0
    return half / sd if sd > 0.0 else np.inf


def _conversion(
    c: Values, a: Values, half: tuple[float, float], place: tuple[int, int]
) -> Conversion | None:
    """Return c = factor * a + shift with as few digits as fit, None where it is not so."""
    sd_a, sd_c = a.std(), c.std()
    if min(sd_a, sd_c) == 0.0:
        return None
    slope = float(np.mean((a - a.mean()) * (c - c.mean())) / sd_a**2)
    size = half[0] + EXACT * (np.abs(c).max() + abs(slope) * np.abs(a).max())
    both = size + abs(slope) * half[1]
    if np.ptp(c - slope * a) > 2.0 * both:  # most pairs
        return None
    if min(np.unique(c).size, np.unique(a).size) < FEWEST:
        return None
    for slack in (size, both):  # c was computed from a as it stands, or both were rounded
        for digits in DIGITS:
            factor = f"{slope:.{digits}g}"
            rest = c - float(factor) * a
            middle = 0.5 * (rest.min() + rest.max())
            for shift in ("0", *(f"{middle:.{k}g}" for k in DIGITS)):
                if np.abs(rest - float(shift)).max() <= slack:
                    return Conversion(*place, factor, shift, c.size, slack > size)
    return None


def spans(
    X: Values, half: Values, moments: Mapping[int, str]
) -> Iterator[tuple[int, int, int, float, int]]:
    """Yield which column is the time between two dates: column, later, earlier, factor, rows.

    X : (n, p) float64; rows of the table, NaN where a cell has no number
    half : (p,) float64; half a unit of the last decimal of each column, 0 if it is not rounded
    moments : columns that are of type "date", in days, or "duration", in minutes, by place
    """
    numbers = [d for d in range(X.shape[1]) if d not in moments]
    for later, earlier in permutations(moments, 2):
        if moments[later] != moments[earlier]:
            continue
        days = X[:, later] - X[:, earlier]
        if np.unique(days[np.isfinite(days)]).size < FEWEST:
            continue
        for c in numbers:
            known = np.isfinite(days) & np.isfinite(X[:, c])
            x = X[known, c]
            if x.size < LEAST_ROWS or np.unique(x).size < FEWEST:
                continue
            for factor in FACTORS[moments[later]]:
                value = days[known] * factor
                slack = 1e-6 * (1.0 + np.abs(value))
                if half[c] <= MOST_ROUNDED * x.std():
                    slack = slack + half[c]
                if np.all(np.abs(x - value) <= slack):
                    yield c, later, earlier, factor, x.size
                    break
