"""Estimates that a user should look at: far outside what is observed, or beyond their type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.encoding import EncodedColumn
from glfm_cli.schema import Column
from glfm_cli.schema.moments import FIRST, LAST

FAR = 3.0  # ranges of the observed cells, beyond which an estimate is extreme
MOST_NAMED = 3  # columns in one line


@dataclass(frozen=True)
class Extremes:
    """Estimates of one column far below or above its observed cells.

    ends : the least and the largest observed number;  row, worst : the estimate farthest beyond
    beyond : how far that is, in ranges of the observed numbers
    change : what to do beside `bounds`
    """

    column: Column
    ends: tuple[float, float]
    cells: int
    row: int
    worst: float
    beyond: float
    change: str

    def joined(self, other: Extremes | None, n_rows: int) -> Extremes:
        """Return those of a table: these stand below `n_rows` rows, the others among them."""
        moved = replace(self, row=self.row + n_rows)
        if other is None:
            return moved
        farther = moved if self.beyond > other.beyond else other
        return replace(farther, cells=self.cells + other.cells)

    def __str__(self) -> str:
        """Return the line that names them."""
        low, high, worst = (_text(self.column, x) for x in (*self.ends, self.worst))
        return (
            f"column '{self.column.name}': {self.cells} completed "
            f"{'cell is' if self.cells == 1 else 'cells are'} far outside the observed "
            f"{low} to {high} (row {self.row + 1}: {worst}); {self.change}set `bounds`"
        )


def extreme_estimates(encoded: EncodedColumn, estimate: Array, rows: Array) -> Extremes | None:
    """Return which of a column's estimates (n,) are far below or above its observed cells.

    rows : (n,) int; where the estimates are
    """
    column, within = encoded.column, encoded.trials is not None  # successes: within their trials
    if encoded.levels or within or not estimate.size or not encoded.typical.size:
        return None
    low, high = encoded.reach
    if low == high:
        return None
    unit = max(abs(low), abs(high))  # no difference of doubles overflows in it
    width = high / unit - low / unit
    beyond = np.maximum(estimate / unit - high / unit, low / unit - estimate / unit)
    extreme, worst = int(np.sum(beyond > FAR * width)), int(np.argmax(beyond))
    if not extreme:
        return None
    change = "leave `transform` out, or "
    if column.transform is None:
        change = "" if encoded.between.any() else "set `transform: rank`, or "
    far = float(beyond[worst] / width)
    found = int(rows[worst]), float(estimate[worst]), far
    return Extremes(column, (low, high), extreme, *found, change)


def _text(column: Column, x: float) -> str:
    if column.moments is None:
        return f"{x:.6g}"
    return column.moments.text(x if column.moment == "duration" else min(max(x, FIRST), LAST))


def cut_estimates(encoded: EncodedColumn, estimate: Array, kind: pa.DataType) -> int:
    """Return how many of a column's estimates (n,) its integer type is too small for.

    kind : the type of the column in the completed table, where such cells have its end
    """
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    is_number = encoded.column.numeric and encoded.column.moment is None
    if not is_number or not pa.types.is_integer(kind):
        return 0
    limits, nearest = np.iinfo(kind.to_pandas_dtype()), np.rint(estimate)
    return int(np.sum((nearest < float(limits.min)) | (nearest > float(limits.max))))


def cut_note(cut: Mapping[str, int]) -> list[str]:
    """Return a line on columns whose integer types are too small, by how many cells each."""
    names = [name for name, n in cut.items() if n]
    if not names:
        return []
    shown = ", ".join(f"'{name}'" for name in names[:MOST_NAMED])
    if len(names) > MOST_NAMED:
        shown += f" and {len(names) - MOST_NAMED} more"
    total = sum(cut.values())
    return [
        f"column{'s' if len(names) > 1 else ''} {shown}: {total} completed "
        f"{'cell lies' if total == 1 else 'cells lie'} beyond what the integer type of the column "
        "holds: the table has the nearest that it does; a wider one, as int64, keeps them whole"
    ]
