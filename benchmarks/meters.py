"""Error in single cells and long gaps of hourly meters of buildings, with role time and without.

    python benchmarks/meters.py [ROWS] [SEEDS]

Three meters jump when a building opens (7 to 18 on workdays, 8 to 20, 6 to 22), with noise; a
server room drifts, as the temperature outside does, which has a daily cycle, too. 3 % of the cells
are missing alone, and gaps of 12 to 59 hours of one column, one in 400 rows of each. Errors are
root mean squares in units of the sd of a column, of single cells and of gaps; seconds are of
processor time, one thread. The last line is linear interpolation of each column.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import pandas as pd
import pyarrow as pa

from glfm_cli import impute

HOURS = {"office": (7, 18, 5), "shop": (8, 20, 6), "school": (6, 22, 5)}
NAMES = [*HOURS, "servers", "outside"]
PARTS = ["days", "weekday", "hour"]
WAYS = {
    "dates as they are": {"type": "date"},
    "as: [days, weekday, hour]": {"type": "date", "as": PARTS},
    "role time": {"type": "date", "role": "time"},
    "both": {"type": "date", "role": "time", "as": PARTS},
}


def simulate(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the values (n, 5), and which are missing alone and in gaps."""
    rng, hours = np.random.default_rng(seed), np.arange(n)
    hour, day = hours % 24, hours // 24 % 7
    outside = 10 + 4 * np.sin((hour - 9) * np.pi / 12) + rng.normal(0, 0.5, n).cumsum()
    columns = [
        np.where((hour >= first) & (hour < last) & (day < days), 80.0, 0.0)
        - outside
        + rng.normal(40, 8, n)
        for first, last, days in HOURS.values()
    ]
    servers = 50 + rng.normal(0, 0.5, n).cumsum() + rng.normal(0, 1, n)
    x = np.column_stack([*columns, servers, outside])
    alone, gaps = rng.random(x.shape) < 0.03, np.zeros(x.shape, dtype=bool)
    for d in range(x.shape[1]):
        for start in rng.integers(n, size=n // 400):
            gaps[start : start + rng.integers(12, 60), d] = True
    return x, alone & ~gaps, gaps


def completed(x: np.ndarray, gone: np.ndarray, entry: dict, seed: int) -> np.ndarray:
    """Return the table (n, 5) with means in its missing cells."""
    hours = pd.date_range("2026-01-05", periods=len(x), freq="h").strftime("%Y-%m-%d %H:%M")
    columns = {name: pa.array(x[:, d], mask=gone[:, d]) for d, name in enumerate(NAMES)}
    table, types = pa.table({"time": hours.to_numpy()} | columns), {"time": entry}
    done = impute(table, {"rest": "real", "columns": types}, seed=seed, threads=1)
    return np.column_stack([done.table[name].to_numpy() for name in NAMES])


def interpolated(x: np.ndarray, gone: np.ndarray) -> np.ndarray:
    """Return the table with lines between the cells that are there."""
    gaps = pd.DataFrame(np.where(gone, np.nan, x))
    return gaps.interpolate(limit_direction="both").to_numpy()


def main(n: int, seeds: int) -> None:
    """Print a line a way: errors in single cells and in gaps of each table, mean seconds."""
    print("way | alone | in gaps | seconds")
    for way, entry in {**WAYS, "linear interpolation": None}.items():
        found, begun = [], time.process_time()
        for seed in range(seeds):
            x, alone, gaps = simulate(n, seed)
            gone = alone | gaps
            filled = interpolated(x, gone) if entry is None else completed(x, gone, entry, seed)
            off = ((filled - x) / x.std(axis=0)) ** 2
            found.append([np.sqrt(off[kind].mean()) for kind in (alone, gaps)])
        parts = [", ".join(f"{error:.2f}" for error in each) for each in np.transpose(found)]
        seconds = (time.process_time() - begun) / seeds
        print(" | ".join([way, *parts, f"{seconds:.0f}"]), flush=True)


if __name__ == "__main__":
    numbers = [int(one) for one in sys.argv[1:]]
    main(*(numbers + [1000, 2][len(numbers) :]))
