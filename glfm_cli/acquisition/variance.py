"""Greedy choice of the cells whose values would lower the variance of the open cells most.

With F_t (T,) the draws of the mean of t, one latent column of a cell, centred, in units of its
noise, and c_tu = F_t F_u', seeing u with noise of variance 1 lowers the variance of t by

    c_tu^2 / (1 + c_uu)

and what is added up is that over the open cells, each in units of its own predictive variance
1 + c_tt at the start [Cohn, Ghahramani and Jordan 1996, active learning with statistical models].
Two things are taken from ensemble filters, for there are far fewer draws than cells. A covariance
is counted only between cells of one unit, a row or, of a matrix, a row or a column; and from its
square is taken what draws that are independent would give, c_tt c_uu / T. After a choice the draws
of its neighbours move as the mean and variance of their law would, without new noise [Whitaker and
Hamill 2002].
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np

from glfm_cli.acquisition.greedy import Features, Group, Selection
from glfm_cli.arrays import Array

MOST_CELLS = 1 << 14  # that are compared
MOST_NEIGHBOURS = 256  # of a unit, that stand for all of it


def choose_by_variance(
    features: Features, units: Sequence[Array], told: Array, most: Array, cost: Array, count: int
) -> tuple[Selection, Array]:
    """Return the greedy choice, and what each cell lowers alone, as `lowering` does.

    Of very many cells those are compared that tell most by themselves, `told` (n,), and beside them
    others, evenly, that stand for the rest.
    """
    first, rest = np.split(np.argsort(-told / cost, kind="stable"), [max(MOST_CELLS, 4 * count)])
    some = rest[:: max(1, -(-rest.size // MOST_CELLS))]
    looked = np.sort(np.concatenate((first, some)))
    times = np.where(np.isin(looked, some), rest.size / max(some.size, 1), 1.0)
    groups = [Group(np.searchsorted(looked, g.index), g.F) for g in features(looked)]
    of_looked = [unit[looked] for unit in units]
    chosen, lowered = lowering(groups, of_looked, most[looked], cost[looked], count, times)
    alone = np.zeros(told.size)
    alone[looked] = lowered
    return Selection(looked[chosen.index], chosen.gain), alone


def lowering(
    groups: Sequence[Group],
    units: Sequence[Array],
    most: Array,
    cost: Array,
    count: int,
    times: Array,
) -> tuple[Selection, Array]:
    """Return the greedy choice of `count` cells by lowered variance over cost.

    units : of each kind of unit, the number of each candidate's (n,)
    most : (n,) float64; what a value can tell at most, in nats; infinite for a number
    cost : (n,) float64; above 0
    count : at most n
    times : (n,) float64; how many open cells each stands for, where these are some of very many

    Returns Selection, (n,) float64: gains, and what each cell would lower by itself; both in cells'
        variances. What a cell adds is looked at again only when it comes first, so a cell that has
        come to tell more since may come late. O(n M S^2 T) for M neighbours.
    """
    open_cells = _OpenCells(groups, units, most, times)
    alone = np.array([open_cells.gain(c) for c in range(most.size)])
    heap = [(-gain / price, c) for c, (gain, price) in enumerate(zip(alone, cost, strict=True))]
    heapq.heapify(heap)
    seen_at = np.zeros(most.size, dtype=np.int64)
    index, gains = np.empty(count, dtype=np.int64), np.empty(count)
    for i in range(count):
        while True:
            rate, c = heapq.heappop(heap)
            if seen_at[c] == i:
                break
            seen_at[c] = i
            heapq.heappush(heap, (-open_cells.gain(c) / cost[c], c))
        index[i], gains[i] = c, -rate * cost[c]
        open_cells.see(c)
    return Selection(index, gains), alone


class _OpenCells:
    """Latent columns of all candidates, one after the other: F (m, T), and who is whose neighbour.

    start : (n + 1,) where a cell's latent columns begin
    weight : (m,) how many cells each stands for, over its variance; a cell's columns share it
    """

    def __init__(
        self, groups: Sequence[Group], units: Sequence[Array], most: Array, times: Array
    ) -> None:
        width = np.zeros(most.size, dtype=np.int64)
        for group in groups:
            width[group.index] = group.F.shape[1]
        self.start = np.concatenate(([0], np.cumsum(width)))
        self.most, self.units = most, units
        self.F = np.empty((self.start[-1], groups[0].F.shape[2]))
        for group in groups:
            for s in range(group.F.shape[1]):
                self.F[self.start[group.index] + s] = group.F[:, s]
        owner = np.repeat(np.arange(most.size), width)
        predictive = 1.0 + np.einsum("mt,mt->m", self.F, self.F)
        self.weight = (times / np.maximum(width, 1))[owner] / predictive
        self.members = [_members(unit[owner]) for unit in units]
        self.looked = [{u: _thinned(at) for u, at in of.items()} for of in self.members]

    def gain(self, c: int) -> float:
        """Return what the value of a cell lowers, in cells' variances."""
        own = slice(self.start[c], self.start[c + 1])
        if own.start == own.stop:  # of a column of one level, which says nothing
            return 0.0
        F = self.F[own]
        cov = F @ F.T
        known = np.eye(len(F)) + cov
        lowered = float(np.sum(np.diag(cov @ np.linalg.solve(known, cov)) * self.weight[own]))
        for unit, of in zip(self.units, self.looked, strict=True):
            at, times = of[int(unit[c])]
            at = at[(at < own.start) | (at >= own.stop)]
            F_t = self.F[at]
            cross = F_t @ F.T
            chance = np.einsum("mt,mt->m", F_t, F_t) / F.shape[1]
            inverse = np.linalg.inv(known)
            fall = np.einsum("ms,ms->m", cross @ inverse, cross)
            fall -= chance * float(np.sum(inverse * cov))
            lowered += times * float(fall @ self.weight[at])
        return lowered * self._told(c, known)

    def see(self, c: int) -> None:
        """Condition a cell and its neighbours on its value, one latent column after the other."""
        own = np.arange(self.start[c], self.start[c + 1])
        if not own.size:
            return
        kinds = zip(self.units, self.members, strict=True)
        at = np.unique(np.concatenate([own, *(of[int(unit[c])] for unit, of in kinds)]))
        share = self._told(c, np.eye(own.size) + self.F[own] @ self.F[own].T)
        for s in own:
            f = self.F[s].copy()
            variance = float(f @ f)
            root = share / (1.0 + variance + np.sqrt(1.0 + variance))
            self.F[at] -= np.outer(self.F[at] @ f * root, f)

    def _told(self, c: int, known: Array) -> float:
        """Return the share of a cell's variance that its levels can settle of what a number would.

        I nats about each latent column leave exp(-2 I) of its variance.
        """
        if np.isinf(self.most[c]):
            return 1.0
        S = len(known)
        nats = 0.5 * float(np.linalg.slogdet(known)[1])
        if nats <= self.most[c]:
            return 1.0
        return float(np.expm1(-2.0 * self.most[c] / S) / np.expm1(-2.0 * nats / S))


def _members(unit: Array) -> dict[int, Array]:
    """Return the latent columns of each unit that has some."""
    if not unit.size:
        return {}
    order = np.argsort(unit, kind="stable")
    names, first = np.unique(unit[order], return_index=True)
    return dict(zip(names.tolist(), np.split(order, first[1:]), strict=True))


def _thinned(at: Array) -> tuple[Array, float]:
    """Return some of many latent columns, evenly, and how many each stands for."""
    if at.size <= MOST_NEIGHBOURS:
        return at, 1.0
    some = at[np.linspace(0, at.size - 1, MOST_NEIGHBOURS).astype(np.int64)]
    return some, at.size / some.size
