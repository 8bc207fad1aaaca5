"""How the scores of rows answer when a label is left out: approximate leave-one-out of the rules.

The coefficients w of an expert solve  lam (w - zeta) = sum_i rho_i f_i g_i,  with the score
m_i = f_i' w, g_i = (E[t_i] - m_i) / v_i, and v_i the variance of t_i, 1 but for gaps. The prior's
centre zeta is the mean of the experts' w, so that it answers, too: with one expert there is hardly
a prior. Without the label of row i one step of Newton's method [Rad and Maleki 2020] takes m_i to

    m_i - a_i (1 - W_i a_i)^-1 g_i,   W_i = -dg_i / dm_i,   a_i = rho_i f_i' C f_i

with C the block of that expert in the inverse of the second derivatives in all w and zeta (a row is
mostly one expert's, so that it hardly moves two),

    Q_h = diag(lam) + sum_i rho_i f_i f_i' W_i  of w_h,  -diag(lam) between w_h and zeta,
    (g0 + H) diag(lam)  of zeta

Of a label of several variables g_i is a vector, W_i and a_i are matrices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.iqgme.coefficients import Coefficients
from glfm_cli.latent.iqgme.level_data import LevelData
from glfm_cli.latent.iqgme.local import weight_spread

MOST = 0.99  # of a leverage
STEP = 1e-4  # of scores


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Labelled rows under every expert.

    rows : (b,) which;  f : (H, b, F) what rules act on;  rho : (H, b) responsibilities
    mean, var : (H, b, K) of the label's variables, noise included, given the coefficients
    spread : (H, b, 1) what the uncertainty of these adds
    """

    rows: Array
    f: Array
    rho: Array
    mean: Array
    var: Array
    spread: Array

    @classmethod
    def of(cls, rows: Array, f: Array, rho: Array, rules: Coefficients) -> Self:
        """Return rows whose f is certain."""
        mean = f @ np.swapaxes(rules.mw[:, :, :-1], 1, 2) + rules.mw[:, None, :, -1]
        return cls(rows, f, rho, mean, np.ones_like(mean), weight_spread(rules, f)[:, :, None])

    @property
    def with_one(self) -> Array:
        """Return f, then 1 (H, b, F + 1)."""
        return np.concatenate([self.f, np.ones((*self.f.shape[:2], 1))], axis=2)


@dataclass(frozen=True, eq=False)
class Responses:
    """What scores without a label follow from.

    C : (H, K, F + 1, K, F + 1) of every expert
    label : of all rows
    pulls : g and W of rows by the first of them; none where all other rows' t are held, and W is 1
    """

    C: Array
    label: LevelData
    pulls: Mapping[int, tuple[Array, Array]]

    @classmethod
    def of(cls, every: Iterable[ScoredRows], label: LevelData, rules: Coefficients) -> Self:
        """Return those of all labelled rows; O(n K^2 F^2 + K^3 F^3) for each expert."""
        H, K, F = rules.H, rules.K, rules.F + 1
        Q, pulls = np.zeros((H, K, F, K, F)), {}
        for one in every:
            f, (g, W) = one.with_one, _pulls(one, label)
            pulls[int(one.rows[0])] = g, W
            for k, j in np.ndindex(K, K):
                weight = (one.rho * W[:, :, k, j])[:, :, None]
                Q[:, k, :, j] += np.swapaxes(f, 1, 2) @ (weight * f)
        lam = np.tile(rules.lam, K)
        Q = Q.reshape(H, lam.size, lam.size) + np.diag(lam)
        own = np.linalg.inv(0.5 * (Q + np.swapaxes(Q, 1, 2)))
        to_center = own * lam
        center = np.linalg.inv(np.diag(rules.g * lam) - lam[:, None] * to_center.sum(axis=0))
        C = own + to_center @ center @ np.swapaxes(to_center, 1, 2)
        return cls(C.reshape(H, K, F, K, F), label, pulls)

    @classmethod
    def held(cls, label: LevelData, rules: Coefficients) -> Self:
        """Return those by the covariances of the coefficients, all other t held where they are."""
        H, K, F = rules.H, rules.K, rules.F + 1
        C = np.zeros((H, K, F, K, F))
        for k in range(K):
            C[:, k, :, k] = rules.Sw
        return cls(C, label, {})

    def without(self, one: ScoredRows) -> tuple[Array, Array]:
        """Return means and variances (H, b, K) of the label's variables, each label left out."""
        f, K = one.with_one, one.mean.shape[2]
        if self.pulls:
            g, W = self.pulls[int(one.rows[0])]
        else:
            g = _pull(one, self.label, one.mean)
            W = np.tile(np.eye(K), (*g.shape[:2], 1, 1))
        a = np.empty_like(W)
        for k, j in np.ndindex(K, K):
            a[:, :, k, j] = one.rho * np.einsum("hbf,hbf->hb", f @ self.C[:, k, :, j], f)
        if K == 1:
            moved = a[..., 0] * g / (1.0 - np.minimum(W * a, MOST)[..., 0])
        else:
            moved = (a @ np.linalg.solve(np.eye(K) - W @ a, g[..., None]))[..., 0]
        h = np.minimum(one.rho[:, :, None] * one.spread, MOST)
        return one.mean - moved, one.var + one.spread / (1.0 - h)


def _pulls(one: ScoredRows, label: LevelData) -> tuple[Array, Array]:
    """Return g (H, b, K) and W (H, b, K, K)."""
    K, g = one.mean.shape[2], _pull(one, label, one.mean)
    W = np.empty((*one.mean.shape, K))
    for k in range(K):
        ahead = STEP * (np.arange(K) == k)
        W[..., k] = (g - _pull(one, label, one.mean + ahead)) / STEP
    return g, W


def _pull(one: ScoredRows, label: LevelData, mean: Array) -> Array:
    """Return g (H, b, K) at these means."""
    sd = np.sqrt(one.var)
    eta = mean / sd
    return np.asarray((label.expect(one.rows, eta)[0] - eta) / sd)
