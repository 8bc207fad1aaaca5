"""One column's scale: how its distribution under the model is summed up, whatever its type.

A `ColumnProfile` is the distribution of a column averaged over some rows: its mean, its levels'
probabilities, and its mass in bins. Two profiles are compared by how much mass differs,

    size = 1/2 sum over bins |p - q|,

the total variation distance: 0 for the same distribution, 1 for two that exclude each other. It
means the same for numbers and levels, and does not depend on a column's unit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.encoding import EncodedColumn
from glfm_cli.encoding.data import Mask
from glfm_cli.exploration.stability import some_rows
from glfm_cli.links import Link, NormalMixture, Params, of_numbers
from glfm_cli.links.law import normal

N_BINS = 64


@dataclass(frozen=True)
class ColumnProfile:
    """The distribution of a column, averaged over rows.

    mean : of the value, or of the level code of an ordinal column; NaN for categorical ones
    mass : (G,) probabilities of the bins, or of the levels
    """

    mean: float
    mass: Array

    def distance(self, other: ColumnProfile) -> float:
        """Return the total variation distance, in [0, 1]."""
        return float(0.5 * np.abs(self.mass - other.mass).sum())


@dataclass(frozen=True)
class Scale:
    """A column with its link and its bins.

    d : its number among the modelled columns
    span : its first latent column, and one past its last
    at : (G - 1,) where bins end, in the column's own unit; empty for levels
    weight : (N,) how much each row counts in what is said of the population; None for alike
    inside : (N,) the rows in which the column can have a value; None for all
    """

    d: int
    encoded: EncodedColumn
    link: Link
    span: tuple[int, int]
    at: Array
    weight: Array | None = None
    inside: Mask | None = None

    @property
    def name(self) -> str:
        """Return the column's name."""
        return self.encoded.column.name

    @property
    def discrete(self) -> bool:
        """True for levels, False for numbers."""
        return self.link.discrete

    @property
    def ordered(self) -> bool:
        """True when there is a higher and a lower."""
        return self.link.ordered

    @property
    def n_bins(self) -> int:
        """Return the number G of bins, or of levels."""
        return len(self.encoded.levels) if self.discrete else self.at.size + 1

    def law(self, eta: Array, var: float) -> NormalMixture:
        """Return the law of the column's cells in rows of eta (n, S) with noise."""
        start, end = self.span
        return normal(eta[:, start:end], var)

    def masses(self, eta: Array, var: float, params: Params) -> Array:
        """Return the mass (n, G) in every bin or level, of each row of eta (n, S) with noise."""
        return self.link.masses(self.at, self.law(eta, var), params)

    def profile(self, eta: Array, var: float, params: Params) -> ColumnProfile:
        """Return the distribution averaged over rows of eta (n, S), n > 0."""
        mean = self.link.pooled_mean(self.law(eta, var), params)
        return ColumnProfile(mean, self.masses(eta, var, params).mean(axis=0))

    def baseline(self) -> ColumnProfile:
        """Return the distribution of the observed cells of the whole table."""
        return self.weighted(self.encoded.x, self.counts(np.arange(self.encoded.x.size)))

    def counts(self, rows: Array) -> Array:
        """Return how much some rows count (n,)."""
        return np.ones(rows.size) if self.weight is None else self.weight[rows]

    def some_of(self, rows: Array, at_most: int) -> Array:
        """Return rows that stand for those given (n,), at most so many where there are more.

        Rows in which the column can have no value are left out while there are others; a row that
        counts more is there more often.
        """
        if self.inside is not None and self.inside[rows].any():
            rows = rows[self.inside[rows]]
        if self.weight is None:
            return rows[some_rows(rows.size, at_most)]
        ends = np.cumsum(self.weight[rows])
        at = (np.arange(at_most) + 0.5) / at_most
        return rows[np.minimum(np.searchsorted(ends, at * ends[-1]), rows.size - 1)]

    def weighted(self, x: Array, weight: Array) -> ColumnProfile:
        """Return the distribution of observed cells x (n,), NaN where missing, some counting more.

        weight : (n,) at least 0; where all are 0 there is no mean, and no mass
        """
        seen = ~np.isnan(x) & (weight > 0.0)
        x, weight = x[seen], weight[seen]
        weight = weight / max(weight.sum(), np.finfo(float).tiny)
        bins = x.astype(np.intp) if self.discrete else np.searchsorted(self.at, x, side="left")
        mass = np.bincount(bins, weight, minlength=self.n_bins)
        without = x.size == 0 or not self.ordered
        return ColumnProfile(np.nan if without else float(weight @ x), mass)


def scale_of(
    d: int, encoded: EncodedColumn, link: Link, span: tuple[int, int], n_bins: int = N_BINS
) -> Scale:
    """Return a column's scale, with bins that hold about equally many of its observed cells."""
    if link.discrete:
        return Scale(d, encoded, link, span, np.empty(0))
    x = encoded.typical
    if x.size == 0:
        at = np.unique(of_numbers(link).value(np.linspace(-2, 2, n_bins - 1)))
    else:
        at = np.unique(np.quantile(x, np.linspace(0, 1, n_bins + 1)[:-1], method="inverted_cdf"))
    return Scale(d, encoded, link, span, at)
