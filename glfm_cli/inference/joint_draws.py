"""Joint draws of cells, of the distribution that their forecasts are of.

A forecast averages over draws and is recalibrated; a joint draw comes from one of them. Each cell's
value is mapped from its forecast before the correction, F, to that after it, F':

    x' = F'^-1(F(x)),    of levels with F(x) drawn between F(x - 1) and F(x), of numbers that have
                         a probability of their own between F just below x and F(x),

and of whole numbers each spread evenly over the unit below it: an increasing map, so that cells of
a row hang together as in the draw, while each has the distribution of its interval and its score.

Bounds cut off a forecast; a joint draw is made without them, and F is the forecast without them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.special import ndtr, ndtri

from glfm_cli.arrays import Array
from glfm_cli.inference.equations import Equations
from glfm_cli.inference.lone_cells import parts_of
from glfm_cli.inference.one_draw import NO_ENDS, Ends, draw_jointly
from glfm_cli.inference.posterior import Draw, Posterior
from glfm_cli.inference.predictive import Marginal, predict
from glfm_cli.inference.recalibration import LEAST, sd_of
from glfm_cli.inference.scoring import forecasts
from glfm_cli.latent.capabilities import Candidates
from glfm_cli.links import of_numbers
from glfm_cli.links.numeric import NumericLink
from glfm_cli.links.observation import Counting
from glfm_cli.links.two_part import TwoPartLink

Z = np.linspace(-3.5, 3.5, 29)  # normal scores of the quantiles between which F is interpolated
FINE = np.linspace(-3.5, 3.5, 141)  # the same of columns in which one value has much of it
HEAPED = 0.25  # share of quantiles that equal the next from which a column is such
BOUNDED = NumericLink, TwoPartLink  # that bounds may cut off
STEP = 8  # equal quantiles of a value that has much of the probability
FEW = 48  # draws that F of numbers averages over


class JointDraws:
    """Joint draws of some cells, each corrected like its forecast.

    cells : column number to ascending row indices; memory O(cells x (levels or quantiles))
    ends, less, equations : those of `draw_jointly`
    needed : the columns that are to be moved to their forecasts; all if left out
    """

    def __init__(
        self,
        posterior: Posterior,
        cells: Mapping[int, Array],
        ends: Ends = NO_ENDS,
        less: Sequence[tuple[int, int]] = (),
        equations: Equations | None = None,
        needed: Collection[int] | None = None,
    ) -> None:
        self.posterior, self.cells, self.ends, self.less = posterior, cells, ends, less
        self.equations = equations
        self.needed = cells.keys() if needed is None else needed
        self.in_order: list[int] = []  # columns whose cells are moved, or would be if needed
        self.levels: dict[int, Array] = {}  # probabilities
        self.quantiles: dict[int, Array] = {}  # at Z
        self.drawn: dict[int, Array] = {}  # the same without bounds, of columns that have some
        self.fine: frozenset[int] = frozenset()  # columns whose quantiles are those at FINE
        self.candidates: dict[int, JointDraws] = {}  # by model, what its draws are to be moved from
        bounded = {d for pair in less for d in pair}  # moved, they might not be
        bounded |= {d for d in ends if isinstance(posterior.links[d], Counting)}
        self.free = frozenset(cells.keys() - bounded)
        self.cut = frozenset(d for d in self.free if _is_cut(posterior, d))
        self.source = self._without_bounds(posterior)
        self._note({d: cells[d] for d in cells if d in self.free and self._is_moved(d)})

    def _is_moved(self, d: int) -> bool:
        """Return whether the forecasts of a column are not those of its draws."""
        by = self.posterior.recalibration
        if by is None or d in self.cut:
            return d in self.cut
        return by.weights is not None or any(
            one.corrects(d) for one in (by, by.lone) if one is not None
        )

    def _before(
        self,
        posterior: Posterior,
        of_levels: Mapping[int, Array],
        numbers: Mapping[int, Array],
        fine: frozenset[int] | None = None,
    ) -> None:
        """Note probabilities and quantiles of the cells; those at FINE of some columns."""
        for d, part in predict(posterior, of_levels).items():
            assert part.probabilities is not None
            self.levels[d] = part.probabilities
        few = posterior.thinned(FEW)
        free = replace(self._without_bounds(few), recalibration=None)
        for d, part in predict(free, self._of_cut(numbers), ndtr(Z).tolist()).items():
            integral = of_numbers(posterior.links[d]).integral
            self.drawn[d] = _spread(free, d, part) if integral else part.quantiles
        for d, part in predict(few, numbers, ndtr(Z).tolist()).items():
            self.quantiles[d] = part.quantiles
            if of_numbers(posterior.links[d]).integral:
                self.quantiles[d] = _spread(few, d, part)
            elif fine is None and self._is_heaped(d, part):
                self.fine |= {d}
        self.fine = self.fine if fine is None else fine
        again = {d: numbers[d] for d in self.fine}
        for d, part in predict(few, again, ndtr(FINE).tolist()).items():
            self.quantiles[d] = part.quantiles
        for d, part in predict(free, self._of_cut(again), ndtr(FINE).tolist()).items():
            self.drawn[d] = part.quantiles

    def _is_heaped(self, d: int, part: Marginal) -> bool:
        """Return whether one value has much of a column, or an atom that the map may not blur."""
        atom = d in self.cut and isinstance(self.posterior.links[d], TwoPartLink)
        return atom or bool(np.mean(np.diff(part.quantiles) == 0.0) > HEAPED)

    def _of_cut(self, cells: Mapping[int, Array]) -> dict[int, Array]:
        """Return those of columns whose forecasts bounds cut off."""
        return {d: rows for d, rows in cells.items() if d in self.cut}

    def _without_bounds(self, posterior: Posterior) -> Posterior:
        """Return the posterior whose forecasts and draws of such columns are not cut off."""
        links = tuple(
            link.without_bounds() if d in self.cut and isinstance(link, BOUNDED) else link
            for d, link in enumerate(posterior.links)
        )
        return replace(posterior, links=links)

    def _note(self, cells: Mapping[int, Array]) -> None:
        """Note each model's own forecasts of cells, and the corrected ones that draws move to."""
        links = self.posterior.links
        of_levels = {d: rows for d, rows in cells.items() if links[d].discrete}
        numbers = {d: rows for d, rows in cells.items() if d not in of_levels}
        self.in_order = [*of_levels, *numbers]
        of_levels, numbers = (
            {d: rows for d, rows in part.items() if d in self.needed}
            for part in (of_levels, numbers)
        )
        if not (of_levels or numbers):
            return
        self._before(self.posterior, of_levels, numbers)
        for which in sorted(set(self.posterior.groups)):
            own = self.candidates[which] = JointDraws(self.posterior.of_candidate(which), {})
            own.cut = self.cut
            own._before(own.posterior, of_levels, numbers, self.fine)

    def draw(
        self, rng: np.random.Generator, draw: Draw | None = None, rows: Array | None = None
    ) -> dict[int, Array]:
        """Return one value or level code for each cell, all from one posterior draw.

        rows : (N,) bool; those whose equations have to hold; all if left out
        """
        if draw is None:
            draw = self.posterior.choose(rng)
        hold = self.ends, self.less, self.equations, rows
        drawn = draw_jointly(self.source, self.cells, rng, draw, *hold)
        given = {} if self.equations is None else self.equations.moved
        kept = {
            d: (self._held(d, given), x.copy())
            for d, x in drawn.items()
            if d in given or (d in self.ends and d in self.free)
        }
        for d, (_, x) in kept.items():  # as they were drawn where something holds them
            link = of_numbers(self.posterior.links[d])
            np.clip(x, link.lower, link.upper, out=x)
        drawn = self._corrected(drawn, draw, rng)
        for d, (held, x) in kept.items():
            drawn[d] = np.where(held, x, drawn[d])
        return drawn

    def _held(self, d: int, given: Mapping[int, Array]) -> Array:
        """Return which cells of a column (n,) equations have moved, or lie between known ends."""
        held = given[d][self.cells[d]] if d in given else np.zeros(self.cells[d].size, bool)
        return held | ~np.isnan(self.ends[d][:, 0]) if d in self.ends else held

    def _corrected(
        self, drawn: dict[int, Array], draw: Draw, rng: np.random.Generator
    ) -> dict[int, Array]:
        """Return cells moved from what is forecast of them before the correction to after it."""
        model, own = self.posterior.model, self
        if self.candidates:
            which = model.candidate(draw.latent) if isinstance(model, Candidates) else 0
            own = self.candidates[which]
        for d in self.in_order:
            if d not in self.needed:
                rng.random(drawn[d].size)  # so that others are drawn as they would be beside it
            elif d in self.levels:
                drawn[d] = _move_levels(drawn[d], own.levels[d], self.levels[d], rng)
            else:
                quantiles = own.drawn.get(d, own.quantiles[d])
                drawn[d] = self._moved(d, drawn[d], quantiles, self.quantiles[d], rng)
        return drawn

    def _scores(self, d: int) -> Array:
        """Return the normal scores of the quantiles of a column."""
        return FINE if d in self.fine else Z

    def _moved(
        self, d: int, x: Array, quantiles: Array, to: Array, rng: np.random.Generator
    ) -> Array:
        """Return numbers of column d moved as `_move_numbers` says, whole ones to whole ones."""
        how = self._scores(d), quantiles, to
        if not of_numbers(self.posterior.links[d]).integral:
            return _move_numbers(x, *how, rng.random(x.size))
        return np.ceil(_move_numbers(x - rng.random(x.size), *how))


def _move_levels(codes: Array, p: Array, corrected: Array, rng: np.random.Generator) -> Array:
    """Return codes (n,) of probabilities `corrected` (n, R), given codes of probabilities p."""
    n, at = codes.size, codes.astype(np.intp)
    upto = np.cumsum(p, axis=1)[np.arange(n), at]
    u = upto - rng.random(n) * p[np.arange(n), at]
    moved = np.sum(np.cumsum(corrected, axis=1) < u[:, None], axis=1)
    return np.minimum(moved, p.shape[1] - 1).astype(np.float64)


def _is_cut(posterior: Posterior, d: int) -> bool:
    """Return whether bounds cut off the forecasts of a column."""
    link = posterior.links[d]
    return isinstance(link, BOUNDED) and bool(np.isfinite(link.latent_bounds).any())


def _spread(posterior: Posterior, d: int, part: Marginal) -> Array:
    """Return the quantiles (n, Q) of whole numbers, each spread evenly over the unit below it."""
    q, spread = part.quantiles, part.quantiles - 1.0
    for own, places in parts_of(posterior, {d: part.rows}):
        at, by = places[d], own.recalibration
        if not at.size:
            continue
        p = np.tile(ndtr(Z), (at.size, 1))
        cells = np.repeat(part.rows[at], Z.size), q[at].ravel()
        upto, within, under, first, second = forecasts(own, {d: cells})[d].T
        if by is not None:
            sd = sd_of(first / own.n_draws, second / own.n_draws)
            p = by.uncorrected(d, ndtr(Z), sd[:: Z.size])
        share = (p.ravel() * within - under) / np.maximum(upto - under, LEAST)
        spread[at] += np.clip(share, 0.0, 1.0).reshape(at.size, -1)
    return spread


def _move_numbers(
    x: Array, scores: Array, quantiles: Array, to: Array, within: Array | float = 0.5
) -> Array:
    """Return x (n,) moved from quantiles to others (n, Q), both at normal scores (Q,).

    within : where in the steps of the distribution function, from 0 to 1, values lie that have some
    """
    z = _interpolate(np.clip(x, quantiles[:, 0], quantiles[:, -1]), quantiles, scores, within)
    return _quantiles(z, scores, to)


def _quantiles(z: Array, scores: Array, own: Array) -> Array:
    """Return quantiles at z (n,), linear between `own` (n, Q) at scores; beside STEP equal a step.

    Where between the two that step is cannot be told: half way.
    """
    k, row, last = _left_of(z, scores), np.arange(z.size), scores.size - 1
    low, high = own[row, k], own[row, k + 1]
    under = (k >= STEP - 1) & (own[row, np.maximum(k - STEP + 1, 0)] == low)
    over = (k + STEP <= last) & (own[row, np.minimum(k + STEP, last)] == high)
    step = np.where(z >= 0.5 * (scores[k] + scores[k + 1]), high, low)
    return np.where((low < high) & (under | over), step, _linear(z, scores, own))


def _linear(z: Array, scores: Array, own: Array) -> Array:
    """Return `np.interp` of each z (n,) between scores (Q,) of a row's `own` (n, Q)."""
    k, row = _left_of(z, scores), np.arange(z.size)
    low, high = own[row, k], own[row, k + 1]
    with np.errstate(over="ignore", invalid="ignore"):
        slope = (high - low) / (scores[k + 1] - scores[k])
        x = slope * (z - scores[k]) + low
        x = np.where(np.isnan(x), slope * (z - scores[k + 1]) + high, x)
    x = np.where(low == high, low, x)
    return np.where(z <= scores[0], own[:, 0], np.where(z >= scores[-1], own[:, -1], x))


def _left_of(z: Array, scores: Array) -> Array:
    """Return which two scores each z (n,) lies between, by the first."""
    return np.clip(np.searchsorted(scores, z, side="right") - 1, 0, scores.size - 2)


def _interpolate(x: Array, knots: Array, scores: Array, within: Array | float) -> Array:
    """Return scores (Q,) at x (n,), linear between knots (n, Q), `within` equal ones.

    Of these in probability: below the first knot and above the last are all that is left.
    """
    n, last = x.size, knots.shape[1] - 2
    right = np.sum(knots <= x[:, None], axis=1)
    left = np.sum(knots < x[:, None], axis=1)
    row = np.arange(n)
    low = np.clip(right - 1, 0, last)
    a, b = knots[row, low], knots[row, low + 1]
    share = np.clip((x - a) / np.where(b > a, b - a, 1.0), 0.0, 1.0)
    inside = scores[low] + share * (scores[low + 1] - scores[low])
    tied = right - left > 1
    under = np.where(left > 0, ndtr(scores[np.minimum(left, last + 1)]), 0.0)
    upto = np.where(right <= last + 1, ndtr(scores[right - 1]), 1.0)
    at = ndtri(np.clip(under + within * (upto - under), ndtr(scores[0]), ndtr(scores[-1])))
    return np.where(tied, at, inside)
