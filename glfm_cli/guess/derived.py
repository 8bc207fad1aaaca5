"""Columns that follow from others in every row: differences, products, shares and totals.

Sought are, of numbers that vary, c = a + b, c = a b, c b = a and c b = 100 a (shares, per cent, and
rates up to 1,000,000), sums of three columns or more that stand together, scores of items, sums
of some columns several times, times between two dates, and one column in two units; each in every
row where all are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from glfm_cli.guess.conversions import conversions, spans
from glfm_cli.guess.scores import scores
from glfm_cli.guess.weighted import weighted

MOST_COLUMNS = 40  # numbers that are looked at
LEAST_ROWS = 20  # in which all are known
EXACT = 1e-6  # of a sum, relative
MOST_ROUNDED = 0.02  # of a share, in sds of what it is a share of
RATES = (1e3, 1e4, 1e5, 1e6)
FIRST_ROWS, NEAR = 8, 0.05  # that show whether there may be a rate, and how exact it is there
FIRST_LOOK = 8  # one of so many rows
FEWEST = 3  # different numbers of each column
PLACES = range(7)

Values = NDArray[np.float64]


class Derived(NamedTuple):
    """A column, by place, its formula, how many rows show it, and the columns that it names."""

    column: int
    formula: str
    n_rows: int
    of: tuple[int, ...]


def derived(
    names: Sequence[str], X: Values, moments: Mapping[int, str] | None = None
) -> dict[int, Derived]:
    """Return by place the columns that follow from others.

    Parameters
    ----------
    names : sequence of str
        What formulas call the columns (p,).
    X : (n, p) float64
        Rows of the table, dates in days, times of day in minutes, NaN where a cell has no number.
    moments : mapping of int to str, optional
        Columns that are of type "date" or "duration", by place.
    """
    found: dict[int, Derived] = {}
    explained: set[frozenset[int]] = set()
    n_columns = min(X.shape[1], MOST_COLUMNS)
    X = X[:, :n_columns]
    moments = {d: one for d, one in (moments or {}).items() if d < n_columns}
    numbers = X.copy()
    numbers[:, [*moments]] = np.nan
    half = np.array([_half_place(column) for column in numbers.T])
    with np.errstate(invalid="ignore", over="ignore"):
        for one in (
            *_totals(names, numbers),
            *_pairs(names, numbers),
            *(Derived(*one) for one in scores(names, numbers, half, LEAST_ROWS)),
            *(Derived(*one) for one in weighted(names, numbers, LEAST_ROWS)),
            *_spans(names, X, half, moments),
            *_conversions(names, numbers, half),
        ):
            involved = frozenset((one.column, *one.of))
            if one.column in found or involved in explained:
                continue
            if one.column not in _rests_on(one.of, found):
                found[one.column] = one
                explained.add(involved)
    return found


def _rests_on(columns: Sequence[int], found: Mapping[int, Derived]) -> set[int]:
    """Return columns and those that their formulas name, and so on."""
    rests: set[int] = set()
    todo = list(columns)
    while todo:
        one = todo.pop()
        if one not in rests:
            rests.add(one)
            todo += found[one].of if one in found else ()
    return rests


def closed_run(X: Values) -> tuple[range, float, int] | None:
    """Return the longest run of columns that add up to one number, as per cents do, None if none.

    X : (n, p) float64; rows of the table, NaN where a cell has no number

    Returns the columns by place, the number, and how many rows show it. Columns are three or more
        that stand together and vary, of numbers from 0; rounding of each is allowed for.
    """
    X = X[:, :MOST_COLUMNS]
    low = np.min(np.where(np.isnan(X), np.inf, X), axis=0, initial=np.inf)
    slack = np.array([_half_place(column) for column in X.T])
    found: tuple[range, float, int] | None = None
    for first in range(X.shape[1]):
        total, n_columns = np.zeros(len(X)), 0
        for last in range(first, X.shape[1]):
            total, n_columns = total + X[:, last], n_columns + 1
            rows = np.isfinite(total)
            if low[last] < 0.0 or rows.sum() < LEAST_ROWS:
                break
            at = float(np.median(total[rows]))
            near = slack[first : last + 1].sum() + EXACT * at
            if n_columns < max(FEWEST, 1 + len(found[0]) if found else 0):
                continue
            if np.all(np.abs(total[rows] - at) <= near) and all(
                np.unique(X[rows, d]).size >= FEWEST for d in range(first, last + 1)
            ):
                found = range(first, last + 1), at, int(rows.sum())
    return found


def _pairs(names: Sequence[str], X: Values) -> Iterator[Derived]:
    """Yield what sums and products of two columns tell."""
    tens = np.array([_half_place(column) for column in X.T])
    for a, b in combinations(range(X.shape[1]), 2):
        total = X[:, a] + X[:, b]
        size = np.abs(X[:, a]) + np.abs(X[:, b])
        for c, n in _equal(X, total, EXACT * size, (a, b)):
            negative = any(np.nanmin(X[:, d]) < 0.0 for d in (a, b, c))
            result = max(a, b, c) if negative else c
            other = b if result == a else a
            formula = f"{names[a]} + {names[b]}"
            if result != c:
                formula = f"{names[c]} - {names[other]}"
            yield Derived(result, formula, n, tuple({a, b, c} - {result}))
            # If that is the sum of others already: equity is what debts leave of all assets.
            last, other = max(a, b), min(a, b)
            yield Derived(last, f"{names[c]} - {names[other]}", n, (other, c))
    for share, whole in ((i, j) for i in range(X.shape[1]) for j in range(X.shape[1]) if i != j):
        product = X[:, share] * X[:, whole]
        for amount, n in _equal(X, product, EXACT * np.abs(product), (share, whole)):
            if share < whole < amount:
                yield Derived(amount, f"{names[share]} * {names[whole]}", n, (share, whole))
        for factor in (1.0, 100.0, *_rates(X, product)):
            slack = (tens[share] * np.abs(X[:, whole]) + EXACT * np.abs(product)) / factor
            for part, n in _equal(X, product / factor, slack, (share, whole)):
                sd = np.nanstd(X[:, part])
                # Else it is what was divided by, or, without a factor, an amount by a price.
                last = share > (whole if factor > 1.0 else max(part, whole))
                if not last or np.nanmedian(slack) > MOST_ROUNDED * sd:
                    continue
                times = f"{factor:.0f} * " if factor > 1.0 else ""
                formula = f"{times}{names[part]} / {names[whole]}"
                yield Derived(share, formula, n, (part, whole))


def _rates(X: Values, product: Values) -> list[float]:
    """Return the powers of ten that a product may be of some column, as cases per 100,000 are."""
    few = np.flatnonzero(np.isfinite(product) & (product != 0.0))[:FIRST_ROWS]
    with np.errstate(divide="ignore"):
        ratio = product[few, None] / X[few]
    return [rate for rate in RATES if np.any(np.sum(np.abs(ratio / rate - 1.0) < NEAR, 0) >= 2)]


def _totals(names: Sequence[str], X: Values) -> Iterator[Derived]:
    """Yield columns that are the sum of three or more that stand together."""
    n_columns = X.shape[1]
    for first in range(n_columns - 2):
        total, size = X[:, first].copy(), np.abs(X[:, first])
        for last in range(first + 1, n_columns):
            total += X[:, last]
            size += np.abs(X[:, last])
            if np.isfinite(total).sum() < LEAST_ROWS:
                break
            run = tuple(range(first, last + 1))
            if len(run) < FEWEST:
                continue
            for c, n in _equal(X, total, EXACT * size, run):
                yield Derived(c, " + ".join(names[d] for d in run), n, run)


def _spans(
    names: Sequence[str], X: Values, half: Values, moments: Mapping[int, str]
) -> Iterator[Derived]:
    """Yield numbers that are the time between two dates, or two times of day."""
    for c, later, earlier, factor, n in spans(X, half, moments):
        apart = f"{names[later]} - {names[earlier]}"
        times = f"* {factor:g}" if factor > 1.0 else f"/ {1.0 / factor:g}"
        formula = f"({apart}) {times}" if factor != 1.0 else apart
        yield Derived(c, formula, n, (later, earlier))


def _conversions(names: Sequence[str], X: Values, half: Values) -> Iterator[Derived]:
    """Yield columns that are an earlier one in another unit."""
    for one in conversions(X, half):
        factor, shift = float(one.factor), float(one.shift)
        sign = "-" if (shift < 0.0) == (one.c > one.a) else "+"
        size = f"{abs(shift):.9g}"
        if factor == -1.0 and shift:  # either way
            later, earlier = max(one.c, one.a), min(one.c, one.a)
            yield Derived(later, f"{shift:.9g} - {names[earlier]}", one.n_rows, (earlier,))
            continue
        if one.c > one.a:
            times = f"{names[one.a]} * {factor:.9g}" if factor != 1.0 else names[one.a]
            formula = f"{times} {sign} {size}" if shift else times
            yield Derived(one.c, formula, one.n_rows, (one.a,))
            continue
        formula = f"{names[one.c]} {sign} {size}" if shift else names[one.c]
        if factor != 1.0:
            formula = f"({formula}) / {factor:.9g}" if shift else f"{formula} / {factor:.9g}"
        yield Derived(one.a, formula, one.n_rows, (one.c,))


def _equal(
    X: Values, value: Values, slack: Values, of: tuple[int, ...]
) -> Iterator[tuple[int, int]]:
    """Yield the columns that are a value (n,) of others in all rows known, and how many these are.

    All of them vary there.
    """
    for step in (FIRST_LOOK, 1):  # hardly any pair needs more than some rows
        apart = np.abs(X[::step] - value[::step, None])
        known = np.isfinite(apart)
        fits = np.all(~known | (apart <= slack[::step, None]), axis=0)
        if not np.delete(fits, of).any():
            return
    n = known.sum(axis=0)
    for c in np.flatnonzero(fits & (n >= LEAST_ROWS)):
        rows = known[:, c]
        if c not in of and all(np.unique(X[rows, d]).size >= FEWEST for d in (*of, int(c))):
            yield int(c), int(n[c])


def _half_place(x: Values) -> float:
    """Return half a unit of the last decimal that numbers show."""
    seen = x[np.isfinite(x)]
    places = (k for k in PLACES if np.allclose(seen, np.round(seen, k), rtol=1e-12, atol=0.0))
    return next((0.5 * 10.0**-k for k in places), 0.0)
