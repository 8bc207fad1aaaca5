"""Categorical columns: multinomial probit, x = argmax of R normal utilities  [GLFM section 3.1.2].

The most frequent observed level is the reference: its utility has mean 0 and no latent column.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.random import Generator
from scipy.special import log_ndtr, ndtr

from glfm_cli._kernels._categorical import (
    fill_below_winner,
    fill_categorical,
    fill_log_probability,
    fill_probabilities,
)
from glfm_cli.arrays import Array
from glfm_cli.errors import NumericalError
from glfm_cli.links.constants import SCALAR, number, take
from glfm_cli.links.correlated import split
from glfm_cli.links.law import Normal
from glfm_cli.links.levels import LevelLink, require_levels
from glfm_cli.links.observation import Params
from glfm_cli.links.utilities import expect_largest
from glfm_cli.schema import Column

if TYPE_CHECKING:
    from glfm_cli.encoding import EncodedColumn
    from glfm_cli.links.config import LinkConfig


SQRT_2 = 2.0**0.5
CHUNK = 1 << 20  # doubles of scratch at a time


@dataclass(frozen=True, eq=False)
class CategoricalLink(LevelLink):
    """R - 1 latent columns of unit noise.

    reference : the level without a latent column
    slot : (R,) the latent column of each level, -1 for the reference
    """

    name: str
    reference: int
    slot: Array

    unit_noise = True

    @classmethod
    def calibrate(cls, encoded: EncodedColumn, config: LinkConfig) -> Self:
        """Return the link whose reference is the most frequent level, the first of equals."""
        require_levels(encoded)
        codes, n_levels = encoded.x[encoded.observed].astype(np.intp), len(encoded.levels)
        reference = int(np.argmax(np.bincount(codes, minlength=n_levels)))
        slot = np.insert(np.arange(n_levels - 1, dtype=np.intp), reference, -1)
        return cls(encoded.column.name, reference, slot)

    def constants(self) -> dict[str, Array]:
        """Return the reference and the levels' latent columns."""
        return {"reference": number(self.reference), "slot": self.slot.astype(np.float64)}

    @classmethod
    def from_constants(
        cls, column: Column, n_levels: int, constants: Mapping[str, Array], config: LinkConfig
    ) -> Self:
        reference = float(take(constants, "reference", SCALAR))
        slot = take(constants, "slot", n_levels)
        if reference not in range(n_levels):
            raise ValueError(f"'reference' is {reference:g}, expected the code of a level")
        expected = np.insert(np.arange(n_levels - 1, dtype=np.float64), int(reference), -1.0)
        if not np.array_equal(slot, expected):
            raise ValueError("'slot' does not number the levels")
        return cls(column.name, int(reference), slot.astype(np.intp))

    def check_params(self, params: Params) -> None:
        """Raise ValueError unless there is nothing but what a sweep notes of the reference."""
        if "reference" in params and np.any(take(params, "reference", 2) < 0.0):
            raise ValueError("'reference' is negative")
        super().check_params({n: value for n, value in params.items() if n != "reference"})

    def latent_levels(self) -> tuple[int, ...]:
        """Return the levels but the reference, against which they stand."""
        return tuple(int(code) for code in np.flatnonzero(self.slot >= 0))

    @property
    def n_levels(self) -> int:
        return int(self.slot.size)

    @property
    def n_latent(self) -> int:
        """Return the number of levels less one."""
        return int(self.slot.size) - 1

    @property
    def known(self) -> bool:
        """True for a single level: there is no y."""
        return self.slot.size == 1

    def start(self, x: Array) -> tuple[Params, Array]:
        """Return no parameters, and utilities of 1 for the observed level, -0.3 for the others."""
        y = np.zeros((x.size, self.n_latent))
        rows = np.flatnonzero(~np.isnan(x))
        y[rows] = -0.3
        slot = self.slot[x[rows].astype(np.intp)]
        y[rows[slot >= 0], slot[slot >= 0]] = 1.0
        return {}, y

    def augment(
        self, x: Array, eta: Array, var: float, params: Params, rng: Generator, y: Array
    ) -> None:
        """Draw the utilities jointly, given eta and which is the largest; `var` is 1.

        Of the reference level's, which have no latent column, `params` keeps the sum of squares.
        """
        if self.n_latent == 0:
            return
        bad, squares, count = fill_categorical(x, self._columns(eta, x.size), self.slot, rng, y)
        if bad >= 0:
            raise NumericalError("a latent mean is not finite", column=self.name, row=bad + 1)
        params["reference"] = np.array([squares, count])

    def expect(self, x: Array, eta: Array, params: Params) -> tuple[Array, Array]:
        """Return means of the utilities given the levels, and log P(x)."""
        return expect_largest(x.astype(np.intp), eta, self.slot)

    @property
    def fixed_bounds(self) -> bool:
        """True of two levels: more are bounded by the largest utility, which is drawn."""
        return self.n_latent <= 1

    @property
    def spread(self) -> float:
        """Return the sd of what `bound` bounds: of two levels, the difference of the utilities."""
        return SQRT_2 if self.n_latent == 1 else 1.0

    def bound(
        self, x: Array, params: Params, y: Array, rng: Generator, lower: Array, upper: Array
    ) -> None:
        """Bound the utilities by the largest, which is held; two levels, by nothing that is drawn.

        With two levels P(x) is that of the sign of the utilities' difference; with more it has
        no closed form, but given the largest utility the others are independent.
        """
        if self.n_latent > 0:
            fill_below_winner(x, y, self.slot, rng, lower, upper)

    def scale_group(self, params: Params) -> tuple[float, float]:
        """Return sum of squares and number of the reference level's utilities."""
        squares, count = params.get("reference", np.zeros(2))
        return float(squares), float(count)

    def rescale(self, params: Params, factor: float) -> None:
        """Follow the utilities' new scale."""
        if "reference" in params:
            params["reference"][0] *= factor * factor

    def log_probability(self, x: Array, part: Normal, params: Params) -> Array:
        """Return log P(x), accurate in the far tails."""
        n = x.size
        if self.n_latent == 0:
            return np.zeros(n)
        if self.n_latent == 1:
            sign = np.where(x == self.reference, -1.0, 1.0)
            return log_ndtr(sign * part.mean[:, 0] / np.sqrt(1.0 + part.variances[:, 0]))
        parts = []
        for weight, mean, variances in split(part):
            out = np.empty(n)
            fill_log_probability(x, mean, variances, self.slot, out)
            parts.append(np.log(weight) + out)
        return parts[0] if len(parts) == 1 else np.logaddexp.reduce(parts)

    def level_probabilities(self, part: Normal, params: Params) -> Array:
        """Return (n, R). Variances above 1 widen the utilities with a latent column alone."""
        n = len(part.mean)
        out = np.ones((n, self.slot.size))
        if self.n_latent == 1:
            t = part.mean[:, 0] / np.sqrt(1.0 + part.variances[:, 0])
            out[:, 1 - self.reference] = ndtr(t)
            out[:, self.reference] = ndtr(-t)
            return out
        if self.n_latent == 0:
            return out
        total: Array | float = 0.0
        for weight, mean, variances in split(part):
            fill_probabilities(mean, variances, self.slot, out)
            total = total + weight * out
        return np.asarray(total)

    def sample_levels(self, part: Normal, params: Params, rng: Generator) -> Array:
        """Return one level code a row, as float64: the largest of drawn utilities."""
        (n, n_latent), n_levels = part.mean.shape, self.slot.size
        sd = np.sqrt(np.broadcast_to(part.variances, (n, n_latent)))
        root = None if part.covariance is None else np.linalg.cholesky(part.covariance)
        out = np.empty(n)
        rows = max(1, CHUNK // n_levels)
        latent = np.flatnonzero(self.slot >= 0)
        for start in range(0, n, rows):
            at = slice(start, start + rows)
            utility = rng.standard_normal((len(part.mean[at]), n_levels))
            if root is None:
                utility[:, latent] *= sd[at]
            else:
                utility[:, latent] = np.einsum("nst,nt->ns", root[at], utility[:, latent])
            utility[:, latent] += part.mean[at]
            out[at] = np.argmax(utility, axis=1)
        return out

    def _columns(self, eta: Array, n: int) -> Array:
        return np.asarray(eta, dtype=np.float64).reshape(n, self.n_latent)
