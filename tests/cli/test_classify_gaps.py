"""`glfm classify` where whether a cell is missing tells of the label: warned of, and a feature."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chi2_contingency

from glfm_cli.classification.gaps import Indicators, score_test, telling_gaps
from glfm_cli.encoding import encode
from glfm_cli.schema import Schema

FAST = ("--chains", "1", "--set", "experts=2", "--set", "iterations=30", "--threads", "1")
TYPES = 'columns:\n  y: {type: categorical, levels: ["no", "yes"]}\nrest: real\n'
WARNING = "whether 'lab' is missing predicts the label: of "


def measured(n: int, seed: int, *, by_label: bool = True) -> str:
    """Return rows whose `lab` says nothing, and is missing more often by the label, or by `a`."""
    rng = np.random.default_rng(seed)
    a, lab = rng.normal(size=(2, n))
    ill = rng.random(n) < 1.0 / (1.0 + np.exp(-2.0 * a))
    gap = rng.random(n) < np.where(ill if by_label else a > 0, 0.8, 0.2)
    lines = ["a,lab,y"]
    for i in range(n):
        label = ("no", "yes")[int(ill[i])]
        lines.append(f"{a[i]:.3f},{'' if gap[i] else round(lab[i], 3)},{label}")
    return "\n".join(lines) + "\n"


@pytest.fixture
def classify(desk: Any, here: Any) -> Any:
    desk.put("train.csv", measured(200, 1))
    desk.put("new.csv", measured(400, 2))
    desk.put("types.yaml", TYPES)

    def run(*options: str) -> Any:
        types = "--types", "types.yaml", "--target", "y"
        return here("classify", "train.csv", *types, *FAST, *options)

    return run


@pytest.mark.parametrize("options", [("--cv", "2"), ("--predict", "new.csv"), ("--save", "s.glfm")])
def test_gaps_that_tell_of_the_label_are_warned_of(classify: Any, options: Any) -> None:
    said = classify(*options)
    assert said.status == 0, said.stderr
    assert WARNING in said.stderr
    assert "--set indicators=true makes it a feature" in said.stderr


def test_gaps_that_other_features_explain_are_not(classify: Any, desk: Any) -> None:
    desk.put("train.csv", measured(200, 1, by_label=False))
    assert "missing predicts" not in classify("--cv", "2").stderr


def test_gaps_of_a_column_that_is_left_out_are_not(classify: Any, desk: Any) -> None:
    rows = (line.split(",") for line in measured(200, 1).splitlines()[1:])
    ticked = [f"{a},{'1' if lab else ''},{y}" for a, lab, y in rows]
    desk.put("train.csv", "\n".join(["a,lab,y", *ticked]) + "\n")
    assert "missing predicts" not in classify("--cv", "2").stderr


def test_indicators_tell_what_gaps_do(classify: Any) -> None:
    scores = {}
    for used in ("false", "true"):
        options = "--predict", "new.csv", "-o", f"{used}.csv", "--json"
        said = classify(*options, "--set", f"indicators={used}")
        scores[used] = json.loads(said.stdout)["scores"]["log_score"]
        assert (WARNING in said.stderr) == (used == "false")
    assert scores["true"] > scores["false"] + 0.03


def test_a_kept_fit_knows_its_indicators(classify: Any, desk: Any, here: Any) -> None:
    indicators = "--set", "indicators=true"
    fitted = classify("--predict", "new.csv", *indicators)
    assert classify("--save", "kept.glfm", *indicators).status == 0
    assert here("classify", "new.csv", "--fit", "kept.glfm").stdout == fitted.stdout
    shown = here("explore", "kept.glfm").stdout
    assert ", lab missing +" in shown
    said = here("classify", "new.csv", "--fit", "kept.glfm", "--complete", "full.csv")
    assert said.status == 0, said.stderr
    filled = list(csv.DictReader(io.StringIO((desk.folder / "full.csv").read_text())))
    assert all(row["lab"] for row in filled)


def test_indicators_of_alike_gaps_are_one_feature() -> None:
    nan = np.nan
    x = np.array([1.0, nan, 2.0, nan])
    y = np.array([[0.0, 1.0], [nan, nan], [2.0, 2.0], [nan, nan]])
    there, opposite = np.arange(4.0), np.array([nan, 1.0, nan, 2.0])
    found = Indicators.of([there, x, y, opposite])
    assert found.columns.tolist() == [1]
    values = found.values([there, x, y, opposite])[:, 0]
    assert values.mean() == pytest.approx(0.0, abs=1e-12)
    assert values[1] == values[3] > 0.5 > -0.5 > values[0] == values[2]
    assert found.noise == pytest.approx([(0.25 * (values[1] - values[0])) ** 2])
    assert Indicators.of([there]).columns.size == 0


def told(gap: np.ndarray, code: np.ndarray, p: np.ndarray) -> bool:
    """Return whether gaps are said to tell of labels that were foretold with p."""
    table = pa.table({"x": pa.array(np.arange(gap.size) * 1.0, mask=gap)})
    columns = encode(table, Schema.from_dict({"columns": {"x": "real"}})).columns
    return bool(telling_gaps(columns, code, np.column_stack([1.0 - p, p]), ("no", "yes")))


@pytest.mark.parametrize("more", [12, 17, 24])
def test_the_statistic_of_forecasts_alike_for_all_rows_is_pearsons(more: int) -> None:
    gap = np.repeat([True, True, False, False], [more, 20, 26, 200])
    code = np.repeat([1.0, 0.0, 1.0, 0.0], [more, 20, 26, 200])
    p = np.full(gap.size, code.mean())
    away, known = np.square(gap - gap.mean()), p * (1.0 - p)
    robust = (away * np.square(code - p)).sum() / (away * known).sum()
    chi2 = chi2_contingency([[more, 20], [26, 200]], correction=False).statistic
    z = score_test(gap, np.eye(2)[code.astype(int)], np.column_stack([1.0 - p, p]))
    assert np.square(z) == pytest.approx(np.full(2, chi2 / max(robust, 1.0)))
    assert z[1] > 0 > z[0]
    assert told(gap, code, p) == (abs(z[1]) > 4.0)
    assert not told(gap, code, np.where(gap, more / (more + 20), 26 / 226))


def test_forecasts_that_are_far_too_sure_raise_no_alarm(seed: int) -> None:
    rng = np.random.default_rng(seed)
    code = (rng.random(400) < 0.5).astype(float)
    sure = np.where(rng.random(400) < 0.6, code, 1.0 - code) * 0.98 + 0.01
    said = [told(rng.random(400) < 0.3, code, sure) for _ in range(40)]
    assert not any(said)
