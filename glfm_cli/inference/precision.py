"""How far estimates would move with another seed: the Monte Carlo error of what is written.

Chains are independent, so that how they differ tells how far their mean is from that of others.
Let m_c be what chain c of C says of a cell, in units of the cell's sd. The difference between the
estimates of two runs of C chains has the variance 2 var(m) / C, and so has every contrast

    sqrt(2 / C) sum_c h_c m_c,    sum_c h_c = 0,  sum_c h_c^2 = 1.

The C - 1 orthonormal ones of every cell (a discrete cosine transform) are thus as many samples of
such differences; their quantiles over cells need no correction for how few chains there are. Where
chains of several models count by different weights, a sample is the sum of one contrast of each.

A bias that all chains share, as when they still climb, is none of these differences. It shows when
the second halves of the chains differ from the first ones in the same direction: more than after
the signs of whole chains were flipped at random.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.inference.chain_means import ChainMeans
from glfm_cli.inference.diagnostics.judgement import bound_in_words
from glfm_cli.inference.posterior import Posterior
from glfm_cli.inference.predictive import chain_means

GOAL = 0.12  # of a cell's sd; adds less than 2 % to its variance, 1 % to its error
GROWTH_GOAL = 0.1  # up to which a small table gets more chains: 0.5 % of the error of twice as many
CELLS = 400  # that are looked at, drawn at random
MOST_CHAINS = 400
MARGIN = 1.1  # of chains, since the error is an estimate
FLIPS = 199
FEWEST_FLIPPED = 8  # chains whose signs tell anything
CHANCE = 0.01


@dataclass(frozen=True)
class Precision:
    """How far estimates would move with another seed, in units of each cell's sd.

    cells, chains : how many were compared
    typical, most : by how far half of the cells, and 95 % of them, move less; NaN for one chain
    drift : the root mean square, over cells, of how far the second halves of the chains differ
        from the first in the same direction; 0 where chance explains it
    goal : what `typical` and `drift` must not exceed
    bound_converged : of an ascent, whether its bound had stopped rising, which alone decides
    """

    cells: int
    chains: int
    typical: float
    most: float
    drift: float
    goal: float = GOAL
    bound_converged: bool | None = None

    @property
    def good(self) -> bool:
        """Whether the estimates are as precise as they should be."""
        if self.bound_converged is not None:
            return self.bound_converged
        return self.cells == 0 or max(self.typical, self.drift) <= self.goal

    @property
    def chains_needed(self) -> int:
        """How many chains bring the error to the goal: it falls with the root of their number."""
        if self.good or self.typical <= self.goal or self.bound_converged is not None:
            return self.chains
        if math.isnan(self.typical):
            return max(8, self.chains)
        needed = math.ceil(MARGIN * self.chains * (self.typical / self.goal) ** 2)
        return min(max(needed, self.chains + 1), MOST_CHAINS)

    @property
    def worth(self) -> float:
        """How many independent draws of a cell would be as precise; 1 where nothing tells."""
        # Half of a normal distribution with variance 2 / worth lies nearer than `typical`.
        return 2.0 * (0.6745 / self.typical) ** 2 if self.typical > 0 else 1.0

    def summary(
        self, seconds: float | None = None, *, stopped: bool = False, of_fit: bool = False
    ) -> str:
        """Return a sentence or two; `seconds` is what the chains took, of a run that was `stopped`
        before its end or not, or that is a saved fit's, which alone can have more.
        """
        if self.bound_converged is not None:
            return bound_in_words(self.chains, self.bound_converged)
        if self.cells == 0:
            return "Good: there was no cell to estimate."
        if math.isnan(self.typical) and stopped:
            return "Precision unknown: it takes several chains of a model, and the run was stopped."
        if math.isnan(self.typical):
            return "Precision unknown: it takes several chains to tell; use --chains 8."
        by = _short(self.typical)
        if self.typical > self.goal >= round(self.typical, 2):
            by = f"{math.ceil(1000 * self.typical) / 1000:.3f}"
        moved = (
            f"with another seed, estimates would move by {by} of a cell's "
            f"standard deviation; 95 % of them by less than "
            f"{_short(self.most).removeprefix('less than ')}."
        )
        if self.good:
            return f"Good: {moved}"
        if self.typical > self.goal:
            return f"Not precise enough: {moved} {self._more_chains(seconds, of_fit)}"
        return (
            f"Not settled: {moved} But the second halves of the chains differ from the first "
            f"by {_short(self.drift)} in the same direction. Use a longer --warmup."
        )

    def of_tables(self, tables: int) -> tuple[bool, str]:
        """Return whether that many draws of their own are good for pooling, and it in words.

        They need not be so many that estimates are precise, but chains must have settled.
        """
        if self.good or not self.typical > self.goal:
            return self.good, self.summary()
        if self.drift > self.goal:
            return False, (
                f"Not settled: the second halves of the chains differ from the first by "
                f"{_short(self.drift)} of a cell's standard deviation in the same direction. "
                "Use a longer --warmup."
            )
        return True, f"Good: each of the {tables} tables has a draw of its own."

    def _more_chains(self, seconds: float | None, of_fit: bool) -> str:
        needed = self.chains_needed
        how_long = ""
        if seconds:
            how_long = f", which takes about {_duration(seconds * needed / self.chains)}"
        aim = f"For {self.goal:g} take" if needed < MOST_CHAINS else f"Nearer to {self.goal:g} come"
        more = "a fit resumed with " if of_fit else ""
        return f"{aim} {more}--chains {needed}{how_long}."

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        numbers = {n: getattr(self, n) for n in ("typical", "most", "drift")}
        known = {n: None if math.isnan(value) else value for n, value in numbers.items()}
        counts = {"cells": self.cells, "chains": self.chains, "chains_needed": self.chains_needed}
        return {"good": self.good, "goal": self.goal, **known, **counts}


def measure_precision(
    posterior: Posterior, cells: Mapping[int, Array], rng: np.random.Generator, goal: float = GOAL
) -> Precision:
    """Return how precise the estimates of cells are, by at most `CELLS` of them.

    cells : mapping of int to (n,) int; column number to the ascending row indices
    rng : chooses the cells, and flips signs
    goal : see `Precision`
    """
    n_cells, n_chains = sum(rows.size for rows in cells.values()), len(posterior.chains)
    if posterior.weights is not None and posterior.chains:  # none where no new row has a gap
        done = bool(posterior.chains[0][0].trace.get("converged", 0.0))
        return Precision(n_cells, n_chains, math.nan, math.nan, math.nan, goal, done)
    if n_cells == 0 or not posterior.compares:
        return Precision(n_cells, n_chains, math.nan, math.nan, math.nan, goal)
    found = chain_means(posterior, _some(cells, n_cells, rng)).values()
    scaled = zip(*map(_scaled, found), strict=True)
    whole, first, second = (np.concatenate(part, axis=1) for part in scaled)
    contrasts = _contrasts(whole, np.array(posterior.groups))
    typical, most = np.quantile(np.abs(contrasts), (0.5, 0.95)).tolist()
    return Precision(n_cells, n_chains, typical, most, _drift(second - first, rng), goal)


def _some(cells: Mapping[int, Array], n_cells: int, rng: np.random.Generator) -> dict[int, Array]:
    """Return some of the cells, all where they are few."""
    if n_cells <= CELLS:
        return {d: rows for d, rows in cells.items() if rows.size}
    chosen = np.sort(rng.choice(n_cells, CELLS, replace=False))
    found, start = {}, 0
    for d, rows in cells.items():
        here = chosen[(chosen >= start) & (chosen < start + rows.size)]
        if here.size:
            found[d] = rows[here - start]
        start += rows.size
    return found


def _scaled(means: ChainMeans) -> tuple[Array, Array, Array]:
    """Return what chains and their halves say, in units of the cells' sd; 0 where that is 0."""
    unit = np.where(means.sd > 0, 1.0 / np.where(means.sd > 0, means.sd, 1.0), 0.0)
    return (means.whole * unit, means.first * unit, means.second * unit)


def _contrasts(whole: Array, of: Array) -> Array:
    """Return samples (K, n) of how far the estimates of two runs differ, of chains' means (C, n).

    of : (C,) the candidate of each chain, two or more of each. A sample is the sum of a contrast
        of every candidate, and has the distribution of a difference whatever their weights.
    """
    parts, n = [], of.size
    for size, own in ((int(np.sum(of == group)), whole[of == group]) for group in np.unique(of)):
        k, c = np.arange(1, size)[:, None], np.arange(size)
        orthonormal = np.sqrt(2.0 / size) * np.cos(np.pi * k * (c + 0.5) / size) @ own
        parts.append(np.sqrt(2.0 * (size - 1) / (n * (n - 1))) * orthonormal)
    every = np.arange(max(len(part) for part in parts))
    return np.sum([part[every % len(part)] for part in parts], axis=0)


def _drift(moved: Array, rng: np.random.Generator) -> float:
    """Return the root mean square of what chains (C, n) share in how they moved, 0 by chance."""
    n_chains = moved.shape[0]
    if n_chains < FEWEST_FLIPPED or np.isnan(moved).any():
        return 0.0
    signs = np.concatenate([np.ones((1, n_chains)), rng.choice([-1.0, 1.0], (FLIPS, n_chains))])
    sizes = np.mean((signs @ moved / n_chains) ** 2, axis=1)
    if np.mean(sizes >= sizes[0]) > CHANCE:
        return 0.0
    by_chance = float(np.mean(np.var(moved, axis=0, ddof=1))) / n_chains
    return math.sqrt(max(float(sizes[0]) - by_chance, 0.0))


def _short(value: float) -> str:
    return f"{value:.2f}" if value >= 0.01 else "less than 0.01" if value > 0 else "0"


def _duration(seconds: float) -> str:
    """Return a rough time in words."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
