"""Error against processor time: our models at every effort, and other programs. On a folder.

    python benchmarks/pareto.py [FOLDER] [--tables heart,wine@3000] [--models glfm,mixture,auto]
                                [--efforts quick,normal,thorough] [--peers] [--out DIR]
                                [--rate 0.3] [--repeats 1]

For every NAME.csv(.gz) with NAME.types.yaml in FOLDER (`sample_data` by default) a share of the
observed cells is hidden completely at random, and the table is completed by `glfm impute` with each
model and effort, by mean, median and mode, and with `--peers` by a Gaussian copula (gcimpute) and
chained extra trees, for which a virtual environment is made in DIR/peers. Every method is a process
of one thread that reads and writes files; its seconds are all that it and what it starts spend of
processors, start-up included. Fits go to DIR/pareto.csv, with which a later run of the same command
goes on. Printed is, of each method, the geometric mean over tables of its error (as in the [GLFM]
article, section 5.1) over that of mean and mode, and of its seconds; DIR/pareto.png draws the one
against the other.
"""

from __future__ import annotations

import argparse
import csv
import resource
import shlex
import sys
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from accuracy import BASE, install_peers, names_in
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from paper_figures import load

from glfm_cli.encoding import encode
from glfm_cli.evaluation.masks import draw_mask
from glfm_cli.evaluation.methods import choose_methods
from glfm_cli.evaluation.scoring import score_all, spans
from glfm_cli.evaluation.task import Method, MethodFailed, hide
from glfm_cli.options import Sampling
from glfm_cli.schema import read_schema

Cells = dict[tuple[str, int, str], tuple[float, float]]  # (table, repeat, method): error, seconds


def our_commands(models: list[str], efforts: list[str]) -> dict[str, str]:
    """Return the command of each model and effort, by a name of both."""
    python = shlex.quote(sys.executable)
    run = f"{python} -m glfm_cli impute {{input}} --types {{types}} -o {{output}} --seed {{seed}}"
    return {
        f"{model} {effort}": f"{run} -q --threads 1 --model {model} --effort {effort}"
        for model in models
        for effort in efforts
    }


def children_seconds() -> float:
    """Return the processor seconds of all processes that were started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(
    name: str, repeat: int, methods: Mapping[str, Method], cells: Cells, options: argparse.Namespace
) -> None:
    """Add the error and the seconds of every method on one set of hidden cells, and write them."""
    table, types = load(options.folder, name)
    schema = read_schema(types)
    data = encode(table, schema, file=name)
    rng = np.random.default_rng([zlib.crc32(name.encode()), repeat])
    mask = draw_mask(data, "mcar", options.rate, rng)
    for label, method in methods.items():
        if (name, repeat, label) in cells:
            continue
        task, before = hide(table, schema, data, mask, seed=repeat, threads=1), children_seconds()
        try:
            found = method.fit(task)
        except MethodFailed as error:
            print(f"{name}, {label}: {error}", file=sys.stderr)
            continue
        seconds = children_seconds() - before
        scores = score_all(data.columns, spans(data.columns), task.truth, found)
        (value,) = (s.value for s in scores if (s.score, s.scope) == ("error", "all"))
        cells[name, repeat, label] = value, seconds
        with (options.out / "pareto.csv").open("a", encoding="utf-8", newline="") as lines:
            csv.writer(lines).writerow((name, repeat, label, f"{value:.6f}", f"{seconds:.2f}"))


def known(path: Path) -> Cells:
    """Return what an earlier run has measured."""
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as lines:
        return {
            (table, int(repeat), method): (float(error), float(seconds))
            for table, repeat, method, error, seconds in csv.reader(lines)
        }


def means(cells: Cells, sets: list[tuple[str, int]], method: str) -> tuple[float, float] | None:
    """Return geometric means of ratio and seconds; None unless every set was completed."""
    wanted = [*((*one, method) for one in sets), *((*one, BASE) for one in sets)]
    if not all(key in cells for key in wanted):
        return None
    ratios = [cells[*one, method][0] / cells[*one, BASE][0] for one in sets]
    seconds = [cells[*one, method][1] for one in sets]
    return float(np.exp(np.mean(np.log(ratios)))), float(np.exp(np.mean(np.log(seconds))))


def draw(found: dict[str, tuple[float, float]], path: Path) -> None:
    """Draw the error of every method against its seconds, a line for each of our models."""
    figure = Figure(figsize=(7.0, 4.5), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    lines: dict[str, list[tuple[float, float]]] = {}
    for name, (ratio, seconds) in found.items():
        lines.setdefault(name.split()[0], []).append((seconds, ratio))
        axes.annotate(name, (seconds, ratio), xytext=(4, 4), textcoords="offset points", size=8)
    for points in lines.values():
        axes.plot(*zip(*points, strict=True), marker="o")
    axes.set_xscale("log")
    axes.set_xlabel("processor seconds a table")
    axes.set_ylabel("error over that of mean and mode")
    axes.margins(x=0.2)
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=Path("sample_data"))
    parser.add_argument("--out", type=Path, default=Path("pareto"))
    parser.add_argument("--tables", help="names with commas; wine@3000 is a random 3,000 rows")
    parser.add_argument("--models", default="glfm,mixture,auto")
    parser.add_argument("--efforts", default="quick,normal,thorough")
    parser.add_argument("--peers", action="store_true", help="other programs too")
    parser.add_argument("--rate", type=float, default=0.3)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=3600.0, help="seconds for a fit")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    commands = our_commands(options.models.split(","), options.efforts.split(","))
    commands |= install_peers(options.out / "peers") if options.peers else {}
    chosen = choose_methods([BASE], commands, Sampling(), timeout=options.timeout)
    methods = {method.name: method for method in chosen}
    names = options.tables.split(",") if options.tables else names_in(options.folder)
    cells, sets = known(options.out / "pareto.csv"), []
    for repeat in range(options.repeats):
        for name in names:
            measure(name, repeat, methods, cells, options)
            sets.append((name, repeat))
    found = {name: pair for name in commands if (pair := means(cells, sets, name)) is not None}
    print(f"{'':24}{'ratio':>10}{'seconds':>10}   over {len(sets)} sets of hidden cells")
    for name, (ratio, seconds) in found.items():
        print(f"{name:24}{ratio:>10.4f}{seconds:>10.1f}")
    draw(found, options.out / "pareto.png")


if __name__ == "__main__":
    main()
