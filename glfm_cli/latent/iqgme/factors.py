"""Experts of many features, which are experts of the few factors that the features depend on.

    z ~ sticks;  s | z = h ~ N(m_h, Lam_h^-1);  t | z = h ~ N(w_h [s, 1], I)     experts of s
    x_p | z = h ~ N(mu_p + A_p (d o b_h o s), 1 / (psi_h r_p))                   s of L factors
    A_pl ~ N(0, 1 / P), d_l ~ N(0, 1 / beta_l), b_hl ~ Bernoulli, mu_p ~ N(0, 1 / u)
    beta, u, psi, r gamma

Under an expert the features are normal with a covariance of low rank plus a diagonal, in those of
the L directions A that it uses (b_h): nothing takes more than O(P L^2) a row. Missing features drop
out. [iQGME section 3.2.3, whose updates and bound are derived here. Ours are r_p, the noise of a
feature relative to others, and that an expert has its place among the factors, not a centre of P
numbers and N(0, I): so that experts of many features cost few numbers.]

    core : q of sticks, (m, Lam)_h, w_h and what these share, as of experts of L features
    A (P, L), C (P, L, L)    q(A_p) = N(A_p, C_p)
    d, vd (L,)               q(d_l) = N(d_l, vd_l);  beta_b (L,) : q(beta_l) = Gamma(c0 + 1/2, .)
    theta (H, L)             q(b_hl = 1)
    mu, v (P,)               q(mu_p) = N(mu_p, v_p);  u_a, u_b : q(u) = Gamma
    psi_a, psi_b (H,), rel_a, rel_b (P,)    q(psi_h), q(r_p) = Gamma

Symmetric L x L matrices are kept as their upper triangles, of length L (L + 1) / 2 ("packed").
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from scipy.special import digamma, expit, xlogy

from glfm_cli.arrays import Array
from glfm_cli.latent.iqgme.coefficients import Sums
from glfm_cli.latent.iqgme.experts import Experts, Statistics
from glfm_cli.latent.iqgme.prior import FactorPrior
from glfm_cli.latent.iqgme.sticks import gamma_part

PARTS = ("theta", "psi_a", "psi_b")  # what every expert has of its own


@cache
def _triangle(L: int) -> tuple[Array, Array, Array]:
    """Return rows and columns of packed entries, and the place (L, L) of each pair's."""
    i, j = np.triu_indices(L)
    place = np.empty((L, L), dtype=np.intp)
    place[i, j] = place[j, i] = np.arange(i.size)
    for one in (i, j, place):
        one.flags.writeable = False
    return i, j, place


def pack(S: Array) -> Array:
    """Return the upper triangles (..., L (L + 1) / 2) of symmetric matrices (..., L, L)."""
    i, j, _ = _triangle(S.shape[-1])
    return np.ascontiguousarray(S[..., i, j])


def unpack(packed: Array, L: int) -> Array:
    """Return the symmetric matrices (..., L, L) of packed ones."""
    return np.asarray(packed[..., _triangle(L)[2]])


def packed_product(a: Array, b: Array) -> Array:
    """Return a b' (..., L (L + 1) / 2), packed, of vectors (..., L) for which it is symmetric."""
    i, j, _ = _triangle(a.shape[-1])
    return np.asarray(a[..., i] * b[..., j])


def twice(L: int) -> Array:
    """Return how often each packed entry stands in the whole matrix."""
    i, j, _ = _triangle(L)
    return np.where(i == j, 1.0, 2.0)


@dataclass(eq=False)
class FactorSums(Sums):
    """Sums over rows, weighted by the experts' responsibilities.

    n (H,), x (H, L), xx (H, L, L), l_n, l_x, l_xx, tx : as `Statistics`, of the factors
    cells (H, P) : sum rho over rows that know the feature, and over those
    y, yy (H, P) : sum rho x_p, sum rho x_p^2
    s (H, P, L) : sum rho <s>;  ys (H, P, L) : sum rho x_p <s>
    ss (H, P, L (L + 1) / 2) : sum rho <s s'>, packed
    """

    x: Array
    xx: Array
    l_n: Array
    l_x: Array
    l_xx: Array
    tx: Array
    cells: Array
    y: Array
    yy: Array
    s: Array
    ys: Array
    ss: Array

    @classmethod
    def zero(cls, H: int, P: int, L: int, K: int) -> FactorSums:
        """Return sums over no rows."""
        shapes: list[tuple[int, ...]] = [
            *((L,), (L, L), (), (L,), (L, L), (K, L + 1)),
            *((P,), (P,), (P,), (P, L), (P, L), (P, L * (L + 1) // 2)),
        ]
        return cls(np.zeros(H), 0.0, *(np.zeros((H, *shape)) for shape in shapes))

    @property
    def core(self) -> Statistics:
        """Return the sums of the factors alone."""
        return Statistics(
            self.n, self.log_norm, self.x, self.xx, self.l_n, self.l_x, self.l_xx, self.tx
        )


@dataclass(eq=False)
class FactorExperts:
    """q of the globals."""

    core: Experts
    A: Array
    C: Array
    d: Array
    vd: Array
    beta_a: float
    beta_b: Array
    theta: Array
    mu: Array
    v: Array
    u_a: float
    u_b: float
    psi_a: Array
    psi_b: Array
    rel_a: Array
    rel_b: Array

    @classmethod
    def from_prior(cls, prior: FactorPrior, H: int, K: int) -> FactorExperts:
        """Return the prior as q, its weights and loadings at 0."""
        P, L = prior.P, prior.L
        return cls(
            core=Experts.from_prior(prior.core, H, K),
            A=np.zeros((P, L)),
            C=np.tile(np.eye(L) / P, (P, 1, 1)),
            d=np.zeros(L),
            vd=np.full(L, prior.d0 / prior.c0),
            beta_a=prior.c0 + 0.5,
            beta_b=np.full(L, prior.d0 + 0.5),
            theta=np.full((H, L), expit(prior.log_odds)),
            mu=np.zeros(P),
            v=np.full(P, prior.u2 / prior.u1),
            u_a=prior.u1,
            u_b=prior.u2,
            psi_a=np.full(H, prior.psi0),
            psi_b=np.full(H, prior.psi1),
            rel_a=np.full(P, prior.rel0),
            rel_b=np.full(P, prior.rel0),
        )

    @property
    def H(self) -> int:
        """Return the number of experts, empty ones included."""
        return self.core.H

    @property
    def K(self) -> int:
        """Return the number of latent label columns."""
        return self.core.K

    @property
    def P(self) -> int:
        """Return the number of features."""
        return int(self.A.shape[0])

    @property
    def L(self) -> int:
        """Return the number of factors."""
        return int(self.A.shape[1])

    @property
    def alpha(self) -> float:
        """Return E[alpha]."""
        return self.core.alpha

    @property
    def pi(self) -> Array:
        """Return E[pi] (H,)."""
        return self.core.pi

    @property
    def log_pi(self) -> Array:
        """Return E[log pi] (H,)."""
        return self.core.log_pi

    @property
    def psi(self) -> Array:
        """Return E[psi] (H,)."""
        return self.psi_a / self.psi_b

    @property
    def rel(self) -> Array:
        """Return E[r] (P,)."""
        return self.rel_a / self.rel_b

    @property
    def e(self) -> Array:
        """Return E[precision of the noise] (H, P)."""
        return np.outer(self.psi, self.rel)

    @property
    def gain(self) -> Array:
        """Return E[d o b] (H, L)."""
        return self.d * self.theta

    @property
    def rules(self) -> Experts:
        """Return q of the rules, which act on the factors."""
        return self.core

    def with_rules(self, mw: Array, Sw: Array) -> FactorExperts:
        """Return the same experts with other rules, all else shared with these."""
        return replace(self, core=self.core.with_rules(mw, Sw))

    @property
    def centers(self) -> Array:
        """Return where the experts lie (H, P)."""
        return np.asarray(self.mu + (self.gain * self.core.m) @ self.A.T)

    @property
    def G(self) -> Array:
        """Return E[(d o b)(d o b)'] (H, L, L)."""
        gain = self.gain
        G = gain[:, :, None] * gain[:, None, :]
        at = np.arange(self.L)
        G[:, at, at] = (self.d**2 + self.vd) * self.theta
        return G

    @property
    def AA(self) -> Array:
        """Return E[A_p A_p'] (P, L (L + 1) / 2), packed."""
        return pack(self.C) + packed_product(self.A, self.A)

    def ordered(self, order: Array) -> FactorExperts:
        """Return some experts in another order; the first sticks stay where they are."""
        moved = {name: getattr(self, name)[order] for name in PARTS}
        return replace(self, **moved, core=self.core.ordered(order))

    def of_factors(self, kept: Array) -> FactorExperts:
        """Return the same with some of the factors only."""
        return replace(
            self,
            core=self.core.of_features(kept),
            A=self.A[:, kept],
            C=np.ascontiguousarray(self.C[:, kept[:, None], kept]),
            d=self.d[kept],
            vd=self.vd[kept],
            beta_b=self.beta_b[kept],
            theta=self.theta[:, kept],
        )

    # ---------------------------------------------------------------------------- updates

    def update(
        self, prior: FactorPrior, s: FactorSums, counts: Array | None = None, *, hold: bool = False
    ) -> None:
        """Update everything in turn, given the rows; as `Experts.update`."""
        self.update_center(prior, s)
        self.update_loadings(s)
        pulls = self._pulls(s)  # neither of the next two changes what they are made of
        self.update_scales(prior, s, pulls)
        self.update_uses(prior, s, pulls)
        self.update_noise(prior, s)
        self.core.update(prior.core, s, counts, hold=hold)

    def update_center(self, prior: FactorPrior, s: FactorSums) -> None:
        """Update mu and its precision u."""
        fitted = np.einsum("hl,pl,hpl->hp", self.gain, self.A, s.s)
        precision = self.u_a / self.u_b + (self.e * s.cells).sum(axis=0)
        self.mu = (self.e * (s.y - fitted)).sum(axis=0) / precision
        self.v = 1.0 / precision
        self.u_a = prior.u1 + 0.5 * self.P
        self.u_b = prior.u2 + 0.5 * float((self.mu**2 + self.v).sum())

    def update_loadings(self, s: FactorSums) -> None:
        """Update every row of A; O(P L^3 + H P L^2)."""
        e, at = self.e, np.arange(self.L)
        precision = unpack(np.einsum("hp,hk,hpk->pk", e, pack(self.G), s.ss), self.L)
        precision[:, at, at] += self.P
        self.C = np.linalg.inv(precision)
        self.C = 0.5 * (self.C + np.swapaxes(self.C, 1, 2))
        away = s.ys - self.mu[:, None] * s.s
        linear = np.einsum("hp,hl,hpl->pl", e, self.gain, away)
        self.A = np.einsum("pkl,pl->pk", self.C, linear)

    def _pulls(self, s: FactorSums) -> tuple[Array, Array]:
        """Return U (H, L, L) and Y (H, L): what rows say of d o b is Y'g - g'U g / 2."""
        U = unpack(np.einsum("hp,pk,hpk->hk", self.e, self.AA, s.ss), self.L)
        away = s.ys - self.mu[:, None] * s.s
        return U, np.einsum("hp,pl,hpl->hl", self.e, self.A, away)

    def update_scales(
        self, prior: FactorPrior, s: FactorSums, pulls: tuple[Array, Array] | None = None
    ) -> None:
        """Update d, one factor at a time, and beta; `pulls` where they are known."""
        U, Y = pulls or self._pulls(s)
        self.d, self.vd = self.d.copy(), self.vd.copy()
        beta = self.beta_a / self.beta_b
        for t in range(self.L):
            theta = self.theta[:, t]
            self.vd[t] = 1.0 / (beta[t] + theta @ U[:, t, t])
            others = np.einsum("hl,hl->h", U[:, t], self.gain) - U[:, t, t] * self.d[t] * theta
            self.d[t] = self.vd[t] * (theta @ (Y[:, t] - others))
        self.beta_a = prior.c0 + 0.5
        self.beta_b = prior.d0 + 0.5 * (self.d**2 + self.vd)

    def update_uses(
        self, prior: FactorPrior, s: FactorSums, pulls: tuple[Array, Array] | None = None
    ) -> None:
        """Update b, one factor of all experts at a time; `pulls` where they are known."""
        U, Y = pulls or self._pulls(s)
        self.theta = self.theta.copy()
        for t in range(self.L):
            own = self.d[t] * self.theta[:, t]
            others = np.einsum("hl,hl->h", U[:, t], self.gain) - U[:, t, t] * own
            odds = prior.log_odds + self.d[t] * (Y[:, t] - others)
            odds -= 0.5 * (self.d[t] ** 2 + self.vd[t]) * U[:, t, t]
            self.theta[:, t] = expit(odds)

    def misfit(self, s: FactorSums) -> Array:
        """Return the expected squares (H, P) of what is left of the known features, summed."""
        weight = pack(self.G) * twice(self.L)
        spread = np.einsum("hk,pk,hpk->hp", weight, self.AA, s.ss)
        away = s.ys - self.mu[:, None] * s.s
        cross = np.einsum("hl,pl,hpl->hp", self.gain, self.A, away)
        square = s.yy - 2.0 * self.mu * s.y + s.cells * (self.mu**2 + self.v)
        return np.asarray(square - 2.0 * cross + spread)

    def update_noise(self, prior: FactorPrior, s: FactorSums) -> None:
        """Update psi, then r."""
        misfit = self.misfit(s)
        self.psi_a = prior.psi0 + 0.5 * s.cells.sum(axis=1)
        self.psi_b = prior.psi1 + 0.5 * misfit @ self.rel
        self.rel_a = prior.rel0 + 0.5 * s.cells.sum(axis=0)
        self.rel_b = prior.rel0 + 0.5 * self.psi @ misfit

    # ---------------------------------------------------------------------------- bound

    def bound(self, prior: FactorPrior) -> float:
        """Return E[log p] - E[log q] of everything that rows share."""
        own = self._loadings() + self._scales(prior) + self._uses(prior)
        return own + self._center(prior) + self._noise(prior) + self.core.bound(prior.core)

    def _loadings(self) -> float:
        P, L = self.P, self.L
        trace = float((self.A**2).sum() + np.einsum("pll->", self.C))
        log_det = float(np.linalg.slogdet(self.C)[1].sum())
        return 0.5 * (P * L * np.log(P) - P * trace + P * L + log_det)

    def _scales(self, prior: FactorPrior) -> float:
        log_beta = digamma(self.beta_a) - np.log(self.beta_b)
        square = self.beta_a / self.beta_b * (self.d**2 + self.vd)
        gammas = float(gamma_part(prior.c0, prior.d0, self.beta_a, self.beta_b).sum())
        return 0.5 * float((log_beta - square + 1.0 + np.log(self.vd)).sum()) + gammas

    def _uses(self, prior: FactorPrior) -> float:
        theta, odds = self.theta, prior.log_odds
        entropy = -xlogy(theta, theta) - xlogy(1.0 - theta, 1.0 - theta)
        return float((theta * odds - np.log1p(np.exp(odds)) + entropy).sum())

    def _center(self, prior: FactorPrior) -> float:
        log_u = digamma(self.u_a) - np.log(self.u_b)
        square = self.u_a / self.u_b * (self.mu**2 + self.v)
        center = 0.5 * float((log_u - square + 1.0 + np.log(self.v)).sum())
        return center + float(gamma_part(prior.u1, prior.u2, self.u_a, self.u_b))

    def _noise(self, prior: FactorPrior) -> float:
        psi = gamma_part(prior.psi0, prior.psi1, self.psi_a, self.psi_b)
        return float(psi.sum() + gamma_part(prior.rel0, prior.rel0, self.rel_a, self.rel_b).sum())
