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
from glfm_cli.completion.analysis.counts import FAMILIES, law_of_counts
from glfm_cli.completion.analysis.families import Linear, RegressionDraw, Seen
from glfm_cli.completion.analysis.formula import Evaluated
from glfm_cli.completion.analysis.reading import read_regression
from glfm_cli.completion.analysis.told import Told
from glfm_cli.errors import UsageError

EVERYWHERE = (-np.inf, np.inf)
SHORT = ["--chains", "2", "--warmup", "2", "--draws", "2", "--threads", "1"]


def read(text: str, table: dict[str, Any], types: dict[str, Any]) -> tuple[Any, Any]:
    _, data, _ = prepare(pa.table(table), {"columns": types})
    return read_regression(text, data.columns), data


# Counts --------------------------------------------------------------------------------------


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
    assert law_of_counts(Seen(y, X, np.ones(2))) is FAMILIES[expected]
    assert law_of_counts(Seen(y[:3], X[:3], np.ones(2))) is FAMILIES["negbin"]


def test_a_formula_may_say_the_law_of_counts() -> None:
    table = {"n": [0, 3, 1, 2, 2, 5], "x": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]}
    types = {"n": "count", "x": "real"}
    chosen = read("n ~ x", table, types)[0]
    assert (chosen.family, chosen.chosen) == (FAMILIES["poisson"], True)
    for word, name in (("normal", "linear"), ("poisson", "poisson"), ("negbin", "negbin")):
        assert read(f"{word}(n) ~ x", table, types)[0].family is FAMILIES[name]
        assert not read(f"{word}(n) ~ x", table, types)[0].chosen
    with pytest.raises(UsageError, match=r"'x' is no column of counts, which poisson\(\) is for"):
        read("poisson(x) ~ n", table, types)


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
        ("y ~ .", "'.' is no column", "Name the columns: 'y ~ x + z'."),
        ("y ~ (x + z)^2", "no column", "Write the products out: (a + b)^2 is 'a * b'"),
        ("y ~ x^2", "no column", "Write a power as I(x^2)."),
        ("y ~ x - 1", "no column", "leave '- 1' or '0' out"),
        ("y ~ 0 + x", "no column", "leave '- 1' or '0' out"),
        ("y ~ x * z - x", "no column", "'a * b - a' is 'b + a:b'"),
        ("y ~ offset(log(z)) + x", "offset", "Take the offset for a regressor instead"),
        ("y ~ poly(x, 2)", "poly", "'x + I(x^2)'"),
        ("y ~ x + strata(z)", "strata", "Take strata for regressors"),
        ("y ~ x + (1 | z)", "no column", "Effects of groups are not part of it"),
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
