"""The analysis that completed tables are made for: what it makes of their columns.

Of levels there is an indicator each but of the first; levels that are numbers count as these, but
inside C(). Which contrasts code the levels is of no matter here: the fitted means are the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property, reduce

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.completion.analysis.families import Ends, Family, Seen, wide
from glfm_cli.encoding import EncodedColumn
from glfm_cli.encoding.levels import level_key
from glfm_cli.encoding.support import support
from glfm_cli.schema.formula import Formula

HALF = 0.5 - 1e-9
NAME = re.compile(r"`[^`]+`|[^\W\d]\w*")


@dataclass(frozen=True)
class Factor:
    """What a regressor is made of: a column or an expression; `each` has an indicator a level."""

    text: str
    each: bool
    formula: Formula = field(compare=False)


class Evaluated:
    """What was made of columns, made anew where the array of one is another.

    Of arrays that are changed in place `forget` has to be told.
    """

    def __init__(self) -> None:
        self._found: dict[Hashable, tuple[dict[str, Array], Array]] = {}

    def get(
        self,
        what: Hashable,
        names: Sequence[str],
        xs: Mapping[str, Array],
        make: Callable[[], Array],
    ) -> Array:
        """Return what `make` makes of some columns of xs."""
        held = self._found.get(what)
        if held is None or any(x is not xs[name] for name, x in held[0].items()):
            held = self._found[what] = {name: xs[name] for name in names}, make()
        return held[1]

    def forget(self, names: Set[str]) -> None:
        """Forget what was made of some columns."""
        self._found = {
            what: held for what, held in self._found.items() if names.isdisjoint(held[0])
        }


@dataclass(frozen=True)
class AnalysisFormula:
    """A regression of a table's columns, read and checked.

    response : a column, or an expression of one that can be undone
    terms : products of factors, the constant left out
    family : of the response given its linear predictor
    columns : the modelled columns, by name
    chosen : whether the family is that of complete rows, not of the column's type
    told_by : of a response that is none of the table's columns, what tells it to other regressions
    """

    text: str
    response: Formula
    terms: tuple[tuple[Factor, ...], ...]
    family: Family
    columns: Mapping[str, EncodedColumn]
    chosen: bool = False
    told_by: tuple[Factor, ...] = ()

    @property
    def target(self) -> str:
        """The column of the response."""
        return self.response.names[0]

    @cached_property
    def responses(self) -> tuple[str, ...]:
        """The columns of the table that are the response."""
        return tuple(one.formula.names[0] for one in self.told_by) or (self.target,)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns of the regressors."""
        every = (name for term in self.terms for one in term for name in one.formula.names)
        return tuple(dict.fromkeys(every))

    def regressors(self, xs: Mapping[str, Array], evaluated: Evaluated | None = None) -> Array:
        """Return X (n, p), a constant first, of values and level codes (n,) by column."""
        held = Evaluated() if evaluated is None else evaluated

        def values(one: Factor) -> Array:
            return held.get(one, one.formula.names, xs, lambda: self.values(one, xs))

        def product() -> Array:
            n = len(next(iter(xs.values())))
            parts = [reduce(_products, map(values, term)) for term in self.terms]
            return np.hstack([np.ones((n, 1)), *parts])

        return held.get(self.terms, self.names, xs, product)

    def outcome(self, x: Array) -> Array:
        """Return y (n,) of the values or level codes of the response's column."""
        if self.columns[self.target].levels:
            return x
        return np.asarray(self.response.evaluate({self.target: x}), dtype=np.float64)

    @property
    def plain(self) -> bool:
        """Whether the response is a column as it is."""
        return NAME.fullmatch(self.response.text) is not None

    @cached_property
    def ends(self) -> Ends:
        """The least and largest outcome of what the response's column can hold.

        Half a step beyond those of whole numbers and level codes, which outcomes are rounded to.
        """
        encoded = self.columns[self.target]
        if encoded.levels:
            return (-HALF, len(encoded.levels) - 1.0 + HALF)
        zero, half = bool(np.any(encoded.typical == 0.0)), 0.0
        held = support(encoded.column, zero=zero, dtype=np.dtype(np.float64))
        low, high = held.lower, held.upper
        with np.errstate(all="ignore"):
            if encoded.column.integral:
                half = HALF
                low += not np.isfinite(self.outcome(np.array([low]))[0])  # as log(0)
            # Where a function has no value at an end it begins inside, as a root does at 0.
            inside = max(low, min(0.0, high))
            y = self.outcome(np.array([low - half, inside, high + half]))
        return float(np.nanmin(y)), float(np.nanmax(y))

    def seen(
        self, xs: Mapping[str, Array], y: Array, evaluated: Evaluated | None = None
    ) -> tuple[Seen, Array]:
        """Return what rows show that have an outcome and regressors, and which these are."""
        X = self.regressors(xs, evaluated)
        rows = np.flatnonzero(~np.isnan(y) & np.isfinite(X).all(axis=1))
        return Seen(y[rows], X[rows], wide(X)), rows

    def complete(self) -> tuple[Seen, Array]:
        """Return what rows show in which all is observed, and which these are."""
        xs = {name: np.where(c.observed, c.x, np.nan) for name, c in self.columns.items()}
        return self.seen(xs, self.outcome(xs[self.target]))

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


def _products(a: Array, b: Array) -> Array:
    """Return the products (n, j k) of the columns of two factors."""
    return (a[:, :, None] * b[:, None, :]).reshape(len(a), -1)


def _known(x: Array, values: Array) -> Array:
    """Return values (n, k), NaN where x (n,) is."""
    return np.where(np.isnan(x)[:, None], np.nan, values)
