"""What do a few zeros far below the rest of a column do to its completion?

    python benchmarks/zeros.py FOLDER --out DIR [--tables abalone@1000,heart,wine@1000] [--zeros 3]
        [--peers]

Numeric columns of FOLDER's tables without zeros, whose smallest value lies at least two sds above
0, get a few zeros instead of what some rows have, as slips of the keyboard and failed instruments
leave them; then 30 % of the other cells are hidden completely at random. Printed are, for each
table, errors of the hidden cells of these columns (root mean squares in units of the columns'
ranges before) without and with the zeros, and with them by a Gaussian copula (gcimpute, `--peers`).
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
from accuracy import install_peers
from paper_figures import load

from glfm_cli import impute, write_table
from glfm_cli.schema import read_schema

HIDDEN = 0.3
APART = 2.0  # sds between 0 and the smallest value, at least
MOST = 4  # columns of a table that get zeros


def complete(table: pd.DataFrame, types: Path, program: str | None, folder: Path) -> pd.DataFrame:
    """Return the table completed by `glfm impute --model glfm`, or by another program."""
    given, made = folder / "given.csv", folder / "made.csv"
    table.to_csv(given, index=False)
    if program is None:
        write_table(impute(given, types, model="glfm", seed=1).table, made)
    else:
        said = program.format(input=given, types=types, output=made, seed=1)
        subprocess.run(shlex.split(said), check=True, capture_output=True)
    return pd.read_csv(made, dtype=str, keep_default_na=False)


def main() -> None:
    """Print a line a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tables", default="abalone@1000,heart,wine@1000")
    parser.add_argument("--zeros", type=int, default=3)
    parser.add_argument("--peers", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    programs = [None, *([install_peers(options.out / "peers")["copula"]] * options.peers)]
    print(f"{'table':16}{'columns':>8}{'without':>10}{'with':>10}{'copula':>10}")
    for name in options.tables.split(","):
        arrow, types = load(options.folder, name)
        whole = arrow.to_pandas().astype(str)
        rng = np.random.default_rng(0)
        planted, truth = whole.copy(), {}
        for column in read_schema(types).columns:
            x = pd.to_numeric(whole[column.name], errors="coerce") if column.positive else None
            if x is not None and x.min() > APART * x.std() and len(truth) < MOST:
                truth[column.name] = x
                at = rng.choice(x.dropna().index, options.zeros, replace=False)
                planted.loc[at, column.name] = "0"
        if not truth:
            print(f"{name:16}       0 (no column stays clear of 0)")
            continue
        hidden = rng.random(whole.shape) < HIDDEN
        hidden &= (planted == whole).to_numpy()
        found = []
        for start, program in ((whole, None), *((planted, program) for program in programs)):
            done = complete(start.mask(hidden, ""), types, program, options.out)
            errors = []
            for c, x in truth.items():
                rows = hidden[:, whole.columns.get_loc(c)] & x.notna()
                away = pd.to_numeric(done.loc[rows, c]) - x[rows]
                errors.append(np.sqrt(np.mean(away**2)) / np.ptp(x.dropna()))
            found.append(float(np.mean(errors)))
        print(f"{name:16}{len(truth):8}" + "".join(f"{x:10.4f}" for x in found), flush=True)


if __name__ == "__main__":
    main()
