"""Ways to learn from many tasks, which predict together: shared experts, as one task, each alone.

Where tasks have few labels, sharing may lose to taking all rows for those of one task, or to
leaving each task to itself, and no bound says so. Each fifth of the labels is therefore foretold in
every way by fits to the others, and ways are mixed by what they gave to the labels so left out, see
`stacking`. Each task is left to itself only where features are so many that the bound is about
them: elsewhere some starts have experts of each task's own, and the bound tells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.classification.features import take
from glfm_cli.classification.stacking import stacking_weights
from glfm_cli.encoding import EncodedColumn
from glfm_cli.inference.run import Stop
from glfm_cli.schema import Role

PARTIAL, COMPLETE, NONE = "partial", "complete", "none"  # how tasks are pooled
FOLDS = 5
STARTS = 2  # of every fit but the first: one for each kind of clusters
TINY = 1e-300


class Predictor(Protocol):
    """A fitted classifier of R levels."""

    @property
    def n_levels(self) -> int:
        """Return R."""

    def probabilities(
        self, columns: Sequence[EncodedColumn], pool: ThreadPoolExecutor | None = None
    ) -> Array:
        """Return the probabilities (n, R) of the levels."""


Fitting = Callable[[Sequence[EncodedColumn], Array], Predictor]  # of features, and codes of labels


@dataclass(frozen=True, eq=False)
class NoPooling:
    """Classifiers of tasks that were left to themselves, by the task's code."""

    fits: Mapping[int, Predictor]

    def probabilities(
        self, columns: Sequence[EncodedColumn], pool: ThreadPoolExecutor | None = None
    ) -> Array:
        """Return the probabilities (n, R) of the levels, NaN for other tasks."""
        task = task_of(columns)
        out = np.full((task.size, max(fit.n_levels for fit in self.fits.values())), np.nan)
        for j, fit in self.fits.items():
            at = np.flatnonzero(task == j)
            if at.size:
                out[at] = fit.probabilities(take(columns, at), pool)
        return out


@dataclass(frozen=True, eq=False)
class StackedPooling:
    """Fits that predict beside one whose tasks share experts.

    weights : of SHARED, POOLED and, where tasks were left alone, ALONE; they add up to 1
    pooled : of all rows as those of one task
    alone : of each task by itself
    """

    weights: Mapping[str, float]
    pooled: Predictor
    alone: NoPooling | None = None

    def mixed(
        self, p: Array, columns: Sequence[EncodedColumn], pool: ThreadPoolExecutor | None
    ) -> Array:
        """Return the mixture (n, R) with the probabilities that shared experts gave.

        Rows of a task that was not left alone go by the others.
        """
        out = self.weights[PARTIAL] * p + self.weights[COMPLETE] * self.pooled.probabilities(
            columns, pool
        )
        if self.alone is None:
            return np.asarray(out)
        own, weight = self.alone.probabilities(columns, pool), self.weights[NONE]
        return np.where(np.isnan(own), out / (1.0 - weight), out + weight * own)


def compare_pooling(
    columns: Sequence[EncodedColumn],
    code: Array,
    fit: Fitting,
    *,
    alone: bool,
    pool: ThreadPoolExecutor | None = None,
    stop: Stop | None = None,
) -> StackedPooling | None:
    """Return what is to predict beside shared experts; None where there is no time for that.

    columns : the features, and one of role task
    code : (n,) float64; level of the label, NaN where missing
    fit : given columns and codes, fits a classifier; tasks share experts where a column names them
    alone : whether tasks are left to themselves, too
    pool : makes fits side by side, so that `fit` must not use it
    """
    task, labelled = task_of(columns), ~np.isnan(code)
    features = tuple(e for e in columns if e.column.role is not Role.TASK)
    places = {int(j): np.flatnonzero(task == j) for j in np.unique(task[labelled])}

    def no_pooling(code: Array) -> NoPooling:
        return NoPooling({j: fit(take(features, at), code[at]) for j, at in places.items()})

    pooling: dict[str, Callable[[Array], Predictor | NoPooling]]
    pooling = {PARTIAL: partial(fit, columns), COMPLETE: partial(fit, features)}
    pooling |= {NONE: no_pooling} if alone else {}
    fold, log_p = fold_of_labels(code, task), np.empty((code.size, len(pooling)))
    jobs = [(i, k) for i in np.unique(fold[labelled]) for k in range(len(pooling))]

    def predict_fold(job: tuple[int, int]) -> bool:
        i, k = job
        at, kind = np.flatnonzero(fold == i), list(pooling.values())[k]
        p = kind(np.where(fold == i, np.nan, code)).probabilities(take(columns, at))
        given = p[np.arange(at.size), code[at].astype(np.intp)]
        log_p[at, k] = np.log(np.maximum(given, TINY))
        return stop is None or not stop.now()

    each = map if pool is None else pool.map  # whole fits side by side: tasks are small
    if not all(each(predict_fold, jobs)):
        return None
    weights = map(float, stacking_weights(log_p[labelled]))
    whole = StackedPooling(
        dict(zip(pooling, weights, strict=True)),
        fit(features, code),
        no_pooling(code) if alone else None,
    )
    return None if stop is not None and stop.now() else whole


def fold_of_labels(code: Array, task: Array) -> Array:
    """Return the fold (n,) of each label, -1 where missing; of each task's labels alike as many."""
    fold = np.full(code.size, -1)
    for i, j in enumerate(np.unique(task)):
        at = np.flatnonzero((task == j) & ~np.isnan(code))
        fold[at[np.argsort(code[at], kind="stable")]] = (np.arange(at.size) + i) % FOLDS
    return fold


def task_of(columns: Sequence[EncodedColumn]) -> Array:
    """Return the codes (n,) of the tasks."""
    return next(np.asarray(e.x) for e in columns if e.column.role is Role.TASK)
