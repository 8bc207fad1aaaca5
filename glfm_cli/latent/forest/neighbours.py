"""Inputs of trees beside the other columns: what a column's cells before and after say of a cell.

Of rows in time, the nearest observed cells of its own column are told to trees and lines of a
column as further inputs: the last before a row, the next after it, and
of numbers what both say together under an autoregression in continuous time with noise. They are
observed cells alone, so that nothing has to move along a gap, however long.

An observed cell, on which trees are grown, has nearer neighbours than a missing one. So it is told
what it would be told in the place of one: it borrows the distances of a missing cell of the column,
at random, and its neighbours are the first observed cells at least as many rows away. Beside near
neighbours other columns tell little, and much where they are far. So a column that has both single
missing cells and long gaps has trees for each, grown with borrowed distances of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.forest.columns import Kinds
from glfm_cli.latent.forest.series import RowsInTime
from glfm_cli.latent.model import take

SEED = 0x6E656172  # of whose distances observed cells borrow
RANGES = np.logspace(0.0, 4.0, 13)  # of an autoregression, in median steps
SHARES = np.array([0.3, 0.6, 0.8, 0.9, 0.97, 0.999])  # of a column's variance that it explains
ROWS = 2_000  # by which both are found, at most
CLOSE = 1e-9
FEWEST = 5  # missing cells that are near, and that are far, of which each have trees
NEAR = 3  # rows that both neighbours of a cell are away together, at most, or they are far


def together(y: Array, near: Array, away: Array, shape: Array) -> Array:
    """Return what both neighbours of cells say of them: (n,) best linear forecasts.

    y : (N,) the column;  near, away : (2, n) neighbours, -1 for none, and how far they are in time
    shape : (3,) range, share of the variance, and mean of an autoregression with noise
    """
    reach, share, middle = shape
    has = near >= 0
    off = np.where(has, y[near] - middle, 0.0)
    r = np.where(has, share * np.exp(-away / reach), 0.0)
    both = np.where(has.all(axis=0), share * np.exp(-away.sum(axis=0) / reach), 0.0)
    weight = (r - both * r[::-1]) / np.maximum(1.0 - both**2, CLOSE)
    found: Array = middle + np.sum(weight * off, axis=0)
    return found


def shape_of(y: Array, near: Array, away: Array, rows: Array, step: float) -> Array:
    """Return the range, share and mean by which neighbours forecast some observed cells best.

    y : (N,) the column;  near, away : (2, N) neighbours, and how far they are in time
    rows : (m,) of observed cells;  step : of which ranges are multiples
    """
    middle, best = float(y[rows].mean()), (np.inf, step, float(SHARES[0]))
    rows = rows[:: -(-rows.size // ROWS)]
    near, away = near[:, rows], away[:, rows]
    for reach in step * RANGES:
        for share in SHARES:
            forecast = together(y, near, away, np.array([reach, share, middle]))
            error = float(np.mean((y[rows] - forecast) ** 2))
            best = min(best, (error, float(reach), float(share)))
    return np.array([*best[1:], middle])


def told(y: Array, near: Array, away: Array, shape: Array, numbers: bool) -> Array:
    """Return the inputs (2 or 3, n) that the neighbours of cells make."""
    only = np.where(near >= 0, near, near[::-1])
    found = np.where(only >= 0, y[only], shape[2])
    if numbers:
        found = np.vstack([together(y, near, away, shape), found])
    return found.astype(np.float32)


@dataclass(frozen=True, eq=False)
class TimeNeighbours:
    """The rows of a fit in time, and how the neighbours of each column are weighed.

    shape : (D, 3) range, share of the variance, and mean of a column; of levels the last is the
        most frequent
    """

    series: RowsInTime
    shape: Array

    @classmethod
    def of(
        cls, series: RowsInTime, z: Array, seen: Array, kinds: Kinds
    ) -> tuple[TimeNeighbours, Array, Array]:
        """Return those of cells z (D, N), what they say of all, and which have far ones (D, N).

        An observed cell is never far. What they say of near cells stands before what they do of far
        ones, each (E, N) of a column after another.
        """
        D, there = len(z), seen != 0
        steps = [series.neighbours(s).rows[:, ~s] if s.any() else _NO_STEPS for s in there]
        every = np.concatenate(steps, axis=1)
        shape, far = np.empty((D, 3)), np.zeros(z.shape, dtype=bool)
        told_near, told_far = list[Array](), list[Array]()
        for d, y in enumerate(z):
            rng, own = np.random.default_rng([SEED, d]), steps[d]
            is_far = own.sum(axis=0) > NEAR
            two = min(is_far.sum(), (~is_far).sum()) >= FEWEST
            own = own if own.size else every
            sets = (own[:, ~is_far], own[:, is_far]) if two else (own, own)
            far[d, ~there[d]] = is_far & two if is_far.size else False
            shape[d] = _shape(series, y, there[d], own, int(kinds.levels[d]), rng)
            for some, inputs in zip(sets, (told_near, told_far), strict=True):
                near = series.borrowed(there[d], some, rng)
                inputs.append(told(y, near, series.away(near), shape[d], not kinds.levels[d]))
        return cls(series, shape), np.concatenate([*told_near, *told_far]), far

    def of_new(
        self, donors: Array, seen: Array, z: Array, own: Array, new: RowsInTime, kinds: Kinds
    ) -> tuple[Array, Array]:
        """Return what is told of new rows z (D, n), NaN where missing, and which are far (D, n).

        donors, seen : (D, N) of the fit
        own : (n,) rows of the fit that new ones are, which may not tell of themselves, or -1
        """
        old = np.delete(np.arange(self.series.time.size), own[own >= 0])
        both, inputs = self.series.take(old).before(new), list[Array]()
        far = np.zeros(z.shape, dtype=bool)
        for d, cells in enumerate(z):
            y = np.append(donors[d, old], cells)
            near, rows = both.neighbours(np.append(seen[d, old] != 0, ~np.isnan(cells)))
            near, rows, away = (part[:, old.size :] for part in (near, rows, both.away(near)))
            far[d] = rows.sum(axis=0) > NEAR
            inputs.append(told(y, near, away, self.shape[d], not kinds.levels[d]))
        return np.concatenate([*inputs, *inputs]), far

    def pack(self) -> dict[str, Array]:
        """Return them as named arrays."""
        return {"near_time": self.series.time, "near_shape": self.shape}

    @classmethod
    def unpack(
        cls, arrays: Mapping[str, Array], columns: int, rows: int, code: Array | None
    ) -> TimeNeighbours | None:
        """Return what `pack` gave, None where it is missing; ValueError when it is no such thing.

        code : (N,) groups of the rows
        """
        if "near_time" not in arrays:
            return None
        time = take(arrays, "near_time", np.float64, (rows,))
        shape = take(arrays, "near_shape", np.float64, (columns, 3))
        if np.any(shape[:, :2] <= 0.0):
            raise ValueError("'near_shape' is out of range")
        return cls(RowsInTime(time, code), shape)


_NO_STEPS = np.empty((2, 0), dtype=np.int64)


def _shape(
    series: RowsInTime, y: Array, seen: Array, steps: Array, levels: int, rng: np.random.Generator
) -> Array:
    """Return the shape (3,) of one column, whose observed cells borrow from `steps`."""
    rows = np.flatnonzero(seen)
    if levels or not rows.size:
        common = np.argmax(np.bincount(y[rows].astype(np.intp))) if rows.size else 0.0
        return np.array([series.step, SHARES[0], common])
    near = series.borrowed(seen, steps, rng)
    return shape_of(y, near, series.away(near), rows, series.step)
