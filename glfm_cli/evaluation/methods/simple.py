"""What people do without a model: one value for all missing cells, or one of those observed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.encoding import EncodedColumn
from glfm_cli.evaluation.scores import log_probability
from glfm_cli.evaluation.task import AT, HiddenTask, Prediction, TakesAll


@dataclass(frozen=True)
class Mean(TakesAll):
    """Mean (rounded for counts), median of ordered levels, most frequent category."""

    name = "mean"
    key = "mean"

    def fit(self, task: HiddenTask) -> dict[int, Prediction]:
        """Return one value a column, and nothing on how sure it is."""
        return {
            d: Prediction(np.full(rows.size, center(task.data.columns[d])))
            for d, rows in task.hidden.items()
        }


@dataclass(frozen=True)
class RandomValue(TakesAll):
    """A random observed value of the column: its distribution is that of the observed cells.

    The level probabilities are (n_r + 1/2) / (n + R/2), so that a level which was not observed
    is not impossible. Numbers get quantiles, but no density.
    """

    name = "draw"
    key = "draw"

    def fit(self, task: HiddenTask) -> dict[int, Prediction]:
        """Return random observed values, and the distribution that they come from."""
        rng = np.random.default_rng(task.seed)
        answer = {}
        for d, rows in task.hidden.items():
            encoded = task.data.columns[d]
            seen = encoded.x[encoded.observed]
            estimate = rng.choice(seen, rows.size)
            if encoded.levels:
                p = np.tile(frequencies(encoded), (rows.size, 1))
                answer[d] = Prediction(
                    estimate, log_score=log_probability(task.truth[d], p), probabilities=p
                )
            else:
                q = np.quantile(seen, AT, method="inverted_cdf")
                answer[d] = Prediction(estimate, quantiles=np.tile(q, (rows.size, 1)))
        return answer


def center(encoded: EncodedColumn) -> float:
    """Return the one value that stands for the observed cells of a column."""
    seen = encoded.x[encoded.observed]
    if not encoded.levels:
        unit = float(np.max(np.abs(seen))) or 1.0  # the sum of large values might overflow
        mean = float(np.mean(seen / unit)) * unit
        return float(np.floor(mean + 0.5)) if encoded.column.integral else mean
    if encoded.column.ordinal:
        return float(np.quantile(seen, 0.5, method="inverted_cdf"))
    return float(np.argmax(np.bincount(seen.astype(int))))


def frequencies(encoded: EncodedColumn) -> Array:
    """Return the smoothed share (R,) of each level among the observed cells."""
    n_levels = len(encoded.levels)
    counts = np.bincount(encoded.x[encoded.observed].astype(int), minlength=n_levels) + 0.5
    return counts / counts.sum()
