"""Inputs of trees beside the other columns: what the other rows of its group say of a cell.

Of numbers and of levels in order it is the mean of the column's observed cells there, drawn towards
that of all groups by how much groups differ: the best linear forecast of a normal level of each
group [Searle and others 1992, chapter 7]; of levels without an order the most frequent one.

An observed cell, on which trees are grown, may not be told of itself, and should not by a
difference: told the mean of all others of its group, the larger a cell is the less it would be told
of. So the observed cells of a group are dealt out to a few hands, and each is told of the other
hands alone.

A group without any other observed cell of a column says nothing, and that is no mean like others:
told the mean of all, trees would take it for that of the group, and be far too sure. So a column
that has such missing cells has trees of their own for them. With roles group and time, where far
cells have such trees, as many observed cells are told of nobody there as missing ones are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.forest.columns import Kinds
from glfm_cli.latent.model import take

SEED = 0x6D617465  # of who has which hand
HANDS = 5  # to which the cells of a group are dealt out
ALONE = 1e9  # cells that the mean of all groups counts for where groups do not differ
LEAST = 1e-3  # and at least


@dataclass(frozen=True, eq=False)
class GroupMates:
    """The rows of a fit by their groups, and what the mean of all groups counts for.

    code : (N,) int64, the group of each row
    prior : (D, 2) of how many cells of a group the mean of all groups is worth, and that mean; of
        levels without an order the last is the most frequent one. 0 of columns of which nothing is
        said
    """

    code: Array
    prior: Array

    def borrowed(self, told: Array, seen: Array, gone: Array, alone: Array) -> Array:
        """Return what is told (D, N), of some observed cells what it would be told of nobody.

        gone, alone : (D, N) bool, the missing cells in whose place observed ones are, and those
            that nobody tells of: of each column as many of the former as of the latter are told so
        """
        told = told.copy()
        share = np.sum(gone & alone, axis=1) / np.maximum(gone.sum(axis=1), 1)
        for d in np.flatnonzero(share).tolist():
            rng = np.random.default_rng([SEED, d, 1])
            told[d, (seen[d] != 0) & (rng.random(told.shape[1]) < share[d])] = self.prior[d, 1]
        return told

    @classmethod
    def of(
        cls, code: Array, z: Array, seen: Array, kinds: Kinds, same: Sequence[int] = ()
    ) -> tuple[GroupMates, Array, Array]:
        """Return those of cells z (D, N), what they say (D, N), and which cells have none (D, N).

        same : columns that are the same in all rows of a group, of which nothing is said
        """
        D, nominal = len(z), unordered(kinds)
        prior, told, alone = np.empty((D, 2)), np.empty(z.shape, np.float32), seen == 0
        for d, y in enumerate(z):
            there = seen[d] != 0
            prior[d] = _prior(y, there, code, nominal=bool(nominal[d]))
            if d in same:
                prior[d, 0] = 0.0
            hand = _deal(code, there, np.random.default_rng([SEED, d]))
            told[d] = _told(y, there, code, hand, prior[d], nominal=bool(nominal[d]))
            alone[d] &= ~np.isin(code, code[there]) & (d not in same)
        return cls(code, prior), told, alone

    def of_new(
        self, donors: Array, seen: Array, z: Array, own: Array, code: Array, kinds: Kinds
    ) -> tuple[Array, Array]:
        """Return what is told of new rows z (D, n), NaN where missing, by all other rows.

        donors, seen : (D, N) of the fit
        own : (n,) rows of the fit that new ones are, which may not tell of themselves, or -1
        code : (n,) groups of the new rows

        Returns: (D, n) what is told, and (D, n) which missing cells nobody tells of.
        """
        old = np.delete(np.arange(self.code.size), own[own >= 0])
        old = old[np.isin(self.code[old], code)]
        _, both = np.unique(np.append(self.code[old], code), return_inverse=True)
        told, alone = np.empty(z.shape, np.float32), np.isnan(z)
        for d, cells in enumerate(z):
            y = np.append(donors[d, old], cells)
            known = ~np.isnan(cells)
            there = np.append(seen[d, old] != 0, known)
            hand = np.full(y.size, HANDS)  # old rows have none: all new ones are told of them
            dealt = _deal(both[old.size :], known, np.random.default_rng([SEED, d]))
            hand[old.size :] = np.where(known, dealt, -1)
            nominal = bool(unordered(kinds)[d])
            told[d] = _told(y, there, both, hand, self.prior[d], nominal=nominal)[old.size :]
            alone[d] &= ~np.isin(both[old.size :], both[there])
        return told, alone

    def strange(self, seen: Array, z: Array, code: Array) -> Array:
        """Return which missing cells (D, n) of new rows nobody tells of, as of none in the fit.

        seen : (D, N) of the fit;  z : (D, n) the new rows, NaN where missing;  code : (n,) groups
        """
        found = np.isnan(z)
        for d, cells in enumerate(z):
            heard = self.code[seen[d] != 0]
            if not self.prior[d, 0] or not np.isin(self.code, heard).all():
                found[d] = False
            else:
                found[d] &= ~np.isin(code, np.append(heard, code[~np.isnan(cells)]))
        return found

    def pack(self) -> dict[str, Array]:
        """Return them as named arrays."""
        return {"mates_code": self.code, "mates_prior": self.prior}

    @classmethod
    def unpack(cls, arrays: Mapping[str, Array], columns: int, rows: int) -> GroupMates | None:
        """Return what `pack` gave, None where it is missing; ValueError when it is no such thing.
        """
        if "mates_code" not in arrays:
            return None
        code = take(arrays, "mates_code", np.int64, (rows,))
        prior = take(arrays, "mates_prior", np.float64, (columns, 2))
        if np.any(code < 0) or np.any(prior[:, 0] < 0.0):
            raise ValueError("'mates_code' or 'mates_prior' is out of range")
        return cls(code, prior)


def unordered(kinds: Kinds) -> Array:
    """Return which columns (D,) are of more than two levels without an order."""
    of = slice(kinds.n_columns)
    found: Array = (kinds.nominal[of] != 0) & (kinds.levels[of] > 2)
    return found


def _deal(code: Array, there: Array, rng: np.random.Generator) -> Array:
    """Return the hand (N,) of each observed cell, -1 of others: those of a group in turn."""
    order = np.lexsort((rng.random(code.size), code))
    order = order[there[order]]
    _, first, size = np.unique(code[order], return_index=True, return_counts=True)
    hand = np.full(code.size, -1)
    hand[order] = (np.arange(order.size) - np.repeat(first, size)) % HANDS
    return hand


def _prior(y: Array, there: Array, code: Array, *, nominal: bool) -> Array:
    """Return how many cells the mean of all groups is worth, and that mean; see `GroupMates`.

    The former is the ratio of the variance within groups to that between them, by analysis of
    variance [Searle and others 1992, chapter 3].
    """
    v = y[there]
    if not v.size:
        return np.array([ALONE, 0.0])
    if nominal:
        return np.array([ALONE, np.argmax(np.bincount(v.astype(np.intp)))])
    _, group, n = np.unique(code[there], return_inverse=True, return_counts=True)
    middle = v.mean()
    level = np.bincount(group, v) / n
    free, spare = v.size - n.size, n.size - 1
    within = np.sum((v - level[group]) ** 2) / max(free, 1)
    excess = np.sum(n * (level - middle) ** 2) - spare * within
    between = excess / max(v.size - np.sum(n**2) / v.size, 1.0)
    worth = within / between if free and between > 0.0 else ALONE
    return np.array([np.clip(worth, LEAST, ALONE), middle])


def _told(
    y: Array, there: Array, code: Array, hand: Array, prior: Array, *, nominal: bool
) -> Array:
    """Return what the cells of a group in other hands say (N,) of each cell."""
    worth, middle = prior
    found = np.full(y.size, middle)
    if not worth:
        return found
    for own in range(-1, HANDS):
        of, by = hand == own, there & (hand != own)
        if not of.any():
            continue
        if nominal:
            groups, level = _most_frequent(y[by].astype(np.intp), code[by])
            at = np.minimum(np.searchsorted(groups, code[of]), groups.size - 1)
            if groups.size:
                found[of] = np.where(groups[at] == code[of], level[at], middle)
            continue
        n, total = (np.bincount(code[by], w, code.max() + 1) for w in (None, y[by]))
        found[of] = ((total + worth * middle) / (n + worth))[code[of]]
    return found


def _most_frequent(level: Array, code: Array) -> tuple[Array, Array]:
    """Return the groups, ascending, and the most frequent level of each; of several that of all."""
    every = np.bincount(level)
    pairs, n = np.unique(code * every.size + level, return_counts=True)
    group, level = np.divmod(pairs, max(every.size, 1))
    best = np.lexsort((every[level], n, group))[::-1]
    groups, first = np.unique(group[best], return_index=True)
    return groups, level[best][first]
