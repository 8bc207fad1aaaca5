"""Greedy choice of the cells whose values would tell most, from draws of their means.

A cell's mean eta_c, over its S latent columns, has among T draws the covariance F_c F_c'. Seeing
the cell means seeing eta_c with noise of variance 1, when eta is in units of its noise. So what a
set of cells tells of all means, their mutual information, is under a normal law of eta

    gain(set) = 1/2 log det(I + F F'),    F the rows F_c of the set, (n, T)

Choosing one by one the cell that adds most comes within 1 - 1/e of the best set, since what a cell
adds can only shrink as others are chosen [Krause and Guestrin 2005]. [BSVD, section 5.4.2] takes
the most uncertain cells and leaves the redundancy of a batch open.

A value that is one of a few levels cannot tell more than its own entropy, whatever its latent
means are worth: `most`, in nats, bounds what a cell adds.

    P    (T, T)     I at first;  P F_c' is what is left of a cell's rows, given the chosen ones
    C_c  (S, S)     F_c P F_c', its covariance given the chosen cells
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from glfm_cli.arrays import Array

FIRST = 4096  # cells that are looked at together at first
FACTOR = 16  # and at least so many for each that is wanted


@dataclass(frozen=True)
class Group:
    """Some candidates of equally many latent columns: index (n,), F (n, S, T)."""

    index: Array
    F: Array


Features = Callable[[Array], Sequence[Group]]  # of the candidates of these numbers


@dataclass(frozen=True)
class Selection:
    """Numbers (k,) of the cells, in the order of choice, and what each adds to those before."""

    index: Array
    gain: Array


def gains(groups: Sequence[Group], most: Array) -> Array:
    """Return what each of the candidates 0 .. n - 1 tells by itself, (n,)."""
    out = np.zeros(most.size)
    for group in groups:
        cov = group.F @ group.F.transpose(0, 2, 1)
        out[group.index] = np.minimum(_gain(cov), most[group.index])
    return out


def choose(features: Features, alone: Array, most: Array, cost: Array, count: int) -> Selection:
    """Return the greedy choice of `count` cells by gain over cost.

    features : gives the groups of any candidates; called for as few as will do
    alone : (n,) float64; what each candidate tells by itself, as `gains` returns it
    most : (n,) float64; what it can tell at most; infinite for a number
    cost : (n,) float64; above 0
    count : at most n

    Returns: the same as if all n had been compared at each step: a cell that was not looked at
        cannot add more than it tells by itself. O(count x cells looked at x S T).
    """
    rate = alone / cost
    order = np.argsort(-rate, kind="stable")
    n_looked = max(FIRST, FACTOR * count)
    while True:
        looked, others = order[:n_looked], order[n_looked:]
        least = float(rate[others[0]]) if others.size else -np.inf
        found = _greedy(_State(features(looked), most), cost, count, least)
        if found is not None:
            return found
        n_looked *= 4


def in_order(features: Features, index: Array, most: Array) -> Selection:
    """Return what each of the cells `index` adds to those before it."""
    state = _State(features(index), most)
    gain = np.empty(index.size)
    for i, c in enumerate(index):
        gain[i] = state.gain[c]
        state.take(int(c))
    return Selection(index, gain)


def _greedy(state: _State, cost: Array, count: int, least: float) -> Selection | None:
    """Return the choice, or None if a cell that is not in `state` might have been better."""
    index, gain = np.empty(count, dtype=np.int64), np.empty(count)
    for i in range(count):
        best = int(np.argmax(state.gain / cost))
        if state.gain[best] / cost[best] < least:
            return None
        index[i], gain[i] = best, state.gain[best]
        state.take(best)
    return Selection(index, gain)


class _State:
    """Cells and what each would add to those taken: gain (n,), -inf where it cannot be taken."""

    def __init__(self, groups: Sequence[Group], most: Array) -> None:
        self.groups, self.most = groups, most
        self.cov = [group.F @ group.F.transpose(0, 2, 1) for group in groups]
        self.gain = np.full(most.size, -np.inf)
        for group, cov in zip(groups, self.cov, strict=True):
            self.gain[group.index] = np.minimum(_gain(cov), most[group.index])
        self.P = np.eye(groups[0].F.shape[2])
        self.place = {
            int(c): (g, i) for g, group in enumerate(groups) for i, c in enumerate(group.index)
        }

    def take(self, cell: int) -> None:
        """Condition everything on a cell."""
        g, i = self.place[cell]
        F, cov = self.groups[g].F[i], self.cov[g][i]
        root = np.linalg.cholesky(np.eye(cov.shape[0]) + cov)
        U = np.linalg.solve(root, F @ self.P).T  # (T, S)
        self.P -= U @ U.T
        for group, other in zip(self.groups, self.cov, strict=True):
            W = group.F @ U
            other -= W @ W.transpose(0, 2, 1)
            taken = self.gain[group.index] == -np.inf
            gain = np.minimum(_gain(other), self.most[group.index])
            self.gain[group.index] = np.where(taken, -np.inf, gain)
        self.gain[cell] = -np.inf


def _gain(cov: Array) -> Array:
    """Return 1/2 log det(I + C) of every C of cov (n, S, S); rounding may leave C just below 0."""
    if cov.shape[1] == 1:
        return 0.5 * np.log1p(np.maximum(cov[:, 0, 0], 0.0))
    found: Array = 0.5 * np.linalg.slogdet(np.eye(cov.shape[1]) + cov)[1]
    return np.maximum(found, 0.0)
