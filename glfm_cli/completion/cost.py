"""What a run would do and need, before it is made."""

from __future__ import annotations

import time
from typing import Any

import glfm_cli.inference.chains as chains
from glfm_cli.completion.session import Session
from glfm_cli.encoding import Data
from glfm_cli.inference.chain import spans_of
from glfm_cli.inference.executors import available_threads


def estimate_cost(session: Session) -> dict[str, Any]:
    """Return sizes and missing cells; of a table, seconds and megabytes that it would need, too.

    The time is that of a few sweeps of one chain, measured now; early sweeps have few features,
    so that it errs on the low side. The memory is counted from the sizes of state and draws.
    """
    data, plan, problem = session.data, session.plan, session.problem
    if not isinstance(data, Data):
        length = {"chains": plan.chains, "sweeps": plan.sweeps}
        return data.sizes() | length | {"draws": plan.chains * plan.draws}
    threads = session.sampling.threads or available_threads()
    chain = chains.start(problem, plan.seed, 0)
    began = time.monotonic()
    sweeps = 0
    while sweeps < 5 or (time.monotonic() - began < 1.0 and sweeps < plan.sweeps):
        chain.sweep(adapt=True)
        sweeps += 1
    per_sweep = (time.monotonic() - began) / sweeps
    n_rows, n_latent = problem.n_rows, spans_of(problem.links)[-1][1]
    state = n_rows * (16 * n_latent + len(problem.links))
    draw = problem.model.pack(problem.model.draw(chain.state))
    kept = plan.chains * plan.draws * sum(array.nbytes for array in draw.values())
    at_once = min(threads, plan.chains)
    return {
        "rows": n_rows,
        "modelled_columns": len(problem.links),
        "latent_columns": n_latent,
        **missing_cells(data),
        "chains": plan.chains,
        "sweeps": plan.sweeps,
        "draws": plan.chains * plan.draws,
        "threads": at_once,
        "seconds": per_sweep * plan.sweeps * -(-plan.chains // at_once),
        "megabytes": (at_once * state + kept + 8 * n_rows * len(problem.links)) / 2**20,
    }


def missing_cells(data: Data) -> dict[str, Any]:
    """Return how many cells are to be completed, in all and by column."""
    missing = {e.column.name: int(e.requested.sum()) for e in data.columns}
    return {"cells_to_complete": sum(missing.values()), "gaps": missing}
