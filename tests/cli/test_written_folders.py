"""The folder of `glfm explore -o DIR`: all of one run, whole, and nothing of others lost."""

from __future__ import annotations

import json
import os
import random
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from killing import Command

from glfm_cli.errors import OutputError
from glfm_cli.io import whole_folder

SHORT = ("--model", "bsvd", "--chains", "1", "--warmup", "5", "--draws", "5", "--threads", "1")
Here = Callable[..., Any]


@pytest.fixture(autouse=True)
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small table, in the folder in which `glfm` runs."""
    monkeypatch.chdir(tmp_path)
    rng = random.Random(1)
    cells = (",".join(f"{rng.gauss(0, 1):.3f}" for _ in "abc") + "\n" for _ in range(20))
    Path("table.csv").write_text("a,b,c\n" + "".join(cells))
    Path("types.yaml").write_text("columns: {a: real, b: real, c: real}")


def explore(*more: str) -> tuple[str, ...]:
    return ("explore", "table.csv", "--types", "types.yaml", "-o", "out", *SHORT, *more)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_a_folder_has_no_file_of_an_earlier_exploration(here: Here) -> None:
    assert here(*explore()).status == 0
    out = Path("out")
    earlier, own = contents(out), {"mine.csv": b"mine", ".hidden.csv": b"mine", "x.txt": b"mine"}
    for name, content in own.items():
        (out / name).write_bytes(content)
    index = json.loads(earlier["exploration.json"])
    assert {*index["files"], "exploration.json"} == set(earlier)
    index["files"] += [".hidden.csv", "../table.csv", "x.txt", "gone.csv", 7]
    (out / "exploration.json").write_text(json.dumps({**index, "files": index["files"][:-1]}))
    assert here(*explore("--format", "parquet")).status == 0
    later = contents(out)
    assert own.items() <= later.items()
    assert Path("table.csv").exists()
    assert not [name for name in later if name.endswith(".csv") and name not in own]
    assert {"components.parquet", "report.html"} <= set(later)


def test_a_folder_keeps_links_and_permissions(here: Here) -> None:
    out = Path("out")
    out.mkdir()
    Path("elsewhere.html").touch()
    (out / "report.html").symlink_to("../elsewhere.html")
    (out / "components.csv").touch()
    (out / "components.csv").chmod(0o600)
    assert here(*explore()).status == 0
    assert (out / "report.html").is_symlink()
    assert "<html" in Path("elsewhere.html").read_text(encoding="utf-8")
    assert stat.S_IMODE((out / "components.csv").stat().st_mode) == 0o600


def test_a_folder_that_cannot_be_written_whole_is_as_it_was(here: Here, tmp_path: Path) -> None:
    assert here(*explore()).status == 0
    before, size = contents(Path("out")), Path("out/overview.png").stat().st_size
    command = Command(tmp_path, *explore("--seed", "2", "--save", "fit.glfm"), largest=size // 2)
    assert command.end() == 1
    assert "Error: out/overview.png: cannot be written" in command.stderr
    assert contents(Path("out")) == before
    assert {path.name for path in Path("out").iterdir()} == set(before)


def test_a_folder_in_the_place_of_a_file_is_one_clear_line(here: Here) -> None:
    Path("out/report.html").mkdir(parents=True)
    Path("out/rank.csv").write_text("old")
    done = here(*explore())
    assert done.status == 2
    assert "Error: " in done.stderr
    assert "report.html: is a folder, so no file can be written there" in done.stderr
    assert {path.name for path in Path("out").iterdir()} == {"report.html", "rank.csv"}
    assert Path("out/rank.csv").read_text() == "old"


@pytest.mark.parametrize("place", [".out.{}.new", "out/.last.csv.{}.new"])
def test_what_a_killed_run_left_of_a_folder_is_removed(place: str) -> None:
    old, new = (Path(place.format(part * 12)) for part in "ab")
    for left, age in ((old, 1e9), (new, 1e10)):  # young however slow the machine is
        (left / "part").mkdir(parents=True)
        os.utime(left, (age, age))
    with whole_folder("out", "last.csv") as draft:
        (draft / "last.csv").write_text("1")
    assert Path("out/last.csv").read_text() == "1"
    assert not old.exists()
    assert new.exists()


def test_a_run_works_where_nothing_but_its_folder_can_be_written(
    here: Here, tmp_path: Path, bound_by_permissions: None
) -> None:
    Path("out").mkdir()
    tmp_path.chmod(0o555)
    try:
        assert here(*explore()).status == 0
    finally:
        tmp_path.chmod(0o755)
    assert Path("out/exploration.json").exists()
    assert not list(Path("out").glob("*.partial"))


@pytest.mark.parametrize("name", [".", "..", "../here/"])
def test_the_folder_may_have_no_name_of_its_own(here: Here, name: str) -> None:
    Path("here").mkdir()
    os.chdir("here")
    done = here(*("explore", "../table.csv", "--types", "../types.yaml", "-o", name, *SHORT))
    assert done.status == 0, done.stderr
    assert (Path(name) / "exploration.json").exists()
    assert not list(Path("..").glob("*.partial"))


def test_two_writers_leave_the_files_of_one(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    with whole_folder(out, "z") as first, whole_folder(out, "z") as second:
        for draft, text in ((first, "first"), (second, "second")):
            for name in ("a", "z"):
                (draft / name).write_text(text)
    assert {path.read_text() for path in out.iterdir()} == {"first"}
    with pytest.raises(OutputError, match=r"out/a"), whole_folder(out, "z") as draft:
        raise OutputError("cannot be written", file=str(draft / "a"))
    assert sorted(path.name for path in out.iterdir()) == ["a", "z"]
