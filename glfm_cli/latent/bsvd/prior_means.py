"""What covariates say of the low-rank model's factors and intercepts before any cell is seen.

    U_ik ~ N(r_i . b_k, 1/I)     intercept of row i  d_i ~ N(r_i . a, sd^2)
    b_k ~ N(0, 1/(I l))          a ~ N(0, 1/l')          1/sqrt(l), 1/sqrt(l') ~ half-Cauchy

and likewise with c_j of the columns' factors and intercepts, J for I. A row without a cell is then
predicted from what is known of it. The coefficients b are the link matrices of Macau [Simm et al.
2017], here with factors whose scale is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.model import take


@dataclass
class PriorMeans:
    """One side's coefficients, updated in place.

    X : (n, p) covariates without the constant
    axes, strength : (p, p) and (p,), eigenvectors and eigenvalues of X'X
    factors : (p, K) b, of the components that are on;  intercepts : (p,) a
    precision : (2,) l and l'
    """

    X: Array
    axes: Array
    strength: Array
    factors: Array
    intercepts: Array
    precision: Array

    @classmethod
    def of(cls, X: Array, n_components: int) -> Self:
        """Return coefficients that are all 0."""
        strength, axes = np.linalg.eigh(X.T @ X)
        p = X.shape[1]
        factors, intercepts = np.zeros((p, n_components)), np.zeros(p)
        return cls(X, axes, np.maximum(strength, 0.0), factors, intercepts, np.ones(2))

    @property
    def p(self) -> int:
        """How many covariates there are."""
        return self.X.shape[1]

    def of_factors(self, k: Array) -> Array:
        """Return the prior means (n, len(k)) of the factors of some components."""
        return self.X @ self.factors[:, k]

    def of_units(self, k: Array, q: int) -> Array | None:
        """Return the prior means (n, q) of the factors k, the intercept and the rest, which are 0.

        None without covariates.
        """
        if not self.p:
            return None
        return means_of(self.X, self.coefficients(k), q)

    @property
    def of_intercepts(self) -> Array:
        """The prior means (n,) of the intercepts; of columns, without their common mean."""
        return self.X @ self.intercepts

    def squares(self, k: int, factor: Array) -> float:
        """Return what n / 2 times is the negative log prior of a factor (n,) and its b_k."""
        own, b = factor - self.X @ self.factors[:, k], self.factors[:, k]
        return float(own @ own + self.precision[0] * (b @ b))

    def renewed(self, rng: np.random.Generator) -> Array:
        """Return a b (p,) from its prior."""
        n, p = self.X.shape
        return rng.standard_normal(p) / np.sqrt(max(n, 1) * self.precision[0])

    def drawn_of(self, factor: Array, rng: np.random.Generator, power: float = 1.0) -> Array:
        """Return a b (p,) given a factor (n,), of whose density a power counts."""
        n = float(self.X.shape[0])
        return self._drawn(factor[:, None], power * n, n * self.precision[0], rng)[:, 0]

    def draw(
        self,
        factors: Array,
        k: Array,
        intercepts: Array | None,
        precision: float,
        scale: float,
        rng: np.random.Generator,
    ) -> None:
        """Draw b given the factors (n, len(k)), a given the intercepts (n,), then l and l'.

        precision : of the intercepts, 1 / sd^2;  scale : of the half-Cauchy of 1 / sqrt(l')
        """
        if not self.p:
            return
        n = self.X.shape[0]
        self.factors[:, k] = self._drawn(factors, float(n), n * self.precision[0], rng)
        size, squares = self.p * k.size, float(np.sum(self.factors[:, k] ** 2))
        self.precision[0] = _half_cauchy(self.precision[0], 1.0, size, n * squares, rng)
        if intercepts is not None:
            drawn = self._drawn(intercepts[:, None], precision, self.precision[1], rng)
            self.intercepts[:] = drawn[:, 0]
            squares = float(drawn[:, 0] @ drawn[:, 0])
            self.precision[1] = _half_cauchy(self.precision[1], scale, self.p, squares, rng)

    def _drawn(self, y: Array, noise: float, prior: float, rng: np.random.Generator) -> Array:
        """Return coefficients (p, q) of y (n, q), noise and prior their precisions."""
        spread = noise * self.strength + prior
        mean = (noise * (self.axes.T @ (self.X.T @ y))) / spread[:, None]
        normal = rng.standard_normal(mean.shape) / np.sqrt(spread)[:, None]
        return self.axes @ (mean + normal)

    def coefficients(self, k: Array) -> Array:
        """Return (p, len(k) + 1): those of the factors k, then of the intercepts."""
        return np.append(self.factors[:, k], self.intercepts[:, None], axis=1)

    def save(self, side: str, k: Array) -> dict[str, Array]:
        """Return the coefficients of the components k, and the precisions, as named arrays."""
        return {
            f"{side}_factors": self.factors[:, k],
            f"{side}_intercepts": self.intercepts,
            f"{side}_precision": self.precision,
        }

    def load(self, arrays: Mapping[str, Array], side: str, k: Array) -> None:
        """Take what `save` gave; ValueError when it is not that."""
        self.factors[:, k] = take(arrays, f"{side}_factors", np.float64, (self.p, k.size))
        self.intercepts[:] = take(arrays, f"{side}_intercepts", np.float64, (self.p,))
        self.precision[:] = take(arrays, f"{side}_precision", np.float64, (2,))
        if not np.all(self.precision > 0.0):
            raise ValueError(f"'{side}_precision' has a number that is not above 0")


def means_of(X: Array, coefficients: Array, q: int) -> Array:
    """Return the prior means (n, q) of units with covariates X: of factors, the intercept, 0."""
    means = np.zeros((X.shape[0], q))
    n = min(q, coefficients.shape[1])
    means[:, :n] = X @ coefficients[:, :n]
    return means


def _half_cauchy(
    precision: float, scale: float, n: int, squares: float, rng: np.random.Generator
) -> float:
    """Return a draw of a precision given n normals' sum of squares, its sd half-Cauchy(scale)."""
    rate = rng.standard_exponential() / (scale**-2 + precision)
    return float(rng.gamma(0.5 + 0.5 * n) / (rate + 0.5 * squares))
