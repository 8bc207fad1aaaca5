"""t-distributed stochastic neighbour embedding [van der Maaten 2008], all pairs of rows.

    p_nm  of normals about n whose sd gives `PERPLEXITY` neighbours, made symmetric, sum 1
    q_nm  = (1 + |u_n - u_m|^2)^-1 / sum over pairs
    u     makes KL(p | q) small, by momentum and gains of each coordinate, p larger at first

Sums are not those of BLAS: a map is the same for any number of threads.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from glfm_cli.arrays import Array

PERPLEXITY = 30.0
EXAGGERATION, EXAGGERATED = 12.0, 250  # factor of p, in so many first steps
STEPS = 500
FEWEST = 8  # rows that are embedded; fewer are shown by their components


def embedded(x: Array) -> Array:
    """Return u (n, 2) of rows x (n, Q), of mean square 2. O(n^2) a step and in memory."""
    x = x - x.mean(axis=0)
    left, size, _ = np.linalg.svd(x, full_matrices=False)
    u = np.zeros((len(x), 2))
    u[:, : size.size] = (left * size)[:, :2]
    if len(x) >= FEWEST and size[0] > 0.0:
        u *= 1e-4 / np.sqrt(np.mean(u[:, 0] ** 2))
        u = _descended(u, neighbour_probabilities(x))
    spread = np.sqrt(np.mean(u**2))
    return u / spread if spread > 0.0 else u


def neighbour_probabilities(x: Array) -> Array:
    """Return p (n, n), by bisection of each row's log precision."""
    far = cdist(x, x, "sqeuclidean")
    np.fill_diagonal(far, np.inf)
    far -= far.min(axis=1, keepdims=True)
    wanted = np.log(min(PERPLEXITY, (len(x) - 1) / 3.0))
    low, high = np.full((len(x), 1), -50.0), np.full((len(x), 1), 50.0)
    for _ in range(50):
        middle = 0.5 * (low + high)
        p = np.exp(-far * np.exp(middle))
        p /= p.sum(axis=1, keepdims=True)
        entropy = -np.sum(p * np.log(np.maximum(p, 1e-300)), axis=1, keepdims=True)
        low = np.where(entropy > wanted, middle, low)
        high = np.where(entropy > wanted, high, middle)
    return (p + p.T) / (2.0 * len(x))


def divergence_slope(u: Array, p: Array) -> Array:
    """Return the gradient (n, 2) of KL(p | q) by u; of a larger p, of what draws rows together."""
    near = cdist(u, u, "sqeuclidean")
    near += 1.0
    np.divide(1.0, near, out=near)
    np.fill_diagonal(near, 0.0)
    pull = near * (-1.0 / near.sum())
    pull += p
    pull *= near
    slope: Array = pull.sum(axis=1)[:, None] * u - np.einsum("nm,ma->na", pull, u)
    return 4.0 * slope


def _descended(u: Array, p: Array) -> Array:
    """Return u after all steps."""
    rate = max(len(u) / EXAGGERATION / 4.0, 50.0)
    moved, gain = np.zeros_like(u), np.ones_like(u)
    for step in range(STEPS):
        early = step < EXAGGERATED
        slope = divergence_slope(u, p * EXAGGERATION if early else p)
        gain = np.where(slope * moved < 0.0, gain + 0.2, gain * 0.8)
        np.maximum(gain, 0.01, out=gain)
        moved = (0.5 if early else 0.8) * moved - rate * gain * slope
        u = u + moved
    return u - u.mean(axis=0)
