"""Are planted components of counts found again, how many beside them, and their correlations?

    python benchmarks/counts_planted.py [--sets 10] [--restarts 1] [--set NAME=VALUE]

Counts of 2,000 rows and 500 columns have ten components in two groups, of which a row has much of
one where it has little of the other; a row's counts add up to about 100. GlfmFactorizer is allowed
50 components. Of each data set:

    matched    planted components with a cosine of columns above 0.9 to one of their own
    95 %       components that hold 95 % of all counts
    signs      share of the pairs of matched components whose correlation has the planted sign
    error      mean absolute error of the rows' proportions, unmatched components left out
    oracle     the same of rows that are given the planted columns and the gamma shape of weights
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from glfm_cli import GlfmFactorizer
from glfm_cli.settings import parse_assignments

Array = np.ndarray
ROWS, COLUMNS, COMPONENTS, SIZE, SHAPE = 2_000, 500, 10, 100.0, 0.5


def planted(rng: np.random.Generator) -> tuple[Array, Array, Array, Array]:
    """Return counts, columns of components (I, K), their signs, and proportions of rows (U, K)."""
    a = rng.gamma(0.1, 1.0, (COLUMNS, COMPONENTS)) + 1e-6
    a /= a.sum(axis=0)
    sign = np.where(np.arange(COMPONENTS) < COMPONENTS // 2, 1.0, -1.0)
    x = rng.gamma(SHAPE, 1.0, (ROWS, COMPONENTS))
    x *= np.exp(1.5 * rng.standard_normal((ROWS, 1)) * sign)
    theta = x / x.sum(axis=1, keepdims=True)
    return rng.poisson(SIZE * theta @ a.T), a, sign, theta


def given_columns(y: Array, a: Array) -> Array:
    """Return proportions of rows by the step of rows, given the columns."""
    x = np.full((y.shape[0], COMPONENTS), SIZE / COMPONENTS)
    rate = 1.0 + SHAPE * COMPONENTS / SIZE
    for _ in range(200):
        x = (SHAPE + x * ((y / np.maximum(x @ a.T, 1e-300)) @ a)) / rate
    theta: Array = x / x.sum(axis=1, keepdims=True)
    return theta


def measure(seed: int, options: argparse.Namespace) -> list[float]:
    """Return what is found of one data set."""
    y, a, sign, theta = planted(np.random.default_rng(seed))
    model = GlfmFactorizer(
        restarts=options.restarts,
        tau=1.0,
        seed=seed,
        threads=1,
        settings=parse_assignments(options.set),
    )
    found = model.fit_transform(y)
    b = model.components_ / np.linalg.norm(model.components_, axis=1, keepdims=True)
    cosine = (a / np.linalg.norm(a, axis=0)).T @ b.T
    match, close = cosine.argmax(axis=1), cosine.max(axis=1) > 0.9
    alone = close & (np.bincount(match, minlength=b.shape[0])[match] == 1)
    held = int(np.searchsorted(np.cumsum(model.shares_), 0.95)) + 1
    rho = model.correlations_[np.ix_(match, match)]
    pairs = np.triu(np.outer(alone, alone), 1)
    right = (np.sign(rho) == np.outer(sign, sign))[pairs].mean()
    error = np.abs(found[:, match] - theta)[:, alone].mean()
    oracle = np.abs(given_columns(y, a) - theta)[:, alone].mean()
    return [alone.sum(), held, right, error, oracle]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sets", type=int, default=10)
    parser.add_argument("--restarts", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    options = parser.parse_args()
    print("| data set | matched | 95 % | signs | error | oracle | s |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for seed in range(options.sets):
        began = time.process_time()
        matched, held, right, error, oracle = measure(seed, options)
        numbers = f"{matched:.0f} | {held:.0f} | {right:.3f} | {error:.4f} | {oracle:.4f}"
        print(f"| {seed} | {numbers} | {time.process_time() - began:.0f} |", flush=True)


if __name__ == "__main__":
    main()
