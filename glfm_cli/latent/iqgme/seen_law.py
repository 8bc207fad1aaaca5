"""What experts say of features that are seen with noise.

A feature of levels is x = f + noise, and experts are of f. Under one of them f ~ N(m, Q^-1), so
that x is normal, too, and f given x. With D the precisions of the noise of features b that have it

    x ~ N(m, A^-1),  A = Q - Q_.b C Q_b.,  C = (Q_bb + D)^-1
    E(f_b | x) = x_b - C Q_b. (x - m),  Cov(f_b | x) = C

whichever cells are missing: rows are completed as x, on which rules act, too, and sums over f are
those over x, turned once for all rows of an expert.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.iqgme.experts import Experts
from glfm_cli.latent.iqgme.gibbs_draw import Drawn


@dataclass(frozen=True, eq=False)
class SeenLaw:
    """The law of x under every expert, and that of f given x; F = P + 1.

    m : (H, P);  A, root : (H, P, P) precision, and a root of it
    constant : (H,) half of log|A| - log|Q|
    linear : (H, P, F) E(f | x) = linear [x, 1];  cov : (H, P, P) of f given x;  blurred : any noise
    """

    m: Array
    A: Array
    root: Array
    constant: Array
    linear: Array
    cov: Array
    blurred: bool

    @classmethod
    def of(cls, q: Experts | Drawn, noise: Array) -> SeenLaw:
        """Return it for features seen with noise of these variances (P,); O(H P^3)."""
        (H, P), at = q.m.shape, np.flatnonzero(noise > 0.0)
        A, root, constant = q.nB, q.root, np.zeros(H)
        J, cov = np.tile(np.eye(P), (H, 1, 1)), np.zeros((H, P, P))
        if at.size:
            D, Q = np.diag(1.0 / noise[at]), q.nB[:, at[:, None], at]
            C = np.linalg.inv(Q + D)
            C = 0.5 * (C + np.swapaxes(C, 1, 2))
            pull = C @ q.nB[:, at]
            A = A - np.swapaxes(q.nB[:, at], 1, 2) @ pull
            A = 0.5 * (A + np.swapaxes(A, 1, 2))
            root = np.linalg.cholesky(A)
            J[:, at] -= pull
            cov[:, at[:, None], at] = C
            constant = -0.5 * (np.linalg.slogdet(Q + D)[1] + np.log(noise[at]).sum())
        rest = q.m - np.einsum("hpq,hq->hp", J, q.m)
        linear = np.concatenate([J, rest[:, :, None]], axis=2)
        return cls(q.m, A, root, constant, linear, cov, at.size > 0)

    @property
    def Am(self) -> Array:
        """Return A m (H, P)."""
        return np.einsum("hpq,hq->hp", self.A, self.m)

    @property
    def quadratic(self) -> Array:
        """Return the quadratic form (H, F, F) of [x, 1] that is (x - m)' A (x - m)."""
        out = np.empty((len(self.m), self.m.shape[1] + 1, self.m.shape[1] + 1))
        out[:, :-1, :-1] = self.A
        out[:, :-1, -1] = out[:, -1, :-1] = -self.Am
        out[:, -1, -1] = np.einsum("hp,hp->h", self.Am, self.m)
        return out

    def squares(self, x: Array) -> Array:
        """Return (x - m)' A (x - m) of rows (H, b, P)."""
        away = np.matmul(x - self.m[:, None, :], self.root)
        return np.einsum("hbp,hbp->hb", away, away)

    def of_features(self, n: Array, x: Array, xx: Array) -> tuple[Array, Array]:
        """Return the sums of f (H, P) and f f' (H, P, P) by those of 1, x and x x'."""
        if not self.blurred:
            return x, xx
        with_n = np.concatenate([x, n[:, None]], axis=1)[:, :, None]
        both = np.concatenate([np.concatenate([xx, x[:, None]], axis=1), with_n], axis=2)
        turned = self.linear @ both
        spread = n[:, None, None] * self.cov
        return turned[:, :, -1], turned @ np.swapaxes(self.linear, 1, 2) + spread

    def draw(self, z: Array, x: Array, rng: np.random.Generator) -> Array:
        """Return f (n, P) given rows x (n, P) of experts z."""
        if not self.blurred:
            return x
        at = np.flatnonzero(self.cov[0].any(axis=0))
        root = np.linalg.cholesky(self.cov[:, at[:, None], at])[z]
        f = np.einsum("npq,nq->np", self.linear[z, :, :-1], x) + self.linear[z, :, -1]
        f[:, at] += np.einsum("npq,nq->np", root, rng.standard_normal((len(x), at.size)))
        return f
