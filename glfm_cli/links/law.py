"""The law of cells: what a latent model answers with, and an observation turns into forecasts.

    NormalMixture    of a cell's latent numbers, the noise of its column included
    Probabilities    of a cell's levels, however the model came by them
    GammaPoisson     of a cell's count, by the law of its rate

A law describes n cells of one column under one draw. Draws of latent numbers are a mixture whose
components are the draws, each with the noise alone as its variance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import betainc, gammaincc, gammaln

from glfm_cli.arrays import Array

ALL = slice(None)
_ONE = np.ones((1, 1))
POISSON = 1e8  # shape from which a gamma law is a point to a count


class Normal(NamedTuple):
    """One normal a cell: mean (n, s), variances (n or 1, s or 1), covariance (n, s, s) or None."""

    mean: Array
    variances: Array
    covariance: Array | None


class NormalMixture(NamedTuple):
    """A mixture of C normals of s latent numbers a cell; `weights` and `variances` broadcast.

    weights : (n or 1, C), adding up to 1
    means : (n, C, s)
    variances : (n or 1, C or 1, s or 1) float64 > 0, the noise of the column included
    covariance : (n, C, s, s), whose diagonals are the variances; None where the s are independent
    """

    weights: Array
    means: Array
    variances: Array
    covariance: Array | None = None

    @property
    def size(self) -> int:
        """Return the number n of cells."""
        return int(self.means.shape[0])

    @property
    def n_components(self) -> int:
        """Return C."""
        return int(self.means.shape[1])

    def take(self, at: Array) -> NormalMixture:
        """Return the law of some of the cells, once for each time that they are named."""
        weights, variances = (
            one if one.shape[0] == 1 else one[at] for one in (self.weights, self.variances)
        )
        covariance = None if self.covariance is None else self.covariance[at]
        return NormalMixture(weights, self.means[at], variances, covariance)

    def component(self, c: int) -> Normal:
        """Return one of the normals of every cell."""
        own = 0 if self.variances.shape[1] == 1 else c
        covariance = None if self.covariance is None else self.covariance[:, c]
        return Normal(self.means[:, c], self.variances[:, own], covariance)

    def components(self) -> Iterator[tuple[Array, Normal]]:
        """Yield the weights (n or 1,) and the normals of every component."""
        for c in range(self.n_components):
            yield self.weights[:, c], self.component(c)

    def average(self, f: Callable[[Normal], Array]) -> Array:
        """Return the sum over components of weight times f (n, ...)."""
        if self.n_components == 1:
            return f(self.component(0))
        total: Array | float = 0.0
        for weight, normal in self.components():
            part = f(normal)
            total = total + weight.reshape(-1, *[1] * (part.ndim - 1)) * part
        return np.asarray(total)

    def log_average(self, log_f: Callable[[Normal], Array]) -> Array:
        """Return the log of the sum over components of weight times exp(log f) (n,)."""
        if self.n_components == 1:
            return log_f(self.component(0))
        total = np.full(self.size, -np.inf)
        with np.errstate(divide="ignore"):
            for weight, normal in self.components():
                total = np.logaddexp(total, np.log(weight) + log_f(normal))
        return total

    def pick(self, rng: np.random.Generator) -> Normal:
        """Return one normal a cell, each with the probability of its weight."""
        if self.n_components == 1:
            return self.component(0)
        n, (rows, components) = self.size, self.variances.shape[:2]
        ends = np.cumsum(self.weights, axis=1)
        c = np.minimum((rng.random((n, 1)) * ends[:, -1:] > ends).sum(axis=1), ends.shape[1] - 1)
        cell = np.arange(n)
        variances = self.variances[cell if rows > 1 else np.zeros_like(cell), c * (components > 1)]
        covariance = None if self.covariance is None else self.covariance[cell, c]
        return Normal(self.means[cell, c], variances, covariance)

    def moments(self) -> tuple[Array, Array]:
        """Return mean (n, s) of the latent numbers, and the variances within components."""
        weights = self.weights[:, :, None]
        shape = (self.size, *self.means.shape[1:])
        within = (weights * np.broadcast_to(self.variances, shape)).sum(axis=1)
        return (weights * self.means).sum(axis=1), within


class Probabilities(NamedTuple):
    """The levels of a cell: p (n, R), adding up to 1."""

    p: Array

    @property
    def size(self) -> int:
        """Return the number n of cells."""
        return int(self.p.shape[0])

    def take(self, at: Array) -> Probabilities:
        """Return the law of some of the cells, once for each time that they are named."""
        return Probabilities(self.p[at])

    def moments(self) -> tuple[Array, Array]:
        """Return mean (n, R - 1) of the indicators of all levels but the first, and variances."""
        p = self.p[:, 1:]
        return p, p * (1.0 - p)

    def log_p(self, codes: Array) -> Array:
        """Return the log probabilities (n,) of one level a cell."""
        with np.errstate(divide="ignore"):
            out: Array = np.log(self.p[np.arange(self.size), codes.astype(np.intp)])
        return out

    def sample(self, rng: np.random.Generator) -> Array:
        """Return one level code a cell, as float64."""
        ends = np.cumsum(self.p, axis=1)
        codes = (rng.random((self.size, 1)) * ends[:, -1:] >= ends).sum(axis=1)
        return np.minimum(codes, self.p.shape[1] - 1).astype(np.float64)


class GammaPoisson(NamedTuple):
    """Counts that are Poisson given rates which are gamma: negative binomial.

    shape, mean : (n,) of the gamma law of the rate, above 0
    """

    shape: Array
    mean: Array

    @property
    def size(self) -> int:
        """Return the number n of cells."""
        return int(self.mean.size)

    def take(self, at: Array) -> GammaPoisson:
        """Return the law of some of the cells, once for each time that they are named."""
        return GammaPoisson(self.shape[at], self.mean[at])

    def moments(self) -> tuple[Array, Array]:
        """Return mean and variance (n, 1) of the counts."""
        return self.mean[:, None], (self.mean + self.mean**2 / self.shape)[:, None]

    def log_pmf(self, x: Array) -> Array:
        """Return the log probabilities (n,) of a count a cell.

        log Gamma(x + s) - log Gamma(s) - log x! + s log(s / (s + m)) + x log(m / (s + m)), of
        which the first two cancel for a large shape s, where the count is Poisson.
        """
        s, m = np.minimum(self.shape, POISSON), self.mean
        with np.errstate(divide="ignore"):
            times = np.where(x > 0.0, x, 0.0)
            rises = gammaln(x + s) - gammaln(s) - s * np.log1p(m / s) - times * np.log(s + m)
            mixed = np.where(self.shape < POISSON, rises, -m)
            return np.asarray(mixed + times * np.log(m) - gammaln(x + 1.0))

    def cdf(self, x: Array) -> Array:
        """Return P(X <= x) (n,) of a whole number a cell, 0 below 0."""
        s, k = np.minimum(self.shape, POISSON), np.maximum(x, 0.0)
        mixed = betainc(s, k + 1.0, s / (s + self.mean))
        found = np.where(self.shape < POISSON, mixed, gammaincc(k + 1.0, self.mean))
        return np.where(x < 0.0, 0.0, found)


CellLaw = NormalMixture | Probabilities | GammaPoisson


def kind_of(law: CellLaw) -> tuple[object, ...]:
    """Return what laws have in common that `joined` takes."""
    if isinstance(law, NormalMixture):
        return NormalMixture, law.n_components, law.covariance is None
    return (type(law),)


def joined(laws: Sequence[CellLaw]) -> CellLaw:
    """Return the law of the cells of several laws of one kind, below each other."""
    if len(laws) == 1:
        return laws[0]
    if not isinstance(laws[0], NormalMixture):
        return type(laws[0])(*(np.concatenate(part) for part in zip(*laws, strict=True)))
    parts = [of_latent(law) for law in laws]
    covariances = [part.covariance for part in parts if part.covariance is not None]
    return NormalMixture(
        _ONE if parts[0].n_components == 1 else _below(parts, [one.weights for one in parts]),
        np.concatenate([one.means for one in parts]),
        _below(parts, [one.variances for one in parts]),
        np.concatenate(covariances) if covariances else None,
    )


def _below(laws: Sequence[NormalMixture], parts: Sequence[Array]) -> Array:
    """Return what laws say of all their cells, or of each, below each other for each."""
    if len({part.shape for part in parts}) == 1 and len(parts[0]) == 1:
        return np.repeat(np.concatenate(parts), [law.size for law in laws], axis=0)
    widest = np.broadcast_shapes(*(part.shape[1:] for part in parts))
    pairs = zip(laws, parts, strict=True)
    return np.concatenate([np.broadcast_to(part, (law.size, *widest)) for law, part in pairs])


def of_latent(law: CellLaw, s: int | None = None) -> NormalMixture:
    """Return a law of `s` latent numbers a cell, None for any; TypeError when it is another."""
    if not isinstance(law, NormalMixture):
        raise TypeError("the law is one of levels, not of latent numbers")
    if s not in (None, law.means.shape[2]):
        raise TypeError(f"the law is one of {law.means.shape[2]} latent numbers, expected {s}")
    return law


def normal(eta: Array, var: float | Array) -> NormalMixture:
    """Return the law of cells whose latent numbers eta, (n,) or (n, s), are seen with noise.

    var : variance of the noise, one or (n,)
    """
    means = eta[:, None, None] if eta.ndim == 1 else eta[:, None, :]
    return NormalMixture(_ONE, means, np.reshape(np.asarray(var, dtype=np.float64), (-1, 1, 1)))


def one_number(part: Normal) -> tuple[Array, Array]:
    """Return mean (n,) and variance (n or 1,) of a normal of a single latent number."""
    return part.mean[:, 0], part.variances[:, 0]


class RowsLaw(Protocol):
    """The law of the cells of some rows under one draw, which columns may share work for."""

    def column(self, d: int, at: Array | slice = ALL) -> CellLaw:
        """Return the law of the cells of column `d`, of the rows `at` among those asked for."""


class GivenLatent:
    """Rows whose latent numbers are given under a draw: a normal each, with the column's noise.

    eta : (n, S);  noise : (D,) variances
    spans : per column, its first latent column and one past its last
    """

    def __init__(self, eta: Array, noise: Array, spans: tuple[tuple[int, int], ...]) -> None:
        self.eta, self.noise, self.spans = eta, noise, spans

    def column(self, d: int, at: Array | slice = ALL) -> NormalMixture:
        """Return the law of the cells of column `d`; a copy, so that it keeps no others alive."""
        start, end = self.spans[d]
        eta = self.eta[at, start] if end - start == 1 else self.eta[at, start:end]
        return normal(eta, self.noise[d])
