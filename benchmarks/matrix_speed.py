"""What a sweep of the low-rank model costs: processor time and memory by observed cells.

    python benchmarks/matrix_speed.py [--cells 100000,300000,1000000] [--rows 6000] [--columns 4000]
                                      [--components 32] [--sweeps 20] [--smurff]

Made-up ratings of rank `components`, at most that many components (`max_components`), all of them
on at the start, of which sweeps leave some, one thread. Printed: processor seconds a sweep and a
million cells (means over sweeps, for some try moves of the rank and some do not); the peak of
memory in bytes a cell, beyond one copy of the factors, from the cells as triplets (16 bytes of it)
through the start of a chain, a sweep and a kept draw; at the end the exponent of seconds in cells.
With `--smurff` the package of that name is installed into a temporary folder, and the seconds of
its sweep at as many latent dimensions on the same cells, in the same run, stand beside.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import tracemalloc

import numpy as np
from threadpoolctl import threadpool_limits

from glfm_cli.encoding import EncodedColumn
from glfm_cli.inference.chain import Chain, start_chain
from glfm_cli.latent.bsvd.config import BsvdConfig
from glfm_cli.latent.bsvd.sampler import Bsvd
from glfm_cli.latent.model import Entries, Problem, Sparse
from glfm_cli.links import LinkConfig, make_link
from glfm_cli.schema import Column, ColumnType
from glfm_cli.streams import Streams

Array = np.ndarray
PART = 1 << 18
SMURFF = ("smurff==1.1", "h5sparse-tensor", "h5py", "six")


def make(m: int, shape: tuple[int, int], rank: int) -> tuple[Array, Array, Array]:
    """Return row, column and value of m distinct cells."""
    rng = np.random.default_rng(m)
    flat = np.sort(rng.choice(shape[0] * shape[1], m, replace=False))
    row, column = np.divmod(flat, shape[1])
    U, V = (rng.normal(size=(n, rank)) for n in shape)
    x = np.empty(m)
    for start in range(0, m, PART):  # all at once would take 16 rank bytes a cell
        part = slice(start, start + PART)
        x[part] = np.einsum("nk,nk->n", U[row[part]], V[column[part]]) / np.sqrt(rank)
    return row.astype(np.int32), column.astype(np.int32), x + 0.5 * rng.normal(size=m)


def ours(
    cells: tuple[Array, Array, Array], shape: tuple[int, int], K: int, sweeps: int
) -> tuple[float, float, float]:
    """Return seconds a sweep, peak bytes a cell besides the factors, and the mean rank."""
    tracemalloc.start()
    # Copies, so that what is handed over is counted.
    chain = started(*(part.copy() for part in cells), shape, K)
    chain.sweep(adapt=True)
    chain.keep()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    factors = 8 * sum(shape) * (K + 2)
    ranks, seconds = [], []
    for _ in range(sweeps):
        start = time.process_time()
        chain.sweep(adapt=False)
        seconds.append(time.process_time() - start)
        ranks.append(int(chain.state.on.sum()))
    return float(np.mean(seconds)), (peak - factors) / cells[2].size, float(np.mean(ranks))


def started(row: Array, column: Array, values: Array, shape: tuple[int, int], K: int) -> Chain:
    """Return a chain with K components that are all on."""
    encoded = EncodedColumn(
        Column("x", type=ColumnType.REAL, transform="none"),
        0,
        values,
        np.ones(values.size, dtype=bool),
        np.zeros(values.size, dtype=bool),
    )
    link = make_link(encoded, LinkConfig())
    config = BsvdConfig(max_components=K, initial_components=K)
    entries = Entries(row, column, shape)
    problem = Problem(Bsvd(), config, (link,), (values,), LinkConfig(), Sparse(entries))
    return start_chain(problem, Streams(1, 0))


def install(folder: str) -> None:
    """Install smurff into a folder, and let it be imported from there."""
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", folder]
    subprocess.run([*pip, *SMURFF], check=True)
    sys.path.append(folder)


def theirs(cells: tuple[Array, Array, Array], shape: tuple[int, int], K: int, sweeps: int) -> float:
    """Return the seconds of a sweep of smurff's BPMF."""
    import smurff
    from scipy import sparse

    row, column, values = cells
    matrix = sparse.coo_matrix((values, (row, column)), shape=shape)
    times = []
    for n in (1, 1 + sweeps):  # the difference leaves the start-up out
        session = smurff.TrainSession(
            priors=["normal", "normal"],
            num_latent=K,
            burnin=0,
            nsamples=n,
            num_threads=1,
            verbose=0,
        )
        session.addTrainAndTest(matrix)
        start = time.process_time()
        session.run()
        times.append(time.process_time() - start)
    return (times[1] - times[0]) / sweeps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cells", default="100000,300000,1000000")
    parser.add_argument("--rows", type=int, default=6000)
    parser.add_argument("--columns", type=int, default=4000)
    parser.add_argument("--components", type=int, default=32)
    parser.add_argument("--sweeps", type=int, default=20)
    parser.add_argument("--smurff", action="store_true", help="install it, and compare")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if asked.smurff:
            install(folder)
        compare(asked)


def compare(asked: argparse.Namespace) -> None:
    """Measure and print."""
    shape, beside = (asked.rows, asked.columns), asked.smurff
    print("    cells  s/sweep  s/million  peak bytes/cell  rank" + ("   smurff" if beside else ""))
    sizes, seconds = [], []
    with threadpool_limits(limits=1):
        for m in map(int, asked.cells.split(",")):
            cells = make(m, shape, asked.components)
            one, held, rank = ours(cells, shape, asked.components, asked.sweeps)
            line = f"{m:9}  {one:7.3f}  {1e6 * one / m:9.3f}  {held:15.1f}  {rank:4.1f}"
            if beside:
                line += f"  {theirs(cells, shape, asked.components, asked.sweeps):7.3f}"
            print(line, flush=True)
            sizes.append(m)
            seconds.append(one)
    if len(sizes) > 1:
        slope = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
        print(f"seconds grow with the power {slope:.2f} of the cells")


if __name__ == "__main__":
    main()
