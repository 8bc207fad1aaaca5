"""What is kept of a restart: the law of what rows share and of where rows lie, and of cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.clgp.bound import moments
from glfm_cli.latent.clgp.config import ClgpConfig
from glfm_cli.latent.clgp.features import Features, Inducing
from glfm_cli.latent.clgp.laws import ClgpLaw, spread_normals
from glfm_cli.latent.clgp.parameters import Places, Shared
from glfm_cli.latent.clgp.spreads import matrices, spreads
from glfm_cli.latent.clgp.table import KINDS, ColumnKind, ObservedTable, Slots
from glfm_cli.latent.model import take

CANDIDATES = 16  # places of a row in its law
PART = 1 << 20  # doubles of features at a time


@dataclass(frozen=True)
class ClgpDraw:
    """q(e) with all else that rows share, and the rows' places.

    shared : of a draw for one table (`sampled`) `mu` is e itself, and `log_c` is empty
    m : (N, Q) means of places;  spread : of their covariances, as `spreads` returns it; (N, 0)
        where places are certain
    """

    kinds: tuple[ColumnKind, ...]
    shared: Shared
    m: Array
    spread: Array

    @classmethod
    def of(cls, table: ObservedTable, shared: Shared, places: Places, config: ClgpConfig) -> Self:
        """Return what later updates leave alone."""
        spread = spreads(table, places, shared, config)
        return cls(table.kinds, shared.copy(), places.m.copy(), spread)

    def sampled(self, rng: np.random.Generator) -> Self:
        """Return a draw of e_s ~ N(mu_s, V diag(c_s^2) V'), for all rows of a table at once."""
        shared = self.shared
        P, S = shared.mu.shape
        e = shared.mu + shared.V @ (np.exp(shared.log_c) * rng.standard_normal((S, P))).T
        certain = replace(shared, mu=e, log_c=np.zeros((S, 0)))
        return replace(self, shared=certain)

    def placed(self, rng: np.random.Generator) -> Self:
        """Return a draw with places that are sampled, and so certain."""
        x = self._around(slice(None), rng.standard_normal((1, *self.m.shape)))
        return replace(self, m=x, spread=np.zeros((x.shape[0], 0)))

    def covariances(self) -> Array:
        """Return the covariances (N, Q, Q) of places."""
        C = matrices(self.spread, self.m.shape[1])
        return C @ C.transpose(0, 2, 1)

    def _around(self, rows: slice | Array, normals: Array) -> Array:
        """Return places (T n, Q) of some rows for normals (T, n or 1, Q)."""
        m, C = self.m[rows], matrices(self.spread[rows], self.m.shape[1])
        x: Array = m + (C @ normals[..., None])[..., 0]
        return x.reshape(-1, m.shape[1])

    @cached_property
    def slots(self) -> Slots:
        """Where the columns' parameters stand."""
        return Slots(self.kinds)

    @property
    def noise(self) -> Array:
        """The noise variances (D,); 1 of columns that have none to learn."""
        return np.exp(self.shared.log_noise)

    def thresholds(self, d: int) -> Array:
        """Return the thresholds (R - 1,) of an ordered column."""
        return self.shared.thresholds(self.slots, d)

    def law(self, rows: slice | Array, candidates: int = CANDIDATES) -> ClgpLaw:
        """Return the law of the cells of some rows: `candidates` normals of equal weight.

        Their places are spread as q(x_n) is, the same way for every row; weights are integrated.
        """
        if not self.spread.shape[1]:
            return self.law_at(self.m[rows])
        x = self._around(rows, spread_normals(candidates, self.m.shape[1])[:, None, :])
        n = x.shape[0] // candidates
        mean, var = (
            part.reshape(candidates, n, -1).transpose(1, 0, 2) for part in self.moments_at(x)
        )
        return ClgpLaw(self.slots, self.noise, mean, var)

    def law_at(self, x: Array) -> ClgpLaw:
        """Return the law of the cells of rows that lie at x (n, Q), weights integrated."""
        mean, var = self.moments_at(x)
        return ClgpLaw(self.slots, self.noise, mean[:, None], var[:, None])

    def joint(self, rows: slice | Array, rng: np.random.Generator) -> ClgpLaw:
        """Return the law of cells given latent numbers, joint in a row: one place a row.

        Rows hang together by e: it must be `sampled` once for all of them.
        """
        mean, var = self.moments_at(
            self._around(rows, rng.standard_normal((1, *self.m[rows].shape)))
        )
        f = mean + np.sqrt(var) * rng.standard_normal(mean.shape)
        return ClgpLaw(self.slots, self.noise, f[:, None, :], None)

    def moments_at(self, x: Array) -> tuple[Array, Array]:
        """Return mean and variance (n, S) of the latent numbers at places x (n, Q)."""
        inducing = Inducing.of(self.shared)
        mean, var = (np.empty((x.shape[0], self.shared.b.size)) for _ in range(2))
        size = max(1, PART // self.shared.mu.shape[0])
        for start in range(0, x.shape[0], size):
            part = slice(start, start + size)
            features = Features.of(x[part], self.shared, inducing)
            mean[part], var[part] = moments(features, self.shared)
        return mean, var

    def pack(self) -> dict[str, Array]:
        """Return it as named arrays."""
        kinds = [(KINDS.index(kind.kind), kind.n_levels, kind.reference) for kind in self.kinds]
        return self.shared.arrays() | {
            "kinds": np.array(kinds, dtype=np.int64).reshape(-1, 3),
            "m": self.m,
            "spread": self.spread,
        }

    @classmethod
    def unpack(
        cls, arrays: Mapping[str, Array], n_rows: int, n_latent: int, n_columns: int
    ) -> Self:
        """Return what `pack` gave, on the same memory; ValueError when it is no such draw."""
        codes = take(arrays, "kinds", np.int64, (n_columns, 3))
        known, n_levels = (codes[:, 0] >= 0) & (codes[:, 0] < len(KINDS)), codes[:, 1]
        known &= (codes[:, 2] >= 0) & (codes[:, 2] < np.maximum(n_levels, 1))
        numbers = codes[:, 0] == KINDS.index("number")
        if not np.all(known & np.where(numbers, n_levels == 0, n_levels >= 1)):
            raise ValueError("'kinds' are no kinds of columns")
        kinds = tuple(ColumnKind(KINDS[int(k)], int(n), int(first)) for k, n, first in codes)
        if sum(kind.n_latent for kind in kinds) != n_latent:
            raise ValueError("'kinds' does not fit the number of latent columns")
        shared = Shared.taken(arrays, Slots(kinds))
        Q = shared.log_ell.size
        m = take(arrays, "m", np.float64, (n_rows, Q))
        spread = take(arrays, "spread", np.float64, (n_rows, Q * (Q + 1) // 2))
        if np.any(spread[:, [i * Q - i * (i - 1) // 2 for i in range(Q)]] <= 0.0):
            raise ValueError("'spread' is no factor of covariances")
        return cls(kinds, shared, m, spread)
