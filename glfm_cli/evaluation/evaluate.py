"""Hide, complete, score: the whole of an evaluation."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from glfm_cli.completion import DRAWS, THIN, WARMUP, as_schema
from glfm_cli.encoding import encode
from glfm_cli.errors import UsageError
from glfm_cli.evaluation.compare import GIVEN
from glfm_cli.evaluation.evaluation import Evaluation
from glfm_cli.evaluation.forecast import Forecast, estimate_cost
from glfm_cli.evaluation.jobs import Bench, Job, digest, run_job, table_key
from glfm_cli.evaluation.masks import MECHANISMS
from glfm_cli.evaluation.methods import Method, Sampling, choose_methods
from glfm_cli.evaluation.results import Outcome, OutcomeId, Store
from glfm_cli.evaluation.scoring import spans
from glfm_cli.evaluation.split import read_split
from glfm_cli.inference.executors import available_threads, run_in_processes
from glfm_cli.io import read_table
from glfm_cli.io.files import file_label
from glfm_cli.schema import Schema

METHODS = ("glfm", "sibp", "mean")
RATES = (0.1, 0.3, 0.5)
REPEATS = 5
TIMEOUT = 600.0


class Observer(Protocol):
    """Told how an evaluation goes on."""

    def planned(self, forecast: Forecast) -> None:
        """Everything is checked, and the work begins."""

    def fitted(self, fit: Outcome) -> None:
        """One fit is done, and its rows are on disk."""


class Quiet:
    """The observer of an evaluation that says nothing."""

    def planned(self, forecast: Forecast) -> None:
        """Ignore the plan."""

    def fitted(self, fit: Outcome) -> None:
        """Ignore the news."""


@dataclass(frozen=True)
class Plan:
    """Everything checked: the bench, the jobs in order, and where results go."""

    bench: Bench
    jobs: tuple[Job, ...]
    rates: tuple[float, ...]
    repeats: int
    reference: str
    workers: int
    store: Store | None
    done: Mapping[OutcomeId, Outcome]
    others: tuple[Outcome, ...]  # on disk, of methods or repeats that are not asked for now


def evaluate(
    table: pa.Table | str | os.PathLike[str],
    types: Schema | Mapping[str, Any] | str | os.PathLike[str],
    *,
    methods: Sequence[str] = METHODS,
    programs: Mapping[str, str] | None = None,
    method_timeout: float = TIMEOUT,
    rates: Sequence[float] = RATES,
    repeats: int = REPEATS,
    mechanism: str = "mcar",
    reference: str | None = None,
    chains: int | None = None,
    warmup: int = WARMUP,
    draws: int = DRAWS,
    thin: int = THIN,
    seed: int = 0,
    threads: int | None = None,
    time_limit: float | None = None,
    settings: Mapping[str, object] | None = None,
    jobs: int | None = None,
    output: str | os.PathLike[str] | None = None,
    resume: bool = False,
    observer: Observer | None = None,
) -> Evaluation:
    """Hide observed cells, complete the table with several methods, and score them.

    Parameters
    ----------
    table : pyarrow.Table or path
        The table, or a file that `read_table` reads.
    types : Schema, mapping or path
        What the columns mean: a schema, the content of a types file, or its path. A column of role
        `split` marks the rows or cells to hide.
    methods : sequence of str
        Latent models by name, "sibp", "marginal", "mean", "draw", "knn", "iterative"; the names of
        programs are added if they are not there.
    programs : mapping of str to str, optional
        Other programs: a name and a command with `{input}` and `{output}`, and, where wanted,
        `{types}` and `{seed}`.
    method_timeout : float
        Seconds that a program may take for one table.
    rates : sequence of float
        Shares of the cells to hide, each in (0, 1).
    repeats : int
        Sets of hidden cells at each rate.
    mechanism : {"mcar", "mar", "mnar", "observed"}
        What being hidden depends on: nothing, other columns, the value itself; or it
        imitates the table's own gaps.
    reference : str, optional
        The method that others are compared to; the first if left out.
    chains, warmup, draws, thin, time_limit, settings
        How models are sampled, as in `impute`.
    seed : int
        Fixes hidden cells and results, whatever `methods`, `threads` and `jobs` are.
    threads : int, optional
        Chains of one fit that run at the same time; by default the processors, shared by the jobs.
    jobs : int, optional
        Fits that are made at the same time, in processes; as many as processors if left out.
    output : path, optional
        A table of the results, which grows as they come.
    resume : bool
        Go on with the results that `output` has already.
    observer : Observer, optional
        Told of progress.

    Returns
    -------
    Evaluation
        After Ctrl-C with the fits that were made, and `stopped` set.

    Raises
    ------
    GlfmError
        The table, the types or an option are wrong; the error says where and what to do.
    """
    sampling = Sampling(chains, warmup, draws, thin, time_limit, dict(settings or {}))
    plan = prepare(
        table,
        types,
        methods=methods,
        programs=programs or {},
        method_timeout=method_timeout,
        rates=rates,
        repeats=repeats,
        mechanism=mechanism,
        reference=reference,
        sampling=sampling,
        seed=seed,
        threads=threads,
        jobs=jobs,
        output=output,
        resume=resume,
    )
    return carry_out(plan, observer or Quiet())


def prepare(
    table: pa.Table | str | os.PathLike[str],
    types: Schema | Mapping[str, Any] | str | os.PathLike[str],
    *,
    methods: Sequence[str],
    programs: Mapping[str, str],
    method_timeout: float,
    rates: Sequence[float],
    repeats: int,
    mechanism: str,
    reference: str | None,
    sampling: Sampling,
    seed: int,
    threads: int | None,
    jobs: int | None,
    output: str | os.PathLike[str] | None,
    resume: bool,
) -> Plan:
    """Check everything, masks included, and return what is to be done; nothing is fitted yet."""
    _check_request(rates, repeats, mechanism, seed, threads, jobs, method_timeout, sampling)
    chosen = choose_methods(methods, programs, sampling, timeout=method_timeout)
    names = [method.name for method in chosen]
    if reference is not None and reference not in names:
        raise UsageError("--reference", value=f"'{reference}'", expected=" or ".join(names))
    if resume and output is None:
        raise UsageError("--resume needs --output, the results to go on with")
    workers = jobs or available_threads()
    spare = max(1, available_threads() // workers)
    bench = _bench(table, types, chosen, mechanism, seed, threads or spare)
    if bench.split is not None and bench.split.cells is not None:
        rates = (_share_given(bench),)
    else:
        for rate in rates:
            for repeat in range(repeats):
                bench.mask(rate, repeat)  # raises for one that cannot be drawn
    asked = [
        Job(method, rate, repeat)
        for rate in rates
        for repeat in range(repeats)
        for method in range(len(chosen))
    ]
    store = None if output is None else Store(output)
    done: dict[OutcomeId, Outcome] = {}
    others: list[Outcome] = []
    if store is not None:
        store.check(resume)
        if resume:
            done, others = _on_disk(store, bench, {bench.outcome_id(job) for job in asked})
    return Plan(
        bench=bench,
        jobs=tuple(job for job in asked if bench.outcome_id(job) not in done),
        rates=tuple(rates),
        repeats=repeats,
        reference=reference or names[0],
        workers=workers,
        store=store,
        done=done,
        others=tuple(others),
    )


def _bench(
    table: pa.Table | str | os.PathLike[str],
    types: Schema | Mapping[str, Any] | str | os.PathLike[str],
    methods: tuple[Method, ...],
    mechanism: str,
    seed: int,
    threads: int,
) -> Bench:
    """Read and encode the table, and check that every method can do it."""
    file = None
    if not isinstance(table, pa.Table):
        file, table = file_label(table), read_table(table)
    schema = as_schema(types)
    data = encode(table, schema, file=file)
    split = read_split(table, schema, data, file)
    for method in methods:
        method.check(table, schema, data)
    return Bench(
        table=table,
        schema=schema,
        data=data,
        span=spans(data),
        methods=methods,
        mechanism=mechanism if split is None or split.cells is None else GIVEN,
        split=split,
        seed=seed,
        threads=threads,
    )


def _share_given(bench: Bench) -> float:
    """Return the share of the cells that could be hidden which a split names."""
    assert bench.split is not None
    assert bench.split.cells is not None
    columns = [e for e in bench.data.columns if e.column.completed]
    return float(bench.split.cells.sum()) / sum(int(e.observed.sum()) for e in columns)


def carry_out(plan: Plan, observer: Observer) -> Evaluation:
    """Make the fits of a plan, and return all that there are."""
    began = time.monotonic()
    bench, made = plan.bench, dict(plan.done)
    if plan.store is not None and plan.jobs:
        plan.store.begin(_ordered(plan, made))
    observer.planned(estimate_cost(bench, plan.jobs, plan.workers, len(plan.done)))

    def keep(_: int, fit: Outcome) -> None:
        made[fit.id] = fit
        if plan.store is not None:
            plan.store.add(fit)
        observer.fitted(fit)

    stopped = None
    try:
        run_in_processes(run_job, bench, plan.jobs, workers=plan.workers, on_result=keep)
    except KeyboardInterrupt:
        stopped = "interrupted"
    fits = _ordered(plan, made)
    if plan.store is not None and plan.jobs and stopped is None:
        plan.store.finish(fits)
    asked = set(plan.done) | {bench.outcome_id(job) for job in plan.jobs}
    return Evaluation(
        fits=tuple(fit for fit in fits if fit.id in asked),
        methods=tuple(method.name for method in bench.methods),
        reference=plan.reference,
        mechanism=bench.mechanism,
        rates=plan.rates,
        repeats=plan.repeats,
        seed=bench.seed,
        data=bench.data,
        stopped=stopped,
        seconds=time.monotonic() - began,
    )


def _ordered(plan: Plan, made: Mapping[OutcomeId, Outcome]) -> list[Outcome]:
    """Return all fits by rate, repeat, and method in the order asked for, then others by name."""
    place = {method.name: i for i, method in enumerate(plan.bench.methods)}

    def order(fit: Outcome) -> tuple[float, int, int, str]:
        name = fit.id.method
        return fit.id.rate, fit.id.repeat, place.get(name, len(place)), name

    return sorted([*made.values(), *plan.others], key=order)


def _on_disk(
    store: Store, bench: Bench, asked: set[OutcomeId]
) -> tuple[dict[OutcomeId, Outcome], list[Outcome]]:
    """Return the fits on disk that are asked for, and the others; raise if they do not belong."""
    key = table_key(bench)
    of_method = {method.name: digest(method.key) for method in bench.methods}
    done: dict[OutcomeId, Outcome] = {}
    others = []
    for fit in store.load():
        table, _, method = fit.key.partition("-")
        if table != key:
            raise UsageError(
                "these results are of another table, mechanism or seed",
                file=str(store.path),
                hint="Choose another --output, or give the options that they were made with.",
            )
        if fit.id.method in of_method and of_method[fit.id.method] != method:
            raise UsageError(
                f"the results of {fit.id.method} in it were made with other options",
                file=str(store.path),
                hint="Choose another --output, or give the options that they were made with.",
            )
        if fit.id in asked:
            done[fit.id] = fit
        else:
            others.append(fit)
    return done, others


def _check_request(
    rates: Sequence[float],
    repeats: int,
    mechanism: str,
    seed: int,
    threads: int | None,
    jobs: int | None,
    method_timeout: float,
    sampling: Sampling,
) -> None:
    """Raise UsageError when an option that needs no table is out of range."""
    if not rates:
        raise UsageError("--rates", expected="at least one share of cells to hide")
    for rate in rates:
        if not 0 < rate < 1:
            raise UsageError("--rates", value=f"{rate:g}", expected="shares between 0 and 1")
    if len(set(np.round(np.asarray(rates) * 1e9))) < len(rates):
        raise UsageError("--rates", value="a rate twice", expected="different shares")
    if mechanism not in MECHANISMS:
        raise UsageError(
            "--mechanism", value=f"'{mechanism}'", expected=" or ".join(MECHANISMS)
        )  # fmt: skip
    for name, value, least in (
        ("--repeats", repeats, 1),
        ("--seed", seed, 0),
        ("--threads", 1 if threads is None else threads, 1),
        ("--jobs", 1 if jobs is None else jobs, 1),
    ):
        if not isinstance(value, Integral) or value < least:
            raise UsageError(name, value=value, expected=f"a whole number from {least}")
    limit = sampling.time_limit
    for name, seconds in (("--method-timeout", method_timeout), ("--time-limit", limit)):
        if seconds is not None and not 0 < seconds < float("inf"):
            raise UsageError(name, value=seconds, expected="seconds above 0")
