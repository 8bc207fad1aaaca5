"""A trace in one line of text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

BLOCKS = "▁▂▃▄▅▆▇█"
WIDTH = 32
PARTS = 6


def means(values: Sequence[float], parts: int) -> list[float]:
    """Return the means of at most `parts` successive stretches of about equal length."""
    n = min(parts, len(values))
    cuts = [round(i * len(values) / n) for i in range(n + 1)] if n else []
    return [math.fsum(values[a:b]) / (b - a) for a, b in pairwise(cuts)]


def sparkline(values: Sequence[float], low: float, high: float) -> str:
    """Return the trace as blocks whose height runs from `low` to `high`; `?` where not finite."""
    if not all(map(math.isfinite, (low, high, *values))):
        return "?" * min(WIDTH, len(values))
    if not high > low:
        return BLOCKS[3] * min(WIDTH, len(values))
    top = len(BLOCKS) - 1
    # Halved, so that the range of very large numbers does not overflow.
    share = [(value / 2 - low / 2) / (high / 2 - low / 2) for value in means(values, WIDTH)]
    return "".join(BLOCKS[min(top, max(0, round(top * one)))] for one in share)


def numbers(values: Sequence[float]) -> str:
    """Return the means of a few successive stretches, for readers that cannot show blocks."""
    if not all(map(math.isfinite, values)):
        return "not finite"
    return " ".join(f"{value:>10.5g}" for value in means(values, PARTS))
