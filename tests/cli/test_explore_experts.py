"""`glfm explore` of a classifier: where its experts lie, and what drives the label in each."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

TYPES = """\
columns:
  height: real
  kind: {type: categorical, levels: [x, y, z]}
  b: real
  same: real
  sick: {type: categorical, levels: ["no", "yes"]}
"""


def table(n: int, seed: int) -> str:
    """Return two groups, at heights of 100 and 180, in which `b` drives `sick` in opposite ways."""
    rng = np.random.default_rng(seed)
    lines = ["height,kind,b,same,sick"]
    for i in range(n):
        group = int(i % 3 > 0)
        height, b = rng.normal(100.0 + 80.0 * group, 5.0), rng.normal()
        kind = rng.choice(["x", "y", "z"], p=[0.9, 0.05, 0.05] if group else [0.05, 0.05, 0.9])
        lines.append(f"{height:.2f},{kind},{b:.3f},7,{'yes' if (b > 0) == group else 'no'}")
    return "\n".join(lines) + "\n"


@pytest.fixture
def kept(desk: Any, here: Callable[..., Any]) -> None:
    """Keep a classifier in sick.glfm."""
    desk.put("train.csv", table(90, 1))
    desk.put("types.yaml", TYPES)
    few = ("--chains", "8", "--set", "experts=4", "--set", "iterations=40")
    options = ("--types", "types.yaml", "--target", "sick", *few, "--save", "sick.glfm")
    said = here("classify", "train.csv", *options)
    assert said.status == 0, said.stderr


@pytest.mark.usefixtures("kept")
def test_experts_are_shown_in_the_units_of_the_columns(desk: Any, here: Callable[..., Any]) -> None:
    said = here("explore", "sick.glfm", "--json", "--top", "2")
    assert said.status == 0, said.stderr
    found = json.loads(said.stdout)
    assert (found["target"], found["rows"], found["labelled"]) == ("sick", 90, 90)
    large, small = found["experts"][:2]
    assert large["labels"]["yes"] == pytest.approx(0.5, abs=0.25)
    assert large["share"] == pytest.approx(2 / 3, abs=0.1)
    for expert, height, kind, sign in ((large, 180.0, "x", 1), (small, 100.0, "z", -1)):
        columns = {one["column"]: one for one in expert["columns"]}
        assert "same" not in columns
        assert columns["height"]["center"] == pytest.approx(height, abs=5.0)
        assert columns["height"]["low"] < columns["height"]["center"] < columns["height"]["high"]
        assert columns["kind"]["center"] == kind
        assert sum(expert["labels"].values()) == pytest.approx(1.0)
        first = expert["drives"][0]
        assert (first["feature"], first["label"]) == ("b", "yes")
        assert first["effect"] * sign > first["sd"] > 0
        assert len(expert["drives"]) == 2
    text = here("explore", "sick.glfm").stdout
    assert text.startswith(f"{len(found['experts'])} experts for 'sick', learnt from 90 labelled")
    assert "Expert 1: 6" in text
    assert max(map(len, text.splitlines())) <= 100
    desk.check_rejected("--html cannot be used", here, "explore", "sick.glfm", "--html", "x.html")
    desk.check_rejected("--top, found 0", here, "explore", "sick.glfm", "--top", "0")
