"""Whether what the types file says of columns that depend on columns can be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from glfm_cli.errors import SchemaError
from glfm_cli.schema.columns import Column
from glfm_cli.schema.formula import parse_formula
from glfm_cli.schema.phrases import did_you_mean


def check_relations(columns: Sequence[Column], file: str | None) -> None:
    """Raise SchemaError when a formula or condition names what is not there, or goes in a circle.

    columns : all of a table
    """
    known = {column.name: column for column in columns}
    needs: dict[str, tuple[str, ...]] = {}
    formulas = formulas_of(columns)
    for column in columns:
        text, only_if = formulas.get(column.name), column.only_if
        for key, names in (
            ("formula", parse_formula(column.formula).names if column.formula else ()),
            ("only_if", parse_formula(only_if).names if only_if else ()),
            ("less_than", (column.less_than,) if column.less_than else ()),
            ("parts_of", (column.parts_of,) if column.parts_of else ()),
        ):
            _check_names(column, key, names, known, file)
        if text is not None:
            needs[column.name] = parse_formula(text).names
            if column.formula is not None and text != column.formula:
                raise SchemaError(
                    "the column has a `formula`, and others are `parts_of` it",
                    file=file,
                    column=column.name,
                    hint="Leave out one of them.",
                )
    larger = {c.name: (c.less_than,) for c in columns if c.less_than is not None}
    conditions = {c.name: parse_formula(c.only_if).names for c in columns if c.only_if is not None}
    itself = "Remove one of them: a column cannot follow from itself."
    for named, sign, problem, hint in (
        (larger, "<", "columns are less than one another in a circle", "Remove one `less_than`."),
        (needs, "->", "the formulas go in a circle", itself),
        (conditions, "->", "the conditions go in a circle", itself),
    ):
        if (circle := _circle(named)) is not None:
            raise SchemaError(
                problem,
                file=file,
                column=circle[0],
                value=f" {sign} ".join(circle),
                hint=hint,
            )


def formulas_of(columns: Sequence[Column]) -> dict[str, str]:
    """Return what columns follow from: their formulas, or the sums of their parts."""
    parts: dict[str, list[str]] = {}
    for one in columns:
        if one.parts_of is not None:
            parts.setdefault(one.parts_of, []).append(f"`{one.name}`")
    sums = {name: " + ".join(names) for name, names in parts.items()}
    texts = ((one.name, sums.get(one.name, one.formula)) for one in columns)
    return {name: text for name, text in texts if text is not None}


def in_order(columns: Sequence[Column]) -> dict[str, str]:
    """Return the formulas by column, those that others need before these."""
    return _in_order(formulas_of(columns))


def conditions_in_order(columns: Sequence[Column]) -> dict[str, str]:
    """Return the conditions by column, those first of columns that others name."""
    return _in_order({c.name: c.only_if for c in columns if c.only_if is not None})


def _in_order(texts: Mapping[str, str]) -> dict[str, str]:
    needs = {name: parse_formula(text).names for name, text in texts.items()}
    depth: dict[str, int] = {}
    for name in TopologicalSorter(needs).static_order():
        depth[name] = 1 + max((depth[other] for other in needs.get(name, ())), default=-1)
    return {name: texts[name] for name in sorted(texts, key=depth.__getitem__)}


def _check_names(
    column: Column, key: str, names: Sequence[str], known: Mapping[str, Column], file: str | None
) -> None:
    for name in names:
        other = known.get(name)
        if other is None:
            level = next((c for c in known.values() if name in (c.levels or ())), None)
            if key == "only_if" and level is not None:
                hint = f"A level stands between quotes: {level.name} == \"{name}\"."
            else:
                hint = did_you_mean(name, known) or (
                    "A column whose name is not one word stands between backticks: `Height (cm)`."
                )
            raise SchemaError(
                f"`{key}` names '{name}', and the table has no such column",
                file=file,
                column=column.name,
                hint=hint,
            )
        if name == column.name:
            raise SchemaError(f"`{key}` names the column itself", file=file, column=column.name)
        if not other.modelled:
            raise SchemaError(
                f"`{key}` names '{name}', which has role {other.role}",
                file=file,
                column=column.name,
                hint=f"Give '{name}' a type, or role predictor.",
            )
        counted = parse_formula(str(column.only_if)).counted if key == "only_if" else ()
        if other.levelled and name in counted:
            raise SchemaError(
                f"`only_if` takes '{name}' for numbers, which has type {other.type}",
                file=file,
                column=column.name,
                expected='its levels between quotes, with ==, != or in, such as sex == "f"',
            )
        if key != "only_if" and not (other.numeric or other.type is None):
            raise SchemaError(
                f"`{key}` names '{name}', which has type {other.type}",
                file=file,
                column=column.name,
                expected="columns of numbers",
            )
        if key == "less_than" and other.type is not None and other.moment != column.moment:
            kind, own = other.moment or other.type, column.moment
            raise SchemaError(
                f"`less_than` names '{name}', which has type {kind}",
                file=file,
                column=column.name,
                expected="columns of numbers" if own is None else f"a column of type {own}",
            )


def _circle(needs: Mapping[str, tuple[str, ...]]) -> list[str] | None:
    """Return a way from a column back to itself, a long one in short; None where there is none."""
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        circle = error.args[1][:0:-1]  # of (a, b, ..., a) each is needed by the next
        first = circle.index(next(name for name in needs if name in circle))
        circle = [*circle[first:], *circle[: first + 1]]
        return circle if len(circle) < 9 else [*circle[:5], "...", circle[-1]]
    return None
