"""Evaluations: the same whoever makes them, resumed where they stopped, every method scored."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from glfm_cli import Evaluation, evaluate
from glfm_cli.encoding import encode
from glfm_cli.errors import UsageError
from glfm_cli.evaluation.design import Design
from glfm_cli.evaluation.methods.sibp import as_gaussian, rounded
from glfm_cli.evaluation.results import COMPLETED, FIT, Outcome, OutcomeId, Results
from glfm_cli.evaluation.scoring import Score
from glfm_cli.evaluation.summary import best_of, paired, summarize
from glfm_cli.io import read_table
from glfm_cli.links import LinkConfig, make_link
from glfm_cli.links.law import normal
from glfm_cli.schema import Schema

SHORT: dict[str, Any] = {"chains": 1, "warmup": 4, "draws": 4, "thin": 1}
TYPES = {
    "columns": {
        "height": "real",
        "income": "positive",
        "visits": "count",
        "city": "categorical",
        "grade": {"type": "ordinal", "levels": ["low", "mid", "high"]},
        "part": "id",
    }
}


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """Sixty rows of every type, related, with a few gaps."""
    rng = np.random.default_rng(7)
    z = rng.standard_normal(60)
    height = 170 + 8 * z + rng.standard_normal(60)
    grade = np.array(["low", "mid", "high"])[
        np.digitize(z + 0.3 * rng.standard_normal(60), [-0.6, 0.6])
    ]
    columns = {
        "height": pa.array(np.where(np.arange(60) % 11 == 3, np.nan, height), from_pandas=True),
        "income": pa.array(np.exp(7 + z + 0.5 * rng.standard_normal(60))),
        "visits": pa.array(rng.poisson(np.exp(1 + 0.5 * z))),
        "city": pa.array(np.array(["Oslo", "Rome", "Paris"])[rng.integers(0, 3, 60)]),
        "grade": pa.array([None if i % 13 == 5 else g for i, g in enumerate(grade)]),
        "part": pa.array([f"p{i}" for i in range(60)]),
    }  # fmt: skip
    return pa.table(columns)


def quick(table: pa.Table, **options: Any) -> Evaluation:
    chosen: dict[str, Any] = {
        "methods": ["mean", "draw"], "rates": [0.2, 0.4], "repeats": 2, "jobs": 1, **SHORT
    }  # fmt: skip
    return evaluate(table, TYPES, **{**chosen, **options})


def without_cost(table: pa.Table) -> list[dict[str, Any]]:
    return [row for row in table.to_pylist() if row["score"] not in ("seconds", "megabytes")]


# One seed, one result -------------------------------------------------------------------------


def test_results_do_not_depend_on_the_number_of_jobs(table: pa.Table) -> None:
    methods = ["glfm", "sibp", "draw"]
    one = quick(table, methods=methods, jobs=1)
    two = quick(table, methods=methods, jobs=2)
    assert without_cost(one.to_table()) == without_cost(two.to_table())
    assert one.to_table().num_rows > 500


def test_a_method_scores_the_same_in_any_company(table: pa.Table) -> None:
    alone = quick(table, methods=["draw"], rates=[0.4], repeats=1)
    among = quick(table, methods=["mean", "draw"])
    requested = [
        row
        for row in without_cost(among.to_table())
        if (row["method"], row["rate"], row["repeat"]) == ("draw", 0.4, 0)
    ]
    assert without_cost(alone.to_table()) == requested


def test_a_seed_changes_what_is_hidden(table: pa.Table) -> None:
    one, other = quick(table, methods=["mean"]), quick(table, methods=["mean"], seed=1)
    assert without_cost(one.to_table()) != without_cost(other.to_table())


# Every method ---------------------------------------------------------------------------------


def test_every_method_has_the_scores_that_it_can_have(table: pa.Table) -> None:
    methods = ["glfm", "sibp", "marginal", "mean", "draw", "knn", "iterative"]
    done = quick(table, methods=methods, rates=[0.3], repeats=1)
    assert not done.failures
    points = {"error", "nmae"}
    spread = {"ncrps", "nrps", "calibration", "coverage_50", "width_95"}
    have = {
        method: {s.score for fit in done.fits if fit.id.method == method for s in fit.scores
                 if s.scope == "all"}
        for method in methods
    }  # fmt: skip
    for method in ("glfm", "sibp", "marginal"):
        assert points | spread | {"log_score", "brier"} <= have[method]
    assert points | spread <= have["draw"]
    assert "log_score" not in have["draw"]
    for method in ("mean", "knn", "iterative"):
        assert have[method] == points
    values = [s.value for fit in done.fits for s in fit.scores]
    assert np.isfinite(values).all()


def test_learners_use_the_other_columns() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(120)
    level = np.where(x > 0, "up", "down")
    table = pa.table({"a": x, "b": 3 * x + 0.01 * rng.standard_normal(120), "c": level})
    types = {"columns": {"a": "real", "b": "real", "c": "categorical"}}
    done = evaluate(
        table, types, methods=["mean", "knn", "iterative"], rates=[0.2], repeats=1, jobs=1
    )
    error = {line.method: line.mean for line in done.lines if line.what.score == "error"
             and line.what.scope == "all"}  # fmt: skip
    assert error["knn"] < 0.8 * error["mean"]
    assert error["iterative"] < 0.8 * error["mean"]


def test_mean_is_mean_median_and_mode() -> None:
    """Rows 0 to 4 stay; in each of the others one cell is hidden, by name."""
    table = pa.table(
        {
            "v": [1.0, 2.0, 6.0, 0.0, 1.0, 7.0, 0.0, 0.0, 0.0],
            "n": [0, 1, 1, 4, 2, 0, 9, 0, 0],
            "g": ["2", "3", "2", "3", "3", "1", "1", "1", "1"],
            "c": ["x", "y", "x", "y", "x", "x", "x", "x", "y"],
            "keep": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
            "cells": ["", "", "", "", "", "v", "n", "g", "c"],
        }
    )
    columns = {"v": "real", "n": "count", "g": "ordinal", "c": "categorical", "keep": "predictor"}
    done = evaluate(table, {"columns": {**columns, "cells": "split"}}, methods=["mean"], repeats=1)
    (fit,) = done.fits
    mae = {s.column: s.value for s in fit.scores if s.score == "mae"}
    assert mae == {"v": pytest.approx(7 - 10 / 8), "n": pytest.approx(9 - 1), "g": 1.0 - 0.0}
    error = {s.column: s.value for s in fit.scores if s.score == "error" and s.column}
    assert error["c"] == 1.0  # the mode is x
    assert fit.id.mechanism == "given"


# SIBP's interval rule -------------------------------------------------------------------------


def test_probabilities_of_rounded_gaussians_are_those_of_scipy() -> None:
    codes = np.array([0.0, 1.0, 2.0, 3.0, 1.0, 2.0])
    table = pa.table({"g": [str(int(c)) for c in codes], "n": codes + 4})
    schema = Schema.from_dict({"columns": {"g": "ordinal", "n": "count"}})
    data = encode(table, schema)
    gaussian = as_gaussian(data)
    for encoded, plain, x, first, last in (
        (data.columns[0], gaussian.columns[0], codes, 0.0, 3.0),
        (data.columns[1], gaussian.columns[1], codes + 4, 4.0, 7.0),
    ):
        link = rounded(make_link(plain, LinkConfig()), encoded)
        eta, var = np.linspace(-1.0, 1.5, x.size), 0.7
        law = stats.norm(plain.x.mean() + plain.x.std() * eta, plain.x.std() * np.sqrt(var))
        low = np.where(x == first, -np.inf, x - 0.5)
        high = np.where(x == last, np.inf, x + 0.5)
        expected = np.log(law.cdf(high) - law.cdf(low))
        np.testing.assert_allclose(link.log_density(x, normal(eta, var), {}), expected, rtol=1e-9)
    values = link.value(np.linspace(-9.0, 6.0, 101))  # of the counts
    np.testing.assert_array_equal(np.unique(values), np.arange(values.max() + 1.0))
    levels = rounded(make_link(gaussian.columns[0], LinkConfig()), data.columns[0])
    p = levels.probabilities(normal(eta, var), {})
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.log(p[np.arange(6), codes.astype(int)]),
                               levels.log_density(codes, normal(eta, var), {}))  # fmt: skip


# Going on ------------------------------------------------------------------------------------


class Killed(Exception):
    """Stands for whatever ends a process without warning."""


class StopAfter:
    """An observer that ends the run after some fits."""

    def __init__(self, n: int, error: type[BaseException] = Killed) -> None:
        self.left, self.error, self.seen = n, error, 0

    def planned(self, forecast: Any) -> None:
        self.left = self.left or forecast.fits + 1

    def fitted(self, fit: Outcome) -> None:
        self.seen += 1
        if self.seen == self.left:
            raise self.error


@pytest.mark.parametrize("name", ["results.csv", "results.parquet"])
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_that_was_stopped_goes_on_to_the_same_file(
    table: pa.Table, tmp_path: Path, name: str, jobs: int
) -> None:
    whole, stopped = tmp_path / "whole" / name, tmp_path / name
    whole.parent.mkdir()
    quick(table, output=whole, methods=["glfm", "mean", "draw"])
    with pytest.raises(Killed):
        quick(table, output=stopped, methods=["glfm", "mean", "draw"], observer=StopAfter(5))
    rest = StopAfter(0)
    quick(
        table,
        output=stopped,
        methods=["glfm", "mean", "draw"],
        resume=True,
        jobs=jobs,
        observer=rest,
    )
    assert rest.seen == 12 - 5
    assert without_cost(read_table(stopped)) == without_cost(read_table(whole))
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [name]


def test_results_are_on_disk_as_they_come(table: pa.Table, tmp_path: Path) -> None:
    with pytest.raises(Killed):
        quick(table, output=tmp_path / "r.csv", observer=StopAfter(3))
    rows = read_table(tmp_path / "r.csv").to_pylist()
    assert [row["score"] for row in rows].count(COMPLETED) == 3


@pytest.mark.parametrize("cut", [1, 7, 40, 300, 1500])
def test_a_file_cut_anywhere_is_gone_on_with(table: pa.Table, tmp_path: Path, cut: int) -> None:
    path, other = tmp_path / "r.csv", tmp_path / "other.csv"
    quick(table, output=other)
    with pytest.raises(Killed):
        quick(table, output=path, observer=StopAfter(6))
    path.write_bytes(path.read_bytes()[:-cut])
    quick(table, output=path, resume=True)
    assert without_cost(read_table(path)) == without_cost(read_table(other))


def test_a_finished_run_makes_nothing_again(table: pa.Table, tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    quick(table, output=path)
    before, again = path.read_bytes(), StopAfter(0)
    done = quick(table, output=path, resume=True, observer=again)
    assert again.seen == 0
    assert path.read_bytes() == before
    assert len(done.fits) == 8


def test_repeats_and_methods_can_be_added(table: pa.Table, tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    quick(table, output=path, repeats=1, methods=["mean"])
    quick(table, output=path, repeats=2, methods=["draw"], resume=True)
    done = quick(table, output=path, repeats=2, methods=["mean", "draw"], resume=True)
    assert len(done.fits) == 8
    assert without_cost(read_table(path)) == without_cost(as_text(quick(table)))


def as_text(done: Evaluation) -> pa.Table:
    """Return the results as they read from CSV."""
    rows = done.to_table().to_pylist()
    return pa.Table.from_pylist(
        [{name: "" if v is None else str(v) for name, v in row.items()} for row in rows]
    )


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"seed": 1}, "another table, mechanism or seed"),
        ({"mechanism": "mnar"}, "another table, mechanism or seed"),
        ({"draws": 3}, "results of marginal in it were made with other options"),
        ({"settings": {"alpha": 2}}, "results of marginal in it were made with other options"),
        ({"resume": False}, "results in this file already"),
    ],
)
def test_results_of_something_else_are_not_gone_on_with(
    table: pa.Table, tmp_path: Path, changes: dict[str, Any], match: str
) -> None:
    path = tmp_path / "r.csv"
    said: dict[str, Any] = {"output": path, "methods": ["marginal"], "rates": [0.2], "repeats": 1}
    quick(table, **said)
    before = path.read_bytes()
    with pytest.raises(UsageError, match=match):
        quick(table, **{**said, "resume": True, **changes})
    assert path.read_bytes() == before


def test_a_file_that_holds_no_results_is_left_alone(table: pa.Table, tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(UsageError, match="not a table of results"):
        quick(table, output=path, resume=True)
    assert path.read_text() == "a,b\n1,2\n"


@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_ends_with_the_fits_that_were_made(
    table: pa.Table, tmp_path: Path, jobs: int
) -> None:
    stop = StopAfter(3, KeyboardInterrupt)
    done = quick(table, output=tmp_path / "r.csv", observer=stop, jobs=jobs)
    assert done.stopped == "interrupted"
    assert len(done.fits) == 3
    assert len(Results(tmp_path / "r.csv").load()) == 3


def test_ctrl_c_before_the_first_fit_leaves_a_file_to_go_on_with(
    table: pa.Table, tmp_path: Path
) -> None:
    class Impatient(StopAfter):
        def planned(self, forecast: Any) -> None:
            raise KeyboardInterrupt

    done = quick(table, output=tmp_path / "r.csv", observer=Impatient(1))
    assert (done.stopped, done.fits) == ("interrupted", ())
    gone_on = quick(table, output=tmp_path / "r.csv", resume=True)
    assert gone_on.stopped is None
    assert gone_on.fits


# Other programs -------------------------------------------------------------------------------

FILL = """
import csv, sys
table, types, out, seed = sys.argv[1:]
rows = list(csv.reader(open(table, newline="", encoding="utf-8")))
assert int(seed) >= 0 and "grade" in open(types, encoding="utf-8").read()
for i in range(len(rows[0])):
    first = next(row[i] for row in rows[1:] if row[i])
    for row in rows[1:]:
        row[i] = row[i] or first
{change}
csv.writer(open(out, "w", newline="", encoding="utf-8")).writerows(rows)
"""


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str], str]:
    """Write a program that fills cells with the first value of a column, and return its command."""

    def write(change: str = "") -> str:
        path = tmp_path / f"fill {abs(hash(change))}.py"
        path.write_text(FILL.replace("{change}", change), encoding="utf-8")
        return f"'{sys.executable}' '{path}' {{input}} {{types}} {{output}} {{seed}}"

    return write


def test_another_program_lands_in_the_same_table(
    table: pa.Table, program: Callable[[str], str]
) -> None:
    done = quick(table, methods=["mean"], programs={"first": program("")}, jobs=2)
    assert not done.failures
    assert done.methods == ("mean", "first")
    rows = [row for row in done.to_table().to_pylist() if row["score"] == "error"]
    assert {row["method"] for row in rows if row["scope"] == "all"} == {"mean", "first"}
    memory = [fit.megabytes for fit in done.fits if fit.id.method == "first"]
    if sys.platform == "linux":
        assert max(memory) > 1


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ("print('one'); print('oh no'); sys.exit(3)", "ended with status 3: oh no"),
        ("import os; os.kill(os.getpid(), 11)", "was ended by signal 11"),
        ("import time; time.sleep(600)", r"took longer than 1\.5 s and was ended"),
        ("del rows[5:]", "another number of rows, found 4, expected 60"),
        ("rows[1:] = [[''] * 6 for _ in rows[1:]]", "cells are still empty"),
        ("rows = [row[1:] for row in rows]", "lacks this column"),
        ("rows = [[c + 'x' for c in row] for row in rows[:1]] + rows[1:]", "lacks this column"),
        ("rows[1:] = [[*row[:4], 'great', row[5]] for row in rows[1:]]", "found 'great'"),
        ("rows[1:] = [['tall', *row[1:]] for row in rows[1:]]", "found 'tall', expected a number"),
        ("sys.exit(0)", "it wrote no output"),
    ],
)  # fmt: skip
def test_a_program_that_fails_is_recorded_and_the_rest_goes_on(
    table: pa.Table, program: Callable[[str], str], change: str, match: str, tmp_path: Path
) -> None:
    done = quick(
        table,
        methods=["bad", "mean"],
        programs={"bad": program(change)},
        method_timeout=1.5 if "sleep" in change else 60.0,
        rates=[0.3],
        repeats=1,
        output=tmp_path / "r.csv",
    )
    (failed,) = done.failures
    with pytest.raises(AssertionError, match=match):
        raise AssertionError(failed.problem)
    assert any("bad failed in 1 of 1 fits" in text for text in done.warnings)
    assert {fit.id.method for fit in done.fits if fit.scores} == {"mean"}
    recorded = [row for row in read_table(tmp_path / "r.csv").to_pylist() if row["note"]]
    assert [(row["method"], row["scope"], row["value"]) for row in recorded] == [
        ("bad", FIT, "0.0")
    ]


def test_a_program_gets_gaps_as_empty_cells_and_every_level(
    program: Callable[[str], str], tmp_path: Path
) -> None:
    copy = "import shutil; shutil.copy(table, '{0}/in.csv'); shutil.copy(types, '{0}/t.yaml')"
    table = pa.table(
        {
            "a": ["1", "NA", "3", "4", "5", " 6 "],
            "grade": pa.array(["x, y", "z", None, "z", "x, y", "z"]).dictionary_encode(),
        }
    )
    types = {"missing": ["NA"], "columns": {"a": "count", "grade": "categorical"}}
    done = evaluate(
        table, types, methods=[], programs={"p": program(copy.format(tmp_path))}, rates=[0.3],
        repeats=1, jobs=1,
    )  # fmt: skip
    assert not done.failures
    seen = read_table(tmp_path / "in.csv").to_pylist()
    assert seen[1]["a"] == ""
    assert seen[2]["grade"] == ""
    hidden = sum(row["a"] == "" for row in seen) + sum(row["grade"] == "" for row in seen) - 2
    assert hidden == round(0.3 * 10)
    said = Schema.from_yaml((tmp_path / "t.yaml").read_text()).resolve(["a", "grade"])
    assert said[1].levels == ("x, y", "z")
    assert not said[0].missing


# The summary ----------------------------------------------------------------------------------


def fits_of(values: dict[str, list[float]], score: str = "error") -> list[Outcome]:
    def scored(v: float) -> tuple[Score, ...]:
        return (Score("all", "", "", score, v, 10),)

    return [
        Outcome(OutcomeId(method, "mcar", 0.3, i), "k-k", scored(v), 1.0, math.nan)
        for method, column in values.items()
        for i, v in enumerate(column)
    ]  # fmt: skip


def test_paired_differences_are_those_of_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal(8), rng.standard_normal(8)
    found = paired(dict(enumerate(a)), dict(enumerate(b)))
    test = stats.ttest_rel(a, b)
    interval = test.confidence_interval(0.95)
    np.testing.assert_allclose(found, [np.mean(a - b), interval.low, interval.high])


def test_means_have_standard_errors(seed: int) -> None:
    x = np.random.default_rng(seed).random(6)
    (line, _) = summarize(fits_of({"a": list(x)}), ["a"], "a")
    assert (line.mean, line.se) == pytest.approx((x.mean(), stats.sem(x)))
    assert math.isnan(line.difference)


def test_pairs_are_the_repeats_that_both_have() -> None:
    found = paired({0: 1.0, 1: 2.0, 2: 9.0}, {1: 1.0, 2: 8.0, 5: 0.0})
    assert found.difference == 1.0


@pytest.mark.parametrize(
    ("values", "score", "best"),
    [
        ({"a": [1.0, 1.1, 0.9], "b": [2.0, 2.1, 1.9]}, "error", "a"),
        ({"a": [1.0, 1.1, 0.9], "b": [2.0, 2.1, 1.9]}, "log_score", "b"),
        ({"a": [1.0, 2.0, 3.0], "b": [1.1, 1.9, 3.1]}, "error", None),  # inside the noise
        ({"a": [1.0, 2.0, 3.0], "b": [1.1, 2.1, 3.12]}, "error", "a"),  # noisy, but in pairs clear
        ({"a": [1.0], "b": [2.0]}, "error", None),  # one repeat shows no noise
        ({"a": [1.0, 1.1], "b": [2.0, 2.1]}, "coverage_95", None),
        ({"a": [1.0, 1.1]}, "error", None),
        ({"a": [-1.0, -1.0], "b": [-math.inf, -2.0]}, "log_score", None),
    ],
)
def test_the_best_is_marked_only_beyond_noise(
    values: dict[str, list[float]], score: str, best: str | None
) -> None:
    by_method = {method: dict(enumerate(column)) for method, column in values.items()}
    assert best_of(by_method, score) == best


def test_failed_fits_are_left_out_of_means() -> None:
    fits = fits_of({"a": [1.0, 3.0]})
    fits.append(Outcome(OutcomeId("a", "mcar", 0.3, 2), "k-k", (), 1.0, math.nan, "crashed"))
    lines: Iterable[Any] = summarize(fits, ["a"], "a")
    assert {(line.mean, line.repeats) for line in lines if line.what.score == "error"} == {(2.0, 2)}


def test_the_summary_is_a_table_with_one_row_a_method_score_and_rate(table: pa.Table) -> None:
    done = quick(table)
    rows = done.summary().to_pylist()
    keys = {(r["score"], r["scope"], r["column"], r["type"], r["rate"], r["method"]) for r in rows}
    assert len(keys) == len(rows)
    (one,) = [
        r
        for r in rows
        if (r["score"], r["scope"], r["method"], r["rate"]) == ("error", "all", "draw", 0.2)
    ]
    mean = {
        method: np.mean(
            [
                s.value
                for fit in done.fits
                if (fit.id.method, fit.id.rate) == (method, 0.2)
                for s in fit.scores
                if (s.score, s.scope) == ("error", "all")
            ]
        )
        for method in done.methods
    }
    assert one["mean"] == pytest.approx(mean["draw"])
    assert one["difference"] == pytest.approx(mean["draw"] - mean["mean"])


@pytest.mark.parametrize("method", ["mean", "draw", "knn", "iterative", "sibp", "marginal"])
def test_a_column_whose_cells_are_all_intervals_is_seen_and_not_hidden(method: str) -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=60)
    bands = [f"{10 * k}-{10 * k + 9}" for k in rng.integers(0, 5, 60)]
    table = pa.table({"band": bands, "a": a, "b": a + rng.normal(0.0, 0.1, 60)})
    types = {"columns": {"band": "count", "a": "real", "b": "real"}}
    short = {"chains": 1, "warmup": 3, "draws": 2, "repeats": 1, "rates": [0.1], "jobs": 1}
    found = evaluate(table, types, methods=[method], **short)
    scored = {score.column: score.value for score in found.fits[0].scores if score.score == "mae"}
    assert scored.keys() == {"a", "b"}
    if method == "iterative":
        assert max(scored.values()) < 0.3


@pytest.mark.parametrize(
    ("option", "value"), [("method_timeout", "5"), ("programs", 3), ("output", 3)]
)
def test_odd_options_are_refused_in_a_line(option: str, value: object) -> None:
    with pytest.raises(UsageError, match="expected"):
        Design(**{option: value})  # type: ignore[arg-type]
