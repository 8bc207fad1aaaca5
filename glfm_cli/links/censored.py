"""Numbers of which some are known only to lie between two others: the likeliest normal law."""

from __future__ import annotations

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.links.intervals import interval_moments, log_interval, log_pdf

NARROW = 1e-3  # sd; narrower intervals have their middle as mean
STEPS = 100  # of expectation and maximisation
TOLERANCE = 1e-6  # sd
MOST = 5_000  # numbers that a choice between laws looks at


def censored_moments(low: Array, high: Array) -> tuple[float, float]:
    """Return the likeliest mean and sd of normal numbers between `low` and `high` (n,).

    The sd is 1 where they do not tell any. EM algorithm [Dempster, Laird and Rubin, Journal of the
    Royal Statistical Society B 39 (1977)].
    """
    told = np.isfinite(low) | np.isfinite(high)  # the whole line tells nothing
    if not told.any():
        return 0.0, 1.0
    low, high = low[told], high[told]
    exact = low == high
    middle = np.where(np.isinf(low), high, np.where(np.isinf(high), low, 0.5 * low + 0.5 * high))
    mean, sd = float(middle.mean()), float(middle.std()) or 1.0
    for _ in range(STEPS):
        own, var = moments_between((low - mean) / sd, (high - mean) / sd)
        own, var = np.where(exact, low, mean + sd * own), np.where(exact, 0.0, sd * sd * var)
        before = mean, sd
        mean = float(own.mean())
        sd = float(np.sqrt(np.mean(var + (own - mean) ** 2))) or 1.0
        if abs(mean - before[0]) + abs(sd - before[1]) < TOLERANCE * sd:
            break
    return mean, sd


def moments_between(low: Array, high: Array) -> tuple[Array, Array]:
    """Return mean and variance (n,) of N(0, 1) between two ends."""
    with np.errstate(invalid="ignore", divide="ignore"):
        mean, var, _ = interval_moments(low, high)
        width, middle = high - low, 0.5 * low + 0.5 * high
    narrow = width < NARROW
    return np.where(narrow, middle, mean), np.where(narrow, width * width / 12.0, var)


def is_log_normal(low: Array, high: Array) -> bool:
    """Return whether the logarithms of numbers look more normal than the numbers themselves.

    By the likelihood of both laws, each with the moments that fit best: of numbers cut off above,
    which show no tail, skewness tells too little.

    low, high : (n,) float64, ends of each number, equal where it is known; from 0, high above it
    """
    some = np.unique(np.linspace(0, low.size - 1, min(low.size, MOST)).astype(np.intp))
    low, high = low[some], high[some]
    exact = low == high
    with np.errstate(divide="ignore"):
        logs = np.log(low), np.log(high)
    slope = float(np.sum(logs[0][exact]))  # d log x / dx = 1 / x
    return _log_likelihood(*logs) - slope > _log_likelihood(low, high)


def _log_likelihood(low: Array, high: Array) -> float:
    """Return that of the normal law that fits best."""
    mean, sd = censored_moments(low, high)
    exact, a, b = low == high, (low - mean) / sd, (high - mean) / sd
    points = log_pdf(a[exact]) - np.log(sd)
    return float(points.sum() + log_interval(a[~exact], b[~exact]).sum())
