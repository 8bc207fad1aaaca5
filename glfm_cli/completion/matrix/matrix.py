"""The task: a table of triplets and its types to predictions of the cells that it does not have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.completion.estimates import Estimate, point
from glfm_cli.completion.matrix.missingness import missingness_features as of_missingness
from glfm_cli.completion.matrix.pairs import (
    Pairs,
    in_parts,
    predict_pairs,
    read_pairs,
    unobserved,
)
from glfm_cli.completion.matrix.side import Features, SideCode, read_side
from glfm_cli.completion.prepare import configure
from glfm_cli.encoding import Ids, Triplets
from glfm_cli.errors import SchemaError, counted
from glfm_cli.inference.chain import Problem
from glfm_cli.inference.posterior import Posterior
from glfm_cli.inference.precision import CELLS as MEASURED
from glfm_cli.inference.precision import GOAL, Precision, measure_precision
from glfm_cli.inference.sampling import Observer, Plan, Run, sample
from glfm_cli.latent.capabilities import has_size
from glfm_cli.latent.model import Entries
from glfm_cli.links import Link, LinkConfig, make_link
from glfm_cli.options import CHAINS, Sampling, gather
from glfm_cli.streams import CELLS, Streams

INTERVAL = 0.95


@dataclass(frozen=True)
class MatrixTask:
    """A matrix that is ready to be sampled.

    rows, columns : every id, those at the end known from their features alone
    covariates : names of the covariates of rows, and of columns, without the intercepts
    codes : how those from tables of features are made
    missingness : how many covariates were asked for that the pattern of observed cells gives
    known : rows and columns of the fit that others were added to; 0 where there is none
    has_cells : whether the observed cells are known; not of a fit that was saved without
    new : the cells of rows and columns that were added, in the matrix of all; None without any
    notes : what a user should know, one line each
    """

    problem: Problem
    plan: Plan
    triplets: Triplets
    rows: Ids
    columns: Ids
    covariates: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    codes: tuple[SideCode | None, SideCode | None] = (None, None)
    missingness: int | None = None
    known: tuple[int, int] = (0, 0)
    has_cells: bool = True
    new: Problem | None = None
    notes: tuple[str, ...] = ()

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

    def measure_precision(self, posterior: Posterior, goal: float | None = None) -> Precision:
        """Return how precise the predictions of pairs drawn at random are."""
        rng = Streams(self.plan.seed, 0).get(CELLS)
        shape = (len(self.rows), len(self.columns))
        pairs = Pairs(*(rng.integers(n, size=MEASURED) for n in shape))
        cells = {0: np.arange(MEASURED)}
        return measure_precision(posterior.at(pairs), cells, rng, goal or GOAL)

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
        which = partial(unobserved, self.triplets, self.rows, self.columns, every, self.known)
        which()
        return which


WhichPairs = partial[Iterator[Pairs]]


def plan_matrix(
    triplets: Triplets,
    sampling: Sampling | None = None,
    *,
    features: tuple[Features, Features] = (None, None),
    missingness_features: int | None = None,
    **options: Any,
) -> MatrixTask:
    """Check the options, and what is known of both sides; nothing is sampled yet.

    `options` are fields of `sampling`, `features` those of rows and of columns.

    Raises
    ------
    GlfmError
        A table of features or an option is wrong.
    """
    (sampling,) = gather(options, sampling or Sampling())
    latent, config, link_config, plan = configure(sampling, "sparse", [triplets.value], CHAINS)
    _check_names(triplets)
    link, x = _link(triplets, link_config)
    rows, of_rows, row_names, row_code = _with_side(triplets.rows, features[0])
    columns, of_columns, names, code = _with_side(triplets.columns, features[1])
    entries = Entries(triplets.row, triplets.column, (len(rows), len(columns)))
    if missingness_features is not None:
        by_row, by_column = of_missingness(entries, missingness_features)
        of_rows, of_columns = _beside(of_rows, by_row), _beside(of_columns, by_column)
        row_names = (*row_names, *(f"missingness {i + 1}" for i in range(by_row.shape[1])))
        names = (*names, *(f"missingness {i + 1}" for i in range(by_column.shape[1])))
    problem = Problem(
        latent,
        config,
        (link,),
        (x,),
        link_config,
        entries,
        of_rows,
        of_columns,
    )
    return MatrixTask(
        problem,
        plan,
        triplets,
        rows,
        columns,
        (row_names, names),
        (row_code, code),
        missingness_features,
    )


def _with_side(
    ids: Ids, given: Features
) -> tuple[Ids, Array | None, tuple[str, ...], SideCode | None]:
    """Return a side's ids, those known from their features alone last; features; names; code."""
    if given is None:
        return ids, None, (), None
    assert given.schema is not None
    side = read_side(given.table, given.schema, file=given.file)
    return *side.of(ids, given.file), side.names, side.code


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
    """A sampled matrix: predictions of its cells, and how precise they are.

    which, estimate : the pairs whose cells are predicted, and what stands for each
    """

    task: MatrixTask
    run: Run
    precision: Precision
    interval: float
    which: WhichPairs | None = None
    estimate: Estimate = "auto"

    @classmethod
    def of(
        cls, task: MatrixTask, run: Run, interval: float = INTERVAL, goal: float | None = None
    ) -> MatrixCompletion:
        """Return the completion of a run."""
        return cls(task, run, task.measure_precision(run.posterior, goal), interval)

    @property
    def posterior(self) -> Posterior:
        """The draws."""
        return self.run.posterior

    @property
    def data(self) -> MatrixTask:
        """The matrix."""
        return self.task

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a user should know, one line each."""
        return self.run.warnings

    @property
    def size(self) -> dict[str, float]:
        """The mean number of components, by the name of its trace, where the model has some."""
        model = self.posterior.model
        return (
            {model.size: float(np.mean(self.posterior.traces()[model.size]))}
            if has_size(model)
            else {}
        )

    def in_words(self) -> str:
        """Return what was learnt from."""
        n_rows, n_columns = len(self.task.rows), len(self.task.columns)
        cells = counted(int(self.task.triplets.row.size), "cell")
        size = "".join(f", {name} {value:.1f}" for name, value in self.size.items())
        return f"{cells} of {n_rows} x {n_columns}{size}"

    def to_table(self) -> pa.Table:
        """Return the predictions, a row for each pair (see `table_of`)."""
        return pa.concat_tables(self.parts())

    def parts(self) -> Iterator[pa.Table]:
        """Yield the predictions, at least one part (see `table_of`)."""
        which = self.which or self.task.pairs(None, False)
        none = True
        for pairs in which():
            none = False
            yield self.table_of(pairs, self.estimate)
        if none:
            yield self.table_of(Pairs(np.empty(0, np.int64), np.empty(0, np.int64)), self.estimate)

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
        estimates = point(link, found, estimate)
        columns: dict[str, Any] = {}
        for ids, index in ((task.rows, pairs.row), (task.columns, pairs.column)):
            columns[ids.name] = ids.values.take(pa.array(index))
        ends = (estimates, found.quantiles[:, 0], found.quantiles[:, 2])
        mean, sd = found.mean, found.sd
        if value.levels:
            texts = np.array(value.levels, dtype=object)
            no_order = not link.ordered
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
            **self.size,
            "precision": self.precision.to_dict(),
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
