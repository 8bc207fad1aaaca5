"""Ridge regression whose two precisions are fitted by evidence, from sums over rows.

What `sklearn.linear_model.BayesianRidge` finds with its defaults, up to rounding. That decomposes
all rows anew for each column of each round, which takes minutes where columns have many levels.

X : (n, p) features         U : centred features         v : (n,) centred response
alpha : noise precision     lam : precision of coefficients
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glfm_cli.arrays import Array

MOST_ROUNDS = 300
TOLERANCE = 1e-3  # sum of the moves of coefficients
VAGUE = 1e-6  # shape and rate of the priors of both precisions


class BayesianRidge:
    """A regression as the imputers of scikit-learn take it."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return no settings; scikit-learn copies estimators by them."""
        return {}

    def fit(self, X: Array, y: Array) -> BayesianRidge:
        """Fit the coefficients, and by turns the two precisions [MacKay 1992]."""
        self.centre, self.mean = X.mean(axis=0), y.mean()
        U, v = X - self.centre, y - self.mean
        product = U.T @ v
        value, basis = np.linalg.eigh(U.T @ U)
        value = np.maximum(value, 0.0)
        alpha, lam = 1.0 / (y.var() + np.finfo(np.float64).eps), 1.0
        old = None
        for _ in range(MOST_ROUNDS):
            found = self._solved(value, basis, product, lam / alpha)
            gap = float(np.sum((v - U @ found) ** 2))
            used = float(np.sum(alpha * value / (lam + alpha * value)))
            lam = (used + 2.0 * VAGUE) / (float(found @ found) + 2.0 * VAGUE)
            alpha = (y.size - used + 2.0 * VAGUE) / (gap + 2.0 * VAGUE)
            if old is not None and np.abs(old - found).sum() < TOLERANCE:
                break
            old = found
        self.coefficients = self._solved(value, basis, product, lam / alpha)
        return self

    def predict(self, X: Array) -> Array:
        """Return the mean of the response."""
        return self.mean + (X - self.centre) @ self.coefficients

    @staticmethod
    def _solved(value: Array, basis: Array, product: Array, ratio: float) -> Array:
        return basis @ ((basis.T @ product) / (value + ratio))
