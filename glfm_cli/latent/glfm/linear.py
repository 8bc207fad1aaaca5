"""The linear part of the latent feature model, beside its features: eta = Z B + U V.

    u_nl ~ N(0, 1)      v_ls ~ N(0, omega_l)      sqrt(omega_l) ~ half-Cauchy(1)

Columns that move together by degrees need many binary features, which follow a straight line in
steps; a few of these components follow it exactly. The half-Cauchy law lets a component that
explains nothing go to 0. With it  omega | c ~ InvGamma(1/2, 1/c),  c ~ InvGamma(1/2, 1)
[Makalic and Schmidt 2016].

U (N, L), V (L, S) and omega (L,) are float64; L is fixed, and 0 without the part. All is drawn
given the features and their weights, with missing pseudo-observations integrated out; these must
be drawn anew straight afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.model import take
from glfm_cli.latent.row_laws import draw_normals

_ROWS = 1 << 14  # whose precisions are held at once
_FIRST, _NOISE = 20, 0.3  # steps of a start, and the variance of noise that they assume


@dataclass
class LinearPart:
    """U, V and omega, see above."""

    U: Array
    V: Array
    omega: Array

    @classmethod
    def start(cls, y: Array, observed: Array, L: int, rng: np.random.Generator) -> Self:
        """Return components after some steps on y (N, S) less its means, for a typical noise.

        There are L of them, never more than S.
        """
        (n_rows, n_latent), L = y.shape, min(L, y.shape[1])
        part = cls(rng.standard_normal((n_rows, L)), np.zeros((L, n_latent)), np.ones(L))
        E = y - (y * observed).sum(axis=0) / np.maximum(observed.sum(axis=0), 1)
        for _ in range(_FIRST if L else 0):
            part.draw_columns(E, observed, np.full(n_latent, _NOISE), rng)
            part.draw_variances(rng)
            part.draw_rows(E, observed, np.full(n_latent, _NOISE), rng)
        return part

    @property
    def size(self) -> int:
        """Return L."""
        return self.omega.size

    def copy(self) -> LinearPart:
        """Return a copy that later updates leave alone."""
        return LinearPart(self.U.copy(), self.V.copy(), self.omega.copy())

    def pack(self) -> dict[str, Array]:
        """Return it as named arrays, none where there are no components."""
        return {"U": self.U, "V": self.V, "omega": self.omega} if self.size else {}

    @classmethod
    def unpack(cls, arrays: Mapping[str, Array], n_rows: int, n_latent: int) -> Self:
        """Return what `pack` gave, on the same memory; ValueError when it is no such part."""
        if not arrays.keys() & {"U", "V", "omega"}:
            return cls(np.empty((n_rows, 0)), np.empty((0, n_latent)), np.empty(0))
        omega = take(arrays, "omega", np.float64, (None,))
        if not np.all(omega > 0.0):
            raise ValueError("'omega' has a variance that is not above 0")
        U = take(arrays, "U", np.float64, (n_rows, omega.size))
        return cls(U, take(arrays, "V", np.float64, (omega.size, n_latent)), omega)

    def scale_group(self, spans: tuple[tuple[int, int], ...]) -> Array:
        """Return, per column, the squares of V in units of their prior sd, and their number (D, 2).

        A move along the scale of a column multiplies its V, too.
        """
        squares = np.concatenate([[0.0], np.cumsum(((self.V.T**2) / self.omega).sum(axis=1))])
        ends = np.array(spans).reshape(-1, 2)
        start, end = ends[:, 0], ends[:, 1]
        return np.column_stack([squares[end] - squares[start], self.size * (end - start)])

    def draw_rows(self, E: Array, observed: Array, noise: Array, rng: np.random.Generator) -> None:
        """Draw U given V:  Q_n = I + sum_s V_s V_s' / noise_s  over what is observed.

        E, observed : (N, S) y less what features explain, and 1 where it is seen
        noise : (S,) variances
        """
        outer = np.einsum("ls,ks->slk", self.V, self.V).reshape(-1, self.size**2)
        for start in range(0, len(E), _ROWS):
            at = slice(start, start + _ROWS)
            seen = observed[at] / noise
            Q = (seen @ outer).reshape(-1, self.size, self.size)
            self.U[at] = draw_normals(Q + np.eye(self.size), (seen * E[at]) @ self.V.T, rng)

    def draw_columns(
        self, E: Array, observed: Array, noise: Array, rng: np.random.Generator
    ) -> None:
        """Draw V given U:  Q_s = diag(1 / omega) + sum_n u_n u_n' / noise_s  over what is seen."""
        L = self.size
        Q, b = np.zeros((E.shape[1], L * L)), np.zeros((E.shape[1], L))
        for start in range(0, len(E), _ROWS):
            at = slice(start, start + _ROWS)
            U, seen = self.U[at], observed[at]
            Q += seen.T @ np.einsum("nl,nk->nlk", U, U).reshape(-1, L * L)
            b += (seen * E[at]).T @ U
        Q = Q.reshape(-1, L, L) / noise[:, None, None] + np.diag(1.0 / self.omega)
        self.V[:] = draw_normals(Q, b / noise[:, None], rng).T

    def draw_variances(self, rng: np.random.Generator) -> None:
        """Draw omega given V."""
        L, S = self.V.shape
        c = (1.0 + 1.0 / self.omega) / rng.standard_exponential(L)
        rate = 1.0 / c + (self.V**2).sum(axis=1) / 2
        self.omega[:] = rate / rng.standard_gamma((1 + S) / 2, L)
