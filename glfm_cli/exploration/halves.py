"""Chains that saw half of the rows, so that the other half can judge what they found."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.inference.posterior import Posterior
from glfm_cli.inference.sampling import Plan, sample
from glfm_cli.inference.tasks import Runner
from glfm_cli.latent.model import Problem

CHAINS = 0.25  # of each half, as a part of those of the whole table
DRAWS = 3  # of each chain
FEWEST_ROWS = 4  # of a table that is halved


@dataclass(frozen=True)
class HalfSample:
    """Draws given some of the rows.

    own : numbers of the rows that the draws were given;  other : of those that judge
    """

    posterior: Posterior
    own: Array
    other: Array


def sample_halves(
    problem: Problem,
    plan: Plan,
    *,
    threads: int = 1,
    time_limit: float | None = None,
    runner: Runner | None = None,
) -> tuple[tuple[HalfSample, ...], str | None]:
    """Return the draws of chains given either random half of the rows, and what cut them short.

    None where there are too few rows or the chains were cut short. Each half has a quarter as many
    chains as the table, with the same warm-up: a fifth of the time that the table takes.
    """
    if problem.n_rows < FEWEST_ROWS:
        return (), None
    rng = np.random.default_rng([plan.seed, problem.n_rows])
    shuffled, middle = rng.permutation(problem.n_rows), problem.n_rows // 2
    own = np.sort(shuffled[:middle]), np.sort(shuffled[middle:])
    n_chains = max(1, round(CHAINS * plan.chains))
    halves = []
    for rows, others in (own, own[::-1]):
        seed, draws = int(rng.integers(1 << 31)), min(DRAWS, plan.draws)
        shorter = replace(plan, chains=n_chains, draws=draws, seed=seed)
        part = problem.take(rows)
        run = sample(part, shorter, threads=threads, time_limit=time_limit, runner=runner)
        if run.stopped is not None:
            return (), run.stopped
        halves.append(HalfSample(run.posterior, rows, others))
    return tuple(halves), None
