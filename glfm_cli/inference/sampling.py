"""The driver: runs chains of any latent model over any links. It knows no model.

After the warm-up every `thin`-th state of a chain is kept. What one sweep does stands in `chain`
and `value_chain`; how the restarts of an ascent compete, in `ascent`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import glfm_cli.inference.chains as chains
from glfm_cli.arrays import Array
from glfm_cli.errors import UsageError
from glfm_cli.inference.ascent import ascend
from glfm_cli.inference.chain import spans_of
from glfm_cli.inference.executors import run_jobs
from glfm_cli.inference.posterior import Draw, Posterior
from glfm_cli.inference.run import (
    Deadline,
    InMemory,
    Keeper,
    Observer,
    Plan,
    Quiet,
    Run,
    Stop,
)
from glfm_cli.inference.tasks import CarriedLog, ChainTask, Runner
from glfm_cli.latent.model import Problem


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
        chain = log.resume(partial(chains.load, problem, threads=threads))
        if chain is None:
            chain = chains.start(problem, plan.seed, index, threads)
        last_saved, every = chain.done, plan.thin * chains.kept_of(problem, index)
        while chain.done < plan.sweeps and not (chain.done > 0 and stop.now()):
            kept = None
            chain.sweep(adapt=chain.done < plan.warmup)
            after = chain.done - plan.warmup
            if after > 0 and after % every == plan.thin % every:
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


def _as_task(
    context: tuple[Problem, Plan, Deadline], task: ChainTask
) -> tuple[_Ended, tuple[Draw, ...], Mapping[str, Array] | None, str | None]:
    """Return what one chain leaves, its new draws, their state, and what cut it short."""
    problem, plan, deadline = context
    log, stop = CarriedLog(problem, task.state), Stop(deadline.at)
    ended = _run_chain(problem, plan, task.index, log, stop, Quiet(), 1)
    return ended, log.draws(), log.state, stop.reason


def _run_elsewhere(
    problem: Problem,
    plan: Plan,
    indices: Sequence[int],
    keeper: Keeper,
    stop: Stop,
    observer: Observer,
    runner: Runner,
) -> list[_Ended]:
    """Return what the chains leave that other processes run; their draws are kept here.

    A chain is kept when it has ended: what is lost with a worker is made again.
    """
    load = partial(chains.load, problem)
    found: dict[int, _Ended] = {}
    tasks = []
    for index in indices:
        with keeper.chain(index) as log:
            chain = log.resume(load)
            if chain is not None and chain.done >= plan.sweeps:
                warnings = tuple(problem.model.warnings(chain.state))
                found[index] = _Ended(log.draws(), chain.done, warnings)
            else:
                tasks.append(ChainTask(index, None if chain is None else chain.save()))

    def keep(number: int, result: Any) -> None:
        ended, new, state, reason = result
        index = tasks[number].index
        with keeper.chain(index) as log:
            log.resume(load)
            for draw in new:
                log.append(draw)
            if state is not None:
                log.save(state)
            found[index] = replace(ended, draws=log.draws() or ended.draws)
        stop.reason = stop.reason or reason
        observer.swept(index, ended.sweeps, new[-1].trace if new else None)

    if tasks:
        runner(_as_task, (problem, plan, Deadline(stop.deadline)), tasks, on_result=keep)
    return [found[index] for index in indices]


def _usable(ended: Sequence[_Ended], plan: Plan) -> tuple[list[_Ended], list[str]]:
    """Return the chains whose draws count after an early stop, and what the user should know.

    Draws of a chain that was still warming up would only dilute those of the others.
    """
    warm = [chain for chain in ended if chain.sweeps > plan.warmup]
    if len(warm) == len(ended):
        return warm, []
    if warm:
        return warm, [f"{len(warm)} of {len(ended)} chains finished their warm-up; only they count"]
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
    stop: Stop | None = None,
    enough: Callable[[Posterior], int] | None = None,
    runner: Runner | None = None,
) -> Run:
    """Run all chains, or restarts of an ascent, and return their draws.

    threads : chains that run at the same time, and where there are fewer chains, parts of a chain
        whose model can use them; the draws do not depend on it
    time_limit : seconds after which the chains end with what they have
    keeper : where draws and states are kept, and chains are continued from; memory if left out
    stop : what ends several runs together; `time_limit` is not looked at then
    enough : told the draws once all chains are done, says how many chains there should be; asked
        again when they are, until there are so many. An ascent has no use for it.
    runner : makes the chains in other processes, to the same draws; threads of this one if left out

    Raises UsageError: restarts of an ascent, which go on together, are asked of other processes;
        NumericalError: the model's numbers broke down.
    """
    began = time.monotonic()
    stop = stop or Stop.after(time_limit)
    watching, keeping = observer or Quiet(), keeper or InMemory()
    if problem.model.kind == "ascent":
        if runner is not None:
            raise UsageError(
                f"--engine is for chains, but the model '{problem.model.name}' has none"
            )
        run = ascend(problem, plan, stop, watching, keeping, threads)
        return replace(run, seconds=time.monotonic() - began)
    inside = max(1, threads // plan.chains)
    ended: list[_Ended] = []

    def job(index: int) -> Callable[[], _Ended]:
        return lambda: _run_chain(problem, plan, index, keeping, stop, watching, inside)

    n_chains = plan.chains
    while len(ended) < n_chains:
        new = range(len(ended), n_chains)
        if runner is None:
            jobs = [job(index) for index in new]
            ended += run_jobs(jobs, threads=threads, on_interrupt=stop.interrupt)
        else:
            ended += _run_elsewhere(problem, plan, new, keeping, stop, watching, runner)
        counting, notes = _usable(ended, plan)
        posterior = Posterior(
            problem.model,
            problem.links,
            spans_of(problem.links),
            tuple(chain.draws for chain in counting),
        )
        if enough is not None and stop.reason is None:
            n_chains = enough(posterior)
    warnings = dict.fromkeys([*(text for chain in counting for text in chain.warnings), *notes])
    return Run(posterior, stop.reason, time.monotonic() - began, tuple(warnings))
