"""Exact draws of log-concave densities below three tangents to their logarithm.

One at about the middle and one to each side of it make the envelope of a rejection sampler that
accepts about nine of ten proposals where the density is nearly normal
[Devroye 1986, chapter VII; Gilks and Wild 1992].
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from glfm_cli.arrays import Array

ASIDE = 1.2  # of the outer tangents from the middle, in standard deviations


class LogConcave(Protocol):
    """n densities on the line, each up to a factor."""

    @property
    def mean(self) -> Array:
        """Return about the middle (n,) of each."""

    @property
    def var(self) -> Array:
        """Return about the variance (n,) of each."""

    def log(self, which: Array, at: Array) -> tuple[Array, Array]:
        """Return log p, and d log p / dx, of some of them at points."""


def draw_log_concave(density: LogConcave, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return one draw (n,) of each density, and which (n,) bool could not be drawn.

    Where rounding leaves no envelope the draw is 0 and the flag is set.
    """
    with np.errstate(all="ignore"):
        envelope = Envelope.of(density)
    out = np.zeros(envelope.sound.size)
    left = np.flatnonzero(envelope.sound)
    while left.size:
        proposed, log_hat = envelope.propose(left, rng)
        with np.errstate(all="ignore"):
            log_p, _ = density.log(left, proposed)
        kept = -rng.standard_exponential(left.size) < log_p - log_hat
        out[left[kept]] = proposed[kept]
        left = left[~kept]
    return out, ~envelope.sound


class Envelope:
    """Three tangents to each of n log densities, and draws from their exponential.

    x, y, slope : (n, 3) points of contact, log densities and derivatives there
    cut : (n, 2) where neighbours cross
    sound : (n,) bool, whether there is an envelope
    """

    def __init__(self, density: LogConcave, x: Array, y: Array, slope: Array) -> None:
        self.density, self.x, self.y, self.slope = density, x, y, slope
        gap = np.diff(x, axis=1)
        rise = np.diff(y, axis=1)
        drop = slope[:, :-1] - slope[:, 1:]
        self.cut = x[:, :-1] + (rise - slope[:, 1:] * gap) / np.where(drop > 0.0, drop, np.nan)
        inside = (self.cut > x[:, :-1]) & (self.cut < x[:, 1:])
        finite = np.isfinite(y).all(axis=1) & np.isfinite(slope).all(axis=1)
        self.sound = finite & inside.all(axis=1) & (slope[:, 0] > 0.0) & (slope[:, 2] < 0.0)
        self._log_mass = self._masses()

    @classmethod
    def of(cls, density: LogConcave) -> Envelope:
        """Return the envelopes of some densities."""
        sd, which = np.sqrt(density.var), np.arange(density.var.size)
        x = density.mean[:, None] + ASIDE * sd[:, None] * np.array([-1.0, 0.0, 1.0])
        found = [density.log(which, x[:, i]) for i in range(3)]
        y, slope = (np.stack([pair[i] for pair in found], axis=1) for i in range(2))
        return cls(density, x, y, slope)

    def _masses(self) -> Array:
        """Return the logs (n, 3) of the areas below the tangents between their crossings."""
        y, s, x = self.y, self.slope, self.x
        left = y[:, 0] + s[:, 0] * (self.cut[:, 0] - x[:, 0]) - np.log(s[:, 0])
        right = y[:, 2] + s[:, 2] * (self.cut[:, 1] - x[:, 2]) - np.log(-s[:, 2])
        width = self.cut[:, 1] - self.cut[:, 0]
        start = y[:, 1] + s[:, 1] * (self.cut[:, 0] - x[:, 1])
        middle = start + np.log(width) + _log_mean_exp(s[:, 1] * width)
        return np.stack([left, middle, right], axis=1)

    def propose(self, which: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return draws below some of the envelopes, and the tangents' logs there."""
        log_mass = self._log_mass[which]
        mass = np.exp(log_mass - log_mass.max(axis=1, keepdims=True))
        u = rng.random(which.size) * mass.sum(axis=1)
        piece = (u > mass[:, 0]).astype(np.intp) + (u > mass[:, 0] + mass[:, 1])
        v = 1.0 - rng.random(which.size)  # in (0, 1]
        cut, s = self.cut[which], self.slope[which]
        width = cut[:, 1] - cut[:, 0]
        a = s[:, 1] * width
        with np.errstate(divide="ignore", invalid="ignore"):
            # The inverse of (exp(a z) - 1) / (exp(a) - 1) on 0..1, written for either sign of a.
            z = np.where(
                np.abs(a) < 1e-8, v, np.where(a > 0.0, 1.0, 0.0) + _tilted(v, np.abs(a), a > 0.0)
            )
        below, above = cut[:, 0] + np.log(v) / s[:, 0], cut[:, 1] + np.log(v) / s[:, 2]
        at = np.choose(piece, [below, cut[:, 0] + width * z, above])
        rows = np.arange(which.size)
        contact, height = self.x[which][rows, piece], self.y[which][rows, piece]
        return at, height + s[rows, piece] * (at - contact)


def _tilted(v: Array, a: Array, rising: Array) -> Array:
    """Return where, from its upper end, a density exp(-a distance) on a unit interval is drawn."""
    distance = -np.log1p(-(1.0 - v) * -np.expm1(-a)) / np.where(a > 0.0, a, 1.0)
    return np.where(rising, -distance, distance)


def _log_mean_exp(a: Array) -> Array:
    """Return log((exp(a) - 1) / a), the log of the mean of exp(a z) over z in 0..1."""
    size = np.abs(a)
    small = np.where(size < 1e-8, 1.0, size)
    return np.maximum(a, 0.0) + np.where(
        size < 1e-8, -0.5 * size, np.log(-np.expm1(-small)) - np.log(small)
    )
