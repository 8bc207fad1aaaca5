"""New rows under experts of many features: which expert, which label, which missing features.

The gate of an expert is the normal density of the known features that has the first two moments
they have under q: covariance D + F F' with F = A R, R R' the covariance of d o b o s, and all else
that is uncertain on the diagonal D. By Woodbury's identity

    J = I + F_o' D_o^-1 F_o,   log|D_o + F_o F_o'| = log|D_o| + log|J|
    f = J^-1 F_o' D_o^-1 (x - center)_o : mean of the factors in F's scale, J^-1 their covariance

O(|o| L^2 + L^3) a row and expert.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from glfm_cli.arrays import Array, log_sum
from glfm_cli.latent.iqgme.factors import FactorExperts, pack, packed_product, twice, unpack
from glfm_cli.latent.iqgme.gates import LabelLaw, log_shares
from glfm_cli.latent.iqgme.gibbs_draw import LOG_2PI
from glfm_cli.latent.iqgme.local import over, weight_spread
from glfm_cli.latent.iqgme.rows import KnownRows, RowRun

SMALL = 1e-12  # added to the variances of factors that are hardly used


@dataclass(frozen=True, eq=False)
class LowRank:
    """The experts' laws of the features x and of the factors s.

    center (H, P), F (H, P, L), D (H, P) : x = center + F f + e, f ~ N(0, I), e of variances D
    m (H, L), S (H, L, L), rest (H, L, L) : s = m + S f + what f does not say, of covariance `rest`
    """

    center: Array
    F: Array
    D: Array
    m: Array
    S: Array
    rest: Array

    @classmethod
    def of(cls, q: FactorExperts) -> LowRank:
        """Return them; O(H P L^2)."""
        core, gain, at = q.core, q.gain, np.arange(q.L)
        # The Student t law of s has this covariance; nu0 is such that it is finite.
        V = core.B_inv * ((core.u + 1.0) / core.u / (core.nu - q.L - 1.0))[:, None, None]
        moved = V.copy()  # the covariance of d o b o s
        second = V + core.m[:, :, None] * core.m[:, None, :]
        moved *= gain[:, :, None] * gain[:, None, :]
        own = (q.d**2 + q.vd) * q.theta
        moved[:, at, at] += (own - gain**2) * second[:, at, at]
        R = np.linalg.cholesky(moved + SMALL * np.eye(q.L))
        F = q.A @ R
        D = q.v + pack(q.G * second) * twice(q.L) @ pack(q.C).T
        D += 1.0 / q.e
        S = np.swapaxes(np.linalg.solve(R, gain[:, :, None] * V), 1, 2)
        rest = V - S @ np.swapaxes(S, 1, 2)
        return cls(q.centers, F, D, core.m, S, rest)

    @property
    def spread(self) -> Array:
        """Return standard deviations (H, P) of the features."""
        return np.sqrt(self.D + np.einsum("hpl,hpl->hp", self.F, self.F))

    @property
    def cov(self) -> Array:
        """Return the covariance (H, L, L) of the factors."""
        return self.rest + self.S @ np.swapaxes(self.S, 1, 2)

    @property
    def coefficients(self) -> Array:
        """Return (H, P, L) what the features' values, all of them known, say of the factors."""
        scaled = self.F / self.D[:, :, None]
        J = np.eye(self.F.shape[2]) + np.swapaxes(self.F, 1, 2) @ scaled
        return np.asarray(scaled @ np.linalg.solve(J, np.swapaxes(self.S, 1, 2)))


def factor_law(
    rows: KnownRows,
    q: FactorExperts,
    *,
    pi: Array | None = None,
    features: bool = False,
    pool: ThreadPoolExecutor | None = None,
) -> LabelLaw:
    """Return the law of the labels of rows, nothing being known of them; see `label_law`."""
    n, low = len(rows.x), LowRank.of(q)
    log_pi, law = log_shares(q, pi, n), LabelLaw.blank(q, n, features)

    def work(run: RowRun) -> None:
        found = _see(run, q, low)
        log_gate = log_pi[:, run.rows] + found.log_p
        law.gate[:, run.rows] = np.exp(log_gate - log_sum(log_gate, axis=0))
        law.mean[:, run.rows], law.var[:, run.rows] = _label(q, low, found)
        if features:
            fitted = low.center[:, None] + found.f @ np.swapaxes(low.F, 1, 2)
            known = run.known > 0
            law.x[:, run.rows] = np.where(known, run.x, fitted)
            spread = low.D[:, None] + _quadratic(found.cov, low.F)
            law.x_var[:, run.rows] = np.where(known, 0.0, spread)

    list(over(pool, work, rows.runs))
    return law


@dataclass(frozen=True, eq=False)
class FactorLaw:
    """Rows of a run under every expert.

    log_p (H, b) : of what is known;  f (H, b, L), cov (H, b, L, L) : of the factors given that
    """

    log_p: Array
    f: Array
    cov: Array


def _see(run: RowRun, q: FactorExperts, low: LowRank) -> FactorLaw:
    """Return what is known of a run's rows, and of their factors by it."""
    L, known = q.L, run.known
    weight = 1.0 / low.D
    loaded = low.F * weight[:, :, None]
    J = unpack(known @ packed_product(loaded, low.F), L) + np.eye(L)
    linear = run.x @ loaded - known @ (loaded * low.center[:, :, None])
    cov = np.linalg.inv(J)
    f = np.einsum("hbkl,hbl->hbk", cov, linear)
    log_det = np.linalg.slogdet(J)[1]
    count = known.sum(axis=1)
    square = (
        weight @ (run.x**2).T
        - 2.0 * (weight * low.center) @ run.x.T
        + (weight * low.center**2) @ known.T
    )
    square -= np.einsum("hbl,hbl->hb", linear, f)
    log_p = -0.5 * (square + np.log(low.D) @ known.T + log_det + count * LOG_2PI)
    return FactorLaw(log_p, f, cov)


def _label(q: FactorExperts, low: LowRank, seen: FactorLaw) -> tuple[Array, Array]:
    """Return mean and variance (H, b, K) of the label's variables, noise included."""
    L, w = q.L, q.core.mw[:, :, :-1]
    s = low.m[:, None] + seen.f @ np.swapaxes(low.S, 1, 2)
    cov = low.rest[:, None] + low.S[:, None] @ seen.cov @ np.swapaxes(low.S, 1, 2)[:, None]
    mean = s @ np.swapaxes(w, 1, 2) + q.core.mw[:, None, :, L]
    own = 1.0 + weight_spread(q.core, s) + np.einsum("hkl,hbkl->hb", q.core.Sw[:, :L, :L], cov)
    return mean, own[:, :, None] + _quadratic(cov, w)


def _quadratic(cov: Array, w: Array) -> Array:
    """Return w_k' cov w_k (H, b, K) for cov (H, b, L, L) and w (H, K, L)."""
    return np.asarray(np.einsum("hbkl,hkl->hbk", w[:, None] @ cov, w))
