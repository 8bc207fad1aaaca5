"""How long chains take: measured on a few sweeps of some, before they are run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import astuple, dataclass

import numpy as np

import glfm_cli.inference.chains as chains
from glfm_cli.inference.chain import spans_of
from glfm_cli.inference.executors import run_jobs
from glfm_cli.inference.hidden_cells import draws_once, is_short, without_cells
from glfm_cli.inference.hiding import times_hidden
from glfm_cli.inference.lone_cells import lone_columns
from glfm_cli.inference.posterior import Draw, Posterior
from glfm_cli.inference.run import Plan
from glfm_cli.inference.scoring import scores_and_forecasts
from glfm_cli.latent.capabilities import Candidates
from glfm_cli.latent.model import Problem

FEWEST, LONGEST = 2, 0.2  # sweeps by which a pace is told, and seconds for more of them


@dataclass(frozen=True)
class Pace:
    """How long a sweep of a chain and keeping a draw take, and how large that is.

    Where a chain keeps some draws alone, the others take nothing; of candidates it is the mean.
    per_chain : seconds that corrections of its forecasts take
    per_start : those that a chain takes besides, before its steps are as long as they stay
    """

    per_sweep: float
    per_draw: float
    draw_bytes: float
    per_chain: float
    per_start: float = 0.0

    def seconds(self, plan: Plan, threads: int, *, corrected: bool = True) -> float:
        """Return the time that all chains take, side by side."""
        one = self.per_sweep * plan.sweeps + self.per_draw * plan.draws
        one += self.per_chain * corrected + self.per_start
        return one * -(-plan.chains // min(threads, plan.chains))

    @classmethod
    def of(
        cls, problem: Problem, plan: Plan, *, corrected: bool = True, threads: int = 1
    ) -> Pace:
        """Return that of the chains of a plan, measured now; no `corrected`: no `per_chain`.

        threads : as many chains are measured at once, since threads wait for one another wherever
            a chain is not in a kernel
        """
        model, turns = problem.model, [0] * plan.chains
        if isinstance(model, Candidates):
            turns = [model.turn(problem, index) for index in range(plan.chains)]
        at_once = range(min(threads, plan.chains) if model.kind == "gibbs" else 1)
        measured = sorted({*at_once, *(turns.index(which) for which in set(turns))})
        stop = threading.Event()

        def job(index: int) -> Callable[[], Pace]:
            return lambda: _pace_of(problem, plan, index, corrected)

        jobs = [job(index) for index in measured]
        paces = run_jobs(jobs, threads=len(at_once), on_interrupt=stop.set)
        if stop.is_set():
            raise KeyboardInterrupt
        by_turn: dict[int, list[tuple[float, ...]]] = {}
        for index, pace in zip(measured, paces, strict=True):
            by_turn.setdefault(turns[index], []).append(astuple(pace))
        means = {which: np.mean(found, axis=0) for which, found in by_turn.items()}
        return cls(*np.mean([means[which] for which in turns], axis=0).tolist())


def _pace_of(problem: Problem, plan: Plan, index: int, corrected: bool) -> Pace:
    chain, every = chains.start(problem, plan.seed, index), chains.kept_of(problem, index)
    began = time.monotonic()
    part = chains.settle(chain)
    per_start = (time.monotonic() - began) / part
    began = time.monotonic()
    sweeps = 0
    while sweeps < FEWEST or (time.monotonic() - began < LONGEST and sweeps < plan.sweeps):
        chain.sweep(adapt=True)
        sweeps += 1
    per_sweep = (time.monotonic() - began) / sweeps
    began = time.monotonic()
    draw = chain.keep()
    packed = problem.model.pack(draw.latent)
    per_draw = time.monotonic() - began
    n_bytes = sum(array.nbytes for array in packed.values())
    per_chain = 0.0
    if corrected and problem.link_config.recalibrate and problem.model.kind == "gibbs":
        per_chain = _correcting(problem, plan, draw, -(-plan.draws // every))
    return Pace(per_sweep, per_draw / every, n_bytes / every, per_chain, per_start)


def _correcting(problem: Problem, plan: Plan, draw: Draw, n_kept: int) -> float:
    """Return how long it takes to forecast hidden cells by a chain of so many draws."""
    chain = (draw,) * min(2 * draws_once(problem.model, plan.chains), n_kept)  # half at a time
    posterior = Posterior(problem.model, problem.links, spans_of(problem.links), (chain,))
    short = is_short(plan.draws)
    began = time.monotonic()
    folded, hidden = without_cells(posterior, problem, short=short)
    scores_and_forecasts(folded, hidden, hidden)
    times = times_hidden(problem, short) * (1 + (lone_columns(problem).size > 0))
    return times * (time.monotonic() - began)
