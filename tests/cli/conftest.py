"""What the tests of commands share: a command line run in this process, and a desk to run it at."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from glfm_cli.cli import app
from glfm_cli.cli.console import Console

SHORT = ("--chains", "1", "--warmup", "5", "--draws", "5", "--threads", "1")


class Said(NamedTuple):
    """What a command line gave."""

    status: int
    output: bytes  # stdout
    stderr: str

    @property
    def stdout(self) -> str:
        return self.output.decode()

    def lines(self, kind: str) -> list[str]:
        """Return the lines on stderr that begin with `Error:`, `Hint:` or `Warning:`."""
        return [line for line in self.stderr.splitlines() if line.startswith(f"{kind}:")]


def run_here(*arguments: str | Path) -> Said:
    """Run a command line in this process: the same as a process of its own, but much cheaper."""
    stdout, stderr = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
    before, sys.stdout = sys.stdout, stdout
    try:
        status = app.run([str(argument) for argument in arguments], Console(stdout, stderr))
        stdout.flush()
    finally:
        sys.stdout = before
    assert isinstance(stdout.buffer, io.BytesIO)
    return Said(int(status), stdout.buffer.getvalue(), stderr.getvalue())


def check_analysis_refused(folder: Path, table: str, types: str, text: str, *says: str) -> None:
    """Check that `glfm impute --analysis TEXT` ends with an error that says this."""
    (folder / "t.csv").write_text(table)
    (folder / "t.yaml").write_text(types)
    files = "impute", folder / "t.csv", "--types", folder / "t.yaml", "-o", folder / "o.csv"
    done = run_here(*files, *SHORT, "--multiple", "2", "--analysis", text)
    assert done.status == 2
    for part in says:
        assert part in done.stderr
    assert not (folder / "o.csv").exists()


class Desk:
    """A folder, the current one, with a table and a types file to run `glfm impute` on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, name: str, content: str | bytes) -> Path:
        """Write a file and return its path."""
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def files(self) -> dict[str, bytes]:
        """Return every file in the folder with its bytes."""
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file()
        }

    def impute(self, *options: str, table: str = "table.csv", types: str = "types.yaml") -> Said:
        """Run `glfm impute` with a few sweeps of one chain."""
        return run_here("impute", table, "--types", types, *SHORT, *options)

    def check_rejected(
        self, error: str, run: Callable[..., Said], *arguments: str | Path, **names: str
    ) -> Said:
        """Run a command line; check that its one error line begins like `error`, and no more."""
        before = self.files()
        said = run(*arguments, **names)
        lines = said.stderr.splitlines()
        assert (said.status, said.output) == (2, b""), said.stderr
        assert lines[0].startswith(f"Error: {error}")
        assert [line.split(" ")[0] for line in lines[1:]] in ([], ["Hint:"])
        assert self.files() == before
        return said

    def complete(self, *options: str, **names: str) -> tuple[Said, str]:
        """Run `glfm impute`, which must succeed, and return the text of the completed table."""
        said = self.impute(*options, **names)
        assert said.status == 0, said.stderr
        return said, said.stdout


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """An empty desk; file names on the command line are relative to it."""
    monkeypatch.chdir(tmp_path)
    return Desk(tmp_path)


@pytest.fixture(scope="session")
def here() -> Callable[..., Said]:
    """Run a command line in this process: `here("impute", path, ...)`."""
    return run_here
