"""Completed tables of others, read back: the values and codes of given cells."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.encoding import EncodedColumn
from glfm_cli.encoding.levels import distinct_texts, level_key
from glfm_cli.encoding.numeric import encode_numbers
from glfm_cli.encoding.source import Source, open_column
from glfm_cli.errors import TableError
from glfm_cli.evaluation.task import HiddenTask
from glfm_cli.io import read_table


def read_completed(path: str | os.PathLike[str], task: HiddenTask) -> dict[int, Array]:
    """Return the values or level codes that a completed table has in the hidden cells.

    Raises TableError: the file is no table, has other rows or columns, or a hidden cell is empty or
        of no known level.
    """
    table = read_table(path)
    columns = {d: task.data.columns[d] for d in task.hidden}
    return values_at(table, columns, task.hidden, n_rows=task.data.n_rows)


def values_at(
    table: pa.Table,
    columns: Mapping[int, EncodedColumn],
    cells: Mapping[int, Array],
    *,
    n_rows: int,
    file: str | None = None,
) -> dict[int, Array]:
    """Return the values or codes of some cells of a completed table, checked.

    table : its columns may stand in any order
    columns : what the columns mean, and their levels; found in the table by name
    cells : mapping of int to (n,) int; rows, by the same numbers
    n_rows : that it must have
    """
    if table.num_rows != n_rows:
        raise TableError(
            "the completed table has another number of rows",
            file=file,
            value=table.num_rows,
            expected=str(n_rows),
        )
    names = table.column_names
    answer = {}
    for d, rows in cells.items():
        name = columns[d].column.name
        if names.count(name) != 1:
            raise TableError(
                "the completed table lacks this column"
                if name not in names
                else "the completed table has two columns of this name",
                file=file,
                column=name,
            )
        answer[d] = _column_at(table, names.index(name), columns[d], rows, file)
    return answer


def _column_at(
    table: pa.Table, index: int, encoded: EncodedColumn, rows: Array, file: str | None
) -> Array:
    """Return the values of some cells of one column."""
    # Only what was put in is looked at; whether it fits the column's bounds is not our business.
    lenient = replace(
        encoded.column, missing=(), bounds=(None, None), transform=None, reflect=None
    )  # fmt: skip
    source = open_column(table, index, lenient, file)
    chosen = replace(source, values=source.values.take(pa.array(rows)))
    try:
        x = _codes(chosen, encoded.levels) if encoded.levels else _numbers(chosen)
    except TableError as error:
        if error.row is not None:  # counted among the chosen cells
            error.row = int(rows[error.row - 1]) + 1
        raise
    empty = np.isnan(x)
    if empty.any():
        raise TableError(
            f"{int(empty.sum())} of {rows.size} cells are still empty",
            file=file,
            column=encoded.column.name,
            row=int(rows[int(np.argmax(empty))]) + 1,
        )
    return x if encoded.trials is None else x / encoded.trials[rows]


def _numbers(source: Source) -> Array:
    real = replace(source, column=source.column.of_numbers())
    return encode_numbers(real)[0]


def _codes(source: Source, levels: tuple[str, ...]) -> Array:
    """Return level codes, NaN for an empty cell."""
    texts, of_row = distinct_texts(source)
    place = {level_key(level): code for code, level in enumerate(levels)}
    codes = np.array([np.nan if t is None else place.get(t, -1) for t in texts], dtype=np.float64)
    found = codes[of_row]
    if (found < 0).any():
        shown = ", ".join(levels[:8]) + (", ..." if len(levels) > 8 else "")
        raise source.cell_error(found < 0, f"one of {shown}", None)
    return found
