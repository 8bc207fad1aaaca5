"""What the links of levels share: forecasts are probabilities of the levels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, cast

import numpy as np
from scipy.special import xlogy

from glfm_cli.arrays import Array
from glfm_cli.errors import TableError
from glfm_cli.links.averages import LevelAverage
from glfm_cli.links.law import CellLaw, Normal, Probabilities, of_latent
from glfm_cli.links.observation import LevelObservation, Params
from glfm_cli.links.plain import PlainLink

if TYPE_CHECKING:
    from glfm_cli.encoding import EncodedColumn


class LevelLink(PlainLink, ABC):
    """A column of R levels."""

    discrete = True
    ordered = False

    if TYPE_CHECKING:  # fields or properties of those who inherit

        @property
        def n_levels(self) -> int:
            """Return R."""

        @property
        def n_latent(self) -> int:
            """Return the number of latent columns."""

    @abstractmethod
    def log_probability(self, x: Array, part: Normal, params: Params) -> Array:
        """Return log P(x) (n,) under one normal."""

    @abstractmethod
    def level_probabilities(self, part: Normal, params: Params) -> Array:
        """Return the probabilities (n, R) under one normal."""

    def sample_levels(self, part: Normal, params: Params, rng: np.random.Generator) -> Array:
        """Return one level code a row under one normal each, as float64."""
        return Probabilities(self.level_probabilities(part, params)).sample(rng)

    def check_cells(self, x: Array) -> None:
        """Raise ValueError unless all are codes of levels."""
        if not np.isin(x, np.arange(self.n_levels)).all():
            raise ValueError("a value is no code of a level")

    def typical(self) -> Array:
        """Return nothing: levels say themselves what they are."""
        return np.empty(0)

    def log_density(self, x: Array, law: CellLaw, params: Params) -> Array:
        """Return log P(x), accurate in the far tails."""
        if isinstance(law, Probabilities):
            return law.log_p(x)
        latent = of_latent(law, self.n_latent)
        return latent.log_average(lambda part: self.log_probability(x, part, params))

    def probabilities(self, law: CellLaw, params: Params) -> Array:
        if isinstance(law, Probabilities):
            return law.p
        latent = of_latent(law, self.n_latent)
        return latent.average(lambda part: self.level_probabilities(part, params))

    def sample(self, law: CellLaw, params: Params, rng: np.random.Generator) -> Array:
        """Return one level code a row, as float64."""
        if isinstance(law, Probabilities):
            return law.sample(rng)
        return self.sample_levels(of_latent(law, self.n_latent).pick(rng), params, rng)

    def average(self, n: int, n_draws: int) -> LevelAverage:
        return LevelAverage(cast(LevelObservation, self), n)

    def expected(self, law: CellLaw, params: Params) -> Array:
        """Return the mean level code, without an order the probability of the first level."""
        p = self.probabilities(law, params)
        return p @ np.arange(p.shape[1]) if self.ordered else p[:, 0]

    def pooled_mean(self, law: CellLaw, params: Params) -> float:
        p = self.probabilities(law, params).mean(axis=0)
        return float(p @ np.arange(p.size)) if self.ordered else np.nan

    def entropy(self, mean: Array, probabilities: Array | None) -> Array:
        """Return the entropies (n,) of the levels."""
        p = np.zeros((mean.size, 1)) if probabilities is None else probabilities
        return np.asarray(-np.sum(xlogy(p, p), axis=1))

    def masses(self, at: Array, law: CellLaw, params: Params) -> Array:
        return self.probabilities(law, params)

    def correctable(self, x: Array) -> bool:
        """Return whether there are two levels."""
        return self.n_latent > 0

    def forecast(self, x: Array, law: CellLaw, params: Params) -> Array:
        """Return the probabilities (n, R) of the levels."""
        return self.probabilities(law, params)


def require_levels(encoded: EncodedColumn) -> None:
    """Raise TableError when no level of a column is known."""
    if not encoded.levels:
        raise TableError(
            "no level is known: every cell is missing",
            column=encoded.column.name,
            hint=f"Give `levels` for '{encoded.column.name}', or ignore the column.",
        )
