"""Features of a place: the whitened sparse Gaussian process beside a linear part, and the way back.

    k(x, x') = rho x.x' + exp(-|(x - x') / ell|^2 / 2)
    K = rbf(Z, Z) + jitter I = L L',   kx = rbf(x, Z),   al = L^-1 kx
    psi(x) = [sqrt(rho) x, al],   r(x) = 1 + jitter - al'al        [CLGP eq. 6, whitened]

h_s(x) given its weights e_s ~ N(0, I) is N(psi(x)'e_s, r(x)). Where a gradient enters, it comes as
an array of the shape of what it belongs to, and leaves by the chain rule: `dL` belongs to L.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from glfm_cli.arrays import Array
from glfm_cli.errors import NumericalError
from glfm_cli.latent.clgp.parameters import Shared

JITTER = 1e-6
LEAST_REST = 1e-10  # of r


def rbf(X: Array, Z: Array, ell: Array) -> Array:
    """Return the squared exponential kernel (n, M) of X (n, Q) and Z (M, Q). O(n M Q)."""
    X, Z = X / ell, Z / ell
    K: Array = X @ Z.T
    K -= 0.5 * np.einsum("nq,nq->n", X, X)[:, None]
    K -= 0.5 * np.einsum("mq,mq->m", Z, Z)
    np.minimum(K, 0.0, out=K)
    return np.exp(K, out=K)


def rbf_backward(W: Array, X: Array, Z: Array, ell: Array) -> tuple[Array, Array, Array]:
    """Return dX, dZ and dlog_ell for W = dK o rbf(X, Z), of the shape (n, M)."""
    rows, columns = W.sum(axis=1), W.sum(axis=0)
    WZ = W @ Z
    dX = (WZ - rows[:, None] * X) / ell**2
    dZ = (W.T @ X - columns[:, None] * Z) / ell**2
    spread = rows @ X**2 - 2.0 * np.einsum("nq,nq->q", X, WZ) + columns @ Z**2
    return dX, dZ, spread / ell**2


@dataclass(frozen=True)
class Inducing:
    """K without its jitter, L and L^-1, all (M, M); and the lengths (Q,)."""

    K: Array
    L: Array
    L_inv: Array
    ell: Array

    @classmethod
    def of(cls, shared: Shared) -> Inducing:
        """Return the kernel at the inducing places, factored.

        Raises NumericalError when it is not positive definite, or a length has overflowed.
        """
        ell, M = np.exp(shared.log_ell), shared.Z.shape[0]
        K = rbf(shared.Z, shared.Z, ell)
        try:
            L = cholesky(K + JITTER * np.eye(M), lower=True) if M else K
        except (np.linalg.LinAlgError, ValueError):
            raise NumericalError("the kernel of the inducing points lost its rank") from None
        L_inv = solve_triangular(L, np.eye(M), lower=True) if M else K
        return cls(K, L, np.ascontiguousarray(L_inv), ell)

    def backward(self, dL: Array, Z: Array) -> tuple[Array, Array]:
        """Return dZ and dlog_ell for a gradient dL, lower triangular [Murray 2016]."""
        Phi = np.tril(self.L.T @ dL)
        Phi[np.diag_indices_from(Phi)] *= 0.5
        Y = self.L_inv.T @ Phi @ self.L_inv
        W = 0.5 * (Y + Y.T) * self.K
        dX, dZ, d_log_ell = rbf_backward(W, Z, Z, self.ell)
        return dX + dZ, d_log_ell


@dataclass(frozen=True)
class Features:
    """Features of n places: X (n, Q), Kx and Al (n, M), Psi (n, P), r (n,)."""

    X: Array
    Kx: Array
    Al: Array
    Psi: Array
    r: Array

    @classmethod
    def of(cls, X: Array, shared: Shared, inducing: Inducing) -> Features:
        """Return the features of places X. O(n M (Q + 2 M))."""
        q = shared.n_linear
        Kx = rbf(X, shared.Z, inducing.ell)
        Psi = np.empty((X.shape[0], shared.mu.shape[0]))
        Psi[:, :q] = np.exp(0.5 * shared.log_rho) * X[:, :q]
        Al = Psi[:, q:]
        np.matmul(Kx, inducing.L_inv.T, out=Al)
        if shared.Z.shape[0]:
            r = np.maximum(1.0 + JITTER - np.einsum("nm,nm->n", Al, Al), LEAST_REST)
        else:
            r = np.zeros(X.shape[0])
        return cls(X, Kx, Al, Psi, r)

    def backward(
        self, dPsi: Array, dr: Array, shared: Shared, inducing: Inducing
    ) -> tuple[Array, dict[str, Array]]:
        """Return dX (n, Q) and the sums of what belongs to Z, log_ell, log_rho and L."""
        q = shared.n_linear
        linear = dPsi[:, :q]
        dX = np.zeros_like(self.X)
        dX[:, :q] = np.exp(0.5 * shared.log_rho) * linear
        d_log_rho = 0.5 * np.einsum("nq,nq->", linear, self.Psi[:, :q])
        # Where r is at its floor it does not move.
        free = np.where(self.r > LEAST_REST, dr, 0.0)
        dAl = dPsi[:, q:] - 2.0 * free[:, None] * self.Al
        dKx = dAl @ inducing.L_inv
        dL = -np.tril(dKx.T @ self.Al)
        from_kernel, dZ, d_log_ell = rbf_backward(dKx * self.Kx, self.X, shared.Z, inducing.ell)
        sums = {"Z": dZ, "log_ell": d_log_ell, "log_rho": np.asarray(d_log_rho), "L": dL}
        return dX + from_kernel, sums
