"""Columns that follow from others, or are less than another, in a sample of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from glfm_cli.guess.dates import days_in, minutes_in
from glfm_cli.guess.dependence import numbers_of
from glfm_cli.guess.derived import closed_run, derived
from glfm_cli.guess.names import upper_ends
from glfm_cli.guess.profile import Profile
from glfm_cli.guess.verdict import Verdict
from glfm_cli.schema.phrases import is_number
from glfm_cli.schema.text import scalar

LEAST_ROWS = 20  # in all of which one number or date is less than another
SAMPLE = 300  # rows in which formulas are sought
NEED_NOT = "completed ones need not be"
ADD_FORMULA = "if it must be so in completed ones: formula: "


def formulas(
    table: pa.Table, columns: Sequence[Profile], verdicts: Sequence[Verdict]
) -> Iterator[tuple[str, str]]:
    """Yield the name of each column that follows from others in a sample, and its formula."""
    asked = [i for i, v in enumerate(verdicts) if v.column.modelled]
    asked = [i for i in asked if verdicts[i].column.numeric or not verdicts[i].column.nominal]
    rows = pa.array(np.unique(np.linspace(0, table.num_rows - 1, SAMPLE).astype(int)))
    parts = []
    for i in asked:
        cells, guessed = table.column(i).take(rows), verdicts[i].column
        if guessed.moment:
            of_day = guessed.moment == "duration"
            parts.append(minutes_in(cells) if of_day else days_in(cells, guessed.format))
            continue
        x = numbers_of(cells, columns[i].written)
        codes = [float(c.text) for c in verdicts[i].column.missing if is_number(c.text)]
        parts.append(np.where(np.isin(x, codes), np.nan, x))
    if not parts:
        return
    names = [verdicts[i].column.name for i in asked]
    called = [name if name.isidentifier() else f"`{name}`" for name in names]
    moments = {k: moment for k, i in enumerate(asked) if (moment := verdicts[i].column.moment)}
    for one in derived(called, np.column_stack(parts), moments).values():
        where = f"{one.formula} in all {one.n_rows} rows of a sample where that is known"
        levels = [names[d] for d in (one.column, *one.of) if not verdicts[asked[d]].column.numeric]
        mend = f"{ADD_FORMULA}{scalar(one.formula)}"
        if len(levels) == 1 and levels != [names[one.column]]:  # such as the sizes of lots
            mend += f", and for {scalar(levels[0])} type: count"
        elif levels:
            mend = f"{NEED_NOT}, and both may come out too sure: `role: ignore`, and compute it "
            mend += "afterwards"
        yield names[one.column], f"{where}; {mend}"
    numbers = [k for k, i in enumerate(asked) if verdicts[i].column.numeric and k not in moments]
    X = np.column_stack([parts[k] for k in numbers] or [np.empty(0)])
    if closed := closed_run(X):
        run, total, n = closed
        ends = f"{scalar(names[numbers[run[0]]])} to {scalar(names[numbers[run[-1]]])}"
        yield (
            names[numbers[run[0]]],
            f"{ends} add up to {total:.6g} in all {n} rows of a sample where they are known; if it "
            f"must be so in completed ones: add a column of {total:.6g}, such as total, to the "
            "table, and give each `parts_of: total`",
        )
    of_name: dict[str, list[int]] = {}
    for k in numbers:
        of_name.setdefault(names[k].casefold(), []).append(k)
    pairs = ((k, of_name.get(high, ())) for k in numbers for high in upper_ends(names[k]))
    ordered = [(k, other) for k, others in pairs for other in others]
    for k, other in sorted((*ordered, *_next_moments(parts, moments))):
        x, y = (parts[one][np.isfinite(parts[k] + parts[other])] for one in (k, other))
        if x.size >= LEAST_ROWS and np.all(x < y):
            high = scalar(names[other])
            yield (
                names[k],
                f"less than {high} in all {x.size} rows of a sample where both are known; if it "
                f"must be so in completed ones: less_than: {high}",
            )


def _next_moments(
    parts: Sequence[NDArray[np.float64]], moments: Mapping[int, str]
) -> Iterator[tuple[int, int]]:
    """Yield dates and the nearest one that comes after each in all rows, as delivery after pickup.

    So of times of day.

    Each is later than some of the dates of the other in other rows: else it is just another year.
    """
    for k in sorted(moments):
        after: dict[int, float] = {}
        for other in (one for one in moments if one != k and moments[one] == moments[k]):
            days = parts[other] - parts[k]
            both = np.isfinite(days)
            apart = both.sum() < LEAST_ROWS or np.max(parts[k][both]) <= np.min(parts[other][both])
            if not apart and np.all(days[both] > 0.0):
                after[other] = float(np.median(days[both]))
        if after:
            yield k, min(after, key=lambda other: after[other])
