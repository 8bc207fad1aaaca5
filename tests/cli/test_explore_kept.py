"""`glfm explore` keeps a run, goes on with it, records it, and says beforehand what it would do."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from killing import Command

from glfm_cli import explore

PLAN = ("--chains", "2", "--warmup", "8", "--draws", "6", "--threads", "1", "--seed", "4")
Run = Callable[..., Any]


@pytest.fixture
def table(sample_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """`DATA --types FILE` of a table of all types, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    lines = (sample_data / "messy.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "table.csv").write_text("".join(lines[:60]), encoding="utf-8")
    types = (sample_data / "messy.types.yaml").read_bytes()
    (tmp_path / "types.yaml").write_bytes(types)
    return ("table.csv", "--types", "types.yaml")


@pytest.fixture
def explored(table: tuple[str, ...], here: Run) -> Run:
    """Run `glfm explore` on the table, with a few sweeps of two chains."""
    return partial(here, "explore", *table, *PLAN)


def content(said: Any) -> dict[str, Any]:
    """Return what `--json` printed, without the time and the name of what was read."""
    assert said.status == 0, said.stderr
    found: dict[str, Any] = json.loads(said.stdout)
    del found["seconds"], found["options"]["source"]
    return found


def test_a_kept_run_is_explored_again_and_completes_tables(explored: Run, here: Run) -> None:
    said = explored("--json", "--save", "run.glfm")
    assert "The fit is saved in run.glfm." in said.stderr
    first = content(said)
    assert content(here("explore", "run.glfm", "--json")) == first
    done = here("impute", "table.csv", "--fit", "run.glfm", "-o", "completed.csv")
    assert done.status == 0, done.stderr
    assert "," in Path("completed.csv").read_text(encoding="utf-8")


def test_going_on_for_more_draws_is_one_uninterrupted_run(explored: Run, here: Run) -> None:
    straight = content(explored("--json", "--draws", "9"))
    explored("--json", "--save", "run.glfm")
    more = here("explore", "table.csv", "--resume", "run.glfm", "--draws", "9", "--json")
    assert content(more) == straight
    from_python = explore("table.csv", resume="run.glfm", threads=1).to_dict()
    del from_python["seconds"], from_python["options"]["source"]
    assert json.loads(json.dumps(from_python)) == straight


def test_a_run_begun_by_impute_is_gone_on_with(
    table: tuple[str, ...], explored: Run, here: Run
) -> None:
    done = here("impute", *table, *PLAN, "--model", "glfm", "-o", "x.csv", "--save", "run.glfm")
    assert done.status == 0, done.stderr
    said = here("explore", "table.csv", "--resume", "run.glfm", "--json")
    assert "initial_features" not in content(said)["options"]["settings"]  # it has its own start


def test_python_keeps_a_run_too(table: tuple[str, ...]) -> None:
    options: dict[str, Any] = {"chains": 2, "warmup": 4, "draws": 3, "threads": 1}
    found = explore("table.csv", "types.yaml", save="run.glfm", with_data=False, **options)
    assert not Path("run.glfm/data.arrow").exists()
    again = explore("table.csv", resume="run.glfm", threads=1)
    assert again.to_dict()["features"] == found.to_dict()["features"]


def test_a_killed_run_goes_on_from_its_partial_work(
    table: tuple[str, ...], explored: Run, tmp_path: Path, seed: int
) -> None:
    assert explored("--plot", "straight.svg").status == 0
    moments = random.Random(seed)
    kept = tmp_path / "page.svg.glfm.partial"
    begin = ("explore", *table, *PLAN, "--plot", "page.svg", "-q", "--checkpoint", "0")
    for _ in range(3):
        command = Command(tmp_path, *begin)
        command.wait_for(kept / "chain-0.state.arrow")
        status = command.stop(moments.uniform(0.0, 0.1))
        assert status in (0, -signal.SIGKILL), command.stderr
    assert Command(tmp_path, *begin).end() == 0
    assert not kept.exists()
    assert (tmp_path / "page.svg").read_bytes() == (tmp_path / "straight.svg").read_bytes()


def test_work_is_done_when_its_files_are_written(
    table: tuple[str, ...], tmp_path: Path, repository: Path
) -> None:
    words = [sys.executable, "-m", "glfm_cli", "explore", *table, *PLAN, "--plot", "page.svg"]
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {shlex.join(words)} | head -c 1"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(repository)},
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "page.svg").exists()
    assert "saved in" not in done.stderr
    assert not (tmp_path / "page.svg.glfm.partial").exists()


def test_a_time_limit_keeps_the_work_so_far(explored: Run) -> None:
    said = explored("--plot", "page.svg", "--draws", "100000", "--time-limit", "0.3")
    assert said.status == 0
    assert Path("page.svg").exists()
    assert any("--resume page.svg.glfm.partial" in line for line in said.lines("Warning"))
    assert Path("page.svg.glfm.partial/run.json").exists()


def test_ctrl_c_explores_the_draws_so_far(table: tuple[str, ...], tmp_path: Path) -> None:
    kept = tmp_path / "page.svg.glfm.partial"
    endless = ("--chains", "1", "--warmup", "2", "--draws", "100000", "--checkpoint", "0")
    command = Command(tmp_path, "explore", *table, *endless, "--plot", "page.svg")
    command.wait_for(kept / "chain-0.state.arrow")
    assert command.stop(0.1, signal.SIGINT) == 130
    assert (tmp_path / "page.svg").exists()
    assert "Interrupted; exploring the draws so far." in command.stderr
    assert "--resume page.svg.glfm.partial" in command.stderr


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_dry_run_says_what_would_be_done_and_writes_nothing(
    explored: Run, tmp_path: Path, workers: str
) -> None:
    before = sorted(tmp_path.iterdir())
    said = explored("--dry-run", "--threads", workers, "-o", "out", "--save", "run.glfm")
    assert said.status == 0, said.stderr
    lines = said.stdout.splitlines()
    assert lines[0].startswith("59 rows, ")
    assert any(line.endswith(" missing") for line in lines)
    assert f"2 chains of 20 sweeps, 6 draws kept from each, {workers} at a time" in lines
    assert any(line.startswith("about ") for line in lines)
    assert lines[-1].startswith("  --effort thorough: ")
    plan = json.loads(explored("--dry-run", "--json").stdout)
    assert plan["cells_missing"] == sum(plan["gaps"].values()) > 0
    assert "cells_to_complete" not in plan
    assert sorted(tmp_path.iterdir()) == before


def test_a_dry_run_of_a_saved_fit_says_that_there_is_nothing_to_sample(
    explored: Run, here: Run, tmp_path: Path
) -> None:
    explored("--save", "run.glfm")
    before = sorted(tmp_path.rglob("*"))
    said = here("explore", "run.glfm", "--dry-run", "-o", "out")
    assert "with the 12 draws of the fit" in said.stdout
    shown = json.loads(here("explore", "run.glfm", "--dry-run", "--json").stdout)
    assert (shown["rows"], shown["draws"]) == (59, 12)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_record_makes_the_run_again(explored: Run) -> None:
    first = content(explored("--record", "r.json", "--plot", "p.svg", "--json", "--no-bias"))
    record = json.loads(Path("r.json").read_text(encoding="utf-8"))
    assert record["outputs"]["--plot"] == {
        "file": "p.svg",
        "sha256": hashlib.sha256(Path("p.svg").read_bytes()).hexdigest(),
    }
    request = record["request"]
    assert request.pop("time_limit") is None
    again = explore(
        record["table"]["file"],
        "types.yaml",
        model=record["model"],
        settings=record["settings"],
        **record["plan"],
        **request,
    ).to_dict()
    assert json.loads(json.dumps(again["features"])) == first["features"]
    assert again["diagnostics"] == record["diagnostics"]


def test_traces_are_written_as_netcdf(explored: Run) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    said = explored("--traces-to", "t.nc")
    assert said.status == 0, said.stderr
    with xarray.open_dataset("t.nc", group="posterior", engine="h5netcdf") as traces:
        assert traces["log_likelihood"].shape == (2, 6)
        assert traces.attrs["seed"] == 4


BAD = {
    ("--save", "run.glfm", "--sample", "held-out"): "--sample held-out fits the table without some "
    "of its cells: no fit of it to save",
    ("--save", "a.glfm", "--resume", "b.glfm"): "--save and --resume cannot be used together",
    ("--no-data",): "--no-data needs --save",
    ("--resume", "no.glfm"): "no.glfm: there is no such folder",
    ("--record", "no/r.json"): "no/r.json: cannot be written: the folder it should be in does "
    "not exist",
    ("--record", "table.csv"): "table.csv: --record is the table itself",
    ("--html", "x.svg", "--plot", "x.svg"): "x.svg: --plot and --html name the same file",
    ("--traces-to", "t.csv"): "t.csv: the traces are NetCDF, expected a name ending in .nc",
    ("--html", "-"): "--html needs a name, not standard output",
}


@pytest.mark.parametrize("given", BAD)
def test_a_bad_option_is_one_clear_line(
    explored: Run, tmp_path: Path, given: tuple[str, ...]
) -> None:
    before = sorted(tmp_path.iterdir())
    said = explored(*given)
    assert (said.status, said.stdout) == (2, "")
    assert said.lines("Error") == [f"Error: {BAD[given]}"]
    assert len(said.lines("Hint")) <= 1
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "given",
    [("--save", "x.glfm"), ("--resume", "x.glfm"), ("--record", "r.json"), ("--checkpoint", "1")],
)
def test_a_saved_fit_takes_no_options_of_keeping(
    explored: Run, here: Run, given: tuple[str, str]
) -> None:
    explored("--save", "run.glfm")
    said = here("explore", "run.glfm", *given)
    assert said.status == 2
    assert said.lines("Error") == [
        f"Error: {given[0]} is for sampling, but a saved fit has been sampled"
    ]


def test_another_table_is_refused_when_going_on(explored: Run, here: Run) -> None:
    explored("--save", "run.glfm")
    lines = Path("table.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    Path("other.csv").write_text("".join(lines[:40]), encoding="utf-8")
    said = here("explore", "other.csv", "--resume", "run.glfm")
    assert said.status == 2
    assert "was made with another table" in said.lines("Error")[0]
