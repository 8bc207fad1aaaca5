"""`glfm classify` of tables with many features: experts with factors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

FEATURES = 24
FAST = ("--chains", "2", "--set", "experts=3", "--set", "iterations=15", "--set", "short=5")


def table(n: int, seed: int) -> str:
    """Return a CSV table of features that depend on two factors, one of which makes the label."""
    rng = np.random.default_rng(seed)
    loadings = np.random.default_rng(0).standard_normal((2, FEATURES))
    s = rng.standard_normal((n, 2))
    x = s @ loadings + 0.5 * rng.standard_normal((n, FEATURES))
    lines = [",".join([*(f"x{p}" for p in range(FEATURES)), "kind", "field", "sick"])]
    for i in range(n):
        cells = ["" if rng.random() < 0.3 else f"{value:.3f}" for value in x[i]]
        kind = "left" if s[i, 1] < 0 else "right"
        lines.append(",".join([*cells, kind, "ab"[i % 2], "yes" if s[i, 0] > 0 else "no"]))
    return "\n".join(lines) + "\n"


def types(field: str) -> str:
    return (
        "columns:\n"
        + "".join(f"  x{p}: real\n" for p in range(FEATURES))
        + f"  kind: categorical\n  field: {field}\n"
        + '  sick: {type: categorical, levels: ["no", "yes"]}\n'
    )


@pytest.fixture
def classify(desk: Any, here: Callable[..., Any]) -> Callable[..., Any]:
    desk.put("train.csv", table(50, 1))
    desk.put("new.csv", table(60, 2))
    desk.put("types.yaml", types("ignore"))
    desk.put("tasks.yaml", types("task"))

    def run(*options: str, file: str = "types.yaml") -> Any:
        told = ("--types", file, "--target", "sick", "--predict", "new.csv", *FAST)
        return here("classify", "train.csv", *told, *options)

    return run


def test_many_features_depend_on_factors_and_it_is_said(classify: Any, desk: Any) -> None:
    run = classify("-o", "p.csv", "--json")
    found = json.loads(run.stdout)
    assert 0 <= found["fit"]["factors"] <= 12
    assert "25 features are more than a fifth of the 50 rows: half of the starts" in run.stderr
    assert len(found["fit"]["averaged"]) == 2  # one start of each form goes on
    assert sum(found["fit"]["averaged"]) == pytest.approx(1.0)
    assert found["scores"]["auc"] > 0.85


def test_a_cross_validation_says_so_too(desk: Any, here: Callable[..., Any]) -> None:
    few = [f"x{p}" for p in range(12)]
    rng = np.random.default_rng(0)
    rows = [[*(f"{v:.2f}" for v in rng.standard_normal(12)), "yn"[i % 2]] for i in range(24)]
    desk.put("few.csv", "\n".join(",".join(row) for row in [[*few, "y"], *rows]) + "\n")
    desk.put("few.yaml", "columns:\n" + "".join(f"  {x}: real\n" for x in few) + "  y: categorical")
    told = ("--types", "few.yaml", "--target", "y", "--cv", "2", *FAST)
    said = here("classify", "few.csv", *told).stderr
    assert "12 features are more than a fifth of the 12 rows: half of the starts" in said
    assert "a fifth" not in here("classify", "few.csv", *told, "--set", "factors=2").stderr


def test_the_best_start_may_predict_alone(classify: Any) -> None:
    run = classify("-o", "p.csv", "--json", "--set", "average=false")
    found = json.loads(run.stdout)
    assert found["fit"]["averaged"] == [1.0]
    assert found["fit"]["factors"] >= 1
    assert "experts describe them by" in run.stderr


def test_factors_may_be_few_or_none(classify: Any) -> None:
    for asked, told in (("0", 0), ("1", 1)):
        found = json.loads(classify("-o", "p.csv", "--json", "--set", f"factors={asked}").stdout)
        assert found["fit"]["factors"] == told


def test_a_kept_fit_predicts_completes_and_explains(
    classify: Any, desk: Any, here: Callable[..., Any]
) -> None:
    classify("-o", "p.csv", "--save", "sick.glfm", "--complete", "c.csv")
    here("classify", "new.csv", "--fit", "sick.glfm", "-o", "again.csv")
    assert (desk.folder / "again.csv").read_text() == Path("p.csv").read_text()
    rows = (desk.folder / "c.csv").read_text().splitlines()
    assert len(rows) == 61
    assert all("" not in row.split(",") for row in rows)
    experts = json.loads(here("explore", "sick.glfm", "--json").stdout)["experts"]
    assert len(experts[0]["columns"]) == FEATURES + 1
    assert experts[0]["drives"][0]["effect"] != 0.0
    shown, told = (here(name, "sick.glfm").stdout for name in ("explore", "diagnose"))
    assert shown.splitlines()[1].startswith("Number of experts: ")
    assert shown.splitlines()[1:5] == told.splitlines()[-4:]
    found = json.loads(here("diagnose", "sick.glfm", "--json").stdout)
    assert sum(found["posterior"]["experts"].values()) > 0.97
    assert found["fit"]["starts"]
    error = "--cells cannot be used where a classifier is diagnosed"
    desk.check_rejected(error, here, "diagnose", "sick.glfm", "--cells", "3")


def test_tasks_share_experts_with_factors(classify: Any) -> None:
    found = json.loads(classify("-o", "p.csv", "--json", file="tasks.yaml").stdout)
    assert found["fit"]["factors"] >= 1
    assert found["tasks"]["names"] == ["a", "b"]
    assert found["scores"]["auc"] > 0.8


def test_the_sampler_has_no_factors(classify: Any) -> None:
    run = classify("--set", "inference=gibbs", "--set", "factors=2")
    assert run.status == 2
    assert "only for full covariances" in run.stderr
