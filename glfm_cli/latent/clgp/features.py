"""Features of a place: the whitened sparse Gaussian process beside a linear part, and the way back.

    k(x, x') = rho x.x' + exp(-|(x - x') / ell|^2 / 2)
    K = rbf(Z, Z) + jitter I = L L',   kx = rbf(x, Z),   al = L^-1 kx
    psi(x) = [sqrt(rho) x, al],   r(x) = 1 + jitter - al'al        [CLGP eq. 6, whitened]

h_s(x) given its weights e_s ~ N(0, I) is N(psi(x)'e_s, r(x)). Only V'psi is ever needed, V being
the orthogonal basis of q(e), and it takes one product of the size of the kernel's:

    b = V'psi = sqrt(rho) Vx'x + root'kx,   root = L'^-1 Va,   V = [Vx; Va]
    al'al = b'b - rho x'x

Where a gradient enters, it comes as an array of the shape of what it belongs to, and leaves by the
chain rule: `dL` belongs to L.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

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
    """K without its jitter, L and L^-1, all (M, M); the lengths (Q,); and what makes b of places.

    linear : (Q or 0, P) sqrt(rho) Vx;  root : (M, P);  V : (P, P)
    """

    K: Array
    L: Array
    L_inv: Array
    ell: Array
    linear: Array
    root: Array
    V: Array

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
        V, q = shared.V, shared.n_linear
        linear = np.exp(0.5 * shared.log_rho) * V[:q]
        return cls(K, L, np.ascontiguousarray(L_inv), ell, linear, L_inv.T @ V[q:], V)

    def turned(self, turn: Array) -> Inducing:
        """Return that of the basis V turn."""
        linear, root = self.linear @ turn, self.root @ turn
        return replace(self, linear=linear, root=root, V=self.V @ turn)

    def backward(self, dB_B: Array, Z: Array) -> tuple[Array, Array]:
        """Return dZ and dlog_ell for dB'B (P, P), a sum over rows; by way of L [Murray 2016]."""
        # The rows of V are orthonormal: al = Va b.
        dL = -np.tril(self.root @ dB_B @ self.V[self.linear.shape[0] :].T)
        Phi = np.tril(self.L.T @ dL)
        Phi[np.diag_indices_from(Phi)] *= 0.5
        Y = self.L_inv.T @ Phi @ self.L_inv
        W = 0.5 * (Y + Y.T) * self.K
        dX, dZ, d_log_ell = rbf_backward(W, Z, Z, self.ell)
        return dX + dZ, d_log_ell


@dataclass(frozen=True)
class Features:
    """Features of n places: X (n, Q), Kx (n, M), B (n, P), r (n,)."""

    X: Array
    Kx: Array
    B: Array
    r: Array

    @classmethod
    def of(cls, X: Array, shared: Shared, inducing: Inducing) -> Features:
        """Return the features of places X. O(n M (Q + P))."""
        Kx = rbf(X, shared.Z, inducing.ell)
        B = Kx @ inducing.root
        r = np.zeros(X.shape[0])
        if shared.n_linear:
            B += X @ inducing.linear
            r = np.exp(shared.log_rho) * np.einsum("nq,nq->n", X, X)
        if shared.Z.shape[0]:
            r += 1.0 + JITTER - np.einsum("np,np->n", B, B)
            np.maximum(r, LEAST_REST, out=r)
        else:
            r[:] = 0.0
        return cls(X, Kx, B, r)

    def backward(
        self, slope: Array, bend: Array, dr: Array, shared: Shared, inducing: Inducing
    ) -> tuple[Array, dict[str, Array]]:
        """Return dX (n, Q) and the sums of what belongs to Z, log_ell, log_rho, and dB'B of L.

        slope, bend : (n, P); the gradient by B is slope + 2 bend o B, at a given r
        """
        # Where r is at its floor it does not move.
        free = np.where(self.r > LEAST_REST, dr, 0.0)
        dB = bend - free[:, None]
        dB *= self.B
        dB *= 2.0
        dB += slope
        W = dB @ inducing.root.T
        W *= self.Kx
        dX, dZ, d_log_ell = rbf_backward(W, self.X, shared.Z, inducing.ell)
        d_log_rho = np.zeros(())
        if shared.n_linear:
            own = dB @ inducing.linear.T
            dX += own
            rest = np.exp(shared.log_rho) * free[:, None] * self.X
            dX += 2.0 * rest
            d_log_rho = np.asarray(np.einsum("nq,nq->", 0.5 * own + rest, self.X))
        sums = {"Z": dZ, "log_ell": d_log_ell, "log_rho": d_log_rho, "L": dB.T @ self.B}
        return dX, sums
