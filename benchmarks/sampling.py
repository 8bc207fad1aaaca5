"""How far the variational fit of the mixture of experts is from sampling its posterior.

    python benchmarks/sampling.py [--draws 3] [--starts 8] [--sweeps 1000] [--problems NAME,...]
        [--times 4]

Small tables of five kinds, and one with more rows, are drawn, each --draws times (with
--times as many rows), and the
probabilities of the labels of 300 new rows with the same share of gaps are taken from

    the variational fit          of --starts starts, as `glfm classify` makes it
    two chains                   of the blocked Gibbs sampler, of which the second half is kept

Printed for each: the mean absolute difference of probabilities between the fit and both chains
together, the same for its best start alone, and between the two chains, which is what sampling
itself leaves open; how many experts have a share above 0.03 in the best start and, on average, in
the draws.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from three_gaussians import draw_rows

from glfm_cli.classification.features import LatentColumn
from glfm_cli.classification.fit import fit_experts
from glfm_cli.latent.iqgme import (
    IqgmeConfig,
    KnownRows,
    LabelLaw,
    label_law,
)
from glfm_cli.links import of_levels

Array = np.ndarray[Any, Any]
Draw = Callable[[int, np.random.Generator], tuple[Array, Array]]

NEW = 300
COUNTED = 0.03  # share from which an expert is counted


def two_groups(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return two groups in which the second feature speaks for opposite labels."""
    z = rng.integers(2, size=n)
    x = np.column_stack([rng.normal(4.0 * z - 2.0, 1.0), rng.standard_normal(n)])
    return x, np.where(z == 1, 2.0, -2.0) * x[:, 1] + rng.standard_normal(n) > 0.0


def one_line(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return one group of four correlated features, and one line."""
    mix = np.random.default_rng(1).standard_normal((4, 4))
    x = rng.standard_normal((n, 4)) @ mix
    return x, x @ np.array([0.6, -0.4, 0.0, 0.3]) + rng.standard_normal(n) > 0.2


def ring(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return rows whose label is whether they are near the middle: no line tells."""
    x = rng.standard_normal((n, 2))
    return x, (x**2).sum(axis=1) + 0.5 * rng.standard_normal(n) < 1.4


def overlapping(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return three groups of three features that run into each other, a rule in each."""
    z = rng.integers(3, size=n)
    centers = np.array([[0.0, 0.0, 0.0], [2.5, 1.0, 0.0], [0.0, 2.0, 2.5]])
    rules = np.array([[1.5, 0.0, 0.0], [0.0, -1.5, 1.0], [0.0, 0.5, -2.0]])
    away = rng.standard_normal((n, 3))
    return centers[z] + away, (away * rules[z]).sum(axis=1) + rng.standard_normal(n) > 0.0


PROBLEMS: dict[str, tuple[Draw, int, float]] = {
    "two groups": (two_groups, 120, 0.2),
    "three Gaussians": (draw_rows, 150, 0.1),
    "one line": (one_line, 80, 0.3),
    "ring": (ring, 100, 0.0),
    "overlapping groups": (overlapping, 150, 0.2),
    "many rows of three": (draw_rows, 600, 0.1),
}


LABEL = LatentColumn.of_label(np.array([0.0, 1.0]), 2)


def above(law: LabelLaw) -> np.ndarray:
    """Return the probability (n,) of the second level."""
    return of_levels(LABEL.link).probabilities(law.of_label(), LABEL.params)[:, 1]


def tables(
    draw: Draw, n: int, gaps: float, rng: np.random.Generator
) -> tuple[KnownRows, KnownRows]:
    """Return training rows and new ones, on the training rows' scale."""
    x, y = draw(n + NEW, rng)
    known = rng.random(x.shape) >= gaps
    seen = np.where(known, x, np.nan)[:n]
    x = np.where(known, (x - np.nanmean(seen, axis=0)) / np.nanstd(seen, axis=0), 0.0)
    label = LABEL.data(y[:n].astype(np.float64), 0.0)
    return KnownRows(x[:n], known[:n], label, np.ones(n, dtype=bool)), KnownRows(x[n:], known[n:])


def main() -> None:
    """Draw, fit, sample and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--starts", type=int, default=8)
    parser.add_argument("--sweeps", type=int, default=1000)
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--problems", default=",".join(PROBLEMS))
    said = parser.parse_args()
    config = IqgmeConfig(sweeps=said.sweeps, draws=max(2, said.sweeps // 10))
    sampled = replace(config, inference="gibbs")
    print(
        f"{'problem':<20} {'draw':>4} {'fit - chains':>12} {'best':>9} {'chains':>8} "
        f"{'experts':>9} {'s':>5}"
    )
    every = []
    for name in said.problems.split(","):
        draw, n, gaps = PROBLEMS[name]
        n *= said.times
        for i in range(said.draws):
            began = time.process_time()
            train, new = tables(draw, n, gaps, np.random.default_rng([i, n]))
            fit = fit_experts(train, config, chains=said.starts, seed=i)
            laws = [label_law(new, member.experts) for member in fit.members]
            best = above(laws[0])
            weights = [member.weight for member in fit.members]
            p = above(LabelLaw.average(laws, weights))
            chains, experts = [], []
            for chain in range(2):
                seed = 100 * (i + 1) + chain
                drawn = fit_experts(train, sampled, chains=1, seed=seed).draws
                laws = [label_law(new, q) for q in drawn]
                chains.append(above(LabelLaw.average(laws)))
                experts += [np.sum(law.gate.mean(axis=1) > COUNTED) for law in laws]
            off, alone = (float(np.abs(q - np.mean(chains, axis=0)).mean()) for q in (p, best))
            apart = float(np.abs(chains[0] - chains[1]).mean())
            every.append((off, alone, apart))
            found = int(np.sum(fit.experts.pi > COUNTED))
            print(
                f"{name:<20} {i:>4} {off:>12.4f} {alone:>9.4f} {apart:>8.4f} {found:>3}"
                f" {np.mean(experts):>5.1f}"
                f" {time.process_time() - began:>5.0f}", flush=True,
            )  # fmt: skip
    off, alone, apart = np.mean(every, axis=0)
    print(f"{'mean':<25} {off:>12.4f} {alone:>9.4f} {apart:>8.4f}")


if __name__ == "__main__":
    main()
