"""Columns of levels without an order: their law given X.

    p(y = k) = expit(X b_k) prod_{j < k} (1 - expit(X b_j)),  k = 0, ..., K - 1,  X b_{K-1} infinite

so that each b_k is that of a logistic regression among the rows of level k and those after it
[Agresti 2013, continuation ratios]: b_k are independent given the data, as they are before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from glfm_cli.arrays import Array
from glfm_cli.completion.analysis.families import Ends, Logistic, RegressionDraw, Seen


@dataclass(frozen=True)
class Nominal:
    """Level codes (n,) of K levels; coefficients b (K - 1, p)."""

    n_levels: int
    words = "a logistic regression of each level among those after it"

    def log_density(self, y: Array, X: Array, at: RegressionDraw) -> Array:
        out = np.zeros(len(X))
        for k, b in enumerate(at.b):
            left = y >= k
            out[left] += Logistic().log_density(y[left] == k, X[left], RegressionDraw(b))
        return out

    def fit(self, seen: Seen) -> RegressionDraw:
        return RegressionDraw(np.array([Logistic().mode(one) for one in self._steps(seen)]))

    def draw(self, seen: Seen, last: RegressionDraw | None, rng: Generator) -> RegressionDraw:
        found = []
        for k, one in enumerate(self._steps(seen)):
            before = None if last is None else RegressionDraw(last.b[k])
            found.append(Logistic().draw(one, before, rng).b)
        return RegressionDraw(np.array(found))

    def sample(
        self, X: Array, at: RegressionDraw, ends: Ends, rng: Generator
    ) -> tuple[Array, float]:
        y = np.full(len(X), self.n_levels - 1.0)
        for k, b in enumerate(at.b):
            left = np.flatnonzero(y > k)
            y[left[Logistic().propose(X[left], RegressionDraw(b), rng) == 1.0]] = k
        return y, 0.0

    def inside(self, X: Array, at: RegressionDraw, ends: Ends) -> Array:
        return np.ones(len(X))

    def _steps(self, seen: Seen) -> list[Seen]:
        """Return what each regression sees: whether rows of this level or a later one are of it."""
        every = [seen.y >= k for k in range(self.n_levels - 1)]
        return [
            Seen((seen.y[left] == k).astype(np.float64), seen.X[left], seen.prior)
            for k, left in enumerate(every)
        ]
