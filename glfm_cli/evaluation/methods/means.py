"""Baselines of matrices: a cell is predicted by the mean of its row, its column, both, or all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betaln, ndtr

from glfm_cli.arrays import Array
from glfm_cli.encoding import Triplets, level_numbers, successes_of
from glfm_cli.evaluation.task import HiddenTask, Prediction, TakesAll

PULL = 5.0  # cells, or for successes `TRIALS` trials, that the overall mean counts in a unit's own
TRIALS = 30.0
TURNS = 10
RAREST = 1e-6  # the least rate or probability


@dataclass(frozen=True)
class Baseline(TakesAll):
    """A method of every matrix, steered by nothing but its name."""

    name: str

    @property
    def key(self) -> str:
        """Return its name."""
        return self.name


@dataclass(frozen=True)
class UnitMean(Baseline):
    """The mean of a unit's cells, shrunken to that of all cells; so are shares and rates.

    unit : "row", "column" or "all"
    """

    unit: str

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


class Additive(Baseline):
    """An effect of the row and one of the column beside the overall mean, both shrunken.

    With a normal law of what is left, of levels by their numbers; of successes a rate.
    """

    def fit(self, task: HiddenTask) -> dict[int, Prediction]:
        """Return a value a cell, with its log probability or density, and those of levels."""
        assert task.holdout is not None
        train, test = task.holdout.train, task.holdout.test
        if train.trials is not None:
            assert test.trials is not None
            share = successes_of(train.value.x) / train.trials
            rate, _ = _additive(train, test, share, train.trials, TRIALS)
            rate = np.clip(rate, RAREST, 1.0 - RAREST)
            log_p = _log_binomial(successes_of(test.value.x), test.trials, rate)
            return {0: Prediction(rate, log_p, mean=rate)}
        numbers = level_numbers(train.value.levels) if train.value.levels else None
        x = train.value.x if numbers is None else numbers[train.value.x.astype(np.intp)]
        mean, sd = _additive(train, test, x, np.ones(x.size), PULL)
        if numbers is None:
            z = (test.value.x - mean) / sd
            return {0: Prediction(mean, -0.5 * z * z - np.log(sd * np.sqrt(2 * np.pi)), mean=mean)}
        middles = 0.5 * (numbers[1:] + numbers[:-1])
        below = ndtr((middles - mean[:, None]) / sd)
        edges = np.pad(below, ((0, 0), (1, 1)), constant_values=((0.0, 0.0), (0.0, 1.0)))
        shares = np.diff(edges, axis=1)
        code = test.value.x.astype(np.intp)
        log_p = np.log(np.maximum(shares[np.arange(code.size), code], RAREST))
        best = np.argmax(np.cumsum(shares, axis=1) >= 0.5, axis=1)
        return {0: Prediction(best.astype(np.float64), log_p, probabilities=shares, mean=mean)}


def _additive(
    train: Triplets, test: Triplets, x: Array, weight: Array, pull: float
) -> tuple[Array, float]:
    """Return predictions of `test`, and the sd of what is left of x, by turns of both sides."""
    middle = float(weight @ x / weight.sum())
    a, b = np.zeros(len(train.rows)), np.zeros(len(train.columns))
    for _ in range(TURNS):
        for own, index, other in ((a, train.row, b[train.column]), (b, train.column, a[train.row])):
            left = np.bincount(index, weights=weight * (x - middle - other), minlength=own.size)
            own[:] = left / (np.bincount(index, weights=weight, minlength=own.size) + pull)
    off = x - middle - a[train.row] - b[train.column]
    sd = np.sqrt(max(float(np.mean(off**2)), np.finfo(float).tiny))
    return middle + a[test.row] + b[test.column], float(sd)


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
} | {"additive": Additive("additive")}
