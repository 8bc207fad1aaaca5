"""Ridge regressions of numbers on all other columns, of whose errors trees can be grown.

Trees make steps of a weighted sum of many columns, and need many rows for it. Where such a sum
forecasts a column well, trees are grown on what it leaves over of each cell, the regression being
fitted without that cell: as much as it leaves over of cells that nobody has seen.

The weight of the ridge is that of most evidence, given a flat prior of the mean and of the
logarithm of the error's variance [MacKay 1992]. A cell's error without its row is its error divided
by one less its leverage [Allen 1974].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.forest.columns import Kinds
from glfm_cli.latent.forest.inputs import Inputs
from glfm_cli.latent.model import take

ROWS, STEP_ROWS = 2_000, 1_000  # by which a line is fitted, at most, and in a step of a chain
BLOCK = 10_000  # rows whose inputs are held at once
WEIGHTS = np.logspace(-6.0, 2.0, 33)  # of the ridge, in rows of one deviation
BEYOND = 1.0  # what was observed a line may go
LEAST_FREE = 1e-3  # one less a leverage


@dataclass(frozen=True, eq=False)
class Lines:
    """The regressions of L columns of numbers.

    place : (D,) int64, which of them is a column's; -1 where it has none
    weight : (L, P + 1) float64, of the inputs, 0 of a column's own, and what is added
    ends : (L, 2) float64, below and above which no line forecasts
    left : (L, N) float32, what they leave over of observed cells, each fitted without it, else NaN
    """

    inputs: Inputs
    place: Array
    weight: Array
    ends: Array
    left: Array

    @classmethod
    def none(cls, kinds: Kinds, rows: int) -> Lines:
        """Return no lines, of a fit of so many rows."""
        inputs, place = kinds.inputs, np.full(kinds.n_columns, -1, dtype=np.int64)
        weight, ends = np.zeros((0, inputs.column.size + 1)), np.zeros((0, 2))
        return cls(inputs, place, weight, ends, np.zeros((0, rows), dtype=np.float32))

    @classmethod
    def fit(
        cls,
        z: Array,
        seen: Array,
        kinds: Kinds,
        columns: Sequence[int],
        rng: np.random.Generator,
        *,
        without: Sequence[Array] | None = None,
        most: int = ROWS,
    ) -> Lines:
        """Return those of some columns with observed cells, each on all columns but itself.

        z, seen : (D, N) every cell, missing ones as they were drawn, and which are observed
        without : of each column, others that it is not on either
        most : rows by which each is fitted, drawn at random
        """
        empty = cls.none(kinds, z.shape[1])
        if not len(columns):
            return empty
        inputs, place, of = empty.inputs, empty.place, list(columns)
        place[of] = np.arange(len(of))
        weight = np.zeros((len(of), inputs.column.size + 1))
        ends, apart = np.empty((len(of), 2)), []
        whole = inputs.see(z) if z.shape[1] <= BLOCK else None
        for k, d in enumerate(of):
            rows = np.flatnonzero(seen[d])
            ends[k] = z[d, rows].min() - BEYOND, z[d, rows].max() + BEYOND
            if rows.size > most:
                rows = np.sort(rng.choice(rows, most, replace=False))
            gone = np.append(kinds.not_of(d), d)
            gone = gone if without is None else np.append(without[k], gone)
            on = ~np.isin(inputs.column, gone)
            x = (inputs.see(z[:, rows]) if whole is None else whole.T[:, rows].T)[:, on]
            weight[k, -1], weight[k, :-1][on], left = ridge(x, z[d, rows])
            apart.append((rows, z[d, rows] - np.clip(z[d, rows] - left, *ends[k])))
        every = np.empty((len(of), z.shape[1]), dtype=np.float32)
        lines = cls(inputs, place, weight, ends, every)
        for start in range(0, z.shape[1], BLOCK):
            block = slice(start, start + BLOCK)
            x = inputs.see(z[:, block]) if whole is None else whole
            for k, d in enumerate(of):
                lines.left[k, block] = z[d, block] - lines._say(d, x)
        for k, (rows, left) in enumerate(apart):
            lines.left[k, rows] = left
            lines.left[k, seen[of[k]] == 0] = np.nan
        return lines

    def left_over(self, d: int) -> Array:
        """Return what the line of column d leaves over (N,), NaN where no cell was observed."""
        left: Array = self.left[self.place[d]].astype(np.float64)
        return left

    def left_of(self, d: int, rows: Array) -> Array:
        """Return the same (n,) of some rows alone."""
        left: Array = self.left[self.place[d], rows].astype(np.float64)
        return left

    def forecast(self, d: int, z: Array, rows: Array) -> Array:
        """Return what the line of column d forecasts (n,) of some of the rows of z (D, n_rows)."""
        found = np.empty(rows.size)
        for start in range(0, rows.size, BLOCK):
            block = slice(start, start + BLOCK)
            found[block] = self._say(d, self.inputs.see(z[:, rows[block]]))
        return found

    def _say(self, d: int, x: Array) -> Array:
        """Return what the line of column d forecasts (n,) by inputs (n, P)."""
        k = self.place[d]
        said: Array = np.clip(x @ self.weight[k, :-1] + self.weight[k, -1], *self.ends[k])
        return said

    def pack(self) -> dict[str, Array]:
        """Return them as named arrays."""
        return {"line": self.place, "weight": self.weight, "ends": self.ends, "left": self.left}

    @classmethod
    def unpack(cls, arrays: Mapping[str, Array], kinds: Kinds, rows: int) -> Lines:
        """Return what `pack` gave; ValueError, with a phrase, when it is no such thing."""
        inputs, D = kinds.inputs, kinds.n_columns
        place = take(arrays, "line", np.int64, (D,))
        has = place >= 0
        n = int(has.sum())
        if np.any(place < -1) or not np.array_equal(np.sort(place[has]), np.arange(n)):
            raise ValueError("'line' does not number columns")
        if np.any(has & ~may_have(kinds)):
            raise ValueError("'line' is of a column that can have none")
        weight = take(arrays, "weight", np.float64, (n, inputs.column.size + 1))
        ends = take(arrays, "ends", np.float64, (n, 2))
        if np.any(ends[:, 0] > ends[:, 1]):
            raise ValueError("'ends' are in no order")
        return cls(inputs, place, weight, ends, take(arrays, "left", np.float32, (n, rows)))


def may_have(kinds: Kinds) -> Array:
    """Return which columns (D,) may have a line: those of numbers alone."""
    found: Array = (kinds.levels == 0) & np.isnan(kinds.atom) & (not kinds.too_many)
    return found[: kinds.n_columns]


def ridge(x: Array, y: Array) -> tuple[float, Array, Array]:
    """Return the intercept, slopes (P,) and errors of y (n,), each fitted without its row.

    x : (n, P) inputs, of which each counts by its deviation
    """
    n, middle, about = y.size, y.mean(), x.mean(axis=0)
    deviation = x.std(axis=0)
    unit = np.where(deviation > 0.0, 1.0 / np.where(deviation > 0.0, deviation, 1.0), 0.0)
    u, v = (x - about) * unit, y - middle
    size, turn = np.linalg.eigh(u.T @ u)
    size, along = np.maximum(size, 0.0), turn.T @ (u.T @ v)
    shrunk = size + n * WEIGHTS[int(np.argmax(log_evidence(size, along, v @ v, n)))]
    slopes = turn @ (along / shrunk)
    leverage = 1.0 / n + np.sum((u @ turn) ** 2 / shrunk, axis=1)
    without = (v - u @ slopes) / np.maximum(1.0 - leverage, LEAST_FREE)
    slopes = slopes * unit
    return float(middle - about @ slopes), slopes, without


def log_evidence(size: Array, along: Array, square: float, n: int) -> Array:
    """Return the log marginal likelihood of every weight of the ridge, but for a constant.

    size, along : (P,) of the principal axes of centred inputs: their sums of squares, and their
        products with centred y
    square : the sum of squares of centred y (n,)
    """
    weight = n * WEIGHTS[:, None]
    explained = np.sum(along**2 / (size + weight), axis=1)
    rest = np.maximum(square - explained, 1e-12 * (square + 1e-300))
    prior: Array = 0.5 * np.sum(np.log(weight / (size + weight)), axis=1)
    return prior - 0.5 * (n - 1) * np.log(rest)
