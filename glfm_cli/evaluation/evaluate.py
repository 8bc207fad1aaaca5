"""Hide, complete, score: the whole of an evaluation."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import glfm_cli.evaluation.holdouts as holdouts
import glfm_cli.evaluation.new_rows as new_rows
from glfm_cli.completion import Encoded, MatrixData, TableLike, Types, as_table, with_types
from glfm_cli.completion.matrix import features_of
from glfm_cli.completion.models import Asked, named
from glfm_cli.completion.prepare import with_guess
from glfm_cli.completion.session import check_layout
from glfm_cli.encoding import encode, encode_triplets, is_triplets, layout_of
from glfm_cli.errors import UsageError
from glfm_cli.evaluation.compare import GIVEN
from glfm_cli.evaluation.design import Design
from glfm_cli.evaluation.evaluation import Evaluation
from glfm_cli.evaluation.forecast import Forecast, estimate_cost
from glfm_cli.evaluation.holdouts import read_holdout
from glfm_cli.evaluation.jobs import Bench, Job, digest, run_job, table_key
from glfm_cli.evaluation.masks import MECHANISMS
from glfm_cli.evaluation.methods import METHODS, Method, choose_methods
from glfm_cli.evaluation.results import Outcome, OutcomeId, Results
from glfm_cli.evaluation.scoring import spans
from glfm_cli.evaluation.split import read_split
from glfm_cli.inference.blas import one_blas_thread
from glfm_cli.inference.executors import available_threads, run_in_processes
from glfm_cli.inference.tasks import Runner, runner_of
from glfm_cli.options import MatrixOptions, Sampling, gather
from glfm_cli.schema import Schema

RATES = (0.1, 0.3, 0.5)
REPEATS = 5
# Of each layout the mechanisms, the usual one first, and the usual rates.
WHAT_IS_HIDDEN = {
    "dense": (tuple(MECHANISMS), RATES),
    "sparse": (holdouts.MECHANISMS, holdouts.RATES),
    "counts": ((new_rows.MECHANISM,), new_rows.RATES),
}


class EvaluationObserver(Protocol):
    """Told how an evaluation goes on."""

    def planned(self, forecast: Forecast) -> None:
        """Everything is checked, and the work begins."""

    def fitted(self, fit: Outcome) -> None:
        """One fit is done, and its rows are on disk."""


class Unwatched:
    """The observer of an evaluation that says nothing."""

    def planned(self, forecast: Forecast) -> None:
        """Ignore the plan."""

    def fitted(self, fit: Outcome) -> None:
        """Ignore the news."""


@dataclass(frozen=True)
class Schedule:
    """Everything checked: the bench, the jobs in order, and where results go."""

    bench: Bench
    jobs: tuple[Job, ...]
    rates: tuple[float, ...]
    repeats: int
    reference: str
    workers: int
    runner: Runner
    store: Results | None
    done: Mapping[OutcomeId, Outcome]
    others: tuple[Outcome, ...]  # on disk, of methods or repeats that are not requested for now


@one_blas_thread()
def evaluate(
    table: TableLike,
    types: Types,
    *,
    sampling: Sampling | None = None,
    matrix: MatrixOptions | None = None,
    design: Design | None = None,
    observer: EvaluationObserver | None = None,
    **options: Any,
) -> Evaluation:
    """Hide observed cells, complete what is left with several methods, and score them.

    Parameters
    ----------
    table : table, data frame, matrix or path
        As in `impute`, or triplets.
    types : Schema, Guess, mapping or path
        What the columns mean: a schema, the content of a types file, or its path. A column of role
        `split` marks the rows or cells to hide.
    sampling, matrix, design : Sampling, MatrixOptions, Design
        Options of models and of a matrix, what is compared, and which cells are hidden; their
        fields are keywords of this function, too: `chains=4`, `rates=[0.2]`. The seed fixes
        hidden cells and results, whatever the methods, threads and jobs are.
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
    groups = sampling or Sampling(), matrix or MatrixOptions(), design or Design()
    sampling, matrix, design = gather(options, *groups)
    read, schema = with_types(table, types)
    check_layout(is_triplets(schema), matrix)
    plan = prepare(read, schema, sampling, matrix, design)
    return replace(carry_out(plan, observer or Unwatched()), given=table)


def prepare(
    table: TableLike, schema: Schema, sampling: Sampling, matrix: MatrixOptions, design: Design
) -> Schedule:
    """Check everything, masks included, and return what is to be done; nothing is fitted yet."""
    layout = layout_of(schema)
    sparse, (known, usual) = layout != "dense", WHAT_IS_HIDDEN[layout]
    mechanism = design.mechanism or known[0]
    if mechanism not in known:
        raise UsageError("--mechanism", value=f"'{mechanism}'", expected=" or ".join(known))
    if sparse:
        design.check_triplets(mechanism)
    rates, repeats = design.rates or usual, design.repeats
    features = features_of(matrix.row_features), features_of(matrix.column_features)
    matrix = replace(matrix, row_features=features[0], column_features=features[1])
    chosen = choose_methods(
        _usual(schema, sampling) if design.methods is None and not sparse else design.methods,
        design.programs,
        replace(sampling, engine=None, scheduler=None),
        timeout=design.method_timeout,
        matrix=matrix if sparse else None,
        layout=layout,
    )
    names = [method.name for method in chosen]
    reference = design.reference
    if reference is not None and reference not in names:
        raise UsageError("--reference", value=f"'{reference}'", expected=" or ".join(names))
    workers = design.jobs or available_threads()
    runner = runner_of(sampling.engine, sampling.scheduler, workers)
    threads = sampling.threads or max(1, available_threads() // workers)
    bench = _bench(table, schema, chosen, design, mechanism, sampling.seed or 0, threads)
    given = _share_given(bench)
    rates, repeats = ((given,) if given else rates), repeats or (1 if bench.given else REPEATS)
    if not bench.given:
        rates = _reachable(bench, rates, repeats, named=design.rates is not None)
    jobs = [
        Job(method, rate, repeat)
        for rate in rates
        for repeat in range(repeats)
        for method in range(len(chosen))
    ]
    store = None if design.output is None else Results(design.output)
    done: dict[OutcomeId, Outcome] = {}
    others: list[Outcome] = []
    if store is not None:
        store.check(design.resume)
        if design.resume:
            done, others = _on_disk(store, bench, {bench.outcome_id(job) for job in jobs})
    return Schedule(
        bench=bench,
        jobs=tuple(job for job in jobs if bench.outcome_id(job) not in done),
        rates=tuple(rates),
        repeats=repeats,
        reference=reference or names[0],
        workers=workers,
        runner=runner or partial(run_in_processes, workers=workers),
        store=store,
        done=done,
        others=tuple(others),
    )


def _usual(schema: Schema, sampling: Sampling) -> tuple[str, ...]:
    """Return the model that completes such a table where none is named, and what costs nothing."""
    kinds = [column.kind for column in schema.columns if column.type is not None]
    first = named(sampling, Asked("dense", kinds)).model
    return first or METHODS[0], *METHODS[1:]


def _bench(
    table: TableLike,
    schema: Schema,
    methods: tuple[Method, ...],
    design: Design,
    mechanism: str,
    seed: int,
    threads: int,
) -> Bench:
    """Read and encode the table, and check that every method can do it."""
    source, (table, file) = table, as_table(table)
    data: Encoded
    split = given = None
    if is_triplets(schema):
        given = read_holdout(table, schema, design, file)
        if given is not None and layout_of(schema) == "counts":
            raise UsageError("a split column marks cells, and of counts whole rows are held out")
        cells = encode_triplets(table, schema, file=file) if given is None else given.train
        data = MatrixData(cells)
    else:
        data = with_guess(encode(table, schema, file=file), source)
        split = read_split(table, schema, data, file)
    for method in methods:
        method.check(table, schema, data)
    fixed = given is not None or (split is not None and split.cells is not None)
    return Bench(
        table=table,
        schema=schema,
        data=data,
        span=spans(data.columns),
        methods=methods,
        mechanism=GIVEN if fixed else mechanism,
        split=split,
        seed=seed,
        threads=threads,
        given=given,
    )


def _reachable(
    bench: Bench, rates: Sequence[float], repeats: int, *, named: bool
) -> tuple[float, ...]:
    """Return the rates at which cells can be hidden in every repeat, as two columns allow few.

    Raises UsageError: one that was named, or none of the usual ones, can be reached.
    """
    found, refused = [], None
    for rate in rates:
        try:
            for repeat in range(repeats):
                bench.task(rate, repeat, seed=0, threads=1)
        except UsageError as error:
            if named:
                raise
            refused = refused or error
        else:
            found.append(rate)
    if refused is not None and not found:
        raise refused
    return tuple(found)


def _share_given(bench: Bench) -> float | None:
    """Return the share of the cells that could be hidden which is, where it is given."""
    if bench.given is not None or bench.mechanism == holdouts.ONE:
        held = bench.task(0.0, 0, seed=0, threads=1).holdout
        return None if held is None else held.rate
    if bench.split is None or bench.split.cells is None:
        return None
    columns = [e for e in bench.data.columns if e.column.completed]
    return float(bench.split.cells.sum()) / sum(int(e.observed.sum()) for e in columns)


def carry_out(plan: Schedule, observer: EvaluationObserver) -> Evaluation:
    """Make the fits of a plan, and return all that there are."""
    began = time.monotonic()
    bench, made = plan.bench, dict(plan.done)
    if plan.store is not None and plan.jobs:
        plan.store.begin(_ordered(plan, made))

    def keep(_: int, fit: Outcome) -> None:
        made[fit.id] = fit
        if plan.store is not None:
            plan.store.add(fit)
        observer.fitted(fit)

    stopped = None
    try:
        observer.planned(estimate_cost(bench, plan.jobs, plan.workers, len(plan.done)))
        plan.runner(run_job, bench, plan.jobs, on_result=keep)
    except KeyboardInterrupt:
        stopped = "interrupted"
    fits = _ordered(plan, made)
    if plan.store is not None and plan.jobs and stopped is None:
        plan.store.finish(fits)
    requested = set(plan.done) | {bench.outcome_id(job) for job in plan.jobs}
    return Evaluation(
        fits=tuple(fit for fit in fits if fit.id in requested),
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


def _ordered(plan: Schedule, made: Mapping[OutcomeId, Outcome]) -> list[Outcome]:
    """Return all fits by rate, repeat, and method in the order given, then others by name."""
    place = {method.name: i for i, method in enumerate(plan.bench.methods)}

    def order(fit: Outcome) -> tuple[float, int, int, str]:
        name = fit.id.method
        return fit.id.rate, fit.id.repeat, place.get(name, len(place)), name

    return sorted([*made.values(), *plan.others], key=order)


def _on_disk(
    store: Results, bench: Bench, requested: set[OutcomeId]
) -> tuple[dict[OutcomeId, Outcome], list[Outcome]]:
    """Return the fits on disk that are requested, and the others; raise if they do not belong."""
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
        if fit.id in requested:
            done[fit.id] = fit
        else:
            others.append(fit)
    return done, others
