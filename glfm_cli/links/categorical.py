"""Categorical columns: multinomial probit, x = argmax of R normal utilities  [GLFM section 3.1.2].

The most frequent observed level is the reference: its utility has mean 0 and no latent column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy.special import log_ndtr, ndtr

from glfm_cli._kernels._categorical import (
    fill_below_winner,
    fill_categorical,
    fill_log_probability,
    fill_probabilities,
)
from glfm_cli.arrays import Array
from glfm_cli.errors import NumericalError
from glfm_cli.schema import Column

if TYPE_CHECKING:
    from glfm_cli.links.link import Params


SQRT_2 = 2.0**0.5
CHUNK = 1 << 20  # doubles of scratch at a time


@dataclass(frozen=True, eq=False)
class CategoricalLink:
    """R - 1 latent columns of unit noise.

    reference : the level without a latent column
    slot : (R,) the latent column of each level, -1 for the reference
    """

    name: str
    reference: int
    slot: Array

    unit_noise = True
    discrete = True
    ordered = False

    @classmethod
    def calibrate(cls, column: Column, x: Array, n_levels: int) -> Self:
        """Return the link whose reference is the most frequent level, the first of equals."""
        frequency = np.bincount(x[~np.isnan(x)].astype(np.intp), minlength=n_levels)
        reference = int(np.argmax(frequency))
        slot = np.arange(n_levels, dtype=np.intp)
        slot[reference] = -1
        slot[reference + 1 :] -= 1
        return cls(column.name, reference, slot)

    @property
    def n_levels(self) -> int:
        """Return R."""
        return int(self.slot.size)

    @property
    def n_latent(self) -> int:
        """Return the number of levels less one."""
        return int(self.slot.size) - 1

    @property
    def known(self) -> bool:
        """True for a single level: there is no y."""
        return self.slot.size == 1

    def start(self, x: Array, rng: np.random.Generator) -> tuple[Params, Array]:
        """Return no parameters, and utilities of 1 for the observed level, -0.3 for the others."""
        y = np.zeros((x.size, self.n_latent))
        rows = np.flatnonzero(~np.isnan(x))
        y[rows] = -0.3
        slot = self.slot[x[rows].astype(np.intp)]
        y[rows[slot >= 0], slot[slot >= 0]] = 1.0
        return {}, y

    def update_params(
        self, x: Array, eta: Array, params: Params, rng: np.random.Generator, adapt: bool
    ) -> None:
        """Leave the parameters alone: there are none."""

    def augment(
        self, x: Array, eta: Array, var: float, params: Params, rng: np.random.Generator, y: Array
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

    @property
    def spread(self) -> float:
        """Return the sd of what `bound` bounds: of two levels, the difference of the utilities."""
        return SQRT_2 if self.n_latent == 1 else 1.0

    def bound(
        self,
        x: Array,
        params: Params,
        y: Array,
        rng: np.random.Generator,
        lower: Array,
        upper: Array,
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

    def log_density(self, x: Array, eta: Array, var: float | Array, params: Params) -> Array:
        """Return log P(x), accurate in the far tails."""
        n = x.size
        if self.n_latent == 0:
            return np.zeros(n)
        if self.n_latent == 1:
            sign = np.where(x == self.reference, -1.0, 1.0)
            return log_ndtr(sign * self._columns(eta, n)[:, 0] / np.sqrt(1.0 + np.asarray(var)))
        out = np.empty(n)
        fill_log_probability(x, self._columns(eta, n), _spread(var, n), self.slot, out)
        return out

    def probabilities(self, eta: Array, var: float | Array, params: Params) -> Array:
        """Return (n, R). `var` > 1 widens the utilities with a latent column, not the reference."""
        n = len(eta)
        out = np.ones((n, self.slot.size))
        if self.n_latent == 1:
            t = self._columns(eta, n)[:, 0] / np.sqrt(1.0 + np.asarray(var))
            out[:, 1 - self.reference] = ndtr(t)
            out[:, self.reference] = ndtr(-t)
        elif self.n_latent > 1:
            fill_probabilities(self._columns(eta, n), _spread(var, n), self.slot, out)
        return out

    def sample(
        self, eta: Array, var: float | Array, params: Params, rng: np.random.Generator
    ) -> Array:
        """Return one level code a row, as float64: the largest of drawn utilities."""
        n, n_levels = len(eta), self.slot.size
        columns, sd = self._columns(eta, n), np.sqrt(_spread(var, n))
        out = np.empty(n)
        rows = max(1, CHUNK // n_levels)
        latent = np.flatnonzero(self.slot >= 0)
        for start in range(0, n, rows):
            part = slice(start, start + rows)
            utility = rng.standard_normal((len(columns[part]), n_levels))
            utility[:, latent] *= sd[part, None]
            utility[:, latent] += columns[part]
            out[part] = np.argmax(utility, axis=1)
        return out

    def _columns(self, eta: Array, n: int) -> Array:
        return np.asarray(eta, dtype=np.float64).reshape(n, self.n_latent)


def _spread(var: float | Array, n: int) -> Array:
    return np.broadcast_to(np.asarray(var, dtype=np.float64), (n,))
