"""The benchmark of what an iteration of the mixture of experts costs runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

SMALL = "--rows 100,200 --features 3 --experts 2 --hidden 0.3 --iterations 1"


def run(repository: Path, *more: str) -> list[str]:
    """Return the lines that the benchmark prints of small tables."""
    done = subprocess.run(
        [sys.executable, "benchmarks/classify_speed.py", *SMALL.split(), *more],
        cwd=repository,
        env={**os.environ, "PYTHONPATH": str(repository), "PYTHONWARNINGS": "error"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_an_iteration_is_measured_and_its_growth(repository: Path) -> None:
    head, *lines, last = run(repository)
    assert head.split()[-3:] == ["iteration", "s", "bytes"]
    assert [line.split()[:4] for line in lines] == [
        ["100", "3", "2", "0.30"],
        ["200", "3", "2", "0.30"],
    ]
    assert min(float(line.split()[4]) for line in lines) > 0.0
    assert re.fullmatch(r"time grows with rows to the power -?\d\.\d\d at 0.3 hidden", last)


def test_a_fit_is_measured_until_it_has_converged(repository: Path) -> None:
    _, *lines = run(repository, "--converge", "--threads", "1")
    assert [line.split()[0] for line in lines] == ["100", "200"]
    assert not any("not converged" in line for line in lines)
