"""How fast is a pass of Poisson factorization, beside other packages, and how does it grow?

    python benchmarks/counts_speed.py [--triplets FILE] [--components 50 100] [--grow 1e5 1e6 1e7]

Processor seconds of one pass over all counts, and nanoseconds for each count above 0 and component,
one thread each (set OMP_NUM_THREADS=1). FILE is a table `row, column, count`; without it counts are
simulated. Passes of `glfm` are those after weights and locations have begun to move. Of the other
packages a pass is what one more iteration costs: the difference of two fits. What is not installed
is left out.

    poismf    pg, cg: proximal and conjugate gradients; tncg: its default, truncated Newton
    hpfrec    coordinate ascent of hierarchical Poisson factorization
    lda       scikit-learn's online latent Dirichlet allocation

`--grow` prints a pass, and bytes for each count above 0, of simulated matrices that are larger and
larger, with the exponent of time: of numbers of rows and columns that do not change, and of K = 20.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

import glfm_cli.latent.cnpf.engine as engine
from glfm_cli.latent.cnpf import CnpfConfig, Counts
from glfm_cli.streams import Streams

Array = np.ndarray
Triplets = tuple[Array, Array, Array]
VARIANTS = {
    "hgp": {"correlated": False, "scaled": False},
    "scaled": {"correlated": False},
    "cnpf": {},
}
FREE, PASSES = 2, 4  # passes before weights move, and those that are timed


def read(path: Path) -> Triplets:
    """Return the rows, columns and counts of a table, numbered from 0."""
    row, column, count = (one.to_numpy() for one in pq.read_table(path).columns)
    rows, columns = (np.unique(side, return_inverse=True)[1] for side in (row, column))
    return rows, columns, count


def simulate(cells: int, rows: int, columns: int, rng: np.random.Generator) -> Triplets:
    """Return about so many counts above 0, columns of unequal share."""
    share = rng.gamma(0.5, size=columns) + 0.01
    column = rng.choice(columns, cells, p=share / share.sum())
    key = np.unique(rng.integers(rows, size=cells) * columns + column)
    return key // columns, key % columns, 1 + rng.poisson(0.6, key.size)


def seconds_of(run: Callable[[], object]) -> float:
    """Return the processor seconds of a call."""
    began = time.process_time()
    run()
    return time.process_time() - began


def own_pass(counts: Counts, name: str, components: int) -> float:
    """Return the seconds of a pass, the fastest of some."""
    streams = Streams(0, 0)
    settings = {"free_pass": FREE, "passes": 3 * FREE, "minibatch": counts.shape[0]}
    config = CnpfConfig(components=components, **settings)
    config = CnpfConfig(**{**vars(config), **VARIANTS[name]})
    state = engine.start(counts, config, streams)
    engine.step(state, counts, streams)
    state.steps = 3 * FREE  # the first passes visit rows three times and move no locations
    return min(seconds_of(lambda: engine.step(state, counts, streams)) for _ in range(PASSES))


def peers(triplets: Triplets, components: int) -> dict[str, Callable[[int], object]]:
    """Return what makes so many iterations of each package that is installed."""
    row, column, count = triplets
    found: dict[str, Callable[[int], object]] = {}
    try:
        import pandas as pd
        from poismf import PoisMF

        table = pd.DataFrame({"UserId": row, "ItemId": column, "Count": count})
        from hpfrec import HPF

        found["hpfrec"] = lambda n: HPF(
            components, maxiter=n, ncores=1, verbose=False, check_every=n
        ).fit(table.copy())
        from scipy.sparse import csr_array
        from sklearn.decomposition import LatentDirichletAllocation

        matrix = csr_array((count, (row, column)))
        found["lda"] = lambda n: LatentDirichletAllocation(
            components, learning_method="online", max_iter=n, batch_size=256
        ).fit(matrix)
        for method in ("pg", "cg", "tncg"):
            found[f"poismf {method}"] = lambda n, method=method: PoisMF(
                components, method, niter=n, nthreads=1, early_stop=False
            ).fit(table)
    except ImportError as error:
        print(f"left out: {error}")
    return found


def beside(triplets: Triplets, components: int) -> None:
    """Print a pass of every method."""
    shape = (int(triplets[0].max()) + 1, int(triplets[1].max()) + 1)
    counts, work = Counts.of(*triplets, shape), triplets[0].size * components
    print(f"\n{shape[0]} x {shape[1]}, {triplets[0].size} counts above 0, {components} components")
    print("| method | s a pass | ns a count and component |\n| --- | --- | --- |")
    for name in VARIANTS:
        seconds = own_pass(counts, name, components)
        print(f"| {name} | {seconds:.3f} | {1e9 * seconds / work:.2f} |", flush=True)
    for name, run in peers(triplets, components).items():
        more = 1 if name in ("lda", "poismf tncg") else 4
        once, often = (seconds_of(partial(run, n)) for n in (1, 1 + more))
        seconds = (often - once) / more
        print(f"| {name} | {seconds:.3f} | {1e9 * seconds / work:.2f} |", flush=True)


def grow(sizes: list[int]) -> None:
    """Print a pass and memory of larger and larger matrices."""
    K, shape = 20, (30_000, 5_000)
    print(f"\n{shape[0]} x {shape[1]}, {K} components")
    print("| counts above 0 | s a pass of scaled | of cnpf | bytes a count, kept | most |")
    print("| --- | --- | --- | --- | --- |")
    found = []
    for cells in sizes:
        triplets = simulate(cells, *shape, np.random.default_rng(0))
        tracemalloc.start()
        counts = Counts.of(*triplets, shape)
        kept, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        n = triplets[0].size
        seconds = [own_pass(counts, name, K) for name in ("scaled", "cnpf")]
        found.append([n, *seconds])
        times = " | ".join(f"{one:.2f}" for one in seconds)
        print(f"| {n} | {times} | {kept / n:.0f} | {most / n:.0f} |", flush=True)
    if len(found) > 1:
        n, *times = np.log(found).T
        slopes = [np.polyfit(n, one, 1)[0] for one in times]
        print(f"exponents: {', '.join(f'{slope:.2f}' for slope in slopes)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--triplets", type=Path)
    parser.add_argument("--components", type=int, nargs="*", default=[50])
    parser.add_argument("--grow", type=float, nargs="*", default=[])
    options = parser.parse_args()
    for components in options.components:
        if options.triplets is None:
            triplets = simulate(500_000, 4_000, 2_500, np.random.default_rng(0))
        else:
            triplets = read(options.triplets)
        beside(triplets, components)
    if options.grow:
        grow([int(size) for size in options.grow])


if __name__ == "__main__":
    main()
