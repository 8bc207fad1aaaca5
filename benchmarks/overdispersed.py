"""Successes among trials whose rates vary more, or not more, than row and column say.

    python benchmarks/overdispersed.py [--sets 4] [--extra 0,0.3,0.6,1] [--trials 1-5,5-50,200]

Matrices of 200 x 60, two fifths of whose cells are seen: probits of rates are intercepts with
deviations of 0.3, two components of root mean square 0.35 each, and noise beside each cell with the
deviation `--extra`. Printed for each, means over sets with standard errors: the error of hidden
rates, and that of the rates' means given row and column; the share of hidden rates inside 95 %
intervals, mean rank, the deviation found beside each cell, and processor seconds.
"""

from __future__ import annotations

import argparse
import time
from itertools import product

import numpy as np
import pyarrow as pa
from scipy.special import ndtr

from glfm_cli import impute

Array = np.ndarray
SHAPE, RANK, SEEN = (200, 60), 2, 0.4
TYPES = {
    "columns": {
        "i": "row",
        "j": "column",
        "h": {"type": "binomial", "role": "value", "trials": "n"},
        "n": "ignore",
    }
}


def drawn(extra: float, least: int, most: int, seed: int) -> tuple[Array, ...]:
    """Return rates, their means, trials, successes and which cells are seen."""
    rng = np.random.default_rng(seed)
    z = 0.5 * rng.normal(size=(SHAPE[0], RANK)) @ rng.normal(size=(RANK, SHAPE[1]))
    z += 0.3 * (rng.normal(size=(SHAPE[0], 1)) + rng.normal(size=SHAPE[1]))
    p = ndtr(z + extra * rng.normal(size=SHAPE))
    n = rng.integers(least, most + 1, size=SHAPE)
    mean = ndtr(z / np.sqrt(1.0 + extra**2))
    return p, mean, n, rng.binomial(n, p), rng.random(SHAPE) < SEEN


def run(extra: float, least: int, most: int, seed: int, chains: int) -> list[float]:
    """Return what is printed of one set."""
    p, best, n, h, seen = drawn(extra, least, most, seed)
    (i, j), (k, m) = np.nonzero(seen), np.nonzero(~seen)
    table = pa.table({"i": i, "j": j, "h": h[seen], "n": n[seen]})
    began = time.process_time()
    done = impute(table, TYPES, pairs=pa.table({"i": k, "j": m}), seed=seed, chains=chains)
    rows = done.to_table()
    found = {name: np.asarray(rows[name]) for name in ("mean", "lower", "upper")}
    seconds = time.process_time() - began
    truth = p[~seen]
    inside = np.mean((found["lower"] <= truth) & (truth <= found["upper"]))
    traces = done.posterior.traces()
    sd = float(np.sqrt(np.mean(traces["noise_0"]))) if "noise_0" in traces else np.nan
    return [
        float(np.sqrt(np.mean((found["mean"] - truth) ** 2))),
        float(np.sqrt(np.mean((best[~seen] - truth) ** 2))),
        float(inside),
        float(np.mean(traces["rank"])),
        sd,
        seconds,
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", type=int, default=4)
    parser.add_argument("--chains", type=int, default=2)
    parser.add_argument("--extra", default="0,0.3,0.6,1")
    parser.add_argument("--trials", default="1-5,5-50,200")
    asked = parser.parse_args()
    for extra, trials in product(map(float, asked.extra.split(",")), asked.trials.split(",")):
        least, most = int(trials.partition("-")[0]), int(trials.rpartition("-")[2])
        found = np.array([run(extra, least, most, s, asked.chains) for s in range(asked.sets)])
        mean, error = found.mean(axis=0), found.std(axis=0) / np.sqrt(asked.sets)
        print(
            f"extra {extra:g}, trials {trials:5}: error {mean[0]:.4f} ± {error[0]:.4f} "
            f"({mean[1]:.4f}), covered {mean[2]:.3f}, rank {mean[3]:.1f}, "
            f"beside each cell {mean[4]:.2f}, {mean[5]:.1f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
