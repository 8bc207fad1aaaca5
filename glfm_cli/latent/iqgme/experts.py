"""q of everything that rows share: sticks, places and weights of the experts; its updates.

    v1, v2, tau1, tau2, mw, Sw, phi, g, a, b : of sticks and rules, see `Rules`, on P features
    m (H, P), u, nu (H,), B_inv (H, P, P)    q(mu_h, Lam_h) = normal-Wishart
    c, d (H,)                           q(r_h) = Gamma, the scale of the expert's prior

Every update maximises the bound in what it changes. [iQGME sections 3.4.1, 4.3 with errata: the
expert's input is [x, 1] throughout, the scatter is around the completed rows.]
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from scipy.special import digamma, gammaln

from glfm_cli.arrays import Array
from glfm_cli.latent.iqgme.coefficients import Coefficients, Labelled, Sums
from glfm_cli.latent.iqgme.prior import Prior
from glfm_cli.latent.iqgme.sticks import gamma_part

NEWTON, SETTLED = 50, 1e-13  # steps at most, and the relative step that ends them
LEAST = 1e-6  # scale of an expert, in variances


class PlaceSums(Labelled, Protocol):
    """Sums that places are updated from, too: n (H,), x (H, P), xx (H, P, P)."""

    n: Array
    x: Array
    xx: Array


@dataclass(eq=False)
class Statistics(Sums):
    """Sums over rows, weighted by the experts' responsibilities; of labelled rows in `l...`.

    n (H,), x (H, P), xx (H, P, P) : sum rho, sum rho <x>, sum rho <x x'>
    l_n, l_x, l_xx : the same over labelled rows;  tx (H, K, P + 1) : sum rho <t> <[x, 1]>'
    log_norm : sum over rows of the log of the responsibilities' normaliser
    """

    x: Array
    xx: Array
    l_n: Array
    l_x: Array
    l_xx: Array
    tx: Array

    @classmethod
    def zero(cls, H: int, P: int, K: int) -> Statistics:
        """Return sums over no rows."""
        x, xx, l_x, l_xx = (np.zeros((H, *shape)) for shape in ((P,), (P, P)) * 2)
        return cls(np.zeros(H), 0.0, x, xx, np.zeros(H), l_x, l_xx, np.zeros((H, K, P + 1)))


@dataclass(eq=False)
class Experts(Coefficients):
    """q of the globals, and the expectations that rows need of it."""

    v1: Array
    v2: Array
    tau1: float
    tau2: float
    m: Array
    u: Array
    nu: Array
    B_inv: Array
    c: float
    d: Array
    mw: Array
    Sw: Array
    phi: Array
    g: float
    a: float
    b: Array
    log_pi: Array = field(init=False)
    nB: Array = field(init=False)
    root: Array = field(init=False)
    log_B: Array = field(init=False)
    log_Lam: Array = field(init=False)

    def __post_init__(self) -> None:
        self.refresh()

    @classmethod
    def from_prior(cls, prior: Prior, H: int, K: int) -> Experts:
        """Return the prior itself as q, its weights at 0."""
        P = prior.m0.size
        return cls(
            v1=np.ones(H - 1),
            v2=np.full(H - 1, prior.t1 / prior.t2),
            tau1=prior.t1,
            tau2=prior.t2,
            m=np.tile(prior.m0, (H, 1)),
            u=np.full(H, prior.u0),
            nu=np.full(H, prior.nu0),
            B_inv=np.tile(prior.B0_inv, (H, 1, 1)),
            c=prior.c0,
            d=np.full(H, prior.c0),
            mw=np.zeros((H, K, P + 1)),
            Sw=np.tile(np.eye(P + 1), (H, 1, 1)),
            phi=np.zeros((K, P + 1)),
            g=prior.g0 + H,
            a=1.0,
            b=np.ones(P + 1),
        )

    @property
    def P(self) -> int:
        """Return the number of features."""
        return int(self.m.shape[1])

    @property
    def rules(self) -> Experts:
        """Return q of the rules."""
        return self

    def with_rules(self, mw: Array, Sw: Array) -> Experts:
        """Return the same experts with other rules, all else shared with these."""
        out = copy.copy(self)
        out.mw, out.Sw = mw, Sw
        return out

    @property
    def centers(self) -> Array:
        """Return where the experts lie (H, P)."""
        return self.m

    def refresh(self) -> None:
        """Recompute the expectations that follow from the parameters; O(H P^3)."""
        P = self.P
        self.log_pi = self.log_shares
        chol = np.linalg.cholesky(self.B_inv)
        self.log_B = -2.0 * np.log(np.diagonal(chol, axis1=1, axis2=2)).sum(axis=1)
        inverse = np.linalg.inv(chol)
        self.root = np.sqrt(self.nu)[:, None, None] * np.swapaxes(inverse, 1, 2)
        self.nB = self.root @ np.swapaxes(self.root, 1, 2)  # E[Lam] = root root'
        half = 0.5 * (self.nu[:, None] - np.arange(P))
        self.log_Lam = digamma(half).sum(axis=1) + P * np.log(2.0) + self.log_B

    def log_density(self, square: Array, log_det: Array, n_known: Array) -> Array:
        """Return log predictive densities (H, b) of what is seen of rows.

        They are Student t, with nu + 1 - P degrees of freedom. With gaps at their conditional means
        the quadratic form of a whole row is that of its known part under the marginal law, whose
        determinant is |D| |E[Lam]_mm|, D = E[Lam]^-1. What is seen with noise adds to both.

        square : (H, b) that quadratic form, and what is told with noise of the rest
        log_det : (H, b) log|E[Lam]_mm|;  n_known : (b,)
        """
        df = self.nu + 1.0 - self.P
        scale = self.nu * (self.u + 1.0) / (self.u * df)  # of the t density, times D
        log_D = -(self.log_B + self.P * np.log(self.nu))
        log_scale = log_D[:, None] + log_det + n_known * np.log(scale)[:, None]
        total = 0.5 * (df[:, None] + n_known)
        constant = gammaln(total) - gammaln(0.5 * df)[:, None]
        constant -= 0.5 * (n_known * np.log(df * np.pi)[:, None] + log_scale)
        return np.asarray(constant - total * np.log1p(square / (scale * df)[:, None]))

    # ---------------------------------------------------------------------------- updates

    def update(
        self, prior: Prior, s: PlaceSums, counts: Array | None = None, *, hold: bool = False
    ) -> None:
        """Update everything in turn, given the rows.

        counts : (H,) how often each expert was taken from the sticks, where not once a row
        hold : whether (zeta, lam) stay as they are
        """
        self.update_sticks(prior, s.n if counts is None else counts)
        self.update_places(prior, s)
        if self.K and hold:
            self.update_weights(s)
        else:
            self.update_rules(prior, s)
        self.refresh()

    def update_places(self, prior: Prior, s: PlaceSums) -> None:
        """Update (mu, Lam) of every expert together with its scale."""
        self.nu = prior.nu0 + s.n
        self.u = prior.u0 + s.n
        self.m = (prior.u0 * prior.m0 + s.x) / self.u[:, None]
        outer = self.u[:, None, None] * self.m[:, :, None] * self.m[:, None, :]
        scatter = s.xx + prior.u0 * np.outer(prior.m0, prior.m0) - outer
        scatter = 0.5 * (scatter + np.swapaxes(scatter, 1, 2))
        r, self.c, self.d = best_scales(prior, self.nu, scatter)
        self.B_inv = r[:, None, None] * prior.B0_inv + scatter

    def ordered(self, order: Array) -> Experts:
        """Return some experts in another order; the first sticks stay where they are."""
        moved = {
            name: getattr(self, name)[order] for name in ("m", "u", "nu", "B_inv", "d", "mw", "Sw")
        }
        left = order.size - 1
        return replace(self, **moved, v1=self.v1[:left], v2=self.v2[:left])

    def of_features(self, kept: Array) -> Experts:
        """Return what q says of some of the features only."""
        also = np.append(kept, self.P)
        return replace(
            self,
            m=self.m[:, kept],
            nu=self.nu - (self.P - kept.size),
            B_inv=np.ascontiguousarray(self.B_inv[:, kept[:, None], kept]),
            mw=self.mw[:, :, also],
            Sw=np.ascontiguousarray(self.Sw[:, also[:, None], also]),
            phi=self.phi[:, also],
            b=self.b[also],
        )

    # ---------------------------------------------------------------------------- bound

    def bound(self, prior: Prior) -> float:
        """Return E[log p] - E[log q] of everything that rows share."""
        return self.sticks_bound(prior) + self._places(prior) + self._weights(prior)

    def _places(self, prior: Prior) -> float:
        P, u0, nu0 = self.P, prior.u0, prior.nu0
        away = self.m - prior.m0
        square = np.einsum("hp,hpq,hq->h", away, self.nB, away)
        trace = self.c / self.d * np.einsum("pq,hqp->h", prior.B0_inv, self.nB)
        log_B0 = -float(np.linalg.slogdet(prior.B0_inv)[1])
        center = P * np.log(u0 / self.u) - P * u0 / self.u - u0 * square + P
        own = log_wishart(self.log_B, self.nu, P)
        spread = (nu0 - self.nu) * self.log_Lam - trace + self.nu * P
        out = 0.5 * center + 0.5 * spread + log_wishart(log_B0, nu0, P) - own
        return float(out.sum() + scale_part(prior, P, self.c, self.d).sum())


def best_scales(prior: Prior, nu: Array, scatter: Array) -> tuple[Array, float, Array]:
    """Return r (H,), c and d (H,): the best q(r) = Gamma(c, d), of mean r, and q(Lam) together.

    With e the eigenvalues of the scatter in the units of B0_inv, given q(Lam)
    d = c0 + (nu / 2) sum_p 1 / (r + e_p), which has to agree with r = c / d. Of

        f(r) = c - r d = c - c0 r - (nu / 2) sum_p r / (r + e_p),

    convex and falling, Newton's method finds the root. Where features do not vary at all within an
    expert the bound would grow without end as r falls: no r below `LEAST` is taken.

    nu : (H,) degrees of freedom of q(Lam);  scatter : (H, P, P) around the centres
    """
    P = len(prior.B0_inv)
    white = np.linalg.inv(np.linalg.cholesky(prior.B0_inv))
    e = np.maximum(np.linalg.eigvalsh(white @ scatter @ white.T), 0.0)
    c = prior.c0 + 0.5 * P * prior.nu0
    r = np.ones(nu.size)
    for _ in range(NEWTON):
        total = r[:, None] + e
        value = c - prior.c0 * r - 0.5 * nu * (r[:, None] / total).sum(axis=1)
        slope = prior.c0 + 0.5 * nu * (e / total**2).sum(axis=1)
        step = value / slope
        r = np.maximum(r + step, np.maximum(0.1 * r, LEAST))
        if np.all((np.abs(step) <= SETTLED * r) | ((r == LEAST) & (step < 0.0))):
            break
    d = prior.c0 + 0.5 * nu * (1.0 / (r[:, None] + e)).sum(axis=1)
    return r, c, np.where(r == LEAST, c / r, d)


def scale_part(prior: Prior, P: int, c: float, d: Array) -> Array:
    """Return what r adds to the bound beside its part in the scatter (H,)."""
    log_r = digamma(c) - np.log(d)
    return np.asarray(0.5 * P * prior.nu0 * log_r + gamma_part(prior.c0, prior.c0, c, d))


def log_wishart(log_B: Any, nu: Any, P: int) -> Any:
    """Return the log normaliser of a Wishart density."""
    gamma = gammaln(0.5 * (np.asarray(nu)[..., None] - np.arange(P))).sum(axis=-1)
    gamma = gamma + 0.25 * P * (P - 1) * np.log(np.pi)
    return -0.5 * nu * (log_B + P * np.log(2.0)) - gamma
