"""Counts that are Poisson given a rate, where the law of the rate is known, not of a normal.

    x | rate ~ Poisson(rate),  rate ~ Gamma(shape, scale):  x is negative binomial

of which a law is one component a draw (law.py, `GammaPoisson`). Where pairs that are not listed
are zeros, there is nothing to calibrate, and no margin.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.errors import TableError
from glfm_cli.links.law import CellLaw, GammaPoisson
from glfm_cli.links.observation import Params, Summary
from glfm_cli.links.plain import PlainLink
from glfm_cli.schema.types import EXPECTED_COUNT, LARGEST_COUNT, SMALLER_COUNT

if TYPE_CHECKING:
    from glfm_cli.encoding import EncodedColumn
    from glfm_cli.links.config import LinkConfig
    from glfm_cli.schema import Column


@dataclass(frozen=True)
class PoissonCount(PlainLink):
    """Counts of a matrix whose absent pairs are zeros; a model sees their values."""

    name: str

    n_latent = 1
    discrete = False
    ordered = True
    integral = True
    unit_noise = False
    known = False
    center, scale = 0.0, 1.0
    lower, upper = 0.0, np.inf

    @classmethod
    def calibrate(cls, encoded: EncodedColumn, config: LinkConfig) -> Self:
        """Return the link; TableError when a count is too large."""
        large = encoded.x > LARGEST_COUNT  # of NaN false
        if np.any(large):
            at = int(np.argmax(large))
            raise TableError(
                column=encoded.column.name,
                row=at + 1,
                value=f"{encoded.x[at]:.0f}",
                expected=EXPECTED_COUNT,
                hint=SMALLER_COUNT,
            )
        return cls(encoded.column.name)

    def constants(self) -> dict[str, Array]:
        """Return nothing: there is nothing to calibrate."""
        return {}

    @classmethod
    def from_constants(
        cls, column: Column, n_levels: int, constants: Mapping[str, Array], config: LinkConfig
    ) -> Self:
        """Return the link; ValueError when there are constants."""
        if constants:
            raise ValueError(f"it has the constants {sorted(constants)}, expected none")
        return cls(column.name)

    def correctable(self, x: Array) -> bool:
        return False

    def check_cells(self, x: Array) -> None:
        """Raise ValueError unless cells are counts; NaN is a pair that is missing."""
        seen = x[~np.isnan(x)]
        if np.any((seen < 0.0) | (seen != np.floor(seen)) | (seen > LARGEST_COUNT)):
            raise ValueError("a value is no count")

    def typical(self) -> Array:
        """Return a few counts."""
        return np.array([0.0, 1.0, 2.0])

    def start(self, x: Array) -> tuple[Params, Array]:
        """Return no parameters; pseudo-observations are not made of it."""
        return {}, np.zeros((x.size, 1))

    def standard(self, x: Array) -> Array:
        """Return the counts as they are."""
        return np.asarray(x)

    def log_density(self, x: Array, law: CellLaw, params: Params) -> Array:
        """Return the log probabilities (n,) of counts."""
        return of_rates(law).log_pmf(x)

    def sample(self, law: CellLaw, params: Params, rng: np.random.Generator) -> Array:
        """Return a count a cell (n,), its rate drawn first."""
        shape, mean = of_rates(law)
        return rng.poisson(rng.gamma(shape) * (mean / shape)).astype(np.float64)

    def average(self, n: int, n_draws: int) -> CountAverage:
        return CountAverage()

    def expected(self, law: CellLaw, params: Params) -> Array:
        """Return the rates' means (n,)."""
        return of_rates(law).mean

    def pooled_mean(self, law: CellLaw, params: Params) -> float:
        return float(of_rates(law).mean.mean())

    def masses(self, at: Array, law: CellLaw, params: Params) -> Array:
        found = of_rates(law)
        below = [found.cdf(np.full(found.mean.size, np.floor(end))) for end in at]
        ends = [np.zeros(found.mean.size), *below, np.ones(found.mean.size)]
        return np.diff(np.column_stack(ends), axis=1)

    def value(self, y: Array) -> Array:
        """Return rates as they are."""
        return np.maximum(y, 0.0)


class CountAverage:
    """Averages the laws of n cells over draws, by their components."""

    def __init__(self) -> None:
        self.parts: list[tuple[float, GammaPoisson]] = []
        self.marks: list[Array] = []

    def add(self, law: CellLaw, params: Params, share: float, *, quantiles: bool) -> None:
        """Take in the cells under one draw; one without weight says nothing."""
        if share > 0.0:
            self.parts.append((share, of_rates(law)))

    def mark(self) -> None:
        """Note the sums of weights, and of the means."""
        total = sum(share for share, _ in self.parts)
        first = self._sum(lambda part: part.mean)
        self.marks.append(np.column_stack([np.full(first.size, total), first]))

    def marked(self) -> list[Array]:
        """Return what was noted (n, 2)."""
        return self.marks

    def estimate(self, sums: Array) -> Array:
        """Return the mean rate."""
        return sums[:, 1] / sums[:, 0]

    def sd(self) -> Array:
        return self.result((), lambda p: p).sd

    def result(self, at: tuple[float, ...], correct: Callable[[Array], Array]) -> Summary:
        """Return moments, and quantiles by inverting the averaged distribution function."""
        total = sum(share for share, _ in self.parts)
        mean = self._sum(lambda part: part.mean) / total
        second = self._sum(lambda part: part.mean**2 * (1.0 + 1.0 / part.shape) + part.mean) / total
        sd = np.sqrt(np.maximum(second - mean**2, 0.0))
        quantiles = np.empty((mean.size, len(at)))
        for j, p in enumerate(at):
            quantiles[:, j] = self._quantile(p, mean, sd, total)
        return Summary(mean, sd, quantiles, None)

    def _quantile(self, p: float, mean: Array, sd: Array, total: float) -> Array:
        """Return the least counts (n,) whose distribution function reaches p, by bisection."""

        def reached(k: Array) -> Array:
            return self._sum(lambda part: part.cdf(k)) >= (p - 1e-12) * total

        low, high = np.full(mean.size, -1.0), np.ceil(mean + 2.0 * sd)
        while np.any(short := ~reached(high)):
            high = np.where(short, 2.0 * high + 1.0, high)
        while np.any(high - low > 1.0):
            middle = np.floor((low + high) / 2.0)
            inside = (high - low > 1.0) & reached(middle)
            low = np.where((high - low > 1.0) & ~inside, middle, low)
            high = np.where(inside, middle, high)
        return high

    def _sum(self, f: Callable[[GammaPoisson], Array]) -> Array:
        out: Any = sum(share * f(part) for share, part in self.parts)
        return np.asarray(out)


def of_rates(law: CellLaw) -> GammaPoisson:
    """Return a law of rates as such; TypeError when it is another."""
    if not isinstance(law, GammaPoisson):
        raise TypeError("the law is none of rates")
    return law
