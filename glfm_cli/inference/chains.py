"""Chains of any model: of Gaussian cells (`chain`) or of values (`value_chain`)."""

from __future__ import annotations

from collections.abc import Mapping

from glfm_cli.arrays import Array
from glfm_cli.inference.chain import Chain, load_chain, start_chain
from glfm_cli.inference.value_chain import ValueChain, load_values, start_values
from glfm_cli.latent.model import Problem
from glfm_cli.streams import Streams

AnyChain = Chain | ValueChain


def start(problem: Problem, seed: int, index: int, threads: int = 1) -> AnyChain:
    """Return chain number `index` at its starting point."""
    streams = Streams(seed, index)
    if problem.model.sees == "values":
        return start_values(problem, streams, index, threads)
    return start_chain(problem, streams, threads)


def load(problem: Problem, arrays: Mapping[str, Array], threads: int = 1) -> AnyChain:
    """Return the chain whose `save` gave the arrays: its coming steps are the same, bit for bit.

    Raises
    ------
    ValueError
        The arrays are no chain of this problem, with a phrase that says why.
    """
    if problem.model.sees == "values":
        return load_values(problem, arrays, threads)
    return load_chain(problem, arrays, threads)
