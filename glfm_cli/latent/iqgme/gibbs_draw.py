"""The experts as one draw of the Gibbs sampler has them: what they are, not what they may be.

Where q of the experts has means and covariances, a draw has places (mu, Lam) and weights w: the
gate of an expert is a normal density, and no uncertainty of the weights widens the label.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.iqgme.prior import Prior
from glfm_cli.latent.iqgme.sticks import rows_behind, shares_of

LOG_2PI = float(np.log(2.0 * np.pi))


@dataclass(eq=False)
class Drawn:
    """One draw.

    sticks : (H - 1,) V;  alpha
    m : (H, P) centres;  nB : (H, P, P) precisions Lam;  root : (H, P, P), nB = root root'
    r : (H,) scales of the experts' priors
    mw : (H, K, P + 1) weights;  zeta : (K, P + 1);  lam : (P + 1,)
    """

    sticks: Array
    alpha: float
    m: Array
    nB: Array
    root: Array
    r: Array
    mw: Array
    zeta: Array
    lam: Array

    @property
    def H(self) -> int:
        """Return the number of experts."""
        return int(self.m.shape[0])

    @property
    def P(self) -> int:
        """Return the number of features."""
        return int(self.m.shape[1])

    @property
    def K(self) -> int:
        """Return the number of latent label columns."""
        return int(self.mw.shape[1])

    @property
    def Sw(self) -> Array:
        """Return the covariance of the weights, which is 0."""
        return np.zeros((self.H, self.P + 1, self.P + 1))

    @property
    def pi(self) -> Array:
        """Return the shares of the experts (H,)."""
        return shares_of(self.sticks)

    @property
    def log_det(self) -> Array:
        """Return log|Lam| (H,)."""
        return np.asarray(np.linalg.slogdet(self.nB)[1])

    def log_density(self, square: Array, log_det: Array, n_known: Array) -> Array:
        """Return log densities (H, b) of what is seen; see `Experts.log_density`."""
        return 0.5 * (self.log_det[:, None] - log_det - n_known * LOG_2PI - square)


def draw_prior(prior: Prior, H: int, K: int, rng: np.random.Generator) -> Drawn:
    """Return experts from the prior."""
    P = prior.m0.size
    alpha = rng.gamma(prior.t1) / prior.t2
    beta = rng.gamma(prior.s0) * prior.b0 / prior.s0
    lam = rng.gamma(prior.a0, size=P + 1) / np.append(np.full(P, beta), prior.b0)
    zeta = rng.standard_normal((K, P + 1)) / np.sqrt(prior.g0 * lam)
    mw = zeta + rng.standard_normal((H, K, P + 1)) / np.sqrt(lam)
    sticks = draw_sticks(np.zeros(H), alpha, rng)
    r = rng.gamma(prior.c0, size=H) / prior.c0
    B_inv = r[:, None, None] * prior.B0_inv
    m, nB, root = draw_places(
        np.tile(prior.m0, (H, 1)), np.full(H, prior.u0), np.full(H, prior.nu0), B_inv, rng
    )
    return Drawn(sticks, alpha, m, nB, root, r, mw, zeta, lam)


def draw_sticks(n: Array, alpha: float, rng: np.random.Generator) -> Array:
    """Return V (H - 1,) given the rows n (H,) of every expert."""
    # As a ratio of gammas a stick keeps its distance from 1.
    mine = rng.standard_gamma(1.0 + n[:-1])
    rest = rng.standard_gamma(alpha + rows_behind(n))
    return np.asarray(np.clip(mine / (mine + rest), 1e-300, 1.0 - 1e-15))


def draw_places(
    m: Array, u: Array, nu: Array, B_inv: Array, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """Return centres, precisions and their roots from normal-Wishart laws of these parameters."""
    H, P = m.shape
    A = np.tril(rng.standard_normal((H, P, P)), -1)
    at = np.arange(P)
    A[:, at, at] = np.sqrt(rng.chisquare(nu[:, None] - at))
    L = np.linalg.cholesky(B_inv)
    # Lam = (L'^-1 A) (L'^-1 A)' [Bartlett 1933]; its root serves for densities as it is.
    root = np.linalg.solve(np.swapaxes(L, 1, 2), A)
    e = rng.standard_normal((H, P, 1)) / np.sqrt(u)[:, None, None]
    center = m + np.linalg.solve(np.swapaxes(root, 1, 2), e)[:, :, 0]
    return center, root @ np.swapaxes(root, 1, 2), root
