"""q of everything that rows share: sticks, places and weights of the experts; its updates.

    v1, v2 (H - 1,)                     q(V_h) = Beta
    tau1, tau2                          q(alpha) = Gamma
    m (H, P), u, nu (H,), B_inv (H, P, P)    q(mu_h, Lam_h) = normal-Wishart
    c, d (H,)                           q(r_h) = Gamma, the scale of the expert's prior
    mw (H, K, P + 1), Sw (H, P + 1, P + 1)   q(w_hk) = N(mw_hk, Sw_h); the intercept comes last
    phi (K, P + 1), g, a, b (P + 1,)    q(zeta_kp | lam_p) = N(phi_kp, 1 / (g lam_p)), lam_p Gamma

Every update maximises the bound in what it changes. [iQGME sections 3.4.1, 4.3 with errata: the
expert's input is [x, 1] throughout, the scatter is around the completed rows.]
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, digamma, gammaln, multigammaln

from glfm_cli.latent.iqgme.drawn import LOG_2PI
from glfm_cli.latent.iqgme.prior import Prior

Array = NDArray[Any]

EMPTY = 1e-9  # labelled rows of an expert that has none
NEWTON, SETTLED = 50, 1e-13  # steps at most, and the relative step that ends them


@dataclass(eq=False)
class Statistics:
    """Sums over rows, weighted by the experts' responsibilities; of labelled rows in `l...`.

    n (H,), x (H, P), xx (H, P, P) : sum rho, sum rho <x>, sum rho <x x'>
    l_n, l_x, l_xx : the same over labelled rows;  tx (H, K, P + 1) : sum rho <t> <[x, 1]>'
    log_norm : sum over rows of the log of the responsibilities' normaliser
    """

    n: Array
    x: Array
    xx: Array
    l_n: Array
    l_x: Array
    l_xx: Array
    tx: Array
    log_norm: float = 0.0

    @classmethod
    def zero(cls, H: int, P: int, K: int) -> Statistics:
        """Return sums over no rows."""
        z = np.zeros
        return cls(z(H), z((H, P)), z((H, P, P)), z(H), z((H, P)), z((H, P, P)), z((H, K, P + 1)))

    def add(self, other: Statistics) -> None:
        """Add the sums over other rows."""
        for name in ("n", "x", "xx", "l_n", "l_x", "l_xx", "tx"):
            getattr(self, name)[...] += getattr(other, name)
        self.log_norm += other.log_norm

    def ordered(self, order: Array) -> Statistics:
        """Return the sums of some experts, in another order."""
        names = ("n", "x", "xx", "l_n", "l_x", "l_xx", "tx")
        return replace(self, **{name: getattr(self, name)[order] for name in names})


@dataclass(eq=False)
class Experts:
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
    def H(self) -> int:
        """Return the number of experts, empty ones included."""
        return int(self.u.size)

    @property
    def P(self) -> int:
        """Return the number of features."""
        return int(self.m.shape[1])

    @property
    def K(self) -> int:
        """Return the number of latent label columns."""
        return int(self.mw.shape[1])

    @property
    def alpha(self) -> float:
        """Return E[alpha]."""
        return self.tau1 / self.tau2

    @property
    def lam(self) -> Array:
        """Return E[lam] (P + 1,)."""
        return self.a / self.b

    @property
    def pi(self) -> Array:
        """Return E[pi] (H,)."""
        share = np.append(self.v1 / (self.v1 + self.v2), 1.0)
        return share * np.cumprod(np.append(1.0, 1.0 - share[:-1]))

    @property
    def log_rest(self) -> Array:
        """Return E[log(1 - V)] (H - 1,)."""
        return digamma(self.v2) - digamma(self.v1 + self.v2)

    def refresh(self) -> None:
        """Recompute the expectations that follow from the parameters; O(H P^3)."""
        P = self.P
        log_v = digamma(self.v1) - digamma(self.v1 + self.v2)
        self.log_pi = np.append(log_v, 0.0) + np.append(0.0, np.cumsum(self.log_rest))
        chol = np.linalg.cholesky(self.B_inv)
        self.log_B = -2.0 * np.log(np.diagonal(chol, axis1=1, axis2=2)).sum(axis=1)
        inverse = np.linalg.inv(chol)
        self.root = np.sqrt(self.nu)[:, None, None] * np.swapaxes(inverse, 1, 2)
        self.nB = self.root @ np.swapaxes(self.root, 1, 2)  # E[Lam] = root root'
        half = 0.5 * (self.nu[:, None] - np.arange(P))
        self.log_Lam = digamma(half).sum(axis=1) + P * np.log(2.0) + self.log_B

    def log_density(self, x: Array, log_det: Array, n_known: Array) -> Array:
        """Return log predictive densities (H, b) of the known features of rows.

        They are Student t, with nu + 1 - P degrees of freedom. With gaps at their conditional means
        the quadratic form of a whole row is that of its known part under the marginal law, whose
        determinant is |D| |E[Lam]_mm|, D = E[Lam]^-1.

        Parameters
        ----------
        x : (H, b, P) completed rows;  log_det : (H, b) log|E[Lam]_mm|;  n_known : (b,)
        """
        df = self.nu + 1.0 - self.P
        scale = self.nu * (self.u + 1.0) / (self.u * df)  # of the t density, times D
        away = np.matmul(x - self.m[:, None, :], self.root)
        square = np.einsum("hbp,hbp->hb", away, away) / scale[:, None]
        log_D = -(self.log_B + self.P * np.log(self.nu))
        log_scale = log_D[:, None] + log_det + n_known * np.log(scale)[:, None]
        total = 0.5 * (df[:, None] + n_known)
        constant = gammaln(total) - gammaln(0.5 * df)[:, None]
        constant -= 0.5 * (n_known * np.log(df * np.pi)[:, None] + log_scale)
        return np.asarray(constant - total * np.log1p(square / df[:, None]))

    # ---------------------------------------------------------------------------- updates

    def update(
        self, prior: Prior, s: Statistics, counts: Array | None = None, *, hold: bool = False
    ) -> None:
        """Update everything in turn, given the rows.

        counts : (H,) how often each expert was taken from the sticks, where not once a row
        hold : whether (zeta, lam) stay as they are
        """
        self.update_sticks(prior, s.n if counts is None else counts)
        self.update_places(prior, s)
        if self.K and hold:
            self.update_weights(s)
        elif self.K:
            self.settle_weight_prior(prior, s)
            self.update_weights(s)
            self.update_weight_prior(prior)
        self.refresh()

    def update_sticks(self, prior: Prior, n: Array) -> None:
        """Update V, then alpha."""
        after = np.append(np.cumsum(n[::-1])[::-1], 0.0)[1:]
        self.v1 = 1.0 + n[:-1]
        self.v2 = self.alpha + after[:-1]
        self.tau1 = prior.t1 + self.H - 1
        self.tau2 = prior.t2 - float(self.log_rest.sum())

    def update_places(self, prior: Prior, s: Statistics) -> None:
        """Update (mu, Lam) of every expert together with its scale."""
        self.nu = prior.nu0 + s.n
        self.u = prior.u0 + s.n
        self.m = (prior.u0 * prior.m0 + s.x) / self.u[:, None]
        outer = self.u[:, None, None] * self.m[:, :, None] * self.m[:, None, :]
        scatter = s.xx + prior.u0 * np.outer(prior.m0, prior.m0) - outer
        scatter = 0.5 * (scatter + np.swapaxes(scatter, 1, 2))
        r, self.c, self.d = best_scales(prior, self.nu, scatter)
        self.B_inv = r[:, None, None] * prior.B0_inv + scatter

    def update_weights(self, s: Statistics) -> None:
        """Update w of every expert."""
        H, P = self.H, self.P
        precision = np.empty((H, P + 1, P + 1))
        precision[:, :P, :P] = s.l_xx
        precision[:, :P, P] = precision[:, P, :P] = s.l_x
        precision[:, P, P] = s.l_n
        precision[:, np.arange(P + 1), np.arange(P + 1)] += self.lam
        self.Sw = np.linalg.inv(precision)
        self.Sw = 0.5 * (self.Sw + np.swapaxes(self.Sw, 1, 2))
        self.mw = (s.tx + self.lam * self.phi) @ self.Sw

    def update_weight_prior(self, prior: Prior) -> None:
        """Update (zeta, lam) of every feature."""
        H, K = self.H, self.K
        self.g = prior.g0 + H
        self.phi = self.mw.sum(axis=0) / self.g
        self.a = prior.a0 + 0.5 * H * K
        square = (self.mw**2).sum(axis=(0, 1)) + K * np.einsum("hpp->p", self.Sw)
        self.b = prior.b0 + 0.5 * square - 0.5 * self.g * (self.phi**2).sum(axis=0)

    def settle_weight_prior(self, prior: Prior, s: Statistics) -> None:
        """Update (zeta, lam) together with w of the empty experts.

        Those have w = zeta on average and variance 1 / lam, so that in turn they and lam would
        only creep along; the fixed point of both is linear in b.
        """
        K = self.K
        full = s.l_n > EMPTY
        n_empty = int(np.sum(~full))
        if not n_empty:
            return
        g = prior.g0 + int(full.sum())
        phi = self.mw[full].sum(axis=0) / g
        square = (self.mw[full] ** 2).sum(axis=(0, 1)) + K * np.einsum("hpp->p", self.Sw[full])
        self.a = prior.a0 + 0.5 * self.H * K
        b = prior.b0 + 0.5 * (square - g * (phi**2).sum(axis=0))
        self.b = b / (1.0 - 0.5 * n_empty * K / self.a)
        self.phi = phi
        self.mw[~full] = phi
        self.Sw[~full] = np.diag(1.0 / self.lam)

    def ordered(self, order: Array) -> Experts:
        """Return some experts in another order; the first sticks stay where they are."""
        moved = {
            name: getattr(self, name)[order] for name in ("m", "u", "nu", "B_inv", "d", "mw", "Sw")
        }
        left = order.size - 1
        return replace(self, **moved, v1=self.v1[:left], v2=self.v2[:left])

    # ---------------------------------------------------------------------------- bound

    def bound(self, prior: Prior) -> float:
        """Return E[log p] - E[log q] of everything that rows share."""
        return self._sticks(prior) + self._places(prior) + self._weights(prior)

    def _sticks(self, prior: Prior) -> float:
        log_alpha = digamma(self.tau1) - np.log(self.tau2)
        v1, v2 = self.v1, self.v2
        sticks = log_alpha + (self.alpha - 1.0) * self.log_rest + stick_entropy(v1, v2)
        return float(sticks.sum()) + gamma_part(prior.t1, prior.t2, self.tau1, self.tau2)

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

    def _weights(self, prior: Prior) -> float:
        if self.K == 0:
            return 0.0
        H, K, P = self.H, self.K, self.P
        log_lam = digamma(self.a) - np.log(self.b)
        near = ((self.mw - self.phi) ** 2).sum(axis=(0, 1)) + K * np.einsum("hpp->p", self.Sw)
        prior_w = 0.5 * (H * K * (log_lam - LOG_2PI - 1.0 / self.g) - self.lam * near)
        entropy = 0.5 * K * float(np.linalg.slogdet(self.Sw)[1].sum())
        entropy += 0.5 * K * H * (P + 1) * (1.0 + LOG_2PI)
        log_g = K * np.log(prior.g0 / self.g)
        center = log_g - prior.g0 * (self.lam * (self.phi**2).sum(axis=0) + K / self.g) + K
        gammas = gamma_part(prior.a0, prior.b0, self.a, self.b).sum()
        return float(prior_w.sum()) + entropy + 0.5 * float(center.sum()) + float(gammas)


def stick_entropy(v1: Array, v2: Array) -> Array:
    """Return the entropies of Beta(v1, v2)."""
    entropy = betaln(v1, v2) - (v1 - 1) * digamma(v1) - (v2 - 1) * digamma(v2)
    return np.asarray(entropy + (v1 + v2 - 2) * digamma(v1 + v2))


def gamma_part(a0: float, b0: float, a: float, b: Any) -> Any:
    """Return E_q[log Gamma(a0, b0)] plus the entropy of q = Gamma(a, b), for each b."""
    expected = a0 * np.log(b0) - gammaln(a0) + (a0 - 1.0) * (digamma(a) - np.log(b)) - b0 * a / b
    out = expected + a - np.log(b) + gammaln(a) + (1.0 - a) * digamma(a)
    return out if np.ndim(b) else float(out)


def best_scales(prior: Prior, nu: Array, scatter: Array) -> tuple[Array, float, Array]:
    """Return r (H,), c and d (H,): the best q(r) = Gamma(c, d), of mean r, and q(Lam) together.

    With e the eigenvalues of the scatter in the units of B0_inv, given q(Lam)
    d = c0 + (nu / 2) sum_p 1 / (r + e_p), which has to agree with r = c / d. Of

        f(r) = c - r d = c - c0 r - (nu / 2) sum_p r / (r + e_p),

    convex and falling, Newton's method finds the root.

    Parameters
    ----------
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
        r = np.maximum(r + step, 0.1 * r)
        if np.all(np.abs(step) <= SETTLED * r):
            break
    d = prior.c0 + 0.5 * nu * (1.0 / (r[:, None] + e)).sum(axis=1)
    return r, c, d


def scale_part(prior: Prior, P: int, c: float, d: Array) -> Array:
    """Return what r adds to the bound beside its part in the scatter (H,)."""
    log_r = digamma(c) - np.log(d)
    return np.asarray(0.5 * P * prior.nu0 * log_r + gamma_part(prior.c0, prior.c0, c, d))


def log_wishart(log_B: Any, nu: Any, P: int) -> Any:
    """Return the log normaliser of a Wishart density."""
    gamma = np.array([multigammaln(0.5 * n, P) for n in np.atleast_1d(nu)])
    out = -0.5 * nu * log_B - 0.5 * nu * P * np.log(2.0) - gamma
    return out if np.ndim(nu) else float(out[0])


def stick_evidence(n: Array, alpha: float) -> float:
    """Return what the sticks add to the bound at their best, up to a constant."""
    after = np.append(np.cumsum(n[::-1])[::-1], 0.0)[1:]
    return float(betaln(1.0 + n[:-1], alpha + after[:-1]).sum())
