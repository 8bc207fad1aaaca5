"""Columns that say something of a group, and so are the same in all of its rows.

The denomination of a school or the sex of a patient is a variable of level 2: a missing cell beside
a known one of its group follows from that, and in a group of which none is known all cells get one
value. A model that completed each row by itself would give pupils of one school several.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.encoding.data import Data, EncodedColumn
from glfm_cli.encoding.related import Relations
from glfm_cli.guess.levels import is_group_level, without_value
from glfm_cli.guess.skips import is_known_once

MOST_NAMED = 3


def with_group_levels(data: Data) -> Data:
    """Return a table whose columns say whether they are of groups, with the cells that follow.

    Such cells count as observed, and are still to be written. New rows have what their fit found.
    Columns with a formula, inequality, condition, intervals or trials have rules of their own.
    """
    if data.groups is None:
        return replace(data, notes=(*data.notes, *_perhaps_groups(data.columns)))
    if not data.groups.n:
        return data
    code, ruled = data.groups.code, Relations.of(data.columns, as_stated=True).numbers
    columns, told, once = list(data.columns), [], []
    for d, encoded in enumerate(columns):
        found = encoded.column.group_level
        if found is None:
            plain = encoded.ends is None and encoded.trials is None and d not in ruled
            able = encoded.column.completed and encoded.column.only_if is None and plain
            found = able and is_group_level(encoded.x, code)
            column = replace(encoded.column, group_level=found)
            columns[d] = encoded = replace(encoded, column=column)
            if found and encoded.requested.any():
                told.append(f"'{column.name}'")
            elif able and encoded.requested.any() and is_known_once(encoded.observed, code):
                once.append(f"'{column.name}'")
        if found:
            columns[d] = _with_known(encoded, code)
    notes = []
    if told:
        notes.append(f"{_shown(told)}: constant within each group, and completed so")
    if once:
        notes.append(
            f"{_shown(once)}: known in one row of each group, and completed in its other rows with "
            "values that may differ from it; what holds for a group write into all of its rows, "
            "what was asked once needs `only_if`"
        )
    return replace(data, columns=tuple(columns), notes=(*data.notes, *notes))


def _perhaps_groups(columns: Sequence[EncodedColumn]) -> list[str]:
    """Return which columns of levels are groups, by columns that some of these have no value of.

    Cells of such a level are like none of those by which intervals are corrected.
    """
    told: dict[str, list[str]] = {}
    asked = [one for one in columns if one.requested.any() and one.column.completed]
    for levels in columns:
        if not levels.column.nominal or not levels.observed.all():
            continue
        for one in asked:
            if without_value(one.observed, levels.x.astype(int)) and is_group_level(
                one.x, levels.x.astype(int)
            ):
                told.setdefault(one.column.name, []).append(levels.column.name)
    first: dict[str, list[str]] = {}
    for name, groups in told.items():
        first.setdefault(groups[0], []).append(f"'{name}'")
    return [
        f"{_shown(names)}: the same in all rows of each '{group}', of which some have no value, "
        f"completed with too narrow intervals: give '{group}' `role: group`, or, where there is "
        "nothing to complete, these columns an `only_if`"
        for group, names in first.items()
    ]


def _shown(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _with_known(encoded: EncodedColumn, code: Array) -> EncodedColumn:
    """Return a column of groups with its missing cells beside a known one of their group."""
    of_group = np.full(int(code.max()) + 1, np.nan)
    of_group[code[encoded.observed]] = encoded.x[encoded.observed]
    follows = encoded.requested & ~np.isnan(of_group[code])
    if not follows.any():
        return encoded
    x = np.where(follows, of_group[code], encoded.x)
    return replace(encoded, x=x, observed=encoded.observed | follows)


def first_of_group(data: Data) -> dict[int, Array]:
    """Return by column of groups which requested cell (n,) each is like: the first of its group.

    Only columns with such cells; a cell that follows from a known one is like itself.
    """
    if data.groups is None:
        return {}
    found = {}
    for d, rows in data.missing.items():
        if not data.columns[d].column.group_level:
            continue
        unknown = np.flatnonzero(~data.columns[d].observed[rows])
        like = np.arange(rows.size)
        group = data.groups.code[rows[unknown]]
        _, first, of_cell = np.unique(group, return_index=True, return_inverse=True)
        like[unknown] = unknown[first][of_cell]
        found[d] = like
    return found


def alike_in_groups(data: Data, fills: Mapping[int, Array]) -> dict[int, Array]:
    """Return values of missing cells (n,) of which those of columns of groups are known, or one.

    data : from `with_group_levels`
    """
    found = dict(fills)
    for d, like in first_of_group(data).items():
        encoded = data.columns[d]
        given = encoded.x[encoded.requested]
        found[d] = np.where(np.isnan(given), fills[d][like], given)
    return found
