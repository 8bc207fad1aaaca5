"""How much each dimension of the latent space counts."""

from __future__ import annotations

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.clgp.features import Inducing, rbf
from glfm_cli.latent.clgp.parameters import Places, Shared

LEAST_RELEVANCE = 0.01  # of a dimension that is in use


def relevances(shared: Shared, places: Places) -> Array:
    """Return each dimension's share (Q,) of what the places do to the columns' means.

    Dimension q has v_q sum_s mean_n J_nsq^2, where J is the derivative of mean_ns by x_nq at m_n,
    and v_q the mean square of x_nq under q.
    """
    q, a = shared.n_linear, np.exp(shared.log_a)
    Z, Q = shared.Z, places.m.shape[1]
    size = np.mean(places.m**2 + np.exp(2.0 * places.log_sd), axis=0)
    inducing = Inducing.of(shared)
    beta = inducing.L_inv.T @ shared.mu[q:]
    Kx = rbf(places.m, Z, inducing.ell)
    squares = np.zeros(Q)
    for k in range(Q):
        along = (Kx * (Z[:, k] - places.m[:, k, None])) @ beta / inducing.ell[k] ** 2
        if q:
            along = along + np.exp(0.5 * shared.log_rho) * shared.mu[k]
        squares[k] = size[k] * np.sum(np.mean((a * along) ** 2, axis=0))
    total = squares.sum()
    share: Array = squares / total if total > 0.0 else squares
    return share
