"""The counts that a fit sees: by row and by column, without the zeros, and the missing pairs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import gammaln

from glfm_cli.arrays import Array
from glfm_cli.errors import TableError
from glfm_cli.latent.blocks import HERE, UnitCells
from glfm_cli.schema.types import EXPECTED_COUNT, LARGEST_COUNT

BLOCK = 1 << 15  # cells of a block of rows or columns, about
UNIT = 64  # cells that one row costs besides those it has


@dataclass(frozen=True)
class Missing:
    """The missing pairs of one side's units, stored for the units that have any.

    at : (n,) int32, the unit's number among those, -1 for the others; empty where none has
    indptr : (k + 1,) int64;  index : int32, units of the other side
    seen : (k,) uint8, 1 where `index` lists what is not missing, because that is less
    """

    at: Array
    indptr: Array
    index: Array
    seen: Array

    @classmethod
    def of(cls, unit: Array, other: Array, n: int, n_other: int) -> Missing:
        """Return the lists of pairs (unit, other), each once."""
        if not unit.size:
            return cls(HERE, np.zeros(1, np.int64), HERE, np.empty(0, np.uint8))
        order = np.lexsort((other, unit))
        unit, other = unit[order], other[order]
        units, of, size = np.unique(unit, return_inverse=True, return_counts=True)
        seen = 2 * size > n_other
        # The others of long lists: a table of no more than twice the pairs.
        long, there = seen[of], np.ones((int(seen.sum()), n_other), dtype=bool)
        there[(np.cumsum(seen) - 1)[of[long]], other[long]] = False
        number, rest = np.nonzero(there)
        of = np.concatenate([of[~long], np.flatnonzero(seen)[number]])
        index = np.concatenate([other[~long], rest])[np.argsort(of, kind="stable")]
        at = np.full(n, -1, dtype=np.int32)
        at[units] = np.arange(units.size)
        indptr = np.append(0, np.cumsum(np.bincount(of, minlength=units.size)))
        return cls(at, indptr.astype(np.int64), index.astype(np.int32), seen.astype(np.uint8))

    @property
    def units(self) -> Array:
        """The units that have missing pairs (k,)."""
        return np.flatnonzero(self.at >= 0)

    def take(self, units: Array) -> Missing:
        """Return the lists of some units, in their order."""
        if not self.at.size or not np.any(self.at[units] >= 0):
            return Missing.of(HERE, HERE, 0, 0)
        kept = self.at[units]
        have = kept[kept >= 0]
        at = np.full(units.size, -1, dtype=np.int32)
        at[kept >= 0] = np.arange(have.size)
        indptr, place = _entries(self.indptr, have)
        return Missing(at, indptr, self.index[place], self.seen[have])

    def among(self, others: Array) -> Missing:
        """Return the lists with nothing but some units of the other side, in their order."""
        if not self.seen.size:
            return self
        place = np.full(int(max(self.index.max(initial=0), others.max(initial=0))) + 1, -1)
        place[others] = np.arange(others.size)
        index = place[self.index]
        ends = np.concatenate([[0], np.cumsum(index >= 0)])[self.indptr]
        return Missing(
            self.at, ends.astype(np.int64), index[index >= 0].astype(np.int32), self.seen
        )


@dataclass(frozen=True)
class Counts:
    """A matrix of counts in which an absent pair is a zero, or one of the missing pairs.

    rows, columns : the counts above 0 by row and by column
    count : (m,) int32, row order
    missing_rows, missing_columns : the missing pairs by row and by column
    threads : that one fit may use; nothing depends on it
    """

    rows: UnitCells
    columns: UnitCells
    count: Array
    missing_rows: Missing
    missing_columns: Missing
    threads: int = 1

    @classmethod
    def of(
        cls,
        row: Array,
        column: Array,
        count: Array,
        shape: tuple[int, int],
        missing: tuple[Array, Array] | None = None,
        threads: int = 1,
    ) -> Counts:
        """Return the matrix of some triplets; a count of 0 is the same as an absent pair.

        Raises TableError: a count is negative or no whole number, a pair comes twice, is missing
            and has a count, or lies outside `shape`; names the first.
        """
        row, column, count = map(np.asarray, (row, column, count))
        lost = tuple(np.asarray(side) for side in missing or (HERE, HERE))
        whole = (count >= 0) & (np.floor(count) == count)
        _reject(~whole, row, column, "a whole number from 0 on", count)
        _reject(count > LARGEST_COUNT, row, column, EXPECTED_COUNT, count)
        for r, c in ((row, column), lost):
            out = (r < 0) | (r >= shape[0]) | (c < 0) | (c >= shape[1])
            _reject(out, r, c, f"a pair within {shape[0]} x {shape[1]}")
        order = _sorted_once(row, column, shape[1], "one count for every pair")
        row, column, count = row[order], column[order], count[order]
        if not np.all(count > 0):
            positive = count > 0
            row, column, count = row[positive], column[positive], count[positive]
        row, column, count = (one.astype(np.int32) for one in (row, column, count))
        _sorted_once(lost[0], lost[1], shape[1], "a missing pair only once")
        if lost[0].size:
            gone = lost[0].astype(np.int64) * shape[1] + lost[1]
            both = np.isin(gone, row.astype(np.int64) * shape[1] + column, assume_unique=True)
            _reject(both, lost[0], lost[1], "a missing pair to have no count")
        return cls._built(
            row,
            column,
            count,
            shape,
            Missing.of(lost[0], lost[1], shape[0], shape[1]),
            Missing.of(lost[1], lost[0], shape[1], shape[0]),
            threads,
        )

    @classmethod
    def _built(
        cls,
        row: Array,
        column: Array,
        count: Array,
        shape: tuple[int, int],
        missing_rows: Missing,
        missing_columns: Missing,
        threads: int,
    ) -> Counts:
        by_column = np.argsort(column, kind="stable").astype(np.int32)
        rows = _blocked(UnitCells.of(row, column, HERE, shape[0]))
        columns = UnitCells.of(column[by_column], row[by_column], by_column, shape[1])
        columns = _blocked(columns)
        return cls(rows, columns, count, missing_rows, missing_columns, threads)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.rows.n, self.columns.n

    @cached_property
    def row_totals(self) -> Array:
        """The counts of each row together (U,) float64."""
        return _totals(self.count, self.rows)

    @cached_property
    def column_totals(self) -> Array:
        """The counts of each column together (I,) float64."""
        return _totals(self.count[self.columns.cell], self.columns)

    @cached_property
    def log_factorials(self) -> float:
        """The sum of log y!."""
        return float(gammaln(self.count + 1.0).sum())

    def take(self, rows: Array) -> Counts:
        """Return the matrix of some rows, in their order."""
        indptr, place = _entries(self.rows.indptr, rows)
        row = np.repeat(np.arange(rows.size, dtype=np.int32), np.diff(indptr))
        return Counts._built(
            row,
            self.rows.index[place],
            self.count[place],
            (rows.size, self.shape[1]),
            self.missing_rows.take(rows),
            self.missing_columns.among(rows),
            self.threads,
        )


def _blocked(side: UnitCells) -> UnitCells:
    """Return the side with blocks of about equal work, whatever the number of threads."""
    work = side.indptr + UNIT * np.arange(side.n + 1)
    cuts = np.searchsorted(work, np.arange(BLOCK, int(work[-1]), BLOCK))
    return replace(side, cuts=tuple(int(c) for c in np.unique(np.r_[0, cuts, side.n])))


def _entries(indptr: Array, units: Array) -> tuple[Array, Array]:
    """Return the ends (k + 1,) of the lists of some units put together, and their entries."""
    sizes = np.diff(indptr)[units]
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    place = np.arange(ends[-1]) + np.repeat(indptr[units] - ends[:-1], sizes)
    return ends, place


def _totals(count: Array, side: UnitCells) -> Array:
    sums = np.concatenate([[0], np.cumsum(count, dtype=np.int64)])
    return np.diff(sums[side.indptr]).astype(np.float64)


def _sorted_once(row: Array, column: Array, n: int, expected: str) -> Array | slice:
    """Return what puts pairs in the order of rows, then of columns; each must come once."""
    key = row.astype(np.int64) * n + column
    if np.all(key[1:] > key[:-1]):
        return slice(None)
    order = np.argsort(key, kind="stable")
    key = key[order]
    again = np.r_[False, key[1:] == key[:-1]]
    _reject(again, row[order], column[order], expected)
    return order


def _reject(
    wrong: Array, row: Array, column: Array, expected: str, value: Array | None = None
) -> None:
    """Raise the error of the first pair that is wrong, its row and column counted from 1."""
    if np.any(wrong):
        first = int(np.argmax(wrong))
        what = f"pair ({int(row[first]) + 1}, {int(column[first]) + 1})"
        raise TableError(what, value=None if value is None else value[first], expected=expected)
