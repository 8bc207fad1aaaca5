"""Normal utilities of which it is known which is the largest: their means, its probability.

By quadrature over the noise of the largest, centred at its mode: relative errors below 1e-8.
[Girolami and Rogers 2006]
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr

from glfm_cli.arrays import Array
from glfm_cli.links.intervals import log_pdf

NODES, WEIGHTS = np.polynomial.hermite.hermgauss(16)
NEWTON_STEPS = 5


def expect_largest(winner: Array, eta: Array, reference: int) -> tuple[Array, Array]:
    """Return E[u | which is largest] (..., n, R - 1), and the log probability (..., n) of that.

    u ~ N(eta, I), and the reference's utility N(0, 1), of which no mean is returned.
    O(n R nodes) for each of the leading axes.

    Parameters
    ----------
    winner : (n,) intp
        Which of the R utilities is the largest.
    eta : (..., n, R - 1) float64
        Means before that is known.
    reference : int
    """
    n_levels = eta.shape[-1] + 1
    utility = np.insert(eta, reference, 0.0, axis=-1)
    every = np.arange(n_levels)
    beside = np.array([np.delete(every, r) for r in range(n_levels)])[winner]
    at, beside = (
        np.broadcast_to(one, (*eta.shape[:-1], one.shape[-1])) for one in (winner[:, None], beside)
    )
    best = np.take_along_axis(utility, at, axis=-1)
    rest = np.take_along_axis(utility, beside, axis=-1)
    ahead = best - rest
    u, log_weight = _around_mode(ahead)
    t = u[..., None] + ahead[..., None, :]  # (..., n, nodes, R - 1)
    log_cdf = log_ndtr(t)
    log_all = log_weight + log_cdf.sum(axis=-1)
    top = log_all.max(axis=-1, keepdims=True)
    share = np.exp(log_all - top)
    log_z = top[..., 0] + np.log(share.sum(axis=-1))
    share /= share.sum(axis=-1, keepdims=True)
    ratio = np.exp(log_pdf(t) - log_cdf)
    below = np.einsum("...n,...nr->...r", share, ratio)  # by how much each stays below its mean
    mean = np.empty_like(utility)
    np.put_along_axis(mean, beside, rest - below, axis=-1)
    np.put_along_axis(mean, at, best + below.sum(axis=-1, keepdims=True), axis=-1)
    return np.delete(mean, reference, axis=-1), log_z


def _around_mode(ahead: Array) -> tuple[Array, Array]:
    """Return nodes u (..., nodes) and log weights for integrals of phi(u) prod Phi(u + ahead)."""
    u = np.zeros(ahead.shape[:-1])
    curvature = np.ones_like(u)
    for _ in range(NEWTON_STEPS):
        t = u[..., None] + ahead
        ratio = np.exp(log_pdf(t) - log_ndtr(t))
        curvature = 1.0 + np.sum(ratio * (ratio + t), axis=-1)
        u = u + (ratio.sum(axis=-1) - u) / curvature
    scale = np.sqrt(2.0 / curvature)
    nodes = u[..., None] + scale[..., None] * NODES
    log_weight = np.log(WEIGHTS) + NODES * NODES + np.log(scale)[..., None]
    return nodes, log_weight + log_pdf(nodes)
