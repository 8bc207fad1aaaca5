"""Update of q(e): Newton's step, which is the natural gradient step, and exact for Gaussian cells.

With w the curvature of cells (n, S) and g1 their slope:

    Lambda_s = I + a_s^2 Psi' diag(w_s) Psi
    mu_s += step Lambda_s^-1 (Psi'(a_s g1_s) - mu_s)           1 / c_si^2 = 1 + a_s^2 sum_n w_ns B_ni^2

[Salimbeni, Eleftheriadis and Hensman 2018]. The equations are solved for all s together by conjugate
gradients, preconditioned by V diag(c_s^2) V', without any Lambda. V holds the eigenvectors of
Psi'Psi, in which every Lambda_s is nearly diagonal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from glfm_cli.latent.clgp.blocks import each
from glfm_cli.latent.clgp.bound import Local
from glfm_cli.latent.clgp.parameters import Shared
from glfm_cli.latent.latent import Array


def renew_basis(shared: Shared, locals_: Sequence[Local]) -> None:
    """Turn V to the eigenvectors of Psi'Psi; the variances in it are those of the old family."""
    moment = sum(local.features.Psi.T @ local.features.Psi for local in locals_)
    V = np.ascontiguousarray(np.linalg.eigh(moment)[1])
    turn = (V.T @ shared.V) ** 2
    shared.log_c = -0.5 * np.log(np.exp(-2.0 * shared.log_c) @ turn.T)
    shared.V = V


def update_weights(
    shared: Shared,
    locals_: Sequence[Local],
    scale: float,
    step: float,
    n_solves: int,
    pool: ThreadPoolExecutor | None,
) -> None:
    """Move mu and log_c by a natural gradient step of size `step`, in place.

    Parameters
    ----------
    scale : by which the cells of these blocks count
    n_solves : steps of conjugate gradients, each of O(n P S)
    """
    share = scale / locals_[0].block.samples
    a = np.exp(shared.log_a)

    def slopes(local: Local) -> tuple[Array, Array]:
        cells, B = local.cells, local.B
        return local.features.Psi.T @ cells.g1, cells.curvature.T @ (B * B)

    sums = list(each(pool, slopes, locals_))
    g = share * a * sum(part[0] for part in sums) - shared.mu
    precision = 1.0 + share * (a * a)[:, None] * sum(part[1] for part in sums)
    shared.log_c = -0.5 * np.log((1.0 - step) * np.exp(-2.0 * shared.log_c) + step * precision)

    def lambda_times(D: Array) -> Array:
        def one(local: Local) -> Array:
            Psi: Array = local.features.Psi
            return Psi.T @ (local.cells.curvature * (Psi @ D))

        return D + share * (a * a) * sum(each(pool, one, locals_))

    shared.mu = shared.mu + step * solve(lambda_times, g, shared.V, 1.0 / precision, n_solves)


def solve(
    times: Callable[[Array], Array], g: Array, V: Array, diagonal: Array, n_solves: int
) -> Array:
    """Return D (P, S) with times(D) about g, by preconditioned conjugate gradients for each column.

    V : (P, P) and diagonal : (S, P), of the preconditioner V diag(diagonal_s) V'
    """
    D, residual = np.zeros_like(g), g.copy()
    z = V @ (diagonal.T * (V.T @ residual))
    p, rz = z.copy(), np.einsum("ps,ps->s", residual, z)
    for _ in range(n_solves):
        Ap = times(p)
        alpha = _ratio(rz, np.einsum("ps,ps->s", p, Ap))
        D += alpha * p
        residual -= alpha * Ap
        z = V @ (diagonal.T * (V.T @ residual))
        new = np.einsum("ps,ps->s", residual, z)
        p = z + _ratio(new, rz) * p
        rz = new
    return D


def _ratio(a: Array, b: Array) -> Array:
    """Return a / b, 0 where a column is solved already."""
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0.0)
