"""Errors and intervals of hourly traffic and of wells, with role time and without.

    python benchmarks/traffic.py [SEEDS]

Traffic (1,000 hours): temperature, cars, heavy vehicles and their share, with a daily and a weekly
pattern and a drift; hour and weekday are columns. Wells (700 days): four levels of groundwater that
walk at random, mostly together, and one that walks alone. 8 % of the cells are missing alone, 10 %
in gaps of 4 to 24 rows of one column. Errors are root mean squares in units of a column's sd, with
what 95 % intervals hold; seconds are of processor time, one thread.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import pandas as pd
import pyarrow as pa

from glfm_cli import impute

WAYS = {
    "no role": ({}, {}),
    "role time, glfm alone": ({"role": "time"}, {"model": "glfm"}),
    "role time": ({"role": "time"}, {}),
}


def walk(n: int, slope: float, step: float, rng: np.random.Generator) -> np.ndarray:
    """Return an autoregression (n,) that begins at 0."""
    x = np.zeros(n)
    for t in range(1, n):
        x[t] = slope * x[t - 1] + step * rng.standard_normal()
    return x


def traffic(seed: int, n: int = 1000) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return hours, what is known of them, and what may be missing with its types."""
    rng, t = np.random.default_rng(seed), pd.date_range("2024-03-04", periods=n, freq="h")
    hour, of_week = np.arange(n) % 24, np.arange(n) // 24 % 7
    work = of_week < 5
    rush = 1.2 * work * np.exp(-(((hour - 8) / 2.2) ** 2)) + 0.25 * (hour > 5)
    rush += np.where(work, 1.4, 1.0) * np.exp(-(((hour - 17) / 3) ** 2))
    drift = walk(n, 0.9, 0.15, rng)
    temperature = 8 + 5 * np.sin((hour - 9) * np.pi / 12) + walk(n, 0.97, 0.5, rng)
    cars = rng.poisson(np.exp(4 + 1.5 * rush + 0.4 * drift))
    logit = -2.2 + np.where(work, 0.8, -0.6) + 0.9 * np.exp(-(((hour - 10) / 4) ** 2))
    logit += 0.3 * drift - 0.5 * rush + 0.25 * rng.standard_normal(n)
    heavy = rng.binomial(cars, 1 / (1 + np.exp(-logit)))
    day = [f"d{d}" for d in of_week]
    table = pd.DataFrame({"time": t.strftime("%Y-%m-%d %H:%M"), "hour": hour, "day": day})
    table["temperature"], table["cars"], table["heavy"] = temperature.round(1), cars, heavy
    table["share"] = (heavy / np.maximum(cars, 1)).round(4)
    kinds = {"temperature": "real", "cars": "count", "heavy": "count", "share": "real"}
    return table, kinds


def wells(seed: int, n: int = 700) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return the same of days and levels of groundwater."""
    rng = np.random.default_rng(seed)
    both = walk(n, 1.0, 0.05, rng)
    levels = [
        share * both + walk(n, 1.0, 0.03, rng) + 0.02 * rng.standard_normal(n)
        for share in (1.0, 0.8, 0.5, 0.9, 0.0)
    ]
    days = pd.date_range("2015-01-01", periods=n, freq="D").strftime("%Y-%m-%d")
    names = [f"well{k}" for k in range(5)]
    table = pd.DataFrame(dict(zip(names, levels, strict=True)))
    table.insert(0, "time", days)
    return table, dict.fromkeys(names, "real")


def missing(n: int, columns: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return which cells (n, columns) are missing alone, and which in gaps."""
    rng = np.random.default_rng([seed, 1])
    alone, gaps = rng.random((n, columns)) < 0.08, np.zeros((n, columns), dtype=bool)
    for d in range(columns):
        while gaps[:, d].sum() < 0.1 * n:
            start = rng.integers(n)
            gaps[start : start + rng.integers(4, 25), d] = True
    return alone & ~gaps, gaps


def main(seeds: int) -> None:
    """Print a line for each kind of table and way."""
    print("table, way | alone: error, cover | in gaps | seconds")
    for make in (traffic, wells):
        for way, (role, how) in WAYS.items():
            found = []
            for seed in range(seeds):
                table, kinds = make(seed)
                x, names = table[list(kinds)].to_numpy(dtype=float), list(kinds)
                alone, gaps = missing(*x.shape, seed)
                columns = {c: pa.array(table[c]) for c in table.columns if c not in kinds}
                for d, name in enumerate(names):
                    columns[name] = pa.array(x[:, d], mask=(alone | gaps)[:, d])
                types = {"time": {"type": "date", **role}, **kinds}
                types |= {c: k for c, k in (("hour", "real"), ("day", "categorical")) if c in table}
                begun = time.process_time()
                done = impute(pa.table(columns), {"columns": types}, seed=seed, threads=1, **how)
                seconds = time.process_time() - begun
                cells = done.cells().to_pandas()
                at = cells["row"] - 1, cells["column"].map(names.index)
                off = (cells["mean"].astype(float) - x[at]) / x.std(axis=0)[at[1]]
                lower, upper = (cells[one].astype(float) for one in ("lower", "upper"))
                held = (lower <= x[at]) & (x[at] <= upper)
                for kind in (alone[at], gaps[at]):
                    found += [np.mean(off[kind] ** 2), np.mean(held[kind])]
                found.append(seconds)
            mean = np.mean(np.reshape(found, (seeds, -1)), axis=0)
            parts = [f"{np.sqrt(mean[i]):.3f}, {mean[i + 1]:.3f}" for i in (0, 2)]
            print(" | ".join([f"{make.__name__}, {way}", *parts, f"{mean[-1]:.0f}"]), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4)
