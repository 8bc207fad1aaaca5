"""What do covariates of rows tell of their cells? The low-rank model with and without, and Macau.

    python benchmarks/side_information.py [--sets 3] [--methods none,means,weights,both,macau]
        [--useless]

Planted matrices: 1,000 rows of 1 to 20 cells and 300 columns, 3 components, half of the variance of
whose factors of rows is linear in five covariates, as half of that of the rows' intercepts is;
noise of standard deviation 1 beside a signal of about 1.3. With `--useless` nothing depends on
them. Printed for each method and for rows of 1 to 5 and of 6 to 20 cells: root mean squared error
of 20,000 hidden cells, the difference of squared errors to that without covariates in standard
errors (paired over rows), share of hidden cells that 95 % intervals cover, processor seconds.

    none       the low-rank model without covariates
    means      they set the prior means of factors and intercepts; weights: every column has
               weights of its own; both
    macau      Macau of the package smurff [Simm and others 2017], 8 dimensions, which is installed
               into a temporary folder, around the training mean
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
from matrix_speed import install
from scipy import sparse

from glfm_cli.completion.matrix import Pairs, predict_pairs, prepare_matrix
from glfm_cli.completion.matrix.side import FeatureTable
from glfm_cli.encoding import encode_triplets
from glfm_cli.inference.sampling import sample
from glfm_cli.schema import Schema

Array = np.ndarray
N_ROWS, N_COLUMNS, RANK, N_COVARIATES, N_TEST = 1000, 300, 3, 5, 20_000
MODELS = {
    "none": {"prior_means": "false", "own_weights": "false"},
    "means": {"prior_means": "true", "own_weights": "false"},
    "weights": {"prior_means": "false", "own_weights": "true"},
    "both": {"prior_means": "true", "own_weights": "true"},
}


class Planted:
    """A matrix, which cells are seen and hidden, and covariates of the rows."""

    def __init__(self, rng: np.random.Generator, useful: bool) -> None:
        self.X = rng.normal(size=(N_ROWS, N_COVARIATES))
        share = np.sqrt(0.5) if useful else 0.0
        known = self.X @ rng.normal(size=(N_COVARIATES, RANK + 1)) / np.sqrt(N_COVARIATES)
        own = rng.normal(size=(N_ROWS, RANK + 1))
        units = share * known + np.sqrt(1.0 - share**2) * own
        x = units[:, :RANK] @ rng.normal(size=(RANK, N_COLUMNS)) / np.sqrt(RANK)
        x += 0.6 * units[:, RANK:] + 0.6 * rng.normal(size=N_COLUMNS)
        y = x + rng.normal(size=x.shape)
        self.n_cells = rng.integers(1, 21, N_ROWS)
        order = np.argsort(rng.random(x.shape), axis=1)
        self.row = np.repeat(np.arange(N_ROWS), self.n_cells)
        self.column = np.concatenate([order[i, :n] for i, n in enumerate(self.n_cells)])
        self.test_row = np.repeat(np.arange(N_ROWS), N_TEST // N_ROWS)
        self.test_column = order[:, -(N_TEST // N_ROWS) :].ravel()
        self.y, self.truth = y[self.row, self.column], y[self.test_row, self.test_column]


def lowrank(cells: Planted, settings: dict, plan: dict) -> tuple[Array, float]:
    """Return the means of the hidden cells, and the share that 95 % intervals cover."""
    value = {"type": "real", "role": "value", "transform": "none"}
    schema = Schema.from_dict({"columns": {"u": "row", "i": "column", "r": value}})
    row = np.concatenate([cells.row, cells.test_row])
    column = np.concatenate([cells.column, cells.test_column])
    values = [*cells.y, *([None] * cells.truth.size)]
    table = pa.table({"u": row, "i": column, "r": pa.array(values, pa.float64())})
    covariates = None
    if "true" in settings.values():
        names = {f"x{p}": "real" for p in range(N_COVARIATES)}
        X = {f"x{p}": cells.X[:, p] for p in range(N_COVARIATES)}
        of_rows = Schema.from_dict({"columns": {"u": "id", **names}})
        covariates = FeatureTable(pa.table({"u": np.arange(N_ROWS), **X}), of_rows)
    problem, data, lengths = prepare_matrix(
        encode_triplets(table, schema), features=(covariates, None), settings=settings, **plan
    )
    posterior = sample(problem, lengths).posterior
    places = [ids.places([str(key) for key in keys]) for ids, keys in
              ((data.rows, cells.test_row), (data.others, cells.test_column))]  # fmt: skip
    found = predict_pairs(posterior, Pairs(*places), (0.025, 0.975))
    inside = (found.quantiles[:, 0] <= cells.truth) & (cells.truth <= found.quantiles[:, 1])
    return found.mean, float(inside.mean())


def macau(cells: Planted, sweeps: tuple[int, int]) -> tuple[Array, float]:
    """Return the mean of the draws of smurff's Macau at the hidden cells."""
    import smurff

    mean = cells.y.mean()
    session = smurff.TrainSession(
        priors=["macau", "normal"],
        num_latent=8,
        burnin=sweeps[0],
        nsamples=sweeps[1],
        num_threads=1,
        seed=1,
        verbose=0,
    )
    shape = (N_ROWS, N_COLUMNS)
    train = sparse.coo_matrix((cells.y - mean, (cells.row, cells.column)), shape=shape)
    test = sparse.coo_matrix(
        (np.ones(cells.truth.size), (cells.test_row, cells.test_column)), shape=shape
    )
    session.addTrainAndTest(train, test, noise=smurff.SampledNoise(1.0))
    session.addSideInfo(0, cells.X, direct=True)
    found = {tuple(int(c) for c in p.coords): p.pred_avg for p in session.run()}
    pairs = zip(cells.test_row, cells.test_column, strict=True)
    return mean + np.array([found[pair] for pair in pairs]), float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--methods", default="none,means,weights,both,macau")
    parser.add_argument("--sets", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="seed of the first set")
    parser.add_argument("--chains", type=int, default=2)
    parser.add_argument("--warmup", type=int, default=100)
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--useless", action="store_true")
    parser.add_argument("--out", type=Path, help="append the figures here, as JSON lines")
    options = parser.parse_args()
    folder = tempfile.TemporaryDirectory()
    if "macau" in options.methods and find_spec("smurff") is None:
        install(folder.name)
    for seed in range(options.first, options.first + options.sets):
        cells = Planted(np.random.default_rng(seed), not options.useless)
        few = cells.n_cells[cells.test_row] <= 5
        base = None
        for name in options.methods.split(","):
            start = time.process_time()
            if name == "macau":
                sweeps = (options.warmup, options.chains * options.draws * 2)
                mean, cover = macau(cells, sweeps)
            else:
                plan = {"seed": seed, "chains": options.chains, "warmup": options.warmup}
                plan |= {"draws": options.draws, "thin": 2, "threads": 1}
                mean, cover = lowrank(cells, MODELS[name], plan)
            squares = (mean - cells.truth) ** 2
            of_rows = squares.reshape(N_ROWS, -1).mean(axis=1)
            base = of_rows if base is None else base
            difference = of_rows - base
            error = difference.std() / np.sqrt(N_ROWS)
            figures = {
                "set": seed,
                "method": name,
                "few": float(np.sqrt(squares[few].mean())),
                "many": float(np.sqrt(squares[~few].mean())),
                "errors": float(difference.mean() / error) if error > 0 else 0.0,
                "cover": cover,
                "seconds": time.process_time() - start,
            }
            print(json.dumps(figures), flush=True)
            if options.out:
                with options.out.open("a") as file:
                    file.write(json.dumps(figures | {"useless": options.useless}) + "\n")


if __name__ == "__main__":
    main()
