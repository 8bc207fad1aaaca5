"""Which rows of a completed table break an equation, or hold a number that a column cannot."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.encoding.data import Data, EncodedColumn, Mask
from glfm_cli.encoding.related import Relation, Relations
from glfm_cli.encoding.support import support

SLACK, ROUNDED = 1e-6, 1e-9  # relative to both sides, and to all numbers of an equation


def broken_rows(data: Data, fills: Mapping[int, Array]) -> Mask:
    """Return the rows (N,) in which an equation between drawn cells does not hold by these.

    Only rows in which two of its cells or more are drawn: else what is known decides, and another
    draw would break it, too.

    fills : mapping of int to (requested.sum(),) float64; from `settle`
    """
    columns, ends = data.columns, data.ends
    broken = np.zeros(columns[0].x.size, dtype=bool)
    for one in Relations.of(columns).equations:
        cells = {d: columns[d].given.copy() for d in (one.d, *one.of)}
        drawn = np.sum([np.isnan(x) for x in cells.values()], axis=0) > 1
        good = np.ones(broken.size, dtype=bool)
        for d, x in cells.items():
            requested = columns[d].requested
            x[requested] = fills.get(d, x[requested])
            good &= can_hold(columns[d], x) | np.isnan(x)
            if d in ends:
                low, high = ends[d].T
                good[requested] &= ~((x[requested] < low) | (x[requested] > high))
        if not any(columns[d].column.integral for d in cells):  # whole numbers are rounded
            good &= _holds(one, cells, [columns[d].column.name for d in one.of])
        broken |= drawn & ~good
    return broken


def _holds(one: Relation, cells: Mapping[int, Array], names: list[str]) -> Mask:
    """Return where an equation holds (N,), or one of its cells has no value."""
    named = {name: cells[d] for name, d in zip(names, one.of, strict=True)}
    value, x = np.asarray(one.formula.evaluate(named), dtype=np.float64), cells[one.d]
    size = np.sum([np.abs(other) for other in cells.values()], axis=0)
    with np.errstate(invalid="ignore"):
        apart = np.abs(x - value) > SLACK * (np.abs(x) + np.abs(value)) + ROUNDED * size
    return ~apart


def can_hold(encoded: EncodedColumn, x: Array) -> Mask:
    """Return which numbers a column can hold, 0 of a positive one among them where it may be."""
    return support(encoded.column, zero=True, dtype=np.dtype(np.float64)).contains(x)
