"""How the scores of components and the covariates of rows and columns go together.

With weights w of units by their observed cells, and scores z and covariates X standardised by them,

    r = sum over units of w z X

averaged over draws. The interval of a correlation says how sure it is of these units. What there is
by chance alone is found by permuting units: their weights and scores together, against covariates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from glfm_cli.arrays import Array

TAIL = (0.025, 0.975)
RISK = 0.05  # that chance alone makes a correlation of any component and covariate look like more
PERMUTATIONS = 399
CONSTANT = 1e-12  # variance of a covariate among the units with cells


class Support(NamedTuple):
    """What is known of the units of one side.

    cells : (n,) how many observed cells each has;  covariates : (n, p);  names : (p,)
    """

    cells: Array
    covariates: Array
    names: tuple[str, ...]


@dataclass(frozen=True)
class Amount:
    """A quantity over draws: its mean, and where the middle 95 % of the draws lie."""

    name: str
    mean: float
    lower: float
    upper: float

    @classmethod
    def of(cls, name: str, values: Array) -> Amount:
        """Return the summary of the draws (T,) of a quantity."""
        return cls(name, float(values.mean()), *(float(q) for q in np.quantile(values, TAIL)))


@dataclass(frozen=True)
class GoesWith:
    """The correlation of a component's scores on one side, "row" or "column", with a covariate.

    chance : what all |correlation| of a side stay below in 95 % of matrices whose covariates tell
        nothing
    """

    side: str
    name: str
    correlation: Amount
    chance: float

    @property
    def sure(self) -> bool:
        """Whether neither the draws nor chance allow that there is none."""
        amount = self.correlation
        return amount.lower * amount.upper > 0.0 and abs(amount.mean) > self.chance


def goes_with(
    draws: Sequence[tuple[Array, Array]],
    vectors: Sequence[tuple[Array, Array]],
    support: tuple[Support, Support],
) -> list[tuple[GoesWith, ...]]:
    """Return how each component goes with the covariates of both sides, those surest first.

    draws : U (I, K) and s V (J, K) of each;  vectors : u (I,) and v (J,) of each component
    """
    found: list[list[GoesWith]] = [[] for _ in vectors]
    n_sides = sum(bool(known.names) for known in support)
    for i, (side, known) in enumerate(zip(("row", "column"), support, strict=True)):
        if not known.names:
            continue
        weight = known.cells / max(float(known.cells.sum()), 1.0)
        X = known.covariates - weight @ known.covariates
        X /= np.sqrt(np.maximum(weight @ X**2, np.finfo(float).tiny))
        every = np.zeros((len(draws), len(vectors), len(known.names)))
        scores = np.zeros((weight.size, len(vectors)))
        for t, (U, sV) in enumerate(draws):
            for c, (u, v) in enumerate(vectors):
                score = (U @ (sV.T @ v), sV @ (U.T @ u))[i]
                score = score - weight @ score
                spread = np.sqrt(float(weight @ score**2))
                weighed = weight * score / spread if spread else np.zeros(weight.size)
                every[t, c] = weighed @ X
                scores[:, c] += weighed / len(draws)
        chance = by_chance(weight, scores, known.covariates, RISK / n_sides)
        for c, of in enumerate(found):
            amounts = (Amount.of(name, every[:, c, q]) for q, name in enumerate(known.names))
            of += [GoesWith(side, one.name, one, chance) for one in amounts]
    # By how far from 0 the interval ends.
    return [
        tuple(sorted(of, key=lambda one: -max(one.correlation.lower, -one.correlation.upper)))
        for of in found
    ]


def by_chance(weight: Array, scores: Array, X: Array, risk: float) -> float:
    """Return what the largest |r| of permuted units stays below, but for `risk` of permutations.

    weight : (n,) with sum 1;  scores : (n, C) weight times scores;  X : (n, p)
    O(n C p) a permutation.
    """
    X = X - X.mean(axis=0)  # lest squares cancel
    both = np.concatenate([X, X**2], axis=1)
    own, p = np.column_stack([scores, weight]), X.shape[1]
    rng, largest = np.random.default_rng(0), np.zeros(PERMUTATIONS)
    for i in range(PERMUTATIONS):
        sums = own[rng.permutation(weight.size)].T @ both
        variance = sums[-1, p:] - sums[-1, :p] ** 2
        varies = variance > CONSTANT
        r = sums[:-1, :p][:, varies] / np.sqrt(variance[varies])
        largest[i] = np.abs(r).max(initial=0.0)
    return float(np.quantile(largest, 1.0 - risk, method="higher"))
