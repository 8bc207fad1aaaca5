"""Do the labels come true as often as `glfm classify` says? Held-out folds of several tables.

    python benchmarks/label_calibration.py [TABLE:TARGET ...] [--folds 10] [--hidden 0] [--chains 8]
        [--simulated 3] [--seed 0] [--json OUT] [--figure PNG]

Every TABLE, a file beside its types file, is cross-validated: each row's label is foretold by a fit
that has not seen it. So are tables drawn from the model itself. Printed for each, and for all
forecasts together: the expected calibration error (ten bins, every level of every row a forecast),
beside the range in which it lies 95 % of the time when labels are drawn from the forecasts
themselves; for comparison, that of the logistic regressions. `--hidden` is a share of feature cells
to hide first.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from incomplete_features import hide
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from glfm_cli.classification.fit import Fitting
from glfm_cli.classification.folds import CrossValidation, cross_validate
from glfm_cli.classification.scores import BINS, calibration_error
from glfm_cli.classification.task import make_task
from glfm_cli.encoding import EncodedColumn
from glfm_cli.inference.executors import available_threads, thread_pool
from glfm_cli.io import read_table
from glfm_cli.latent.iqgme import IqgmeConfig
from glfm_cli.links import LinkConfig
from glfm_cli.plots.style import PREDICTED, PUT_IN, TEXT, TITLE, drawing, save
from glfm_cli.schema import Column, ColumnType, Role, read_schema

Array = np.ndarray[Any, Any]

SIMULATIONS = 2000
ROWS, FEATURES, EXPERTS = 400, 6, 3
Forecasts = list[tuple[Array, Array]]  # probabilities (n, R) and codes (n,)


def simulated(seed: int) -> tuple[list[EncodedColumn], Array, int]:
    """Return features, labels and their number of a table drawn from a mixture of experts."""
    rng = np.random.default_rng([seed, 8])
    z = rng.choice(EXPERTS, ROWS, p=[0.5, 0.3, 0.2])
    centers = 1.5 * rng.standard_normal((EXPERTS, FEATURES))
    spread = rng.standard_normal((EXPERTS, FEATURES, FEATURES)) / np.sqrt(FEATURES)
    x = centers[z] + np.einsum("npq,nq->np", spread[z], rng.standard_normal((ROWS, FEATURES)))
    x += 0.3 * rng.standard_normal(x.shape)
    w, b = rng.standard_normal((EXPERTS, FEATURES)), rng.standard_normal(EXPERTS)
    score = np.einsum("np,np->n", w[z], x - centers[z]) + b[z] + rng.standard_normal(ROWS)
    columns = []
    for d, values in enumerate(np.ascontiguousarray(x.T)):
        column = Column(f"x{d}", Role.FEATURE, ColumnType.REAL)
        seen = np.ones(ROWS, dtype=bool)
        columns.append(EncodedColumn(column, d, values, seen, ~seen, ()))
    return columns, (score > 0).astype(np.float64), 2


def error(forecasts: Forecasts, codes: list[Array]) -> float:
    """Return the calibration error of all forecasts together, for these labels."""
    hits = [np.eye(p.shape[1])[code] for (p, _), code in zip(forecasts, codes, strict=True)]
    said = np.concatenate([p.ravel() for p, _ in forecasts])
    return calibration_error(np.concatenate([hit.ravel() for hit in hits])[:, None], said[:, None])


def judge(forecasts: Forecasts, rng: np.random.Generator) -> dict[str, Any]:
    """Return the calibration error, and its range for labels drawn from the forecasts."""
    drawn = []
    for _ in range(SIMULATIONS):
        codes = [
            np.minimum((rng.random((len(p), 1)) > np.cumsum(p, axis=1)).sum(1), p.shape[1] - 1)
            for p, _ in forecasts
        ]
        drawn.append(error(forecasts, codes))
    found = error(forecasts, [code.astype(int) for _, code in forecasts])
    low, high = np.quantile(drawn, [0.025, 0.975])
    return {"error": found, "low": float(low), "high": float(high), "within": bool(found <= high)}


def plot(forecasts: dict[str, Forecasts], path: Path) -> None:
    """Draw how often labels came true against how probable they were said to be."""
    with drawing():
        figure = Figure(figsize=(4.2, 3.6), dpi=150, layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], color=TEXT, lw=0.7, ls=":")
        for (name, own), colour, marker in zip(
            forecasts.items(), (PREDICTED, PUT_IN, "#009e73"), "os^", strict=False
        ):
            p = np.concatenate([p.ravel() for p, _ in own])
            hit = np.concatenate([np.eye(p.shape[1])[c.astype(int)].ravel() for p, c in own])
            which = np.minimum((p * BINS).astype(int), BINS - 1)
            n = np.bincount(which, minlength=BINS)
            mean, true = (np.bincount(which, v, BINS) / np.maximum(n, 1) for v in (p, hit))
            bars = 1.96 * np.sqrt(mean * (1 - mean) / np.maximum(n, 1))
            at = n > 0
            axes.errorbar(
                mean[at], true[at], bars[at], color=colour, marker=marker, ms=4, lw=1.0, label=name,
                elinewidth=0.6, capsize=2,
            )  # fmt: skip
        axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="said probability", ylabel="share that came true")
        axes.legend(frameon=False)
        axes.set_title("Held-out labels of all tables", loc="left", fontproperties=TITLE)
        save(figure, path)


def main() -> None:
    """Cross-validate and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", metavar="TABLE:TARGET")
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--hidden", type=float, default=0.0)
    parser.add_argument("--chains", type=int, default=8)
    parser.add_argument("--simulated", type=int, default=3)
    parser.add_argument("--threads", type=int, default=available_threads())
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, default=None)
    parser.add_argument("--figure", type=Path, default=None)
    said = parser.parse_args()
    problems = [(f"simulated {i + 1}", *simulated(said.seed + i)) for i in range(said.simulated)]
    for text in said.tables:
        name, _, target = text.rpartition(":")
        path = Path(name)
        types = read_schema(path.parent / f"{path.name.split('.')[0]}.types.yaml")
        task = make_task(read_table(path), types, target, str(path))
        problems.append((f"{path.stem} {target}", list(task.features), task.code, len(task.levels)))
    forecasts: dict[str, Forecasts] = {}
    results: dict[str, Any] = {}
    print(f"{'':<28}{'':<30}{'error':>7}   95 % range of perfect forecasts")

    def show(name: str, method: str, own: Forecasts) -> None:
        found = judge(own, np.random.default_rng(said.seed))
        results.setdefault(name, {})[method] = found
        ends = f"{found['low']:.4f} to {found['high']:.4f}"
        print(f"{name:<28}{method:<30}{found['error']:7.4f}   {ends}", flush=True)

    for name, columns, code, n_levels in problems:
        shown, _ = hide(columns, said.hidden, np.random.default_rng([said.seed, 7]))
        with thread_pool(said.threads) as pool:
            how = Fitting(IqgmeConfig(), LinkConfig(), said.chains, said.seed, pool)
            done: CrossValidation = cross_validate(shown, code, n_levels, how, said.folds)
        for method, p in done.p.items():
            forecasts.setdefault(method, []).append((p, code[done.rows]))
            show(name, method, forecasts[method][-1:])
    for method, own in forecasts.items():
        show("all together", method, own)
    if said.json is not None:
        said.json.write_text(json.dumps(results) + "\n")
    if said.figure is not None:
        plot(forecasts, said.figure)


if __name__ == "__main__":
    main()
