"""A run and the folder it is kept in: planned, begun there or continued, and sampled."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from glfm_cli.completion.header import (
    Encoded,
    Files,
    describe,
    hash_of,
    header_to_continue,
    same_run,
    version_notes,
)
from glfm_cli.completion.learning_rows import choose_rows, rows_to_learn
from glfm_cli.completion.matrix.matrix import prepare_matrix
from glfm_cli.completion.matrix.pairs import with_ids_of
from glfm_cli.completion.matrix.saved import features_to_continue
from glfm_cli.completion.matrix.side import features_of
from glfm_cli.completion.models import model_of
from glfm_cli.completion.prepare import as_table, prepare, problem_of
from glfm_cli.completion.verdict import chain_count, uncorrected, unless_interrupted
from glfm_cli.encoding import Data, encode, encode_triplets, is_triplets, with_known
from glfm_cli.errors import OutputError, StoreError, TypesMissingError, UsageError
from glfm_cli.inference.executors import available_threads
from glfm_cli.inference.hidden_cells import Folded, recalibrate
from glfm_cli.inference.posterior import Posterior
from glfm_cli.inference.run import Observer, Plan, Run, Stop, tell
from glfm_cli.inference.sampling import sample
from glfm_cli.inference.tasks import Runner, runner_of
from glfm_cli.io import check_writable
from glfm_cli.latent.model import Problem
from glfm_cli.links import LinkConfig
from glfm_cli.options import SEED, MatrixOptions, Sampling, Saving, Scaling
from glfm_cli.schema import Schema
from glfm_cli.store import Header, Store, as_open_as, check_free, discard

PARTIAL = ".glfm.partial"  # put after the output's name
NOTHING = MatrixOptions()
ALL = Scaling()


@dataclass(frozen=True)
class Session:
    """A run that is ready to be sampled: what, how long, and where it is kept.

    data : the encoded table, or the matrix that is given as triplets
    header : what is fitted, and how; the folder says the same
    whole : the table, of which `data` has the rows that are learnt from
    more : further files of the folder, as named arrays, which a matrix has
    store : the open folder, once `begun`; None when nothing is kept
    partial : the folder is removed once the result is written
    notes : what the user should know, one line each
    done : sweeps that were made before, over all chains
    runner : makes the chains in other processes; None for threads of this one
    """

    problem: Problem
    data: Encoded
    plan: Plan
    sampling: Sampling
    saving: Saving
    header: Header
    whole: Encoded
    more: Files = field(default_factory=dict)
    store: Store | None = None
    partial: bool = False
    notes: tuple[str, ...] = ()
    done: int = 0
    runner: Runner | None = None

    def with_most_chains(self) -> Session:
        """Return the session with all the chains that it may have, whatever estimates ask for."""
        plan = self.plan.with_most_chains()
        return replace(self, plan=plan, header=replace(self.header, plan=plan))

    @property
    def folder(self) -> Path | None:
        """Where the run is kept, or will be; None when it is not."""
        saving = self.saving
        beside = None if saving.partial is None else partial_folder(saving.partial)
        return saving.resume or saving.save or beside

    @property
    def configs(self) -> tuple[Any, LinkConfig]:
        """The settings of the model and of the links."""
        return self.problem.config, self.problem.link_config

    @property
    def warmup(self) -> int:
        """Sweeps before draws are kept."""
        return self.plan.warmup

    def begun(self) -> Session:
        """Return the session with its folder made or opened again; nothing was written before.

        Raises OutputError, StoreError: the folder cannot be written, is broken, or another run
            writes to it.
        """
        if self.saving.resume is not None:
            links, every = self.problem.links, self.saving.checkpoint
            store = Store.reopen(self.saving.resume, self.header, links, every=every)
            try:
                done = _sweeps_made(store, self.problem, self.plan)
                store.plan_for(self.plan)
            except BaseException:
                store.close()
                raise
            return replace(self, store=store, done=done)
        if self.saving.save is not None:
            return replace(self, store=self._created(self.saving.save, self.saving.with_data))
        return self if self.saving.partial is None else self._beside_output()

    def _created(self, folder: Path, with_data: bool = True, mode: int = 0o777) -> Store:
        """Return a new folder for the run, with the encoded table where that is to be kept."""
        data = self.data if with_data and isinstance(self.data, Data) else None
        links, every = self.problem.links, self.saving.checkpoint
        return Store.create(
            folder, self.header, links, data, more=self.more, every=every, mode=mode
        )

    def _beside_output(self) -> Session:
        """Return the session with a folder beside the output: a killed twin's if there is one."""
        assert self.saving.partial is not None
        folder = partial_folder(self.saving.partial)
        note: tuple[str, ...] = ()
        if os.path.lexists(folder):
            twin = self._twin(folder)
            if twin is not None:
                return twin
            discard(folder)  # raises when another run writes to it
            note = (f"{folder}, left by an earlier run that was another, was replaced",)
        store = self._created(folder, mode=as_open_as(self.saving.partial))
        return replace(self, store=store, partial=True, notes=note)

    def _twin(self, folder: Path) -> Session | None:
        """Return the session that goes on with a folder if its run is the same one, and sound."""
        found, store = same_run(folder, self.header, self.sampling.precision is not None), None
        if found is None:
            return None
        try:
            links, every = self.problem.links, self.saving.checkpoint
            store = Store.reopen(folder, found, links, every=every)
            done = _sweeps_made(store, self.problem, found.plan)
        except StoreError:
            if store is not None:
                store.close()
            return None
        note = f"continuing from {folder}, left by an earlier run with the same options"
        return replace(self, store=store, plan=found.plan, partial=True, notes=(note,), done=done)

    def sample(self, *, observer: Observer | None = None, forecasts: bool = True) -> Run:
        """Run the chains, or what is left of them; the folder stays open.

        Without `forecasts` they are recalibrated only where the fit is kept, for those to come;
        those of a matrix never are.
        """
        recalibrated = forecasts or (self.store is not None and not self.partial)
        recalibrated = recalibrated and isinstance(self.data, Data)
        recalibrated = recalibrated and self.problem.link_config.recalibrate
        threads = self.sampling.threads or available_threads()
        stop, folded = Stop.after(self.sampling.time_limit), Folded()
        told = partial(tell, observer, "forecast")
        corrected = partial(
            recalibrate, problem=self.problem, threads=threads, folded=folded, told=told
        )
        ready = unless_interrupted(corrected if recalibrated else lambda draws: draws, stop)
        count = chain_count(self.plan, self.data, self.sampling.precision, ready)

        def enough(posterior: Posterior) -> int:
            assert count is not None
            n_chains = count(posterior)
            if stop.reason is not None:
                return len(posterior.chains)
            if self.store is not None and n_chains > len(posterior.chains):
                self.store.plan_for(replace(self.plan, chains=n_chains))
            return n_chains

        run = sample(
            self.problem,
            self.plan,
            threads=threads,
            stop=stop,
            observer=observer,
            keeper=self.store,
            enough=None if count is None else enough,
            runner=self.runner,
        )
        posterior, precision = run.posterior, None
        if count is None:
            posterior = ready(posterior)
        else:
            posterior, precision = count.ended(posterior)
        run = replace(run, posterior=posterior, precision=precision, stopped=stop.reason)
        if stop.reason == "interrupted" and recalibrated and posterior.recalibration is None:
            run = replace(run, warnings=(*run.warnings, uncorrected(posterior)))
        if self.store is not None:
            self.store.finish(run.seconds, run.posterior.recalibration)
        return run


def plan_session(
    table: pa.Table,
    schema: Schema | None,
    sampling: Sampling,
    saving: Saving,
    matrix: MatrixOptions = NOTHING,
    scaling: Scaling = ALL,
    *,
    file: str | None = None,
) -> Session:
    """Check everything, encode what is given and calibrate the links; nothing is written yet.

    Raises GlfmError: the table, the types or an option are wrong, or do not belong to the run to go
        on with.
    """
    workers = sampling.threads or available_threads()
    runner = runner_of(sampling.engine, sampling.scheduler, workers)
    if saving.save is not None:
        check_free(Path(saving.save))
    if saving.resume is not None:
        found = _continued(
            table, schema, sampling, saving, matrix, scaling, folder=Path(saving.resume), file=file
        )
        return replace(found, runner=runner)
    if schema is None:
        raise TypesMissingError(file)
    problem, data, plan, whole = plan_fit(table, schema, sampling, matrix, scaling, file=file)
    names = table.column_names
    header, more = describe(data, problem, plan, schema, names, saving.with_data, file)
    header = replace(header, learn_rows=None if data is whole else data.n_rows)
    session = Session(problem, data, plan, sampling, saving, header, whole, more)
    return replace(session, runner=runner)


class Planned(NamedTuple):
    """What is sampled of a table, or of triplets, these encoded, and how long.

    data : of `whole` the rows that are learnt from, itself where they are all
    """

    problem: Problem
    data: Encoded
    plan: Plan
    whole: Encoded


def plan_fit(
    table: pa.Table,
    schema: Schema,
    sampling: Sampling,
    matrix: MatrixOptions = NOTHING,
    scaling: Scaling = ALL,
    *,
    file: str | None = None,
) -> Planned:
    """Return what is to be fitted, everything checked and encoded."""
    if not is_triplets(schema):
        check_layout(False, matrix)
        n = rows_to_learn(scaling.learn_rows, table.num_rows)
        if n is None:
            found = prepare(table, schema, sampling, file=file)
            return Planned(*found, found[1])
        model_of(sampling, "dense")
        whole = with_known(encode(table, schema, file=file), file)
        if whole.groups is not None:
            if scaling.learn_rows != "auto":
                raise UsageError(
                    "--learn-rows takes rows one by one; role group or time keeps them together",
                    hint="Leave it out, or give these columns role predictor.",
                )
            problem, plan = problem_of(whole, sampling, file)
            return Planned(problem, whole, plan, whole)
        rows = choose_rows(whole, n, SEED if sampling.seed is None else sampling.seed)
        problem, plan = problem_of(whole, sampling, file, rows)
        return Planned(problem, whole.take(rows), plan, whole)
    if scaling.learn_rows is not None:
        name = "learn-rows"
        raise UsageError(f"--{name} is for tables, but the types file describes triplets")
    triplets = encode_triplets(table, schema, file=file)
    notes: tuple[str, ...] = ()
    if matrix.pairs is not None and triplets.value.column.absent is None:
        triplets, notes = with_ids_of(triplets, *as_table(matrix.pairs))
    problem, data, plan = prepare_matrix(
        triplets,
        sampling,
        features=(features_of(matrix.row_features), features_of(matrix.column_features)),
        missingness_features=matrix.missingness_features,
    )
    data = replace(data, notes=notes)
    return Planned(problem, data, plan, data)


def check_layout(triplets: bool, matrix: MatrixOptions, *, of_fit: bool = False) -> None:
    """Raise UsageError when options of triplets meet a table."""
    what = "the fit is of" if of_fit else "the types file describes"
    for name in () if triplets else matrix.written():
        raise UsageError(
            f"--{name} is for triplets, but {what} a table",
            hint="Triplets have columns with the roles row, column and value.",
        )


def partial_folder(output: Path) -> Path:
    """Return where the partial work towards an output is kept: beside it, or else inside.

    A folder may be all that can be written to, as one that a container shares with its host.
    """
    named = output if output.name not in ("", "..") else Path(os.path.abspath(output))
    beside = named.parent / ((named.name or "out") + PARTIAL)
    if output.is_dir() and not os.path.lexists(beside):
        try:
            check_writable(beside)
        except OutputError:
            return output / beside.name
    return beside


def _continued(
    table: pa.Table,
    schema: Schema | None,
    sampling: Sampling,
    saving: Saving,
    matrix: MatrixOptions,
    scaling: Scaling,
    *,
    folder: Path,
    file: str | None,
) -> Session:
    if sampling.effort is not None:
        raise UsageError(
            "--effort and --resume cannot be used together: the run has its length",
            hint="Leave --effort out; --draws and --chains may grow when a run is resumed.",
        )
    header, plan = header_to_continue(schema, sampling, folder)
    learnt = Scaling(header.learn_rows or "all")
    if scaling.learn_rows not in (None, "auto", learnt.learn_rows):
        raise UsageError(
            "--learn-rows",
            value=scaling.learn_rows,
            expected=f"{learnt.learn_rows}, with which {folder} was started",
            hint="Leave --learn-rows out; only --draws and --chains may grow when a run is "
            "resumed.",
        )
    if header.matrix is None:
        if schema is not None and is_triplets(schema):
            raise StoreError("is a fit of a table, and triplets are given", file=str(folder))
        check_layout(False, matrix, of_fit=True)
    else:
        matrix = features_to_continue(matrix, header.matrix, folder)
    same = replace(
        sampling,
        model=header.model,
        settings={**asdict(header.model_config), **asdict(header.link_config)},
        **plan.options(),
    )
    if header.matrix is not None:
        learnt = scaling
    found = plan_fit(table, header.schema, same, matrix, learnt, file=file)
    problem, data = found.problem, found.data
    if hash_of(data) != header.data_hash:
        dense = isinstance(data, Data)
        what = "another table than the one" if dense else "other cells or features than those"
        hint = "Give the table of the first run, and its --learn-rows and --memory if it had them."
        if not dense:
            hint = "Give the tables of the first run."
        raise StoreError(
            f"was made with {what} given now",
            file=str(folder),
            hint=hint,
        )
    names = table.column_names
    _, more = describe(data, problem, plan, header.schema, names, header.has_data, file)
    return Session(
        problem,
        data,
        plan,
        sampling,
        saving,
        replace(header, plan=plan, file=file),
        found.whole,
        more,
        partial=folder.name.endswith(PARTIAL),
        notes=version_notes(header, folder),
    )


def _sweeps_made(store: Store, problem: Problem, plan: Plan) -> int:
    """Return the sweeps of all chains so far; there must not be more draws than the plan has."""
    extents = store.check(problem)
    most = max(extent.draws for extent in extents)
    if most > plan.draws:
        raise UsageError(
            "--draws",
            value=plan.draws,
            expected=f"at least {most}, which {store.folder} has already",
        )
    return sum(min(extent.sweeps, plan.sweeps) for extent in extents)
