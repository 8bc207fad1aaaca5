"""Guess the type of a column whose file has a code for each of its labels: SPSS and Stata."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import glfm_cli.guess.codes as codes
import glfm_cli.guess.scales as scales
from glfm_cli.guess.profile import Kind, Profile
from glfm_cli.guess.verdict import Verdict, ignore, many_levels
from glfm_cli.schema import Column, ColumnType

LEAST_BEYOND = 7  # the smallest code that means no answer without a code left out before it


def is_labelled(column: Profile) -> bool:
    """Return whether the file has a code for each value of a column, none of them a number."""
    if column.kind is not Kind.TEXT or not column.declared.codes:
        return False
    known = {text for text, _ in column.declared.codes}
    return not column.is_number.any() and known.issuperset(column.words())


def unanswered(column: Profile) -> NDArray[np.bool_]:
    """Return which labels say that there is no answer, by word and by a code beyond all others."""
    x = _codes(column)
    said = np.array([codes.is_unanswered(word) for word in column.words()])
    if said.sum() > column.n_distinct - 2:
        return np.zeros(column.n_distinct, dtype=bool)
    low, high = x[~said].min(), x[~said].max()
    graded = scales.are_graded(column.keep(~said).words())
    above = (x > high) & ((x > high + 1) | (x >= LEAST_BEYOND) | graded)
    below = (x < low) & ((x < 0) | graded)
    return said & (above | below)


def judge_labelled(column: Profile) -> Verdict:
    """Return the guess for at least two labels: levels in the order of their codes."""
    name, words = column.name, column.words()
    if problem := many_levels(column):
        return ignore(name, f"labels; {problem}")
    x = np.sort(_codes(column))
    place = dict(column.declared.codes)
    levels = tuple(sorted(words, key=lambda word: place[word]))
    label = f"{len(words)} labels"
    if column.order is not None:
        reason = "the file declares these levels and their order"
        return Verdict(Column(name, type=ColumnType.ORDINAL, levels=levels), reason)
    known = scales.order(words) if len(words) > 2 else None
    if known is not None and known not in (levels, levels[::-1]):
        reason = f"{label} that are steps of a scale, which their codes do not follow"
        return Verdict(Column(name, type=ColumnType.ORDINAL, levels=known), reason)
    graded = np.all(np.diff(x) == 1) and scales.are_graded(words)
    if known is not None or graded:
        reason = f"{label} that are steps of a scale, in the order of their codes"
        return Verdict(Column(name, type=ColumnType.ORDINAL, levels=levels), reason)
    reason = f"{label}, in the order of their codes"
    return Verdict(Column(name, type=ColumnType.CATEGORICAL, levels=levels), reason)


def _codes(column: Profile) -> NDArray[np.float64]:
    place = dict(column.declared.codes)
    return np.array([place[word] for word in column.words()])
