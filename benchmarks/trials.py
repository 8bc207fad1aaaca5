"""Who hits off whom? Hits among plate appearances, foretold for 2007 from the seasons before.

    python benchmarks/trials.py FILE [--from 2006,2002,1969] [--chains 2] [--share 1]

FILE has columns `season`, `batter`, `pitcher`, `pa` and `h`, as head-to-head totals of Retrosheet
give them (the thesis [BSVD], section 5.5.4, with 2008 in the place of 2007). Printed for each first
season: log likelihood of the 2007 hits, binomial coefficients left out, of pairs whose batter and
pitcher were seen before; under one overall rate, the batter's mean shrunken by 30 appearances,
and the low-rank model (binomial link, mean of the draws' probabilities); the difference of the
last two in standard errors, paired over batters; the deviation of rates beside batter and pitcher,
mean rank, seconds of processor time.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from scipy.special import betaln, logsumexp

from glfm_cli.completion.matrix import MatrixData, prepare_matrix
from glfm_cli.encoding import encode_triplets, pack_trials
from glfm_cli.inference.executors import available_threads
from glfm_cli.inference.posterior import Posterior
from glfm_cli.inference.sampling import sample
from glfm_cli.links.law import normal
from glfm_cli.schema import Schema
from glfm_cli.settings import parse_assignments

Array = np.ndarray
TEST = 2007
SHRINKAGE = 30.0
SCHEMA = {
    "columns": {
        "batter": "row",
        "pitcher": "column",
        "h": {"type": "binomial", "trials": "pa", "role": "value"},
        "pa": "ignore",
    }
}


def totals(table: pa.Table, which: Array) -> pa.Table:
    """Return hits and appearances of every pair of some rows, summed."""
    part = table.filter(pa.array(which))
    found = part.group_by(["batter", "pitcher"]).aggregate([("h", "sum"), ("pa", "sum")])
    return found.rename_columns(["batter", "pitcher", "h", "pa"])


def batter_means(train: pa.Table, overall: float) -> dict[str, float]:
    """Return the shrunken hit rate of every batter."""
    found = train.group_by("batter").aggregate([("h", "sum"), ("pa", "sum")])
    h, n = found["h_sum"].to_numpy(), found["pa_sum"].to_numpy()
    rates = (h + SHRINKAGE * overall) / (n + SHRINKAGE)
    return dict(zip(found["batter"].to_pylist(), rates.tolist(), strict=True))


def lowrank(posterior: Posterior, data: MatrixData, test: pa.Table) -> Array:
    """Return the log likelihood of every test pair, averaged over draws before the log."""
    row = data.rows.places(test["batter"].to_pylist())
    column = data.others.places(test["pitcher"].to_pylist())
    h, n = (test[name].to_numpy().astype(float) for name in ("h", "pa"))
    (link,), x, logs = posterior.links, pack_trials(h, n), []
    for draw in posterior.draws():
        law = normal(draw.latent.means_at(row, column), draw.latent.noise[0])
        logs.append(link.log_density(x, law, draw.params[0]))
    ways = -np.log(n + 1.0) - betaln(n - h + 1.0, h + 1.0)
    return logsumexp(np.array(logs), axis=0) - np.log(len(logs)) - ways


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--from", dest="first", default="2006,2002,1969")
    parser.add_argument("--chains", type=int, default=2)
    parser.add_argument("--warmup", type=int, default=60)
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--share", type=float, default=1.0, help="of the batters, for a quick try")
    parser.add_argument("--set", action="append", default=[], help="as `glfm impute` has it")
    asked = parser.parse_args()
    table = pq.read_table(asked.file)
    for name in ("batter", "pitcher"):
        place = table.column_names.index(name)
        table = table.set_column(place, name, table[name].cast(pa.string()))
    season = table["season"].to_numpy()
    batters = pc.unique(table["batter"]).sort()
    kept = batters.filter(pa.array(np.random.default_rng(0).random(len(batters)) < asked.share))
    chosen = pc.is_in(table["batter"], kept).to_numpy()
    table = table.select(["batter", "pitcher", "h", "pa"])
    options = {"chains": asked.chains, "warmup": asked.warmup, "draws": asked.draws, "thin": 1}
    options |= {"seed": 1, "settings": parse_assignments(asked.set)}
    for first in map(int, asked.first.split(",")):
        start, clock = time.process_time(), time.perf_counter()
        train = totals(table, chosen & (season >= first) & (season < TEST))
        test = totals(table, chosen & (season == TEST))
        known = [
            pc.is_in(test[name], train[name].combine_chunks()).to_numpy()
            for name in ("batter", "pitcher")
        ]
        test = test.filter(pa.array(known[0] & known[1]))
        triplets = encode_triplets(train, Schema.from_dict(SCHEMA))
        problem, data, plan = prepare_matrix(triplets, **options)
        posterior = sample(problem, plan, threads=available_threads()).posterior
        ours = lowrank(posterior, data, test)
        seconds, elapsed = time.process_time() - start, time.perf_counter() - clock
        h, n = test["h"].to_numpy(), test["pa"].to_numpy()
        overall = train["h"].to_numpy().sum() / train["pa"].to_numpy().sum()
        by_batter = batter_means(train, overall)
        p = np.array([by_batter[name] for name in test["batter"].to_pylist()])
        shrunken = h * np.log(p) + (n - h) * np.log1p(-p)
        constant = h * np.log(overall) + (n - h) * np.log1p(-overall)
        _, who = np.unique(test["batter"].to_numpy(zero_copy_only=False), return_inverse=True)
        gap = np.bincount(who, weights=ours - shrunken)
        error = gap.std() * np.sqrt(gap.size)
        print(
            f"{first}-{TEST - 1}: {train.num_rows} pairs, {int(n.sum())} appearances foretold\n"
            f"  one rate {constant.sum():.1f}  batter means {shrunken.sum():.1f}  "
            f"low-rank model {ours.sum():.1f}\n"
            f"  difference to batter means {gap.sum():+.1f}, standard error {error:.1f}; "
            f"deviation beside a pair {np.mean(posterior.traces()['noise_0']) ** 0.5:.3f}, "
            f"rank {np.mean(posterior.traces()['rank']):.1f}, "
            f"{seconds:.0f} s of processor time, {elapsed:.0f} s in all",
            flush=True,
        )


if __name__ == "__main__":
    main()
