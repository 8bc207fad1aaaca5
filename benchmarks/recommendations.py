"""Which columns will a row have next? Recall and gain of the 20 likeliest, by method.

    python benchmarks/recommendations.py FILE [--splits 5] [--results FILE]

FILE is a table of three columns: row, column, count; a pair that is not there is a zero. Of every
row a fifth of its pairs is held out; columns with fewer than `--least` rows are left out. A method
is fitted to the other pairs, and says which 20 columns without a count are likeliest in each row:

    recall    held-out columns among them, over the most that there could be
    gain      discounted cumulative gain over the largest possible

averaged over rows. Every method makes its choice, also of 50 or 100 components, and whether it sees
counts' logarithms or that there is one, on a fifth of the pairs that it is fitted to, in the first
split. Packages that are not installed are left out.

    popularity        rows that have a column
    hgp, scaled, cnpf GlfmFactorizer(model=...)
    als, bpr          implicit: alternating least squares, Bayesian personalised ranking
    poismf            Poisson factorization by conjugate gradients
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from scipy.sparse import csr_array

from glfm_cli import GlfmFactorizer

Array = np.ndarray
N, SHARE = 20, 0.2
SIZES = (50, 100)  # numbers of components
Recommend = Callable[[csr_array, Any], Array]  # the N columns (rows, N) given pairs and a choice
SEEN: dict[str, Callable[[Array], Array]] = {
    "pairs": np.ones_like,
    "logs": lambda x: 1 + np.floor(np.log2(x)).astype(x.dtype),
}


def read_counts(path: Path, least: int) -> csr_array:
    """Return the matrix, columns with few rows left out."""
    row, column, count = (one.to_numpy() for one in pq.read_table(path).columns)
    _, row = np.unique(row, return_inverse=True)
    _, column = np.unique(column, return_inverse=True)
    X = csr_array((count.astype(np.int64), (row, column)))
    X = X[:, np.flatnonzero(np.diff(X.tocsc().indptr) >= least)]
    return X[np.flatnonzero(np.diff(X.indptr) > 0)]


def split(X: csr_array, seed: int) -> tuple[csr_array, csr_array]:
    """Return the pairs to learn from and those held out, a fifth of each row's."""
    rng, out = np.random.default_rng(seed), np.zeros(X.nnz, dtype=bool)
    for start, end in itertools.pairwise(X.indptr):
        n = int(SHARE * (end - start))
        out[start + rng.permutation(end - start)[:n]] = True
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    parts = [(X.data[at], (row[at], X.indices[at])) for at in (~out, out)]
    return csr_array(parts[0], shape=X.shape), csr_array(parts[1], shape=X.shape)


def scores(best: Array, held: csr_array) -> tuple[float, float]:
    """Return recall and gain, averaged over the rows with held-out pairs."""
    discount = 1.0 / np.log2(np.arange(N) + 2.0)
    recall, gain = [], []
    for u, (start, end) in enumerate(itertools.pairwise(held.indptr)):
        if end > start:
            hits, most = np.isin(best[u], held.indices[start:end]), min(N, end - start)
            recall.append(hits.sum() / most)
            gain.append((hits * discount).sum() / discount[:most].sum())
    return float(np.mean(recall)), float(np.mean(gain))


def top(rates: Array, train: csr_array) -> Array:
    """Return the columns of the largest rates where a row has no count."""
    rates = np.where(train.toarray() > 0, -np.inf, rates)
    best: Array = np.argsort(-rates, axis=1, kind="stable")[:, :N]
    return best


def popularity(train: csr_array, choice: Any) -> Array:
    """Rank columns by the rows that have them."""
    return top(np.broadcast_to(np.diff(train.tocsc().indptr), train.shape), train)


def ours(name: str) -> tuple[list[Any], Recommend]:
    """Return a model of this package, many short restarts of it, and its choices: what it sees."""

    def best(train: csr_array, choice: Any) -> Array:
        seen, components = choice
        X = csr_array((SEEN[seen](train.data), train.indices, train.indptr), shape=train.shape)
        model = GlfmFactorizer(
            name,  # type: ignore[arg-type]
            components=components,
            restarts=16,
            tau=1.0,
            threads=1,
            settings={"passes": 50},
        )
        return model.fit(X).recommend(X, N)[0]

    return list(itertools.product(SEEN, SIZES)), best


def implicit_als(train: csr_array, choice: Any) -> Array:
    """Rank by alternating least squares."""
    from implicit.cpu.als import AlternatingLeastSquares

    seen, components, alpha, penalty = choice
    model = AlternatingLeastSquares(
        components,
        alpha=alpha,
        regularization=penalty,
        iterations=15,
        random_state=0,
        num_threads=1,
    )
    return by_implicit(model, train, seen)


def implicit_bpr(train: csr_array, choice: Any) -> Array:
    """Rank by Bayesian personalised ranking."""
    from implicit.cpu.bpr import BayesianPersonalizedRanking

    components, rate, penalty = choice
    model = BayesianPersonalizedRanking(
        components, learning_rate=rate, regularization=penalty, random_state=0, num_threads=1
    )
    return by_implicit(model, train, "pairs")


def by_implicit(model: Any, train: csr_array, seen: str) -> Array:
    from scipy.sparse import csr_matrix

    data = SEEN[seen](train.data).astype(np.float32)
    X = csr_matrix((data, train.indices, train.indptr), shape=train.shape)
    model.fit(X, show_progress=False)
    best, _ = model.recommend(np.arange(X.shape[0]), X, N=N, filter_already_liked_items=True)
    return np.asarray(best)


def poismf(train: csr_array, choice: Any) -> Array:
    """Rank by the rates of poismf."""
    from poismf import PoisMF

    seen, components, penalty = choice
    X = csr_array((SEEN[seen](train.data), train.indices, train.indptr), shape=train.shape)
    model = PoisMF(components, "cg", l2_reg=penalty, nthreads=1, reindex=False, use_float=False)
    model.fit(X.tocoo())
    return top(model.A @ model.B.T, train)


METHODS: dict[str, tuple[list[Any], Recommend]] = {
    "popularity": ([None], popularity),
    **{name: ours(name) for name in ("hgp", "scaled", "cnpf")},
    "als": (list(itertools.product(SEEN, SIZES, (1.0, 10.0), (0.1, 10.0, 30.0))), implicit_als),
    "bpr": (list(itertools.product(SIZES, (0.01, 0.05), (0.01, 0.1))), implicit_bpr),
    "poismf": (list(itertools.product(SEEN, SIZES, (1e3, 1e5))), poismf),
}


def rows(X: csr_array, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the scores of each method on each split, from the file of results where they are."""
    known = []
    if options.results is not None and options.results.exists():
        known = [json.loads(line) for line in options.results.read_text().splitlines()]
    for name in options.methods.split(","):
        choices, recommend = METHODS[name]
        chosen = choices[0]
        for seed in range(options.splits):
            key = {"method": name, "split": seed, "least": options.least}
            found = [one for one in known if {k: one[k] for k in key} == key]
            if found:
                choices = [one for one in choices if str(one) == found[0]["choice"]]
                chosen = choices[0]
                yield found[0]
                continue
            began, (train, held) = time.process_time(), split(X, seed)
            if len(choices) > 1:
                first = split(X, 0)[0]
                rest, out = split(first, 100)
                chosen = max(choices, key=lambda one: scores(recommend(rest, one), out)[1])
                choices = [chosen]
            recall, gain = scores(recommend(train, chosen), held)
            row = {**key, "recall": recall, "gain": gain, "choice": str(chosen)}
            row["seconds"] = time.process_time() - began
            if options.results is not None:
                with options.results.open("a") as file:
                    file.write(json.dumps(row) + "\n")
            yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--least", type=int, default=5)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--results", type=Path, help="a file that keeps what was measured")
    options = parser.parse_args()
    X = read_counts(options.file, options.least)
    print(f"{X.shape[0]} x {X.shape[1]}, {X.nnz} pairs")
    print("| method | split | recall | gain | s | |\n| --- | --- | --- | --- | --- | --- |")
    for row in rows(X, options):
        numbers = f"{row['recall']:.4f} | {row['gain']:.4f} | {row['seconds']:.0f}"
        print(f"| {row['method']} | {row['split']} | {numbers} | {row['choice']} |", flush=True)


if __name__ == "__main__":
    main()
