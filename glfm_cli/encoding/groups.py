"""Which rows of a table belong together, and in which order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array, Groups
from glfm_cli.encoding.data import EncodedColumn
from glfm_cli.encoding.levels import distinct_texts
from glfm_cli.encoding.not_completed import missing_cells
from glfm_cli.encoding.source import open_column
from glfm_cli.errors import SchemaError, TableError
from glfm_cli.schema import Column, Role


def groups_of(
    table: pa.Table,
    columns: Sequence[Column],
    encoded: Sequence[EncodedColumn],
    file: str | None,
    known: Sequence[str] = (),
) -> Groups | None:
    """Return which rows belong together, None where no column has role group or time.

    encoded : those that are modelled, that of role time among them
    known : groups of a fit, which come first; others follow in the order of their first rows

    Raises TableError: a cell of role group or time is missing; names row and column.
    """
    time, clock = time_of(encoded, file)
    given = predictors_of(encoded)
    index = next((i for i, c in enumerate(columns) if c.role is Role.GROUP), None)
    if index is None:
        code = np.zeros(table.num_rows, np.int64)
        return None if time is None else Groups(code, (), time, clock, given)
    source = open_column(table, index, columns[index], file)
    gone = missing_cells(source)
    if gone.any():
        raise source.cell_error(
            gone,
            "a value in every row",
            "Fill in the group of the row; a row by itself needs a group of its own.",
            "the cell of role group is empty",
        )
    texts, of_row = distinct_texts(source)
    place = {name: number for number, name in enumerate(known)}
    numbers = np.array([place.setdefault(str(text), len(place)) for text in texts], dtype=np.int64)
    return Groups(numbers[of_row], tuple(place), time, clock, given)


def predictors_of(encoded: Sequence[EncodedColumn]) -> tuple[int, ...]:
    """Return the numbers, among those modelled, of the columns of role predictor."""
    return tuple(d for d, e in enumerate(encoded) if e.column.role is Role.PREDICTOR)


def time_of(
    encoded: Sequence[EncodedColumn], file: str | None = None
) -> tuple[Array | None, int | None]:
    """Return the values of the column of role time, and its number among those modelled."""
    clock = next((d for d, e in enumerate(encoded) if e.column.role is Role.TIME), None)
    if clock is None:
        return None, None
    column = encoded[clock]
    if not column.column.numeric:
        raise SchemaError(
            "has role time, and its values are not numbers, dates or durations",
            file=file,
            column=column.column.name,
            value=f"type {column.column.type}",
            hint="Give it type real, date or duration.",
        )
    if not column.observed.all():
        raise TableError(
            "the cell of role time is empty",
            file=file,
            column=column.column.name,
            row=int(np.argmin(column.observed)) + 1,
            expected="a value in every row",
            hint="Fill in the time, or give the column role predictor.",
        )
    return column.x, clock


def group_notes(groups: Groups | None, encoded: Sequence[EncodedColumn]) -> list[str]:
    """Return what a user should know of the groups of a table with these columns."""
    if groups is None or not groups.n:
        return []
    if groups.n == groups.code.size:
        return ["every row is a group of its own, so that role group has no effect"]
    if groups.n == 1:
        return ["all rows are of one group, so that role group has no effect"]
    if groups.time is None:
        return []
    first = np.unique(groups.code, return_index=True)[1]
    names = [
        f"'{e.column.name}'"
        for e in encoded
        if e.column.role is Role.FEATURE and _tells_groups_apart(e, groups.code, first)
    ]
    if not names:
        return []
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return [
        f"{', '.join(names[:3])}{more}: constant within each group; differences over time between "
        "its values may be shrunk towards zero unless it has role predictor"
    ]


def _tells_groups_apart(encoded: EncodedColumn, code: Array, first: Array) -> bool:
    """Return whether a column is known in every row, and differs between groups alone."""
    x = encoded.x
    if encoded.column.calendar is not None or x.ndim != 1 or not encoded.observed.all():
        return False
    return bool(np.all(x == x[first][code]) and np.any(x != x[0]))
