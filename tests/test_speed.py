"""The benchmarks of speed run, and docs/measured/speed.md shows how."""

from __future__ import annotations

import re
import runpy
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

SMALL = "--rows 200,400 --columns 5,10 --features 3 --sweeps 1"
HEAD = "rows columns latent features sweep s fill s ratio ns bytes"


@pytest.mark.parametrize(("name", "least"), [("speed", 3), ("end_to_end", 1)])
def test_every_command_of_the_page_is_understood(
    name: str, least: int, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (repository / "docs" / "measured" / "speed.md").read_text(encoding="utf-8")
    found = re.findall(rf"^    python benchmarks/{name}.py(.*)$", text, flags=re.MULTILINE)
    assert len(found) >= least
    monkeypatch.syspath_prepend(repository / "benchmarks")  # as when it is run
    options = runpy.run_path(str(repository / "benchmarks" / f"{name}.py"))["options"]
    for arguments in found:
        options().parse_args(shlex.split(arguments))


def test_small_sizes_are_measured_and_their_growth(benchmark: Callable[..., list[str]]) -> None:
    head, *lines = benchmark("speed.py", *shlex.split(SMALL))
    assert head.split() == HEAD.split()
    costs = [line.split() for line in lines[:3]]
    assert [row[:3] for row in costs] == [["200", "5", "6"], ["400", "5", "6"], ["200", "10", "12"]]
    for row in costs:
        assert 0.0 < float(row[3]) <= 3.0
        assert min(float(value) for value in row[4:8]) > 0.0
    assert re.fullmatch(r"time grows with rows to the power -?\d\.\d\d", lines[3])
    assert re.fullmatch(r"time grows with latent columns to the power -?\d\.\d\d", lines[4])


def test_every_step_of_a_completion_is_timed(benchmark: Callable[..., list[str]]) -> None:
    small = "--sizes 40x5 --chains 1 --warmup 2 --draws 2 --threads 1"
    head, *lines, peak = benchmark("end_to_end.py", *shlex.split(small))
    assert head.split() == ["table", "step", "seconds", "cpu", "s", "share"]
    cells = [line.split() for line in lines]
    assert all(row[:3] == ["40", "x", "5"] for row in cells)
    seconds = {row[3]: float(row[4]) for row in cells}
    assert all(float(row[5]) <= float(row[4]) + 1.0 for row in cells)
    total = seconds.pop("all")
    steps = ["starting", "reading", "encoding", "sampling", "correcting", "predicting", "writing"]
    assert list(seconds) == steps
    assert abs(sum(seconds.values()) - total) < 0.05
    assert re.search(r"peak of memory \S+ MB$", peak)
