"""What a table is to the latent Gaussian process: for every cell what it says of latent numbers.

Cells come by column, and need no more than a kind and two numbers:

    kind       lower, upper of an observed cell                         latent numbers
    number     y = g(x) of a margin g, twice; or an interval of y       1
    ordered    the level's code 0 .. R - 1, twice                       1
    levels     the same, 0 being the reference level                    R - 1
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from glfm_cli.arrays import Array

Kind = Literal["number", "ordered", "levels"]
KINDS: tuple[Kind, ...] = ("number", "ordered", "levels")


class ColumnKind(NamedTuple):
    """A column as the model sees it; n_levels (R >= 1) of `ordered` and `levels` columns.

    reference : of `levels`, the level whose code here is 0; the levels before it move up by one
    """

    kind: Kind
    n_levels: int = 0
    reference: int = 0

    @property
    def codes(self) -> Array:
        """The code here (R,) of every level."""
        codes = np.arange(self.n_levels)
        return np.where(codes == self.reference, 0, codes + (codes < self.reference))

    @property
    def n_latent(self) -> int:
        """How many latent numbers a cell has."""
        return self.n_levels - 1 if self.kind == "levels" else 1

    @property
    def n_thresholds(self) -> int:
        """How many thresholds are learnt."""
        return self.n_levels - 1 if self.kind == "ordered" else 0


@dataclass(frozen=True)
class Slots:
    """Where a column's parameters stand among those of all columns.

    column : (S,) int, the column that owns a latent number
    """

    kinds: tuple[ColumnKind, ...]

    @cached_property
    def spans(self) -> list[slice]:
        """The latent numbers of each column."""
        return _slices([kind.n_latent for kind in self.kinds])

    @cached_property
    def thresholds(self) -> list[slice]:
        """The thresholds of each column."""
        return _slices([kind.n_thresholds for kind in self.kinds])

    @cached_property
    def column(self) -> Array:
        """The column (S,) that owns each latent number."""
        return np.repeat(np.arange(len(self.kinds)), [kind.n_latent for kind in self.kinds])

    @property
    def n_latent(self) -> int:
        """The number S of latent numbers in a row."""
        return int(self.column.size)

    @property
    def n_thresholds(self) -> int:
        """The number of thresholds of all columns."""
        return sum(kind.n_thresholds for kind in self.kinds)

    @cached_property
    def has_intercept(self) -> Array:
        """Whether a latent number (S,) has an intercept; where thresholds are, they are it."""
        return np.array([self.kinds[d].kind != "ordered" for d in self.column], dtype=bool)

    @cached_property
    def amplitude_precision(self) -> Array:
        """Prior precision (S,) of a log amplitude: weak for levels, whose noise has one size."""
        return np.where(self.has_noise[self.column], 1.0, 1.0 / 9.0)

    @cached_property
    def has_noise(self) -> Array:
        """Whether a column (D,) has a noise variance to learn."""
        return np.array([kind.kind == "number" for kind in self.kinds], dtype=bool)


@dataclass(frozen=True, eq=False)
class ObservedTable:
    """The observed cells of N rows and D columns, checked.

    lower, upper : (D, N) float64; NaN in both where a cell is missing. They differ where a number
        is only known to lie between them, and may then be infinite
    """

    kinds: tuple[ColumnKind, ...]
    lower: Array
    upper: Array

    def __post_init__(self) -> None:
        if self.lower.shape != self.upper.shape or self.lower.shape[:1] != (len(self.kinds),):
            raise ValueError("'lower' and 'upper' are not of the columns' number and one shape")
        if not np.array_equal(np.isnan(self.lower), np.isnan(self.upper)):
            raise ValueError("'lower' and 'upper' are not missing together")
        for kind, lower, upper in zip(self.kinds, self.lower, self.upper, strict=True):
            low, high = lower[~np.isnan(lower)], upper[~np.isnan(upper)]
            if kind.kind == "number":
                fine = bool(np.all(low <= high) and np.all(np.isfinite(low) | (low < high)))
            else:
                known = (low == high) & (low >= 0) & (low < kind.n_levels) & (low == np.floor(low))
                fine = bool(np.all(known)) and kind.n_levels >= 1
            if not fine:
                raise ValueError(f"a cell is no {kind.kind} of its column")

    @property
    def n_rows(self) -> int:
        """The number N of rows."""
        return int(self.lower.shape[1])

    @cached_property
    def slots(self) -> Slots:
        """Where the columns' parameters stand."""
        return Slots(self.kinds)

    def rows(self, rows: slice | Array) -> tuple[Array, Array]:
        """Return lower and upper (D, n) of some rows, contiguous."""
        return np.ascontiguousarray(self.lower[:, rows]), np.ascontiguousarray(self.upper[:, rows])


def _slices(sizes: list[int]) -> list[slice]:
    ends = np.cumsum([0, *sizes])
    return [slice(int(a), int(b)) for a, b in pairwise(ends)]
