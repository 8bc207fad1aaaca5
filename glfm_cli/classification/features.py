"""Columns of a table as the mixture of experts sees them: their links, in units of its own.

Of a link (`glfm_cli.links.LINKS`) the classifier asks

    start     where y lies: numbers stay there, counts in the middle of their intervals, in units
              of the training rows' mean 0 and variance 1
    rescale   thresholds for columns of variance 2: an expert's features have variance 1, or
              nearly, and a level is of such a feature plus unit noise
    bound     of levels with one latent column, the interval of y
    expect    of levels with several, the means of y and the probability of the level; `augment`
              to draw them

Two levels have an order, whichever it is: they go by the ordinal link, the label's as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.encoding import EncodedColumn
from glfm_cli.errors import SchemaError
from glfm_cli.latent.iqgme import Half, KnownRows, LevelData
from glfm_cli.links import Link, LinkConfig, Params, make_link
from glfm_cli.links.link import Expecting
from glfm_cli.schema import Column

FARTHEST = 20.0  # standard deviations; values beyond, and outside a transform's domain, are there
SQRT_2 = 2.0**0.5


@dataclass(frozen=True, eq=False)
class LatentColumn:
    """One column, calibrated on the training rows.

    params : of the link, which are not sampled
    shift, scale : numbers are y = shift + scale f for features f; 0 and 1 of levels
    """

    link: Link
    params: Params
    shift: float = 0.0
    scale: float = 1.0

    @classmethod
    def calibrate(cls, encoded: EncodedColumn, config: LinkConfig) -> LatentColumn:
        """Return the feature of a column with at least two different values."""
        column = seen_as(encoded.column, len(encoded.levels))
        link = make_link(replace(encoded, column=column), unbound(config))
        params, y = link.start(encoded.x[encoded.observed], np.random.default_rng(0))
        if not link.discrete:
            y = np.clip(y, -FARTHEST, FARTHEST)
            return cls(link, params, float(y.mean()), float(y.std()) or 1.0)
        if link.n_latent > 1 and not isinstance(link, Expecting):
            raise SchemaError(
                f"type {column.type} is not available in this model", column=column.name
            )
        link.rescale(params, SQRT_2)
        return cls(link, params)

    @classmethod
    def of_label(cls, code: Array, n_levels: int) -> LatentColumn:
        """Return a label of levels 0..R-1: of two levels cut at 0; of more, without an order."""
        column = label_column(n_levels)
        observed, levels = ~np.isnan(code), tuple(map(str, range(n_levels)))
        link = make_link(EncodedColumn(column, 0, code, observed, ~observed, levels), LinkConfig())
        return cls(link, link.start(code, np.random.default_rng(0))[0])

    @property
    def n_latent(self) -> int:
        """Return the number of latent columns."""
        return self.link.n_latent

    def data(self, x: Array) -> LevelData:
        """Return what levels say, where they are observed."""
        return LevelData(self.link, self.params, np.nan_to_num(x, nan=0.0))

    def latent(self, x: Array) -> Array:
        """Return (n, n_latent): what observed cells fix, or else a good start; 0 where missing."""
        if self.link.discrete and self.n_latent == 1:  # the mean of f before anything is fitted
            every, spread = np.arange(x.size), np.array([SQRT_2])
            y = self.data(x).moments(every, np.zeros((x.size, 1)), spread)[0] / SQRT_2
        else:
            y = (self.link.start(x, np.random.default_rng(0))[1] - self.shift) / self.scale
            y = np.clip(y, -FARTHEST, FARTHEST)
        return np.where(np.isnan(x)[:, None], 0.0, y)


def label_column(n_levels: int) -> Column:
    """Return what a label is to its link: without an order, unless it has two levels."""
    return Column("label").of_levels(ordered=n_levels == 2)


def seen_as(column: Column, n_levels: int) -> Column:
    """Return a column as the link sees it: of two levels, ordered ones."""
    return column.of_levels(ordered=True) if n_levels == 2 else column


def unbound(config: LinkConfig) -> LinkConfig:
    """Return the configuration of links of one latent column, whose thresholds may be anywhere."""
    return replace(config, first_threshold_fixed=False, atoms=False)


def is_constant(encoded: EncodedColumn) -> bool:
    """Return whether the observed cells do not differ, so that they tell nothing."""
    seen = encoded.x[encoded.observed]
    return seen.size == 0 or bool(np.all(seen == seen[0]))


@dataclass(frozen=True, eq=False)
class Calibrated:
    """How the columns of a table are seen.

    columns : names of the features that are used, in the order of `features`
    label : of its levels, those that occur
    there : codes of the tasks that have rows, ascending; none for one task
    """

    columns: tuple[str, ...]
    features: tuple[LatentColumn, ...]
    label: LatentColumn
    there: Array

    @property
    def n_latent(self) -> int:
        """Return the number of latent columns."""
        return sum(feature.n_latent for feature in self.features)

    def rows(self, xs: Sequence[Array], n: int, code: Array | None = None) -> KnownRows:
        """Return rows of a table as the mixture sees them.

        Parameters
        ----------
        xs : sequence of (n,) float64
            The column of each feature: values or level codes, NaN where missing.
        n : int
            Rows.
        code : (n,) float64, optional
            Levels of the label, NaN where missing.
        """
        parts, known, halves = [np.empty((n, 0))], [np.empty((n, 0), dtype=bool)], []
        start = 0
        for feature, x in zip(self.features, xs, strict=True):
            seen, size, levels = ~np.isnan(x), feature.n_latent, feature.link.discrete
            parts.append(feature.latent(x))
            known.append(np.repeat((seen & (not levels))[:, None], size, axis=1))
            if levels:
                halves.append(Half(np.arange(start, start + size), seen, feature.data(x)))
            start += size
        values, mask = np.ascontiguousarray(np.hstack(parts)), np.hstack(known)
        if code is None:
            return KnownRows(values, mask, halves=tuple(halves))
        return KnownRows(values, mask, self.label.data(code), ~np.isnan(code), tuple(halves))


def take(columns: Sequence[EncodedColumn], rows: Array) -> tuple[EncodedColumn, ...]:
    """Return some rows of columns."""
    return tuple(
        replace(e, x=e.x[rows], observed=e.observed[rows], requested=e.requested[rows])
        for e in columns
    )
