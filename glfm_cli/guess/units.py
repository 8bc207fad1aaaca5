"""Whether numbers of one column are in several units: tests of a laboratory below one another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from glfm_cli.guess.names import words
from glfm_cli.guess.skips import Filter

LEAST_CELLS = 20  # of a unit
SHARE = 0.5  # of the variance of ranks, between what is measured, from which units differ
MOST_SHOWN = 3
_UNITS = words("unit units uom einheit einheiten unité unités unidad unidades unità eenheid")


def unit_of(levelled: Sequence[Filter]) -> Filter | None:
    """Return the column that says in which unit the numbers of a row are, None without one."""
    return next((one for one in levelled if one.name.strip().casefold() in _UNITS), None)


def in_several_units(
    x: NDArray[np.float64], unit: Filter, levelled: Sequence[Filter]
) -> str | None:
    """Return what to do with numbers (n,) that are in several units, None if these say little.

    levelled : all columns of levels; of that with most, each in one unit, tests are levels
    """
    there = np.isfinite(x) & (unit.rows >= 0)
    cells = np.bincount(unit.rows[there], minlength=len(unit.levels))
    if (cells >= LEAST_CELLS).sum() < 2:
        return None
    test = max(
        (one for one in levelled if _tells(one, unit, there)), key=lambda one: len(one.levels)
    )
    rank = pc.rank(x[there], tiebreaker="dense").to_numpy().astype(np.float64)
    code = test.rows[there] + 1
    mean = np.bincount(code, rank) / np.maximum(np.bincount(code), 1)
    if mean[code].var() < SHARE * rank.var():
        return None
    shown = ", ".join(unit.levels[k] for k in np.argsort(-cells)[:MOST_SHOWN])
    mend = "convert them to one"
    if test is not unit:
        mend += f", or write a column for each {test.name}"
    return f"in several units ({shown}), which models take for one; {mend}"


def _tells(one: Filter, unit: Filter, there: NDArray[np.bool_]) -> bool:
    """Return whether each level of a column is in one unit."""
    pairs = np.unique(np.stack([one.rows[there], unit.rows[there]]), axis=1)
    return np.unique(pairs[0]).size == pairs.shape[1]
