"""How much do completed cells depend on the seed? One set of hidden cells, many seeds.

    python benchmarks/stability.py [FOLDER] [--tables heart,wine@3000] [--seeds 8] [--rate 0.3]

For every NAME.csv(.gz) with NAME.types.yaml in FOLDER (`sample_data` by default) a share of the
observed cells is hidden completely at random, once, and completed with the defaults of
`glfm impute` and the seeds 0, 1, 2 ... Printed are the mean error of the [GLFM] article, section
5.1, its standard deviation from seed to seed in percent of it, and the seconds of a fit.
"""

from __future__ import annotations

import argparse
import time
import zlib
from pathlib import Path

import numpy as np
from accuracy import names_in
from paper_figures import load

from glfm_cli.encoding import encode
from glfm_cli.evaluation.masks import draw_mask
from glfm_cli.evaluation.methods import choose_methods
from glfm_cli.evaluation.scoring import score_all, spans
from glfm_cli.evaluation.task import hide
from glfm_cli.inference.executors import available_threads
from glfm_cli.options import Sampling
from glfm_cli.schema import read_schema


def errors_by_seed(name: str, options: argparse.Namespace) -> tuple[list[float], float]:
    """Return a table's error for every seed, and the mean seconds of a fit."""
    table, types = load(options.folder, name)
    schema = read_schema(types)
    data = encode(table, schema, file=name)
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    mask = draw_mask(data, "mcar", options.rate, rng)
    settings = dict(item.split("=", 1) for item in options.settings)
    sampling = Sampling(
        None, options.chains, options.warmup, options.draws, options.thin, settings=settings
    )  # fmt: skip
    (method,) = choose_methods(["glfm"], {}, sampling, timeout=1.0)
    errors, began = [], time.monotonic()
    for seed in range(options.seeds):
        task = hide(table, schema, data, mask, seed=seed, threads=options.threads)
        scores = score_all(data.columns, spans(data.columns), task.truth, method.fit(task))
        errors += [row.value for row in scores if (row.score, row.scope) == ("error", "all")]
    return errors, (time.monotonic() - began) / options.seeds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=Path("sample_data"))
    parser.add_argument("--tables", help="names with commas; wine@3000 is a random 3,000 rows")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--rate", type=float, default=0.3)
    parser.add_argument("--chains", type=int, help="as many as the table asks for if left out")
    parser.add_argument("--warmup", type=int, help="as the command has it if left out")
    parser.add_argument("--draws", type=int)
    parser.add_argument("--thin", type=int)
    parser.add_argument("--threads", type=int, default=available_threads())
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="NAME=VALUE")
    options = parser.parse_args()
    print(f"{'table':<20}{'error':>10}{'sd, %':>10}{'seconds':>10}")
    for name in options.tables.split(",") if options.tables else names_in(options.folder):
        errors, seconds = errors_by_seed(name, options)
        spread = 100 * float(np.std(errors, ddof=1) / np.mean(errors))
        print(f"{name:<20}{np.mean(errors):>10.4f}{spread:>10.2f}{seconds:>10.1f}", flush=True)


if __name__ == "__main__":
    main()
