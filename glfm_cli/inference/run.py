"""What a run is told, and what it gives: its plan, who watches, what ends it, where it is kept."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from glfm_cli.arrays import Array
from glfm_cli.inference.chains import AnyChain
from glfm_cli.inference.posterior import Draw, Posterior
from glfm_cli.inference.precision import Precision

STEPS = 1000  # of an ascent at most, where neither its model nor anybody says


@dataclass(frozen=True)
class Plan:
    """How long to sample: `warmup` sweeps, then `draws` kept ones, `thin` sweeps apart.

    Of an ascent, which has no warm-up, the one draw of each restart is kept after `thin` steps at
    most. With `most_chains` there are more chains than `chains` where estimates ask for them.
    """

    chains: int
    warmup: int
    draws: int
    thin: int
    seed: int
    most_chains: int | None = None

    @classmethod
    def of_ascent(cls, chains: int, seed: int, steps: int = STEPS) -> Plan:
        """Return the plan of an ascent: restarts, and the largest number of steps of each."""
        return cls(chains, 0, 1, steps, seed)

    @property
    def sweeps(self) -> int:
        """Sweeps of one chain."""
        return self.warmup + self.draws * self.thin

    def with_most_chains(self) -> Plan:
        """Return the plan with all the chains that there may be, whatever estimates ask for."""
        return replace(self, chains=self.most_chains or self.chains, most_chains=None)

    def options(self) -> dict[str, Any]:
        """Return the options of sampling that ask for just this plan, and for no more chains."""
        return {name: getattr(self, name) for name in ("chains", "warmup", "draws", "thin", "seed")}


class Observer(Protocol):
    """Told after every sweep; called from the chains' threads."""

    def swept(self, chain: int, sweep: int, trace: dict[str, float] | None) -> None:
        """Sweep number `sweep` (from 1) of a chain is done.

        trace : when a draw was kept, what it traces; of an ascent `bound`, after every step
        """


def tell(observer: Observer | None, what: str, *news: Any) -> None:
    """Call a method that an observer may have besides `swept`.

    begun(session) : sampling begins
    forecast(sets, of) : so many sets of observed cells are forecast as if missing, of as many;
        again from 0 where chains have been added
    sampled(run) : it has ended, and its answer is to be written
    completed(rows, of) : so many rows of a file, of as many as there are where that is known
    left(folder, complete) : the run stays in a folder, complete or cut short
    """
    if (method := getattr(observer, what, None)) is not None:
        method(*news)


class Quiet:
    """The observer of a run that says nothing."""

    def swept(self, chain: int, sweep: int, trace: dict[str, float] | None) -> None:
        """Ignore the news."""


@dataclass(frozen=True)
class Deadline:
    """When work is to end, in `time.monotonic()` seconds; None for never.

    Clocks of processes differ: another one is told how many seconds are left when it is sent.
    """

    at: float | None = None

    @classmethod
    def after(cls, seconds: float | None) -> Deadline:
        """Return that so many seconds from now."""
        return cls(None if seconds is None else time.monotonic() + seconds)

    def __reduce__(self) -> tuple[Any, ...]:
        return Deadline.after, (None if self.at is None else self.at - time.monotonic(),)


@dataclass
class Stop:
    """Why and when sampling ends early; shared by the chains."""

    deadline: float | None = None  # in time.monotonic() seconds
    reason: str | None = None  # "interrupted" or "time limit"
    _event: threading.Event = field(default_factory=threading.Event)

    @classmethod
    def after(cls, seconds: float | None) -> Stop:
        """Return what ends a run so many seconds from now."""
        return cls(None if seconds is None else time.monotonic() + seconds)

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
    """What sampling gives: the posterior, how it ended, and the models' own warnings.

    bounds : of each restart of an ascent, the bounds after its steps; empty where it was not begun
    precision : how precise the estimates of its table are, where that was asked on the way
    """

    posterior: Posterior
    stopped: str | None
    seconds: float
    warnings: tuple[str, ...]
    bounds: tuple[tuple[float, ...], ...] = ()
    precision: Precision | None = None


class ChainLog(Protocol):
    """Where one chain's draws go, and the state from which it may be continued."""

    def resume(self, load: Callable[[Mapping[str, Array]], AnyChain]) -> AnyChain | None:
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

    def forget(self, arrays: Mapping[str, Array]) -> None:
        """Save the state, and drop every draw."""

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

    def resume(self, load: Callable[[Mapping[str, Array]], AnyChain]) -> None:
        """Return None: there is nothing to continue."""
        return

    def append(self, draw: Draw) -> None:
        self._draws.append(draw)

    def due(self) -> bool:
        """Return False: nothing is ever saved."""
        return False

    def save(self, arrays: Mapping[str, Array]) -> None:
        """Forget the state."""

    def forget(self, arrays: Mapping[str, Array]) -> None:
        """Drop every draw."""
        self._draws.clear()

    def draws(self) -> tuple[Draw, ...]:
        return tuple(self._draws)


class InMemory:
    """Keeps the draws in memory only."""

    def chain(self, index: int) -> AbstractContextManager[MemoryLog]:
        """Return an empty log."""
        return nullcontext(MemoryLog())
