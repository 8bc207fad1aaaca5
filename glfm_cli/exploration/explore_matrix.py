"""Explore a table or triplets with the low-rank model: rank, components, effects of covariates."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.completion import CHAINS, DEFAULTS, as_schema, check_request, prepare
from glfm_cli.completion.matrix import MatrixTask, features_of, plan_matrix, task_of_fit
from glfm_cli.encoding import EncodedColumn, encode_triplets, is_triplets
from glfm_cli.errors import UsageError
from glfm_cli.exploration.job import is_saved_fit
from glfm_cli.exploration.lowrank import (
    components,
    effects,
    explained,
    model_parts,
    ranks,
    variance,
)
from glfm_cli.exploration.matrix_result import MatrixExploration
from glfm_cli.inference.diagnostics import diagnose
from glfm_cli.inference.executors import available_threads
from glfm_cli.inference.posterior import gates
from glfm_cli.inference.sampling import Observer, Plan, Problem, Run, sample
from glfm_cli.io import read_table
from glfm_cli.latent.bsvd.sampler import Bsvd
from glfm_cli.links import Link, of_numbers
from glfm_cli.links.categorical import CategoricalLink
from glfm_cli.schema import Schema
from glfm_cli.store import load_fit

MODEL = "bsvd"
TOP = 5


@dataclass(frozen=True)
class MatrixJob:
    """What is to be sampled, and what its rows and columns are called.

    direction : (J,) +1, or -1 where the latent scale runs against the values; None for triplets
    """

    problem: Problem
    plan: Plan
    rows: pa.Table
    columns: pa.Table
    direction: Array | None
    covariates: tuple[tuple[str, ...], tuple[str, ...]]
    top: int
    source: str | None
    notes: tuple[str, ...] = ()

    def sample(
        self, *, threads: int = 1, time_limit: float | None = None, observer: Observer | None = None
    ) -> Run:
        """Run the chains."""
        return sample(
            self.problem, self.plan, threads=threads, time_limit=time_limit, observer=observer
        )


def table_job(
    table: pa.Table,
    schema: Schema,
    options: Mapping[str, Any],
    top: int = TOP,
    *,
    file: str | None = None,
) -> MatrixJob:
    """Check everything and encode a table; `options` are those of sampling, as `impute` has them.

    Raises
    ------
    GlfmError
        The table, its types or an option are wrong.
    """
    said = {name: value for name, value in options.items() if value is not None}
    problem, data, plan = prepare(
        table, schema, **{**DEFAULTS, "chains": CHAINS, **said, "model": MODEL}, file=file
    )
    columns, direction = _latent_columns(data.columns, problem.links)
    rows = {name: table[name] for name in data.ids}
    rows["row"] = pa.chunked_array([np.arange(1, data.n_rows + 1)])
    return MatrixJob(
        problem,
        plan,
        pa.table(rows),
        columns,
        direction,
        ((), ()),
        _checked_top(top),
        file,
        data.notes,
    )


def matrix_job(task: MatrixTask, top: int = TOP, *, file: str | None = None) -> MatrixJob:
    """Return the job of a matrix that is given as triplets."""
    rows, columns = (pa.table({ids.name: ids.values}) for ids in (task.rows, task.columns))
    return MatrixJob(
        task.problem, task.plan, rows, columns, None, task.covariates, _checked_top(top), file
    )


def fit_job(path: str | os.PathLike[str], top: int = TOP) -> tuple[Run, MatrixJob]:
    """Return a saved fit of the low-rank model as a run that has been made, and its job.

    Raises
    ------
    GlfmError
        It is no saved fit, a broken one, one of another model, or was saved without its table.
    """
    fit = load_fit(path)
    if not isinstance(fit.model, Bsvd):
        raise UsageError(
            f"is a fit of the model '{fit.model.name}'", file=str(path), expected=f"one of {MODEL}"
        )
    run = Run(fit.posterior, None, fit.header.seconds, fit.notes)
    if fit.matrix is not None and fit.matrix.cells is not None:
        return run, matrix_job(task_of_fit(fit), top, file=str(path))
    if fit.data is None:
        raise UsageError(
            "the table was left out of this saved fit, and an exploration compares with it",
            file=str(path),
            hint="Save a fit without --no-data, or give the table and its types.",
        )
    xs = tuple(encoded.x for encoded in fit.data.columns)
    problem = Problem(fit.model, fit.config, fit.links, xs, fit.link_config)
    columns, direction = _latent_columns(fit.data.columns, fit.links)
    rows = pa.table({"row": np.arange(1, fit.n_rows + 1)})
    job = MatrixJob(
        problem, fit.plan, rows, columns, direction, ((), ()), _checked_top(top), str(path)
    )
    return run, job


def describe_matrix(run: Run, job: MatrixJob) -> MatrixExploration:
    """Return what the draws of a run say of the structure of the matrix."""
    posterior, draws = run.posterior, model_parts(run.posterior)
    bias = bool(job.problem.config.bias)
    of_table = job.direction is not None
    traces = posterior.traces()
    return MatrixExploration(
        rows=job.rows,
        columns=job.columns,
        ranks=tuple(ranks(posterior)),
        components=tuple(components(draws, job.top, job.direction)),
        top=job.top,
        variance=() if of_table else tuple(variance(posterior, draws, bias)),
        explained=tuple(explained(posterior, draws)) if of_table else (),
        effects=tuple(effects(draws, job.covariates, bias)),
        posterior=posterior,
        diagnostics=diagnose(traces, [name for name in traces if gates(name)]),
        stopped=run.stopped,
        seconds=run.seconds,
        options={"source": job.source, "model": MODEL, **vars(job.plan), "top": job.top},
        notes=(*job.notes, *run.warnings),
    )


def explore_matrix(
    table: pa.Table | str | os.PathLike[str],
    types: Schema | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    *,
    top: int = TOP,
    row_features: tuple[Any, Any] | None = None,
    column_features: tuple[Any, Any] | None = None,
    missingness_features: int | None = None,
    chains: int | None = None,
    warmup: int | None = None,
    draws: int | None = None,
    thin: int | None = None,
    seed: int | None = None,
    threads: int | None = None,
    time_limit: float | None = None,
    settings: Mapping[str, object] | None = None,
    observer: Observer | None = None,
) -> MatrixExploration:
    """Find out what structure the low-rank model sees in a table, or in triplets.

    Parameters
    ----------
    table, types
        A table or triplets with their types, or a folder `NAME.glfm` with a saved fit of a table
        by this model, which is not sampled again.
    top : int
        How many components to show, and rows and columns of each.
    row_features, column_features, missingness_features
        Of triplets, as in `impute_matrix`.
    chains, warmup, draws, thin, seed, threads, time_limit, settings, observer
        As in `impute`.

    Returns
    -------
    MatrixExploration

    Raises
    ------
    GlfmError
        The table, its types or an option are wrong.
    """
    check_request("auto", 0.5, threads, time_limit)
    if not isinstance(table, pa.Table) and is_saved_fit(table):
        return describe_matrix(*fit_job(table, top))
    if types is None:
        raise UsageError("a table needs its types", hint="Give a types file, or guess one first.")
    schema = as_schema(types)
    said: dict[str, Any] = {"chains": chains, "warmup": warmup, "draws": draws, "thin": thin}
    said |= {"seed": seed, "settings": settings}
    if is_triplets(schema):
        task = plan_matrix(
            encode_triplets(_table(table), schema),
            **said,
            row_features=features_of(row_features),
            column_features=features_of(column_features),
            missingness_features=missingness_features,
        )
        job = matrix_job(task, top)
    else:
        job = table_job(_table(table), schema, said, top)
    workers = threads or available_threads()
    run = job.sample(threads=workers, time_limit=time_limit, observer=observer)
    return describe_matrix(run, job)


def _latent_columns(
    columns: Sequence[EncodedColumn], links: Sequence[Link]
) -> tuple[pa.Table, Array]:
    """Return name and level of each latent column, and whether a higher one means a higher value.

    A categorical column has one for each level but its commonest, against which they stand.
    """
    names: list[str] = []
    levels: list[str | None] = []
    direction: list[float] = []
    for encoded, link in zip(columns, links, strict=True):
        if isinstance(link, CategoricalLink):
            own: list[str | None] = [""] * link.n_latent
            for code, slot in enumerate(link.slot):
                if slot >= 0:
                    own[slot] = encoded.levels[code]
        else:
            own = [None]
        names += [encoded.column.name] * len(own)
        levels += own
        up = 1.0
        if not link.discrete:
            low, high = of_numbers(link).value(np.array([-1.0, 1.0]))
            up = -1.0 if high < low else 1.0
        direction += [up] * len(own)
    table = {"column": pa.array(names, pa.string()), "level": pa.array(levels, pa.string())}
    return pa.table(table), np.array(direction)


def _checked_top(top: int) -> int:
    if top < 1:
        raise UsageError("--top", value=top, expected="a whole number from 1")
    return int(top)


def _table(given: pa.Table | str | os.PathLike[str]) -> pa.Table:
    return given if isinstance(given, pa.Table) else read_table(given)
