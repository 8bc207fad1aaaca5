"""`glfm evaluate` as a user meets it: summaries, files, and what goes wrong."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glfm_cli
from glfm_cli import evaluation
from glfm_cli.cli import evaluate as command
from glfm_cli.io import read_table

Here = Callable[..., Any]
FAST = ("--rates", "0.2,0.4", "--repeats", "2", "--jobs", "1", "--methods", "mean,draw")


@pytest.fixture
def table(desk: Any) -> Any:
    """A desk with a small table of three types."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal(40)
    lines = ["height,visits,grade"]
    for i, value in enumerate(x):
        grade = "" if i % 9 == 4 else ["low", "mid", "high"][int(np.digitize(value, [-0.5, 0.5]))]
        lines.append(f"{170 + 8 * value:.1f},{rng.poisson(3)},{grade}")
    desk.put("table.csv", "\n".join(lines) + "\n")
    desk.put(
        "types.yaml",
        "columns:\n  height: real\n  visits: count\n"
        "  grade: {type: ordinal, levels: [low, mid, high]}\n",
    )
    return desk


def run(here: Here, *options: str, table: str = "table.csv") -> Any:
    return here("evaluate", table, "--types", "types.yaml", *options)


def test_the_summary_is_on_stdout_and_every_score_in_the_file(table: Any, here: Here) -> None:
    said = run(here, *FAST, "-o", "r.csv")
    assert said.status == 0, said.stderr
    assert "20 %, 40 % of the cells hidden 2 times (mcar)." in said.stdout
    assert "Error (lower is better)" in said.stdout
    assert "Error: difference to mean, 95 % interval" in said.stdout
    assert not said.lines("Warning")
    rows = read_table("r.csv").to_pylist()
    assert {row["method"] for row in rows} == {"mean", "draw"}
    assert {row["column"] for row in rows} == {"", "height", "visits", "grade"}
    (error,) = [r for r in rows if (r["method"], r["rate"], r["repeat"], r["scope"], r["score"])
                == ("mean", "0.4", "1", "all", "error")]  # fmt: skip
    assert 0 < float(error["value"]) < 1


def test_it_says_how_long_it_may_take_before_it_starts(table: Any, here: Here) -> None:
    options = ("--methods", "glfm,mean", "--rates", "0.3", "--repeats", "1", "--jobs", "1")
    said = run(here, *options, "--chains", "1", "--warmup", "5", "--draws", "5")
    first = said.stderr.splitlines()[0]
    said_first = r"2 fits, 1 at a time: about [\d.]+ s \(a fit of glfm [\d.]+ s\)\."
    assert re.fullmatch(said_first, first)


def test_json_is_the_summary_as_an_object(table: Any, here: Here) -> None:
    said = run(here, *FAST, "--json", "-q")
    done = json.loads(said.stdout)
    assert done["methods"] == ["mean", "draw"]
    assert done["fits"] == 8
    assert not said.stderr
    means = {(e["method"], e["rate"]): e["mean"] for e in done["summary"]
             if (e["score"], e["scope"]) == ("error", "all")}  # fmt: skip
    assert means["mean", 0.2] < means["draw", 0.2]


def test_the_table_can_go_to_stdout(table: Any, here: Here) -> None:
    said = run(here, *FAST, "-o", "-", "-q")
    assert said.stdout.splitlines()[0].startswith("method,mechanism,rate,repeat,scope")


def test_standard_defaults_are_those_of_python() -> None:
    assert tuple(command.METHODS.split(",")) == evaluation.METHODS
    assert tuple(map(float, command.RATES.split(","))) == evaluation.RATES
    assert command.REPEATS == evaluation.REPEATS
    assert command.TIMEOUT == evaluation.TIMEOUT


def test_a_split_column_fixes_what_is_hidden(table: Any, here: Here) -> None:
    text = (table.folder / "table.csv").read_text().splitlines()
    lines = [text[0] + ",part"]
    lines += [line + (",test" if i % 4 == 0 else ",train") for i, line in enumerate(text[1:])]
    table.put("table.csv", "\n".join(lines) + "\n")
    table.put(
        "types.yaml",
        "columns:\n  height: {type: real, role: target}\n  visits: count\n"
        "  grade: {type: ordinal, levels: [low, mid, high]}\n  part: split\n",
    )
    said = run(here, "--methods", "mean", "--repeats", "1", "--jobs", "1", "--json")
    done = json.loads(said.stdout)
    assert done["mechanism"] == "given"
    assert {e.get("column") for e in done["summary"]} == {None, "height"}
    impute = table.impute("-o", "out.csv")
    assert impute.status == 0, impute.stderr  # completing passes the split through


# Stopped and gone on with ---------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
@pytest.mark.parametrize(
    "how", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_a_killed_run_resumes_to_the_same_file(
    table: Any, here: Here, repository: Path, how: signal.Signals
) -> None:
    options = [
        "evaluate", "table.csv", "--types", "types.yaml", "--methods", "glfm,mean", "--rates",
        "0.2,0.4", "--repeats", "2", "--chains", "1", "--warmup", "40", "--draws", "5",
    ]  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-m", "glfm_cli", *options, "--jobs", "2", "-o", "stopped.csv"],
        env={**os.environ, "PYTHONPATH": str(repository)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    wait_for(lambda: done_in("stopped.csv") >= 2)
    process.send_signal(how)
    _, told = process.communicate(timeout=30)
    if how is signal.SIGINT and done_in("stopped.csv") < 8:
        assert process.returncode == 130
        assert b"with --resume continues" in told
    said = here(*options, "--jobs", "1", "-o", "stopped.csv", "--resume")
    assert said.status == 0, said.stderr
    assert here(*options, "--jobs", "1", "-o", "whole.csv").status == 0
    stopped, whole = (without_cost(name) for name in ("stopped.csv", "whole.csv"))
    assert stopped == whole


def done_in(name: str) -> int:
    path = Path(name)
    return path.read_text().count(",fit,,,completed,") if path.exists() else 0


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def without_cost(name: str) -> list[Any]:
    rows = read_table(name).to_pylist()
    return [row for row in rows if row["score"] not in ("seconds", "megabytes")]


# Another program ------------------------------------------------------------------------------

CRASH = "import sys; sys.exit('out of ideas')"


def test_a_program_that_fails_is_a_warning(table: Any, here: Here) -> None:
    table.put("crash.py", CRASH)
    command = f"crash={sys.executable} crash.py {{input}} {{output}}"
    said = run(here, *FAST, "--method", command, "-o", "r.csv")
    assert said.status == 0
    assert said.lines("Warning") == [
        "Warning: crash failed in 4 of 4 fits: ended with status 1: out of ideas"
    ]
    notes = [row["note"] for row in read_table("r.csv").to_pylist() if row["method"] == "crash"]
    assert notes.count("ended with status 1: out of ideas") == 4


@pytest.mark.parametrize("gaps", [1, 4])
def test_default_rates_are_those_at_which_rows_keep_a_cell(
    gaps: int, desk: Any, glfm: Callable[..., Any]
) -> None:
    """Two columns in small groups: more than a cell a row cannot go."""
    rng = np.random.default_rng(2)
    x = rng.standard_normal((24, 2)) + np.repeat(rng.standard_normal(8), 3)[:, None]
    lines = [f"g{i // 3},{'' if i < gaps else f'{a:.2f}'},{b:.2f}" for i, (a, b) in enumerate(x)]
    desk.put("table.csv", "\n".join(["g,x,y", *lines]) + "\n")
    desk.put("types.yaml", "columns: {g: group, x: real, y: real}\n")
    run = "evaluate", "table.csv", "--types", "types.yaml", "--methods", "mean", "--json"
    done = glfm(*run, cwd=desk.folder)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rates"] == [0.1, 0.3]
    refused = glfm(*run, "--rates", "0.1,0.5", cwd=desk.folder)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "a rate of 0.5 cannot be reached" in refused.stderr


# What goes wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["--rates", "0.1,1.5"], "--rates, found 1.5, expected shares between 0 and 1"),
        (["--rates", "0"], "--rates, found 0, expected shares between 0 and 1"),
        (["--rates", "ten"], "--rates, found 'ten', expected numbers between 0 and 1"),
        (["--rates", "0.1,0.1"], "--rates, found a rate twice"),
        (["--rates", ","], "--rates, expected at least one share"),
        (["--rates", "nan"], "--rates, found nan"),
        (["--repeats", "0"], "--repeats, found 0, expected a whole number from 1"),
        (["--methods", "mean,gflm"], "unknown method, found 'gflm', expected some of"),
        (["--methods", "mean,mean"], "--methods, found 'mean' twice"),
        (["--methods", ""], "--methods, expected some of"),
        (["--mechanism", "mnra"], "--mechanism, found 'mnra', expected mcar or"),
        (["--reference", "glfm"], "--reference, found 'glfm', expected mean or draw"),
        (["--rates", "0.95"], "a rate of 0.95 cannot be reached"),
        (["--method", "mine"], "--method mine, expected NAME=COMMAND"),
        (["--method", "m=cat {input}"], "--method m, found cat {input}, expected a command with"),
        (["--method", "m=no-such-program {input} {output}"], "there is no program 'no-such"),
        (["--method", "m=cat 'a {input} {output}"], "--method m: No closing quotation"),
        (["--method", "mean=cat {input} {output}"], "--method mean: the name is taken"),
        (["--method-timeout", "0"], "--method-timeout, found 0.0, expected seconds above 0"),
        (["--set", "alpha=2"], "--set alpha, expected a model among the methods"),
        (["--methods", "glfm", "--set", "alhpa=2"], "--set alhpa: no such setting"),
        (["--methods", "glfm", "--set", "alpha=-2"], "--set alpha, found -2"),
        (["-o", "no/such/folder.csv"], "no/such/folder.csv: cannot be written"),
        (["-o", "results.xyz"], "the name does not tell the table's format"),
        (["-o", "table.csv"], "--output is the table itself"),
        (["-o", "-", "--json"], "--json and --output both go to standard output"),
        (["--resume"], "--resume needs --output"),
        (["--seed", "1"], "more than one table"),
        (["--truth", "table.csv"], "--truth is for --compare"),
        (["--compare"], "--compare needs --truth"),
        (["--compare", "--truth", "table.csv", "--masked", "none.csv"], "none.csv: cannot be read"),
        (["--compare", "--truth", "table.csv", "--reference", "x"], "--reference, found 'x'"),
        (["--compare", "--truth", "table.csv", "--seed", "3"], "--seed cannot be used where"),
        (["--compare", "--truth", "table.csv", "--rates", "0.2"], "--rates cannot be used where"),
        (["--plot", "figure.bmp"], "the name does not tell the figure's format"),
        (["--html", "no/such/page.html"], "no/such/page.html: cannot be written"),
        (["--html", "-"], "--html needs the name of a file"),
        (["--plot", "a.png", "--html", "a.png"], "--html and --plot name the same file"),
    ],
)  # fmt: skip
def test_bad_input_is_one_clear_line(
    table: Any, here: Here, options: list[str], match: str
) -> None:
    more = ["table.csv"] if options == ["--seed", "1"] else []
    before = table.files()
    said = run(here, *(() if "--compare" in options else FAST), *options, *more)
    assert said.status == 2, said.stderr
    (line,) = said.lines("Error")
    assert match in line
    assert len(said.lines("Hint")) <= 1
    assert len(said.stderr.splitlines()) <= 2
    assert not said.output
    assert table.files() == before


def test_gaps_cannot_be_imitated_where_there_are_none(table: Any, here: Here) -> None:
    table.put("whole.csv", "height,visits,grade\n1.5,2,low\n2.5,3,mid\n3.5,1,high\n")
    said = run(here, *FAST, "--mechanism", "observed", table="whole.csv")
    assert said.status == 2
    assert "the table has none" in said.stderr


def test_results_that_are_there_are_not_overwritten(table: Any, here: Here) -> None:
    assert run(here, *FAST, "-o", "r.csv").status == 0
    said = run(here, *FAST, "-o", "r.csv")
    assert said.status == 2
    assert "--resume" in said.stderr
    again = run(here, *FAST, "-o", "r.csv", "--resume")
    assert again.status == 0
    assert "All 8 fits are there already." in again.stderr


# Figures and pages ----------------------------------------------------------------------------


def test_a_figure_and_a_page_are_written(table: Any, here: Here) -> None:
    said = run(here, *FAST, "--plot", "figure.svg", "--html", "page.html", "-q")
    assert said.status == 0, said.stderr
    assert (table.folder / "figure.svg").read_text().startswith("<?xml")
    page = (table.folder / "page.html").read_text()
    assert "<script" not in page
    assert set(re.findall(r'(?:src|href)="(.{5})', page)) == {"data:"}
    assert "Error (lower is better)" in page
    assert "Error of each column, 20 % hidden" in page


def test_names_in_a_page_cannot_be_markup(desk: Any, here: Here) -> None:
    name = "<script>alert(1)</script>"
    lines = [f"{name},b", *(f"{i},{i % 3}" for i in range(20))]
    desk.put("<i>.csv", "\n".join(lines) + "\n")
    desk.put("types.yaml", "rest: real\n")
    said = run(here, *FAST, "--html", "page.html", "-q", table="<i>.csv")
    assert said.status == 0, said.stderr
    page = (desk.folder / "page.html").read_text()
    assert "<script" not in page
    assert "<i>" not in page
    assert "&lt;script&gt;" in page


@pytest.mark.parametrize("kind", ["error", "columns", "reliability", "log_score", "all"])
def test_figures_are_the_same_bytes_each_time(table: Any, kind: str) -> None:
    done = glfm_cli.evaluate(
        "table.csv", "types.yaml", methods=["mean", "draw"], rates=[0.3], repeats=2, jobs=1
    )
    for name in ("a.png", "b.png"):
        glfm_cli.plot_evaluation(done, name, kind=kind)
    a, b = ((table.folder / name).read_bytes() for name in ("a.png", "b.png"))
    assert a == b
    assert a.startswith(b"\x89PNG")


def test_a_figure_of_another_kind_is_an_error(table: Any) -> None:
    done = glfm_cli.evaluate("table.csv", "types.yaml", methods=["mean"], repeats=1, jobs=1)
    with pytest.raises(glfm_cli.GlfmError, match="expected error or"):
        glfm_cli.plot_evaluation(done, "a.png", kind="violin")
    assert not Path("a.png").exists()


# Tables made elsewhere ------------------------------------------------------------------------

TRUE = "height,grade\n1,low\n3,high\n5,mid\n9,mid\n"
GAPS = "height,grade\n,low\n3,\n,mid\n9,\n"
NEAR = "grade,height\nlow,2\nhigh,3\nmid,5\nlow,9\n"  # columns in another order
FAR = "height,grade\n9,low\n3,low\n1,mid\n9,high\n"


@pytest.fixture
def elsewhere(desk: Any) -> Any:
    """A desk with a truth, its missing cells, and two completed tables."""
    for name, text in (("truth", TRUE), ("gaps", GAPS), ("near", NEAR), ("far", FAR)):
        desk.put(f"{name}.csv", text)
    desk.put(
        "types.yaml",
        "columns:\n  height: real\n  grade: {type: ordinal, levels: [low, mid, high]}\n",
    )
    return desk


def compared(here: Here, *options: str) -> Any:
    return here(
        "evaluate", "--compare", "near.csv", "far.csv", "--truth", "truth.csv", "--types",
        "types.yaml", *options,
    )  # fmt: skip


def test_completed_tables_are_scored_on_the_gaps(elsewhere: Any, here: Here) -> None:
    said = compared(here, "--masked", "gaps.csv", "-o", "r.csv")
    assert said.status == 0, said.stderr
    assert "50 % of the cells hidden once (given)." in said.stdout
    error = {
        (row["method"], row["column"]): float(row["value"])
        for row in read_table("r.csv").to_pylist()
        if row["score"] == "error" and row["scope"] != "type"
    }
    near, far = np.sqrt((1 + 0) / 2) / 8, np.sqrt((64 + 16) / 2) / 8
    assert error == pytest.approx(
        {
            ("near", "height"): near, ("near", "grade"): 0.25, ("near", ""): (near + 0.25) / 2,
            ("far", "height"): far, ("far", "grade"): 0.75, ("far", ""): (far + 0.75) / 2,
        }
    )  # fmt: skip
    assert not said.lines("Warning")


def test_without_the_gaps_every_known_cell_is_scored(elsewhere: Any, here: Here) -> None:
    done = json.loads(compared(here, "--json").stdout)
    (grade,) = [e for e in done["summary"] if e.get("column") == "grade" and e["method"] == "near"
                and e["score"] == "error"]  # fmt: skip
    assert done["rates"] == [1.0]
    assert grade["mean"] == pytest.approx(1 / 8)


def test_an_id_of_truth_that_is_a_gap_is_not_scored(elsewhere: Any, here: Here) -> None:
    elsewhere.put("truth.csv", TRUE.replace("9,mid", "9,"))
    done = json.loads(compared(here, "--masked", "gaps.csv", "--json").stdout)
    assert done["rates"] == [pytest.approx(3 / 7)]


@pytest.mark.parametrize(
    ("near", "match"),
    [
        ("height,grade\n1,low\n3,high\n5,mid\n", "near.csv: the completed table has another"),
        ("height,grade\n,low\n3,high\n5,mid\n9,mid\n", "column 'height', row 1: 1 of 2 cells"),
        ("height,grade\n1,low\n3,best\n5,mid\n9,mid\n", "column 'grade', row 2: found 'best'"),
        ("height\n1\n3\n5\n9\n", "column 'grade': the completed table lacks this column"),
    ],
)  # fmt: skip
def test_a_completed_table_that_does_not_fit_is_an_error(
    elsewhere: Any, here: Here, near: str, match: str
) -> None:
    elsewhere.put("near.csv", near)
    said = compared(here, "--masked", "gaps.csv")
    assert said.status == 2
    (line,) = said.lines("Error")
    assert match in line
