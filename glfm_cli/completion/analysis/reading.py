"""Reading a regression as R and statsmodels write it.

    log(bili) ~ age + sex * log(copper) + C(stage) + I(age ** 2)

`a:b` is a product, `a * b` stands for a + b + a:b. The response may say its law: normal(sbp), or
be times and whether their event happened: Surv(time, status == 2).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from glfm_cli.completion.analysis.counts import FAMILIES, law_of_counts
from glfm_cli.completion.analysis.families import Family
from glfm_cli.completion.analysis.formula import NAME, AnalysisFormula, Factor
from glfm_cli.completion.analysis.hints import habit, wrong
from glfm_cli.completion.analysis.survival import ProportionalHazards, survival_column
from glfm_cli.encoding import EncodedColumn
from glfm_cli.errors import UsageError, counted
from glfm_cli.schema.formula import Formula, parse_formula

_CALL = re.compile(r"(?:np\.)?(\w+)\((.*)\)", flags=re.DOTALL)
_OF_SURVIVAL = (
    "a time and an event, as Surv(time, status == 2)",
    "The event is a column of two levels, of which the second says that it happened, one of 0 and "
    "1, or a condition.",
)
_MOST_CROSSED = 8  # factors of a * b * ..., each of which doubles the terms
_OPEN, _CLOSED = "([", ")]"
_SURVIVAL = re.compile(r"Surv\((.*)\)", flags=re.DOTALL)
_LAW = re.compile(r"(normal|poisson|negbin)\((.*)\)", flags=re.DOTALL)


def read_regression(text: str, columns: Sequence[EncodedColumn]) -> AnalysisFormula:
    """Return the regression that a text is, of the modelled columns of a table.

    Raises UsageError: it is none, names a column that is not there, or has a response of another
        kind.
    """
    by_name = {encoded.column.name: encoded for encoded in columns}
    if not isinstance(text, str):
        raise UsageError("--analysis", value=text, expected="a regression such as 'y ~ x * g'")
    try:
        left, right = _quoted(text, by_name).split("~")
    except ValueError:
        raise wrong(text, "it has not one ~ between a response and its regressors") from None
    terms: dict[tuple[Factor, ...], None] = {}
    for summand in _split(right, "+"):
        if summand != "1":
            terms |= dict.fromkeys(_expanded(text, summand, by_name))
    if not terms:
        raise wrong(text, "it has no regressor")
    if survival := _SURVIVAL.fullmatch(left.strip()):
        return _of_survival(text, left.strip(), _split(survival[1], ","), tuple(terms), by_name)
    named = _LAW.fullmatch(left.strip())
    response = _factor(text, named[2] if named else left.strip(), by_name).formula
    if len(response.names) != 1:
        raise wrong(text, "its response is not a column or an expression of one")
    target = by_name[response.names[0]]
    family = _family(text, response, target, named and named[1])
    found = AnalysisFormula(text, response, tuple(terms), family, by_name)
    if found.target in found.names:
        raise wrong(text, f"'{found.target}' is on both sides of ~")
    _check_defined(found)
    if named is None and found.plain and target.column.integral:
        found = replace(found, family=law_of_counts(found.complete()[0]), chosen=True)
    return found


def _of_survival(
    text: str,
    left: str,
    parts: Sequence[str],
    terms: tuple[tuple[Factor, ...], ...],
    columns: Mapping[str, EncodedColumn],
) -> AnalysisFormula:
    """Return the regression of times and whether their event happened."""
    if len(parts) != 2:
        raise wrong(text, f"'{left}' has {counted(len(parts), 'part')}", *_OF_SURVIVAL)
    time = _factor(text, parts[0], columns)
    plain = NAME.fullmatch(parts[1]) is not None
    event = _factor(text, parts[1] if plain else f"I({parts[1]})", columns)
    times, own = (columns[one.formula.names[0]] for one in (time, event))
    named = NAME.fullmatch(parts[0]) is not None and times.column.numeric
    x = times.x[times.observed]
    if not named or x.size == 0 or x.min() < 0.0:
        raise wrong(text, f"'{parts[0]}' is not a column of numbers from 0", *_OF_SURVIVAL)
    bare = AnalysisFormula(text, time.formula, terms, FAMILIES["linear"], columns)
    if plain and own.levels:
        events = own.x
    else:
        events = bare.values(event, {name: one.x for name, one in columns.items()}).sum(axis=1)
    if len(event.formula.names) > 1 or not set(np.unique(events[~np.isnan(events)])) <= {0.0, 1.0}:
        raise wrong(text, f"'{parts[1]}' is neither 0 or 1 nor true or false", *_OF_SURVIVAL)
    for one in (times, own):
        if one.requested.any():
            raise wrong(
                text,
                f"{counted(int(one.requested.sum()), 'cell')} of '{one.column.name}' are missing "
                "(times and events are never completed)",
                hint="Leave these rows out, or list what they hold with `impute: false` under "
                "`missing:`.",
            )
    name = left.replace("`", "")
    made = survival_column(name, times, events)
    logged = parse_formula(f"log1p(`{times.column.name}`)")
    found = AnalysisFormula(
        text, parse_formula(f"`{name}`"), terms, ProportionalHazards.of(made.x),
        {**columns, name: made}, told_by=(Factor(logged.text, False, logged), event),
    )  # fmt: skip
    if both := set(found.responses) & set(found.names):
        raise wrong(text, f"'{both.pop()}' is on both sides of ~")
    _check_defined(found)
    return found


def _check_defined(regression: AnalysisFormula) -> None:
    """Raise UsageError where an expression has no value though its columns do, as log(x) of 0."""
    xs = {name: encoded.x for name, encoded in regression.columns.items()}
    with np.errstate(all="ignore"):
        made = [(regression.response, regression.outcome(xs[regression.target]))]
    factors = dict.fromkeys(one for term in regression.terms for one in term)
    made += [(one.formula, regression.values(one, xs).sum(axis=1)) for one in factors]
    for formula, values in made:
        known = np.all([regression.columns[name].observed for name in formula.names], axis=0)
        bad = np.flatnonzero(known & ~np.isfinite(values))
        if bad.size:
            raise wrong(
                regression.text,
                f"'{formula.text}' has no value in {counted(bad.size, 'row')} "
                f"(the first: row {bad[0] + 1}), though nothing is missing there",
                "an expression that has one in every row, such as log(x + 1)",
            )


def _expanded(
    text: str, summand: str, columns: Mapping[str, EncodedColumn]
) -> Iterator[tuple[Factor, ...]]:
    """Yield the terms of a summand: of a * b those of a, of b and of a:b."""
    products = _split(summand, "*")
    if "" in products:  # as of x ** 2
        raise wrong(text, f"'{summand}' is not a column", hint=habit(text, summand, columns))
    if len(products) > _MOST_CROSSED:
        raise wrong(text, f"it crosses {len(products)} factors by *, more than {_MOST_CROSSED}")
    parts = [
        tuple(_factor(text, one, columns) for one in _split(product, ":")) for product in products
    ]
    for size in range(1, len(parts) + 1):
        for some in combinations(parts, size):
            yield tuple(dict.fromkeys(one for part in some for one in part))


def _factor(text: str, shown: str, columns: Mapping[str, EncodedColumn]) -> Factor:
    """Return a column by name, C(column), I(expression) or a function of columns."""
    call = _CALL.fullmatch(shown)
    each = call is not None and call[1] in ("C", "factor")
    inner = shown
    if call is not None:
        inner = call[2].replace("^", "**") if each or call[1] == "I" else f"{call[1]}({call[2]})"
    if (call is None or each) and NAME.fullmatch(inner) is None:
        problem = f"'{shown}' is not a column, I(...) or a function of columns"
        raise wrong(text, problem, hint=habit(text, shown, columns))
    try:
        formula = parse_formula(inner)
    except ValueError as error:
        raise wrong(text, f"of '{shown}', {error}", hint=habit(text, shown, columns)) from None
    for name in formula.names:
        if name not in columns:
            raise wrong(text, f"'{name}' is not a modelled column of the table")
    there = {level for name in formula.names for level in columns[name].levels}
    if unknown := [one for one in formula.texts if one not in there]:
        problem = f"'{unknown[0]}' is not a level of " + " or ".join(map(repr, formula.names))
        raise wrong(text, problem, ", ".join(f"'{one}'" for one in sorted(there)) or "a number")
    name = formula.names[0]
    levels = columns[name].levels
    if call is not None and each and not levels:
        raise wrong(
            text,
            f"'{name}' is {columns[name].column.type}: {call[1]}() needs a column of few levels",
            hint=f"Take '{name}' as it is, or give it type ordinal or categorical in the types "
            "file.",
        )
    if call is None and levels:
        each = columns[name].column.nominal or not _are_numbers(levels)
    for name in () if each else formula.counted:
        if not _are_numbers(columns[name].levels):
            raise wrong(text, f"the levels of '{name}' are not numbers")
    return Factor(inner, each, formula)


def _family(text: str, response: Formula, target: EncodedColumn, law: str | None) -> Family:
    """Return the law of the response: the one it says, else of two levels, of counts, of numbers.
    """
    column, plain = target.column, NAME.fullmatch(response.text) is not None
    counts = plain and column.integral
    if law in ("poisson", "negbin") and not counts:
        raise wrong(text, f"'{response.text}' is not a column of counts, which {law}() is for")
    if target.levels:
        if plain and len(target.levels) == 2 and law is None:
            return FAMILIES["logistic"]
        raise wrong(text, f"'{column.name}' has {len(target.levels)} levels", "two")
    if response.solve(column.name, np.zeros(1), {}) is None:
        raise wrong(text, f"its response '{response.text}' cannot be undone")
    return FAMILIES["linear" if law in (None, "normal") else law]


def _are_numbers(levels: Sequence[str]) -> bool:
    try:
        return all(np.isfinite(float(level)) for level in levels)
    except ValueError:
        return False


def _quoted(text: str, columns: Mapping[str, EncodedColumn]) -> str:
    """Return the text with names that are no words between backticks, such as ph.ecog."""
    odd = sorted((n for n in columns if not n.isidentifier()), key=len, reverse=True)
    if not odd:
        return text
    either = "|".join(re.escape(name) for name in odd)
    pattern = rf"`[^`]*`|(?<![\w.])(?:{either})(?![\w.])"
    return re.sub(pattern, lambda m: m[0] if m[0][0] == "`" else f"`{m[0]}`", text)


def _split(text: str, sign: str) -> list[str]:
    """Return the parts of a text between signs that stand outside brackets and backticks."""
    parts, depth, quoted = [""], 0, False
    for letter in text:
        quoted ^= letter == "`"
        depth += (letter in _OPEN) - (letter in _CLOSED) if not quoted else 0
        if letter == sign and depth == 0 and not quoted:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]
