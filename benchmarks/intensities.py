"""Intensities of proteins that are missing because they are low, beside other ways to fill them.

    python benchmarks/intensities.py [--tables 3] [--proteins 400] [--samples 40] [--at-random]

Logarithms (base 2) of intensities: a level of each protein, four factors, three batches, a drift,
and a difference of 0.5 to 1.5 between two groups in a tenth of the proteins. A cell is seen with
probability Phi(y - t), a quarter being lost so, or at random; five per cent are lost besides. Rows
are proteins. Of the cells lost by their value, and of those lost at random, are printed the root
mean square error, the mean error and the share inside 95 % intervals; of the proteins that miss 20
to 80 % the share of t-tests below 0.05 with and without a difference, the slope of estimated on
true differences, their error beside those of the whole table, and the share of intervals that
cover; of ours, from 20 versions pooled by Rubin's rules.
"""

from __future__ import annotations

import argparse

import numpy as np
import pyarrow as pa
from scipy import stats
from scipy.optimize import brentq
from scipy.special import ndtr
from sklearn.impute import KNNImputer

from glfm_cli import impute, pool

Array = np.ndarray
OURS = {
    "bsvd": ("random", {"model": "bsvd"}),
    "glfm, linear": ("random", {"components": 10}),
    "bsvd, probit": ("probit", {"model": "bsvd"}),
    "glfm, linear, probit": ("probit", {"components": 10}),
}
VERSIONS = 20


def simulate(P: int, N: int, at_random: bool, seed: int) -> dict[str, Array]:
    """Return y (P, N), which cells are seen, which lost at random, groups and differences."""
    rng = np.random.default_rng(seed)
    group, batch = np.arange(N) % 2, np.arange(N) * 3 // N
    V = 0.5 * rng.normal(size=(P, 4)) * (rng.random((P, 4)) < 0.6)
    size = rng.choice([-1.0, 1.0], P) * rng.uniform(0.5, 1.5, P)
    lfc = np.where(rng.random(P) < 0.1, size, 0.0)
    y = rng.normal(25.0, 3.0, P)[:, None] + V @ rng.normal(size=(4, N))
    y += lfc[:, None] * (group - 0.5) + rng.normal(0.0, 0.3, (P, 3))[:, batch]
    sd = 0.4 * np.exp(rng.normal(0.0, 0.3, (P, 1)))
    y += np.linspace(-0.15, 0.15, N) + sd * rng.normal(size=(P, N))
    t = brentq(lambda t: ndtr(t - y).mean() - 0.25, y.min() - 10.0, y.max() + 10.0)
    by_value = rng.random((P, N)) < (0.25 if at_random else ndtr(t - y))
    lost = rng.random((P, N)) < 0.05
    seen = ~(by_value | lost)
    keep = seen.sum(axis=1) >= 4
    found = {"y": y, "seen": seen, "random": lost & ~by_value, "lfc": lfc}
    return {name: value[keep] for name, value in found.items()} | {"group": group}


def minprob(x: Array, rng: np.random.Generator) -> Array:
    """Return each sample filled from a normal law about its first percentile."""
    low, sd = np.nanquantile(x, 0.01, axis=0), np.nanmedian(np.nanstd(x, axis=1))
    return np.where(np.isnan(x), rng.normal(low, sd, x.shape), x)


def soft_impute(x: Array, rank: int = 5, steps: int = 100) -> Array:
    """Return proteins about their means filled by soft thresholds of singular values."""
    gone = np.isnan(x)
    mean = np.nanmean(x, axis=1, keepdims=True)
    z = np.where(gone, 0.0, x - mean)
    least = np.linalg.svd(z, compute_uv=False)[rank]
    for _ in range(steps):
        U, s, W = np.linalg.svd(z, full_matrices=False)
        fit = (U * np.maximum(s - least, 0.0)) @ W
        mean = np.where(gone, 0.0, x - fit).sum(axis=1, keepdims=True)
        mean /= (~gone).sum(axis=1, keepdims=True)
        z = np.where(gone, fit, x - mean)
    return np.where(gone, fit + mean, x)


def differences(y: Array, group: Array) -> tuple[Array, Array]:
    """Return differences of means of two groups and their variances, one a protein."""
    a, b = y[:, group == 0], y[:, group == 1]
    square = a.var(axis=1) * a.shape[1] + b.var(axis=1) * b.shape[1]
    variance = square / (y.shape[1] - 2) * (1 / a.shape[1] + 1 / b.shape[1])
    return b.mean(axis=1) - a.mean(axis=1), variance


def tested(d: dict[str, Array], estimate: Array, se: Array, df: Array | float) -> list[float]:
    """Return what is printed of the tests."""
    gaps = 1.0 - d["seen"].mean(axis=1)
    some = (gaps > 0.2) & (gaps < 0.8)
    p, null = 2.0 * stats.t.sf(np.abs(estimate) / se, df), d["lfc"] == 0.0
    inside = np.abs(estimate - d["lfc"]) < stats.t.ppf(0.975, df) * se
    true, whole = d["lfc"][some & ~null], differences(d["y"], d["group"])[0]
    return [
        np.mean(p[some & null] < 0.05), np.mean(p[some & ~null] < 0.05),
        estimate[some & ~null] @ true / (true @ true),
        np.sqrt(np.mean((estimate - whole)[some] ** 2)), np.mean(inside[some]),
    ]  # fmt: skip


def cells(d: dict[str, Array], estimate: Array, inside: Array | None = None) -> list[float]:
    """Return what is printed of cells lost by their value, then of those lost at random."""
    out = []
    for which in (~d["seen"] & ~d["random"], d["random"]):
        e = (estimate - d["y"])[which]
        held = np.nan if inside is None else inside[which].mean()
        out += [np.sqrt(np.mean(e**2)), e.mean(), held]
    return out


def ours(d: dict[str, Array], name: str, seed: int) -> list[float]:
    missingness, how = OURS[name]
    settings = {"alpha_rate": 10, "initial_features": 0, "noise_rate": 0.05, **how}
    more = how if "model" in how else {"model": "glfm", "settings": settings}
    names = [f"s{j}" for j in range(d["y"].shape[1])]
    columns = (pa.array(y, mask=~seen) for y, seen in zip(d["y"].T, d["seen"].T, strict=True))
    table = pa.table(list(columns), names)
    types = {"columns": {"s*": {"type": "real", "missingness": missingness}}}
    done = impute(table, types, seed=seed, chains=10, **more)
    each = done.cells().to_pydict()
    row = np.array(each["row"]) - 1
    column = np.array([int(one[1:]) for one in each["column"]])
    estimate, inside = d["y"].copy(), np.zeros(d["y"].shape, dtype=bool)
    estimate[row, column] = each["mean"]
    truth = d["y"][row, column]
    low, high = (np.array(each[end], dtype=np.float64) for end in ("lower", "upper"))
    inside[row, column] = (low <= truth) & (truth <= high)
    versions = [np.column_stack(one.columns) for one in done.multiple(VERSIONS).tables()]
    q, u = map(np.array, zip(*(differences(one, d["group"]) for one in versions), strict=True))
    found = pool(q, u, d["y"].shape[1] - 2.0)
    return cells(d, estimate, inside) + tested(d, found.estimate, found.se, found.df)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--tables", type=int, default=3)
    parser.add_argument("--proteins", type=int, default=400)
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument("--at-random", action="store_true")
    options = parser.parse_args()
    found: dict[str, list[list[float]]] = {}
    for seed in range(1, options.tables + 1):
        d = simulate(options.proteins, options.samples, options.at_random, seed)
        x = np.where(d["seen"], d["y"], np.nan)
        filled = {
            "whole table": d["y"],
            "MinProb": minprob(x, np.random.default_rng(seed)),
            "kNN": KNNImputer(n_neighbors=10).fit_transform(x),
            "softImpute": soft_impute(x),
        }
        for name, y in filled.items():
            q, u = differences(y, d["group"])
            found.setdefault(name, []).append(
                cells(d, y) + tested(d, q, np.sqrt(u), y.shape[1] - 2.0)
            )
        for name in OURS:
            found.setdefault(name, []).append(ours(d, name, seed))
    scores = ("RMSE", "bias", "95 %")
    heads = (*scores, *scores, "false", "power", "slope", "RMSE", "95 %")
    print("| | " + " | ".join(heads) + " |\n" + "| --- " * 12 + "|")
    for name, each in found.items():
        values = np.mean(each, axis=0)
        print(f"| {name} | " + " | ".join("" if np.isnan(v) else f"{v:.3f}" for v in values) + " |")


if __name__ == "__main__":
    main()
