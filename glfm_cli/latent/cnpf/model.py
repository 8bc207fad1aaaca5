"""The Poisson factorization as a latent model: what a driver calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import glfm_cli.latent.cnpf.engine as engine
from glfm_cli.arrays import Array
from glfm_cli.latent.capabilities import CountFactors
from glfm_cli.latent.cnpf.calibration import chosen_tau, weights_of
from glfm_cli.latent.cnpf.config import CnpfConfig
from glfm_cli.latent.cnpf.counts import Counts
from glfm_cli.latent.cnpf.draw import TINY, CnpfDraw, factor_variance
from glfm_cli.latent.cnpf.prediction import fold_in, p_any, rates, sample_rates
from glfm_cli.latent.cnpf.state import CnpfState, load_state, save_state
from glfm_cli.latent.model import (
    Kind,
    Pairs,
    Problem,
    Progress,
    Rows,
    Sees,
    Sizes,
    Sparse,
    Values,
    joined,
)
from glfm_cli.links.law import ALL, CellLaw, GammaPoisson
from glfm_cli.streams import Streams

CERTAIN = 1e15  # shape of a rate that is known


@dataclass
class CnpfChain:
    """A restart's state, with the counts as it sees them."""

    fit: CnpfState
    counts: Counts


@dataclass(frozen=True)
class RatesLaw:
    """The law of cells under one draw: gamma rates of given shapes and means.

    shape, mean : (n,) of pairs, or (n, D) of rows of a table
    """

    shape: Array
    mean: Array

    def column(self, d: int, at: Array | slice = ALL) -> CellLaw:
        """Return the law of the pairs `at` among those asked for, or of column d in those rows."""
        if self.mean.ndim == 1:
            return GammaPoisson(self.shape[at], self.mean[at])
        return GammaPoisson(self.shape[at, d], self.mean[at, d])


class Cnpf:
    """Correlated Poisson factorization: `sees` values, an ascent of a bound."""

    name = "cnpf"
    Config = CnpfConfig
    sees: Sees = "values"
    kind: Kind = "ascent"
    layouts = frozenset({"counts", "dense"})
    types = frozenset({"count"})
    n_restarts = 3

    def n_steps(self, config: CnpfConfig, n_rows: int) -> int:
        """Return the largest number of passes, or of minibatches."""
        return config.passes_of(n_rows) * (n_rows // config.minibatch_of(n_rows))

    def start(self, values: Values, config: CnpfConfig, streams: Streams, chain: int) -> CnpfChain:
        """Return the state that a restart begins with."""
        counts = counts_of(values)
        return CnpfChain(engine.start(counts, config, streams), counts)

    def step(self, state: CnpfChain, values: Values, streams: Streams, adapt: bool) -> Progress:
        """Make one pass, or one step from a minibatch, in place."""
        if state.counts.threads != values.threads:
            state.counts = replace(state.counts, threads=values.threads)
        return engine.step(state.fit, state.counts, streams)

    def draw(self, state: CnpfChain) -> CnpfDraw:
        """Return a snapshot of q."""
        return engine.draw(state.fit, state.counts)

    def cells_law(self, draw: CnpfDraw, rows: Rows) -> RatesLaw:
        """Return the law of cells: gamma rates of the mean and variance that they have under q."""
        pairs, shape = _pairs_of(draw, rows)
        found = rates(draw, pairs.row, pairs.column)
        certain = found.var <= found.mean**2 / CERTAIN
        of_rates = np.full(found.mean.size, CERTAIN)
        np.divide(found.mean**2, found.var, out=of_rates, where=~certain)
        return RatesLaw(of_rates.reshape(shape), found.mean.reshape(shape))

    def joint(self, draw: CnpfDraw, rows: Rows, rng: np.random.Generator) -> RatesLaw:
        """Return the law of cells given rates drawn together within rows and columns."""
        pairs, shape = _pairs_of(draw, rows)
        drawn = sample_rates(draw, pairs.row, pairs.column, 1, rng).reshape(shape)
        mean = rates(draw, pairs.row, pairs.column).mean.reshape(shape)
        of_cells = 1.0 / np.maximum(factor_variance(mean, draw.excess), 1.0 / CERTAIN)
        return RatesLaw(of_cells, np.maximum(drawn, TINY))

    def fold_in(
        self, draw: CnpfDraw, values: Values, sweeps: int, rng: np.random.Generator
    ) -> CnpfDraw:
        """Return the draw of a table's new rows, or of a matrix with them behind those of the fit.

        By the step of rows alone.
        """
        counts, config = counts_of(values), values.problem.config
        if not isinstance(values.problem.layout, Sparse):
            return fold_in(draw, counts, config)
        new = counts.take(np.arange(draw.shape.shape[0], counts.shape[0]))
        return draw.with_rows(fold_in(draw, new, config))

    def weights(self, problem: Problem, scores: Mapping[int, float]) -> list[float]:
        """Return the weights by which restarts predict together."""
        weights: list[float] = weights_of(np.array(list(scores.values()))).tolist()
        return weights

    def calibrate(
        self, problem: Problem, restarts: int, seed: int, observed: float, threads: int
    ) -> CnpfConfig:
        """Return the configuration with the tau that predicts best where `observed` is seen."""
        config: CnpfConfig = problem.config
        counts = counts_of(Values(problem, (), threads=threads))
        return replace(config, tau=chosen_tau(counts, config, seed, observed, restarts))

    def factors(self, draw: CnpfDraw) -> CountFactors:
        """Return what components are made of."""
        return CountFactors(draw.mean_x * draw.size[:, None], draw.mean_a, *draw.correlations())

    def p_any(self, draw: CnpfDraw, rows: slice | Array) -> Array:
        """Return the probabilities (n, I) of a count of at least one, of all columns."""
        return p_any(draw, rows)

    def trace(self, state: CnpfChain) -> dict[str, float]:
        """Return the live components, the sum of weights and their rate."""
        return {k: v for k, v in engine.trace(state.fit).items() if k != "bound"}

    def join_rows(self, draws: Sequence[CnpfDraw]) -> CnpfDraw:
        """Return the draw of all rows, below each other."""
        found: CnpfDraw = joined(draws, "shape", "rate", "size")
        return found

    def warnings(self, state: CnpfChain) -> list[str]:
        """Return what a user should know of a finished restart."""
        return engine.warnings(state.fit, state.counts)

    def save(self, state: CnpfChain) -> dict[str, Array]:
        """Return everything that the next step depends on, besides counts and streams."""
        return save_state(state.fit)

    def load(self, arrays: Mapping[str, Array], values: Values, config: CnpfConfig) -> CnpfChain:
        """Return the state that `save` was given; ValueError when it is none of these counts."""
        counts = counts_of(values)
        return CnpfChain(load_state(arrays, counts, config), counts)

    def pack(self, draw: CnpfDraw) -> dict[str, Array]:
        """Return a draw as named arrays."""
        return draw.pack()

    def unpack(self, arrays: Mapping[str, Array], sizes: Sizes) -> CnpfDraw:
        """Return the draw that `pack` was given, checked."""
        return CnpfDraw.unpack(arrays, sizes)


def counts_of(values: Values) -> Counts:
    """Return the cells of a table or a matrix as counts; those without a value are missing."""
    problem: Problem = values.problem
    if isinstance(problem.layout, Sparse):
        entries, x = problem.layout.entries, problem.xs[0]
        row, column, sizes = entries.row, entries.column, entries.shape
    else:
        sizes = (problem.n_rows, len(problem.xs))
        column, row = (np.concatenate(parts) for parts in zip(*_nonzero(problem.xs), strict=True))
        x = np.concatenate([one[one != 0.0] for one in problem.xs])
    seen = ~np.isnan(x)
    lost: Any = (row[~seen], column[~seen])
    return Counts.of(row[seen], column[seen], x[seen], sizes, lost, values.threads)


def _nonzero(xs: Sequence[Array]) -> Iterator[tuple[Array, Array]]:
    """Yield per column its number and the rows of its cells but zeros, as often as these."""
    for d, x in enumerate(xs):
        rows = np.flatnonzero(x != 0.0)
        yield np.full(rows.size, d), rows


def _pairs_of(draw: CnpfDraw, rows: Rows) -> tuple[Pairs, tuple[int, ...]]:
    """Return the cells of some rows of a table, or the pairs, and the shape of their law."""
    if isinstance(rows, Pairs):
        return rows, rows.row.shape
    at = np.arange(draw.shape.shape[0])[rows]
    shape = (at.size, draw.shared.A.shape[0])
    row, column = (part.ravel() for part in np.indices(shape))
    return Pairs(at[row], column), shape
