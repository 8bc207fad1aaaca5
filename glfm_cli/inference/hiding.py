"""Which observed cells are hidden, to see how far off their forecasts are.

An eighth of those of some rows each time, or, where the law of cells of groups without a value is
asked for (`lone`), all of a quarter of the groups: trees that would tell the cells of a group from
its other rows have to do without them.
Where gaps are runs of rows, hidden cells are such gaps, not single ones (gap_runs.py), and count as
fewer than they are; of a column that is the same in all rows of a group those of whole groups are,
each of which counts once.
"""

from __future__ import annotations

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.inference.derived_gaps import derived_gaps
from glfm_cli.inference.gap_runs import cells_in_runs, in_time, series_order, worth
from glfm_cli.inference.lone_cells import lone_columns
from glfm_cli.latent.model import Problem

ROWS, TIMES = 1000, 4  # that are taken, so many times, each with other cells hidden
ALL_ROWS, FEWER = 2000, 2  # or of more rows so many, drawn at random, fewer times
HIDDEN = 0.125  # of the observed cells, each time
GROUPS = 1.0 / TIMES  # of the groups, each of which is hidden once

SEED = 0x676C666D  # of which cells: no plain number, as those by which gaps are made in trials


def times_hidden(problem: Problem, short: bool) -> int:
    """Return how often cells are hidden, of short chains or of others."""
    return FEWER if short or (problem.groups is None and problem.n_rows > ROWS) else TIMES


def chosen_cells(problem: Problem, time: int, lone: bool = False) -> tuple[Array, Array]:
    """Return some rows (n,), and which of their cells (n, D) are hidden.

    time : from 0, below `TIMES`;  lone : whether those of whole groups are
    """
    rng, rows, seen = np.random.default_rng(SEED), np.arange(problem.n_rows), problem.seen
    if lone:
        return _of_groups(problem, time)
    if (series := series_order(problem)) is not None:
        key = np.empty(seen.shape)
        key[series] = cells_in_runs(seen[series], HIDDEN, time, rng)
        if rows.size > ALL_ROWS:
            rows = np.sort(np.argsort(key.min(axis=1), kind="stable")[:ALL_ROWS])
        return rows, np.isfinite(key[rows])
    if problem.groups is not None:
        rows = problem.groups.some_rows(ROWS, rng)
        if (order := in_time(problem.groups.take(rows), seen[rows])) is not None:
            key = np.empty((rows.size, seen.shape[1]))
            key[order] = cells_in_runs(seen[rows[order]], HIDDEN, time, rng)
            return rows, np.isfinite(key)
    elif rows.size > ALL_ROWS:
        rows = np.sort(rng.choice(rows.size, ALL_ROWS, replace=False))
    parts = [np.floor(rng.random(rows.size) / HIDDEN) == time for _ in problem.links]
    if problem.groups is not None:  # of columns of groups one cell would be told by the others
        code = problem.groups.code[rows]
        _, first, of_row = np.unique(code, return_index=True, return_inverse=True)
        for d in problem.group_level:
            parts[d] = parts[d][first][of_row]
    return rows, _with_derived(problem, rows, np.column_stack(parts))


def _of_groups(problem: Problem, time: int) -> tuple[Array, Array]:
    """Return the same of groups all of whose cells of a column are hidden."""
    groups, rng = problem.groups, np.random.default_rng(SEED)
    assert groups is not None
    rows = groups.some_rows(ROWS, rng)
    codes, of_row = np.unique(groups.code[rows], return_inverse=True)
    chosen = np.zeros((rows.size, len(problem.links)), dtype=bool)
    for d in lone_columns(problem):
        chosen[:, d] = (np.floor(rng.random(codes.size) / GROUPS) == time)[of_row]
    return rows, _with_derived(problem, rows, chosen)


def _with_derived(problem: Problem, rows: Array, chosen: Array) -> Array:
    """Return which observed cells are hidden: those chosen, and others that only follow them."""
    seen = problem.seen
    hidden = seen[rows] & chosen
    for d, of in derived_gaps(seen).items():
        hidden[:, d] = seen[rows, d] & hidden[:, of].any(axis=1)
    return hidden


def worth_of_cells(problem: Problem, times: int, lone: bool = False) -> Array:
    """Return as how many cells that are hidden alone one of a column counts (D,)."""
    if lone:
        return _worth_in_groups(problem, times)
    series, parts = series_order(problem), []
    for time in range(times):
        rows, chosen = chosen_cells(problem, time)
        order = None if series is None else np.argsort(np.argsort(series)[rows])
        if problem.groups is not None:
            order = in_time(problem.groups.take(rows), problem.seen[rows])
        if order is None:
            return np.ones(len(problem.links))
        parts.append(chosen[order])
    return worth(parts)


def _worth_in_groups(problem: Problem, times: int) -> Array:
    """Return the same where groups, whose cells are wrong together, count once."""
    n_groups, n_cells = np.zeros((2, len(problem.links)))
    for time in range(times):
        rows, chosen = _of_groups(problem, time)
        assert problem.groups is not None
        code = problem.groups.code[rows]
        n_groups += [np.unique(code[column]).size for column in chosen.T]
        n_cells += chosen.sum(axis=0)
    return np.where(n_cells > 0, n_groups / np.maximum(n_cells, 1.0), 1.0)
