"""Cells that are known only to lie between two numbers: `<0.5`, `>100`, `30-39`, `5+`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from glfm_cli.arrays import Array
from glfm_cli.encoding.source import Source
from glfm_cli.encoding.support import MAX_EXACT, Interval
from glfm_cli.io.numerals import INTERVAL, Numerals, parse_interval

_HINT = "Write what is known as <0.5, >100, 30-39 or 5+, or list the text under `missing:`."


def read_intervals(
    source: Source, present: pa.Array, numerals: Numerals
) -> tuple[pa.Array, Array | None]:
    """Return the texts that are no intervals, and the ends (n, 2) of those that are.

    Of whole numbers the ends are whole, and `<5` ends at 4. NaN where a cell is none, None where
    all are none.

    Raises TableError: the second end lies below the first.
    """
    likely = pc.fill_null(pc.match_substring_regex(present, INTERVAL), False)
    if not pc.any(likely).as_py():
        return present, None
    coded = pc.dictionary_encode(present.filter(likely))
    parts = [parse_interval(text) for text in coded.dictionary.to_pylist()]
    ends = np.full((len(parts), 2), np.nan)
    texts = [[part.low, part.high] if part else [None, None] for part in parts]
    flat = pa.array([text for pair in texts for text in pair], pa.string())
    numbers = numerals.read(flat).plain.cast(pa.float64())
    found = np.array(numbers.to_numpy(zero_copy_only=False), dtype=np.float64).reshape(-1, 2)
    for i, part in enumerate(parts):
        unread = part is None or any(
            text is not None and np.isnan(end) for text, end in zip(texts[i], found[i], strict=True)
        )
        if part is not None and not unread:
            low, high = np.where(np.isnan(found[i]), [-np.inf, np.inf], found[i])
            ends[i] = _whole(low, high, part.strict) if source.column.integral else (low, high)
    rows = np.flatnonzero(likely)
    of_row = np.full((len(present), 2), np.nan)
    of_row[rows] = ends[coded.indices.to_numpy(zero_copy_only=False)]
    are = ~np.isnan(of_row[:, 0])
    if (wrong := of_row[:, 0] > of_row[:, 1]).any():
        raise source.cell_error(wrong, "the smaller number first, or one that can be", _HINT)
    rest = pc.if_else(pa.array(are), pa.scalar(None, present.type), present)
    return rest, of_row if are.any() else None


def with_limits(source: Source, x: Array, ends: Array | None) -> Array | None:
    """Return the ends of intervals, those of numbers beyond the column's limits among them."""
    column = source.column
    below, above = column.censored_below, column.censored_above
    for low, high in ((-np.inf, below), (above, np.inf)):
        if low is None or high is None:
            continue
        strict = low == -np.inf
        beyond = x < high if strict else x >= low
        if beyond.any():
            ends = np.full((x.size, 2), np.nan) if ends is None else ends
            ends[beyond] = _whole(low, high, strict) if column.integral else (low, high)
    return ends


def clip_ends(source: Source, ends: Array, allowed: Interval) -> Array:
    """Return the ends inside the values that a column can have.

    Raises TableError: an interval holds none of these.
    """
    clipped = np.clip(ends, allowed.lower, allowed.upper)
    wide = ends[:, 0] < ends[:, 1]
    outside = (ends[:, 1] < allowed.lower) | (ends[:, 0] > allowed.upper)
    # A single number at the end of what can be is none of those that the cell could have.
    empty = wide & (clipped[:, 0] == clipped[:, 1]) & (not source.column.integral)
    if (bad := outside | empty).any():
        lower, upper = allowed.lower, allowed.upper
        raise source.cell_error(
            bad, f"an interval that reaches into {lower:g} to {upper:g}, as the column does", _HINT
        )
    clipped[clipped == MAX_EXACT] = np.inf
    return clipped


def _whole(low: float, high: float, strict: bool) -> tuple[float, float]:
    """Return the least and the largest whole number between two ends, or strictly so."""
    if strict:
        return float(np.floor(low) + 1.0), float(np.ceil(high) - 1.0)
    return float(np.ceil(low)), float(np.floor(high))
