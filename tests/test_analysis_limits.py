"""Versions for an analysis beside columns with intervals or conditions: what is drawn, and when."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from glfm_cli import impute
from glfm_cli.completion import prepare
from glfm_cli.completion.analysis import walk as walk_module
from glfm_cli.completion.analysis.auxiliaries import auxiliaries, logarithm_of
from glfm_cli.completion.analysis.checks import related
from glfm_cli.completion.analysis.families import Linear, RegressionDraw
from glfm_cli.completion.analysis.limits import Limits
from glfm_cli.completion.analysis.reading import read_regression
from glfm_cli.completion.analysis.versions import Compatible
from glfm_cli.completion.analysis.walk import Walk
from glfm_cli.streams import Streams
from tests.cli.conftest import check_analysis_refused

PLAIN = {"max_features": 0, "initial_features": 0, "components": 0, "rank_kurtosis": 0.0}
SHORT: dict[str, Any] = {"chains": 2, "warmup": 5, "draws": 2, "threads": 1, "model": "glfm"}
WORK = {"type": "categorical", "levels": ["no", "part", "full"]}
HOURS = {"type": "real", "only_if": 'work in ["part", "full"]'}


class Given(Linear):
    """A regression whose coefficients are known."""

    def __init__(self, b: list[float], s2: float) -> None:
        self.known = RegressionDraw(np.array(b), s2)

    def draw(self, *_: Any) -> RegressionDraw:
        return self.known


def walk_of(table: pa.Table, types: dict[str, Any], text: str, law: Linear) -> Walk:
    """Return a walk of a model without features, its regression known."""
    problem, data, _ = prepare(table, {"columns": types}, settings=PLAIN)
    of = Compatible.of(text, data, problem, (problem.config, problem.link_config), 3)
    object.__setattr__(of.regression, "family", law)
    names = [one.column.name for one in data.columns if one.column.name != of.regression.target]
    xs = {one.column.name: np.where(one.observed, one.x, 0.0) for one in data.columns}
    limits = Limits.of(data, [of.regression])
    for name, ends in limits.ends.items():  # any start inside
        cells = [one.requested & ~one.observed for one in data.columns if one.column.name == name]
        xs[name][cells[0]] = np.where(np.isnan(ends[:, 0]), 0.0, np.maximum(ends[:, 0], -9.0))
    return Walk([of.regression], of.problem, names, xs, Streams(1, 0), limits)


def test_a_covariate_between_two_numbers_has_its_law_given_the_response_inside_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those that are missing altogether have it without ends."""
    monkeypatch.setattr(walk_module, "TRIES", 60)
    row = np.arange(2000)
    values = np.random.default_rng(0).standard_normal(2000).round(4).astype(str)
    x = np.where(row < 1000, values, np.where(row < 1500, "0.4 to 3", ""))
    table = pa.table({"x": x, "y": np.where(row < 1000, 0.0, 0.5)})
    types = {"x": {"type": "real", "impute": "censored"}, "y": "real"}
    walk = walk_of(table, types, "y ~ x", Given([0.0, 1.0], 0.25))
    walk.sweep(adapt=False)
    eta = walk.chain.eta[0, 0]
    mean, above = walk.chain.problem.links[0].margin.to_value(np.array([eta, eta + 1.0]))
    prior = walk.chain.state.noise[0] * (above - mean) ** 2
    variance = 1.0 / (1.0 / prior + 1.0 / 0.25)
    m, sd = variance * (mean / prior + 0.5 / 0.25), np.sqrt(variance)
    inside = stats.truncnorm((0.4 - m) / sd, (3.0 - m) / sd, m, sd)
    for which, law in ((row[1000:1500], inside), (row[1500:], stats.norm(m, sd))):
        assert stats.kstest(walk.xs["x"][which], law.cdf).pvalue > 0.01


def test_the_model_sees_columns_beside_the_walk_as_they_are() -> None:
    x = ["<0.5", "1.5", "", "2.5", "3.5", "0.7"] * 5
    table = pa.table({"x": x, "z": np.arange(30.0), "y": np.arange(30.0) ** 0.5})
    types = {"x": {"type": "real", "impute": "censored"}, "z": "real", "y": "real"}
    walk = walk_of(table, types, "y ~ z", Given([0.0, 1.0], 1.0))
    for _ in range(3):
        walk.sweep(adapt=False)
    seen = walk.chain.problem.xs[0]
    assert np.array_equal(seen[:3], [[-np.inf, 0.5], [1.5, 1.5], [np.nan, np.nan]], equal_nan=True)
    assert walk.chain.cells.observed[:3, 0].tolist() == [1, 1, 0]
    walk.fill()
    x = walk.xs["x"]
    assert (x[0::6] <= 0.5).all()
    assert len(set(x[2::6])) == 5
    assert (x[1::6] == 1.5).all()


def test_the_model_sees_no_result_of_a_formula_whose_inputs_are_known() -> None:
    rng = np.random.default_rng(0)
    a, x = rng.standard_normal((2, 60))
    table = pa.table({
        "a": a, "sum": a + 1.0, "y": rng.standard_normal(60),
        "x": pa.array(np.where(np.arange(60) % 2 == 0, np.nan, x), from_pandas=True),
    })  # fmt: skip
    types = {"a": "real", "sum": {"type": "real", "formula": "a + 1"}, "y": "real", "x": "real"}
    walk = walk_of(table, types, "y ~ x", Given([0.0, 1.0], 1.0))
    assert not walk.chain.cells.observed[:, 1].any()
    assert walk.chain.cells.observed[:, 0].all()


def test_a_result_of_a_formula_is_no_auxiliary_and_no_term_of_one() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 60))
    table = pa.table({
        "a": a, "sum": a + b, "b": b, "y": a + b + 0.5 * rng.standard_normal(60),
        "x": pa.array(np.where(np.arange(60) % 2 == 0, np.nan, a), from_pandas=True),
    })  # fmt: skip
    types: dict[str, Any] = dict.fromkeys("abyx", "real")
    types["sum"] = {"type": "real", "formula": "a + b"}
    problem, data, _ = prepare(table, {"columns": types})
    regression = read_regression("y ~ x", data.columns)
    assert "sum" not in related(regression, data)
    (found,), _ = auxiliaries(regression, data, ("b",), problem.link_config)
    assert set(found.names) == {"x", "y", "a"}


def test_missing_levels_that_a_known_value_rules_out_are_never_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of those that are left each is as likely as the response says, and the level by itself."""
    monkeypatch.setattr(walk_module, "TRIES", 60)
    row = np.arange(3000)
    work = np.array(["no", "part", "full"])[row % 3]
    gone = row >= 1500
    hours = np.where((work == "no") & ~gone, np.nan, 20.0 + row % 7)
    hours[2250:] = np.nan
    table = pa.table({
        "work": pa.array([None if away else one for one, away in zip(work, gone, strict=True)]),
        "hours": pa.array(hours, from_pandas=True),
        "y": np.where(gone, 0.3, 0.0),
    })  # fmt: skip
    types = {"work": WORK, "hours": HOURS, "y": "real"}
    walk = walk_of(table, types, "y ~ work", Given([0.0, 1.0, 0.0], 0.5))
    walk.xs["work"][1500:] = 1.0
    walk.sweep(adapt=False)
    own = np.exp([-0.09, -0.49, -0.09])  # densities of 0.3 about 0, 1 and 0; levels equally many
    for which, possible in ((slice(1500, 2250), [0, 1, 1]), (slice(2250, 3000), [1, 1, 1])):
        p = own * possible / (own @ possible)
        found = np.bincount(walk.xs["work"][which].astype(int), minlength=3) / 750
        assert np.abs(found - p).max() < 4 * np.sqrt(0.25 / 750)
    assert "hours" in walk.limits.beside


def test_versions_obey_conditions_and_a_sure_level_stays() -> None:
    """Both questions blank, one alone, and an answer that says what the other was."""
    rng = np.random.default_rng(4)
    n = 90
    row = np.arange(n)
    work = np.where(row % 3 == 0, "no", "yes")
    x = rng.standard_normal(n)
    hours = np.where(work == "yes", 30.0 + 3.0 * x, np.nan)
    both, first, second = row < 20, (row >= 20) & (row < 40) & (work == "yes"), row >= 80
    table = pa.table({
        "work": pa.array([None if both[i] or first[i] else work[i] for i in row]),
        "hours": pa.array(np.where(both | second, np.nan, hours), from_pandas=True),
        "x": pa.array(np.where(row % 8 == 5, np.nan, x), from_pandas=True),
        "y": x + (work == "yes") + rng.standard_normal(n),
    })  # fmt: skip
    types = {
        "work": {"type": "categorical", "levels": ["no", "yes"]},
        "hours": {"type": "real", "only_if": 'work == "yes"'},
        "x": "real", "y": "real",
    }  # fmt: skip
    done = impute(table, {"columns": types}, settings=PLAIN, **SHORT)
    multiple = done.multiple(3, "y ~ x * work")
    blank = []
    for one in multiple.tables():
        drawn, known = np.array(one["work"].to_pylist()), np.array(one["hours"].is_valid())
        assert np.array_equal(drawn == "yes", known)
        assert (drawn[first] == "yes").all()
        blank.extend(drawn[both])
    assert set(blank) == {"no", "yes"}


def test_a_level_that_a_condition_tells_is_not_drawn() -> None:
    table = pa.table({"work": ["no", None, "full", "no"] * 8, "hours": [None, 4, 5, None] * 8,
                      "y": np.arange(32.0)})  # fmt: skip
    types = {"work": WORK, "hours": {**HOURS, "only_if": 'work == "full"'}, "y": "real"}
    walk = walk_of(table, types, "y ~ work", Given([0.0, 9.0, 9.0], 1.0))
    for _ in range(3):
        walk.sweep(adapt=False)
    assert (walk.xs["work"][1::4] == 2.0).all()


def test_no_auxiliary_has_limits_nor_a_term_with_intervals() -> None:
    rng = np.random.default_rng(2)
    z = rng.standard_normal(120)
    kids = np.exp(z).astype(int)
    table = pa.table({
        "y": z + rng.standard_normal(120), "x": rng.standard_normal(120), "more": z,
        "lab": (lab := ["<0.5" if one < 0.5 else f"{one:.6f}" for one in np.exp(0.5 * z)]),
        "dose": lab,
        "kids": pa.array(np.where(np.arange(120) % 9 == 1, np.nan, kids), from_pandas=True),
        "young": pa.array(np.where(kids > 0, kids + 2.0, np.nan), from_pandas=True),
    })  # fmt: skip
    types = dict.fromkeys(("y", "x", "more"), "real") | {"kids": "count"}
    types |= {name: {"type": "positive", "impute": "censored"} for name in ("lab", "dose")}
    types |= {"young": {"type": "positive", "only_if": "kids > 0"}}
    problem, data, _ = prepare(table, {"columns": types})
    regression = read_regression("y ~ x", data.columns)
    found, left = auxiliaries(regression, data, ("more", "lab", "kids"), problem.link_config)
    assert [one.target for one in found] == ["more"]
    assert found[0].names == ("x", "y")
    assert left == ("lab", "kids")


def test_observed_values_beside_intervals_choose_no_logarithm() -> None:
    """They are but what lies above the limit, and look skewed where all are normal."""
    x = np.exp(np.random.default_rng(0).standard_normal(400))
    written = x.astype(str)
    for text, expected in ((written, True), (np.where(x < 0.4, "<0.4", written), False)):
        table = pa.table({"x": text, "y": x})
        problem, data, _ = prepare(table, {"columns": {"x": "positive", "y": "real"}})
        assert (logarithm_of(data.columns[0], problem.link_config) is not None) == expected


def bodies(bmi: list[str]) -> tuple[str, str]:
    """Return a table of people and its types file."""
    rng = np.random.default_rng(0)
    height, weight = rng.normal(170, 8, 40).round(), rng.normal(70, 9, 40).round(1)
    index = weight / (height / 100) ** 2
    index = [one and f"{value:.6f}" for one, value in zip(bmi, index, strict=True)]
    x = ["" if i % 4 == 0 else f"{i % 7}" for i in range(40)]
    rows = zip(height, weight, index, x, (rng.standard_normal(40) + weight).round(2), strict=True)
    types = "columns: {height: positive, weight: positive, x: real, y: real,"
    types += " bmi: {type: positive, formula: weight / (height / 100) ** 2}}"
    return "height,weight,bmi,x,y\n" + "\n".join(",".join(map(str, row)) for row in rows), types


def test_results_of_formulas_that_known_cells_tell_go_with_an_analysis(
    glfm: Any, tmp_path: Any
) -> None:
    table, types = bodies(["1", ""] * 20)
    (tmp_path / "t.csv").write_text(table)
    (tmp_path / "t.yaml").write_text(types)
    command = ["impute", "t.csv", "--types", "t.yaml", "--multiple", "1", "-o", "o.csv", "-q"]
    short = ["--chains", "1", "--warmup", "2", "--draws", "2", "--model", "glfm"]
    done = glfm(*command, *short, "--analysis", "y ~ x + bmi", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "o.csv").read_text().splitlines()[41:]
    for height, weight, bmi in (map(float, line.split(",")[2:5]) for line in lines):
        assert bmi == pytest.approx(weight / (height / 100) ** 2, abs=1e-6)
    lines = table.splitlines()
    lines[2] = lines[2][lines[2].index(",") :]  # neither height nor index
    (tmp_path / "t.csv").write_text("\n".join(lines))
    done = glfm(*command, *short, "--analysis", "y ~ x + bmi", cwd=tmp_path)
    assert done.returncode == 2
    assert "do not determine the missing ones" in done.stderr
    assert "Give 'bmi' `role: ignore`, and write I(weight / (height / 100) ** 2)" in done.stderr


@pytest.mark.parametrize(
    ("analysis", "mend"),
    [
        ("chg ~ base + x", "analyse 'aval' in its place; of completed tables 'chg' is aval - base"),
        ("aval ~ base + x", "compute it of completed tables: aval - base."),
        ("aval ~ base + I(chg / 2)", "write I(aval - base) in its place."),
    ],
)
def test_the_mend_of_a_formula_is_an_analysis_that_works(
    tmp_path: Any, analysis: str, mend: str
) -> None:
    """Another column's formula, of which all is known, is not what is named."""
    base, x, rows = np.arange(40) % 9, np.arange(40) % 7, []
    for b, v, gone in zip(base, x, np.arange(40) % 4 == 0, strict=True):
        aval = b + v * v % 5
        rows.append(f"{b},{v},{2 * v}," + ("," if gone else f"{aval},{aval - b}"))
    types = "columns: {base: real, x: real, twice: {type: real, formula: 2 * x}, aval: real,"
    types += " chg: {type: real, formula: aval - base}}"
    table = "base,x,twice,aval,chg\n" + "\n".join(rows)
    told = f"Hint: Give 'chg' `role: ignore`, and {mend}"
    check_analysis_refused(tmp_path, table, types, analysis, told)


def test_of_a_column_with_a_condition_no_warning_says_to_name_it() -> None:
    rng = np.random.default_rng(1)
    x, hours = rng.standard_normal((2, 90))
    work = np.where(np.arange(90) % 3 == 0, "no", "full")
    table = pa.table({
        "work": work,
        "hours": pa.array(np.where(work == "no", np.nan, hours), from_pandas=True),
        "x": pa.array(np.where(np.arange(90) < 10, np.nan, x), from_pandas=True),
        "y": x + hours,
    })  # fmt: skip
    types = {"work": WORK, "hours": HOURS, "x": "real", "y": "real"}
    multiple = impute(table, {"columns": types}, settings=PLAIN, **SHORT).multiple(1, "y ~ x")
    (warning,) = multiple.warnings
    assert warning.startswith("'hours' predicts 'y' beyond the formula")
    assert "biased. Give it `role: ignore`, or leave out" in warning


@pytest.mark.parametrize(
    ("text", "expected", "hint"),
    [
        ("y ~ hours", "'hours' has values in some rows alone (`only_if`)", "table of their own"),
        ("hours ~ y", "'hours' has values in some rows alone (`only_if`)", "table of their own"),
        ("y ~ log(lab)", "cells of 'lab' are intervals", "`impute: censored` for 'lab'"),
        ("lab ~ y", "of the response 'lab' are known only to lie between two", "--analysis"),
        ("kids ~ y", "`only_if` of other columns tells what missing 'kids' may be", "role: ignore"),
    ],
)
def test_a_formula_of_such_columns_is_refused_with_the_mend(
    tmp_path: Any, text: str, expected: str, hint: str
) -> None:
    table = "y,work,hours,lab,kids,young\n" + "1,full,40,<2,0,\n2,no,,3,2,5\n3,,,4,,3\n" * 5
    types = (
        "columns: {y: real, work: {type: categorical, levels: [no, full]},"
        ' hours: {type: positive, only_if: work == "full"}, lab: positive, kids: count,'
        " young: {type: positive, only_if: kids > 0}}"
    )
    check_analysis_refused(tmp_path, table, types, text, expected, hint)
