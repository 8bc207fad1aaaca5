"""Chained extra trees as a latent model: what a driver calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.forest.columns import Kinds, cells_of
from glfm_cli.latent.forest.config import ForestConfig
from glfm_cli.latent.forest.draw import ForestDraw, ForestLaw, check_cells, middle_of
from glfm_cli.latent.forest.far import Far
from glfm_cli.latent.forest.intervals import LEFT_OUT, TREES, Ends, draw_inside, ends_of
from glfm_cli.latent.forest.leaves import SETTLED, SIZES, USUAL, best_way
from glfm_cli.latent.forest.lines import STEP_ROWS, Lines, may_have
from glfm_cli.latent.forest.related import RelatedRows
from glfm_cli.latent.forest.sums import with_sums
from glfm_cli.latent.forest.trees import draw_cells, grow, law, scaled, targets
from glfm_cli.latent.forest.twins import Alone, draw_together, twins_of
from glfm_cli.latent.model import Kind, Pairs, Problem, Progress, Rows, Sees, Sizes, Values, take
from glfm_cli.streams import ROWS, START, Streams, column_step

BEYOND = 0.05  # of the numbers, and of the missing cells, of new rows
TIMED = 8  # columns by which the time of a search for all of them is told
TRACED_ROWS = 200  # at most, from which the log likelihood of a kept draw is traced


@dataclass
class ForestState:
    """Where a chain stands.

    z : (F, N) every cell, and inputs behind the columns that stay as they are
    seen : (D, N) uint8, which cells are observed
    related : rows that belong together, of whose cells these inputs tell
    is_far : (D, N) bool, which cells nobody near tells of, of columns that have trees for them
    kinds, for_far : the columns to trees of other cells, and to those of these
    ends : of the observed cells of which an interval is known; z is drawn in it
    turn, at : how often all columns to be drawn were visited, up to a limit; the next of them
    least, linear : (D,) int64 and uint8, members of a leaf at least, and whether trees are grown on
        what a line leaves over; what the settings leave open is found once the cells are no more
        those of the start
    middle : (D,) share of cells that are given the median of three donors, found then, too
    twins : by column, those that nearly say the same, or say it together
    key : of the trees of a draw that is kept now
    kept : that draw, once it was asked for
    """

    kinds: Kinds
    for_far: Kinds
    config: ForestConfig
    z: Array
    seen: Array
    ends: Ends
    turn: int
    at: int
    least: Array
    linear: Array
    middle: Array
    twins: Sequence[Array]
    key: int
    is_far: Array
    related: RelatedRows | None = None
    kept: ForestDraw | None = None

    @property
    def drawn(self) -> Array:
        """Return which cells (D, N) are drawn: missing ones, and intervals."""
        drawn: Array = self.seen == 0
        for d, (rows, _, _) in self.ends.items():
            drawn[d, rows] = True
        return drawn

    @property
    def columns(self) -> list[int]:
        """Return the columns with cells that are drawn."""
        return [int(d) for d in np.flatnonzero(self.drawn.any(axis=1))]


class Forest:
    """Chained extra trees: `sees` values, a sampler."""

    name = "forest"
    Config = ForestConfig
    sees: Sees = "values"
    kind: Kind = "gibbs"
    layouts = frozenset({"dense"})
    takes_atoms = True
    takes_groups = True
    refuses = frozenset({"binomial", "missingness: probit"})

    kept_beside = 4  # draws are large, and many trees of few tables are as good

    def config_beside(self, search: bool) -> ForestConfig:
        """Return short steps, by trees of the usual leaves alone unless there is a search."""
        if search:
            return ForestConfig(visited=0.25)
        return ForestConfig(visited=0.25, least=USUAL, linear="never")

    def start(
        self, values: Values, config: ForestConfig, streams: Streams, chain: int
    ) -> ForestState:
        """Return the table with each missing cell a donor's at random."""
        state = self._empty(values, config)
        rng = streams.get(START)
        for d in np.flatnonzero((state.seen == 0).any(axis=1)).tolist():
            gone = state.seen[d] == 0
            donors = state.z[d][~gone]
            state.z[d][gone] = rng.choice(donors if donors.size else np.zeros(1), int(gone.sum()))
        state.key = int(rng.integers(2**62))
        return state

    def regrow(
        self, draw: ForestDraw, values: Values, config: ForestConfig, streams: Streams
    ) -> ForestState:
        """Return the table with missing cells as in a draw, others donors' at random."""
        state = self.start(values, config, streams, 0)
        same = (draw.known == 0) & state.drawn
        cells, drawn = state.z[: len(same)], draw.z[: len(same)]
        cells[same], state.turn = drawn[same], SETTLED + 1
        sizes = np.sort(SIZES)  # of leaves, as they were found
        if not config.least:
            state.least[:] = sizes[np.searchsorted(sizes, draw.trees.fewest, "right") - 1]
        state.linear[:], state.middle[:] = draw.lines.place >= 0, draw.middle
        return state

    def of_rows(self, draw: ForestDraw, rows: Array) -> ForestDraw:
        """Return the draw of some rows."""
        z, known = (np.ascontiguousarray(part[:, rows]) for part in (draw.z, draw.known))
        return replace(draw, z=z, known=known, own=draw.own[rows], is_far=draw.is_far[:, rows])

    def step(
        self, state: ForestState, values: Values, streams: Streams, adapt: bool
    ) -> Progress:
        """Draw the cells of some columns, in turn, each column's by trees grown for it alone."""
        columns = state.columns
        for _ in range(int(np.ceil(state.config.visited * len(columns)))):
            d = columns[state.at]
            _visit(state, d, streams.get(column_step(d)))
            state.at += 1
            if state.at == len(columns):
                state.turn, state.at = min(state.turn + 1, SETTLED + 1), 0
        state.key, state.kept = int(streams.get(ROWS).integers(2**62)), None
        return Progress()

    def settle(self, state: ForestState, streams: Streams) -> float:
        """Put a state past its start: some columns find how they are forecast best, others copy.

        Returns the share of the columns that do.
        """
        columns, may = state.columns, may_have(state.kinds)
        some = columns[:: max(1, len(columns) // TIMED)][:TIMED]
        z, seen, config = state.z, state.seen, state.config
        for d in some:
            way = best_way(z, seen, _most(state, d), d, config, streams.get(column_step(d)))
            state.least[d], state.linear[d], state.middle[d] = way
        for k, d in enumerate(columns):
            if d not in some:
                like = some[k % len(some)]
                state.least[d], state.linear[d] = state.least[like], state.linear[like] and may[d]
                state.middle[d] = 0.0 if state.kinds.levels[d] else state.middle[like]
        state.turn, state.kept = SETTLED + 1, None
        return len(some) / max(len(columns), 1)

    def trace(self, state: ForestState) -> dict[str, float]:
        """Return the log likelihood of observed cells, each by trees that have not seen it."""
        return {"log_likelihood": self.draw(state).log_likelihood(TRACED_ROWS)}

    def draw(self, state: ForestState) -> ForestDraw:
        """Return the cells as they are, and trees grown for them."""
        if state.kept is None:
            (D, N), seen, config = state.seen.shape, state.seen, state.config
            z, rng = state.z.copy(), np.random.Generator(np.random.SFC64(state.key))
            grown = config.trees_of(state.least), config.left_out, state.least, config
            lines = Lines.fit(z, seen, state.kinds, np.flatnonzero(state.linear).tolist(), rng)
            trees = grow(z, seen, state.kinds, range(D), *grown, rng, lines)
            units = None if state.related is None else state.related.units
            of_alone = z, seen, state.for_far, state.linear
            alone = Alone.grow(state.twins, *of_alone, *grown, rng, units)
            told = np.array([s & ~alone.rows(d, seen) for d, s in enumerate(seen != 0)])
            trees = scaled(trees, z, seen, state.kinds, config.prior, lines, told)
            far = None
            if state.related is not None:
                of_far = z, seen, told, state.for_far, state.linear
                far = Far.grow(state.related.two, *of_far, *grown, rng, units)
            of_fit = z, seen, z, seen, np.arange(N, dtype=np.int32)
            by, middle = (trees, lines, alone), state.middle.copy()
            others = state.is_far[: 0 if far is None else None], state.related, far
            of = state.kinds, config.prior, *by, middle, *of_fit
            state.kept = ForestDraw(*of, *others)
        return state.kept

    def cells_law(self, draw: ForestDraw, rows: Rows) -> ForestLaw:
        """Return the law of cells given all others of their rows."""
        assert not isinstance(rows, Pairs)
        return ForestLaw(draw, np.arange(draw.own.size)[rows])

    def joint(self, draw: ForestDraw, rows: Rows, rng: np.random.Generator) -> ForestLaw:
        """Return the law of cells of which the missing ones are as they are drawn now."""
        assert not isinstance(rows, Pairs)
        again = draw.again(np.arange(draw.own.size)[rows], rng)
        return ForestLaw(again, np.arange(again.own.size), drawn=True)

    def fold_in(
        self, draw: ForestDraw, values: Values, sweeps: int, rng: np.random.Generator
    ) -> ForestDraw:
        """Return the draw of new rows, their cells drawn by the trees as they are."""
        problem = values.problem
        z = cells_of(problem.links, problem.xs, draw.kinds)
        own = problem.of_fit
        own = np.full(z.shape[1], -1) if own is None else own
        ends = ends_of(problem.links, problem.xs)
        return draw.folded(z, own.astype(np.int32), ends, sweeps, rng, problem.groups)

    def reaches(self, draw: ForestDraw, problem: Problem) -> bool:
        """Return whether new rows are like those of the fit, but for a twentieth of their cells.

        Trees know no value that they have not seen: series that rise or walk leave them behind.
        Nor have trees that every missing cell of a column told of its group learnt to do without.
        """
        if problem.groups is None:
            return True
        z = cells_of(problem.links, problem.xs, draw.kinds)
        if draw.related is not None and draw.related.mates is not None:
            strange = draw.related.mates.strange(draw.seen, z, problem.groups.code)
            if strange.sum() > BEYOND * np.isnan(z).sum():
                return False
        if problem.groups.time is None:
            return True
        beyond, n = 0, 0
        for d in np.flatnonzero(draw.kinds.levels[: len(z)] == 0):
            if d == problem.groups.clock:
                continue
            new, known = z[d][~np.isnan(z[d])], draw.donors[d][draw.seen[d] != 0]
            if known.size:
                beyond += int(np.sum((new < known.min()) | (new > known.max())))
                n += new.size
        return beyond <= BEYOND * n

    def join_rows(self, draws: Sequence[ForestDraw]) -> ForestDraw:
        """Return the draw of all rows, below each other."""
        z, known, own, is_far = (
            np.concatenate([getattr(draw, name) for draw in draws], axis=-1)
            for name in ("z", "known", "own", "is_far")
        )
        return replace(draws[0], z=z, known=known, own=own, is_far=is_far)

    def warnings(self, state: ForestState) -> list[str]:
        """Return nothing that a user should know."""
        return []

    def save(self, state: ForestState) -> dict[str, Array]:
        """Return everything that the next step depends on, besides observed cells and streams."""
        return {
            "drawn": state.z[: len(state.seen)][state.drawn],
            "turn": np.array(state.turn, dtype=np.int64),
            "at": np.array(state.at, dtype=np.int64),
            "way": np.stack([state.least, state.linear]),
            "middle": state.middle,
            "key": np.array(state.key, dtype=np.uint64),
        }

    def load(
        self, arrays: Mapping[str, Array], values: Values, config: ForestConfig
    ) -> ForestState:
        """Return the state that `save` was given; ValueError when it is none of this table."""
        state = self._empty(values, config)
        drawn = state.drawn
        state.z[: len(drawn)][drawn] = take(arrays, "drawn", np.float64, (int(drawn.sum()),))
        check_cells(state.z, state.kinds)
        state.key = int(take(arrays, "key", np.uint64, ()))
        state.turn, state.at = (int(take(arrays, name, np.int64, ())) for name in ("turn", "at"))
        state.least[:], state.linear[:] = _way_of(arrays, len(drawn))
        state.middle[:] = middle_of(arrays, len(drawn))
        if not 0 <= state.at < max(len(state.columns), 1):
            raise ValueError("'at' is no column with cells to draw")
        if not 0 <= state.turn <= SETTLED + 1:
            raise ValueError("'turn' is out of range")
        if not np.isin(state.least, config.least or SIZES).all():
            raise ValueError("'least' is out of range")
        if np.any(state.linear > may_have(state.kinds)):
            raise ValueError("'way' has a line of a column that can have none")
        return state

    def pack(self, draw: ForestDraw) -> dict[str, Array]:
        """Return a draw as named arrays."""
        return draw.pack()

    def unpack(self, arrays: Mapping[str, Array], sizes: Sizes) -> ForestDraw:
        """Return the draw that `pack` was given, checked."""
        return ForestDraw.unpack(arrays, sizes)

    def _empty(self, values: Values, config: ForestConfig) -> ForestState:
        problem = values.problem
        kinds = Kinds.of(problem.links)
        z = cells_of(problem.links, problem.xs, kinds)
        seen, ends = (~np.isnan(z)).astype(np.uint8), ends_of(problem.links, problem.xs)
        least = np.full(len(z), config.least or USUAL, dtype=np.int64)
        linear, middle = np.zeros(len(z), dtype=np.uint8), np.zeros(len(z))
        twins = with_sums(
            twins_of(z, seen, kinds, config.together), z, seen, kinds, config.together
        )
        related, for_far, is_far = None, kinds, np.zeros(z.shape, dtype=bool)
        if problem.groups is not None:
            same = problem.group_level
            related, found = RelatedRows.of(problem.groups, z, seen, kinds, same)
            z, is_far = np.concatenate([z, found.inputs]), found.far
            kinds, for_far = related.kinds(kinds)
        of = z, seen, ends, 0, 0, least, linear, middle, twins, 0, is_far, related
        return ForestState(kinds, for_far, config, *of)


def _way_of(arrays: Mapping[str, Array], columns: int) -> Array:
    """Return leaves' sizes and lines (2, D) as they were saved."""
    way: Array = take(arrays, "way", np.int64, (2, columns))
    if np.any(way[1] < 0) or np.any(way[1] > 1):
        raise ValueError("'way' is out of range")
    return way


def _most(state: ForestState, d: int) -> Kinds:
    """Return the columns as trees of most of the missing cells of column d see them."""
    gone = state.seen[d] == 0
    return state.for_far if 2 * (state.is_far[d] & gone).sum() > gone.sum() else state.kinds


def _visit(state: ForestState, d: int, rng: np.random.Generator) -> None:
    """Draw the cells of column d that are drawn, by trees grown for it alone."""
    z, seen, config, least = state.z, state.seen, state.config, state.least
    kinds = _most(state, d)
    if state.turn == SETTLED:
        way = best_way(z, seen, kinds, d, config, rng)
        least[d], state.linear[d], state.middle[d] = way
    # Each the only donor of the other, two rows would hold each other at the start.
    moving = least if state.turn >= SETTLED else np.maximum(least, USUAL)
    if state.twins[d].size:
        draw_together(
            z, seen, state.for_far, d, state.twins[d], state.linear, moving, config, rng
        )
    middle = float(state.middle[d])
    n_trees = (TREES, LEFT_OUT) if d in state.ends else (config.trees_moving(middle), 0)
    far = state.is_far[d]
    for kinds, of in ((state.for_far, far), (state.kinds, (seen[d] == 0) & ~far)):
        rows = np.flatnonzero(of)
        if of is far and not rows.size:
            continue
        lines = Lines.fit(z, seen, kinds, [d] if state.linear[d] else [], rng, most=STEP_ROWS)
        trees = grow(z, seen, kinds, [d], *n_trees, moving, config, rng, lines)
        donors, nobody = targets(z, d, lines).copy(), np.full(rows.size, -1, dtype=np.int32)
        base = lines.forecast(d, z, rows) if state.linear[d] else None
        draw_cells(z, kinds, d, rows, nobody, donors, trees, 0, rng, base, middle)
    if d in state.ends:
        at, low, high = state.ends[d]
        donors[seen[d] == 0] = np.nan
        base = z[d, at] - donors[at] if state.linear[d] else None
        found = law(z, at, at.astype(np.int32), donors, kinds, d, trees, 0, config.prior, base)
        z[d, at] = draw_inside(found, low, high, rng)
