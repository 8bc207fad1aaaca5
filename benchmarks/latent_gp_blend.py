"""Does a smooth voice help? Errors of `clgp`, of another model, and of both, column by column.

    python benchmarks/latent_gp_blend.py FOLDER [--tables qsar,abalone] [--sets 0,1,2] [--chains 3]
        [--other auto] [--other-chains N] [--out latent_gp_blend]

For each table in FOLDER 30 % of the observed cells are hidden, as `glfm evaluate --rates 0.3`
hides them, and completed by either model; NAME@ROWS is a table's random rows. Blended are numbers
and the probabilities of levels, with the share of `clgp` in each column that has the least squared
error in one half of its hidden cells, used in the other half, and the other way round; `half` gives
both the same share. Printed are errors of hidden cells as those of `glfm evaluate`, and how many of
95 % intervals of `clgp` cover. Forecasts go to files in OUT, with which a later run of the same
command goes on.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from paper_figures import load

from glfm_cli.evaluation.design import Design
from glfm_cli.evaluation.evaluate import prepare
from glfm_cli.evaluation.scoring import score_all
from glfm_cli.evaluation.task import ENDS, Prediction
from glfm_cli.options import MatrixOptions, Sampling
from glfm_cli.schema import read_schema

RATE = 0.3
SHARES = np.linspace(0.0, 1.0, 21)  # of clgp
FEWEST = 8  # hidden cells of a column whose halves say something
Array = np.ndarray[Any, Any]


def forecasts(
    folder: Path, name: str, number: int, model: str, chains: int | None, settings: list[str]
) -> tuple[dict[str, Array], Any, Any]:
    """Return what a model says of the hidden cells of a set, with the bench and the task."""
    table, types = load(folder, name)
    sampling = Sampling(chains=chains, settings=dict(item.split("=", 1) for item in settings))
    design = Design(methods=[model], rates=[RATE], repeats=number + 1)
    bench = prepare(table, read_schema(types), sampling, MatrixOptions(), design).bench
    task = bench.task(RATE, number, seed=number, threads=1)

    def fit() -> dict[str, Array]:
        found = {}
        for d, said in bench.methods[0].fit(task).items():
            found[f"{d}.estimate"] = said.estimate
            if said.probabilities is not None:
                found[f"{d}.probabilities"] = said.probabilities
            if said.quantiles is not None:
                found[f"{d}.ends"] = said.quantiles[:, ENDS[0.95]]
        return found

    return fit, bench, task  # type: ignore[return-value]


def kept(path: Path, fit: Callable[[], dict[str, Array]]) -> dict[str, Array]:
    """Return what is in a file, made first where there is none."""
    if not path.exists():
        began = time.process_time()
        found = fit()
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(path, seconds=time.process_time() - began, **found)
    with np.load(path) as read:
        return dict(read)


def blended(column: Any, x: Array, both: list[dict[str, Array]], d: int, half: bool) -> Array:
    """Return the estimates (n,) of one column by both models; x (n,) are the hidden cells."""
    levels = bool(column.levels)
    parts = [one[f"{d}.probabilities" if levels else f"{d}.estimate"] for one in both]
    truth = np.eye(parts[0].shape[1])[x.astype(np.intp)] if levels else x
    share = np.full(len(x), 0.5)
    if not half and len(x) >= FEWEST:
        fold = np.random.default_rng(d).permutation(len(x)) % 2
        for side in range(2):
            some = fold != side
            loss = [
                np.sum((truth[some] - w * parts[0][some] - (1.0 - w) * parts[1][some]) ** 2)
                for w in SHARES
            ]
            share[fold == side] = SHARES[int(np.argmin(loss))]
    w = share[:, None] if levels else share
    mixed: Array = w * parts[0] + (1.0 - w) * parts[1]
    if not levels:
        return np.round(mixed) if column.column.type == "count" else mixed
    if column.column.nominal:
        return mixed.argmax(axis=1)
    return (np.cumsum(mixed, axis=1) < 0.5).sum(axis=1)


def compare(name: str, number: int, asked: argparse.Namespace) -> list[float]:
    """Print the line of a table's set of hidden cells, and return its errors."""
    both = []
    for model, chains in (("clgp", asked.chains), (asked.other, asked.other_chains)):
        settings = asked.settings if model == "clgp" else []
        fit, bench, task = forecasts(asked.folder, name, number, model, chains, settings)
        label = "-".join([model, *settings]) + (f"-{chains}" if chains else "")
        both.append(kept(asked.out / f"{name}-{number}-{label}.npz", fit))  # type: ignore[arg-type]

    def error(estimates: dict[int, Array]) -> float:
        said = {d: Prediction(estimate) for d, estimate in estimates.items()}
        scores = score_all(bench.data.columns, bench.span, task.truth, said)
        (value,) = [one.value for one in scores if (one.score, one.scope) == ("error", "all")]
        return value

    columns = bench.data.columns
    errors = [error({d: one[f"{d}.estimate"] for d in task.truth}) for one in both]
    for half in (False, True):
        mixed = {d: blended(columns[d], x, both, d, half) for d, x in task.truth.items()}
        errors.append(error(mixed))
    inside = []
    for d, x in task.truth.items():
        if f"{d}.ends" in both[0]:
            low, high = both[0][f"{d}.ends"].T
            inside.append(np.mean((low <= x) & (x <= high)))
    cover, seconds = 100 * np.mean(inside), [float(one["seconds"]) for one in both]
    print(
        f"{name:<12}{number:>4}" + "".join(f"{one:>9.4f}" for one in errors)
        + f"{100 * (errors[2] / errors[1] - 1):>8.1f} %{cover:>8.1f} %"
        + "".join(f"{one:>8.0f}" for one in seconds),
        flush=True,
    )  # fmt: skip
    return errors


def main() -> None:
    """Print a line a set, and the means of each table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tables", default="qsar,abalone,counties,wine@3000")
    parser.add_argument("--sets", default="0,1,2", help="numbers of sets of hidden cells")
    parser.add_argument("--chains", type=int, default=3, help="restarts of clgp")
    parser.add_argument("--other", default="auto", help="the other model")
    parser.add_argument("--other-chains", type=int, help="its defaults if left out")
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--out", type=Path, default=Path("latent_gp_blend"))
    asked = parser.parse_args()
    names = ("clgp", asked.other, "blend", "half")
    titles = "".join(f"{name:>9}" for name in names)
    print(f"{'table':<12}{'set':>4}{titles}  change    cover  clgp s   other")
    for name in asked.tables.split(","):
        sets = [compare(name, int(number), asked) for number in asked.sets.split(",")]
        print(f"{name:<12}mean" + "".join(f"{one:>9.4f}" for one in np.mean(sets, axis=0)))


if __name__ == "__main__":
    main()
