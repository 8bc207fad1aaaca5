"""`glfm impute --fit` as a user runs it: new rows, the same table, and what it refuses."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Here = Callable[..., Any]
SHORT = ["--chains", "2", "--warmup", "6", "--draws", "5", "--threads", "1"]
NEW = 40


@pytest.fixture(scope="module")
def kept(here: Here, sample_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a fit of pbc, the completed table, and its last rows as a table."""
    folder = tmp_path_factory.mktemp("kept")
    data = sample_data / "pbc.csv"
    types = data.with_suffix(".types.yaml")
    outputs = ["--model", "glfm", "-o", folder / "full.csv", "--save", folder / "pbc.glfm"]
    assert here("impute", data, "--types", types, *SHORT, *outputs).status == 0
    lines = data.read_text().splitlines(keepends=True)
    (folder / "new.csv").write_text("".join([lines[0], *lines[-NEW:]]))
    return folder


@pytest.fixture
def apply(here: Here, kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    """Run `glfm impute` with the fit in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(table: str | Path, *options: str | Path) -> Any:
        return here("impute", kept / table, "--fit", kept / "pbc.glfm", *options)

    return run


def rows_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def test_new_rows_are_completed_and_keep_their_text(apply: Here, kept: Path) -> None:
    said = apply("new.csv", "--cells", "cells.csv")
    assert said.status == 0
    before, after = rows_of((kept / "new.csv").read_text()), rows_of(said.stdout)
    assert len(after) == NEW + 1
    for was, now in zip(before, after, strict=True):
        for name, x, y in zip(before[0], was, now, strict=True):
            assert y == x if x != "NA" or name == "trt" else y != "NA"
    assert len(rows_of(Path("cells.csv").read_text())) > NEW


def test_a_seed_fixes_the_result_whatever_the_threads(apply: Here) -> None:
    one, two = (apply("new.csv", "--threads", n).output for n in ("1", "2"))
    assert one == two
    assert apply("new.csv", "--seed", "9").output != one


def test_more_chains_are_those_of_the_fit(apply: Here) -> None:
    said = apply("new.csv", "-o", "out.csv").stderr
    assert "take a fit resumed with --chains" in said or "come a fit resumed with" in said


def test_the_fitted_table_is_completed_as_before(
    apply: Here, kept: Path, sample_data: Path
) -> None:
    said = apply(sample_data / "pbc.csv")
    assert said.output == (kept / "full.csv").read_bytes()
    stacked = apply(sample_data / "pbc.csv", "--multiple", "2")
    assert len(rows_of(stacked.stdout)) == 1 + 3 * 418


def test_every_other_output_can_be_had(apply: Here) -> None:
    names = {"--probabilities": "p.csv", "--draws-to": "d.parquet", "--plot": "p.png"}
    files = [part for pair in names.items() for part in pair]
    said = apply("new.csv", *files, "--flags", "-o", "o.csv", "--json", "--estimate", "median")
    assert said.status == 0
    assert json.loads(said.stdout)["rows"] == NEW
    assert all(Path(name).stat().st_size for name in [*names.values(), "o.csv"])


def test_a_number_that_does_not_fit_is_mended_without_other_types(
    apply: Here, tmp_path: Path, kept: Path
) -> None:
    header, first, *rest = (kept / "new.csv").read_text().splitlines(keepends=True)
    cells, place = first.split(","), header.split(",").index('"chol"')
    for found in ("-3", "high"):
        cells[place] = found
        Path("new.csv").write_text("".join([header, ",".join(cells), *rest]))
        said = apply(tmp_path / "new.csv")
        assert said.status == 2
        assert f"column 'chol', row 1: found '{found}'" in said.lines("Error")[0]
        hint = "Hint: Treat such cells as missing with `--unseen missing`, or fit again"
        assert said.lines("Hint")[0].startswith(hint)
        mended = apply(tmp_path / "new.csv", "--unseen", "missing", "-o", "mended.csv", "-q")
        assert mended.status == 0
        row = Path("mended.csv").read_text().splitlines()[1]
        assert row.split(",")[place] == found


def test_a_dry_run_says_what_would_be_done(apply: Here) -> None:
    said = apply("new.csv", "--dry-run")
    assert f"{NEW} rows, 19 modelled columns" in said.stdout
    assert "with the 10 draws of the fit" in said.stdout
    found = json.loads(apply("new.csv", "--dry-run", "--json").stdout)
    assert found["rows"] == NEW
    assert sum(found["gaps"].values()) == found["cells_to_complete"]
    assert found["seconds"] > 0
    assert found["megabytes"] > 0
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--types", "t.yaml"], "--types and --fit cannot be used together"),
        (["--chains", "4"], "--chains and --fit"),
        (["--set", "alpha=1"], "--set and --fit"),
        (["--save", "x.glfm"], "--save and --fit"),
        (["--time-limit", "3"], "--time-limit and --fit"),
        (["--unseen", "ignore"], "expected error or missing"),
        (["--multiple", "11"], "but 10 will be kept"),
    ],
)
def test_what_does_not_go_with_a_fit_is_refused(
    apply: Here, options: list[str], expected: str
) -> None:
    said = apply("new.csv", *options)
    assert said.status == 2
    assert expected in said.stderr
    assert len(said.lines("Error")) == 1


def test_an_unseen_level_is_named_or_left(apply: Here, kept: Path, tmp_path: Path) -> None:
    lines = (kept / "new.csv").read_text().splitlines(keepends=True)
    (tmp_path / "odd.csv").write_text(lines[0] + lines[1].replace('"f"', '"x"'))
    said = apply(tmp_path / "odd.csv")
    assert said.status == 2
    assert "column 'sex', row 1: found 'x', expected a level that the fit has seen: m, f" in (
        said.stderr
    )
    assert "--unseen missing" in said.lines("Hint")[0]
    said = apply(tmp_path / "odd.csv", "--unseen", "missing")
    assert said.status == 0
    assert rows_of(said.stdout)[1][5] == "x"
    assert any("'x'" in line for line in said.lines("Warning"))


def test_absent_columns_are_named(apply: Here, kept: Path, tmp_path: Path) -> None:
    rows = [row[:-2] for row in rows_of((kept / "new.csv").read_text())]
    (tmp_path / "short.csv").write_text("".join(",".join(row) + "\n" for row in rows))
    said = apply(tmp_path / "short.csv")
    assert said.status == 2
    assert "2 columns that the fit models: 'protime', 'stage'" in said.stderr


def test_without_types_or_a_fit_a_line_says_what_is_missing(here: Here, kept: Path) -> None:
    said = here("impute", kept / "new.csv")
    assert said.status == 2
    assert "--types FILE is missing" in said.stderr
