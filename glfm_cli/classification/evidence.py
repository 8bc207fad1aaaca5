"""What is told of a number that is known only to lie between two others, as a normal density.

A feature has mean 0 and variance 1 over all rows. Between two ends N(0, 1) has a mean m and a
variance v; N(0, 1) times the normal density of precision 1 / v - 1 and mean m / (1 - v) has the
same. That density stands for the interval, so that rows stay normal under every expert: one step
of expectation propagation [Minka, Uncertainty in Artificial Intelligence 17 (2001)].
"""

from __future__ import annotations

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.links.intervals import interval_moments

NARROW = 1e-3  # sd; narrower intervals have their middle as mean
LEAST_VARIANCE = 1e-6
LEAST_PRECISION = 1e-6  # less says nothing
STEPS = 100  # of expectation and maximisation
TOLERANCE = 1e-6  # sd


def normal_evidence(low: Array, high: Array) -> tuple[Array, Array]:
    """Return mean and precision (n,) of the densities that stand for intervals; 0 of whole lines.

    low, high : (n,) in standard units, infinite where open
    """
    mean, var = _moments(low, high)
    precision = 1.0 / np.maximum(var, LEAST_VARIANCE) - 1.0
    says = precision > LEAST_PRECISION
    precision = np.where(says, precision, 0.0)
    return np.where(says, mean * (1.0 + precision) / np.where(says, precision, 1.0), 0.0), precision


def censored_moments(low: Array, high: Array) -> tuple[float, float]:
    """Return the likeliest mean and sd of normal numbers between `low` and `high` (n,).

    The sd is 1 where they do not tell any. EM algorithm [Dempster, Laird and Rubin, Journal of the
    Royal Statistical Society B 39 (1977)].
    """
    exact = low == high
    middle = np.where(np.isinf(low), high, np.where(np.isinf(high), low, 0.5 * low + 0.5 * high))
    mean, sd = float(middle.mean()), float(middle.std()) or 1.0
    for _ in range(STEPS):
        own, var = _moments((low - mean) / sd, (high - mean) / sd)
        own, var = np.where(exact, low, mean + sd * own), np.where(exact, 0.0, sd * sd * var)
        before = mean, sd
        mean = float(own.mean())
        sd = float(np.sqrt(np.mean(var + (own - mean) ** 2))) or 1.0
        if abs(mean - before[0]) + abs(sd - before[1]) < TOLERANCE * sd:
            break
    return mean, sd


def _moments(low: Array, high: Array) -> tuple[Array, Array]:
    """Return mean and variance (n,) of N(0, 1) between two ends."""
    with np.errstate(invalid="ignore", divide="ignore"):
        mean, var, _ = interval_moments(low, high)
        width, middle = high - low, 0.5 * low + 0.5 * high
    narrow = width < NARROW
    return np.where(narrow, middle, mean), np.where(narrow, width * width / 12.0, var)
