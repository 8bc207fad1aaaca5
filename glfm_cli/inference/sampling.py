"""The driver: runs chains of any latent model over any links. It knows no model.

After the warm-up every `thin`-th state of a chain is kept. What one sweep does stands in `chain`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from glfm_cli.arrays import Array
from glfm_cli.inference.chain import Chain, Problem, load_chain, spans_of, start_chain
from glfm_cli.inference.executors import run_jobs
from glfm_cli.inference.posterior import Draw, Posterior
from glfm_cli.streams import Streams


@dataclass(frozen=True)
class Plan:
    """How long to sample: `warmup` sweeps, then `draws` kept ones, `thin` sweeps apart."""

    chains: int
    warmup: int
    draws: int
    thin: int
    seed: int

    @property
    def sweeps(self) -> int:
        """Sweeps of one chain."""
        return self.warmup + self.draws * self.thin


class Observer(Protocol):
    """Told after every sweep; called from the chains' threads."""

    def swept(self, chain: int, sweep: int, trace: dict[str, float] | None) -> None:
        """Sweep number `sweep` (from 1) of a chain is done; `trace` when a draw was kept."""


class Quiet:
    """The observer of a run that says nothing."""

    def swept(self, chain: int, sweep: int, trace: dict[str, float] | None) -> None:
        """Ignore the news."""


@dataclass
class Stop:
    """Why and when sampling ends early; shared by the chains."""

    deadline: float | None = None  # in time.monotonic() seconds
    reason: str | None = None  # "interrupted" or "time limit"
    _event: threading.Event = field(default_factory=threading.Event)

    def interrupt(self) -> None:
        """Ask every chain to end after its current sweep."""
        self.reason = self.reason or "interrupted"
        self._event.set()

    def now(self) -> bool:
        """Return whether to end."""
        if self.deadline is not None and time.monotonic() >= self.deadline:
            self.reason = self.reason or "time limit"
            self._event.set()
        return self._event.is_set()


@dataclass(frozen=True)
class Run:
    """What sampling gives: the posterior, how it ended, and the models' own warnings."""

    posterior: Posterior
    stopped: str | None
    seconds: float
    warnings: tuple[str, ...]


class ChainLog(Protocol):
    """Where one chain's draws go, and the state from which it may be continued."""

    def resume(self, load: Callable[[Mapping[str, Array]], Chain]) -> Chain | None:
        """Return the chain loaded from the state saved last, None when there is none.

        `draws` then holds the draws up to that state. A ValueError of `load` becomes an error
        that names where the state came from.
        """

    def append(self, draw: Draw) -> None:
        """Keep one more draw."""

    def due(self) -> bool:
        """Return whether it is time for another `save`."""

    def save(self, arrays: Mapping[str, Array]) -> None:
        """Save the state that all draws so far lead to."""

    def draws(self) -> tuple[Draw, ...]:
        """Return every draw, in order."""


class Keeper(Protocol):
    """Where a run's draws and states are kept."""

    def chain(self, index: int) -> AbstractContextManager[ChainLog]:
        """Open the log of a chain; called from the thread that runs it."""


class MemoryLog:
    """Draws in memory, and no state."""

    def __init__(self) -> None:
        self._draws: list[Draw] = []

    def resume(self, load: Callable[[Mapping[str, Array]], Chain]) -> None:
        """Return None: there is nothing to continue."""
        return

    def append(self, draw: Draw) -> None:
        """Keep one more draw."""
        self._draws.append(draw)

    def due(self) -> bool:
        """Return False: nothing is ever saved."""
        return False

    def save(self, arrays: Mapping[str, Array]) -> None:
        """Forget the state."""

    def draws(self) -> tuple[Draw, ...]:
        """Return every draw, in order."""
        return tuple(self._draws)


class InMemory:
    """Keeps the draws in memory only."""

    def chain(self, index: int) -> AbstractContextManager[MemoryLog]:
        """Return an empty log."""
        return nullcontext(MemoryLog())


@dataclass(frozen=True)
class _Ended:
    """What one chain leaves: its kept draws, the sweeps it made, the model's warnings."""

    draws: tuple[Draw, ...]
    sweeps: int
    warnings: tuple[str, ...]


def _run_chain(
    problem: Problem,
    plan: Plan,
    index: int,
    keeper: Keeper,
    stop: Stop,
    observer: Observer,
    threads: int,
) -> _Ended:
    if index > 0 and stop.now():  # the first chain always starts, so that there is an answer
        return _Ended((), 0, ())
    with keeper.chain(index) as log:
        chain = log.resume(partial(load_chain, problem, threads=threads))
        if chain is None:
            chain = start_chain(problem, Streams(plan.seed, index), threads)
        last_saved = chain.done
        while chain.done < plan.sweeps and not (chain.done > 0 and stop.now()):
            kept = None
            chain.sweep(adapt=chain.done < plan.warmup)
            if chain.done > plan.warmup and (chain.done - plan.warmup) % plan.thin == 0:
                draw = chain.keep()
                log.append(draw)
                kept = draw.trace
            if log.due():
                log.save(chain.save())
                last_saved = chain.done
            observer.swept(index, chain.done, kept)
        if chain.done > last_saved:
            log.save(chain.save())
        draws = log.draws()
    if not draws:  # stopped during the warm-up: the last state is the best there is
        draws = (chain.keep(),)
    return _Ended(draws, chain.done, tuple(problem.model.warnings(chain.state)))


def _usable(ended: Sequence[_Ended], plan: Plan) -> tuple[list[_Ended], list[str]]:
    """Return the chains whose draws count after an early stop, and what the user should know.

    Draws of a chain that was still warming up would only dilute those of the others.
    """
    warm = [chain for chain in ended if chain.sweeps > plan.warmup]
    if len(warm) == len(ended):
        return warm, []
    if warm:
        return warm, [
            f"{len(warm)} of {plan.chains} chains finished their warm-up; only they count"
        ]
    most = max(chain.sweeps for chain in ended)
    farthest = [chain for chain in ended if 2 * chain.sweeps > most]
    return farthest, [
        f"no chain finished its warm-up (the farthest made {most} of {plan.warmup} sweeps), "
        "so the result is rough"
    ]


def sample(
    problem: Problem,
    plan: Plan,
    *,
    threads: int = 1,
    time_limit: float | None = None,
    observer: Observer | None = None,
    keeper: Keeper | None = None,
) -> Run:
    """Run all chains and return their draws.

    Parameters
    ----------
    problem, plan
        What to sample, and how long.
    threads : int
        Chains that run at the same time, and where there are fewer chains, parts of a chain whose
        model can use them; the draws do not depend on it.
    time_limit : float, optional
        Seconds after which the chains end with what they have.
    observer : Observer, optional
        Told of progress.
    keeper : Keeper, optional
        Where draws and states are kept, and chains are continued from; memory if left out.

    Raises
    ------
    NumericalError
        The model's numbers broke down.
    """
    began = time.monotonic()
    stop = Stop(deadline=None if time_limit is None else began + time_limit)
    watching, keeping = observer or Quiet(), keeper or InMemory()
    inside = max(1, threads // plan.chains)

    def job(index: int) -> Callable[[], _Ended]:
        return lambda: _run_chain(problem, plan, index, keeping, stop, watching, inside)

    ended = run_jobs(
        [job(index) for index in range(plan.chains)], threads=threads, on_interrupt=stop.interrupt
    )
    chains, notes = _usable(ended, plan)
    posterior = Posterior(
        problem.model,
        problem.links,
        spans_of(problem.links),
        tuple(chain.draws for chain in chains),
    )
    warnings = dict.fromkeys([*(text for chain in chains for text in chain.warnings), *notes])
    return Run(posterior, stop.reason, time.monotonic() - began, tuple(warnings))
