"""How many components chains of simulated ratings have, and how well hidden values are predicted.

    python benchmarks/rank.py [--rows 6000] [--columns 4000] [--cells 1000000] [--rank 10]
                              [--start auto] [--sweeps 100] [--seed 1]

Planted: intercepts of rows and columns (32 % of the variance), components (15 %, sizes falling from
1.4 to 0.6), noise; rows and columns have cells in proportion to gamma variables. A chain begins as
`--start` says, with as many components as residuals show (`auto`) or with a number. Printed: where
it begins, its mean rank and the RMSE of hidden values by the mean of the second half of the sweeps,
and processor seconds.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np
from threadpoolctl import threadpool_limits

from glfm_cli.encoding import EncodedColumn
from glfm_cli.inference.chain import Chain, start_chain
from glfm_cli.latent.bsvd.sampler import Bsvd
from glfm_cli.latent.model import Entries, Problem, Sparse
from glfm_cli.links import LinkConfig, make_link
from glfm_cli.schema import Column, ColumnType
from glfm_cli.streams import Streams

Array = np.ndarray
SHARE, INTERCEPT, HIDDEN = 0.15, 0.4, 0.05


def make(shape: tuple[int, int], m: int, rank: int) -> tuple[Array, Array, Array]:
    """Return row, column and value of about m distinct cells."""
    rng = np.random.default_rng(0)
    often = [rng.gamma(2.0, size=n) for n in shape]
    drawn = [rng.choice(p.size, int(1.3 * m), p=p / p.sum()) for p in often]
    flat = np.unique(drawn[0].astype(np.int64) * shape[1] + drawn[1])
    row, column = np.divmod(np.sort(rng.choice(flat, min(m, flat.size), replace=False)), shape[1])
    U, V = (rng.normal(size=(n, rank)) for n in shape)
    s = np.linspace(1.4, 0.6, rank)
    s *= np.sqrt(SHARE / np.sum(s**2))
    x = sum(INTERCEPT * rng.normal(size=n)[at] for n, at in zip(shape, (row, column), strict=True))
    for k in range(rank):
        x += s[k] * U[row, k] * V[column, k]
    noise = 1.0 - SHARE - 2.0 * INTERCEPT**2
    return row, column, x + np.sqrt(noise) * rng.normal(size=row.size)


def begun(cells: tuple[Array, ...], shape: tuple[int, int], start: str, seed: int) -> Chain:
    row, column, values = cells
    gaps = np.zeros(values.size, dtype=bool)
    kind = Column("x", type=ColumnType.REAL, transform="none")
    link = make_link(EncodedColumn(kind, 0, values, ~gaps, gaps), LinkConfig())
    first = None if start == "auto" else int(start)
    config = replace(Bsvd().config_for(["real"], "sparse"), initial_components=first)
    entries = Entries(row.astype(np.int32), column.astype(np.int32), shape)
    problem = Problem(Bsvd(), config, (link,), (values,), LinkConfig(), Sparse(entries))
    return start_chain(problem, Streams(seed, 0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=6000)
    parser.add_argument("--columns", type=int, default=4000)
    parser.add_argument("--cells", type=int, default=1_000_000)
    parser.add_argument("--rank", type=int, default=10)
    parser.add_argument("--start", default="auto")
    parser.add_argument("--sweeps", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    shape = asked.rows, asked.columns
    cells = make(shape, asked.cells, asked.rank)
    hidden = np.random.default_rng(1).random(cells[0].size) < HIDDEN
    row, column, truth = (part[hidden] for part in cells)
    seen = tuple(part[~hidden] for part in cells)
    with threadpool_limits(limits=1):
        began = time.process_time()
        chain = begun(seen, shape, asked.start, asked.seed)
        first, means, ranks = int(chain.state.on.sum()), [], []
        for sweep in range(asked.sweeps):
            chain.sweep(adapt=2 * sweep < asked.sweeps)
            if 2 * sweep >= asked.sweeps:
                left, right = chain.state.sides()
                means.append(np.einsum("nk,nk->n", left[row], right[column]))
                ranks.append(int(chain.state.on.sum()))
        seconds = time.process_time() - began
    slope, level = np.polyfit(chain.state.matrix.values(chain.cells.y), seen[2], 1)
    error = level + slope * np.mean(means, axis=0) - truth
    rmse = float(np.sqrt(np.mean(error**2)))
    ends = f"begins with {first}, ends at {np.mean(ranks):.1f}"
    print(f"{ends}; RMSE {rmse:.4f}, {seconds:.1f} s")


if __name__ == "__main__":
    main()
