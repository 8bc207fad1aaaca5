"""Averages over draws of the laws of some cells: moments, quantiles, level probabilities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from scipy.special import ndtr

from glfm_cli._kernels._predictive import mixture_quantiles
from glfm_cli.arrays import Array
from glfm_cli.links.law import CellLaw, of_latent, one_number
from glfm_cli.links.observation import LevelObservation, NumericObservation, Params, Summary

PENDING = 1 << 18  # cells x draws of a column whose moments are computed at once
LEAST_AT = 1e-12  # of probabilities of quantiles
LARGEST = np.finfo(np.float64).max


class LevelAverage:
    """Averages the level probabilities of n cells."""

    def __init__(self, link: LevelObservation, n: int) -> None:
        self.link = link
        self.total = np.zeros((n, link.n_levels))

    def add(self, law: CellLaw, params: Params, share: float, *, quantiles: bool) -> None:
        """Take in the cells under one draw."""
        self.total += share * self.link.probabilities(law, params)

    def sums(self) -> Array:
        """Return the sums of the levels' probabilities."""
        return self.total.copy()

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
        self.mass, self.first, self.second = np.zeros((3, n))
        self.centre = np.zeros(n)  # weighted sum of eta, then its mean
        self.pending: list[tuple[Array, Array, Array, Params]] = []
        self.kept: list[tuple[Array, Array, Array]] = []

    def add(
        self, law: CellLaw, params: Params, share: float | Array, *, quantiles: bool
    ) -> None:
        """Take in the cells under one draw; several are evaluated at once, which is cheaper."""
        for weight, part in of_latent(law, 1).components():
            eta, var = one_number(part)
            eta = eta.copy()  # what is kept must not keep the laws of other columns alive
            weight, var = (np.broadcast_to(one, eta.shape) for one in (share * weight, var))
            self.pending.append((weight, eta, var, params))
            if quantiles:
                sd = self.link.sd(var, params)
                self.kept.append((weight, eta, sd))
            # Parameters that differ between draws are evaluated draw by draw.
            if params or len(self.pending) * eta.size >= PENDING:
                self.flush()

    def flush(self) -> None:
        """Add the moments of what is pending, all of it with the same parameters."""
        weight, eta, var = (np.concatenate([part[i] for part in self.pending]) for i in range(3))
        shape = (len(self.pending), self.n)
        mass, first, second = self.link.standard_moments(eta, var, self.pending[-1][3])
        self.centre += (weight * eta).reshape(shape).sum(axis=0) / self.n_draws
        self.mass += (weight * mass).reshape(shape).sum(axis=0)
        self.first += (weight * first).reshape(shape).sum(axis=0)
        self.second += (weight * second).reshape(shape).sum(axis=0)
        self.pending = []

    def sums(self) -> Array:
        """Return the sums of the mass between the bounds, and of the first moment."""
        if self.pending:
            self.flush()
        return np.column_stack([self.mass, self.first])

    def estimate(self, sums: Array) -> Array:
        """Return the mean."""
        return self.link.center + self.link.scale * sums[:, 1] / sums[:, 0]

    def sd(self) -> Array:
        """Return the sd."""
        return self.moments()[1]

    def result(self, at: tuple[float, ...], correct: Callable[[Array], Array]) -> Summary:
        """Return moments, and quantiles by inverting the averaged distribution function."""
        quantiles = self.quantiles(np.broadcast_to(np.array(at), (self.n, len(at))))
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
        weight, mean, sd = self._mixture()
        ends = (end, *self.link.latent_bounds)
        at, low, high = (np.sum(weight * ndtr((y - mean) / sd), axis=1) for y in ends)
        mass = high - low
        return np.clip((at - low) / np.where(mass > 0.0, mass, 1.0), 0.0, 1.0)

    def _mixture(self) -> tuple[Array, Array, Array]:
        """Return weights, adding up to 1, means and sds (n, T) of the normals that were kept."""
        weight, mean, sd = (
            np.ascontiguousarray(np.column_stack([kept[i] for kept in self.kept])) for i in range(3)
        )
        total = weight.sum(axis=1, keepdims=True)
        return weight / np.where(total > 0.0, total, 1.0), mean, sd

    def moments(self) -> tuple[Array, Array]:
        """Return mean and sd in the column's own unit."""
        if self.pending:
            self.flush()
        lower, upper = self.link.latent_bounds
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            mean = self.first / self.mass
            var = self.second / self.mass - mean**2
            mean_x = self.link.center + self.link.scale * mean
            sd_x = self.link.scale * np.sqrt(np.maximum(var, 0.0))
        np.clip(mean_x, -LARGEST, LARGEST, out=mean_x)
        np.minimum(sd_x, LARGEST, out=sd_x)
        outside = np.isnan(mean_x)
        if outside.any():  # no mass between the bounds: the end that is nearest
            mean_x[outside] = self.link.value(np.clip(self.centre[outside], lower, upper))
            sd_x[outside] = 0.0
        return mean_x, sd_x


class RateAverage:
    """Keeps a rate of n cells under every draw: its mean, sd and quantiles over draws."""

    def __init__(self, rate: Callable[[CellLaw, Params], Array], n: int) -> None:
        self.rate, self.n = rate, n
        self.kept: list[Array] = []
        self.shares: list[float] = []

    def add(self, law: CellLaw, params: Params, share: float, *, quantiles: bool) -> None:
        """Take in the cells under one draw."""
        self.kept.append(self.rate(law, params))
        self.shares.append(share)

    def sums(self) -> Array:
        """Return the sums of the rates and of the shares."""
        shares = np.array(self.shares)
        return np.column_stack([shares @ np.array(self.kept), np.full(self.n, shares.sum())])

    def estimate(self, sums: Array) -> Array:
        """Return the mean."""
        out: Array = sums[:, 0] / sums[:, 1]
        return out

    def sd(self) -> Array:
        """Return the sd over draws."""
        return np.std(self.kept, axis=0)

    def result(self, at: tuple[float, ...], correct: Callable[[Array], Array]) -> Summary:
        """Return what the draws of the rates say."""
        rates, shares = np.array(self.kept), np.array(self.shares)
        if np.all(shares == 1.0):
            quantiles = np.quantile(rates, at, axis=0).T
            return Summary(rates.mean(axis=0), rates.std(axis=0), quantiles, None)
        mean = np.average(rates, axis=0, weights=shares)
        sd = np.sqrt(np.average((rates - mean) ** 2, axis=0, weights=shares))
        order = np.argsort(rates, axis=0)
        upto = np.cumsum(shares[order], axis=0) / shares.sum()
        which = [np.minimum((upto < p).sum(axis=0), len(rates) - 1) for p in at]
        cell = np.arange(self.n)
        quantiles = np.array([rates[order[i, cell], cell] for i in which]).T
        return Summary(mean, sd, quantiles.reshape(self.n, len(at)), None)
