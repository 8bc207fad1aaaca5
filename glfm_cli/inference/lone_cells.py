"""Cells of groups that have no value of a column: which they are, and corrections of their own.

Other cells are told by those of their group; a person whose blood was never drawn has none. What
forecasts of the former are worth says nothing of the latter, so that these have corrections and
weights of their own, learnt from groups all of whose values are hidden (hiding.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from glfm_cli.arrays import Array, Groups
from glfm_cli.inference.posterior import Posterior
from glfm_cli.latent.model import Problem

FEWEST = 3  # groups of several rows without a value, from which on a column's are told apart

Places = dict[int, Array]  # by column


def groups_without(groups: Groups, seen: Array) -> Array:
    """Return which groups (G, D) have no value of a column among cells that are `seen` (N, D)."""
    n = max(groups.n, int(groups.code.max(initial=-1)) + 1)
    return np.array([np.bincount(groups.code, column, n) for column in seen.T]).T == 0.0


def lone_columns(problem: Problem) -> Array:
    """Return the columns of which several groups have no value.

    Not those that are the same in all rows of a group, whose missing cells are all such.
    """
    groups, seen = problem.groups, problem.seen
    if groups is None or not groups.n:
        return np.empty(0, dtype=np.intp)
    several = np.bincount(groups.code, minlength=groups.n) > 1
    found = groups_without(groups, seen)[several].sum(axis=0) >= FEWEST
    found[list(problem.group_level)] = False
    return np.flatnonzero(found)


def of_rows(posterior: Posterior, groups: Groups | None, seen: Array) -> Posterior:
    """Return the posterior that knows which cells of some rows are lone.

    groups : of the rows, those of the fit first;  seen : (N, D) bool, which cells are known
    """
    by = posterior.recalibration
    if by is None or by.without is None or groups is None:
        return replace(posterior, lone=None)
    without, n = groups_without(groups, seen), len(by.without)
    without[:n] &= by.without  # values of the fit tell of new rows, too
    without[:, ~by.without.any(axis=0)] = False
    return replace(posterior, lone=without[groups.code])


def parts_of(posterior: Posterior, rows: Mapping[int, Array]) -> list[tuple[Posterior, Places]]:
    """Return cells by their corrections: draws with one correction, and which cells (places).

    rows : by column those of the cells
    """
    by = posterior.recalibration
    if posterior.lone is None or by is None or by.lone is None:
        return [(posterior, {d: np.arange(own.size) for d, own in rows.items()})]
    lone = {d: posterior.lone[own, d] for d, own in rows.items()}
    parts = replace(by, lone=None), by.lone
    return [
        (
            replace(posterior, recalibration=part, lone=None),
            {d: np.flatnonzero(own == which) for d, own in lone.items()},
        )
        for which, part in enumerate(parts)
    ]
