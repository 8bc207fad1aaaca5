"""Estimates so far outside what is observed that a user should look at them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from glfm_cli.completion.result import ColumnCompletion

FAR = 3.0  # ranges of the observed cells, beyond which an estimate is extreme


def extreme_estimates(columns: Iterable[ColumnCompletion]) -> Iterator[str]:
    """Yield a line for each column of numbers with estimates far below or above observed cells."""
    for part in columns:
        column, seen = part.encoded.column, part.encoded.typical
        if part.encoded.levels or not part.estimate.size or np.unique(seen).size < 2:
            continue
        low, high = float(seen.min()), float(seen.max())
        beyond = np.maximum(part.estimate - high, low - part.estimate)
        extreme = int(np.sum(beyond > FAR * (high - low)))
        if extreme:
            worst = int(np.argmax(beyond))
            cells = "cell is" if extreme == 1 else "cells are"
            change = "leave `transform` out, or "
            if column.transform is None:
                change = "" if part.encoded.between.any() else "set `transform: rank`, or "
            yield (
                f"column '{column.name}': {extreme} completed {cells} far outside the observed "
                f"{low:.6g} to {high:.6g} (row {part.marginal.rows[worst] + 1}: "
                f"{part.estimate[worst]:.6g}); {change}set `bounds`"
            )
