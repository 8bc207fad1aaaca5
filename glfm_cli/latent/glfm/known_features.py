"""Levels of complete categorical columns as features that rows are known to have.

The arm of a trial, or a sex, is a cause of other columns, or at least never missing. Behind a
utility that is drawn it moves them by what features and components have in common with that
utility, which draws its effects towards zero. As a feature that is known it moves them by weights
of their own, with the prior of those of the bias: a regression on its indicator.

A column takes part that is categorical, has 2 to MOST levels, each of enough rows, and no missing
cell, in a table where others have some, and whose rows belong to no groups: what groups share has
predictors of its own (latent/given.py). Its most frequent level is the one without a feature.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.model import Cells, take

MOST = 5  # levels
FEWEST = 10  # rows of a level


@dataclass(frozen=True, eq=False)
class KnownFeatures:
    """Which level of which column each of them is: pairs (P, 2) int64."""

    pairs: Array

    @classmethod
    def none(cls) -> Self:
        """Return none."""
        return cls(np.empty((0, 2), dtype=np.int64))

    @classmethod
    def of(cls, cells: Cells, most: int) -> Self:
        """Return those of a table, of its first columns, at most `most` of them."""
        levels, found = cells.levels, list[tuple[int, int]]()
        if levels is None or not most or cells.groups is not None or cells.observed.all():
            return cls.none()
        for d in np.flatnonzero((levels >= 0).all(axis=0)).tolist():
            count = np.bincount(levels[:, d])
            usual = int(np.argmax(count))
            there = [level for level in range(count.size) if count[level] and level != usual]
            fits = 1 <= len(there) < MOST and min(count[there]) >= FEWEST
            if fits and len(found) + len(there) <= most:
                found += [(d, level) for level in there]
        return cls(np.array(found, dtype=np.int64).reshape(-1, 2))

    def __len__(self) -> int:
        return len(self.pairs)

    def bits(self, cells: Cells, unknown: Array) -> Array:
        """Return which of them rows have (N, P); `unknown` where the cell is missing."""
        if not len(self) or cells.levels is None:
            return unknown
        levels = cells.levels[:, self.pairs[:, 0]]
        return np.where(levels < 0, unknown, levels == self.pairs[:, 1])

    def pack(self) -> dict[str, Array]:
        """Return it as a named array."""
        return {"known": self.pairs}

    @classmethod
    def unpack(cls, arrays: Mapping[str, Array], n_columns: int) -> Self:
        """Return what `pack` gave; ValueError when it is no such."""
        pairs = take(arrays, "known", np.int64, (None, 2))
        if np.any(pairs < 0) or np.any(pairs[:, 0] >= n_columns) or np.any(pairs[:, 1] > 127):
            raise ValueError("'known' is not of columns and levels")
        return cls(pairs)
