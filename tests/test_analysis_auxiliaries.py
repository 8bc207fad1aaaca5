"""Columns outside a formula that tell of its response: their laws given it, and the draws."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import norm

from glfm_cli import impute
from glfm_cli.completion import prepare
from glfm_cli.completion.analysis import walk as walk_module
from glfm_cli.completion.analysis.auxiliaries import auxiliaries
from glfm_cli.completion.analysis.counts import FAMILIES
from glfm_cli.completion.analysis.families import Linear, RegressionDraw, Seen, wide
from glfm_cli.completion.analysis.nominal import Nominal
from glfm_cli.completion.analysis.reading import read_regression
from glfm_cli.completion.analysis.versions import Compatible
from glfm_cli.completion.analysis.walk import Law, Walk
from glfm_cli.streams import Streams

PLAIN = {"max_features": 0, "initial_features": 0, "components": 0, "rank_kurtosis": 0.0}
SHORT: dict[str, Any] = {"chains": 2, "warmup": 5, "draws": 2, "threads": 1, "model": "glfm"}


def hidden(x: Any, where: Any) -> pa.Array:
    return pa.array(np.where(where, np.nan, x), from_pandas=True)


def test_each_has_a_law_of_its_kind_given_all_before_it() -> None:
    rng = np.random.default_rng(0)
    n = 120
    z = rng.standard_normal(n)
    row = np.arange(n)
    table = {
        "y": z + rng.standard_normal(n),
        "x": z,
        "skewed": hidden(np.exp(2.0 * rng.standard_normal(n)), row < 9),
        "count": hidden(rng.poisson(2.0, n), row < 5),
        "grade": pa.array([None if i < 7 else "abc"[i % 3] for i in row]),
        "sex": pa.array([None if i < 3 else "mf"[i % 2] for i in row]),
        "city": np.array(["k", "l", "m"])[row % 3],
        "other": np.arange(n) % 7 + 0.5,
        "atom": np.maximum(z, 0.0),
    }
    types = {"y": "real", "x": "real", "skewed": "positive", "count": "count", "sex": "categorical"}
    types |= {"city": "categorical", "other": "real", "atom": "real"}
    grade = {"type": "ordinal", "levels": ["a", "b", "c"]}
    problem, data, _ = prepare(pa.table(table), {"columns": types | {"grade": grade}})
    regression = read_regression("y ~ I(x^2)", data.columns)
    names = ("skewed", "grade", "city", "atom", "count", "sex")
    found, left = auxiliaries(regression, data, names, problem.link_config)
    assert left == ("atom",)
    assert [one.target for one in found] == ["city", "sex", "count", "grade", "skewed"]
    laws = ["logistic", "poisson", "linear", "linear"]
    assert [one.family for one in found] == [Nominal(3), *(FAMILIES[name] for name in laws)]
    assert found[4].response.text == "log(`skewed`)"
    assert found[3].ends == pytest.approx((-0.5, 2.5))
    assert found[4].names == ("x", "y", "other", "city", "sex", "count", "grade")
    assert found[0].names == ("x", "y", "other")
    xs = {one.column.name: np.nan_to_num(one.x) for one in data.columns}
    law = Law(found[3], within=True)
    law.draw(xs, rng)
    law.fill(xs, rng)
    assert set(xs["grade"][:7]) <= {0.0, 1.0, 2.0}
    for n, name in ((14, "skewed"), (50, "city")):
        few = {name: pa.array(column)[:n] for name, column in table.items()}
        _, data, _ = prepare(pa.table(few), {"columns": types | {"grade": grade}})
        regression = read_regression("y ~ I(x^2)", data.columns)
        assert auxiliaries(regression, data, (name,), problem.link_config) == ((), (name,))


class Given(Linear):
    """A regression whose coefficients are known."""

    def __init__(self, b: list[float], s2: float) -> None:
        self.known = RegressionDraw(np.array(b), s2)

    def draw(self, *_: Any) -> RegressionDraw:
        return self.known


def test_missing_response_and_covariate_have_their_law_given_an_auxiliary(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """y ~ N(3 x, 1/4) and a ~ N(2 y, 1/2): all that is missing is normal given a."""
    monkeypatch.setattr(walk_module, "TRIES", 80)
    x = np.random.default_rng(0).standard_normal(1000)
    y, a, gone = 3.0 * x, np.full(1000, 2.0), np.arange(1000) >= 50
    table = pa.table({"x": hidden(x, gone), "y": hidden(y, gone), "a": a})
    types = {"columns": dict.fromkeys("xya", "real")}
    problem, data, _ = prepare(table, types, settings=PLAIN)
    of = Compatible.of("y ~ x", data, problem, (problem.config, problem.link_config), 3)
    (other,) = auxiliaries(of.regression, data, ("a",), problem.link_config)[0]
    assert other.names == ("x", "y")
    laws = [
        replace(of.regression, family=Given([0.0, 3.0], 0.25)),
        replace(other, family=Given([0.0, 0.0, 2.0], 0.5)),
    ]
    link = problem.links[0]
    alone = replace(problem, links=problem.links[:1], xs=problem.xs[:1])
    walk = Walk(laws, alone, ["x"], {"x": x.copy(), "y": y.copy(), "a": a}, Streams(1, 0))
    walk.sweep(adapt=False)
    eta = walk.chain.eta[0, 0]
    m, above = link.margin.to_value(np.array([eta, eta + 1.0]))
    of_x = walk.chain.state.noise[0] * (above - m) ** 2
    of_y = 9.0 * of_x + 0.25
    gain = (2.0 - 6.0 * m) / (4.0 * of_y + 0.5)
    for name, cov, mean, variance in (("x", 6.0 * of_x, m, of_x), ("y", 2.0 * of_y, 3 * m, of_y)):
        left = variance - cov**2 / (4.0 * of_y + 0.5)
        drawn = walk.xs[name][50:]
        assert abs(drawn.mean() - mean - cov * gain) < 4 * np.sqrt(left / drawn.size)
        assert drawn.std() == pytest.approx(np.sqrt(left), rel=0.1)
    # The next sweep of the model of x is given what was drawn.
    assert walk.chain.cells.y[:, 0] == pytest.approx(link.margin.to_latent(walk.xs["x"]))


def test_a_version_for_which_a_regressor_has_no_value_is_impossible() -> None:
    """As of a logarithm below 0; a row of which the response or x is never known says nothing."""
    y = [1.0, 1.2, None, 0.3, 0.8, 2.0]
    table = pa.table({"y": y, "x": [1.0, None, None, 2.0, 0.5, 0.9]})
    _, data, _ = prepare(table, {"columns": dict.fromkeys("yx", "real")}, settings=PLAIN)
    law = Law(read_regression("y ~ log(x)", data.columns), within=False)
    law.at = RegressionDraw(np.array([1.0, 0.5]), 2.0)
    y_n = np.array([1.0, 1.2, 0.7, 0.3, 0.8, 2.0])
    for x_n, expected in ((-0.2, -np.inf), (np.nan, 0.0), (np.e, norm.logpdf(1.2, 1.5, 2**0.5))):
        found = law.log_density({"y": y_n, "x": np.array([1.0, x_n, -1.0, 2.0, 0.5, 0.9])})
        assert found[:3] == pytest.approx([norm.logpdf(1.0, 1.0, 2**0.5), expected, 0.0])


def test_the_prior_of_coefficients_is_that_of_observed_columns_whatever_is_drawn() -> None:
    table = pa.table({"y": np.arange(6.0), "x": [1.0, None, None, 2.0, 0.5, 0.9]})
    _, data, _ = prepare(table, {"columns": dict.fromkeys("yx", "real")}, settings=PLAIN)
    priors = []

    class Noted(Linear):
        def draw(self, seen: Seen, last: Any, rng: np.random.Generator) -> RegressionDraw:
            priors.append(seen.prior)
            return super().draw(seen, last, rng)

    law = Law(replace(read_regression("y ~ x", data.columns), family=Noted()), within=False)
    for x in (0.0, 70.0):
        xs = {"y": np.arange(6.0), "x": np.array([1.0, x, -x, 2.0, 0.5, 0.9])}
        law.draw(xs, np.random.default_rng(0))
    seen = np.array([1.0, 2.0, 0.5, 0.9])
    expected = np.outer([1.0, seen.mean()], [1.0, seen.mean()]) + np.diag([0.0, seen.var()])
    for prior in priors:
        np.testing.assert_allclose(prior, expected)


def test_coefficients_are_drawn_by_missing_responses_that_lie_inside() -> None:
    """Against draws weighed by what lies inside, of which a part of the law does not."""
    y = np.append([0.3, 1.2, 0.1, 0.8, 1.9, 0.4, 0.7, 0.2], [0.5, 0.1, 0.9, 1.4])
    table = pa.table({"y": hidden(y, np.arange(12) >= 8), "x": np.tile([0.0, 1.0], 6)})
    types = {"columns": {"y": "positive", "x": "real"}}
    _, data, _ = prepare(table, types)
    law, rng = Law(read_regression("y ~ x", data.columns), within=True), np.random.default_rng(1)
    xs = {"y": y, "x": np.tile([0.0, 1.0], 6)}
    draws = [law.draw(xs, rng) for _ in range(8_000)][100:]
    found = np.array([[*at.b, np.log(at.s2)] for at in draws])
    X = np.column_stack([np.ones(12), xs["x"]])
    free = Linear()
    seen = Seen(y, X, wide(X))
    plain = [free.draw(seen, None, rng) for _ in range(12_000)]
    inside = [np.prod(free.inside(X[8:], at, (0.0, np.inf))) for at in plain]
    w = 1.0 / np.array(inside)
    each = np.array([[*at.b, np.log(at.s2)] for at in plain])
    expected = np.average(each, axis=0, weights=w)
    sd = np.sqrt(np.average((each - expected) ** 2, axis=0, weights=w))
    assert np.all(np.abs(found.mean(axis=0) - expected) < 0.12 * sd)
    assert abs(each.mean(axis=0) - expected).max() > 0.25 * sd.max()


@pytest.mark.parametrize("gone", ["x", "y"])
def test_coefficients_are_not_biased_by_an_auxiliary(gone: str) -> None:
    """A second measurement of the response, by which the first is missing, or x by chance."""
    rng = np.random.default_rng(3)
    n = 300
    x = rng.standard_normal(n)
    y = 1.0 + 0.5 * x + rng.standard_normal(n)
    again = y + 0.5 * rng.standard_normal(n)
    away = rng.random(n) < (0.5 if gone == "x" else 1.0 / (1.0 + np.exp(-2.0 * (again - 1.0))))
    table: dict[str, Any] = {"x": x, "y": y, "again": again}
    table[gone] = hidden(table[gone], away)
    types = {"columns": dict.fromkeys(table, "real")}
    done = impute(pa.table(table), types, settings=PLAIN, **SHORT)
    multiple = done.multiple(8, "y ~ x")
    fits = []
    for one in multiple.tables():
        X = np.column_stack([np.ones(n), one["x"].to_numpy()])
        fits.append(np.linalg.lstsq(X, one["y"].to_numpy(), rcond=None)[0])
    whole = np.linalg.lstsq(np.column_stack([np.ones(n), x]), y, rcond=None)[0]
    assert np.allclose(np.mean(fits, axis=0), whole, atol=0.12)
    assert multiple.warnings == ()
    assert multiple.to_dict()["auxiliaries"] == ["again"]


def test_a_column_without_such_a_law_is_warned_of() -> None:
    rain = np.maximum(np.arange(90) % 3 - 1.0, 0.0)
    y = rain + np.random.default_rng(0).standard_normal(90)
    x = hidden(np.cos(np.arange(90.0)), np.arange(90) < 30)
    types = {"columns": {"x": "real", "y": "real", "rain": "real"}}
    table = pa.table({"x": x, "y": y, "rain": rain * (1.0 + np.arange(90.0) / 90.0)})
    multiple = impute(table, types, settings=PLAIN, **SHORT).multiple(1, "y ~ x")
    (warning,) = multiple.warnings
    assert warning.startswith("'rain' predicts 'y' beyond the formula")
    assert "Name it in the formula, give it `role: ignore`" in warning
