"""Columns that are a sum of others, some of them several times: points = 3 wins + draws.

Sought is c = k1 a1 + k2 a2 + ..., of two to four columns and whole k from 1 to 10 (of two columns
one above 1), by orthogonal matching pursuit: to the columns already taken the one is added that
goes with what they leave of c most closely, until nothing is left. It must hold in all rows where
all are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

MOST_TERMS = 4
LARGEST = 10  # number of times
NEAR = 0.01  # of a weight to a whole one
EXACT = 1e-6  # relative
FEWEST = 5  # different numbers of the sum

Values = NDArray[np.float64]


def weighted(
    names: Sequence[str], X: Values, least: int
) -> Iterator[tuple[int, str, int, tuple[int, ...]]]:
    """Yield by place the weighted sums: column, formula, how many rows show it, and its parts.

    names : what formulas call the columns (p,);  X : (n, p) rows, NaN where a cell has no number
    least : rows in which all are known
    """
    whole = [bool(np.all((x == np.floor(x))[np.isfinite(x)])) for x in X.T]
    for c in range(X.shape[1]):
        seen = X[np.isfinite(X[:, c]), c]
        if seen.size < least or np.unique(seen).size < FEWEST:
            continue
        parts = np.where(whole, X, np.nan) if whole[c] else X  # a mean is no part of a count
        if (found := _terms(parts, c, least)) is not None:
            times, n_rows = found
            text = " + ".join(names[d] if k == 1 else f"{k} * {names[d]}" for d, k in times.items())
            yield c, text, n_rows, tuple(times)


def _terms(X: Values, c: int, least: int) -> tuple[dict[int, int], int] | None:
    """Return how many times which columns are in column c, and how many rows show it."""
    taken: list[int] = []
    left = X[:, c]
    for _ in range(MOST_TERMS):
        goes = _correlations(X, left, least)
        goes[[c, *taken]] = 0.0
        if goes.max(initial=0.0) <= 0.0:
            return None
        taken.append(int(np.argmax(goes)))
        rows = np.isfinite(X[:, [c, *taken]]).all(axis=1)
        if rows.sum() < least:
            return None
        A = X[rows][:, taken]
        weights, _, rank, _ = np.linalg.lstsq(A, X[rows, c], rcond=None)
        left = X[:, c] - X[:, taken] @ weights
        if rank < len(taken):
            return None
        if np.abs(left[rows]).max() <= EXACT * np.abs(X[rows, c]).max():
            break
    else:
        return None
    whole = np.round(weights)
    if np.abs(weights - whole).max() > NEAR or whole.min() < 0 or whole.max() > LARGEST:
        return None
    times = {d: int(k) for d, k in sorted(zip(taken, whole, strict=True)) if k}
    if len(times) < 2 or (len(times) == 2 and max(times.values()) == 1):
        return None
    total = sum(k * X[:, d] for d, k in times.items())
    known = np.isfinite(total) & np.isfinite(X[:, c])
    exact = np.all(np.abs(total - X[:, c])[known] <= EXACT * np.abs(X[known, c]))
    return (times, int(known.sum())) if exact else None


def _correlations(X: Values, y: Values, least: int) -> Values:
    """Return how closely each column goes with y, from 0 to 1, in rows where both are known."""
    both = np.isfinite(X) & np.isfinite(y)[:, None]
    n = np.maximum(both.sum(axis=0), 1)
    x, y = np.where(both, X, 0.0), np.where(both, y[:, None], 0.0)
    x, y = (np.where(both, one - one.sum(axis=0) / n, 0.0) for one in (x, y))
    size = np.sqrt(np.sum(x**2, axis=0) * np.sum(y**2, axis=0))
    enough = (n >= least) & (size > 0.0)
    return np.where(enough, np.abs(np.sum(x * y, axis=0)) / np.where(enough, size, 1.0), 0.0)
