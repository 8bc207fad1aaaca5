"""How places are shown in two dimensions, and how alike two maps of the same rows are.

Places of two dimensions are shown as they are. Those of more are laid out so that near ones stay
near: t-distributed neighbour embedding [van der Maaten 2008] of rows, by completed cells of
narrow tables, or by places, each dimension as wide as what it does to columns; and a place between
rows is shown between them.

A map means nothing by its axes until they are fixed, since turning and mirroring it changes no
distance: the first axis is where rows spread most, and each points to where the column that goes
with it most closely, by rank correlation, is high.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree
from scipy.special import softmax

from glfm_cli.arrays import Array, mean_ranks
from glfm_cli.exploration.embedding import embedded

NEIGHBOURS = 15
LAID_OUT = 1000  # rows at most; others are shown between them
BETWEEN = 5  # rows that a place is shown between
WIDTH = 0.15  # of the normal weights of rows around a shown place, whose mean square is 2
DRAWS = 8  # of a place, at least, and as many opposite ones


@dataclass(frozen=True)
class Frame:
    """The shown place u = (x - middle) turn of a place x (2,).

    middle : (2,) mean place of the rows;  turn : (2, 2) orthogonal
    """

    middle: Array
    turn: Array

    def shown(self, x: Array) -> Array:
        """Return u (n, 2) of places x (n, Q)."""
        return (x - self.middle) @ self.turn

    def covariance(self, x: Array, cov: Array) -> Array:
        """Return the covariances (n, 2, 2) of u, of means x (n, Q) and covariances of places."""
        return self.turn.T @ cov @ self.turn

    def places(self, u: Array) -> Array:
        """Return the places (n, Q) shown at u (n, 2)."""
        return self.middle + u @ self.turn.T


@dataclass(frozen=True)
class Embedding:
    """Places of Q > 2 dimensions as they lie between rows that are laid out.

    scale : (Q,) of the dimensions;  x : (A, Q) places of these rows;  u : (A, 2) as shown
    """

    scale: Array
    x: Array
    u: Array

    def shown(self, x: Array) -> Array:
        """Return u (n, 2) of places x (n, Q), the mean of near rows by squared distance."""
        k = min(BETWEEN, len(self.x))
        far, near = KDTree(self.x * self.scale).query(x * self.scale, range(1, k + 1))
        weight = 1.0 / np.maximum(far**2, 1e-12)
        total: Array = np.einsum("nk,nka->na", weight, self.u[near])
        return total / weight.sum(axis=1)[:, None]

    def covariance(self, x: Array, cov: Array) -> Array:
        """Return the covariances (n, 2, 2) of u, by the same draws of every row's place."""
        n = max(DRAWS, x.shape[1])
        half = np.random.default_rng(0).standard_normal((n, x.shape[1]))
        half = np.linalg.qr(half)[0] * np.sqrt(n)  # uncorrelated, of variance 1
        values, vectors = np.linalg.eigh(cov)
        root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
        u = np.stack([self.shown(x + root @ z) for z in (*half, *-half)])
        u -= u.mean(axis=0)
        return np.asarray(np.einsum("tna,tnb->nab", u, u)) / len(u)

    def places(self, u: Array) -> Array:
        """Return the mean places (n, Q) of the rows that are shown about u (n, 2)."""
        far = np.sum((u[:, None] - self.u) ** 2, axis=2)
        return np.asarray(softmax(-0.5 * far / WIDTH**2, axis=1) @ self.x)


def weighted(x: Array, cov: Array, relevances: Array) -> Array:
    """Return the factors (Q,) that make dimensions as wide as what they do to columns."""
    size = np.mean(x**2 + np.diagonal(cov, axis1=1, axis2=2), axis=0)
    return np.sqrt(relevances / np.maximum(size, 1e-300))


def frame_of(
    x: Array, scale: Array, scores: Sequence[Array], cells: Array | None = None
) -> Frame | Embedding:
    """Return how places x (N, Q), Q >= 2, are shown.

    scale : (Q,) of the dimensions, where there are more than two
    scores : arrays (N,), one of each column by which axes are pointed; of equals the first decides
    cells : (N, S) by whose distances rows are laid out, where places are of more dimensions
    """
    rows = np.linspace(0, len(x) - 1, min(LAID_OUT, len(x))).round().astype(np.intp)
    flat = x.shape[1] == 2
    laid = x if flat else embedded((x * scale if cells is None else cells)[rows])
    middle = laid.mean(axis=0)
    turn = np.linalg.svd(laid - middle, full_matrices=len(laid) < 2)[2].T  # two axes of one row
    u = (laid - middle) @ turn
    for axis in range(2):
        r = np.array([rank_correlation(s if flat else s[rows], u[:, axis]) for s in scores])
        if r.size and r[np.argmax(np.abs(r))] < 0.0:
            turn[:, axis] *= -1.0
    return Frame(middle, turn) if flat else Embedding(scale, x[rows], (laid - middle) @ turn)


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
