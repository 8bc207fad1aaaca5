"""Whether rows follow one another in time: values before and after tell of a missing one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from glfm_cli.arrays import ALIKE, Array, resemblance
from glfm_cli.guess.dates import BESIDE, in_steps
from glfm_cli.guess.dependence import numbers_of
from glfm_cli.guess.profile import Profile
from glfm_cli.guess.verdict import Verdict
from glfm_cli.io.zones import local_days, zone_of
from glfm_cli.schema import Column, ColumnType, Role
from glfm_cli.schema.calendar import FIRST_WEEKDAY
from glfm_cli.schema.moments import DAY, Moments

ROWS = 10_000  # of more a model of series takes many minutes
LOOKED_AT = 2_000  # rows, one after another
WHY = "`role: time`, as values are like those before them"
BY_THE_HOUR = "`role: time` where gaps are short: most columns follow the hour of the day more"
TWICE = 2  # rows of an hour of the day, or of the week, from which it has a mean
NUMBERS = frozenset({ColumnType.REAL, ColumnType.POSITIVE, ColumnType.COUNT})


def as_series(
    table: pa.Table, columns: Sequence[Profile], verdicts: Sequence[Verdict]
) -> list[Verdict]:
    """Return the verdicts, the one column of dates in steps with role time where rows are alike.

    That is, where successive numbers are, in the middle of all columns. Where half of the columns
    or more follow the hour more closely than the row before, as a building's meter does, trees see
    more than a series does.
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
    when = _when(table.column(clock), column)
    order = np.argsort(when, kind="stable")[:LOOKED_AT]
    numbers = [i for i, verdict in enumerate(verdicts) if verdict.column.type in NUMBERS]
    cells = [
        numbers_of(table.column(i).take(pa.array(order)), columns[i].written)
        for i in numbers
        if not verdicts[i].column.moment
    ]
    told = [(r, x) for x in cells if (r := resemblance(x)) is not None]
    if not told or np.median([r for r, _ in told]) <= ALIKE:
        return found
    shown = local_days(when[order], zone_of(table.column(clock).type))
    by_hour = [_explained_by_hour(shown, x) > r**2 for r, x in told if column.seen_as]
    if by_hour and np.mean(by_hour) >= 0.5:
        found[clock] = Verdict(column, reason.replace(BESIDE, BY_THE_HOUR))
        return found
    found[clock] = Verdict(replace(column, role=Role.TIME), reason.replace(BESIDE, WHY))
    return found


def _explained_by_hour(days: Array, x: Array) -> float:
    """Return what share of a column's variance other rows of the hour, or of its weekday, explain.

    days : (n,) moments in days since 1970, by the clock;  x : (n,) numbers, NaN where missing
    """
    hour, weekday = np.floor(days % 1.0 * 24 + 1e-6), (np.floor(days) + FIRST_WEEKDAY) % 7
    there = ~np.isnan(x)
    found = []
    for cycle in (hour, 24 * weekday + hour):
        _, place = np.unique(cycle[there], return_inverse=True)
        n = np.bincount(place)
        n_others = np.maximum(n - 1, 1)[place]
        others = (np.bincount(place, x[there])[place] - x[there]) / n_others
        known = n[place] >= TWICE
        left = x[there][known] - others[known]
        found.append(1.0 - float(np.mean(left**2) / np.var(x[there])) if known.any() else 0.0)
    return max(found)


def _when(cells: pa.ChunkedArray, column: Column) -> NDArray[np.float64]:
    """Return the moments (n,) of a column without gaps, in days since 1970."""
    if pa.types.is_temporal(cells.type):
        seconds = cells.cast(pa.timestamp("ms", getattr(cells.type, "tz", None))).cast(pa.int64())
        return np.asarray(seconds.to_numpy(), dtype=np.float64) / (1000.0 * DAY)
    if pa.types.is_floating(cells.type):
        cells = pa.chunked_array([[f"{x:.12g}" for x in cells.to_pylist()]])
    coded = cells.combine_chunks().cast(pa.string()).dictionary_encode()
    moments = Moments("date", column.format)
    of_text = [moments.number(text.strip()) for text in coded.dictionary.to_pylist()]
    return np.array(of_text, dtype=np.float64)[coded.indices.to_numpy()]
