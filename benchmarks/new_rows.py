"""Is completing new rows with a kept fit as good as fitting all rows together?

    python benchmarks/new_rows.py FOLDER [--tables a,b] [--seeds 1] [--out FILE]

For every NAME.csv(.gz) with NAME.types.yaml in FOLDER (`sample_data` by default): a fifth of the
rows is held out and 30 % of its observed cells are hidden. They are completed twice: by a fit of
all rows together, and by a fit of the other rows alone into which the held-out ones are folded.
Printed for each table is the error of the hidden cells, as in docs/measured: root mean square
error over the column's range, share of wrong labels, rank distance over the levels less one; mean
over columns. Beside it the error of the column's mean, median or mode, and seconds of processor
time: of both fits, and of folding in.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
import zlib
from pathlib import Path

import numpy as np

from glfm_cli.completion import Fitted, prepare
from glfm_cli.completion.estimates import point
from glfm_cli.encoding import Data
from glfm_cli.inference.executors import available_threads
from glfm_cli.inference.posterior import Posterior
from glfm_cli.inference.predictive import predict
from glfm_cli.inference.sampling import sample
from glfm_cli.io import read_table
from glfm_cli.options import CHAINS, DRAWS, THIN, WARMUP
from glfm_cli.schema import read_schema

HELD_OUT = 0.2
RATE = 0.3
AT = (0.025, 0.5, 0.975)


def part(data: Data, rows: np.ndarray, hidden: np.ndarray | None = None) -> Data:
    """Return some rows of an encoded table, with the cells of a mask (n, D) taken out."""
    columns = []
    for d, encoded in enumerate(data.columns):
        x = encoded.x[rows].copy()
        if hidden is not None:
            x[hidden[:, d]] = np.nan
        seen = ~np.isnan(x)
        columns.append(dataclasses.replace(encoded, x=x, observed=seen, requested=~seen))
    return dataclasses.replace(data, n_rows=rows.size, columns=tuple(columns))


def hide(data: Data, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return which cells of the rows are hidden (n, D); each row keeps one."""
    observed = np.column_stack([encoded.observed[rows] for encoded in data.columns])
    hidden = observed & (rng.random(observed.shape) < RATE)
    for i in np.flatnonzero(~(observed & ~hidden).any(axis=1) & hidden.any(axis=1)):
        hidden[i, rng.choice(np.flatnonzero(hidden[i]))] = False
    return hidden


def error(data: Data, d: int, guess: np.ndarray, truth: np.ndarray) -> float:
    """Return the normalised error of one column."""
    encoded = data.columns[d]
    if not encoded.levels:
        spread = float(np.ptp(encoded.x[encoded.observed]))
        return float(np.sqrt(np.mean((guess - truth) ** 2))) / spread if spread else 0.0
    if encoded.column.type == "ordinal":
        return float(np.mean(np.abs(guess - truth))) / max(len(encoded.levels) - 1, 1)
    return float(np.mean(guess != truth))


def errors(data: Data, posterior: Posterior, cells: dict, truth: dict) -> float:
    """Return the mean over columns of the errors of a posterior's estimates."""
    marginals = predict(posterior, cells, AT)
    found = [
        error(data, d, point(posterior.links[d], marginals[d], "auto"), truth[d]) for d in cells
    ]
    return float(np.mean(found))


def baseline(data: Data, cells: dict, truth: dict) -> float:
    """Return the same of the column's mean, median or mode."""
    found = []
    for d in cells:
        encoded = data.columns[d]
        x = encoded.x[encoded.observed]
        if not encoded.levels:
            value = x.mean()
        elif encoded.column.type == "ordinal":
            value = np.median(x)
        else:
            value = float(np.bincount(x.astype(int)).argmax())
        found.append(error(data, d, np.full(truth[d].size, value), truth[d]))
    return float(np.mean(found))


def compare(path: Path, types: Path, seed: int, options: argparse.Namespace) -> dict:
    """Return the errors of both ways on one table."""
    table, schema = read_table(path), read_schema(types)
    if table.num_rows > options.rows:
        keep = np.random.default_rng(0).choice(table.num_rows, options.rows, replace=False)
        table = table.take(np.sort(keep))
    rng = np.random.default_rng([zlib.crc32(path.name.encode()), seed])
    plan = {"chains": options.chains, "warmup": WARMUP, "draws": DRAWS, "thin": THIN}
    common = {"model": "glfm", "seed": seed, "settings": None, **plan}
    _, data, _ = prepare(table, schema, **common)
    order = rng.permutation(data.n_rows)
    n_new = int(HELD_OUT * data.n_rows)
    new, old = np.sort(order[:n_new]), np.sort(order[n_new:])
    hidden = hide(data, new, rng)
    cells = {d: np.flatnonzero(hidden[:, d]) for d in range(hidden.shape[1]) if hidden[:, d].any()}
    truth = {d: data.columns[d].x[new][rows] for d, rows in cells.items()}
    learnt, gappy = part(data, old), part(data, new, hidden)

    shown = np.zeros((old.size, hidden.shape[1]), dtype=bool)
    everything = part(data, np.concatenate([old, new]), np.vstack([shown, hidden]))
    problem, _, schedule = prepare(table, schema, data=everything, **common)
    began = time.process_time()
    together = sample(problem, schedule, threads=options.threads).posterior
    result = {"table": path.name.split(".")[0], "rows": data.n_rows, "new": int(new.size)}
    result["seconds_together"] = time.process_time() - began
    shifted = {d: rows + old.size for d, rows in cells.items()}
    result["baseline"] = baseline(learnt, cells, truth)
    result["together"] = errors(data, together, shifted, truth)

    problem, _, schedule = prepare(table, schema, data=learnt, **common)
    began = time.process_time()
    posterior = sample(problem, schedule, threads=options.threads).posterior
    result["seconds_fit"] = time.process_time() - began
    fitted = Fitted.of_run(schema, learnt, problem, posterior, seed)
    for sweeps in options.sweeps:
        began = time.process_time()
        run = fitted.run(gappy, seed=seed, threads=options.threads, sweeps=sweeps)
        result[f"seconds_new_{sweeps}"] = time.process_time() - began
        result[f"new_{sweeps}"] = errors(data, run.posterior, cells, truth)
        result[f"ratio_{sweeps}"] = result[f"new_{sweeps}"] / result["together"]
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", default="sample_data", type=Path)
    parser.add_argument("--tables", default="")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rows", type=int, default=2000, help="at most so many rows of a table")
    parser.add_argument("--chains", type=int, default=CHAINS)
    parser.add_argument("--sweeps", type=int, nargs="+", default=[3], help="inner sweeps")
    parser.add_argument("--threads", type=int, default=available_threads())
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    chosen = set(filter(None, options.tables.split(",")))
    results = []
    for types in sorted(options.folder.glob("*.types.yaml")):
        name = types.name.removesuffix(".types.yaml")
        paths = [p for s in (".csv", ".csv.gz") if (p := types.with_name(name + s)).exists()]
        if not paths or (chosen and name not in chosen):
            continue
        for seed in range(options.seeds):
            results.append(compare(paths[0], types, seed, options) | {"seed": seed})
            print(json.dumps(results[-1]), flush=True)
            if options.out:
                text = "".join(json.dumps(result) + "\n" for result in results)
                options.out.write_text(text, encoding="utf-8")
    for sweeps in options.sweeps:
        ratios = [result[f"ratio_{sweeps}"] for result in results]
        if ratios:
            print(f"{sweeps} inner sweeps: ratios {min(ratios):.3f} to {max(ratios):.3f}")


if __name__ == "__main__":
    main()
