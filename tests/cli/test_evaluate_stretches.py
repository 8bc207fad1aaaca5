"""Hidden runs of rows foretell errors of sensors that fail for days; single cells do not."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

PROGRAM = """import sys
source, target = map(open, sys.argv[1:], "rw")
print(next(source), end="", file=target)
last = ["0", "0"]
for line in source:
    last = [cell or before for cell, before in zip(line.rstrip().split(","), last)]
    print(*last, sep=",", file=target)
"""
N = 1200


def monitored(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two columns (N, 2) that drift slowly, as measured with gaps of 30 rows, and the truth."""
    x = np.random.default_rng(seed).standard_normal((N, 2))
    for t in range(1, N):
        x[t] = 0.9 * x[t - 1] + np.sqrt(1 - 0.81) * x[t]
    known = x.copy()
    for start in range(30, N - 30, 90):
        known[start : start + 30, start % 4 // 2] = np.nan
    return known, x


def test_hidden_stretches_foretell_the_error_of_long_gaps(
    desk: Any, here: Callable[..., Any], seed: int
) -> None:
    known, truth = monitored(seed)
    cells = [["" if np.isnan(v) else f"{v:.4f}" for v in row] for row in known]
    desk.put("air.csv", "\n".join(["ozone,dust", *map(",".join, cells)]) + "\n")
    desk.put("types.yaml", "columns:\n  ozone: real\n  dust: real\n")
    desk.put("above.py", PROGRAM)

    actual = 0.0
    for d in range(2):
        gone, row = np.isnan(known[:, d]), np.arange(N)
        above = np.maximum.accumulate(np.where(gone, 0, row))
        away = (known[above, d] - truth[:, d])[gone]
        actual += 0.5 * float(np.sqrt(np.mean(away**2)) / np.ptp(known[~gone, d]))

    foretold = {}
    for mechanism in ("mcar", "stretches"):
        said = here(
            "evaluate", "air.csv", "--types", "types.yaml", "--methods", "mean",
            "--method", f"above={sys.executable} above.py {{input}} {{output}}",
            "--rates", "0.2", "--repeats", "2", "--jobs", "1", "--mechanism", mechanism, "--json",
        )  # fmt: skip
        assert said.status == 0, said.stderr
        (foretold[mechanism],) = [
            entry["mean"] for entry in json.loads(said.stdout)["summary"]
            if (entry["method"], entry["score"], entry["scope"]) == ("above", "error", "all")
        ]  # fmt: skip
    assert foretold["mcar"] < 0.7 * actual
    assert 0.7 * actual < foretold["stretches"] < 1.4 * actual
