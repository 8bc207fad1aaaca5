"""Which observed cells are hidden: drawn by a mechanism, the same for every method.

Cells get random keys, and those with the smallest are hidden, exactly as many as the rate asks
for. What the keys depend on is the mechanism [Rubin 1976]:

    mcar       on nothing: completely at random
    mar        on the values of one or two columns that stay visible themselves
    mnar       on the hidden value itself: large values, and some levels, go first
    observed   on the table's own gaps: rows borrow the gaps of other rows
    stretches  likewise, whole runs of rows: the table's gaps stand some rows later

A key that depends on a score s is E / exp(s), E standard exponential: the smallest keys are then a
sample without replacement with chances proportional to exp(s) [Efraimidis and Spirakis 2006].

No row and no column is ever hidden as a whole. A row keeps the cell with its largest key, and so
does a column, of those that suffice to calibrate it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from glfm_cli.arrays import Array
from glfm_cli.encoding import Data
from glfm_cli.errors import UsageError
from glfm_cli.inference.gap_runs import run_keys

# The most exposed cell is exp(3) = 20 times as likely to go first as the least exposed one.
STRENGTH = 3.0
PULL_SD = 1.5  # of the levels of a categorical column, where they decide what is hidden
_PASSES = 1000  # times that rows may borrow gaps


class MaskedCells(NamedTuple):
    """What a mechanism sees of a table.

    x : (N, D) float64, values or level codes; NaN where not observed
    gaps : (N, D) bool, cells that are wanted
    hideable : (N, D) bool, observed cells of columns that are completed
    categorical : (D,) bool, columns whose codes have no order
    order : (N,) int64, the rows one after another: of each group, in the order of time
    """

    x: Array
    gaps: Array
    hideable: Array
    categorical: Array
    order: Array

    @classmethod
    def of(cls, data: Data) -> MaskedCells:
        """Return the cells of an encoded table."""
        code, time = np.zeros(data.n_rows, dtype=np.int64), np.arange(data.n_rows)
        if data.groups is not None:
            code = data.groups.code
            time = time if data.groups.time is None else data.groups.time
        return cls(
            np.column_stack([e.x for e in data.columns]),
            np.column_stack([e.requested for e in data.columns]),
            np.column_stack([e.observed & e.column.completed for e in data.columns]),
            np.array([e.column.nominal for e in data.columns]),
            np.lexsort((time, code)),
        )


def draw_mask(
    data: Data, mechanism: str, rate: float, rng: Generator, *, within: Array | None = None
) -> Array:
    """Return which cells (N, D) bool of an encoded table are hidden.

    mechanism : one of `MECHANISMS`
    rate : share of the cells that the mechanism can hide, in (0, 1): the observed cells of
        completed columns; for "mar" without the columns that decide, for "observed" and
        "stretches" those of columns that have gaps
    within : (N,) bool; the rows in which cells may be hidden; all if left out

    Raises UsageError: no such mask exists: it would hide a whole row or column, or the table has
        nothing that the mechanism needs.
    """
    cells = MaskedCells.of(data)
    if within is not None:
        cells = cells._replace(hideable=cells.hideable & within[:, None])
    key, hideable = MECHANISMS[mechanism](cells, rng)
    requested = round(rate * int(hideable.sum()))
    free = _spare(key, hideable & np.isfinite(key), ~np.isnan(cells.x), _telling(data))
    order = np.flatnonzero(free)
    if order.size < max(requested, 1):
        most = 100 * order.size / max(int(hideable.sum()), 1)
        raise UsageError(
            f"a rate of {rate:g} cannot be reached: at most {np.floor(most):.0f} % of the cells "
            f"can be hidden ({mechanism}) while every row and column keeps one",
            hint="Use a lower rate, or another --mechanism.",
        )
    if requested == 0:
        raise UsageError(
            f"a rate of {rate:g} hides no cell: only {int(hideable.sum())} can be hidden",
            hint="Use a higher rate.",
        )
    order = order[np.argsort(key.ravel()[order], kind="stable")]
    hidden = np.zeros(key.size, dtype=bool)
    hidden[order[:requested]] = True
    return hidden.reshape(key.shape)


def check_whole(data: Data, hidden: Array) -> None:
    """Raise UsageError when given cells would hide a row or a column as a whole."""
    seen = ~np.isnan(np.column_stack([e.x for e in data.columns]))
    left = seen & ~hidden
    rows = np.flatnonzero(hidden.any(axis=1) & ~left.any(axis=1))
    if rows.size:
        raise UsageError(
            "the split hides all observed cells of this row",
            row=int(rows[0]) + 1,
            hint="Leave at least one modelled cell of every row.",
        )
    columns = np.flatnonzero(hidden.any(axis=0) & ~(left & _telling(data)).any(axis=0))
    if columns.size:
        raise UsageError(
            "the split leaves no cell of this column to learn from",
            column=data.columns[int(columns[0])].column.name,
        )


def _telling(data: Data) -> Array:
    """Return which cells (N, D) can calibrate their column: for a positive one, those above 0."""
    return np.column_stack(
        [
            e.x > 0 if e.column.positive else e.observed
            for e in data.columns
        ]
    )  # fmt: skip


def _spare(key: Array, hideable: Array, observed: Array, telling: Array) -> Array:
    """Return which cells could all be hidden and still leave one in every row and column.

    A row that would be hidden as a whole keeps its largest key, then a column its largest that
    is telling. The cells that remain are free to be hidden in any number.
    """
    free = hideable.copy()
    rows = np.flatnonzero(~(observed & ~free).any(axis=1) & observed.any(axis=1))
    if rows.size:
        kept = np.argmax(np.where(free[rows], key[rows], -np.inf), axis=1)
        free[rows, kept] = False
    for d in np.flatnonzero(~(telling & ~free).any(axis=0)):
        kept = int(np.argmax(np.where(free[:, d] & telling[:, d], key[:, d], -np.inf)))
        free[kept, d] = False
    return free


# ------------------------------------------------------------------------------- mechanisms


def _mcar(cells: MaskedCells, rng: Generator) -> tuple[Array, Array]:
    """Return keys that depend on nothing."""
    return rng.standard_exponential(cells.x.shape), cells.hideable


def _mar(cells: MaskedCells, rng: Generator) -> tuple[Array, Array]:
    """Return keys that depend on columns which stay visible: two, or one of a narrow table.

    They are drawn from the more complete half of the columns; each other column goes with or
    against the mean of their scores.
    """
    n_columns = cells.x.shape[1]
    if n_columns < 2:
        raise UsageError(
            "--mechanism mar needs a column that stays visible beside one that is hidden",
            expected="at least two modelled columns",
        )
    share = (~np.isnan(cells.x)).mean(axis=0)
    complete = np.argsort(-(share + 1e-6 * rng.random(n_columns)))[: max(2, n_columns // 2)]
    drivers = rng.choice(complete, 2 if n_columns > 3 else 1, replace=False)
    hideable = cells.hideable.copy()
    hideable[:, drivers] = False
    scores = np.mean([_exposure(cells, d, rng) for d in drivers], axis=0)
    sign = rng.choice([-1.0, 1.0], n_columns)
    return _keys(STRENGTH * scores[:, None] * sign, rng), hideable


def _mnar(cells: MaskedCells, rng: Generator) -> tuple[Array, Array]:
    """Return keys that depend on the values themselves."""
    scores = [_exposure(cells, d, rng) for d in range(cells.x.shape[1])]
    return _keys(STRENGTH * np.column_stack(scores), rng), cells.hideable


def _observed(cells: MaskedCells, rng: Generator) -> tuple[Array, Array]:
    """Return keys by which rows, in random order, lose the cells that another row has not.

    Once every row had its turn they borrow again, each from another row.
    """
    hideable = _like_gaps(cells, "observed")
    donors = np.flatnonzero(cells.gaps.any(axis=1))
    n_rows = cells.x.shape[0]
    key = np.full(cells.x.shape, np.inf)
    for turn in range(_PASSES):
        waiting = hideable & np.isinf(key)
        if not waiting.any():
            break
        borrowed = cells.gaps[rng.choice(donors, n_rows)] & waiting
        place = turn * n_rows + rng.permutation(n_rows)
        # A row's cells go together; which of them first is left to chance.
        key[borrowed] = (place[:, None] + rng.random(key.shape))[borrowed]
    return key, hideable


def _stretches(cells: MaskedCells, rng: Generator) -> tuple[Array, Array]:
    """Return keys by which runs of rows lose the cells that other rows have not."""
    hideable = _like_gaps(cells, "stretches")
    key = np.empty(hideable.shape)
    key[cells.order] = run_keys(cells.gaps[cells.order], hideable[cells.order], rng)
    return key, hideable


def _like_gaps(cells: MaskedCells, mechanism: str) -> Array:
    """Return which cells (N, D) imitated gaps can hide; UsageError when the table has no gap."""
    if not cells.gaps.any():
        raise UsageError(
            f"--mechanism {mechanism} imitates the table's gaps, and the table has none",
            hint="Use --mechanism mcar, mar or mnar.",
        )
    return cells.hideable & cells.gaps.any(axis=0)


def _keys(scores: Array, rng: Generator) -> Array:
    return rng.standard_exponential(scores.shape) / np.exp(scores)


def _exposure(cells: MaskedCells, d: int, rng: Generator) -> Array:
    """Return a score (N,) from -1/2 to 1/2 that follows a column's values; 0 where missing.

    The rank of numbers and ordered levels, ties broken at random; of categories the rank of
    a pull that each level is given.
    """
    x = cells.x[:, d]
    if cells.categorical[d]:
        pull = PULL_SD / STRENGTH * rng.standard_normal(int(np.nanmax(x)) + 1)
        return np.where(np.isnan(x), 0.0, pull[np.nan_to_num(x).astype(int)])
    score = np.zeros(x.size)
    seen = np.flatnonzero(~np.isnan(x))
    order = seen[np.lexsort((rng.random(seen.size), x[seen]))]
    score[order] = (np.arange(seen.size) + 0.5) / seen.size - 0.5
    return score


MECHANISMS: dict[str, Callable[[MaskedCells, Generator], tuple[Array, Array]]] = {
    "mcar": _mcar,
    "mar": _mar,
    "mnar": _mnar,
    "observed": _observed,
    "stretches": _stretches,
}
