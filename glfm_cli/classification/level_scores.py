"""Levels by what they say of the label, of columns that have many, or levels in an order.

An indicator for each of fifty levels is fifty features: experts lose the rest of the table among
them. Such a column is seen instead as the scores of its levels, one for each level k of the label
but the first, as in [Micci-Barreca 2001]:

    a_rk = log(p_rk / p_r0) - log(p_k / p_0)         p_k : share of the label's level k
    p_rk = (c_rk + s p_k) / (n_r + s)                c_rk : rows of level r with it, n_r of all

The c_r are Dirichlet-multinomial of mean p and strength s, which is where they are most probable.
If that makes them hardly more probable than levels without a difference, all scores are 0. A row's
own label is never in its scores: each fold of the training rows has those of the other folds.

Levels in an order are a number, on which rules act in a line. Where their rows say that they do not
lie on one (the first unlike the others, say), such a column is seen by scores, too. There the c_r
have the means q_r of a logistic regression on the places u_r of levels, with a prior of its slopes:

    p_rk = (c_rk + s q_rk) / (n_r + s),  log(q_rk / q_r0) = alpha_k + beta_k u_r,  beta ~ N(0, 10)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, log_softmax

from glfm_cli.arrays import Array
from glfm_cli.classification.level_codes import level_codes
from glfm_cli.encoding import EncodedColumn

MANY = 10  # levels up to which each but one has an indicator
FOLDS = 10
EVIDENCE = 1.0  # gain of log likelihood from which levels differ
STRENGTHS = 0.1, 1e5  # rows that the shares of all are worth in those of a level
SLOPES = 10.0  # prior variance of slopes


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
    """Return whether a column may be seen by scores: fewer features than its indicators are."""
    many = 2 if encoded.column.ordinal else MANY
    return len(encoded.levels) > max(many, n_labels)


def places_of(encoded: EncodedColumn) -> Array | None:
    """Return the places (R,) of levels in an order, their normal scores; None of others."""
    if not encoded.column.ordinal:
        return None
    x, n_levels = encoded.x[encoded.observed].astype(np.intp), len(encoded.levels)
    codes, _ = level_codes(np.bincount(x, minlength=n_levels), (), ordered=True)
    return np.asarray(codes[:, 0])


def level_scores(
    x: Array,
    code: Array,
    fold: Array,
    n_levels: int,
    n_labels: int,
    places: Array | None = None,
) -> LevelScores:
    """Return the scores of levels, all 0 where they say nothing, or nothing that a line does not.

    x : (n,) level of each training row, NaN where missing
    code : (n,) level of its label, NaN where missing
    fold : (n,) fold of each row
    places : (R,) of levels in an order
    """
    seen = ~np.isnan(x)
    level = np.where(seen, x, 0.0).astype(np.intp)
    label = np.nan_to_num(code).astype(np.intp)
    both = seen & ~np.isnan(code)

    def counted(rows: Array) -> Array:
        count = np.bincount(level[rows] * n_labels + label[rows], minlength=n_levels * n_labels)
        return count.reshape(n_levels, n_labels).astype(np.float64)

    count = counted(both)
    s = strength(count, places)
    levels = scores_of(count, s, places)
    rows = np.where(seen[:, None], levels[level], 0.0)
    for k in np.unique(fold[both]):
        own = both & (fold == k)
        rows[own] = scores_of(count - counted(own), s, places)[level[own]]
    return LevelScores(levels, rows, np.bincount(level[seen], minlength=n_levels) / seen.sum())


def shares(count: Array) -> Array:
    """Return the shares (K,) of labels; one that no row has is not impossible."""
    total = count.sum(axis=0) + 0.5
    return np.asarray(total / total.sum())


def line_shares(count: Array, places: Array) -> Array:
    """Return q (R, K), by the logistic regression of labels on the places of levels."""
    from scipy.optimize import minimize  # takes long to import

    n, K = count.sum(axis=1), count.shape[1]
    x = np.column_stack([np.ones(places.size), places])

    def log_q(w: Array) -> Array:
        return np.asarray(log_softmax(np.column_stack([0.0 * n, x @ w.reshape(2, K - 1)]), axis=1))

    def loss(w: Array) -> tuple[float, Array]:
        log_p, slopes = log_q(w), np.append(np.zeros(K - 1), w[K - 1 :]) / SLOPES
        rise = x.T @ (count - n[:, None] * np.exp(log_p))[:, 1:]
        return float(0.5 * slopes @ w - np.sum(count * log_p)), slopes - rise.ravel()

    share = shares(count)
    start = np.append(np.log(share[1:] / share[0]), np.zeros(K - 1))
    return np.exp(log_q(minimize(loss, start, jac=True, method="BFGS").x))


def scores_of(count: Array, s: float, places: Array | None = None) -> Array:
    """Return the scores (R, K - 1) of levels with so many rows (R, K) of each label."""
    share = shares(count)
    if not np.isfinite(s):
        return np.zeros((len(count), share.size - 1))
    prior = share if places is None else line_shares(count, places)
    log_p = np.log(count + s * prior) - np.log(share)
    return np.asarray(log_p[:, 1:] - log_p[:, :1])


def strength(count: Array, places: Array | None = None) -> float:
    """Return the s under which Dirichlet-multinomial counts (R, K) are likeliest.

    Infinite where the counts are nearly as probable without a difference between levels, or on
    their line.
    """
    from scipy.optimize import minimize_scalar  # takes long to import

    n = count.sum(axis=1)
    prior = shares(count) if places is None else line_shares(count, places)

    def surprise(log_s: float) -> float:
        s = np.exp(log_s)
        log_p = (gammaln(count + s * prior) - gammaln(s * prior)).sum(axis=1)
        return -float((log_p + gammaln(s) - gammaln(n + s)).sum())

    best = minimize_scalar(surprise, bounds=np.log(STRENGTHS), method="bounded")
    alike = -float((count * np.log(prior)).sum())
    return float(np.exp(best.x)) if alike - best.fun > EVIDENCE else np.inf
