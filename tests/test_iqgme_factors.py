"""Experts of many features: the bound, its updates, and what they say of new rows."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import digamma, log_ndtr
from scipy.stats import multivariate_normal

from glfm_cli.classification.fit import fit_experts
from glfm_cli.latent.iqgme import FactorExperts, IqgmeConfig, KnownRows, label_law
from glfm_cli.latent.iqgme.factor_gates import LowRank
from glfm_cli.latent.iqgme.factor_rows import FactorTerms, place_run, sum_run
from glfm_cli.latent.iqgme.factors import pack, unpack
from glfm_cli.latent.iqgme.fit import begin
from glfm_cli.latent.iqgme.forms import Factored, forms_of, local_step
from glfm_cli.latent.iqgme.local import Local
from glfm_cli.latent.iqgme.prior import factors_for
from glfm_cli.latent.iqgme.tasks import begin_tasks
from tests.iqgme_problems import Array, climbed, gamma_terms, problem, signs

pytestmark = pytest.mark.kernels

CONFIG = IqgmeConfig(experts=4, factors=3, iterations=25, short=25, tolerance=1e-14)
# Moves to fewer experts, too.
MOVING = replace(CONFIG, experts=6, iterations=60, short=60, tolerance=1e-4)
KINDS: list[dict[str, Any]] = [
    {},
    {"gaps": 0.6},
    {"discrete": True},
    {"gaps": 0.0, "levels": 3},
    {"unlabelled": 1.0},
]


def assert_bound_never_falls(
    seed: int, kind: dict[str, Any], which: int, config: IqgmeConfig = CONFIG
) -> None:
    rows = problem(seed, **kind)
    form = forms_of(config, [rows])[0]
    start = begin(rows, form, config, np.random.default_rng(seed), which)
    climbed(start, rows, form, config, config.iterations)
    bounds = np.array(start.bounds)
    assert isinstance(start.experts, FactorExperts)
    assert np.all(np.diff(bounds) >= -1e-8 * np.abs(bounds[1:]))
    assert bounds[-1] > bounds[0]


@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_never_falls(kind: dict[str, Any], seed: int) -> None:
    assert_bound_never_falls(seed, {"P": 6, **kind}, 0)


def test_the_bound_of_many_tasks_never_falls(seed: int) -> None:
    tables = [problem(97 * seed + j, n=14 + 6 * j, P=5) for j in range(3)]
    form = forms_of(CONFIG, tables)[0]
    start = begin_tasks(tables, form, CONFIG, np.random.default_rng(seed), 0, omega=2.0)
    climbed(start, tables, form, CONFIG, CONFIG.iterations)
    bounds = np.array(start.bounds)
    assert isinstance(start.experts, FactorExperts)
    assert np.all(np.diff(bounds) >= -1e-8 * np.abs(bounds[1:]))


@pytest.mark.slow
def test_the_bound_never_falls_on_200_problems(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for i in range(200):
        kind = KINDS[i % len(KINDS)] | {"gaps": float(rng.uniform(0.0, 0.6))}
        kind |= {"P": int(rng.integers(3, 20))}
        assert_bound_never_falls(seed + i, kind, i % 4, (CONFIG, MOVING)[i // 20 % 2])


class Frozen:
    """q of the rows of a small binary problem, held still."""

    def __init__(self, seed: int) -> None:
        self.positive = np.random.default_rng(seed).random(25) < 0.5
        base = problem(seed, n=25, P=5, unlabelled=0.0)
        self.rows = KnownRows(base.x, base.known, signs(self.positive), np.ones(25, dtype=bool))
        config = IqgmeConfig(experts=3, factors=2)
        form = Factored(config, [self.rows], 2)
        self.prior = form.prior
        start = begin(self.rows, form, config, np.random.default_rng(seed), 1)
        climbed(start, self.rows, form, config, 4)
        self.q, before = start.experts, copy.deepcopy(start.local)
        self.sums = local_step(form, self.rows, self.q, start.local)
        self.value = self.sums.log_norm + self.q.bound(self.prior)
        self.rho = start.local.rho
        (run,) = self.rows.runs
        placed = place_run(self.rows, run, self.q, FactorTerms.of(self.q), before)
        self.s, ss = placed.s, unpack(placed.ss, self.q.L)
        self.cov = ss - self.s[..., :, None] * self.s[..., None, :]
        self.m_t = self.s @ self.q.core.mw[:, 0, :-1, None]
        self.m_t = self.m_t[:, :, 0] + self.q.core.mw[:, :, -1]

    def bound(self, q: FactorExperts, s: Array | None = None, cov: Array | None = None) -> float:
        """Return the bound, what belongs to rows and loadings written out."""
        s = self.s if s is None else s
        cov = self.cov if cov is None else cov
        total = q.core.bound(self.prior.core) + plain_loadings(q, self.prior)
        for h in range(q.H):
            for i in range(25):
                r = self.rho[h, i]
                if r > 0:
                    row = self._row(q, h, i, s[h, i], cov[h, i])
                    total += r * (row + q.core.log_shares[h] - np.log(r))
        return float(total)

    def _row(self, q: FactorExperts, h: int, i: int, s: Array, cov: Array) -> float:
        L, core = q.L, q.core
        second = cov + np.outer(s, s)
        away = s - core.m[h]
        nB = core.nu[h] * np.linalg.inv(core.B_inv[h])
        log_Lam = digamma(0.5 * (core.nu[h] - np.arange(L))).sum() + L * np.log(2)
        log_Lam -= np.linalg.slogdet(core.B_inv[h])[1]
        out = 0.5 * (log_Lam - away @ nB @ away - np.trace(nB @ cov) - L / core.u[h])
        out += 0.5 * np.linalg.slogdet(cov)[1] + 0.5 * L
        gain = q.d * q.theta[h]
        G = np.outer(gain, gain)
        G[np.diag_indices(L)] = (q.d**2 + q.vd) * q.theta[h]
        for p in np.flatnonzero(self.rows.known[i]):
            e = q.psi_a[h] / q.psi_b[h] * q.rel_a[p] / q.rel_b[p]
            log_e = digamma(q.psi_a[h]) - np.log(q.psi_b[h])
            log_e += digamma(q.rel_a[p]) - np.log(q.rel_b[p])
            left = self.rows.x[i, p] - q.mu[p]
            AA = q.C[p] + np.outer(q.A[p], q.A[p])
            square = left**2 + q.v[p] - 2 * left * q.A[p] @ (gain * s) + np.sum(AA * G * second)
            out += 0.5 * (log_e - np.log(2 * np.pi) - e * square)
        y, m = (1.0 if self.positive[i] else -1.0), self.m_t[h, i]
        t = m + y * np.exp(-0.5 * m * m - log_ndtr(y * m)) / np.sqrt(2 * np.pi)
        w, S = core.mw[h, 0], core.Sw[h]
        sb, pad = np.append(s, 1.0), np.pad(cov, (0, 1))
        square = np.sum((S + np.outer(w, w)) * (np.outer(sb, sb) + pad))
        return float(out + log_ndtr(y * m) - 0.5 * (square - 2 * t * (w @ sb) + 2 * m * t - m * m))


def plain_loadings(q: FactorExperts, prior: Any) -> float:
    """Return the bound of what is not of the core, term by term."""
    P, L = q.A.shape
    total = gamma_terms(prior.u1, prior.u2, q.u_a, q.u_b)
    u, log_u = q.u_a / q.u_b, digamma(q.u_a) - np.log(q.u_b)
    for p in range(P):
        total += 0.5 * (log_u - u * (q.mu[p] ** 2 + q.v[p]) + 1 + np.log(q.v[p]))
        total += 0.5 * (L * np.log(P) - P * (np.trace(q.C[p]) + q.A[p] @ q.A[p]) + L)
        total += 0.5 * np.linalg.slogdet(q.C[p])[1]
        total += gamma_terms(prior.rel0, prior.rel0, q.rel_a[p], q.rel_b[p])
    for t in range(L):
        beta, log_beta = q.beta_a / q.beta_b[t], digamma(q.beta_a) - np.log(q.beta_b[t])
        total += 0.5 * (log_beta - beta * (q.d[t] ** 2 + q.vd[t]) + 1 + np.log(q.vd[t]))
        total += gamma_terms(prior.c0, prior.d0, q.beta_a, q.beta_b[t])
    for h in range(q.H):
        total += gamma_terms(prior.psi0, prior.psi1, q.psi_a[h], q.psi_b[h])
        for theta in q.theta[h]:
            total += theta * prior.log_odds - np.log(1 + np.exp(prior.log_odds))
            for one in (theta, 1 - theta):
                total -= one * np.log(one) if one > 0 else 0.0
    return float(total)


@pytest.fixture(scope="module")
def frozen(seed: int) -> Frozen:
    return Frozen(seed)


def test_the_bound_is_that_of_the_model_written_out(frozen: Frozen) -> None:
    assert frozen.value == pytest.approx(frozen.bound(frozen.q), rel=1e-11)


def slope(function: Any, at: Array, index: tuple[int, ...], step: float) -> float:
    kept, values = at[index], []
    for sign in (1.0, -1.0):
        at[index] = kept + sign * step
        values.append(function())
    at[index] = kept
    return float(values[0] - values[1]) / (2.0 * step)


UPDATES = {
    "update_center": ("mu", "v"),
    "update_loadings": ("A", "C"),
    "update_scales": ("d", "vd", "beta_b"),
    "update_uses": ("theta",),
    "update_noise": ("psi_a", "psi_b", "rel_a", "rel_b"),
}


@pytest.mark.parametrize("name", UPDATES)
def test_each_update_is_stationary(frozen: Frozen, name: str) -> None:
    q = copy.deepcopy(frozen.q)
    given = (frozen.sums,) if name == "update_loadings" else (frozen.prior, frozen.sums)
    for _ in range(60):  # parts of one update depend on one another
        getattr(q, name)(*given)
    for part in UPDATES[name]:
        values = getattr(q, part)
        at = (1, 0, 0)[: values.ndim] if part not in ("d", "vd", "beta_b") else (0,)
        step = 1e-5 * max(abs(values[at]), 1e-2)
        if part == "theta":  # a probability: towards the other end where it is at one
            step = 1e-5 * min(values[at], 1 - values[at])
        found = slope(lambda: frozen.bound(q), values, at, step)
        scale = values[at] * (1 - values[at]) if part == "theta" else max(abs(values[at]), 1e-2)
        assert abs(found) * scale < 1e-3, (part, found)


def test_q_of_the_rows_is_stationary(frozen: Frozen) -> None:
    """The core's updates are those of the full form; here factors and their covariances."""
    rows, q = frozen.rows, frozen.q
    local = Local(frozen.rho.copy(), np.zeros((*frozen.rho.shape, 1)))
    (run,) = rows.runs
    for _ in range(300):
        placed = place_run(rows, run, q, FactorTerms.of(q), local)
    s, ss = placed.s.copy(), unpack(placed.ss, q.L)
    cov = ss - s[..., :, None] * s[..., None, :]
    m_t, frozen.m_t = frozen.m_t, (s @ q.core.mw[:, 0, :-1, None])[:, :, 0] + q.core.mw[:, :, -1]
    h, i = np.unravel_index(int(frozen.rho.argmax()), frozen.rho.shape)
    in_s = slope(lambda: frozen.bound(q, s, cov), s, (int(h), int(i), 0), 1e-5)
    in_cov = slope(lambda: frozen.bound(q, s, cov), cov, (int(h), int(i), 0, 0), 1e-6)
    frozen.m_t = m_t
    assert abs(in_s) < 1e-4
    assert abs(in_cov) < 1e-3


# New rows ------------------------------------------------------------------------------------


def test_gates_and_gaps_are_those_of_the_whole_covariance(seed: int) -> None:
    """Woodbury's identity gives what dense matrices give."""
    rows = problem(seed, n=60, P=8, gaps=0.3)
    q = fit_experts(rows, CONFIG, chains=1, seed=seed).experts
    assert isinstance(q, FactorExperts)
    low, law = LowRank.of(q), label_law(rows, q, features=True)
    whole = low.F @ np.swapaxes(low.F, 1, 2) + np.einsum("hp,pq->hpq", low.D, np.eye(8))
    i = 3
    o, m = np.flatnonzero(rows.known[i]), np.flatnonzero(~rows.known[i])
    log_gate = np.log(q.pi) + [
        multivariate_normal(low.center[h, o], whole[h][np.ix_(o, o)]).logpdf(rows.x[i, o])
        for h in range(q.H)
    ]
    gate = np.exp(log_gate - log_gate.max())
    assert np.allclose(law.gate[:, i], gate / gate.sum())
    for h in range(q.H):
        assert np.allclose(q.centers[h], q.mu + q.A @ (q.d * q.theta[h] * q.core.m[h]))
        back = np.linalg.solve(whole[h][np.ix_(o, o)], whole[h][np.ix_(o, m)]).T
        mean = low.center[h, m] + back @ (rows.x[i, o] - low.center[h, o])
        var = np.diag(whole[h][np.ix_(m, m)] - back @ whole[h][np.ix_(o, m)])
        assert np.allclose(law.x[h, i, m], mean)
        assert np.allclose(law.x_var[h, i, m], var)


def test_a_row_without_features_has_the_shares_of_the_experts(seed: int) -> None:
    q = fit_experts(problem(seed, P=5), CONFIG, chains=1, seed=0).experts
    law = label_law(KnownRows(np.zeros((1, 5)), np.zeros((1, 5), dtype=bool)), q)
    assert np.allclose(law.gate[:, 0], q.pi)


def test_factors_are_for_tables_of_many_features() -> None:
    auto = IqgmeConfig()
    assert factors_for(auto, 100, 20) == 0
    assert factors_for(auto, 99, 20) == 10
    assert factors_for(auto, 120, 620) == 15
    assert factors_for(auto, 8, 3) == 0  # so few of both
    assert factors_for(IqgmeConfig(factors=0), 120, 620) == 0
    assert factors_for(IqgmeConfig(factors=7), 5000, 30) == 7


def test_packed_matrices_come_back() -> None:
    S = np.arange(9.0).reshape(3, 3)
    S = S + S.T
    assert np.array_equal(unpack(pack(S), 3), S)


@pytest.mark.parametrize("gaps", [0.0, 0.4])
def test_rows_with_the_same_gaps_have_the_law_that_each_has_alone(gaps: float, seed: int) -> None:
    frozen, n = Frozen(seed), 8
    rows = problem(seed, n=n, P=5, gaps=gaps)
    rows.known[:] = rows.known[np.arange(n) // 4 * 4]  # four rows each of two patterns
    labelled = np.arange(n) % 4 < 2
    rows = KnownRows(rows.x, rows.known, signs(np.arange(n) % 3 > 0), labelled)
    form, q, terms = Factored(CONFIG, [rows], 2), frozen.q, FactorTerms.of(frozen.q)
    local = Local(np.full((q.H, n), 1.0 / q.H), np.zeros((q.H, n, 1)))
    (run,) = rows.runs
    rho = np.random.default_rng(seed).random((q.H, n))
    placed = place_run(rows, run, q, terms, local)
    for i in range(n):
        at = np.array([i])
        label = replace(rows.label, x=rows.label.x[at])
        one = KnownRows(rows.x[at], rows.known[at], label, labelled[at])
        own = Local(local.rho[:, at], np.zeros((q.H, 1, 1)))
        alone = place_run(one, one.runs[0], q, terms, own)
        np.testing.assert_allclose(placed.s[:, i], alone.s[:, 0], atol=1e-12)
        np.testing.assert_allclose(placed.ss[:, i], alone.ss[:, 0], atol=1e-12)
        np.testing.assert_allclose(placed.log_rho[:, i], alone.log_rho[:, 0], atol=1e-10)
    s = form.zero(q)
    sum_run(s, run, placed, rho, local.t)
    np.testing.assert_allclose(s.s, np.einsum("hi,ip,hil->hpl", rho, run.known, placed.s))
    np.testing.assert_allclose(s.ss, np.einsum("hi,ip,hik->hpk", rho, run.known, placed.ss))
    np.testing.assert_allclose(s.ys, np.einsum("hi,ip,hil->hpl", rho, run.x, placed.s), atol=1e-12)
