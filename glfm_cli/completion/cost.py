"""What a run would do and need, before it is made."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import glfm_cli.inference.chains as chains
from glfm_cli.completion.dependent import settling_seconds
from glfm_cli.completion.efforts import EFFORTS, paced
from glfm_cli.completion.header import Encoded
from glfm_cli.completion.matrix.matrix import configured
from glfm_cli.completion.prepare import plan_of
from glfm_cli.completion.session import Session
from glfm_cli.encoding import Data
from glfm_cli.inference.chain import spans_of
from glfm_cli.inference.executors import available_threads
from glfm_cli.inference.memory import memory_in_use
from glfm_cli.inference.pace import Pace
from glfm_cli.inference.sampling import Plan
from glfm_cli.latent.model import Problem
from glfm_cli.options import Sampling
from glfm_cli.settings import apply_settings


def estimate_cost(session: Session, *, completed: bool = True) -> dict[str, Any]:
    """Return sizes and missing cells, and seconds and megabytes that a run would need.

    Of a new run also what each effort is, and its seconds.
    The time is that of a few sweeps of chains side by side, and of hiding cells from them once,
    measured now, and of joint draws of cells that follow from others; features that are yet to come
    are not in it, nor other predictions. Where there may be more chains, that of all of them, too.
    The memory is counted from the sizes of state and draws, of all the chains that there may be;
    what the process has already is not in it.

    completed : whether cells are completed after the run
    """
    data, plan, problem = session.data, session.plan, session.problem
    threads = session.sampling.threads or available_threads()
    beside = threads if session.runner is None else 1  # processes do not wait for one another
    pace = Pace.of(problem, plan, corrected=isinstance(data, Data), threads=beside)
    n_rows, n_latent = problem.n_rows, spans_of(problem.links)[-1][1]
    cells = n_rows * len(problem.links)  # of a matrix given by triplets, those that are observed
    if isinstance(data, Data):
        sizes = {"rows": n_rows, "modelled_columns": len(problem.links)}
        sizes |= {"latent_columns": n_latent, **missing_cells(data)}
        state = n_rows * (16 * n_latent + len(problem.links))
    else:
        sizes, cells = data.sizes(), problem.xs[0].shape[0]
        state = CELL_BYTES * cells + pace.draw_bytes
    all_chains = plan.with_most_chains()
    kept = all_chains.chains * all_chains.draws * pace.draw_bytes
    kept *= 2 if pace.per_chain else 1  # draws without the hidden cells
    at_once = min(threads, plan.chains)
    after = 0.0
    if completed and isinstance(data, Data):
        after = settling_seconds(problem, data, plan.seed)
    most = after + pace.seconds(all_chains, threads)
    efforts = {} if session.saving.resume else _efforts(session, pace, threads, after)
    return {
        **sizes,
        "model": problem.model.name,
        "chains": plan.chains,
        **({} if plan.most_chains is None else {"most_chains": plan.most_chains}),
        "sweeps": plan.sweeps,
        "draws": chains.n_kept(problem, plan.chains, plan.draws),
        "threads": at_once,
        "seconds": after + pace.seconds(plan, threads),
        **({} if plan.most_chains is None else {"most_seconds": most}),
        "megabytes": (at_once * state + kept + 8 * cells) / 2**20,
        **({"efforts": efforts} if efforts else {}),
    }


def with_process(costs: dict[str, Any]) -> dict[str, Any]:
    """Return costs in which the memory, if it is told, is that of the whole process."""
    if "megabytes" not in costs:
        return costs
    now = memory_in_use() / 1024
    return costs | {"megabytes": costs["megabytes"] + (0.0 if math.isnan(now) else now)}


CELL_BYTES = 60  # of the state of a chain, for each observed cell of a matrix


def _efforts(
    session: Session, pace: Pace, threads: int, after: float
) -> dict[str, dict[str, Any]]:
    """Return length and seconds of each effort, beside the other options.

    after : seconds that no effort changes
    """
    found = {}
    for name in EFFORTS:
        sampling = replace(session.sampling, effort=name)
        plan = _plan_of(session.data, sampling)
        settings = paced(sampling, session.problem.model.name).settings or {}
        corrected = bool(settings.get("recalibrate", True))
        problem = _with(session.problem, settings)
        if session.plan.most_chains is None:  # all that there may be are taken at once
            plan = plan.with_most_chains()
        own = pace
        if problem is not session.problem:
            beside = threads if session.runner is None else 1
            own = Pace.of(problem, plan, corrected=corrected, threads=beside)
        found[name] = {
            "chains": plan.chains,
            "sweeps": plan.sweeps,
            "seconds": after + own.seconds(plan, threads, corrected=corrected),
        }
    return found


def _with(problem: Problem, settings: Mapping[str, object]) -> Problem:
    """Return a problem with those settings that are its model's, itself where none changes."""
    own = {field.name for field in fields(problem.config)}
    chosen = {name: value for name, value in settings.items() if name in own}
    config = apply_settings({"model": problem.config}, chosen)["model"]
    return problem if config == problem.config else replace(problem, config=config)


def _plan_of(data: Encoded, sampling: Sampling) -> Plan:
    if isinstance(data, Data):
        return plan_of(data, sampling)
    return configured(data.triplets, sampling).plan


def missing_cells(data: Data) -> dict[str, Any]:
    """Return how many cells are to be completed, in all and by column."""
    missing = {e.column.name: int(e.requested.sum()) for e in data.columns}
    return {"cells_to_complete": sum(missing.values()), "gaps": missing}
