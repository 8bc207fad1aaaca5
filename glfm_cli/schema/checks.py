"""Whether the parts of a column, as a types file gives them, go together."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

from glfm_cli.errors import SchemaError
from glfm_cli.schema.columns import Column, Role, Transform
from glfm_cli.schema.phrases import is_number, listed
from glfm_cli.schema.types import COLUMN_TYPES

Refusal = Callable[..., SchemaError]  # makes the error that names file and column

_OF_DATES = (None, Transform.NONE, Transform.RANK)
_LEAST = {Transform.LOG: 0.0, Transform.LOG1P: -1.0, Transform.SQRT: 0.0}


def check_column(column: Column, error: Refusal) -> None:
    """Raise SchemaError when the parts of a column contradict one another."""
    _check_belongs(column, error)
    if column.binomial and column.trials is None:
        raise error(
            "a binomial column needs `trials`",
            expected="the name of the column that holds the number of trials",
            hint="For example {type: binomial, trials: at_bats}.",
        )
    if column.absent is not None and not (column.integral and column.role is Role.VALUE):
        raise error(
            "`absent: zero` is only for counts of role value",
            value="a column without a type" if column.type is None else f"type {column.type}",
            expected="type count",
            hint="A rating or measurement that is not listed is unknown, not zero: leave "
            "`absent` out.",
        )
    if column.trials is not None and column.trials == column.name:
        raise error("`trials` names the column itself", expected="another column")
    _check_numerals(column, error)
    _check_moments(column, error)
    _check_censored(column, error)
    _check_missingness(column, error)
    _check_depends(column, error)
    _check_atom(column, error)
    codes = {code.text for code in column.missing}
    for level in column.levels or ():
        if level in codes:
            raise error(
                f"'{level}' is both a level and a missing code",
                hint=f"Remove it from `levels`, or give '{column.name}' its own `missing` list.",
            )
    for text, level in column.aliases:
        if column.levels is not None and level not in column.levels:
            raise error("`aliases`", value=f"'{level}'", expected=listed(column.levels))
        if text in (column.levels or ()) or text in codes:
            what = "a missing code" if text in codes else "a level"
            raise error(f"'{text}' is {what} and stands in `aliases`", expected="one of the two")
    _check_support(column, error)


def _check_numerals(column: Column, error: Refusal) -> None:
    """Raise SchemaError when no number could be written as the column says."""
    if column.thousands is not None and column.thousands == (column.decimal or "."):
        other = "," if column.thousands == "." else "."
        raise error(
            "`decimal` and `thousands` are the same character",
            value=f'"{column.thousands}"',
            hint=f'Write `decimal: "{other}"` beside `thousands: "{column.thousands}"`.',
        )
    if column.percent and column.unit is not None:
        raise error(
            "`percent` and `unit` are both given",
            expected="one of them",
            hint="Percentages have the percent sign as their unit: leave out `unit`.",
        )


def _check_moments(column: Column, error: Refusal) -> None:
    """Raise SchemaError when dates or durations are given what only numbers have."""
    if column.seen_as and column.moment != "date":
        raise error("`as` does not go with this type", expected="type date")
    if column.moment is None:
        if column.format is not None:
            raise error("`format` does not go with this type", expected="type date")
        return
    if column.moment == "duration" and column.format is not None:
        raise error("`format` does not go with type duration", expected="type date")
    given = {
        "decimal": column.decimal is not None,
        "thousands": column.thousands is not None,
        "percent": column.percent,
        "reflect": column.reflect is not None,
        "transform": column.moment == "date" and column.transform not in _OF_DATES,
    }
    for key, is_given in given.items():
        if is_given:
            problem = f"`{key}` does not go with type {column.moment}"
            raise error(problem, hint=f"Leave out `{key}`.")


def _check_censored(column: Column, error: Refusal) -> None:
    """Raise SchemaError when limits of detection leave no value between them, or do not belong."""
    below, above = column.censored_below, column.censored_above
    given = {
        "censored_below": below is not None,
        "censored_above": above is not None,
        "impute": column.impute_censored,
    }
    for key, is_given in given.items():
        if is_given and (not column.numeric or column.moment is not None):
            problem = f"`{key}` is only for numeric columns"
            raise error(problem, expected="type real, positive or count")
        if is_given and column.role is Role.VALUE:
            raise error(
                f"`{key}` does not go with role value, as values of pairs can be no intervals",
                hint="List cells that are no numbers under `missing:`.",
            )
    if below is None and above is None:
        return
    lower, upper = column.bounds
    least = 0.0 if column.positive or column.integral else -math.inf
    ends = [max(least, -math.inf if lower is None else lower), below, above]
    ends.append(math.inf if upper is None else upper)
    limits = [end for end in ends if end is not None]
    if any(b <= a for a, b in pairwise(limits)):
        shown = " and ".join(f"{x:g}" for x in (below, above) if x is not None)
        raise error(
            "limits of detection leave no number between them, or none that the column can have",
            value=shown,
            expected=f"`censored_below` and then `censored_above`, in {ends[0]:g} to {ends[-1]:g}",
        )


def _check_missingness(column: Column, error: Refusal) -> None:
    """Raise SchemaError when a column cannot be missing by its value."""
    if column.missingness is None:
        return
    kind = column.type
    whole = kind is None or kind.values != "numbers" or column.integral
    if whole or column.moment is not None:
        raise error(
            "`missingness: probit` is only for types real and positive",
            value="a column without a type" if kind is None else f"type {column.moment or kind}",
            hint="For whole numbers as large as intensities write `type: positive`.",
        )
    given = {
        "role: value": column.role is Role.VALUE,
        "atom": column.atom not in (None, "none"),
        "formula": column.formula is not None,
        "only_if": column.only_if is not None,
        "less_than": column.less_than is not None,
        "parts_of": column.parts_of is not None,
        "transform: rank": column.transform is Transform.RANK,
    }
    for key, is_given in given.items():
        if is_given:
            raise error(f"`{key}` does not go with `missingness: probit`", expected="one of them")


def _check_depends(column: Column, error: Refusal) -> None:
    """Raise SchemaError when a column cannot depend on others as it should."""
    for key, other in (("formula", column.formula), ("parts_of", column.parts_of)):
        if other is not None and (not column.numeric or column.moment is not None):
            raise error(
                f"`{key}` is only for numeric columns",
                expected="type real, positive or count",
                hint="What lies between two dates can follow from them, in days: "
                "`stay: {type: count, formula: end - start}`."
                if column.moment
                else None,
            )
    if column.less_than is not None and not column.numeric:
        raise error("`less_than` is only for numbers, dates and durations")
    if column.only_if is not None and not (column.numeric or column.levelled):
        raise error("`only_if` needs a column with a type")
    if column.otherwise is None:
        return
    if column.only_if is None:
        raise error("`otherwise` needs `only_if`")
    if column.levels is not None and column.otherwise not in column.levels:
        raise error("`otherwise`", value=f"'{column.otherwise}'", expected=listed(column.levels))
    if column.numeric:
        _check_otherwise(column, column.otherwise, error)


def _check_otherwise(column: Column, text: str, error: Refusal) -> None:
    """Raise SchemaError when no cell of a numeric column could be what `otherwise` says."""
    if not is_number(text):
        raise error("`otherwise`", value=f"'{text}'", expected="a number")
    codes = [float(code.text) for code in column.missing if is_number(code.text)]
    lower, upper = column.bounds
    least = 0.0 if column.positive or column.integral else -math.inf
    least = max(least, -math.inf if lower is None else lower)
    most = math.inf if upper is None else upper
    x = float(text)
    if x in codes or not least <= x <= most or (column.integral and not x.is_integer()):
        raise error(
            "`otherwise`",
            value=f"'{text}'",
            expected="a value that the column can hold, and no missing code",
            hint=f"If '{text}' says in the table that there is none, list it under `missing:` and "
            "leave `otherwise` out: such cells stay.",
        )


def _check_atom(column: Column, error: Refusal) -> None:
    """Raise SchemaError when a column cannot have the atom that it is given."""
    if column.atom is None:
        return
    censored = (column.censored_below, column.censored_above) != (None, None)
    if not column.numeric or column.integral or censored:
        raise error(
            "`atom` is only for types real and positive, without `censored_below` or `_above`",
            hint="Leave it out: counts and levels have probabilities of their own anyway.",
        )
    if column.positive and column.atom not in (0.0, "none"):
        raise error(
            "`atom`",
            value=f"{column.atom:g}",
            expected="0 or none (type positive)",
            hint=f"For a ceiling or floor: {{type: real, atom: {column.atom:g}}}, with `bounds`.",
        )


def _check_belongs(column: Column, error: Refusal) -> None:
    """Raise SchemaError for a key that this type of column has no use for."""
    kind = column.type
    has_bounds = column.bounds != (None, None)
    for key, present, values in (
        ("levels", column.levels is not None, "levels"),
        ("aliases", bool(column.aliases), "levels"),
        ("transform", column.transform is not None, "numbers"),
        ("reflect", column.reflect is not None, "numbers"),
        ("bounds", has_bounds, "numbers"),
        ("decimal", column.decimal is not None, "numbers"),
        ("thousands", column.thousands is not None, "numbers"),
        ("percent", column.percent, "numbers"),
        ("trials", column.trials is not None, "successes"),
    ):
        if present and (kind is None or kind.values != values):
            owners = listed(one for one in COLUMN_TYPES.values() if one.values == values)
            raise error(
                f"`{key}` does not go with "
                + ("a column without a type" if kind is None else f"type {kind}"),
                expected=f"type {owners}",
            )
    if column.reflect is not None and column.transform in (None, Transform.NONE, Transform.RANK):
        raise error(
            "`reflect` needs a transform to act on",
            expected="transform log, log1p, logit or sqrt",
            hint=f"`transform: log` with `reflect: {column.reflect:g}` "
            f"sees a value x as log({column.reflect:g} - x).",
        )


def _check_support(column: Column, error: Refusal) -> None:
    """Raise SchemaError when bounds leave no value that type and transform can hold."""
    lower, upper = column.bounds
    if column.reflect is not None:
        flipped = (upper, lower)
        lower, upper = (None if b is None else column.reflect - b for b in flipped)
    why = f"`transform: {column.transform}`"
    if column.transform in _LEAST:
        least = _LEAST[column.transform]
    elif column.positive or column.integral:
        why, least = f"type {column.type}", 0.0
    else:
        return
    if (lower is not None and lower < least) or (upper is not None and upper <= least):
        limits = ", ".join("null" if b is None else f"{b:g}" for b in column.bounds)
        expected = f"limits from {least:g} up"
        if column.reflect is not None:
            expected += f" after `reflect: {column.reflect:g}`"
        raise error(f"`bounds` do not fit {why}", value=f"[{limits}]", expected=expected)
