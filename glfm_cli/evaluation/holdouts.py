"""Which cells of a matrix are hidden: those that a column marks, one of every row, or any.

given        table rows that a column of role `split` calls test
one-per-row  one random cell of every row that has two or more
mcar         a share of the cells, at random; every row and column keeps one
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from glfm_cli.arrays import Array
from glfm_cli.encoding import LearntColumn, Triplets, encode_triplets, open_column
from glfm_cli.encoding.levels import distinct_texts
from glfm_cli.errors import TableError, UsageError
from glfm_cli.evaluation.design import Design
from glfm_cli.evaluation.split import TEST, TRAIN
from glfm_cli.schema import Role, Schema

ONE, RANDOM = "one-per-row", "mcar"
MECHANISMS = (RANDOM, ONE)
RATES = (0.1,)


@dataclass(frozen=True)
class HoldOut:
    """Cells of one matrix to learn from, and cells to predict."""

    train: Triplets
    test: Triplets

    @property
    def rate(self) -> float:
        """The share of the cells that is hidden."""
        return self.test.row.size / (self.test.row.size + self.train.row.size)


def read_holdout(
    table: pa.Table, schema: Schema, design: Design, file: str | None
) -> HoldOut | None:
    """Return what the table's split column marks, which decides alone; None without one.

    Raises GlfmError: it says something else than train or test, or an option has nothing left to
        say.
    """
    columns = schema.resolve(table.column_names)
    marks = [i for i, column in enumerate(columns) if column.role is Role.SPLIT]
    if not marks:
        return None
    design.check_split(columns[marks[0]].name)
    return _split(table, schema, _marked(table, schema, marks[0], file), file)


def draw_holdout(
    triplets: Triplets, mechanism: str, rate: float, rng: np.random.Generator
) -> HoldOut:
    """Return cells hidden at random; UsageError when there cannot be so many."""
    hidden = _one_of_each(triplets, rng) if mechanism == ONE else _any(triplets, rate, rng)
    return HoldOut(_subset(triplets, ~hidden), _subset(triplets, hidden))


def _marked(table: pa.Table, schema: Schema, index: int, file: str | None) -> Array:
    """Return which table rows (n,) the split column calls test."""
    column = schema.resolve(table.column_names)[index]
    source = open_column(table, index, column, file)
    texts, of_row = distinct_texts(source)
    words = [(text or "").strip().casefold() for text in texts]
    odd = np.array([word not in TEST and word not in TRAIN for word in words])
    if odd.any():
        raise source.cell_error(odd[of_row], "train or test", None)
    test: Array = np.array([word in TEST for word in words])[of_row]
    if test.all() or not test.any():
        kind = "test" if test.any() else "train"
        raise UsageError(
            f"the split column says {kind} everywhere", column=column.name, expected="both"
        )
    return test


def _split(table: pa.Table, schema: Schema, test: Array, file: str | None) -> HoldOut:
    train = encode_triplets(_without(table, schema, test), schema, file=file)
    learnt = LearntColumn(train.value.column, train.value.levels, train.value.typical)
    hidden = encode_triplets(_without(table, schema, ~test), schema, learnt=learnt, file=file)
    if not hidden.row.size:
        raise TableError("no row that is marked test has a value", file=file)
    return HoldOut(train, hidden)


def _without(table: pa.Table, schema: Schema, hidden: Array) -> pa.Table:
    """Return the table with some of its values gone: its rows still name their ids."""
    columns = schema.resolve(table.column_names)
    index = next(i for i, column in enumerate(columns) if column.role is Role.VALUE)
    values = table.column(index)
    gone = pc.if_else(pa.array(hidden), pa.scalar(None, values.type), values)
    return table.set_column(index, table.field(index), gone)


def _one_of_each(triplets: Triplets, rng: np.random.Generator) -> Array:
    """Return which cells (m,) are hidden: one of every row that has two."""
    order = np.lexsort((rng.random(triplets.row.size), triplets.row))
    row = triplets.row[order]
    first = np.append(True, row[1:] != row[:-1])
    several = np.bincount(triplets.row)[row] > 1
    hidden = np.zeros(row.size, dtype=bool)
    hidden[order[first & several]] = True
    if not hidden.any():
        raise UsageError("--mechanism one-per-row: no row has two cells")
    return hidden


def _any(triplets: Triplets, rate: float, rng: np.random.Generator) -> Array:
    """Return which cells (m,) are hidden: a share of all; each row and column keeps one."""
    m = triplets.row.size
    order = rng.permutation(m)
    free = np.ones(m, dtype=bool)
    for index in (triplets.row, triplets.column):
        free[order[np.unique(index[order], return_index=True)[1]]] = False
    can = order[free[order]]
    requested = round(rate * m)
    if not 1 <= requested <= can.size:
        most = np.floor(100.0 * can.size / m)
        raise UsageError(
            f"a rate of {rate:g} cannot be reached: at most {most:.0f} % of the {m} cells can be "
            "hidden while every row and column keeps one",
            hint="Use another rate.",
        )
    hidden = np.zeros(m, dtype=bool)
    hidden[can[:requested]] = True
    return hidden


def _subset(triplets: Triplets, kept: Array) -> Triplets:
    """Return some of the cells (m,) bool of a matrix."""
    value = triplets.value
    seen = np.ones(int(kept.sum()), dtype=bool)
    return replace(
        triplets,
        row=triplets.row[kept],
        column=triplets.column[kept],
        value=replace(value, x=value.x[kept], observed=seen, requested=~seen),
    )
