"""What may be asked of a column: its constants, and what laws of its cells say of their values.

    x     a cell, in the column's own unit, or its level code
    law   of n cells under one draw (law.py);  params  what was sampled of the column in that draw

Constants (calibrated margins, levels) are frozen in the observation and kept with a fit as named
arrays; what is sampled (thresholds) lives in `Params`, a dict of arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, cast, runtime_checkable

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.links.law import CellLaw

if TYPE_CHECKING:
    from glfm_cli.links.config import LinkConfig
    from glfm_cli.schema import Column

Params = dict[str, Array]


class Summary(NamedTuple):
    """What an averaged law says of n cells.

    mean, sd : (n,) of the value, or of the level code of an ordinal column; NaN for categorical
    quantiles : (n, Q) of the value or level code, at the probabilities asked for; NaN likewise
    probabilities : (n, R) of the levels; None for numeric columns
    """

    mean: Array
    sd: Array
    quantiles: Array
    probabilities: Array | None


class Average(Protocol):
    """The average over draws of the laws of n cells."""

    def add(self, law: CellLaw, params: Params, share: float, *, quantiles: bool) -> None:
        """Take in the cells under one draw of weight `share`; whether quantiles are from it, too.

        1 is the weight of an average draw.
        """

    def mark(self) -> None:
        """Note the sums over the draws so far."""

    def marked(self) -> list[Array]:
        """Return (n, M) sums at each mark; a difference of two is of the draws between."""

    def estimate(self, sums: Array) -> Array:
        """Return (n,) by such sums the mean, or the probability of the likeliest level of all."""

    def sd(self) -> Array:
        """Return (n,) the sd of a cell over which such means are precise or not."""

    def result(self, at: tuple[float, ...], correct: Callable[[Array], Array]) -> Summary:
        """Return what the average says, its quantiles at `at`, level probabilities corrected."""


@runtime_checkable
class Observation(Protocol):
    """One column: what its cells are, given the law of its latent numbers."""

    @property
    def name(self) -> str:
        """Return the column's name."""

    @property
    def n_latent(self) -> int:
        """Return the number of latent columns."""

    @property
    def discrete(self) -> bool:
        """True for levels, False for numbers."""

    @property
    def ordered(self) -> bool:
        """True when there is a higher and a lower."""

    def constants(self) -> dict[str, Array]:
        """Return the constants as named arrays of numbers."""

    @classmethod
    def from_constants(
        cls, column: Column, n_levels: int, constants: Mapping[str, Array], config: LinkConfig
    ) -> Self:
        """Return what had these `constants`; ValueError says why they are not such."""

    def check_params(self, params: Params) -> None:
        """Raise ValueError, with a phrase that says why, unless these can be the parameters."""

    def check_cells(self, x: Array) -> None:
        """Raise ValueError, with a phrase that says why, unless x (n,) can be observed cells."""

    def typical(self) -> Array:
        """Return values about as large and as far apart as those of the table; none of levels."""

    def latent_levels(self) -> tuple[int | str | None, ...]:
        """Return the code or text of each latent column's level; None where it is of all values."""

    def log_density(self, x: Array, law: CellLaw, params: Params) -> Array:
        """Return (n,) log densities of observed values, log probabilities of discrete ones."""

    def sample(self, law: CellLaw, params: Params, rng: np.random.Generator) -> Array:
        """Return (n,) draws of the cells: values inside the bounds, or level codes."""

    def average(self, n: int, n_draws: int) -> Average:
        """Return an empty average of the laws of n cells over so many draws."""

    def expected(self, law: CellLaw, params: Params) -> Array:
        """Return (n,) a number that follows the law: the mean of the value or of the level code.

        Without an order the probability of the first level.
        """

    def pooled_mean(self, law: CellLaw, params: Params) -> float:
        """Return the mean of one of the cells drawn at random, of the code of ordered levels."""

    def entropy(self, mean: Array, probabilities: Array | None) -> Array | None:
        """Return what a value can tell at most (n,), in nats, by its summary; None for no bound."""

    def masses(self, at: Array, law: CellLaw, params: Params) -> Array:
        """Return (n, G) probabilities of the levels, or of the bins that end at `at` (G - 1,)."""

    def correctable(self, x: Array) -> bool:
        """Return whether forecasts may be corrected by those of the observed values x."""

    def forecast(self, x: Array, law: CellLaw, params: Params) -> Array:
        """Return what a correction is learnt from (n, P), under one draw.

        The probabilities of the levels; of numbers the probability that the bounds allow the value
        and it is at most x, that they allow it, and, of those that are corrected, that they allow
        it and it is less than x, and the first and second moments of their latent number.
        """


class NumericObservation(Observation, Protocol):
    """A column of numbers."""

    @property
    def integral(self) -> bool:
        """True when the values are integers."""

    @property
    def center(self) -> float:
        """Return the zero of standard units."""

    @property
    def scale(self) -> float:
        """Return the unit of standard units, in the column's own unit."""

    def standard(self, x: Array) -> Array:
        """Return u = (x - center) / scale, cut off where its square would overflow."""

    @property
    def lower(self) -> float:
        """Return the least value that completions may take."""

    @property
    def upper(self) -> float:
        """Return the greatest value that completions may take."""

    def value(self, y: Array) -> Array:
        """Return the values that belong to latent numbers, inside support and bounds."""

    def sample_between(
        self, law: CellLaw, params: Params, rng: np.random.Generator, ends: Array
    ) -> Array:
        """Return (n,) draws of cells known to lie between ends (n, 2), under a law given that."""


@runtime_checkable
class Counting(Protocol):
    """A column of shares of successes, whose numbers follow where the trials are known."""

    @property
    def name(self) -> str:
        """Return the column's name."""

    def summary_between(self, average: Any, ends: Array, at: tuple[float, ...]) -> Summary:
        """Return what an average of the cells says of successes between 0 and trials (n, 2)."""


@runtime_checkable
class HasAtom(Protocol):
    """A column of numbers, one of which has a probability of its own."""

    @property
    def at(self) -> float:
        """Return that number."""


class LevelObservation(Observation, Protocol):
    """A column of levels."""

    @property
    def n_levels(self) -> int:
        """Return the number of levels R."""

    def probabilities(self, law: CellLaw, params: Params) -> Array:
        """Return (n, R) probabilities of the levels."""


def of_levels(link: Observation) -> LevelObservation:
    """Return an observation of which `discrete` is true, as what it is."""
    return cast(LevelObservation, link)


def of_numbers(link: Observation) -> NumericObservation:
    """Return an observation of which `discrete` is false, as what it is."""
    return cast(NumericObservation, link)
