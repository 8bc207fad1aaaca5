"""What keeping a fit costs: bytes on disk, memory, and the share of the run's time.

    python benchmarks/store.py [--rows 5000,10000,20000] [--columns 50] [--features 20]
                               [--chains 4] [--draws 250] [--sweeps 5] [--folder FOLDER]

For each number of rows, in a process of its own: make a table of mixed columns, run a few sweeps of
one chain, and write the whole fit, chains x draws, by writing the chain's last draw again and
again; then load it. Everything is written to a temporary folder in FOLDER (the current one by
default) and removed. `--rows 100000` needs about 2 GB of memory and 0.5 GB of disk. Printed are

- on disk: bytes a draw, a chain's state, the whole fit, and the whole fit per row (flat = linear);
- memory: the peak of the process until the last draw is written, and how much of it came after the
  first 10 draws, which stays near 0 because draws go to disk; private memory after loading all;
- time: seconds of a sweep, of writing a draw and of saving a state, and the share of a run that
  keeps every second state and saves as often as it does by default.

The last line fits a straight line through the sizes and says what it gives for 100,000 rows.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from glfm_cli.completion import plan_session
from glfm_cli.inference.chain import Chain, start_chain
from glfm_cli.options import Sampling, Saving
from glfm_cli.schema import Schema
from glfm_cli.store import EVERY, load_fit
from glfm_cli.store.log import SHARE
from glfm_cli.streams import Streams

TARGET = 100_000
THIN = 2
KINDS = ("real", "positive", "count", "categorical", "ordinal")
EARLY = 10  # draws after which memory is looked at for the first time


@dataclass(frozen=True)
class Cost:
    """What one size costs: bytes, and seconds."""

    rows: int
    latent: int
    features: int
    draw: int
    state: int
    disk: int
    peak: int
    growth: int
    loaded: int
    sweep: float
    append: float
    save: float

    @property
    def share(self) -> float:
        """The share of a run's time that keeping takes: each draw, and a state now and then."""
        sampling = THIN * self.sweep
        draws = self.append / (sampling + self.append)
        states = self.save / (self.save + max(EVERY, self.save / SHARE))
        return draws + states


def table_of(n_rows: int, n_columns: int, rng: np.random.Generator) -> tuple[pa.Table, Schema]:
    """Return a table of all types that hang together, a tenth of its cells missing."""
    z = rng.random((n_rows, 8)) < 0.4
    columns, types = {}, {}
    for d in range(n_columns):
        kind = KINDS[d % len(KINDS)]
        y = z @ rng.normal(size=8) + 0.5 * rng.normal(size=n_rows)
        values: np.ndarray
        if kind == "real":
            values = y
        elif kind == "positive":
            values = np.exp(0.3 * y)
        elif kind == "count":
            values = rng.poisson(np.exp(1.0 + 0.3 * y))
        else:
            values = np.digitize(y, [-1.0, 0.0, 1.0])
        name = f"{kind}_{d}"
        columns[name] = pa.array(values, mask=rng.random(n_rows) < 0.1)
        types[name] = kind
    return pa.table(columns), Schema.from_dict({"columns": types})


def anonymous() -> int:
    """Return the bytes of private memory of this process, 0 where the system does not tell."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


def peak() -> int:
    """Return the most memory that this process had at a time."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _nothing_to_load(_: object) -> Chain:
    raise AssertionError("the folder is new")


def measure(n_rows: int, arguments: argparse.Namespace) -> Cost:
    """Return the cost of one size."""
    table, schema = table_of(n_rows, arguments.columns, np.random.default_rng(1))
    folder = Path(tempfile.mkdtemp(prefix="glfm-benchmark-", dir=arguments.folder))
    settings = {"max_features": arguments.features, "initial_features": arguments.features}
    requested = Sampling(
        chains=arguments.chains, warmup=0, draws=arguments.draws, thin=THIN, settings=settings
    )
    try:
        session = plan_session(table, schema, requested, Saving(save=folder / "fit.glfm")).begun()
        store, problem = session.store, session.problem
        assert store is not None
        chain = start_chain(problem, Streams(0, 0))
        chain.sweep(adapt=True)
        began = time.perf_counter()
        for _ in range(arguments.sweeps):
            chain.sweep(adapt=True)
        sweep = (time.perf_counter() - began) / arguments.sweeps
        draw, arrays = chain.keep(), chain.save()
        append = save = 0.0
        early = 0
        for index in range(arguments.chains):
            with store.chain(index) as log:
                log.resume(_nothing_to_load)
                for i in range(arguments.draws):
                    began = time.perf_counter()
                    log.append(draw)
                    append += time.perf_counter() - began
                    if index == 0 and i == EARLY:
                        early = peak()
                arrays["random.key"] = Streams(0, index).save()["key"]
                began = time.perf_counter()
                log.save(arrays)
                save += time.perf_counter() - began
        most = peak()
        store.close()
        sizes = {path.name: path.stat().st_size for path in store.folder.iterdir()}
        latent, features = chain.cells.y.shape[1], int(problem.model.trace(chain.state)["features"])
        del chain, draw, arrays, session, store, problem, table
        before = anonymous()
        fit = load_fit(folder / "fit.glfm")
        loaded = anonymous() - before
        assert fit.posterior.n_draws == arguments.chains * arguments.draws
    finally:
        shutil.rmtree(folder)
    n_draws = arguments.chains * arguments.draws
    return Cost(
        rows=n_rows,
        latent=latent,
        features=features,
        draw=sizes["chain-0.draws.arrow"] // arguments.draws,
        state=sizes["chain-0.state.arrow"],
        disk=sum(sizes.values()),
        peak=most,
        growth=most - early,
        loaded=loaded,
        sweep=sweep,
        append=append / n_draws,
        save=save / arguments.chains,
    )


def line_of(cost: Cost) -> str:
    """Return one row of the printed table."""
    mega = 2.0**20
    return (
        f"{cost.rows:>8,} {cost.latent:>6} {cost.features:>8} {cost.draw / 1024:>9.1f} "
        f"{cost.state / mega:>9.1f} {cost.disk / mega:>9.1f} {cost.disk / cost.rows:>9.0f} "
        f"{cost.peak / mega:>8.0f} {cost.growth / mega:>8.1f} {cost.loaded / mega:>8.0f} "
        f"{1e3 * cost.sweep:>9.1f} {1e3 * cost.append:>9.2f} {1e3 * cost.save:>9.1f} "
        f"{cost.share:>7.2%}"
    )


def extrapolated(costs: list[Cost], name: str) -> float:
    """Return what the straight line through all sizes gives for TARGET rows."""
    rows = np.array([cost.rows for cost in costs], dtype=float)
    slope, start = np.polyfit(rows, [getattr(cost, name) for cost in costs], 1)
    return float(start + slope * TARGET)


def main() -> None:
    """Measure every size and print."""
    parser = argparse.ArgumentParser(description="Measure what keeping a fit costs.")
    parser.add_argument("--rows", default="5000,10000,20000")
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--draws", type=int, default=250)
    parser.add_argument("--sweeps", type=int, default=5)
    parser.add_argument("--folder", default=".")
    arguments = parser.parse_args()
    print(
        "    rows latent features   KB/draw  MB state   MB disk bytes/row  MB peak +MB draw "
        "MB load  ms sweep   ms draw  ms state   share"
    )
    costs = []
    spawn = multiprocessing.get_context("spawn")
    for text in arguments.rows.split(","):
        with spawn.Pool(1) as pool:  # a fresh process, so that its peak is its own
            costs.append(pool.apply(measure, (int(text), arguments)))
        print(line_of(costs[-1]), flush=True)
    if len({cost.rows for cost in costs}) > 1:
        disk, memory = (extrapolated(costs, name) / 2**20 for name in ("disk", "peak"))
        print(
            f"{TARGET:,} rows by the line through these: {disk:.0f} MB disk, {memory:.0f} MB peak"
        )


if __name__ == "__main__":
    main()
