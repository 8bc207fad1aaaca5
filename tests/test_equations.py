"""Cells drawn given a sum or a formula, against laws worked out otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from scipy.integrate import cumulative_trapezoid, trapezoid

from glfm_cli import impute
from glfm_cli.inference.equations import Equations
from glfm_cli.inference.joint_draws import FINE, STEP, Z, _quantiles
from tests.equation_draws import SEEN, N, check_counts, check_distribution, redraw, sums


def test_parts_given_their_sum_are_conditional_normals() -> None:
    rng = np.random.default_rng(1)
    seen = {"a": rng.normal(5, 1, SEEN), "b": rng.normal(2, 3, SEEN), "c": rng.normal(0, 2, SEEN)}
    types = {name: {"type": "real", "transform": "none", "parts_of": "total"} for name in seen}
    types |= {"total": {"type": "real", "transform": "none"}}
    seen["total"] = sum(seen.values())
    found, log_p = redraw(seen, types, dict.fromkeys("abc") | {"total": 15.0}, 0.7, 2)
    grid = np.linspace(-40, 40, 20_001)
    law = []
    for name in "abc":
        p = np.exp(log_p[name](grid))
        mean = trapezoid(grid * p, grid)
        law.append((mean, trapezoid((grid - mean) ** 2 * p, grid)))
    mean, var = np.array(law).T
    x = np.array([found[name] for name in "abc"])
    np.testing.assert_allclose(x.sum(axis=0), 15.0, rtol=1e-12)
    expected = mean + var / var.sum() * (15.0 - mean.sum())
    covariance = np.diag(var) - np.outer(var, var) / var.sum()
    error = np.sqrt(np.diag(covariance) / N)
    assert np.all(np.abs(x.mean(axis=1) - expected) < 4 * error)
    np.testing.assert_allclose(np.cov(x), covariance, atol=0.12 * var.max())
    for d in range(3):
        sd = np.sqrt(covariance[d, d])
        assert stats.kstest(x[d], stats.norm(expected[d], sd).cdf).pvalue > 0.01


def test_positive_parts_given_their_sum() -> None:
    rng = np.random.default_rng(2)
    seen = {"a": np.exp(rng.normal(3, 0.7, SEEN)), "b": np.exp(rng.normal(2, 0.5, SEEN))}
    seen["total"] = seen["a"] + seen["b"]
    found, log_p = redraw(seen, sums("ab", "positive"), {"a": None, "b": None, "total": 35.0}, 1, 3)
    grid = np.linspace(0, 35, 4001)[1:-1]
    check_distribution(found["a"], grid, log_p["a"](grid) + log_p["b"](35.0 - grid))


@pytest.mark.parametrize("name", ["a", "b"])
def test_parts_of_which_one_is_known_to_lie_between_ends(name: str) -> None:
    """Whichever is drawn, and whichever follows."""
    rng = np.random.default_rng(2)
    seen = {"a": np.exp(rng.normal(3, 0.7, SEEN)), "b": np.exp(rng.normal(2, 0.5, SEEN))}
    seen["total"] = seen["a"] + seen["b"]
    row = {"a": None, "b": None, "total": 35.0}
    ends = {"a": (20.0, 30.0)} if name == "a" else {"b": (5.0, 15.0)}
    found, log_p = redraw(seen, sums("ab", "positive"), row, 1, 3, ends)
    grid = np.linspace(20.0, 30.0, 4001)
    check_distribution(found["a"], grid, log_p["a"](grid) + log_p["b"](35.0 - grid))


def test_rows_whose_equation_need_not_hold_stay_as_they_were_drawn() -> None:
    """Others are drawn anew as if they were all there is."""
    rng = np.random.default_rng(2)
    seen = {"a": np.exp(rng.normal(3, 0.7, SEEN)), "b": np.exp(rng.normal(2, 0.5, SEEN))}
    seen["total"] = seen["a"] + seen["b"]
    row, held = {"a": None, "b": None, "total": 35.0}, np.arange(N) % 3 == 1
    found, log_p = redraw(seen, sums("ab", "positive"), row, 1, 3, held=held)
    none, _ = redraw(seen, sums("ab", "positive"), row, 1, 3, held=held & False)
    for name in "ab":
        assert np.array_equal(found[name][~held], none[name][~held])
        assert not np.any(found[name][held] == none[name][held])
    grid = np.linspace(0, 35, 4001)[1:-1]
    check_distribution(found["a"][held], grid, log_p["a"](grid) + log_p["b"](35.0 - grid))
    np.testing.assert_allclose((found["a"] + found["b"])[held], 35.0)
    assert np.mean(np.abs((none["a"] + none["b"]) - 35.0) > 1.0) > 0.8


@pytest.mark.parametrize("scores", [Z, FINE], ids=["usual", "fine"])
@pytest.mark.parametrize("heaped", [False, True])
def test_quantiles_of_many_cells_are_those_of_each(scores: Any, *, heaped: bool) -> None:
    """By a loop: linear between two, but a step where one value has much beside."""
    rng = np.random.default_rng(7)
    size = 10.0 ** rng.uniform(-3, 3, (3000, 1))
    own = np.sort(size * rng.normal(size=(3000, scores.size)), axis=1)
    if heaped:
        own = np.cumsum(rng.random(own.shape) < 1.0 / STEP, axis=1) * size  # runs of any length
    z = np.where(rng.random(3000) < 0.2, rng.choice(scores, 3000), rng.uniform(-3.6, 3.6, 3000))
    found, steps = _quantiles(z, scores, own), 0
    for at, q, x in zip(z, own, found, strict=True):
        k = int(np.clip(np.searchsorted(scores, at, side="right") - 1, 0, scores.size - 2))
        runs = [run for run in (q[: k + 1][-STEP:], q[k + 1 :][:STEP]) if run.size == STEP]
        expected = np.interp(at, scores, q)
        if q[k] < q[k + 1] and any(run[0] == run[-1] for run in runs):
            expected = q[k + int(at >= 0.5 * (scores[k] + scores[k + 1]))]
            steps += 1
        assert x == expected
    assert (steps > 5) == heaped


def test_counts_given_their_sum() -> None:
    rng = np.random.default_rng(3)
    seen = {"a": rng.poisson(4.0, SEEN), "b": rng.poisson(2.0, SEEN)}
    seen["total"] = seen["a"] + seen["b"]
    found, log_p = redraw(seen, sums("ab", "count"), {"a": None, "b": None, "total": 7}, 1.0, 4)
    c = np.arange(8.0)
    p = np.exp(log_p["a"](c) + log_p["b"](7.0 - c))
    times = np.array([np.sum(found["a"] == k) for k in c])
    assert times.sum() == N
    check_counts(times, N * p / p.sum())


def test_parts_that_are_often_zero_given_their_sum() -> None:
    rng = np.random.default_rng(4)
    seen = {name: np.exp(rng.normal(2, 0.6, SEEN)) for name in "ab"}
    seen = {name: np.where(rng.random(SEEN) < 0.4, 0.0, x) for name, x in seen.items()}
    seen["total"] = seen["a"] + seen["b"] + 1.0
    types = sums("ab", "positive")
    found, log_p = redraw(seen, types, {"a": None, "b": None, "total": 9.0}, 1.0, 5)
    grid = np.linspace(0, 9, 4001)[1:-1]
    inside = log_p["a"](grid) + log_p["b"](9.0 - grid)
    ends = np.array([0.0, 9.0])
    faces = np.exp(log_p["a"](ends) + log_p["b"](9.0 - ends))  # a = 0, then b = 0
    mass = np.append(faces, trapezoid(np.exp(inside), grid))
    a = found["a"]
    times = np.array([np.sum(a == 0.0), np.sum(a == 9.0), np.sum((a > 0.0) & (a < 9.0))])
    assert stats.chisquare(times, N * mass / mass.sum()).pvalue > 0.01
    check_distribution(a[(a > 0.0) & (a < 9.0)], grid, inside)


def test_columns_given_a_formula() -> None:
    rng = np.random.default_rng(5)
    seen = {"height": rng.normal(2.0, 0.5, SEEN), "weight": np.exp(rng.normal(4.0, 1.0, SEEN))}
    seen["bmi"] = seen["weight"] / seen["height"] ** 2
    types = {"height": {"type": "real", "transform": "none"}, "weight": "positive"}
    types |= {"bmi": {"type": "positive", "formula": "weight / height ** 2"}}
    found, log_p = redraw(seen, types, {"height": None, "weight": None, "bmi": 21.0}, 1.2, 6)
    np.testing.assert_allclose(found["weight"] / found["height"] ** 2, 21.0, rtol=1e-9)
    grid = np.linspace(0.02, 6.0, 8001)
    # weight = 21 height^2, and d bmi / d weight = 1 / height^2
    log = log_p["height"](grid) + log_p["weight"](21.0 * grid**2) + 2.0 * np.log(grid)
    check_distribution(found["height"], grid, log)


@pytest.mark.parametrize("total", [30.0, 6.0])
def test_parts_of_a_part_are_drawn_given_what_that_is(total: float) -> None:
    rng = np.random.default_rng(6)
    seen = {name: np.exp(rng.normal(1, 0.5, SEEN)) for name in ("a", "b", "c")}
    seen["inner"] = seen["a"] + seen["b"]
    seen["total"] = seen["inner"] + seen["c"]
    types = {n: {"type": "positive", "parts_of": "inner"} for n in ("a", "b")}
    types |= {n: {"type": "positive", "parts_of": "total"} for n in ("inner", "c")}
    types["total"] = "positive"
    found, _ = redraw(seen, types, dict.fromkeys(types) | {"total": total}, 0.8, 7)
    np.testing.assert_allclose(found["inner"] + found["c"], total, rtol=1e-9)
    np.testing.assert_allclose(found["a"] + found["b"], found["inner"], rtol=1e-9)
    assert all(np.all(x > 0.0) for x in found.values())


def test_parts_of_a_missing_sum_are_drawn_until_its_column_can_hold_it() -> None:
    rng = np.random.default_rng(8)
    seen = {"debts": np.exp(rng.normal(0.5, 0.6, SEEN)), "equity": rng.normal(0.5, 2.0, SEEN)}
    seen["assets"] = np.exp(rng.normal(1.0, 0.5, SEEN))
    types: dict[str, Any] = {"debts": {"type": "positive", "parts_of": "assets"}}
    types["equity"] = {"type": "real", "transform": "none", "parts_of": "assets"}
    types["assets"] = "positive"
    found, log_p = redraw(seen, types, dict.fromkeys(types), 1.0, 9)
    np.testing.assert_allclose(found["debts"] + found["equity"], found["assets"], rtol=1e-9)
    assert np.all(found["assets"] > 0.0)
    grid = np.linspace(-8.0, 12.0, 4001)
    debts = np.linspace(0.005, 60.0, 12_000)
    cdf = cumulative_trapezoid(np.exp(log_p["debts"](debts)), debts, initial=0.0)
    beyond = 1.0 - np.interp(-grid, debts, cdf / cdf[-1], left=0.0)
    with np.errstate(divide="ignore"):
        check_distribution(found["equity"], grid, log_p["equity"](grid) + np.log(beyond))
    # Of a row that no draw could explain, a part follows from the sum.
    row = dict.fromkeys(types) | {"equity": -900.0}
    found, _ = redraw(seen, types, row, 1.0, 9)
    np.testing.assert_allclose(found["debts"] - 900.0, found["assets"], rtol=1e-9)
    assert np.all(found["assets"] > 0.0)
    # The same of a formula that falls with the part.
    types = {"debts": {"type": "real", "transform": "none"}, "assets": types["assets"]}
    types["equity"] = {"type": "positive", "formula": "assets - debts"}
    seen = {"debts": rng.normal(50.0, 1.0, SEEN), "assets": np.exp(rng.normal(5.0, 0.2, SEEN))}
    seen["equity"] = seen["assets"] - seen["debts"]
    row = dict.fromkeys(types) | {"assets": 0.001}
    found, _ = redraw(seen, types, row, 0.2, 9)
    np.testing.assert_allclose(0.001 - found["debts"], found["equity"], rtol=1e-9)
    assert np.all(found["equity"] > 0.0)


@pytest.mark.parametrize("as_formula", [False, True])
def test_assets_are_debts_and_equity_in_every_version(as_formula: bool) -> None:
    rng, n = np.random.default_rng(10), 150
    size = rng.normal(0.0, 1.5, n)
    debts, equity = np.exp(size), np.exp(size) * rng.normal(0.6, 1.0, n)
    assets = np.maximum(debts + equity, 0.05 * debts)
    debts = assets - equity
    gone = rng.random(n) < 0.4
    cells = {"size": size} | {
        name: pa.array(x, mask=gone)
        for name, x in {"assets": assets, "debts": debts, "equity": equity}.items()
    }
    part = {} if as_formula else {"parts_of": "assets"}
    formula = {"formula": "assets - debts"} if as_formula else part
    types = {"size": "real", "assets": "positive"}
    types |= {"debts": {"type": "positive"} | part, "equity": {"type": "real"} | formula}
    done = impute(pa.table(cells), {"columns": types}, chains=2, warmup=20, draws=10, seed=1)
    for table in (done.table, *done.multiple(5).tables()):
        whole = {name: table[name].to_numpy() for name in ("assets", "debts", "equity")}
        total = whole["debts"] + whole["equity"]
        np.testing.assert_allclose(whole["assets"], total, rtol=1e-8, atol=1e-8)
        assert whole["assets"].min() > 1e-6
        assert whole["equity"].min() < 0.0
    # The correction of forecasts, which takes each by itself, leaves such parts alone.
    columns = done.data.columns
    moved = Equations(columns, done.posterior.links).moved
    names = [encoded.column.name for encoded in columns]
    apart = {d: rows for d, rows in moved.items() if names[d] in ("debts", "equity")}
    assert apart
    assert all(np.array_equal(rows, gone) for rows in apart.values())
