"""Gaps that are runs of rows, as sensors that fail leave them: whether there are any, and others.

Where rows follow one another, a cell in a long gap has no neighbours that a single missing one has:
what forecasts of single cells are worth says nothing of it [Roberts and others 2017].
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator

from glfm_cli.arrays import ALIKE, Array, Groups, is_clock, resemblance
from glfm_cli.latent.model import Problem

FEW_RUNS = 0.7  # of the runs that as many missing cells have in random rows
_PASSES = 1000  # times that gaps may be put elsewhere
_ENOUGH = 0.9  # of the cells that they can hide, which the first of them reach soon


def series_order(problem: Problem) -> Array | None:
    """Return the rows (N,) one after another, of a table whose gaps are runs of them; else None.

    In the order of a column of numbers that rise in steps, or of the table. Values of such a table
    resemble those of the row before. None with roles group and time, whose models see no
    neighbours but by these roles (`in_time`).
    """
    if problem.groups is not None:
        return None
    xs = [x if x.ndim == 1 else x[:, 0] for x in problem.xs]
    numbers = [d for d, link in enumerate(problem.links) if not link.discrete and link.n_latent]
    clock = next((xs[d] for d in numbers if is_clock(xs[d])), np.arange(problem.n_rows))
    order = np.argsort(clock, kind="stable")
    gaps = np.isnan(np.column_stack(xs))[order]
    if not gaps.any() or not in_runs(gaps):
        return None
    found = [resemblance(xs[d][order]) for d in numbers if not is_clock(xs[d])]
    told = [r for r in found if r is not None]
    return order if told and np.median(told) > ALIKE else None


def in_time(groups: Groups, seen: Array) -> Array | None:
    """Return the rows (n,) of one series by their role `time`, where gaps are runs; else None.

    seen : (n, D) bool
    """
    if groups.time is None or groups.n:
        return None
    order = np.argsort(groups.time, kind="stable")
    return order if in_runs(~seen[order]) else None


def cells_in_runs(seen: Array, share: float, time: int, rng: Generator) -> Array:
    """Return keys (N, D) of observed cells that are hidden, in gaps like the table's; else inf.

    seen : (N, D) bool, in order; cells of columns without a gap are never hidden
    share : of the observed cells of a column;  time : which of those shares, from 0
    """
    key = run_keys(~seen, seen & ~seen.all(axis=0), rng)
    hidden = np.full(key.shape, np.inf)
    for d, n in enumerate(seen.sum(axis=0)):
        own = np.argsort(key[:, d], kind="stable")
        own = own[round(time * share * n) : round((time + 1) * share * n)]
        hidden[own, d] = key[own, d]
    return hidden


def worth(parts: Sequence[Array]) -> Array:
    """Return, by column (D,), as how many cells that are hidden alone one in a run counts.

    parts : (n, D) bool, in order: cells hidden at once. Those of a run of r are wrong together: of
        all, sum of r over sum of r^2 [Kish 1965]
    """
    total = np.zeros((2, parts[0].shape[1]))
    for hidden in parts:
        for d, column in enumerate(hidden.T):
            ends = np.flatnonzero(np.diff(column.astype(np.int8), prepend=0, append=0))
            r = ends[1::2] - ends[::2]
            total[:, d] += r.sum(), np.sum(r**2)
    return np.asarray(total[0] / np.maximum(total[1], 1.0))


def in_runs(gaps: Array) -> bool:
    """Return whether missing cells (N, D) make few runs [Wald and Wolfowitz 1940]."""
    n, missing = len(gaps), gaps.sum(axis=0)
    runs = gaps[0].sum() + (gaps[1:] & ~gaps[:-1]).sum()
    return bool(runs < FEW_RUNS * np.sum(missing * (n - missing + 1.0) / n))


def run_keys(gaps: Array, hideable: Array, rng: Generator) -> Array:
    """Return keys (N, D), the smallest of which are cells of gaps like the table's; else infinite.

    gaps, hideable : (N, D) bool, in order: missing cells, and those that may be hidden

    The gaps of all columns are put some rows later at once, again and again. Runs of rows without
    a cell stay together, in an order by chance; those that begin in one row share their turn.
    """
    waiting, n_rows, left = hideable.copy(), len(gaps), (1.0 - _ENOUGH) * hideable.sum()
    row, key = np.arange(n_rows)[:, None], np.full(gaps.shape, np.inf)
    for turn in range(_PASSES):
        if waiting.sum() <= left:
            break
        borrowed = np.roll(gaps, rng.integers(n_rows), axis=0)
        first = borrowed & ~np.roll(borrowed, 1, axis=0)
        begins = np.maximum.accumulate(np.where(first, row, 0), axis=0)
        place = turn * n_rows + rng.permutation(n_rows)[begins] + row / n_rows
        borrowed &= waiting
        key[borrowed] = place[borrowed]
        waiting &= ~borrowed
    return key
