"""Scores of probabilities of labels, each against its definition written out."""

from __future__ import annotations

import numpy as np
import pytest

from glfm_cli.classification.baselines import fill
from glfm_cli.classification.bayesian_ridge import BayesianRidge
from glfm_cli.classification.scores import all_scores


def test_scores_are_those_of_pairs_and_rows_written_out() -> None:
    rng = np.random.default_rng(0)
    p = np.round(rng.dirichlet(np.ones(3), 40), 1)  # with ties
    p[:, 2] = 1.0 - p[:, 0] - p[:, 1]
    code = rng.integers(3, size=40)
    areas = []
    for level in range(3):
        own, rest = p[code == level, level], p[code != level, level]
        above = own[:, None] - rest
        areas.append(np.mean((above > 1e-12) + 0.5 * (np.abs(above) <= 1e-12)))
    found = all_scores(code.astype(float), np.round(p, 12))
    assert found["auc"] == pytest.approx(np.mean(areas))
    assert found["accuracy"] == np.mean([row.argmax() == k for row, k in zip(p, code, strict=True)])
    given = np.array([row[k] for row, k in zip(p, code, strict=True)])
    assert found["log_score"] == pytest.approx(np.mean(np.log(np.maximum(given, 1e-15))))
    hit = np.eye(3)[code]
    assert found["brier"] == pytest.approx(np.mean(np.sum((p - hit) ** 2, axis=1)))


def test_a_label_that_is_always_told_apart_has_an_area_of_one() -> None:
    p = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]])
    assert all_scores(np.array([0.0, 0.0, 1.0]), p)["auc"] == 1.0
    assert np.isnan(all_scores(np.zeros(3), p)["auc"])


@pytest.mark.parametrize("lacks", ["both", "new rows", "neither"])
def test_features_are_filled_as_by_the_defaults_of_scikit_learn(lacks: str) -> None:
    pytest.importorskip("sklearn.experimental.enable_iterative_imputer")
    from sklearn.impute import IterativeImputer

    rng = np.random.default_rng(4)
    x = rng.standard_normal((120, 3)) @ rng.standard_normal((3, 5))
    x += 0.3 * rng.standard_normal(x.shape)
    x[:90, 0][rng.random(90) < 0.3 * (lacks == "both")] = np.nan
    x[90:, 0][rng.random(30) < 0.3 * (lacks == "both")] = np.nan
    x[100, 3] = np.nan if lacks == "new rows" else x[100, 3]
    usual = IterativeImputer(random_state=2)
    expected = usual.fit_transform(x[:90]), usual.transform(x[90:])
    for found, want in zip(fill(x[:90], x[90:], True, 2), expected, strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("n", [6, 60])
def test_a_ridge_regression_is_that_of_scikit_learn(n: int) -> None:
    linear = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(n)
    x = 2.0 + rng.standard_normal((n, 8))
    x[:, 7] = x[:, 0] - x[:, 1]
    y = x[:, 0] - 0.5 * x[:, 2] + 4.0 + rng.standard_normal(n)
    ours, theirs = (one.fit(x, y) for one in (BayesianRidge(), linear.BayesianRidge()))
    found, want = (one.predict(x + 1.0) for one in (ours, theirs))
    np.testing.assert_allclose(found, want, rtol=1e-9)
