"""Versions for an analysis: how it is read, what is drawn, and that the draws are exact."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from scipy.special import ndtr

from glfm_cli import impute
from glfm_cli.arrays import Array
from glfm_cli.completion import prepare
from glfm_cli.completion.analysis import walk as walk_module
from glfm_cli.completion.analysis.counts import FAMILIES
from glfm_cli.completion.analysis.families import (
    WIDE,
    WIDE_LINEAR,
    Linear,
    RegressionDraw,
    Seen,
    wide,
)
from glfm_cli.completion.analysis.reading import read_regression
from glfm_cli.completion.analysis.versions import Compatible
from glfm_cli.completion.analysis.walk import Walk
from glfm_cli.errors import UsageError
from glfm_cli.streams import Streams

TYPES = {
    "columns": {
        "y": "real",
        "n": "count",
        "x": "positive",
        "ph.ecog": {"type": "ordinal", "levels": ["0", "1", "2"]},
        "size": {"type": "ordinal", "levels": ["low", "mid", "high"]},
        "city": {"type": "categorical", "levels": ["a", "b", "c"]},
        "sex": {"type": "categorical", "levels": ["m", "f"]},
    }
}
TABLE = pa.table(
    {
        "y": [1.0, 2.0, 4.0, 0.5, 3.0, 2.5],
        "n": [0, 3, 1, 2, 2, 5],
        "x": [1.0, 2.0, 3.0, 4.0, None, 6.0],
        "ph.ecog": [0, 1, 2, 1, 0, 2],
        "size": ["low", "mid", "high", "mid", "low", "high"],
        "city": ["a", "b", "c", "a", None, "b"],
        "sex": ["m", "f", "f", "m", "f", "m"],
    }
)


def read(text: str) -> tuple[Any, dict[str, Array]]:
    _, data, _ = prepare(TABLE, TYPES)
    xs = {encoded.column.name: encoded.x for encoded in data.columns}
    return read_regression(text, data.columns), xs


# The formula ---------------------------------------------------------------------------------

X, ECOG = np.array([1.0, 2, 3, 4, np.nan, 6]), np.array([0.0, 1, 2, 1, 0, 2])
F = np.array([0.0, 1, 1, 0, 1, 0])
B, C = np.array([0.0, 1, 0, 0, np.nan, 1]), np.array([0.0, 0, 1, 0, np.nan, 0])
MID, HIGH = np.array([0.0, 1, 0, 1, 0, 0]), np.array([0.0, 0, 1, 0, 0, 1])


@pytest.mark.parametrize(
    ("right", "expected"),
    [
        ("x + sex", [X, F]),
        ("x * sex", [X, F, X * F]),
        ("1 + x:city", [X * B, X * C]),
        ("ph.ecog + log(x)", [ECOG, np.log(X)]),
        ("C(ph.ecog)", [ECOG == 1, ECOG == 2]),
        ("size:factor(`ph.ecog`)", [MID * (ECOG == 1), MID * (ECOG == 2), HIGH * (ECOG == 1),
                                    HIGH * (ECOG == 2)]),
        ("I(x^2) + np.sqrt(x) + x + x", [X**2, np.sqrt(X), X]),
        ('I(sex == "f"):I((x - 2) * ph.ecog)', [F * (X - 2) * ECOG]),
        ("x * ph.ecog * sex", [X, ECOG, F, X * ECOG, X * F, ECOG * F, X * ECOG * F]),
    ],
)  # fmt: skip
def test_regressors_are_those_of_the_formula(right: str, expected: list[Array]) -> None:
    regression, xs = read(f"y ~ {right}")
    assert np.array_equal(
        regression.regressors(xs), np.column_stack([np.ones(6), *expected]), equal_nan=True
    )


@pytest.mark.parametrize(
    ("left", "family", "outcome"),
    [
        ("y", "linear", [1.0, 2.0]),
        ("log(y)", "linear", [0.0, np.log(2.0)]),
        ("n", "poisson", [0.0, 3.0]),
        ("sqrt(n)", "linear", [0.0, np.sqrt(3.0)]),
        ("log1p(n)", "linear", np.log1p([0.0, 3.0]).tolist()),
        ("sex", "logistic", [0.0, 1.0]),
    ],
)
def test_the_law_of_the_response_follows_its_column(
    left: str, family: str, outcome: list[float]
) -> None:
    regression, xs = read(f"{left} ~ x")
    assert regression.family is FAMILIES[family]
    y = regression.outcome(xs[regression.target])
    assert np.allclose(y[:2], outcome)
    assert np.allclose(regression.undone(y), xs[regression.target])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("y", "not one ~"),
        ("y ~ 1", "no regressor"),
        ("y ~ z", "'z' is not a modelled column"),
        ("y ~ x + y", "'y' is on both sides"),
        ("y ~ x - 1", "'x - 1' is not a column"),
        ("y ~ x**2", "'x**2' is not a column"),
        ("y ~ C(x + 1)", "'C(x + 1)' is not a column"),
        ("y ~ poly(x)", "of functions it may have"),
        ("y ~ log(city)", "levels of 'city' are not numbers"),
        ("city ~ x", "'city' has 3 levels, expected two"),
        ("y * n ~ x", "'y * n' is not a column"),
        ("I(y - y) ~ x", "cannot be undone"),
        ("y ~ log(n)", "'log(n)' has no value in 1 row (the first: row 1), though"),
        ("y ~ " + "x*" * 39 + "x", "it crosses 40 factors by *, more than 8"),
        ("log(y - 1) ~ x", "'log(y - 1)' has no value in 2 rows (the first: row 1)"),
    ],
)
def test_what_is_no_regression_of_the_table_is_refused(text: str, expected: str) -> None:
    with pytest.raises(UsageError) as error:
        read(text)
    assert expected in str(error.value)


def test_what_is_not_known_together_with_an_analysis_is_refused() -> None:
    short = {"chains": 1, "warmup": 1, "draws": 1, "threads": 1}
    with pytest.raises(UsageError, match='model="forest" is not'):
        impute(TABLE, TYPES, model="forest", **short).multiple(1, "y ~ x")
    done = impute(TABLE, TYPES, **short)
    with pytest.raises(UsageError, match=r"'log\(n\)' has no value in 1 row \(the first: row 1"):
        done.multiple(1, "log(n) ~ x")
    with pytest.raises(UsageError, match="8 coefficients, and 6 rows"):
        done.multiple(1, "y ~ x * sex * ph.ecog")


def test_versions_of_several_models_are_drawn_with_the_first_that_can_be_swept() -> None:
    length = {"chains": 2, "warmup": 2, "draws": 2, "threads": 1}
    done = impute(TABLE, TYPES, model="auto", **length)
    alone = impute(TABLE, TYPES, model="glfm", **length)
    own, theirs = (
        Compatible.of("y ~ x", one.data, one.posterior, one.configs, 0) for one in (done, alone)
    )
    assert own.problem.model is theirs.problem.model
    assert own.problem.config == theirs.problem.config
    assert len(list(done.multiple(1, "y ~ x").tables())) == 1


def test_a_saved_fit_gives_the_same_versions(tmp_path: Path) -> None:
    """Skewed columns included, which are seen by their logarithm where that is not skewed."""
    rng = np.random.default_rng(0)
    z = rng.standard_normal(40)
    x = np.where(rng.random(40) < 0.3, np.nan, np.exp(1.5 * z))
    table = pa.table({"x": pa.array(x, from_pandas=True), "y": z + rng.standard_normal(40)})
    types = {"columns": {"x": "positive", "y": "real"}}
    short = {"chains": 1, "warmup": 2, "draws": 2, "threads": 1, "save": tmp_path / "a.glfm"}
    done = impute(table, types, **short)
    again = impute(table, fit=tmp_path / "a.glfm", threads=1)
    (one,), (two,) = (list(part.multiple(1, "y ~ log(x)").tables()) for part in (done, again))
    assert one.equals(two)
    compatible = done.multiple(1, "y ~ log(x)").compatible
    assert compatible.problem.links[0].margin.to_latent(x[:2]) == pytest.approx(
        (np.log(x[:2]) - np.nanmean(np.log(x))) / np.nanstd(np.log(x))
    )


# The draws -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["logistic", "poisson"])
def test_coefficients_have_their_posterior(name: str) -> None:
    """On a grid of both coefficients."""
    rng, family = np.random.default_rng(1), FAMILIES[name]
    X, prior = np.column_stack([np.ones(9), np.arange(9.0) / 4]), np.eye(2)
    y = np.array([0.0, 0, 1, 0, 1, 1, 0, 1, 1]) * (1 if name == "logistic" else 2)
    axes = np.meshgrid(np.linspace(-9, 4, 80), np.linspace(-4, 9, 80), indexing="ij")
    grid = np.column_stack([axis.ravel() for axis in axes])
    log_p = [
        family.log_density(y, X, RegressionDraw(b)).sum() - 0.5 * b @ b / WIDE**2 for b in grid
    ]
    p = np.exp(log_p - np.max(log_p))
    p /= p.sum()
    mean = p @ grid
    sd = np.sqrt(p @ (grid - mean) ** 2)
    at, drawn = None, []
    for _ in range(1500):
        at = family.draw(Seen(y, X, prior), at, rng)
        drawn.append(at.b)
    assert np.abs(np.mean(drawn, axis=0) - mean).max() < 0.12 * sd.max()
    assert np.allclose(np.std(drawn, axis=0), sd, rtol=0.1)


@pytest.mark.parametrize("name", ["linear", "logistic", "poisson"])
def test_coefficients_do_not_depend_on_where_covariates_have_their_zero(name: str) -> None:
    """Those of years and of pH are as free as others; only the prior's width tells them apart."""
    rng = np.random.default_rng(1)
    z = rng.standard_normal((60, 2))
    y = (z[:, 0] + rng.standard_normal(60) > 0.0).astype(float)
    near, far = (
        np.column_stack([np.ones(60), z * [0.05, 4.0] + at]) for at in ([0.0, 0.0], [7.4, 2010.0])
    )
    expected, found = (FAMILIES[name].fit(Seen(y, X, wide(X))).b for X in (near, far))
    assert found[1:] == pytest.approx(expected[1:], rel=1e-4)
    assert found @ [1.0, 7.4, 2010.0] == pytest.approx(expected[0], abs=1e-4)
    free = FAMILIES[name].fit(Seen(y, near, 1e-9 * np.eye(3))).b
    assert expected[1:] == pytest.approx(free[1:], rel=0.02)


def test_the_prior_is_as_wide_as_observed_regressors_say() -> None:
    """One deviation of b_j is one of x_j away; the linear predictor at their means has another."""
    X = np.array([[1.0, 1.0, 4.0], [1.0, 3.0, 4.0], [1.0, np.nan, 4.0]])
    of_slopes = np.linalg.inv(wide(X))[1:, 1:]
    assert of_slopes == pytest.approx(np.eye(2))
    at = np.array([1.0, 2.0, 4.0])
    assert at @ np.linalg.inv(wide(X)) @ at == pytest.approx(1.0)
    assert np.linalg.inv(wide(X * [1.0, 3.0, 1.0]))[1, 1] == pytest.approx(1.0 / 9.0)


class Known(Linear):
    """A regression whose coefficients are known: y ~ N(3 x, 0.25)."""

    def draw(self, *_: Any) -> RegressionDraw:
        return RegressionDraw(np.array([0.0, 3.0]), 0.25)


def test_tries_lead_to_the_law_of_a_covariate_given_the_response(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From values that are mostly impossible; each try must know what the last one left."""
    monkeypatch.setattr(walk_module, "TRIES", 80)
    x, y = np.random.default_rng(0).standard_normal(1000), np.full(1000, 2.0)
    table = pa.table({"x": pa.array(np.where(np.arange(1000) < 50, x, np.nan), from_pandas=True),
                      "y": y})  # fmt: skip
    of = walk_of(table, {"x": "real", "y": "real"}, "y ~ x")
    known = replace(of.regression, family=Known())
    walk = Walk([known], of.problem, ["x"], {"x": x.copy(), "y": y}, Streams(1, 0))
    walk.sweep(adapt=False)
    eta = walk.chain.eta[0, 0]
    mean, above = of.problem.links[0].margin.to_value(np.array([eta, eta + 1.0]))
    prior = walk.chain.state.noise[0] * (above - mean) ** 2
    variance = 1.0 / (1.0 / prior + 9.0 / 0.25)
    expected = variance * (mean / prior + 3.0 * 2.0 / 0.25)
    drawn = walk.xs["x"][50:]
    assert abs(drawn.mean() - expected) < 4 * np.sqrt(variance / drawn.size)
    assert drawn.std() == pytest.approx(np.sqrt(variance), rel=0.1)


def walk_of(table: pa.Table, types: dict[str, str], text: str) -> Compatible:
    """Return what versions are drawn with, of a model without features."""
    settings = {"max_features": 0, "initial_features": 0, "components": 0, "rank_kurtosis": 0.0}
    problem, data, _ = prepare(table, {"columns": types}, settings=settings)
    return Compatible.of(text, data, problem, (problem.config, problem.link_config), 3)


def test_missing_covariates_have_the_posterior_of_both_models_together() -> None:
    """Enumerated: a value on a grid and two levels, all parameters integrated out."""
    x = np.array([-1.2, -0.6, -0.1, 0.3, 0.9, 1.6, np.nan, 0.2])
    g = np.array([0.0, 0, 1, 0, 1, 1, 1, 0])
    y = np.array([-1.0, -0.2, 0.7, 0.4, 2.4, 3.6, 3.0, 1.1])
    hidden = [2, 7]
    table = pa.table(
        {
            "x": pa.array(x, from_pandas=True),
            "g": [None if i in hidden else "ab"[int(g[i])] for i in range(8)],
            "y": y,
        }
    )
    of = walk_of(table, {"x": "real", "g": "categorical", "y": "real"}, "y ~ x * g")

    seen = ~np.isnan(x)
    center, scale = x[seen].mean(), x[seen].std()
    grid = np.linspace(-5.0, 5.0, 401)
    prior = stats.multivariate_t(np.zeros(8), 0.25 * (np.eye(8) + 10.0), df=4)
    b = np.linspace(-12, 12, 801)
    known = np.column_stack([np.ones(8), x, g, x * g])
    known[hidden, 2:] = np.nan
    precision = np.diag(np.nanmean(known**2, axis=0)) / WIDE_LINEAR**2
    p = np.empty((2, 2, grid.size))
    for one, two in product((0, 1), repeat=2):
        codes = g.copy()
        codes[hidden] = one, two
        k = codes.sum()
        share = np.sum(ndtr(b) ** k * ndtr(-b) ** (8 - k) * stats.norm.pdf(b, 0, np.sqrt(10.0)))
        for i, value in enumerate(grid):
            whole = np.where(seen, x, value)
            X = np.column_stack([np.ones(8), whole, codes, whole * codes])
            Q = X.T @ X + precision
            mode = np.linalg.solve(Q, X.T @ y)
            rest = np.sum((y - X @ mode) ** 2) + mode @ precision @ mode
            log_p = -0.5 * np.linalg.slogdet(Q)[1] - 0.5 * (8 - 4) * np.log(rest)
            p[one, two, i] = share * prior.pdf((whole - center) / scale) * np.exp(log_p)
    p /= p.sum()

    xs = {"x": np.where(seen, x, 0.0), "g": g.copy(), "y": y}
    walk = Walk([of.regression], of.problem, ["x", "g"], xs, Streams(7, 0))
    drawn = []
    for _ in range(1200):
        walk.sweep(adapt=False)
        drawn.append([walk.xs["g"][2], walk.xs["g"][7], walk.xs["x"][6]])
    found = np.array(drawn)[100:]
    assert np.allclose(found[:, 0].mean(), p[1].sum(), atol=0.04)
    assert np.allclose(found[:, 1].mean(), p[:, 1].sum(), atol=0.04)
    of_x = p.sum(axis=(0, 1))
    mean = of_x @ grid
    sd = np.sqrt(of_x @ (grid - mean) ** 2)
    assert abs(found[:, 2].mean() - mean) < 0.12 * sd
    assert abs(np.mean(found[:, 2] < mean - sd) - of_x[grid < mean - sd].sum()) < 0.04
    assert abs(np.mean(found[:, 2] > mean + sd) - of_x[grid > mean + sd].sum()) < 0.04
