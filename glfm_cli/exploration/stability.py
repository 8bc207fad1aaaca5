"""How often the other draws and chains contain a feature or a pattern.

Features have no labels that last from one draw to the next, and a chain keeps for long to what it
found. So a feature is looked for in the draws of the *other* chains, by the rows that have it: two
features match when |phi|, the correlation of their memberships, is at least `MATCH`. phi is 0 for
unrelated features whatever their shares, which overlaps such as Jaccard's are not.

    stability = mean over other chains of the share of their draws that contain a match

With a single chain its own later and earlier draws are all there is to compare with, which says
little; the result then says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.exploration.explanation import Explanation, memberships, numbered
from glfm_cli.inference.posterior import Posterior

MATCH = 0.5
_AT_MOST_ROWS = 4000  # on which features are compared
_AT_MOST_DRAWS = 40  # of each chain


@dataclass(frozen=True)
class Matches:
    """Which feature of each draw is each feature of the explanation.

    chain, draw : (T,) int, the draws compared
    match : (T, K) int, the number of the best matching feature, -1 for none at all
    phi : (T, K) float64, its correlation; negative for a feature that is off where ours is on
    own : the chain of the explanation
    """

    chain: Array
    draw: Array
    match: Array
    phi: Array
    own: int

    @property
    def found(self) -> Array:
        """Return (T, K) bool: the draw contains the feature."""
        return np.abs(self.phi) >= MATCH

    @property
    def others(self) -> Array:
        """Return (T,) bool: draws that count; all of them where there is but one chain."""
        elsewhere = self.chain != self.own
        return elsewhere if elsewhere.any() else np.ones(self.chain.size, dtype=bool)

    def stability(self) -> Array:
        """Return (C, K): the share of draws of each other chain that contain a feature."""
        return by_chain(self.found, self.chain, self.others)


def by_chain(values: Array, chain: Array, counted: Array) -> Array:
    """Return the mean over the counted draws of each chain, (C, K) of (T, K)."""
    chains = np.unique(chain[counted])
    means = [values[counted & (chain == c)].mean(axis=0, dtype=np.float64) for c in chains]
    return np.array(means).reshape(chains.size, values.shape[1])


def standard_error(shares: Array) -> Array:
    """Return that of the mean (K,) of shares (C, K) in C chains.

    Each chain counts as one trial of a share that is uniform beforehand: the sd of Beta(1 + sum,
    1 + C - sum). A feature that all chains agree about keeps an error, and draws of one chain,
    which resemble each other, do not make it smaller.
    """
    a, b = 1.0 + shares.sum(axis=0), 1.0 + (1.0 - shares).sum(axis=0)
    return np.sqrt(a * b / (a + b + 1.0)) / (a + b)


def correlations(A: Array, B: Array) -> Array:
    """Return phi (K, L) between the columns of two 0/1 matrices; 0 for a constant column."""
    n = max(A.shape[0], 1)
    a, b = A.astype(np.float32), B.astype(np.float32)
    p, q = a.mean(axis=0, dtype=np.float64), b.mean(axis=0, dtype=np.float64)
    covariance = (a.T @ b).astype(np.float64) / n - np.outer(p, q)
    scale = np.sqrt(np.outer(p * (1 - p), q * (1 - q)))
    return np.divide(covariance, scale, out=np.zeros_like(covariance), where=scale > 1e-12)


def thinned(n_draws: int, at_most: int = _AT_MOST_DRAWS) -> Array:
    """Return the numbers of all draws of a chain, or of evenly spaced ones."""
    return some_rows(n_draws, at_most)


def some_rows(n_rows: int, at_most: int = _AT_MOST_ROWS) -> Array:
    """Return the numbers of all rows, or of evenly spaced ones."""
    if n_rows <= at_most:
        return np.arange(n_rows)
    return np.linspace(0, n_rows - 1, at_most).round().astype(int)


def match_features(posterior: Posterior, shown: Explanation, *, bias: bool) -> Matches:
    """Look for each feature of an explanation in the draws of all chains.

    O(draws N K^2), with at most 4,000 rows and 40 draws a chain.
    """
    rows = some_rows(shown.Z.shape[0])
    mine = shown.Z[rows]
    kept = [set(thinned(len(chain)).tolist()) for chain in posterior.chains]
    chain, number, match, phi = [], [], [], []
    for c, t, draw in numbered(posterior):
        if t not in kept[c]:
            continue
        theirs = memberships(posterior, draw, rows, bias=bias)
        r = correlations(mine, theirs)
        best = np.abs(r).argmax(axis=1) if r.shape[1] else np.full(r.shape[0], -1)
        chain.append(c)
        number.append(t)
        match.append(best)
        phi.append(r[np.arange(best.size), best] if r.shape[1] else np.zeros(best.size))
    return Matches(np.array(chain), np.array(number), np.array(match), np.array(phi), shown.chain)


def membership_probability(
    posterior: Posterior, shown: Explanation, matches: Matches, which: Sequence[int], *, bias: bool
) -> Array:
    """Return (N, len(which)): how many of the draws with the feature give it to each row.

    The draw shown counts as one of them.
    """
    total = shown.Z[:, list(which)].astype(np.float64)
    times = np.ones(len(which))
    for i in range(matches.chain.size):
        c, t = int(matches.chain[i]), int(matches.draw[i])
        have = [a for a, k in enumerate(which) if matches.found[i, k]]
        if not have or (c, t) == (shown.chain, shown.draw):
            continue
        Z = memberships(posterior, posterior.chains[c][t], slice(None), bias=bias)
        for a in have:
            k = which[a]
            z = Z[:, matches.match[i, k]]
            total[:, a] += z if matches.phi[i, k] > 0 else 1 - z
            times[a] += 1
    return total / times
