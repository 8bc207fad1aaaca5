"""Expectations of an increasing function u(y) of a normal y, possibly truncated.

y ~ N(eta_n, sd_n^2); u is a column's value in standard units. Two quadratures, each with nodes in
y common to all rows, so that u is evaluated once and a row costs one normal density or
distribution function a node:

    smooth u    E[u^k; a < y < b] = sum_m u(y_m)^k N(y_m; eta_n, sd_n^2) w_m
                Gauss-Legendre panels, narrow against sd and against the bends of u
    stepped u   E[u^k; y < b] = u_0^k P(y < b) + sum_m (jump of u^k at y_m) P(y_m <= y < b)
                exact for counts; piecewise linear u is summed by Simpson's rule

For many rows both are tabulated in eta and log sd, and interpolated by polynomials.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from glfm_cli._kernels._predictive import interpolate, sum_steps
from glfm_cli.arrays import Array

# Nothing of a standard normal lies beyond (1e-17).
REACH = 8.5
# The tilt e^{2 v} of a second moment shifts the integrand by 2 sharpness sd; followed this far.
FURTHEST_TILT = 12.0
PANEL_NODES, PANEL_WEIGHTS = np.polynomial.legendre.leggauss(16)
MOST_PANELS = 400
# Table steps a standard deviation: an error below 1e-6 of the range of u.
TABLE_STEPS = 8
# Its steps in log sd, which the moments follow smoothly.
TABLE_LOG_STEP = 0.08
ALIKE = 1e-12  # spread of log sd, below which a table has one
BAND = 2.0  # largest sd over the smallest of rows that share nodes and a table,
SPAN = 1000.0  # and how many of these sds they lie apart at most, for MOST_PANELS to be enough
TOGETHER = 128  # rows that are integrated at a time, next to one another


class Nodes(NamedTuple):
    """Where to evaluate the normal law, and the weights of the first and second moment."""

    at: Array  # (M,) latent scale, increasing
    weights: Array  # (M, 2)


def interval_mass(eta: Array, sd: Array, a: float, b: float) -> Array:
    """Return P(a < y < b), accurate when both ends lie in the same tail."""
    low, high = (a - eta) / sd, (b - eta) / sd
    flip = low > 0.0
    return ndtr(np.where(flip, -low, high)) - ndtr(np.where(flip, -high, low))


def _pdf(t: Array) -> Array:
    t = np.clip(t, -40.0, 40.0)  # 0 beyond, and squares must not overflow
    return np.exp(-0.5 * t * t) / np.sqrt(2.0 * np.pi)


def linear_moments(eta: Array, sd: Array, a: float, b: float) -> tuple[Array, Array]:
    """Return E[y; a < y < b] and E[y^2; a < y < b] in closed form."""
    mass = interval_mass(eta, sd, a, b)
    first, second = eta * mass, (eta * eta + sd * sd) * mass
    for end, sign in ((a, 1.0), (b, -1.0)):
        if np.isfinite(end):
            density = sign * sd * _pdf((end - eta) / sd)
            first = first + density
            second = second + np.where(density == 0.0, 0.0, eta + end) * density
    return first, second


def window(eta: Array, sd: Array, sharpness: float) -> tuple[float, float]:
    """Return the interval of y outside which no row's integrand matters."""
    reach = REACH + min(2.0 * sharpness * float(np.max(sd)), FURTHEST_TILT)
    return float(np.min(eta - reach * sd)), float(np.max(eta + reach * sd))


def smooth_nodes(
    u: Callable[[Array], Array], low: float, high: float, sd: float, sharpness: float
) -> Nodes:
    """Return Gauss-Legendre nodes for a smooth u on [low, high], sd the smallest of the rows."""
    width = min(3.0 * sd, 8.0 / sharpness if sharpness > 0.0 else np.inf)
    n_panels = int(min(np.ceil(max(high - low, 0.0) / width) + 1, MOST_PANELS))
    ends = np.linspace(low, high, n_panels + 1)
    half = 0.5 * np.diff(ends)[:, None]
    at = (ends[:-1, None] + half * (1.0 + PANEL_NODES)).ravel()
    w = (half * PANEL_WEIGHTS).ravel()
    value = u(at)
    return Nodes(at, np.stack([w * value, w * value * value], axis=1))


def segment_nodes(y: Array, u: Array, sd: float) -> Nodes:
    """Return Simpson's nodes for u linear between knots (y_j, u_j), sd the smallest of the rows."""
    n_pieces = min(int(np.ceil((y[-1] - y[0]) / (0.25 * sd))) + 1, 4096)
    fine = np.union1d(y, np.linspace(y[0], y[-1], n_pieces + 1))
    value = np.interp(fine, y, u)
    jump = np.diff(value)
    middle = 0.5 * (value[1:] + value[:-1])
    at = np.empty(2 * fine.size - 1)
    at[::2], at[1::2] = fine, 0.5 * (fine[1:] + fine[:-1])
    weights = np.zeros((at.size, 2))
    for k, slope in ((0, np.ones_like), (1, lambda v: 2.0 * v)):
        weights[:-2:2, k] += jump * slope(value[:-1]) / 6.0
        weights[1::2, k] += jump * slope(middle) * (4.0 / 6.0)
        weights[2::2, k] += jump * slope(value[1:]) / 6.0
    return Nodes(at, weights)


def jump_nodes(at: Array, before: Array, after: Array) -> Nodes:
    """Return the nodes of a u that jumps from `before` to `after` at `at`."""
    step = after - before
    return Nodes(at, np.stack([step, step * (after + before)], axis=1))


def integrate_density(nodes: Nodes, eta: Array, sd: Array, sharpness: float) -> Array:
    """Return (n, 2): sum over nodes of the normal density times the weights.

    Of rows next to one another, and of the nodes that matter to them.
    """
    out, order = np.empty((eta.size, 2)), np.argsort(eta)
    for start in range(0, eta.size, TOGETHER):
        rows = order[start : start + TOGETHER]
        e, s = eta[rows], sd[rows]
        near = slice(*np.searchsorted(nodes.at, window(e, s, sharpness)))
        t = np.subtract.outer(e, nodes.at[near])
        t /= s[:, None]
        np.clip(t, -40.0, 40.0, out=t)  # 0 beyond, and squares must not overflow
        t *= -0.5 * t
        np.exp(t, out=t)
        out[rows] = (t @ nodes.weights[near]) / (np.sqrt(2.0 * np.pi) * s)[:, None]
    return out


def integrate_steps(nodes: Nodes, eta: Array, sd: Array, b: float = np.inf) -> Array:
    """Return (n, 2): sum over nodes of P(y_m <= y < b) times the weights."""
    out = np.empty((eta.size, 2))
    weights, eta, sd = (np.ascontiguousarray(one) for one in (nodes.weights.T, eta, sd))
    sum_steps(nodes.at, weights, eta, sd, b, out)
    return out


def tabulate(compute: Callable[[Array, Array], Array], eta: Array, sd: Array) -> Array:
    """Return compute(eta, sd) (n, 2), by tables where that needs fewer evaluations.

    Interpolated in eta when one sd serves all rows, in eta and log sd otherwise. Nodes and tables
    are as narrow as the smallest sd asks for, so rows of much larger ones, or far away, have their
    own.
    """
    out = np.empty((eta.size, 2))
    for band in _groups(np.floor(np.log(sd / sd.min()) / np.log(BAND))):
        place = (eta[band] - eta[band].min()) / (SPAN * sd[band].min())
        for near in _groups(np.floor(place)):
            rows = band[near]
            out[rows] = _of_band(compute, eta[rows], sd[rows])
    return out


def _groups(key: Array) -> list[Array]:
    """Return the rows of each different key (n,), in their order."""
    order = np.argsort(key, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(key[order])) + 1)


def _of_band(compute: Callable[[Array, Array], Array], eta: Array, sd: Array) -> Array:
    """Return what `tabulate` does, of rows near one another whose sd are alike."""
    least, most = float(sd.min()), float(sd.max())
    low, high = float(eta.min()), float(eta.max())
    step = least / TABLE_STEPS
    n_eta = (high - low) / step + 8.0
    spread = float(np.log(most / least))
    n_sd = 1.0 if spread < ALIKE else max(np.ceil(spread / TABLE_LOG_STEP) + 1.0, 4.0)
    if not eta.size > 2.0 * n_eta * n_sd:
        return compute(eta, sd)
    shape = int(n_eta), int(n_sd)
    grid = np.linspace(low - 2.0 * step, high + 2.0 * step, shape[0])
    log_sd = np.linspace(np.log(least), np.log(most), shape[1])
    points = np.meshgrid(grid, np.exp(log_sd), indexing="ij")
    table = compute(points[0].ravel(), points[1].ravel()).reshape(*shape, 2)
    at = (eta - grid[0]) / (grid[1] - grid[0])
    along = np.zeros(eta.size)
    if n_sd > 1.0:
        along = (np.log(sd) - log_sd[0]) / (log_sd[1] - log_sd[0])
    out = np.empty((eta.size, 2))
    interpolate(np.ascontiguousarray(table), at, along, out)
    return out
