"""Binomial cells of a matrix: successes among known trials, at rates that vary between cells.

    h ~ Binomial(n, Phi(z)),   z ~ N(eta, noise)

A cell stands for as many pseudo-observations, of unit variance around z, as it has trials; those of
its successes are above 0 [BSVD, section 5.4]. A model sees their mean y ~ N(eta, noise + 1/n), z
integrated out: given y alone, it can tell by how much rates vary beside what rows and columns say,
or that they do not. The mean of many is drawn at once (`sums`). A cell's x stands for successes
and trials both (encoding/trials.py). Forecasts are of rates: how many trials an unseen cell has is
not known here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.random import Generator
from scipy.special import xlogy

from glfm_cli._kernels._variates import fill_truncated_normal
from glfm_cli.arrays import Array
from glfm_cli.encoding import successes_of, trials_of
from glfm_cli.links.constants import SCALAR, take
from glfm_cli.links.margins import Smooth
from glfm_cli.links.probit_normal import ProbitNormalLink
from glfm_cli.links.shapes import Probit
from glfm_cli.links.sums import draw_sums

if TYPE_CHECKING:
    from glfm_cli.encoding import EncodedColumn
    from glfm_cli.links.config import LinkConfig
    from glfm_cli.schema import Column

EXTRA = "extra_variance"
CHUNK = 1 << 20  # trials drawn at a time
MANY = 400  # trials of a cell from which their sum is drawn at once


@dataclass(frozen=True, eq=False)
class BinomialLink(ProbitNormalLink):
    """The same law as of a table's column, without constants, and y of another kind."""

    @classmethod
    def of(cls, name: str) -> Self:
        """Return the link of a column."""
        return cls(name, Smooth(Probit()), 0.0, 1.0, (-np.inf, np.inf), center=0.5, scale=0.25)

    @classmethod
    def calibrate(cls, encoded: EncodedColumn, config: LinkConfig) -> Self:
        """Return the link; it is the same for all observed cells."""
        return cls.of(encoded.column.name)

    def constants(self) -> dict[str, Array]:
        """Return what tells it from the link that had one rate given the model's eta."""
        return {EXTRA: np.array(1.0)}

    @classmethod
    def from_constants(
        cls, column: Column, n_levels: int, constants: Mapping[str, Array], config: LinkConfig
    ) -> Self:
        if EXTRA not in constants or float(take(constants, EXTRA, SCALAR)) != 1.0:
            raise ValueError("its rates have no extra variance, as in fits of an earlier version")
        return cls.of(column.name)

    def typical(self) -> Array:
        """Return nothing: rates have a scale of their own."""
        return np.empty(0)

    def own_variances(self, x: Array) -> Array:
        """Return those of means of the trials (n,); 1 where x is NaN."""
        return 1.0 / np.where(np.isnan(x), 1.0, trials_of(np.nan_to_num(x)))

    def augment_values(self, x: Array, eta: Array, var: float, rng: Generator, y: Array) -> None:
        """Draw z given y, then the mean y of the trials' pseudo-observations given z, in place.

        Each of them is drawn, about 60 ns each; from `MANY` trials on their sum is drawn instead,
        some 27 microseconds a cell.
        """
        rows = np.flatnonzero(~np.isnan(x))
        own = self.own_variances(x)
        share = var / (var + own)
        z = eta + share * (y[:, 0] - eta)
        z += np.sqrt(share * own) * rng.standard_normal(x.size)
        many = rows[trials_of(x[rows]) >= MANY]
        if many.size:
            n = trials_of(x[many])
            sums, failed = draw_sums(successes_of(x[many]), n, z[many], rng)
            done = many[~failed]
            y[done, 0] = (sums / n)[~failed]
            rows = np.setdiff1d(rows, done, assume_unique=True)
        self._augment_singly(x, z, rows, rng, y)

    def _augment_singly(
        self, x: Array, z: Array, rows: Array, rng: Generator, y: Array
    ) -> None:
        """Draw the pseudo-observation of every trial of some rows, and their means."""
        successes, trials = successes_of(x[rows]), trials_of(x[rows]).astype(np.int64)
        ends = np.cumsum(trials)
        cuts = np.searchsorted(ends, np.arange(CHUNK, int(ends[-1]) if ends.size else 0, CHUNK))
        for part in np.split(np.arange(rows.size), np.unique(cuts)):
            if part.size == 0:
                continue
            n = trials[part]
            of = np.repeat(np.arange(part.size), n)
            number = np.arange(of.size) - np.repeat(np.cumsum(n) - n, n)
            hit = number < successes[part][of]
            drawn = np.empty(of.size)
            lower, upper = np.where(hit, 0.0, -np.inf), np.where(hit, np.inf, 0.0)
            fill_truncated_normal(z[rows[part]][of], 1.0, lower, upper, rng, drawn)
            y[rows[part], 0] = np.bincount(of, weights=drawn, minlength=part.size) / n

    def entropy(self, mean: Array, probabilities: Array | None) -> Array:
        """Return the entropies (n,) of one trial."""
        p = np.column_stack([mean, 1.0 - mean])
        return np.asarray(-np.sum(xlogy(p, p), axis=1))
