"""A correction of forecasts that pool draws, per column.

A forecast that averages over draws and chains is often too modest, and the shape that a model gives
its noise is seldom quite right. Both show in forecasts of observed cells that were made without
them (hidden_cells.py), and are mended by

    levels    p_r^a / sum_q p_q^a,                           temperature scaling
              log a linear in the largest of the p_r
    numbers   density p(x) g(F(x)),  F the forecast's distribution function,
              g(u) prop. to exp(b_1 f_1(u) + ... + b_4 f_4(u)),    0 <= u <= 1,
              b piecewise linear in the log of the sd of the forecast's latent number

with f_k the orthonormal Legendre polynomials on [0, 1]: b_1 moves a forecast, b_2 widens it (> 0)
or draws it together, b_3 skews it, b_4 > 0 makes its middle and tails heavier. A value with a
probability of its own, F jumping from v to u there, gets the mean of g between them. Forecasts of
one column may be wrong in different ways: where another column says the same (a premium and its
tax, a name and its code) most are nearly certain and too modest, those of rows in which the other
is missing, too, are neither; hence a and b depend on how certain a forecast is. Pools:
Gneiting and Ranjan, Electronic Journal of Statistics 7 (2013); g: Neyman, Skandinavisk
Aktuarietidskrift 20 (1937).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from glfm_cli.arrays import Array

EDGES = np.linspace(0.0, 1.0, 4097)  # between which distribution functions are interpolated
GRID = 0.5 * (EDGES[1:] + EDGES[:-1])
LEAST = 1e-300  # keeps logarithms of probabilities finite
KNOTS = 4  # evenly spaced logarithms of sds, between which b is linear
STEPS = 48  # between the first and the last, to which those of cells are rounded
# Nodes and weights of integrals over u: of such smooth functions exact to rounding.
_NODES, _WEIGHTS = (0.5 * x for x in np.polynomial.legendre.leggauss(48))
LEAST_VARIANCE = 1e-24  # of a latent number


def polynomials(u: Array) -> Array:
    """Return f_1 to f_4 at u in [0, 1], as (4, n)."""
    t = 2.0 * np.asarray(u, dtype=np.float64) - 1.0
    s = t * t
    parts = t, 1.5 * s - 0.5, (2.5 * s - 1.5) * t, (4.375 * s - 3.75) * s + 0.375
    return np.stack([np.sqrt(2.0 * k + 1.0) * part for k, part in enumerate(parts, 1)])


_ON_GRID, _AT_NODES = polynomials(GRID), polynomials(0.5 + _NODES)
_PRODUCTS = (_AT_NODES[:, None] * _AT_NODES).reshape(-1, _NODES.size)


@dataclass(frozen=True, eq=False)
class Recalibration:
    """What is corrected in the forecasts of D columns; exponent 1 and tilt 0 leave one as it is.

    exponents : (D, 2) a > 0 of the columns of levels, of a forecast that gives all levels the same
        probability, and of a certain one
    tilts : (D, KNOTS, 4) b of the columns of numbers
    log_sds : (D, 2) of latent numbers, at the first and the last knot, and beyond
    weights : (D, M) how much each of M candidates counts in a forecast, rows adding up to 1; None
        where chains are all of one model
    lone : the same of cells of groups that have no value of their column (lone_cells.py); None
        where no column has several such groups
    without : (G, D) bool, these groups of such columns; None likewise
    """

    exponents: Array
    tilts: Array
    log_sds: Array
    weights: Array | None = None
    lone: Recalibration | None = None
    without: Array | None = None

    @classmethod
    def alike(cls, exponents: Array, tilts: Array, weights: Array | None = None) -> Recalibration:
        """Return one of a (D,) and b (D, 4), whatever the certainty of a forecast."""
        a, b = np.column_stack([exponents, exponents]), np.repeat(tilts[:, None], KNOTS, axis=1)
        return cls(a, b, np.zeros((a.shape[0], 2)), weights)

    def corrects(self, d: int) -> bool:
        """Return whether forecasts of column d are not left as they are."""
        return bool((self.exponents[d] != 1.0).any() or self.tilts[d].any())

    def powers(self, d: int, p: Array) -> Array:
        """Return a (n,) of forecasts p (n, R) of the levels of column d."""
        first, last = np.log(self.exponents[d])
        found: Array = np.exp(first + (last - first) * certainty(p))
        return found

    def of_levels(self, d: int, p: Array) -> Array:
        """Return corrected probabilities (n, R) of the levels of column d."""
        if not self.corrects(d):
            return p
        q = np.exp(self.powers(d, p)[:, None] * np.log(np.maximum(p, LEAST)))
        return q / q.sum(axis=1, keepdims=True)

    def uncorrected(self, d: int, at: Sequence[float] | Array, sd: Array) -> Array:
        """Return which quantiles (n, Q) of forecasts are the corrected quantiles `at`, in (0, 1).

        sd : (n,) of the latent numbers of the cells of column d under their forecasts
        """
        found = np.tile(np.asarray(at, dtype=np.float64), (sd.size, 1))
        for cells, b in self._groups(d, sd):
            found[cells] = np.interp(at, _below(b), EDGES)
        return found

    def corrected(self, d: int, u: Array, sd: Array) -> Array:
        """Return the corrected distribution functions (..., n) where the forecasts' are u."""
        found = np.array(u, dtype=np.float64)
        for cells, b in self._groups(d, sd):
            found[..., cells] = np.interp(found[..., cells], EDGES, _below(b))
        return found

    def log_factor(self, d: int, u: Array, v: Array, sd: Array) -> Array:
        """Return the log of the mean of g between v and u (n,), or of g there when they meet.

        u, v : the forecasts' distribution functions at values of column d, and just below them
        """
        found, width = np.zeros(u.size), u - v
        f = polynomials(np.clip(0.5 * (u + v), 0.0, 1.0))
        for cells, b in self._groups(d, sd):
            found[cells] = log_tilt(b, f[:, cells])
            wide = np.arange(u.size)[cells][width[cells] > EDGES[1]]
            if wide.size:
                mass = np.diff(np.interp([v[wide], u[wide]], EDGES, _below(b)), axis=0)[0]
                found[wide] = np.log(mass / width[wide])
        return found

    def _groups(self, d: int, sd: Array) -> Iterator[tuple[Array | slice, Array]]:
        """Yield the cells of column d that share a tilt that is not 0, and that tilt."""
        b = self.tilts[d]
        if not b.any():
            return
        if (b == b[0]).all():
            yield slice(None), b[0]
            return
        steps = steps_between(self.log_sds[d], np.log(sd))
        curve = between_knots(b)
        for step in np.unique(steps):
            yield np.flatnonzero(steps == step), curve[step]


def certainty(p: Array) -> Array:
    """Return how certain forecasts p (n, R) of levels are: from 0, all alike, to 1, one certain."""
    least = 1.0 / p.shape[1]
    found: Array = (p.max(axis=1) - least) / (1.0 - least)
    return found


def sd_of(first: Array, second: Array) -> Array:
    """Return the sds of latent numbers, given two moments."""
    found: Array = np.sqrt(np.maximum(second - first**2, LEAST_VARIANCE))
    return found


def steps_between(ends: Array, log_sd: Array) -> Array:
    """Return the nearest of the `STEPS` + 1 places between the ends, the ends included."""
    share = (log_sd - ends[0]) / max(ends[1] - ends[0], LEAST)
    return np.rint(STEPS * np.clip(share, 0.0, 1.0)).astype(np.intp)


def between_knots(b: Array) -> Array:
    """Return b (KNOTS, 4) at all the places, (`STEPS` + 1, 4)."""
    at = np.linspace(0.0, KNOTS - 1.0, STEPS + 1)
    return np.stack([np.interp(at, np.arange(KNOTS), own) for own in b.T], axis=1)


def _below(b: Array) -> Array:
    """Return the integral of g from 0 to each of the edges."""
    mass = np.exp(log_tilt(b, _ON_GRID))
    return np.concatenate([[0.0], np.cumsum(mass) / mass.sum()])


def log_tilt(b: Array, f: Array) -> Array:
    """Return log g (n,) where the polynomials are f (4, n)."""
    found: Array = b @ f - tilt_moments(b[None])[0][0]
    return found


def tilt_moments(b: Array) -> tuple[Array, Array, Array]:
    """Return what the tilts b (J, 4) make of the polynomials.

    Returns: the logarithms of the integrals of exp(b_1 f_1 + ... + b_4 f_4) over [0, 1] (J,), and
        their slopes and curvatures: the means (J, 4) and covariances (J, 4, 4) under g.
    """
    exponent = b @ _AT_NODES
    largest = exponent.max(axis=1, keepdims=True)
    g = np.exp(exponent - largest) * _WEIGHTS
    total = g.sum(axis=1, keepdims=True)
    g /= total
    mean = g @ _AT_NODES.T
    square = (g @ _PRODUCTS.T).reshape(-1, b.shape[1], b.shape[1])
    return (largest + np.log(total))[:, 0], mean, square - mean[:, :, None] * mean[:, None, :]
