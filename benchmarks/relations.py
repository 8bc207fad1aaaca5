"""Columns that depend on columns, with a known truth: how often intervals hold it.

    python benchmarks/relations.py [TABLES] [MODEL] [--errors]

A quarter of the cells is hidden at random in tables of 300 children: height and weight and the body
mass index that follows, two blood pressures of which one is less, births of girls alone, and three
expenses that add up. Printed are, by column and for those of several missing parts, the cover of
95 % and 50 % intervals and the number of cells; cells that follow from known ones are left out.
Rules are checked in every cell of 20 versions. With `--errors` instead the root mean square errors
of the hidden cells, in sds of their column, with the rules of equations and inequalities and
without them: of all, and of those that do not follow from known cells.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa

from glfm_cli import impute
from glfm_cli.arrays import Array
from glfm_cli.completion.complete import Filling, complete

N, HIDDEN, VERSIONS = 300, 0.25, 20
PARTS = ("rent", "food", "rest")
TYPES: dict[str, Any] = {
    "age": "positive",
    "sex": "categorical",
    "height": "positive",
    "weight": "positive",
    "bmi": {"type": "positive", "formula": "weight / (height / 100) ** 2"},
    "low": {"type": "real", "less_than": "high"},
    "high": "real",
    "births": {"type": "count", "only_if": 'sex == "f"'},
    **{name: {"type": "positive", "parts_of": "total"} for name in PARTS},
    "total": "positive",
}


def simulate(seed: int) -> tuple[pa.Table, dict[str, Array]]:
    """Return a table, and the truth."""
    rng = np.random.default_rng(seed)
    age, sex = rng.uniform(12, 40, N), rng.choice(["f", "m"], N)
    x = rng.normal(size=N)
    height = np.exp(5.0 + 0.08 * (sex == "m") + 0.05 * rng.normal(size=N))
    index = np.exp(3.0 + 0.01 * (age - 25) + 0.12 * x + 0.08 * rng.normal(size=N))
    low = 75 + 0.3 * age + 5 * x + 5 * rng.normal(size=N)
    true: dict[str, Array] = {"age": age, "sex": sex, "height": height}
    true["weight"] = index * (height / 100) ** 2
    true["bmi"] = true["weight"] / (height / 100) ** 2
    true |= {"low": low, "high": low + np.exp(2.2 + 0.3 * x + 0.5 * rng.normal(size=N))}
    true["births"] = np.where(sex == "f", rng.poisson(0.08 * age), np.nan)
    for name, mean in zip(PARTS, (3.0, 2.5, 2.0), strict=True):
        true[name] = np.exp(mean + 0.3 * x + 0.4 * rng.normal(size=N))
    true["total"] = np.sum([true[name] for name in PARTS], axis=0)
    cells = {}
    for name, values in true.items():
        hidden = (rng.random(N) < HIDDEN) & (name != "age")
        if name == "births":
            hidden |= np.isnan(values)
        kind = pa.int64() if name == "births" else None
        cells[name] = pa.array(np.nan_to_num(values) if kind else values, kind, mask=hidden)
    return pa.table(cells), true


def check(table: pa.Table) -> None:
    """Check that every rule holds in every row."""
    x = {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}
    bmi = x["weight"] / (x["height"] / 100) ** 2
    assert np.all(np.abs(x["bmi"] / bmi - 1.0) < 1e-9)
    assert np.all(x["low"] < x["high"])
    assert np.array_equal(~np.isnan(x["births"].astype(float)), x["sex"] == "f")
    parts = np.sum([x[name] for name in PARTS], axis=0)
    assert np.all(np.abs(parts / x["total"] - 1.0) < 1e-9)


def _type(said: Any) -> Any:
    return {"type": said["type"]} if isinstance(said, dict) else said


FAMILIES = (("height", "weight", "bmi"), ("low",), ("high",), (*PARTS, "total"))
PLAIN = {name: said if name == "births" else _type(said) for name, said in TYPES.items()}


def errors(tables: int, model: str) -> None:
    """Print errors with and without rules."""
    sums = defaultdict(list)
    for seed in range(tables):
        table, true = simulate(seed)
        made = [impute(table, {"columns": t}, model=model, seed=seed).table for t in (TYPES, PLAIN)]
        known = {name: table[name].is_valid().to_numpy() for name in true}
        for family in FAMILIES:
            for name in family:
                others = [known[other] for other in family if other != name]
                follows = np.all(others, axis=0) if others else np.zeros(N, dtype=bool)
                off = [(one[name].to_numpy() - true[name]) / true[name].std() for one in made]
                for which, cells in (("all", ~known[name]), ("open", ~known[name] & ~follows)):
                    squares = [float(np.sum(x[cells] ** 2)) for x in off]
                    sums[name, which].append([*squares, int(cells.sum())])
    for (name, which), found in sums.items():
        x = np.array(found)
        each = np.sqrt(x[:, :2] / x[:, 2:])
        gain, n = each[:, 0] - each[:, 1], x[:, 2].sum()
        rules, none = np.sqrt(x[:, :2].sum(axis=0) / n)
        print(
            f"{name:8s} {which:5s} {rules:.3f} with, {none:.3f} without; {n:.0f} cells, difference "
            f"{gain.mean():+.3f} +- {gain.std(ddof=1) / np.sqrt(tables):.3f}"
        )


def covers(tables: int, model: str) -> None:
    """Print how often intervals hold the truth, and check every version."""
    inside: dict[str, dict[float, list[bool]]] = defaultdict(lambda: {0.95: [], 0.5: []})
    for seed in range(tables):
        table, true = simulate(seed)
        types = {"columns": TYPES}
        done = impute(table, types, model=model, seed=seed)
        half = complete(done.run, done.data, table, Filling(seed, interval=0.5))
        for interval, found in ((0.95, done), (0.5, half)):
            for part in found.columns:
                name, rows = part.encoded.column.name, part.marginal.rows
                if part.encoded.levels or not rows.size:
                    continue
                low, _, high = part.marginal.quantiles.T
                hit = (true[name][rows] >= low) & (true[name][rows] <= high)
                counted = ~part.encoded.observed[rows] & ~np.isnan(true[name][rows])
                inside[name][interval] += list(hit[counted])
                if name in PARTS:
                    counted &= table["total"].is_valid().to_numpy()[rows]
                    inside["parts of a known sum"][interval] += list(hit[counted])
        for version in (done.table, *done.multiple(VERSIONS).tables()):
            check(version)
    for name, hits in inside.items():
        wide, narrow = (100 * np.mean(hits[p]) for p in (0.95, 0.5))
        print(f"{name:22s} {wide:5.1f} % {narrow:5.1f} %  {len(hits[0.95])} cells")
    inside.pop("parts of a known sum", None)  # they are among the others
    every = [[hit for hits in inside.values() for hit in hits[p]] for p in (0.95, 0.5)]
    print("all", *(f"{100 * np.mean(hits):.1f} %" for hits in every))


def main() -> None:
    """Print covers, or errors."""
    given = [word for word in sys.argv[1:] if word != "--errors"]
    tables = int(given[0]) if given else 4
    model = given[1] if len(given) > 1 else "auto"
    if "--errors" in sys.argv:
        errors(tables, model)
        return
    covers(tables, model)


if __name__ == "__main__":
    main()
