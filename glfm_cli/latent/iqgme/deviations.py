"""Rules of tasks' own, about the rules that they share.

    w_js = w_s + v_j                 the rule of expert s in task j
    v_jk ~ N(0, D^-1), D = diag(omega, ..., omega, omega_1);  w_s as of one task
    omega : of all that rules act on, given;  omega_1 : of the intercept, Gamma(o1, o2)

That a task's rule is off by the same under every expert lets all its rows tell by how much. q has
v_j apart from w_s. With sums over the labelled rows of task j

    X_js = sum rho <[f, 1] [f, 1]'>,  T_jsk = sum rho <t_k> <[f, 1]>

    q(v_jk) = N(C_j sum_s (T_jsk - X_js E[w_sk]), C_j),  C_j = (sum_s X_js + E[D])^-1
    q(w_sk) as of one task, with T_sk = sum_j (T_jsk - X_js E[v_jk])
    q(omega_1) = Gamma(o1 + J K / 2, o2 + sum over j and k of E[v_jk1^2] / 2)

and the rows of task j see the rule E[w_s] + E[v_j] with covariance S_s + C_j. What v and omega_1
add to the bound is

    K / 2 sum_j (F log omega + E[log omega_1] + log|C_j| + F + 1) - sum_jk E[v_jk' D v_jk] / 2
        + E[log p(omega_1)] - E[log q(omega_1)]

Where omega is infinite, and omega_1, all tasks have one rule. omega itself is no matter for the
bound: it counts every label as if its score had been seen, so that rules of as many numbers as a
task has rows seem to cost far more than they do. See `own_scale` for how it is chosen.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import digamma

from glfm_cli.arrays import Array
from glfm_cli.latent.iqgme.coefficients import Coefficients, Labelled
from glfm_cli.latent.iqgme.prior import Prior
from glfm_cli.latent.iqgme.sticks import gamma_part

FIRST = 1.0  # omega_1 at the start
ROUNDS = 3  # of (v of every task, w of every expert) in an update


@dataclass(frozen=True, eq=False)
class OwnSums:
    """Sums over the labelled rows of every task, weighted by responsibilities.

    X (J, S, F + 1, F + 1), T (J, S, K, F + 1)
    """

    X: Array
    T: Array

    @classmethod
    def zero(cls, J: int, S: int, K: int, F: int) -> OwnSums:
        """Return sums over no rows."""
        return cls(np.zeros((J, S, F + 1, F + 1)), np.zeros((J, S, K, F + 1)))

    def put(self, j: int, s: Labelled) -> None:
        """Take over the sums of task j."""
        X = self.X[j]
        X[:, :-1, :-1], X[:, -1, -1], self.T[j] = s.l_xx, s.l_n, s.tx
        X[:, :-1, -1] = X[:, -1, :-1] = s.l_x

    def ordered(self, order: Array) -> OwnSums:
        """Return the sums of some experts, in another order."""
        return OwnSums(self.X[:, order], self.T[:, order])

    def joined(self, a: int, b: int) -> OwnSums:
        """Return the sums with the rows of expert b given to expert a."""
        X, T = self.X.copy(), self.T.copy()
        for array in (X, T):
            array[:, a] += array[:, b]
            array[:, b] = 0.0
        return OwnSums(X, T)


@dataclass(frozen=True, eq=False)
class TaskDeviations:
    """q of what the tasks' rules are off by.

    mv (J, K, F + 1), C (J, F + 1, F + 1) : q(v_jk) = N(mv_jk, C_j)
    omega : given;  a, b : q(omega_1) = Gamma
    """

    mv: Array
    C: Array
    omega: float
    a: float
    b: float

    @classmethod
    def unknown(cls, prior: Prior, J: int, K: int, F: int, omega: float) -> TaskDeviations:
        """Return those of tasks of whose labels nothing is known."""
        a = prior.o1 + 0.5 * J * K
        D = np.append(np.full(F, omega), FIRST)
        return cls(
            np.zeros((J, K, F + 1)), np.tile(np.diag(1.0 / D), (J, 1, 1)), omega, a, a / FIRST
        )

    @property
    def D(self) -> Array:
        """Return the diagonal of E[D] (F + 1,)."""
        return np.append(np.full(self.mv.shape[2] - 1, self.omega), self.a / self.b)

    @property
    def new(self) -> Array:
        """Return the covariance of v of a new task (F + 1, F + 1)."""
        # E[1 / omega_1] exists, since there are two tasks or more.
        return np.diag(np.append(1.0 / self.D[:-1], self.b / (self.a - 1.0)))

    def seen(self, q: Coefficients, j: int | None) -> tuple[Array, Array]:
        """Return means (S, K, F + 1) and covariances of the rules of a task, None for a new one."""
        if j is None:
            return q.mw, q.Sw + self.new
        return q.mw + self.mv[j], q.Sw + self.C[j]

    def among(self, there: Array, n_tasks: int) -> TaskDeviations:
        """Return those of n tasks, of which these are at the places `there`, others as new."""
        mv = np.zeros((n_tasks, *self.mv.shape[1:]))
        C = np.tile(self.new, (n_tasks, 1, 1))
        mv[there], C[there] = self.mv, self.C
        return replace(self, mv=mv, C=C)

    def rest(self, sums: OwnSums) -> Array:
        """Return what is left of T for the shared rules (S, K, F + 1)."""
        return np.asarray((sums.T - np.einsum("jkp,jspq->jskq", self.mv, sums.X)).sum(axis=0))

    # ---------------------------------------------------------------------------- updates

    def updated(self, prior: Prior, q: Coefficients, sums: OwnSums, s: Any) -> TaskDeviations:
        """Update v, in turn with the shared rules, in place; then omega_1.

        s : sums over the rows of all tasks
        """
        own = self.with_spread(sums)
        for _ in range(ROUNDS):
            own = own.with_means(q, sums)
            q.update_weights(replace(s, tx=own.rest(sums)))
        return own.with_intercepts(prior)

    def with_spread(self, sums: OwnSums) -> TaskDeviations:
        """Update the covariances of v; O(J (S F^2 + F^3))."""
        C = np.linalg.inv(sums.X.sum(axis=1) + np.diag(self.D))
        return replace(self, C=0.5 * (C + np.swapaxes(C, 1, 2)))

    def with_means(self, q: Coefficients, sums: OwnSums) -> TaskDeviations:
        """Update the means of v, their covariances at their best."""
        left = (sums.T - np.einsum("skp,jspq->jskq", q.mw, sums.X)).sum(axis=1)
        return replace(self, mv=left @ self.C)

    def with_intercepts(self, prior: Prior) -> TaskDeviations:
        """Update omega_1."""
        J, K, _ = self.mv.shape
        b = prior.o2 + 0.5 * float(self.square[-1])
        return replace(self, a=prior.o1 + 0.5 * J * K, b=b)

    # ---------------------------------------------------------------------------- bound

    @property
    def square(self) -> Array:
        """Return the sums over tasks and labels of E[v^2] (F + 1,)."""
        K = self.mv.shape[1]
        return np.asarray((self.mv**2).sum(axis=(0, 1)) + K * np.einsum("jpp->p", self.C))

    def bound(self, prior: Prior) -> float:
        """Return E[log p] - E[log q] of v and omega_1."""
        J, K, size = self.mv.shape
        log_D = (size - 1) * np.log(self.omega) + digamma(self.a) - np.log(self.b)
        own = J * (log_D + size) + np.linalg.slogdet(self.C)[1].sum()
        out = 0.5 * K * float(own) - 0.5 * float(self.D @ self.square)
        return out + float(gamma_part(prior.o1, prior.o2, self.a, self.b))
