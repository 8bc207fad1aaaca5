"""Laws of a response given X: their log densities, and coefficients drawn given the data.

    linear     y ~ N(X b, s2)              drawn exactly
    logistic   y ~ Bernoulli(logit X b)    by an independence step of Metropolis and Hastings, from
    poisson    y ~ Poisson(exp X b)        a t distribution about the mode [Tierney 1994]
    negbin     counts.py
    nominal    nominal.py, of auxiliaries

A missing y has its law inside what its column can hold, also where coefficients are drawn by it
(`inside`, walk.py).

Each b has a prior so wide that it only keeps proper what data leave open: of slopes
b_j ~ N(0, w^2 / v_j), v_j the variance of observed x_j, and of the linear predictor at their means
N(0, w^2), so that x may lie far from 0, as years do; neither moves. Of a linear law w is in units
of s, where p(s2) ~ s2^(p/2 - 1) leaves n - p degrees of freedom.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.random import Generator
from scipy.special import expit, gammaincc, gammaln, ndtr

from glfm_cli._kernels._variates import fill_truncated_normal
from glfm_cli.arrays import Array

WIDE_LINEAR, WIDE = 1e3, 10.0
STEPS, CLOSE = 100, 1e-10  # of Newton's at most, and the last one's size
HALVINGS, ROUNDING = 30, 1e-12  # of a step at most, and by how much it may lower the height
DF = 5.0  # of the proposals
LARGEST = 30.0  # linear predictor of a count that is looked at
REDRAWN = 100  # times, of counts outside their bounds

Ends = tuple[float, float]


@dataclass(frozen=True)
class RegressionDraw:
    """b (p,), and what else the law has: the variance of a linear one, a negbin's dispersion."""

    b: Array
    s2: float = 1.0


class Seen(NamedTuple):
    """What is observed of a regression: y (n,), X (n, p), and the prior's M (p, p).

    M is the precision of b where w is 1.
    """

    y: Array
    X: Array
    prior: Array


def wide(X: Array) -> Array:
    """Return M (p, p) of the prior by regressors (n, p), a constant first; NaN where not observed.
    """
    seen = np.isfinite(X)
    n = np.maximum(seen.sum(axis=0), 1)
    mean = np.sum(np.where(seen, X, 0.0), axis=0) / n
    var = np.sum(np.where(seen, X - mean, 0.0) ** 2, axis=0) / n
    at_means = np.append(1.0, mean[1:])
    return np.outer(at_means, at_means) + np.diag(np.append(0.0, np.where(var > 0.0, var, 1.0)[1:]))


class ResponseMoments(NamedTuple):
    """What a law says of y (n,): means, their slopes in the linear predictor, and variances."""

    mean: Array
    slope: Array
    variance: Array


class Family(Protocol):
    """A law of a response (n,) given its linear predictor; `words` name it."""

    words: str

    def log_density(self, y: Array, X: Array, at: RegressionDraw) -> Array:
        """Return log p(y_n | x_n) (n,)."""

    def fit(self, seen: Seen) -> RegressionDraw:
        """Return what makes the data likeliest."""

    def draw(self, seen: Seen, last: RegressionDraw | None, rng: Generator) -> RegressionDraw:
        """Return coefficients after a step that leaves their posterior as it is."""


@runtime_checkable
class Completes(Family, Protocol):
    """A law of responses that may be missing."""

    def sample(
        self, X: Array, at: RegressionDraw, ends: Ends, rng: Generator
    ) -> tuple[Array, float]:
        """Return draws of y (n,) between two ends, and how much of its law lay outside."""

    def inside(self, X: Array, at: RegressionDraw, ends: Ends) -> Array:
        """Return how much of the law of y (n,) lies between two ends."""


class Linear:
    """Normal responses."""

    words = "normal errors"

    def log_density(self, y: Array, X: Array, at: RegressionDraw) -> Array:
        return -0.5 * (y - X @ at.b) ** 2 / at.s2 - 0.5 * np.log(2.0 * np.pi * at.s2)

    def fit(self, seen: Seen) -> RegressionDraw:
        y, X, prior = seen
        b = np.linalg.solve(X.T @ X + prior / WIDE_LINEAR**2, X.T @ y)
        return RegressionDraw(b, float(np.mean((y - X @ b) ** 2)))

    def draw(self, seen: Seen, last: RegressionDraw | None, rng: Generator) -> RegressionDraw:
        y, X, prior = seen
        n, p = X.shape
        prior = prior / WIDE_LINEAR**2
        Q = X.T @ X + prior
        L = np.linalg.cholesky(Q)
        mode = np.linalg.solve(Q, X.T @ y)
        s2 = float((np.sum((y - X @ mode) ** 2) + mode @ prior @ mode) / rng.chisquare(n - p))
        return RegressionDraw(mode + np.sqrt(s2) * np.linalg.solve(L.T, rng.standard_normal(p)), s2)

    def moments(self, X: Array, at: RegressionDraw) -> ResponseMoments:
        mean = X @ at.b
        return ResponseMoments(mean, np.ones(mean.size), np.full(mean.size, at.s2))

    def sample(
        self, X: Array, at: RegressionDraw, ends: Ends, rng: Generator
    ) -> tuple[Array, float]:
        mean, sd, y = X @ at.b, float(np.sqrt(at.s2)), np.empty(len(X))
        low, high = (np.full(mean.size, end) for end in ends)
        fill_truncated_normal(mean, sd, low, high, rng, y)
        inside = self.inside(X, at, ends)
        return y, 1.0 - float(inside.mean()) if inside.size else 0.0

    def inside(self, X: Array, at: RegressionDraw, ends: Ends) -> Array:
        mean, sd = X @ at.b, np.sqrt(at.s2)
        return np.asarray(ndtr((mean - ends[0]) / sd) - ndtr((mean - ends[1]) / sd))


class Exponential(ABC):
    """Responses whose law is an exponential family in X b, mostly its canonical parameter."""

    words: str

    @abstractmethod
    def first(self, y: Array) -> Array:
        """Return a linear predictor (n,) that Newton's steps begin near."""

    @abstractmethod
    def mean(self, eta: Array) -> Array:
        """Return E y (n,) at linear predictors."""

    @abstractmethod
    def weight(self, mean: Array) -> Array:
        """Return the expected curvature (n,) in the linear predictor at means."""

    def score(self, y: Array, mean: Array) -> Array:
        """Return the slopes (n,) of the log density in the linear predictor."""
        return y - mean

    @abstractmethod
    def log_density(self, y: Array, X: Array, at: RegressionDraw) -> Array:
        """Return log p(y_n | x_n) (n,)."""

    @abstractmethod
    def propose(self, X: Array, at: RegressionDraw, rng: Generator) -> Array:
        """Return draws of y (n,), wherever they lie."""

    def mode(self, seen: Seen) -> Array:
        """Return where the posterior of b is highest, by steps of Newton's that raise it."""
        y, X, prior = seen
        prior = prior / WIDE**2

        def height(b: Array) -> float:
            log_p = self.log_density(y, X, RegressionDraw(b))
            return float(np.sum(log_p)) - 0.5 * float(b @ prior @ b)

        # From a start that the last coefficients have no part in, so that proposals have none.
        mode = np.linalg.solve(X.T @ X + prior, X.T @ self.first(y))
        now = height(mode)
        if not now > (alike := height(np.zeros(mode.size))):
            mode, now = np.zeros(mode.size), alike
        for _ in range(STEPS):
            mean = self.mean(X @ mode)
            Q = X.T @ (self.weight(mean)[:, None] * X) + prior
            step = np.linalg.solve(Q, X.T @ self.score(y, mean) - prior @ mode)
            for _ in range(HALVINGS):
                new = height(mode + step)
                if new >= now - ROUNDING * abs(now):
                    break
                step = 0.5 * step
            mode, now = mode + step, new
            if np.abs(step).max() < CLOSE:
                break
        return np.asarray(mode)

    def fit(self, seen: Seen) -> RegressionDraw:
        return RegressionDraw(self.mode(seen))

    def draw(self, seen: Seen, last: RegressionDraw | None, rng: Generator) -> RegressionDraw:
        y, X, prior = seen
        prior, mode = prior / WIDE**2, self.mode(seen)
        L = np.linalg.cholesky(X.T @ (self.weight(self.mean(X @ mode))[:, None] * X) + prior)

        def log_ratio(b: Array) -> float:
            """Return log p(b, y) less log of the density that proposes b."""
            z = L.T @ (b - mode)
            log_p = float(np.sum(self.log_density(y, X, RegressionDraw(b)))) - 0.5 * b @ prior @ b
            return float(log_p + 0.5 * (DF + b.size) * np.log1p(z @ z / DF))

        t = rng.standard_normal(mode.size) / np.sqrt(rng.chisquare(DF) / DF)
        b = mode + np.linalg.solve(L.T, t)
        if last is None or np.log(rng.random()) < log_ratio(b) - log_ratio(last.b):
            return RegressionDraw(b)
        return last

    def moments(self, X: Array, at: RegressionDraw) -> ResponseMoments:
        mean = self.mean(X @ at.b)
        return ResponseMoments(mean, self.weight(mean), self.weight(mean))

    def sample(
        self, X: Array, at: RegressionDraw, ends: Ends, rng: Generator
    ) -> tuple[Array, float]:
        y = self.propose(X, at, rng)
        out = first = np.flatnonzero((y < ends[0]) | (y > ends[1]))
        for _ in range(REDRAWN):
            if not out.size:
                break
            y[out] = self.propose(X[out], at, rng)
            out = out[(y[out] < ends[0]) | (y[out] > ends[1])]
        return y, first.size / max(y.size, 1)

    def inside(self, X: Array, at: RegressionDraw, ends: Ends) -> Array:
        return np.ones(len(X))


class Logistic(Exponential):
    """Responses 0 and 1."""

    words = "logistic"

    def first(self, y: Array) -> Array:
        return 2.0 * y - 1.0

    def mean(self, eta: Array) -> Array:
        return expit(eta)

    def weight(self, mean: Array) -> Array:
        return mean * (1.0 - mean)

    def log_density(self, y: Array, X: Array, at: RegressionDraw) -> Array:
        eta = X @ at.b
        return y * eta - np.logaddexp(0.0, eta)

    def propose(self, X: Array, at: RegressionDraw, rng: Generator) -> Array:
        return (rng.random(len(X)) < expit(X @ at.b)).astype(np.float64)


class Poisson(Exponential):
    """Counts."""

    words = "Poisson, log link"

    def first(self, y: Array) -> Array:
        return np.log(y + 0.5)

    def mean(self, eta: Array) -> Array:
        return np.exp(np.minimum(eta, LARGEST))

    def weight(self, mean: Array) -> Array:
        return mean

    def log_density(self, y: Array, X: Array, at: RegressionDraw) -> Array:
        eta = X @ at.b
        return y * eta - np.exp(np.minimum(eta, LARGEST)) - gammaln(y + 1.0)

    def propose(self, X: Array, at: RegressionDraw, rng: Generator) -> Array:
        return rng.poisson(self.mean(X @ at.b)).astype(np.float64)

    def inside(self, X: Array, at: RegressionDraw, ends: Ends) -> Array:
        return self.up_to(ends[1], X, at) - self.up_to(ends[0], X, at)

    def up_to(self, end: float, X: Array, at: RegressionDraw) -> Array:
        """Return p(y_n <= end | x_n) (n,)."""
        if end < 0.0 or end == np.inf:
            return np.full(len(X), float(end > 0.0))
        return np.asarray(gammaincc(np.floor(end) + 1.0, self.mean(X @ at.b)))
