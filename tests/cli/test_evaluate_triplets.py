"""`glfm evaluate` of triplets: what is hidden, how it is scored, and what is refused."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from glfm_cli.encoding import successes_of
from glfm_cli.evaluation.design import Design
from glfm_cli.evaluation.matrix.forecasts import BASELINES, Forecasts, scores
from glfm_cli.evaluation.matrix.holdouts import HoldOut, hold_out
from glfm_cli.schema import Schema

VALUE = {"type": "ordinal", "role": "value", "levels": ["1", "2", "3", "4"]}
RATED = {"columns": {"u": "row", "i": "column", "r": VALUE}}
HITS = {"type": "binomial", "role": "value", "trials": "n"}
COUNTED = {"columns": {"u": "row", "i": "column", "r": HITS, "n": "ignore"}}
TYPES = "columns:\n  u: row\n  i: column\n  r: {type: ordinal, role: value}\n"
SHORT = ("--chains", "1", "--warmup", "5", "--draws", "5")


def ratings(n_rows: int = 12, n_columns: int = 9) -> pa.Table:
    """Return ratings whose row says most of them."""
    rng = np.random.default_rng(3)
    i, j = np.nonzero(rng.random((n_rows, n_columns)) < 0.7)
    values = 1 + np.clip((i + rng.integers(0, 2, i.size)) % 4, 0, 3)
    return pa.table({"u": i, "i": j, "r": values})


def sets(table: pa.Table, types: dict[str, Any] = RATED, **asked: Any) -> list[HoldOut]:
    return hold_out(table, Schema.from_dict(types), Design(**asked), seed=1)


def pairs_of(triplets: Any) -> set[tuple[int, int]]:
    return set(zip(triplets.row.tolist(), triplets.column.tolist(), strict=True))


def test_hidden_and_seen_cells_are_all_cells_and_every_unit_keeps_one() -> None:
    table = ratings()
    found = sets(table, rates=(0.2, 0.4), repeats=3)
    assert [(held.rate, held.repeat) for held in found] == [
        (rate, repeat) for rate in (0.2, 0.4) for repeat in (1, 2, 3)
    ]
    for held in found:
        seen, hidden = pairs_of(held.train), pairs_of(held.test)
        assert not seen & hidden
        assert len(seen) + len(hidden) == table.num_rows
        assert len(hidden) == round(held.rate * table.num_rows)
        assert len({row for row, _ in seen}) == 12
        assert len({column for _, column in seen}) == 9
    assert pairs_of(found[0].test) != pairs_of(found[1].test)


def test_one_cell_of_every_row_is_hidden() -> None:
    (held,) = sets(ratings(), mechanism="one-per-row", repeats=1)
    assert sorted(held.test.row.tolist()) == list(range(12))


def test_a_split_column_says_which_rows_of_the_table_are_foretold() -> None:
    table = pa.table(
        {"u": ["a", "a", "a", "b"], "i": ["x", "x", "y", "x"], "r": [1, 2, 0, 3],
         "n": [2, 4, 5, 3], "part": ["train", "test", "test", ""]}
    )  # fmt: skip
    types = {"columns": COUNTED["columns"] | {"part": "split"}}
    (held,) = sets(table, types)
    assert (held.mechanism, held.repeat) == ("split", 1)
    assert successes_of(held.train.value.x).tolist() == [1.0, 3.0]
    assert successes_of(held.test.value.x).tolist() == [2.0, 0.0]
    assert held.test.trials is not None
    assert held.test.trials.tolist() == [4.0, 5.0]


def test_scores_are_those_of_their_formulas() -> None:
    (held,) = sets(ratings(), rates=(0.3,), repeats=1)
    truth = held.test.value.x + 1.0
    found = Forecasts(truth + 0.5, truth - 1.0, np.full(truth.size, -2.0), 3.0)
    said = scores(held, found)
    assert said == {
        "rmse": pytest.approx(0.5),
        "mae": pytest.approx(1.0),
        "nmae": pytest.approx(1.0 / 1.25),  # 1.25: mean distance of two of four levels
        "log_likelihood": pytest.approx(-2.0),
        "rank": 3.0,
    }


@pytest.mark.parametrize("types", [RATED, COUNTED])
def test_means_of_rows_foretell_values_that_rows_make(types: dict[str, Any]) -> None:
    table = ratings(40, 12).append_column("n", pa.array([4] * ratings(40, 12).num_rows))
    table = table if types is COUNTED else table.drop_columns(["n"])
    (held,) = sets(table, types, rates=(0.2,), repeats=1)
    said = {name: scores(held, method(held)) for name, method in BASELINES.items()}
    assert said["row-mean"]["rmse"] < said["mean"]["rmse"]
    assert said["row-mean"]["log_likelihood"] > said["mean"]["log_likelihood"]
    assert set(said) == {"mean", "row-mean", "column-mean"}


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
    names = {(row["method"], row["score"]) for row in rows}
    five = {"rmse", "mae", "nmae", "log_likelihood", "rank", "seconds"}
    expected = {("bsvd", name) for name in five}
    assert names == expected | {("row-mean", name) for name in five - {"rank"}}
    assert len({(row["repeat"], row["cells"]) for row in rows}) == 2
    printed = json.loads(said.stdout)
    lines = {(row["method"], row["score"]): row for row in printed["scores"]}
    assert lines["row-mean", "rmse"]["difference"] == pytest.approx(
        lines["row-mean", "rmse"]["mean"] - lines["bsvd", "rmse"]["mean"]
    )
    text = here(*given, "--methods", "mean,row-mean")
    assert "MAE over that of a blind guess" in text.stdout


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("--methods", "glfm"), "--methods, found glfm, expected bsvd, mean, row-mean"),
        (("--mechanism", "mar"), "--mechanism, found mar, expected mcar or one-per-row"),
        (("--mechanism", "one-per-row", "--rates", "0.2"), "--rates, expected none"),
        (("--rates", "0.99"), "a rate of 0.99 cannot be reached: at most"),
        (("--repeats", "0"), "--repeats, found 0, expected a whole number from 1"),
        (("--plot", "f.png"), "--plot is about tables, and the types file describes triplets"),
        (("--row-features", "table.csv"), "--row-features needs --row-types FILE"),
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
