"""The benchmark of speed runs, and docs/speed.md shows how."""

from __future__ import annotations

import importlib.util
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = "benchmarks/speed.py"
SMALL = "--rows 200,400 --columns 5,10 --features 3 --sweeps 1"
HEAD = "rows columns latent features sweep s fill s ratio ns bytes"


def commands(repository: Path) -> list[list[str]]:
    """Return the arguments of every command that the page gives."""
    text = (repository / "docs" / "speed.md").read_text(encoding="utf-8")
    lines = re.findall(rf"^    python {SCRIPT}(.*)$", text, flags=re.MULTILINE)
    return [shlex.split(line) for line in lines]


def test_every_command_of_the_page_is_understood(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = importlib.util.spec_from_file_location("speed", repository / SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "speed", module)
    monkeypatch.syspath_prepend(repository / "benchmarks")  # as when it is run
    spec.loader.exec_module(module)
    found = commands(repository)
    assert len(found) >= 3
    for arguments in found:
        chosen = module.options().parse_args(arguments)
        assert min([*chosen.rows, *chosen.columns, chosen.features, chosen.sweeps]) > 0


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
