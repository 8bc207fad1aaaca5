"""How long an evaluation will take, said before it starts."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import glfm_cli.inference.chains as chains
from glfm_cli.encoding import Data
from glfm_cli.evaluation.jobs import Bench, Job
from glfm_cli.evaluation.methods.counts import Unigram
from glfm_cli.evaluation.methods.means import UnitMean
from glfm_cli.evaluation.methods.models import ModelMethod
from glfm_cli.evaluation.methods.simple import Mean, RandomValue
from glfm_cli.inference.chain import spans_of
from glfm_cli.inference.pace import Pace
from glfm_cli.inference.posterior import Posterior

_TRIAL_DRAWS = 8  # whose predictives are timed; from there on the time grows in proportion


@dataclass(frozen=True)
class Forecast:
    """What is to be done, and how long it may take.

    fits, done : fits to make now, and those that earlier runs made
    workers : how many are made at the same time
    per_fit : seconds of one fit, for each model
    seconds : of all fits of models together
    unknown : methods whose time is not known beforehand, with the number of their fits
    """

    fits: int
    done: int
    workers: int
    per_fit: dict[str, float]
    seconds: float
    unknown: dict[str, int]


def estimate_cost(bench: Bench, jobs: Sequence[Job], workers: int, done: int) -> Forecast:
    """Return a forecast: models are timed on a few sweeps of one chain.

    Early sweeps have other numbers of features than later ones, and other processes are not
    foreseen: it is a rough figure.
    """
    fits = Counter(bench.methods[job.method].name for job in jobs)
    per_fit: dict[str, float] = {}
    unknown: dict[str, int] = {}
    for method in bench.methods:
        if not fits[method.name]:
            continue
        if isinstance(method, ModelMethod):
            rate = median(job.rate for job in jobs)
            per_fit[method.name] = _time_model(bench, method, rate)
        elif not isinstance(method, Mean | RandomValue | UnitMean | Unigram):
            unknown[method.name] = fits[method.name]
    total = sum(seconds * fits[name] for name, seconds in per_fit.items())
    at_once = max(1, min(workers, len(jobs)))
    return Forecast(len(jobs), done, at_once, per_fit, total / at_once, unknown)


def _time_model(bench: Bench, method: ModelMethod, rate: float) -> float:
    """Return the seconds that one fit of a model is expected to take."""
    task = bench.task(rate, 0, seed=bench.seed, threads=1)
    problem, plan = method.prepare(
        bench.table, bench.schema, method.seen(task.data), seed=bench.seed
    )
    pace = Pace.of(problem, plan, corrected=isinstance(task.data, Data))
    n_draws = chains.n_kept(problem, plan.chains, plan.draws)
    n_tried = min(n_draws, _TRIAL_DRAWS)
    draws = (chains.start(problem, plan.seed, 0).keep(),) * n_tried
    began = time.monotonic()
    method.answer(Posterior(problem.model, problem.links, spans_of(problem.links), (draws,)), task)
    scoring = (time.monotonic() - began) * n_draws / n_tried
    sampling = pace.seconds(plan, bench.threads)
    limit = method.sampling.time_limit
    return scoring + (sampling if limit is None else min(sampling, limit))
