"""Figures 2 and 3 of the GLFM article: error by share hidden and by column, on its tables.

    python benchmarks/paper_figures.py FOLDER [--out DIR] [--tables german,qsar,wine@3000]

FOLDER holds NAME.csv(.gz) with NAME.types.yaml; `wine@3000` is a random 3,000 rows of wine, the
same every time. For each table `glfm evaluate` hides 10 to 50 % of the cells, 20 times each, and
completes them with glfm, sibp and mean, each with one chain of 500 sweeps: 400 of warm-up, then
every second of 100 kept. Results go to DIR/NAME.csv, which a later run of the same command goes on
with; figures to DIR/NAME-error.png and DIR/NAME-columns.png. At the end it prints, for every table
and rate, the errors with their standard errors and the paired differences to glfm.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa

from glfm_cli import Evaluation, evaluate, plot_evaluation, read_table
from glfm_cli.cli.evaluate_text import grid_text
from glfm_cli.evaluation.grids import headline_grids, opening
from glfm_cli.inference.executors import available_threads

METHODS = ("glfm", "sibp", "mean")


def load(folder: Path, name: str) -> tuple[pa.Table, Path]:
    """Return a table, or a random part of it, and its types file."""
    base, _, rows = name.partition("@")
    paths = [folder / f"{base}{suffix}" for suffix in (".csv", ".csv.gz", ".parquet")]
    found = [path for path in paths if path.exists()]
    if not found:
        raise SystemExit(f"{folder} has no table {base}")
    table = read_table(found[0])
    if rows and int(rows) < table.num_rows:
        chosen = np.random.default_rng(0).choice(table.num_rows, int(rows), replace=False)
        table = table.take(pa.array(np.sort(chosen)))
    return table, folder / f"{base}.types.yaml"


def report(name: str, done: Evaluation) -> str:
    """Return the errors of a table as text, and where glfm is not clearly the best."""
    grids = [grid for grid in headline_grids(done) if grid.title.startswith("Error")]
    best = {line.rate for line in done.lines if line.method == "glfm" and line.best
            and (line.what.score, line.what.scope) == ("error", "all")}  # fmt: skip
    others = [f"{100 * rate:g} %" for rate in done.rates if rate not in best]
    said = f"not best beyond noise at {', '.join(others)}" if others else "best at every rate"
    parts = [f"{name}: {opening(done)}", *map(grid_text, grids), f"glfm is {said}."]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=Path("paper_figures"))
    parser.add_argument("--tables", default="german,qsar,wine@3000")
    parser.add_argument("--rates", default="0.1,0.2,0.3,0.4,0.5")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=400)
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--thin", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=available_threads())
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.tables.split(","):
        table, types = load(arguments.folder, name)
        done = evaluate(
            table,
            types,
            methods=METHODS,
            rates=[float(rate) for rate in arguments.rates.split(",")],
            repeats=arguments.repeats,
            chains=1,
            warmup=arguments.warmup,
            draws=arguments.draws,
            thin=arguments.thin,
            jobs=arguments.jobs,
            output=arguments.out / f"{name}.csv",
            resume=True,
        )
        if done.stopped:
            raise SystemExit("interrupted; the same command goes on")
        for kind in ("error", "columns", "log_score", "column_log_scores"):
            plot_evaluation(done, arguments.out / f"{name}-{kind}.png", kind=kind)
        print(report(name, done), flush=True)


if __name__ == "__main__":
    main()
