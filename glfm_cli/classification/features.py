"""Columns of a table as the mixture of experts sees them: standardised, or half known.

real, positive, count   the column's margin (as for completing tables), mean 0 and variance 1
two levels, ordinal     an interval of one latent column plus unit noise; the ends are at normal
                        quantiles of the levels' frequencies
categorical             the largest of as many latent columns, plus unit noise, as it has levels
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy.special import ndtri

from glfm_cli.arrays import Array
from glfm_cli.encoding import EncodedColumn
from glfm_cli.latent.iqgme import Between, Half, Largest, Rows, Truncation
from glfm_cli.latent.iqgme.truncation import between_moments
from glfm_cli.links import Link, LinkConfig, make_link

FARTHEST = 20.0  # standard deviations; values beyond, and outside a transform's domain, are there
SQRT_2 = 2.0**0.5


class Feature(Protocol):
    """One column, calibrated on the training rows."""

    @property
    def n_latent(self) -> int:
        """Return the number of latent columns."""

    @property
    def known(self) -> bool:
        """True when an observed cell fixes its latent column."""

    def latent(self, x: Array) -> Array:
        """Return (n, n_latent): what observed cells fix, or else a good start; 0 where missing."""

    def truncation(self, x: Array) -> Truncation:
        """Return what observed cells say of noisy latent columns; only unless `known`."""


@dataclass(frozen=True, eq=False)
class Number:
    """A numeric column: its margin, standardised."""

    link: Link
    mean: float
    sd: float

    n_latent = 1
    known = True

    @classmethod
    def calibrate(cls, encoded: EncodedColumn, config: LinkConfig) -> Number:
        """Return the feature of a column with at least two different values."""
        link = make_link(encoded, config)
        y = _latent(link, encoded.x[encoded.observed])
        y = np.clip(y, -FARTHEST, FARTHEST)
        return cls(link, float(y.mean()), float(y.std()) or 1.0)

    def latent(self, x: Array) -> Array:
        """Return the standardised values (n, 1)."""
        y = (_latent(self.link, x) - self.mean) / self.sd
        return np.where(np.isnan(x), 0.0, np.clip(y, -FARTHEST, FARTHEST))[:, None]

    def truncation(self, x: Array) -> Truncation:
        """Raise, for there is nothing half known."""
        raise TypeError("a number is known as it is")


def _latent(link: Link, x: Array) -> Array:
    """Return g(x), counts in the middle of their interval; (n,)."""
    return link.start(x, np.random.default_rng(0))[1][:, 0]


@dataclass(frozen=True, eq=False)
class Steps:
    """Ordered levels, or two: one latent column, cut.

    cuts : (R + 1,) from -inf to inf
    """

    cuts: Array

    n_latent = 1
    known = False

    @classmethod
    def calibrate(cls, encoded: EncodedColumn) -> Steps:
        """Return the feature with cuts where a normal of variance 2 has the levels' shares."""
        codes = encoded.x[encoded.observed].astype(np.intp)
        # Half a cell a level: levels without observed cells need some room.
        share = np.bincount(codes, minlength=len(encoded.levels)) + 0.5
        inner = SQRT_2 * ndtri(np.cumsum(share)[:-1] / share.sum())
        return cls(np.concatenate([[-np.inf], inner, [np.inf]]))

    def latent(self, x: Array) -> Array:
        """Return the mean of the latent column given the level, before anything is fitted."""
        codes = np.nan_to_num(x, nan=0.0).astype(np.intp)
        ends = self.cuts / SQRT_2
        middle = between_moments(ends[:-1], ends[1:])[0]
        return np.where(np.isnan(x), 0.0, middle[codes])[:, None]

    def truncation(self, x: Array) -> Truncation:
        """Return the intervals around the observed levels."""
        codes = np.nan_to_num(x, nan=0.0).astype(np.intp)
        return Between(self.cuts[codes][:, None], self.cuts[codes + 1][:, None])


@dataclass(frozen=True, eq=False)
class Choice:
    """Three or more levels without order: utilities, one less than levels."""

    n_levels: int
    reference: int

    known = False

    @classmethod
    def calibrate(cls, encoded: EncodedColumn) -> Choice:
        """Return the feature whose reference is the most frequent level."""
        codes = encoded.x[encoded.observed].astype(np.intp)
        count = np.bincount(codes, minlength=len(encoded.levels))
        return cls(len(encoded.levels), int(np.argmax(count)))

    @property
    def n_latent(self) -> int:
        """Return the number of levels less one."""
        return self.n_levels - 1

    def latent(self, x: Array) -> Array:
        """Return utilities of 1 for the observed level, -0.3 for the others."""
        levels = np.delete(np.arange(self.n_levels), self.reference)
        y = np.where(x[:, None] == levels, 1.0, -0.3)
        return np.where(np.isnan(x)[:, None], 0.0, y)

    def truncation(self, x: Array) -> Truncation:
        """Return which utility is the largest."""
        return Largest(np.nan_to_num(x, nan=0.0), self.n_levels, self.reference)


def is_constant(encoded: EncodedColumn) -> bool:
    """Return whether the observed cells do not differ, so that they tell nothing."""
    seen = encoded.x[encoded.observed]
    return seen.size == 0 or bool(np.all(seen == seen[0]))


def calibrate(encoded: EncodedColumn, config: LinkConfig) -> Feature:
    """Return the feature of a column that is not constant."""
    if not encoded.levels:
        return Number.calibrate(encoded, config)
    if len(encoded.levels) == 2 or encoded.column.ordinal:
        return Steps.calibrate(encoded)
    return Choice.calibrate(encoded)


def make_rows(
    features: Sequence[Feature],
    xs: Sequence[Array],
    n: int,
    label: Truncation | None = None,
    labelled: Array | None = None,
) -> Rows:
    """Return rows of a table as the mixture sees them.

    Parameters
    ----------
    features : sequence of Feature
    xs : sequence of (n,) float64
        The column of each: values or level codes, NaN where missing.
    n : int
        Rows.
    label, labelled
        What is known of the label's variables, and of which rows.
    """
    parts, known, halves = [np.empty((n, 0))], [np.empty((n, 0), dtype=bool)], []
    start = 0
    for feature, x in zip(features, xs, strict=True):
        seen = ~np.isnan(x)
        parts.append(feature.latent(x))
        known.append(np.repeat((seen & feature.known)[:, None], feature.n_latent, axis=1))
        if not feature.known:
            at = np.arange(start, start + feature.n_latent)
            halves.append(Half(at, seen, feature.truncation(x)))
        start += feature.n_latent
    values, mask = np.ascontiguousarray(np.hstack(parts)), np.hstack(known)
    if label is None or labelled is None:
        return Rows(values, mask, halves=tuple(halves))
    return Rows(values, mask, label, labelled, tuple(halves))


def take(columns: Sequence[EncodedColumn], rows: Array) -> tuple[EncodedColumn, ...]:
    """Return some rows of columns."""
    return tuple(
        replace(e, x=e.x[rows], observed=e.observed[rows], requested=e.requested[rows])
        for e in columns
    )
