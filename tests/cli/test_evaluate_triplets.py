"""`glfm evaluate` of triplets: what is hidden, how it is scored, and what is refused."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from glfm_cli.encoding import encode_triplets, successes_of
from glfm_cli.evaluation.design import Design
from glfm_cli.evaluation.holdouts import HoldOut, draw_holdout, read_holdout
from glfm_cli.evaluation.methods.means import MEANS
from glfm_cli.evaluation.scoring import Score, score_all, spans
from glfm_cli.evaluation.task import Prediction, hide_pairs
from glfm_cli.schema import Schema

VALUE = {"type": "ordinal", "role": "value", "levels": ["1", "2", "3", "4"]}
RATED = {"columns": {"u": "row", "i": "column", "r": VALUE}}
HITS = {"type": "binomial", "role": "value", "trials": "n"}
COUNTED = {"columns": {"u": "row", "i": "column", "r": HITS, "n": "ignore"}}
TYPES = "columns:\n  u: row\n  i: column\n  r: {type: ordinal, role: value}\n"
SHORT = ("--chains", "1", "--warmup", "5", "--draws", "5", "--jobs", "1")


def ratings(n_rows: int = 12, n_columns: int = 9) -> pa.Table:
    """Return ratings whose row says most of them."""
    rng = np.random.default_rng(3)
    i, j = np.nonzero(rng.random((n_rows, n_columns)) < 0.7)
    values = 1 + np.clip((i + rng.integers(0, 2, i.size)) % 4, 0, 3)
    return pa.table({"u": i, "i": j, "r": values})


def drawn(
    table: pa.Table, types: dict[str, Any] = RATED, *, mechanism: str = "mcar", rate: float = 0.1
) -> HoldOut:
    triplets = encode_triplets(table, Schema.from_dict(types))
    return draw_holdout(triplets, mechanism, rate, np.random.default_rng(1))


def scored(held: HoldOut, prediction: Prediction) -> dict[str, float]:
    """Return the scores of all cells together."""
    columns = (held.train.value,)
    found: list[Score] = score_all(columns, spans(columns), {0: held.test.value.x}, {0: prediction})
    return {one.score: one.value for one in found if one.scope == "all"}


def pairs_of(triplets: Any) -> set[tuple[int, int]]:
    return set(zip(triplets.row.tolist(), triplets.column.tolist(), strict=True))


@pytest.mark.parametrize("rate", [0.2, 0.4])
def test_hidden_and_seen_cells_are_all_cells_and_every_unit_keeps_one(rate: float) -> None:
    table = ratings()
    held = drawn(table, rate=rate)
    seen, hidden = pairs_of(held.train), pairs_of(held.test)
    assert not seen & hidden
    assert len(seen) + len(hidden) == table.num_rows
    assert len(hidden) == round(rate * table.num_rows)
    assert len({row for row, _ in seen}) == 12
    assert len({column for _, column in seen}) == 9


def test_one_cell_of_every_row_is_hidden() -> None:
    held = drawn(ratings(), mechanism="one-per-row")
    assert sorted(held.test.row.tolist()) == list(range(12))


def test_a_split_column_says_which_rows_of_the_table_are_foretold() -> None:
    table = pa.table(
        {"u": ["a", "a", "a", "b"], "i": ["x", "x", "y", "x"], "r": [1, 2, 0, 3],
         "n": [2, 4, 5, 3], "part": ["train", "test", "test", ""]}
    )  # fmt: skip
    types = {"columns": COUNTED["columns"] | {"part": "split"}}
    held = read_holdout(table, Schema.from_dict(types), Design(), None)
    assert held is not None
    assert held.rate == 0.5
    assert successes_of(held.train.value.x).tolist() == [1.0, 3.0]
    assert successes_of(held.test.value.x).tolist() == [2.0, 0.0]
    assert held.test.trials is not None
    assert held.test.trials.tolist() == [4.0, 5.0]


def test_scores_are_those_of_their_formulas() -> None:
    held = drawn(ratings(), rate=0.3)
    codes = held.test.value.x
    away = np.abs(codes - 1.0)
    said = scored(
        held, Prediction(np.ones(codes.size), np.full(codes.size, -2.0), mean=codes + 1.5)
    )
    assert said["rmse"] == pytest.approx(0.5)  # codes 0, 1, ... are the levels 1, 2, ...
    assert said["error"] == pytest.approx(away.mean() / 3.0)
    assert said["nmae"] == pytest.approx(away.mean() / 3.0)
    assert said["log_score"] == pytest.approx(-2.0)


def test_errors_of_rates_count_by_their_trials() -> None:
    table = pa.table({"u": [0, 0, 1, 1], "i": [0, 1, 0, 1], "r": [1, 0, 2, 8], "n": [2, 4, 4, 8]})
    triplets = encode_triplets(table, Schema.from_dict(COUNTED))
    truth, weight = np.array([0.5, 0.0, 0.5, 1.0]), np.array([2.0, 4.0, 4.0, 8.0])
    said = scored(HoldOut(triplets, triplets), Prediction(np.full(4, 0.5)))
    assert said["rmse"] == pytest.approx(np.sqrt(np.average((truth - 0.5) ** 2, weights=weight)))
    assert said["nmae"] == pytest.approx(np.average(np.abs(truth - 0.5), weights=weight))


@pytest.mark.parametrize("types", [RATED, COUNTED])
def test_means_of_rows_foretell_values_that_rows_make(types: dict[str, Any]) -> None:
    table = ratings(40, 12).append_column("n", pa.array([4] * ratings(40, 12).num_rows))
    table = table if types is COUNTED else table.drop_columns(["n"])
    held, schema = drawn(table, types, rate=0.2), Schema.from_dict(types)
    task = hide_pairs(table, schema, held, seed=0, threads=1)
    said = {name: scored(held, method.fit(task)[0]) for name, method in MEANS.items()}
    assert said["row-mean"]["rmse"] < said["mean"]["rmse"]
    assert said["row-mean"]["log_score"] > said["mean"]["log_score"]
    assert set(said) == {"mean", "row-mean", "column-mean", "additive"}


@pytest.mark.parametrize("kind", ["real", "ordinal", "binomial"])
def test_what_rows_and_columns_add_is_foretold_by_both(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    u, i = np.divmod(np.arange(40 * 30), 30)
    mean = 0.5 + 0.02 * (u % 10) - 0.02 * (i % 9)
    sd, n = 0.05, np.full(u.size, 200)
    x = mean + sd * rng.normal(size=u.size)
    values = {"real": x, "ordinal": np.clip(np.round(10 * x), 1, 9)}
    values["binomial"] = rng.binomial(n, mean)
    table = pa.table({"u": u, "i": i, "r": values[kind], "n": n})
    value = {"type": kind, "role": "value"} | ({"trials": "n"} if kind == "binomial" else {})
    types = {"columns": {"u": "row", "i": "column", "r": value, "n": "ignore"}}
    held = drawn(table, types, rate=0.3)
    task = hide_pairs(table, Schema.from_dict(types), held, seed=0, threads=1)
    said = {name: scored(held, method.fit(task)[0]) for name, method in MEANS.items()}
    for name in ("mean", "row-mean", "column-mean"):
        assert said["additive"]["rmse"] < 0.8 * said[name]["rmse"]
    if kind == "real":  # the density is that of the noise
        expected = -0.5 * np.log(2 * np.pi * np.e * sd**2)
        assert said["additive"]["log_score"] == pytest.approx(expected, abs=0.15)
    else:
        assert said["additive"]["log_score"] > said["row-mean"]["log_score"]


def rated(desk: Any, table: pa.Table) -> None:
    lines = [",".join(table.column_names)]
    lines += [",".join(map(str, row.values())) for row in table.to_pylist()]
    desk.put("table.csv", "\n".join(lines) + "\n")
    desk.put("types.yaml", TYPES)


def test_methods_are_scored_on_the_same_cells(desk: Any, here: Any) -> None:
    rated(desk, ratings())
    given = ("evaluate", "table.csv", "--types", "types.yaml", *SHORT, "--repeats", "2")
    said = here(*given, "--methods", "bsvd,row-mean", "-o", "scores.csv", "--json")
    assert said.status == 0, said.stderr
    rows = list(csv.DictReader(Path("scores.csv").read_text().splitlines()))
    names = {(row["method"], row["score"]) for row in rows if row["scope"] == "all"}
    for method in ("bsvd", "row-mean"):
        assert {(method, name) for name in ("rmse", "error", "nmae", "log_score")} <= names
    assert len({(row["repeat"], row["cells"]) for row in rows if row["score"] == "rmse"}) == 2
    printed = json.loads(said.stdout)["summary"]
    lines = {(row["method"], row["score"]): row for row in printed if row["scope"] == "all"}
    assert lines["row-mean", "rmse"]["difference"] == pytest.approx(
        lines["row-mean", "rmse"]["mean"] - lines["bsvd", "rmse"]["mean"]
    )
    text = here(*given, "--methods", "mean,row-mean", "--plot", "f.png", "--html", "f.html")
    assert "RMSE of the mean" in text.stdout
    assert Path("f.png").stat().st_size
    assert "RMSE of the mean" in Path("f.html").read_text()


def test_an_evaluation_of_triplets_goes_on(desk: Any, here: Any) -> None:
    rated(desk, ratings())
    given = ("evaluate", "table.csv", "--types", "types.yaml", "--methods", "row-mean,mean")
    given += ("--jobs", "1")
    first = here(*given, "--repeats", "1", "-o", "some.csv")
    assert first.status == 0, first.stderr
    here(*given, "--repeats", "3", "-o", "some.csv", "--resume")
    here(*given, "--repeats", "3", "-o", "all.csv")
    scores = [
        [r for r in csv.reader(Path(name).read_text().splitlines()) if r[4] != "fit"]
        for name in ("some.csv", "all.csv")
    ]
    assert scores[0] == scores[1]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("--methods", "glfm"), "unknown method, found 'glfm', expected some of bsvd, mean"),
        (("--mechanism", "mar"), "--mechanism, found 'mar', expected mcar or one-per-row"),
        (("--method", "a=b {input} {output}"), "--method is for tables, but the types file"),
        (("--mechanism", "one-per-row", "--rates", "0.2"), "--rates, expected none"),
        (("--rates", "0.99"), "a rate of 0.99 cannot be reached: at most"),
        (("--repeats", "0"), "--repeats, found 0, expected a whole number from 1"),
        (("--row-features", "table.csv"), "--row-features needs --row-types FILE"),
        (("--row-features", "u.csv", "--row-types", "u.yaml", "-o", "u.csv"), "is --row-features"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    desk: Any, here: Any, options: tuple[str, ...], error: str
) -> None:
    rated(desk, ratings())
    said = here("evaluate", "table.csv", "--types", "types.yaml", *options)
    assert said.status == 2, said.stdout
    (line,) = said.lines("Error")
    assert error in line
