"""A command and a file format are a file each and one line: the toys work like all others."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import glfm_cli
from glfm_cli import read_table, write_table
from glfm_cli.errors import TableError
from tests.cli.conftest import SHORT, run_here
from tests.contract.toys.cards import MAGIC
from tests.contract.toys.tally import EXAMPLE

pytestmark = pytest.mark.usefixtures("toys")
TABLE = pa.table(
    {"n": pa.array([1, None, 3], pa.int16()), "x": [None, 0.5, -1e300], "city": ["Oslo", "", None]},
    metadata={"made": "here"},
)


def test_a_command_is_run_helped_and_listed(
    sample_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(sample_data.parent)
    done = run_here(*EXAMPLE.split()[1:])
    assert done.status == 0, done.stderr
    found = {row["column"]: int(row["empty"]) for row in csv.DictReader(io.StringIO(done.stdout))}
    assert found == glfm_cli.tally("sample_data/airquality.csv").empty
    assert found["Ozone"] == 37
    assert "Count the empty cells" in run_here("--help").stdout
    assert EXAMPLE in run_here("tally", "--help").stdout


def test_a_wrong_table_of_a_command_is_one_error(tmp_path: Path) -> None:
    done = run_here("tally", tmp_path / "none.csv")
    assert (done.status, done.stdout) == (2, "")
    assert len(done.lines("Error")) == 1


@pytest.mark.parametrize("name", ["t.cards", "t.cards.gz", "t.cards.zst"])
def test_what_was_written_in_a_format_is_read_as_it_was(tmp_path: Path, name: str) -> None:
    write_table(TABLE, tmp_path / name)
    again = read_table(tmp_path / name)
    assert again.equals(TABLE)
    assert again.schema.metadata[b"made"] == b"here"


@pytest.mark.parametrize("damage", [b"[", b'["n", 1]\n\n', b'["n", "x"]\n["x", 1]\n["city", ""]\n'])
def test_a_damaged_file_of_a_format_is_one_error(tmp_path: Path, damage: bytes) -> None:
    write_table(TABLE, tmp_path / "t.cards")
    with (tmp_path / "t.cards").open("ab") as file:
        file.write(damage)
    with pytest.raises(TableError, match=r"t\.cards: holds damaged cards"):
        read_table(tmp_path / "t.cards")


def test_standard_input_in_a_format_is_told_and_completed(
    tmp_path: Path, sample_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, types = (sample_data / f"airquality{end}" for end in (".csv", ".types.yaml"))
    write_table(read_table(table), tmp_path / "t.cards")
    data = (tmp_path / "t.cards").read_bytes()
    assert data.startswith(MAGIC)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    done = run_here("impute", "-", "--types", types, *SHORT, "-q", "-o", tmp_path / "out.cards")
    assert done.status == 0, done.stderr
    found = read_table(tmp_path / "out.cards")
    assert found.num_rows == 153
    assert not {"", "NA", None} & set(found.column("Ozone").to_pylist())
