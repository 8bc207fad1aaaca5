"""How much each of several candidate models counts in a forecast, column by column.

A stacked forecast of a cell is  sum_m w_dm p_m(x),  and the weights of column d maximise

    sum_n log sum_m w_dm p_m(x_nd) + SHRINK sum_m w_m log w_dm

over hidden cells n that no candidate was given (hidden_cells.py), w_m the weights that all columns
together call for, these drawn to equal ones in the same way: a column with few hidden cells keeps
to the others'. Stacking by log scores: [Yao and others 2018].
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from glfm_cli.arrays import Array

SHRINK = 20.0  # hidden cells that the prior weights of a column are worth
STEPS = 200  # of expectation maximisation, at most
CLOSE = 1e-7


def stacked(
    scores: Mapping[int, Array], there: Array, counts: Array, prior: Array | None = None
) -> Array:
    """Return the weights (D, M) of M candidates in the forecasts of D columns.

    scores : mapping of int to (n, M) float64; by column, the log densities or probabilities that
        each candidate gave to the true values of hidden cells. Columns that are left out get the
        weights of all together.
    there : (M,) bool, which candidates have draws; the others get no weight
    counts : (D,) as how many independent cells each of a column counts
    prior : (D, M) weights that those of each column are drawn to, in place of those of all together
    """
    if prior is None:
        equal = there / there.sum()
        every = [log_p for log_p in scores.values() if log_p.size]
        whole = best_weights(np.concatenate(every), SHRINK * equal) if every else equal
        prior = np.tile(whole, (counts.size, 1))
    found = prior.copy()
    for d, log_p in scores.items():
        found[d] = best_weights(log_p, SHRINK / counts[d] * prior[d])
    return found


def best_weights(log_p: Array, prior: Array) -> Array:
    """Return the weights (M,) of most log score of n cells (n, M), with so many prior cells each.

    By expectation maximisation, which climbs and has one summit.
    """
    w: Array = prior / prior.sum()
    log_p = log_p[:, w > 0.0]
    log_p = log_p[np.isfinite(log_p.max(axis=1, initial=-np.inf))]
    p = np.exp(log_p - log_p.max(axis=1, keepdims=True, initial=-np.inf))
    given, found = prior[w > 0.0], w[w > 0.0]
    for _ in range(STEPS):
        new = found * (p.T @ (1.0 / (p @ found))) + given
        new /= new.sum()
        moved = float(np.abs(new - found).max())
        found = new
        if moved < CLOSE:
            break
    w[w > 0.0] = found
    return w
