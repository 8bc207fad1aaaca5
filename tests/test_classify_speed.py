"""The benchmark of what an iteration of the mixture of experts costs runs."""

from __future__ import annotations

import re
from collections.abc import Callable

SMALL = [
    *("--rows", "100,200", "--features", "3", "--experts", "2"),
    *("--hidden", "0.3", "--iterations", "1"),
]


def test_an_iteration_is_measured_and_its_growth(benchmark: Callable[..., list[str]]) -> None:
    head, *lines, last = benchmark("classify_speed.py", *SMALL)
    assert head.split()[-3:] == ["iteration", "s", "bytes"]
    assert [line.split()[:4] for line in lines] == [
        ["100", "3", "2", "0.30"],
        ["200", "3", "2", "0.30"],
    ]
    assert min(float(line.split()[4]) for line in lines) > 0.0
    assert re.fullmatch(r"time grows with rows to the power -?\d\.\d\d at 0.3 hidden", last)


def test_a_fit_is_measured_until_it_has_converged(benchmark: Callable[..., list[str]]) -> None:
    _, *lines = benchmark(
        "classify_speed.py", *SMALL, "--rows", "50", "--converge", "--threads", "1"
    )
    assert [line.split()[0] for line in lines] == ["50"]
    assert not any("not converged" in line for line in lines)
