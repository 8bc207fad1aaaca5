"""Columns that are the score of items: their sum or mean, some of them turned round.

Items stand together, share a stem (mot_1, mot_2, mot_3r) and a range. An item turned round, of 1 to
4, counts as 5 less its number, so that a score is a sum of items, of either sign, and a number; it
is found by least squares, and must hold in all rows where all are known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

FEWEST_ITEMS = 3
MOST_STEPS = 10  # of an item, less one
NEAR = 0.05  # of a weight to a whole one
EXACT = 1e-6
_STEM = re.compile(r"[\W_]*\d+[\W_]*[a-z]{0,3}[\W_]*$", re.IGNORECASE)

Values = NDArray[np.float64]


def scores(
    names: Sequence[str], X: Values, half: Values, least: int
) -> Iterator[tuple[int, str, int, tuple[int, ...]]]:
    """Yield by place the scores of items: column, formula, how many rows show it, and the items.

    names : what formulas call the columns (p,);  X : (n, p) rows, NaN where a cell has no number
    half : (p,) half a unit of the last decimal of each;  least : rows in which all are known
    """
    for items in _runs(names, X):
        known = np.isfinite(X[:, items]).all(axis=1)
        for c in np.flatnonzero(np.isfinite(X[known]).sum(axis=0) >= max(least, 2 * len(items))):
            rows = known & np.isfinite(X[:, c])
            if c in items or np.ptp(X[rows, c]) == 0.0:
                continue
            found = _score(X[rows][:, items], X[rows, c], half[c])
            if found is None:
                continue
            signs, constant, share = found
            of = [(names[d], sign) for d, sign in zip(items, signs, strict=True) if sign]
            text = " + ".join(name for name, sign in of if sign > 0)
            text += "".join(f" - {name}" for name, sign in of if sign < 0)
            text += f" {'-' if constant < 0 else '+'} {abs(constant):g}" if constant else ""
            text = f"({text}) / {share}" if share > 1 else text
            used = tuple(d for d, sign in zip(items, signs, strict=True) if sign)
            yield int(c), text, int(rows.sum()), used


def _runs(names: Sequence[str], X: Values) -> Iterator[list[int]]:
    """Yield the items that stand together: of one stem, and of the same few whole numbers."""

    def kind(d: int) -> tuple[str, float, float]:
        x, name = X[np.isfinite(X[:, d]), d], names[d].strip("`")
        few = x.size and np.ptp(x) <= MOST_STEPS and np.all(x == np.floor(x))
        stem = _STEM.sub("", name) if few else name
        return (stem, x.min(), x.max()) if stem != name else (name, float(d), np.inf)

    for _, run in groupby(range(X.shape[1]), kind):
        items: list[int] = []
        for d in run:  # of an item and the same turned round, the first
            if not any(_is_turned(X[:, d], X[:, other]) for other in items):
                items.append(d)
        if len(items) >= FEWEST_ITEMS:
            yield items


def _is_turned(x: Values, y: Values) -> bool:
    """Return whether two items are one, turned round or not."""
    known = np.isfinite(x) & np.isfinite(y)
    return bool(known.any()) and 0.0 in (np.ptp((x + y)[known]), np.ptp((x - y)[known]))


def _score(items: Values, score: Values, half: float) -> tuple[Values, float, int] | None:
    """Return the signs of items, the number added, and by what the sum is divided, None if none."""
    A = np.column_stack([items, np.ones(len(items))])
    weights, _, rank, _ = np.linalg.lstsq(A, score, rcond=None)
    largest = np.abs(weights[:-1]).max()
    if rank < A.shape[1] or largest < EXACT:
        return None
    signs = np.round(weights[:-1] / largest)
    n_items = int(np.count_nonzero(signs))
    share = n_items if largest < 0.5 * (1.0 + 1.0 / n_items) else 1  # of a mean, of a sum
    if n_items < FEWEST_ITEMS or np.abs(share * weights[:-1] - signs).max() > NEAR:
        return None
    constant = float(np.round(share * weights[-1]))
    slack = EXACT + (half if share > 1 else 0.0)
    fits = np.abs((items @ signs + constant) / share - score) <= slack
    return (signs, constant, share) if bool(fits.all()) and signs.max() > 0 else None
