"""Shares from sticks, V_h ~ Beta(1, alpha), pi_h = V_h (1 - V_1) ... (1 - V_h-1), alpha ~ Gamma.

Of one table, or along the last axis of many tasks that have one alpha.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import betaln, digamma, gammaln

from glfm_cli.arrays import Array
from glfm_cli.latent.iqgme.prior import Prior


class Sticks:
    """q of sticks and alpha.

    v1, v2 (..., H - 1) : q(V_h) = Beta;  tau1, tau2 : q(alpha) = Gamma
    """

    v1: Array
    v2: Array
    tau1: float
    tau2: float

    @property
    def alpha(self) -> float:
        """Return E[alpha]."""
        return self.tau1 / self.tau2

    @property
    def pi(self) -> Array:
        """Return E[pi] (..., H)."""
        return shares_of(self.v1 / (self.v1 + self.v2))

    @property
    def log_rest(self) -> Array:
        """Return E[log(1 - V)] (..., H - 1)."""
        return digamma(self.v2) - digamma(self.v1 + self.v2)

    @property
    def log_shares(self) -> Array:
        """Return E[log pi] (..., H)."""
        log_v = digamma(self.v1) - digamma(self.v1 + self.v2)
        zero = np.zeros((*log_v.shape[:-1], 1))
        rest = np.cumsum(self.log_rest, axis=-1)
        return np.concatenate([log_v, zero], axis=-1) + np.concatenate([zero, rest], axis=-1)

    def update_sticks(self, prior: Prior, n: Array) -> None:
        """Update V given the rows n (..., H), then alpha."""
        self.v1 = 1.0 + n[..., :-1]
        self.v2 = self.alpha + rows_behind(n)
        self.tau1 = prior.t1 + self.v1.size
        self.tau2 = prior.t2 - float(self.log_rest.sum())

    def sticks_bound(self, prior: Prior) -> float:
        """Return E[log p] - E[log q] of the sticks and alpha."""
        log_alpha, v1, v2 = digamma(self.tau1) - np.log(self.tau2), self.v1, self.v2
        entropy = betaln(v1, v2) - (v1 - 1) * digamma(v1) - (v2 - 1) * digamma(v2)
        entropy += (v1 + v2 - 2) * digamma(v1 + v2)
        sticks = log_alpha + (self.alpha - 1.0) * self.log_rest + entropy
        return float(sticks.sum()) + float(gamma_part(prior.t1, prior.t2, self.tau1, self.tau2))


def shares_of(sticks: Array) -> Array:
    """Return pi (..., H) of sticks V (..., H - 1)."""
    one = np.ones((*sticks.shape[:-1], 1))
    left = np.cumprod(np.concatenate([one, 1.0 - sticks], axis=-1), axis=-1)
    return np.asarray(np.concatenate([sticks, one], axis=-1) * left)


def rows_behind(n: Array) -> Array:
    """Return how many rows (..., H - 1) come after each expert but the last, of n (..., H)."""
    return np.asarray(np.cumsum(n[..., ::-1], axis=-1)[..., ::-1][..., 1:])


def stick_evidence(n: Array, alpha: float) -> float:
    """Return what the sticks add to the bound at their best, up to a constant."""
    return float(betaln(1.0 + n[:-1], alpha + rows_behind(n)).sum())


def by_size(n: Array, alpha: float) -> Array | None:
    """Return the order of experts by their rows n (H,) if that raises the bound, else None."""
    order = np.argsort(-n, kind="stable")
    return order if stick_evidence(n[order], alpha) > stick_evidence(n, alpha) else None


def gamma_part(a0: float, b0: Any, a: Any, b: Any) -> Any:
    """Return E_q[log Gamma(a0, b0)] plus the entropy of q = Gamma(a, b), for each a and b."""
    expected = a0 * np.log(b0) - gammaln(a0) + (a0 - 1.0) * (digamma(a) - np.log(b)) - b0 * a / b
    out = expected + a - np.log(b) + gammaln(a) + (1.0 - a) * digamma(a)
    return out if np.ndim(out) else float(out)
