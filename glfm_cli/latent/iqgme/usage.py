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

from glfm_cli.arrays import Array, log_sum
from glfm_cli.latent.iqgme.sticks import Sticks

SAME = 0.99  # probability of one expert from which two atoms of a task are taken for one
ROUNDS = 3  # of (which expert is an atom, which atom has a row), each the best given the other


@dataclass(eq=False)
class Usage(Sticks):
    """q of the lower level, of J tasks with H local atoms each and S experts.

    v1, v2 (J, H - 1) : q(V_jh) = Beta;  tau1, tau2 : q(alpha) = Gamma
    sigma (J, H, S) : q(c_jh = s)
    """

    v1: Array
    v2: Array
    tau1: float
    tau2: float
    sigma: Array

    def __post_init__(self) -> None:
        # Sums differ in their last bits with the layout, of which a saved fit keeps nothing.
        self.sigma = np.ascontiguousarray(self.sigma)

    @property
    def counts(self) -> Array:
        """Return how many local atoms are each expert (S,)."""
        return self.sigma.sum(axis=(0, 1))

    @property
    def weights(self) -> Array:
        """Return the expected share (J, S) of every expert in every task."""
        return np.einsum("jh,jhs->js", self.pi, self.sigma)

    def with_experts(self, order: Array) -> Usage:
        """Return the usage of some experts, in another order."""
        sigma = self.sigma[:, :, order]
        return replace(self, sigma=sigma / sigma.sum(axis=2, keepdims=True))


@dataclass(frozen=True, eq=False)
class AtomChoice:
    """q of one task's atoms and rows.

    rho : (H, n);  sigma : (H, S);  share : (S, n) probability of an expert for a row
    value : what both add to the bound
    """

    rho: Array
    sigma: Array
    share: Array
    value: float


def choose(log_pi: Array, log_eta: Array, log_p: Array, rho: Array) -> AtomChoice:
    """Return which expert each atom of a task is, and which atom each row belongs to.

    log_pi : (H,) E[log pi_j];  log_eta : (S,) E[log eta]
    log_p : (S, n) expected log density of the rows under every expert
    rho : (H, n) from before
    """
    for _ in range(ROUNDS):
        log_sigma = log_eta + rho @ log_p.T
        log_sigma -= log_sum(log_sigma, axis=1, keepdims=True)
        sigma = np.exp(log_sigma)
        log_rho = log_pi[:, None] + sigma @ log_p
        norm = log_sum(log_rho, axis=0)
        rho = np.exp(log_rho - norm)
    value = float(norm.sum()) + float((sigma * (log_eta - log_sigma)).sum())
    return AtomChoice(rho, sigma, sigma.T @ rho, value)


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
