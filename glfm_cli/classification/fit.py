"""Fits of the mixture of experts, run by the driver of all models."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.inference.posterior import Posterior
from glfm_cli.inference.run import Keeper, Observer, Plan, Stop
from glfm_cli.inference.sampling import sample
from glfm_cli.latent.iqgme import (
    Drawn,
    Experts,
    FactorExperts,
    IqgmeConfig,
    KnownRows,
    Member,
    TaskTables,
    experts_model,
)
from glfm_cli.latent.model import Problem
from glfm_cli.links import LinkConfig
from glfm_cli.options import SEED, STARTS


@dataclass(frozen=True)
class Fitting:
    """How a mixture of experts is fitted to a table.

    config, links : of the model, and of the columns' links
    chains, seed : starts, and what they are drawn from
    pool, stop, observer, threads : as for `fit_experts`
    """

    config: IqgmeConfig
    links: LinkConfig
    chains: int = STARTS
    seed: int = SEED
    pool: ThreadPoolExecutor | None = None
    stop: Stop | None = None
    observer: Observer | None = None
    threads: int = 1


@dataclass(frozen=True)
class ExpertsProblem(Problem):
    """The rows that experts are fitted to, as the driver takes them.

    It has no links: columns are features already (features.py), of which links have said where.
    """

    tables: TaskTables = field(kw_only=True)

    @property
    def n_rows(self) -> int:
        """Rows of all tables."""
        return sum(len(rows.x) for rows in self.tables.rows)


@dataclass(frozen=True, eq=False)
class ExpertsFit:
    """What predicts: the restarts of an ascent that are left, or draws of a sampler.

    members : of an ascent, the best first
    draws : of all chains of a sampler
    bounds : of the best restart, after every step;  ends : of each restart, NaN where not begun
    trace : (chains, draws) log likelihoods of a sampler;  sweeps : of each of its chains
    converged : whether the best restart has
    """

    members: tuple[Member, ...] = ()
    draws: tuple[Drawn, ...] = ()
    bounds: Array = field(default_factory=lambda: np.empty(0))
    ends: Array = field(default_factory=lambda: np.empty(0))
    trace: Array = field(default_factory=lambda: np.empty((0, 0)))
    converged: bool = False
    sweeps: int = 0

    @property
    def experts(self) -> Experts | FactorExperts:
        """Return q of the best restart."""
        return self.members[0].experts

    @classmethod
    def of(cls, posterior: Posterior, bounds: Sequence[Sequence[float]], plan: Plan) -> ExpertsFit:
        """Return what a posterior holds; `bounds` of each restart after its steps."""
        draws = tuple(posterior.draws())
        if posterior.weights is None:
            trace = posterior.traces()["log_likelihood"]
            latent = tuple(draw.latent for draw in draws)
            return cls(draws=latent, trace=trace, sweeps=plan.sweeps)
        members = tuple(
            replace(draw.latent, weight=weight)
            for draw, weight in zip(draws, posterior.weights, strict=True)
        )
        best = draws[0].trace["bound"]
        ends = np.array([b[-1] if b else np.nan for b in bounds])
        of_best = next((b for b in bounds if b and b[-1] == best), [best])
        converged = bool(draws[0].trace["converged"])
        return cls(members, (), np.array(of_best), ends, np.empty((0, 0)), converged)


def plan_of(config: IqgmeConfig, chains: int, seed: int) -> Plan:
    """Return how long a fit goes on."""
    if config.inference == "gibbs":
        warmup = config.sweeps // 2
        draws = min(config.draws, config.sweeps - warmup)
        return Plan(chains, warmup, draws, (config.sweeps - warmup) // draws, seed)
    return Plan.of_ascent(chains, seed, config.iterations)


def problem_of(
    tables: Sequence[KnownRows],
    config: IqgmeConfig,
    *,
    many: bool,
    chains: int,
    pool: ThreadPoolExecutor | None = None,
    stop: Stop | None = None,
) -> ExpertsProblem:
    """Return what the driver runs: rows of one table, or `many` tasks that share experts."""
    asked = None if stop is None else stop.now
    rows = TaskTables(tuple(tables), config, many, chains, pool, asked)
    return ExpertsProblem(experts_model(config), config, (), (), tables=rows)


def fit_experts(
    tables: KnownRows | Sequence[KnownRows],
    config: IqgmeConfig,
    *,
    chains: int,
    seed: int,
    threads: int = 1,
    pool: ThreadPoolExecutor | None = None,
    stop: Stop | None = None,
    observer: Observer | None = None,
    keeper: Keeper | None = None,
) -> ExpertsFit:
    """Return the mixtures with the best bounds among restarts, or draws of a sampler.

    tables : one table, or those of tasks that share experts
    chains, seed : restarts or chains, and what they are drawn from
    threads : restarts that run side by side; the result does not depend on it
    pool : works on parts of a restart where threads are left over
    stop : ends the fit early; the first restart always makes one step
    observer : told after every step
    keeper : where draws and states are kept, and restarts gone on with

    Raises NumericalError: the numbers broke down.
    """
    many = not isinstance(tables, KnownRows)
    each: Sequence[KnownRows] = tables if many else [tables]  # type: ignore[assignment, list-item]
    problem = problem_of(each, config, many=many, chains=chains, pool=pool, stop=stop)
    plan = plan_of(config, chains, seed)
    run = sample(
        problem,
        plan,
        threads=threads,
        observer=observer,
        keeper=keeper,
        stop=stop or Stop(),
    )
    return ExpertsFit.of(run.posterior, run.bounds, plan)
