"""What a method says of the hidden cells: a value for each, and how probable the true one was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaln

from glfm_cli.arrays import Array
from glfm_cli.completion.matrix import MatrixTask, Pairs, predict_pairs
from glfm_cli.encoding import Triplets, successes_of
from glfm_cli.evaluation.matrix.holdouts import HoldOut
from glfm_cli.inference.predictive import log_scores
from glfm_cli.inference.sampling import Run
from glfm_cli.latent.capabilities import has_size

PULL = 5.0  # cells, or for hits `TRIALS` trials, that the overall mean counts in a unit's own
TRIALS = 30.0


@dataclass(frozen=True)
class Forecasts:
    """Forecasts of n cells.

    mean, median : (n,) in the unit of `numbers_of`
    log_p : (n,) log density or probability of the true value; None where there is none
    rank : mean number of components; NaN where there is none
    """

    mean: Array
    median: Array
    log_p: Array | None
    rank: float = float("nan")


def level_numbers(levels: tuple[str, ...]) -> Array:
    """Return levels as numbers: what they say, or their codes where one says none."""
    try:
        return np.array([float(level) for level in levels])
    except ValueError:
        return np.arange(len(levels), dtype=np.float64)


def numbers_of(triplets: Triplets) -> Array:
    """Return the values (m,) as numbers: levels by `level_numbers`, hits as rates."""
    x = triplets.value.x
    if triplets.trials is not None:
        return successes_of(x) / triplets.trials
    levels = triplets.value.levels
    return level_numbers(levels)[x.astype(np.intp)] if levels else x


def of_model(task: MatrixTask, run: Run, test: Triplets) -> Forecasts:
    """Return the forecasts of a fitted model."""
    pairs, posterior = Pairs(test.row.astype(np.int64), test.column.astype(np.int64)), run.posterior
    found, truth = predict_pairs(posterior, pairs, [0.5]), test.value.x
    mean, median = found.mean, found.quantiles[:, 0]
    if test.value.levels:
        values = level_numbers(test.value.levels)
        assert found.probabilities is not None
        mean = found.probabilities @ values
        median = values[np.argmax(np.cumsum(found.probabilities, axis=1) >= 0.5, axis=1)]
    model = posterior.model
    size = float(np.mean(posterior.traces()[model.size])) if has_size(model) else float("nan")
    which = np.arange(truth.size)
    log_p = log_scores(posterior.at(pairs), {0: which}, {0: truth})[0]
    return Forecasts(mean, median, log_p, size)


def of_means(unit: str) -> Callable[[HoldOut], Forecasts]:
    """Return the baseline that predicts a cell by the mean of its row, its column, or all cells.

    Means of rows and columns are shrunken to that of all cells; so are shares of levels and rates.
    """

    def forecast(held: HoldOut) -> Forecasts:
        train, test = held.train, held.test
        index = {"row": train.row, "column": train.column}.get(unit, np.zeros_like(train.row))
        where = {"row": test.row, "column": test.column}.get(unit, np.zeros_like(test.row))
        n = {"row": len(train.rows), "column": len(train.columns)}.get(unit, 1)
        if train.trials is not None:
            assert test.trials is not None
            hits = successes_of(train.value.x)
            rate = _shrunken(index, hits, train.trials, n, TRIALS)[where]
            h, trials = successes_of(test.value.x), test.trials
            log_ways = -np.log(trials + 1.0) - betaln(trials - h + 1.0, h + 1.0)
            with np.errstate(divide="ignore", invalid="ignore"):
                log_p = log_ways + _times_log(h, rate) + _times_log(trials - h, 1.0 - rate)
            return Forecasts(rate, rate, log_p)
        ones = np.ones(train.row.size)
        mean = _shrunken(index, numbers_of(train), ones, n, PULL)[where]
        log_p = None
        median = mean
        if train.value.levels:
            shares = np.stack(
                [
                    _shrunken(index, (train.value.x == code) * 1.0, ones, n, PULL)
                    for code in range(len(train.value.levels))
                ],
                axis=1,
            )[where]
            with np.errstate(divide="ignore"):
                log_p = np.log(shares[np.arange(mean.size), test.value.x.astype(np.intp)])
            if train.value.column.ordinal:
                at = np.argmax(np.cumsum(shares, axis=1) >= 0.5 - 1e-12, axis=1)
                median = level_numbers(train.value.levels)[at]
        return Forecasts(mean, median, log_p)

    return forecast


def _shrunken(index: Array, value: Array, weight: Array, n: int, pull: float) -> Array:
    """Return the means (n,) of units: sums of `value` over sums of `weight`, pulled to the whole.

    `pull` is the weight of the whole.
    """
    whole = float(value.sum() / weight.sum())
    sums = np.bincount(index, weights=value, minlength=n)
    return (sums + pull * whole) / (np.bincount(index, weights=weight, minlength=n) + pull)


def _times_log(n: Array, p: Array) -> Array:
    """Return n log p, 0 where n is 0."""
    return np.where(n > 0, n * np.log(p), 0.0)


BASELINES: dict[str, Callable[[HoldOut], Forecasts]] = {
    "mean": of_means("all"),
    "row-mean": of_means("row"),
    "column-mean": of_means("column"),
}


def scores(held: HoldOut, found: Forecasts) -> dict[str, float]:
    """Return the scores of forecasts, by name.

    rmse : of the mean;  mae : of the median;  nmae : mae over what a blind guess of a random value
    would have, levels or numbers of the range all being equally likely
    log_likelihood : mean log density or probability of the true values, a cell
    rank : of a model

    Rates count as often as they have trials.
    """
    truth, train = numbers_of(held.test), numbers_of(held.train)
    weight = np.ones(truth.size) if held.test.trials is None else held.test.trials
    levels = held.test.value.levels
    if levels and held.test.trials is None:
        values = level_numbers(levels)
        blind = float(np.mean(np.abs(values[:, None] - values)))
    else:
        blind = (1.0 if held.test.trials is not None else float(np.ptp(train))) / 3.0
    mae = float(np.average(np.abs(found.median - truth), weights=weight))
    mse = float(np.average((found.mean - truth) ** 2, weights=weight))
    said: dict[str, Any] = {"rmse": np.sqrt(mse), "mae": mae}
    said["nmae"] = mae / blind if blind > 0.0 else np.nan
    said["log_likelihood"] = np.nan if found.log_p is None else float(np.mean(found.log_p))
    said["rank"] = found.rank
    return {name: float(value) for name, value in said.items() if not np.isnan(value)}
