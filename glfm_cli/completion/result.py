"""A completed table, and how sure its completed cells are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from glfm_cli.arrays import Array
from glfm_cli.completion.draws import draw_parts
from glfm_cli.completion.estimates import in_numbers
from glfm_cli.completion.extremes import Extremes, cut_estimates, cut_note, extreme_estimates
from glfm_cli.completion.multiple import Multiple, choose_multiple
from glfm_cli.encoding import Data, EncodedColumn, cell_texts, number_texts, numerals_of
from glfm_cli.errors import UsageError, counted
from glfm_cli.inference.blas import one_blas_thread
from glfm_cli.inference.cell_traces import trace_cells
from glfm_cli.inference.posterior import Posterior
from glfm_cli.inference.precision import Precision
from glfm_cli.inference.predictive import Marginal
from glfm_cli.inference.sampling import Run
from glfm_cli.io.frames import table_like
from glfm_cli.latent.capabilities import Candidates
from glfm_cli.links import LinkConfig
from glfm_cli.streams import CELLS, Streams

PROBABILITIES = pa.schema(
    {"row": pa.int64(), "column": pa.string(), "level": pa.string(), "probability": pa.float64()}
)

MOST_NAMED = 8  # columns with cells that are not completed; `to_dict` names all


@dataclass(frozen=True)
class ColumnCompletion:
    """What was put into the missing cells of one column.

    estimate : (n,) value, or level code; `marginal` describes its uncertainty, with quantiles at
    (1 - interval)/2, 1/2 and (1 + interval)/2
    """

    encoded: EncodedColumn
    estimate: Array
    marginal: Marginal

    @property
    def probability(self) -> Array:
        """Return the probability (n,) of each estimated level; NaN for numeric columns."""
        p = self.marginal.probabilities
        if p is None:
            return np.full(self.estimate.size, np.nan)
        return p[np.arange(p.shape[0]), self.estimate.astype(int)]


@dataclass(frozen=True, repr=False)
class CompletionResult:
    """What was completed, and how it came about: of a table, or of pairs of a matrix.

    precision : how far the estimates would move with another seed
    """

    data: Any
    run: Run
    precision: Precision
    interval: float
    seed: int

    def left_in_words(self) -> str | None:
        """Return how many cells were not completed, in which columns, and why; None if all were."""
        parts = self.data.not_completed
        if not parts:
            return None
        named = [f"{one.cells} in '{one.column}' ({one.why})" for one in parts[:MOST_NAMED]]
        total = counted(sum(one.cells for one in parts), "cell")
        if more := parts[MOST_NAMED:]:
            named.append(f"{sum(one.cells for one in more)} in {counted(len(more), 'more column')}")
        return f"{total} not completed: {', '.join(named)}."

    def traces(self) -> dict[str, Array]:
        """Return traces (chain, draw) of what the model and up to 50 completed cells did."""
        missing = {d: np.flatnonzero(e.requested) for d, e in enumerate(self.data.columns)}
        cells = trace_cells(self.posterior, missing, Streams(self.seed, 0).get(CELLS))
        return {**self.posterior.traces(), **cells}

    @property
    def posterior(self) -> Posterior:
        """The draws."""
        return self.run.posterior

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a user should know, one line each."""
        return (*self.data.notes, *self.run.warnings)

    def candidates(self, d: int | None = None) -> dict[str, float]:
        """Return how much each model counts in column d, or on average; of one model nothing."""
        posterior = self.posterior
        if not isinstance(posterior.model, Candidates):
            return {}
        names = posterior.model.candidates
        groups = sorted(set(posterior.groups))
        return {names[k]: round(posterior.weight_of(k, d), 4) for k in groups}

    def summary(self, first: Mapping[str, Any], last: Mapping[str, Any]) -> dict[str, Any]:
        """Return what `glfm impute --json` prints of any layout, between what is of one alone."""
        return {
            **first,
            "model": self.posterior.model.name,
            **({"candidates": self.candidates()} if self.candidates() else {}),
            "chains": len(self.posterior.chains),
            "draws": self.posterior.n_draws,
            "seed": self.seed,
            "stopped": self.run.stopped,
            "seconds": round(self.run.seconds, 3),
            "interval": self.interval,
            **last,
            "precision": self.precision.to_dict(),
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True, repr=False)
class Completion(CompletionResult):
    """A completed table.

    ids : the id columns, untouched
    versions : several completed versions, where they were requested
    given : the data that were completed, of whichever kind
    configs : the settings of the model and of the links
    warmup : sweeps of the run before draws were kept
    """

    data: Data
    table: pa.Table
    columns: tuple[ColumnCompletion, ...]
    ids: pa.Table
    versions: Multiple | None = None
    given: Any = None
    configs: tuple[Any, LinkConfig] | None = None
    warmup: int = 0

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a user should know, one line each."""
        return (*super().warnings, *map(str, self.extremes.values()), *cut_note(self.cut))

    @property
    def extremes(self) -> dict[str, Extremes]:
        """Which completed cells of each column, if any, are far outside what is observed."""
        found = {
            part.encoded.column.name: extreme_estimates(
                part.encoded, part.estimate, part.marginal.rows
            )
            for part in self.columns
        }
        return {name: one for name, one in found.items() if one is not None}

    @property
    def cut(self) -> dict[str, int]:
        """How many completed cells of each column its integer type is too small for."""
        kinds = self.table.schema.types
        return {
            part.encoded.column.name: cut_estimates(
                part.encoded, part.estimate, kinds[part.encoded.index]
            )
            for part in self.columns
        }

    def __repr__(self) -> str:
        """Return what was done; the fields hold whole tables and all draws."""
        early = None if self.run.stopped is None else f"Ended early ({self.run.stopped})."
        said = " ".join(filter(None, [f"{self.in_words()}.", self.left_in_words(), early]))
        return f"<{type(self).__name__}: {said.removesuffix('.')}>"

    @property
    def n_completed(self) -> int:
        """The number of cells that were filled."""
        return sum(part.estimate.size for part in self.columns)

    def in_words(self) -> str:
        """Return what was done."""
        cells, rows = counted(self.n_completed, "cell"), counted(self.data.n_rows, "row")
        weights = [f"{name} {weight:.2f}" for name, weight in self.candidates().items()]
        by = " and ".join([*filter(None, [", ".join(weights[:-1])]), *weights[-1:]])
        return f"{cells} completed in {rows}" + (f" by {by}" if by else "")

    def to_table(self) -> pa.Table:
        """Return the completed table."""
        return self.table

    @property
    def output(self) -> Any:
        """The completed data, of the kind that was given: a pandas frame for a pandas frame."""
        filled = {part.encoded.column.name for part in self.columns if part.estimate.size}
        return table_like(self.table, self.given, filled)

    @one_blas_thread()
    def multiple(self, versions: int, analysis: str | None = None) -> Multiple:
        """Return several completed versions of the table, for multiple imputation.

        Each is one joint draw of all missing cells; `Multiple.outputs()` yields them, of the kind
        that was given, and `Multiple.to_table()` stacks them. Those of an `analysis`, such as
        "y ~ x * g", are drawn so that this regression holds in them.

        Raises
        ------
        UsageError
            `versions` is no whole number above 0, the table has a column `.imp` or `.id`, or the
            analysis is no regression of the table.
        """
        posterior, compatible = self.posterior, None
        if analysis is not None:
            from glfm_cli.completion.analysis.versions import Compatible  # of few runs; slow

            assert self.configs is not None
            run = posterior, self.configs, self.seed, self.warmup
            compatible = Compatible.of(analysis, self.data, *run)
        chosen = choose_multiple(
            self.table, self.data, posterior, self.seed, self.precision, versions, compatible
        )
        return replace(chosen, given=self.given)

    def draws(self) -> Iterator[pa.Table]:
        """Yield, in parts, one row a kept draw and completed cell: its value or level there."""
        return draw_parts(self.posterior, self.data, self.seed)

    def cells(self) -> pa.Table:
        """Return one row a completed cell: where it is, the estimate and its uncertainty."""
        parts = [self._cells_of(part) for part in self.columns]
        table = pa.concat_tables(parts) if parts else cells_schema(self.ids.schema).empty_table()
        order = np.argsort(table.column(0).to_numpy(), kind="stable")
        return table.take(pa.array(order))

    def _cells_of(self, part: ColumnCompletion) -> pa.Table:
        rows, column = part.marginal.rows, part.encoded.column
        numeric = part.marginal.probabilities is None
        spread = in_numbers(part.encoded, part.marginal)
        categorical = column.nominal
        blank, estimates = pa.nulls(rows.size, pa.string()), self._estimates(part)
        low, high = (
            blank
            if categorical  # ends are written in fewer digits than what is certain
            else pc.if_else(pa.array(spread.sd == 0.0), estimates, _as_text(part.encoded, end))
            for end in (spread.quantiles[:, 0], spread.quantiles[:, 2])
        )
        arrays = [
            pa.array(rows + 1, pa.int64()),
            *(
                self.ids[name].combine_chunks().take(pa.array(rows))
                for name in self.ids.column_names
            ),
            pa.array([column.name] * rows.size, pa.string()),
            pa.array([str(column.type)] * rows.size, pa.string()),
            estimates,
            pa.array(spread.mean, pa.float64(), from_pandas=True),
            pa.array(spread.sd, pa.float64(), from_pandas=True),
            low,
            high,
            pa.nulls(rows.size, pa.float64()) if numeric else pa.array(part.probability),
            pa.array(spread.mcse, pa.float64(), from_pandas=True),
        ]
        return pa.Table.from_arrays(arrays, schema=cells_schema(self.ids.schema))

    def _estimates(self, part: ColumnCompletion) -> pa.Array:
        """Return the estimates as text: levels, or the numbers that stand in the table now."""
        if part.encoded.levels:
            return _as_text(part.encoded, part.estimate)
        return _plain(part.encoded, cell_texts(self.table, part.encoded, part.marginal.rows))

    def probabilities(self) -> pa.Table:
        """Return one row a completed cell and level: row, column, level, probability."""
        rows, names, levels, values = [], [], [], []
        for part in self.columns:
            p = part.marginal.probabilities
            if p is None:
                continue
            n, n_levels = p.shape
            rows.append(np.repeat(part.marginal.rows + 1, n_levels))
            names += [part.encoded.column.name] * (n * n_levels)
            levels += list(part.encoded.levels) * n
            values.append(p.ravel())
        arrays = [np.concatenate(rows) if rows else [], names, levels]
        arrays.append(np.concatenate(values) if values else [])
        return pa.table(arrays, schema=PROBABILITIES)

    def to_dict(self) -> dict[str, Any]:
        """Return the summary that `glfm impute --json` prints."""
        first = {
            "rows": self.data.n_rows,
            "columns": self.table.num_columns,
            "cells_completed": self.n_completed,
            "not_completed": [asdict(one) for one in self.data.not_completed],
        }
        more = {} if self.versions is None else {"multiple": self.versions.to_dict()}
        number = {encoded.column.name: d for d, encoded in enumerate(self.data.columns)}
        per_column = {
            "per_column": [
                column_summary(part, self.candidates(number[part.encoded.column.name]))
                | margin_of(part, self.data.weights)
                for part in self.columns
            ]
        }
        return self.summary(first, per_column) | more


def cells_schema(ids: pa.Schema) -> pa.Schema:
    """Return the columns of `Completion.cells`.

    Raises UsageError: an id column has the name of one of the others.
    """
    text, number = pa.string(), pa.float64()
    fixed = {"row": pa.int64(), "column": text, "type": text, "estimate": text}
    fixed |= {"mean": number, "sd": number, "lower": text, "upper": text}
    fixed |= {"probability": number, "mcse": number}
    for name in ids.names:
        if name in fixed:
            raise UsageError(
                "the list of completed cells has a column of this name, so no id can have it",
                column=name,
                hint="Rename the column, or give it role ignore.",
            )
    first, *others = (pa.field(name, kind) for name, kind in fixed.items())
    return pa.schema([first, *(pa.field(f.name, f.type) for f in ids), *others])


def column_summary(part: ColumnCompletion, candidates: dict[str, float]) -> dict[str, Any]:
    """Return what `--json` says of a column."""
    column, spread = part.encoded.column, part.marginal
    summary: dict[str, Any] = {
        "column": column.name,
        "type": str(column.type),
        "observed": int(part.encoded.observed.sum()),
        "completed": int(part.estimate.size),
    }
    if part.estimate.size == 0:
        return summary
    if candidates:
        summary["candidates"] = candidates
    if spread.probabilities is not None:
        summary["mean_probability"] = float(part.probability.mean())
        counts = np.bincount(part.estimate.astype(int), minlength=len(part.encoded.levels))
        summary["levels"] = {
            level: int(count) for level, count in zip(part.encoded.levels, counts, strict=True)
        }
    else:
        summary["mean"] = _mean(part.estimate)
        summary["mean_sd"] = _mean(spread.sd)
    return summary


def margin_of(part: ColumnCompletion, weights: Array | None) -> dict[str, Any]:
    """Return the mean of a completed column, or the shares of its levels, in the population.

    Missing cells count with their predictive means, or probabilities; beside it how many the rows
    stand for. Without weights, nothing.
    """
    encoded, spread = part.encoded, part.marginal
    if weights is None or encoded.trials is not None:
        return {}
    rows = np.concatenate([np.flatnonzero(encoded.observed), spread.rows])
    keep = np.append(np.ones(int(encoded.observed.sum()), bool), ~encoded.observed[spread.rows])
    weight = weights[rows] * keep
    if not weight.any():
        return {}
    x = encoded.x[encoded.observed]
    if spread.probabilities is None:
        mean = float(np.average(np.append(x, spread.mean), weights=weight))
        return {"margin": {"weight": float(weight.sum()), "mean": mean}}
    p = np.vstack([np.eye(len(encoded.levels))[x.astype(int)], spread.probabilities])
    shares = np.average(p, axis=0, weights=weight).tolist()
    levels = dict(zip(encoded.levels, shares, strict=True))
    return {"margin": {"weight": float(weight.sum()), "levels": levels}}


def summed_margins(one: dict[str, Any] | None, other: dict[str, Any] | None) -> dict[str, Any]:
    """Return what `margin_of` says of two parts of a column together, ready to be merged in."""
    if one is None or other is None:
        return {} if one is other else {"margin": one or other}
    a, b = one["weight"], other["weight"]
    found: dict[str, Any] = {"weight": a + b}
    if "mean" in one:
        found["mean"] = (a * one["mean"] + b * other["mean"]) / (a + b)
    else:
        levels = one["levels"], other["levels"]
        found["levels"] = {n: (a * p + b * levels[1][n]) / (a + b) for n, p in levels[0].items()}
    return {"margin": found}


def _mean(values: Array) -> float:
    """Return the mean of finite values, however near they are to the largest double."""
    return float(np.sum(values / values.size))


def _as_text(encoded: EncodedColumn, values: Array) -> pa.Array:
    """Return level codes as level text, numbers as text inside the column's support."""
    if encoded.levels:
        return pa.array(np.array(encoded.levels, dtype=object)[values.astype(int)], pa.string())
    return _plain(encoded, pa.array(number_texts(encoded, values), pa.string()))


def _plain(encoded: EncodedColumn, texts: pa.Array) -> pa.Array:
    """Return numbers as they are in every file, whatever the marks and units of their column."""
    if encoded.column.moment is not None:
        return texts
    return numerals_of(encoded.column).read(texts).plain.cast(pa.string())
