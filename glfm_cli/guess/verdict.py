"""What was guessed of one column, and the judgements shared by numbers and words."""

from __future__ import annotations

from typing import NamedTuple

from glfm_cli.guess.profile import Profile
from glfm_cli.schema import Column, Role

MAX_LEVELS = 100
FEW_LEVELS = 10  # levels that need no second row each


class Verdict(NamedTuple):
    """The guess for one column and why."""

    column: Column
    reason: str


def ignore(name: str, reason: str) -> Verdict:
    """Return the verdict that leaves a column out."""
    return Verdict(Column(name, role=Role.IGNORE), f"ignored: {reason}")


def repeated_id(column: Profile) -> Verdict:
    """Return the verdict on an id's name whose values come again, with how they may be a group."""
    why = f"the name is an id's; {column.n_distinct} different values"
    if column.n_distinct < column.n_observed:
        why += ", some in several rows"
    return Verdict(Column(column.name, role=Role.ID), why + or_group(column))


def or_group(column: Profile) -> str:
    """Return how a column may be a group, where it may."""
    if not may_be_group(column):
        return ""
    return "; `role: group` if rows of one value belong together, as visits of a patient do"


def may_be_group(column: Profile) -> bool:
    """Return whether values are there in every row, and most rows have others of their value."""
    return column.n_observed == column.n_rows and 4 * column.n_distinct <= 3 * column.n_rows


def many_levels(column: Profile) -> str | None:
    """Return why a column has too many levels to learn from, None when it has not."""
    distinct, observed = column.n_distinct, column.n_observed
    if distinct > MAX_LEVELS:
        return f"{distinct} different ones are too many levels"
    if distinct > FEW_LEVELS and 2 * distinct > observed:
        return f"{distinct} different ones in {observed} cells are too many levels"
    return None
