"""Many more features than rows, a third of the cells missing: experts with factors, beside ridge.

    python benchmarks/high_dimension.py [--draws 10] [--kinds 3,1] [--rows 120] [--features 620]

Every draw plants a table, trains on `rows` rows and predicts 1000 others, with 30 % of the cells of
both missing. Planted are rows of a few kinds, as shares 5 : 4 : 3. A row has six hidden factors,
standard normal; a feature is a mix of them, of size 0.35 each on average, plus noise of standard
deviation 1, and in one of ten features a kind has a centre of its own, of standard deviation 1. The
label is 1 when a probit score is above 0: every kind has its own weights on the six factors, of
length 3. `--kinds 1` plants one kind, so that one line through the features separates the labels.

Printed for each draw: AUC on the other rows of `glfm classify` as it comes (factors chosen because
features are many, 8 starts); of logistic regression with a ridge penalty chosen by cross-validation
among ten (scikit-learn), gaps filled with the mean of their column; and of the former, seconds of
wall clock and of processor, and the number of experts.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import pyarrow as pa
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import roc_auc_score

from glfm_cli.classification import classify

Array = np.ndarray
FACTORS, MISSING, TEST = 6, 0.3, 1000


def plant(rng: np.random.Generator, n: int, features: int, kinds: int) -> tuple[Array, Array]:
    """Return features (n, features) with gaps, and labels (n,) of 0 and 1."""
    share = np.array([5.0, 4.0, 3.0])[:kinds]
    z = rng.choice(kinds, n, p=share / share.sum())
    loadings = 0.35 * rng.standard_normal((features, FACTORS))
    special = rng.random(features) < 0.1
    centers = rng.standard_normal((kinds, features)) * special
    w = rng.standard_normal((kinds, FACTORS))
    w *= 3.0 / np.linalg.norm(w, axis=1, keepdims=True)
    s = rng.standard_normal((n, FACTORS))
    x = centers[z] + s @ loadings.T + rng.standard_normal((n, features))
    y = (s * w[z]).sum(axis=1) + rng.standard_normal(n) > 0.0
    x[rng.random(x.shape) < MISSING] = np.nan
    return x, y.astype(int)


def ridge(x: Array, y: Array, new: Array) -> Array:
    """Return the probability of label 1 of new rows."""
    mean = np.nanmean(x, axis=0)
    sd = np.nanstd(x, axis=0)
    fill = [(np.where(np.isnan(one), mean, one) - mean) / sd for one in (x, new)]
    model = LogisticRegressionCV(Cs=10, cv=5, scoring="neg_log_loss", max_iter=2000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of defaults that will change
        return model.fit(fill[0], y).predict_proba(fill[1])[:, 1]


def table(x: Array, y: Array | None) -> pa.Table:
    columns = {f"x{p}": pa.array(x[:, p], from_pandas=True) for p in range(x.shape[1])}
    return pa.table(columns if y is None else columns | {"y": pa.array(y)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--kinds", default="3,1")
    parser.add_argument("--rows", type=int, default=120)
    parser.add_argument("--features", type=int, default=620)
    args = parser.parse_args()
    types = {"rest": "real", "columns": {"y": {"type": "categorical"}}}
    for kinds in map(int, args.kinds.split(",")):
        print(f"{kinds} kinds\n draw   iqgme   ridge   seconds   processor   experts")
        pairs = []
        for draw in range(args.draws):
            rng = np.random.default_rng([draw, kinds])
            x, y = plant(rng, args.rows + TEST, args.features, kinds)
            train, new = slice(0, args.rows), slice(args.rows, None)
            began = time.perf_counter(), time.process_time()
            found = classify(
                table(x[train], y[train]), types, target="y", predict=table(x[new], None), threads=1
            )
            seconds = time.perf_counter() - began[0], time.process_time() - began[1]
            assert found.predictions is not None
            assert found.trained is not None
            pair = [
                roc_auc_score(y[new], p)
                for p in (found.predictions.p[:, 1], ridge(x[train], y[train], x[new]))
            ]
            pairs.append(pair)
            n_experts = found.trained.classifier.n_experts
            times = f"{seconds[0]:7.1f}   {seconds[1]:9.1f}"
            print(
                f"{draw:5d}   {pair[0]:.3f}   {pair[1]:.3f}   {times}   {n_experts:7d}", flush=True
            )
        mean = np.mean(pairs, axis=0)
        above = sum(a > b for a, b in pairs)
        print(f" mean   {mean[0]:.3f}   {mean[1]:.3f}   above in {above} of {args.draws}")


if __name__ == "__main__":
    main()
