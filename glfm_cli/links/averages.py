"""Averages over draws of the laws of some cells: moments, quantiles, level probabilities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from scipy.special import ndtr

from glfm_cli._kernels._predictive import mixture_quantiles
from glfm_cli.arrays import Array
from glfm_cli.links.law import CellLaw, of_latent, one_number
from glfm_cli.links.observation import LevelObservation, NumericObservation, Params, Summary

PENDING = 1 << 18  # cells x draws of a column whose moments are computed at once
LEAST_AT = 1e-12  # of probabilities of quantiles
GRID = np.linspace(-4.0, 4.0, 41)  # in sds: where a law that is tilted is taken
LARGEST = np.finfo(np.float64).max


class LevelAverage:
    """Averages the level probabilities of n cells."""

    def __init__(self, link: LevelObservation, n: int) -> None:
        self.link = link
        self.total = np.zeros((n, link.n_levels))
        self.marks: list[Array] = []

    def add(self, law: CellLaw, params: Params, share: float, *, quantiles: bool) -> None:
        self.total += share * self.link.probabilities(law, params)

    def mark(self) -> None:
        """Note the sums of the levels' probabilities."""
        self.marks.append(self.total.copy())

    def marked(self) -> list[Array]:
        """Return what was noted."""
        return self.marks

    def estimate(self, sums: Array) -> Array:
        """Return the mean code, or the probability of the level that is likeliest in all draws."""
        p = sums / sums.sum(axis=1, keepdims=True)
        if self.link.ordered:
            return p @ np.arange(p.shape[1], dtype=np.float64)
        return p[np.arange(p.shape[0]), self.total.argmax(axis=1)]

    def sd(self) -> Array:
        """Return the sd of the code, or of being at that level."""
        if not self.link.ordered:
            p = self.estimate(self.total)
            return np.sqrt(np.maximum(p * (1.0 - p), 0.0))
        return self.result((), lambda p: p).sd

    def result(self, at: tuple[float, ...], correct: Callable[[Array], Array]) -> Summary:
        """Return probabilities, and of ordered levels moments and quantiles of the code."""
        p = correct(self.total / self.total.sum(axis=1, keepdims=True))
        n = p.shape[0]
        mean = sd = np.full(n, np.nan)
        quantiles = np.full((n, len(at)), np.nan)
        if self.link.ordered:
            codes = np.arange(p.shape[1])
            mean = p @ codes
            sd = np.sqrt(np.maximum(p @ codes**2 - mean**2, 0.0))
            cdf = np.cumsum(p, axis=1)
            for j, probability in enumerate(at):
                quantiles[:, j] = np.sum(cdf < probability - 1e-12, axis=1)
            np.clip(quantiles, 0, p.shape[1] - 1, out=quantiles)
        return Summary(mean, sd, quantiles, p)


class TruncatedNumber(NumericObservation, Protocol):
    """A column of numbers whose one latent number is truncated to bounds."""

    @property
    def latent_bounds(self) -> tuple[float, float]:
        """Return the least and the greatest latent number."""

    def sd(self, var: float | Array, params: Params) -> Array:
        """Return the sd of what the margin maps to values, `var` the variance of y."""

    def standard_moments(
        self, eta: Array, var: float | Array, params: Params
    ) -> tuple[Array, Array, Array]:
        """Return P(in), E[u; in], E[u^2; in] in standard units, in: inside the bounds."""


class NumberAverage:
    """Averages two moments (standard units) of n cells, and keeps their normals for quantiles."""

    def __init__(self, link: TruncatedNumber, n: int, n_draws: int) -> None:
        self.link, self.n, self.n_draws = link, n, n_draws
        self.totals = np.zeros((3, n))  # mass between the bounds, first and second moment
        self.latent = np.zeros((2, n))  # moments of the latent number, bounds or not
        self.pending: list[tuple[Array, Array, Array, Params]] = []
        self.pending_marks: list[int] = []  # how many were pending
        self.marks: list[Array] = []
        self.kept: list[tuple[Array, Array, Array]] = []

    def add(self, law: CellLaw, params: Params, share: float | Array, *, quantiles: bool) -> None:
        """Take in the cells under one draw; several are evaluated at once, which is cheaper."""
        for weight, part in of_latent(law, 1).components():
            eta, var = one_number(part)
            eta = eta.copy()  # what is kept must not keep the laws of other columns alive
            weight = share * weight
            self.pending.append((weight, eta, var, params))
            if quantiles:
                both = (np.broadcast_to(one, eta.shape) for one in (weight, var))
                wide, sd = next(both), self.link.sd(next(both), params)
                self.kept.append((wide, eta, sd))
            # Parameters that differ between draws are evaluated draw by draw.
            if params or len(self.pending) * eta.size >= PENDING:
                self.flush()

    def flush(self) -> None:
        """Add the moments of what is pending, all of it with the same parameters."""
        if not self.pending:
            return
        weights, etas, variances, params = zip(*self.pending, strict=True)
        weight, eta, var = map(self._of_each_cell, (weights, etas, variances))
        moments = np.array(self.link.standard_moments(eta, var, params[-1]))
        shape = (len(self.pending), self.n)
        square = eta**2 + self.link.sd(var, params[-1]) ** 2
        self.latent += (weight * [eta, square]).reshape(2, *shape).sum(axis=1) / self.n_draws
        moments = (weight * moments).reshape(3, *shape)
        start = 0
        for end in self.pending_marks:
            self.totals += moments[:, start:end].sum(axis=1)
            self.marks.append(self.totals[:2].T.copy())
            start = end
        self.totals += moments[:, start:].sum(axis=1)
        self.pending, self.pending_marks = [], []

    def _of_each_cell(self, parts: Sequence[Array]) -> Array:
        """Return numbers of pending laws below each other, each one for all cells or one a cell."""
        if self.n > 1 and all(part.size == 1 for part in parts):
            return np.repeat(np.concatenate(parts), self.n)
        wide = [part if part.size == self.n else np.repeat(part, self.n) for part in parts]
        return np.concatenate(wide)

    def mark(self) -> None:
        """Note the sums of the mass between the bounds, and of the first moment."""
        if self.pending:
            self.pending_marks.append(len(self.pending))
        else:
            self.marks.append(self.totals[:2].T.copy())

    def marked(self) -> list[Array]:
        """Return what was noted."""
        self.flush()
        return self.marks

    def estimate(self, sums: Array) -> Array:
        """Return the mean."""
        return self.link.center + self.link.scale * sums[:, 1] / sums[:, 0]

    def sd(self) -> Array:
        return self.moments()[1]

    def latent_moments(self) -> Array:
        """Return the first and second moments (2, n) of the latent number, bounds or not."""
        self.flush()
        return self.latent

    def result(self, at: tuple[float, ...] | Array, correct: Callable[[Array], Array]) -> Summary:
        """Return moments, and quantiles by inverting the averaged distribution function.

        at : their probabilities, of all cells or of each (n, Q)
        """
        quantiles = self.quantiles(np.broadcast_to(np.array(at), (self.n, np.shape(at)[-1])))
        return Summary(*self.moments(), quantiles, None)

    def quantiles(self, p: Array) -> Array:
        """Return the quantiles (n, Q) at probabilities p (n, Q); NaN where none were asked for."""
        out = np.full(p.shape, np.nan)
        if self.kept and p.size:
            weight, mean, sd = self._mixture()
            inside = np.ascontiguousarray(np.clip(p, LEAST_AT, 1.0 - LEAST_AT))
            mixture_quantiles(mean, sd, weight, inside, *self.link.latent_bounds, out)
            out = self.link.value(out)
        return out

    def below(self, end: float) -> Array:
        """Return P(y <= end) (n,), truncated to the bounds; 0 where no quantiles were asked for."""
        if not self.kept or end == -np.inf:
            return np.zeros(self.n)
        return self._cdf([np.full(self.n, end)])[0]

    def _cdf(self, ends: Sequence[Array]) -> list[Array]:
        """Return the distribution function at some ends (n,), truncated to the bounds."""
        weight, mean, sd = self._mixture()
        low, high = (
            np.sum(weight * ndtr((y - mean) / sd), axis=1) for y in self.link.latent_bounds
        )
        mass = np.where(high > low, high - low, 1.0)
        at = (np.sum(weight * ndtr((y[:, None] - mean) / sd), axis=1) for y in ends)
        return [np.clip((p - low) / mass, 0.0, 1.0) for p in at]

    def corrected(self, correct: Callable[[Array], Array]) -> tuple[Array, Array]:
        """Return the mean of a law whose distribution function is correct(F), times what its sd is.

        F is that of the average, of cells whose quantiles may be asked for. By sums over a grid for
        both laws, so that what it leaves out counts little. O(n T GRID).
        """
        weight, mean, sd = self._mixture()
        lower, upper = self.link.latent_bounds
        centre = np.sum(weight * mean, axis=1)
        spread = np.sqrt(np.sum(weight * (sd**2 + (mean - centre[:, None]) ** 2), axis=1))
        y = np.clip(centre + GRID[:, None] * spread, lower, upper)
        F = np.stack([np.zeros(self.n), *self._cdf(list(y[1:-1])), np.ones(self.n)])
        u = self.link.standard(self.link.value(0.5 * (y[1:] + y[:-1])))
        means, variances = [], []
        for p in (np.diff(F, axis=0), np.diff(correct(F), axis=0)):
            means.append(np.sum(p * u, axis=0))
            variances.append(np.sum(p * (u - means[-1]) ** 2, axis=0))
        before, after = variances
        vary = (before > 0.0) & (after > 0.0)  # nearly certain counts may not, on the grid
        moved = self.moments()[0] + self.link.scale * (means[1] - means[0])
        return (
            np.clip(moved, *self.link.value(y[[0, -1]])),
            np.sqrt(np.divide(after, before, out=np.ones(self.n), where=vary)),
        )

    def _mixture(self) -> tuple[Array, Array, Array]:
        """Return weights, adding up to 1, means and sds (n, T) of the normals that were kept."""
        weight, mean, sd = (
            np.ascontiguousarray(np.column_stack([kept[i] for kept in self.kept])) for i in range(3)
        )
        total = weight.sum(axis=1, keepdims=True)
        return weight / np.where(total > 0.0, total, 1.0), mean, sd

    def moments(self) -> tuple[Array, Array]:
        """Return mean and sd in the column's own unit."""
        self.flush()
        lower, upper = self.link.latent_bounds
        mass, first, second = self.totals
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            mean = first / mass
            var = second / mass - mean**2
            mean_x = self.link.center + self.link.scale * mean
            sd_x = self.link.scale * np.sqrt(np.maximum(var, 0.0))
        np.clip(mean_x, -LARGEST, LARGEST, out=mean_x)
        np.minimum(sd_x, LARGEST, out=sd_x)
        outside = np.isnan(mean_x)
        if outside.any():  # no mass between the bounds: the end that is nearest
            mean_x[outside] = self.link.value(np.clip(self.latent[0, outside], lower, upper))
            sd_x[outside] = 0.0
        return mean_x, sd_x
