"""Columns of numbers of which one value has a probability of its own, such as 0 of rainfall."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.schema.columns import Column
from glfm_cli.schema.types import ColumnType

COMMON = 0.05  # of the cells, from which a value may be an atom
STANDS_OUT = 5.0  # times as common as any other value: rounding alone repeats values, too
FEWEST = 10  # cells at the atom, and beside it
FAR = 0.5  # sd of the other values, by which zeros are no small values but of another kind


def atom_of(column: Column, x: Array, times: Array | None = None) -> float | None:
    """Return the atom of a column that holds x (n,), each so many times: as written, else found.

    Of a positive column it is 0, common, or rarer and far below all other values. Counts have none,
    for they are whole numbers everywhere.
    """
    if not column.numeric or column.integral or column.censored_below is not None:
        return None
    if times is None:
        values, counts = np.unique(x, return_counts=True)
    else:
        values, where = np.unique(x, return_inverse=True)
        counts = np.bincount(where, times, values.size)
    if column.atom is not None:
        at = np.nan if isinstance(column.atom, str) else column.atom
        return float(at) if at in values and values.size > 1 else None
    if values.size < 3:
        return None
    total = counts.sum()
    if column.positive and values[0] == 0.0 and counts[0] <= COMMON * total:
        return 0.0 if counts[0] >= FEWEST and _is_far(values[1:], counts[1:]) else None
    common = int(np.argmax(counts))
    most, rest = counts[common], np.delete(counts, common)
    enough = min(most, rest.sum()) >= FEWEST and most > COMMON * total
    if not enough or most < STANDS_OUT * rest.max() or (column.positive and values[common] != 0.0):
        return None
    return float(values[common])


def with_end_atom(column: Column, x: Array, times: Array | None = None) -> Column | None:
    """Return the column of a type that expresses its ceiling or floor; None where it has none.

    That is the least or the largest of x (n,), each so many times, with a probability of its own:
    `real` with this atom and bound. A positive column has no other than 0.
    """
    limits = column.atom, column.reflect, column.censored_above, column.moment
    if column.type not in (ColumnType.REAL, ColumnType.POSITIVE) or any(
        one is not None for one in limits
    ):
        return None
    real = replace(column, type=ColumnType.REAL)
    atom, low, high = atom_of(real, x, times), float(x.min()), float(x.max())
    if atom not in (low, high) or (column.positive and atom_of(column, x, times) is not None):
        return None
    lower, upper = column.bounds
    if lower is None and column.positive:
        lower = 0.0
    bounds = (atom, upper) if atom == low else (lower, atom)
    return replace(real, bounds=bounds, atom=atom)


def zeros_are_slips(column: Column, x: Array, times: Array | None = None) -> bool:
    """Return whether the zeros of a column that holds x (n,), each so many times, are slips.

    A handful, so far below all other values of a positive column that they cannot be small ones:
    typing errors, instruments that failed. Nothing can be learnt from so few.
    """
    if not column.positive or column.atom is not None or column.reflect is not None:
        return False
    counts = np.ones(x.size) if times is None else times
    zeros = float(counts[x == 0.0].sum())
    if not 0.0 < zeros < FEWEST or zeros > COMMON * counts.sum():
        return False
    return _is_far(x[x != 0.0], counts[x != 0.0])


def zero_is_far(column: Column, x: Array) -> bool:
    """Return whether a zero would be far below the values x (n,) of a column that has none."""
    return column.positive and column.atom is None and _is_far(x, np.ones(x.size))


def _is_far(values: Array, counts: Array) -> bool:
    return values.size > 1 and float(values.min()) >= FAR * _sd(values, counts)


def _sd(values: Array, counts: Array) -> float:
    """Return the standard deviation of positive values, each so many times, without overflow."""
    largest = float(values.max())
    mean = np.average(values / largest, weights=counts)
    return largest * float(np.sqrt(np.average((values / largest - mean) ** 2, weights=counts)))
