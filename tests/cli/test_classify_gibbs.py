"""`glfm classify --set inference=gibbs`: predictions averaged over draws."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from typing import Any

import numpy as np

TYPES = """\
columns:
  field: ignore
  a: real
  step: {type: ordinal, levels: [low, high]}
  sick: {type: categorical, role: target}
"""
FEW = (
    *("--chains", "2", "--set", "inference=gibbs", "--set", "experts=3"),
    *("--set", "sweeps=40", "--set", "draws=4"),
)


def table(n: int, seed: int) -> str:
    """Return rows whose label is likelier where `a` is high; some cells are missing."""
    rng = np.random.default_rng(seed)
    lines = ["field,a,step,sick"]
    for i in range(n):
        a = rng.normal()
        step = "high" if a + rng.normal() > 0 else "low"
        cell = "" if rng.random() < 0.2 else f"{a:.3f}"
        label = ["never", "some", "ever"][int(np.digitize(a + 0.5 * rng.normal(), [-0.5, 0.5]))]
        lines.append(f"{i % 2},{cell},{'' if rng.random() < 0.2 else step},{label}")
    return "\n".join(lines) + "\n"


def test_labels_and_features_are_predicted_by_sampling(desk: Any, here: Callable[..., Any]) -> None:
    desk.put("train.csv", table(60, 1))
    desk.put("new.csv", table(40, 2))
    desk.put("types.yaml", TYPES)
    options = ("--types", "types.yaml", "--predict", "new.csv", *FEW)
    said = here(
        "classify", "train.csv", *options, "--complete", "full.csv", "--json", "-o", "p.csv"
    )
    assert said.status == 0, said.stderr
    summary = json.loads(said.stdout)
    assert summary["scores"]["auc"] > 0.7
    assert (summary["fit"]["draws"], summary["fit"]["sweeps"]) == (8, 40)
    assert 0.5 < summary["fit"]["rhat"] < 2.0
    text = (desk.folder / "p.csv").read_text()
    for row in csv.DictReader(io.StringIO(text)):
        p = [float(row[f"p_{level}"]) for level in ("never", "some", "ever")]
        assert abs(sum(p) - 1.0) < 1e-9
    full = list(csv.DictReader(io.StringIO((desk.folder / "full.csv").read_text())))
    assert all(row["a"] and row["step"] for row in full)
    again = here("classify", "train.csv", *options)
    assert again.stdout == text
    assert "40 sweeps, 8 draws kept" in again.stderr
    desk.put("types.yaml", TYPES.replace("field: ignore", "field: task"))
    error = "--set inference=gibbs is only for one task"
    desk.check_rejected(error, here, "classify", "train.csv", *options)


def test_a_fit_by_sampling_is_kept_and_shows_no_experts(
    desk: Any, here: Callable[..., Any]
) -> None:
    desk.put("train.csv", table(40, 1))
    desk.put("new.csv", table(20, 2))
    desk.put("types.yaml", TYPES)
    options = ("--types", "types.yaml", "--predict", "new.csv", *FEW)
    said = here("classify", "train.csv", *options, "--save", "kept.glfm")
    assert said.status == 0, said.stderr
    assert not any("no cell is to be completed" in line for line in said.lines("Warning"))
    again = here("classify", "new.csv", "--fit", "kept.glfm", "--complete", "full.csv")
    assert again.status == 0, again.stderr
    assert again.stdout == said.stdout
    error = "a fit by sampling has no experts to show: each draw has its own"
    desk.check_rejected(error, here, "explore", "kept.glfm")
    said = here("diagnose", "kept.glfm").stdout.splitlines()
    assert said[0].endswith(" draws of 40 sweeps a chain")
    assert said[1].startswith("Number of experts: ")


def test_folds_are_predicted_by_sampling(desk: Any, here: Callable[..., Any]) -> None:
    desk.put("train.csv", table(40, 1))
    desk.put("types.yaml", TYPES)
    said = here("classify", "train.csv", "--types", "types.yaml", "--cv", "2", *FEW)
    assert said.status == 0, said.stderr
    assert "iqgme" in said.stdout
