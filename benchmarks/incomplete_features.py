"""Labels from features with gaps: the mixture of experts beside methods that fill gaps first.

    python benchmarks/incomplete_features.py FILE... [--hidden 25,50] [--shares 10,30,50,70,90]
        [--trials 10] [--first 0] [--chains 8] [--set NAME=VALUE] [--json OUT] [--figure PNG]
    python benchmarks/incomplete_features.py --from OUT... [--figure PNG]

The experiment of [iQGME section 3.5.2, figures 3.5 and 3.6]. FILE is a table, its types file
beside it, one column of which has role target and two levels. In every trial a share of the cells
of all features is hidden, rows are split at random into training and test rows, and the area under
the ROC curve of the test rows is taken for

    iqgme                       the mixture of experts, fitted to training rows with their gaps
    logistic, svm               logistic regression, and a support vector machine with radial basis
                                functions, of scikit-learn, after gaps are filled with
    ... mean                    the mean of the training rows
    ... conditional mean        what ridge regressions on the other features say (IterativeImputer)

All see features on the same standardised scale, and fill and fit with the training rows alone. The
regularisation of both and the width of the kernel are scikit-learn's defaults; with --tuned they
are chosen by cross-validation within the training rows. Trials that were measured in parts are put
together by --from. Printed, for each table and share hidden:
the mean area over trials by share of training rows, and the paired difference of `iqgme` to the
best of the others - in hindsight, that of the best mean - with its standard error over trials.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

from glfm_cli.classification.baselines import fill, matrices
from glfm_cli.classification.classifier import fit_classifier
from glfm_cli.classification.features import take
from glfm_cli.classification.fit import Fitting
from glfm_cli.classification.scores import auc
from glfm_cli.classification.task import Task, make_task
from glfm_cli.encoding import EncodedColumn
from glfm_cli.inference.executors import available_threads, thread_pool
from glfm_cli.io import read_table
from glfm_cli.latent.iqgme import IqgmeConfig
from glfm_cli.links import LinkConfig
from glfm_cli.plots.style import FAINT, PREDICTED, PUT_IN, TITLE, drawing, save
from glfm_cli.schema import read_schema
from glfm_cli.settings import apply_settings

Array = np.ndarray[Any, Any]
Columns = Sequence[EncodedColumn]

MODEL = "iqgme"
FILLED = {"mean": False, "conditional mean": True}
GRIDS: dict[str, dict[str, list[float]]] = {
    "logistic": {"C": [0.01, 0.1, 1.0, 10.0, 100.0]},
    "svm": {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.003, 0.01, 0.03, 0.1, 0.3]},
}
INNER_FOLDS = 4
LINES: dict[str, dict[str, Any]] = {
    MODEL: {"color": PREDICTED, "lw": 2.0, "marker": "o", "ms": 4, "zorder": 3},
    "svm, conditional mean": {"color": PUT_IN, "lw": 1.2, "marker": "s", "ms": 3.5},
    "svm, mean": {"color": PUT_IN, "lw": 1.0, "ls": "--", "marker": "s", "ms": 3.5, "mfc": "w"},
    "logistic, conditional mean": {"color": FAINT, "lw": 1.2, "marker": "^", "ms": 3.5},
    "logistic, mean": {"color": FAINT, "lw": 1.0, "ls": "--", "marker": "^", "ms": 3.5, "mfc": "w"},
}


def hide(columns: Columns, share: float, rng: np.random.Generator) -> tuple[Columns, Array]:
    """Return the columns with a share of the cells hidden, and which rows have any left."""
    n = columns[0].x.size
    gone = rng.random((n, len(columns))) < share
    seen = [e.observed & ~g for e, g in zip(columns, gone.T, strict=True)]
    hidden = [
        replace(e, x=np.where(o, e.x, np.nan), observed=o)
        for e, o in zip(columns, seen, strict=True)
    ]
    return hidden, np.any(seen, axis=0)


def split(code: Array, rows: Array, share: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return training and test rows, each with both labels."""
    n = round(share * rows.size)
    while True:
        order = rng.permutation(rows)
        train, test = np.sort(order[:n]), np.sort(order[n:])
        if np.unique(code[train]).size == np.unique(code[test]).size == 2:
            return train, test


def rivals(train: Columns, y: Array, test: Columns, tuned: bool, seed: int) -> dict[str, Array]:
    """Return a score of each test row by every method that fills gaps first."""
    scores = {}
    here, there = matrices(train, test, LinkConfig())
    for how, conditional in FILLED.items():
        x, new = fill(here, there, conditional, seed)
        for name, model in {
            "logistic": LogisticRegression(max_iter=2000),
            "svm": SVC(kernel="rbf"),
        }.items():
            if tuned and np.bincount(y.astype(int)).min() >= INNER_FOLDS:
                inner = StratifiedKFold(INNER_FOLDS, shuffle=True, random_state=seed)
                model = GridSearchCV(model, GRIDS[name], scoring="roc_auc", cv=inner)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                scores[f"{name}, {how}"] = model.fit(x, y).decision_function(new)
    return scores


def area(y: Array, score: Array) -> float:
    """Return the area under the ROC curve of label 1."""
    return auc(np.column_stack([1.0 - y, y]), np.column_stack([-score, score]))


def trial(
    task: Task, hidden: float, shares: Sequence[float], seed: int, said: argparse.Namespace
) -> list[dict[str, float]]:
    """Return the area of every method, for each share of training rows."""
    columns, there = hide(task.features, hidden, np.random.default_rng([seed, 0]))
    rows = np.flatnonzero(there & ~np.isnan(task.code))
    configs = apply_settings({"model": IqgmeConfig()}, dict(s.split("=", 1) for s in said.settings))
    found = []
    for share in shares:
        inside, outside = split(
            task.code, rows, share, np.random.default_rng([seed, round(100 * share)])
        )
        train, test = take(columns, inside), take(columns, outside)
        y, truth = task.code[inside], task.code[outside]
        scores = {} if said.only else rivals(train, y, test, said.tuned, seed)
        with thread_pool(said.threads) as pool:
            how = Fitting(configs["model"], LinkConfig(), said.chains, seed, pool)
            model = fit_classifier(train, y, 2, how)
            scores[MODEL] = model.probabilities(test, pool)[:, 1]
        found.append({name: area(truth, score) for name, score in scores.items()})
    return found


def measure(path: Path, hidden: int, said: argparse.Namespace) -> dict[str, Any]:
    """Return the areas of one table and share of hidden cells, (trials, shares) by method."""
    types = read_schema(path.with_suffix(".types.yaml"))
    task = make_task(read_table(path), types, None, str(path))
    shares = [int(s) for s in said.shares.split(",")]
    trials = []
    for seed in range(said.first, said.first + said.trials):
        trials.append(trial(task, hidden / 100, [s / 100 for s in shares], seed, said))
        print(f"{path.stem} {hidden} % trial {seed}", file=sys.stderr, flush=True)
    names = list(trials[0][0])
    areas = {name: [[one[name] for one in found] for found in trials] for name in names}
    return {"table": path.stem, "hidden": hidden, "shares": shares, "areas": areas}


def together(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return results with the trials of the same table, share hidden and shares put together."""
    found: dict[str, dict[str, Any]] = {}
    for part in parts:
        key = json.dumps([part["table"], part["hidden"], part["shares"]])
        if key not in found:
            found[key] = part
            continue
        before = found[key]["areas"]
        areas = {name: [*before[name], *part["areas"][name]] for name in before}
        found[key] = {**part, "areas": areas}
    return list(found.values())


def report(result: dict[str, Any]) -> None:
    """Print the mean areas, and the paired difference to the best of the others."""
    areas = {name: np.array(values) for name, values in result["areas"].items()}
    width = max(map(len, areas))
    print(f"\n{result['table']}, {result['hidden']} % of features hidden")
    head = "".join(f"{f'{s} %':>8}" for s in result["shares"])
    print(f"{'':<{width}}{head}    mean")
    for name, values in areas.items():
        line = "".join(f"{v:8.3f}" for v in values.mean(axis=0))
        print(f"{name:<{width}}{line}{values.mean():8.3f}")
    rest = {name: values for name, values in areas.items() if name != MODEL}
    if rest:
        best = max(rest, key=lambda name: rest[name].mean())
        mean, error = paired(areas[MODEL], rest[best])
        print(f"{MODEL} less {best}: {mean:+.4f} ± {error:.4f}")


def paired(one: Array, other: Array) -> tuple[float, float]:
    """Return the mean difference over trials and shares, and its standard error over trials."""
    difference = (one - other).mean(axis=1)
    m = difference.size
    return float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(m)) if m > 1 else np.nan


def plot(results: list[dict[str, Any]], path: Path) -> None:
    """Draw the areas by share of training rows, a panel for each table and share hidden."""
    with drawing():
        across = min(2, len(results))
        down = -(-len(results) // across)
        figure = Figure(figsize=(4.4 * across, 2.7 * down), dpi=150, layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(down, across, squeeze=False).ravel()
        for axes, result in zip(panels, results, strict=False):
            for name, values in result["areas"].items():
                areas = np.array(values)
                error = areas.std(axis=0, ddof=1) / np.sqrt(len(areas)) if len(areas) > 1 else None
                axes.errorbar(
                    result["shares"], areas.mean(axis=0), error, label=name, **LINES[name]
                )
            axes.set_title(
                f"{result['table']}, {result['hidden']} % of features hidden", fontproperties=TITLE
            )
            axes.set(xlabel="training rows, % of all", ylabel="area under ROC curve")
        handles = panels[0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside lower center", ncols=5, frameon=False)
        save(figure, path)


def main() -> None:
    """Run the trials, or read them, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--from", dest="kept", nargs="+", type=Path, default=[])
    parser.add_argument("--hidden", default="25,50")
    parser.add_argument("--shares", default="10,30,50,70,90")
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="number of the first trial")
    parser.add_argument("--chains", type=int, default=8)
    parser.add_argument("--threads", type=int, default=available_threads())
    parser.add_argument("--set", dest="settings", action="append", default=[])
    parser.add_argument("--tuned", action="store_true")
    parser.add_argument("--only", action="store_true", help="iqgme alone")
    parser.add_argument("--json", type=Path, default=None)
    parser.add_argument("--figure", type=Path, default=None)
    said = parser.parse_args()
    results = together([one for path in said.kept for one in json.loads(path.read_text())])
    for path in said.files:
        for hidden in map(int, said.hidden.split(",")):
            results.append(measure(path, hidden, said))
            report(results[-1])
            if said.json is not None:
                said.json.write_text(json.dumps(results) + "\n")
    if not said.files:
        for result in results:
            report(result)
    if said.figure is not None:
        plot(results, said.figure)


if __name__ == "__main__":
    main()
