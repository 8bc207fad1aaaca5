"""Questions that some rows were not asked, and other reasons for which cells are empty."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from glfm_cli.guess.dependence import numbers_of
from glfm_cli.guess.hints.coded import MOST_COLUMNS, coded
from glfm_cli.guess.levels import is_group_level, without_value
from glfm_cli.guess.profile import Kind, Profile
from glfm_cli.guess.skips import Filter, at_zero, is_known_once, is_merged, skipped
from glfm_cli.guess.units import in_several_units, unit_of
from glfm_cli.guess.verdict import Verdict, may_be_group
from glfm_cli.schema import Role
from glfm_cli.schema.text import flow


def skips_of(
    table: pa.Table, columns: Sequence[Profile], verdicts: Sequence[Verdict]
) -> dict[str, str]:
    """Return the `only_if` of columns of questions that some rows were not asked, by name.

    With it, whether a column has one value for each value of an id, merged cells, or several units.
    """
    levelled = [i for i, v in enumerate(verdicts) if v.column.levelled and v.column.modelled]
    numbers = [i for i, v in enumerate(verdicts) if v.column.positive or v.column.integral]
    filters = []
    for i in levelled[:MOST_COLUMNS]:
        of = coded(table.column(i), verdicts[i])
        filters.append(Filter(columns[i].name, of.levels, of.rows))
    of_levels = list(filters)
    unit = unit_of(of_levels)
    for i in numbers[:MOST_COLUMNS]:
        filters.append(at_zero(columns[i].name, *coded(table.column(i), verdicts[i])))
    rows = {one.name: one.rows for one in filters}
    ids = [i for i, verdict in enumerate(verdicts) if verdict.column.role is Role.ID]
    several = next((i for i in ids if may_be_group(columns[i])), None)
    group = None if several is None else coded(table.column(several), verdicts[several]).rows
    found = {}
    for i, verdict in enumerate(verdicts):
        name = columns[i].name
        words = columns[i].kind is Kind.TEXT and not columns[i].is_number.any()
        if not verdict.column.modelled and (not words or verdict.column.role is Role.ID):
            continue
        there = (rows[name] if name in rows else coded(table.column(i), verdict).rows) >= 0
        if words and verdict.column.moment is None and is_merged(there):
            found[name] = (
                "each value stands above empty cells; if these are merged cells, write it into all "
                "rows for which it holds"
            )
        if not verdict.column.modelled:
            continue
        others = [one for one in filters if one.name != name]
        if hint := skipped(there, others):
            codes = verdict.column.missing
            if not all(code.impute for code in codes):  # inside, such cells are missing ones then
                hint += f", missing: {flow([code.text for code in codes])}"
            found[name] = _or_group(hint, coded(table.column(i), verdict).rows, others)
        if several is not None and group is not None and is_known_once(there, group):
            once = f"known in one row of each {columns[several].name}; what holds for its others "
            found[name] = once + "write into them" + (f"; {found[name]}" if hint else "")
        elif (
            several is not None
            and group is not None
            and not there.all()
            and _is_known_elsewhere(coded(table.column(i), verdict).rows, group)
        ):
            found[name] = (
                f"the same in all rows of each {columns[several].name} where it is known, but not "
                f"in completed cells, unless {columns[several].name} has `role: group`"
            )
        measured = verdict.column.numeric and verdict.column.moment is None
        if unit is not None and measured:
            x = numbers_of(table.column(i), columns[i].written)
            told = in_several_units(x, unit, of_levels)
            found |= {name: told} if told else {}
    return found


def _is_known_elsewhere(values: NDArray[np.int64], group: NDArray[np.int64]) -> bool:
    """Return whether a column never differs in a group, and is known in some rows of one alone.

    values, group : which value each row has, -1 of none, and of which group it is (n,)
    """
    there = values >= 0
    known = np.bincount(group, weights=there)
    if not np.any((known > 0) & (known < np.bincount(group))):
        return False
    return is_group_level(np.where(there, values, np.nan), group)


def _or_group(hint: str, values: NDArray[np.int64], filters: Sequence[Filter]) -> str:
    """Return an `only_if`, and before it the group of which a column says something, if any.

    values : which of its values each row has, -1 of none (n,)
    """
    there = values >= 0
    x = np.where(there, values, np.nan)
    of = (one for one in filters if not one.is_number and np.all(one.rows >= 0))
    found = (one for one in of if without_value(there, one.rows) and is_group_level(x, one.rows))
    if (one := next(found, None)) is None:
        return hint
    return (
        f"the same in all rows of each {one.name}, of which some have none; where they have one "
        f"that is not known, give {one.name} `role: group`; {hint}"
    )
