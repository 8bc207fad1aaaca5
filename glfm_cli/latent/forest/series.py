"""Rows in time, and which observed cells are next to a row there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from glfm_cli.arrays import Array

NONE = 1 << 40  # rows that a neighbour is away which is not there


class Near(NamedTuple):
    """The neighbours of rows in one column, before and after.

    at : (2, N) int64, which row each is, -1 for none
    rows : (2, N) int64, how many rows away it is, `NONE` for none
    """

    at: Array
    rows: Array


@dataclass(frozen=True, eq=False)
class RowsInTime:
    """Rows by their time (N,) float64, in any order.

    code : (N,) int64, the group of each, beyond which a row has no neighbours; None where there is
        one group
    """

    time: Array
    code: Array | None = None

    def before(self, new: RowsInTime) -> RowsInTime:
        """Return these rows, and others behind them."""
        time = np.append(self.time, new.time)
        if self.code is None or new.code is None:
            return RowsInTime(time)
        return RowsInTime(time, np.append(self.code, new.code))

    def take(self, rows: Array) -> RowsInTime:
        """Return some of the rows."""
        return RowsInTime(self.time[rows], None if self.code is None else self.code[rows])

    @cached_property
    def order(self) -> Array:
        """Return the rows (N,) one after another, group by group."""
        return np.lexsort((self.time,) if self.code is None else (self.time, self.code))

    @cached_property
    def place(self) -> Array:
        """Return the place (N,) of each row among them."""
        place = np.empty_like(self.order)
        place[self.order] = np.arange(place.size)
        return place

    @cached_property
    def step(self) -> float:
        """Return the median difference of two times, one after the other; 1 of a single time."""
        steps = np.diff(np.unique(self.time))
        return float(np.median(steps)) if steps.size else 1.0

    def neighbours(self, seen: Array, least: Array | None = None) -> Near:
        """Return the nearest observed cells before and after every row.

        seen : (N,) bool, of one column
        least : (2, N) int, how many rows before and after they are at least; 1 without
        """
        order, place = self.order, self.place
        back, on = np.ones((2, order.size), dtype=np.int64) if least is None else least
        there = np.concatenate([[-1], np.flatnonzero(seen[order]), [order.size]])
        before = there[np.searchsorted(there, np.maximum(place - back, -1), "right") - 1]
        after = there[np.searchsorted(there, np.minimum(place + on, order.size))]
        at = np.stack([before, after])
        has = (at >= 0) & (at < order.size)
        at = np.where(has, at, 0)
        if self.code is not None:
            has &= self.code[order[at]] == self.code
        return Near(np.where(has, order[at], -1), np.where(has, np.abs(at - place), NONE))

    def borrowed(self, seen: Array, steps: Array, rng: np.random.Generator) -> Array:
        """Return neighbours (2, N), those of an observed cell as if it were a missing one.

        seen : (N,) bool, of one column
        steps : (2, m) how many rows those of missing cells are away; without any the nearest are
            taken
        """
        near = self.neighbours(seen).at
        there = np.flatnonzero(seen)
        if steps.shape[1] and there.size:
            least = np.ones((2, seen.size), dtype=np.int64)
            least[:, there] = steps[:, rng.integers(steps.shape[1], size=there.size)]
            near[:, there] = self.neighbours(seen, least).at[:, there]
        return near

    def away(self, near: Array) -> Array:
        """Return how far (2, N) neighbours are in time, 0 where there are none."""
        return np.where(near >= 0, np.abs(self.time[near] - self.time), 0.0)
