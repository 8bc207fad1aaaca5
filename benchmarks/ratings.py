"""How well are ratings foretold? The low-rank model beside means and matrix factorisation.

    python benchmarks/ratings.py FILE [--methods means,bpmf10,ordinal] [--chains 4]

FILE is a table with columns `user`, `item`, `rating` and `test` (1: to be foretold), such as the
published splits of Douban and Flixster (3000 x 3000) that go with [Monti and others 2017]. Printed
for each method: root mean squared and mean absolute error over the test cells, the difference of
squared errors to the best method in standard errors (paired over cells), mean log score where a
method has one, and of the low-rank model its rank; processor seconds.

    means      overall mean plus effects of user and item, shrunken; how much is chosen by
               hiding a tenth of the training cells
    bpmfD      Bayesian probabilistic matrix factorisation [Salakhutdinov and Mnih 2008] with D
               dimensions, by the package smurff, which is installed into a temporary folder
               with as many draws as all chains of the low-rank model have together
    real       the low-rank model, ratings as numbers;  ordinal: as ordered levels
    real-plain, ordinal-plain
               the same without slopes and without noise variances of rows

`--share` keeps only so many of the training cells, for a quick try.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from matrix_speed import install
from scipy import sparse

from glfm_cli.completion.matrix import Pairs, predict_pairs, prepare_matrix
from glfm_cli.encoding import encode_triplets
from glfm_cli.inference.sampling import sample
from glfm_cli.inference.scoring import log_scores
from glfm_cli.schema import Schema
from glfm_cli.settings import parse_assignments

Array = np.ndarray
METHODS = "means,bpmf10,bpmf20,bpmf50,real,ordinal,real-plain,ordinal-plain"
PLAIN = {"slopes": "false", "row_noise": "false"}
SHRINKAGES = (1.0, 2.0, 4.0, 7.0, 12.0, 20.0)


class Ratings:
    """Cells of a matrix: row, column and value (m,)."""

    def __init__(self, row: Array, column: Array, value: Array, shape: tuple[int, int]) -> None:
        self.row, self.column, self.value, self.shape = row, column, value, shape

    def part(self, which: Array) -> Ratings:
        """Return some of the cells."""
        return Ratings(self.row[which], self.column[which], self.value[which], self.shape)


def read(path: Path, share: float, rng: np.random.Generator) -> tuple[Ratings, Ratings]:
    """Return the training and the test cells of a file."""
    table = pq.read_table(path)
    users, row = np.unique(table["user"].to_numpy(), return_inverse=True)
    items, column = np.unique(table["item"].to_numpy(), return_inverse=True)
    every = Ratings(row, column, table["rating"].to_numpy(), (users.size, items.size))
    test = table["test"].to_numpy() == 1
    train = ~test & (rng.random(test.size) < share)
    return every.part(train), every.part(test)


def effects(train: Ratings, shrinkage: float) -> tuple[float, Array, Array]:
    """Return the mean and the shrunken effects of users and items, by alternating least squares."""
    mean = float(train.value.mean())
    user, item = np.zeros(train.shape[0]), np.zeros(train.shape[1])
    n_user = np.bincount(train.row, minlength=user.size)
    n_item = np.bincount(train.column, minlength=item.size)
    for _ in range(15):
        rest = train.value - mean - item[train.column]
        user = np.bincount(train.row, weights=rest, minlength=user.size) / (n_user + shrinkage)
        rest = train.value - mean - user[train.row]
        item = np.bincount(train.column, weights=rest, minlength=item.size) / (n_item + shrinkage)
    return mean, user, item


def means(train: Ratings, test: Ratings) -> Array:
    """Return mean plus shrunken effects of the test cells."""
    rng = np.random.default_rng(0)
    out = rng.random(train.value.size) < 0.1
    seen, hidden = train.part(~out), train.part(out)

    def error(shrinkage: float) -> float:
        return float(np.mean((at(effects(seen, shrinkage), hidden) - hidden.value) ** 2))

    return at(effects(train, min(SHRINKAGES, key=error)), test)


def at(found: tuple[float, Array, Array], cells: Ratings) -> Array:
    """Return mean plus effects of some cells."""
    mean, user, item = found
    return mean + user[cells.row] + item[cells.column]


def bpmf(train: Ratings, test: Ratings, dimensions: int, sweeps: tuple[int, int]) -> Array:
    """Return the mean of the draws of smurff's BPMF at the test cells, around the overall mean.

    Noise precision 2 where ratings go from 1 to 5, as published. Around shrunken means it was
    worse on both files.
    """
    import smurff

    mean = train.value.mean()
    session = smurff.TrainSession(
        priors=["normal", "normal"],
        num_latent=dimensions,
        burnin=sweeps[0],
        nsamples=sweeps[1],
        num_threads=1,
        seed=1,
        verbose=0,
    )
    precision = 2.0 * (4.0 / (train.value.max() - train.value.min())) ** 2
    cells = [
        sparse.coo_matrix((value, (of.row, of.column)), shape=train.shape)
        for of, value in ((train, train.value - mean), (test, np.ones(test.value.size)))
    ]
    session.addTrainAndTest(*cells, noise=smurff.FixedNoise(precision))
    found = {tuple(int(c) for c in p.coords): p.pred_avg for p in session.run()}
    return mean + np.array([found[pair] for pair in zip(test.row, test.column, strict=True)])


def lowrank(train: Ratings, test: Ratings, kind: str, options: dict) -> tuple[Array, float, float]:
    """Return means at the test cells, mean log score per cell, and mean rank."""
    levels = [f"{level:g}" for level in np.unique(np.concatenate([train.value, test.value]))]
    value = {"type": kind, "role": "value"}
    if kind == "ordinal":
        value["levels"] = levels
    else:
        value["transform"] = "none"
    schema = Schema.from_dict({"columns": {"u": "row", "i": "column", "r": value}})
    # Ids that only test cells have are made known by rows without a value.
    row = np.concatenate([train.row, test.row])
    column = np.concatenate([train.column, test.column])
    values = [f"{v:g}" for v in train.value] + [None] * test.value.size
    table = pa.table({"u": row, "i": column, "r": pa.array(values, pa.string())})
    problem, data, plan = prepare_matrix(encode_triplets(table, schema), **options)
    posterior = sample(problem, plan).posterior
    places = [ids.places([str(key) for key in keys]) for ids, keys in
              ((data.rows, test.row), (data.others, test.column))]  # fmt: skip
    pairs = Pairs(*places)
    found = predict_pairs(posterior, pairs, ())
    mean = found.mean
    truth = test.value
    if kind == "ordinal":
        numbers = np.array([float(level) for level in data.triplets.value.levels])
        mean = found.probabilities @ numbers
        truth = np.searchsorted(numbers, test.value).astype(float)
    view = posterior.at(pairs)
    score = log_scores(view, {0: np.arange(mean.size)}, {0: truth})[0].mean()
    return mean, float(score), float(np.mean(posterior.traces()["rank"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--methods", default=METHODS)
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--warmup", type=int, default=100)
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--out", type=Path, help="append the figures here, as JSON lines")
    parser.add_argument("--set", action="append", default=[], help="as `glfm impute` has it")
    asked = parser.parse_args()
    train, test = read(asked.file, asked.share, np.random.default_rng(0))
    options = {"chains": asked.chains, "warmup": asked.warmup, "draws": asked.draws, "thin": 2}
    settings = parse_assignments(asked.set)
    options |= {"seed": 1, "settings": settings}
    run: dict[str, Callable[[], tuple[Array, float, float]]] = {
        "means": lambda: (means(train, test), np.nan, np.nan),
    }
    for kind in ("real", "ordinal"):
        run[kind] = lambda kind=kind: lowrank(train, test, kind, options)
        plain = options | {"settings": PLAIN | settings}
        run[f"{kind}-plain"] = lambda kind=kind, plain=plain: lowrank(train, test, kind, plain)
    for D in (10, 20, 50):
        sweeps = (asked.warmup, 2 * asked.draws * asked.chains)
        run[f"bpmf{D}"] = lambda D=D, sweeps=sweeps: (bpmf(train, test, D, sweeps), np.nan, np.nan)
    squares: dict[str, Array] = {}
    folder = tempfile.TemporaryDirectory()
    if "bpmf" in asked.methods and find_spec("smurff") is None:
        install(folder.name)
    print(
        f"{asked.file.stem}: {train.value.size} cells to learn from, {test.value.size} to foretell"
    )
    for name in asked.methods.split(","):
        start = time.process_time()
        mean, score, rank = run[name]()
        seconds = time.process_time() - start
        mean = np.clip(mean, train.value.min(), train.value.max())
        squares[name] = (mean - test.value) ** 2
        figures = {
            "file": asked.file.stem,
            "method": name,
            "rmse": float(np.sqrt(squares[name].mean())),
            "mae": float(np.abs(mean - test.value).mean()),
            "log_score": score,
            "rank": rank,
            "seconds": seconds,
        }
        print(
            f"  {name:14} rmse {figures['rmse']:.4f}  mae {figures['mae']:.4f}  "
            f"log score {score:.4f}  rank {rank:.1f}  {seconds:.0f} s",
            flush=True,
        )
        if asked.out:
            with asked.out.open("a") as file:
                file.write(json.dumps(figures) + "\n")
    others = [name for name in squares if name.startswith(("means", "bpmf"))]
    for beside in [list(squares), others] if others else [list(squares)]:
        compare(squares, beside)


def compare(squares: dict[str, Array], beside: list[str]) -> None:
    """Print how far every method is from the best of some, in standard errors over cells."""
    best = min(beside, key=lambda name: squares[name].mean())
    for name, square in squares.items():
        gap = square - squares[best]
        error = gap.std() / np.sqrt(gap.size)
        if name != best:
            print(f"  {name:14} {gap.mean() / error:+.1f} standard errors behind {best}")


if __name__ == "__main__":
    main()
