"""Do tasks gain by sharing experts? Many tasks together, each alone, and all rows as one task.

    python benchmarks/tasks.py FILE [--task paper_task] [--target label] [--rows 20,50,100,300]
        [--hidden 0,25,50,75] [--trials 10] [--chains 4] [--group terrain] [--tasks N]
        [--methods shared,alone,pooled] [--pairs c-e,g-y,...] [--test N] [--json OUT] [--figure PNG]
        [--one-rule]

FILE is a table with numeric features, a column that names tasks and one with two labels, such as
the 29 radar fields with land mines of [Xue and others 2007], of which 19 are used in [iQGME section
4.4.1]; or, with --pairs, a table of pictures `p_...` of letters, in which every task is to tell two
letters apart (section 4.4.2). In every trial so many rows of each task are drawn for training, one
of each label among them, the same share of all features is hidden in training and test rows, and
the other rows are predicted. Printed for each number of rows and share: the mean over tasks of the
area under the ROC curve, its mean and standard error over trials, for `together` (the default),
`shared` (what shared experts say in it), `alone` (a fit for each task) and `pooled` (the task is
not told), and the mean weights of the ways that predict together; and, with --group, how well
similarity, and then nearness, tells pairs of tasks within a group from pairs across (area under the
ROC curve), that of each trial on average, and, as in figures 4.4 and 4.6 of the thesis, the sum
over all trials. --figure draws both, of the first trial of all. With --one-rule tasks have no rules
of their own.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from glfm_cli import plot_tasks
from glfm_cli.classification.classifier import Classifier, fit_classifier
from glfm_cli.classification.features import take
from glfm_cli.classification.fit import Fitting
from glfm_cli.classification.scores import auc
from glfm_cli.classification.tasks import TaskUsage
from glfm_cli.encoding import EncodedColumn
from glfm_cli.latent.iqgme import IqgmeConfig
from glfm_cli.links import LinkConfig
from glfm_cli.schema import Column, ColumnType, Role

Array = np.ndarray


class Problem:
    """Features x (n, P), labels (n,) 0 or 1, tasks (n,) from 0, the group of each task."""

    def __init__(
        self,
        path: Path,
        task: str,
        target: str,
        group: str | None,
        most: int,
        pairs: str | None = None,
    ) -> None:
        table = pq.read_table(path)
        frame = {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}
        if pairs is not None:
            frame = as_pairs(frame, task, target, pairs.split(","))
        here = ~np.isnan(frame[task].astype(np.float64))
        frame = {name: values[here] for name, values in frame.items()}
        names, code = np.unique(frame[task], return_inverse=True)
        keep = code < most
        skip = {task, target, group, "field", "terrain"}
        features = [n for n, v in frame.items() if n not in skip and v.dtype.kind in "fiu"]
        self.x = np.column_stack([frame[n][keep] for n in features]).astype(np.float64)
        labels = np.unique(frame[target])
        self.y = (frame[target][keep] == labels[-1]).astype(np.float64)
        self.task = code[keep].astype(np.float64)
        self.names = tuple(str(name).removesuffix(".0") for name in names[:most])
        first = np.unique(code[keep], return_index=True)[1]
        self.group = None if group is None else frame[group][keep][first]

    @property
    def full_names(self) -> tuple[str, ...]:
        """Return the tasks' names, after those of their groups."""
        if self.group is None:
            return self.names
        return tuple(f"{group} {name}" for group, name in zip(self.group, self.names, strict=True))

    def columns(self, x: Array, task: Array | None) -> list[EncodedColumn]:
        """Return encoded columns, that of the tasks last where there is one."""
        out = []
        for d, values in enumerate(np.ascontiguousarray(x.T)):
            column = Column(f"x{d}", Role.FEATURE, ColumnType.REAL)
            out.append(encoded(column, d, values, ()))
        if task is not None:
            column = Column("task", Role.TASK, ColumnType.CATEGORICAL)
            out.append(encoded(column, x.shape[1], task, self.names))
        return out


def as_pairs(frame: dict[str, Array], task: str, target: str, pairs: list[str]) -> dict[str, Array]:
    """Return the rows of each pair of labels, "a-b", as a task; of three labels rows come twice."""
    rows, number, second = [], [], []
    for j, pair in enumerate(pairs):
        first, other = pair.split("-")
        own = np.flatnonzero(np.isin(frame[target], [first, other]))
        rows.append(own)
        number.append(np.full(own.size, float(j)))
        second.append((frame[target][own] == other).astype(np.int64))
    at = np.concatenate(rows)
    out = {name: values[at] for name, values in frame.items() if name.startswith("p_")}
    return out | {task: np.concatenate(number), target: np.concatenate(second)}


def encoded(column: Column, index: int, x: Array, levels: tuple[str, ...]) -> EncodedColumn:
    """Return an encoded column of values, NaN where missing."""
    return EncodedColumn(column, index, x, ~np.isnan(x), np.zeros(x.size, dtype=bool), levels)


def trial(
    problem: Problem,
    n_rows: int,
    hidden: float,
    chains: int,
    seed: int,
    methods: list[str],
    most_test: int,
    config: IqgmeConfig,
) -> tuple[dict[str, float], TaskUsage]:
    """Return the mean area over tasks by method and the ways' weights; which experts tasks use."""
    rng = np.random.default_rng([seed, n_rows, int(100 * hidden)])
    x = np.where(rng.random(problem.x.shape) < hidden, np.nan, problem.x)
    order = rng.permutation(len(x))
    rank = np.empty(len(x), dtype=int)
    J = len(problem.names)
    for j in range(J):
        own = order[problem.task[order] == j]
        # As in the thesis, a row of each label is among the training rows.
        first = [own[problem.y[own] == label][0] for label in (0.0, 1.0)]
        own = np.concatenate([first, own[~np.isin(own, first)]])
        rank[own] = np.arange(own.size)
    train = np.flatnonzero(rank < n_rows)
    test = np.flatnonzero((rank >= n_rows) & (rank < n_rows + most_test))
    together = problem.columns(x, problem.task)
    pooled = together[:-1]

    def fit(columns: list[EncodedColumn], rows: Array) -> Classifier:
        how = Fitting(config, LinkConfig(), chains, seed)
        return fit_classifier(take(columns, rows), problem.y[rows], 2, how)

    shared = fit(together, train)
    p = {"together": shared.probabilities(take(together, test))}
    if "shared" in methods:
        p["shared"] = replace(shared, pooling=None).probabilities(take(together, test))
    if "pooled" in methods:
        p["pooled"] = fit(pooled, train).probabilities(take(pooled, test))
    if "alone" in methods:
        p["alone"] = np.empty((test.size, 2))
        for j in range(J):
            mine = problem.task[test] == j
            own = fit(pooled, train[problem.task[train] == j])
            p["alone"][mine] = own.probabilities(take(pooled, test[mine]))
    areas = {name: [] for name in p}
    for j in range(J):
        mine = problem.task[test] == j
        y = problem.y[test][mine]
        hit = np.column_stack([1.0 - y, y])
        for name, values in p.items():
            areas[name].append(auc(hit, values[mine]))
    means = {name: float(np.nanmean(values)) for name, values in areas.items()}
    if shared.pooling is not None:
        means |= {f"weight {name}": w for name, w in shared.pooling.weights.items()}
    return means, TaskUsage("task", problem.full_names, shared.usage)


def groups_told(alike: Array, group: Array | None) -> float:
    """Return the probability that a pair within a group is more alike than one across."""
    if group is None:
        return float("nan")
    first, second = np.triu_indices(len(alike), 1)
    within = (group[first] == group[second]).astype(np.float64)
    score = alike[first, second]
    return auc(within[:, None], score[:, None])


def main() -> None:
    """Run the trials and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--task", default="paper_task")
    parser.add_argument("--target", default="label")
    parser.add_argument("--group", default=None)
    parser.add_argument("--rows", default="20,50,100,300")
    parser.add_argument("--hidden", default="0,25,50,75")
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--tasks", type=int, default=10**6)
    parser.add_argument("--methods", default="shared,alone,pooled", help="may be empty")
    parser.add_argument("--pairs", default=None, help="tasks of two labels each: c-e,g-y,...")
    parser.add_argument("--test", type=int, default=10**6, help="rows of each task at most")
    parser.add_argument("--json", type=Path, default=None)
    parser.add_argument("--figure", type=Path, default=None)
    parser.add_argument("--one-rule", action="store_true", help="no rules of tasks' own")
    said = parser.parse_args()
    problem = Problem(said.file, said.task, said.target, said.group, said.tasks, said.pairs)
    config = IqgmeConfig(own_rules=not said.one_rule)
    results = []
    methods = ["together", *said.methods.split(",")] if said.methods else ["together"]
    heads = "".join(f"   {name:<13}" for name in methods)
    print(f"{'hidden':>6} {'rows':>5}{heads}   told by similarity, sum   by nearness, sum")
    for hidden in map(int, said.hidden.split(",")):
        for n_rows in map(int, said.rows.split(",")):
            found = [
                trial(problem, n_rows, hidden / 100, said.chains, s, methods, said.test, config)
                for s in range(said.trials)
            ]
            line = f"{hidden:>5}% {n_rows:>5}"
            for name in methods:
                values = np.array([means[name] for means, _ in found])
                error = values.std(ddof=1) / np.sqrt(values.size) if values.size > 1 else np.nan
                line += f"   {values.mean():.3f} ({error:.3f})"
            for name in (name for name in found[0][0] if name.startswith("weight")):
                line += f"   {name} {np.mean([means[name] for means, _ in found]):.2f}"
            similar = [np.array([one.similarity(), one.nearness()]) for _, one in found]
            if said.figure is not None:
                plot_tasks(found[0][1], said.figure)
                said.figure = None
            for k in range(2):
                each = float(np.mean([groups_told(one[k], problem.group) for one in similar]))
                told = groups_told(np.mean(similar, axis=0)[k], problem.group)
                line += f"   {each:.3f}  {told:.3f}"
            print(line, flush=True)
            every = zip(found, similar, strict=True)
            trials = [(means, one.tolist()) for (means, _), one in every]
            results.append({"hidden": hidden, "rows": n_rows, "trials": trials})
    if said.json is not None:
        said.json.write_text(json.dumps(results) + "\n")


if __name__ == "__main__":
    main()
