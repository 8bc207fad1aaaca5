"""Small problems for the mixture of experts, and its bound written out term by term."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import betaln, digamma, gammaln, log_ndtr, multigammaln

from glfm_cli.inference.run import Stop
from glfm_cli.latent.iqgme import Experts, KnownRows, LabelLaw, LevelData
from glfm_cli.latent.iqgme.prior import Prior
from glfm_cli.links import LinkConfig, of_levels
from glfm_cli.links.categorical import CategoricalLink
from glfm_cli.links.ordinal import OrdinalLink

Array = np.ndarray[Any, Any]


def climbed(start: Any, data: Any, form: Any, config: Any, iterations: int) -> None:
    """Let a start go on until so many iterations are made in all, or it has converged."""
    while not start.converged and len(start.bounds) < iterations:
        start.step(data, form, config)


class Patience(Stop):
    """Says to stop when it has been asked more than so many times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times
        self.asked = 0

    def now(self) -> bool:
        self.asked += 1
        if self.asked > self.times:
            self.interrupt()
        return self.asked > self.times

    def __call__(self) -> bool:
        return self.now()


def steps(code: Array, *cuts: float) -> LevelData:
    """Ordered levels, one more than cuts."""
    link = OrdinalLink("steps", len(cuts) + 1, LinkConfig())
    return LevelData(link, {"thresholds": np.array(cuts)}, np.asarray(code, dtype=np.float64))


def signs(positive: Array) -> LevelData:
    """What a binary label says of its variable."""
    return steps(positive, 0.0)


def choices(code: Array, n_levels: int, reference: int) -> LevelData:
    """Levels without order."""
    slot = np.insert(np.arange(n_levels - 1, dtype=np.intp), reference, -1)
    link = CategoricalLink("choices", reference, slot)
    return LevelData(link, {}, np.asarray(code, dtype=np.float64))


def probabilities(law: LabelLaw, label: LevelData | None = None) -> Array:
    """Return the probabilities (n, R) of the levels; of a binary label if none is given."""
    label = signs(np.zeros(1)) if label is None else label
    return of_levels(label.link).probabilities(law.of_label(), label.params)


def above(law: LabelLaw) -> Array:
    """Return the probability (n,) of the second level of a binary label."""
    return probabilities(law)[:, 1]


def problem(
    seed: int,
    n: int = 40,
    P: int = 3,
    *,
    gaps: float = 0.3,
    unlabelled: float = 0.1,
    levels: int = 2,
    discrete: bool = False,
    told: float = 0.0,
) -> KnownRows:
    """Return correlated features, a label that depends on them, and gaps in both.

    told : share of the gaps of which something is told
    """
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, P)) @ rng.standard_normal((P, P))
    x += 3.0 * rng.standard_normal(P) * rng.integers(0, 2, n)[:, None]
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    known = rng.random((n, P)) >= gaps
    score = x @ rng.standard_normal((P, levels - 1)) + rng.standard_normal((n, levels - 1))
    code = np.column_stack([score, np.zeros(n)]).argmax(axis=1)
    label = signs(code == 0) if levels == 2 else choices(code, levels, levels - 1)
    noise = np.zeros(P)
    if discrete:  # the first feature, in three steps, seen with noise
        x[:, 0] = np.searchsorted([-0.5, 0.7], x[:, 0]) - 1.0
        noise[0] = 0.2
    labelled = rng.random(n) >= unlabelled
    rows = KnownRows(np.where(known, x, 0.0), known, label, labelled, noise)
    if not told:
        return rows
    precision = np.where(~known & (rng.random((n, P)) < told), rng.integers(1, 4, (n, P)), 0.0)
    said = x + rng.standard_normal((n, P)) / np.sqrt(np.maximum(precision, 1.0))
    return replace(rows, told=np.where(precision > 0.0, said, 0.0), precision=precision)


def three_gaussians(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return the data of the thesis' section 3.5.1: features (n, 2), and labels (n,) bool."""
    means = np.array([[-3.0, 0.0], [1.0, 0.0], [5.0, 0.0]])
    outer = np.array([[0.52, -0.36], [-0.36, 0.73]])
    covs = [outer, np.array([[0.47, 0.19], [0.19, 0.7]]), outer]
    slope, height = np.array([0.75, -0.58, 0.75]), np.array([2.25, 0.58, -3.75])
    z = rng.integers(0, 3, n)
    x = np.stack([rng.multivariate_normal(means[k], covs[k]) for k in z])
    return x, x[:, 1] > slope[z] * x[:, 0] + height[z]


# ------------------------------------------------------------------ the bound, term by term


def gamma_terms(a0: float, b0: float, a: float, b: float) -> float:
    """E[log p] + entropy of a gamma variable."""
    log_x, x = digamma(a) - np.log(b), a / b
    prior = a0 * np.log(b0) - gammaln(a0) + (a0 - 1) * log_x - b0 * x
    return float(prior + a - np.log(b) + gammaln(a) + (1 - a) * digamma(a))


def common_rate_terms(
    prior: Prior, lam: Array, log_lam: Array, a: float, b: Array
) -> float:
    """E[log p] + entropy of the features' lam = Gamma(a, b) and the best beta of all of them."""
    shape, rate = prior.s0 + prior.a0 * lam.size, prior.s0 / prior.b0 + lam.sum()
    beta, log_beta = shape / rate, digamma(shape) - np.log(rate)
    out = gamma_terms(prior.s0, prior.s0 / prior.b0, shape, rate)
    out += np.sum(prior.a0 * log_beta - gammaln(prior.a0) + (prior.a0 - 1) * log_lam - beta * lam)
    return float(out + np.sum(a - np.log(b) + gammaln(a) + (1 - a) * digamma(a)))


def log_wishart(B: Array, nu: float) -> float:
    P = len(B)
    out = -0.5 * nu * np.linalg.slogdet(B)[1] - 0.5 * nu * P * np.log(2)
    return float(out - multigammaln(0.5 * nu, P))


def plain_bound(
    prior: Prior,
    q: Experts,
    positive: Array,
    rho: Array,
    best: Array,
    along: Array,
    cov: Array,
    m_t: Array,
    v_t: Array,
) -> float:
    """Return the bound of a binary problem, all rows labelled.

    rho (H, n); scores t ~ N(m_t, v_t) (H, n) on their side of 0, given which the features have
    means best + t along (H, n, P) and covariances cov (H, n, P, P), 0 at known ones
    """
    H, n, P = best.shape
    y = np.where(positive, 1.0, -1.0)
    log_v, log_rest = digamma(q.v1), digamma(q.v2)
    log_v, log_rest = log_v - digamma(q.v1 + q.v2), log_rest - digamma(q.v1 + q.v2)
    log_alpha, alpha = digamma(q.tau1) - np.log(q.tau2), q.tau1 / q.tau2
    lam, log_lam = q.a / q.b, digamma(q.a) - np.log(q.b)
    total = gamma_terms(prior.t1, prior.t2, q.tau1, q.tau2)
    for p in range(P + 1):
        phi = q.phi[0, p]
        total += 0.5 * (np.log(prior.g0) - prior.g0 * (lam[p] * phi**2 + 1 / q.g))
        total -= 0.5 * (np.log(q.g) - 1)
        if p == P:
            total += gamma_terms(prior.a0, prior.b0, q.a, q.b[p])
    total += common_rate_terms(prior, lam[:P], log_lam[:P], q.a, q.b[:P])
    for h in range(H - 1):
        v1, v2 = q.v1[h], q.v2[h]
        total += log_alpha + (alpha - 1) * log_rest[h] + betaln(v1, v2)
        total += (v1 + v2 - 2) * digamma(v1 + v2) - (v1 - 1) * digamma(v1) - (v2 - 1) * digamma(v2)
    B0 = np.linalg.inv(prior.B0_inv)
    for h in range(H):
        B = np.linalg.inv(q.B_inv[h])
        nB = q.nu[h] * B
        log_Lam = digamma(0.5 * (q.nu[h] + 1 - np.arange(1, P + 1))).sum() + P * np.log(2)
        log_Lam += np.linalg.slogdet(B)[1]
        d = q.m[h] - prior.m0
        total += 0.5 * (P * np.log(prior.u0) - P * prior.u0 / q.u[h] - prior.u0 * d @ nB @ d)
        r, log_r = q.c / q.d[h], digamma(q.c) - np.log(q.d[h])
        total += gamma_terms(prior.c0, prior.c0, q.c, q.d[h]) + 0.5 * prior.nu0 * P * log_r
        total += log_wishart(B0, prior.nu0) + 0.5 * (prior.nu0 - P - 1) * log_Lam
        total -= 0.5 * r * np.trace(prior.B0_inv @ nB) + 0.5 * (P * np.log(q.u[h]) - P)
        total -= log_wishart(B, q.nu[h]) + 0.5 * (q.nu[h] - P - 1) * log_Lam - 0.5 * q.nu[h] * P
        w, S = q.mw[h, 0], q.Sw[h]
        ww = S + np.outer(w, w)
        near = np.diag(ww) - 2 * w * q.phi[0] + q.phi[0] ** 2
        total += 0.5 * np.sum(log_lam - lam * near - 1 / q.g) + 0.5 * np.linalg.slogdet(S)[1]
        total += 0.5 * (P + 1)
        log_pi = (log_v[h] if h < H - 1 else 0.0) + log_rest[:h].sum()
        for i in range(n):
            m, v = m_t[h, i], v_t[h, i]
            a = m / np.sqrt(v)
            ratio = np.exp(-0.5 * a**2 - log_ndtr(y[i] * a)) / np.sqrt(2 * np.pi)
            t = m + y[i] * np.sqrt(v) * ratio
            tt = v + m * t
            k = np.append(along[h, i], 0.0)
            xb = np.append(best[h, i], 1.0) + t * k
            pad = np.pad(cov[h, i], (0, 1)) + (tt - t**2) * np.outer(k, k)
            ell = -0.5 * np.log(2 * np.pi)
            ell -= 0.5 * (tt - 2 * w @ (t * xb + (tt - t**2) * k))
            ell -= 0.5 * np.trace(ww @ (np.outer(xb, xb) + pad))
            away = xb[:P] - q.m[h]
            ell += 0.5 * (log_Lam - P * np.log(2 * np.pi) - away @ nB @ away)
            ell -= 0.5 * (P / q.u[h] + np.trace(nB @ pad[:P, :P]))
            gap = np.flatnonzero(np.diag(cov[h, i]))
            entropy = 0.5 * np.linalg.slogdet(cov[h, i][np.ix_(gap, gap)])[1]
            entropy += 0.5 * gap.size * (1 + np.log(2 * np.pi))
            entropy += 0.5 * np.log(2 * np.pi * v) + log_ndtr(y[i] * a)
            entropy += 0.5 * (tt - 2 * m * t + m**2) / v
            if rho[h, i] > 0:
                total += rho[h, i] * (ell + entropy + log_pi - np.log(rho[h, i]))
    return float(total)
