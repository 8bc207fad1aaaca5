"""Whether a table is a matrix, given as triplets of row, column and value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pyarrow as pa

import glfm_cli.guess.names as names
from glfm_cli.guess.intervals import FILLED, NO_PAIR, part_intervals
from glfm_cli.guess.profile import Profile
from glfm_cli.guess.verdict import Verdict
from glfm_cli.schema import Column, ColumnType, Role
from glfm_cli.schema.phrases import is_number

MOST_COLUMNS = 12  # besides those that say when
FEWEST = 20  # rows from which a pattern means something
SPARSE = 0.5  # share of the pairs that are listed at most
MEETINGS = 20.0  # pairs expected twice by chance, from which it means something that none is


def as_triplets(
    table: pa.Table, columns: Sequence[Profile], verdicts: Sequence[Verdict]
) -> list[Verdict] | None:
    """Return what the columns are as triplets, None when they are not.

    Two columns name things that come several times, no pair of them twice, and few of all pairs are
    there; a third holds a number or a scale, and what else there is says when, or is the same in
    all rows of one thing. Whole numbers name things where many of their pairs would come twice by
    chance. Counts from 1 leave out the zeros.
    """
    if table.num_rows < FEWEST:
        return None
    when = [i for i, one in enumerate(columns) if names.is_when(one.name)]
    others = [i for i in range(table.num_columns) if i not in when]
    if not 3 <= len(others) <= MOST_COLUMNS:
        return None
    keys = [pair for pair in combinations(others, 2) if _are_key(table, columns, verdicts, pair)]
    found: dict[int, tuple[int, int, dict[int, int]]] = {}
    for first, second in keys:
        known = {
            i: side
            for side, i in product((second, first), others)
            if i not in (first, second) and _determines(table, columns, side, i)
        }
        free = [i for i in others if i not in (first, second, *known)]
        if len(free) == 1 and _is_value(verdicts[free[0]]):
            found.setdefault(free[0], (first, second, known))
    if len(found) != 1:
        return None
    ((value, (first, second, known)),) = found.items()
    n_pairs = columns[first].n_distinct * columns[second].n_distinct
    made = list(verdicts)
    for i, role, other in ((first, Role.ROW, second), (second, Role.COLUMN, first)):
        once = f"each pair with '{columns[other].name}' at most once"
        reason = f"{columns[i].n_distinct} different ones, {once}"
        made[i] = Verdict(Column(columns[i].name, role=role), reason)
    for i in when:
        made[i] = Verdict(
            Column(columns[i].name, role=Role.IGNORE), "says when, no part of a matrix"
        )
    for i, side in known.items():
        option = "--row-features" if side == first else "--column-features"
        reason = f"the same for every row of one '{columns[side].name}': a column for {option}"
        made[i] = Verdict(Column(columns[i].name, role=Role.IGNORE), reason)
    verdict, share = verdicts[value], f"{100.0 * table.num_rows / n_pairs:.2g} %"
    column = replace(verdict.column, role=Role.VALUE, censored_below=None)
    why = verdict.reason
    if verdict.column.censored_below is not None or part_intervals(columns[value])[1]:
        why = f"{why.replace(f'; {FILLED}', '')}; {NO_PAIR}"
    reason = f"{why}; {share} of the pairs"
    complete = columns[value].n_observed == table.num_rows
    if column.type == ColumnType.COUNT and complete and np.min(columns[value].numbers) >= 1.0:
        column = replace(column, absent="zero")
        reason = f"{why}, no zeros, and {share} of the pairs: the others are zeros"
    if column.ordinal and column.levels and all(map(is_number, column.levels)):
        ends = [f"{float(column.levels[i]):g}" for i in (0, -1)]
        reason += f"; means alone: {{type: real, bounds: [{ends[0]}, {ends[1]}], role: value}}"
    made[value] = Verdict(column, reason)
    return made


def _is_value(verdict: Verdict) -> bool:
    """Return whether a column may hold the values of a matrix."""
    column = verdict.column
    return column.role == Role.FEATURE and not verdict.column.nominal


def _are_key(
    table: pa.Table, columns: Sequence[Profile], verdicts: Sequence[Verdict], sides: tuple[int, int]
) -> bool:
    """Return whether two columns tell the rows apart as rows and columns of a matrix would."""
    n = table.num_rows
    if any(columns[i].n_observed < n or 2 * columns[i].n_distinct > n for i in sides):
        return False
    if n > SPARSE * columns[sides[0]].n_distinct * columns[sides[1]].n_distinct:
        return False
    by_chance = 0.5 * n * n * np.prod([np.sum((columns[i].counts / n) ** 2) for i in sides])
    for i in sides:
        column = verdicts[i].column
        named = column.role in (Role.ID, Role.IGNORE) or column.nominal
        if not named and (by_chance < MEETINGS or not _are_whole(columns[i])):
            return False
    return _n_pairs(table, *sides) == n


def _n_pairs(table: pa.Table, first: int, second: int) -> int:
    """Return how many different pairs of values two columns have."""
    both = table.select([first, second]).rename_columns(["a", "b"])
    return int(both.group_by(["a", "b"]).aggregate([]).num_rows)


def _determines(table: pa.Table, columns: Sequence[Profile], side: int, other: int) -> bool:
    """Return whether a column has one value for each value of another."""
    return _n_pairs(table, side, other) == columns[side].n_distinct


def _are_whole(column: Profile) -> bool:
    """Return whether a column holds whole numbers from 0, as numbers of things are."""
    numbers = column.numbers
    return bool(np.all(numbers >= 0.0) and np.all(numbers == np.floor(numbers)))
