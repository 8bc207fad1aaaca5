"""Cells of a row drawn given that an equation between them holds: a sum, a formula.

Where the result c of f(x_1, ..., x_k) is known in a row and several x are not, these have under one
draw the density

    p(x_1) ... p(x_k) / |df / dx_j|    on the surface f(x) = c,

x_j following from the others. What the row's known cells say, its result among them, the draw
knows: x_1, ..., x_k are independent given it. Moves of two cells leave that law invariant: of x_i
as it is and of M - 1 more, drawn from p(x_i), one is chosen in proportion to p(x_j) / |df / dx_j|
for the x_j that follows [Tjelmeland 2004]. A value with a probability of its own is one that p(x_i)
may give. Which cell of a formula follows at first is chosen in the same proportion. Rows where no
cell alone makes the equation hold start nearer to 0; theirs lie evenly between what x_j leaves, and
are weighed by p(x_i), too. Where all x that are not known are whole numbers, a formula holds but
for rounding: no population and income per head need multiply to the known product. There x_j is
rounded, and the equation kept as near as half a unit of the finest of these numbers leaves it.
Equations are visited from the outside in: a result that was drawn is known to its own parts. Cost:
O(k^2 M) densities a row.

Where the result is missing, too, it follows (following.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import permutations

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.encoding.data import EncodedColumn
from glfm_cli.encoding.relations import Relation, Relations, enforce
from glfm_cli.inference.following import FollowingResult, inputs_of, may_fail
from glfm_cli.inference.possible import Possible, RowsOfDraw
from glfm_cli.links import Link, of_numbers
from glfm_cli.links.law import CellLaw
from glfm_cli.links.observation import Params

ROUNDS = 6  # of moves of every pair, in both directions
CANDIDATES = 32  # M
STEP = 1e-6  # relative, of the derivative
HALVINGS = 20  # of cells too large for their equation
HELD = 1e-6  # relative, of numbers between which an equation holds
NO_END = 1e150  # of numbers that may be larger


class Equations(Possible):
    """What is redrawn of the missing cells of a table.

    moved : by column, which rows (N,) are
    """

    def __init__(self, columns: Sequence[EncodedColumn], links: Sequence[Link]) -> None:
        relations = Relations.of(columns)
        super().__init__(columns, links, relations.less)
        self.outside_in = relations.equations[::-1]
        self.involved = {d for one in self.outside_in for d in (one.d, *one.of)}.union(*self.less)
        self.moved: dict[int, Array] = {}
        fixed = {d: ~np.isnan(columns[d].given) for d in self.involved}
        there = {d: fixed[d] | columns[d].requested for d in self.involved}
        for one in self.outside_in:
            known = fixed[one.d] & np.all([there[d] for d in (one.d, *one.of)], axis=0)
            several = known & (np.sum([~fixed[d] for d in one.of], axis=0) > 1)
            for d in one.of if several.any() else ():
                self.moved[d] = (several & ~fixed[d]) | self.moved.get(d, False)
            for d in one.of:
                fixed[d] |= known
        for one in relations.equations:
            open_rows = ~fixed[one.d] & np.all([there[d] for d in (one.d, *one.of)], axis=0)
            for d in inputs_of(one, self.outside_in) if may_fail(self, one) else ():
                self.moved[d] = (open_rows & ~fixed[d]) | self.moved.get(d, False)

    def redraw(
        self,
        block: RowsOfDraw,
        found: Mapping[int, Array],
        rng: np.random.Generator,
        held: Array | None = None,
    ) -> None:
        """Draw cells anew given the equations of their rows, in place.

        block : RowsOfDraw
        found : by column the draws of missing cells
        rng : numpy.random.Generator
        held : (n,) bool; the rows of the block for which this is to be done; all if left out
        """
        n = self.columns[0].x[block.at].size
        cells = {d: self.columns[d].given[block.at].copy() for d in self.involved}
        fixed = {d: ~np.isnan(x) for d, x in cells.items()}
        ends = {d: np.full((n, 2), np.nan) for d in block.ends}
        for d in self.involved & block.rows.keys():
            free = ~fixed[d][block.rows[d]]
            cells[d][block.rows[d][free]] = found[d][free]
            if d in ends:
                ends[d][block.rows[d]] = block.ends[d]
        for one in self.outside_in:
            there = ~np.any([np.isnan(cells[d]) for d in (one.d, *one.of)], axis=0)
            known = fixed[one.d] & there
            free_cells = {d: known & ~fixed[d] for d in one.of}
            several = np.sum(list(free_cells.values()), axis=0) > 1
            several &= True if held is None else held
            if several.any():
                free_cells = {d: free & several for d, free in free_cells.items()}
                drawn = {d: cells[d].copy() for d in one.of}
                hard = self._start(one, cells, free_cells | {one.d: np.zeros(n, bool)})
                if not one.is_sum:  # whose parts share
                    free_now = {d: free & ~hard for d, free in free_cells.items()}
                    self._choose_following(one, block, cells, ends, free_now, drawn, rng)
                self._of_one(one, block, cells, ends, free_cells, hard, rng)
            for d in one.of:
                fixed[d] |= known
        for one in self.outside_in[::-1]:
            if may_fail(self, one):
                follow = FollowingResult(self, self.outside_in, one, block, cells, ends, fixed)
                follow.draw_until_possible(rng)
            named = {name: cells[d] for name, d in zip(one.formula.names, one.of, strict=True)}
            value = np.asarray(one.formula.evaluate(named), dtype=np.float64)
            cells[one.d] = np.where(~fixed[one.d] & np.isfinite(value), value, cells[one.d])
        for d in self.involved & block.rows.keys():
            found[d][:] = cells[d][block.rows[d]]

    def _start(self, one: Relation, cells: dict[int, Array], free: Mapping[int, Array]) -> Array:
        """Make an equation hold, in place; return the rows (n,) where no cell alone could do it.

        There all free cells come nearer to 0 until one of them can; if none ever can, they stay.
        """
        hard = wrong = np.zeros(cells[one.d].size, dtype=bool)
        before: dict[int, Array] = {}
        for number in range(HALVINGS):
            enforce(self.columns, cells, one, free)
            named = {name: cells[d] for name, d in zip(one.formula.names, one.of, strict=True)}
            apart = np.abs(one.formula.evaluate(named) - cells[one.d])
            size = sum(np.abs(cells[d]) for d in (one.d, *one.of))
            slack = HELD * (np.abs(cells[one.d]) + HELD * size)
            if (whole := self._whole_rows(one, free)).any():
                rounded = np.nanmax(self._half_units(one, named, free), axis=0, initial=0.0)
                slack = np.where(whole, np.fmax(slack, rounded), slack)
            wrong = apart > slack
            wrong &= np.any([free[d] for d in one.of], axis=0)
            if not number:
                hard, before = wrong, {d: cells[d].copy() for d in one.of}
            if not wrong.any():
                return hard
            for d in one.of:
                cells[d][wrong & free[d]] *= 0.5
        for d in one.of:
            cells[d][wrong] = before[d][wrong]
        return hard & ~wrong

    def _choose_following(
        self,
        one: Relation,
        block: RowsOfDraw,
        cells: dict[int, Array],
        ends: Mapping[int, Array],
        free: Mapping[int, Array],
        drawn: Mapping[int, Array],
        rng: np.random.Generator,
    ) -> None:
        """Choose which cell of a row follows from the others as they were drawn, in place.

        Each is the one in proportion to p(x_j) / |df / dx_j|: of a trace beside a large part the
        part follows, else the trace would be as far off as the part, where no move finds back.
        """
        best, value = np.full((2, cells[one.d].size), -np.inf)
        follows = np.full(best.size, -1)
        for j in one.of:
            at = np.flatnonzero(self._rows_following(one, j, free))
            if not at.size:
                continue
            named = {n: drawn[d][at] for n, d in zip(one.formula.names, one.of, strict=True)}
            name = self.columns[j].column.name
            y = self.follow(one, j, cells[one.d][at], named)
            good = self.allowed(j, at, y[:, None], {**cells, **drawn}, ends)[:, 0]
            here = {d: own[at] for d, own in free.items()}
            good &= self.holds(one, j, cells[one.d][at], named | {name: y}, here)
            law, params = block.law.column(j, at), block.draw.params[j]
            with np.errstate(all="ignore"):
                weight = self.links[j].log_density(y, law, params)
                weight = weight - _log_slope(one, name, named | {name: y})
            weight = np.where(good & ~np.isnan(weight), weight + rng.gumbel(size=at.size), -np.inf)
            better = weight > best[at]
            rows = at[better]
            best[rows], value[rows], follows[rows] = weight[better], y[better], j
        for d in one.of:
            own = free[d] & (follows >= 0)
            cells[d][own] = np.where(follows == d, value, drawn[d])[own]

    def _of_one(
        self,
        one: Relation,
        block: RowsOfDraw,
        cells: dict[int, Array],
        ends: Mapping[int, Array],
        free: Mapping[int, Array],
        hard: Array,
        rng: np.random.Generator,
    ) -> None:
        """Redraw the free cells of one equation, in place."""
        moves = []
        law_of = cache(lambda d, rows: block.law.column(d, np.frombuffer(rows, dtype=np.intp)))
        for i, j in permutations(one.of, 2):
            rows = free[j] if one.is_sum else self._rows_following(one, j, free)
            at = np.flatnonzero(free[i] & rows)
            if at.size and all(self.columns[d].trials is None for d in (i, j)):
                laws = law_of(i, at.tobytes()), law_of(j, at.tobytes())
                here = {d: own[at] for d, own in free.items()}
                moves.append(_Move(self, one, (i, j), at, laws, block.draw.params, hard[at], here))
        for _ in range(ROUNDS):
            for number in rng.permutation(len(moves)):
                moves[number].make(cells, ends, rng)

    def _rows_following(self, one: Relation, j: int, free: Mapping[int, Array]) -> Array:
        """Return the rows (n,) in which a formula that is no sum is solved for j.

        For a whole number where all free cells are; for successes nowhere.
        """
        column, x = self.columns[j], {name: np.ones(1) for name in one.formula.names}
        can = one.formula.solve(column.column.name, np.ones(1), x) is not None
        if column.trials is not None or not can:
            return np.zeros_like(free[j])
        return free[j] & self._whole_rows(one, free) if column.column.integral else free[j]

    def _whole_rows(self, one: Relation, free: Mapping[int, Array]) -> Array:
        """Return the rows (n,) of a formula that is no sum in which all free cells are whole."""
        some = np.any([free[d] for d in one.of], axis=0)
        if one.is_sum:
            return np.zeros_like(some)
        real = [free[d] for d in one.of if not self.columns[d].column.integral]
        return some & ~np.any(real, axis=0) if real else some

    def _half_units(
        self, one: Relation, named: Mapping[str, Array], free: Mapping[int, Array]
    ) -> Array:
        """Return what half a unit of each whole number changes (k, ...), NaN where not free."""
        found = [np.full_like(named[one.formula.names[0]], np.nan)]
        for name, d in zip(one.formula.names, one.of, strict=True):
            if self.columns[d].column.integral:
                ends = (one.formula.evaluate({**named, name: named[name] + s}) for s in (-0.5, 0.5))
                low, high = ends
                found.append(np.where(free[d], 0.5 * np.abs(high - low), np.nan))
        return np.stack(np.broadcast_arrays(*found))

    def follow(self, one: Relation, j: int, result: Array, named: Mapping[str, Array]) -> Array:
        """Return the cells of j that a result leaves, whole numbers rounded."""
        solved = one.formula.solve(self.columns[j].column.name, result, dict(named))
        assert solved is not None
        return np.rint(solved) if self.columns[j].column.integral else solved

    def holds(
        self,
        one: Relation,
        j: int,
        result: Array,
        named: Mapping[str, Array],
        free: Mapping[int, Array],
    ) -> Array:
        """Return whether a formula holds beside a whole number that follows, but for rounding."""
        if not self.columns[j].column.integral or one.is_sum:
            return np.ones(np.broadcast_shapes(*(x.shape for x in named.values())), dtype=bool)
        slack = np.nanmin(self._half_units(one, named, free), axis=0, initial=np.inf)
        apart = np.abs(one.formula.evaluate(named) - result)
        good: Array = apart <= slack + HELD * np.abs(result)
        return good


class _Move:
    """A move of the cells of columns i and j at some rows, j following."""

    def __init__(
        self,
        of: Equations,
        one: Relation,
        pair: tuple[int, int],
        at: Array,
        laws: tuple[CellLaw, CellLaw],
        params: Sequence[Params],
        hard: Array,
        free: Mapping[int, Array],
    ) -> None:
        self.of, self.one, self.at = of, one, at
        self.free = {d: own[:, None] for d, own in free.items()}
        self.i, self.j = pair
        self.every = np.repeat(np.arange(at.size), CANDIDATES)
        self.own, self.other = laws[0].take(self.every), laws[1].take(self.every)
        self.params = params[self.i], params[self.j]
        self.hard = np.flatnonzero(hard[self.every])

    def make(
        self,
        cells: dict[int, Array],
        ends: Mapping[int, Array],
        rng: np.random.Generator,
    ) -> None:
        """Choose among the cells as they are and others, in place."""
        of, at, (link, other) = self.of, self.at, (self.of.links[d] for d in (self.i, self.j))
        shape = (at.size, CANDIDATES)
        x = link.sample(self.own, self.params[0], rng)
        far, between = self._between(cells, rng)
        x[far] = between
        x = x.reshape(shape)
        x[:, 0] = cells[self.i][at]
        y = self._following(x, cells)
        # What is there may break the equation, where no cell alone could be solved for.
        start, followed = cells[self.j][at], y[:, 0].copy()
        y[:, 0] = start
        good = of.allowed(self.i, at, x, cells, ends) & of.allowed(self.j, at, y, cells, ends)
        with np.errstate(all="ignore"):
            slack = HELD * STEP + HELD * np.abs(followed)
            good[:, 0] &= np.isfinite(followed) & (np.abs(start - followed) <= slack)
            slope = np.zeros(1)
            if not self.one.is_sum:
                name = of.columns[self.j].column.name
                named = self._named(x, cells) | {name: y}
                slope = _log_slope(self.one, name, named)
                good &= of.holds(self.one, self.j, cells[self.one.d][at][:, None], named, self.free)
            # Most candidates leave j nothing that it may be, and densities are what costs.
            may = np.flatnonzero(good)
            weight = np.full(shape, -np.inf)
            density = other.log_density(y.ravel()[may], self.other.take(may), self.params[1])
            weight.ravel()[may] = density
            if far.size:
                own = link.log_density(x.ravel()[far], self.own.take(far), self.params[0])
                weight.ravel()[far] += own
            weight -= slope
        weight = np.where(good & ~np.isnan(weight), weight, -np.inf)
        # The largest of log weights with Gumbel noise is each one with its probability.
        chosen = np.argmax(weight + rng.gumbel(size=shape), axis=1)
        row = np.arange(at.size)
        # Of x_j, a value with a probability of its own would never come back this way.
        moved = np.isfinite(weight[row, chosen]) & (y[:, 0] != of.atoms[self.j])
        cells[self.i][at[moved]] = x[row, chosen][moved]
        cells[self.j][at[moved]] = y[row, chosen][moved]

    def _between(
        self, cells: Mapping[int, Array], rng: np.random.Generator
    ) -> tuple[Array, Array]:
        """Return which candidates (m,) lie evenly between what cells of j leave, and these.

        Those of hard rows: far in a tail, nearly all that p(x_i) gives leaves j nothing. Values
        with a probability of their own would not come this way.
        """
        if not self.hard.size or not np.isnan(self.of.atoms[self.i]):
            return self.hard[:0], np.empty(0)
        one, link, other = self.one, *(of_numbers(self.of.links[d]) for d in (self.i, self.j))
        name, following = (self.of.columns[d].column.name for d in (self.i, self.j))
        named = {n: cells[d][self.at] for n, d in zip(one.formula.names, one.of, strict=True)}
        ends = np.full((self.at.size, 2), np.nan)
        for k, end in enumerate((other.lower, other.upper)):
            given = named | {following: np.full(self.at.size, end)}
            solved = one.formula.solve(name, cells[one.d][self.at], given)
            if solved is not None:
                ends[:, k] = solved
        ends = np.clip(np.sort(ends, axis=1), link.lower, link.upper)[self.every[self.hard]]
        if link.integral:
            ends = np.column_stack((np.ceil(ends[:, 0]) - 0.5, np.floor(ends[:, 1]) + 0.5))
        good = (np.abs(ends) < NO_END).all(axis=1) & (ends[:, 0] < ends[:, 1])
        low, high = ends[good].T
        x = low + (high - low) * rng.random(low.size)
        return self.hard[good], np.rint(x) if link.integral else x

    def _following(self, x: Array, cells: Mapping[int, Array]) -> Array:
        """Return the cells of j (n, M) that go with those of i."""
        at = self.at
        if self.one.is_sum:
            total: Array = (cells[self.i][at] + cells[self.j][at])[:, None] - x
            return total
        result = cells[self.one.d][at][:, None]
        y = self.of.follow(self.one, self.j, result, self._named(x, cells))
        return np.broadcast_to(y, x.shape).copy()

    def _named(self, x: Array, cells: Mapping[int, Array]) -> dict[str, Array]:
        named = zip(self.one.formula.names, self.one.of, strict=True)
        return {name: x if d == self.i else cells[d][self.at][:, None] for name, d in named}


def _log_slope(one: Relation, name: str, named: Mapping[str, Array]) -> Array:
    """Return log |df / dx| of a formula in one of its columns, at numbers by name."""
    x = named[name]
    step = STEP * np.maximum(np.abs(x), STEP)
    above, below = (one.formula.evaluate({**named, name: x + s}) for s in (step, -step))
    out: Array = np.log(np.abs(above - below) / step)
    return out
