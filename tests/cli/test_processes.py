"""Runs at the same time, what killed ones leave, signals at awkward moments, permissions."""

from __future__ import annotations

import errno
import fcntl
import os
import random
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from killing import Command

from glfm_cli.cli import app
from glfm_cli.cli.console import Console
from glfm_cli.errors import StoreError
from glfm_cli.io import atomic_write
from glfm_cli.io.drafts import draft_of, hold
from glfm_cli.store.lock import lock

SHORT = ("--model", "glfm", "--chains", "1", "--warmup", "3", "--draws", "4", "--threads", "1")
PARTIAL = "out.csv.glfm.partial"
# Sends Ctrl-C when a module is first imported.
STOPPING = """
import os, signal, sys
class Stop:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ.get("STOP_AT"):
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Stop())
"""


@pytest.fixture
def table(tmp_path: Path) -> tuple[str, ...]:
    """`glfm impute` on a small table."""
    rng = random.Random(1)
    cells = (f"{rng.gauss(0, 1) if i % 5 else ''},{rng.gauss(0, 1)}\n" for i in range(30))
    (tmp_path / "table.csv").write_text("a,b\n" + "".join(cells))
    (tmp_path / "types.yaml").write_text("columns: {a: real, b: real}")
    return ("impute", "table.csv", "--types", "types.yaml", "-o", "out.csv", *SHORT)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"table.csv", "types.yaml", "stderr.txt"}


# At the same time ----------------------------------------------------------------------------


def test_a_run_that_writes_its_results_is_left_alone(
    table: tuple[str, ...], tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "levels.csv")
    first = Command(tmp_path, *table, "--cells", "cells.csv", "--probabilities", "levels.csv")
    first.wait_for(tmp_path / "cells.csv")  # now it waits for somebody to read the next file
    second = tmp_path / "second"
    second.mkdir()
    same = tuple(f"../{word}" if word.count(".") == 1 else word for word in table)
    for seed in ((), ("--seed", "2")):  # the same run, and another one
        other = Command(second, *same, *seed)
        assert other.end() == 2
        assert f"{PARTIAL}: another run of glfm is writing to it" in other.stderr
    assert (tmp_path / "levels.csv").read_text().count("\n") == 1
    assert first.end() == 0, first.stderr
    assert names(tmp_path) == {"out.csv", "cells.csv", "levels.csv", "second"}


def test_a_lock_of_a_folder_that_is_being_removed_is_none(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    script = f"""
import os, sys
from pathlib import Path
import glfm_cli.store.lock as module
from glfm_cli.errors import StoreError
opened = module.open_inside
def slow(*arguments):
    descriptor = opened(*arguments)
    os.unlink({str(tmp_path / "lock")!r})  # by the run that had it, in the meantime
    return descriptor
module.open_inside = slow
try:
    module.lock(Path({str(tmp_path)!r}))
except StoreError as error:
    sys.exit(str(error))
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "another run of glfm is writing to it" in found.stderr


@pytest.mark.parametrize(("refused", "held"), [(errno.ENOLCK, None), (errno.EAGAIN, False)])
def test_where_there_are_no_locks_nobody_is_said_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: int, held: bool | None
) -> None:
    def flock(descriptor: int, how: int) -> None:
        raise OSError(refused, os.strerror(refused))

    monkeypatch.setattr(fcntl, "flock", flock)
    left = draft_of(tmp_path / "out.csv")
    left.touch()
    os.utime(left, (1e9, 1e9))
    with atomic_write(tmp_path / "out.csv", "w") as file:
        assert hold(file.fileno()) is held
    assert left.exists()  # it may be another run's
    if held is None:
        os.close(lock(tmp_path))
        return
    with pytest.raises(StoreError, match="another run"):
        lock(tmp_path)


# Left behind ---------------------------------------------------------------------------------


def test_drafts_of_killed_runs_are_removed_and_others_stay(
    table: tuple[str, ...], tmp_path: Path
) -> None:
    target = tmp_path / "out.csv"
    left, held, new = (draft_of(target) for _ in range(3))
    other = draft_of(tmp_path / "other.csv")
    for path in (left, held, new, other):
        path.write_text("of patients")
    for path in (left, held, other):
        os.utime(path, (1e9, 1e9))
    os.utime(new, (1e10, 1e10))  # young however slow the machine is
    with open(held, "a") as file:
        assert hold(file.fileno())
        assert Command(tmp_path, *table).end() == 0
    assert names(tmp_path) == {"out.csv", held.name, new.name, other.name}


def test_a_table_that_is_being_written_has_a_draft_with_a_lock(tmp_path: Path) -> None:
    with atomic_write(tmp_path / "out.csv", "w"):
        (draft,) = tmp_path.iterdir()
        with open(draft, "a") as file:
            assert hold(file.fileno()) is False


@pytest.mark.parametrize("letters", ["x" * 250, "表" * 80])
def test_a_file_may_have_a_name_as_long_as_the_system_allows(tmp_path: Path, letters: str) -> None:
    with atomic_write(tmp_path / letters, "w") as file:
        file.write("whole")
    assert names(tmp_path) == {letters}


# Permissions ---------------------------------------------------------------------------------


def test_nobody_reads_a_draft_whom_the_file_is_closed_to(tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    target.touch()
    target.chmod(0o600)
    seen = []
    opened = os.open

    def watched(path: str, flags: int, mode: int = 0o777) -> int:
        descriptor = opened(path, flags, mode)
        seen.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        return descriptor

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", watched)
        with atomic_write(target, "w") as file:
            file.write("of patients")
    assert seen == [0o600]
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


@pytest.mark.parametrize(("mode", "folder"), [(0o600, 0o700), (0o640, 0o750), (0o644, 0o755)])
def test_partial_work_is_closed_to_those_whom_the_output_is_closed_to(
    table: tuple[str, ...], tmp_path: Path, mode: int, folder: int
) -> None:
    (tmp_path / "out.csv").touch()
    (tmp_path / "out.csv").chmod(mode)
    command = Command(tmp_path, *table, "--draws", "1000000")
    command.wait_for(tmp_path / PARTIAL / "run.json")
    assert stat.S_IMODE((tmp_path / PARTIAL).stat().st_mode) == folder
    command.stop(0.0)


# Signals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "status", "said"),
    [
        ("typer", -signal.SIGINT, ""),
        ("glfm_cli.completion.impute", 130, "Error: interrupted before the work was done\n"),
    ],
)
def test_ctrl_c_while_modules_are_loaded_leaves_no_traceback(
    table: tuple[str, ...], tmp_path: Path, module: str, status: int, said: str
) -> None:
    (tmp_path / "sitecustomize.py").write_text(STOPPING)
    paths = os.pathsep.join([str(tmp_path), str(Path(app.__file__).parents[2])])
    found = subprocess.run(
        [sys.executable, "-m", "glfm_cli", *table],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths, "STOP_AT": module},
        capture_output=True,
        text=True,
    )
    assert (found.returncode, found.stderr, found.stdout) == (status, said, "")


def test_an_error_that_ctrl_c_became_is_no_bug(capsys: pytest.CaptureFixture[str]) -> None:
    def action() -> int:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as error:  # as Python does in the body of a class
            raise RuntimeError("Error calling __set_name__") from error

    assert app.end(action, Console()) == 130
    assert capsys.readouterr().err == "Error: interrupted before the work was done\n"


def test_a_signal_while_another_is_answered_leaves_no_traceback(tmp_path: Path) -> None:
    script = """
import os, signal, sys
from glfm_cli.cli.signals import run_until_signalled
def action():
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    except KeyboardInterrupt:
        os.kill(os.getpid(), signal.SIGTERM)
    return 0
sys.exit(run_until_signalled(action))
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (found.returncode, found.stderr) == (143, "")


# Containers ----------------------------------------------------------------------------------


def test_a_home_that_cannot_be_written_to_is_nothing_to_speak_of(
    table: tuple[str, ...], tmp_path: Path
) -> None:
    here = str(Path(app.__file__).parents[2])
    found = subprocess.run(
        [sys.executable, "-m", "glfm_cli", *table, "-q", "--plot", "plot.svg"],
        cwd=tmp_path,
        env={**os.environ, "HOME": "/proc", "MPLCONFIGDIR": "/proc/none", "PYTHONPATH": here},
        capture_output=True,
        text=True,
    )
    assert (found.returncode, found.stdout) == (0, "")
    assert "atplotlib" not in found.stderr
    assert (tmp_path / "plot.svg").exists()


# Many relations ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "relation",
    [
        "less_than: c{0}",
        "formula: 'c{0} * 2'",
        "formula: 'c{0} + c{1}'",  # each twice in the next: paths double from column to column
        "only_if: 'c{0} > 0 and c{1} > 0'",
    ],
)
def test_chains_of_columns_may_be_long(tmp_path: Path, relation: str) -> None:
    n = 60 if "{1}" in relation else 600  # deeper than functions that call themselves
    types = ["columns:", "  c0: real", "  c1: real"]
    types += [f"  c{i}: {{type: real, {relation.format(i - 1, i - 2)}}}" for i in range(2, n)]
    (tmp_path / "types.yaml").write_text("\n".join(types))
    row = ",".join(str(n - i) for i in range(n))
    (tmp_path / "table.csv").write_text(",".join(f"c{i}" for i in range(n)) + f"\n{row}\n{row}\n")
    command = Command(tmp_path, "impute", "table.csv", "--types", "types.yaml", "--dry-run")
    assert command.end(20) == 0, command.stderr
    types[2] = f"  c1: {{type: real, {relation.format(n - 1, n - 1)}}}"
    (tmp_path / "types.yaml").write_text("\n".join(types))
    command = Command(tmp_path, "impute", "table.csv", "--types", "types.yaml", "--dry-run")
    assert command.end(20) == 2
    assert command.stderr.count("\n") == 2
    assert "in a circle" in command.stderr
    assert len(command.stderr) < 300
