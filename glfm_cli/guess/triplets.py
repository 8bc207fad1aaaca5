"""Whether a table is a matrix of counts, given as triplets without its zeros."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from glfm_cli.guess.profile import Profile
from glfm_cli.guess.verdict import Verdict
from glfm_cli.schema import Column, ColumnType, Role

FEWEST = 20  # rows from which a pattern means something
SPARSE = 0.5  # share of the pairs that are listed at most


def as_counts(
    table: pa.Table, columns: Sequence[Profile], verdicts: Sequence[Verdict]
) -> list[Verdict] | None:
    """Return what three columns are as triplets of counts, None when they are not.

    One holds whole numbers from 1, the others name things that come several times, no pair of
    them twice, and few of all pairs are there: the pairs that are not listed are zeros.
    """
    if table.num_columns != 3 or table.num_rows < FEWEST:
        return None
    counts = [i for i, verdict in enumerate(verdicts) if verdict.column.type == ColumnType.COUNT]
    if len(counts) != 1:
        return None
    (value,) = counts
    if columns[value].n_observed < table.num_rows or np.min(columns[value].numbers) < 1.0:
        return None
    sides = [i for i in range(3) if i != value]
    for i in sides:
        verdict, n = verdicts[i].column, columns[i].n_distinct
        names = verdict.role in (Role.ID, Role.IGNORE) or verdict.nominal
        if not names or columns[i].n_observed < table.num_rows or 2 * n > table.num_rows:
            return None
    n_pairs = columns[sides[0]].n_distinct * columns[sides[1]].n_distinct
    pairs = table.select(sides).rename_columns(["a", "b"]).group_by(["a", "b"]).aggregate([])
    if pairs.num_rows < table.num_rows or table.num_rows > SPARSE * n_pairs:
        return None
    found = list(verdicts)
    for i, role, other in ((sides[0], Role.ROW, sides[1]), (sides[1], Role.COLUMN, sides[0])):
        n = columns[i].n_distinct
        reason = f"{n} different ones, each pair with '{columns[other].name}' at most once"
        found[i] = Verdict(Column(columns[i].name, role=role), reason)
    share = f"{100.0 * table.num_rows / n_pairs:.2g} %"
    column = replace(verdicts[value].column, role=Role.VALUE, absent="zero")
    reason = f"{verdicts[value].reason}, no zeros, and {share} of the pairs: the others are zeros"
    found[value] = Verdict(column, reason)
    return found
