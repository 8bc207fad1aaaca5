"""The task: a table with gaps, or a saved fit of one, to the cells that should be asked for."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

import numpy as np
import pyarrow as pa

from glfm_cli.acquisition.cells import MOST_DRAWS, PairCells, TableCells, gains_alone, thinned
from glfm_cli.acquisition.costs import costs_of
from glfm_cli.acquisition.greedy import choose, in_order
from glfm_cli.arrays import Array
from glfm_cli.completion import DEFAULTS, as_schema, check_request, prepare
from glfm_cli.completion.matrix import MatrixTask, Pairs, features_of, plan_matrix, task_of_fit
from glfm_cli.encoding import Data, encode_triplets, is_triplets
from glfm_cli.errors import SchemaError, TableError, UsageError
from glfm_cli.exploration import is_saved_fit
from glfm_cli.inference.diagnostics import Diagnostics, diagnose
from glfm_cli.inference.executors import available_threads
from glfm_cli.inference.posterior import Posterior, gates
from glfm_cli.inference.sampling import Observer, Plan, Problem, Run, sample
from glfm_cli.io import read_table
from glfm_cli.schema import Schema
from glfm_cli.store import load_fit

Rule = Literal["joint", "uncertainty"]
COUNT = 10


@dataclass(frozen=True)
class Wish:
    """What is asked for.

    count : how many cells
    rule : "joint", each the one that tells most given those before it, or "uncertainty", those
        that tell most each by itself; per unit of cost
    columns : of a table, names of the columns to choose from; None for all
    """

    count: int
    rule: Rule
    columns: tuple[str, ...] | None

    def check_columns(self, names: Sequence[str]) -> None:
        """Raise UsageError when a column asked for is not among the modelled ones."""
        for name in self.columns or ():
            if name not in names:
                close = difflib.get_close_matches(name, names, n=1)
                raise UsageError(
                    "--columns names no modelled column",
                    value=f"'{name}'",
                    hint=f"Did you mean '{close[0]}'?" if close else None,
                )


def check_wish(
    count: int = COUNT, rule: str = "joint", columns: Sequence[str] | None = None
) -> Wish:
    """Return what is asked for, or raise UsageError."""
    if count < 1:
        raise UsageError("--count", value=count, expected="a whole number from 1")
    if rule not in get_args(Rule):
        raise UsageError("--rule", value=rule, expected=" or ".join(get_args(Rule)))
    if isinstance(columns, str):
        columns = [columns]
    return Wish(int(count), cast(Rule, rule), None if columns is None else tuple(columns))


@dataclass(frozen=True)
class Job:
    """Cells to choose from, what each costs, and what is to be sampled for that."""

    problem: Problem
    plan: Plan
    cells: TableCells | PairCells
    cost: Array | None
    wish: Wish
    notes: tuple[str, ...] = ()

    def sample(
        self, *, threads: int = 1, time_limit: float | None = None, observer: Observer | None = None
    ) -> Run:
        """Run the chains."""
        return sample(
            self.problem, self.plan, threads=threads, time_limit=time_limit, observer=observer
        )


@dataclass(frozen=True)
class Suggestion:
    """The cells to ask for, the most useful first.

    cells : a row for each: `number` from 1, which cell it is, `gain`, `alone`, and `cost` if given
    n_candidates : how many there were to choose from
    """

    cells: pa.Table
    n_candidates: int
    rule: Rule
    posterior: Posterior
    diagnostics: Diagnostics
    stopped: str | None
    seconds: float
    notes: tuple[str, ...]

    def to_table(self) -> pa.Table:
        """Return the cells."""
        return self.cells

    def to_dict(self) -> dict[str, Any]:
        """Return what `glfm suggest --json` prints."""
        return {
            "model": self.posterior.model.name,
            "rule": self.rule,
            "candidates": self.n_candidates,
            "cells": self.cells.to_pylist(),
            "gain": float(np.sum(self.cells["gain"].to_numpy())),
            "chains": len(self.posterior.chains),
            "draws": self.posterior.n_draws,
            "stopped": self.stopped,
            "seconds": round(self.seconds, 3),
            "diagnostics": self.diagnostics.to_dict(),
            "warnings": list(self.notes),
        }


def plan_table_cells(
    table: pa.Table,
    schema: Schema,
    wish: Wish,
    options: Mapping[str, Any],
    cost: pa.Table | None = None,
    *,
    file: str | None = None,
    cost_file: str | None = None,
) -> Job:
    """Check everything and encode a table; `options` are those of sampling, as `impute` has them.

    Raises
    ------
    GlfmError
        The table, its types, the costs or an option are wrong, or there is no gap.
    """
    said = {name: value for name, value in options.items() if value is not None}
    problem, data, plan = prepare(table, schema, **{**DEFAULTS, **said}, file=file)
    return _job(problem, plan, data, table.select(list(data.ids)), wish, (cost, cost_file), file)


def with_fit(
    path: str | os.PathLike[str],
    wish: Wish,
    cost: pa.Table | None = None,
    *,
    cost_file: str | None = None,
) -> tuple[Run, Job]:
    """Return a saved fit as a run that has been made, and its job.

    Raises
    ------
    GlfmError
        It is no saved fit or a broken one, was saved without its table, or the wish does not fit.
    """
    fit = load_fit(path)
    run = Run(fit.posterior, None, fit.header.seconds, fit.notes)
    if fit.matrix is not None and fit.matrix.cells is not None:
        task = task_of_fit(fit)
        which = task.pairs(None, False)
        file = str(path)
        return run, plan_matrix_cells(task, which, wish, cost, file=file, cost_file=cost_file)
    if fit.data is None:
        raise UsageError(
            "the table was left out of this saved fit, so its gaps are not known",
            file=str(path),
            hint="Save a fit without --no-data, or give the table and its types.",
        )
    xs = tuple(encoded.x for encoded in fit.data.columns)
    problem = Problem(fit.model, fit.config, fit.links, xs, fit.link_config)
    job = _job(problem, fit.plan, fit.data, pa.table({}), wish, (cost, cost_file), str(path))
    return run, job


def _job(
    problem: Problem,
    plan: Plan,
    data: Data,
    ids: pa.Table,
    wish: Wish,
    costs: tuple[pa.Table | None, str | None],
    file: str | None,
) -> Job:
    if problem.model.kind == "ascent":
        raise UsageError(
            f"cells are chosen by how far draws disagree, and the model '{problem.model.name}' "
            "keeps none",
            hint="Take --model glfm, bsvd or mixture.",
        )
    wish.check_columns([encoded.column.name for encoded in data.columns])
    cells = TableCells.of(data, ids, wish.columns)
    return _checked(Job(problem, plan, cells, None, wish, data.notes), costs, file)


def plan_matrix_cells(
    task: MatrixTask,
    which: Any,
    wish: Wish,
    cost: pa.Table | None = None,
    *,
    file: str | None = None,
    pairs_file: str | None = None,
    cost_file: str | None = None,
) -> Job:
    """Return the job of a matrix; `which` yields its pairs, as `MatrixTask.pairs` returns it.

    Raises
    ------
    GlfmError
        A pair has a value already, the costs are wrong, or there is nothing to choose from.
    """
    if wish.columns is not None:
        raise UsageError(
            "--columns is about tables, and the types file describes triplets",
            hint="List the pairs to choose from in a file for --pairs.",
        )
    for ids in (task.rows, task.columns):
        if ids.name in _OWN:
            raise SchemaError(
                "the suggestions have a column of this name, so no id can have it",
                column=ids.name,
                hint="Rename the column.",
            )
    parts = [*which(), Pairs(np.empty(0, np.int64), np.empty(0, np.int64))]
    n_columns = len(task.columns)
    code = np.concatenate([part.row * n_columns + part.column for part in parts])
    seen = task.triplets.row.astype(np.int64) * n_columns + task.triplets.column
    known = np.isin(code, seen)
    if known.any():
        raise TableError(
            "this pair has a value already",
            file=pairs_file,
            row=int(np.argmax(known)) + 1,
            expected="pairs without one to choose from",
        )
    row, column = np.divmod(np.unique(code), n_columns)
    cells = PairCells(Pairs(row, column), task.rows, task.columns)
    return _checked(Job(task.problem, task.plan, cells, None, wish), (cost, cost_file), file)


def _checked(job: Job, costs: tuple[pa.Table | None, str | None], file: str | None) -> Job:
    """Return the job with its costs; raise when there is nothing to choose from."""
    if job.cells.size == 0:
        raise TableError("has no gap to choose from", file=file)
    table, cost_file = costs
    cost = None if table is None else costs_of(job.cells, table, file=cost_file)
    return Job(job.problem, job.plan, job.cells, cost, job.wish, job.notes)


def finish(run: Run, job: Job) -> Suggestion:
    """Return the choice that the draws of a run lead to."""
    cells, posterior = job.cells, run.posterior
    count = min(job.wish.count, cells.size)
    cost = np.ones(cells.size) if job.cost is None else job.cost

    def features(index: Array) -> Any:
        return cells.features(posterior, index)

    alone, most = gains_alone(cells, posterior)
    if job.wish.rule == "joint":
        chosen = choose(features, alone, most, cost, count)
    else:
        best = np.argsort(-alone / cost, kind="stable")[:count]
        chosen = in_order(features, best, most)
    columns = {"number": pa.array(np.arange(1, count + 1))}
    columns |= {n: v for n, v in cells.describe(chosen.index).items() if n not in _OWN}
    columns |= {"gain": pa.array(chosen.gain), "alone": pa.array(alone[chosen.index])}
    if job.cost is not None:
        columns["cost"] = pa.array(cost[chosen.index])
    traces = posterior.traces()
    return Suggestion(
        pa.table(columns),
        cells.size,
        job.wish.rule,
        posterior,
        diagnose(traces, [name for name in traces if gates(name)]),
        run.stopped,
        run.seconds,
        (*job.notes, *run.warnings, *_cautions(job, count, len(thinned(posterior)))),
    )


_OWN = ("number", "gain", "alone", "cost")  # names that a table of suggestions has of its own


def _cautions(job: Job, count: int, n_draws: int) -> list[str]:
    """Return what to know of a choice that was made from so many draws."""
    if count < job.wish.count:
        there = "one cell" if count == 1 else f"{count} cells"
        return [f"there is no more than {there} to choose from; {job.wish.count} were asked for"]
    if job.wish.rule == "uncertainty" or count < n_draws:
        return []
    # Centred draws span one direction less.
    more = " or run more chains or draws" if n_draws < MOST_DRAWS else ""
    return [
        f"{n_draws} draws can tell {n_draws - 1} cells apart, and {count} are to be chosen: "
        f"the last ones are little better than chance; ask for fewer at a time{more}"
    ]


def suggest(
    table: pa.Table | str | os.PathLike[str],
    types: Schema | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    *,
    count: int = COUNT,
    rule: Rule = "joint",
    cost: pa.Table | str | os.PathLike[str] | None = None,
    columns: Sequence[str] | None = None,
    pairs: pa.Table | str | os.PathLike[str] | None = None,
    all_pairs: bool = False,
    row_features: tuple[Any, Any] | None = None,
    column_features: tuple[Any, Any] | None = None,
    missingness_features: int | None = None,
    model: str | None = None,
    chains: int | None = None,
    warmup: int | None = None,
    draws: int | None = None,
    thin: int | None = None,
    seed: int | None = None,
    threads: int | None = None,
    time_limit: float | None = None,
    settings: Mapping[str, object] | None = None,
    observer: Observer | None = None,
) -> Suggestion:
    """Find out which unobserved cells to ask for next.

    Parameters
    ----------
    table, types
        A table or triplets with their types, or a folder `NAME.glfm` with a saved fit of a table,
        which is not sampled again.
    count : int
        How many cells; fewer when there are no more.
    rule : {"joint", "uncertainty"}
        "joint" takes one by one the cell that tells most given those before it, "uncertainty"
        those that tell most each by itself.
    cost : pyarrow.Table or path, optional
        What cells cost, see `glfm_cli.acquisition.costs.costs_of`; the choice is then by what is
        told per unit of cost.
    columns : sequence of str, optional
        Of a table, the columns to choose from.
    pairs, all_pairs, row_features, column_features, missingness_features
        Of triplets, as in `impute_matrix`; `pairs` are those to choose from.
    model, chains, warmup, draws, thin, seed, threads, time_limit, settings, observer
        As in `impute`.

    Returns
    -------
    Suggestion

    Raises
    ------
    GlfmError
        The table, its types, the costs or an option are wrong.
    """
    check_request("auto", 0.5, threads, time_limit)
    wish = check_wish(count, rule, columns)
    price = None if cost is None else _table(cost)
    if not isinstance(table, pa.Table) and is_saved_fit(table):
        return finish(*with_fit(table, wish, price))
    if types is None:
        raise UsageError("a table needs its types", hint="Give a types file, or guess one first.")
    schema = as_schema(types)
    said: dict[str, Any] = {"model": model, "chains": chains, "warmup": warmup, "draws": draws}
    said |= {"thin": thin, "seed": seed, "settings": settings}
    if is_triplets(schema):
        task = plan_matrix(
            encode_triplets(_table(table), schema),
            **said,
            row_features=features_of(row_features),
            column_features=features_of(column_features),
            missingness_features=missingness_features,
        )
        which = task.pairs(None if pairs is None else _table(pairs), all_pairs)
        job = plan_matrix_cells(task, which, wish, price)
    else:
        job = plan_table_cells(_table(table), schema, wish, said, price)
    workers = threads or available_threads()
    return finish(job.sample(threads=workers, time_limit=time_limit, observer=observer), job)


def _table(given: pa.Table | str | os.PathLike[str]) -> pa.Table:
    return given if isinstance(given, pa.Table) else read_table(given)
