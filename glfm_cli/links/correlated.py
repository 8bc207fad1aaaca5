"""Correlated utilities as an average over independent ones.

For utilities y ~ N(m, V) with V = I + A A', as they are when y = eta + noise of variance 1 and eta
is normal, any function of them has the mean

    E f(y) = E_z E[f(y) | y ~ N(m + A z, I)],   z ~ N(0, I)

whose inner part is exact (kernel `_categorical`) and smooth in z: a few fixed points z serve. In up
to three dimensions they are those of Gauss and Hermite. In more they come in pairs z, -z and are
scaled to have covariance I, so that quadratic functions are averaged exactly; the pairs fill the
space evenly (a Kronecker sequence of the generalised golden ratio).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from glfm_cli.arrays import Array
from glfm_cli.links.law import Normal

# Where the variances of eta are about 1, P(x) is within 2e-4 in two dimensions, 1e-3 in three, and
# within a few 1e-3 beyond, with other errors in other draws.
DEGREE = {1: 8, 2: 8, 3: 6}  # points a dimension
PAIRS = 64  # of points


def split(part: Normal) -> Iterator[tuple[float, Array, Array]]:
    """Yield weights, means (n, s) and variances (n, s) of normals of independent utilities."""
    n, s = part.mean.shape
    if part.covariance is None:
        yield 1.0, part.mean, np.broadcast_to(part.variances, (n, s))
        return
    values, vectors = np.linalg.eigh(part.covariance - np.eye(s))
    root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    ones = np.broadcast_to(1.0, (n, s))
    for one, weight in zip(*points(s), strict=True):
        yield float(weight), part.mean + root @ one, ones


@lru_cache
def points(s: int) -> tuple[Array, Array]:
    """Return points z (m, s) and their weights (m,)."""
    if s in DEGREE:
        at, weight = np.polynomial.hermite_e.hermegauss(DEGREE[s])
        z = np.stack(np.meshgrid(*[at] * s, indexing="ij"), axis=-1).reshape(-1, s)
        weights = np.stack(np.meshgrid(*[weight] * s), axis=-1).reshape(-1, s).prod(axis=1)
        return z, weights / weights.sum()
    n = max(PAIRS, 2 * s)
    ratio = 2.0
    for _ in range(60):  # the root of r^(s + 1) = r + 1
        ratio = (1.0 + ratio) ** (1.0 / (s + 1.0))
    steps = ratio ** -np.arange(1.0, s + 1.0)
    z = ndtri((0.5 + np.arange(1.0, n + 1.0)[:, None] * steps) % 1.0)
    z = np.concatenate([z, -z])
    root = np.linalg.cholesky(z.T @ z / len(z))
    return np.linalg.solve(root, z.T).T, np.full(len(z), 1.0 / len(z))
