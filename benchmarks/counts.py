"""How well are counts of new rows predicted from some of their columns? Perplexity, by method.

    python benchmarks/counts.py FOLDER [--corpora poliblog2008,ap_news] [--splits 3]

FOLDER has tables `NAME_counts.parquet` of three columns: row, column, count; a pair that is not
there is a zero. Rows are shuffled; the last `--hold` are held out, columns without a training
count dropped. Of each held-out row a column is observed with the probability that heads the table,
zeros included, and the other columns' counts are predicted: exp(-mean log p), p over all columns,
rows pooled. In brackets: the same with a tenth of the unigram mixed in. Processor seconds are
those of fitting, with the choices that a method makes on training rows.

    unigram    shares of the columns in the training rows
    hgp, scaled, cnpf, diln
               GlfmFactorizer(model=...), tau chosen on training rows
    lda        scikit-learn's latent Dirichlet allocation, batch; the priors of rows and columns are
               chosen on 15 % of the training rows, observed as the rows to be predicted are

`--validate` predicts 15 % of the training rows in place of those held out, to compare settings.
"""

from __future__ import annotations

import argparse
import itertools
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from scipy.sparse import csr_array

from glfm_cli import GlfmFactorizer
from glfm_cli.settings import parse_assignments

Array = np.ndarray
MODELS = ("hgp", "scaled", "cnpf", "diln")
MIX = 0.1
ALPHAS, ETAS = (0.02, 0.1), (0.05, 0.3)  # priors of rows and columns that LDA chooses from


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


def ours(name: str, train: csr_array, options: argparse.Namespace, seed: int) -> GlfmFactorizer:
    """Return a fitted model."""
    return GlfmFactorizer(
        name,  # type: ignore[arg-type]
        components=options.components,
        restarts=options.restarts,
        seed=seed,
        threads=1,
        settings=parse_assignments(options.set),
    ).fit(train)


def lda_of(train: csr_array, alpha: float, eta: float, components: int, seed: int) -> object:
    """Return scikit-learn's LDA."""
    from sklearn.decomposition import LatentDirichletAllocation

    model = LatentDirichletAllocation(
        components,
        doc_topic_prior=alpha,
        topic_word_prior=eta,
        learning_method="batch",
        max_iter=20,
        random_state=seed,
    )
    return model.fit(train)


def lda_shares(model: object, seen: Array) -> Array:
    """Return p (rows, columns) of new rows of which `seen` are the observed counts."""
    topics = model.components_ / model.components_.sum(axis=1, keepdims=True)  # type: ignore
    shares: Array = model.transform(seen) @ topics  # type: ignore[attr-defined]
    return shares


def choose_priors(
    train: csr_array, unigram: Array, options: argparse.Namespace, seed: int
) -> list[tuple[float, float]]:
    """Return for each share observed the priors that predict 15 % of the training rows best."""
    cut = int(0.85 * train.shape[0])
    rest, out = train[:cut], train[cut:].toarray()
    uniform = np.random.default_rng(seed).random(out.shape)
    losses: dict[tuple[float, float], list[float]] = {}
    for priors in itertools.product(ALPHAS, ETAS):
        model = lda_of(rest, *priors, options.components, seed)
        losses[priors] = []
        for share in options.observed:
            seen = uniform < share
            found = perplexities(lda_shares(model, out * seen), out, ~seen, unigram)
            losses[priors].append(min(found))
    return [min(losses, key=lambda one: losses[one][k]) for k in range(len(options.observed))]


def compare(X: csr_array, options: argparse.Namespace, seed: int) -> dict[str, list[str]]:
    """Return what each method is worth on one split: perplexities, then seconds."""
    train, test = split(X, options.hold, seed)
    if options.validate:
        train, test = split(train, int(0.15 * train.shape[0]), seed)
    Y = test.toarray()
    uniform = np.random.default_rng(seed + 1).random(Y.shape)
    unigram = np.asarray(train.sum(axis=0)).ravel() + 0.01
    unigram = unigram / unigram.sum()
    print(f"train {train.shape}, {train.nnz} non-zeros; held out {test.shape}", flush=True)
    found = {}
    for name in options.methods.split(","):
        began, cells = time.process_time(), []
        model = ours(name, train, options, seed) if name in MODELS else None
        priors = choose_priors(train, unigram, options, seed) if name == "lda" else []
        for k, share in enumerate(options.observed):
            seen = uniform < share
            if model is not None:
                rates = model.rates(Y, seen)
                p = rates / rates.sum(axis=1, keepdims=True)
            elif name == "lda":
                lda = lda_of(train, *priors[k], options.components, seed)
                p = lda_shares(lda, Y * seen)
            else:
                p = np.broadcast_to(unigram, Y.shape)
            raw, mixed = perplexities(p, Y, ~seen, unigram)
            cells.append(f"{raw:.0f} ({mixed:.0f})")
        seconds = time.process_time() - began
        notes = ""
        if model is not None:
            notes = f"tau {model.tau_:g}, {model.n_components_} components"
        found[name] = [*cells, f"{seconds:.0f}", notes]
        print(f"| {name} | {' | '.join(found[name])} |", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--corpora", default="poliblog2008,ap_news,newsgroups20")
    parser.add_argument("--methods", default="unigram,hgp,scaled,cnpf,lda")
    parser.add_argument("--observed", type=float, nargs="+", default=[0.1, 0.5])
    parser.add_argument("--hold", type=int, default=1000)
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--rows", type=int, help="only so many rows, for a quick try")
    parser.add_argument("--columns", type=int, help="only the columns with the largest counts")
    parser.add_argument("--components", type=int, default=50)
    parser.add_argument("--restarts", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--validate", action="store_true")
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
            compare(X, options, seed)


if __name__ == "__main__":
    main()
