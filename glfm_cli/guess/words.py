"""Guess the type of a column whose values, gaps aside, are not all numbers."""

from __future__ import annotations

import numpy as np

import glfm_cli.guess.names as names
import glfm_cli.guess.scales as scales
from glfm_cli.guess.profile import Profile
from glfm_cli.guess.verdict import MAX_LEVELS, Verdict, ignore, many_levels
from glfm_cli.schema import Column, ColumnType, Role

FEWEST_ONCE = 10  # sentences in one row each, from which a column is free text
_CODE_LIKE = r"^[\w./:-]*\d[\w./:-]*$"


def judge_words(column: Profile) -> Verdict:
    """Return the guess for at least two distinct texts."""
    name = column.name
    if column.all_different and (names.is_id(name) or column.matches(_CODE_LIKE).all()):
        why = "and the name is an id's" if names.is_id(name) else "and each is a code"
        return Verdict(Column(name, role=Role.ID), f"every value is different, {why}")
    if _is_repeated_id(column):
        return Verdict(
            Column(name, role=Role.ID),
            f"the name is an id's; {column.n_distinct} different values, some in several rows",
        )
    if column.n_distinct == column.n_observed:
        return ignore(name, "text that is different in every row")
    if _is_free_text(column):
        return ignore(name, "free text, of which most occurs once")
    if problem := many_levels(column):
        return ignore(name, f"text; {problem}")
    return _levels(column)


def _is_free_text(column: Profile) -> bool:
    """Return whether texts are sentences, most of which stand in one row alone."""
    once = column.counts == 1
    lengths = [len(word.split()) for word in column.words()]
    return once.sum() >= FEWEST_ONCE and once.mean() >= 0.6 and float(np.mean(lengths)) >= 3.0


def _is_repeated_id(column: Profile) -> bool:
    many = column.n_distinct > MAX_LEVELS // 2
    return many and names.is_id(column.name) and bool(column.matches(_CODE_LIKE).all())


def _levels(column: Profile) -> Verdict:
    name, words = column.name, column.words()
    if len(words) == 2:
        levels = scales.order(words) or column.in_order()
        if scales.is_yes_no(words):
            return _categorical(name, levels, "yes or no")
        return _categorical(name, levels, "two different texts")
    ordered = scales.order(words)
    if ordered is not None:
        reason = f"{len(words)} texts that are steps of a scale; check their order"
        return Verdict(Column(name, type=ColumnType.ORDINAL, levels=ordered), reason)
    reason = f"{len(words)} different texts"
    if column.is_number.all():
        reason = f"{len(words)} different codes, with zeros in front"
    if len({" ".join(word.casefold().split()) for word in words}) < len(words):
        reason += "; some differ only in capitals or spaces, so the same thing may count twice"
    return _categorical(name, column.in_order(), reason)


def _categorical(name: str, levels: tuple[str, ...], reason: str) -> Verdict:
    return Verdict(Column(name, type=ColumnType.CATEGORICAL, levels=levels), reason)
