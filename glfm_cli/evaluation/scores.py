"""Scores of predictions against the truth, each a small pure function.

    x     (n,) the hidden values of one column, in its own unit, or its level codes 0..R-1
    guess (n,) the values or codes put in their place
    p     (n, R) predictive probabilities of the levels
    q     (n, Q) predictive quantiles at ascending probabilities

Functions that compare cell by cell return (n,); the others one number. Lower is better, but for
`log_scores` of methods, coverage and the frequencies of `reliability`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from glfm_cli.arrays import Array

BINS = 10  # of the probabilities of levels, where calibration is judged


# ------------------------------------------------------------------------ errors of one column


def normalized_rmse(x: Array, guess: Array, span: float) -> float:
    """Return sqrt(mean (x - guess)^2) / span, for numbers  [GLFM section 5.1].

    span : largest less smallest known value of the column, > 0
    """
    # Divided first: the square of a large difference might overflow.
    return float(np.sqrt(np.mean(((x - guess) / span) ** 2)))


def share_wrong(x: Array, guess: Array) -> float:
    """Return the share of cells whose level is another one, for categories  [GLFM section 5.1]."""
    return float(np.mean(x != guess))


def rank_displacement(x: Array, guess: Array, n_levels: int) -> float:
    """Return mean |x - guess| / (R - 1), for ordered levels  [GLFM section 5.1]."""
    return float(np.mean(np.abs(x - guess)) / (n_levels - 1))


def mean_absolute_error(x: Array, guess: Array) -> float:
    """Return mean |x - guess|, in the column's unit, or in steps between levels."""
    return float(np.mean(np.abs(x - guess)))


# -------------------------------------------------------------- scores of predictive distributions


def crps(x: Array, q: Array) -> Array:
    """Return the continuous ranked probability score (n,), in the unit of x.

    CRPS = integral (F(t) - 1{x <= t})^2 dt = 2 integral_0^1 (1{x < q_a} - a)(q_a - x) da,
    the mean of the quantile losses  [Gneiting and Raftery 2007, sect. 4.2; Laio and Tamea 2007],
    here by the midpoint rule.

    q : (n, Q) float64; quantiles at (j + 1/2) / Q, j = 0..Q-1. Equal columns make a point of the
        distribution, and the score is |x - q|.
    """
    n_points = q.shape[1]
    a = (np.arange(n_points) + 0.5) / n_points
    loss = (x[:, None] - q) * (a - (x[:, None] < q))
    return 2.0 * loss.mean(axis=1)


def ranked_probability_score(x: Array, p: Array) -> Array:
    """Return sum over r < R - 1 of (P(X <= r) - 1{x <= r})^2 (n,), for ordered levels.

    [Epstein 1969; Gneiting and Raftery 2007, sect. 4.2]; in steps between levels, as CRPS is in the
    unit of a number.
    """
    codes = np.arange(p.shape[1] - 1)
    return np.sum((np.cumsum(p, axis=1)[:, :-1] - (x[:, None] <= codes)) ** 2, axis=1)


def brier_score(x: Array, p: Array) -> Array:
    """Return sum over r of (p_r - 1{x = r})^2 (n,), for categories, from 0 to 2  [Brier 1950]."""
    hit = x[:, None] == np.arange(p.shape[1])
    return np.sum((p - hit) ** 2, axis=1)


def log_probability(x: Array, p: Array) -> Array:
    """Return log p_x (n,)."""
    with np.errstate(divide="ignore"):
        return np.log(p[np.arange(x.size), x.astype(int)])


# ------------------------------------------------------------------------ intervals, calibration


def covered(x: Array, low: Array, high: Array) -> Array:
    """Return whether each value lies in its interval, ends included (n,) bool."""
    return (x >= low) & (x <= high)


class Reliability(NamedTuple):
    """Forecasts of levels, by bins of their probability.

    n : (BINS,) forecasts;  p : (BINS,) sum of their probabilities;  hits : (BINS,) how many came
    true. Every level of every cell is a forecast.
    """

    n: Array
    p: Array
    successes: Array

    def __add__(self, other: object) -> Reliability:
        """Return both sets of forecasts together."""
        if not isinstance(other, Reliability):
            return NotImplemented
        return Reliability(self.n + other.n, self.p + other.p, self.successes + other.successes)


def reliability(x: Array, p: Array) -> Reliability:
    """Return how often levels came true beside how probable they were said to be.

    Bins are of equal width; a bin holds its lower end, the last one also 1.
    """
    bins = np.minimum((p * BINS).astype(int), BINS - 1)
    hit = bins[np.arange(x.size), x.astype(int)]
    return Reliability(
        np.bincount(bins.ravel(), minlength=BINS).astype(np.float64),
        np.bincount(bins.ravel(), p.ravel(), minlength=BINS),
        np.bincount(hit, minlength=BINS).astype(np.float64),
    )


def calibration_error(tally: Reliability) -> float:
    """Return the sum over bins of (share of forecasts) |mean probability - share that came true|.

    The expected calibration error  [Naeini, Cooper and Hauskrecht 2015], of every level.
    """
    return float(np.sum(np.abs(tally.p - tally.successes)) / np.sum(tally.n))
