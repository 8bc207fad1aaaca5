"""Do rows of one group lie together on the map? Beside other maps, cells being hidden.

    python benchmarks/map_quality.py [--tables wdbc,digits,wine,iris] [--rates 0,0.3,0.5]
        [--chains 3] [--methods clgp,pca,famd,tsne,umap] [--out map_quality.jsonl]

The tables are scikit-learn's, 500 random rows of its digits; FILE:COLUMN, and FILE:COLUMN@ROWS for
random rows, is a table with a types file beside it. No map sees the column of the groups. A share
of the other cells is hidden completely at random, the same for all. Printed is the share of rows
whose group is that of most of the ten nearest rows on the map: of `clgp`; of principal components,
t-SNE and UMAP of standardized, and FAMD's components of weighted, columns that are completed by
their means and have a dummy for each level. Needs scikit-learn, and umap-learn for `umap`.

Results go to a file, one line each, which a later run of the same command goes on with.
"""

from __future__ import annotations

import argparse
import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from paper_figures import load
from sklearn import datasets
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from sklearn.neighbors import NearestNeighbors

from glfm_cli import explore
from glfm_cli.encoding import encode
from glfm_cli.schema import Schema, read_schema

NEIGHBOURS = 10
DIGITS = 500  # rows
OWN = {
    "wdbc": (datasets.load_breast_cancer, "positive"),
    "wine": (datasets.load_wine, "positive"),
    "iris": (datasets.load_iris, "positive"),
    "digits": (datasets.load_digits, "count"),
}


def table_of(name: str) -> tuple[pa.Table, Schema, np.ndarray]:
    """Return a table without its groups, what its columns mean, and the groups (n,)."""
    if name in OWN:
        make, kind = OWN[name]
        x, groups = make(return_X_y=True)
        if len(x) > 2 * DIGITS:
            some = np.random.default_rng(0).permutation(len(x))[:DIGITS]
            x, groups = x[some], groups[some]
        columns = {f"c{d:02d}": y for d, y in enumerate(x.T) if np.ptp(y) > 0}
        if kind == "count":
            columns = {key: y.astype(np.int64) for key, y in columns.items()}
        types = {"columns": dict.fromkeys(columns, kind)}
        return pa.table(columns), Schema.from_dict(types), groups
    file, _, column = name.partition(":")
    column, _, rows = column.partition("@")
    path = Path(file)
    base = path.name.split(".")[0]
    table, types = load(path.parent, f"{base}@{rows}" if rows else base)
    groups = np.array(table[column].to_pylist(), dtype=str)
    schema = read_schema(types)
    kept = tuple(one for one in schema.resolve(table.column_names) if one.name != column)
    return table.drop_columns([column]), replace(schema, columns=kept), groups


def hide(table: pa.Table, schema: Schema, rate: float, seed: int) -> pa.Table:
    """Return the table with a share of the cells of its columns hidden; no row loses all."""
    names = [column.name for column in schema.columns if column.completed]
    key = np.random.default_rng([seed, 5]).random((table.num_rows, len(names)))
    gap = (key < rate) & (key < key.max(axis=1, keepdims=True))
    for d, name in enumerate(names):
        at = table.schema.get_field_index(name)
        cells = [None if g else v for v, g in zip(table[name].to_pylist(), gap[:, d], strict=True)]
        table = table.set_column(at, name, pa.array(cells, table[name].type))
    return table


def completed(table: pa.Table, schema: Schema) -> tuple[np.ndarray, np.ndarray]:
    """Return mean-completed columns and dummies, standardized, and as FAMD weighs them."""
    plain, weighed = [], []
    for encoded in encode(table, schema).columns:
        y, nominal = encoded.x[:, None].astype(float), encoded.column.nominal
        if nominal:
            levels = np.arange(len(encoded.levels))
            y = np.where(encoded.observed[:, None], y == levels, np.nan)
        y = np.where(np.isnan(y), np.nanmean(y, axis=0), y)
        share, sd = y.mean(axis=0), y.std(axis=0)
        y, share, sd = y[:, sd > 0] - share[sd > 0], share[sd > 0], sd[sd > 0]
        plain.append(y / sd)
        weighed.append(y / (np.sqrt(share) if nominal else sd))
    return np.hstack(plain), np.hstack(weighed)


def places(
    method: str, table: pa.Table, schema: Schema, seed: int, chains: int, settings: dict[str, Any]
) -> np.ndarray:
    """Return the map of the rows (n, 2)."""
    if method == "clgp":
        found: Any = explore(
            table, schema, model="clgp", chains=chains, seed=seed, threads=1, settings=settings
        )
        return np.asarray(found.map.position)
    plain, weighed = completed(table, schema)
    if method == "umap":
        from umap import UMAP

        return np.asarray(UMAP(random_state=seed).fit_transform(plain))
    if method == "tsne":
        return np.asarray(TSNE(random_state=seed, init="pca").fit_transform(plain))
    return np.asarray(PCA(2).fit_transform(weighed if method == "famd" else plain))


def accuracy(x: np.ndarray, groups: np.ndarray) -> float:
    """Return the share of rows whose group most of their nearest rows have, the nearer at ties."""
    near = NearestNeighbors(n_neighbors=NEIGHBOURS).fit(x).kneighbors(return_distance=False)
    hits = 0
    for own, others in zip(groups, groups[near], strict=True):
        names, first, n = np.unique(others, return_index=True, return_counts=True)
        hits += own == names[np.lexsort((first, -n))[0]]
    return hits / len(groups)


def main() -> None:
    """Print a line a map."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--tables", default="wdbc,wine,iris,digits")
    parser.add_argument("--rates", default="0,0.3,0.5")
    parser.add_argument("--methods", default="pca,famd,tsne,umap,clgp")
    parser.add_argument("--chains", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=1, help="sets of hidden cells")
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--out", type=Path, default=Path("map_quality.jsonl"))
    asked = parser.parse_args()
    warnings.filterwarnings("ignore")
    lines = asked.out.read_text().splitlines() if asked.out.exists() else []
    done = {tuple(json.loads(line)[:-1]) for line in lines}
    settings = dict(item.split("=", 1) for item in asked.settings)
    for name in asked.tables.split(","):
        table, schema, groups = table_of(name)
        for rate in map(float, asked.rates.split(",")):
            for seed in range(asked.seeds):
                hidden = hide(table, schema, rate, seed)
                for method in asked.methods.split(","):
                    own = [asked.chains, *asked.settings] if method == "clgp" else []
                    key = (name, rate, seed, " ".join(map(str, [method, *own])))
                    if key in done:
                        continue
                    x = places(method, hidden, schema, seed, asked.chains, settings)
                    line = json.dumps([*key, round(accuracy(x, groups), 4)])
                    print(line, flush=True)
                    with asked.out.open("a") as file:
                        file.write(line + "\n")


if __name__ == "__main__":
    main()
