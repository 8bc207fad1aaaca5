"""What learning on a sample of the rows costs in error, and saves in time.

    python benchmarks/large_tables.py TABLE TYPES [--learn 5000 10000 all] [--model auto]

30 % of the observed cells are hidden. The table is completed with each number of rows to learn
from. Printed, a line each: the error of the hidden cells, as in docs/measured (root mean square
error over the column's range, share of wrong labels, rank distance over the levels less one; mean
over columns), the share of numbers inside their 95 % intervals, and seconds of processor time from
table to table. `--rows N` takes N rows of the table first, `--draws-folded N` that many draws;
`--model`, `--effort` and `--chains` are those of `glfm impute`, `--seed` hides the cells, too.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

import glfm_cli.completion.new_rows as new_rows
from glfm_cli import impute
from glfm_cli.encoding import Data, encode
from glfm_cli.io import read_table
from glfm_cli.schema import read_schema

RATE = 0.3


def hide(table: pa.Table, data: Data, rng: np.random.Generator) -> tuple[pa.Table, dict]:
    """Return the table without some of its cells, and by column the rows of these."""
    hidden = {}
    for d, column in enumerate(data.columns):
        if not column.column.completed:
            continue
        at = column.observed & (rng.random(data.n_rows) < RATE)
        hidden[d] = np.flatnonzero(at)
        cells = table.column(column.index).combine_chunks()
        blank = pa.scalar("" if pa.types.is_string(cells.type) else None, cells.type)
        if not pa.types.is_string(cells.type) and not pa.types.is_large_string(cells.type):
            kept = pa.array(~at)
            cells = pa.compute.if_else(kept, cells, pa.scalar(None, cells.type))
        else:
            cells = pa.compute.if_else(pa.array(~at), cells, blank)
        table = table.set_column(column.index, table.schema.field(column.index), cells)
    return table, hidden


def error(column: object, guess: np.ndarray, truth: np.ndarray) -> float:
    """Return the normalised error of one column."""
    if not column.levels:
        spread = float(np.ptp(column.x[column.observed]))
        return float(np.sqrt(np.mean((guess - truth) ** 2))) / spread if spread else 0.0
    if column.column.type == "ordinal":
        return float(np.mean(np.abs(guess - truth))) / max(len(column.levels) - 1, 1)
    return float(np.mean(guess != truth))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", type=Path)
    parser.add_argument("types", type=Path)
    parser.add_argument("--learn", nargs="+", default=["5000", "10000", "all"])
    parser.add_argument("--rows", type=int, help="at most so many rows of the table")
    parser.add_argument("--model", default="auto")
    parser.add_argument("--effort")
    parser.add_argument("--chains", type=int)
    parser.add_argument("--draws-folded", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    if options.draws_folded:
        new_rows.DRAWS = options.draws_folded
    table, schema = read_table(options.table), read_schema(options.types)
    rng = np.random.default_rng(options.seed)
    if options.rows and options.rows < table.num_rows:
        table = table.take(np.sort(rng.choice(table.num_rows, options.rows, replace=False)))
    data = encode(table, schema)
    gappy, hidden = hide(table, data, rng)
    for learn in options.learn:
        began = time.process_time()
        found = impute(
            gappy,
            schema,
            model=options.model,
            effort=options.effort,
            chains=options.chains,
            seed=options.seed,
            threads=options.threads,
            learn_rows=learn,
        )
        seconds = time.process_time() - began
        errors, inside = [], []
        parts = {part.encoded.column.name: part for part in found.columns}
        for d, rows in hidden.items():
            column, part = data.columns[d], parts[data.columns[d].column.name]
            at = np.searchsorted(part.marginal.rows, rows)
            errors.append(error(column, part.estimate[at], column.x[rows]))
            if part.marginal.probabilities is None:
                low, _, high = part.marginal.quantiles[at].T
                inside.append(np.mean((column.x[rows] >= low) & (column.x[rows] <= high)))
        line = {"table": options.table.name, "rows": data.n_rows, "seed": options.seed}
        line |= {"model": options.model, "effort": options.effort, "chains": options.chains}
        line |= {"learn": learn, "draws": new_rows.DRAWS}
        line |= {"error": round(float(np.mean(errors)), 5), "cpu": round(seconds, 1)}
        line |= {"inside": round(float(np.mean(inside)), 4) if inside else None}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
