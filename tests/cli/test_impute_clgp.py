"""`glfm impute --model clgp` as a user runs it: intervals, every setting, and what it refuses."""

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


def test_new_rows_without_a_gap_come_out_as_they_are(here: Here, tmp_path: Path) -> None:
    table, fit = tmp_path / "t.csv", tmp_path / "fit.glfm"
    table.write_text("a,b\n" + "".join(f"{i % 7},{i % 5}\n" for i in range(12)))
    types = tmp_path / "t.yaml"
    types.write_text("columns: {a: real, b: real}")
    said = here("impute", table, "--types", types, *SHORT, "--save", fit)
    assert said.status == 0, said.stderr
    said = here("impute", table, "--fit", fit, "-o", tmp_path / "out.csv")
    assert said.status == 0, said.stderr
    (tmp_path / "new.csv").write_text("a,b\n3,4\n5,1\n")
    said = here("impute", tmp_path / "new.csv", "--fit", fit)
    assert said.status == 0, said.stderr
    assert said.stdout == "a,b\n3,4\n5,1\n"


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
        ("explore", ["--surprising", "3"], "--surprising is not available: the model 'clgp'"),
    ],
)
def test_what_it_cannot_do_is_one_error(
    here: Here, given: list[Any], command: str, options: list[str], message: str
) -> None:
    said = here(command, *given, *options)
    assert said.status == 2
    (error,) = said.lines("Error")
    assert message in error
