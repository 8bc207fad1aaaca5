"""Which columns have no value in all rows where another says so: questions that were not asked."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from math import lgamma
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from glfm_cli.schema.phrases import is_number
from glfm_cli.schema.text import quoted, scalar

LEAST_ROWS = 20  # without a value, none of which has one
LEAST_MERGED = 3  # values above empty cells
LEAST_GROUPS = 10  # of several rows, of which one has a value
CHANCE = 1e-6  # that so many rows have none if they have one as often as the others do
MOST_LISTED = 5
MOST_ROWS = 20_000  # that are looked at first


class Filter(NamedTuple):
    """A column that may say which rows were asked.

    levels : its values, or `0` and `> 0`;  rows : which of them each row has, -1 of none (n,)
    """

    name: str
    levels: list[str]
    rows: NDArray[np.int64]
    is_number: bool = False


def at_zero(name: str, texts: pa.StringArray, rows: NDArray[np.int64]) -> Filter:
    """Return the filter that a column of numbers from 0 is by being 0 or more."""
    above = np.ones(len(texts) + 1, dtype=bool)
    # Of hundreds of thousands of texts hardly one has no other digit than 0.
    other = pc.match_substring_regex(texts, "[1-9]").to_numpy(zero_copy_only=False)
    for i in np.flatnonzero(~other):
        text = texts[int(i)].as_py()
        above[i] = not is_number(text) or float(text) != 0.0
    return Filter(name, ["0", "> 0"], np.where(rows < 0, -1, above[rows]), True)


def skipped(there: NDArray[np.bool_], filters: Sequence[Filter]) -> str | None:
    """Return the `only_if` of a column that has a value in no row of some levels of another.

    there : (n,) which rows have a value
    """
    if (~there).sum() < LEAST_ROWS:
        return None
    step = -(-there.size // MOST_ROWS)
    found = []
    for place, one in enumerate(filters):
        n, asked = _not_asked(there[::step], one.rows[::step], len(one.levels))
        if n and step > 1:
            n, asked = _not_asked(there, one.rows, len(one.levels))
        if n:  # of filters that say as much the one of fewest levels
            found.append((n, -len(one.levels), -place, asked))
    if not found:
        return None
    n, _, place, asked = best = max(found, key=lambda one: one[:3])
    one = filters[-place]
    # A question inside another, such as why a crime that is known was not reported, says both.
    gone_rows = (one.rows >= 0) & ~asked[one.rows]
    found = [other for other in found if np.all(filters[-other[2]].rows[gone_rows] < 0)]
    n, _, place, asked = max(found, key=lambda one: one[:3], default=best)
    one = filters[-place]
    kept = [level for level, yes in zip(one.levels, asked, strict=True) if yes]
    gone = [level for level, yes in zip(one.levels, asked, strict=True) if not yes]
    shown = " or ".join(map(scalar, gone[:MOST_LISTED])) + ", ..." * (len(gone) > MOST_LISTED)
    return (
        f"no value in all {n} rows where {one.name} is {shown}; if these were not asked: "
        f"only_if: {_condition(one, kept, gone)}"
    )


def is_known_once(there: NDArray[np.bool_], group: NDArray[np.int64]) -> bool:
    """Return whether a column has a value in one row of most groups, and in more rows of none.

    Such as a date of birth that is asked at the first visit. Groups of one row do not count.

    there : (n,) which rows have a value;  group : (n,) of which group they are, from 0
    """
    several = np.bincount(group) > 1
    known = np.bincount(group, weights=there)[several]
    return bool(known.sum() >= max(LEAST_GROUPS, several.sum() / 2) and known.max() == 1)


def is_merged(there: NDArray[np.bool_]) -> bool:
    """Return whether values stand as spreadsheets write merged cells: each above empty ones.

    there : (n,) which rows have a value
    """
    rows = np.flatnonzero(np.append(there, True))
    return rows.size > LEAST_MERGED and rows[0] == 0 and bool(np.diff(rows).min() > 1)


def _not_asked(
    there: NDArray[np.bool_], levels: NDArray[np.int64], n_levels: int
) -> tuple[int, NDArray[np.bool_]]:
    """Return how many rows a filter says were not asked, 0 if it may be chance; its other levels.

    levels : (n,) of the rows, -1 where not known
    """
    rows, hits = (
        np.bincount(levels[mask], minlength=n_levels)
        for mask in (levels >= 0, (levels >= 0) & there)
    )
    asked = (hits > 0) | (rows == 0)
    n, rest = int(rows[~asked].sum()), int(rows[asked].sum())
    if n < LEAST_ROWS or rest == 0:
        return 0, asked
    # Of many levels of few rows chance leaves some without a value: any so many might be these.
    empty, others = int((~asked).sum()), int(asked.sum())
    choices = lgamma(empty + others + 1) - lgamma(empty + 1) - lgamma(others + 1)
    missing = max(1.0 - hits.sum() / rest, np.finfo(float).tiny)
    return n if n * np.log(missing) + choices < np.log(CHANCE) else 0, asked


def _condition(one: Filter, kept: Sequence[str], gone: Sequence[str]) -> str:
    name = one.name if one.name.isidentifier() else f"`{one.name}`"
    if one.is_number:
        return quoted(f"{name} > 0")
    few, how = (gone, ("!=", "not in")) if len(gone) < len(kept) else (kept, ("==", "in"))
    texts = [json.dumps(level, ensure_ascii=False) for level in few]
    condition = f"{name} {how[0]} {texts[0]}"
    if len(few) > 1:
        condition = f"{name} {how[1]} [{', '.join(texts)}]"
    return condition if re.fullmatch(r'\w+ [!=]= "[\w ]+"', condition) else quoted(condition)
