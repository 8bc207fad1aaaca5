"""Figure 5.2 of the thesis [BSVD]: which matrices are recovered from how many cells.

    python benchmarks/recovery.py [--cells 1:400:500,5:900:1000:1100] [--trials 20]

U V' of 50 x 50, both factors normal, m cells of it seen without noise. A trial is a success
when the relative error of the completed matrix is below 1e-3. Beside the low-rank model stands
the exact problem min ||Z||_* such that Z = X where X is seen, solved by Douglas-Rachford splitting
[Combettes and Pesquet 2007] until the duality gap is below 1e-6 of the norm. Each part of `--cells`
is a rank and the numbers of cells seen. Printed are the recovery rates, the difference in standard
errors (paired over trials), and the largest gap that was left.

Settings of the model as in the thesis (a = b = 1), apart from vague priors of noise and scales,
which noise-free cells call for: `--set noise_rate=1e-8` and the like of `glfm impute`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from threadpoolctl import threadpool_limits

from glfm_cli.encoding import EncodedColumn
from glfm_cli.inference.posterior import Draw
from glfm_cli.inference.sampling import Plan, sample
from glfm_cli.latent.bsvd.config import BsvdConfig
from glfm_cli.latent.bsvd.sampler import Bsvd
from glfm_cli.latent.model import Entries, Problem, Sparse
from glfm_cli.links import LinkConfig, make_link
from glfm_cli.links.margins import Smooth
from glfm_cli.links.shapes import Identity
from glfm_cli.schema import Column, ColumnType

Array = np.ndarray
CELLS = (
    "1:200:300:350:400:500:600:700,2:300:400:500:600:700:800,3:400:500:600:800:900:1000,"
    "5:600:650:700:900:1100:1200:1300,7:850:950:1100:1300:1400:1500,"
    "10:1100:1200:1400:1600:1700:1800,12:1300:1400:1700:1800:1900,15:1500:1600:1900:2000:2100,"
    "20:1850:1950:2200:2300,25:2050:2150:2300:2400"
)
SIZE = 50
SUCCESS = 1e-3
STEP, MOST_STEPS = 0.15, 4000


def problem_of(
    X: Array, seen: Array, unit: float, noise_free: bool, start: int, candidates: int
) -> Problem:
    """Return the completion of the seen cells, which are in units of `unit` from 0.

    The product centres numbers and gives rows and columns intercepts. These matrices have none, and
    less their mean they would have a rank more.
    """
    row, column = np.nonzero(seen)
    values = X[row, column]
    n = values.size
    encoded = EncodedColumn(
        Column("x", type=ColumnType.REAL, transform="none"),
        0,
        values,
        np.ones(n, dtype=bool),
        np.zeros(n, dtype=bool),
    )
    link = replace(make_link(encoded, LinkConfig()), margin=Smooth(Identity(), 0.0, unit))
    tiny = {"noise_shape": 1e-3, "noise_rate": 1e-9} if noise_free else {"noise_rate": 1e-3}
    config = BsvdConfig(
        bias=False,
        max_components=SIZE,
        initial_components=start,
        candidates=candidates,
        **tiny,
    )
    entries = Entries(row.astype(np.int32), column.astype(np.int32), X.shape)
    return Problem(Bsvd(), config, (link,), (values,), LinkConfig(), Sparse(entries))


def root_mean_square(values: Array) -> float:
    """Return the root of the mean of the squares."""
    return float(np.sqrt(np.mean(values**2)))


def mean_of(draws: Iterable[Draw], unit: float) -> Array:
    """Return the mean of the completed matrix over draws."""
    return unit * np.mean([draw.latent.left @ draw.latent.right.T for draw in draws], axis=0)


def complete(X: Array, seen: Array, plan: Plan) -> Array:
    """Return the mean of the completed matrix over draws, the cells being free of noise."""
    unit = root_mean_square(X[seen])
    problem = problem_of(X, seen, unit, noise_free=True, start=SIZE, candidates=20)
    return mean_of(sample(problem, plan).posterior.draws(), unit)


def nuclear_norm(X: Array, seen: Array) -> tuple[Array, float]:
    """Return the completed matrix of least nuclear norm, and the relative duality gap.

    (V - Z) / step, where seen, is a dual point once its spectral norm is at most 1: its product
    with X bounds the least norm from below. Ends, too, when that is within 1e-4 and the norm found
    is below that of X, which then is not the solution.
    """
    known, own = np.where(seen, X, 0.0), np.linalg.svd(X, compute_uv=False).sum()
    step = STEP * np.linalg.svd(known, compute_uv=False)[0]
    V = known
    for sweep in range(1, MOST_STEPS + 1):
        u, s, v = np.linalg.svd(V, full_matrices=False)
        Z = (u * np.maximum(s - step, 0.0)) @ v
        if sweep % 20 == 0:
            found = np.where(seen, X, Z)
            norm = np.linalg.svd(found, compute_uv=False).sum()
            dual = np.where(seen, V - Z, 0.0) / step
            bound = np.sum(dual * known) / max(1.0, np.linalg.svd(dual, compute_uv=False)[0])
            gap = float((norm - bound) / norm)
            missed = norm < (1.0 - 1e-4) * own and error(found, X) > 2.0 * SUCCESS
            if gap < 1e-6 or (missed and gap < 1e-4):
                break
        V = V + np.where(seen, X, 2.0 * Z - V) - Z
    return found, gap


def error(found: Array, X: Array) -> float:
    """Return the relative error of a matrix."""
    return float(np.linalg.norm(found - X) / np.linalg.norm(X))


def grid(cells: list[tuple[int, int]], trials: int, plan: Plan) -> None:
    """Print the recovery rates of both methods for every rank and number of cells."""
    print("rank cells  low-rank model  nuclear norm  standard errors  largest gap  seconds")
    for rank, m in cells:
        wins, gaps, start = np.zeros((2, trials)), np.zeros(trials), time.process_time()
        for trial in range(trials):
            rng = np.random.default_rng([rank, m, trial])
            X = rng.normal(size=(SIZE, rank)) @ rng.normal(size=(rank, SIZE))
            seen = np.zeros(SIZE * SIZE, dtype=bool)
            seen[rng.choice(SIZE * SIZE, m, replace=False)] = True
            seen = seen.reshape(SIZE, SIZE)
            wins[0, trial] = error(complete(X, seen, plan), X) < SUCCESS
            found, gaps[trial] = nuclear_norm(X, seen)
            wins[1, trial] = error(found, X) < SUCCESS
        ours, theirs = wins.mean(axis=1)
        spread = (wins[0] - wins[1]).std() / np.sqrt(trials)
        behind = (ours - theirs) / spread if spread > 0.0 else np.copysign(np.inf, ours - theirs)
        behind = 0.0 if ours == theirs else behind
        seconds = time.process_time() - start
        print(
            f"{rank:4} {m:5}  {ours:14.2f}  {theirs:12.2f}  {behind:+15.1f}  {gaps.max():11.1e}"
            f"  {seconds:7.0f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cells", default=CELLS, help="RANK:CELLS:CELLS...,RANK:...")
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--chains", type=int, default=1)
    parser.add_argument("--warmup", type=int, default=300)
    parser.add_argument("--draws", type=int, default=50)
    asked = parser.parse_args()
    plan = Plan(asked.chains, asked.warmup, asked.draws, 1, 1)
    parts = [[int(n) for n in part.split(":")] for part in asked.cells.split(",")]
    with threadpool_limits(limits=1):
        grid([(rank, m) for rank, *of in parts for m in of], asked.trials, plan)


if __name__ == "__main__":
    main()
