"""A snapshot of the low-rank model (`bsvd`), and the parts that its means are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.capabilities import Parts
from glfm_cli.latent.model import Sizes, Spans, take


@dataclass(frozen=True)
class BsvdDraw:
    """A snapshot: left (I, q) and right (J, q), noise variances (D,), and the priors of a new row.

    n_components, n_row_covariates : the first of the q columns, and those after them
    tau, mu : see `BsvdState`; with a fifth tau the last of the q columns are slopes and levels
    n_rows : I of the fit;  s : (k,) of the components that are on
    row_precision : (I,) f of `BsvdState`, or (0,) where rows have no noise of their own
    variation : the coefficient of variation of f
    of_rows, of_columns : (p, k + 1) what covariates say of factors, without s, and of intercepts
    spans : per column, its first latent column and one past its last; of a matrix those of `noise`
    """

    left: Array
    right: Array
    noise: Array
    n_components: int
    n_row_covariates: int
    tau: Array
    n_rows: int
    s: Array = field(default_factory=lambda: np.empty(0))
    mu: float = 0.0
    row_precision: Array = field(default_factory=lambda: np.empty(0))
    variation: float = 0.0
    spans: Spans = ((0, 1),)
    of_rows: Array = field(default_factory=lambda: np.empty((0, 1)))
    of_columns: Array = field(default_factory=lambda: np.empty((0, 1)))

    @property
    def n_slopes(self) -> int:
        """How many of the q columns, at the end, are slopes: 1 or 0."""
        return self.tau.size - 4

    def means_at(self, row: Array, column: Array) -> Array:
        """Return x (n,) of the cells (row, column) of a matrix."""
        return np.einsum("nk,nk->n", self.left[row], self.right[column])

    def noise_of_rows(self, row: Array) -> Array:
        if self.row_precision.size:
            return self.noise[0] / self.row_precision[row]
        return np.full(row.size, self.noise[0])

    def parts(self) -> Parts:
        """Return what x = U (s V)' + R G_R' + G_C C' + slope level' is made of.

        What covariates say of factors and intercepts counts as weights of the covariates.
        """
        k, p = self.n_components, self.n_row_covariates
        cuts = [k, k + p, self.left.shape[1] - self.n_slopes]
        U, R, G_C, slope = np.split(self.left, cuts, axis=1)
        sV, G_R, C, level = np.split(self.right, cuts, axis=1)
        n, m = self.of_rows.shape[0], self.of_columns.shape[0]
        if n:
            b, a = self.of_rows[:, :k], self.of_rows[:, k]
            G_R, U, G_C = G_R.copy(), U - R[:, -n:] @ b, G_C.copy()
            G_R[:, -n:] += sV @ b.T + a
            G_C[:, :1] -= (R[:, -n:] @ a)[:, None]
        if m:
            b, a = self.s * self.of_columns[:, :k], self.of_columns[:, k]
            G_R, sV, G_C = G_R.copy(), sV - C[:, -m:] @ b, G_C.copy()
            G_C[:, -m:] += U @ b.T + a * (1.0 + slope.sum(axis=1, keepdims=True))
            G_R[:, :1] -= (C[:, -m:] @ a)[:, None]
            level = G_R[:, : level.shape[1]] - self.mu
        return Parts(U, sV, R, G_R, G_C, C, slope, level)

    def pack(self) -> dict[str, Array]:
        """Return it as named arrays."""
        return {
            "left": self.left,
            "right": self.right,
            "noise": self.noise,
            "tau": self.tau,
            "s": self.s,
            "mu": np.array(self.mu, dtype=np.float64),
            "row_precision": self.row_precision,
            "variation": np.array(self.variation, dtype=np.float64),
            "of_rows": self.of_rows,
            "of_columns": self.of_columns,
            "sizes": np.array([self.n_components, self.n_row_covariates, self.n_rows], np.int64),
        }

    @classmethod
    def unpack(cls, arrays: Mapping[str, Array], sizes: Sizes) -> Self:
        """Return what `pack` gave, on the same memory; ValueError when it is no such snapshot."""
        k, p, n_rows = (int(n) for n in take(arrays, "sizes", np.int64, (3,)))
        right = take(arrays, "right", np.float64, (sizes.latent, None))
        if min(k, p) < 0 or k + p > right.shape[1] or n_rows < 1:
            raise ValueError("'sizes' does not fit 'right'")
        noise = take(arrays, "noise", np.float64, (sizes.columns,))
        tau = take(arrays, "tau", np.float64, (None,))
        if tau.size not in (4, 5) or k + p + tau.size - 4 > right.shape[1]:
            raise ValueError("'tau' does not fit 'right'")
        s = take(arrays, "s", np.float64, (k,))
        mu = float(take(arrays, "mu", np.float64, ()))
        f = take(arrays, "row_precision", np.float64, (None,))
        variation = float(take(arrays, "variation", np.float64, ()))
        if (f.size, variation > 0.0) not in ((0, False), (sizes.rows, True)):
            raise ValueError("'row_precision' and 'variation' do not fit each other and the rows")
        if not all(np.all(values > 0.0) for values in (noise, tau, s, f)):
            raise ValueError(
                "'noise', 'tau', 's' or 'row_precision' has a number that is not above 0"
            )
        left = take(arrays, "left", np.float64, (sizes.rows, right.shape[1]))
        sides = ("of_rows", "of_columns")
        means = [take(arrays, side, np.float64, (None, k + 1)) for side in sides]
        return cls(left, right, noise, k, p, tau, n_rows, s, mu, f, variation, sizes.spans, *means)
