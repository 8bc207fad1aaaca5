"""Laws of a response given X: their log densities, and coefficients drawn given the data.

    linear     y ~ N(X b, s2)              drawn exactly
    logistic   y ~ Bernoulli(logit X b)    by an independence step of Metropolis and Hastings, from
    poisson    y ~ Poisson(exp X b)        a t distribution about the mode [Tierney 1994]

Each b has a prior so wide that it only keeps proper what data leave open: b_j ~ N(0, w^2 / m_j),
m_j the mean of observed x_j^2, which does not move; of a linear law in units of s, where
p(s2) ~ s2^(p/2 - 1) leaves n - p degrees of freedom.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.random import Generator
from scipy.special import expit, gammaln

from glfm_cli.arrays import Array

WIDE_LINEAR, WIDE = 1e3, 10.0
STEPS, CLOSE = 25, 1e-10  # of Newton's at most, and the last one's size
DF = 5.0  # of the proposals
LARGEST = 30.0  # linear predictor of a count that is looked at


@dataclass(frozen=True)
class RegressionDraw:
    """b (p,), and the variance of a linear law."""

    b: Array
    s2: float = 1.0


class Seen(NamedTuple):
    """What is observed of a regression: y (n,), X (n, p), and m (p,) of the prior."""

    y: Array
    X: Array
    squares: Array


class Family(Protocol):
    """A law of a response (n,) given its linear predictor."""

    def log_density(self, y: Array, X: Array, at: RegressionDraw) -> Array:
        """Return log p(y_n | x_n) (n,)."""

    def draw(self, seen: Seen, last: RegressionDraw | None, rng: Generator) -> RegressionDraw:
        """Return coefficients after a step that leaves their posterior as it is."""

    def sample(self, X: Array, at: RegressionDraw, rng: Generator) -> Array:
        """Return draws of y (n,)."""


class Linear:
    """Normal responses."""

    def log_density(self, y: Array, X: Array, at: RegressionDraw) -> Array:
        return -0.5 * (y - X @ at.b) ** 2 / at.s2 - 0.5 * np.log(2.0 * np.pi * at.s2)

    def draw(self, seen: Seen, last: RegressionDraw | None, rng: Generator) -> RegressionDraw:
        y, X, squares = seen
        n, p = X.shape
        prior = np.diag(squares) / WIDE_LINEAR**2
        Q = X.T @ X + prior
        L = np.linalg.cholesky(Q)
        mode = np.linalg.solve(Q, X.T @ y)
        s2 = float((np.sum((y - X @ mode) ** 2) + mode @ prior @ mode) / rng.chisquare(n - p))
        return RegressionDraw(mode + np.sqrt(s2) * np.linalg.solve(L.T, rng.standard_normal(p)), s2)

    def sample(self, X: Array, at: RegressionDraw, rng: Generator) -> Array:
        return X @ at.b + np.sqrt(at.s2) * rng.standard_normal(len(X))


class _Exponential(ABC):
    """Responses whose law is an exponential family in its canonical parameter X b."""

    @abstractmethod
    def first(self, y: Array) -> Array:
        """Return a linear predictor (n,) that Newton's steps begin near."""

    @abstractmethod
    def mean(self, eta: Array) -> Array:
        """Return E y (n,) at linear predictors."""

    @abstractmethod
    def weight(self, mean: Array) -> Array:
        """Return the variance of y (n,) at means."""

    @abstractmethod
    def log_density(self, y: Array, X: Array, at: RegressionDraw) -> Array:
        """Return log p(y_n | x_n) (n,)."""

    def draw(self, seen: Seen, last: RegressionDraw | None, rng: Generator) -> RegressionDraw:
        y, X, squares = seen
        prior = np.diag(squares) / WIDE**2
        # From a start that the last coefficients have no part in, so that proposals have none.
        mode = np.linalg.solve(X.T @ X + prior, X.T @ self.first(y))
        for _ in range(STEPS):
            mean = self.mean(X @ mode)
            Q = X.T @ (self.weight(mean)[:, None] * X) + prior
            step = np.linalg.solve(Q, X.T @ (y - mean) - prior @ mode)
            mode = mode + step
            if np.abs(step).max() < CLOSE:
                break
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


class Logistic(_Exponential):
    """Responses 0 and 1."""

    def first(self, y: Array) -> Array:
        return 2.0 * y - 1.0

    def mean(self, eta: Array) -> Array:
        return expit(eta)

    def weight(self, mean: Array) -> Array:
        return mean * (1.0 - mean)

    def log_density(self, y: Array, X: Array, at: RegressionDraw) -> Array:
        eta = X @ at.b
        return y * eta - np.logaddexp(0.0, eta)

    def sample(self, X: Array, at: RegressionDraw, rng: Generator) -> Array:
        return (rng.random(len(X)) < expit(X @ at.b)).astype(np.float64)


class Poisson(_Exponential):
    """Counts."""

    def first(self, y: Array) -> Array:
        return np.log(y + 0.5)

    def mean(self, eta: Array) -> Array:
        return np.exp(np.minimum(eta, LARGEST))

    def weight(self, mean: Array) -> Array:
        return mean

    def log_density(self, y: Array, X: Array, at: RegressionDraw) -> Array:
        eta = X @ at.b
        return y * eta - np.exp(np.minimum(eta, LARGEST)) - gammaln(y + 1.0)

    def sample(self, X: Array, at: RegressionDraw, rng: Generator) -> Array:
        return rng.poisson(self.mean(X @ at.b)).astype(np.float64)


FAMILIES: dict[str, Family] = {"linear": Linear(), "logistic": Logistic(), "poisson": Poisson()}
