"""What an iteration of the latent Gaussian process costs, beside the products that it is made of.

    python benchmarks/latent_gp_speed.py [--rows 1000,4096,16384,100000] [--columns 10] [--whole]

Each size runs in a process of its own, on one thread: columns, a fifth each real (twice), interval,
ordered with five levels and categorical with three, that follow a plane in waves, a fifth of the
cells missing. Printed are, for each size,

- iteration s: the median of the timed iterations, in seconds of the processor;
- floor s: the same for as many flops in BLAS products of 512 x 512, in turns with the iterations:
  n (4 M^2 + 4 P^2 + 38 P S) of n = 2 rows of an iteration, M inducing points, P features and S
  latent numbers; and the ratio of the two: what remains when machines differ or are shared;
- restart s: the time of all iterations of one restart, with its start and its end;
- bytes: peak memory from the table on, for each row of the table (Linux only).

With several numbers of rows the last line says by which power of them the time of a restart grows.
`--whole` completes a table of 1,000 rows and 10 real columns by `impute`, with its five restarts.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from memory import forget_peak, status
from threadpoolctl import threadpool_limits

import glfm_cli.latent.clgp.engine as engine
from glfm_cli import impute
from glfm_cli.latent.clgp import ClgpConfig, ColumnKind, ObservedTable
from glfm_cli.latent.clgp.ascent import n_iterations, step
from glfm_cli.schema import Schema
from glfm_cli.streams import Streams

KINDS = (
    ColumnKind("number"),
    ColumnKind("number"),
    ColumnKind("number"),  # intervals
    ColumnKind("ordered", 5),
    ColumnKind("levels", 3),
)
MISSING = 0.2
UNTIMED, TIMED = 12, 20  # iterations
SIDE = 512  # of the products of the floor


@dataclass(frozen=True)
class Cost:
    """What one size costs, in processor seconds and bytes."""

    rows: int
    iteration: float
    floor: float
    restart: float
    memory: float


def waves(n: int, D: int, rng: np.random.Generator) -> np.ndarray:
    """Return columns (D, n) of mean 0 and variance 1, with missing cells."""
    x = rng.normal(size=(n, 2))
    y = np.sin(x @ rng.normal(size=(2, D)) + rng.uniform(0.0, 6.0, D))
    y += 0.2 * rng.normal(size=y.shape)
    y = (y - y.mean(axis=0)) / y.std(axis=0)
    y[rng.random(y.shape) < MISSING] = np.nan
    return np.ascontiguousarray(y.T)


def table_of(n: int, D: int) -> ObservedTable:
    """Return a table of all kinds of columns."""
    lower = waves(n, D, np.random.default_rng(0))
    upper = lower.copy()
    kinds = [KINDS[d % len(KINDS)] for d in range(D)]
    for d, kind in enumerate(kinds):
        if d % len(KINDS) == 2:
            lower[d] = np.floor(3.0 * lower[d]) / 3.0
            upper[d] = lower[d] + 1.0 / 3.0
        elif kind.n_levels:
            cuts = np.linspace(-1.0, 1.0, kind.n_levels - 1)
            codes = np.where(np.isnan(lower[d]), np.nan, np.digitize(lower[d], cuts))
            lower[d] = upper[d] = codes
    return ObservedTable(tuple(kinds), lower, upper)


def measure(n: int, D: int) -> Cost:
    """Return what a table of n rows and D columns costs."""
    table, config, streams = table_of(n, D), ClgpConfig(), Streams(1, 0)
    square = np.random.default_rng(0).random((SIDE, SIDE))
    with threadpool_limits(1):
        forget_peak()
        memory, began = status("VmRSS"), time.process_time()
        state = engine.start(table, config, streams)
        ends = time.process_time() - began
        spent: list[list[float]] = [[], []]
        for t in range(UNTIMED + TIMED):
            for times, work in zip(
                spent,
                (lambda: step(state, table, streams), lambda: square @ square),
                strict=True,
            ):
                began = time.process_time()
                work()
                if t >= UNTIMED:
                    times.append(time.process_time() - began)
        began = time.process_time()
        engine.bound(state, table)
        engine.draw(state, table)
        ends += time.process_time() - began
    (P, S), M = state.shared.mu.shape, state.shared.Z.shape[0]
    rows = config.samples * min(n, -(-n // state.n_batches))
    flops = rows * (4 * M * M + 4 * P * P + 38 * P * S)
    iteration, product = (float(np.median(times)) for times in spent)
    return Cost(
        rows=n,
        iteration=iteration,
        floor=product * flops / (2.0 * SIDE**3),
        restart=ends + n_iterations(config, n) * iteration,
        memory=status("VmHWM") - memory,
    )


def whole() -> float:
    """Return the processor seconds of a completion of 1,000 rows and 10 columns."""
    y = waves(1000, 10, np.random.default_rng(1))
    table = pa.table({f"c{d}": pa.array(one, from_pandas=True) for d, one in enumerate(y)})
    types = Schema.from_dict({"columns": dict.fromkeys(table.column_names, "real")})
    with threadpool_limits(1):
        began = time.process_time()
        impute(table, types, model="clgp", seed=1, threads=1)
    return time.process_time() - began


def main() -> None:
    """Print a line a size."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", default="1000,4096,16384,100000")
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--whole", action="store_true")
    asked = parser.parse_args()
    costs = []
    print(f"{'rows':>8}{'iteration s':>13}{'floor s':>10}{'ratio':>8}{'restart s':>11}{'bytes':>8}")
    for n in map(int, asked.rows.split(",")):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            costs.append(cost := pool.apply(measure, (n, asked.columns)))
        print(
            f"{n:>8}{cost.iteration:>13.4f}{cost.floor:>10.4f}{cost.iteration / cost.floor:>8.1f}"
            f"{cost.restart:>11.1f}{cost.memory / n:>8.0f}",
            flush=True,
        )
    if len(costs) > 1:
        logs = np.log([[cost.rows, cost.restart] for cost in costs]).T
        print(f"a restart's time grows by the power {np.polyfit(*logs, 1)[0]:.2f} of rows")
    if asked.whole:
        print(f"1,000 x 10 real, five restarts: {whole():.1f} s of processor time")


if __name__ == "__main__":
    main()
