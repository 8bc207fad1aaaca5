"""Estimates that a user should look at: far outside what is observed, or beyond their type."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.encoding import EncodedColumn

FAR = 3.0  # ranges of the observed cells, beyond which an estimate is extreme
MOST_NAMED = 3  # columns in one line


def extreme_estimates(encoded: EncodedColumn, estimate: Array, rows: Array) -> list[str]:
    """Return a line where a column's estimates (n,) are far below or above its observed cells.

    rows : (n,) int; where the estimates are
    """
    column, seen = encoded.column, encoded.typical
    if encoded.levels or not estimate.size or np.unique(seen).size < 2:
        return []
    low, high = float(seen.min()), float(seen.max())
    unit = max(abs(low), abs(high))  # no difference of doubles overflows in it
    beyond = np.maximum(estimate / unit - high / unit, low / unit - estimate / unit)
    extreme = int(np.sum(beyond > FAR * (high / unit - low / unit)))
    if not extreme:
        return []
    worst = int(np.argmax(beyond))
    cells = "cell is" if extreme == 1 else "cells are"
    change = "leave `transform` out, or "
    if column.transform is None:
        change = "" if encoded.between.any() else "set `transform: rank`, or "
    return [
        f"column '{column.name}': {extreme} completed {cells} far outside the observed "
        f"{low:.6g} to {high:.6g} (row {rows[worst] + 1}: {estimate[worst]:.6g}); "
        f"{change}set `bounds`"
    ]


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
