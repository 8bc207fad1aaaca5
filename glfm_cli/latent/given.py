"""Predictors that never change within a group, such as the arm of a patient in a trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.model import Problem, take

MOST = 20  # latent columns of predictors
FURTHEST = 3.0  # sds from the mean of groups, beyond which a value tells no more


def given_of(problem: Problem) -> Array | None:
    """Return y (n, S) of predictors as links see them, NaN elsewhere; None without groups in time.

    An order's levels count 0, 1, 2 ..., whatever rows there are.
    """
    groups, links = problem.groups, problem.links
    if groups is None or groups.time is None or not groups.given:
        return None
    found = []
    for d, (link, x) in enumerate(zip(links, problem.xs, strict=True)):
        y = np.full((len(x), link.n_latent), np.nan)
        if d in groups.given and x.ndim == 1:
            seen = ~np.isnan(x)
            order = link.n_latent == 1 and link.unit_noise
            y[seen] = x[seen, None] if order else link.start(x)[1][seen]
        found.append(y)
    return np.hstack(found)


@dataclass(frozen=True, eq=False)
class GroupPredictors:
    """What is known of groups, in sds of the groups of a fit.

    at : (P,) int64, the latent columns;  scale : (2, P), means and sds;  x : (G, P)
    """

    at: Array
    scale: Array
    x: Array

    @classmethod
    def none(cls, n: int) -> Self:
        """Return no predictors of n groups."""
        return cls(np.empty(0, dtype=np.int64), np.empty((2, 0)), np.empty((n, 0)))

    @classmethod
    def of(cls, given: Array, code: Array, n: int) -> Self:
        """Return those of what is given (N, S) that are known of every group and never change."""
        with np.errstate(invalid="ignore"):
            values = _means(given, code, n)
            apart = np.abs(given - values[code]) > 1e-9 * np.abs(given)
        sd = values.std(axis=0)  # NaN where a group has no value
        at = np.flatnonzero((sd > 1e-9) & ~apart.any(axis=0))[:MOST]
        scale = np.array([values[:, at].mean(axis=0), sd[at]])
        return cls(at, scale, _clipped(values[:, at], scale))

    def joined(self, given: Array | None, code: Array, n: int) -> Array:
        """Return x (n, P) of these groups and of others, of which rows are given; 0 of unknown."""
        G = len(self.x)
        others = np.zeros((n - G, self.at.size))
        if given is not None and n > G:
            others = _clipped(_means(given[:, self.at], code, n)[G:], self.scale)
        return np.concatenate([self.x, np.nan_to_num(others)])

    def pack(self) -> dict[str, Array]:
        """Return it as named arrays, none where there are no predictors."""
        if not self.at.size:
            return {}
        return {"effects.x": self.x, "effects.x.at": self.at, "effects.x.scale": self.scale}

    @classmethod
    def unpack(cls, arrays: Mapping[str, Array], n: int, width: int) -> Self:
        """Return what `pack` gave; none where it gave none. ValueError: no such."""
        if "effects.x" not in arrays:
            return cls.none(n)
        at = take(arrays, "effects.x.at", np.int64, (None,))
        scale = take(arrays, "effects.x.scale", np.float64, (2, at.size))
        if np.any((at < 0) | (at >= width)) or np.any(scale[1] <= 0.0):
            raise ValueError("'effects.x' is not of latent columns")
        return cls(at, scale, take(arrays, "effects.x", np.float64, (n, at.size)))


def _means(values: Array, code: Array, n: int) -> Array:
    """Return the means (n, S) over what is seen of each group, NaN without."""
    seen = ~np.isnan(values)
    sums, numbers = np.zeros((n, values.shape[1])), np.zeros((n, values.shape[1]))
    np.add.at(sums, code, np.where(seen, values, 0.0))
    np.add.at(numbers, code, seen)
    with np.errstate(invalid="ignore"):
        return sums / numbers


def _clipped(values: Array, scale: Array) -> Array:
    return np.clip((values - scale[0]) / scale[1], -FURTHEST, FURTHEST)
