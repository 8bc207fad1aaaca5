"""The driver: runs chains of any latent model over any links. It knows no model.

One sweep is  model.update, fill_eta;  for each column: link.update_params, link.augment;
model.finish.  After the warm-up every `thin`-th state is kept.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from glfm_cli.executors import run_jobs
from glfm_cli.latent.latent import Array, Cells, Entries, LatentModel, take
from glfm_cli.links.binomial import BinomialLink
from glfm_cli.links.constants import check_params
from glfm_cli.links.link import Link, LinkConfig, Params
from glfm_cli.posterior import Draw, Posterior
from glfm_cli.streams import Streams, column_step

BLOCK = 2048  # rows whose bits and y are drawn together


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
class Problem:
    """What is sampled: the model with its configuration, and the columns with their links.

    xs : per column (n_rows,) float64, NaN where missing
    link_config : the choices that the links were made with
    entries : the matrix whose observed cells the rows are, for a single link; None for a table
    row_features, column_features : covariates of that matrix, see `Cells`
    """

    model: LatentModel
    config: Any
    links: tuple[Link, ...]
    xs: tuple[Array, ...]
    link_config: LinkConfig = field(default_factory=LinkConfig)
    entries: Entries | None = None
    row_features: Array | None = None
    column_features: Array | None = None

    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        return int(self.xs[0].shape[0])


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


@dataclass
class Chain:
    """One chain, ready for its next sweep."""

    problem: Problem
    streams: Streams
    cells: Cells
    params: tuple[Params, ...]
    state: Any
    eta: Array  # scratch, (N, S)
    spans: tuple[tuple[int, int], ...]  # per column, its first pseudo-column and one past its last
    done: int = 0  # sweeps made

    def sweep(self, adapt: bool) -> None:
        """Make one transition of everything; links may tune their proposals when `adapt`."""
        model = self.problem.model
        for d, link in enumerate(self.problem.links):
            self.cells.scale_group[d] = link.scale_group(self.params[d])
        model.update(self.state, self.cells, self.streams)
        for d, link in enumerate(self.problem.links):
            link.rescale(self.params[d], float(self.cells.factor[d]))
        if any(not link.known for link in self.problem.links):
            model.fill_eta(self.state, self.eta)
            self.refill(adapt)
        model.finish(self.state, self.streams)
        self.done += 1

    def save(self) -> dict[str, Array]:
        """Return all that the coming sweeps depend on, as named arrays.

        Everything else (eta, scale groups, the models' work space) is filled before it is read.
        """
        arrays = {"sweep": np.array(self.done, dtype=np.int64), "y": self.cells.y}
        arrays |= {
            f"latent.{name}": value for name, value in self.problem.model.save(self.state).items()
        }
        arrays |= params_out(self.params)
        return arrays | {f"random.{name}": value for name, value in self.streams.save().items()}

    def refill(self, adapt: bool) -> None:
        """Draw the links' parameters, latent structure and the observed y anew, given eta.

        The first two with y integrated out as far as the links can, y last: it sticks to what
        it was drawn with. Rows come in blocks, since columns of many rows are far apart in memory.
        """
        for d, link, x, _ in self._columns():
            rng, eta = self.streams.get(column_step(d)), self.eta_of(d)
            link.update_params(x, eta, self.params[d], rng, adapt)
        for start in range(0, self.problem.n_rows, BLOCK):
            rows = slice(start, start + BLOCK)
            if self.problem.model.refines:
                self._refine(rows)
            self._augment(rows)

    def _refine(self, rows: slice) -> None:
        """Draw the latent structure of a block of rows, y integrated out."""
        cells = self.cells
        for d, link, x, y in self._columns():
            ends = (end[rows, slice(*self.spans[d])] for end in (cells.lower, cells.upper))
            link.bound(x[rows], self.params[d], y[rows], self.streams.get(column_step(d)), *ends)
        self.problem.model.refine(self.state, cells, self.eta, self.streams, rows)

    def _augment(self, rows: slice) -> None:
        """Draw the observed y of a block of rows, given eta."""
        noise = self.problem.model.noise(self.state)
        for d, link, x, y in self._columns():
            if not link.known:
                rng, eta = self.streams.get(column_step(d)), self.eta_of(d)[rows]
                link.augment(x[rows], eta, float(noise[d]), self.params[d], rng, y[rows])

    def _columns(self) -> Iterator[tuple[int, Link, Array, Array]]:
        """Yield number, link, cells and pseudo-observations of every column that has some."""
        for d, (link, x) in enumerate(zip(self.problem.links, self.problem.xs, strict=True)):
            if link.n_latent > 0:
                yield d, link, x, self.cells.y[:, slice(*self.spans[d])]

    def eta_of(self, d: int) -> Array:
        """Return the eta of column `d` as links take it: (N,) or (N, S_d), a view."""
        start, end = self.spans[d]
        return self.eta[:, start] if end - start == 1 else self.eta[:, start:end]

    def keep(self) -> Draw:
        """Return the current state as a draw, with its log likelihood traced."""
        model, state = self.problem.model, self.state
        trace = {"log_likelihood": self.log_likelihood(), **model.trace(state)}
        noise = model.noise(state)
        for d, link in enumerate(self.problem.links):
            if not link.unit_noise:
                trace[f"noise_{d}"] = float(noise[d])
        params = tuple({name: value.copy() for name, value in p.items()} for p in self.params)
        return Draw(model.draw(state), params, trace)

    def log_likelihood(self) -> float:
        """Return the sum over observed cells of log p(x | Z, B, noise, thresholds)."""
        total = 0.0
        noise = self.problem.model.noise(self.state)
        self.problem.model.fill_eta(self.state, self.eta)
        for d, (link, x) in enumerate(zip(self.problem.links, self.problem.xs, strict=True)):
            seen = self.cells.observed[:, d].astype(bool)
            eta = self.eta_of(d)[seen]
            total += float(np.sum(link.log_density(x[seen], eta, float(noise[d]), self.params[d])))
        return total


def spans_of(links: Sequence[Link]) -> tuple[tuple[int, int], ...]:
    """Return each column's first pseudo-column and one past its last."""
    ends = np.cumsum([0, *(link.n_latent for link in links)])
    return tuple((int(start), int(end)) for start, end in pairwise(ends))


def params_out(params: Sequence[Params]) -> dict[str, Array]:
    """Return the links' parameters as one set of named arrays, `params.COLUMN.NAME`."""
    return {f"params.{d}.{name}": value for d, p in enumerate(params) for name, value in p.items()}


def check_all_params(links: Sequence[Link], params: Sequence[Params]) -> None:
    """Raise ValueError, naming the column, unless these can be the links' parameters."""
    for link, part in zip(links, params, strict=True):
        try:
            check_params(link, part)
        except ValueError as error:
            raise ValueError(f"column '{link.name}': {error}") from None


def inner(arrays: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    """Return the arrays whose names begin with a prefix, under the rest of their names."""
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }


def empty_cells(problem: Problem, threads: int = 1) -> Cells:
    """Return the cells of a table with every pseudo-observation 0.

    `threads` is how many a chain may use.
    """
    links = problem.links
    n_latent = [link.n_latent for link in links]
    column = np.repeat(np.arange(len(links)), n_latent).astype(np.int32)
    shape = (problem.n_rows, column.size)
    bounded = shape if problem.model.refines else (0, 0)
    return Cells(
        y=np.zeros(shape),
        observed=np.ascontiguousarray(~np.isnan(np.column_stack(problem.xs))).astype(np.uint8),
        column=column,
        unit_noise=np.array([link.unit_noise for link in links], dtype=np.uint8),
        scale_group=np.zeros((len(links), 2)),
        factor=np.ones(len(links)),
        lower=np.zeros(bounded),
        upper=np.zeros(bounded),
        spread=np.repeat([float(link.spread) for link in links], n_latent),
        weight=_weights(problem),
        entries=problem.entries,
        row_features=problem.row_features,
        column_features=problem.column_features,
        threads=threads,
    )


def _weights(problem: Problem) -> Array | None:
    """Return the trials of binomial cells as weights (N, S), None where there are none."""
    links = problem.links
    if not any(isinstance(link, BinomialLink) for link in links):
        return None
    parts = [
        link.weight(x)[:, None]
        if isinstance(link, BinomialLink)
        else np.ones((x.size, link.n_latent))
        for link, x in zip(links, problem.xs, strict=True)
    ]
    return np.concatenate(parts, axis=1)


def load_chain(problem: Problem, arrays: Mapping[str, Array], threads: int = 1) -> Chain:
    """Return the chain that `Chain.save` described: its coming sweeps are the same, bit for bit.

    Raises
    ------
    ValueError
        The arrays are no chain of this problem, with a phrase that says why.
    """
    cells = empty_cells(problem, threads)
    cells.y[:] = take(arrays, "y", np.float64, cells.y.shape)
    sweep = int(take(arrays, "sweep", np.int64, ()))
    if sweep < 1:
        raise ValueError(f"'sweep' is {sweep}, expected a number from 1")
    params = tuple(
        {name: value.copy() for name, value in inner(arrays, f"params.{d}.").items()}
        for d in range(len(problem.links))
    )
    check_all_params(problem.links, params)
    words = inner(arrays, "random.")
    if words.keys() != {"key", "streams"}:
        raise ValueError("the random state is missing")
    state = problem.model.load(inner(arrays, "latent."), cells, problem.config)
    spans, eta = spans_of(problem.links), np.zeros_like(cells.y)
    return Chain(problem, Streams.load(words), cells, params, state, eta, spans, done=sweep)


def start_chain(problem: Problem, streams: Streams, threads: int = 1) -> Chain:
    """Return a chain at its starting point."""
    links, xs = problem.links, problem.xs
    cells = empty_cells(problem, threads)
    y = cells.y
    spans = spans_of(links)
    params = []
    for d, (link, x) in enumerate(zip(links, xs, strict=True)):
        start, end = spans[d]
        p, y[:, start:end] = link.start(x, streams.get(column_step(d)))
        params.append(p)
    state = problem.model.start(cells, problem.config, streams)
    return Chain(problem, streams, cells, tuple(params), state, np.zeros_like(y), spans)


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
        "so the completed cells are rough"
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
