"""How places are shown in two dimensions, and how alike two maps of the same rows are.

A map means nothing by its axes until they are fixed, since turning and mirroring it changes no
distance: the first axis is where rows spread most, and each points to where the column that goes
with it most closely, by rank correlation, is high.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree

from glfm_cli.arrays import Array, mean_ranks

NEIGHBOURS = 15


@dataclass(frozen=True)
class Frame:
    """The shown place u = (x[dimensions] - center) turn of a place x (Q,).

    dimensions : (2,) of the Q, the most relevant first;  middle : (Q,) mean place of the rows
    turn : (2, 2) orthogonal
    """

    dimensions: Array
    middle: Array
    turn: Array

    def shown(self, x: Array) -> Array:
        """Return u (n, 2) of places x (n, Q)."""
        return (x - self.middle)[:, self.dimensions] @ self.turn

    def covariance(self, cov: Array) -> Array:
        """Return the covariances (n, 2, 2) of u, of those of x (n, Q, Q)."""
        return self.turn.T @ cov[:, self.dimensions][:, :, self.dimensions] @ self.turn

    def places(self, u: Array) -> Array:
        """Return the places x (n, Q) shown at u (n, 2), in other dimensions in the middle."""
        x = np.tile(self.middle, (u.shape[0], 1))
        x[:, self.dimensions] += u @ self.turn.T
        return x


def frame_of(x: Array, relevances: Array, scores: Sequence[Array]) -> Frame:
    """Return the frame of places x (N, Q), Q >= 2.

    scores : arrays (N,), one of each column by which axes are pointed; of equals the first decides
    """
    two = np.argsort(-relevances, kind="stable")[:2]
    middle = x.mean(axis=0)
    centred = (x - middle)[:, two]
    turn = np.linalg.svd(centred, full_matrices=False)[2].T
    u = centred @ turn
    for axis in range(2):
        r = np.array([rank_correlation(score, u[:, axis]) for score in scores])
        if r.size and r[np.argmax(np.abs(r))] < 0.0:
            turn[:, axis] *= -1.0
    return Frame(two, middle, turn)


def rank_correlation(a: Array, b: Array) -> float:
    """Return Spearman's correlation, 0 where either is constant."""
    ra, rb = mean_ranks(a), mean_ranks(b)
    if np.ptp(ra) == 0.0 or np.ptp(rb) == 0.0:
        return 0.0
    return float(np.corrcoef(ra, rb)[0, 1])


def agreement(a: Array, b: Array) -> float:
    """Return the share of the variance of a (N, 2) that b has after Procrustes' best alignment.

    Turned, mirrored and scaled: (sum of singular values of a'b)^2 / (|a|^2 |b|^2), a and b centred.
    """
    a, b = a - a.mean(axis=0), b - b.mean(axis=0)
    size = float(np.sum(a * a) * np.sum(b * b))
    if size == 0.0:
        return 0.0
    return float(np.linalg.svd(a.T @ b, compute_uv=False).sum() ** 2 / size)


def shared_neighbours(a: Array, b: Array, at_a: Array, at_b: Array) -> Array:
    """Return the share (n,) of the nearest rows of a (N, 2) at `at_a` that are so in b at `at_b`.

    A row that lies at the very place asked for, as the row itself does, is no neighbour.
    """
    k = min(NEIGHBOURS, a.shape[0] - 1)
    if k < 1:
        return np.full(at_a.shape[0], np.nan)
    own = int(at_a is a)
    near = [
        KDTree(rows).query(at, k + own)[1].reshape(at.shape[0], -1)[:, own:]
        for rows, at in ((a, at_a), (b, at_b))
    ]
    both = (near[0][:, :, None] == near[1][:, None, :]).any(axis=2)
    return both.mean(axis=1)
