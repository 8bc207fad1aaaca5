"""Are forecasts of columns with an atom (income from capital, rainfall) calibrated in both parts?

    python benchmarks/amounts.py FOLDER adult [--rows N] [--seed 5] [--versions 100] [--model glfm]

A table of FOLDER, or that many of its rows, has 30 % of the cells of every column hidden completely
at random and is completed with the defaults. Of every column in which one value has a probability
of its own are printed the hidden cells with another value, how many of these lie in the central 50
and 95 % of such values of the versions (by their rank, ties broken at random; cells of at least
three such versions), and for a quarter of the hidden cells each, by their probability of the atom,
that probability and the share of cells that are there.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
from paper_figures import load

from glfm_cli import impute
from glfm_cli.schema import read_schema
from glfm_cli.schema.atoms import atom_of

HIDDEN, FEWEST = 0.3, 3


def numbers(column: pa.ChunkedArray) -> np.ndarray:
    """Return the cells of a column as numbers, NaN where they are none."""
    return np.array([float(x) if x not in (None, "") else np.nan for x in column.to_pylist()])


def main() -> None:
    """Print a line a column."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("table")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--versions", type=int, default=100)
    parser.add_argument("--model", default="glfm")
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    table, types = load(options.folder, options.table)
    if options.rows:
        table = table.take(np.sort(rng.choice(table.num_rows, options.rows, replace=False)))
    hidden, given = {}, table
    for i, name in enumerate(table.column_names):
        hidden[name] = rng.random(table.num_rows) < HIDDEN
        cells = pa.array(table[name].to_pylist(), mask=hidden[name])
        given = given.set_column(i, name, cells)
    atoms = {}
    for column in read_schema(types).columns:
        if column.type is not None and column.numeric:
            x = numbers(table[column.name])
            atoms[column.name] = atom_of(column, x[~np.isnan(x)])
    done = impute(given, types, seed=1, model=options.model)
    drawn: dict[str, list[np.ndarray]] = {n: [] for n, at in atoms.items() if at is not None}
    for version in done.multiple(options.versions).tables():
        for name, versions in drawn.items():
            versions.append(numbers(version[name]))
    for name, versions in drawn.items():
        x, at = numbers(table[name]), atoms[name]
        rows = np.flatnonzero(hidden[name] & ~np.isnan(x))
        y, x = np.array(versions)[:, rows], x[rows]
        beside = y != at
        places = []
        for i in np.flatnonzero((x != at) & (beside.sum(axis=0) >= FEWEST)):
            others = y[beside[:, i], i]
            below, ties = np.sum(others < x[i]), np.sum(others == x[i])
            places.append((below + rng.random() * (ties + 1)) / (others.size + 1))
        u, p = np.array(places), 1.0 - beside.mean(axis=0)
        inside = [float(np.mean(np.abs(u - 0.5) < half)) for half in (0.25, 0.475)]
        quarters = np.array_split(np.argsort(p, kind="stable"), 4)
        said = [f"{p[q].mean():.3f}/{np.mean(x[q] == at):.3f}" for q in quarters]
        print(f"{name:16}{u.size:6}{inside[0]:8.3f}{inside[1]:8.3f}   {' '.join(said)}")


if __name__ == "__main__":
    main()
