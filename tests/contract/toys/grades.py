"""A toy type of levels: a normal variable cut where a standard one has equal shares.

x = r when cut_r < y <= cut_{r+1},   y ~ N(eta, noise),   cut_r = Phi^-1(r / R)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy.special import ndtri

from glfm_cli._kernels._links import fill_between, fill_between_cuts
from glfm_cli.arrays import Array
from glfm_cli.links.intervals import log_interval
from glfm_cli.links.law import Normal, one_number
from glfm_cli.links.levels import LevelLink, require_levels
from glfm_cli.links.observation import Params
from glfm_cli.schema import Column, ColumnType

if TYPE_CHECKING:
    from glfm_cli.encoding import EncodedColumn
    from glfm_cli.links import LinkConfig

GRADES = ColumnType("grades", values="levels", link=f"{__name__}:GradesLink", ordered=True)


@dataclass(frozen=True, eq=False)
class GradesLink(LevelLink):
    """One latent column, cut at fixed places; its noise is sampled."""

    name: str
    n_levels: int

    n_latent = 1
    ordered = True
    known = unit_noise = False

    @classmethod
    def calibrate(cls, encoded: EncodedColumn, config: LinkConfig) -> Self:
        require_levels(encoded)
        return cls(encoded.column.name, len(encoded.levels))

    def constants(self) -> dict[str, Array]:
        return {}

    @classmethod
    def from_constants(
        cls, column: Column, n_levels: int, constants: Mapping[str, Array], config: LinkConfig
    ) -> Self:
        return cls(column.name, n_levels)

    @property
    def cuts(self) -> Array:
        return ndtri(np.arange(self.n_levels + 1) / self.n_levels)

    def start(self, x: Array) -> tuple[Params, Array]:
        y = ndtri((x + 0.5) / self.n_levels)
        return {}, np.nan_to_num(y)[:, None]

    def augment(
        self, x: Array, eta: Array, var: float, params: Params, rng: np.random.Generator, y: Array
    ) -> None:
        fill_between_cuts(x, eta, float(np.sqrt(var)), self.cuts, rng, y)

    def bound(
        self,
        x: Array,
        params: Params,
        y: Array,
        rng: np.random.Generator,
        lower: Array,
        upper: Array,
    ) -> None:
        fill_between(x, self.cuts, lower, upper)

    def log_probability(self, x: Array, part: Normal, params: Params) -> Array:
        (eta, var), cuts, code = one_number(part), self.cuts, x.astype(np.intp)
        sd = np.sqrt(var)
        return log_interval((cuts[code] - eta) / sd, (cuts[code + 1] - eta) / sd)

    def level_probabilities(self, part: Normal, params: Params) -> Array:
        n = len(part.mean)
        codes = (np.full(n, float(r)) for r in range(self.n_levels))
        return np.exp(np.column_stack([self.log_probability(x, part, params) for x in codes]))
