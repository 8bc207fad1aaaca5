"""Ways to learn from many tasks that predict together, and their weights."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import hypothesis.extra.numpy as nps
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import digamma

from glfm_cli.classification.classifier import Classifier, fit_classifier
from glfm_cli.classification.features import take
from glfm_cli.classification.fit import Fitting
from glfm_cli.classification.pooling import (
    COMPLETE,
    NONE,
    PARTIAL,
    compare_pooling,
    fold_of_labels,
)
from glfm_cli.classification.stacking import stacking_weights
from glfm_cli.encoding import EncodedColumn
from glfm_cli.latent.iqgme import IqgmeConfig
from glfm_cli.links import LinkConfig
from glfm_cli.schema import Column, ColumnType, Role
from tests.iqgme_problems import Patience

Array = np.ndarray[Any, Any]

FAST = IqgmeConfig(experts=2, shared_experts=4, iterations=15, short=8)
# Of these fits nothing but their parts and shapes is asked.
BRIEF = IqgmeConfig(experts=2, shared_experts=3, iterations=3, short=1)
ONE: dict[str, Any] = {"chains": 1, "seed": 1}
MANY = IqgmeConfig(experts=2, shared_experts=2, factors=2, iterations=2, short=1)

# Weights ---------------------------------------------------------------------------------------

scores = nps.arrays(np.float64, (9, 3), elements=st.floats(-8.0, 0.0))


@given(scores, st.permutations(range(3)), st.floats(-5.0, 5.0))
def test_weights_know_forecasts_by_their_scores_alone(
    log_p: Array, order: list[int], shift: float
) -> None:
    weights = stacking_weights(log_p)
    assert np.all(weights > 0.0)
    assert weights.sum() == pytest.approx(1.0)
    assert np.allclose(stacking_weights(log_p[:, order]), weights[order], atol=1e-4)
    assert np.allclose(stacking_weights(log_p + shift), weights, atol=1e-4)


@given(scores, st.floats(0.5, 4.0))
def test_a_forecast_that_is_worse_of_every_label_weighs_less(log_p: Array, by: float) -> None:
    log_p[:, 1] = log_p[:, 0] - by
    weights = stacking_weights(log_p)
    assert weights[1] < weights[0]


def test_forecasts_that_nothing_tells_apart_weigh_alike() -> None:
    assert np.allclose(stacking_weights(np.full((40, 4), -0.7)), 0.25)
    assert np.allclose(stacking_weights(np.empty((0, 2))), 0.5)


def test_weights_are_near_their_posterior_mean(seed: int) -> None:
    """Two forecasts, with the integral over their weights done by a sum."""
    rng, w = np.random.default_rng(seed), (np.arange(4000) + 0.5) / 4000
    for n in (3, 30, 300):
        log_p = rng.normal([-0.7, -0.9], 0.6, (n, 2))
        like = np.log(np.exp(log_p) @ np.array([w, 1.0 - w])).sum(axis=0)
        exact = np.average(w, weights=np.exp(like - like.max()))
        assert stacking_weights(log_p)[0] == pytest.approx(exact, abs=0.1)


def test_weights_are_where_the_best_law_of_its_kind_stays() -> None:
    """a_k = 1 + sum_n r_nk, r_nk ~ p_k(y_n) exp(digamma(a_k)), of few labels."""
    log_p = np.array([[-0.1, -3.0, -2.0], [-0.2, -4.0, -1.0], [-2.0, -0.3, -0.4]])
    a = stacking_weights(log_p) * (3 + 3)
    r = np.exp(log_p + digamma(a))
    np.testing.assert_allclose(a, 1.0 + (r / r.sum(axis=1, keepdims=True)).sum(axis=0), atol=1e-4)


# Folds -----------------------------------------------------------------------------------------


@given(nps.arrays(np.int64, 60, elements=st.integers(0, 2)), st.integers(1, 4))
def test_labels_of_every_task_are_dealt_out_evenly(code: Array, n_tasks: int) -> None:
    task = np.arange(60.0) % n_tasks
    label = np.where(np.arange(60) % 7 == 0, np.nan, code.astype(np.float64))
    fold = fold_of_labels(label, task)
    assert np.array_equal(fold < 0, np.isnan(label))
    for j in range(n_tasks):
        for level in range(3):
            count = np.bincount(fold[(task == j) & (label == level)], minlength=5)
            assert count.max() - count.min() <= 1


# Classifiers -----------------------------------------------------------------------------------


def columns_of(x: Array, task: Array, names: tuple[str, ...]) -> list[EncodedColumn]:
    out = []
    for d, values in enumerate(x.T):
        column = Column(f"x{d}", Role.FEATURE, ColumnType.REAL)
        nothing = np.zeros(len(x), dtype=bool)
        out.append(EncodedColumn(column, d, values, ~np.isnan(values), nothing, ()))
    column = Column("task", Role.TASK, ColumnType.CATEGORICAL)
    known = np.ones(len(x), dtype=bool)
    return [*out, EncodedColumn(column, len(out), task, known, ~known, names)]


def tasks(
    n: int, seed: int, *, same: bool, n_features: int = 3, n_tasks: int = 4
) -> tuple[list[EncodedColumn], Array]:
    """Return rows of tasks with one rule for all, or two opposite ones, and labels."""
    rng = np.random.default_rng(seed)
    task = np.arange(n * n_tasks) % n_tasks
    x = rng.standard_normal((task.size, n_features))
    x[rng.random(x.shape) < 0.1] = np.nan
    sign = np.where(same | (task % 2 == 1), 1.0, -1.0)
    code = (sign * np.nan_to_num(x[:, 0]) + 0.3 * rng.standard_normal(task.size) > 0) * 1.0
    return columns_of(x, task.astype(float), tuple("pqrs"[:n_tasks])), code


def fitted(
    columns: list[EncodedColumn], code: Array, config: IqgmeConfig = BRIEF, **said: Any
) -> Classifier:
    return fit_classifier(columns, code, 2, Fitting(config, LinkConfig(), **ONE | said))


class Memory:
    """A classifier that is sure of the labels it has seen, and knows nothing of others."""

    n_levels = 2

    def __init__(self, columns: Sequence[EncodedColumn], code: Array) -> None:
        known = ~np.isnan(code) & (columns[-1].column.role is Role.TASK)
        self.label = dict(zip(columns[0].x[known], code[known], strict=True))

    def probabilities(
        self, columns: Sequence[EncodedColumn], pool: ThreadPoolExecutor | None = None
    ) -> Array:
        p = [0.1 + 0.8 * self.label[x] if x in self.label else 0.5 for x in columns[0].x]
        return np.column_stack([1.0 - np.array(p), p])


def test_ways_are_weighed_by_labels_that_they_have_not_seen() -> None:
    task, code = np.arange(40.0) % 2, np.arange(40.0) % 3 % 2
    code[:4] = np.nan
    columns = columns_of(np.arange(40.0)[:, None], task, ("p", "q"))
    found = compare_pooling(columns, code, Memory, alone=False)
    assert found is not None
    assert found.weights == pytest.approx({PARTIAL: 0.5, COMPLETE: 0.5})


def test_pooling_weighs_by_how_far_tasks_are_alike(seed: int) -> None:
    weights = {}
    for same in (True, False):
        fit = fitted(*tasks(15, seed, same=same), FAST, chains=2)
        assert fit.pooling is not None
        assert list(fit.pooling.weights) == [PARTIAL, COMPLETE]
        assert sum(fit.pooling.weights.values()) == pytest.approx(1.0)
        weights[same] = fit.pooling.weights[COMPLETE]
    assert weights[True] > 0.2 > weights[False]


def test_ways_are_mixed_by_their_weights(seed: int) -> None:
    columns, code = tasks(10, seed, same=True)
    fit = fitted(columns, code)
    new, _ = tasks(6, seed + 1, same=True)
    shared = fitted(columns, code, IqgmeConfig(**vars(BRIEF) | {"stack": False}))
    assert shared.pooling is None
    assert fit.pooling is not None
    weights, pooled = fit.pooling.weights, fit.pooling.pooled.probabilities(new)
    expected = weights[PARTIAL] * shared.probabilities(new) + weights[COMPLETE] * pooled
    assert np.allclose(fit.probabilities(new), expected)


def test_of_many_features_tasks_are_left_alone_too(seed: int) -> None:
    columns, code = tasks(12, seed, same=False, n_features=101, n_tasks=3)
    code[np.flatnonzero(columns[-1].x == 2.0)] = np.nan  # a task without labels
    fit = fitted(columns, code, MANY)
    assert fit.pooling is not None
    assert list(fit.pooling.weights) == [PARTIAL, COMPLETE, NONE]
    assert fit.pooling.alone is not None
    assert list(fit.pooling.alone.fits) == [0, 1]
    assert fit.pooling.alone.fits[0].n_levels == 2
    *features, task = take(columns, np.arange(9))
    new = [*features, replace(task, x=np.where(np.arange(9) == 0, np.nan, task.x))]
    own, p = fit.pooling.alone.probabilities(new), fit.probabilities(new)
    assert np.array_equal(np.isnan(own[:, 0]), ~np.isin(new[-1].x, [0.0, 1.0]))
    assert np.allclose(p.sum(axis=1), 1.0)
    alone = fit.pooling.alone.fits[1].probabilities(take(new, np.array([1])))
    assert np.allclose(own[1], alone[0])


def test_a_task_left_alone_may_lack_a_label_of_three(seed: int) -> None:
    columns, code = tasks(10, seed, same=True, n_features=101, n_tasks=2)
    code[(columns[-1].x == 1.0) & (code == 1.0)] = 2.0  # of the second task 1 is missing
    fit = fit_classifier(columns, code, 3, Fitting(MANY, LinkConfig(), **ONE))
    assert fit.pooling is not None
    assert list(fit.pooling.weights) == [PARTIAL, COMPLETE, NONE]
    p = fit.probabilities(columns)
    assert p.shape == (20, 3)
    assert np.allclose(p.sum(axis=1), 1.0)


@pytest.mark.parametrize("n_labels", [1, 4])
def test_tasks_may_have_a_row_or_a_label(n_labels: int, seed: int) -> None:
    columns, code = tasks(6, seed, same=True, n_features=101, n_tasks=2)
    kept = np.flatnonzero((columns[-1].x == 0.0) | (np.arange(12) == 1))  # a row of the second
    code[kept[n_labels:]] = np.nan
    fit = fitted(list(take(columns, kept)), code[kept], MANY)
    assert fit.pooling is not None
    assert np.all(np.isfinite(fit.probabilities(columns)))


def test_where_time_is_up_shared_experts_predict_alone(seed: int) -> None:
    columns, code = tasks(8, seed, same=True)
    patient = Patience(10**6)
    assert fitted(columns, code, stop=patient).pooling is not None
    last = patient.asked
    for n in (0, last // 2, last - 1):
        fit = fitted(columns, code, stop=Patience(n))
        assert fit.pooling is None
        assert np.all(np.isfinite(fit.probabilities(columns)))


def test_without_labels_or_averaging_nothing_predicts_beside(seed: int) -> None:
    columns, code = tasks(8, seed, same=True)
    assert fitted(columns, np.full(code.size, np.nan)).pooling is None
    assert fitted(columns, code, IqgmeConfig(**vars(BRIEF) | {"average": False})).pooling is None


def test_the_number_of_threads_does_not_matter(seed: int) -> None:
    columns, code = tasks(8, seed, same=False)
    one = fitted(columns, code, chains=2)
    with ThreadPoolExecutor(3) as pool:
        three = fitted(columns, code, chains=2, pool=pool)
        assert np.array_equal(one.probabilities(columns), three.probabilities(columns, pool))
