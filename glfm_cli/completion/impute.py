"""Complete a table, or a matrix that is given as triplets: every missing cell, and how sure."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from glfm_cli.completion.batches import BatchedImputation, plan_batches
from glfm_cli.completion.complete import Filling, complete
from glfm_cli.completion.cost import estimate_cost, missing_cells, with_process
from glfm_cli.completion.estimates import Estimate
from glfm_cli.completion.files import Files
from glfm_cli.completion.folding_cost import of_fit, of_session, with_folding
from glfm_cli.completion.header import Encoded
from glfm_cli.completion.kept import Kept
from glfm_cli.completion.matrix.matrix import MatrixData, likeliest
from glfm_cli.completion.matrix.pairs import Likeliest, WhichPairs
from glfm_cli.completion.matrix.predictions import MatrixCompletion
from glfm_cli.completion.multiple import with_linear_part
from glfm_cli.completion.needless import UNCHANGED, is_needless, without_draws
from glfm_cli.completion.new_rows import Fitted
from glfm_cli.completion.prepare import (
    TableLike,
    Types,
    as_table,
    with_guess,
    with_pairs_read,
    with_types,
)
from glfm_cli.completion.record import write_record
from glfm_cli.completion.requests import (
    INTERVAL,
    Unseen,
    check_estimate,
    check_multiple,
    check_with_fit,
)
from glfm_cli.completion.result import Completion
from glfm_cli.completion.session import Session, check_layout, plan_session
from glfm_cli.completion.streamed import StreamedImputation, plan_stream
from glfm_cli.completion.verdict import judge
from glfm_cli.encoding import Data, is_triplets
from glfm_cli.errors import UsageError
from glfm_cli.inference.blas import one_blas_thread
from glfm_cli.inference.chains import n_kept
from glfm_cli.inference.executors import available_threads
from glfm_cli.inference.posterior import Posterior
from glfm_cli.inference.sampling import Observer, Run
from glfm_cli.latent.capabilities import HasFactors
from glfm_cli.latent.model import Problem
from glfm_cli.options import MatrixOptions, Sampling, Saving, Scaling, gather
from glfm_cli.schema import Schema
from glfm_cli.store import Fit, check_folder, load_fit, read_header

FitLike = Fit | str | os.PathLike[str]


@one_blas_thread()
def impute(
    table: TableLike,
    types: Types | None = None,
    *,
    sampling: Sampling | None = None,
    saving: Saving | None = None,
    matrix: MatrixOptions | None = None,
    files: Files | None = None,
    estimate: Estimate = "auto",
    interval: float = INTERVAL,
    fit: FitLike | None = None,
    unseen: Unseen = "error",
    observer: Observer | None = None,
    finish: Callable[[Any], None] | None = None,
    **options: Any,
) -> Any:
    """Complete a table with missing values, or predict the cells of a matrix given as triplets.

    Parameters
    ----------
    table : table, data frame, matrix or path
        The table, of pyarrow, pandas, polars, DuckDB or NumPy, or a file that `read_table` reads;
        `Completion.output` is completed data of the same kind.
    types : Schema, Guess, mapping or path
        What the columns mean: a schema, the content of a types file, its path, or "auto" for
        what `guess_schema` makes of the table, without role time. Roles row,
        column and value make a matrix. Not needed with `resume` or `fit`.
    sampling, saving, matrix : Sampling, Saving, MatrixOptions
        The options; their fields are keywords of this function, too: `chains=4`, `save="a.glfm"`.
        So are those of `Scaling`: `learn_rows=10_000`.
    files : Files, optional
        What is written; nothing if left out.
    estimate : {"auto", "mean", "median", "mode", "draw"}
        What fills a missing cell. "auto" is the mean for real and positive columns, the mean
        rounded to the nearest integer for counts, the median for ordinal and the mode for
        categorical ones. "draw" is one joint draw of all, with the variability of the table.
    interval : float
        Probability of the reported intervals, in (0, 1).
    fit : Fit or path
        A saved fit, or its folder: only what belongs to new rows, and new columns of a matrix, is
        sampled. Of the options of sampling only `seed` and `threads` apply; the seed is the fit's
        if left out.
    unseen : {"error", "missing"}
        With `fit`, whether a level that the fit does not know, or a number that its column cannot
        hold, is an error or is taken for missing.
    observer : optional
        Its method `swept(chain, sweep, trace)` is called after every sweep, from the threads of the
        chains; before the first `begun(session)`, if it has that: `session.plan` says how many;
        then `forecast(sets, of)`, as observed cells are forecast to correct forecasts of others.
    finish : callable, optional
        Called with the result while the folder of the run is still open.

    Returns
    -------
    Completion
        Of a matrix a `MatrixCompletion`, whose table has a row for each pair; of a file that was
        read in batches a `BatchedCompletion`, whose table is in the file that was written alone.
    """
    groups = sampling or Sampling(), saving or Saving(), matrix or MatrixOptions(), Scaling()
    planned = plan_imputation(
        table,
        types,
        gather(options, *groups),
        files or Files(None),
        estimate=estimate,
        interval=interval,
        fit=fit,
        unseen=unseen,
    )
    return planned.complete(observer, finish)


@dataclass(frozen=True)
class Imputation:
    """A completion that is ready to be made, everything checked.

    given, source : what is to be completed, and as a table
    task : the run that is to be made, or the fit whose draws are taken
    data : the encoded table, or the matrix;  pairs : those of a matrix that are requested
    recommend : in place of `pairs`, the likeliest columns of some rows
    """

    given: Any
    source: pa.Table
    task: Session | Fitted
    data: Encoded
    pairs: WhichPairs | None
    files: Files
    how: Filling
    recommend: Likeliest | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return what would be done, as `--dry-run --json` prints it."""
        return with_process(self.costs())

    def costs(self) -> dict[str, Any]:
        """Return what would be done, with the memory beside what the process has already."""
        data, task = self.data, self.task
        if isinstance(task, Session) and not self.needless:
            costs = estimate_cost(task)
            if task.data is task.whole:
                return costs
            assert isinstance(data, Data)
            learnt = {"rows": data.n_rows, "learnt_rows": costs["rows"], **missing_cells(data)}
            folding = of_session(task, data, data.n_rows, self.how.threads)
            return with_folding(costs | learnt, folding, data.n_rows)
        if not isinstance(data, Data):
            return data.sizes()
        sizes = {"rows": data.n_rows, "modelled_columns": len(data.columns)} | missing_cells(data)
        if not isinstance(task, Fitted):
            return sizes
        needed = {} if self.needless else of_fit(task, data, self.how.threads)
        return sizes | {"draws": task.posterior.n_draws} | needed

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know beforehand, one line each."""
        more = (UNCHANGED,) if self.needless else ()
        return (*self.data.notes, *self.task.notes, *more)

    @property
    def needless(self) -> bool:
        """Whether no cell is missing, and nothing is written that a fit would be needed for."""
        if isinstance(self.task, Fitted) and self.files.table is None:
            return False  # how far its rows lie from those of the fit may be asked for
        saving = self.task.saving if isinstance(self.task, Session) else Saving()
        return isinstance(self.data, Data) and is_needless(self.data, self.files, saving)

    def complete(
        self, observer: Observer | None = None, finish: Callable[[Any], None] | None = None
    ) -> Completion:
        """Make the run, or take the fit's draws; write what is requested, and return the result."""
        if self.needless:
            return self._answer(self._without_fit(), finish)
        if isinstance(self.task, Fitted):
            return self._answer(self._new_rows(self.task), finish)
        with Kept(self.task, observer) as kept:
            return self._answer(self._for_all_rows(kept.sample(), self.task), finish)

    def _new_rows(self, fitted: Fitted) -> Run:
        return fitted.run(self.data, seed=self.how.seed, threads=self.how.threads)

    def _without_fit(self) -> Run:
        """Return a run without draws."""
        if isinstance(self.task, Fitted):
            posterior = replace(self.task.posterior, chains=())
        else:
            posterior = without_draws(self.task.problem)
        return Run(posterior, None, 0.0, (UNCHANGED,))

    def _for_all_rows(self, run: Run, session: Session) -> Run:
        """Return the draws for the table, of which a run may have seen some rows alone.

        Those are folded in as the others are, so that all are completed by one law.
        """
        learnt = session.data
        if learnt is session.whole:
            return run
        assert isinstance(learnt, Data)
        schema, problem = session.header.schema, session.problem
        fitted = Fitted.of_run(schema, learnt, problem, run.posterior, self.how.seed)
        if self.files.draws is None:
            fitted = fitted.thinned(self.files.multiple or 0)
        folded = self._new_rows(fitted)
        seconds = run.seconds + folded.seconds
        return replace(run, posterior=folded.posterior, seconds=seconds, precision=None)

    def _answer(self, run: Run, finish: Callable[[Any], None] | None) -> Completion:
        found: Any
        how = self.how
        if isinstance(self.data, Data):
            shown = self.files.needs_intervals
            same: dict[str, Any] = {"intervals": shown, "precision": run.precision}
            found = complete(run, self.data, self.source, how, **same)
            task = self.task
            found = replace(found, given=self.given, configs=task.configs, warmup=task.warmup)
        else:
            precision = judge(run.posterior, self.data, how.seed, how.goal)
            more: dict[str, Any] = {"which": self.pairs, "recommend": self.recommend}
            more |= {"estimate": how.estimate, "given": self.given}
            found = MatrixCompletion(self.data, run, precision, how.interval, how.seed, **more)
        found = self.files.write(found, self.source)
        if finish is not None:
            finish(found)
        if self.files.record is not None:
            assert isinstance(self.task, Session)
            write_record(self.files, self.task, found, how.estimate)
        return found


def plan_imputation(
    table: TableLike,
    types: Types | None,
    groups: tuple[Sampling, Saving, MatrixOptions, Scaling],
    files: Files,
    *,
    estimate: str = "auto",
    interval: float = INTERVAL,
    fit: FitLike | None = None,
    unseen: Unseen = "error",
) -> Imputation | BatchedImputation | StreamedImputation:
    """Check everything and encode what is given; nothing is sampled or written yet."""
    sampling, saving, matrix, scaling = groups
    chosen = check_estimate(estimate, interval)
    _check_fit(fit)
    shaping: dict[str, object] = {} if types is None else {"types": types}
    shaping |= replace(sampling, seed=None, threads=None).written()
    shaping |= saving.written() | scaling.written()
    more = {"missingness-features": matrix.missingness_features, "record": files.record}
    shaping |= {name: value for name, value in more.items() if value is not None}
    check_with_fit(fit is not None, shaping, unseen)
    given, schema = table, None
    if types is not None:
        table, schema = with_types(table, types)
    loaded = load_fit(fit) if isinstance(fit, str | os.PathLike) else fit
    of_fit = loaded is not None or (schema is None and saving.resume is not None)
    sparse = _is_sparse(schema, loaded, saving)
    check_layout(sparse, matrix, of_fit=of_fit)
    matrix = with_pairs_read(matrix)
    if sparse:
        files.check_for_pairs(of_fit)
        if chosen == "draw":
            raise UsageError(
                "--estimate draw is for tables, but the types file describes triplets",
                hint="Use auto, mean, median or mode.",
            )
    threads = sampling.threads or available_threads()
    how = Filling(0, chosen, float(interval), threads, sampling.precision)
    task: Session | Fitted
    if loaded is not None and not sparse:
        task = Fitted.of_fit(loaded)
        how = replace(how, seed=task.seed if sampling.seed is None else sampling.seed)
        batched = plan_batches(table, task, files, how, unseen, scaling.most_bytes)
        if batched is not None:
            return batched
    elif loaded is None:
        streamed = plan_stream(table, None if sparse else schema, groups, files, how)
        if streamed is not None:
            return streamed
    source, file = as_table(table)
    if loaded is not None:
        task = Fitted.of_fit(loaded)
        source = task.with_types(source)
        data = task.encode(source, matrix, unseen=unseen, file=file)
        seed = task.seed if sampling.seed is None else sampling.seed
        n_draws = None if task.posterior.weights is not None else task.posterior.n_draws
    else:
        if files.multiple is not None and saving.resume is None and not sparse:
            sampling = with_linear_part(sampling)
        task = plan_session(source, schema, sampling, saving, matrix, scaling, file=file)
        if files.multiple is not None:  # tables are to differ as much as chains do
            task = task.with_most_chains()
        data, seed = task.whole, task.plan.seed
        sampled, plan = task.problem.model.kind == "gibbs", task.plan
        n_draws = n_kept(task.problem, plan.chains, plan.draws) if sampled else None
    check_recommend(matrix, task.problem if isinstance(task, Session) else task.posterior)
    check_multiple(files.multiple, chosen, n_draws)
    pairs = None
    if not isinstance(data, Data):
        data.check_names()
        pairs = requested_pairs(data, matrix)
    files.check(source, data)
    if isinstance(data, Data):
        data = with_guess(data, table)
        data = replace(data, notes=(*data.notes, *files.notes(source)))
    if files.analysis is not None:
        _check_analysis(files.analysis, data, task, seed)
    recommend = None if isinstance(data, Data) else likeliest(data, matrix)
    return Imputation(given, source, task, data, pairs, files, replace(how, seed=seed), recommend)


def _check_analysis(analysis: str, data: object, task: Session | Fitted, seed: int) -> None:
    """Raise an error unless versions can be drawn for an analysis."""
    from glfm_cli.completion.analysis.versions import Compatible  # of few runs; slow

    assert isinstance(data, Data)
    run = task.problem if isinstance(task, Session) else task.posterior
    Compatible.of(analysis, data, run, task.configs, seed)


def _check_fit(fit: object) -> None:
    """Raise UsageError unless it may name a fit, or be one."""
    if not isinstance(fit, Fit | str | os.PathLike | None):
        expected = "a folder NAME.glfm, or what `load_fit` returns"
        raise UsageError("--fit", value=type(fit).__name__, expected=expected)


def check_recommend(matrix: MatrixOptions, run: Problem | Posterior) -> None:
    """Raise UsageError when columns are to be recommended, and no value is the higher, or pairs."""
    if matrix.recommend is None:
        if matrix.rows is not None:
            raise UsageError("--rows needs --recommend N")
        return
    if not (isinstance(run.model, HasFactors) or run.links[0].ordered):
        raise UsageError(
            "--recommend lists the columns with the highest values, and these have no order",
            hint="Give them type ordinal, with `levels` from the lowest to the highest.",
        )
    if matrix.pairs is not None:
        raise UsageError("--recommend and --pairs both say which pairs are predicted")


def requested_pairs(data: MatrixData, matrix: MatrixOptions) -> WhichPairs:
    """Return the pairs that are listed, or all that have no value; checked now."""
    if matrix.pairs is None:
        return data.pairs(None, matrix.all_pairs)
    listed, file = as_table(matrix.pairs)
    return data.pairs(listed, matrix.all_pairs, file=file)


def _is_sparse(schema: Schema | None, fit: Fit | None, saving: Saving) -> bool:
    """Return whether triplets are given, which a kept run knows when there are no types."""
    if fit is not None:
        return fit.matrix is not None
    if schema is None and saving.resume is not None:
        check_folder(saving.resume)
        return read_header(saving.resume).matrix is not None
    return schema is not None and is_triplets(schema)
