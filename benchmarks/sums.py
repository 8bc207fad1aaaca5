"""Rows that lack several columns which say one another together, such as the parts of a sum.

    python benchmarks/sums.py FOLDER [--rows 800] [--share 0.2] [--seeds 1,2] [--out FILE]

Of a share of the rows of counties and nhanes in FOLDER, and of simulated soils of sand, silt and
clay, all these columns are hidden, and completed beside the other columns of numbers: by trees that
draw each in turn (`forest` with `together=1`), by trees that draw them together (`forest`) and by
`auto`. Printed are, of the hidden cells of each column, the root mean square error in sds of the
column, and which share of them 95 % intervals hold, means over seeds.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
from paper_figures import load

from glfm_cli import impute
from glfm_cli.arrays import Array
from glfm_cli.encoding import encode
from glfm_cli.schema import read_schema

GROUPS = {
    "counties": ("democrat", "republican", "Perot"),
    "nhanes": ("Diastolic BP", "Systolic BP", "Pulse pressure"),
}
SOILS = ("sand", "silt", "clay")
SIMULATED, GONE = 500, 0.25  # soils, and the share of them without a texture
WAYS: dict[str, tuple[str, dict[str, object]]] = {
    "in turn": ("forest", {"together": 1.0}),
    "together": ("forest", {}),
    "auto": ("auto", {}),
}


def soils(rng: np.random.Generator) -> dict[str, Array]:
    """Return soils whose parts go with the height, the rain and their organic matter."""
    height, rain = rng.standard_normal((2, SIMULATED))
    sand = 45 - 7 * height + rng.normal(0, 5, SIMULATED)
    clay = 25 + 6 * height - 3 * rain + rng.normal(0, 4, SIMULATED)
    organic = 2 + 0.05 * clay + 0.3 * rain + rng.normal(0, 0.3, SIMULATED)
    parts = dict(zip(SOILS, (sand, 100.0 - sand - clay, clay), strict=True))
    return {**parts, "height": height, "rain": rain, "organic": organic}


def numbers_of(folder: Path, name: str, rows: int, rng: np.random.Generator) -> dict[str, Array]:
    """Return the numeric columns of some rows of a table, NaN where missing."""
    table, types = load(folder, name)
    keep = np.sort(rng.choice(table.num_rows, min(rows, table.num_rows), replace=False))
    data = encode(table.take(pa.array(keep)), read_schema(types), file=name)
    return {c.column.name: c.x for c in data.columns if not c.levels}


def completed(
    cells: Mapping[str, Array], group: tuple[str, ...], gone: Array, way: str, seed: int
) -> Iterator[tuple[str, float, float]]:
    """Yield each column of the group, its error in sds, and what 95 % intervals hold."""
    model, settings = WAYS[way]
    mask = {name: np.isnan(x) | (gone & (name in group)) for name, x in cells.items()}
    table = pa.table({name: pa.array(x, mask=mask[name]) for name, x in cells.items()})
    types = {"columns": dict.fromkeys(cells, "real")}
    done = impute(table, types, model=model, settings=settings or None, seed=seed, threads=1)
    for column in done.columns:
        if (name := column.encoded.column.name) not in group:
            continue
        truth = cells[name][np.flatnonzero(mask[name])]
        known = ~np.isnan(truth)
        low, _, high = column.marginal.quantiles[known].T
        error = column.estimate[known] - truth[known]
        inside = (low <= truth[known]) & (truth[known] <= high)
        yield name, float(np.sqrt(np.mean(error**2)) / np.nanstd(cells[name])), inside.mean()


def main() -> None:
    """Print a line a column and way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=800)
    parser.add_argument("--share", type=float, default=0.2)
    parser.add_argument("--seeds", default="1,2")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    lines: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for seed in map(int, options.seeds.split(",")):
        for name, group in {**GROUPS, "soils": SOILS}.items():
            rng, simulated = np.random.default_rng(seed), name == "soils"
            cells = soils(rng) if simulated else numbers_of(options.folder, name, options.rows, rng)
            n = next(iter(cells.values())).size
            gone = rng.random(n) < (GONE if simulated else options.share)
            for way in WAYS:
                for column, *found in completed(cells, group, gone, way, seed):
                    lines.setdefault((name, column, way), []).append((found[0], found[1]))
    rows = [(*key, *np.mean(found, axis=0).round(3).tolist()) for key, found in lines.items()]
    print("| table | column | drawn | error | 95 % intervals |\n| --- | --- | --- | --- | --- |")
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |")
    if options.out:
        with options.out.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(rows)


if __name__ == "__main__":
    main()
