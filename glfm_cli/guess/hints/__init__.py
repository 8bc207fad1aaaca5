"""What a person may want to add to a guess: entries to paste.

Nothing here changes a guess: a hint is a comment beside it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from glfm_cli.guess.dependence import numbers_of
from glfm_cli.guess.hints.coded import MOST_COLUMNS, coded
from glfm_cli.guess.hints.formulas import ADD_FORMULA, NEED_NOT, formulas
from glfm_cli.guess.hints.levels import no_answers, same_levels, several_answers
from glfm_cli.guess.hints.only_if import only_if
from glfm_cli.guess.hints.visits import visits
from glfm_cli.guess.names import is_direction
from glfm_cli.guess.profile import Kind, Profile
from glfm_cli.guess.skips import at_zero
from glfm_cli.guess.verdict import Verdict
from glfm_cli.schema.phrases import is_number

HALF_CIRCLE = 180.0  # degrees


def hints_of(
    table: pa.Table, columns: Sequence[Profile], verdicts: Sequence[Verdict]
) -> dict[str, list[str]]:
    """Return what may be added to the guess of a column, by its name."""
    found: dict[str, list[str]] = defaultdict(list)
    for column, verdict in zip(columns, verdicts, strict=True):
        if verdict.column.nominal and verdict.column.modelled:
            found[verdict.column.name] += same_levels(verdict, column)
            found[verdict.column.name] += no_answers(verdict)
        if column.kind is Kind.TEXT and not verdict.column.numeric:
            found[verdict.column.name] += several_answers(column)
    numbers = [i for i, v in enumerate(verdicts) if v.column.numeric and not v.column.moment]
    levelled = [i for i, v in enumerate(verdicts) if v.column.nominal and v.column.modelled]
    of_levels = ((i, coded(table.column(i), verdicts[i])) for i in levelled[:MOST_COLUMNS])
    by_level = {i: (one.levels, one.rows) for i, one in of_levels}
    for name, hint in formulas(table, columns, verdicts):
        found[name].append(hint)
    for name, hint in visits(table, columns, verdicts):
        found[name].append(hint)
    for i in numbers:
        x = numbers_of(table.column(i), columns[i].written)
        found[columns[i].name] += _direction(x, verdicts[i])
    for i in numbers[:MOST_COLUMNS]:
        coded_number = coded(table.column(i), verdicts[i])
        found[columns[i].name] += only_if(coded_number, columns[i].written, by_level, verdicts)
        if verdicts[i].column.positive or verdicts[i].column.integral:  # of those that follow
            zero = at_zero(columns[i].name, *coded_number)
            by_level[i] = zero.levels, zero.rows
    return found


def following(hints: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the columns that have a formula, which may be added to guesses or not."""
    said = (ADD_FORMULA, NEED_NOT)
    return [name for name, own in hints.items() if any(one in hint for one in said for hint in own)]


def _direction(x: NDArray[np.float64], verdict: Verdict) -> list[str]:
    """Return that degrees of a circle are one, by their name and range."""
    if not is_direction(verdict.column.name):
        return []
    x = x[np.isfinite(x)]
    codes = [float(c.text) for c in verdict.column.missing if is_number(c.text)]
    x = x[~np.isin(x, codes)]
    if not x.size or x.min() < 0.0 or not HALF_CIRCLE < x.max() <= 2 * HALF_CIRCLE:
        return []
    return [
        "a direction, by its name: 359 is next to 0, which models do not know; use its cosine and "
        "sine as two columns instead, with `role: ignore` here"
    ]
