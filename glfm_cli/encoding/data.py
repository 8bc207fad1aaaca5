"""The encoded table: one array of values and two masks a column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from glfm_cli.arrays import Array, Groups
from glfm_cli.encoding.number_style import NumberStyle
from glfm_cli.encoding.trials import pack_trials
from glfm_cli.schema import Column
from glfm_cli.schema.moments import MomentStyle

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class EncodedColumn:
    """One modelled column.

    column : what the column means, with a type
    index : its position in the table
    x : (n_rows,) float64; the value in the column's own unit, or the code 0..R-1 of its level; NaN
        where not observed
    observed : (n_rows,) bool; cells that hold a value
    requested : (n_rows,) bool; missing cells to be completed: none in a predictor, none at a code
        with `impute: false`
    levels : the R levels, in the order of their codes; empty for a numeric column
    sample : (m,) float64; values that show the column's size, spread and zeros where its own cells
        are not to be asked: those of the fit that new rows are completed with
    style : how its numbers are written, where the types file says something of it
    ends : (n_rows, 2) float64; the least and the largest value of cells that are known only to lie
        between two numbers, which count as not observed, of those that are missing by their value
        -inf and inf; NaN at all others
    trials : (n_rows,) float64; of a column of successes among trials, how many trials each cell
        has, NaN where that is not known; x is then the share of successes
    exact : whether completed cells have all the digits that a formula over them needs
    structural : (n_rows,) float64; what `otherwise` says of empty cells outside the column's
        condition, which are neither observed nor requested; NaN at all others
    learnt_reach : of rows that a fit has not seen, its least and largest value, where known
    """

    column: Column
    index: int
    x: Array
    observed: Array
    requested: Array
    levels: tuple[str, ...] = ()
    sample: Array | None = None
    style: NumberStyle | MomentStyle | None = None
    ends: Array | None = None
    exact: bool = False
    trials: Array | None = None
    structural: Array | None = None
    learnt_reach: tuple[float, float] | None = None

    @property
    def given(self) -> Array:
        """The values (n_rows,) that need no model: observed and structural ones; NaN elsewhere."""
        if self.structural is None:
            return self.x
        return np.where(self.observed, self.x, self.structural)

    @property
    def cells(self) -> Array:
        """What links see: values (n_rows,), or of a column with intervals ends (n_rows, 2).

        Of successes among trials both in one number (trials.py).
        """
        if self.ends is None:
            return self.scored
        return np.where(self.observed[:, None], self.x[:, None], self.ends)

    @property
    def scored(self) -> Array:
        """The observed values (n_rows,) as laws of cells take them, NaN at all others."""
        if self.trials is None:
            return self.x
        return pack_trials(np.rint(self.x * self.trials), self.trials)

    @property
    def as_written(self) -> EncodedColumn:
        """The column as completed cells of it are written: counts of successes, not shares."""
        return self if self.trials is None else replace(self, column=self.column.of_counts())

    @property
    def between(self) -> Mask:
        """Which cells are known only to lie between two numbers."""
        if self.ends is None:
            return np.zeros(self.x.size, bool)
        return ~np.isnan(self.ends[:, 0]) & ~self.by_value

    @property
    def by_value(self) -> Mask:
        """Which cells are missing by their value, as `missingness` says: their ends are infinite.
        """
        if self.ends is None:
            return np.zeros(self.x.size, bool)
        return np.asarray((self.ends[:, 0] == -np.inf) & (self.ends[:, 1] == np.inf))

    @property
    def inside(self) -> Array:
        """The values, and one inside each interval: half the limit below one above 0.

        None where any number of the column is inside, as of >0 in a positive one.
        """
        if self.ends is None:
            return self.x
        least = 0.0 if self.column.positive or self.column.integral else -np.inf
        says_nothing = (self.ends[:, 0] <= least) & (self.ends[:, 1] == np.inf)
        low, high = np.where(says_nothing[:, None], np.nan, self.ends).T
        low = np.where(np.isinf(low), np.minimum(0.5 * high, high), low)
        middle = np.where(np.isinf(high), low, 0.5 * (low + high))
        if self.column.integral:
            middle = np.floor(middle)
        return np.where(self.observed, self.x, middle)

    def take(self, rows: Array) -> EncodedColumn:
        """Return some rows."""
        ends = None if self.ends is None else self.ends[rows]
        x, observed, requested = self.x[rows], self.observed[rows], self.requested[rows]
        for array in (x, observed, requested):
            array.setflags(write=False)
        trials = None if self.trials is None else self.trials[rows]
        structural = None if self.structural is None else self.structural[rows]
        taken = replace(self, x=x, observed=observed, requested=requested, ends=ends)
        return replace(taken, trials=trials, structural=structural)

    @property
    def typical(self) -> Array:
        """Values of the column as it was when the model learnt it; of intervals one inside."""
        if self.sample is not None:
            return self.sample
        return self.x[self.observed] if self.observed.any() else self.inside[self.between]

    @property
    def reach(self) -> tuple[float, float]:
        """The least and the largest of such values."""
        if self.learnt_reach is not None:
            return self.learnt_reach
        return float(self.typical.min()), float(self.typical.max())


@dataclass(frozen=True)
class NotCompleted:
    """Cells of one column that hold no value the model knows, and are not completed."""

    column: str
    cells: int
    why: str


@dataclass(frozen=True)
class Data:
    """The modelled columns of a table, in the table's order.

    columns : columns of role feature, target and predictor
    notes : what the user should be warned of, one line each
    ids : names of the columns of role id
    not_completed : cells without a value that stay as they are
    groups : which rows belong together, and in which order
    weights : (n_rows,) float64; how many units of a population each row stands for: from 0, not all
        0. No model sees them.
    id_cells : the columns `ids`, as the table has them; None where they are not known
    learnt_residuals : of rows that a fit has not seen, by how much each formula is off in its own,
        by column, where known
    """

    n_rows: int
    columns: tuple[EncodedColumn, ...]
    notes: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    not_completed: tuple[NotCompleted, ...] = ()
    groups: Groups | None = None
    weights: Array | None = None
    id_cells: pa.Table | None = None
    learnt_residuals: Mapping[str, Array] = field(default_factory=dict)

    @property
    def n_columns(self) -> int:
        """Modelled columns."""
        return len(self.columns)

    @property
    def seen(self) -> Array:
        """Which cells something is known of (n_rows, D)."""
        cells = (one.cells if one.cells.ndim == 1 else one.cells[:, 0] for one in self.columns)
        return ~np.isnan(np.column_stack(list(cells)))

    @property
    def in_table(self) -> tuple[EncodedColumn, ...]:
        """The modelled columns that the table has: without those that stand beside its dates."""
        return tuple(one for one in self.columns if one.column.calendar is None)

    @property
    def beside(self) -> tuple[tuple[int, int], ...]:
        """Of each column that stands beside one of dates, its number and that one's."""
        place = {one.column.name: d for d, one in enumerate(self.columns)}
        parts = ((d, one.column.calendar) for d, one in enumerate(self.columns))
        return tuple((d, place[part.of]) for d, part in parts if part is not None)

    def take(self, rows: Array) -> Data:
        """Return some rows, their columns with the levels of all."""
        columns = tuple(column.take(rows) for column in self.columns)
        groups = None if self.groups is None else self.groups.take(rows)
        weights = None if self.weights is None else self.weights[rows]
        ids = None if self.id_cells is None else self.id_cells.take(rows)
        return replace(
            self,
            n_rows=rows.size,
            columns=columns,
            groups=groups,
            weights=weights,
            id_cells=ids,
        )

    @property
    def missing(self) -> dict[int, Array]:
        """The rows of the cells to be completed, by column; only of columns that have some."""
        return {d: np.flatnonzero(c.requested) for d, c in self._requested()}

    @property
    def ends(self) -> dict[int, Array]:
        """What such cells are known to lie between, by column with intervals to be completed.

        Successes lie between 0 and their trials.
        """
        found = {
            d: c.ends[c.requested]
            for d, c in self._requested()
            if c.ends is not None and (c.column.impute_censored or c.column.missingness)
        }
        for d, c in self._requested():
            if c.trials is not None:
                trials = c.trials[c.requested]
                found[d] = np.column_stack([np.zeros(trials.size), trials])
        return found

    def _requested(self) -> Iterator[tuple[int, EncodedColumn]]:
        return ((d, c) for d, c in enumerate(self.columns) if c.requested.any())
