"""Whether other columns tell that few whole numbers are in an order, or mere codes.

A column y depends on x by its means over the levels of x. The part of them that a straight line
over the levels explains, of five levels or more a parabola, is large when the levels are in order,
and about d / (levels - 1) when they are named by chance, d being the degree of the curve:

    n r²           chi squared, d degrees of freedom, when y does not depend on x
    n (eta² - r²)  chi squared, levels - 1 - d

Columns of numbers enter by their ranks, others by indicators of their commonest levels.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from glfm_cli.guess.codes import number_codes
from glfm_cli.guess.profile import Profile
from glfm_cli.io.dialect import NUMBER
from glfm_cli.io.numerals import PLAIN, Numerals

Evidence = Literal["items", "alike", "order", "codes"]

ROWS = 4000  # that are looked at, evenly spaced
MOST_COLUMNS = 60
MOST_OTHERS = 200  # evenly spaced, that each column is compared with
MOST_LEVELS = 10  # of the column in question
MOST_BALANCED, BALANCED = 30, 0.9  # levels that have as many rows each, the least to the most
INDICATORS = 3  # of the levels of a column of words
CLEAR = 5.0  # standard deviations from which a dependence is one
ORDERED, UNORDERED = 0.75, 0.5  # shares of the dependence that the curve explains
BENDS = 5  # levels from which it is a parabola
ALIKE = 3  # columns of the same numbers from which they are answers to questions

Values = NDArray[np.float64]


def evidence_of(table: pa.Table, columns: Sequence[Profile]) -> dict[int, Evidence]:
    """Return what the table tells of its columns of few whole numbers, by place.

    "items" : several columns have the same numbers;  "alike" : so they do, and neither stand
    together nor have one name but for digits;  "order", "codes" : what others depend on
    """
    codes = [_codes(column) for column in columns]
    bare = [one.keep(~np.isin(one.numbers, of)) for one, of in zip(columns, codes, strict=True)]
    asked = [i for i, column in enumerate(bare) if _is_asked(column) or _is_balanced(column)]
    if not asked:
        return {}
    ranges = Counter(_range(bare[i]) for i in asked)
    rows = np.unique(np.linspace(0, table.num_rows - 1, min(ROWS, table.num_rows)).astype(int))
    places = sorted(set(asked) | set(range(min(len(columns), MOST_COLUMNS))))
    sample = {place: table.column(place).take(pa.array(rows)) for place in places}
    numbers = {}
    for i, column in sample.items():
        x = numbers_of(column, columns[i].written)
        numbers[i] = np.where(np.isin(x, codes[i]), np.nan, x)
    few = np.unique(np.linspace(0, len(places) - 1, min(MOST_OTHERS, len(places))).astype(int))
    compared = [places[i] for i in few]
    others = [(place, y) for place in compared for y in _seen(sample[place], numbers[place])]
    of = np.array([place for place, _ in others])
    seen = np.column_stack([y for _, y in others]) if others else np.empty((rows.size, 0))
    found: dict[int, Evidence] = {}
    for place in asked:
        lines, rest = _dependence(numbers[place], seen[:, of != place])
        share = lines / (lines + rest) if lines + rest > 0 else None
        if share is not None and share <= UNORDERED:
            found[place] = "codes"
        elif not _is_asked(bare[place]):
            continue
        elif ranges[_range(bare[place])] >= ALIKE:
            same = [i for i in asked if _range(bare[i]) == _range(bare[place])]
            found[place] = "items" if _are_items(place, same, columns) else "alike"
        elif share is not None and share >= ORDERED:
            found[place] = "order"
    return found


def _codes(column: Profile) -> Values:
    """Return the numbers of a column that stand for a missing cell, such as -9."""
    numbers = column.keep(column.is_number)
    return numbers.numbers[number_codes(numbers)] if numbers.n_distinct else numbers.numbers


def _are_items(place: int, same: Sequence[int], columns: Sequence[Profile]) -> bool:
    """Return whether columns of the same numbers, by place, stand together or share a stem."""
    stem = re.sub(r"\d+", "", columns[place].name)
    named = sum(re.sub(r"\d+", "", columns[i].name) == stem for i in same)
    starts = range(place - ALIKE + 1, place + 1)
    return named >= ALIKE or any({*range(i, i + ALIKE)} <= {*same} for i in starts)


def _range(column: Profile) -> tuple[float, float]:
    x = column.numbers
    return float(x.min()), float(x.max())


def _is_asked(column: Profile) -> bool:
    x = column.numbers[column.is_number]
    if not 3 <= x.size <= MOST_LEVELS or x.size < column.n_distinct - 2:
        return False
    return bool(np.all(x == np.floor(x)) and x.min() >= 0 and np.ptp(x) <= MOST_LEVELS)


def _is_balanced(column: Profile) -> bool:
    """Return whether whole numbers in uneven steps have as many rows each: samples of a panel."""
    x, counts = np.sort(column.numbers), column.counts
    if not 3 <= x.size <= MOST_BALANCED or not column.is_number.all() or x[0] < 0.0:
        return False
    uneven = np.unique(np.diff(x)).size > 1
    return bool(uneven and np.all(x == np.floor(x)) and counts.min() >= BALANCED * counts.max())


def numbers_of(column: pa.ChunkedArray, written: Numerals = PLAIN) -> Values:
    """Return cells as numbers, NaN where they are none.

    written : how a column of text writes them
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        text = pc.utf8_trim_whitespace(column)
        if written != PLAIN:
            text = pa.chunked_array([written.read(text.combine_chunks()).plain])
        is_number = pc.match_substring_regex(text, f"^(?:{NUMBER})$")
        text = pc.if_else(is_number, text, pa.scalar(None, text.type))
        column = pc.replace_substring_regex(text, r"^\+", "")
    elif not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        return np.full(len(column), np.nan)
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)


def _seen(column: pa.ChunkedArray, x: Values) -> list[Values]:
    """Return a column as others see it: ranks of numbers, or indicators of levels."""
    there = np.isfinite(x)
    if there.mean() > 0.5:
        ranks = np.full(x.size, np.nan)
        ranks[there] = np.unique(x[there], return_inverse=True)[1]
        order = np.cumsum(np.bincount(ranks[there].astype(int)))
        ranks[there] = order[ranks[there].astype(int)]
        return [ranks]
    texts = column.cast(pa.string()).to_pylist() if _is_words(column.type) else []
    common = Counter(text for text in texts if text).most_common(INDICATORS)
    if len(set(texts)) > len(texts) / 4:
        return []
    return [
        np.array([np.nan if not text else float(text == level) for text in texts])
        for level, _ in common
    ]


def _is_words(kind: pa.DataType) -> bool:
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    text = pa.types.is_string(value) or pa.types.is_large_string(value)
    return bool(text or pa.types.is_boolean(value))


def _dependence(x: Values, y: Values) -> tuple[float, float]:
    """Return how much more columns y depend on x than by chance: by curves, and otherwise.

    x (rows), y (rows x columns, whole numbers, so that sums are exact), NaN where unseen. Columns
    of fewer than 20 rows in common, or of a dependence that may be chance, add nothing.
    """
    there = np.isfinite(x)
    levels, code = np.unique(x[there], return_inverse=True)
    is_level = (code == np.arange(levels.size)[:, None]).astype(np.float64)
    y = y[there]
    is_seen = np.isfinite(y)
    y = np.where(is_seen, y, 0.0)
    counts, sums, n = is_level @ is_seen, is_level @ y, is_seen.sum(axis=0)
    total = n * np.sum(y**2, axis=0) - y.sum(axis=0) ** 2
    few = np.count_nonzero(counts, axis=0)  # levels that have rows in common with y
    use = (n >= 20) & (total > 0) & (few > 1)
    counts, sums, n, few = counts[:, use], sums[:, use], n[use], few[use]
    total = total[use] / n
    means = np.where(counts > 0, sums / np.maximum(counts, 1), 0.0) - sums.sum(axis=0) / n
    eta = np.sum(counts * means**2, axis=0) / total
    # Least squares on the means of the levels, each of the weight of its rows, by a line and, at
    # right angles to it, a parabola.
    t = np.cumsum(counts > 0, axis=0) / few
    t -= np.sum(counts * t, axis=0) / n
    t2 = t**2 - np.sum(counts * t**2, axis=0) / n
    t2 -= np.sum(counts * t**3, axis=0) / np.sum(counts * t**2, axis=0) * t
    line = np.sum(counts * t * means, axis=0) ** 2 / np.sum(counts * t**2, axis=0)
    bent = np.flatnonzero(few >= BENDS)
    square = np.sum(counts * t2**2, axis=0)[bent]
    line[bent] += np.sum(counts * t2 * means, axis=0)[bent] ** 2 / square
    line /= total
    degrees, bends = few - 1, np.where(few >= BENDS, 2, 1)
    depends = n * eta >= degrees + CLEAR * np.sqrt(2.0 * degrees)
    along = np.maximum(n * line - bends, 0.0)[depends]
    beside = np.maximum(n * (eta - line) - (degrees - bends), 0.0)[depends]
    return float(along.sum()), float(beside.sum())
