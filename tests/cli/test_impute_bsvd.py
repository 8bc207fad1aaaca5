"""`glfm impute --model bsvd` as a user runs it: all types, kept, gone on with, applied."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Here = Callable[..., Any]
SHORT = ["--model", "bsvd", "--chains", "2", "--warmup", "6", "--threads", "1"]


@pytest.fixture(scope="module")
def pbc(here: Here, sample_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a completed table of all five types, its fit, and its last rows."""
    folder = tmp_path_factory.mktemp("bsvd")
    data = sample_data / "pbc.csv"
    given = [data, "--types", data.with_suffix(".types.yaml"), *SHORT, "--draws", "5"]
    outputs = ["-o", folder / "full.csv", "--save", folder / "pbc.glfm"]
    assert here("impute", *given, *outputs).status == 0
    lines = data.read_text().splitlines(keepends=True)
    (folder / "new.csv").write_text("".join([lines[0], *lines[-40:]]))
    return folder


def rows_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def assert_completed(before: list[list[str]], after: list[list[str]]) -> None:
    assert len(before) == len(after)
    for was, now in zip(before, after, strict=True):
        for name, x, y in zip(before[0], was, now, strict=True):
            assert y == x if x != "NA" or name == "trt" else y != "NA"


def test_gaps_of_every_type_are_filled_and_observed_cells_are_kept(
    pbc: Path, sample_data: Path
) -> None:
    before = rows_of((sample_data / "pbc.csv").read_text())
    assert_completed(before, rows_of((pbc / "full.csv").read_text()))


def test_threads_change_nothing(here: Here, pbc: Path, sample_data: Path) -> None:
    data = sample_data / "pbc.csv"
    given = [data, "--types", data.with_suffix(".types.yaml"), *SHORT, "--draws", "5"]
    again = here("impute", *given, "--threads", "2", "-o", "-")
    assert again.status == 0
    assert again.output == (pbc / "full.csv").read_bytes()


def test_a_run_gone_on_with_is_that_of_one_run(
    here: Here, sample_data: Path, tmp_path: Path
) -> None:
    data = sample_data / "pbc.csv"
    given = [data, "--types", data.with_suffix(".types.yaml"), *SHORT]
    short, whole = tmp_path / "short.glfm", tmp_path / "whole.csv"
    assert here("impute", *given, "--draws", "2", "--save", short, "-o", whole).status == 0
    assert here("impute", *given, "--draws", "6", "-o", whole).status == 0
    resumed = here("impute", data, "--resume", short, "--draws", "6")
    assert resumed.status == 0, resumed.stderr
    assert resumed.output == whole.read_bytes()


def test_new_rows_are_completed_with_a_kept_fit(here: Here, pbc: Path) -> None:
    said = here("impute", pbc / "new.csv", "--fit", pbc / "pbc.glfm")
    assert said.status == 0, said.stderr
    assert_completed(rows_of((pbc / "new.csv").read_text()), rows_of(said.stdout))


def test_a_fit_can_be_diagnosed(here: Here, pbc: Path, tmp_path: Path) -> None:
    picture = tmp_path / "fit.png"
    said = here("diagnose", pbc / "pbc.glfm", "--json", "--plot", picture)
    assert said.status == 0, said.stderr
    found = json.loads(said.stdout)
    assert found["model"] == "bsvd"
    assert found["precision"]["chains"] == 2
    assert picture.stat().st_size > 0


def test_several_versions_of_a_table_differ_in_their_gaps_only(
    here: Here, sample_data: Path
) -> None:
    data = sample_data / "airquality.csv"
    given = [data, "--types", data.with_suffix(".types.yaml"), *SHORT, "--draws", "5"]
    said = here("impute", *given, "--multiple", "3")
    rows = rows_of(said.stdout)[1:]
    n = len(rows) // 4
    parts = [[row[2:] for row in rows[i * n : (i + 1) * n]] for i in range(4)]
    changed = [
        (a, b, before)
        for first, second, blank in zip(parts[1], parts[2], parts[0], strict=True)
        for a, b, before in zip(first, second, blank, strict=True)
        if a != b
    ]
    assert changed
    assert all(before in ("", "NA") for _, _, before in changed)


def test_evaluate_scores_it(here: Here, sample_data: Path) -> None:
    data = sample_data / "airquality.csv"
    said = here(
        "evaluate",
        data,
        "--types",
        data.with_suffix(".types.yaml"),
        *["--methods", "bsvd,mean", "--rates", "0.2", "--repeats", "1", "--threads", "1"],
        *["--chains", "1", "--warmup", "20", "--draws", "10"],
    )
    assert said.status == 0, said.stderr
    assert "bsvd" in said.stdout


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("max_components=-1", "--set max_components, found -1, expected a whole number from 0"),
        ("noise_rate=0", "--set noise_rate, found 0.0, expected a number from 1e-10"),
        ("max_features=3", "--set max_features: no such setting"),
    ],
)
def test_settings_out_of_range_are_refused(
    here: Here, sample_data: Path, setting: str, message: str
) -> None:
    data = sample_data / "airquality.csv"
    types = data.with_suffix(".types.yaml")
    said = here("impute", data, "--types", types, *SHORT, "--draws", "2", "--set", setting)
    assert said.status == 2
    assert message in said.stderr


def test_a_table_of_one_column_is_completed(desk: Any) -> None:
    desk.put("table.csv", "a\n1\n2\n\n3\n")
    desk.put("types.yaml", "columns: {a: real}")
    said, text = desk.complete("--model", "bsvd")
    assert said.lines("Error") == []
    assert len(text.splitlines()) == 5
    assert "" not in text.splitlines()
