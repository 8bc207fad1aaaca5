"""Counts as the response of an analysis: their laws, and which of these is taken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from glfm_cli.completion import prepare
from glfm_cli.completion.analysis.counts import FAMILIES, law_of_counts
from glfm_cli.completion.analysis.families import RegressionDraw, Seen
from glfm_cli.completion.analysis.reading import read_regression
from glfm_cli.errors import UsageError

EVERYWHERE = (-np.inf, np.inf)


def read(text: str, table: dict[str, Any], types: dict[str, Any]) -> tuple[Any, Any]:
    _, data, _ = prepare(pa.table(table), {"columns": types})
    return read_regression(text, data.columns), data


def test_negative_binomials_have_their_density_and_moments() -> None:
    law, at = FAMILIES["negbin"], RegressionDraw(np.array([1.0, 0.5]), 0.7)
    X = np.column_stack([np.ones(5), np.arange(5.0)])
    mean, r, y = np.exp(X @ at.b), 1.0 / 0.7, np.array([0.0, 1, 7, 30, 2])
    assert np.allclose(law.log_density(y, X, at), stats.nbinom.logpmf(y, r, r / (r + mean)))
    assert np.allclose(law.moments(X, at).variance, stats.nbinom.var(r, r / (r + mean)))
    many = np.repeat(X[:1], 40_000, axis=0)
    drawn, outside = law.sample(many, at, EVERYWHERE, np.random.default_rng(0))
    assert drawn.mean() == pytest.approx(mean[0], rel=0.03)
    assert drawn.var() == pytest.approx(mean[0] + 0.7 * mean[0] ** 2, rel=0.06)
    assert outside == 0.0


def test_coefficient_and_dispersion_of_counts_have_their_posterior() -> None:
    """On a grid of both, the dispersion by its logarithm."""
    rng, law = np.random.default_rng(2), FAMILIES["negbin"]
    y, X = np.array([0.0, 0, 1, 9, 3, 0, 14, 2, 5]), np.ones((9, 1))
    b, t = np.linspace(-1, 5, 121), np.linspace(-8, 6, 141)
    log_p = np.empty((b.size, t.size))
    for j, log_a in enumerate(t):
        a, r = np.exp(log_a), np.exp(-log_a)
        p = r / (r + np.exp(b))
        found = stats.nbinom.logpmf(y[:, None], r, p[None]).sum(axis=0)
        log_p[:, j] = found - 0.5 * b**2 / 100.0 + np.log(a / (1.0 + a) ** 2)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    at, drawn = None, []
    for _ in range(2500):
        at = law.draw(Seen(y, X, np.eye(1)), at, rng)
        drawn.append([at.b[0], np.log(at.s2)])
    for values, grid, weight in zip(np.transpose(drawn), (b, t), (p.sum(1), p.sum(0)), strict=True):
        mean = weight @ grid
        sd = np.sqrt(weight @ (grid - mean) ** 2)
        assert abs(values.mean() - mean) < 0.1 * sd
        assert values.std() == pytest.approx(sd, rel=0.1)


@pytest.mark.parametrize(
    ("law", "expected"),
    [
        (lambda rng, mean: rng.poisson(mean), "poisson"),
        (lambda rng, mean: rng.poisson(mean * rng.gamma(1.0, 1.0, mean.size)), "negbin"),
        (lambda rng, mean: rng.poisson(mean / 60.0), "poisson"),  # rare events
        (lambda rng, mean: rng.poisson(mean / 300.0), "poisson"),
        (lambda rng, mean: rng.binomial(6, mean / 16.0), "linear"),
        (lambda rng, mean: np.full(mean.size, 3), "linear"),
        (lambda rng, mean: np.rint(rng.normal(120 + mean, 18.0)), "linear"),
    ],
)
def test_the_law_of_counts_is_the_one_that_fits_them(law: Any, expected: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(300)
    y = law(rng, np.exp(1.5 + 0.3 * x)).astype(float)
    X = np.column_stack([np.ones(300), x])
    assert law_of_counts(Seen(y, X, np.eye(2))) is FAMILIES[expected]
    assert law_of_counts(Seen(y[:3], X[:3], np.eye(2))) is FAMILIES["negbin"]


def test_a_formula_may_say_the_law_of_counts() -> None:
    table = {"n": [0, 3, 1, 2, 2, 5], "x": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]}
    types = {"n": "count", "x": "real"}
    chosen = read("n ~ x", table, types)[0]
    assert (chosen.family, chosen.chosen) == (FAMILIES["poisson"], True)
    for word, name in (("normal", "linear"), ("poisson", "poisson"), ("negbin", "negbin")):
        assert read(f"{word}(n) ~ x", table, types)[0].family is FAMILIES[name]
        assert not read(f"{word}(n) ~ x", table, types)[0].chosen
    with pytest.raises(UsageError, match=r"'x' is not a column of counts, which"):
        read("poisson(x) ~ n", table, types)
