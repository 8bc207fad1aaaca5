"""Dates that follow another date by some days: seen by ranks, and as they are.

    python benchmarks/dates.py [--seeds 1,2,3]

Of simulated tables, hide a fifth of the second of two dates and complete it by `glfm impute`, with
`transform: rank` for both dates and without. Printed are the root mean square error of its cells
in days, the mean width of their 95 % intervals and the share of cells that these hold.
"""

from __future__ import annotations

import argparse
from datetime import date, timedelta

import numpy as np
import pyarrow as pa

from glfm_cli import impute
from glfm_cli.arrays import Array

FIRST, ROWS, HIDDEN = date(2020, 1, 1), 600, 0.2
YEAR, YEARS = 365.25, 3


def stays(rng: np.random.Generator, spread: float) -> tuple[Array, Array, Array]:
    """Return days of admission, within `spread` days of each year, of discharge, and severity."""
    first = YEAR * rng.integers(YEARS, size=ROWS) + rng.uniform(0, spread, ROWS)
    severity = rng.standard_normal(ROWS)
    return first, first + 9 + 4 * severity + rng.normal(0, 2.5, ROWS), severity


def flowering(rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Return days of sowing, in a month of three springs, of flowering, and the variety's delay."""
    first = YEAR * rng.integers(YEARS, size=ROWS) + 90 + rng.uniform(0, 30, ROWS)
    delay = rng.standard_normal(ROWS)
    return first, first + 95 + 3 * delay + rng.normal(0, 2.5, ROWS), delay


TABLES = {
    "discharge, of all days": lambda rng: stays(rng, YEAR),
    "discharge, in 25 days of each year": lambda rng: stays(rng, 25.0),
    "flowering 95 days after sowing": flowering,
}


def errors_of(days: tuple[Array, Array, Array], transform: str | None, seed: int) -> Array:
    """Return error, width and coverage of the hidden second dates."""
    gone = np.random.default_rng(seed).random(ROWS) < HIDDEN
    first, second = ([FIRST + timedelta(days=int(day)) for day in x] for x in days[:2])
    hidden = pa.array(second, mask=gone)
    table = pa.table({"first": first, "second": hidden, "beside": days[2]})
    seen = {"type": "date"} | ({"transform": transform} if transform else {})
    types = {"columns": {"first": seen, "second": seen, "beside": "real"}}
    (done,) = (
        c for c in impute(table, types, seed=seed, threads=1).columns
        if c.encoded.column.name == "second"
    )  # fmt: skip
    truth = np.floor(days[1])[np.flatnonzero(gone)] + (FIRST - date(1970, 1, 1)).days
    low, _, high = done.marginal.quantiles.T
    error = np.sqrt(np.mean((done.marginal.mean - truth) ** 2))
    return np.array([error, np.mean(high - low), np.mean((low <= truth) & (truth <= high))])


def main() -> None:
    """Print a line a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="1,2,3")
    seeds = [int(seed) for seed in parser.parse_args().seeds.split(",")]
    print("| dates | error, days | width | inside |\n| --- | --- | --- | --- |")
    for name, simulated in TABLES.items():
        found = np.mean(
            [
                [errors_of(simulated(np.random.default_rng(s)), way, s) for way in ("rank", None)]
                for s in seeds
            ],
            axis=0,
        )
        (error, width, inside), (e, w, i) = found
        print(f"| {name} | {error:.1f}, {e:.1f} | {width:.0f}, {w:.0f} | {inside:.2f}, {i:.2f} |")


if __name__ == "__main__":
    main()
