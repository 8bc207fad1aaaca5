"""Whether rows follow one another in time: values before and after tell of a missing one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from glfm_cli.arrays import ALIKE, resemblance
from glfm_cli.guess.dates import BESIDE, in_steps
from glfm_cli.guess.dependence import numbers_of
from glfm_cli.guess.profile import Profile
from glfm_cli.guess.verdict import Verdict
from glfm_cli.schema import Column, ColumnType, Role
from glfm_cli.schema.moments import Moments

ROWS = 10_000  # of more a model of series takes many minutes
LOOKED_AT = 2_000  # rows, one after another
WHY = "`role: time`, as values are like those before them"
NUMBERS = frozenset({ColumnType.REAL, ColumnType.POSITIVE, ColumnType.COUNT})


def as_series(
    table: pa.Table, columns: Sequence[Profile], verdicts: Sequence[Verdict]
) -> list[Verdict]:
    """Return the verdicts, the one column of dates in steps with role time where rows are alike.

    That is, where successive numbers are, in the middle of all columns.
    """
    clocks = [
        i
        for i, (profile, verdict) in enumerate(zip(columns, verdicts, strict=True))
        if verdict.column.moment == "date" and in_steps(profile, verdict.column.format)
    ]
    found = list(verdicts)
    if len(clocks) != 1 or table.num_rows > ROWS:
        return found
    (clock,) = clocks
    column, reason = verdicts[clock]
    order = np.argsort(_when(table.column(clock), column), kind="stable")[:LOOKED_AT]
    numbers = [i for i, verdict in enumerate(verdicts) if verdict.column.type in NUMBERS]
    alike = [
        resemblance(numbers_of(table.column(i).take(pa.array(order))))
        for i in numbers
        if not verdicts[i].column.moment
    ]
    told = [one for one in alike if one is not None]
    if told and np.median(told) > ALIKE:
        column = replace(column, role=Role.TIME)
        found[clock] = Verdict(column, reason.replace(BESIDE, WHY))
    return found


def _when(cells: pa.ChunkedArray, column: Column) -> NDArray[np.float64]:
    """Return the moments (n,) of a column without gaps, as numbers in their order."""
    if pa.types.is_temporal(cells.type):
        whole = pa.int32() if pa.types.is_date32(cells.type) else pa.int64()
        return np.asarray(cells.cast(whole).to_numpy(), dtype=np.float64)
    if pa.types.is_integer(cells.type) or pa.types.is_floating(cells.type):
        return np.asarray(cells.to_numpy(), dtype=np.float64)
    coded = cells.combine_chunks().cast(pa.string()).dictionary_encode()
    moments = Moments("date", column.format)
    of_text = [moments.number(text.strip()) for text in coded.dictionary.to_pylist()]
    return np.array(of_text, dtype=np.float64)[coded.indices.to_numpy()]
