"""The task: a table of triplets and its types to predictions of the cells that it does not have."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from glfm_cli.cell_traces import TRACED_CELLS, trace_cells
from glfm_cli.chain import Problem
from glfm_cli.completion.estimates import Estimate, point
from glfm_cli.completion.prepare import CHAINS, DRAWS, SEED, THIN, WARMUP, as_schema, check_plan
from glfm_cli.diagnostics import Diagnostics, diagnose
from glfm_cli.encoding import Ids, Triplets, encode_triplets
from glfm_cli.errors import SchemaError, UsageError
from glfm_cli.executors import available_threads
from glfm_cli.io import read_table
from glfm_cli.latent import MODELS
from glfm_cli.latent.latent import Array, Entries
from glfm_cli.links.binomial import BinomialLink
from glfm_cli.links.link import Link, LinkConfig, make_link
from glfm_cli.matrices.missingness import missingness_features as of_gaps
from glfm_cli.matrices.pairs import (
    Pairs,
    in_parts,
    predict_pairs,
    read_pairs,
    seen_at,
    unobserved,
)
from glfm_cli.matrices.side import read_side
from glfm_cli.posterior import Posterior, gates
from glfm_cli.sampling import Observer, Plan, Run, sample
from glfm_cli.schema import ColumnType, Schema
from glfm_cli.settings import apply_settings
from glfm_cli.streams import CELLS, Streams

MODEL = "bsvd"  # the one model of a matrix of one kind
INTERVAL = 0.95


@dataclass(frozen=True)
class MatrixTask:
    """A matrix that is ready to be sampled.

    rows, columns : every id, those at the end known from their features alone
    covariates : names of the covariates of rows, and of columns, without the intercepts
    """

    problem: Problem
    plan: Plan
    triplets: Triplets
    rows: Ids
    columns: Ids
    covariates: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    def sample(
        self,
        *,
        threads: int = 1,
        time_limit: float | None = None,
        observer: Observer | None = None,
    ) -> Run:
        """Run the chains."""
        return sample(
            self.problem, self.plan, threads=threads, time_limit=time_limit, observer=observer
        )

    def blank(self) -> pa.Table:
        """Return one row of predictions without values: their columns and types."""
        value, binomial = self.triplets.value, self.triplets.trials is not None
        text = bool(value.levels) and not binomial
        kind = pa.string() if text else pa.float64()
        columns = {ids.name: ids.values.slice(0, 1) for ids in (self.rows, self.columns)}
        kinds = {"estimate": kind, "mean": pa.float64(), "sd": pa.float64()}
        kinds |= {"lower": kind, "upper": kind}
        kinds |= {f"p_{level}": pa.float64() for level in value.levels}
        return pa.table(columns | {name: pa.nulls(1, k) for name, k in kinds.items()})

    def pairs(self, table: pa.Table | None, every: bool, *, file: str | None = None) -> WhichPairs:
        """Return the pairs that a table lists, or all that have no value; checked now."""
        if table is not None:
            return partial(in_parts, read_pairs(table, self.rows, self.columns, file=file))
        unobserved(self.triplets, self.rows, self.columns, every)
        return partial(unobserved, self.triplets, self.rows, self.columns, every)


WhichPairs = partial[Iterator[Pairs]]


def plan_matrix(
    table: pa.Table,
    schema: Schema,
    *,
    model: str | None = None,
    chains: int | None = None,
    warmup: int | None = None,
    draws: int | None = None,
    thin: int | None = None,
    seed: int | None = None,
    settings: Mapping[str, object] | None = None,
    row_features: tuple[pa.Table, Schema] | None = None,
    column_features: tuple[pa.Table, Schema] | None = None,
    missingness_features: int | None = None,
    file: str | None = None,
    feature_files: tuple[str | None, str | None] = (None, None),
) -> MatrixTask:
    """Check everything and encode the cells and what is known of their rows and columns.

    The options are those of `impute_matrix`; `file` and `feature_files` name the tables in errors.

    Raises
    ------
    GlfmError
        A table, its types or an option are wrong.
    """
    if model not in (None, MODEL):
        raise UsageError(
            f"--model {model} does not take triplets",
            expected=f"--model {MODEL}",
            hint="A types file with roles row, column and value describes a matrix.",
        )
    latent = MODELS[MODEL]
    said = {"chains": chains, "warmup": warmup, "draws": draws, "thin": thin, "seed": seed}
    defaults = {"chains": CHAINS, "warmup": WARMUP, "draws": DRAWS, "thin": THIN, "seed": SEED}
    plan = Plan(**{n: defaults[n] if value is None else value for n, value in said.items()})
    check_plan(plan)
    configs = apply_settings(
        {"model": latent.Config(), "links": LinkConfig()}, dict(settings or {})
    )
    triplets = encode_triplets(table, schema, file=file)
    _check_names(triplets)
    link, x = _link(triplets, configs["links"])
    rows, of_rows, row_names = _with_side(triplets.rows, row_features, feature_files[0])
    columns, of_columns, names = _with_side(triplets.columns, column_features, feature_files[1])
    entries = Entries(triplets.row, triplets.column, (len(rows), len(columns)))
    if missingness_features is not None:
        by_row, by_column = of_gaps(entries, missingness_features)
        of_rows, of_columns = _beside(of_rows, by_row), _beside(of_columns, by_column)
        row_names = (*row_names, *(f"missingness {i + 1}" for i in range(by_row.shape[1])))
        names = (*names, *(f"missingness {i + 1}" for i in range(by_column.shape[1])))
    problem = Problem(
        latent,
        configs["model"],
        (link,),
        (x,),
        configs["links"],
        entries,
        of_rows,
        of_columns,
    )
    return MatrixTask(problem, plan, triplets, rows, columns, (row_names, names))


def _with_side(
    ids: Ids, given: tuple[pa.Table, Schema] | None, file: str | None
) -> tuple[Ids, Array | None, tuple[str, ...]]:
    """Return the ids of a side, those known from their features alone at the end; features; names.

    `file` is that of the features, for messages.
    """
    if given is None:
        return ids, None, ()
    side = read_side(*given, file=file)
    return *side.of(ids, file), side.names


def _beside(features: Array | None, more: Array) -> Array:
    """Return covariates with some more at their right."""
    parts = [more] if features is None else [features, more]
    return np.ascontiguousarray(np.concatenate(parts, axis=1))


def _check_names(triplets: Triplets) -> None:
    """Raise SchemaError when an id's column has the name of one that is written beside it."""
    written = {"estimate", "mean", "sd", "lower", "upper"}
    written |= {f"p_{level}" for level in triplets.value.levels}
    for name in (triplets.rows.name, triplets.columns.name):
        if name in written:
            raise SchemaError(
                "the predictions have a column of this name, so no id can have it",
                column=name,
                hint="Rename the column.",
            )


def _link(triplets: Triplets, config: LinkConfig) -> tuple[Link, Array]:
    value = triplets.value
    if value.column.type is ColumnType.BINOMIAL:
        assert triplets.trials is not None
        return BinomialLink.calibrate(value.column.name, value.x, triplets.trials)
    link = make_link(value, config)
    if link.n_latent != 1:
        raise SchemaError(
            f"a matrix of categories needs two levels, this has {len(value.levels)}",
            column=value.column.name,
            hint="Ordered levels: `type: ordinal`.",
        )
    return link, value.x


@dataclass(frozen=True)
class MatrixCompletion:
    """A sampled matrix: predictions of its cells, and how the chains did."""

    task: MatrixTask
    run: Run
    traces: dict[str, Array]
    diagnostics: Diagnostics
    interval: float

    @classmethod
    def of(cls, task: MatrixTask, run: Run, interval: float = INTERVAL) -> MatrixCompletion:
        """Return the completion of a run, its traces diagnosed."""
        rng = Streams(task.plan.seed, 0).get(CELLS)
        shape = (len(task.rows), len(task.columns))
        pairs = Pairs(*(rng.integers(n, size=TRACED_CELLS) for n in shape))
        cells = trace_cells(seen_at(run.posterior, pairs), {0: np.arange(TRACED_CELLS)}, rng)
        traces = {**run.posterior.traces(), **cells}
        watched = [name for name in traces if gates(name)]
        return cls(task, run, traces, diagnose(traces, watched), interval)

    @property
    def posterior(self) -> Posterior:
        """The draws."""
        return self.run.posterior

    def parts(self, which: WhichPairs, estimate: Estimate = "auto") -> Iterator[pa.Table]:
        """Yield the predictions of some pairs, at least one part (see `table_of`)."""
        none = True
        for pairs in which():
            none = False
            yield self.table_of(pairs, estimate)
        if none:
            yield self.table_of(Pairs(np.empty(0, np.int64), np.empty(0, np.int64)), estimate)

    def table_of(self, pairs: Pairs, estimate: Estimate = "auto") -> pa.Table:
        """Return a row for each pair: ids, estimate, mean, sd, lower, upper, probabilities.

        Estimates of levels are text. `mean` and `sd` are of the level's number, or of its code
        where levels are no numbers; of binomial values, all are of the hit rate. A column
        `p_LEVEL` for each level.
        """
        task = self.task
        value, (link,) = task.triplets.value, self.posterior.links
        at = [(1 - self.interval) / 2, 0.5, (1 + self.interval) / 2]
        found = predict_pairs(self.posterior, pairs, at)
        binomial = isinstance(link, BinomialLink)
        estimates = found.mean if binomial else point(link, found, estimate)
        columns: dict[str, Any] = {}
        for ids, index in ((task.rows, pairs.row), (task.columns, pairs.column)):
            columns[ids.name] = ids.values.take(pa.array(index))
        ends = (estimates, found.quantiles[:, 0], found.quantiles[:, 2])
        mean, sd = found.mean, found.sd
        if value.levels:
            texts = np.array(value.levels, dtype=object)
            no_order = value.column.type is ColumnType.CATEGORICAL
            ends = tuple(
                pa.nulls(end.size, pa.string())
                if i and no_order
                else pa.array(texts[end.astype(np.intp)], pa.string())
                for i, end in enumerate(ends)
            )
            assert found.probabilities is not None
            mean, sd = _in_numbers(value.levels, found.probabilities, mean, sd)
        columns |= {"estimate": ends[0], "mean": mean, "sd": sd}
        columns |= {"lower": ends[1], "upper": ends[2]}
        for code, level in enumerate(value.levels):
            assert found.probabilities is not None
            columns[f"p_{level}"] = found.probabilities[:, code]
        return pa.table(
            {n: pa.array(v, from_pandas=True) if isinstance(v, np.ndarray) else v
             for n, v in columns.items()}
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Return the summary that `glfm impute --json` prints."""
        return {
            "rows": len(self.task.rows),
            "columns": len(self.task.columns),
            "observed": int(self.task.triplets.row.size),
            "model": self.posterior.model.name,
            "chains": len(self.posterior.chains),
            "draws": self.posterior.n_draws,
            "seed": self.task.plan.seed,
            "stopped": self.run.stopped,
            "seconds": round(self.run.seconds, 3),
            "interval": self.interval,
            "rank": float(np.mean(self.traces["rank"])),
            "diagnostics": self.diagnostics.to_dict(),
            "warnings": list(self.run.warnings),
        }


def _in_numbers(levels: tuple[str, ...], p: Array, mean: Array, sd: Array) -> tuple[Array, Array]:
    """Return mean and sd of the levels as numbers, unchanged where they are none."""
    try:
        values = np.array([float(level) for level in levels])
    except ValueError:
        return mean, sd
    mean = p @ values
    return mean, np.sqrt(np.maximum(p @ values**2 - mean**2, 0.0))


def impute_matrix(
    table: pa.Table | str | os.PathLike[str],
    types: Schema | Mapping[str, Any] | str | os.PathLike[str],
    *,
    pairs: pa.Table | str | os.PathLike[str] | None = None,
    all_pairs: bool = False,
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
    estimate: Estimate = "auto",
    interval: float = INTERVAL,
    observer: Observer | None = None,
) -> tuple[pa.Table, MatrixCompletion]:
    """Predict cells of a matrix that is given as triplets.

    Parameters
    ----------
    table, types
        The triplets and what their columns are: roles row, column and value.
    pairs : pyarrow.Table or path, optional
        The cells wanted, in columns named as those of the ids; all without a value if left out.
    all_pairs : bool
        Whether these may be more than ten million.
    row_features, column_features : (table, types), optional
        What is known of rows and of columns, a row each, with one column of role id.
    missingness_features : int, optional
        So many leading singular vectors of the pattern of observed cells are covariates of rows
        and columns, too.
    chains, warmup, draws, thin, seed, threads, time_limit, settings, interval, observer
        As in `impute`.
    estimate : {"auto", "mean", "median", "mode"}
        As in `impute`; of binomial values it is the mean of the hit rate.

    Returns
    -------
    pyarrow.Table, MatrixCompletion
        The predictions (`MatrixCompletion.table_of`), and what they come from.
    """
    sides = [
        None if given is None else (_table(given[0]), as_schema(given[1]))
        for given in (row_features, column_features)
    ]
    task = plan_matrix(
        _table(table),
        as_schema(types),
        chains=chains,
        warmup=warmup,
        draws=draws,
        thin=thin,
        seed=seed,
        settings=settings,
        row_features=sides[0],
        column_features=sides[1],
        missingness_features=missingness_features,
    )
    which = task.pairs(None if pairs is None else _table(pairs), all_pairs)
    workers = threads or available_threads()
    run = task.sample(threads=workers, time_limit=time_limit, observer=observer)
    completion = MatrixCompletion.of(task, run, interval)
    return pa.concat_tables(completion.parts(which, estimate)), completion


def _table(given: pa.Table | str | os.PathLike[str]) -> pa.Table:
    return given if isinstance(given, pa.Table) else read_table(given)
