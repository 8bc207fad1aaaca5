"""Draws: one sample of everything that rows share, and the law of latent numbers under it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Self

import numpy as np
from scipy.special import ndtri

from glfm_cli.arrays import Array
from glfm_cli.latent.clgp.bound import moments
from glfm_cli.latent.clgp.features import Features, Inducing
from glfm_cli.latent.clgp.parameters import Places, Shared
from glfm_cli.latent.clgp.table import KINDS, ColumnKind, Slots
from glfm_cli.latent.model import EtaLaw, take

CANDIDATES = 16  # places of a row in its law
PART = 1 << 20  # doubles of features at a time


@cache
def spread_normals(n: int, n_dimensions: int) -> Array:
    """Return n points (n, Q) spread as N(0, I) is, in antithetic pairs; n is even.

    A lattice of the powers of the root of x^(Q + 1) = x + 1 in the unit cube [Roberts 2018], mapped
    by normal quantiles: the same for all rows, chains and seeds.
    """
    root = 2.0
    for _ in range(64):
        root = (1.0 + root) ** (1.0 / (n_dimensions + 1))
    steps = root ** -np.arange(1.0, n_dimensions + 1)
    half = ndtri((0.5 + np.outer(np.arange(1, n // 2 + 1), steps)) % 1.0)
    points: Array = np.concatenate([half, -half])
    points /= np.sqrt(np.mean(points**2, axis=0))
    points.flags.writeable = False
    return points


@dataclass(frozen=True)
class ClgpDraw:
    """A sample of the weights with all else that rows share, and the rows' places.

    shared : `mu` is the sample e, without spread: `log_c` and `V` are empty
    """

    kinds: tuple[ColumnKind, ...]
    shared: Shared
    places: Places

    @classmethod
    def of(
        cls,
        kinds: tuple[ColumnKind, ...],
        shared: Shared,
        places: Places,
        rng: np.random.Generator,
    ) -> Self:
        """Return a draw of e_s ~ N(mu_s, V diag(c_s^2) V'), for all rows of a table at once."""
        P, S = shared.mu.shape
        e = shared.mu + shared.V @ (np.exp(shared.log_c) * rng.standard_normal((S, P))).T
        certain = replace(shared.copy(), mu=e, log_c=np.zeros((S, 0)), V=np.zeros((P, 0)))
        return cls(kinds, certain, Places(places.m.copy(), places.log_sd.copy()))

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

    def law(self, rows: slice | Array, candidates: int = CANDIDATES) -> EtaLaw:
        """Return the law of the latent numbers of some rows: `candidates` normals of equal weight.

        Their places are spread as q(x_n) is, the same way for every row.
        """
        q = self.places.of(rows)
        n, Q = q.m.shape
        x = q.sample(spread_normals(candidates, Q)[:, None, :])
        mean, var = (
            part.reshape(candidates, n, -1).transpose(1, 0, 2) for part in self.moments_at(x)
        )
        return EtaLaw(np.full((n, candidates), 1.0 / candidates), mean, var)

    def joint(self, rows: slice | Array, rng: np.random.Generator) -> Array:
        """Return latent numbers (n, S), joint in a row: one place a row; e is that of the table."""
        q = self.places.of(rows)
        mean, var = self.moments_at(q.sample(rng.standard_normal((1, *q.m.shape))))
        return mean + np.sqrt(var) * rng.standard_normal(mean.shape)

    def moments_at(self, x: Array) -> tuple[Array, Array]:
        """Return mean and variance (n, S) of the latent numbers at places x (n, Q)."""
        inducing = Inducing.of(self.shared)
        mean, var = (np.empty((x.shape[0], self.shared.b.size)) for _ in range(2))
        size = max(1, PART // self.shared.mu.shape[0])
        for start in range(0, x.shape[0], size):
            part = slice(start, start + size)
            features = Features.of(x[part], self.shared, inducing)
            B = features.Psi @ self.shared.V
            mean[part], var[part] = moments(features, B, self.shared)
        return mean, var

    def pack(self) -> dict[str, Array]:
        """Return it as named arrays."""
        arrays = self.shared.arrays()
        del arrays["log_c"], arrays["V"]
        kinds = [(KINDS.index(kind.kind), kind.n_levels) for kind in self.kinds]
        return arrays | {
            "kinds": np.array(kinds, dtype=np.int64).reshape(-1, 2),
            "m": self.places.m,
            "log_sd": self.places.log_sd,
        }

    @classmethod
    def unpack(
        cls, arrays: Mapping[str, Array], n_rows: int, n_latent: int, n_columns: int
    ) -> Self:
        """Return what `pack` gave, on the same memory; ValueError when it is no such draw."""
        codes = take(arrays, "kinds", np.int64, (n_columns, 2))
        known, n_levels = (codes[:, 0] >= 0) & (codes[:, 0] < len(KINDS)), codes[:, 1]
        numbers = codes[:, 0] == KINDS.index("number")
        if not np.all(known & np.where(numbers, n_levels == 0, n_levels >= 1)):
            raise ValueError("'kinds' are no kinds of columns")
        kinds = tuple(ColumnKind(KINDS[int(kind)], int(n)) for kind, n in codes)
        if sum(kind.n_latent for kind in kinds) != n_latent:
            raise ValueError("'kinds' does not fit the number of latent columns")
        shared = Shared.taken(arrays, Slots(kinds), certain=True)
        return cls(kinds, shared, Places.taken(arrays, n_rows, shared.log_ell.size))
