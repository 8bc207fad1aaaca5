"""Normal laws of what rows of a group share: series of rows in time, slopes and intercepts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from glfm_cli._kernels._series import (
    factor_series,
    fill_lines,
    fill_shared,
    fill_steps,
    solve_lower,
    solve_upper,
)
from glfm_cli.arrays import Array

CLOSEST = 1e-3  # of sqrt(l k): times that are closer are taken for so far apart
KNOTS = 10  # at most, of a curve
_BLOCK = 1 << 21  # numbers in the precisions of groups that are held at once


class Series(NamedTuple):
    """The times of groups, in order; rows of a group at the same time share one.

    node : (N,) the number of each row's time;  code, time : (M,)
    gaps : (U,) different times since the one before in the group, in median steps, infinite ones
        of the first in a group among them;  which : (M,) of them is that of a time
    step : the median step
    """

    node: Array
    code: Array
    time: Array
    gaps: Array
    which: Array
    step: float

    @classmethod
    def of(cls, code: Array, time: Array, step: float | None = None) -> Series:
        """Return that of rows; `step` is the one of a fit that they are added to."""
        order = np.lexsort((time, code))
        gap = np.diff(time[order], prepend=np.inf)
        gap[np.diff(code[order], prepend=-1) != 0] = np.inf
        first = gap > 0.0
        node = np.empty(order.size, dtype=np.int64)
        node[order] = np.cumsum(first) - 1
        if step is None:
            steps = gap[first & np.isfinite(gap)]
            step = float(np.median(steps)) if steps.size else 1.0
        at = order[first]
        gaps, which = np.unique(gap[first] / step, return_inverse=True)
        return cls(node, code[at], time[at], gaps, which, step)

    def sums(self, values: Array) -> Array:
        """Return the sums (M,) of what rows (N,) have, over those of each time."""
        return np.bincount(self.node, values, self.code.size)

    def steps(self, lengths: Sequence[float] | Array) -> Array:
        """Return what the gaps give the precision of x (U, 11), as `fill_steps` says.

        x = (u, sqrt(l k) du/dt) of variance 1 is Markov.
        """
        slow, fast = 1.0 / float(max(lengths)), 1.0 / float(min(lengths))
        fast = max(fast, slow * (1.0 + 1e-7))  # in place of the limit at equal lengths
        parts = np.empty((self.gaps.size, 11))
        fill_steps(self.gaps, slow, fast, CLOSEST / math.sqrt(slow * fast), parts)
        return parts


def knots_of(time: Array, groups: int) -> Array:
    """Return where a curve that groups share has knots: every time, or as many at equal ranks."""
    every = np.unique(time)
    if groups < 2 or every.size < 2:
        return np.empty(0)
    most = min(KNOTS, every.size)
    return every[np.round(np.linspace(0, every.size - 1, most)).astype(np.int64)]


def knots_precision(knots: Array) -> Array:
    """Return that of a curve's values (J, J): correlations (1 + r) e^-r, r in thirds of its range.
    """
    r = 3.0 * np.abs(knots[:, None] - knots) / np.ptp(knots)
    return np.linalg.inv((1.0 + r) * np.exp(-r) + 1e-9 * np.eye(knots.size))


def curve(knots: Array, values: Array, time: Array) -> Array:
    """Return the natural cubic splines (n, S) through values (J, S), straight beyond the knots."""
    h, inside = np.diff(knots)[:, None], np.clip(time, knots[0], knots[-1])
    rise, second = np.diff(values, axis=0) / h, np.zeros_like(values)
    between = 2.0 * np.diag(h[1:, 0] + h[:-1, 0]) + np.diag(h[1:-1, 0], 1) + np.diag(h[1:-1, 0], -1)
    second[1:-1] = np.linalg.solve(between, 6.0 * np.diff(rise, axis=0))
    slope, third = rise - h * (2.0 * second[:-1] + second[1:]) / 6.0, np.diff(second, axis=0) / h
    k = np.clip(np.searchsorted(knots, inside, "right") - 1, 0, h.size - 1)
    x = (inside - knots[k])[:, None]
    found = values[k] + x * (slope[k] + x * (second[k] / 2.0 + x * third[k] / 6.0))
    out = np.flatnonzero(time != inside)
    if out.size:
        k, x = k[out], x[out]
        found[out] += (time - inside)[out, None] * (slope[k] + x * (second[k] + x * third[k] / 2.0))
    return np.asarray(found)


def group_sums(
    code: Array, n: int, e: Array, observed: Array, noise: Array
) -> tuple[Array, Array]:
    """Return A and B (n, S): what rows e (N, S) that are seen say of intercepts of groups."""
    A = [np.bincount(code, one, n) for one in observed.T]
    B = [np.bincount(code, one, n) for one in np.where(observed != 0, e, 0.0).T]
    return np.array(A).T.reshape(n, -1) / noise, np.array(B).T.reshape(n, -1) / noise


def draw_intercepts(A: Array, B: Array, m: Array, omega: Array, rng: np.random.Generator) -> Array:
    """Return draws (G, S) of intercepts, precisions Omega^-1 + diag(A_g), given what rows say."""
    inverse, (G, S) = np.linalg.inv(omega), A.shape
    a, block = np.empty((G, S)), max(1, _BLOCK // max(S * S, 1))
    for start in range(0, G, block):
        at = slice(start, start + block)
        a[at] = draw_normals(inverse + A[at, :, None] * np.eye(S), inverse @ m + B[at], rng)
    return a


class SeriesLaw:
    """The law of u at the times of a series, given what is seen of it: N(Q^-1 b, Q^-1).

    lengths : l and k;  v : variance;  seen : (M,) precisions of values
    log_ratio : the log of the ratio of determinants, of what is seen to the prior
    """

    def __init__(
        self, series: Series, lengths: Sequence[float] | Array, v: float, seen: Array
    ) -> None:
        self.seen, self.factor = seen, np.empty((2 * seen.size, 4))
        parts = series.steps(lengths)
        log_ratio = factor_series(series.which, parts, 1.0 / v, seen, self.factor)
        if log_ratio is None:
            raise np.linalg.LinAlgError("the precision of a series is not positive definite")
        self.log_ratio = log_ratio

    def half(self, b: Array) -> Array:
        """Return L^-1 b (2 M,), Q = L L' of u and its velocity."""
        half = np.zeros(2 * b.size)
        half[::2] = b
        solve_lower(self.factor, half)
        return half

    def square(self, b: Array) -> float:
        """Return b' Q^-1 b."""
        half = self.half(b)
        return float(half @ half)

    def shared(
        self, b: Array, own: Array, prior: Array, X: Array, code: Array
    ) -> tuple[Array, Array]:
        """Return A (J, J) and B (J,) of X (M, J) that groups share.

        own : (M, k) what each group has weights of its own for;  prior : (k,) their precisions
        """
        every, k = np.hstack([own, X]), prior.size
        w = every.shape[1] + 1
        half, gram, whole = np.zeros((2, w)), np.zeros((w, w)), np.zeros((w, w))
        fill_shared(self.factor, self.seen, b, every, prior, code, half, gram, whole)
        return whole[k:-1, k:-1], whole[k:-1, -1]

    def lines(self, b: Array, X: Array, code: Array, n: int) -> tuple[Array, Array]:
        """Return A (n, k, k) and B (n, k): X' V^-1 X and X' V^-1 e over the times of each group.

        b : (M,) sums of values e, each times its precision;  X : (M, k)
        """
        w = X.shape[1] + 1
        grams = np.zeros((n, w, w))
        fill_lines(self.factor, self.seen, b, X, code, np.zeros((2, w)), grams)
        return grams[:, :-1, :-1], grams[:, :-1, -1]

    def draw(self, b: Array, rng: np.random.Generator) -> Array:
        """Return a draw (M, 2) of u and sqrt(l k) du/dt."""
        x = self.half(b) + rng.standard_normal(2 * b.size)
        solve_upper(self.factor, x)
        return x.reshape(-1, 2)


def intercept_law(A: Array, B: Array, q: float) -> tuple[Array, Array]:
    """Return A and B (n,) of intercepts, given those of both, without slopes ~ N(0, q)."""
    of_slope = A[:, 1, 1] + 1.0 / q
    without = A[:, 0, 0] - A[:, 0, 1] ** 2 / of_slope
    return without, B[:, 0] - A[:, 0, 1] * B[:, 1] / of_slope


def draw_slopes(A: Array, B: Array, q: float, rng: np.random.Generator) -> Array:
    """Return draws (n,) of slopes ~ N(0, q), given what rows say of them."""
    precision = A + 1.0 / q
    return B / precision + rng.standard_normal(precision.size) / np.sqrt(precision)


def draw_variances(p: Array, squares: Array, n: int, rng: np.random.Generator) -> Array:
    """Return p anew, sqrt(p) ~ half-Cauchy(1), given sums of squares of n normals each.

    By the scale 1 / z ~ Gamma(1 / 2, 1) of an inverse-gamma law of shape 1 / 2 [Makalic and Schmidt
    2016].
    """
    scale = rng.standard_gamma(1.0, p.size) / (1.0 + 1.0 / p)
    return (scale + 0.5 * squares) / rng.standard_gamma(0.5 * (1 + n), p.size)


def draw_inverse_wishart(degrees: float, scale: Array, rng: np.random.Generator) -> Array:
    """Return a draw (S, S) of the inverse-Wishart law, by Bartlett's factor of its inverse."""
    S = len(scale)
    A = np.tril(rng.standard_normal((S, S)), -1)
    A[np.arange(S), np.arange(S)] = np.sqrt(rng.chisquare(degrees - np.arange(S)))
    root = np.linalg.solve(A, np.linalg.cholesky(scale).T)
    return root.T @ root


def draw_normals(Q: Array, b: Array, rng: np.random.Generator) -> Array:
    """Return draws (n, L) of N(Q^-1 b, Q^-1), for precisions Q (n, L, L) and b (n, L)."""
    root = np.linalg.cholesky(Q)
    half = np.linalg.solve(root, b[..., None]) + rng.standard_normal((*b.shape, 1))
    return np.linalg.solve(root.swapaxes(1, 2), half)[..., 0]
