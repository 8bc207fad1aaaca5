"""Figures 5.4 and 5.5 of the thesis [BSVD]: matrices from cells that are asked for step by step.

    python benchmarks/asking.py [--ranks 1,5,10] [--noise inf,20,10] [--trials 10]
                                [--out FILE.csv] [--plot FILE.png]
    python benchmarks/asking.py --batches 600 [--ranks 5] [--noise inf,20,10] [--trials 5]

U V' of 50 x 50, both factors normal, with noise of so many decibels below it. 50 cells are seen at
first, and each step adds 50 more: at random; those of the largest posterior variance
(uncertainty); or those that tell most together (joint), as `glfm suggest` chooses. Each step goes
on from the last state of the chain before, as in the thesis, its noise set back to that of a start:
the new cells do not fit yet, and noise that is too small has them fitted by new components.

FILE.csv has the relative error of every trial, step and rule, and a later run of the same command
goes on with it. Printed is the median over trials, and for each rule how the logarithm of the
error, which counts as 0.001 below that, differs from that of cells at random, and of uncertainty,
averaged over the steps: mean over trials with its standard error.

`--batches M`: M cells at random are seen, and batches of 50 are chosen from the draws of `--chains`
chains. Printed is what each tells of all unseen cells, by the covariance of a run of its own that
is far longer: nats, and by how much the sum of their variances falls; means over trials.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from recovery import SIZE, SUCCESS, error, mean_of, problem_of, root_mean_square
from threadpoolctl import threadpool_limits

from glfm_cli.acquisition.cells import PairCells, gains_alone
from glfm_cli.acquisition.greedy import choose
from glfm_cli.completion.matrix import Pairs
from glfm_cli.encoding import Ids
from glfm_cli.inference.chain import Chain, spans_of, start_chain
from glfm_cli.inference.posterior import Draw, Posterior
from glfm_cli.latent.model import Problem
from glfm_cli.plots.style import drawing, save
from glfm_cli.streams import Streams

Array = np.ndarray
Errors = dict[tuple[int, float, str, int], list[float]]  # of (rank, decibel, rule, trial), by step

BATCH = 50
N_LONGER, LONGER = 6, 400  # chains and draws of the run that batches are judged by
START, CANDIDATES = 20, 10  # components that a trial starts with, and that a sweep visits
RULES = {"random": "#555555", "uncertainty": "#d55e00", "joint": "#0072b2"}


def steps_of(rank: int) -> int:
    """Return how many steps it takes until noise-free cells at random tell the matrix, and some."""
    return 8 + round(1.3 * rank * (2 * SIZE - rank) / BATCH)


def goes_on(problem: Problem, before: Chain | None, streams: Streams) -> Chain:
    """Return a chain over more cells, from the last state of one over fewer."""
    chain = start_chain(problem, streams)
    if before is not None:
        model, entries = problem.model, problem.matrix.entries
        draw = model.draw(before.state)
        x = np.einsum("nk,nk->n", draw.left[entries.row], draw.right[entries.column])
        arrays = {**model.save(before.state), "x": x, "noise": np.ones(1)}
        chain.state = model.load(arrays, chain.cells, problem.config)
    return chain


def draws_of(chains: list[Chain], warmup: int, draws: int) -> Posterior:
    """Return the draws that chains come to."""
    problem, found = chains[0].problem, []
    for chain in chains:
        kept = []
        for sweep in range(warmup + draws):
            chain.sweep(adapt=sweep < warmup)
            if sweep >= warmup:
                kept.append(Draw(problem.model.draw(chain.state), (), {}))
        found.append(tuple(kept))
    return Posterior(problem.model, problem.links, spans_of(problem.links), tuple(found))


def means(posterior: Posterior) -> Array:
    """Return x of all cells (I J, T), so that F F' is its covariance in units of noise."""
    draws = [draw.latent for draw in posterior.draws()]
    x = np.array([(draw.left @ draw.right.T).ravel() for draw in draws]).T
    noise = np.mean([draw.noise[0] for draw in draws])
    return (x - x.mean(axis=1, keepdims=True)) / np.sqrt(noise * (len(draws) - 1))


def cells_of(free: Array) -> PairCells:
    """Return the candidates of these flat numbers."""
    ids = Ids("id", tuple(map(str, range(SIZE))), None)  # names are not asked for
    return PairCells(Pairs(*np.divmod(free, SIZE)), ids, ids)


def next_cells(posterior: Posterior, seen: Array, rule: str, rng: np.random.Generator) -> Array:
    """Return the flat numbers of the cells to ask for."""
    free = np.flatnonzero(~seen)
    if rule == "random":
        return rng.choice(free, BATCH, replace=False)
    cells = cells_of(free)
    alone, most = gains_alone(cells, posterior)
    if rule == "uncertainty":
        return free[np.argsort(-alone, kind="stable")[:BATCH]]
    chosen = choose(lambda i: cells.features(posterior, i), alone, most, np.ones(free.size), BATCH)
    return free[chosen.index]


def make(rank: int, decibel: float, m: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Return a matrix, the same with noise, and which m cells, flat, are seen."""
    X = rng.normal(size=(SIZE, rank)) @ rng.normal(size=(rank, SIZE))
    Y = X + X.std() * 10 ** (-decibel / 20) * rng.normal(size=X.shape)
    seen = np.zeros(X.size, dtype=bool)
    seen[rng.choice(X.size, m, replace=False)] = True
    return X, Y, seen


def one(rank: int, decibel: float, rule: str, trial: int, warmup: int, draws: int) -> list[float]:
    """Return the relative errors after each step of one trial."""
    rng = np.random.default_rng([rank, trial])
    X, Y, seen = make(rank, decibel, BATCH, rng)
    unit, chain, errors = root_mean_square(Y.ravel()[seen]), None, []
    for step in range(steps_of(rank) + 1):
        problem = problem_of(Y, seen.reshape(X.shape), unit, np.isinf(decibel), START, CANDIDATES)
        chain = goes_on(problem, chain, Streams(trial, step))
        posterior = draws_of([chain], warmup, draws)
        errors.append(error(mean_of(posterior.draws(), unit), X))
        seen[next_cells(posterior, seen, rule, rng)] = True
    return errors


def batches(rank: int, decibel: float, m: int, asked: argparse.Namespace) -> None:
    """Print what the batches of each rule tell, by the covariance of a longer run."""
    told = np.empty((asked.trials, len(RULES), 2))
    for trial in range(asked.trials):
        rng = np.random.default_rng([rank, m, trial])
        _, Y, seen = make(rank, decibel, m, rng)
        unit, free = root_mean_square(Y.ravel()[seen]), np.flatnonzero(~seen)
        problem = problem_of(Y, seen.reshape(Y.shape), unit, np.isinf(decibel), START, CANDIDATES)

        chains = [start_chain(problem, Streams(trial, c)) for c in range(N_LONGER + asked.chains)]
        longer = draws_of(chains[:N_LONGER], asked.warmup, LONGER)
        posterior = draws_of(chains[N_LONGER:], asked.warmup, asked.draws)
        F = means(longer)[free]
        for r, rule in enumerate(RULES):
            f = F[np.searchsorted(free, next_cells(posterior, seen, rule, rng))]
            known = np.eye(BATCH) + f @ f.T
            cross = F @ f.T
            fallen = np.sum(cross * np.linalg.solve(known, cross.T).T) / np.sum(F * F)
            told[trial, r] = 0.5 * np.linalg.slogdet(known)[1], fallen
    print(f"rank {rank}, {decibel:g} dB, {m} cells, {asked.trials} trials")
    for r, rule in enumerate(RULES):
        behind = told[:, r] - told[:, list(RULES).index("uncertainty")]
        spread = behind.std(axis=0, ddof=1) / np.sqrt(asked.trials)
        nats, share = told[:, r].mean(axis=0)
        print(
            f"  {rule:12} {nats:7.1f} nats ({behind[:, 0].mean():+.1f} ±{spread[0]:.1f})"
            f"   variance falls by {share:.3f} ({behind[:, 1].mean():+.3f} ±{spread[1]:.3f})",
            flush=True,
        )


def read(path: Path | None) -> Errors:
    """Return the errors of a file, if there is one."""
    found: Errors = {}
    if path is not None and path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                key = int(row["rank"]), float(row["decibel"]), row["rule"], int(row["trial"])
                found.setdefault(key, []).append(float(row["error"]))
    return found


def write(errors: Errors, path: Path) -> None:
    """Write one line for each step."""
    with path.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(["rank", "decibel", "rule", "trial", "cells", "error"])
        for key, values in errors.items():
            for step, value in enumerate(values, 1):
                lines.writerow([*key, step * BATCH, f"{value:.6g}"])


def curves(errors: Errors, rank: int, decibel: float, rule: str) -> Array:
    """Return the errors (trials, steps) of one rule."""
    return np.array([v for key, v in errors.items() if key[:3] == (rank, decibel, rule)])


def report(errors: Errors, rank: int, decibel: float) -> None:
    """Print the medians at some steps, and each rule's difference to random and to uncertainty."""
    mean = {
        rule: np.log(np.maximum(curves(errors, rank, decibel, rule), SUCCESS)).mean(axis=1)
        for rule in RULES
    }
    steps = np.linspace(0, steps_of(rank), 8).round().astype(int)
    n_trials = mean["joint"].size
    print(f"rank {rank}, {decibel:g} dB, {n_trials} trials")
    print("  cells       " + "".join(f"{BATCH * (step + 1):9}" for step in steps))
    for rule in RULES:
        medians = np.median(curves(errors, rank, decibel, rule), axis=0)[steps]
        shown = "".join(f"{value:9.2g}" for value in medians)
        for other in ("random", "uncertainty"):
            behind = mean[rule] - mean[other]
            spread = behind.std(ddof=1) / np.sqrt(n_trials) if n_trials > 1 else np.nan
            shown += f"   {behind.mean():+.3f} ±{spread:.3f}"
        print(f"  {rule:12}{shown}", flush=True)


def plot(errors: Errors, ranks: list[int], noises: list[float], path: Path) -> None:
    """Draw the errors by cells, a panel for each rank and noise: medians and middle halves."""
    with drawing():
        across, down = len(ranks), len(noises)
        figure = Figure(figsize=(3.1 * across, 2.2 * down), dpi=150, layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(down, across, squeeze=False, sharey="row")
        for axes, (decibel, rank) in zip(
            panels.ravel(), [(d, r) for d in noises for r in ranks], strict=True
        ):
            for rule, colour in RULES.items():
                found = np.maximum(curves(errors, rank, decibel, rule), SUCCESS)
                cells = BATCH * np.arange(1, found.shape[1] + 1)
                low, middle, high = np.quantile(found, [0.25, 0.5, 0.75], axis=0)
                axes.plot(cells, middle, color=colour, lw=1.2, label=rule)
                axes.fill_between(cells, low, high, color=colour, alpha=0.18, lw=0)
            noise = "no noise" if np.isinf(decibel) else f"{decibel:g} dB"
            axes.set_title(f"Rank {rank}, {noise}", fontsize=8.5)
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axes.tick_params(labelsize=7.5)
        for axes in panels[-1]:
            axes.set_xlabel("Cells seen")
        for axes in panels[:, 0]:
            axes.set_ylabel("Relative error")
        panels[0, 0].legend(fontsize=7.5, frameon=False)
        figure.align_ylabels()
        save(figure, path)


def numbers(text: str) -> list[float]:
    """Return the numbers that commas part."""
    return [float(part) for part in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ranks", type=numbers, default=[1.0, 5.0, 10.0])
    parser.add_argument("--noise", type=numbers, default=[np.inf, 20.0, 10.0])
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--warmup", type=int, default=50)
    parser.add_argument("--draws", type=int, default=80)
    parser.add_argument("--batches", type=int)
    parser.add_argument("--chains", type=int, default=1, help="of --batches")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--plot", type=Path)
    asked = parser.parse_args()
    ranks, errors = [int(rank) for rank in asked.ranks], read(asked.out)
    with threadpool_limits(limits=1):
        if asked.batches is not None:
            for rank, decibel in [(r, d) for r in ranks for d in asked.noise]:
                batches(rank, decibel, asked.batches, asked)
            return
        for trial in range(asked.trials):
            for rank, decibel in [(r, d) for r in ranks for d in asked.noise]:
                for key in [(rank, decibel, rule, trial) for rule in RULES]:
                    if key not in errors:
                        errors[key] = one(*key, asked.warmup, asked.draws)
                if asked.out is not None:
                    write(errors, asked.out)
    for rank, decibel in [(r, d) for r in ranks for d in asked.noise]:
        report(errors, rank, decibel)
    if asked.plot is not None:
        plot(errors, ranks, asked.noise, asked.plot)


if __name__ == "__main__":
    main()
