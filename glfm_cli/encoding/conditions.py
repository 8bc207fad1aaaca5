"""In which rows a column has values: what `only_if` says of missing cells, and they of it.

A condition may rest on columns that have a condition themselves. Nothing is true of a column that
has no value in a row: `hours > 40` is false of who has no hours, and so is `hours <= 40`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.encoding.data import EncodedColumn, Mask
from glfm_cli.encoding.levels import level_key
from glfm_cli.encoding.related import Relation
from glfm_cli.errors import TableError


def rows_outside(
    columns: Sequence[EncodedColumn], conditions: Sequence[Relation], cells: dict[int, Array]
) -> dict[int, Mask]:
    """Return by column the rows (n,) where its condition is false, and settle cells there in place.

    conditions : those that others need first
    cells : by column its values, NaN where nothing tells them; outside those that were not observed
        are NaN then, or what `otherwise` says
    """
    found: dict[int, Mask] = {}
    absent: dict[int, Mask] = {}
    for one in conditions:
        encoded, value = columns[one.d], otherwise(columns[one.d])
        found[one.d] = _truth(columns, one, cells, absent) == 0.0
        empty = found[one.d] & ~encoded.observed
        cells[one.d] = np.where(empty, np.nan if value is None else value, cells[one.d])
        absent[one.d] = empty if value is None else np.zeros(empty.size, bool)
    return found


def rows_present(
    columns: Sequence[EncodedColumn], conditions: Sequence[Relation]
) -> dict[int, Mask]:
    """Return by column the rows (n,) where its condition must be true: the column has a value.

    So it has where a column with a value needs one of it.
    """
    found: dict[int, Mask] = {}
    for one in conditions:
        found[one.d] = columns[one.d].observed.copy()
        if (value := otherwise(columns[one.d])) is not None:
            found[one.d] &= columns[one.d].x != value
    cells = {d: columns[d].x for one in conditions for d in one.of}
    for one in reversed(conditions):
        for d in found.keys() & set(one.of):
            if otherwise(columns[d]) is None:
                gone = {d: ~columns[d].observed}
                found[d] |= found[one.d] & (_truth(columns, one, cells, gone) == 0.0)
    return found


def with_implied_levels(
    columns: Sequence[EncodedColumn], conditions: Sequence[Relation]
) -> list[EncodedColumn]:
    """Return columns with the levels without which a cell that has a value could have none."""
    found = list(columns)
    present = rows_present(columns, conditions)
    for one in conditions:
        for d in one.of:
            encoded = found[d]
            rows = present[one.d] & ~encoded.observed
            if not encoded.levels or not rows.any():
                continue
            possible = _possible(found, one, d)
            sure = rows & (possible.sum(axis=1) == 1)
            x = np.where(sure, np.argmax(possible, axis=1).astype(np.float64), encoded.x)
            found[d] = replace(encoded, x=x, observed=encoded.observed | sure)
    return found


def implied_levels(
    columns: Sequence[EncodedColumn], conditions: Sequence[Relation]
) -> dict[int, Mask]:
    """Return which levels missing cells may have (n, R), by column; only columns that may not all.

    Others would leave a cell that has a value without a place.
    """
    found: dict[int, Mask] = {}
    present = rows_present(columns, conditions)
    for one in conditions:
        for d in one.of:
            rows = present[one.d] & ~columns[d].observed
            if not columns[d].levels or not rows.any():
                continue
            possible = _possible(columns, one, d) | ~rows[:, None]
            possible &= found.get(d, True)
            possible |= ~possible.any(axis=1, keepdims=True)  # conditions that contradict others
            if not possible.all():
                found[d] = possible
    return found


def implied_ends(
    columns: Sequence[EncodedColumn], conditions: Sequence[Relation]
) -> dict[int, Array]:
    """Return what missing numbers lie between (n, 2), NaN where nothing is known, by column.

    Of `kids > 0` where a column has a value that has one under this condition alone.
    """
    found: dict[int, Array] = {}
    present = rows_present(columns, conditions)
    for one in conditions:
        place = dict(zip(one.formula.names, one.of, strict=True))
        for name, how, at in one.formula.limits:
            encoded = columns[d := place[name]]
            rows = present[one.d] & np.isnan(encoded.x)
            if encoded.levels or encoded.trials is not None or not rows.any():
                continue
            if how == "!=" and at == 0.0 and (encoded.column.positive or encoded.column.integral):
                how = ">"  # none is below 0
            ends = found.setdefault(d, np.full((rows.size, 2), np.nan))
            ends[rows] = np.where(np.isnan(ends[rows]), [-np.inf, np.inf], ends[rows])
            if how in (">", ">=", "=="):
                ends[rows, 0] = np.maximum(ends[rows, 0], _beyond(encoded, at, 1.0, how == ">"))
            if how in ("<", "<=", "=="):
                ends[rows, 1] = np.minimum(ends[rows, 1], _beyond(encoded, at, -1.0, how == "<"))
    return found


def _beyond(encoded: EncodedColumn, at: float, way: float, strict: bool) -> float:
    """Return the value of a column that is next to a number, that way, or the number itself."""
    if not encoded.column.integral:
        return float(np.nextafter(at, way * np.inf)) if strict else at
    nearest = way * np.ceil(way * at)  # the whole number that is not on the other side
    return float(nearest + way * (strict and nearest == at))


def _possible(columns: Sequence[EncodedColumn], one: Relation, d: int) -> Mask:
    """Return with which levels (n, R) of column d a condition may be true, the others given."""
    cells = {other: columns[other].x for other in one.of}
    truth = []
    for code in range(len(columns[d].levels)):
        cells[d] = np.full(columns[d].x.size, float(code))
        truth.append(_truth(columns, one, cells, {}) != 0.0)
    return np.stack(truth, axis=1)


def check_levels(columns: Sequence[EncodedColumn], one: Relation, file: str | None) -> None:
    """Raise TableError when a condition compares with a text that is no level."""
    levels = {level_key(level) for d in one.of for level in columns[d].levels}
    if unknown := [text for text in one.formula.texts if text not in levels]:
        raise TableError(
            f"`only_if: {one.formula.text}` compares with '{unknown[0]}', which is not a level of "
            + " or ".join(one.formula.names),
            file=file,
            column=columns[one.d].column.name,
            expected=", ".join(f"'{level}'" for level in sorted(levels)) or "a number",
        )


def otherwise(encoded: EncodedColumn) -> float | None:
    """Return what cells outside the column's condition are, None where they stay empty."""
    text = encoded.column.otherwise
    if text is None:
        return None
    return float(encoded.levels.index(text)) if encoded.levels else float(text)


def _truth(
    columns: Sequence[EncodedColumn],
    one: Relation,
    cells: Mapping[int, Array],
    absent: Mapping[int, Mask],
) -> Array:
    """Return 1 where a condition is true (n,), 0 where it is false, NaN where nothing tells.

    absent : by column the rows in which it has no value
    """
    named, unknown, gone = {}, {}, {}
    for name, d in zip(one.formula.names, one.of, strict=True):
        named[name], unknown[name] = cells[d], np.isnan(cells[d])
        gone[name] = unknown[name] & absent.get(d, False)
        if levels := columns[d].levels:
            codes = np.nan_to_num(cells[d], nan=0.0).astype(np.intp)
            named[name] = np.array([level_key(level) for level in levels], dtype=object)[codes]
    return one.formula.truth(named, (unknown, gone))
