"""How long should chains be, and how many? One long run tells of every shorter one.

    python benchmarks/lengths.py [FOLDER] [--tables heart,wine@1200] [--chains 24] [--rate 0.3]

For every NAME.csv(.gz) with NAME.types.yaml in FOLDER (`sample_data` by default) a share of the
observed cells is hidden completely at random, and completed by chains that keep every second sweep
from the tenth to the 140th. A plan of fewer chains, another warm-up and fewer draws is a part of
these: each of PLANS is scored by random choices of its number of chains, the same for all plans.
Printed are geometric means over tables, relative to the first plan, of the error of the [GLFM]
article, section 5.1, and of a smooth one (root mean square error of numbers over their range, of
probabilities of levels), and the difference of the log scores of a cell. Nothing is recalibrated.
"""

from __future__ import annotations

import argparse
import zlib
from pathlib import Path

import numpy as np
from accuracy import names_in
from paper_figures import load

from glfm_cli.arrays import Array
from glfm_cli.completion import prepare
from glfm_cli.encoding import encode
from glfm_cli.evaluation.masks import draw_mask
from glfm_cli.evaluation.scoring import spans
from glfm_cli.evaluation.task import hide
from glfm_cli.inference.executors import available_threads
from glfm_cli.inference.sampling import sample
from glfm_cli.links import Link
from glfm_cli.schema import read_schema

FIRST, WINDOW, WINDOWS, CHOICES = 10, 5, 13, 24
# Chains, sweeps of warm-up, draws kept (2 sweeps apart).
PLANS = [
    (16, 100, 20),
    *((c, w, n) for c in (6, 8, 10, 12) for w in (40, 60, 80) for n in (10, 20, 30, 40)),
]


class Column:
    """The hidden cells of a column: what stretches of five draws of every chain say of them."""

    def __init__(self, link: Link, truth: Array, span: float, n_chains: int) -> None:
        self.link, self.truth, self.span = link, truth, span
        self.said: list[list[Array]] = [[] for _ in range(n_chains)]
        self.density: list[list[Array]] = [[] for _ in range(n_chains)]

    def errors(self, chains: Array, windows: slice) -> tuple[float, float, Array]:
        """Return both errors and the log scores of a plan."""
        said = np.mean([self.said[c][windows] for c in chains], axis=(0, 1))
        density = np.mean([self.density[c][windows] for c in chains], axis=(0, 1))
        log = np.log(np.maximum(density, 1e-12))
        if not self.link.discrete:
            value = np.floor(said + 0.5) if getattr(self.link, "integral", False) else said
            error = np.sqrt(np.mean((value - self.truth) ** 2)) / self.span
            return error, error, log
        true = self.truth.astype(int)
        smooth = np.sqrt(np.mean(np.sum((said - np.eye(said.shape[1])[true]) ** 2, axis=1)))
        if not getattr(self.link, "ordered", False):
            return float(np.mean(said.argmax(axis=1) != true)), smooth, log
        median = np.sum(np.cumsum(said, axis=1) < 0.5, axis=1)
        return float(np.mean(np.abs(median - true)) / self.span), smooth, log


def columns_of(name: str, options: argparse.Namespace) -> list[Column]:
    """Complete a table by one long run, and return what it says of the hidden cells."""
    table, types = load(options.folder, name)
    schema = read_schema(types)
    data = encode(table, schema, file=name)
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    mask = draw_mask(data, "mcar", options.rate, rng)
    task = hide(table, schema, data, mask, seed=0, threads=options.threads)
    problem, _, plan = prepare(
        table,
        schema,
        data=task.data,
        model="glfm",
        chains=options.chains,
        warmup=FIRST,
        draws=WINDOW * WINDOWS,
        thin=2,
        seed=0,
    )
    posterior = sample(problem, plan, threads=options.threads).posterior
    found, ranges = [], spans(data.columns)
    for d, rows in task.hidden.items():
        if d not in ranges:
            continue
        link = posterior.links[d]
        column = Column(link, task.truth[d], ranges[d], options.chains)
        for c, chain in enumerate(posterior.chains):
            for start in range(0, len(chain), WINDOW):
                average, density = link.average(rows.size, WINDOW), np.zeros(rows.size)
                for draw in chain[start : start + WINDOW]:
                    law = posterior.cells_law(draw, rows).column(d)
                    average.add(law, draw.params[d], 1.0, quantiles=False)
                    density += np.exp(link.log_density(column.truth, law, draw.params[d]))
                mean, _, _, probabilities = average.result((), lambda p: p)
                column.said[c].append(mean if probabilities is None else probabilities)
                column.density[c].append(density / WINDOW)
        found.append(column)
    return found


def scores(columns: list[Column], n_chains: int) -> Array:
    """Return the errors and the log score of every plan (P, 3)."""
    found = []
    for chains, warmup, draws in PLANS:
        start = (warmup - FIRST) // 2 // WINDOW
        windows, each = slice(start, start + draws // WINDOW), []
        for number in range(CHOICES):
            rng = np.random.default_rng([chains, number])
            chosen = rng.choice(n_chains, chains, replace=False)
            hard, smooth, logs = zip(*(c.errors(chosen, windows) for c in columns), strict=True)
            each.append((np.mean(hard), np.mean(smooth), np.mean(np.concatenate(logs))))
        found.append(np.mean(each, axis=0))
    return np.array(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=Path("sample_data"))
    parser.add_argument("--tables", help="names with commas; wine@1200 is a random 1,200 rows")
    parser.add_argument("--chains", type=int, default=24)
    parser.add_argument("--rate", type=float, default=0.3)
    parser.add_argument("--threads", type=int, default=available_threads())
    options = parser.parse_args()
    names = options.tables.split(",") if options.tables else names_in(options.folder)
    every = np.array([scores(columns_of(name, options), options.chains) for name in names])
    ratio = np.exp(np.mean(np.log(every[:, :, :2] / every[:, :1, :2]), axis=0))
    log = np.mean(every[:, :, 2] - every[:, :1, 2], axis=0)
    print(f"{'chains':>6}{'warm-up':>9}{'draws':>7}{'sweeps':>8}{'error':>9}{'smooth':>9}{'log':>9}")
    for plan, (hard, smooth), gain in zip(PLANS, ratio, log, strict=True):
        chains, warmup, draws = plan
        sweeps = chains * (warmup + 2 * draws)
        print(f"{chains:>6}{warmup:>9}{draws:>7}{sweeps:>8}{hard:>9.4f}{smooth:>9.4f}{gain:>+9.4f}")


if __name__ == "__main__":
    main()
