"""Standard streams by other names, closed ones, and pipes without a name."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from glfm_cli import write_table

SHORT = ("--chains", "1", "--warmup", "3", "--draws", "4", "--threads", "1", "-q")
TABLE = "id,a,b\n" + "".join(f"{i},{i % 7 / 2 if i % 5 else ''},{i % 3}\n" for i in range(1, 31))
TYPES = "columns: {id: id, a: real, b: count}"


@pytest.fixture(autouse=True)
def of_the_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Be in the folder in which `glfm` runs, too."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def table(tmp_path: Path) -> bytes:
    """A table, and beside it the types file."""
    (tmp_path / "table.csv").write_text(TABLE)
    (tmp_path / "types.yaml").write_text(TYPES)
    return TABLE.encode()


def test_a_pipe_is_written_by_its_other_name(
    glfm: Callable, here: Callable, table: bytes
) -> None:
    options = ("impute", "table.csv", "--types", "types.yaml", *SHORT)
    named = glfm(*options, "-o", "/dev/stdout")
    assert (named.returncode, named.stderr) == (0, "")
    assert named.stdout == here(*options).stdout
    assert len(named.stdout.splitlines()) == 31


def test_batches_go_through_a_pipe_by_its_other_name(
    glfm: Callable, here: Callable, table: bytes
) -> None:
    options = ("impute", "table.csv", "--types", "types.yaml", *SHORT)
    assert here(*options, "--save", "f.glfm").status == 0
    more = ("-q", "--memory", "1k", "-o", "out.csv", "--cells", "/dev/stdout")
    done = glfm("impute", "table.csv", "--fit", "f.glfm", *more)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("row,")


@pytest.mark.parametrize("form", ["csv", "parquet", "xlsx", "ods"])
def test_a_pipe_without_a_suffix_is_told_by_its_bytes(
    glfm: Callable, table: bytes, tmp_path: Path, form: str
) -> None:
    if form != "csv":
        a = pa.array([None, 1.5, 2.0, 2.5] * 5)
        file = tmp_path / f"t.{form}"
        write_table(pa.table({"id": range(20), "a": a, "b": [1, 2] * 10}), file)
        table = file.read_bytes()
    options = ("--types", "types.yaml", *SHORT)
    named = glfm("impute", "/dev/stdin", *options, stdin=table)
    assert (named.returncode, named.stderr) == (0, "")
    assert named.stdout == glfm("impute", "-", *options, stdin=table).stdout


@pytest.mark.parametrize("command", ["impute", "suggest"])
def test_pairs_come_through_a_pipe(
    glfm: Callable, here: Callable, tmp_path: Path, command: str
) -> None:
    (tmp_path / "m.csv").write_text("u,v,y\na,x,1.5\na,y,2\nb,x,3\nb,z,1\nc,z,2\n")
    (tmp_path / "m.yaml").write_text("columns: {u: row, v: column, y: {type: real, role: value}}")
    (tmp_path / "p.csv").write_text("u,v\na,z\nb,y\n")
    options = (command, "m.csv", "--types", "m.yaml", *SHORT, "--pairs")
    named = here(*options, "p.csv")
    assert named.status == 0, named.stderr
    assert glfm(*options, "-", stdin=b"u,v\na,z\nb,y\n").stdout == named.stdout


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ("types table.csv >&-", "standard output: cannot be written: it is closed"),
        ("impute table.csv --types types.yaml >&-", "standard output: cannot be written: it is cl"),
        ("impute table.csv --types types.yaml -o o.csv --json >&-", "standard output: cannot be"),
        ("impute - --types types.yaml <&-", "standard input: is empty"),
        ("impute table.csv --types - <&-", "standard input: the file is empty"),
    ],
)
def test_a_closed_stream_is_one_clear_line(
    table: bytes, tmp_path: Path, arguments: str, error: str
) -> None:
    command, closed = arguments.rsplit(" ", 1)
    short = " ".join(SHORT) if command.startswith("impute") else ""
    line = f"{sys.executable} -m glfm_cli {command} {short} {closed}"
    done = subprocess.run(
        ["sh", "-c", line], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert done.stderr.startswith(f"Error: {error}")
    assert [text[:5] for text in done.stderr.splitlines()[1:]] in ([], ["Hint:"])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("arguments", ["types table.csv", "--help"])
def test_a_full_disk_behind_a_stream_is_said(table: bytes, tmp_path: Path, arguments: str) -> None:
    line = f"{sys.executable} -m glfm_cli {arguments} > /dev/full"
    done = subprocess.run(
        ["sh", "-c", line], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "Error: standard output: cannot be written: the disk is full",
        "Hint: Free some space, or write to another disk.",
    ]


def test_results_in_files_need_no_standard_stream(table: bytes, tmp_path: Path) -> None:
    line = f"{sys.executable} -m glfm_cli impute table.csv --types types.yaml -o out.csv"
    closed = " ".join((line, *SHORT, "<&- >&- 2>&-"))
    assert subprocess.run(["sh", "-c", closed], cwd=tmp_path, timeout=60).returncode == 0
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 31
