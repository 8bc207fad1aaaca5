"""Columns that depend on columns: what follows from a row's known cells, and what must.

A `formula` holds in every row that is completed. Where all but one of its columns are known in a
row, the last follows: it is no guess, the model takes it for observed, and every version of the
table has it. Where more are missing the formula's own column follows from the others; where that is
known these are drawn given that (inference/equations.py), and of estimates the last follows.
Which column of a formula is taken for its result, the table tells (related.py).
`parts_of` is the formula of a sum, of which the estimates of parts from 0 are scaled in place of
that. `only_if` says in which rows a
column has values at all. `less_than` bounds a missing cell by the other one (`bounds_of`).
Columns of groups (group_level.py) come first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.encoding.calendar import follow_dates
from glfm_cli.encoding.conditions import (
    check_levels,
    implied_ends,
    implied_levels,
    otherwise,
    rows_outside,
    with_implied_levels,
)
from glfm_cli.encoding.data import Data, EncodedColumn, Mask
from glfm_cli.encoding.group_level import alike_in_groups, with_group_levels
from glfm_cli.encoding.obeyed import can_hold
from glfm_cli.encoding.related import Relation, Relations, with_followers
from glfm_cli.encoding.sums import empty_parts, left_for_parts, without_rounding
from glfm_cli.encoding.values import as_written
from glfm_cli.errors import TableError
from glfm_cli.io.row_notes import RowsNote
from glfm_cli.schema.formula import RESULT
from glfm_cli.schema.moments import MomentStyle

MOST_PLACES = 9  # decimals of a column, as its values show
LEAST_STEP = 1e-9  # relative, between a number and one that is larger


def with_known(data: Data, file: str | None = None) -> Data:
    """Return a table with the cells that follow from others, and what contradicts them as notes.

    Such cells count as observed, and are still to be written. Empty cells of rows outside a
    column's condition are no missing cells; with `otherwise` its value is structural there.

    Raises TableError: a formula has no finite value in a row, or a condition compares with what is
        no level.
    """
    relations = Relations.of(data.columns, as_stated=True)
    data = with_group_levels(data)
    data = replace(data, columns=follow_dates(data.columns))
    if not relations:
        return data
    notes = list(data.notes)
    columns = [replace(c, exact=d in relations.numbers) for d, c in enumerate(data.columns)]
    for one in relations.equations:
        notes += _violations(columns, one) + _overfull(columns, one) + _no_whole(columns, one)
    before = -1
    while (known := sum(int(c.observed.sum()) for c in columns)) > before:
        before = known  # what follows may tell what follows of others
        for one in relations.equations:
            _add_known(columns, one, file)
    for one in relations.equations:
        notes += _impossible(data.columns, columns, one) + _left_between(columns, one)
    columns = with_followers(columns, relations, data.columns)
    for d, other in relations.less:
        with np.errstate(invalid="ignore"):
            over, level = (f(columns[d].x, columns[other].x) for f in (np.greater, np.equal))
        beside = f"'{columns[other].column.name}'"
        notes += _listed(columns[d], np.flatnonzero(over), f"not less than {beside}")
        ties = f"equal to {beside}, as no completed one will be; leave `less_than` out where that "
        ties += "may be"
        notes += _listed(columns[d], np.flatnonzero(level), ties)
    for one in relations.conditions:
        check_levels(columns, one, file)
    columns = with_implied_levels(columns, relations.conditions)
    cells = {d: encoded.given for d, encoded in enumerate(columns)}
    outside = rows_outside(columns, relations.conditions, cells)
    for one in relations.conditions:
        notes += _outside(columns, one, outside[one.d])
    if any(encoded.structural is not None for encoded in columns):
        for one in Relations.of(columns).equations:  # of which some inputs are known only now
            _add_known(columns, one, file)
    return replace(data, columns=tuple(columns), notes=tuple(notes))


def learnt_cells(columns: Sequence[EncodedColumn]) -> tuple[Array, ...]:
    """Return what a model sees of columns: no result of an equation of which all else is known.

    There it says nothing, and a model that took it for an observation of its own would be too sure
    of what the row's known cells tell.
    """
    cells = [encoded.cells for encoded in columns]
    for one in Relations.of(columns).equations:
        known = ~np.any([np.isnan(columns[d].given) for d in one.of], axis=0)
        cells[one.d] = cells[one.d].copy()
        cells[one.d][known] = np.nan
    return tuple(cells)


def rows_inside(columns: Sequence[EncodedColumn]) -> dict[int, Mask]:
    """Return by column the rows where its condition is true or nothing tells, if others are empty.

    Columns that have a value in every row are not among them.
    """
    cells = {d: encoded.given for d, encoded in enumerate(columns)}
    outside = rows_outside(columns, Relations.of(columns).conditions, cells)
    return {d: ~rows for d, rows in outside.items() if otherwise(columns[d]) is None}


def settle(data: Data, fills: Mapping[int, Array]) -> dict[int, Array]:
    """Return values of missing cells that obey all relations, NaN where there is to be none.

    data : from `with_known`
    fills : mapping of int to (requested.sum(),) float64; by column, what a model puts there
    """
    fills = alike_in_groups(data, fills)
    relations = Relations.of(data.columns)
    if not relations:
        return fills
    columns = data.columns
    cells = {}
    for d, encoded in enumerate(columns):
        cells[d] = encoded.given.copy()
        drawn = encoded.requested & ~encoded.observed
        if drawn.any():
            x = fills[d][drawn[encoded.requested]]
            cells[d][drawn] = as_written(encoded, x) if d in relations.numbers else x
    for d, other in relations.less:
        with np.errstate(invalid="ignore"):
            over = cells[d] >= cells[other]  # means that were rounded
        at = np.maximum(np.abs(cells[d]), np.abs(cells[other]))
        step = np.maximum(_unit(columns[d]), LEAST_STEP * at)
        low, high = (over & columns[one].requested & ~columns[one].observed for one in (d, other))
        cells[d][low] = cells[other][low] - step[low]
        cells[other][high & ~low] = cells[d][high & ~low] + step[high & ~low]
    fixed = {d: ~np.isnan(encoded.given) for d, encoded in enumerate(columns)}
    for one in reversed(relations.equations):  # parts of a part of a sum follow from that
        enforce(columns, cells, one, {d: ~fixed[d] for d in (one.d, *one.of)})
        for d in one.of:
            fixed[d] |= fixed[one.d]
    for one in relations.equations:
        enforce(columns, cells, one, {d: ~fixed[d] for d in (one.d, *one.of)})
    rows_outside(columns, relations.conditions, cells)
    return {d: cells[d][columns[d].requested] for d in fills}


def placed(data: Data, fills: Mapping[int, Array]) -> tuple[Data, dict[int, Array]]:
    """Return the table without the cells that get no value, and the values of the others."""
    if not Relations.of(data.columns).conditions:
        return data, dict(fills)
    columns = list(data.columns)
    for d, values in fills.items():
        if np.isnan(values).any():
            requested = columns[d].requested.copy()
            requested[requested] = ~np.isnan(values)
            columns[d] = replace(columns[d], requested=requested)
    kept = {d: values[~np.isnan(values)] for d, values in fills.items()}
    return replace(data, columns=tuple(columns)), kept


def enforce(
    columns: Sequence[EncodedColumn],
    cells: dict[int, Array],
    one: Relation,
    free: Mapping[int, Mask],
) -> None:
    """Make an equation hold in the rows where one of its cells is free, in place."""
    if one.is_sum:
        _share(columns, cells, one, free)
    _follow(columns, cells, one, free)


def _follow(
    columns: Sequence[EncodedColumn],
    cells: dict[int, Array],
    one: Relation,
    free: Mapping[int, Mask],
) -> None:
    """Let one of the free cells of each row follow from the others, in place."""
    named = {name: cells[d] for name, d in zip(one.formula.names, one.of, strict=True)}
    value = without_rounding(one.formula.evaluate, named)
    value = np.broadcast_to(value, cells[one.d].shape)
    own = free[one.d] & np.isfinite(value)
    cells[one.d][own] = value[own]
    # Of several that are free the last one that can be, whole numbers only if there is no other.
    rows = ~free[one.d] & ~np.isnan(cells[one.d])
    named_in = zip(one.formula.names, one.of, strict=True)
    for name, d in sorted(named_in, key=lambda pair: columns[pair[1]].column.integral):
        here = rows & free[d]
        if not here.any():
            continue
        solvable = one.formula.solved_for(name, RESULT)
        if solvable is None:
            continue
        some = {other: x[here] for other, x in named.items() if other != name}
        solved = without_rounding(solvable.evaluate, {**some, RESULT: cells[one.d][here]})
        if columns[d].column.integral:
            solved = np.rint(solved)
        good = np.isfinite(solved) & can_hold(columns[d], solved)
        at = np.flatnonzero(here)[good]
        cells[d][at] = solved[good]
        rows[at] = False


def _share(
    columns: Sequence[EncodedColumn],
    cells: dict[int, Array],
    one: Relation,
    free: Mapping[int, Mask],
) -> None:
    """Scale the parts of a known sum that are free, none of them below 0, to what is left of it."""
    if any(not (columns[d].column.positive or columns[d].column.integral) for d in one.of):
        return
    drawn = np.sum([np.where(free[d], cells[d], 0.0) for d in one.of], axis=0)
    left = cells[one.d] - np.sum([np.where(free[d], 0.0, cells[d]) for d in one.of], axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        factor = np.where(~free[one.d] & (left > 0.0) & (drawn > 0.0), left / drawn, 1.0)
    for d in one.of:
        scaled = cells[d] * factor
        scaled = np.floor(scaled + 1e-9) if columns[d].column.integral else scaled
        cells[d] = np.where(free[d] & (factor != 1.0), scaled, cells[d])


def bounds_of(data: Data) -> dict[int, Array]:
    """Return what missing cells are known to lie between (requested.sum(), 2), by column.

    Their own ends, where they have some, what conditions say that must be true, and the known cells
    of columns that they are less than, or that are less than they; NaN where nothing is known.
    """
    found = dict(data.ends)
    relations = Relations.of(data.columns)
    for d, ends in implied_ends(data.columns, relations.conditions).items():
        own = found.get(d, np.full((int(data.columns[d].requested.sum()), 2), np.nan))
        found[d] = np.where(np.isnan(own), ends[data.columns[d].requested], own)
    for d, other in relations.less:
        for at, beside, side in ((d, other, 1), (other, d, 0)):
            encoded = data.columns[at]
            known = data.columns[beside].x[encoded.requested]
            rows = ~np.isnan(known) & ~encoded.observed[encoded.requested]
            if not rows.any():
                continue
            ends = found.get(at, np.full((known.size, 2), np.nan)).copy()
            ends[rows] = np.where(np.isnan(ends[rows]), [-np.inf, np.inf], ends[rows])
            step = _unit(encoded)
            tighter = np.minimum if side else np.maximum
            ends[rows, side] = tighter(ends[rows, side], known[rows] - (2 * side - 1) * step)
            found[at] = ends
    return found


def levels_of(data: Data) -> dict[int, Mask]:
    """Return which levels cells to be completed may have (requested.sum(), R), by column.

    Only columns in which conditions that must be true exclude some.
    """
    found = implied_levels(data.columns, Relations.of(data.columns).conditions)
    return {d: possible[data.columns[d].requested] for d, possible in found.items()}


def _add_known(columns: list[EncodedColumn], one: Relation, file: str | None) -> None:
    """Add the cells that follow from others of an equation, in place."""
    for d, found in empty_parts(columns, one).items():
        x = np.where(found, 0.0, columns[d].x)
        columns[d] = replace(columns[d], x=x, observed=columns[d].observed | found)
    involved = (one.d, *one.of)
    cells = {d: columns[d].given.copy() for d in involved}
    rows = np.sum([np.isnan(x) for x in cells.values()], axis=0) == 1
    free = {d: rows & np.isnan(x) for d, x in cells.items()}
    named = {name: cells[d] for name, d in zip(one.formula.names, one.of, strict=True)}
    wrong = free[one.d] & ~np.isfinite(np.asarray(one.formula.evaluate(named), dtype=np.float64))
    if wrong.any():
        row = int(np.argmax(wrong))
        given = ", ".join(f"{name} {cells[d][row]:g}" for name, d in zip(one.formula.names, one.of))  # noqa: B905
        raise TableError(
            f"`formula: {one.formula.text}` has no finite value here: it divides by zero or the "
            "like",
            file=file,
            column=columns[one.d].column.name,
            row=row + 1,
            value=given,
            hint="Correct the row, or leave the wrong cell empty.",
        )
    _follow(columns, cells, one, free)
    for d in involved:
        found = free[d] & ~np.isnan(cells[d])
        if found.any():
            x = np.where(found, cells[d], columns[d].x)
            columns[d] = replace(columns[d], x=x, observed=columns[d].observed | found)


def _violations(columns: Sequence[EncodedColumn], one: Relation) -> list[RowsNote]:
    """Return the note that observed cells contradict a formula, by more than is rounded away."""
    named = {name: columns[d].x for name, d in zip(one.formula.names, one.of, strict=True)}
    value = np.asarray(one.formula.evaluate(named), dtype=np.float64)
    x = columns[one.d].x
    slack = np.abs(value) * 1e-6 + _half_place(x)
    for name, d in zip(one.formula.names, one.of, strict=True):
        for way in (-1.0, 1.0):
            moved = named | {name: columns[d].x + way * _half_place(columns[d].x)}
            with np.errstate(invalid="ignore"):
                slack = slack + 0.5 * np.abs(one.formula.evaluate(moved) - value)
    with np.errstate(invalid="ignore"):
        wrong = np.flatnonzero(~np.isnan(x) & ~np.isnan(value) & ~(np.abs(x - value) <= slack))
    problem = "not the sum of its parts" if one.is_sum else f"not {_quoted(one)}"
    return _listed(columns[one.d], wrong, problem)


def _no_whole(columns: Sequence[EncodedColumn], one: Relation) -> list[RowsNote]:
    """Return the note that results beside missing cells are no whole numbers, as all others are.

    Such is a sum of answers that was scaled up for those that are missing.
    """
    named = {name: columns[d].x for name, d in zip(one.formula.names, one.of, strict=True)}
    value = np.asarray(one.formula.evaluate(named), dtype=np.float64)
    value = np.broadcast_to(value, columns[one.d].x.shape)
    complete = ~np.isnan(value)
    counts = all(columns[d].column.integral for d in one.of)
    if not counts or not complete.any() or np.any(value[complete] % 1.0 != 0.0):
        return []
    x = columns[one.d].x
    with np.errstate(invalid="ignore"):
        wrong = np.flatnonzero(~complete & (np.abs(x - np.rint(x)) > max(_half_place(x), 1e-6)))
    name = columns[one.d].column.name
    return _listed(
        columns[one.d],
        wrong,
        f"no {_quoted(one)} of whole numbers, and will not be in completed rows; if scaled up for "
        f"missing parts, give '{name}' `role: ignore`",
    )


def _overfull(columns: Sequence[EncodedColumn], one: Relation) -> list[RowsNote]:
    """Return the note that known parts are more than their sum, by more than is rounded away."""
    slack = np.sum([_half_place(columns[d].x) for d in (one.d, *one.of)])
    with np.errstate(invalid="ignore"):
        wrong = np.flatnonzero(left_for_parts(columns, one) < -slack)
    return _listed(columns[one.d], wrong, "less than the known parts of it")


def _impossible(
    before: Sequence[EncodedColumn], columns: Sequence[EncodedColumn], one: Relation
) -> list[RowsNote]:
    """Return the note that a result alone was missing, and follows as what it cannot be."""
    rows = ~before[one.d].observed & columns[one.d].observed
    wrong = np.flatnonzero(rows & ~can_hold(columns[one.d], columns[one.d].x))
    return _listed(columns[one.d], wrong, f"not to be had from {_quoted(one)}")


def _left_between(columns: Sequence[EncodedColumn], one: Relation) -> list[RowsNote]:
    """Return the notes that intervals are left as written beside missing cells of an equation."""
    of = (one.d, *one.of)
    missing = np.any([columns[d].requested & ~columns[d].observed for d in of], axis=0)
    problem = (
        f"known only to lie in an interval, and missing cells beside do not obey {_quoted(one)}; "
        "they will with `impute: censored`"
    )
    notes = []
    for d in of:
        rows = np.flatnonzero(missing & columns[d].between & ~columns[d].requested)
        notes += _listed(columns[d], rows, problem)
    return notes


def _outside(columns: list[EncodedColumn], one: Relation, outside: Mask) -> list[RowsNote]:
    """Use the empty cells outside a condition out of the missing ones, and list other cells."""
    encoded = columns[one.d]
    value = otherwise(encoded)
    wrong, empty = outside & encoded.observed, outside & encoded.requested
    structural = None
    if value is not None:
        wrong &= encoded.x != value
        empty &= ~encoded.observed
        structural = np.where(empty, value, np.nan) if empty.any() else None
    requested = encoded.requested & ~empty
    columns[one.d] = replace(encoded, requested=requested, structural=structural)
    what = "there" if value is None else f"not what `otherwise: {encoded.column.otherwise}` says"
    problem = f"{what}, though {_quoted(one)} is not true"
    return _listed(encoded, np.flatnonzero(wrong), problem)


def _quoted(one: Relation) -> str:
    """Return a formula or condition between marks that do not stand in it."""
    text = one.formula.text
    return f"'{text}'" if "`" in text else f"`{text}`"


def _unit(encoded: EncodedColumn) -> float:
    """Return the least step between values of a column: of dates their resolution; 0 of reals."""
    if isinstance(encoded.style, MomentStyle):
        return 1.0 / encoded.style.steps
    return float(encoded.column.integral)


def _listed(encoded: EncodedColumn, rows: Array, problem: str) -> list[RowsNote]:
    about = encoded.column.name, problem
    return [RowsNote(_in_rows, about, rows.size, rows + 1)] if rows.size else []


def _in_rows(about: tuple[str, str], count: int, rows: tuple[int, ...]) -> str:
    shown = ", ".join(str(row) for row in rows) + (", ..." if count > len(rows) else "")
    cells, row = ("cell is", "row") if count == 1 else ("cells are", "rows")
    return f"column '{about[0]}': {count} {cells} {about[1]} ({row} {shown})"


def _half_place(x: Array) -> float:
    """Return half a unit of the last decimal that the values of a column show."""
    seen = x[~np.isnan(x)][:10_000]
    places = range(MOST_PLACES)
    return 0.5 * float(
        next((10.0**-k for k in places if np.allclose(seen, np.round(seen, k), 1e-12, 0)), 0.0)
    )
