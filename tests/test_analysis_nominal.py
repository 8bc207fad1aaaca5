"""Auxiliaries with levels that have no order: their law, its coefficients, and what they mend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import expit

from glfm_cli import impute
from glfm_cli.completion.analysis.families import Logistic, RegressionDraw, Seen, wide
from glfm_cli.completion.analysis.nominal import Nominal

EVERYWHERE = (-np.inf, np.inf)
B = np.array([[-1.0, 0.5], [0.3, -1.0], [0.2, 2.0]])  # (K - 1, p) of four levels


def design(n: int, seed: int) -> np.ndarray:
    return np.column_stack([np.ones(n), np.random.default_rng(seed).standard_normal(n)])


def test_levels_have_the_products_of_their_steps_and_draws_agree() -> None:
    law, at, x = Nominal(4), RegressionDraw(B), np.array([1.0, 0.7])
    X = np.tile(x, (4, 1))
    p = np.exp(law.log_density(np.arange(4.0), X, at))
    a, b, c = expit(B @ x)
    q = 1.0 - a
    assert p == pytest.approx([a, q * b, q * (1 - b) * c, q * (1 - b) * (1 - c)])
    y, outside = law.sample(np.tile(x, (40_000, 1)), at, EVERYWHERE, np.random.default_rng(1))
    drawn = np.bincount(y.astype(int), minlength=4) / y.size
    assert np.all(np.abs(drawn - p) < 4.0 * np.sqrt(p * (1.0 - p) / y.size))
    assert outside == 0.0


def test_two_levels_are_a_logistic_regression_of_the_first() -> None:
    X, rng = design(80, 2), np.random.default_rng(3)
    y = (rng.random(80) < 0.4).astype(float)
    seen = Seen(y, X, wide(X))
    found = Nominal(2).fit(seen).b[0]
    assert found == pytest.approx(-Logistic().fit(seen).b, abs=1e-6)


def test_coefficients_have_their_posterior_by_importance_sampling() -> None:
    law, X = Nominal(3), design(25, 4)
    y, _ = law.sample(X, RegressionDraw(B[:2]), EVERYWHERE, np.random.default_rng(5))
    prior = wide(X)
    seen, rng = Seen(y, X, prior), np.random.default_rng(6)
    draws, last = [], None
    for _ in range(2500):
        last = law.draw(seen, last, rng)
        draws.append(last.b)
    mode = law.fit(seen).b
    spread = 1.3 * np.std(draws, axis=0)
    proposed = mode + spread * rng.standard_t(6, (12_000, 2, 2))
    z = (proposed - mode) / spread
    log_q = np.sum(-3.5 * np.log1p(z**2 / 6.0), axis=(1, 2))
    log_prior = -0.5 * np.einsum("tkp,pq,tkq->t", proposed, prior, proposed) / 10.0**2
    log_p = [law.log_density(y, X, RegressionDraw(b)).sum() for b in proposed]
    log_w = np.array(log_p) + log_prior - log_q
    w = np.exp(log_w - log_w.max())
    w /= w.sum()
    expected = np.einsum("t,tkp->kp", w, proposed)
    sd = np.sqrt(np.einsum("t,tkp->kp", w, (proposed - expected) ** 2))
    assert np.all(np.abs(np.mean(draws, axis=0) - expected) < 0.15 * sd)
    assert np.all(np.abs(np.std(draws, axis=0) / sd - 1.0) < 0.12)


def test_a_level_that_no_row_has_is_left_to_the_prior() -> None:
    X, rng = design(60, 7), np.random.default_rng(8)
    seen = Seen((rng.random(60) < 0.5).astype(float), X, wide(X))
    at, draws = None, []
    for _ in range(400):
        at = Nominal(4).draw(seen, at, rng)
        draws.append(at.b[2])  # among rows of the last two levels
    assert np.isfinite(draws).all()
    sd = np.sqrt(np.diag(np.linalg.inv(seen.prior)))
    assert np.std(draws, axis=0) / sd == pytest.approx(10.0, rel=0.25)


def test_coefficients_are_not_biased_by_a_city_that_tells_of_the_response() -> None:
    """By which its cells are missing: without it the constant is too low."""
    rng, n = np.random.default_rng(3), 300
    x = rng.standard_normal(n)
    y = 1.0 + 0.5 * x + rng.standard_normal(n)
    p = np.exp(np.outer(y - 1.0, [0.0, 1.5, -1.5]))
    city = (rng.random((n, 1)) > np.cumsum(p / p.sum(axis=1, keepdims=True), axis=1)).sum(axis=1)
    away = rng.random(n) < np.array([0.3, 0.85, 0.05])[city]
    table: dict[str, Any] = {"x": x, "y": pa.array(np.where(away, np.nan, y), from_pandas=True)}
    table["city"] = pa.array(np.array(["k", "l", "m"])[city], mask=np.arange(n) % 20 == 0)
    types = {"columns": {"x": "real", "y": "real", "city": "categorical"}}
    plain = {"max_features": 0, "initial_features": 0, "components": 0, "rank_kurtosis": 0.0}
    short: dict[str, Any] = {"chains": 2, "warmup": 5, "draws": 2, "threads": 1, "model": "glfm"}
    multiple = impute(pa.table(table), types, settings=plain, **short).multiple(8, "y ~ x")
    assert multiple.warnings == ()
    assert multiple.to_dict()["auxiliaries"] == ["city"]
    X, fits = np.column_stack([np.ones(n), x]), []
    for one in multiple.tables():
        assert set(one["city"].to_pylist()) == {"k", "l", "m"}
        fits.append(np.linalg.lstsq(X, one["y"].to_numpy(), rcond=None)[0])
    seen = np.linalg.lstsq(X[~away], y[~away], rcond=None)[0]
    whole = np.linalg.lstsq(X, y, rcond=None)[0]
    assert seen[0] < whole[0] - 0.3
    assert np.allclose(np.mean(fits, axis=0), whole, atol=0.15)
