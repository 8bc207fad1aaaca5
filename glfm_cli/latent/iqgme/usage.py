"""Which of the shared experts each task uses: the lower level of a hierarchical Dirichlet process.

    z_i ~ pi_j, the sticks V_jh of the row's task j over H local atoms;  alpha ~ Gamma
    c_jh ~ eta, the sticks U_s of all tasks over S experts: which expert local atom h is
    row i belongs to expert c_{j, z_i}

The sticks of the upper level and their parameter are those of `Experts`, whose n_s is then the
number of local atoms that are expert s.  [iQGME chapter 4, with errata]
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import digamma, logsumexp

from glfm_cli.arrays import Array
from glfm_cli.latent.iqgme.coefficients import gamma_part, stick_entropy
from glfm_cli.latent.iqgme.prior import SharePrior

SAME = 0.99  # probability of one expert from which two atoms of a task are taken for one
ROUNDS = 3  # of (which expert is an atom, which atom has a row), each the best given the other


@dataclass(eq=False)
class Usage:
    """q of the lower level, of J tasks with H local atoms each and S experts.

    v1, v2 (J, H - 1) : q(V_jh) = Beta;  tau1, tau2 : q(alpha) = Gamma
    sigma (J, H, S) : q(c_jh = s)
    """

    v1: Array
    v2: Array
    tau1: float
    tau2: float
    sigma: Array

    @property
    def alpha(self) -> float:
        """Return E[alpha]."""
        return self.tau1 / self.tau2

    @property
    def log_rest(self) -> Array:
        """Return E[log(1 - V)] (J, H - 1)."""
        return digamma(self.v2) - digamma(self.v1 + self.v2)

    @property
    def log_pi(self) -> Array:
        """Return E[log pi] (J, H)."""
        log_v = digamma(self.v1) - digamma(self.v1 + self.v2)
        last = np.zeros((len(log_v), 1))
        return np.hstack([log_v, last]) + np.hstack([last, np.cumsum(self.log_rest, axis=1)])

    @property
    def counts(self) -> Array:
        """Return how many local atoms are each expert (S,)."""
        return self.sigma.sum(axis=(0, 1))

    @property
    def weights(self) -> Array:
        """Return the expected share (J, S) of every expert in every task."""
        share = np.hstack([self.v1 / (self.v1 + self.v2), np.ones((len(self.v1), 1))])
        left = np.cumprod(np.hstack([np.ones((len(share), 1)), 1.0 - share[:, :-1]]), axis=1)
        return np.einsum("jh,jhs->js", share * left, self.sigma)

    def update_sticks(self, prior: SharePrior, n: Array) -> None:
        """Update V given the rows n (J, H) of every atom, then alpha."""
        after = np.cumsum(n[:, ::-1], axis=1)[:, ::-1] - n
        self.v1 = 1.0 + n[:, :-1]
        self.v2 = self.alpha + after[:, :-1]
        self.tau1 = prior.t1 + self.v1.size
        self.tau2 = prior.t2 - float(self.log_rest.sum())

    def bound(self, prior: SharePrior) -> float:
        """Return E[log p] - E[log q] of the sticks and alpha."""
        log_alpha = digamma(self.tau1) - np.log(self.tau2)
        sticks = log_alpha + (self.alpha - 1.0) * self.log_rest + stick_entropy(self.v1, self.v2)
        return float(sticks.sum()) + gamma_part(prior.t1, prior.t2, self.tau1, self.tau2)

    def with_experts(self, order: Array) -> Usage:
        """Return the usage of some experts, in another order."""
        sigma = self.sigma[:, :, order]
        return replace(self, sigma=sigma / sigma.sum(axis=2, keepdims=True))


@dataclass(frozen=True, eq=False)
class Chosen:
    """q of one task's atoms and rows.

    rho : (H, n);  sigma : (H, S);  share : (S, n) probability of an expert for a row
    value : what both add to the bound
    """

    rho: Array
    sigma: Array
    share: Array
    value: float


def choose(log_pi: Array, log_eta: Array, log_p: Array, rho: Array) -> Chosen:
    """Return which expert each atom of a task is, and which atom each row belongs to.

    Parameters
    ----------
    log_pi : (H,) E[log pi_j];  log_eta : (S,) E[log eta]
    log_p : (S, n) expected log density of the rows under every expert
    rho : (H, n) from before
    """
    for _ in range(ROUNDS):
        log_sigma = log_eta + rho @ log_p.T
        log_sigma -= logsumexp(log_sigma, axis=1, keepdims=True)
        sigma = np.exp(log_sigma)
        log_rho = log_pi[:, None] + sigma @ log_p
        norm = logsumexp(log_rho, axis=0)
        rho = np.exp(log_rho - norm)
    value = float(norm.sum()) + float((sigma * (log_eta - log_sigma)).sum())
    return Chosen(rho, sigma, sigma.T @ rho, value)


def join_atoms(rho: Array, sigma: Array) -> tuple[Array, Array]:
    """Return one task's rho (H, n) and sigma (H, S), atoms of the same expert put together.

    Those that are emptied come last, spread over the experts evenly.
    """
    best = sigma.argmax(axis=1)
    sure = sigma[np.arange(best.size), best] > SAME
    n = rho.sum(axis=1)
    order = np.argsort(-n, kind="stable")
    new_rho, new_sigma = np.zeros_like(rho), np.full_like(sigma, 1.0 / sigma.shape[1])
    place: dict[int, int] = {}
    size = 0
    for h in order:
        key = int(best[h]) if sure[h] else -1 - int(h)
        if key not in place:
            place[key] = size
            new_sigma[size] = sigma[h]
            size += 1
        new_rho[place[key]] += rho[h]
    return new_rho, new_sigma
