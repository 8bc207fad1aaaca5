"""Levels by what they say of the label, of columns that have many.

An indicator for each of fifty levels is fifty features: experts lose the rest of the table among
them. Such a column is seen instead as the scores of its levels, one for each level k of the label
but the first, as in [Micci-Barreca 2001]:

    a_rk = log(p_rk / p_r0) - log(p_k / p_0)         p_k : share of the label's level k
    p_rk = (c_rk + s p_k) / (n_r + s)                c_rk : rows of level r with it, n_r of all

The c_r are Dirichlet-multinomial of mean p and strength s, which is where they are most probable.
If that makes them hardly more probable than levels without a difference, all scores are 0. A row's
own label is never in its scores: each fold of the training rows has those of the other folds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from glfm_cli.arrays import Array
from glfm_cli.encoding import EncodedColumn

MANY = 10  # levels up to which each but one has an indicator
FOLDS = 10
EVIDENCE = 1.0  # gain of log likelihood from which levels differ
STRENGTHS = 0.1, 1e5  # rows that the shares of all are worth in those of a level


@dataclass(frozen=True, eq=False)
class LevelScores:
    """The scores of a column's levels.

    levels : (R, K - 1) by all labelled rows
    rows : (n, K - 1) of the training rows, each by the labels of other folds; 0 where missing
    share : (R,) of the observed cells
    """

    levels: Array
    rows: Array
    share: Array


def wants_scores(encoded: EncodedColumn, n_labels: int) -> bool:
    """Return whether a column is seen by scores: fewer features than its indicators are."""
    n_levels = len(encoded.levels)
    return not encoded.column.ordinal and n_levels > max(MANY, n_labels)


def level_scores(x: Array, code: Array, fold: Array, n_levels: int, n_labels: int) -> LevelScores:
    """Return the scores of levels.

    x : (n,) level of each training row, NaN where missing
    code : (n,) level of its label, NaN where missing
    fold : (n,) fold of each row
    """
    seen = ~np.isnan(x)
    level = np.where(seen, x, 0.0).astype(np.intp)
    label = np.nan_to_num(code).astype(np.intp)
    both = seen & ~np.isnan(code)

    def counted(rows: Array) -> Array:
        count = np.bincount(level[rows] * n_labels + label[rows], minlength=n_levels * n_labels)
        return count.reshape(n_levels, n_labels).astype(np.float64)

    count = counted(both)
    s = strength(count)
    levels = scores_of(count, s)
    rows = np.where(seen[:, None], levels[level], 0.0)
    for k in np.unique(fold[both]):
        own = both & (fold == k)
        rows[own] = scores_of(count - counted(own), s)[level[own]]
    return LevelScores(levels, rows, np.bincount(level[seen], minlength=n_levels) / seen.sum())


def shares(count: Array) -> Array:
    """Return the shares (K,) of labels; one that no row has is not impossible."""
    total = count.sum(axis=0) + 0.5
    return np.asarray(total / total.sum())


def scores_of(count: Array, s: float) -> Array:
    """Return the scores (R, K - 1) of levels with so many rows (R, K) of each label."""
    share = shares(count)
    if not np.isfinite(s):
        return np.zeros((len(count), share.size - 1))
    log_p = np.log(count + s * share) - np.log(share)
    return np.asarray(log_p[:, 1:] - log_p[:, :1])


def strength(count: Array) -> float:
    """Return the s under which Dirichlet-multinomial counts (R, K) are likeliest.

    Infinite where the counts are nearly as probable without a difference between levels.
    """
    from scipy.optimize import minimize_scalar  # takes long to import

    n, share = count.sum(axis=1), shares(count)

    def surprise(log_s: float) -> float:
        s = np.exp(log_s)
        log_p = (gammaln(count + s * share) - gammaln(s * share)).sum(axis=1)
        return -float((log_p + gammaln(s) - gammaln(n + s)).sum())

    best = minimize_scalar(surprise, bounds=np.log(STRENGTHS), method="bounded")
    alike = -float((count @ np.log(share)).sum())
    return float(np.exp(best.x)) if alike - best.fun > EVIDENCE else np.inf
