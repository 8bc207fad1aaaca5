"""What a sweep costs: seconds, and peak memory, as the table grows.

    python benchmarks/speed.py [--rows 100000] [--columns 50] [--features 20] [--sweeps 5]

Each size runs in a process of its own, on one thread: a table of mixed columns (a fifth each real,
positive, count, ordinal and categorical with three levels, a tenth of the cells missing) is made
from planted features, and one chain is run with its number of features held at `--features`: it
starts there and may have no more. Printed are, for each size,

- latent: the pseudo-columns S;  features: how many the chain had on average;
- sweep s: the median of the timed sweeps, in seconds of the processor;
- fill s: the same for filling an array of rows x S with standard normals by NumPy, in turns with
  the sweeps, and the ratio of the two: what remains when machines differ in speed or are shared;
- ns: nanoseconds for each row, column and feature;
- bytes: peak memory from the encoded table on, for each row and latent column (Linux only).

With several numbers in `--rows` or `--columns`, separated by commas, the others stay at their
first, and the last lines say by which power of rows, or of S, the time of a sweep grows.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from memory import forget_peak, status
from threadpoolctl import threadpool_limits

from glfm_cli.completion import prepare
from glfm_cli.inference.chain import start_chain
from glfm_cli.latent.model import Problem
from glfm_cli.schema import Schema
from glfm_cli.streams import Streams

KINDS = ("real", "positive", "count", "categorical", "ordinal")
MISSING = 0.1
SHARE = 0.3  # of the rows that have a feature
UNTIMED = 3  # sweeps before the timed ones


@dataclass(frozen=True)
class Cost:
    """What one size costs."""

    rows: int
    columns: int
    latent: int
    features: float  # mean number over the timed sweeps, the bias not counted
    sweep: float  # processor seconds, median
    fill: float
    memory: float  # bytes at the peak, above those at the start; NaN where unknown

    @property
    def ratio(self) -> float:
        """A sweep's time over that of filling rows x latent with normals."""
        return self.sweep / self.fill

    @property
    def nanoseconds(self) -> float:
        """Time for each row, column and feature."""
        return 1e9 * self.sweep / (self.rows * self.columns * max(self.features, 1.0))

    @property
    def bytes_a_cell(self) -> float:
        """Peak memory for each row and latent column."""
        return self.memory / (self.rows * self.latent)


def planted(
    n_rows: int, n_columns: int, n_features: int, rng: np.random.Generator
) -> tuple[pa.Table, dict[str, str]]:
    """Return a table of mixed columns with planted features, and the columns' types."""
    z = (rng.random((n_rows, n_features)) < SHARE).astype(np.float64)

    def latent() -> np.ndarray:
        y = z @ rng.normal(size=n_features) + rng.normal(size=n_rows)
        return (y - y.mean()) / y.std()

    columns, types = {}, {}
    for d in range(n_columns):
        kind = KINDS[d % len(KINDS)]
        values: np.ndarray = latent()
        if kind == "positive":
            values = np.exp(0.3 * values)
        elif kind == "count":
            values = rng.poisson(np.exp(1.0 + 0.3 * values))
        elif kind == "ordinal":
            values = np.digitize(values, [-1.0, -0.3, 0.3, 1.0])
        elif kind == "categorical":
            utilities = [values, latent(), rng.normal(size=n_rows)]
            values = np.argmax(np.column_stack(utilities), axis=1)
        name = f"{kind}_{d}"
        columns[name] = pa.array(values, mask=rng.random(n_rows) < MISSING)
        types[name] = kind
    return pa.table(columns), types


def held(n_rows: int, n_columns: int, n_features: int) -> Problem:
    """Return the sampling problem of such a table, the number of features held."""
    table, types = planted(n_rows, n_columns, n_features, np.random.default_rng(1))
    settings = {
        "max_features": n_features,
        "initial_features": n_features,
        "initial_share": SHARE,
    }
    schema = Schema.from_dict({"columns": types})
    plan = {"chains": 1, "warmup": 1, "draws": 1, "thin": 1}
    return prepare(table, schema, model="glfm", seed=0, settings=settings, **plan)[0]


def timed(work: Callable[[], object]) -> float:
    """Return the processor seconds that some work takes."""
    began = time.process_time()
    work()
    return time.process_time() - began


def measure(n_rows: int, n_columns: int, n_features: int, n_sweeps: int) -> Cost:
    """Return the cost of one size."""
    with threadpool_limits(1):
        problem = held(n_rows, n_columns, n_features)
        forget_peak()
        before = status("VmRSS")
        chain = start_chain(problem, Streams(0, 0))
        for _ in range(UNTIMED):
            chain.sweep(adapt=True)
        memory = status("VmHWM") - before
        normals = np.random.default_rng(0)
        out = np.empty(chain.cells.y.shape)
        sweeps, fills, features = [], [], []
        for _ in range(n_sweeps):
            fills.append(timed(lambda: normals.standard_normal(out=out)))
            sweeps.append(timed(lambda: chain.sweep(adapt=True)))
            features.append(problem.model.trace(chain.state)["features"])
    return Cost(
        rows=n_rows,
        columns=n_columns,
        latent=out.shape[1],
        features=float(np.mean(features)),
        sweep=float(np.median(sweeps)),
        fill=float(np.median(fills)),
        memory=memory,
    )


def line_of(cost: Cost) -> str:
    """Return one row of the printed table."""
    return (
        f"{cost.rows:>9,} {cost.columns:>7} {cost.latent:>6} {cost.features:>8.1f} "
        f"{cost.sweep:>9.3g} {cost.fill:>9.3g} {cost.ratio:>6.1f} {cost.nanoseconds:>6.2f} "
        f"{cost.bytes_a_cell:>6.1f}"
    )


def exponent(costs: Sequence[Cost], size: str) -> float:
    """Return by which power of a size the time of a sweep grows, by least squares."""
    sizes = [getattr(cost, size) for cost in costs]
    return float(np.polyfit(np.log(sizes), np.log([cost.sweep for cost in costs]), 1)[0])


def numbers(text: str) -> list[int]:
    """Return the whole numbers of a list separated by commas."""
    return [int(part) for part in text.split(",")]


def options() -> argparse.ArgumentParser:
    """Return what the command line takes."""
    parser = argparse.ArgumentParser(description="Measure what a sweep costs.")
    parser.add_argument("--rows", type=numbers, default=[100_000])
    parser.add_argument("--columns", type=numbers, default=[50])
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--sweeps", type=int, default=5)
    return parser


def main() -> None:
    """Measure every size and print."""
    chosen = options().parse_args()
    print("     rows columns latent features   sweep s    fill s  ratio     ns  bytes")
    spawn = multiprocessing.get_context("spawn")

    def run(n_rows: int, n_columns: int) -> Cost:
        with spawn.Pool(1) as pool:  # a fresh process, so that its memory is its own
            sizes = (n_rows, n_columns, chosen.features, chosen.sweeps)
            cost = pool.apply(measure, sizes)
        print(line_of(cost), flush=True)
        return cost

    by_rows = [run(n_rows, chosen.columns[0]) for n_rows in chosen.rows]
    by_columns = by_rows[:1] + [run(chosen.rows[0], n_columns) for n_columns in chosen.columns[1:]]
    if len(by_rows) > 1:
        print(f"time grows with rows to the power {exponent(by_rows, 'rows'):.2f}")
    if len(by_columns) > 1:
        print(f"time grows with latent columns to the power {exponent(by_columns, 'latent'):.2f}")


if __name__ == "__main__":
    main()
