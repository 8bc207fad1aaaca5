"""How well are counts of new rows predicted from some of their columns? Perplexity, by method.

    python benchmarks/counts.py FOLDER [--corpora poliblog2008,ap_news] [--splits 3]

FOLDER has tables `NAME_counts.parquet` of three columns: row, column, count; a pair that is not
there is a zero. Rows are shuffled; the last `--hold` are held out, columns without a training
count dropped. Of each held-out row a column is observed with the probability that heads the table,
zeros included, and the other columns' counts are predicted: exp(-mean log p), p over all columns,
rows pooled. In brackets: the same with a tenth of the unigram mixed in. Each method makes its
choice (tau, or a package's own) on 15 % of the training rows, observed as the rows to be predicted
are, by as many restarts; processor seconds are those of all fits. With `--results FILE` what
is in the file is not run again.

    unigram    shares of the columns in the training rows
    hgp, scaled, cnpf, diln
               GlfmFactorizer(model=...)
    lda, gibbs, ctm, hdp, nmf
               models of other packages, see peers/topics.py

`--validate` predicts 15 % of the training rows in place of those held out, to compare settings.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from peers.topics import PEERS, Shares
from scipy.sparse import csr_array

from glfm_cli import GlfmFactorizer
from glfm_cli.settings import parse_assignments

Array = np.ndarray
MODELS = ("hgp", "scaled", "cnpf", "diln")
MIX = 0.1
TAUS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
Choice = Any
Fitted = Callable[[Choice, Array, Array], Array]  # p by choice, counts, and which are seen


def read_counts(path: Path) -> csr_array:
    """Return the rows that have counts, as a sparse matrix."""
    row, column, count = (one.to_numpy() for one in pq.read_table(path).columns)
    _, row = np.unique(row, return_inverse=True)
    _, column = np.unique(column, return_inverse=True)
    return csr_array((count, (row, column)))


def split(X: csr_array, hold: int, seed: int) -> tuple[csr_array, csr_array]:
    """Return training and held-out rows, with the columns that have a training count."""
    order = np.random.default_rng(seed).permutation(X.shape[0])
    train, test = X[order[:-hold]], X[order[-hold:]]
    kept = np.flatnonzero(np.asarray(train.sum(axis=0)).ravel())
    return train[:, kept].tocsr(), test[:, kept].tocsr()


def perplexities(p: Array, Y: Array, hidden: Array, unigram: Array) -> tuple[float, float]:
    """Return the perplexity of hidden counts, and with a tenth of the unigram mixed in."""
    y = np.where(hidden, Y, 0)
    u, i = np.nonzero(y)
    found = []
    for mix in (0.0, MIX):
        share = (1.0 - mix) * p[u, i] + mix * unigram[i]
        found.append(float(np.exp(-(y[u, i] * np.log(share)).sum() / y.sum())))
    return found[0], found[1]


def ours(name: str, train: csr_array, options: argparse.Namespace, seed: int) -> Fitted:
    """Return a fitted model's forecasts by tau."""
    model = GlfmFactorizer(
        name,  # type: ignore[arg-type]
        components=options.components,
        restarts=options.restarts,
        tau=1.0,
        seed=seed,
        threads=1,
        settings=parse_assignments(options.set),
    ).fit(train)

    def shares(tau: float, Y: Array, seen: Array) -> Array:
        model._fitted = model._fitted.with_tau(tau)
        rates = model.rates(Y, seen)
        p: Array = rates / rates.sum(axis=1, keepdims=True)
        return p

    return shares


def theirs(name: str, train: csr_array, options: argparse.Namespace, seed: int) -> Fitted:
    """Return the forecasts of another package's model by its choice, fitted when asked for."""
    fits: dict[Choice, Shares] = {}

    def shares(choice: Choice, Y: Array, seen: Array) -> Array:
        if choice not in fits:
            fits[choice] = PEERS[name][1](train, options.components, seed, *choice)
        return fits[choice](csr_array(Y * seen))

    return shares


def forecasts(
    name: str, train: csr_array, options: argparse.Namespace, seed: int
) -> tuple[Fitted, list[Choice]]:
    """Return a fit, and for each share observed the choice that predicts best there.

    Choices are made on 15 % of the training rows, which the rest is fitted without, once.
    """
    fit, choices = (ours, TAUS) if name in MODELS else (theirs, PEERS[name][0])
    rest, out = split(train, int(0.15 * train.shape[0]), seed)
    Y, unigram = out.toarray(), unigram_of(rest)
    uniform, tried = np.random.default_rng(seed).random(Y.shape), fit(name, rest, options, seed)
    best = []
    for share in options.observed:
        seen = uniform < share
        losses = [min(perplexities(tried(one, Y, seen), Y, ~seen, unigram)) for one in choices]
        best.append(choices[int(np.argmin(losses))])
    return fit(name, train, options, seed), best


def unigram_of(train: csr_array) -> Array:
    """Return the columns' shares, smoothed."""
    total = np.asarray(train.sum(axis=0)).ravel() + 0.01
    shares: Array = total / total.sum()
    return shares


def compare(corpus: str, X: csr_array, options: argparse.Namespace, seed: int) -> None:
    """Print what each method is worth on one split: perplexities, then seconds."""
    train, test = split(X, options.hold, seed)
    if options.validate:
        train, test = split(train, int(0.15 * train.shape[0]), seed)
    Y, unigram = test.toarray(), unigram_of(train)
    uniform = np.random.default_rng(seed + 1).random(Y.shape)
    print(f"train {train.shape}, {train.nnz} non-zeros; held out {test.shape}", flush=True)
    for name in options.methods.split(","):
        known = result_of(corpus, seed, name, options)
        if known is not None:
            print(f"| {name} | {' | '.join(known)} |", flush=True)
            continue
        began, cells, best = time.process_time(), [], []
        if name != "unigram":
            fitted, best = forecasts(name, train, options, seed)
        for k, share in enumerate(options.observed):
            seen = uniform < share
            p = fitted(best[k], Y, seen) if best else np.broadcast_to(unigram, Y.shape)
            raw, mixed = perplexities(p, Y, ~seen, unigram)
            cells.append(f"{raw:.0f} ({mixed:.0f})")
        seconds, notes = time.process_time() - began, " ".join(map(str, best))
        found = [*cells, f"{seconds:.0f}", notes]
        print(f"| {name} | {' | '.join(found)} |", flush=True)
        if options.results:
            row = {**key_of(corpus, seed, name, options), "cells": found}
            with options.results.open("a") as file:
                file.write(json.dumps(row) + "\n")


def key_of(corpus: str, seed: int, name: str, options: argparse.Namespace) -> dict[str, object]:
    """Return what a result depends on."""
    left_out = ("folder", "corpora", "methods", "splits", "results")
    given = {k: v for k, v in vars(options).items() if k not in left_out}
    return {"corpus": corpus, "split": seed, "method": name, **given}


def result_of(
    corpus: str, seed: int, name: str, options: argparse.Namespace
) -> list[str] | None:
    """Return a result that is in the file already."""
    if options.results is None or not options.results.exists():
        return None
    key = key_of(corpus, seed, name, options)
    for line in options.results.read_text().splitlines():
        row = json.loads(line)
        if {k: v for k, v in row.items() if k != "cells"} == key:
            return list(row["cells"])
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--corpora", default="poliblog2008,ap_news,newsgroups20")
    parser.add_argument("--methods", default="unigram,hgp,scaled,cnpf,lda,gibbs,ctm,hdp,nmf")
    parser.add_argument("--observed", type=float, nargs="+", default=[0.1, 0.5])
    parser.add_argument("--hold", type=int, default=1000)
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--rows", type=int, help="only so many rows, for a quick try")
    parser.add_argument("--columns", type=int, help="only the columns with the largest counts")
    parser.add_argument("--components", type=int, default=50)
    parser.add_argument("--restarts", type=int, default=3)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--validate", action="store_true")
    parser.add_argument("--results", type=Path, help="a file that keeps what was measured")
    options = parser.parse_args()
    for corpus in options.corpora.split(","):
        X = read_counts(options.folder / f"{corpus}_counts.parquet")
        if options.columns:
            total = np.asarray(X.sum(axis=0)).ravel()
            X = X[:, np.sort(np.argsort(-total, kind="stable")[: options.columns])]
        if options.rows:
            X = X[np.random.default_rng(0).permutation(X.shape[0])[: options.rows]]
        for seed in range(options.splits):
            print(f"\n{corpus}, split {seed}")
            heads = " | ".join(f"{share:.0%} observed" for share in options.observed)
            print(f"| method | {heads} | s | |\n| --- {'| --- ' * (len(options.observed) + 2)}|")
            compare(corpus, X, options, seed)


if __name__ == "__main__":
    main()
