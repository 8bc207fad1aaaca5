"""Baselines of matrices: a cell is predicted by the mean of its row, its column, or all cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from scipy.special import betaln

from glfm_cli.arrays import Array
from glfm_cli.completion import Encoded
from glfm_cli.encoding import Triplets, successes_of
from glfm_cli.evaluation.scoring import level_numbers
from glfm_cli.evaluation.task import HiddenTask, Prediction
from glfm_cli.schema import Schema

PULL = 5.0  # cells, or for successes `TRIALS` trials, that the overall mean counts in a unit's own
TRIALS = 30.0


@dataclass(frozen=True)
class UnitMean:
    """The mean of a unit's cells, shrunken to that of all cells; so are shares and rates.

    unit : "row", "column" or "all"
    """

    name: str
    unit: str

    @property
    def key(self) -> str:
        """Return its name."""
        return self.name

    def load(self) -> None:
        """Do nothing."""

    def check(self, table: pa.Table, schema: Schema, data: Encoded) -> None:
        """Accept every matrix."""

    def fit(self, task: HiddenTask) -> dict[int, Prediction]:
        """Return a value a cell, with the probabilities of levels and of successes."""
        assert task.holdout is not None
        train, test = task.holdout.train, task.holdout.test
        index, n = self._of(train)
        where, _ = self._of(test)
        if train.trials is not None:
            assert test.trials is not None
            rate = _shrunken(index, successes_of(train.value.x), train.trials, n, TRIALS)[where]
            log_p = _log_binomial(successes_of(test.value.x), test.trials, rate)
            return {0: Prediction(rate, log_p, mean=rate)}
        ones, x, levels = np.ones(train.row.size), train.value.x, train.value.levels
        if not levels:
            mean = _shrunken(index, x, ones, n, PULL)[where]
            return {0: Prediction(mean, mean=mean)}
        shares = np.stack(
            [_shrunken(index, (x == r) * 1.0, ones, n, PULL) for r in range(len(levels))], axis=1
        )[where]
        with np.errstate(divide="ignore"):
            log_p = np.log(shares[np.arange(where.size), test.value.x.astype(np.intp)])
        code = np.argmax(shares, axis=1)
        if train.value.column.ordinal:
            code = np.argmax(np.cumsum(shares, axis=1) >= 0.5 - 1e-12, axis=1)
        mean = shares @ level_numbers(levels)
        return {0: Prediction(code.astype(np.float64), log_p, probabilities=shares, mean=mean)}

    def _of(self, triplets: Triplets) -> tuple[Array, int]:
        """Return the unit of each cell, and how many units there are."""
        if self.unit == "row":
            return triplets.row, len(triplets.rows)
        if self.unit == "column":
            return triplets.column, len(triplets.columns)
        return np.zeros_like(triplets.row), 1


def _shrunken(index: Array, value: Array, weight: Array, n: int, pull: float) -> Array:
    """Return the means (n,) of units: sums of `value` over sums of `weight`, pulled to the whole.

    `pull` is the weight of the whole.
    """
    whole = float(value.sum() / weight.sum())
    sums = np.bincount(index, weights=value, minlength=n)
    return (sums + pull * whole) / (np.bincount(index, weights=weight, minlength=n) + pull)


def _log_binomial(h: Array, trials: Array, rate: Array) -> Array:
    """Return log p(h successes among the trials)."""
    log_ways = -np.log(trials + 1.0) - betaln(trials - h + 1.0, h + 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(log_ways + _times_log(h, rate) + _times_log(trials - h, 1.0 - rate))


def _times_log(n: Array, p: Array) -> Array:
    """Return n log p, 0 where n is 0."""
    return np.where(n > 0, n * np.log(p), 0.0)


MEANS = {
    name: UnitMean(name, unit)
    for name, unit in (("mean", "all"), ("row-mean", "row"), ("column-mean", "column"))
}
