"""Chains as tasks that another process makes: what it is told, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import glfm_cli.inference.chains as chains
from glfm_cli.arrays import Array
from glfm_cli.errors import UsageError
from glfm_cli.inference.chains import AnyChain
from glfm_cli.inference.cluster import run_on_cluster
from glfm_cli.inference.executors import run_in_processes
from glfm_cli.inference.run import MemoryLog
from glfm_cli.latent.model import Problem

ENGINES = ("local", "processes", "dask")


class Runner(Protocol):
    """Makes calls in other processes, as `run_in_processes` does."""

    def __call__(
        self,
        function: Callable[[Any, Any], Any],
        context: Any,
        items: Sequence[Any],
        *,
        on_result: Callable[[int, Any], None],
    ) -> None:
        """Call `function(context, item)` for every item, and tell of results as they come."""


def runner_of(engine: str | None, scheduler: str | None, workers: int) -> Runner | None:
    """Return who makes the chains of a run, or fits; None for the usual way, within this machine.

    Raises UsageError: there is no such engine, or a scheduler where none is asked, or none where
        one is.
    """
    if engine is not None and engine not in ENGINES:
        raise UsageError("--engine", value=engine, expected=" or ".join(ENGINES))
    if (scheduler is None) == (engine == "dask"):
        raise UsageError(
            "--engine dask needs --scheduler ADDRESS"
            if scheduler is None
            else "--scheduler is the address of a Dask cluster, which --engine dask uses",
            hint="`dask scheduler` prints its address, as tcp://HOST:8786.",
        )
    if engine == "dask":
        return partial(run_on_cluster, scheduler=str(scheduler))
    return partial(run_in_processes, workers=workers) if engine == "processes" else None


@dataclass(frozen=True)
class ChainTask:
    """One chain: its number, and the state it is continued from, None at its start."""

    index: int
    state: Mapping[str, Array] | None


class CarriedLog(MemoryLog):
    """Draws in memory, and the state that they lead to, to be carried to where they are kept."""

    def __init__(self, problem: Problem, state: Mapping[str, Array] | None) -> None:
        super().__init__()
        self._problem, self.state = problem, state

    def resume(self, load: Callable[[Mapping[str, Array]], AnyChain]) -> AnyChain | None:  # type: ignore[override]
        """Return the chain of the state it was given."""
        return None if self.state is None else chains.load(self._problem, self.state)

    def save(self, arrays: Mapping[str, Array]) -> None:
        """Keep the state."""
        self.state = arrays

    def chain(self, index: int) -> AbstractContextManager[CarriedLog]:
        """Return itself: it is of one chain."""
        return nullcontext(self)
