"""Laws of a response in versions for an analysis: what is drawn where, and what is said of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pytest
from scipy import stats

from glfm_cli.arrays import Array
from glfm_cli.completion import prepare
from glfm_cli.completion.analysis.checks import related
from glfm_cli.completion.analysis.counts import FAMILIES
from glfm_cli.completion.analysis.families import (
    WIDE,
    Linear,
    Poisson,
    RegressionDraw,
    Seen,
    wide,
)
from glfm_cli.completion.analysis.formula import Evaluated
from glfm_cli.completion.analysis.reading import read_regression
from glfm_cli.completion.analysis.survival import ProportionalHazards
from glfm_cli.completion.analysis.told import Told
from glfm_cli.errors import UsageError

EVERYWHERE = (-np.inf, np.inf)
SHORT = ["--chains", "2", "--warmup", "2", "--draws", "2", "--threads", "1"]


def read(text: str, table: dict[str, Any], types: dict[str, Any]) -> tuple[Any, Any]:
    _, data, _ = prepare(pa.table(table), {"columns": types})
    return read_regression(text, data.columns), data


# What a column can hold ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "kind", "expected"),
    [
        ("y", "real", EVERYWHERE),
        ("y", "positive", (0.0, np.inf)),
        ("y", {"type": "positive", "bounds": [0.5, 8]}, (0.5, 8.0)),
        ("log(y)", "positive", EVERYWHERE),
        ("log(y)", {"type": "positive", "bounds": [None, 8]}, (-np.inf, np.log(8.0))),
        ("sqrt(y)", "real", (0.0, np.inf)),
        ("I(1 / y)", {"type": "positive", "bounds": [None, 8]}, (1 / 8, np.inf)),
        ("I(-y)", "positive", (-np.inf, 0.0)),
        ("normal(n)", {"type": "count", "bounds": [1, 8]}, (0.5, 8.5)),
        ("log1p(n)", {"type": "count", "bounds": [0, 8]}, (np.log(0.5), np.log(9.5))),
        ("log(n)", {"type": "count", "bounds": [0, 8]}, (np.log(0.5), np.log(8.5))),
    ],
)
def test_outcomes_end_where_the_column_does(left: str, kind: Any, expected: Any) -> None:
    table = {"y": [1.0, 2.5, 4, 7], "n": [1, 2, 4, 7], "x": [1.0, 2.5, 3, 4]}
    types = {"y": "real", "n": "count", "x": "real"} | {"n" if "n" in left[-3:] else "y": kind}
    ends = read(f"{left} ~ x", table, types)[0].ends
    assert ends == pytest.approx(expected)


def test_normal_draws_have_their_law_inside_the_ends() -> None:
    X, at = np.ones((20_000, 1)), RegressionDraw(np.array([1.0]), 4.0)
    drawn, outside = Linear().sample(X, at, (0.0, 4.0), np.random.default_rng(0))
    law = stats.truncnorm(-0.5, 1.5, 1.0, 2.0)
    assert stats.kstest(drawn, law.cdf).pvalue > 0.01
    assert outside == pytest.approx(stats.norm.cdf(-0.5) + stats.norm.sf(1.5))


def test_what_of_the_law_of_counts_lies_between_two_ends() -> None:
    X, b, a = np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([0.4, 0.9]), 0.7
    mean = np.exp(X @ b)
    poisson, negbin = stats.poisson(mean), stats.nbinom(1.0 / a, 1.0 / (1.0 + a * mean))
    for ends, of in (((-0.5, 4.5), (0, 4)), ((1.5, np.inf), (2, np.inf)), ((-0.5, np.inf), None)):
        for name, law in (("poisson", poisson), ("negbin", negbin)):
            found = FAMILIES[name].inside(X, RegressionDraw(b, a), ends)
            expected = 1.0 if of is None else law.cdf(of[1]) - law.cdf(of[0] - 1)
            assert found == pytest.approx(expected), (name, ends)


def test_counts_outside_their_bounds_are_drawn_again() -> None:
    X, at = np.ones((5000, 1)), RegressionDraw(np.log([4.0]))
    drawn, outside = FAMILIES["poisson"].sample(X, at, (1.5, 6.5), np.random.default_rng(0))
    shares = np.bincount(drawn.astype(int), minlength=7)[2:] / 5000
    expected = stats.poisson.pmf(np.arange(2, 7), 4.0)
    assert np.allclose(shares, expected / expected.sum(), atol=0.03)
    assert outside == pytest.approx(1.0 - expected.sum(), abs=0.03)


def test_missing_positive_responses_are_drawn_above_0_and_a_warning_says_how_many(
    glfm: Callable[..., Any], tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(60)
    y = np.exp(x + rng.standard_normal(60))
    hidden = np.where(np.arange(60) < 20, np.nan, y)
    pc.write_csv(pa.table({"y": pa.array(hidden, from_pandas=True), "x": x}), tmp_path / "t.csv")
    (tmp_path / "t.yaml").write_text("columns: {y: positive, x: real}\n")
    asked = ["impute", "t.csv", "--types", "t.yaml", *SHORT, "--multiple", "3", "-o", "m.csv"]
    done = glfm(*asked, "--analysis", "y ~ x", "--json")
    assert done.returncode == 0, done.stderr
    drawn = pc.read_csv(tmp_path / "m.csv").filter(pa.compute.field(".imp") > 0)["y"].to_numpy()
    assert drawn.min() > 1e-6
    (warning,) = [line for line in done.stderr.splitlines() if "not normal" in line]
    assert "% of the law of missing 'y' lay outside the values that it can have" in warning
    assert warning.endswith("analyse log(y) ~ ...")
    assert json.loads(done.stdout)["multiple"]["law"] == "normal errors"
    said = glfm(*asked, "--analysis", "log(y) ~ x").stderr
    assert "not normal" not in said
    assert "For 'log(y) ~ x' with normal errors; coefficients had settled after 60 sweeps" in said
    assert "Good:" not in said


# What is refused, and what is warned of -------------------------------------------------------


def test_missing_responses_with_an_atom_are_refused(
    glfm: Callable[..., Any], tmp_path: Path
) -> None:
    rows = "".join(f"{'' if i < 4 else 0 if i % 2 else i},{i}.5\n" for i in range(60))
    (tmp_path / "t.csv").write_text("y,x\n" + rows)
    (tmp_path / "t.yaml").write_text("columns: {y: positive, x: real}\n")
    asked = ["impute", "t.csv", "--types", "t.yaml", *SHORT, "--multiple", "2", "-o", "m.csv"]
    done = glfm(*asked, "--analysis", "y ~ x")
    assert done.returncode == 2
    assert "many cells of 'y' are 0 exactly, and the errors of a regression never" in done.stderr
    assert "Hint: Make two columns of it" in done.stderr
    assert not (tmp_path / "m.csv").exists()


@pytest.mark.parametrize(
    ("text", "problem", "hint"),
    [
        ("y ~ C(x)", "'x' is real: C() needs a column of few levels", "Take 'x' as it is, or"),
        ("y ~ .", "'.' is not a column", "Name the columns: 'y ~ x + z'."),
        ("y ~ (x + z)^2", "is not a column", "Write the products out: (a + b)^2 is 'a * b'"),
        ("y ~ x^2", "is not a column", "Write a power as I(x^2)."),
        ("y ~ x - 1", "is not a column", "leave '- 1' or '0' out"),
        ("y ~ 0 + x", "is not a column", "leave '- 1' or '0' out"),
        ("y ~ x * z - x", "is not a column", "'a * b - a' is 'b + a:b'"),
        ("y ~ offset(log(z)) + x", "offset", "Use the offset as a regressor instead"),
        ("y ~ poly(x, 2)", "poly", "'x + I(x^2)'"),
        ("y ~ x + strata(z)", "strata", "Use strata as regressors"),
        ("y ~ x + (1 | z)", "is not a column", "Random effects are not supported"),
    ],
)
def test_what_other_programs_take_is_refused_with_what_to_write_instead(
    text: str, problem: str, hint: str
) -> None:
    values = {name: [1.0, 2.5, 4.0, 7.0] for name in "yxz"}
    with pytest.raises(UsageError) as error:
        read(text, values, dict.fromkeys("yxz", "real"))
    assert problem in error.value.message()
    assert hint in (error.value.hint or "")


def columns_beside(n: int, seed: int) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    x, g = rng.standard_normal(n), rng.integers(3, size=n)
    y = x + rng.standard_normal(n) + 1.0 * (g == 2)
    again = np.exp(y + 0.5 * rng.standard_normal(n))
    of_x = x + 0.1 * rng.standard_normal(n)
    return {"y": y, "x": x, "again": again, "of_x": of_x, "g": np.array(list("abc"))[g]}


@pytest.mark.parametrize(
    ("left", "outcome"),
    [
        ("y", lambda y: y),
        ("n", lambda y: np.random.default_rng(1).poisson(np.exp(1.0 + 0.6 * y))),
        ("s", lambda y: np.where(y > 0.7 * np.random.default_rng(1).logistic(size=400), "t", "f")),
    ],
)
def test_a_column_that_tells_of_the_response_beyond_the_formula_is_found(
    left: str, outcome: Any
) -> None:
    table: dict[str, Any] = columns_beside(400, 0)
    types = {"x": "real", "again": "positive", "of_x": "real", "g": "categorical"}
    types[left] = {"y": "real", "n": "count", "s": "categorical"}[left]
    table[left] = outcome(table.pop("y"))
    table["x"] = pa.array(np.where(np.arange(400) < 90, np.nan, table["x"]), from_pandas=True)
    assert related(*read(f"{left} ~ x", table, types)) == ("again", "g")
    assert related(*read(f"{left} ~ x + log(again) + g", table, types)) == ()
    whole = read(f"{left} ~ of_x", table, types)
    assert related(*whole) == ()  # nothing is missing there


def test_a_column_is_asked_what_it_tells_beside_the_regressors() -> None:
    table: dict[str, Any] = columns_beside(400, 0)
    table["mixed"] = 20.0 * table["x"] + table["y"]
    table = {name: table[name] for name in ("y", "x", "mixed")}
    table["y"] = pa.array(np.where(np.arange(400) < 90, np.nan, table["y"]), from_pandas=True)
    assert related(*read("y ~ x", table, dict.fromkeys(table, "real"))) == ("mixed",)


def test_columns_that_chance_relates_are_not_warned_of() -> None:
    named = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        table: dict[str, Any] = {f"z{k}": rng.standard_normal(80) for k in range(8)}
        table["y"] = np.where(np.arange(80) < 9, np.nan, rng.standard_normal(80))
        table["y"] = pa.array(table["y"], from_pandas=True)
        named += bool(related(*read("y ~ z0", table, dict.fromkeys(table, "real"))))
    assert named <= 2


def test_regressors_are_made_anew_of_other_arrays_and_of_changed_ones() -> None:
    table = {"y": np.zeros(3), "a": np.arange(3.0), "b": np.ones(3)}
    formula, data = read("y ~ a * log(b)", table, dict.fromkeys("yab", "real"))
    xs, held = {one.column.name: one.x.copy() for one in data.columns}, Evaluated()
    first = formula.regressors(xs, held)
    assert formula.regressors(dict(xs), held) is first
    xs["b"] = xs["b"] * np.e
    assert formula.regressors(xs, held)[:, 2] == pytest.approx(1.0)
    xs["a"][:] = 5.0
    held.forget({"a"})
    assert formula.regressors(xs, held).tolist() == formula.regressors(xs).tolist()
    assert first[:, 1].tolist() == [0.0, 1.0, 2.0]


def test_two_hundredths_outside_and_a_fifth_of_a_deviation_are_the_limits() -> None:
    near, far = Told(outside={0: 0.03, 1: 0.009}), Told(outside={0: 0.03, 1: 0.013})
    assert (near.too_far, far.too_far) == (None, pytest.approx(0.0215))
    rng = np.random.default_rng(2)
    noise = rng.standard_normal((60, 300, 1))
    for moved, settled in ((0.15, True), (0.25, False)):
        told = Told(dict(enumerate(noise + moved * (np.arange(300) >= 200)[:, None])))
        assert told.drift == pytest.approx(moved, abs=0.03)
        assert told.settled == settled


def test_coefficients_that_still_move_are_told_from_noise() -> None:
    noise = np.random.default_rng(0).standard_normal((20, 60, 3))
    noise[:, :20, 0] += 5.0  # of the beginning, which is over
    moving = noise.copy()
    moving[:, 40:, 1] += 1.0
    still, moved = (Told(dict(enumerate(traces))) for traces in (noise, moving))
    assert still.drift == 0.0
    assert still.settled
    assert moved.drift == pytest.approx(1.0, abs=0.15)
    assert not moved.settled
    assert Told(dict(enumerate(moving[:2]))).drift is None
    assert replace(moved, traces=dict(enumerate(np.cumsum(noise, axis=1)))).settled


@pytest.mark.parametrize("number", [125, 254, 282])
def test_counts_of_far_regressors_are_fitted_where_they_are_likeliest(number: int) -> None:
    """Whole steps of Newton's leave the range of doubles and do not come back."""
    rng = np.random.default_rng(number)
    X = np.hstack([np.ones((30, 1)), 10.0 * rng.normal(size=(30, 2))])
    y = rng.poisson(np.exp(np.minimum(X[:, 1:] @ [0.3, 0.3], 8.0))).astype(float)
    prior = wide(X)
    b = Poisson().mode(Seen(y, X, prior))
    slope = X.T @ (y - np.exp(X @ b)) - prior @ b / WIDE**2
    assert np.abs(slope).max() < 1e-3


@pytest.mark.parametrize("number", [1, 2, 3])
def test_few_times_of_many_regressors_are_fitted(number: int) -> None:
    """As of rows in which most of the regressors are missing."""
    rng = np.random.default_rng(number)
    X = np.hstack([np.ones((12, 1)), 5.0 * rng.normal(size=(12, 6))])
    t = rng.exponential(size=12) * np.exp(-np.minimum(X[:, 1:] @ np.ones(6), 20.0))
    y = np.where(rng.random(12) < 0.8, t, -t)
    fitted = ProportionalHazards.of(y).fit(Seen(y, X, wide(X)))
    assert np.isfinite(fitted.b).all()
