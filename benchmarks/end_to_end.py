"""Where does the time of `glfm impute` go? Its steps from file to file, at the defaults.

    python benchmarks/end_to_end.py [--sizes 1000x20,100000x50] [--threads 2] [--chains N]
        [--warmup N] [--draws N] [--thin N] [--tables FILE...]

For each size a CSV file of mixed columns with a tenth of the cells missing (that of `speed.py`,
with ten planted features) is completed by a process of its own, which takes the steps that the
command takes, and times them; with `--tables` files with their NAME.types.yaml take the place of
the sizes:

- starting: the interpreter and what it loads;
- reading: the file becomes a table in memory;
- encoding: columns become numbers and levels, links learn their margins;
- sampling: all chains;
- correcting: forecasts are recalibrated by the observed cells, each left out in turn;
- predicting: the gaps' estimates, and with `--cells` their intervals, too;
- writing: both files.

Printed are seconds that passed and those of processors, the share of each step of the latter, and
the peak of the process's memory (Linux only). `--threads` is as many as the machine has if left
out.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.csv as pc
from memory import status
from speed import planted

from glfm_cli.inference.executors import available_threads

FEATURES = 10


class Clock:
    """Seconds that steps took: those that passed, and those of processors."""

    def __init__(self) -> None:
        self.seconds: dict[str, tuple[float, float]] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time what is done inside."""
        began, cpu = time.monotonic(), time.process_time()
        yield
        self.seconds[name] = time.monotonic() - began, time.process_time() - cpu


def complete_file(
    data: Path,
    types: dict[str, str] | None,
    folder: Path,
    plan: dict[str, int | None],
    threads: int,
    began: float,
) -> tuple[dict[str, tuple[float, float]], float]:
    """Complete a file as the command does; return seconds of each step, and peak memory.

    `types` of None stand in the file beside it. `began` is when the process was asked for, on the
    machine's clock.
    """
    from glfm_cli.completion import Files, complete, plan_session
    from glfm_cli.completion.complete import Filling
    from glfm_cli.completion.verdict import chain_count
    from glfm_cli.inference.hidden_cells import recalibrate
    from glfm_cli.inference.sampling import sample
    from glfm_cli.io import read_table
    from glfm_cli.options import Sampling, Saving
    from glfm_cli.schema import Schema

    clock = Clock()
    clock.seconds["starting"] = time.monotonic() - began, time.process_time()
    with clock.step("reading"):
        table = read_table(data)
    with clock.step("encoding"):
        beside = data.with_name(f"{data.name.partition('.')[0]}.types.yaml")
        if types is None:
            schema = Schema.from_yaml(beside.read_text(encoding="utf-8"))
        else:
            schema = Schema.from_dict({"columns": types})
        session = plan_session(table, schema, Sampling(model="glfm", **plan), Saving())
    with clock.step("sampling"):
        # Of a single model corrections move no estimate by which chains are counted.
        enough = chain_count(session.plan, session.data, None, lambda posterior: posterior)
        run = sample(session.problem, session.plan, threads=threads, enough=enough)
    with clock.step("correcting"):
        posterior = recalibrate(run.posterior, session.problem, threads=threads)
        run = replace(run, posterior=posterior)
    with clock.step("predicting"):
        completion = complete(run, session.data, table, Filling(session.plan.seed, threads=threads))
    with clock.step("writing"):
        Files(folder / "out.csv", folder / "cells.csv").write(completion, table)
    return clock.seconds, status("VmHWM")


def measure(
    given: tuple[int, int] | Path, plan: dict[str, int | None], threads: int
) -> tuple[dict[str, tuple[float, float]], float]:
    """Let a fresh process complete a file, or that of one size, which is made."""
    with tempfile.TemporaryDirectory() as name:
        folder, types = Path(name), None
        data = folder / "data.csv"
        if isinstance(given, Path):
            data = given
        else:
            table, types = planted(*given, FEATURES, np.random.default_rng(1))
            pc.write_csv(table, data)
            del table
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            began = time.monotonic()
            return pool.apply(complete_file, (data, types, folder, plan, threads, began))


def sizes(text: str) -> list[tuple[int, int]]:
    """Return rows and columns of every size, such as 1000x20,100000x50."""
    pairs = [part.split("x") for part in text.split(",")]
    return [(int(rows), int(columns)) for rows, columns in pairs]


def options() -> argparse.ArgumentParser:
    """Return what the command line takes."""
    parser = argparse.ArgumentParser(description="Time the steps of a completion.")
    parser.add_argument("--sizes", type=sizes, default=[(1000, 20), (100_000, 50)])
    parser.add_argument("--tables", type=Path, nargs="+", default=[])
    parser.add_argument("--threads", type=int, default=available_threads())
    parser.add_argument("--chains", type=int, help="as many as the table asks for if left out")
    for name in ("--warmup", "--draws", "--thin"):
        parser.add_argument(name, type=int, help="as the command has it if left out")
    return parser


def main() -> None:
    """Measure every size and print."""
    chosen = options().parse_args()
    plan = {name: getattr(chosen, name) for name in ("chains", "warmup", "draws", "thin")}
    print(f"{'table':<16} {'step':<10} {'seconds':>8} {'cpu s':>8} {'share':>6}")
    for given in chosen.tables or chosen.sizes:
        seconds, peak = measure(given, plan, chosen.threads)
        name = given.stem if isinstance(given, Path) else f"{given[0]:,} x {given[1]}"
        passed, total = (sum(part) for part in zip(*seconds.values(), strict=True))
        for step, (spent, cpu) in [*seconds.items(), ("all", (passed, total))]:
            share = f"{100 * cpu / total:>4.0f} %"
            print(f"{name:<16} {step:<10} {spent:>8.2f} {cpu:>8.2f} {share}", flush=True)
        print(f"{name:<16} peak of memory {peak / 1e6:,.0f} MB", flush=True)


if __name__ == "__main__":
    main()
