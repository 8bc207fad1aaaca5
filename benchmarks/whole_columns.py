"""Error where some columns are whole and the gaps of the others depend on them. On a folder.

    python benchmarks/whole_columns.py FOLDER [--tables letter,magic@5000] [--methods auto,forest]
                                       [--peers] [--out DIR] [--share 0.7] [--repeats 10]

For every NAME.csv with NAME.types.yaml in FOLDER, all of whose columns are real and without gaps,
a random 70 % of the rows are taken. Three tenths of the columns stay whole; a cell of the others is
hidden with a probability that is the logistic function of a random linear combination of these,
scaled to sd 1 and moved so that three tenths are hidden [Muzellec and others, Missing Data
Imputation using Optimal Transport, ICML 2020]: the protocol of DiffPuter [Zhang and others, ICLR
2025, table 1]. Errors of hidden cells, of all columns together, are in units of the observed
cells' standard deviations. Methods are those of `glfm evaluate`, and with `--peers` a Gaussian
copula and extra trees in an environment of their own. Fits go to DIR/whole_columns.csv, with which
a later run of the same command goes on.
"""

from __future__ import annotations

import argparse
import csv
import resource
import sys
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
from accuracy import install_peers, names_in
from paper_figures import load
from scipy.optimize import brentq
from scipy.special import expit

from glfm_cli.arrays import Array
from glfm_cli.encoding import encode
from glfm_cli.evaluation.methods import choose_methods
from glfm_cli.evaluation.task import Method, MethodFailed, Prediction, hide
from glfm_cli.options import Sampling
from glfm_cli.schema import read_schema

Fits = dict[tuple[str, int, str], tuple[float, float, float]]  # MAE, RMSE, processor seconds


def used_seconds() -> float:
    """Return the processor seconds of this process and of all that it started and have ended."""
    both = (resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


def gaps_by_whole_columns(x: Array, share: float, rng: np.random.Generator) -> Array:
    """Return which cells (N, D) are hidden, given the values; no cell of `share` of the columns."""
    D = x.shape[1]
    order = rng.permutation(D)
    n_whole = max(int(share * D), 1)
    whole, others = order[:n_whole], order[n_whole:]
    score = x[:, whole] @ rng.standard_normal((n_whole, others.size))
    score /= score.std(axis=0)
    hidden = np.zeros(x.shape, dtype=bool)
    for k, d in enumerate(others):
        s = score[:, k]
        start = brentq(lambda a, s=s: float(expit(s + a).mean()) - share, -50.0, 50.0)
        hidden[:, d] = rng.random(len(x)) < expit(s + start)
    return hidden


def errors(found: Mapping[int, Prediction], truth: Mapping[int, Array], sd: Array) -> Array:
    """Return the mean absolute and the root mean square error of all hidden cells together."""
    off = np.concatenate([(found[d].estimate - x) / sd[d] for d, x in truth.items()])
    return np.array([np.abs(off).mean(), np.sqrt(np.mean(off**2))])


def measure(
    name: str, repeat: int, methods: Mapping[str, Method], fits: Fits, options: argparse.Namespace
) -> None:
    """Add every method's errors and seconds on one set of hidden cells, and write them."""
    table, types = load(options.folder, name)
    schema = read_schema(types)
    rng = np.random.default_rng([zlib.crc32(name.encode()), repeat])
    rows = rng.choice(table.num_rows, round(options.share * table.num_rows), replace=False)
    table = table.take(pa.array(np.sort(rows)))
    data = encode(table, schema, file=name)
    x = np.column_stack([column.x for column in data.columns])
    mask = gaps_by_whole_columns((x - x.mean(axis=0)) / x.std(axis=0), 0.3, rng)
    sd = np.nanstd(np.where(mask, np.nan, x), axis=0)
    for label, method in methods.items():
        if (name, repeat, label) in fits:
            continue
        task, before = hide(table, schema, data, mask, seed=repeat, threads=1), used_seconds()
        try:
            found = method.fit(task)
        except MethodFailed as error:
            print(f"{name}, {label}: {error}", file=sys.stderr)
            continue
        seconds = used_seconds() - before
        mae, rmse = errors(found, task.truth, sd)
        fits[name, repeat, label] = mae, rmse, seconds
        with (options.out / "whole_columns.csv").open("a", encoding="utf-8", newline="") as lines:
            csv.writer(lines).writerow((name, repeat, label, mae, rmse, round(seconds, 1)))
        print(f"{name} {repeat} {label:12} {mae:.4f} {rmse:.4f} {seconds:.0f} s", file=sys.stderr)


def known(path: Path) -> Fits:
    """Return what an earlier run has measured."""
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        lines = csv.reader(file)
        return {(t, int(r), m): (float(a), float(b), float(s)) for t, r, m, a, b, s in lines}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=Path("whole_columns"))
    parser.add_argument("--tables", help="names with commas; magic@3000 is a random 3,000 rows")
    parser.add_argument("--methods", default="auto,mean")
    parser.add_argument("--peers", action="store_true", help="other programs too")
    parser.add_argument("--share", type=float, default=0.7, help="of the rows that are taken")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--timeout", type=float, default=3600.0, help="seconds for a fit")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    commands = install_peers(options.out / "peers") if options.peers else {}
    names = options.methods.split(",")
    chosen = choose_methods(names, commands, Sampling(), timeout=options.timeout)
    methods = {method.name: method for method in chosen}
    tables = options.tables.split(",") if options.tables else names_in(options.folder)
    fits = known(options.out / "whole_columns.csv")
    for repeat in range(options.repeats):
        for name in tables:
            measure(name, repeat, methods, fits, options)
    for name in tables:
        for label in methods:
            of = [fits[key] for r in range(options.repeats) if (key := (name, r, label)) in fits]
            if of:
                mae, rmse, seconds = np.mean(of, axis=0)
                print(f"{name:12}{label:14}{mae:8.4f}{rmse:8.4f}{seconds:8.0f} s   {len(of)} sets")


if __name__ == "__main__":
    main()
