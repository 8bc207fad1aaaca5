"""Covariances of places: by the curvature of what a row's cells say, all dimensions together.

The ascent's q(x_n) has a variance for each dimension alone, the inverse of the curvature along it:
where dimensions can make up for each other, as they can in a row of few cells, that is too little.
At the end of an ascent

    Lambda_n = I + E_q sum_s w_ns J_ns J_ns',   J_ns = d mean_ns / d x_n,   w_ns curvature of cells

is known, whose inverse is the covariance of the same law with all its correlations (Gauss-Newton;
the diagonal of Lambda_n is that of the ascent).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.clgp.blocks import RowBlock, cut, each
from glfm_cli.latent.clgp.bound import EvaluatedBlock, place
from glfm_cli.latent.clgp.config import ClgpConfig
from glfm_cli.latent.clgp.features import Inducing, rbf
from glfm_cli.latent.clgp.parameters import Places, Shared
from glfm_cli.latent.clgp.table import ObservedTable
from glfm_cli.streams import START, Streams

SAMPLES = 4  # of every place


def slopes(X: Array, shared: Shared, inducing: Inducing) -> Array:
    """Return the derivatives (Q, n, S) of means by places X (n, Q). O(n M S Q)."""
    q, Q = shared.n_linear, X.shape[1]
    beta = inducing.L_inv.T @ (shared.mu[q:] * np.exp(shared.log_a))
    Kx = rbf(X, shared.Z, inducing.ell)
    out = np.zeros((Q, X.shape[0], shared.b.size))
    for k in range(Q):
        if beta.size:
            out[k] = (Kx * (shared.Z[:, k] - X[:, k, None])) @ beta / inducing.ell[k] ** 2
        if q:
            out[k] += np.exp(0.5 * shared.log_rho + shared.log_a) * shared.mu[k]
    return out


def spreads(
    table: ObservedTable,
    places: Places,
    shared: Shared,
    config: ClgpConfig,
    pool: ThreadPoolExecutor | None = None,
) -> Array:
    """Return the upper triangles (N, Q (Q + 1) / 2), row by row, of C with q(x_n) = N(m_n, C C').

    O(N (M S Q + S Q^2)) a sample.
    """
    inducing, Q = Inducing.of(shared), places.m.shape[1]

    def one(part: tuple[int, Array]) -> Array:
        number, rows = part
        rng = Streams(0, number).get(START)  # no run's seed: as nodes of a rule of integration
        block = RowBlock.drawn(table, rows, SAMPLES, config.category_samples, Q, rng)
        features = place(block, places, shared, inducing)
        local = EvaluatedBlock.of(block, features, shared, table.slots)
        J = slopes(features.X, shared, inducing).reshape(Q, SAMPLES, rows.size, -1)
        weighted = J * local.cells.curvature.reshape(SAMPLES, rows.size, -1) / SAMPLES
        precision = np.einsum("qtns,rtns->nqr", weighted, J, optimize=True) + np.eye(Q)
        # (L L')^-1 = C C' with C = L'^-1, upper triangular
        upper = np.linalg.inv(np.linalg.cholesky(precision)).transpose(0, 2, 1)
        return upper[:, *np.triu_indices(Q)]

    parts = list(each(pool, one, enumerate(cut(np.arange(table.n_rows)))))
    return np.concatenate([np.zeros((0, Q * (Q + 1) // 2)), *parts])


def matrices(triangles: Array, Q: int) -> Array:
    """Return C (n, Q, Q) whose upper triangles are given, as `spreads` does."""
    C = np.zeros((triangles.shape[0], Q, Q))
    C[:, *np.triu_indices(Q)] = triangles
    return C
