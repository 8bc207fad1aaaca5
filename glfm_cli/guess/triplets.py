"""Whether a table is a matrix, given as triplets of row, column and value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

import glfm_cli.guess.names as names
from glfm_cli.guess.profile import Profile
from glfm_cli.guess.verdict import Verdict
from glfm_cli.schema import Column, ColumnType, Role

FEWEST = 20  # rows from which a pattern means something
SPARSE = 0.5  # share of the pairs that are listed at most
MEETINGS = 20.0  # pairs expected twice by chance, from which it means something that none is


def as_triplets(
    table: pa.Table, columns: Sequence[Profile], verdicts: Sequence[Verdict]
) -> list[Verdict] | None:
    """Return what the columns are as triplets, None when they are not.

    Two columns name things that come several times, no pair of them twice, and few of all pairs are
    there; a third holds a number or a scale, and what else there is says when. Whole numbers name
    things where many of their pairs would come twice by chance. Counts from 1 leave out the zeros.
    """
    if table.num_rows < FEWEST:
        return None
    when = [i for i, one in enumerate(columns) if names.is_when(one.name)]
    others = [i for i in range(table.num_columns) if i not in when]
    if len(others) != 3:
        return None
    found = [i for i in others if _is_value(verdicts[i])]
    sides = {i: [side for side in others if side != i] for i in found}
    keyed = [i for i in found if _are_key(table, columns, verdicts, sides[i])]
    if len(keyed) != 1:
        return None
    (value,) = keyed
    first, second = sides[value]
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
    verdict, share = verdicts[value], f"{100.0 * table.num_rows / n_pairs:.2g} %"
    column = replace(verdict.column, role=Role.VALUE)
    reason = f"{verdict.reason}; {share} of the pairs"
    complete = columns[value].n_observed == table.num_rows
    if column.type == ColumnType.COUNT and complete and np.min(columns[value].numbers) >= 1.0:
        column = replace(column, absent="zero")
        reason = f"{verdict.reason}, no zeros, and {share} of the pairs: the others are zeros"
    made[value] = Verdict(column, reason)
    return made


def _is_value(verdict: Verdict) -> bool:
    """Return whether a column may hold the values of a matrix."""
    column = verdict.column
    return column.role == Role.FEATURE and not verdict.column.nominal


def _are_key(
    table: pa.Table, columns: Sequence[Profile], verdicts: Sequence[Verdict], sides: list[int]
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
    pairs = table.select(sides).rename_columns(["a", "b"]).group_by(["a", "b"]).aggregate([])
    return bool(pairs.num_rows == n)


def _are_whole(column: Profile) -> bool:
    """Return whether a column holds whole numbers from 0, as numbers of things are."""
    numbers = column.numbers
    return bool(np.all(numbers >= 0.0) and np.all(numbers == np.floor(numbers)))
