"""Does the latent Gaussian process find what no straight line follows? On planted tables.

    python benchmarks/latent_gp.py [--rows 500] [--columns 12] [--tables curve,sphere,rings]
        [--xor 10]

`curve`, `sphere`, `rings`: places on a curve, a sphere or two rings in space, seen through columns
of all types that are random smooth functions of the place, 30 % of the cells hidden. The
error of hidden cells (RMSE over the range, share of wrong labels, rank distance over levels less
one; mean over columns) beside that of the same model with a linear kernel, at its best number of
dimensions, and of `bsvd`; and how far the fit's neighbours are true ones: trustworthiness [Venna
and Kaski 2001] of 15, 1 at best, of places in the dimensions that are in use.

`xor`: 25 rows of each of 000, 011, 101 and 110, and each pair of two once with the third hidden:
the perplexity of these four, 1 at best and 2 of a model without the bond [CLGP section 5.1].
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.spatial.distance import cdist

from glfm_cli import impute
from glfm_cli.schema import Schema

KINDS = ("real",) * 5 + ("positive",) * 2 + ("count",) * 2 + ("ordinal",) + ("categorical",) * 2
HIDDEN = 0.3
NEIGHBOURS = 15
WAVES = 6  # that a column is the sum of
LINEAR = (2, 3, 5, 8)  # dimensions of which the linear model's best is taken


def places_of(name: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return true places (n, 3)."""
    angle = rng.uniform(0.0, 2.0 * np.pi, n)
    flat = np.zeros(n)
    if name == "curve":
        return np.stack([np.sin(angle), np.sin(2.0 * angle), angle / np.pi - 1.0], axis=1)
    if name == "sphere":
        x = rng.normal(size=(n, 3))
        return x / np.linalg.norm(x, axis=1, keepdims=True)
    one = np.stack([np.cos(angle), np.sin(angle), flat], axis=1)
    other = np.stack([1.0 + np.cos(angle), flat, np.sin(angle)], axis=1)
    return np.where(rng.random((n, 1)) < 0.5, one, other)


def planted(name: str, n: int, width: int, seed: int) -> tuple[Schema, np.ndarray, np.ndarray]:
    """Return types, complete cells (n, D), levels as codes, and true places (n, 3)."""
    rng = np.random.default_rng(seed)
    x = places_of(name, n, rng)
    columns, types, kinds = [], {}, list(KINDS)
    if width != len(KINDS):
        kinds = [KINDS[(7 * d) % len(KINDS)] for d in range(width)]  # all types by turns
    for d, kind in enumerate(kinds):
        directions, phases = rng.normal(size=(3, WAVES)), rng.uniform(0.0, 2.0 * np.pi, WAVES)
        heights = rng.normal(size=(3, WAVES))
        f = np.sin(1.5 * x @ directions + phases) @ heights.T
        f = (f - f.mean(axis=0)) / f.std(axis=0)
        noisy = f[:, 0] + 0.15 * rng.normal(size=n)
        types[f"c{d}"] = {"type": kind}
        if kind in ("ordinal", "categorical"):
            types[f"c{d}"]["levels"] = ["0", "1", "2", "3"][: 4 if kind == "ordinal" else 3]
        columns.append(
            {
                "real": lambda y: y,
                "positive": lambda y: np.exp(0.7 * y),
                "count": lambda y: rng.poisson(np.exp(1.5 + 0.8 * y)).astype(float),
                "ordinal": lambda y: np.digitize(y, [-0.7, 0.0, 0.7]).astype(float),
                "categorical": lambda _, f=f: f.argmax(axis=1).astype(float),
            }[kind](noisy)
        )
    return Schema.from_dict({"columns": types}), np.stack(columns, axis=1), x


def completed(
    types: Schema, cells: np.ndarray, hidden: np.ndarray, **options: Any
) -> tuple[float, Any]:
    """Return the error of hidden cells, and the completion."""
    table = {}
    for d, column in enumerate(types.columns):
        values = [None if gap else x for x, gap in zip(cells[:, d], hidden[:, d], strict=True)]
        if column.type in ("ordinal", "categorical"):
            values = [None if x is None else str(int(x)) for x in values]
        elif column.type == "count":
            values = [None if x is None else int(x) for x in values]
        table[column.name] = pa.array(values)
    done = impute(pa.table(table), types, threads=1, seed=1, **options)
    errors = []
    for d, part in enumerate(done.columns):
        truth, found = cells[hidden[:, d], d], part.estimate
        kind = types.columns[d].type
        if kind == "categorical":
            errors.append(np.mean(truth != found))
        elif kind == "ordinal":
            errors.append(np.mean(np.abs(truth - found)) / (len(part.encoded.levels) - 1))
        else:
            errors.append(np.sqrt(np.mean((truth - found) ** 2)) / np.ptp(cells[:, d]))
    return float(np.mean(errors)), done


def trustworthiness(truth: np.ndarray, shown: np.ndarray, k: int = NEIGHBOURS) -> float:
    """Return how far the k nearest rows that are shown are near in truth, from 0 to 1."""
    n = len(truth)
    rank = np.argsort(np.argsort(cdist(truth, truth), axis=1), axis=1)
    near = np.argsort(cdist(shown, shown), axis=1)[:, 1 : k + 1]
    beyond = np.maximum(np.take_along_axis(rank, near, axis=1) - k, 0).sum()
    return float(1.0 - 2.0 * beyond / (n * k * (2 * n - 3 * k - 1)))


def compare(name: str, n: int, width: int, seed: int) -> None:
    """Print a line of a planted table."""
    types, cells, x = planted(name, n, width, seed)
    hidden = np.random.default_rng(seed + 1).random(cells.shape) < HIDDEN
    fit: Callable[..., tuple[float, Any]] = lambda **options: completed(  # noqa: E731
        types, cells, hidden, **options
    )
    error, done = fit(model="clgp", chains=2)
    linear = {
        Q: fit(model="clgp", chains=1, settings={"kernel": "linear", "dimensions": Q})[0]
        for Q in LINEAR
    }
    best = min(linear, key=lambda Q: linear[Q])
    bsvd = fit(model="bsvd", chains=4)[0]
    draw, model = done.posterior.chains[0][-1].latent, done.posterior.model
    used = model.relevances(draw) >= 0.01
    trust = trustworthiness(x, model.places(draw)[0][:, used])
    print(
        f"{name:8s} {error:.4f}  linear {linear[best]:.4f} ({best} dimensions)  bsvd {bsvd:.4f}  "
        f"ratio {error / min(linear[best], bsvd):.2f}  trustworthiness {trust:.3f}",
        flush=True,
    )


def xor(seed: int) -> float:
    """Return the perplexity of the hidden bit of the four rows that have one."""
    rows = ["000", "011", "101", "110"] * 25 + ["00?", "01?", "10?", "11?"]
    table = {f"b{i}": [None if row[i] == "?" else row[i] for row in rows] for i in range(3)}
    types = {"columns": {name: {"type": "categorical", "levels": ["0", "1"]} for name in table}}
    done = impute(pa.table(table), types, model="clgp", seed=seed, threads=1)
    p = done.columns[2].marginal.probabilities
    assert p is not None
    return float(np.exp(-np.mean(np.log(p[np.arange(4), [0, 1, 1, 0]]))))


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--columns", type=int, default=12)
    parser.add_argument("--tables", default="curve,sphere,rings")
    parser.add_argument("--xor", type=int, default=10, help="runs, each with a seed of its own")
    asked = parser.parse_args()
    for name in filter(None, asked.tables.split(",")):
        compare(name, asked.rows, asked.columns, seed=1)
    found = [xor(seed) for seed in range(asked.xor)]
    if found:
        print("xor      perplexity " + " ".join(f"{one:.3f}" for one in sorted(found)))


if __name__ == "__main__":
    main()
