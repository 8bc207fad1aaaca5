"""Margins: the increasing map g from a column's values x to the latent scale y.

A margin is calibrated once on the observed cells, so that y has mean about 0 and standard
deviation about 1 whatever the column's unit, and then its constants are frozen.

    x        a value in the column's own unit
    v        a shape of x: x itself, softplus^-1(x / scale), log x, ...   (shapes.py)
    y = g(x) (v - m) / w, the latent scale
    rank     instead: normal scores of the interpolated empirical distribution
    reflect  instead: -h(reflect - x), with h any of these

`to_latent` and `to_value` take and give float64 arrays of any shape, keep NaN, and accept
-inf and inf: intervals may be open.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import log_ndtr, ndtri, ndtri_exp

from glfm_cli.arrays import Array
from glfm_cli.links.shapes import Shape

# A tail of the empirical distribution is extended with its average slope over so many standard
# deviations: the last gap alone may be arbitrarily small or large.
TAIL = 0.5
# Knots of the tails of a rank margin: their distance and where they end, in y; of samples with at
# least so many values.
TAIL_STEP, TAIL_END, FEWEST_FOR_TAILS = 0.25, 7.0, 20
# Knots of a rank margin are so many cells and so much of y apart, but where so many cells share a
# value, which keeps its knot and its neighbours'; between them is a curve, as lines over so much of
# y. With every value a knot each gap had a density of its own, which costs a cell a third of a nat.
APART, APART_Y, SHARED, LINE = 5, 0.15, 3, 0.05
# Knots closer than this, relative to the largest magnitude, are one: their slope would overflow.
CLOSEST = 1e-300
LOG_SQRT_2PI = 0.5 * float(np.log(2.0 * np.pi))


class Margin(Protocol):
    """A strictly increasing map between a column's unit and the latent scale."""

    @property
    def sharpness(self) -> float:
        """Return 1 over the distance in y over which g bends; 0 for (piecewise) polynomials."""

    @property
    def latent_range(self) -> tuple[float, float]:
        """Return y of the ends of the domain."""

    def to_latent(self, x: Array) -> Array:
        """Return y = g(x); -inf or inf outside the domain."""

    def to_value(self, y: Array) -> Array:
        """Return x with g(x) = y, finite."""

    def log_slope(self, x: Array) -> Array:
        """Return log dg/dx at x inside the domain."""


def mean_sd(v: Array) -> tuple[float, float]:
    """Return mean and standard deviation without overflow; sd 0 only if all values are equal."""
    if v.size == 0:
        return 0.0, 0.0
    low, high = float(v.min()), float(v.max())
    if low == high:
        return low, 0.0
    unit = power_of_two(v)
    r = v / unit
    mean = float(r.mean())
    sd = float(np.sqrt(np.mean((r - mean) ** 2)))
    return mean * unit, max(sd, float(np.finfo(np.float64).tiny)) * unit


def power_of_two(x: Array) -> float:
    """Return 2^k such that x / 2^k has magnitudes up to 1; 1.0 for zeros or nothing."""
    largest = float(np.max(np.abs(x), initial=0.0))
    if largest == 0.0:
        return 1.0
    # 2^1024 is no double: the largest magnitudes come out just below 2.
    return float(np.ldexp(1.0, min(max(int(np.frexp(largest)[1]), -1021), 1023)))


def standard_moment(x: Array, k: int) -> float:
    """Return m_k / m_2^(k/2) of a sample; that of a normal for fewer than three or equal values."""
    mean, sd = mean_sd(x)
    if x.size < 3 or sd == 0.0:
        return {3: 0.0, 4: 3.0}[k]
    return float(np.mean((x / sd - mean / sd) ** k))


@dataclass(frozen=True)
class Smooth:
    """y = (v(x) - m) / w with a shape v."""

    shape: Shape
    m: float = 0.0
    w: float = 1.0

    @classmethod
    def calibrate(cls, shape: Shape, x: Array) -> Smooth:
        """Return the margin that gives y of the sample x mean 0 and standard deviation 1.

        A constant sample has no scale: w is then |m|, or 1 at 0.
        """
        with np.errstate(all="ignore"):
            m, sd = mean_sd(shape.forward(x))
        return cls(shape, m, sd or abs(m) or 1.0)

    @property
    def sharpness(self) -> float:
        return self.w if self.shape.bends else 0.0

    @property
    def latent_range(self) -> tuple[float, float]:
        low, high = self.shape.range
        return (low - self.m) / self.w, (high - self.m) / self.w

    def to_latent(self, x: Array) -> Array:
        x = np.asarray(x, dtype=np.float64)
        low, high = self.shape.domain
        with np.errstate(all="ignore"):
            y = (self.shape.forward(x) - self.m) / self.w
        bottom, top = self.latent_range
        y = np.where(x <= low, bottom, y)
        return np.where(x >= high, top, y)

    def to_value(self, y: Array) -> Array:
        with np.errstate(all="ignore"):
            return self.shape.inverse(self.m + self.w * np.asarray(y, dtype=np.float64))

    def log_slope(self, x: Array) -> Array:
        with np.errstate(all="ignore"):
            return self.shape.log_slope(np.asarray(x, dtype=np.float64)) - np.log(self.w)


@dataclass(frozen=True)
class Reflected:
    """g(x) = -h(at - x)."""

    margin: Margin
    at: float

    @property
    def sharpness(self) -> float:
        """Return the sharpness of h."""
        return self.margin.sharpness

    @property
    def latent_range(self) -> tuple[float, float]:
        low, high = self.margin.latent_range
        return -high, -low

    def to_latent(self, x: Array) -> Array:
        return -self.margin.to_latent(self.at - np.asarray(x, dtype=np.float64))

    def to_value(self, y: Array) -> Array:
        return self.at - self.margin.to_value(-np.asarray(y, dtype=np.float64))

    def log_slope(self, x: Array) -> Array:
        return self.margin.log_slope(self.at - np.asarray(x, dtype=np.float64))


@dataclass(frozen=True)
class Interpolated:
    """g linear between knots (x_j, y_j), increasing; `to_value` stays between the end knots.

    Beyond the end knots `to_latent` and `log_slope` go on with Pareto tails of index 1, which hold
    the normal probability beyond the end knot and start with the tails' slopes. A value far
    outside the sample is then a rare one, not an impossible one.

    x : (J,) knots divided by `unit`;  y : (J,) latent scale
    tails : log slopes (of the divided x) below the first and above the last knot
    """

    x: Array
    y: Array
    unit: float
    tails: tuple[float, float]
    sharpness = 0.0
    latent_range = (-np.inf, np.inf)

    @classmethod
    def through(cls, x: Array, y: Array) -> Interpolated:
        """Return the margin through given knots; knots that do not increase are dropped."""
        unit = power_of_two(x)
        x = x / unit
        keep = np.concatenate([[True], (np.diff(x) > CLOSEST) & (np.diff(y) > 0.0)])
        x, y = x[keep], y[keep]
        if x.size == 1:
            # One value has no scale; its own magnitude serves.
            slope = -float(np.log(abs(x[0]) or 1.0))
            return cls(x, y, unit, (slope, slope))
        low = max(int(np.searchsorted(y, y[0] + TAIL)), 1)
        high = min(int(np.searchsorted(y, y[-1] - TAIL, "right")) - 1, x.size - 2)
        last = x.size - 1
        ends = [(0, min(low, last)), (max(high, 0), last)]
        slopes = [float(np.log(y[b] - y[a]) - np.log(x[b] - x[a])) for a, b in ends]
        return cls(x, y, unit, (slopes[0], slopes[1]))

    def to_latent(self, x: Array) -> Array:
        with np.errstate(all="ignore"):
            r = np.asarray(x, dtype=np.float64) / self.unit
            y = np.asarray(np.interp(r, self.x, self.y))
        for beyond, u, k, sign in self._beyond(r):
            y[beyond] = sign * _pareto_tail(u, sign * self.y[k])[0]
        return np.where(np.isnan(r), r, y)  # np.interp answers NaN with a single knot's value

    def _beyond(self, r: Array) -> Iterator[tuple[Array, Array, int, float]]:
        """Yield where r lies beyond an end, by how much in units of y, that knot, and its side.

        Few numbers do, and the tails cost far more than what lies between the knots.
        """
        for beyond, k, sign in ((r < self.x[0], 0, -1.0), (r > self.x[-1], -1, 1.0)):
            if beyond.any():
                with np.errstate(all="ignore"):
                    u = np.exp(self.tails[k]) * (sign * (r[beyond] - self.x[k]))
                yield beyond, u, k, sign

    def to_value(self, y: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.interp(y, self.y, self.x) * self.unit

    def log_slope(self, x: Array) -> Array:
        """Return log dg/dx; at a knot the mean of the slopes on its two sides."""
        r = np.asarray(x, dtype=np.float64) / self.unit
        slopes = np.concatenate(
            [[self.tails[0]], np.log(np.diff(self.y)) - np.log(np.diff(self.x)), [self.tails[1]]]
        )
        left = slopes[np.searchsorted(self.x, r, "left")]
        right = slopes[np.searchsorted(self.x, r, "right")]
        out = np.asarray(np.logaddexp(left, right) - np.log(2.0))
        for beyond, u, k, sign in self._beyond(r):
            out[beyond] += _pareto_tail(u, sign * self.y[k])[1]
        return out - np.log(self.unit)


def _pareto_tail(u: Array, end: float) -> tuple[Array, Array]:
    """Return y beyond `end`, and the log of dy/du there, 0 at u = 0.

    P(Y > y(u)) = T / (1 + u phi(end) / T),  T = P(Y > end),  Y standard normal.
    """
    log_T = float(log_ndtr(-end))
    log_hazard = -0.5 * end * end - LOG_SQRT_2PI - log_T
    with np.errstate(all="ignore"):
        log_v = np.log1p(np.exp(log_hazard) * np.maximum(u, 0.0))
        y = -ndtri_exp(log_T - log_v)
        log_density = -0.5 * y * y - LOG_SQRT_2PI
        return y, log_T + log_hazard - 2.0 * log_v - log_density


def rank_margin(x: Array, n_below: int = 0) -> Interpolated:
    """Return smoothed normal scores of the sample x: mid-ranks for ties, mean 0 and deviation 1.

    `n_below` cells are known only to lie below all of x; they count in the ranks. Beyond the sample
    follow exponential tails, so that completions are not capped by the largest value seen.
    """
    values, counts = np.unique(x, return_counts=True)
    n = x.size + n_below
    scores = ndtri((n_below + np.cumsum(counts) - 0.5 * counts) / n)
    sample = np.repeat(scores, counts)
    if n_below:
        sample = np.concatenate([np.full(n_below, ndtri(0.5 * n_below / n)), sample])
    m, sd = mean_sd(sample)
    y = (scores - m) / (sd or 1.0)
    if values.size < FEWEST_FOR_TAILS or not np.isfinite(values[-1] - values[0]):
        return Interpolated.through(values, y)
    knots = [_smoothed(values, y, counts)]
    # An end that several cells share may be a bound; below the sample lie the zeros.
    if counts[-1] == 1:
        u, beyond = _exponential_tail(values, y)
        knots.append((values[-1] + u, beyond))
    if counts[0] == 1 and not n_below:
        u, beyond = _exponential_tail(-values[::-1], -y[::-1])
        # Positive values approach 0 with the same slope at first.
        low = values[0] * np.exp(-u / values[0]) if values[0] > 0.0 else values[0] - u
        knots.insert(0, (low[::-1], -beyond[::-1]))
    return Interpolated.through(*(np.concatenate(part) for part in zip(*knots, strict=True)))


def _smoothed(x: Array, y: Array, counts: Array) -> tuple[Array, Array]:
    """Return knots of a smooth increasing curve near (x, y), each of so many cells."""
    at = _apart(y, counts)
    lines = np.ceil(np.diff(y[at]) / LINE).astype(np.intp)
    ends = np.concatenate([[0], np.cumsum(lines)])
    fine = np.interp(np.arange(ends[-1] + 1), ends, y[at])
    unit = power_of_two(x)
    return monotone_cubic(y[at], x[at] / unit, fine) * unit, fine


def monotone_cubic(x: Array, y: Array, at: Array) -> Array:
    """Return y(at) of the increasing cubic pieces through increasing (x, y) [Fritsch and Butland
    1984], whose ends are straight.

    SciPy has them, too, in a package that takes longer to import than small tables to read.
    """
    h, slope = np.diff(x), np.diff(y) / np.diff(x)
    with np.errstate(divide="ignore", over="ignore"):  # flat pieces have flat ends
        a, b = 2.0 * h[1:] + h[:-1], h[1:] + 2.0 * h[:-1]
        inner = (a + b) / (a / slope[:-1] + b / slope[1:])
    d = np.concatenate([slope[:1], inner, slope[-1:]])
    k = np.clip(np.searchsorted(x, at, "right") - 1, 0, h.size - 1)
    t = at - x[k]
    bend = 3.0 * slope[k] - 2.0 * d[k] - d[k + 1]
    twist = d[k] + d[k + 1] - 2.0 * slope[k]
    r = t / h[k]
    return np.asarray(y[k] + t * (d[k] + r * (bend + r * twist)))


def _apart(y: Array, counts: Array) -> Array:
    """Return which values are knots of a smooth rank margin: three at either end, and others."""
    shared = counts >= SHARED
    kept, rank, k = shared.copy(), np.cumsum(counts) - 0.5 * counts, 0
    kept[1:] |= shared[:-1]
    kept[:-1] |= shared[1:]
    kept[[1, 2, -3, -2, -1]] = True  # an outlier's gap is its own
    while k < y.size:
        kept[k] = True
        k = max(np.searchsorted(rank, rank[k] + APART), np.searchsorted(y, y[k] + APART_Y))
    return np.flatnonzero(kept)


def _exponential_tail(x: Array, y: Array) -> tuple[Array, Array]:
    """Return knots beyond the last one: by how much their x exceeds it, and their y.

    P(Y > y(u)) = T exp(-u h / s), h the normal hazard at the last knot and 1 / s the mean slope of
    y over the last half standard deviation: heavier than the normal's, with all moments.
    """
    first = max(min(int(np.searchsorted(y, y[-1] - TAIL, "right")) - 1, y.size - 2), 0)
    slope = (y[-1] - y[first]) / (x[-1] - x[first])
    log_T = log_ndtr(-y[-1])
    hazard = np.exp(-0.5 * y[-1] ** 2 - LOG_SQRT_2PI - log_T)
    beyond = np.arange(y[-1] + TAIL_STEP, TAIL_END, TAIL_STEP)
    return (log_T - log_ndtr(-beyond)) / (hazard * slope), beyond


def count_rank_margin(x: Array) -> Interpolated:
    """Return g with g(c) = the latent cut point below the integer c, for a sample of integers.

    Of the n_j cells with value v_j, n_j - 1 stay at v_j, and one is spread evenly: half of it
    towards the next smaller observed value, half towards the next larger one. So neighbouring
    integers are cut exactly at the empirical distribution, repeated values keep their weight, and
    every integer in a gap has some. Outside the sample lies a quarter of a cell on either side.
    """
    values, counts = np.unique(x, return_counts=True)
    n = x.size
    upto = np.cumsum(counts)
    gap = np.diff(values)
    below = np.concatenate([[0.25], upto[:-1] + 0.5 - 0.5 / gap])
    above = np.concatenate([upto[:-1] - 0.5 + 0.5 / gap, [n - 0.25]])
    knots = np.stack([values, values + 1.0], axis=1).ravel()
    scores = ndtri(np.stack([below, above], axis=1).ravel() / n)
    return Interpolated.through(knots, scores)
