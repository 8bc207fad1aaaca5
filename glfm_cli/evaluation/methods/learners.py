"""Imputers of scikit-learn, an optional extra: nearest neighbours, and chained regressions.

They want a matrix of numbers: numeric columns and level codes are standardised, categories become
one 0/1 column a level, of which the largest completed one wins.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.encoding import Data, EncodedColumn
from glfm_cli.errors import UsageError
from glfm_cli.evaluation.methods.sibp import round_back
from glfm_cli.evaluation.task import HiddenTask, Prediction
from glfm_cli.schema import Schema

EXTRA = "pip install 'glfm-cli[sklearn]'"


class _OfSklearn:
    """A method of scikit-learn."""

    name: ClassVar[str]

    def check(self, table: pa.Table, schema: Schema, data: Data) -> None:
        """Raise UsageError when scikit-learn is not installed."""
        if find_spec("sklearn") is None:
            raise UsageError(
                f"method {self.name} needs scikit-learn, which is not installed",
                hint=f"Install it with `{EXTRA}`.",
            )


@dataclass(frozen=True)
class Neighbours(_OfSklearn):
    """Mean of the five nearest rows (`sklearn.impute.KNNImputer`)."""

    name = "knn"
    key = "knn 5"

    def load(self) -> None:
        """Import scikit-learn, which takes longer than many a fit."""
        import sklearn.impute  # noqa: F401

    def fit(self, task: HiddenTask) -> dict[int, Prediction]:
        """Return completed values, and nothing on how sure they are."""
        from sklearn.impute import KNNImputer

        return _complete(task, KNNImputer(n_neighbors=5).fit_transform)


@dataclass(frozen=True)
class Iterative(_OfSklearn):
    """Bayesian ridge regressions of each column on the others, in turn, ten rounds.

    `sklearn.impute.IterativeImputer` with its defaults.
    """

    name = "iterative"
    key = "iterative 10"

    def load(self) -> None:
        """Import scikit-learn, which takes longer than many a fit."""
        import sklearn.experimental.enable_iterative_imputer  # noqa: F401

    def fit(self, task: HiddenTask) -> dict[int, Prediction]:
        """Return completed values, and nothing on how sure they are."""
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.experimental import enable_iterative_imputer  # noqa: F401
        from sklearn.impute import IterativeImputer

        with warnings.catch_warnings():
            # Ten rounds are its default, and what its users get, converged or not.
            warnings.simplefilter("ignore", ConvergenceWarning)
            return _complete(task, IterativeImputer(random_state=task.seed).fit_transform)


def _complete(task: HiddenTask, fill: Callable[[Array], Any]) -> dict[int, Prediction]:
    """Return what an imputer of number matrices puts into the hidden cells."""
    known = {d: e for d, e in enumerate(task.data.columns) if e.observed.any()}
    blocks = {d: _Block(encoded) for d, encoded in known.items()}
    filled = np.asarray(fill(np.column_stack([block.numbers() for block in blocks.values()])))
    answer, start = {}, 0
    for d, block in blocks.items():
        end = start + block.width
        if d in task.hidden:
            answer[d] = Prediction(block.values(filled[task.hidden[d], start:end]))
        start = end
    return answer


class _Block:
    """One column as standardised numbers, or as one 0/1 column a level."""

    def __init__(self, encoded: EncodedColumn) -> None:
        self.encoded = encoded
        self.categorical = encoded.column.nominal
        self.width = len(encoded.levels) if self.categorical else 1
        seen = encoded.x[encoded.observed]
        self.mean, self.sd = float(seen.mean()), float(seen.std()) or 1.0

    def numbers(self) -> Array:
        """Return (N, width), NaN where missing."""
        x = self.encoded.x
        if not self.categorical:
            return ((x - self.mean) / self.sd)[:, None]
        hit = (x[:, None] == np.arange(self.width)).astype(np.float64)
        return np.where(np.isnan(x)[:, None], np.nan, hit)

    def values(self, numbers: Array) -> Array:
        """Return (n,) values or codes of completed rows (n, width)."""
        if self.categorical:
            return np.argmax(numbers, axis=1).astype(np.float64)
        return round_back(self.encoded, self.mean + self.sd * numbers[:, 0])
