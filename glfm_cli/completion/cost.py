"""What a run would do and need, before it is made."""

from __future__ import annotations

import time
from dataclasses import astuple, dataclass, replace
from typing import Any

import numpy as np

import glfm_cli.inference.chains as chains
from glfm_cli.completion.efforts import EFFORTS
from glfm_cli.completion.header import Encoded
from glfm_cli.completion.matrix.matrix import configured
from glfm_cli.completion.prepare import plan_of
from glfm_cli.completion.session import Session
from glfm_cli.encoding import Data
from glfm_cli.inference.blas import one_blas_thread
from glfm_cli.inference.chain import spans_of
from glfm_cli.inference.executors import available_threads
from glfm_cli.inference.sampling import Plan
from glfm_cli.latent.capabilities import Candidates
from glfm_cli.latent.model import Problem
from glfm_cli.options import Sampling


def estimate_cost(session: Session) -> dict[str, Any]:
    """Return sizes and missing cells, and seconds and megabytes that a run would need.

    Of a new run also what each effort is, and its seconds.
    The time is that of a few sweeps of one chain, measured now; early sweeps have few features,
    so that it errs on the low side. The memory is counted from the sizes of state and draws.
    """
    data, plan, problem = session.data, session.plan, session.problem
    threads = session.sampling.threads or available_threads()
    pace = _pace(problem, plan)
    n_rows, n_latent = problem.n_rows, spans_of(problem.links)[-1][1]
    cells = n_rows * len(problem.links)  # of a matrix given by triplets, those that are observed
    if isinstance(data, Data):
        sizes = {"rows": n_rows, "modelled_columns": len(problem.links)}
        sizes |= {"latent_columns": n_latent, **missing_cells(data)}
        state = n_rows * (16 * n_latent + len(problem.links))
    else:
        sizes, cells = data.sizes(), problem.xs[0].shape[0]
        state = CELL_BYTES * cells + pace.draw_bytes
    kept = plan.chains * plan.draws * pace.draw_bytes
    at_once = min(threads, plan.chains)
    efforts = {} if session.saving.resume else _efforts(session, pace, threads)
    return {
        **sizes,
        "model": problem.model.name,
        "chains": plan.chains,
        **({} if plan.most_chains is None else {"most_chains": plan.most_chains}),
        "sweeps": plan.sweeps,
        "draws": chains.n_kept(problem, plan.chains, plan.draws),
        "threads": at_once,
        "seconds": pace.seconds(plan, threads),
        "megabytes": (at_once * state + kept + 8 * cells) / 2**20,
        **({"efforts": efforts} if efforts else {}),
    }


FEWEST, LONGEST = 2, 0.2  # sweeps by which a chain's pace is told, and seconds for more of them
CELL_BYTES = 60  # of the state of a chain, for each observed cell of a matrix


@dataclass(frozen=True)
class _Pace:
    """How long a sweep of a chain and keeping a draw take, and how large that is.

    Where a chain keeps some draws alone, the others take nothing; of candidates it is the mean.
    """

    per_sweep: float
    per_draw: float
    draw_bytes: float

    def seconds(self, plan: Plan, threads: int) -> float:
        """Return the time that all chains take, side by side."""
        one = self.per_sweep * plan.sweeps + self.per_draw * plan.draws
        return one * -(-plan.chains // min(threads, plan.chains))


def _pace(problem: Problem, plan: Plan) -> _Pace:
    model, turns = problem.model, [0] * plan.chains
    if isinstance(model, Candidates):
        turns = [model.turn(problem, index) for index in range(plan.chains)]
    with one_blas_thread():  # as in the run
        found = {which: _pace_of(problem, plan, turns.index(which)) for which in set(turns)}
    return _Pace(*np.mean([astuple(found[which]) for which in turns], axis=0).tolist())


def _pace_of(problem: Problem, plan: Plan, index: int) -> _Pace:
    chain, every = chains.start(problem, plan.seed, index), chains.kept_of(problem, index)
    began = time.monotonic()
    sweeps = 0
    while sweeps < FEWEST or (time.monotonic() - began < LONGEST and sweeps < plan.sweeps):
        chain.sweep(adapt=True)
        sweeps += 1
    per_sweep = (time.monotonic() - began) / sweeps
    began = time.monotonic()
    draw = problem.model.pack(chain.keep().latent)
    per_draw = time.monotonic() - began
    n_bytes = sum(array.nbytes for array in draw.values())
    return _Pace(per_sweep, per_draw / every, n_bytes / every)


def _efforts(session: Session, pace: _Pace, threads: int) -> dict[str, dict[str, Any]]:
    """Return length and seconds of each effort, beside the other options."""
    found = {}
    for name in EFFORTS:
        plan = _plan_of(session.data, replace(session.sampling, effort=name))
        if session.plan.most_chains is None:  # all that there may be are taken at once
            plan = plan.with_most_chains()
        found[name] = {
            "chains": plan.chains,
            "sweeps": plan.sweeps,
            "seconds": pace.seconds(plan, threads),
        }
    return found


def _plan_of(data: Encoded, sampling: Sampling) -> Plan:
    if isinstance(data, Data):
        return plan_of(data, sampling)
    return configured(data.triplets, sampling).plan


def missing_cells(data: Data) -> dict[str, Any]:
    """Return how many cells are to be completed, in all and by column."""
    missing = {e.column.name: int(e.requested.sum()) for e in data.columns}
    return {"cells_to_complete": sum(missing.values()), "gaps": missing}
