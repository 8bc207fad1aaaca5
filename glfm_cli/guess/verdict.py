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


def many_levels(column: Profile) -> str | None:
    """Return why a column has too many levels to learn from, None when it has not."""
    distinct, observed = column.n_distinct, column.n_observed
    if distinct > MAX_LEVELS:
        return f"{distinct} different ones are too many levels"
    if distinct > FEW_LEVELS and 2 * distinct > observed:
        return f"{distinct} different ones in {observed} cells are too many levels"
    return None
