"""Error and cover of sensors, single cells and long gaps missing, with role time and without.

    python benchmarks/series.py [ROWS] [SEEDS]

Eight hourly columns: three autoregressions that all share (0.95), a daily cycle of another height
in each, and an autoregression of each column's own (0.9). 3 % of the cells are missing alone, and
gaps of 12 to 71 hours of one column, one in 250 rows of each. Errors are root mean squares in units
of the column's sd, cover that of 95 % intervals; seconds are of processor time, one thread.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import pandas as pd
import pyarrow as pa

from glfm_cli import impute

COLUMNS = 8
WAYS = {
    "no role, days and hour": {"type": "date", "as": ["days", "hour"]},
    "role time": {"type": "date", "role": "time"},
    "role time, days and hour": {"type": "date", "role": "time", "as": ["days", "hour"]},
}


def autoregression(n: int, columns: int, slope: float, rng: np.random.Generator) -> np.ndarray:
    """Return columns that begin at 0, with steps of sd 0.3."""
    x = np.zeros((n, columns))
    for t in range(1, n):
        x[t] = slope * x[t - 1] + 0.3 * rng.standard_normal(columns)
    return x


def simulate(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the values (n, 8), and which are missing alone and in gaps."""
    rng = np.random.default_rng(seed)
    x = autoregression(n, 3, 0.95, rng) @ rng.standard_normal((3, COLUMNS))
    x += np.sin(np.arange(n) * 2 * np.pi / 24)[:, None] * rng.standard_normal(COLUMNS)
    x += autoregression(n, COLUMNS, 0.9, rng)
    alone, gaps = rng.random(x.shape) < 0.03, np.zeros(x.shape, dtype=bool)
    for d in range(COLUMNS):
        for start in rng.integers(n, size=n // 250):
            gaps[start : start + rng.integers(12, 72), d] = True
    return x, alone & ~gaps, gaps


def main(n: int, seeds: int) -> None:
    """Print a line a way."""
    print("way | alone: error, cover | in gaps | all | seconds")
    for way, entry in WAYS.items():
        found = []
        for seed in range(seeds):
            x, alone, gaps = simulate(n, seed)
            gone, names = alone | gaps, [f"s{d}" for d in range(COLUMNS)]
            hours = pd.date_range("2026-01-01", periods=n, freq="h").strftime("%Y-%m-%d %H:%M")
            columns = {s: pa.array(x[:, d], mask=gone[:, d]) for d, s in enumerate(names)}
            table = pa.table({"time": hours.to_numpy()} | columns)
            begun = time.process_time()
            done = impute(table, {"rest": "real", "columns": {"time": entry}}, seed=seed, threads=1)
            seconds = time.process_time() - begun
            cells = done.cells().to_pandas().query("column in @names")
            at = cells["row"] - 1, cells["column"].str[1:].astype(int)
            lower, upper = (cells[one].astype(float) for one in ("lower", "upper"))
            off = (cells["mean"] - x[at]) / x.std(axis=0)[at[1]]
            inside = (lower <= x[at]) & (x[at] <= upper)
            for which in (alone, gaps, gone):
                kind = which[at]
                found += [np.mean(off[kind] ** 2), np.mean(inside[kind])]
            found.append(seconds)
        means = np.mean(np.reshape(found, (seeds, -1)), axis=0)
        parts = [f"{np.sqrt(means[i]):.3f}, {means[i + 1]:.3f}" for i in (0, 2, 4)]
        print(" | ".join([way, *parts, f"{means[-1]:.0f}"]), flush=True)


if __name__ == "__main__":
    numbers = [int(one) for one in sys.argv[1:]]
    main(*(numbers + [1000, 3][len(numbers) :]))
