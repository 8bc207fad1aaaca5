"""How near do completed cells come to the truth, beside other programs? On a folder of tables.

    python benchmarks/accuracy.py [FOLDER] [--tables heart,wine@3000] [--peers] [--out DIR]
                                  [--methods glfm,bsvd,mean] [--chains 8]

For every NAME.csv(.gz) with NAME.types.yaml in FOLDER (`sample_data` by default) 10, 30 and 50 % of
the observed cells are hidden completely at random, three times each, and completed with the
defaults of `glfm impute` and by others: mean, median and mode; scikit-learn's nearest neighbours
and chained ridge regressions where it is installed; with `--peers` also a Gaussian copula
(gcimpute) and chained extra trees, for which a virtual environment is made in DIR/peers.

All results go to DIR/NAME.csv, one line a score, which a later run of the same command goes on
with. At the end DIR/errors.csv has one line for each table, rate and method: the error of the
[GLFM] article, section 5.1, its ratio to that of mean and mode, and the standard deviation over
sets of hidden cells; printed are the ratios and their geometric means.
"""

from __future__ import annotations

import argparse
import csv
import shlex
import subprocess
import sys
import venv
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from paper_figures import load

from glfm_cli import Evaluation, evaluate
from glfm_cli.completion.prepare import CHAINS
from glfm_cli.errors import GlfmError
from glfm_cli.inference.executors import available_threads

PEERS = Path(__file__).resolve().parent / "peers"
PROGRAMS = {"copula": "copula.py", "extra-trees": "extra_trees.py"}
BASE = "mean"  # what ratios are to

Errors = dict[tuple[str, float, str], list[float]]  # of (table, rate, method), over sets


def install_peers(folder: Path) -> dict[str, str]:
    """Return the commands of the other programs, in an environment that is made if need be."""
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if not python.exists():
        venv.create(folder, with_pip=True)
        requested = ["-r", str(PEERS / "requirements.txt")]
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *requested], check=True)
    places = "{input} {types} {output} {seed}"
    return {
        name: f"{shlex.join([str(python), str(PEERS / file)])} {places}"
        for name, file in PROGRAMS.items()
    }


def names_in(folder: Path) -> list[str]:
    """Return the tables of a folder that have a types file."""
    return sorted(path.name.removesuffix(".types.yaml") for path in folder.glob("*.types.yaml"))


def errors_of(name: str, done: Evaluation) -> Errors:
    """Return each method's errors over all columns, set by set."""
    found: Errors = {}
    for fit in done.fits:
        for score in fit.scores:
            if (score.score, score.scope) == ("error", "all"):
                key = (name, fit.id.rate, fit.id.method)
                found.setdefault(key, []).append(score.value)
    return found


def write(errors: Errors, path: Path) -> None:
    """Write one line for each table, rate and method."""
    with path.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(["table", "rate", "method", "sets", "error", "ratio", "sd"])
        for (table, rate, method), values in sorted(errors.items()):
            mean = float(np.mean(values))
            base = errors.get((table, rate, BASE))
            ratio = mean / float(np.mean(base)) if base else float("nan")
            sd = float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
            lines.writerow(
                [table, rate, method, len(values), f"{mean:.5f}", f"{ratio:.4f}", f"{sd:.5f}"]
            )


def report(errors: Errors) -> str:
    """Return ratios to mean and mode by table, and their geometric means, for each rate."""
    methods = sorted({method for _, _, method in errors} - {BASE})
    tables = sorted({table for table, _, _ in errors})
    lines: list[str] = []
    for rate in sorted({rate for _, rate, _ in errors}):
        lines += ["", f"{100 * rate:g} % hidden: error over that of mean, median and mode"]
        lines += [f"{'':24}" + "".join(f"{method:>13}" for method in methods)]
        logs: dict[str, list[float]] = {method: [] for method in methods}
        for table in tables:
            cells = []
            for method in methods:
                mine, base = (errors.get((table, rate, who)) for who in (method, BASE))
                if mine and base:
                    logs[method].append(float(np.log(np.mean(mine) / np.mean(base))))
                    cells.append(f"{np.exp(logs[method][-1]):>13.3f}")
                else:
                    cells.append(f"{'-':>13}")
            lines.append(f"{table:24}" + "".join(cells))
        means = (
            f"{np.exp(np.mean(logs[m])):>13.3f}" if len(logs[m]) == len(tables) else f"{'-':>13}"
            for m in methods
        )
        lines.append(f"{'geometric mean':24}" + "".join(means))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=Path("sample_data"))
    parser.add_argument("--out", type=Path, default=Path("accuracy"))
    parser.add_argument("--tables", help="names with commas; wine@3000 is a random 3,000 rows")
    parser.add_argument("--methods", default="glfm,mean,knn,iterative")
    parser.add_argument("--peers", action="store_true", help="other programs too")
    parser.add_argument("--chains", type=int, default=CHAINS, help="of each fit of our own")
    parser.add_argument("--rates", default="0.1,0.3,0.5")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=available_threads())
    parser.add_argument("--timeout", type=float, default=3600.0, help="seconds for a program's fit")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    methods = options.methods.split(",")
    if find_spec("sklearn") is None:
        methods = [name for name in methods if name not in ("knn", "iterative")]
    programs = install_peers(options.out / "peers") if options.peers else {}
    names = options.tables.split(",") if options.tables else names_in(options.folder)
    errors: Errors = {}
    for name in names:
        table, types = load(options.folder, name)
        try:
            done = evaluate(
                table,
                types,
                methods=methods,
                programs=programs,
                method_timeout=options.timeout,
                rates=[float(rate) for rate in options.rates.split(",")],
                repeats=options.repeats,
                chains=options.chains,
                jobs=options.jobs,
                output=options.out / f"{name}.csv",
                resume=True,
            )
        except GlfmError as error:
            print(f"{name} is left out: {error.message()}", file=sys.stderr)
            continue
        for warning in done.warnings:
            print(f"{name}: {warning}", file=sys.stderr)
        if done.stopped:
            raise SystemExit("interrupted; the same command goes on")
        errors |= errors_of(name, done)
        write(errors, options.out / "errors.csv")
    print(report(errors))


if __name__ == "__main__":
    main()
