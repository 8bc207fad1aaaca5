"""Columns of a table as the mixture of experts sees them, in units of mean 0 and variance 1.

Numbers lie where their links (`glfm_cli.links`) say, counts in the middle of their intervals; of
cells known only to lie between two numbers experts are told a normal density (evidence.py). Levels
are numbers, too: of ordered ones normal scores, of others an indicator of each but the most
frequent. Experts see them with noise of `BLUR` of the distance of levels next to each other, or a
normal density of an expert whose rows all have one level would be without end; rules act on the
levels themselves. Two levels have an order, whichever it is; the label's as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.classification.evidence import normal_evidence
from glfm_cli.classification.gaps import Indicators
from glfm_cli.classification.level_codes import BLUR, level_codes
from glfm_cli.classification.level_scores import LevelScores
from glfm_cli.encoding import EncodedColumn
from glfm_cli.latent.iqgme import KnownRows, LevelData
from glfm_cli.links import (
    CellLaw,
    Link,
    LinkConfig,
    NormalMixture,
    Params,
    Probabilities,
    make_link,
    of_levels,
)
from glfm_cli.links.censored import censored_moments
from glfm_cli.links.numeric import NumericLink, values_of
from glfm_cli.schema import Column

FARTHEST = 20.0  # standard deviations; values beyond, and outside a transform's domain, are there
SAYS = 0.05  # standard deviation of levels' scores, in logits, below which they say nothing
LEAST = 1e-6  # probability of a level that a cell may have


@dataclass(frozen=True, eq=False)
class LatentColumn:
    """One column, calibrated on the training rows.

    params : of the link, which are not sampled
    shift, scale : numbers are y = shift + scale f for features f; 0 and 1 of levels
    codes : (R, A) the features of each level;  noise : (A,) their variance; none of numbers
    share : (R,) of cells that have each level, where features are the levels' scores; else none
    """

    link: Link
    params: Params
    shift: float = 0.0
    scale: float = 1.0
    codes: Array = field(default_factory=lambda: np.empty((0, 1)))
    noise: Array = field(default_factory=lambda: np.zeros(1))
    share: Array = field(default_factory=lambda: np.empty(0))

    @classmethod
    def calibrate(cls, encoded: EncodedColumn, config: LinkConfig) -> LatentColumn:
        """Return the feature of a column with at least two different values."""
        column = seen_as(encoded.column, len(encoded.levels))
        link = make_link(replace(encoded, column=column, trials=None), unbound(config))
        cells = cells_of(encoded)[encoded.observed | encoded.between]
        params, y = link.start(cells)
        if cells.ndim == 2:
            return cls(link, params, *censored_moments(*_ends(link, cells)))
        if not link.discrete:
            y = np.clip(y, -FARTHEST, FARTHEST)
            return cls(link, params, float(y.mean()), float(y.std()) or 1.0)
        n_levels = of_levels(link).n_levels
        count = np.bincount(encoded.x[encoded.observed].astype(np.intp), minlength=n_levels)
        codes, noise = level_codes(count, link.latent_levels(), ordered=column.ordinal)
        return cls(link, params, codes=codes, noise=noise)

    @classmethod
    def scored(
        cls, encoded: EncodedColumn, config: LinkConfig, found: LevelScores
    ) -> tuple[LatentColumn, Array]:
        """Return a column of many levels by their scores, and the features (n, A) of its rows.

        Scores that hardly differ are no feature: there A is 0.
        """
        link = make_link(encoded, unbound(config))
        x = encoded.x[encoded.observed]
        params = link.start(x)[0]
        center = found.share @ found.levels
        sd = np.sqrt(found.share @ (found.levels - center) ** 2)
        A = sd.size if np.any(sd > SAYS) else 0
        codes, rows = (
            ((a - center) / np.maximum(sd, SAYS))[:, :A] for a in (found.levels, found.rows)
        )
        column = cls(link, params, codes=codes, noise=np.full(A, BLUR**2), share=found.share)
        return column, np.where(encoded.observed[:, None], rows, 0.0)

    @classmethod
    def of_label(cls, code: Array, n_levels: int) -> LatentColumn:
        """Return a label of levels 0..R-1: of two levels cut at 0; of more, without an order."""
        column = label_column(n_levels)
        observed, levels = ~np.isnan(code), tuple(map(str, range(n_levels)))
        link = make_link(EncodedColumn(column, 0, code, observed, ~observed, levels), LinkConfig())
        return cls(link, link.start(code)[0])

    @property
    def n_latent(self) -> int:
        """Return the number of features."""
        return self.noise.size

    def names(self, name: str, levels: Sequence[str], labels: Sequence[str]) -> list[str]:
        """Return what the features of the column `name` are to be called.

        levels, labels : of the column and of what is predicted
        """
        if self.share.size:
            if self.n_latent < 2:
                return [name] * self.n_latent
            return [f"{name} for {label}" for label in labels[1:]]
        indicated = self.link.latent_levels()
        return [f"{name}={levels[r]}" if isinstance(r, int) else name for r in indicated]

    def data(self, x: Array, slips: float) -> LevelData:
        """Return what levels say, where they are observed, but for a share of slips."""
        return LevelData(self.link, self.params, np.nan_to_num(x, nan=0.0), slips)

    def latent(self, x: Array) -> Array:
        """Return the features (n, n_latent) of cells; 0 where missing."""
        if self.link.discrete:
            y = self.codes[np.nan_to_num(x, nan=0.0).astype(np.intp)]
        else:
            y = (self.link.start(x)[1] - self.shift) / self.scale
            y = np.clip(y, -FARTHEST, FARTHEST)
        return np.where(np.isnan(x)[:, None], 0.0, y)

    def told(self, cells: Array) -> tuple[Array, Array, Array]:
        """Return features of numbers (n,), and what is told of others: mean and precision (n,).

        cells : (n, 2) float64; the ends between which they lie, equal where a number is known
        """
        inside = np.flatnonzero(cells[:, 0] < cells[:, 1])
        mean, precision = np.zeros((2, len(cells)))
        low, high = ((y - self.shift) / self.scale for y in _ends(self.link, cells[inside]))
        mean[inside], precision[inside] = normal_evidence(low, high)
        return self.latent(values_of(cells))[:, 0], mean, precision

    def cells_law(self, weights: Array, mean: Array, var: Array) -> CellLaw:
        """Return the law of cells, of features by a mixture of C normals (n, C, A).

        Levels without an order are as probable as the means of their indicators say, or as their
        scores are near.
        """
        if self.share.size:
            return Probabilities(self._by_scores(weights, mean, var))
        if self.n_latent == 1:
            mean, var = mean * self.scale + self.shift, var * self.scale**2
            return NormalMixture(weights, mean, var + self.noise)
        off, on = self.codes.min(axis=0), self.codes.max(axis=0)
        p = np.clip((mean - off) / (on - off), LEAST, 1.0)
        total = np.maximum(p.sum(axis=2, keepdims=True), 1.0 - LEAST)
        p = np.einsum("nc,ncr->nr", weights, p / np.maximum(total, 1.0))
        code = np.flatnonzero((self.codes == on).any(axis=1))
        out = np.zeros((len(p), len(self.codes)))
        out[:, code] = p
        out[:, np.setdiff1d(np.arange(len(self.codes)), code)] = 1.0 - p.sum(axis=1)[:, None]
        return Probabilities(out)

    def _by_scores(self, weights: Array, mean: Array, var: Array) -> Array:
        """Return the probabilities (n, R) of levels where their scores lie in a mixture."""
        var = var + self.noise
        p = np.zeros((len(weights), self.share.size))
        for r in np.flatnonzero(self.share):
            apart = (self.codes[r] - mean) ** 2 / var + np.log(var)
            p[:, r] = self.share[r] * (weights * np.exp(-0.5 * apart.sum(axis=2))).sum(axis=1)
        total = p.sum(axis=1, keepdims=True)
        return np.where(total > 0.0, p / np.where(total > 0.0, total, 1.0), self.share)


def label_column(n_levels: int) -> Column:
    """Return what a label is to its link: without an order, unless it has two levels."""
    return Column("label").of_levels(ordered=n_levels == 2)


def seen_as(column: Column, n_levels: int) -> Column:
    """Return a column as the link sees it: of two levels, ordered ones; of successes, shares."""
    if column.binomial:
        return replace(column.of_numbers(), trials=None)
    return column.of_levels(ordered=True) if n_levels == 2 else column


def unbound(config: LinkConfig) -> LinkConfig:
    """Return the configuration of links of one latent column, whose thresholds may be anywhere."""
    return replace(config, first_threshold_fixed=False, atoms=False)


def cells_of(encoded: EncodedColumn) -> Array:
    """Return what is known of the cells: numbers or codes (n,), or ends (n, 2) of intervals."""
    return encoded.x if encoded.ends is None else encoded.cells


def _ends(link: Link, cells: Array) -> tuple[Array, Array]:
    """Return the ends (n,) of the y of cells (n, 2) of numbers."""
    assert isinstance(link, NumericLink)
    low, high = link.latent_ends(*cells.T)
    exact = cells[:, 0] == cells[:, 1]
    y = np.clip(link.start(cells)[1][:, 0], -FARTHEST, FARTHEST)
    return np.where(exact, y, low), np.where(exact, y, high)


def is_constant(encoded: EncodedColumn) -> bool:
    """Return whether the known cells do not differ, so that they tell nothing."""
    known = cells_of(encoded)[encoded.observed | encoded.between]
    return len(known) == 0 or bool(np.all(known == known[0]))


@dataclass(frozen=True, eq=False)
class Calibrated:
    """How the columns of a table are seen.

    columns : names of the features that are used, in the order of `features`
    label : of its levels, those that occur
    there : codes of the tasks that have rows, ascending; none for one task
    gaps : which cells are missing, the last features
    """

    columns: tuple[str, ...]
    features: tuple[LatentColumn, ...]
    label: LatentColumn
    there: Array
    gaps: Indicators = field(default_factory=Indicators)

    @property
    def n_latent(self) -> int:
        """Return the number of latent columns."""
        return sum(feature.n_latent for feature in self.features) + self.gaps.columns.size

    def rows(
        self,
        xs: Sequence[Array],
        n: int,
        code: Array | None = None,
        slips: float = 0.0,
        scores: Mapping[int, Array] = MappingProxyType({}),
    ) -> KnownRows:
        """Return rows of a table as the mixture sees them.

        xs : the cells of each feature: values or level codes (n,), or ends (n, 2) of intervals, NaN
            where missing
        n : rows
        code : (n,) float64, optional; levels of the label, NaN where missing
        slips : share of these that are any level
        scores : features of training rows in columns that are seen by scores, by their places
        """
        shape = n, self.n_latent
        values, known = np.zeros(shape), np.zeros(shape, dtype=bool)
        told, precision = np.zeros(shape), np.zeros(shape)
        first = 0
        for d, (feature, x) in enumerate(zip(self.features, xs, strict=True)):
            own = slice(first, first + feature.n_latent)
            if x.ndim == 2:
                values[:, first], told[:, first], precision[:, first] = feature.told(x)
                known[:, first] = x[:, 0] == x[:, 1]
            else:
                values[:, own] = scores[d] if d in scores else feature.latent(x)
                known[:, own] = ~np.isnan(x)[:, None]
            first = own.stop
        if self.gaps.columns.size:
            values[:, first:], known[:, first:] = self.gaps.values(xs), True
        of_columns = (feature.noise for feature in self.features)
        noise = np.concatenate([np.empty(0), *of_columns, self.gaps.noise])
        found = KnownRows(values, known, noise=noise)
        if precision.any():
            values += told * precision / (1.0 + precision)  # from where a fit starts
            found = replace(found, told=told, precision=precision)
        if code is None:
            return found
        return replace(found, label=self.label.data(code, slips), labelled=~np.isnan(code))


def take(columns: Sequence[EncodedColumn], rows: Array) -> tuple[EncodedColumn, ...]:
    """Return some rows of columns."""
    return tuple(encoded.take(rows) for encoded in columns)
