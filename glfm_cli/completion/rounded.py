"""How far cells that follow from known ones may be off, since a table holds rounded numbers.

In rows where all columns of a formula are known it is off by r = c - f(x). A result that follows is
off by as much, and an input by -r / (df / dx): a weight by a body mass index of one decimal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.encoding import Data, Relations
from glfm_cli.encoding.related import Relation
from glfm_cli.encoding.support import support
from glfm_cli.inference.predictive import Marginal

FEWEST = 20  # rows in which all columns are known
MOST, SLIP = 0.95, 2.0  # residuals farther off than twice what most are at most are slips
STEP = 1e-6  # relative, of the derivative
EXACT = 1e-9  # relative: what is left of arithmetic in doubles


def with_rounding(
    data: Data, marginals: Mapping[int, Marginal], at: Sequence[float]
) -> dict[int, Marginal]:
    """Return marginals of the columns of formulas, with the rounding of cells that follow.

    data : with what follows from known cells
    at : probabilities of the first quantiles
    """
    columns, found = data.columns, dict(marginals)
    follow = {d: columns[d].requested & columns[d].observed for d in found}
    for one in Relations.of(columns, as_stated=True).equations:
        r = _residuals(data, one)
        known = ~np.any([np.isnan(columns[d].given) for d in (one.d, *one.of)], axis=0)
        for d in follow.keys() & {one.d, *one.of}:
            here = np.flatnonzero((known & follow[d])[found[d].rows])
            follow[d] &= ~known  # of several equations the first
            if r.any():
                slope = _slope(data, one, d, found[d].rows[here])
                there = np.isfinite(slope)
                found[d] = _widened(data, d, found[d], here[there], slope[there], r, at)
    return found


def residuals_of(data: Data) -> dict[str, Array]:
    """Return by how much each formula is off, by the column that it is stated of."""
    equations = Relations.of(data.columns, as_stated=True).equations
    return {data.columns[one.d].column.name: _residuals(data, one) for one in equations}


def _residuals(data: Data, one: Relation) -> Array:
    """Return by how much a formula is off in the rows of the table where all is known.

    Of few new rows, by how much it is in those of their fit.
    """
    involved = (one.d, *one.of)
    known = np.all([data.columns[d].observed & ~data.columns[d].requested for d in involved], 0)
    if known.sum() < FEWEST:
        return data.learnt_residuals.get(data.columns[one.d].column.name, np.zeros(1))
    x = {d: data.columns[d].x[known] for d in involved}
    value = one.formula.evaluate({n: x[d] for n, d in zip(one.formula.names, one.of, strict=True)})
    r = x[one.d] - np.asarray(value, dtype=np.float64)
    size = np.sum([np.abs(values) for values in x.values()], axis=0)
    r = np.where(np.abs(r) <= EXACT * size, 0.0, r)
    r = r[np.isfinite(r)]
    return r[np.abs(r) <= SLIP * np.quantile(np.abs(r), MOST)] if r.size else np.zeros(1)


def _slope(data: Data, one: Relation, d: int, rows: Array) -> Array:
    """Return by what a residual is multiplied to be the error of column d (n,)."""
    if d == one.d:
        return np.ones(rows.size)
    names = dict(zip(one.of, one.formula.names, strict=True))
    named = {name: data.columns[c].given[rows] for c, name in names.items()}
    x = named[names[d]]
    step = STEP * np.maximum(np.abs(x), STEP)
    above, below = (one.formula.evaluate({**named, names[d]: x + s}) for s in (step, -step))
    with np.errstate(all="ignore"):
        slope: Array = -2.0 * step / (above - below)
    return slope


def _widened(
    data: Data, d: int, whole: Marginal, at_cells: Array, slope: Array, r: Array,
    at: Sequence[float],
) -> Marginal:  # fmt: skip
    """Return a marginal, some of its cells off by residuals times a slope."""
    mean, sd, quantiles = whole.mean, whole.sd.copy(), whole.quantiles.copy()
    error = whole.relative_error.copy()
    sd[at_cells] = np.abs(slope) * np.sqrt(np.mean(r**2))
    error[at_cells] = 0.0
    column = data.columns[d].column
    within = support(column, zero=True, dtype=np.dtype(np.float64))
    for k, p in enumerate(at):
        low, high = np.quantile(r, [p, 1.0 - p], method="weibull")
        x = mean[at_cells] + np.where(slope > 0.0, slope * low, slope * high)
        x = within.clamp(x, np.dtype(np.float64))
        quantiles[at_cells, k] = np.rint(x) if column.integral else x
    return replace(whole, sd=sd, quantiles=quantiles, relative_error=error)
