"""A completed table, and how sure its completed cells are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from glfm_cli.diagnostics import Diagnostics
from glfm_cli.encoding import Data, EncodedColumn
from glfm_cli.latent.latent import Array
from glfm_cli.posterior import Posterior
from glfm_cli.predictive import Marginal
from glfm_cli.sampling import Run
from glfm_cli.schema import ColumnType


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
            *(
                self.ids[name].combine_chunks().take(pa.array(rows))
                for name in self.ids.column_names
            ),
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
