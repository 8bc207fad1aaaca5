"""Kept draws of all chains, and what can be asked of them without knowing the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.inference.diagnostics import Diagnostics, diagnose
from glfm_cli.inference.recalibration import Recalibration
from glfm_cli.latent.capabilities import Candidates, SharedLaw
from glfm_cli.latent.model import LatentModel, Pairs
from glfm_cli.links import Link, Params, RowsLaw
from glfm_cli.streams import DRAWS, Streams


def gates(name: str) -> bool:
    """Return whether a traced quantity decides on convergence; the number of features does not."""
    return name == "log_likelihood" or name.startswith(("noise_", "cell_"))


@dataclass(frozen=True)
class Draw:
    """One kept draw: the model's snapshot, the parameters of every link, and scalars."""

    latent: Any
    params: tuple[Params, ...]
    trace: dict[str, float]


@dataclass(frozen=True, repr=False)
class Posterior:
    """The kept draws of a run.

    model : the latent model that made them
    spans : per column, its first pseudo-column and one past its last
    chains : per chain, its draws in order; chains may differ in length after an interruption
    recalibration : how forecasts that pool the draws are corrected; None leaves them as they are
    pairs : of a matrix, the cells that its rows stand for, one each; None for a table
    weights : per chain, the weight of its draws together, adding up to 1: those of restarts of an
        ascent, the best first; None where every draw counts the same
    lone : (N, D) bool, cells of groups without a value of their column, which have corrections of
        their own; None where there are none
    """

    model: LatentModel
    links: tuple[Link, ...]
    spans: tuple[tuple[int, int], ...]
    chains: tuple[tuple[Draw, ...], ...]
    recalibration: Recalibration | None = None
    pairs: Pairs | None = None
    weights: tuple[float, ...] | None = None
    lone: Array | None = None

    @classmethod
    def of_restarts(
        cls,
        model: LatentModel,
        links: tuple[Link, ...],
        spans: tuple[tuple[int, int], ...],
        chains: Sequence[tuple[Draw, ...]],
    ) -> Posterior:
        """Return that of an ascent, whose draws trace `weight` and `score`, the best first.

        Raises ValueError: the weights do not add up to 1.
        """
        chains = sorted(chains, key=lambda chain: -chain[0].trace["score"])
        weights = tuple(chain[0].trace["weight"] for chain in chains)
        if min(weights) < 0.0 or abs(sum(weights) - 1.0) > 1e-9:
            raise ValueError("the weights of its draws do not add up to 1")
        return cls(model, links, spans, tuple(chains), weights=weights)

    @property
    def n_draws(self) -> int:
        """The number of draws over all chains."""
        return sum(len(chain) for chain in self.chains)

    def draws(self, at_most: int | None = None) -> Iterator[Draw]:
        """Yield the draws chain by chain; an evenly thinned `at_most` of them when given."""
        every = [draw for chain in self.chains for draw in chain]
        if at_most is not None and len(every) > at_most:
            keep = np.linspace(0, len(every) - 1, at_most).round().astype(int)
            every = [every[i] for i in keep]
        yield from every

    def thinned(self, at_most: int) -> Posterior:
        """Return the posterior with at most so many draws, evenly thinned within chains."""
        each = max(1, at_most // max(1, len(self.chains)))
        some = [np.linspace(0, len(c) - 1, min(each, len(c))).astype(int) for c in self.chains]
        chains = [tuple(c[t] for t in at) for c, at in zip(self.chains, some, strict=True)]
        return replace(self, chains=tuple(chains))

    def at(self, pairs: Pairs) -> Posterior:
        """Return the posterior of some cells of a matrix, as rows of a single column."""
        return replace(self, pairs=pairs)

    def cells_law(self, draw: Draw, rows: slice | Array) -> RowsLaw:
        """Return the law of the cells of some rows under one draw."""
        requested = rows if self.pairs is None else self.pairs.take(rows)
        return self.model.cells_law(draw.latent, requested)

    def joint(self, draw: Draw, rows: slice | Array, rng: np.random.Generator) -> RowsLaw:
        """Return a law given which the cells of the rows are independent, drawn under one draw."""
        requested = rows if self.pairs is None else self.pairs.take(rows)
        return self.model.joint(draw.latent, requested, rng)

    def for_one_table(self, draw: Draw, rng: np.random.Generator) -> Draw:
        """Return a draw under which rows are independent: a sample, where it is a law itself."""
        if not isinstance(self.model, SharedLaw):
            return draw
        return replace(draw, latent=self.model.sample_shared(draw.latent, rng))

    def samples(self, at_most: int, laws: int) -> Iterator[Draw]:
        """Yield draws that differ as the posterior does, at most `at_most`, evenly thinned.

        Where draws are laws themselves, `laws` samples of them, which the posterior alone decides.
        """
        if not isinstance(self.model, SharedLaw):
            yield from self.draws(at_most)
            return
        for number in range(laws):
            rng = Streams(0, 0).get(DRAWS, number)
            draw = self.choose(rng)
            yield replace(draw, latent=self.model.sample_all(draw.latent, rng))

    @cached_property
    def groups(self) -> tuple[int, ...]:
        """The candidate of each chain, by its place; 0 where the model has none."""
        model = self.model
        if not isinstance(model, Candidates):
            return (0,) * len(self.chains)
        return tuple(model.candidate(chain[0].latent) for chain in self.chains)

    @property
    def compares(self) -> bool:
        """Whether chains tell how far their mean is from others': two of each candidate at least.
        """
        return min(self.groups.count(group) for group in set(self.groups)) > 1

    def of_candidate(self, which: int) -> Posterior:
        """Return the draws of one candidate, as they are: uncorrected."""
        own = [c for c, group in zip(self.chains, self.groups, strict=True) if group == which]
        return replace(self, chains=tuple(own), recalibration=None, lone=None)

    @property
    def of_heaviest(self) -> Posterior:
        """The draws of the candidate that counts most on average of columns; of one model all."""
        which = sorted(set(self.groups))
        return self if len(which) == 1 else self.of_candidate(max(which, key=self.weight_of))

    @property
    def stacked(self) -> bool:
        """Whether candidates count by weights of their own in each column."""
        return self.recalibration is not None and self.recalibration.weights is not None

    @property
    def alike(self) -> bool:
        """Whether every draw counts the same; of candidates every chain does, until stacked."""
        return self.weights is None and len(set(self.groups)) == 1

    def weight_of(self, which: int, d: int | None = None) -> float:
        """Return how much a candidate counts in forecasts of column d, or on average of columns."""
        pairs = zip(self.groups, self.chain_weights(d), strict=True)
        return float(sum(weight for group, weight in pairs if group == which))

    def chain_weights(self, d: int | None = None) -> Array:
        """Return how much each chain counts in forecasts of column d, or of all; they add up to 1.
        """
        if self.weights is not None:
            return np.array(self.weights)
        of, lengths = np.array(self.groups), np.array([len(chain) for chain in self.chains])
        by = None if self.recalibration is None else self.recalibration.weights
        n = max(self.groups) + 1 if by is None else by.shape[1]
        whole, weights = np.bincount(of, lengths, minlength=n), np.bincount(of, minlength=n)
        if by is not None:
            found = np.where(whole > 0, by.mean(axis=0) if d is None else by[d], 0.0)
            weights = found if found.any() else weights  # else those that count have no chain
        return (weights / weights.sum())[of] * lengths / whole[of]

    def shares(self, d: int | None = None) -> Array:
        """Return the weight of every draw, chain by chain, where 1 is that of an average one.

        In forecasts of column d, or of all columns.
        """
        if self.alike:
            return np.ones(self.n_draws)
        pairs = zip(self.chains, self.chain_weights(d), strict=True)
        return self.n_draws * np.concatenate([np.full(len(c), w / len(c)) for c, w in pairs])

    def choose(self, rng: np.random.Generator) -> Draw:
        """Return one draw at random, by the weights."""
        every = list(self.draws())
        if self.alike:
            return every[int(rng.integers(len(every)))]
        return every[int(rng.choice(len(every), p=self.shares() / len(every)))]

    def diagnose(self, traces: Mapping[str, Array]) -> Diagnostics:
        """Return whether the run has converged: by traces (chain, draw), or an ascent's bound."""
        if self.weights is None:
            own = {name: self._within(trace) for name, trace in traces.items()}
            return diagnose(own, [name for name in own if gates(name)])
        found = replace(diagnose(traces, []), n_chains=len(self.chains))
        best = self.chains[0][0].trace
        return replace(found, bound_converged=bool(best.get("converged", 0.0)))

    def _within(self, trace: Array) -> Array:
        """Return a trace (chain, draw) with each candidate's mean moved to that of all.

        Chains are to agree with those of the same model.
        """
        of = np.array(self.groups)
        if np.ptp(of) == 0:
            return trace
        out = np.array(trace, dtype=np.float64)
        for group in np.unique(of):
            out[of == group] += trace.mean() - trace[of == group].mean()
        return out

    def traces(self) -> dict[str, Array]:
        """Return every traced scalar as (chain, draw), of as many draws as the shortest chain has.
        """
        if not self.chains:
            return {}
        chains = self.of_one_length().chains
        first, *others = (chain[0].trace for chain in chains)
        names = [name for name in first if all(name in other for other in others)]
        return {n: np.array([[draw.trace[n] for draw in c] for c in chains]) for n in names}

    def of_one_length(self) -> Posterior:
        """Return the posterior with chains evenly thinned to the length of the shortest."""
        return self.thinned(len(self.chains) * min(len(chain) for chain in self.chains))
