"""What it costs to ask for a cell, from a table of costs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from glfm_cli.acquisition.cells import PairCells, TableCells
from glfm_cli.arrays import Array
from glfm_cli.encoding import Ids, encode_ids, encode_numbers, open_column
from glfm_cli.errors import TableError
from glfm_cli.schema import Column
from glfm_cli.schema.phrases import did_you_mean

COST = "cost"


def costs_of(cells: TableCells | PairCells, table: pa.Table, *, file: str | None = None) -> Array:
    """Return the cost (n,) of each cell, above 0.

    A table's cells cost what the row of their column says (columns `column` and `cost`); those of
    a matrix what the row of their row id, their column id, or of both says.

    Raises TableError: a column is missing, a cost is no number above 0, or a cell has none.
    """
    cost = _costs(table, file)
    if isinstance(cells, TableCells):
        return _by_column(cells, table, cost, file)
    sides = (cells.rows, cells.columns)
    named = [i for i, ids in enumerate(sides) if ids.name in table.column_names]
    if not named:
        raise _no_column(
            sides[0].name, file, f"column '{sides[0].name}', '{sides[1].name}' or both"
        )
    of_cell, of_row = np.zeros(cells.size, dtype=np.int64), np.zeros(cost.size, dtype=np.int64)
    for i in named:
        ids, at = sides[i], (cells.pairs.row, cells.pairs.column)[i]
        of_cell = of_cell * len(ids) + at
        of_row = of_row * len(ids) + _places(table, ids, file)
    _check_once(of_row, file)
    order = np.argsort(of_row, kind="stable")
    place = np.minimum(np.searchsorted(of_row[order], of_cell), max(order.size - 1, 0))
    found = order[place] if order.size else np.zeros(cells.size, dtype=np.int64)
    gone = np.ones(cells.size, dtype=bool) if not order.size else of_row[found] != of_cell
    if gone.any():
        first = cells.describe(np.array([int(np.argmax(gone))]))
        ids_text = ", ".join(f"{sides[i].name} '{first[sides[i].name][0].as_py()}'" for i in named)
        raise TableError(
            f"has no cost for {ids_text}",
            file=file,
            expected="the cost of every cell to choose from",
        )
    return cost[found]


def _costs(table: pa.Table, file: str | None) -> Array:
    if COST not in table.column_names:
        raise _no_column(COST, file, f"a column '{COST}'")
    column = Column(COST).of_numbers()
    source = open_column(table, table.column_names.index(COST), column, file)
    cost = encode_numbers(source)[0]
    bad = ~(cost > 0.0)
    if bad.any():
        raise source.cell_error(bad, "a cost above 0", None)
    return cost


def _by_column(cells: TableCells, table: pa.Table, cost: Array, file: str | None) -> Array:
    if "column" not in table.column_names:
        raise _no_column("column", file, "columns 'column' and 'cost'")
    source = open_column(table, table.column_names.index("column"), Column("column"), file)
    ids, of_row = encode_ids(source)
    for key in ids.keys:
        if key not in cells.names:
            raise TableError(
                f"'{key}' is not a modelled column of the table",
                file=file,
                column="column",
                hint=did_you_mean(key, cells.names),
            )
    _check_once(of_row, file)
    by_name = {ids.keys[key]: value for key, value in zip(of_row, cost, strict=True)}
    for d in np.unique(cells.column):
        if cells.names[d] not in by_name:
            raise TableError(
                f"has no cost for column '{cells.names[d]}'",
                file=file,
                expected="the cost of every column with cells to choose from",
                hint="Or name the columns to choose from with --columns.",
            )
    return np.array([by_name[cells.names[d]] for d in cells.column])


def _places(table: pa.Table, ids: Ids, file: str | None) -> Array:
    """Return the number (n,) of the id that each row of the table has."""
    source = open_column(table, table.column_names.index(ids.name), Column(ids.name), file)
    own, of_row = encode_ids(source)
    place = ids.places(own.keys)[of_row]
    if (place < 0).any():
        raise source.cell_error(place < 0, f"an id of the matrix's column '{ids.name}'", None)
    return place


def _check_once(key: Array, file: str | None) -> None:
    first = np.unique(key, return_index=True)[1]
    if first.size < key.size:
        again = np.ones(key.size, dtype=bool)
        again[first] = False
        raise TableError(
            "this cost is given twice",
            file=file,
            row=int(np.argmax(again)) + 1,
            expected="one cost for each",
        )


def _no_column(name: str, file: str | None, expected: str) -> TableError:
    return TableError("the table has no such column", file=file, column=name, expected=expected)
