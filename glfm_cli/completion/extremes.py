"""Estimates so far outside what is observed that a user should look at them."""

from __future__ import annotations

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.encoding import EncodedColumn

FAR = 3.0  # ranges of the observed cells, beyond which an estimate is extreme


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
