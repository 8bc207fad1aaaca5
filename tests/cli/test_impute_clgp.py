"""`glfm impute --model clgp` as a user runs it: all types, kept, resumed, applied, refused."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from glfm_cli.latent.clgp import ClgpConfig

Here = Callable[..., Any]
FEW = ["--set", "iterations=4", "--set", "inducing=10", "--set", "dimensions=2"]
SHORT = ["--model", "clgp", "--chains", "2", *FEW]


@pytest.fixture
def given(sample_data: Path) -> list[Any]:
    """A table of five types, its types file and a short run."""
    data = sample_data / "messy.csv"
    return [data, "--types", data.with_suffix(".types.yaml"), *SHORT]


def rows_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def test_a_table_of_all_types_is_completed_with_intervals(
    here: Here, given: list[Any], tmp_path: Path
) -> None:
    cells = tmp_path / "cells.csv"
    said = here("impute", *given, "--cells", cells)
    assert said.status == 0, said.stderr
    for cell in csv.DictReader(io.StringIO(cells.read_text())):
        if cell["type"] in ("categorical", "ordinal"):
            assert 0.0 < float(cell["probability"]) <= 1.0
        if cell["type"] in ("real", "positive", "count"):
            assert float(cell["lower"]) <= float(cell["mean"]) <= float(cell["upper"])


def test_a_kept_run_is_diagnosed_and_completes_new_rows(
    here: Here, given: list[Any], tmp_path: Path
) -> None:
    kept, whole = tmp_path / "kept.glfm", tmp_path / "whole.csv"
    assert here("impute", *given, "--save", kept, "-o", whole).status == 0
    again = here("impute", *given, "--threads", "2")
    assert again.output == whole.read_bytes()
    resumed = here("impute", given[0], "--resume", kept)
    assert resumed.status == 0, resumed.stderr
    assert resumed.output == whole.read_bytes()
    assert here("diagnose", kept, "--json").status == 0
    lines = given[0].read_text().splitlines(keepends=True)
    new = tmp_path / "new.csv"
    new.write_text("".join([lines[0], *lines[-20:]]))
    folded = here("impute", new, "--fit", kept)
    assert folded.status == 0, folded.stderr
    before, after = rows_of(new.read_text()), rows_of(folded.stdout)
    assert [len(row) for row in before] == [len(row) for row in after]


def test_a_run_that_is_cut_short_goes_on_to_the_same_bytes(
    here: Here, given: list[Any], tmp_path: Path
) -> None:
    kept, whole = tmp_path / "kept.glfm", tmp_path / "whole.csv"
    assert here("impute", *given, "-o", whole).status == 0
    cut = here("impute", *given, "--save", kept, "--time-limit", "0.001", "--checkpoint", "0.001")
    assert "time limit" in cut.stderr
    resumed = here("impute", given[0], "--resume", kept)
    assert resumed.status == 0, resumed.stderr
    assert resumed.output == whole.read_bytes()


def test_several_versions_of_a_table_differ(here: Here, given: list[Any]) -> None:
    said = here("impute", *given, "--multiple", "3")
    assert said.status == 0, said.stderr
    rows = rows_of(said.stdout)[1:]
    n = len(rows) // 4
    versions = [[row[2:] for row in rows[n * k : n * (k + 1)]] for k in range(1, 4)]
    assert versions[0] != versions[1] != versions[2]


def test_evaluate_scores_it_beside_a_sampler(here: Here, given: list[Any]) -> None:
    said = here(
        "evaluate",
        *given[:3],
        *["--methods", "clgp,mean", "--rates", "0.2", "--repeats", "1", "--jobs", "1"],
        *["--chains", "1", "--warmup", "10", "--draws", "5", *FEW],
    )
    assert said.status == 0, said.stderr
    assert "clgp" in said.stdout


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("kernel", kernel) for kernel in ("linear", "rbf", "both")],
        *[("samples", 4), ("category_samples", 2), ("passes", 2), ("batch", 150)],
        *[("learning_rate", 0.1), ("first_penalty", 1.0), ("warm_up", 0.5)],
    ],
)
def test_every_setting_is_reached(here: Here, given: list[Any], name: str, value: Any) -> None:
    said = here("impute", *given, "--set", f"{name}={value}", "--chains", "1")
    assert said.status == 0, said.stderr


def test_no_setting_is_left_out() -> None:
    reached = {"iterations", "inducing", "dimensions", "kernel", "samples", "category_samples"}
    reached |= {"passes", "batch", "learning_rate", "first_penalty", "warm_up"}
    assert {field.name for field in dataclasses.fields(ClgpConfig)} == reached


@pytest.mark.parametrize(
    ("command", "options", "message"),
    [
        ("impute", ["--warmup", "5"], "--warmup, --draws and --thin say how long to sample"),
        ("impute", ["--set", "samples=3"], "an even number from 2 to 1000"),
        ("impute", ["--set", "link_noise=0.1"], "link_noise is not available in the model 'clgp'"),
        ("suggest", [], "cells are chosen by how far draws disagree"),
        ("explore", [], "the model 'clgp' has no features to explore"),
    ],
)
def test_what_it_cannot_do_is_one_error(
    here: Here, given: list[Any], command: str, options: list[str], message: str
) -> None:
    said = here(command, *given, *options)
    assert said.status == 2
    (error,) = said.lines("Error")
    assert message in error
