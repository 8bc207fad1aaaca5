"""Chains of any model: of Gaussian cells (`chain`), of values (`value_chain`), of candidates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.inference.chain import Chain, load_chain, start_chain
from glfm_cli.inference.posterior import Draw, gates
from glfm_cli.inference.value_chain import ValueChain, load_values, start_values
from glfm_cli.latent.capabilities import Candidates, Settles
from glfm_cli.latent.model import Problem
from glfm_cli.streams import Streams


@dataclass
class CandidateChain:
    """A chain of one of several candidates, whose draws say of which."""

    problem: Problem
    which: int
    own: Chain | ValueChain

    @property
    def state(self) -> Any:
        """Return the candidate's."""
        return self.own.state

    @property
    def done(self) -> int:
        """Return the number of steps that were made."""
        return self.own.done

    def sweep(self, adapt: bool) -> None:
        """Make the candidate's step."""
        self.own.sweep(adapt)

    def save(self) -> dict[str, Array]:
        """Return what the candidate's chain saves, and which it is."""
        which = np.array(self.which, dtype=np.int32)
        return {"candidate": which, **self.own.save()}

    def keep(self) -> Draw:
        """Return the candidate's draw, marked; of its scalars those that all models may have."""
        draw, model = self.own.keep(), self.problem.model
        assert isinstance(model, Candidates)
        trace = {name: value for name, value in draw.trace.items() if gates(name)}
        return replace(draw, latent=model.mark(draw.latent, self.which), trace=trace)


AnyChain = Chain | ValueChain | CandidateChain


def start(problem: Problem, seed: int, index: int, threads: int = 1) -> AnyChain:
    """Return chain number `index` at its starting point."""
    model = problem.model
    if isinstance(model, Candidates):
        which = model.turn(problem, index)
        own = _start(model.problem_of(problem, which), seed, index, threads)
        return CandidateChain(problem, which, own)
    return _start(problem, seed, index, threads)


def settle(chain: AnyChain) -> float:
    """Put a chain past its start to time it, and return what part of the work that took was done.

    1 where steps take as long from the start on.
    """
    own = chain.own if isinstance(chain, CandidateChain) else chain
    if isinstance(own, ValueChain) and isinstance(own.model, Settles):
        return own.model.settle(own.state, own.streams) or 1.0
    return 1.0


def kept_of(problem: Problem, index: int) -> int:
    """Return of how many draws that a plan has chain number `index` keeps the first."""
    model = problem.model
    return model.kept_of(model.turn(problem, index)) if isinstance(model, Candidates) else 1


def n_kept(problem: Problem, chains: int, draws: int) -> int:
    """Return how many draws so many chains keep together, of so many that a plan has of each."""
    return sum(-(-draws // kept_of(problem, index)) for index in range(chains))


def _start(problem: Problem, seed: int, index: int, threads: int) -> Chain | ValueChain:
    streams = Streams(seed, index)
    if problem.model.sees == "values":
        return start_values(problem, streams, index, threads)
    return start_chain(problem, streams, threads)


def load(problem: Problem, arrays: Mapping[str, Array], threads: int = 1) -> AnyChain:
    """Return the chain whose `save` gave the arrays: its coming steps are the same, bit for bit.

    Raises ValueError: the arrays are no chain of this problem, with a phrase that says why.
    """
    model = problem.model
    if isinstance(model, Candidates):
        which = model.candidate_in(arrays)
        own = _load(model.problem_of(problem, which), arrays, threads)
        return CandidateChain(problem, which, own)
    return _load(problem, arrays, threads)


def _load(problem: Problem, arrays: Mapping[str, Array], threads: int) -> Chain | ValueChain:
    if problem.model.sees == "values":
        return load_values(problem, arrays, threads)
    return load_chain(problem, arrays, threads)
