"""What does each default of `glfm impute` gain? Change one at a time, and look at the error.

    python benchmarks/defaults.py [FOLDER] [--tables heart,german] [--seeds 2] [--out FILE]
                                  [--only NAME,NAME]

For every NAME.csv(.gz) with NAME.types.yaml in FOLDER (`sample_data` by default) 30 % of the
observed cells are hidden completely at random, once, and completed under every variant of VARIANTS
with the seeds 0, 1 ... The defaults have 8 chains here, whatever the size of the table. Printed is
the mean error of the [GLFM] article, section 5.1, as a ratio to that of the defaults, and the
processor seconds as a ratio too; at the end their geometric means. Every line goes to FILE
(defaults.csv by default), with which a later run of the same command goes on.
"""

from __future__ import annotations

import argparse
import csv
import time
from argparse import Namespace
from pathlib import Path

import numpy as np
from accuracy import names_in
from stability import errors_by_seed

from glfm_cli.inference.executors import available_threads
from glfm_cli.options import CHAINS, DRAWS, THIN, WARMUP

PLAN = {"chains": CHAINS, "warmup": WARMUP, "draws": DRAWS, "thin": THIN}
DEFAULT = "defaults"
# Of each variant: how long is sampled, and settings, where these are not the defaults.
VARIANTS: dict[str, tuple[dict[str, int], dict[str, object]]] = {
    DEFAULT: ({}, {}),
    "1 chain": ({"chains": 1}, {}),
    "1 chain of 1,080 sweeps": ({"chains": 1, "warmup": 200, "draws": 440}, {}),
    "16 chains": ({"chains": 16}, {}),
    "32 chains": ({"chains": 32}, {}),
    "32 chains of 80 sweeps": ({"chains": 32, "warmup": 60, "draws": 10}, {}),
    "warm-up of 30": ({"warmup": 30}, {}),
    "warm-up of 300": ({"warmup": 300}, {}),
    "alpha = 1": ({}, {"alpha": 1.0}),
    "alpha = 5": ({}, {"alpha": 5.0}),
    "weight_variance = 1": ({}, {"weight_variance": 1.0}),
    "prior_scale = independent": ({}, {"prior_scale": "independent"}),
    "bias = false": ({}, {"bias": False}),
    "bias_variance = 1": ({}, {"bias_variance": 1.0}),
    "max_features = 20": ({}, {"max_features": 20}),
    "max_features = 100": ({}, {"max_features": 100}),
    "initial_features = 2": ({}, {"initial_features": 2}),
    "initial_features = 40": ({}, {"initial_features": 40}),
    "rank_skewness = inf": ({}, {"rank_skewness": "inf"}),
    "rank_skewness = 0": ({}, {"rank_skewness": 0.0}),
    "link = paper": ({}, {"link": "paper"}),
}

Cells = dict[tuple[str, str], tuple[float, float]]  # (variant, table): error, seconds


def measure(name: str, table: str, options: argparse.Namespace) -> tuple[float, float]:
    """Return the mean error over the seeds, and processor seconds a fit."""
    plan, settings = VARIANTS[name]
    asked = Namespace(
        folder=options.folder,
        rate=0.3,
        seeds=options.seeds,
        threads=options.threads,
        settings=[f"{key}={value}" for key, value in settings.items()],
        **{**PLAN, **plan},
    )
    began = time.process_time()
    errors, _ = errors_by_seed(table, asked)
    return float(np.mean(errors)), (time.process_time() - began) / options.seeds


def known(path: Path) -> Cells:
    """Return what an earlier run has measured."""
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as lines:
        return {
            (row["variant"], row["table"]): (float(row["error"]), float(row["seconds"]))
            for row in csv.DictReader(lines)
        }


def show(cells: Cells, tables: list[str]) -> None:
    """Print every variant's ratios to the defaults."""
    width = max(map(len, VARIANTS))
    print(
        f"{'':<{width}}" + "".join(f"{table:>12}" for table in tables) + f"{'mean':>8}{'time':>8}"
    )
    for name in VARIANTS:
        if not all((variant, table) in cells for variant in (name, DEFAULT) for table in tables):
            continue
        ratios = np.array([np.divide(cells[name, t], cells[DEFAULT, t]) for t in tables])
        error, seconds = np.exp(np.log(ratios).mean(axis=0))
        line = "".join(f"{ratio:>12.3f}" for ratio in ratios[:, 0])
        print(f"{name:<{width}}{line}{error:>8.3f}{seconds:>8.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=Path("sample_data"))
    parser.add_argument("--tables", help="names with commas; wine@3000 is a random 3,000 rows")
    parser.add_argument("--only", help="variants, by name with commas")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=available_threads())
    parser.add_argument("--out", type=Path, default=Path("defaults.csv"))
    options = parser.parse_args()
    tables = options.tables.split(",") if options.tables else names_in(options.folder)
    names = [DEFAULT, *options.only.split(",")] if options.only else list(VARIANTS)
    cells = known(options.out)
    fresh = not options.out.exists()
    with options.out.open("a", encoding="utf-8", newline="") as lines:
        writer = csv.writer(lines)
        if fresh:
            writer.writerow(("variant", "table", "error", "seconds"))
        for table in tables:
            for name in names:
                if (name, table) not in cells:
                    cells[name, table] = measure(name, table, options)
                    writer.writerow((name, table, *cells[name, table]))
                    lines.flush()
    show(cells, tables)


if __name__ == "__main__":
    main()
