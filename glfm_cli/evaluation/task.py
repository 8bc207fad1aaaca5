"""What a method is given, and what it answers: the hidden cells of one table, predicted."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.completion import MatrixData
from glfm_cli.encoding import Data
from glfm_cli.errors import GlfmError
from glfm_cli.evaluation.holdouts import HoldOut
from glfm_cli.evaluation.measure import Cost
from glfm_cli.evaluation.new_rows import HeldOutRows
from glfm_cli.schema import Schema

LEVELS = (0.5, 0.8, 0.95)  # probabilities of the intervals that are scored
GRID = (np.arange(50) + 0.5) / 50  # probabilities at which the CRPS integral is taken
# The probabilities of all quantiles that methods give; `completion.point` wants the median second.
AT = (0.025, 0.5, 0.975, 0.1, 0.9, 0.25, 0.75, *(float(a) for a in GRID))
ENDS = {level: (AT.index((100 - 100 * level) / 200), AT.index((1 + level) / 2)) for level in LEVELS}
GRID_START = len(AT) - GRID.size


class MethodFailed(GlfmError):
    """A method gave no usable answer; recorded, and the others go on."""


@dataclass(frozen=True)
class Prediction:
    """What a method says of the hidden cells of one column.

    estimate : (n,) values or level codes
    log_score : (n,) log predictive density or probability of the true values; None if unknown
    quantiles : (n, len(AT)) of numbers, at `AT`; None if unknown or for levels
    probabilities : (n, R) of levels; None if unknown or for numbers
    mean : (n,) of a matrix, in the numbers that its levels are; None for a table
    rates : of some of the new rows of counts, (n, J) of all columns
    p_any : likewise probabilities of a count of at least one; None where rates say as much
    """

    estimate: Array
    log_score: Array | None = None
    quantiles: Array | None = None
    probabilities: Array | None = None
    mean: Array | None = None
    rates: Callable[[slice], Array] | None = None
    p_any: Callable[[slice], Array] | None = None


@dataclass(frozen=True)
class HiddenTask:
    """A table, or a matrix, with hidden cells.

    table, schema : the table itself, nothing hidden, and what its columns mean
    data : its modelled columns, the hidden cells among the missing cells
    hidden : column number to the (n,) ascending rows that are hidden; no column without any. Of a
        matrix the numbers of the cells of `holdout.test`
    truth : column number to the (n,) values or codes there; for log scores only
    seed : of the method's own randomness
    cost : where a method notes memory that it uses in other processes
    holdout : of a matrix, which cells are hidden;  new_rows : of counts, which rows are
    """

    table: pa.Table
    schema: Schema
    data: Any
    hidden: Mapping[int, Array]
    truth: Mapping[int, Array]
    seed: int
    threads: int
    cost: Cost = field(default_factory=Cost)
    holdout: HoldOut | None = None
    new_rows: HeldOutRows | None = None


class Method(Protocol):
    """A way to complete a table, or a matrix."""

    @property
    def name(self) -> str:
        """Return what the results call it."""

    @property
    def key(self) -> str:
        """Return everything, besides the task, that its answer depends on."""

    def load(self) -> None:
        """Import what a fit needs, so that the first one is not charged for it."""

    def check(self, table: pa.Table, schema: Schema, data: Any) -> None:
        """Raise GlfmError, before the work, when it cannot do this table."""

    def fit(self, task: HiddenTask) -> dict[int, Prediction]:
        """Return a prediction for every column with hidden cells.

        Raises GlfmError: it gave no usable answer.
        """


class TakesAll:
    """A method that takes everything, and has nothing to import."""

    def load(self) -> None:
        """Do nothing."""

    def check(self, table: pa.Table, schema: Schema, data: Any) -> None:
        """Accept every table, or matrix."""


def hide_pairs(
    table: pa.Table, schema: Schema, holdout: HoldOut, *, seed: int, threads: int
) -> HiddenTask:
    """Return the task of predicting the hidden cells of a matrix."""
    x = holdout.test.value.x
    data, hidden = MatrixData(holdout.train), {0: np.arange(x.size)}
    return HiddenTask(table, schema, data, hidden, {0: x}, seed, threads, holdout=holdout)


def hold_out_rows(
    table: pa.Table, schema: Schema, rows: HeldOutRows, *, seed: int, threads: int
) -> HiddenTask:
    """Return the task of predicting counts of rows that are held out."""
    return HiddenTask(table, schema, MatrixData(rows.train), {}, {}, seed, threads, new_rows=rows)


def hide(
    table: pa.Table, schema: Schema, data: Data, mask: Array, *, seed: int, threads: int
) -> HiddenTask:
    """Return the task of completing a table in which the cells of `mask` (N, D) are hidden."""
    columns, hidden, truth = [], {}, {}
    for d, encoded in enumerate(data.columns):
        rows = np.flatnonzero(mask[:, d])
        if rows.size:
            hidden[d], truth[d] = rows, encoded.scored[rows]
            x = encoded.x.copy()
            x[rows] = np.nan
            requested = encoded.requested | mask[:, d]
            encoded = dataclasses.replace(encoded, x=x, observed=~np.isnan(x), requested=requested)
        columns.append(encoded)
    masked = dataclasses.replace(data, columns=tuple(columns))
    return HiddenTask(table, schema, masked, hidden, truth, seed, threads)
