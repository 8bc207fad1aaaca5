"""The Poisson factorization as a latent model: what a driver calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.capabilities import CountFactors
from glfm_cli.latent.cnpf.calibration import chosen_tau
from glfm_cli.latent.cnpf.config import CnpfConfig
from glfm_cli.latent.cnpf.counts import Counts
from glfm_cli.latent.cnpf.draw import CnpfDraw
from glfm_cli.latent.cnpf.engine import CnpfEngine
from glfm_cli.latent.cnpf.prediction import fold_in, rates, sample_rates
from glfm_cli.latent.cnpf.state import CnpfState
from glfm_cli.latent.model import Kind, Pairs, Problem, Progress, Rows, Sees, Sizes, Values
from glfm_cli.links.law import ALL, CellLaw, GammaPoisson
from glfm_cli.streams import Streams

ENGINE = CnpfEngine()
CERTAIN = 1e15  # shape of a rate that is known


@dataclass
class CnpfChain:
    """A restart's state, with the counts as it sees them."""

    fit: CnpfState
    counts: Counts


@dataclass(frozen=True)
class PairsLaw:
    """The law of some pairs under one draw: gamma rates of given shapes and means."""

    shape: Array
    mean: Array

    def column(self, d: int, at: Array | slice = ALL) -> CellLaw:
        """Return the law of the cells, of the pairs `at` among those asked for."""
        return GammaPoisson(self.shape[at], self.mean[at])


class Cnpf:
    """Correlated Poisson factorization: `sees` values, an ascent of a bound."""

    name = "cnpf"
    Config = CnpfConfig
    sees: Sees = "values"
    kind: Kind = "ascent"
    layouts = frozenset({"counts"})
    takes_weights = False
    n_restarts = 3

    def n_steps(self, config: CnpfConfig, n_rows: int) -> int:
        """Return the largest number of passes, or of minibatches."""
        return config.passes_of(n_rows) * (n_rows // config.minibatch_of(n_rows))

    def start(self, values: Values, config: CnpfConfig, streams: Streams, chain: int) -> CnpfChain:
        """Return the state that a restart begins with."""
        counts = counts_of(values)
        return CnpfChain(ENGINE.start(counts, config, streams), counts)

    def step(self, state: CnpfChain, values: Values, streams: Streams, adapt: bool) -> Progress:
        """Make one pass, or one step from a minibatch, in place."""
        if state.counts.threads != values.threads:
            state.counts = replace(state.counts, threads=values.threads)
        return ENGINE.step(state.fit, state.counts, streams)

    def draw(self, state: CnpfChain) -> CnpfDraw:
        """Return a snapshot of q."""
        return ENGINE.draw(state.fit, state.counts)

    def cells_law(self, draw: CnpfDraw, rows: Rows) -> PairsLaw:
        """Return the law of pairs: gamma rates of the mean and variance that they have under q."""
        assert isinstance(rows, Pairs)
        found = rates(draw, rows.row, rows.column)
        certain = found.var <= found.mean**2 / CERTAIN
        shape = np.full(found.mean.size, CERTAIN)
        np.divide(found.mean**2, found.var, out=shape, where=~certain)
        return PairsLaw(shape, found.mean)

    def joint(self, draw: CnpfDraw, rows: Rows, rng: np.random.Generator) -> PairsLaw:
        """Return the law of pairs given rates, drawn together within rows and columns."""
        assert isinstance(rows, Pairs)
        mean = sample_rates(draw, rows.row, rows.column, 1, rng)[0]
        return PairsLaw(np.full(mean.size, CERTAIN), np.maximum(mean, 1e-300))

    def fold_in(
        self, draw: CnpfDraw, values: Values, sweeps: int, rng: np.random.Generator
    ) -> CnpfDraw:
        """Return the draw with new rows behind those of the fit, by the step of rows alone."""
        n_rows = draw.shape.shape[0]
        counts = counts_of(values)
        new = counts.take(np.arange(n_rows, counts.shape[0]))
        return draw.with_rows(fold_in(draw, new, values.problem.config))

    def calibrate(
        self, problem: Problem, seed: int, observed: float, threads: int
    ) -> CnpfConfig:
        """Return the configuration with the tau that predicts best where `observed` is seen."""
        config: CnpfConfig = problem.config
        counts = counts_of(Values(problem, (), threads=threads))
        return replace(config, tau=chosen_tau(counts, config, seed, observed))

    def factors(self, draw: CnpfDraw) -> CountFactors:
        """Return what components are made of."""
        return CountFactors(draw.mean_x * draw.size[:, None], draw.mean_a, draw.correlations())

    def trace(self, state: CnpfChain) -> dict[str, float]:
        """Return the live components, the sum of weights and their rate."""
        return {k: v for k, v in ENGINE.trace(state.fit).items() if k != "bound"}

    def warnings(self, state: CnpfChain) -> list[str]:
        """Return what a user should know of a finished restart."""
        return ENGINE.warnings(state.fit)

    def save(self, state: CnpfChain) -> dict[str, Array]:
        """Return everything that the next step depends on, besides counts and streams."""
        return ENGINE.save(state.fit)

    def load(self, arrays: Mapping[str, Array], values: Values, config: CnpfConfig) -> CnpfChain:
        """Return the state that `save` was given; ValueError when it is none of these counts."""
        counts = counts_of(values)
        return CnpfChain(ENGINE.load(arrays, counts, config), counts)

    def pack(self, draw: CnpfDraw) -> dict[str, Array]:
        """Return a draw as named arrays."""
        return draw.pack()

    def unpack(self, arrays: Mapping[str, Array], sizes: Sizes) -> CnpfDraw:
        """Return the draw that `pack` was given, checked."""
        return CnpfDraw.unpack(arrays, sizes)


def counts_of(values: Values) -> Counts:
    """Return the cells of a sparse layout as counts; those without a value are missing pairs."""
    problem: Problem = values.problem
    entries, x = problem.matrix.entries, problem.xs[0]
    seen = ~np.isnan(x)
    lost: Any = (entries.row[~seen], entries.column[~seen])
    kept = entries.row[seen], entries.column[seen], x[seen]
    return Counts.of(*kept, entries.shape, lost, values.threads)
