"""What every form of the experts has: shares from sticks, and rules for labels.

    V_h ~ Beta(1, alpha), pi_h = V_h (1 - V_1) ... (1 - V_h-1);  alpha ~ Gamma
    t = w_h [f, 1] + noise;  w_hkp ~ N(zeta_kp, 1 / lam_p);  (zeta, lam)_p normal-gamma
    lam_p ~ Gamma(a0, beta) of features, Gamma(a0, b0) of the intercept;  beta ~ Gamma(s0, s0 / b0)

f is what a rule acts on: F features, or factors behind them. Every update maximises the bound in
what it changes. [iQGME section 3.4.1; beta is ours: by it all features tell how much weights are to
be drawn together. q(beta) is always the best for q(lam), and not kept.]
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Protocol, Self

import numpy as np
from scipy.special import digamma

from glfm_cli.arrays import Array
from glfm_cli.latent.iqgme.gibbs_draw import LOG_2PI
from glfm_cli.latent.iqgme.prior import Prior
from glfm_cli.latent.iqgme.sticks import Sticks, gamma_part

EMPTY = 1e-9  # labelled rows of an expert that has none
ROUNDS = 5  # in which beta and lam settle


class Labelled(Protocol):
    """Sums over labelled rows, weighted by responsibilities, that rules are updated from.

    l_n (H,), l_x (H, F), l_xx (H, F, F) : sum rho, sum rho <f>, sum rho <f f'>
    tx (H, K, F + 1) : sum rho <t> <[f, 1]>'
    """

    l_n: Array
    l_x: Array
    l_xx: Array
    tx: Array


@dataclass(eq=False)
class Sums:
    """Sums over rows, weighted by responsibilities; every field but `log_norm` has (H, ...).

    n : (H,) sum rho
    log_norm : sum over rows of the log of the responsibilities' normaliser
    """

    n: Array
    log_norm: float

    def _arrays(self) -> Iterator[tuple[str, Array]]:
        for field in fields(self):
            if field.name != "log_norm":
                yield field.name, getattr(self, field.name)

    def add(self, other: Self) -> None:
        """Add the sums over other rows."""
        for name, array in self._arrays():
            array += getattr(other, name)
        self.log_norm += other.log_norm

    def ordered(self, order: Array) -> Self:
        """Return the sums of some experts, in another order."""
        out = copy.copy(self)
        for name, array in self._arrays():
            setattr(out, name, array[order])
        return out

    def joined(self, a: int, b: int) -> Self:
        """Return the sums with the rows of expert b given to expert a."""
        out = copy.deepcopy(self)
        for _, array in out._arrays():
            array[a] += array[b]
            array[b] = 0.0
        return out


class Coefficients(Sticks):
    """q of sticks, alpha, and the rules with their prior.

    mw (H, K, F + 1), Sw (H, F + 1, F + 1)   q(w_hk) = N(mw_hk, Sw_h); the intercept comes last
    phi (K, F + 1), g, a, b (F + 1,)    q(zeta_kp | lam_p) = N(phi_kp, 1 / (g lam_p)), lam_p Gamma
    """

    mw: Array
    Sw: Array
    phi: Array
    g: float
    a: float
    b: Array

    @property
    def H(self) -> int:
        """Return the number of experts, empty ones included."""
        return int(self.mw.shape[0])

    @property
    def K(self) -> int:
        """Return the number of latent label columns."""
        return int(self.mw.shape[1])

    @property
    def F(self) -> int:
        """Return the number of what rules act on."""
        return int(self.mw.shape[2]) - 1

    @property
    def lam(self) -> Array:
        """Return E[lam] (F + 1,)."""
        return self.a / self.b

    @property
    def WW(self) -> Array:
        """Return (H, F + 1, F + 1) the sum over k of E[w_k w_k']."""
        return self.K * self.Sw + np.einsum("hkp,hkq->hpq", self.mw, self.mw)

    # ---------------------------------------------------------------------------- updates

    def update_rules(self, prior: Prior, s: Labelled) -> None:
        """Update w of every expert, and its prior."""
        if self.K:
            self.settle_weight_prior(prior, s)
            self.update_weights(s)
            self.update_weight_prior(prior)

    def update_weights(self, s: Labelled) -> None:
        """Update w of every expert."""
        H, F = self.H, self.F
        precision = np.empty((H, F + 1, F + 1))
        precision[:, :F, :F] = s.l_xx
        precision[:, :F, F] = precision[:, F, :F] = s.l_x
        precision[:, F, F] = s.l_n
        precision[:, np.arange(F + 1), np.arange(F + 1)] += self.lam
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
        own = 0.5 * square - 0.5 * self.g * (self.phi**2).sum(axis=0)
        for _ in range(ROUNDS):
            self.b = self.rates(prior) + own

    def common_rate(self, prior: Prior) -> tuple[float, float]:
        """Return shape and rate of q(beta), the best for q(lam)."""
        shape = prior.s0 + self.F * prior.a0
        return shape, prior.s0 / prior.b0 + float(self.lam[: self.F].sum())

    def rates(self, prior: Prior) -> Array:
        """Return the expected rate (F + 1,) of the prior of every lam."""
        shape, rate = self.common_rate(prior)
        return np.append(np.full(self.F, shape / rate), prior.b0)

    def settle_weight_prior(self, prior: Prior, s: Labelled) -> None:
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
        own = 0.5 * (square - g * (phi**2).sum(axis=0))
        for _ in range(ROUNDS):
            self.b = (self.rates(prior) + own) / (1.0 - 0.5 * n_empty * K / self.a)
        self.phi = phi
        self.mw[~full] = phi
        self.Sw[~full] = np.diag(1.0 / self.lam)

    # ---------------------------------------------------------------------------- bound

    def _weights(self, prior: Prior) -> float:
        if self.K == 0:
            return 0.0
        H, K, F = self.H, self.K, self.F
        log_lam = digamma(self.a) - np.log(self.b)
        near = ((self.mw - self.phi) ** 2).sum(axis=(0, 1)) + K * np.einsum("hpp->p", self.Sw)
        prior_w = 0.5 * (H * K * (log_lam - LOG_2PI - 1.0 / self.g) - self.lam * near)
        entropy = 0.5 * K * float(np.linalg.slogdet(self.Sw)[1].sum())
        entropy += 0.5 * K * H * (F + 1) * (1.0 + LOG_2PI)
        log_g = K * np.log(prior.g0 / self.g)
        center = log_g - prior.g0 * (self.lam * (self.phi**2).sum(axis=0) + K / self.g) + K
        shape, rate = self.common_rate(prior)
        gammas = gamma_part(prior.a0, self.rates(prior), self.a, self.b).sum()
        gammas += F * prior.a0 * (digamma(shape) - np.log(shape))  # E log beta for log E beta
        gammas += gamma_part(prior.s0, prior.s0 / prior.b0, shape, rate)
        return float(prior_w.sum()) + entropy + 0.5 * float(center.sum()) + float(gammas)
