"""Error and cover with and without groups and time, on simulated and on real longitudinal tables.

    python benchmarks/groups.py simulated [SEEDS] [--auto] [--whole] [--mice]
    python benchmarks/groups.py TABLE.csv GROUP TIME [SEEDS] [--auto] [--whole] [--mice]

Of the simulated tables four columns depend on one another between and within groups (correlation
0.5): two real ones, a positive and an ordinal one; a quarter of their cells is hidden. Of a real
table so are cells of its numeric columns. Cover is that of 50 % and 95 % intervals of hidden
numbers; the error is a root mean square in units of the column's sd.

With --auto the default model completes the tables, with its trees and without them, else a few
chains of glfm.

With --whole a tenth of the cells is hidden, and of each column all those of a quarter of the groups
besides, of which alone errors and covers are told.

With --mice R's mice completes the columns of numbers of the same tables 20 times by its methods for
groups, 2l.norm and 2l.pan (which R's packages mice and pan have), each with time as a predictor, of
2l.pan with a slope of each group; intervals are those of another normal draw given the 20, on the
log scale of positive columns.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from glfm_cli import impute
from glfm_cli.inference.predictive import predict

HIDDEN, BESIDE = 0.25, 0.1
AT = [0.025, 0.25, 0.75, 0.975]
SETTINGS = {
    "100 groups of 5": {"groups": 100, "rows": 5, "share": 0.5, "ar": 0.0},
    "30 groups of 20, autoregression 0.8": {"groups": 30, "rows": 20, "share": 0.3, "ar": 0.8},
    "3 groups of 400": {"groups": 3, "rows": 400, "share": 0.5, "ar": 0.0},
    "200 groups, two thirds of one row": {"groups": 200, "rows": 4, "share": 0.5, "ar": 0.0},
}


MICE = """
suppressMessages({library(mice); library(pan)})
given <- commandArgs(TRUE)
d <- read.csv(given[1]); group <- given[2]; time <- given[3]; method <- given[4]
d[[group]] <- as.integer(factor(d[[group]]))
plan <- make.predictorMatrix(d); methods <- make.method(d)
for (name in names(d)) if (methods[name] != "") {
    methods[name] <- method
    plan[name, ] <- ifelse(names(d) == name, 0, 1)
    plan[name, group] <- -2
    if (method == "2l.pan") plan[name, time] <- 2
}
done <- mice(d, m = 20, maxit = 5, method = methods, predictorMatrix = plan, printFlag = FALSE,
             seed = as.integer(given[5]))
write.csv(complete(done, "long"), given[6], row.names = FALSE)
"""


class Task(NamedTuple):
    """A table with hidden cells, the whole one, and the entries of its columns without roles."""

    table: pd.DataFrame
    whole: pd.DataFrame
    types: dict[str, object]
    group: str
    time: str

    def hidden(self, name: str) -> np.ndarray:
        """Return the rows of a column whose cells are judged."""
        gone = self.table[name].isna() & self.whole[name].notna()
        if WHOLE:
            gone &= self.table.groupby(self.group)[name].transform("count") == 0
        return np.flatnonzero(gone)


WHOLE = "--whole" in sys.argv


def simulated(seed: int, groups: int, rows: int, share: float, ar: float) -> Task:
    """Return levels of groups, a part `share` of the variance, and autoregressions beside them."""
    rng, S = np.random.default_rng(seed), 4
    root = np.linalg.cholesky(0.5 * np.ones((S, S)) + 0.5 * np.eye(S))
    level = rng.standard_normal((groups, S)) @ root.T
    rest = rng.standard_normal((groups, rows, S)) @ root.T
    for t in range(1, rows):
        rest[:, t] = ar * rest[:, t - 1] + np.sqrt(1.0 - ar**2) * rest[:, t]
    x = (np.sqrt(share) * level[:, None] + np.sqrt(1.0 - share) * rest).reshape(-1, S)
    whole = pd.DataFrame({"x0": x[:, 0], "x1": np.exp(x[:, 1]), "x2": x[:, 2]})
    whole["x3"] = pd.cut(x[:, 3], [-np.inf, -0.5, 0.5, np.inf], labels=["low", "mid", "high"])
    whole["x3"] = whole["x3"].astype(str)
    whole.insert(0, "who", np.repeat([f"g{g}" for g in range(groups)], rows))
    whole.insert(1, "day", np.tile(np.arange(rows, dtype=float), groups))
    if rows == 4:  # most groups have a single row
        first = np.flatnonzero(whole["day"] == 0.0)
        more = np.flatnonzero(whole["who"].isin([f"g{g}" for g in range(0, groups, 3)]))
        whole = whole.iloc[np.union1d(first, more)].reset_index(drop=True)
    types: dict[str, object] = {
        "x0": "real",
        "x1": {"type": "positive", "transform": "log"},
        "x2": "real",
        "x3": {"type": "ordinal", "levels": ["low", "mid", "high"]},
    }
    return hide(whole, types, "who", "day", rng)


def real(path: str, group: str, time: str, seed: int) -> Task:
    """Return a table whose columns of numbers are real, others and those of groups predictors."""
    whole = pd.read_csv(path)
    types: dict[str, object] = {}
    for name in whole.columns:
        if name not in (group, time):
            number = pd.api.types.is_numeric_dtype(whole[name])
            if number:
                whole[name] = whole[name].astype(float)
            same = whole.groupby(group)[name].nunique().max() == 1
            kind = "real" if number else "categorical"
            types[name] = {"type": kind, "role": "predictor"} if same or not number else kind
    whole[time] = whole[time].astype(float)
    return hide(whole, types, group, time, np.random.default_rng(seed))


def hide(
    whole: pd.DataFrame, types: dict[str, object], group: str, time: str, rng: np.random.Generator
) -> Task:
    """Hide a quarter of the cells of all columns that are completed, or of the groups of each."""
    table, code = whole.copy(), pd.factorize(whole[group])[0]
    for name, said in types.items():
        if not (isinstance(said, dict) and said.get("role") == "predictor"):
            gone = rng.random(len(table)) < (BESIDE if WHOLE else HIDDEN)
            if WHOLE:
                gone |= (rng.random(code.max() + 1) < HIDDEN)[code]
            table.loc[gone, name] = None
    return Task(table, whole, types, group, time)


SHORT = {"model": "glfm", "chains": 4, "warmup": 200, "draws": 100}
BY_TREES: dict[str, dict[str, object]] = {"": {}, ", no trees": {"settings": {"forest": 0}}}


def measure(
    task: Task, how: dict[str, object], seed: int
) -> Iterator[tuple[str, list[float]]]:
    """Yield the roles, and 95 % and 50 % cover, the error, and the share of levels that are right.
    """
    for name, group, time in (
        ("without", "ignore", {"type": "real", "role": "predictor"}),
        ("group", "group", {"type": "real", "role": "predictor"}),
        ("group and time", "group", {"type": "real", "role": "time"}),
    ):
        types = {"columns": {task.group: group, task.time: time, **task.types}}
        done = impute(task.table, types, seed=seed, **how)  # type: ignore[arg-type]
        links = [link.name for link in done.posterior.links]
        hidden = {c: task.hidden(c) for c in task.types}
        cells = {links.index(c): rows for c, rows in hidden.items() if rows.size}
        inside, half, error, right = [], [], [], []
        for d, found in predict(done.posterior, cells, AT).items():
            truth = task.whole[links[d]].to_numpy()
            true = truth[cells[d]]
            if found.probabilities is not None:
                made = done.table.column(links[d]).to_numpy()
                right.append(float(np.mean(made[cells[d]] == true)))
                continue
            q = found.quantiles
            inside.append((true >= q[:, 0]) & (true <= q[:, 3]))
            half.append((true >= q[:, 1]) & (true <= q[:, 2]))
            logged = isinstance(task.types[links[d]], dict)
            middle = np.log(q[:, 1:3]).mean(axis=1) if logged else q[:, 1:3].mean(axis=1)
            true, truth = (np.log(true), np.log(truth)) if logged else (true, truth)
            error.append(np.mean((middle - true) ** 2) / np.nanvar(truth.astype(float)))
        found_all = [np.mean(np.concatenate(part)) for part in (inside, half)]
        yield name, [*found_all, np.sqrt(np.mean(error)), np.mean(right) if right else np.nan]


def measure_mice(task: Task, seed: int) -> Iterator[tuple[str, list[float]]]:
    """Yield the same of the methods of mice for groups."""
    numbers = [c for c in task.types if task.whole[c].dtype == float]
    table = task.table[[task.group, task.time, *numbers]].copy()
    whole = task.whole[numbers].copy()
    for c in numbers:
        if isinstance(task.types[c], dict):
            table[c], whole[c] = np.log(table[c].astype(float)), np.log(whole[c])
    for method in ("2l.norm", "2l.pan"):
        with tempfile.TemporaryDirectory() as folder:
            given, done = Path(folder, "given.csv"), Path(folder, "done.csv")
            table.to_csv(given, index=False, na_rep="NA")
            told = [str(given), task.group, task.time, method, str(seed), str(done)]
            command = ["Rscript", "-e", MICE, *told]
            made = subprocess.run(command, capture_output=True, text=True, check=False)
            if made.returncode:
                print(f"mice {method}: {made.stderr.strip()[-200:]}", file=sys.stderr)
                continue
            x = pd.read_csv(done)[numbers].to_numpy().reshape(20, len(table), len(numbers))
        inside, half, error = [], [], []
        for k, c in enumerate(numbers):
            rows = task.hidden(c)
            true = whole[c].to_numpy()
            mean, sd = x[:, rows, k].mean(axis=0), x[:, rows, k].std(axis=0, ddof=1)
            away = np.abs(true[rows] - mean) / (sd * np.sqrt(1.0 + 1.0 / len(x)))
            inside.append(away <= stats.t.ppf(0.975, len(x) - 1))
            half.append(away <= stats.t.ppf(0.75, len(x) - 1))
            error.append(np.mean((true[rows] - mean) ** 2) / np.var(true))
        covers = [np.mean(np.concatenate(part)) for part in (inside, half)]
        yield f"mice, {method}", [*covers, np.sqrt(np.mean(error)), np.nan]


def main() -> None:
    """Print a line for each table and choice of roles."""
    given = [one for one in sys.argv[1:] if not one.startswith("--")]
    ways = BY_TREES if "--auto" in sys.argv else {"": SHORT}
    if given[0] == "simulated":
        tasks = {name: lambda seed, s=s: simulated(seed, **s) for name, s in SETTINGS.items()}
        seeds = int(given[1]) if len(given) > 1 else 4
    else:
        tasks = {given[0]: lambda seed: real(given[0], given[1], given[2], seed)}
        seeds = int(given[3]) if len(given) > 3 else 4
    print("| table | roles | 95 % | 50 % | error | levels right |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, make in tasks.items():
        found: dict[str, list[list[float]]] = {}
        for seed in range(seeds):
            task = make(100 + seed)
            for way, how in ways.items():
                for roles, values in measure(task, how, seed):
                    found.setdefault(roles + way, []).append(values)
            for roles, values in measure_mice(task, seed) if "--mice" in sys.argv else ():
                found.setdefault(roles, []).append(values)
        for roles, values in found.items():
            inside, half, error, right = np.mean(values, axis=0)
            share = f"{inside:.1%} | {half:.1%} | {error:.3f} | {right:.1%}"
            print(f"| {name} | {roles} | {share} |", flush=True)


if __name__ == "__main__":
    main()
