"""The analysis that completed tables are made for, as R and statsmodels write a regression.

    log(bili) ~ age + sex * log(copper) + C(stage) + I(age ** 2)

`a:b` is a product, `a * b` stands for a + b + a:b. Of levels there is an indicator each but of the
first; levels that are numbers count as these, but inside C(). Which contrasts code the levels is
of no matter here: the fitted means are the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import combinations

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.completion.analysis.families import FAMILIES, Family
from glfm_cli.encoding import EncodedColumn
from glfm_cli.encoding.levels import level_key
from glfm_cli.errors import UsageError, counted
from glfm_cli.schema.formula import Formula, parse_formula

_NAME = re.compile(r"`[^`]+`|[^\W\d]\w*")
_CALL = re.compile(r"(?:np\.)?(\w+)\((.*)\)", flags=re.DOTALL)
_OPEN, _CLOSED = "([", ")]"


@dataclass(frozen=True)
class Factor:
    """What a regressor is made of: a column or an expression; `each` has an indicator a level."""

    text: str
    each: bool
    formula: Formula = field(compare=False)


@dataclass(frozen=True)
class AnalysisFormula:
    """A regression of a table's columns, read and checked.

    response : a column, or an expression of one that can be undone
    terms : products of factors, the constant left out
    family : of the response given its linear predictor
    columns : the modelled columns, by name
    """

    text: str
    response: Formula
    terms: tuple[tuple[Factor, ...], ...]
    family: Family
    columns: Mapping[str, EncodedColumn]

    @property
    def target(self) -> str:
        """The column of the response."""
        return self.response.names[0]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the regressors."""
        every = (name for term in self.terms for one in term for name in one.formula.names)
        return tuple(dict.fromkeys(every))

    def regressors(self, xs: Mapping[str, Array]) -> Array:
        """Return X (n, p), a constant first, of values and level codes (n,) by column."""
        found: dict[Factor, Array] = {}
        for one in {one for term in self.terms for one in term}:
            found[one] = self.values(one, xs)
        n = len(next(iter(xs.values())))
        parts = [np.ones((n, 1))]
        for term in self.terms:
            parts.append(reduce(_products, (found[one] for one in term)))
        return np.hstack(parts)

    def outcome(self, x: Array) -> Array:
        """Return y (n,) of the values or level codes of the response's column."""
        if self.columns[self.target].levels:
            return x
        return np.asarray(self.response.evaluate({self.target: x}), dtype=np.float64)

    def undone(self, y: Array) -> Array:
        """Return the values or level codes of the response's column that have an outcome y."""
        if self.columns[self.target].levels:
            return y
        x = self.response.solve(self.target, y, {})
        assert x is not None  # as was checked
        return x

    def values(self, one: Factor, xs: Mapping[str, Array]) -> Array:
        """Return the columns (n, k) of a factor."""
        if one.each:
            name = one.formula.names[0]
            codes = np.arange(1, len(self.columns[name].levels))
            return _known(xs[name], (xs[name][:, None] == codes).astype(np.float64))
        seen, values = np.zeros(0), {}
        for name in one.formula.names:
            seen = xs[name] if not seen.size else seen + xs[name]
            values[name] = self._read(name, xs[name], name in one.formula.counted)
        with np.errstate(all="ignore"):
            found = np.asarray(one.formula.evaluate(values), dtype=np.float64)
        return _known(seen, np.broadcast_to(found, seen.shape)[:, None])

    def _read(self, name: str, x: Array, as_numbers: bool) -> Array:
        """Return a column as formulas take it: numbers, or the text of its levels."""
        levels = self.columns[name].levels
        if not levels:
            return x
        codes = np.nan_to_num(x, nan=0.0).astype(np.intp)
        if as_numbers:
            return np.array([float(level) for level in levels])[codes]
        return np.array([level_key(level) for level in levels], dtype=object)[codes]


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
        raise _wrong(text, "it has not one ~ between a response and its regressors") from None
    terms: dict[tuple[Factor, ...], None] = {}
    for summand in _split(right, "+"):
        if summand != "1":
            terms |= dict.fromkeys(_expanded(text, summand, by_name))
    if not terms:
        raise _wrong(text, "it has no regressor")
    response = _factor(text, left.strip(), by_name).formula
    if len(response.names) != 1:
        raise _wrong(text, "its response is no column, nor an expression of one")
    target = by_name[response.names[0]]
    found = AnalysisFormula(text, response, tuple(terms), _family(text, response, target), by_name)
    if found.target in found.names:
        raise _wrong(text, f"'{found.target}' is on both sides of ~")
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
            raise _wrong(
                regression.text,
                f"'{formula.text}' has no value in {counted(bad.size, 'row')} "
                f"(the first: row {bad[0] + 1}), though nothing is missing there",
                "an expression that has one in every row, such as log(x + 1)",
            )


def _expanded(
    text: str, summand: str, columns: Mapping[str, EncodedColumn]
) -> Iterator[tuple[Factor, ...]]:
    """Yield the terms of a summand: of a * b those of a, of b and of a:b."""
    parts = [
        tuple(_factor(text, one, columns) for one in _split(product, ":"))
        for product in _split(summand, "*")
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
    if (call is None or each) and _NAME.fullmatch(inner) is None:
        raise _wrong(text, f"'{shown}' is no column, nor I(...) or a function of columns")
    try:
        formula = parse_formula(inner)
    except ValueError as error:
        raise _wrong(text, f"of '{shown}', {error}") from None
    for name in formula.names:
        if name not in columns:
            raise _wrong(text, f"'{name}' is no modelled column of the table")
    name = formula.names[0]
    levels = columns[name].levels
    if call is None and levels:
        each = columns[name].column.nominal or not _are_numbers(levels)
    for name in () if each else formula.counted:
        if not _are_numbers(columns[name].levels):
            raise _wrong(text, f"the levels of '{name}' are no numbers")
    return Factor(inner, each, formula)


def _family(text: str, response: Formula, target: EncodedColumn) -> Family:
    """Return the law of the response: of two levels, of counts as they are, else of numbers."""
    column, plain = target.column, _NAME.fullmatch(response.text) is not None
    if target.levels:
        if plain and len(target.levels) == 2:
            return FAMILIES["logistic"]
        raise _wrong(text, f"'{column.name}' has {len(target.levels)} levels", "two")
    if plain and column.integral:
        return FAMILIES["poisson"]
    if response.solve(column.name, np.zeros(1), {}) is None:
        raise _wrong(text, f"its response '{response.text}' cannot be undone")
    return FAMILIES["linear"]


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


def _products(a: Array, b: Array) -> Array:
    """Return the products (n, j k) of the columns of two factors."""
    return (a[:, :, None] * b[:, None, :]).reshape(len(a), -1)


def _known(x: Array, values: Array) -> Array:
    """Return values (n, k), NaN where x (n,) is."""
    return np.where(np.isnan(x)[:, None], np.nan, values)


def _wrong(text: str, problem: str, expected: str | None = None) -> UsageError:
    return UsageError(
        f"--analysis '{text}': {problem}",
        expected=expected,
        hint="Write it as for R, such as 'log(bili) ~ age + sex * copper + I(age^2)'; the response "
        "is a number, a count or of two levels.",
    )
