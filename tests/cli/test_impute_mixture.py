"""`glfm impute --model mixture` as a user runs it: all types, kept, gone on with, applied."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Here = Callable[..., Any]
SHORT = ["--model", "mixture", "--chains", "2", "--warmup", "4", "--set", "components=4"]


@pytest.fixture
def given(sample_data: Path) -> list[Any]:
    """A table of five types, its types file and a short run."""
    data = sample_data / "messy.csv"
    return [data, "--types", data.with_suffix(".types.yaml"), *SHORT]


def rows_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def test_a_kept_run_goes_on_and_completes_new_rows(
    here: Here, given: list[Any], tmp_path: Path
) -> None:
    short, whole = tmp_path / "short.glfm", tmp_path / "whole.csv"
    assert here("impute", *given, "--draws", "2", "--save", short, "-o", whole).status == 0
    said = here("impute", *given, "--draws", "4", "-o", whole, "--threads", "2")
    assert said.status == 0, said.stderr
    resumed = here("impute", given[0], "--resume", short, "--draws", "4")
    assert resumed.status == 0, resumed.stderr
    assert resumed.output == whole.read_bytes()
    lines = given[0].read_text().splitlines(keepends=True)
    new = tmp_path / "new.csv"
    new.write_text("".join([lines[0], *lines[-20:]]))
    folded = here("impute", new, "--fit", short)
    assert folded.status == 0, folded.stderr
    before, after = rows_of(new.read_text()), rows_of(folded.stdout)
    assert [len(row) for row in before] == [len(row) for row in after]
    for was, now in zip(before, after, strict=True):
        assert all(x == y for x, y in zip(was, now, strict=True) if x not in ("", "NA", "?", "-1"))
    assert here("diagnose", short, "--json").status == 0


def test_several_versions_of_a_table_differ(here: Here, given: list[Any]) -> None:
    said = here("impute", *given, "--draws", "3", "--multiple", "2")
    assert said.status == 0, said.stderr
    rows = rows_of(said.stdout)[1:]
    n = len(rows) // 3
    assert rows[n : 2 * n] != rows[2 * n :]


def test_evaluate_scores_it(here: Here, given: list[Any]) -> None:
    said = here(
        "evaluate",
        *given[:3],
        *["--methods", "mixture,mean", "--rates", "0.2", "--repeats", "1", "--jobs", "1"],
        *["--chains", "1", "--warmup", "10", "--draws", "5"],
    )
    assert said.status == 0, said.stderr
    assert "mixture" in said.stdout


def test_it_has_no_binary_features_to_explore(here: Here, given: list[Any]) -> None:
    said = here("explore", *given[:3], "--model", "mixture")
    assert said.status == 2
    assert said.lines("Error") == ["Error: the model 'mixture' has no features to explore"]
