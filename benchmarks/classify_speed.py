"""What an iteration of the mixture of experts costs, and how long a fit takes to converge.

    python benchmarks/classify_speed.py [--rows 1000,10000,100000] [--features 30] [--experts 20]
        [--hidden 0,0.3] [--iterations 3] [--converge [--starts 1] [--threads 2]]

Rows fall into as many groups as there are experts, in each of which another line separates two
labels; `hidden` is the share of cells that are missing, at random, so that almost every row has a
pattern of gaps of its own. Each size runs in a process of its own. Printed are, for each,

- iteration s: the median of the timed iterations, in seconds of the processor, on one thread;
- bytes: peak memory from the table on, for each row and (feature or expert) (Linux only);

and with `--converge`, instead of these, what a whole fit takes: the seconds that pass, those of the
processor, and the iterations of the start that is kept. With several numbers of rows the last lines
say by which power of them the time of an iteration grows.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from memory import forget_peak, status
from threadpoolctl import threadpool_limits

from glfm_cli.classification.features import LatentColumn
from glfm_cli.classification.fit import fit_experts
from glfm_cli.latent.iqgme import IqgmeConfig, KnownRows
from glfm_cli.latent.iqgme.fit import begin
from glfm_cli.latent.iqgme.forms import forms_of

UNTIMED = 2  # iterations before the timed ones
APART = 1.5  # standard deviation of the groups' centres, of their own one


@dataclass(frozen=True)
class Cost:
    """What one size costs; `bytes_each` is NaN where the system does not say."""

    rows: int
    hidden: float
    iteration: float
    bytes_each: float


def planted(n: int, P: int, groups: int, hidden: float) -> KnownRows:
    """Return rows of several groups with a line each, some cells hidden."""
    rng = np.random.default_rng(1)
    centers = APART * rng.standard_normal((groups, P))
    lines = rng.standard_normal((groups, P)) / np.sqrt(P)
    group = rng.integers(groups, size=n)
    x = rng.standard_normal((n, P))
    score = 2.0 * np.einsum("np,np->n", x, lines[group]) + rng.standard_normal(n)
    x += centers[group]
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    known = rng.random(x.shape) >= hidden
    code = (score > 0.0).astype(np.float64)
    label = LatentColumn.of_label(code, 2).data(code, 0.0)
    return KnownRows(np.where(known, x, 0.0), known, label, np.ones(n, dtype=bool))


def measure(n: int, P: int, experts: int, hidden: float, iterations: int) -> Cost:
    """Return the cost of an iteration."""
    config = IqgmeConfig(experts=experts, factors=0)
    with threadpool_limits(1):
        rows = planted(n, P, experts, hidden)
        (form,) = forms_of(config, [rows])
        forget_peak()
        before = status("VmRSS")
        start = begin(rows, form, config, np.random.default_rng(0), 1)
        for _ in range(UNTIMED):
            start.step(rows, form, config)
        times = []
        for _ in range(iterations):
            began = time.process_time()
            start.step(rows, form, config)
            times.append(time.process_time() - began)
        memory = status("VmHWM") - before
    return Cost(n, hidden, float(np.median(times)), memory / (n * (P + experts)))


def converge(
    n: int, P: int, experts: int, hidden: float, starts: int, threads: int
) -> tuple[float, float, int, bool]:
    """Return passed and processor seconds of a fit, its iterations and whether it converged."""
    rows = planted(n, P, experts, hidden)
    with threadpool_limits(1), ThreadPoolExecutor(threads) as pool:
        began, used = time.monotonic(), time.process_time()
        fitted = fit_experts(
            rows,
            IqgmeConfig(experts=experts),
            chains=starts,
            seed=0,
            threads=threads,
            pool=pool,
        )
        seconds = time.monotonic() - began, time.process_time() - used
    return *seconds, fitted.bounds.size, fitted.converged


def exponent(costs: Sequence[Cost]) -> float:
    """Return by which power of the rows the time of an iteration grows, by least squares."""
    rows = np.log([cost.rows for cost in costs])
    return float(np.polyfit(rows, np.log([cost.iteration for cost in costs]), 1)[0])


def whole(text: str) -> list[int]:
    """Return the whole numbers of a list separated by commas."""
    return [int(part) for part in text.split(",")]


def shares(text: str) -> list[float]:
    """Return the numbers of a list separated by commas."""
    return [float(part) for part in text.split(",")]


def options() -> argparse.ArgumentParser:
    """Return what the command line takes."""
    parser = argparse.ArgumentParser(description="Measure what an iteration and a fit cost.")
    parser.add_argument("--rows", type=whole, default=[1000, 10_000, 100_000])
    parser.add_argument("--features", type=int, default=30)
    parser.add_argument("--experts", type=int, default=20)
    parser.add_argument("--hidden", type=shares, default=[0.0, 0.3])
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument("--converge", action="store_true")
    parser.add_argument("--starts", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    return parser


def main() -> None:
    """Measure every size and print."""
    chosen = options().parse_args()
    spawn = multiprocessing.get_context("spawn")
    each = "iteration s   bytes" if not chosen.converge else "seconds  processor s  iterations"
    print(f"     rows features experts hidden  {each}")
    for hidden in chosen.hidden:
        costs = []
        for n in chosen.rows:
            size = (n, chosen.features, chosen.experts, hidden)
            head = f"{n:>9,} {chosen.features:>8} {chosen.experts:>7} {hidden:>6.2f}  "
            with spawn.Pool(1) as pool:  # a fresh process, so that its memory is its own
                if chosen.converge:
                    given = (*size, chosen.starts, chosen.threads)
                    passed, used, iterations, done = pool.apply(converge, given)
                    text = f"{passed:>7.1f} {used:>12.1f} {iterations:>11}"
                    print(head + text + ("" if done else "  not converged"), flush=True)
                    continue
                costs.append(pool.apply(measure, (*size, chosen.iterations)))
            found = costs[-1]
            print(head + f"{found.iteration:>11.3g} {found.bytes_each:>7.1f}", flush=True)
        if len(costs) > 1:
            power = exponent(costs)
            print(f"time grows with rows to the power {power:.2f} at {hidden:g} hidden")


if __name__ == "__main__":
    main()
