"""Chained extra trees as a latent model: what a driver calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.forest.columns import Kinds, cells_of
from glfm_cli.latent.forest.config import ForestConfig
from glfm_cli.latent.forest.draw import ForestDraw, ForestLaw, check_cells
from glfm_cli.latent.forest.trees import draw_cells, grow, scaled
from glfm_cli.latent.model import Kind, Pairs, Progress, Rows, Sees, Sizes, Values, take
from glfm_cli.streams import ROWS, START, Streams, column_step

TRACED_ROWS = 200  # at most, from which the log likelihood of a kept draw is traced


@dataclass
class ForestState:
    """Where a chain stands.

    z, seen : (D, N) every cell, and uint8 which of them are observed
    at : which of the columns with missing cells is the next
    key : of the trees of a draw that is kept now
    kept : that draw, once it was asked for
    """

    kinds: Kinds
    config: ForestConfig
    z: Array
    seen: Array
    at: int
    key: int
    kept: ForestDraw | None = None

    @property
    def missing(self) -> list[int]:
        """Return the columns with missing cells."""
        return [int(d) for d in np.flatnonzero((self.seen == 0).any(axis=1))]


class Forest:
    """Chained extra trees: `sees` values, a sampler."""

    name = "forest"
    Config = ForestConfig
    sees: Sees = "values"
    kind: Kind = "gibbs"
    layouts = frozenset({"dense"})
    takes_atoms = True
    refuses = frozenset({"binomial"})

    kept_beside = 4  # draws are large, and many trees of few tables are as good

    def config_beside(self) -> ForestConfig:
        """Return short steps."""
        return ForestConfig(visited=0.25)

    def start(
        self, values: Values, config: ForestConfig, streams: Streams, chain: int
    ) -> ForestState:
        """Return the table with each missing cell a donor's at random."""
        state = self._empty(values, config)
        rng = streams.get(START)
        for d in state.missing:
            gone = state.seen[d] == 0
            donors = state.z[d][~gone]
            state.z[d][gone] = rng.choice(donors if donors.size else np.zeros(1), int(gone.sum()))
        state.key = int(rng.integers(2**62))
        return state

    def step(
        self, state: ForestState, values: Values, streams: Streams, adapt: bool
    ) -> Progress:
        """Draw the missing cells of some columns, in turn, each by trees grown for it alone."""
        columns, config, kinds = state.missing, state.config, state.kinds
        for _ in range(int(np.ceil(config.visited * len(columns)))):
            d = columns[state.at]
            state.at = (state.at + 1) % len(columns)
            rng = streams.get(column_step(d))
            trees = grow(state.z, state.seen, kinds, [d], config.moving, 0, config, rng)
            rows = np.flatnonzero(state.seen[d] == 0)
            nobody, donors = np.full(rows.size, -1, dtype=np.int32), state.z[d].copy()
            cells = rows, nobody, donors, trees, 0
            draw_cells(state.z, kinds, d, *cells, rng)
        state.key, state.kept = int(streams.get(ROWS).integers(2**62)), None
        return Progress()

    def trace(self, state: ForestState) -> dict[str, float]:
        """Return the log likelihood of observed cells, each by trees that have not seen it."""
        return {"log_likelihood": self.draw(state).log_likelihood(TRACED_ROWS)}

    def draw(self, state: ForestState) -> ForestDraw:
        """Return the cells as they are, and trees grown for them."""
        if state.kept is None:
            (D, N), seen, config = state.z.shape, state.seen, state.config
            z, rng = state.z.copy(), np.random.Generator(np.random.SFC64(state.key))
            grown = config.trees, config.left_out, config
            trees = grow(z, seen, state.kinds, range(D), *grown, rng)
            trees = scaled(trees, z, seen, state.kinds, config.prior)
            rows = np.arange(N, dtype=np.int32)
            state.kept = ForestDraw(state.kinds, config.prior, trees, z, seen, z, seen, rows)
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
        """Return the draw of new rows, their missing cells drawn by the trees as they are."""
        problem = values.problem
        z = cells_of(problem.links, problem.xs, draw.kinds)
        own = problem.of_fit
        own = np.full(z.shape[1], -1) if own is None else own
        return draw.folded(z, own.astype(np.int32), sweeps, rng)

    def join_rows(self, draws: Sequence[ForestDraw]) -> ForestDraw:
        """Return the draw of all rows, below each other."""
        z, known, own = (
            np.concatenate([getattr(draw, name) for draw in draws], axis=-1)
            for name in ("z", "known", "own")
        )
        return replace(draws[0], z=z, known=known, own=own)

    def warnings(self, state: ForestState) -> list[str]:
        """Return nothing that a user should know."""
        return []

    def save(self, state: ForestState) -> dict[str, Array]:
        """Return everything that the next step depends on, besides observed cells and streams."""
        return {
            "drawn": state.z[state.seen == 0],
            "at": np.array(state.at, dtype=np.int64),
            "key": np.array(state.key, dtype=np.uint64),
        }

    def load(
        self, arrays: Mapping[str, Array], values: Values, config: ForestConfig
    ) -> ForestState:
        """Return the state that `save` was given; ValueError when it is none of this table."""
        state = self._empty(values, config)
        gone = state.seen == 0
        state.z[gone] = take(arrays, "drawn", np.float64, (int(gone.sum()),))
        check_cells(state.z, state.kinds)
        state.at = int(take(arrays, "at", np.int64, ()))
        state.key = int(take(arrays, "key", np.uint64, ()))
        if not 0 <= state.at < max(len(state.missing), 1):
            raise ValueError("'at' is no column with missing cells")
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
        return ForestState(kinds, config, z, (~np.isnan(z)).astype(np.uint8), 0, 0)
