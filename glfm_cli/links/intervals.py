"""Probabilities and moments of intervals of a standard normal, without loss in the tails."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import log_ndtr, ndtr

from glfm_cli.arrays import Array

# Ends beyond it are moved there: their squares must not overflow.
FARTHEST = 1e150
LOG_SQRT_2PI = 0.5 * float(np.log(2.0 * np.pi))
# A narrower interval has the density at its middle times its width.
NARROW = 1e-5


def log_interval(a: Array, b: Array, log_width: Callable[[Array], Array] | None = None) -> Array:
    """Return log(Phi(b) - Phi(a)) for a <= b.

    a, b : (n,) float64; ends; infinite ends are allowed
    log_width : returns log(b - a) of some of them, told by a mask (n,): those so narrow that b - a
        itself has lost its digits
    """
    flip = a > 0.0
    a, b = np.where(flip, -b, a), np.where(flip, -a, b)
    a, b = np.clip(a, -FARTHEST, FARTHEST), np.clip(b, -FARTHEST, FARTHEST)
    width = b - a
    narrow, out = width < NARROW, np.empty(np.shape(width))
    # Across the centre the small tails are subtracted from 1; in a tail logs are.
    centre, tail = (b > 0.0) & ~narrow, ~((b > 0.0) | narrow)
    out[centre] = np.log1p(-(ndtr(a[centre]) + ndtr(-b[centre])))
    log_a, log_b = log_ndtr(a[tail]), log_ndtr(b[tail])
    ratio = np.exp(np.minimum(log_a - log_b, 0.0))
    out[tail] = log_b + np.log1p(-np.where(ratio < 1.0, ratio, 0.5))
    if narrow.any():
        middle = 0.5 * (a[narrow] + b[narrow])
        with np.errstate(divide="ignore"):
            size = np.log(width[narrow]) if log_width is None else log_width(narrow)
        out[narrow] = size - 0.5 * middle * middle - 0.5 * np.log(2.0 * np.pi)
    return out


def interval_moments(a: Array, b: Array) -> tuple[Array, Array, Array]:
    """Return mean, variance and log P(a < e < b) of a standard normal e between a and b."""
    # In the smaller tail, where a difference of logs keeps its digits.
    flip = a > -b
    low, high = np.where(flip, -b, a), np.where(flip, -a, b)
    log_z = log_ndtr(high)
    if not np.all(low == -np.inf):
        log_z = log_z + np.log1p(-np.exp(np.minimum(log_ndtr(low) - log_z, -1e-300)))
    with np.errstate(invalid="ignore"):
        at_high, slope = _at_end(high, log_z)
        mean, slope = -at_high, -slope
        if not np.all(low == -np.inf):
            at_low, more = _at_end(low, log_z)
            mean, slope = at_low - at_high, more + slope
    # Rounding, which the subtraction lets through far in the tails, stays below any use of it.
    var = np.clip(1.0 + slope - mean * mean, 0.0, 1.0)
    return np.where(flip, -mean, mean), var, log_z


def _at_end(t: Array, log_z: Array) -> tuple[Array, Array]:
    """Return the density at an end t over the interval's probability, and t times that."""
    there = np.isinf(t)
    density = np.where(there, 0.0, np.exp(log_pdf(t) - log_z))
    return density, np.where(there, 0.0, t * density)


def log_pdf(t: Array) -> Array:
    """Return the log density of a standard normal."""
    return np.asarray(-0.5 * np.square(np.clip(t, -FARTHEST, FARTHEST)) - LOG_SQRT_2PI)
