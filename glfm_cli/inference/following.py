"""Cells of a row drawn given that their formula has a result that its column can hold.

Where the result is missing, too, it follows from x_1, ..., x_k: assets, above 0, from debts and an
equity that may be negative. These are drawn again, all at once, until the result is possible. Of
rows where M draws do not do, each in turn is drawn between what the others leave, a Gibbs sampler
of the same law.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.encoding.relations import Relation
from glfm_cli.inference.possible import Possible, RowsOfDraw
from glfm_cli.links import of_numbers

CANDIDATES = 32  # M
ROUNDS = 3  # of the sampler
STEP = 1e-6  # relative, to see which way a result moves


def may_fail(of: Possible, one: Relation) -> bool:
    """Return whether inputs may give a result that its column cannot hold."""
    own, parts = of.columns[one.d], [of.columns[d].column for d in one.of]
    positive = one.is_sum and all(part.positive or part.integral for part in parts)
    low, high = _range(of, one)
    held = own.ends is not None or any(one.d in pair for pair in of.less)
    return low > (0.0 if positive else -np.inf) or high < np.inf or held


def inputs_of(one: Relation, equations: Sequence[Relation]) -> list[int]:
    """Return the inputs that follow from no equation themselves."""
    results = {other.d for other in equations}
    return [d for d in one.of if d not in results]


def _range(of: Possible, one: Relation) -> tuple[float, float]:
    """Return between which numbers the result's column is."""
    column = of.columns[one.d].column
    low, high = column.bounds
    least = 0.0 if column.positive or column.integral else -np.inf
    return max(least, -np.inf if low is None else low), np.inf if high is None else high


@dataclass(frozen=True)
class FollowingResult:
    """The rows of a table under one draw, and an equation whose result is missing in some.

    cells : by column the values of the rows (n,), changed in place
    ends : what cells are known to lie between (n, 2);  fixed : which cells are not drawn (n,)
    """

    of: Possible
    equations: Sequence[Relation]
    one: Relation
    block: RowsOfDraw
    cells: dict[int, Array]
    ends: Mapping[int, Array]
    fixed: Mapping[int, Array]

    def draw_until_possible(self, rng: np.random.Generator) -> None:
        """Draw inputs again in rows whose result is none of its column."""
        one, cells, inputs = self.one, self.cells, inputs_of(self.one, self.equations)
        there = ~np.any([np.isnan(cells[d]) for d in (one.d, *one.of)], axis=0)
        free = np.any([~self.fixed[d] for d in inputs], axis=0) if inputs else False
        at = np.flatnonzero(there & ~self.fixed[one.d] & free)
        for number in (1, CANDIDATES):
            every, shape = np.repeat(at, number), (at.size, number)
            x = {d: cells[d][every].reshape(shape) for d in one.of}
            for d in inputs if number > 1 else ():
                law, params = self.block.law.column(d, every), self.block.draw.params[d]
                drawn = self.of.links[d].sample(law, params, rng).reshape(shape)
                x[d] = np.where(self.fixed[d][at, None], x[d], drawn)
            good = self._are_good(at, x, inputs)
            row, first = np.arange(at.size), np.argmax(good, axis=1)
            found = good[row, first]
            for d in inputs:
                cells[d][at[found]] = x[d][row, first][found]
            at = at[~found]
        # Of either sign first: these are at fault, and go where the result is possible.
        inputs.sort(key=lambda d: self.of.columns[d].column.positive)
        for _ in range(ROUNDS if at.size else 0):
            for d in inputs:
                self._draw_between(d, at[~self.fixed[d][at]], rng)

    def _are_good(self, at: Array, x: Mapping[int, Array], inputs: Sequence[int]) -> Array:
        """Return which of M inputs (n, M) of some rows, and their results, columns can hold."""
        one, of = self.one, self.of
        named = {name: x[d] for name, d in zip(one.formula.names, one.of, strict=True)}
        value = np.asarray(one.formula.evaluate(named), dtype=np.float64)
        value = np.rint(value) if of.columns[one.d].column.integral else value
        good = of.allowed(one.d, at, value, self.cells, self.ends)
        for d in inputs:
            own = of.allowed(d, at, x[d], self.cells, self.ends)
            good = good & (own | self.fixed[d][at, None])
        return good

    def _draw_between(self, d: int, at: Array, rng: np.random.Generator) -> None:
        """Draw an input of some rows given the others, and that the result is possible."""
        one, formula = self.one, self.one.formula
        named = {name: self.cells[c][at] for name, c in zip(formula.names, one.of, strict=True)}
        name = next(name for name, c in zip(formula.names, one.of, strict=True) if c == d)
        low, high = _range(self.of, one)
        far, seen = low, self.of.columns[one.d].typical
        if low == 0.0 and np.any(seen > 0.0):  # so far in a tail it would be 0 but for rounding
            far = float(np.min(seen[seen > 0.0]))
        ends, good = self._ends(d, name, at, named, (far, high))
        if not good.all():  # what the others leave is less than that
            nearer, possible = self._ends(d, name, at, named, (low, high))
            ends, good = np.where(good[:, None], ends, nearer), good | possible
        at, ends = at[good], ends[good]
        law, params = self.block.law.column(d, at), self.block.draw.params[d]
        self.cells[d][at] = of_numbers(self.of.links[d]).sample_between(law, params, rng, ends)

    def _ends(
        self, d: int, name: str, at: Array, named: dict[str, Array], of: tuple[float, float]
    ) -> tuple[Array, Array]:
        """Return between what (n, 2) an input gives results between two, and where it can (n,)."""
        formula, solved = self.one.formula, []
        for end in of:
            x = formula.solve(name, np.full(at.size, end), named) if np.isfinite(end) else None
            solved.append(np.full(at.size, end if x is None else x))
        step = STEP * np.maximum(np.abs(named[name]), 1.0)
        more = formula.evaluate(named | {name: named[name] + step})
        rises = np.asarray(more > formula.evaluate(named))[:, None]
        ends = np.where(rises, np.column_stack(solved), np.column_stack(solved[::-1]))
        ends = np.where(np.isinf(ends) & ~rises, -ends, ends)
        if d in self.ends:
            own = self.ends[d][at]
            ends[:, 0] = np.fmax(ends[:, 0], own[:, 0])
            ends[:, 1] = np.fmin(ends[:, 1], own[:, 1])
        link = of_numbers(self.of.links[d])
        good = (ends[:, 0] < ends[:, 1]) & (ends[:, 1] > link.lower) & (ends[:, 0] < link.upper)
        return ends, good
