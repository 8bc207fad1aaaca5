"""A correction of forecasts that pool draws, per column.

A forecast that averages over draws and chains is often too modest, and the shape that a model gives
its noise is seldom quite right. Both show in forecasts of observed cells that were made without
them (hidden_cells.py), and are mended by

    levels    p_r^a / sum_q p_q^a                            temperature scaling
    numbers   density p(x) g(F(x)),  F the forecast's distribution function,
              g(u) prop. to exp(b_1 f_1(u) + ... + b_4 f_4(u)),    0 <= u <= 1

with f_k the orthonormal Legendre polynomials on [0, 1]: b_1 moves a forecast, b_2 widens it (> 0)
or draws it together, b_3 skews it, b_4 > 0 makes its middle and tails heavier. A value with a
probability of its own, F jumping from v to u there, gets the mean of g between them. Pools:
Gneiting and Ranjan, Electronic Journal of Statistics 7 (2013); g: Neyman, Skandinavisk
Aktuarietidskrift 20 (1937).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glfm_cli.arrays import Array

GRID = (np.arange(4096) + 0.5) / 4096  # where integrals over u are taken
EDGES = np.linspace(0.0, 1.0, GRID.size + 1)
LEAST = 1e-300  # keeps logarithms of probabilities finite


def polynomials(u: Array) -> Array:
    """Return f_1 to f_4 at u in [0, 1], as (4, n)."""
    t = 2.0 * np.asarray(u, dtype=np.float64) - 1.0
    s = t * t
    parts = t, 1.5 * s - 0.5, (2.5 * s - 1.5) * t, (4.375 * s - 3.75) * s + 0.375
    return np.stack([np.sqrt(2.0 * k + 1.0) * part for k, part in enumerate(parts, 1)])


_ON_GRID = polynomials(GRID)


@dataclass(frozen=True, eq=False)
class Recalibration:
    """What is corrected in the forecasts of D columns; exponent 1 and tilt 0 leave one as it is.

    exponents : (D,) a > 0 of the columns of levels
    tilts : (D, 4) b of the columns of numbers
    weights : (D, M) how much each of M candidates counts in a forecast, rows adding up to 1; None
        where chains are all of one model
    """

    exponents: Array
    tilts: Array
    weights: Array | None = None

    def of_levels(self, d: int, p: Array) -> Array:
        """Return corrected probabilities (n, R) of the levels of column d."""
        if self.exponents[d] == 1.0:
            return p
        q = np.exp(self.exponents[d] * np.log(np.maximum(p, LEAST)))
        return q / q.sum(axis=1, keepdims=True)

    def uncorrected(self, d: int, at: Sequence[float]) -> Sequence[float]:
        """Return which quantiles of the forecast are the corrected quantiles `at`, in (0, 1)."""
        if not self.tilts[d].any():
            return at
        return np.interp(at, _below(self.tilts[d]), EDGES).tolist()

    def corrected(self, d: int, u: Array) -> Array:
        """Return the corrected distribution function where the forecast's is u, in [0, 1]."""
        return np.interp(u, EDGES, _below(self.tilts[d]))

    def log_factor(self, d: int, u: Array, v: Array) -> Array:
        """Return the log of the mean of g between v and u (n,), or of g there when they meet.

        u, v : the forecasts' distribution functions at values of column d, and just below them
        """
        b, width = self.tilts[d], u - v
        found = log_tilt(b, polynomials(np.clip(0.5 * (u + v), 0.0, 1.0)))
        wide = width > EDGES[1]
        if wide.any():
            mass = np.diff(np.interp([v[wide], u[wide]], EDGES, _below(b)), axis=0)[0]
            found[wide] = np.log(mass / width[wide])
        return found


def _below(b: Array) -> Array:
    """Return the integral of g from 0 to each of the edges."""
    mass = np.exp(log_tilt(b, _ON_GRID))
    return np.concatenate([[0.0], np.cumsum(mass) / mass.sum()])


def log_tilt(b: Array, f: Array) -> Array:
    """Return log g (n,) where the polynomials are f (4, n)."""
    return b @ f - log_mass(b)


def log_mass(b: Array) -> float:
    """Return the logarithm of the integral of exp(b_1 f_1 + ... + b_4 f_4) over [0, 1]."""
    return _integrand(b)[0]


def tilt_moments(b: Array) -> tuple[float, Array, Array]:
    """Return `log_mass`, and the means (4,) and covariance (4, 4) of the polynomials under g.

    These are its slope and its curvature.
    """
    total, g = _integrand(b)
    mean = np.mean(_ON_GRID * g, axis=1)
    off = _ON_GRID - mean[:, None]
    return total, mean, (g / GRID.size * off) @ off.T


def _integrand(b: Array) -> tuple[float, Array]:
    """Return the logarithm of the integral, and g on the grid."""
    exponent = b @ _ON_GRID
    largest = float(exponent.max())
    g = np.exp(exponent - largest)
    mean = float(np.mean(g))
    return largest + float(np.log(mean)), g / mean
