"""The latent Gaussian process as a latent model: what a driver calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax

import glfm_cli.latent.clgp.engine as engine
from glfm_cli.arrays import Array
from glfm_cli.latent.clgp.ascent import ClgpState, n_iterations, step
from glfm_cli.latent.clgp.blocks import BLOCK
from glfm_cli.latent.clgp.columns import kinds_of, observed_table
from glfm_cli.latent.clgp.config import ClgpConfig
from glfm_cli.latent.clgp.draws import ClgpDraw
from glfm_cli.latent.clgp.laws import ClgpLaw
from glfm_cli.latent.clgp.new_rows import fold_in
from glfm_cli.latent.clgp.relevance import relevances
from glfm_cli.latent.clgp.table import ObservedTable
from glfm_cli.latent.model import Kind, Pairs, Progress, Rows, Sees, Sizes, Values, joined
from glfm_cli.streams import Streams

MAPPED = 8  # dimensions at most that are laid out on a map
CLOSE, SHARE = 5.0, 0.05  # nats, or share of the best bound if more, that fits of use differ by


@dataclass
class ClgpChain:
    """A restart's state, with the table as it sees it."""

    ascent: ClgpState
    table: ObservedTable


class Clgp:
    """The latent Gaussian process: `sees` values, an ascent of a bound."""

    name = "clgp"
    Config = ClgpConfig
    sees: Sees = "values"
    kind: Kind = "ascent"
    layouts = frozenset({"dense"})
    refuses = frozenset({"binomial", "missingness: probit"})
    n_restarts = 5

    def start(self, values: Values, config: ClgpConfig, streams: Streams, chain: int) -> ClgpChain:
        """Return the state that a chain, a restart, begins with."""
        table = _table_of(values)
        state = ClgpChain(engine.start(table, config, streams, chain), table)
        _update_params(state, values)
        return state

    def step(self, state: ClgpChain, values: Values, streams: Streams, adapt: bool) -> Progress:
        """Make one iteration, in place.

        Raises NumericalError: the kernel of the inducing points lost its rank.
        """
        with _pool(values, state.table) as pool:
            progress = step(state.ascent, state.table, streams, pool)
        _update_params(state, values)
        return progress

    def draw(self, state: ClgpChain) -> ClgpDraw:
        """Return a snapshot of q."""
        return engine.draw(state.ascent, state.table)

    def cells_law(self, draw: ClgpDraw, rows: Rows) -> ClgpLaw:
        """Return the law of the cells of some rows, weights and places integrated."""
        assert not isinstance(rows, Pairs)
        return draw.law(rows)

    def joint(self, draw: ClgpDraw, rows: Rows, rng: np.random.Generator) -> ClgpLaw:
        """Return a law given latent numbers, under a draw that `sample_shared` made."""
        assert not isinstance(rows, Pairs)
        return draw.joint(rows, rng)

    def sample_shared(self, draw: ClgpDraw, rng: np.random.Generator) -> ClgpDraw:
        """Return a draw with a sample of the weights."""
        return draw.sampled(rng)

    def sample_all(self, draw: ClgpDraw, rng: np.random.Generator) -> ClgpDraw:
        """Return a draw with a sample of the weights and of all places."""
        return draw.sampled(rng).placed(rng)

    # The map -----------------------------------------------------------------------------------

    def map_settings(self, n_columns: int) -> dict[str, object]:
        """Return the number of dimensions: the usual one, from 3 to 8; of two columns 2."""
        usual = ClgpConfig().sizes(n_columns)[0]
        return {"dimensions": max(2, min(3, n_columns), min(MAPPED, usual))}

    def places(self, draw: ClgpDraw) -> tuple[Array, Array]:
        """Return means (N, Q) and covariances (N, Q, Q) of where rows lie."""
        return draw.m, draw.covariances()

    def relevances(self, draw: ClgpDraw) -> Array:
        """Return each dimension's share (Q,) of what places do to the columns."""
        return relevances(draw.shared, draw.m, np.diagonal(draw.covariances(), axis1=1, axis2=2))

    def law_at(self, draw: ClgpDraw, x: Array) -> ClgpLaw:
        """Return the law of the cells of rows that lie at x (n, Q)."""
        return draw.law_at(x)

    def fold_in(
        self, draw: ClgpDraw, values: Values, sweeps: int, rng: np.random.Generator
    ) -> ClgpDraw:
        """Return the draw with new rows, each where its bound is largest."""
        problem = values.problem
        table = observed_table(problem.links, problem.xs, values.params, draw.kinds)
        streams = Streams(int(rng.integers(2**63)), 0)
        with _pool(values, table) as pool:
            return fold_in(draw, problem.config, table, streams, pool)

    # Restarts ----------------------------------------------------------------------------------

    def n_steps(self, config: ClgpConfig, n_rows: int) -> int:
        """Return the number of iterations."""
        return n_iterations(config, n_rows)

    def score(self, state: ClgpChain, values: Values, bound: float) -> float:
        """Return the bound under normals that all restarts share."""
        with _pool(values, state.table) as pool:
            return engine.bound(state.ascent, state.table, pool)

    def weights(self, problem: Any, scores: Mapping[int, float]) -> list[float]:
        """Return the softmax of bounds in units of what fits of use differ by.

        Restarts predict better together than the best alone, even if it is the best by far; those
        that found next to nothing hardly count.
        """
        bounds = np.array(list(scores.values()))
        weights: list[float] = softmax(bounds / max(CLOSE, SHARE * abs(bounds.max()))).tolist()
        return weights

    # Told and kept -----------------------------------------------------------------------------

    def trace(self, state: ClgpChain) -> dict[str, float]:
        """Return how many dimensions have a part in what columns are."""
        return engine.trace(state.ascent)

    def join_rows(self, draws: Sequence[ClgpDraw]) -> ClgpDraw:
        """Return the draw of all rows, below each other."""
        found: ClgpDraw = joined(draws, "m", "spread")
        return found

    def warnings(self, state: ClgpChain) -> list[str]:
        """Return what a user should know of a finished restart."""
        return engine.warnings(state.ascent)

    def save(self, state: ClgpChain) -> dict[str, Array]:
        """Return everything that the next iteration depends on, besides table and streams."""
        return engine.save(state.ascent)

    def load(self, arrays: Mapping[str, Array], values: Values, config: ClgpConfig) -> ClgpChain:
        """Return the state that `save` was given; ValueError when it is none of this table."""
        table = _table_of(values)
        return ClgpChain(engine.load(arrays, table, config), table)

    def pack(self, draw: ClgpDraw) -> dict[str, Array]:
        """Return a draw as named arrays."""
        return draw.pack()

    def unpack(self, arrays: Mapping[str, Array], sizes: Sizes) -> ClgpDraw:
        """Return the draw that `pack` was given, on the same memory."""
        return ClgpDraw.unpack(arrays, sizes.rows, sizes.latent, sizes.columns)


def _table_of(values: Values) -> ObservedTable:
    problem: Any = values.problem
    kinds = kinds_of(problem.links, problem.xs)
    return observed_table(problem.links, problem.xs, values.params, kinds)


def _update_params(state: ClgpChain, values: Values) -> None:
    """Let the observations have the thresholds, in place."""
    slots = state.table.slots
    for d, kind in enumerate(slots.kinds):
        if kind.n_thresholds:
            link = values.problem.links[d]
            link.set_thresholds(values.params[d], state.ascent.shared.thresholds(slots, d))


@contextmanager
def _pool(values: Values, table: ObservedTable) -> Iterator[ThreadPoolExecutor | None]:
    """Lend a pool of the chain's threads, None where there is nothing to share out."""
    if values.threads == 1 or table.n_rows <= BLOCK:
        yield None
        return
    with ThreadPoolExecutor(values.threads) as pool:
        yield pool
