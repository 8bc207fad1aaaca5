"""Complete a table: every requested gap filled, with its uncertainty."""

from __future__ import annotations

import dataclasses
import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa

from glfm_cli.diagnostics import Diagnostics, diagnose
from glfm_cli.encoding import Data, EncodedColumn, decode, encode
from glfm_cli.errors import UsageError
from glfm_cli.executors import available_threads
from glfm_cli.io import read_table
from glfm_cli.latent import MODELS
from glfm_cli.latent.latent import Array, LatentModel
from glfm_cli.links.link import Link, LinkConfig, make_link
from glfm_cli.posterior import Posterior
from glfm_cli.predictive import Marginal, draw_jointly, predict, trace_cells
from glfm_cli.sampling import Observer, Plan, Problem, Run, sample
from glfm_cli.schema import Column, ColumnType, Role, Schema, read_schema
from glfm_cli.settings import apply_settings
from glfm_cli.streams import CELLS, Streams

Estimate = Literal["auto", "mean", "median", "mode", "draw"]

CHAINS = 8
WARMUP = 150
DRAWS = 50
THIN = 1
INTERVAL = 0.95

_MODE_GRID = np.linspace(0.005, 0.995, 199)  # probabilities at which `mode` looks for the peak
_MODE_SHARE = 20  # the mode is the centre of the narrowest interval with this many grid steps


@dataclass(frozen=True)
class ColumnCompletion:
    """What was put into the gaps of one column.

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


@dataclass(frozen=True)
class Completion:
    """A completed table and how it came about."""

    table: pa.Table
    data: Data
    columns: tuple[ColumnCompletion, ...]
    posterior: Posterior
    run: Run
    diagnostics: Diagnostics
    interval: float
    seed: int
    ids: pa.Table  # the id columns, untouched

    @property
    def n_completed(self) -> int:
        """The number of cells that were filled."""
        return sum(part.estimate.size for part in self.columns)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a user should know, one line each."""
        return (*self.data.notes, *self.run.warnings)

    def to_table(self) -> pa.Table:
        """Return the completed table."""
        return self.table

    def cells(self) -> pa.Table:
        """Return one row a completed cell: where it is, the estimate and its uncertainty."""
        parts = [self._cells_of(part) for part in self.columns]
        table = pa.concat_tables(parts) if parts else self._cells_schema().empty_table()
        order = np.argsort(table["row"].to_numpy(), kind="stable")
        return table.take(pa.array(order))

    def _cells_schema(self) -> pa.Schema:
        text, number = pa.string(), pa.float64()
        return pa.schema(
            [
                ("row", pa.int64()),
                *((field.name, field.type) for field in self.ids.schema),
                ("column", text),
                ("type", text),
                ("estimate", text),
                ("mean", number),
                ("sd", number),
                ("lower", text),
                ("upper", text),
                ("probability", number),
            ]
        )

    def _cells_of(self, part: ColumnCompletion) -> pa.Table:
        rows, column = part.marginal.rows, part.encoded.column
        numeric = part.marginal.probabilities is None
        spread = part.marginal
        categorical = column.type is ColumnType.CATEGORICAL
        blank = pa.nulls(rows.size, pa.string())
        arrays = [
            pa.array(rows + 1, pa.int64()),
            *(self.ids[name].combine_chunks().take(pa.array(rows)) for name in self.ids.column_names),
            pa.array([column.name] * rows.size, pa.string()),
            pa.array([str(column.type)] * rows.size, pa.string()),
            _as_text(part.encoded, part.estimate),
            pa.array(spread.mean, pa.float64(), from_pandas=True),
            pa.array(spread.sd, pa.float64(), from_pandas=True),
            blank if categorical else _as_text(part.encoded, spread.quantiles[:, 0]),
            blank if categorical else _as_text(part.encoded, spread.quantiles[:, 2]),
            pa.nulls(rows.size, pa.float64()) if numeric else pa.array(part.probability),
        ]
        return pa.Table.from_arrays(arrays, schema=self._cells_schema())

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
        return pa.table(
            {
                "row": pa.array(np.concatenate(rows) if rows else [], pa.int64()),
                "column": pa.array(names, pa.string()),
                "level": pa.array(levels, pa.string()),
                "probability": pa.array(np.concatenate(values) if values else [], pa.float64()),
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the summary that `glfm impute --json` prints."""
        return {
            "rows": self.data.n_rows,
            "columns": self.table.num_columns,
            "cells_completed": self.n_completed,
            "model": self.posterior.model.name,
            "chains": len(self.posterior.chains),
            "draws": self.posterior.n_draws,
            "seed": self.seed,
            "stopped": self.run.stopped,
            "seconds": round(self.run.seconds, 3),
            "interval": self.interval,
            "per_column": [_column_summary(part) for part in self.columns],
            "diagnostics": self.diagnostics.to_dict(),
            "warnings": list(self.warnings),
        }


def _column_summary(part: ColumnCompletion) -> dict[str, Any]:
    column, spread = part.encoded.column, part.marginal
    summary: dict[str, Any] = {
        "column": column.name,
        "type": str(column.type),
        "observed": int(part.encoded.observed.sum()),
        "completed": int(part.estimate.size),
    }
    if part.estimate.size == 0:
        return summary
    if spread.probabilities is not None:
        summary["mean_probability"] = float(part.probability.mean())
        counts = np.bincount(part.estimate.astype(int), minlength=len(part.encoded.levels))
        summary["levels"] = {
            level: int(count) for level, count in zip(part.encoded.levels, counts, strict=True)
        }
    else:
        summary["mean"] = float(part.estimate.mean())
        summary["mean_sd"] = float(spread.sd.mean())
    return summary


def _as_text(encoded: EncodedColumn, values: Array) -> pa.Array:
    """Return level codes as level text, numbers as short text."""
    if encoded.levels:
        return pa.array(np.array(encoded.levels, dtype=object)[values.astype(int)], pa.string())
    if encoded.column.type is ColumnType.COUNT:
        return pa.array([f"{value:.0f}" for value in values], pa.string())
    return pa.array([repr(float(f"{value:.7g}")) for value in values], pa.string())


def impute(
    table: pa.Table | str | os.PathLike[str],
    types: Schema | Mapping[str, Any] | str | os.PathLike[str],
    *,
    model: str = "glfm",
    chains: int = CHAINS,
    warmup: int = WARMUP,
    draws: int = DRAWS,
    thin: int = THIN,
    seed: int = 0,
    threads: int | None = None,
    time_limit: float | None = None,
    settings: Mapping[str, object] | None = None,
    estimate: Estimate = "auto",
    interval: float = INTERVAL,
    observer: Observer | None = None,
) -> Completion:
    """Complete a table with missing values.

    Parameters
    ----------
    table : pyarrow.Table or path
        The table, or a file that `read_table` reads.
    types : Schema, mapping or path
        What the columns mean: a schema, the content of a types file, or its path.
    model : str
        A latent model of `glfm_cli.latent.MODELS`.
    chains, warmup, draws, thin : int
        Independent chains; sweeps dropped at the start of each; states kept from each; sweeps
        from one kept state to the next.
    seed : int
        The same seed gives the same result, whatever `threads` is.
    threads : int, optional
        Chains that run at the same time; by default as many as there are processors.
    time_limit : float, optional
        Seconds of sampling after which the draws so far are used.
    settings : mapping, optional
        Fields of the model's and the links' configuration, by name.
    estimate : {"auto", "mean", "median", "mode", "draw"}
        What fills a gap. "auto" is the mean for real and positive columns, the mean rounded to
        the nearest integer for counts, the median for ordinal and the mode for categorical ones.
        "draw" is one joint draw of all gaps, with the variability that the table itself has.
    interval : float
        Probability of the reported intervals, in (0, 1).
    observer : Observer, optional
        Told after every sweep.

    Returns
    -------
    Completion

    Raises
    ------
    GlfmError
        The table, the types or an option are wrong; the error says where and what to do.
    """
    problem, data, plan, table = prepare(
        table, types, model=model, chains=chains, warmup=warmup, draws=draws, thin=thin,
        seed=seed, settings=settings,
    )  # fmt: skip
    _check_estimate(estimate, interval)
    if threads is not None and threads < 1:
        raise UsageError("threads", value=threads, expected="a whole number from 1")
    if time_limit is not None and not time_limit > 0:
        raise UsageError("time limit", value=time_limit, expected="seconds above 0")
    run = sample(
        problem,
        plan,
        threads=threads or available_threads(),
        time_limit=time_limit,
        observer=observer,
    )
    return complete(run, data, table, seed=seed, estimate=estimate, interval=interval)


def prepare(
    table: pa.Table | str | os.PathLike[str],
    types: Schema | Mapping[str, Any] | str | os.PathLike[str],
    *,
    model: str,
    chains: int,
    warmup: int,
    draws: int,
    thin: int,
    seed: int,
    settings: Mapping[str, object] | None,
) -> tuple[Problem, Data, Plan, pa.Table]:
    """Check everything, encode the table and calibrate the links; nothing is sampled yet."""
    for name, value, least in (
        ("chains", chains, 1),
        ("warmup", warmup, 0),
        ("draws", draws, 1),
        ("thin", thin, 1),
        ("seed", seed, 0),
    ):
        if value < least:
            raise UsageError(name, value=value, expected=f"a whole number from {least}")
    latent = _model(model)
    configs = apply_settings(
        {"model": latent.Config(), "links": LinkConfig()}, dict(settings or {})
    )
    file = None if isinstance(table, pa.Table) else str(table)
    if not isinstance(table, pa.Table):
        table = read_table(table)
    data = encode(table, _schema(types), file=file)
    links_config = dataclasses.replace(
        configs["links"], first_threshold_fixed=getattr(configs["model"], "bias", False)
    )
    links = tuple(make_link(encoded, links_config) for encoded in data.columns)
    problem = Problem(
        latent, configs["model"], links, tuple(encoded.x for encoded in data.columns)
    )
    return problem, data, Plan(chains, warmup, draws, thin, seed), table


def complete(
    run: Run,
    data: Data,
    table: pa.Table,
    *,
    seed: int,
    estimate: Estimate = "auto",
    interval: float = INTERVAL,
) -> Completion:
    """Fill the gaps of `table` from the draws of a run."""
    posterior = run.posterior
    gaps = {d: np.flatnonzero(e.wanted) for d, e in enumerate(data.columns) if e.wanted.any()}
    at = [(1 - interval) / 2, 0.5, (1 + interval) / 2]
    grid = list(_MODE_GRID) if estimate == "mode" else []
    marginals = predict(posterior, gaps, at + grid)
    rng = Streams(seed, 0).get(CELLS)
    traces = {**posterior.traces(), **trace_cells(posterior, gaps, rng)}
    joint = draw_jointly(posterior, gaps, rng) if estimate == "draw" else {}
    columns, fills = [], {}
    for d, encoded in enumerate(data.columns):
        if not encoded.column.completed:
            continue
        if d in gaps:
            value = joint[d] if d in joint else point(posterior.links[d], marginals[d], estimate)
            kept = dataclasses.replace(marginals[d], quantiles=marginals[d].quantiles[:, :3])
            part = ColumnCompletion(encoded, value, kept)
        else:
            part = ColumnCompletion(encoded, np.empty(0), _nothing(posterior.links[d]))
        columns.append(part)
        fills[encoded.column.name] = part.estimate
    ids = [column.name for column in _ids(data, table)]
    return Completion(
        table=decode(table, data, fills),
        data=data,
        columns=tuple(columns),
        posterior=posterior,
        run=run,
        diagnostics=diagnose(traces, [name for name in traces if _gates(name)]),
        interval=interval,
        seed=seed,
        ids=table.select(ids),
    )


def point(link: Link, marginal: Marginal, estimate: Estimate) -> Array:
    """Return the value or level code (n,) that stands for each predictive distribution."""
    if link.discrete:
        assert marginal.probabilities is not None
        if not link.ordered or estimate == "mode":
            return np.argmax(marginal.probabilities, axis=1).astype(np.float64)
        if estimate == "mean":
            return np.floor(marginal.mean + 0.5)
        return marginal.quantiles[:, 1]
    if estimate == "median":
        return marginal.quantiles[:, 1]
    if estimate == "mode":
        return _numeric_mode(link, marginal.quantiles[:, 3:])
    return np.floor(marginal.mean + 0.5) if link.integral else marginal.mean


def _numeric_mode(link: Link, quantiles: Array) -> Array:
    """Return the most probable integer, or the centre of the narrowest interval of 10 %."""
    if link.integral:
        out = np.empty(quantiles.shape[0])
        for i, row in enumerate(quantiles):
            values, counts = np.unique(row, return_counts=True)
            out[i] = values[np.argmax(counts)]
        return out
    width = quantiles[:, _MODE_SHARE:] - quantiles[:, :-_MODE_SHARE]
    first = np.argmin(width, axis=1)
    rows = np.arange(quantiles.shape[0])
    return (quantiles[rows, first] + quantiles[rows, first + _MODE_SHARE]) / 2


def _nothing(link: Link) -> Marginal:
    empty = np.empty(0)
    p = np.empty((0, link.n_levels)) if link.discrete else None
    return Marginal(np.empty(0, dtype=np.intp), empty, empty, np.empty((0, 3)), p)


def _gates(name: str) -> bool:
    """Return whether a traced quantity decides on convergence; the number of features does not."""
    return name == "log_likelihood" or name.startswith(("noise_", "cell_"))


def _ids(data: Data, table: pa.Table) -> list[Column]:
    return [column for column in data.resolved if column.role is Role.ID]


def _model(name: str) -> LatentModel:
    if name not in MODELS:
        close = difflib.get_close_matches(name, MODELS, n=1)
        raise UsageError(
            "--model",
            value=name,
            expected=" or ".join(MODELS),
            hint=f"Did you mean '{close[0]}'?" if close else None,
        )
    return MODELS[name]


def _schema(types: Schema | Mapping[str, Any] | str | os.PathLike[str]) -> Schema:
    if isinstance(types, Schema):
        return types
    if isinstance(types, Mapping):
        return Schema.from_dict(types)
    return read_schema(types)


def _check_estimate(estimate: str, interval: float) -> None:
    if estimate not in get_args(Estimate):
        raise UsageError(
            "--estimate", value=estimate, expected=", ".join(get_args(Estimate))
        )
    if not 0 < interval < 1:
        raise UsageError("--interval", value=interval, expected="a number between 0 and 1")
