"""`glfm impute` as a user runs it: what is written, what is said, and how it ends."""

from __future__ import annotations

import csv
import inspect
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import glfm_cli
from glfm_cli import Schema, read_table, write_table
from glfm_cli.cli import impute as command
from glfm_cli.cli.plan_text import plan_lines
from glfm_cli.completion import impute as task
from glfm_cli.completion import prepare
from glfm_cli.completion.efforts import EFFORTS, EXPLORED, paced
from glfm_cli.completion.prepare import FEW_CELLS, MORE_CHAINS
from glfm_cli.latent import MODELS
from glfm_cli.options import CHAINS, DRAWS, THIN, WARMUP, MatrixOptions, Sampling, Saving
from tests.cli.terminal import OnTerminal

Here = Callable[..., Any]
SHORT = ["--chains", "2", "--warmup", "4", "--draws", "4", "--threads", "1"]


@pytest.fixture
def run(here: Here, sample_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    """Run `glfm impute` briefly on a sample table, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run_short(name: str, *arguments: str) -> Any:
        data = sample_data / f"{name}.csv"
        return here("impute", data, "--types", data.with_suffix(".types.yaml"), *SHORT, *arguments)

    return run_short


def records(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def rows_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


# One seed, one result ------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_bytes_with_any_number_of_threads(run: Here) -> None:
    answers = []
    for threads in ("1", "2", "2"):
        said = run("pbc", "--threads", threads, "--seed", "7", "-o", "o.csv", "--cells", "c.csv")
        assert said.status == 0
        answers.append((Path("o.csv").read_bytes(), Path("c.csv").read_bytes()))
    assert answers[0] == answers[1] == answers[2]


def test_another_seed_gives_another_answer(run: Here) -> None:
    assert run("airquality", "--seed", "1").output != run("airquality", "--seed", "2").output


def test_standard_output_gets_what_a_file_would(run: Here) -> None:
    said = run("lung", "-o", "out.csv")
    assert said.output == b""
    assert run("lung").output == run("lung", "-o", "-").output == Path("out.csv").read_bytes()


# The table -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["airquality", "lung", "messy", "pbc"])
def test_observed_cells_stay_and_every_gap_is_filled(
    run: Here, sample_data: Path, name: str
) -> None:
    schema = glfm_cli.read_schema(sample_data / f"{name}.types.yaml")
    before = rows_of((sample_data / f"{name}.csv").read_text())
    after = rows_of(run(name).stdout)
    columns = schema.resolve(before[0])
    assert after[0] == before[0]
    assert len(after) == len(before)
    for was, now in zip(before[1:], after[1:], strict=True):
        for column, x, y in zip(columns, was, now, strict=True):
            codes = {code.text: code.impute for code in column.missing}
            if column.completed and codes.get(x, x == ""):
                assert y not in codes
                assert y != ""
                assert column.levels is None or y in column.levels
            else:
                assert y == x


def test_flags_mark_the_completed_cells(run: Here, sample_data: Path) -> None:
    before = rows_of((sample_data / "airquality.csv").read_text())
    after = rows_of(run("airquality", "--flags").stdout)
    n = len(before[0])
    assert after[0][n:] == [f"{name}_imp" for name in ("Ozone", "Solar.R", "Wind", "Temp")]
    for was, now in zip(before[1:], after[1:], strict=True):
        assert now[n:] == [str(int(cell == "")) for cell in was[:4]]


def test_parquet_in_and_out_keeps_types_and_adds_small_flags(
    run: Here, here: Here, sample_data: Path
) -> None:
    assert run("airquality", "-o", "first.parquet").status == 0
    table = read_table("first.parquet")
    assert {field.name: field.type for field in table.schema}["Wind"] == pa.float64()
    days = pa.array([None, *map(int, table["Ozone"].to_numpy()[1:])], pa.int16())
    table = table.set_column(0, "Ozone", days)
    write_table(table, "gaps.parquet")
    types = sample_data / "airquality.types.yaml"
    said = here("impute", "gaps.parquet", "--types", types, *SHORT, "--flags", "-o", "o.parquet")
    assert said.status == 0
    after = read_table("o.parquet")
    assert after.schema.field("Ozone").type == pa.int16()
    assert after.schema.field("Ozone_imp").type == pa.int8()
    assert after["Ozone_imp"].to_pylist() == [1] + [0] * 152
    assert after["Ozone"].null_count == 0
    rest = table.column_names[1:]
    assert after.select(rest).equals(table.select(rest))


# The 400-row table that trips other tools ----------------------------------------------------


def check_messy(before: list[dict[str, str]], after: list[dict[str, str]]) -> None:
    gaps = {"income": "", "visits": "-1", "grade": "?", "city": "", "city_code": "-1"}
    gaps["temperature"] = "NA"
    levels = {
        name: {row[name] for row in before} - {gaps[name]}
        for name in ("grade", "city", "city_code")
    }
    filled = 0
    for was, now in zip(before, after, strict=True):
        assert now["id"] == was["id"]
        for name, gap in gaps.items():
            x, y = was[name], now[name]
            if x != gap:
                assert y == x
                continue
            filled += 1
            match name:
                case "income":
                    assert 0 < float(y) < 1e7
                case "visits":
                    assert y.isdecimal()
                case "temperature":
                    assert -30 <= float(y) <= 50
                case _:
                    assert y in levels[name]
    assert filled == 498


def test_the_messy_table_is_completed_in_support(run: Here, sample_data: Path) -> None:
    before = (sample_data / "messy.csv").read_text()
    after = run("messy").stdout
    check_messy(list(csv.DictReader(io.StringIO(before))), list(csv.DictReader(io.StringIO(after))))


@pytest.mark.slow
def test_the_messy_table_needs_no_option_but_its_types(glfm: Here, sample_data: Path) -> None:
    data, types = sample_data / "messy.csv", sample_data / "messy.types.yaml"
    done = glfm("impute", data, "--types", types, timeout=600)
    assert done.returncode == 0
    before = data.read_text()
    check_messy(
        list(csv.DictReader(io.StringIO(before))), list(csv.DictReader(io.StringIO(done.stdout)))
    )


def test_the_messy_table_keeps_its_types_in_parquet(
    here: Here, sample_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = read_table(sample_data / "messy.csv")
    kinds = {"income": pa.float64(), "visits": pa.int64(), "city_code": pa.int32()}
    columns = {
        name: pa.array(
            [None if cell in ("", "NA") else cell for cell in text[name].to_pylist()]
        ).cast(kinds.get(name, pa.float32() if name == "temperature" else pa.string()))
        for name in text.column_names
    }
    table = pa.table(columns)
    write_table(table, "messy.parquet")
    types = sample_data / "messy.types.yaml"
    said = here("impute", "messy.parquet", "--types", types, *SHORT, "-o", "o.parquet")
    assert said.status == 0, said.stderr
    after = read_table("o.parquet")
    assert after.schema == table.schema
    assert sum(column.null_count for column in after.columns) == 0
    assert min(after["visits"].to_pylist()) >= 0
    assert set(after["city_code"].to_pylist()) == set(table["city_code"].to_pylist()) - {-1}
    assert set(after["grade"].to_pylist()) == {"low", "mid", "high"}
    assert max(after["temperature"].to_pylist()) <= 50


# Tables beside the table ---------------------------------------------------------------------


def test_cells_and_probabilities_describe_the_completed_cells(run: Here) -> None:
    said = run("messy", "-o", "o.csv", "--cells", "c.csv", "--probabilities", "p.csv")
    assert said.status == 0
    table, cells, probabilities = (records(Path(name)) for name in ("o.csv", "c.csv", "p.csv"))
    names = "row id column type estimate mean sd lower upper probability mcse"
    assert list(cells[0]) == names.split()
    assert len(cells) == 498
    for cell in cells:
        row = table[int(cell["row"]) - 1]
        assert row["id"] == cell["id"]
        assert row[cell["column"]] == cell["estimate"]
        if cell["type"] in ("positive", "count", "real"):
            assert float(cell["lower"]) <= float(cell["upper"])
            assert cell["probability"] == ""
        else:
            assert 0 < float(cell["probability"]) <= 1
    sums: dict[tuple[str, str], float] = {}
    for one in probabilities:
        key = one["row"], one["column"]
        sums[key] = sums.get(key, 0.0) + float(one["probability"])
    assert len(sums) == sum(cell["type"] in ("categorical", "ordinal") for cell in cells)
    assert list(sums.values()) == pytest.approx([1.0] * len(sums))


def test_cells_may_be_parquet(run: Here) -> None:
    assert run("lung", "-o", "o.csv", "--cells", "c.parquet").status == 0
    kinds = {field.name: field.type for field in read_table("c.parquet").schema}
    assert kinds["row"] == pa.int64()
    assert kinds["mean"] == kinds["sd"] == kinds["probability"] == pa.float64()


def test_cells_alone_can_go_to_standard_output(run: Here) -> None:
    said = run("lung", "-o", "o.csv", "--cells", "-")
    assert said.stdout.startswith("row,column,type,estimate,")
    assert Path("o.csv").exists()


# What is said --------------------------------------------------------------------------------


def test_json_is_one_object_on_standard_output(run: Here) -> None:
    said = run("pbc", "-o", "o.csv", "--json")
    summary = json.loads(said.stdout)
    assert said.stdout.count("\n") == 1
    assert set(summary) == {
        "rows",
        "columns",
        "cells_completed",
        "not_completed",
        "model",
        "chains",
        "draws",
        "seed",
        "stopped",
        "seconds",
        "interval",
        "per_column",
        "candidates",
        "precision",
        "warnings",
    }
    assert (summary["rows"], summary["columns"], summary["cells_completed"]) == (418, 20, 927)
    assert (summary["model"], summary["chains"], summary["draws"]) == ("auto", 2, 5)
    by_name = {part["column"]: part for part in summary["per_column"]}
    assert by_name["trt"]["completed"] == 0
    assert by_name["chol"]["completed"] == 134
    assert sum(by_name["stage"]["levels"].values()) == by_name["stage"]["completed"] == 6
    assert summary["precision"]["good"] is False


def test_a_dry_run_writes_nothing_and_says_what_would_be_done(run: Here, tmp_path: Path) -> None:
    said = run("messy", "-o", "o.csv", "--cells", "c.csv", "--dry-run")
    assert said.status == 0
    assert said.stdout.splitlines()[:3] == [
        "400 rows, 6 modelled columns, 10 latent columns",
        "498 cells to complete",
        "  income: 87",
    ]
    assert "2 chains of " in said.stdout
    assert list(tmp_path.iterdir()) == []
    plan = json.loads(run("messy", "--dry-run", "--json").stdout)
    assert plan["gaps"]["income"] == 87
    assert plan["seconds"] > 0
    assert "most_seconds" not in plan
    assert plan["megabytes"] > (0 if sys.platform == "win32" else 50), "of the whole process"


def test_a_dry_run_names_no_more_than_a_hundred_columns() -> None:
    lines = plan_lines({"gaps": {f"g{d}": d for d in range(150)}})
    assert lines[:2] == ["  g1: 1", "  g2: 2"]
    assert lines[99:] == ["  g100: 100", "  49 more columns (--json has all)"]


def test_a_dry_run_says_what_each_effort_costs(run: Here) -> None:
    efforts = json.loads(run("messy", "--dry-run", "--json").stdout)["efforts"]
    assert list(efforts) == ["quick", "normal", "thorough"]
    assert {one["chains"] for one in efforts.values()} == {2}, "as was said"
    said = run("messy", "--dry-run", "--model", "bsvd").stdout
    assert "  --effort quick: 2 chains of " in said


@pytest.mark.parametrize("memory", [[], ["--memory", "1k"]], ids=["in memory", "in batches"])
def test_a_dry_run_tells_of_the_whole_table_where_some_rows_are_learnt_from(
    run: Here, memory: list[str]
) -> None:
    options = ("messy", "--learn-rows", "100", *memory, "--dry-run")
    said = run(*options)
    assert said.status == 0, said.stderr
    assert said.stdout.startswith("400 rows, 100 learnt rows, 6 modelled columns, ")
    assert memory or "498 cells to complete" in said.stdout
    assert ("completed in batches of 8192 rows" in said.stdout) == bool(memory)
    plan = json.loads(run(*options, "--json").stdout)
    assert (plan["rows"], plan["learnt_rows"]) == (400, 100)
    assert plan["seconds"] > 0
    assert plan["megabytes"] > 0


def test_strict_ends_with_3_and_still_writes(run: Here) -> None:
    said = run("airquality", "-o", "o.csv", "--strict")
    assert said.status == 3
    assert said.lines("Warning")[-1].startswith("Warning: --strict: Precision unknown: ")
    assert said.stderr.count("Precision unknown") == 1
    assert Path("o.csv").read_bytes() == run("airquality").output


def test_strict_ends_with_0_when_nothing_would_move(here: Here, tmp_path: Path) -> None:
    # A single level and a missing cell: there is nothing to be unsure of.
    (tmp_path / "t.csv").write_text("a,b\nx,y\nx,\n,y\n")
    (tmp_path / "t.yaml").write_text("rest: categorical")
    options = "--types", tmp_path / "t.yaml", "--model", "glfm", *SHORT, "--strict"
    said = here("impute", tmp_path / "t.csv", *options)
    assert said.status == 0
    assert said.stdout == "a,b\nx,y\nx,y\nx,y\n"
    assert "Good: with another seed, estimates would move by 0 of" in said.stderr


def test_a_time_limit_ends_with_0_a_warning_and_a_whole_table(run: Here) -> None:
    said = run("airquality", "--draws", "1000000", "--time-limit", "0.3", "-o", "o.csv", "--json")
    assert said.status == 0
    assert [
        line
        for line in said.lines("Warning")
        if line.startswith("Warning: sampling ended early (time limit); the answer uses ")
    ]
    assert said.lines("Warning")[-1] == (
        "Warning: the work so far is saved in o.csv.glfm.partial; "
        "continue with --resume o.csv.glfm.partial"
    )
    assert json.loads(said.stdout)["stopped"] == "time limit"
    assert all(all(row) for row in rows_of(Path("o.csv").read_text()))


# Ctrl-C --------------------------------------------------------------------------------------


@pytest.fixture
def sampling(sample_data: Path, repository: Path, tmp_path: Path) -> Iterator[OnTerminal]:
    """`glfm impute` that would sample for days."""
    data = sample_data / "airquality.csv"
    types, out = data.with_suffix(".types.yaml"), tmp_path / "out.csv"
    long = ("--draws", "10000000")
    with OnTerminal(repository, "impute", data, "--types", types, "-o", out, *long) as started:
        started.wait_for(b"sweeps/s")  # the progress is shown on a terminal
        yield started


def test_a_terminal_shows_that_forecasts_are_checked(
    sample_data: Path, repository: Path, tmp_path: Path
) -> None:
    data, out = sample_data / "airquality.csv", tmp_path / "out.csv"
    types = data.with_suffix(".types.yaml")
    asked = ("-o", out, "--effort", "quick")
    with OnTerminal(repository, "impute", data, "--types", types, *asked) as started:
        started.wait_for(b"checking on observed cells")
        assert started.end() == 0
    assert len(rows_of(out.read_text())) == 154


def test_ctrl_c_writes_the_completed_table_and_ends_with_130(
    sampling: OnTerminal, tmp_path: Path
) -> None:
    sampling.press_ctrl_c()
    assert sampling.end() == 130
    assert b"Warning: sampling ended early (interrupted); the answer uses " in sampling.seen
    rows = rows_of((tmp_path / "out.csv").read_text())
    assert len(rows) == 154
    assert all(all(row) for row in rows)


def test_a_second_ctrl_c_ends_at_once_and_writes_nothing(
    sampling: OnTerminal, tmp_path: Path
) -> None:
    (tmp_path / "out.csv").write_text("old")
    sampling.wait_for(b"0%")
    time.sleep(1)  # so that there are enough draws to be busy with
    sampling.press_ctrl_c()
    sampling.wait_for(b"Interrupted; completing the table")
    sampling.press_ctrl_c()
    assert sampling.end() == 130
    assert b"Error: interrupted before the work was done" in sampling.seen
    assert (tmp_path / "out.csv").read_text() == "old"
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["out.csv", "out.csv.glfm.partial"]
    assert b"out.csv.glfm.partial" in sampling.seen


def test_a_closed_pipe_is_no_error(sample_data: Path, repository: Path) -> None:
    line = (
        f"{sys.executable} -m glfm_cli impute lung.csv --types lung.types.yaml -q {' '.join(SHORT)}"
    )
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line} | head -c 5"],
        cwd=sample_data,
        env={**os.environ, "PYTHONPATH": str(repository)},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b'"inst', b"")


# From Python ---------------------------------------------------------------------------------


def test_python_gives_the_same_table_as_the_command(run: Here, sample_data: Path) -> None:
    said = run("lung", "-o", "o.csv", "--cells", "c.csv", "--seed", "3", "--set", "max_features=5")
    assert said.status == 0
    path = sample_data / "lung.csv"
    schema = glfm_cli.read_schema(sample_data / "lung.types.yaml")
    assert isinstance(schema, Schema)
    completion = glfm_cli.impute(
        read_table(path),
        schema,
        chains=2,
        warmup=4,
        draws=4,
        seed=3,
        settings={"max_features": 5},
    )
    write_table(completion.table, "python.csv")
    write_table(completion.cells(), "python-cells.csv")
    assert Path("python.csv").read_bytes() == Path("o.csv").read_bytes()
    assert Path("python-cells.csv").read_bytes() == Path("c.csv").read_bytes()


def test_defaults_of_the_command_are_those_of_python() -> None:
    shell = {n: p.default for n, p in inspect.signature(command.run).parameters.items()}
    python = {
        name: parameter.default
        for name, parameter in inspect.signature(task).parameters.items()
        if name in ("estimate", "interval", "fit", "unseen")
    }
    assert python == {name: shell[name] for name in python}
    sampling = Sampling().length(CHAINS)
    assert all(sampling[name] == shell[name] for name in ("draws", "seed"))
    assert {shell[name] for name in ("chains", "warmup", "thin")} == {None}
    assert shell["checkpoint"] == Saving().checkpoint
    assert shell["model"] == next(iter(MODELS))


def test_defaults_are_named_in_the_docstring_of_the_options() -> None:
    documented = " ".join((Sampling.__doc__ or "").split())
    for words in ("auto 7, others 8", "to 16 in small tables", "glfm, 100 of others", "(20)"):
        assert words in documented
    assert Sampling().length(CHAINS) == {
        "chains": 8, "warmup": 100, "draws": 20, "thin": 2, "seed": 0
    }  # fmt: skip


@pytest.mark.parametrize(("rows", "chains"), [(200, 16), (40_000, 16), (40_001, 8)])
def test_small_tables_get_more_chains_unless_told(rows: int, chains: int) -> None:
    table = pa.table({"a": [*map(float, range(rows)), None]})
    types = {"columns": {"a": "real"}}
    for model, first in (("auto", 7), ("glfm", 8)):
        plan = prepare(table, types, model=model)[2]
        assert (plan.chains, plan.most_chains) == (first, None if first == chains else chains)
    assert prepare(table, types, model="mixture")[2].chains == chains
    told = prepare(table, types, chains=3)[2]
    assert (told.chains, told.most_chains) == (3, None)


def plan_of(**options: Any) -> tuple[Any, ...]:
    table = pa.table({"a": [*map(float, range(50)), None]})
    problem, _, plan = prepare(table, {"columns": {"a": "real"}}, **options)
    return problem.model.name, plan, problem.link_config.recalibrate


def test_normal_effort_is_what_is_done_when_nothing_is_said() -> None:
    for model in ("glfm", "bsvd", "mixture"):
        assert plan_of(effort="normal", model=model) == plan_of(model=model)
    assert plan_of(effort="normal") == plan_of()


def test_chains_that_explore_keep_their_length(here: Here) -> None:
    told = paced(Sampling(), "glfm", EXPLORED)
    assert (told.warmup, told.draws, told.thin, told.chains) == (WARMUP, DRAWS, THIN, None)
    assert paced(Sampling(), "clgp", EXPLORED) == Sampling()
    assert paced(Sampling(effort="quick"), "glfm", EXPLORED).chains == 8
    assert "[default: 100;" in " ".join(here("explore", "--help").stdout.split())


def test_effort_fills_in_what_is_not_said() -> None:
    model, plan, recalibrate = plan_of(effort="quick")
    assert (model, recalibrate) == ("auto", True), "by which candidates are weighed"
    assert not plan_of(effort="quick", model="glfm")[2]
    assert plan.chains * plan.draws < 8 * 20
    assert plan_of(effort="quick", model="clgp")[1].chains == 2
    assert plan.sweeps < plan_of()[1].sweeps
    said = {"chains": 5, "warmup": 7, "draws": 9, "thin": 3}
    settings = {"recalibrate": True}
    model, plan, recalibrate = plan_of(effort="quick", model="glfm", settings=settings, **said)
    assert (model, recalibrate) == ("glfm", True)
    assert {name: getattr(plan, name) for name in said} == said
    assert plan_of(effort="thorough")[1].chains > plan_of()[1].chains


def test_an_effort_is_one_of_three_and_of_new_runs_alone(run: Here, tmp_path: Path) -> None:
    said = run("airquality", "--effort", "fast")
    assert said.status == 2
    assert "--effort, found fast, expected quick or normal or thorough" in said.stderr
    assert run("airquality", "-o", "o.csv", "--save", "a.glfm").status == 0
    said = run("airquality", "--resume", "a.glfm", "--effort", "quick")
    assert (said.status, len(said.lines("Error"))) == (2, 1)
    assert "--effort and --resume cannot be used together" in said.stderr


def test_help_says_how_many_chains_there_are(here: Here) -> None:
    words = " ".join(here("impute", "--help").stdout.split())
    assert "default: 7 (auto) or 8, and up to 16 in tables with up to 40,000 cells" in words
    assert (CHAINS, MORE_CHAINS, FEW_CELLS) == (8, 16, 40_000)
    assert EFFORTS["normal"].lengths["auto"].first_chains == 7


def test_every_option_of_python_has_its_option_on_the_command_line(here: Here) -> None:
    words = here("impute", "--help").stdout.split()
    names = {field.name for group in (Sampling, Saving, MatrixOptions) for field in fields(group)}
    renamed = {"settings": "set", "with_data": "no-data"}
    for name in names - {"partial"} | {"estimate", "interval", "fit", "unseen"}:
        assert f"--{renamed.get(name, name.replace('_', '-'))}" in words
