"""A column of role `split`: which rows or cells of a table are for testing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.encoding import Data
from glfm_cli.encoding.levels import distinct_texts
from glfm_cli.encoding.source import open_column
from glfm_cli.errors import TableError, UsageError
from glfm_cli.evaluation.masks import check_whole
from glfm_cli.schema import Role, Schema

TRAIN = frozenset({"", "train", "training", "0", "false"})
TEST = frozenset({"test", "testing", "1", "true"})


@dataclass(frozen=True)
class Split:
    """What a split column marks.

    cells : (N, D) bool, the given cells to hide; None when only rows are marked
    rows : (N,) bool, the test rows, in which a mechanism hides cells; None when cells are given
    """

    cells: Array | None
    rows: Array | None


def read_split(table: pa.Table, schema: Schema, data: Data, file: str | None) -> Split | None:
    """Return what the table's split column marks; None without such a column.

    Its cells say `train` (or nothing, 0, false), `test` (or 1, true), or the names of the columns
    whose cells are hidden in that row, separated by `;`. In a test row the target's cell is hidden
    if a column has role target; else the mechanism hides cells there, and only there.

    Raises TableError: a cell of it says something else; UsageError: it marks nothing, or a row or
        column as a whole.
    """
    columns = schema.resolve(table.column_names)
    found = [i for i, column in enumerate(columns) if column.role is Role.SPLIT]
    if not found:
        return None
    column = columns[found[0]]
    source = open_column(table, found[0], column, file)
    texts, of_row = distinct_texts(source)
    words = [(text or "").strip() for text in texts]
    missing = {code.text.strip() for code in column.missing}
    words = ["" if word in missing else word for word in words]
    place = {e.column.name: d for d, e in enumerate(data.columns) if e.column.completed}
    target = [d for d, e in enumerate(data.columns) if e.column.role is Role.TARGET]
    named = np.zeros((len(words), len(data.columns)), dtype=bool)
    for i, word in enumerate(words):
        if word.casefold() in TRAIN:
            continue
        if word.casefold() in TEST:
            named[i, target] = True
            continue
        names = [name.strip() for name in word.split(";") if name.strip()]
        if not names or any(name not in place for name in names):
            row = int(np.argmax(of_row == i)) + 1
            raise TableError(
                file=file,
                row=row,
                column=column.name,
                value=f"'{word}'",
                expected="train, test, or names of completed columns separated by ;",
            )
        named[i, [place[name] for name in names]] = True
    test = np.array([word.casefold() in TEST for word in words])
    return _checked(data, named[of_row], test[of_row], bool(target), column.name)


def _checked(data: Data, named: Array, test: Array, target: bool, name: str) -> Split:
    observed = np.column_stack([e.observed for e in data.columns])
    cells = named & observed
    if not target and test.any():
        if cells.any():
            raise UsageError(
                "the split column marks whole rows as test and names cells in others",
                column=name,
                hint="Give a column role target, or name cells in every test row.",
            )
        return Split(None, test)
    if not cells.any():
        raise UsageError("the split column marks no observed cell", column=name)
    check_whole(data, cells)
    return Split(cells, None)
