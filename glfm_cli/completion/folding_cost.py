"""What completing rows that were not learnt from would need, before it is done."""

from __future__ import annotations

import time
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

import glfm_cli.inference.chains as chains
from glfm_cli.completion.new_rows import DRAWS, Fitted
from glfm_cli.completion.session import Session
from glfm_cli.encoding import Data
from glfm_cli.inference.blas import one_blas_thread
from glfm_cli.inference.chain import spans_of
from glfm_cli.inference.folding import BATCH, fold_in
from glfm_cli.inference.posterior import Posterior

_SWEEPS = 5  # of chains that are begun for this alone


@dataclass(frozen=True)
class FoldingCost:
    """How long folding rows in takes, and the memory for the draws of one of them."""

    seconds: float
    row_bytes: float


def folding_cost(
    fitted: Fitted, data: Data, n_rows: int, n_draws: int, threads: int
) -> FoldingCost:
    """Return what folding rows in would need, measured now under one draw of each chain.

    data : some of the rows, or rows like them;  n_rows : how many there are
    n_draws : of all chains, that each row is folded in under
    """
    one_each = fitted.posterior.thinned(1)
    problem = fitted.problem_of(data)
    if problem.groups is None:  # rows of a group are folded in together
        # A whole batch, for some of its cost does not grow with its rows.
        problem = problem.take(np.resize(np.arange(problem.n_rows), min(n_rows, BATCH)))
    began = time.monotonic()
    folded = fold_in(one_each, problem, seed=0, threads=threads)
    seconds = (time.monotonic() - began) * n_rows / problem.n_rows
    size = sum(_bytes_of(chain[0].latent, problem.n_rows) for chain in folded.chains)
    times = n_draws / max(folded.n_draws, 1)
    return FoldingCost(seconds * times, size * times / problem.n_rows)


def _bytes_of(part: object, n_rows: int) -> int:
    """Return the size of all arrays in a draw that have so many rows; what rows share counts not.
    """
    if isinstance(part, np.ndarray):
        return part.nbytes if n_rows in part.shape else 0
    if is_dataclass(part):
        return sum(_bytes_of(getattr(part, field.name), n_rows) for field in fields(part))
    return sum(_bytes_of(one, n_rows) for one in part) if isinstance(part, tuple) else 0


def of_fit(fitted: Fitted, data: Data, threads: int) -> dict[str, Any]:
    """Return the seconds and megabytes that completing rows with a fit would need."""
    if fitted.is_own(data):
        return {}
    n_rows = data.n_rows
    cost = folding_cost(fitted, data, n_rows, fitted.posterior.n_draws, threads)
    cells = 8 * n_rows * len(data.columns)
    return {"seconds": cost.seconds, "megabytes": (cost.row_bytes * n_rows + cells) / 2**20}


def of_session(session: Session, rest: Data, n_rows: int, threads: int) -> FoldingCost:
    """Return what folding rows in would need after a run that is not yet made.

    rest : some of these rows, or rows like them
    """
    data, problem, plan = session.data, session.problem, session.plan
    assert isinstance(data, Data)
    begun = []
    with one_blas_thread():
        for index in range(plan.chains):
            chain = chains.start(problem, plan.seed, index)
            for _ in range(_SWEEPS):
                chain.sweep(adapt=True)
            begun.append((chain.keep(),))
    posterior = Posterior(problem.model, problem.links, spans_of(problem.links), tuple(begun))
    fitted = Fitted.of_run(session.header.schema, data, problem, posterior, plan.seed)
    draws = min(DRAWS, chains.n_kept(problem, plan.chains, plan.draws))
    return folding_cost(fitted, rest, n_rows, draws, threads)


def with_folding(costs: dict[str, Any], folding: FoldingCost, held: int) -> dict[str, Any]:
    """Return the costs of a run, and of all its efforts, with folding rows in after it.

    held : rows whose draws are in memory at a time
    """
    seconds = folding.seconds
    row_bytes = folding.row_bytes + 8 * costs["modelled_columns"]
    times = ("seconds", "most_seconds")
    longer = {
        **{name: costs[name] + seconds for name in times if name in costs},
        "megabytes": costs["megabytes"] + row_bytes * held / 2**20,
    }
    efforts = {
        name: one | {"seconds": one["seconds"] + seconds}
        for name, one in costs.get("efforts", {}).items()
    }
    return costs | longer | ({"efforts": efforts} if efforts else {})
