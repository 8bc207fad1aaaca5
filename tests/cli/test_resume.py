"""A run that was stopped, killed or cut in two gives what one uninterrupted run gives."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from killing import Command

from glfm_cli import impute, load_fit, read_table
from glfm_cli.completion.files import Files
from glfm_cli.encoding import encode
from glfm_cli.inference.sampling import Plan
from glfm_cli.options import Saving
from glfm_cli.store import hash_of_data

Here = Callable[..., Any]
PLAN = ("--chains", "3", "--warmup", "30", "--draws", "20", "--threads", "2", "--seed", "5")
WRITTEN = {
    "--output": "out.csv",
    "--cells": "cells.csv",
    "--probabilities": "levels.csv",
    "--draws-to": "draws.parquet",
}
FILES = tuple(WRITTEN.values())
OUTPUTS = ("--multiple", "4", *(word for pair in WRITTEN.items() for word in pair))
FIRST = ("--multiple", "2", "-o", "first.csv")  # the same model, and fewer draws are enough

SAVED, PARTIAL = "fit.glfm", "out.csv.glfm.partial"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory, sample_data: Path) -> tuple[str, ...]:
    """`glfm impute` on the first rows of a table of all types, whose chains run for a moment."""
    folder = tmp_path_factory.mktemp("table")
    lines = (sample_data / "messy.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "table.csv").write_text("".join(lines[:60]), encoding="utf-8")
    types = sample_data / "messy.types.yaml"
    return ("impute", str(folder / "table.csv"), "--types", str(types))


@pytest.fixture(scope="module")
def straight(table: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The outputs of an uninterrupted run."""
    folder = tmp_path_factory.mktemp("straight")
    assert Command(folder, *table, *PLAN, *OUTPUTS).end() == 0
    return outputs(folder)


def outputs(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}


def go_on(table: tuple[str, ...], folder: str = "fit.glfm") -> tuple[str, ...]:
    return (*table[:2], "--resume", folder, *OUTPUTS)


# Killed --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [SAVED, PARTIAL])
def test_a_run_killed_twenty_times_gives_the_same_bytes(
    table: tuple[str, ...], straight: dict[str, bytes], tmp_path: Path, seed: int, kept: str
) -> None:
    """With a state saved after every sweep most of the time goes into writing."""
    moments = random.Random(seed)
    folder, killed = tmp_path / kept, 0
    begin = (*table, *PLAN, *OUTPUTS, "--checkpoint", "0")
    begin += ("--save", SAVED) if kept == SAVED else ()
    again = (*go_on(table), "--checkpoint", "0") if kept == SAVED else begin
    while killed < 20:
        command = Command(tmp_path, *(again if folder.exists() else begin))
        status = command.stop(moments.uniform(0.0, 0.1))
        killed += status == -signal.SIGKILL
        assert status in (0, -signal.SIGKILL), command.stderr
        if status == 0:  # so fast that it was done before: once more from the beginning
            assert outputs(tmp_path) == straight
            shutil.rmtree(folder, ignore_errors=True)
    assert Command(tmp_path, *(again if folder.exists() else begin)).end() == 0
    assert outputs(tmp_path) == straight


def test_a_run_killed_while_it_writes_its_outputs_leaves_whole_ones_or_none(
    table: tuple[str, ...], straight: dict[str, bytes], tmp_path: Path, seed: int
) -> None:
    """A finished fit that is gone on with has nothing to do but to write."""
    moments = random.Random(seed)
    assert Command(tmp_path, *table, *PLAN, *FIRST, "--save", SAVED).end() == 0
    before = files_of(tmp_path / SAVED)
    began = time.monotonic()
    assert Command(tmp_path, *go_on(table)).end() == 0
    whole = time.monotonic() - began
    for _ in range(3):
        for name in FILES:
            (tmp_path / name).unlink(missing_ok=True)
        Command(tmp_path, *go_on(table)).stop(moments.uniform(0.2, 1.0) * whole)
        found = {name: (tmp_path / name) for name in FILES if (tmp_path / name).exists()}
        assert all(path.read_bytes() == straight[name] for name, path in found.items())
    assert Command(tmp_path, *go_on(table)).end() == 0
    assert outputs(tmp_path) == straight
    after = files_of(tmp_path / SAVED)
    assert [name for name in before if name != "run.json" and after[name] != before[name]] == []


def test_the_same_command_goes_on_from_partial_work(
    table: tuple[str, ...], straight: dict[str, bytes], tmp_path: Path, seed: int
) -> None:
    moments = random.Random(seed + 1)
    partial = tmp_path / "out.csv.glfm.partial"
    begin = (*table, *PLAN, *OUTPUTS, "--checkpoint", "0.01")
    for _ in range(3):
        command = Command(tmp_path, *begin)
        command.wait_for(partial / "chain-0.state.arrow")
        command.stop(moments.uniform(0.0, 0.05))
    assert partial.exists()
    command = Command(tmp_path, *begin)
    assert command.end() == 0
    assert "continuing from out.csv.glfm.partial" in command.stderr
    assert outputs(tmp_path) == straight
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*FILES, "stderr.txt"])


@pytest.mark.slow
def test_runs_killed_once_at_any_moment_give_the_same_bytes(
    table: tuple[str, ...], straight: dict[str, bytes], tmp_path: Path, seed: int
) -> None:
    moments = random.Random(seed + 2)
    for i in range(20):
        folder = tmp_path / str(i)
        folder.mkdir()
        save = ("--save", SAVED) if i % 2 else ()
        Command(folder, *table, *PLAN, *OUTPUTS, *save).stop(moments.uniform(0.0, 1.5))
        again = go_on(table) if (folder / SAVED).exists() else (*table, *PLAN, *OUTPUTS)
        assert Command(folder, *again).end() == 0
        assert outputs(folder) == straight


# Interrupted ---------------------------------------------------------------------------------


def stopped(
    begin: Callable[[], Command], kept: Path, moment: float, how: signal.Signals
) -> tuple[int, Command]:
    """Return a run's status, and the run, that a signal stopped so long after its first save."""
    while True:
        command = begin()
        command.wait_for(kept)
        status = command.stop(moment, how)
        if status != 0:
            return status, command
        shutil.rmtree(kept, ignore_errors=True)  # so fast that it was done: once more
        moment /= 2


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_end_ends_as_ctrl_c_does(
    table: tuple[str, ...], straight: dict[str, bytes], tmp_path: Path, how: signal.Signals
) -> None:
    begin = (*table, *PLAN, *OUTPUTS, "--save", SAVED, "--checkpoint", "0")  # slow enough
    status, command = stopped(partial(Command, tmp_path, *begin), tmp_path / SAVED, 0.1, how)
    assert status == 128 + how
    assert "the work so far is saved in fit.glfm" in command.stderr
    assert Command(tmp_path, *go_on(table)).end() == 0
    assert outputs(tmp_path) == straight


def test_a_disk_that_fills_up_fails_and_keeps_the_work(
    table: tuple[str, ...], straight: dict[str, bytes], tmp_path: Path
) -> None:
    begin = (*table, *PLAN, *OUTPUTS, "--save", SAVED, "--checkpoint", "0")
    command = Command(tmp_path, *begin, largest=30_000)
    assert command.end() == 1
    (error,) = [line for line in command.stderr.splitlines() if line.startswith("Error")]
    assert error.startswith("Error: fit.glfm/chain-")
    assert "cannot be written" in error
    assert not (tmp_path / "out.csv").exists()
    assert "the work so far is saved in fit.glfm" in command.stderr
    assert Command(tmp_path, *go_on(table)).end() == 0
    assert outputs(tmp_path) == straight


def test_what_a_killed_run_left_half_made_is_removed(
    table: tuple[str, ...], tmp_path: Path
) -> None:
    old, new = tmp_path / ".a.glfm.0123456789ab.tmp", tmp_path / ".b.glfm.0123456789ab.tmp"
    for draft in (old, new):
        draft.mkdir()
        (draft / "links.arrow").write_bytes(b"half")
    os.utime(old, (1e9, 1e9))
    os.utime(new, (1e10, 1e10))  # young however slow the machine is
    assert Command(tmp_path, *table, *PLAN, *OUTPUTS, "--save", SAVED).end() == 0
    assert not old.exists()
    assert new.exists()


@pytest.mark.parametrize("kept", [SAVED, PARTIAL])
@pytest.mark.parametrize("moment", [0.0, 0.1, pytest.param(0.3, marks=pytest.mark.slow)])
def test_ctrl_c_completes_the_table_and_the_run_goes_on_from_there(
    table: tuple[str, ...], straight: dict[str, bytes], tmp_path: Path, moment: float, kept: str
) -> None:
    save = ("--save", SAVED) if kept == SAVED else ()
    begin = partial(Command, tmp_path, *table, *PLAN, *OUTPUTS, *save)
    status, command = stopped(begin, tmp_path / kept, moment, signal.SIGINT)
    assert status == 130, command.stderr
    assert f"the work so far is saved in {kept}; continue with --resume {kept}" in command.stderr
    written = (tmp_path / "out.csv").exists()
    assert written != ("Error: interrupted before the work was done" in command.stderr)
    assert Command(tmp_path, *go_on(table, kept)).end() == 0
    assert outputs(tmp_path) == straight
    assert (tmp_path / PARTIAL).exists() is False


def test_a_time_limit_leaves_partial_work_that_goes_on(
    table: tuple[str, ...], straight: dict[str, bytes], tmp_path: Path
) -> None:
    command = Command(tmp_path, *table, *PLAN, *OUTPUTS, "--time-limit", "0.1")
    assert command.end() == 0
    assert "saved in out.csv.glfm.partial" in command.stderr
    assert Command(tmp_path, *go_on(table, "out.csv.glfm.partial")).end() == 0
    assert outputs(tmp_path) == straight
    assert not (tmp_path / "out.csv.glfm.partial").exists()


# In parts ------------------------------------------------------------------------------------


@pytest.fixture
def desk_run(
    here: Here, table: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Here:
    """Run `glfm impute` on the table in an empty folder, in this process."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: here(*arguments)


def with_draws(draws: int) -> tuple[str, ...]:
    return (*PLAN[:5], str(draws), *PLAN[6:])


@pytest.mark.parametrize("parts", [(9, 20), (1, 2, 20), (20, 20)])
def test_a_run_in_parts_gives_the_same_bytes(
    desk_run: Here, table: tuple[str, ...], straight: dict[str, bytes], parts: tuple[int, ...]
) -> None:
    first, *others = parts
    said = desk_run(*table, *with_draws(first), "--save", "fit.glfm", *FIRST)
    assert said.status == 0
    assert "The fit is saved in fit.glfm." in said.stderr
    for draws in others:
        assert desk_run(*go_on(table), "--draws", str(draws)).status == 0
    assert outputs(Path()) == straight
    assert load_fit("fit.glfm").posterior.n_draws == 3 * 20


def test_bytes_behind_the_last_state_are_made_anew(
    desk_run: Here, table: tuple[str, ...], straight: dict[str, bytes]
) -> None:
    desk_run(*table, *with_draws(10), "--save", "fit.glfm", *FIRST)
    for index, junk in enumerate((b"", b"\xff\xff\xff\xff\x10\x00\x00\x00torn", b"\0" * 5000)):
        with open(f"fit.glfm/chain-{index}.draws.arrow", "ab") as file:
            file.write(junk)
    Path("fit.glfm/.chain-0.state.arrow.0123456789ab.tmp").write_bytes(b"half")
    assert load_fit("fit.glfm").posterior.n_draws == 30
    assert desk_run(*go_on(table), "--draws", "20").status == 0
    assert outputs(Path()) == straight
    assert not [path for path in Path("fit.glfm").iterdir() if path.name.startswith(".")]


def test_a_chain_that_never_saved_starts_anew(
    desk_run: Here, table: tuple[str, ...], straight: dict[str, bytes]
) -> None:
    desk_run(*table, *with_draws(10), "--save", "fit.glfm", *FIRST)
    Path("fit.glfm/chain-1.state.arrow").unlink()
    Path("fit.glfm/chain-2.state.arrow").unlink()
    Path("fit.glfm/chain-2.draws.arrow").unlink()
    fit = load_fit("fit.glfm")
    assert fit.posterior.n_draws == 10
    assert fit.notes[0] == "only 1 of 3 chains kept draws; only they count"
    assert desk_run(*go_on(table), "--draws", "20").status == 0
    assert outputs(Path()) == straight


def test_python_keeps_and_goes_on_like_the_command(
    desk_run: Here, table: tuple[str, ...], straight: dict[str, bytes]
) -> None:
    plan = {"chains": 3, "warmup": 30, "seed": 5}
    saving, files = Saving(Path("fit.glfm"), with_data=False), Files(None, multiple=2)
    impute(table[1], table[3], **plan, draws=10, saving=saving, files=files)  # type: ignore[arg-type]
    completion = impute(table[1], resume="fit.glfm", draws=20)
    fit = load_fit("fit.glfm")
    assert fit.data is None
    assert fit.plan == Plan(3, 30, 20, 4, 5)
    assert fit.posterior.traces().keys() == completion.posterior.traces().keys()
    assert desk_run(*go_on(table)).status == 0
    assert outputs(Path()) == straight


# What a loaded fit holds ---------------------------------------------------------------------


def test_a_loaded_fit_has_the_table_the_links_and_the_draws(
    table: tuple[str, ...], tmp_path: Path
) -> None:
    length = {"model": "glfm", "chains": 2, "warmup": 5, "draws": 4}
    run = impute(table[1], table[3], save=tmp_path / "fit.glfm", **length)
    fit = load_fit(tmp_path / "fit.glfm")
    assert fit.data is not None
    data = encode(read_table(table[1]), fit.schema)
    assert hash_of_data(fit.data) == hash_of_data(data) == fit.header.data_hash
    assert fit.data.columns[0].levels == data.columns[0].levels
    assert [column.name for column in fit.columns] == [e.column.name for e in data.columns]
    assert fit.levels == tuple(encoded.levels for encoded in data.columns)
    assert (fit.n_rows, fit.seed, fit.notes) == (data.n_rows, 0, ())
    assert [extent.draws for extent in fit.extents] == [4, 4]
    ours, theirs = fit.posterior.traces(), run.posterior.traces()
    assert {k: v.tolist() for k, v in ours.items()} == {k: v.tolist() for k, v in theirs.items()}


# Not the same run ----------------------------------------------------------------------------


@pytest.fixture
def kept(desk_run: Here, table: tuple[str, ...]) -> dict[str, bytes]:
    """A small fit in `fit.glfm`, as its files' bytes."""
    length = ("--model", "glfm", "--chains", "1", "--warmup", "3", "--draws", "4")
    desk_run(*table, *length, "--save", "fit.glfm", "-q")
    return files_of(Path("fit.glfm"))


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("--warmup", "4", "--warmup, found 4, expected 3"),
        ("--thin", "1", "--thin, found 1, expected 4"),
        ("--seed", "1", "--seed, found 1, expected 0"),
        ("--set", "max_features=9", "fit.glfm: --set changes a setting"),
        ("--draws", "3", "--draws, found 3, expected at least 4, which fit.glfm has already"),
        ("--save", "other.glfm", "--save and --resume cannot be used together"),
    ],
)
def test_another_option_than_the_run_was_begun_with_is_an_error(
    desk_run: Here,
    table: tuple[str, ...],
    kept: dict[str, bytes],
    option: str,
    value: str,
    expected: str,
) -> None:
    said = desk_run(*table[:2], "--resume", "fit.glfm", option, value)
    assert said.status == 2
    assert said.lines("Error")[0].startswith(f"Error: {expected}")
    assert len(said.stderr.splitlines()) <= 2
    assert files_of(Path("fit.glfm")) == kept


def test_the_options_it_was_begun_with_may_be_repeated(
    desk_run: Here, table: tuple[str, ...], kept: dict[str, bytes]
) -> None:
    again = ("--chains", "1", "--warmup", "3", "--seed", "0", "--set", "max_features=50")
    assert desk_run(*table, *again, "--resume", "fit.glfm", "-o", "out.csv").status == 0


def test_another_table_or_other_types_are_an_error(
    desk_run: Here, table: tuple[str, ...], kept: dict[str, bytes]
) -> None:
    lines = Path(table[1]).read_text().splitlines(keepends=True)
    Path("other.csv").write_text("".join(lines[:-1]))
    said = desk_run("impute", "other.csv", "--resume", "fit.glfm")
    assert said.status == 2
    assert "fit.glfm: was made with another table than the one given now" in said.stderr
    types = Path(table[3]).read_text()
    Path("types.yaml").write_text(types + "  # a comment\n")
    same = ("impute", table[1], "--types", "types.yaml", "--resume", "fit.glfm")
    assert desk_run(*same, "-o", "out.csv").status == 0
    Path("types.yaml").write_text(types.replace("[-30, 50]", "[-40, 50]"))
    assert types != Path("types.yaml").read_text()
    said = desk_run(*same)
    assert said.status == 2
    assert "fit.glfm: was made with other types than those given now" in said.stderr


def test_a_fit_is_never_written_over(
    desk_run: Here, table: tuple[str, ...], kept: dict[str, bytes]
) -> None:
    said = desk_run(*table, *PLAN, "--save", "fit.glfm")
    assert said.status == 2
    assert said.lines("Error") == [
        "Error: fit.glfm: is already there, and a saved fit is never written over"
    ]
    assert files_of(Path("fit.glfm")) == kept


def test_partial_work_of_other_options_is_replaced(
    desk_run: Here, table: tuple[str, ...], straight: dict[str, bytes]
) -> None:
    limit = ("--time-limit", "0.05")
    assert desk_run(*table, *PLAN[:-1], "6", *OUTPUTS, *limit).status == 0
    assert Path("out.csv.glfm.partial").exists()
    said = desk_run(*table, *PLAN, *OUTPUTS)
    assert said.status == 0
    assert "left by an earlier run that was another, was replaced" in said.stderr
    assert outputs(Path()) == straight
    assert not Path("out.csv.glfm.partial").exists()


def test_broken_partial_work_is_replaced(
    desk_run: Here, table: tuple[str, ...], straight: dict[str, bytes]
) -> None:
    assert desk_run(*table, *PLAN, *OUTPUTS, "--time-limit", "0.05").status == 0
    state = Path("out.csv.glfm.partial/chain-0.state.arrow")
    state.write_bytes(state.read_bytes()[:-100])
    said = desk_run(*table, *PLAN, *OUTPUTS)
    assert said.status == 0
    assert "was replaced" in said.stderr
    assert outputs(Path()) == straight


def test_two_runs_do_not_write_to_one_folder(table: tuple[str, ...], tmp_path: Path) -> None:
    long = (*table, "--chains", "1", "--warmup", "1000000", "--save", "fit.glfm", "-q")
    first = Command(tmp_path, *long)
    first.wait_for(tmp_path / "fit.glfm" / "lock")
    second = tmp_path / "second"
    second.mkdir()
    os.symlink(tmp_path / "fit.glfm", second / "fit.glfm")
    other = Command(second, *table[:2], "--resume", "fit.glfm")
    assert other.end() == 2
    assert "Error: fit.glfm: another run of glfm is writing to it" in other.stderr
    first.stop(0.0, signal.SIGKILL)


def test_a_dry_run_keeps_nothing(desk_run: Here, table: tuple[str, ...]) -> None:
    assert desk_run(*table, *PLAN, "--save", "fit.glfm", "-o", "out.csv", "--dry-run").status == 0
    assert list(Path().iterdir()) == []


def test_other_versions_are_named_when_a_run_goes_on(
    desk_run: Here, table: tuple[str, ...], kept: dict[str, bytes]
) -> None:
    header = Path("fit.glfm/run.json")
    header.write_text(header.read_text().replace('"glfm": "', '"glfm": "0.0.'))
    said = desk_run(*table[:2], "--resume", "fit.glfm", "-o", "out.csv")
    assert said.status == 0
    assert "was started with other versions, so the draws may differ (glfm 0.0." in said.stderr
