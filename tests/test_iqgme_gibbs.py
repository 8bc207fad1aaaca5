"""The Gibbs sampler of the mixture of experts beside its variational fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import log_ndtr, logsumexp, ndtr
from scipy.stats import gamma, kstest

from glfm_cli.classification.fit import fit_experts
from glfm_cli.latent.iqgme import (
    IqgmeConfig,
    KnownRows,
    LabelLaw,
    label_law,
)
from glfm_cli.latent.iqgme.gibbs import _scatter, draw_common_rate, start_gibbs
from glfm_cli.latent.iqgme.prior import Prior
from glfm_cli.latent.iqgme.seen_law import SeenLaw
from tests.iqgme_problems import Array, Patience, above, choices, signs, steps

CONFIG = IqgmeConfig(experts=6, sweeps=240, draws=20)


def groups(n: int, seed: int, gaps: float) -> KnownRows:
    """Return two groups of rows in which the second feature speaks for opposite labels."""
    rng = np.random.default_rng(seed)
    group = rng.integers(2, size=n)
    x = np.column_stack([rng.normal(4.0 * group - 2.0, 1.0), rng.standard_normal(n)])
    score = 2.0 * np.where(group == 1, x[:, 1], -x[:, 1]) + rng.standard_normal(n)
    x /= x.std(axis=0)
    known = rng.random(x.shape) >= gaps
    return KnownRows(np.where(known, x, 0.0), known, signs(score > 0), np.ones(n, dtype=bool))


def predict(new: KnownRows, config: IqgmeConfig, train: KnownRows) -> tuple[Array, Array]:
    """Return the probabilities of new rows' labels by the variational fit, and by sampling."""
    q = fit_experts(train, config, chains=2, seed=0).experts
    drawn = fit_experts(train, replace(config, inference="gibbs"), chains=2, seed=0)
    assert len(drawn.draws) == 2 * config.draws
    laws = LabelLaw.average([label_law(new, one) for one in drawn.draws])
    return above(label_law(new, q)), above(laws)


def test_sampling_and_the_variational_fit_predict_alike(seed: int) -> None:
    train, new = groups(120, seed, 0.2), groups(200, seed + 1, 0.3)
    bound, sampled = predict(new, CONFIG, train)
    assert np.mean(np.abs(bound - sampled)) < 0.04
    assert np.corrcoef(bound, sampled)[0, 1] > 0.98


def log_t(w: Array, a: float, scale: Array) -> Array:
    """Return the log density, but for a constant, of w ~ N(0, scale / Gamma(a, 1))."""
    return np.asarray(-(a + 0.5) * np.log1p(0.5 * w**2 / scale) - 0.5 * np.log(scale))


def exact_probabilities(
    train: KnownRows, new: Array, prior: Prior, rng: np.random.Generator
) -> Array:
    """Return probabilities of labels of new rows of one feature, under one expert: a probit.

    Integrals over both weights are sums over a grid; where the feature is missing it is integrated
    out under draws of the expert's place given the known ones.
    """
    step = 0.05
    w, b = np.meshgrid(np.arange(-6.0, 14.0, 2 * step), np.arange(-4.0, 4.0, 2 * step))
    spread = 1.0 + 1.0 / prior.g0  # given the rate w ~ t with 2 a0 degrees of freedom
    log_p = log_t(b, prior.a0, prior.b0 * spread)
    rates = gamma(prior.s0, scale=prior.b0 / prior.s0).ppf((np.arange(200) + 0.5) / 200)
    each = [log_t(w, prior.a0, rate * spread) for rate in rates if rate > 1e-100]
    log_p += logsumexp(each, axis=0) - np.log(len(each))
    known = train.known[:, 0]
    y = np.where(train.label.x == 1.0, 1.0, -1.0)
    for x, sign in zip(train.x[known, 0], y[known], strict=True):
        log_p += log_ndtr(sign * (w * x + b))
    n, x = known.sum(), train.x[known, 0]
    u, nu = prior.u0 + n, prior.nu0 + n
    m = x.sum() / u
    square = prior.B0_inv[0, 0] + (x**2).sum() - u * m**2
    total = np.zeros_like(w)
    for _ in range(400):
        var = square / rng.chisquare(nu)
        center = m + np.sqrt(var / u) * rng.standard_normal()
        score = (w * center + b) / np.sqrt(1.0 + w**2 * var)
        above = np.sum(y[~known] > 0.0)
        of_hidden = above * log_ndtr(score) + (np.sum(~known) - above) * log_ndtr(-score)
        total += np.exp(of_hidden)
    p = np.exp(log_p - log_p.max()) * total
    p /= p.sum()
    return np.array([np.sum(p * ndtr(w * one + b)) for one in new])


@pytest.mark.parametrize("gaps", [0.0, 0.4])
def test_one_expert_predicts_as_a_probit_does_exactly(gaps: float, seed: int) -> None:
    config = IqgmeConfig(experts=1, sweeps=600, draws=150, rate_shape=4.0)
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((40, 1))
    up = 1.5 * x[:, 0] + 0.3 + rng.standard_normal(40) > 0.0
    known = rng.random(x.shape) >= gaps
    train = KnownRows(np.where(known, x, 0.0), known, signs(up), np.ones(40, dtype=bool))
    at = np.linspace(-2.0, 2.0, 15)
    exact = exact_probabilities(train, at, Prior.of(config, 1), rng)
    bound, sampled = predict(KnownRows(at[:, None], np.ones((15, 1), dtype=bool)), config, train)
    assert np.mean(np.abs(sampled - exact)) < 0.015
    assert np.mean(np.abs(bound - exact)) < 0.03


def test_the_rate_that_features_share_is_drawn_from_its_conditional(seed: int) -> None:
    prior = Prior.of(IqgmeConfig(weight_shape=1.5, weight_rate=0.5, rate_shape=2.0), 3)
    rng, lam = np.random.default_rng(seed), np.array([1.0, 2.0, 7.0])
    drawn = [draw_common_rate(lam, prior, rng) for _ in range(2000)]
    law = gamma(2.0 + 3 * 1.5, scale=1.0 / (2.0 / 0.5 + 10.0))
    assert kstest(drawn, law.cdf).pvalue > 1e-4


def test_a_chain_that_is_stopped_keeps_what_it_has(seed: int) -> None:
    rows = groups(20, seed, 0.2)
    stop = Patience(2)
    drawn = fit_experts(rows, replace(CONFIG, inference="gibbs"), chains=1, seed=0, stop=stop)
    assert len(drawn.draws) == 1
    assert stop.asked == 3


@pytest.mark.parametrize(("low", "high"), [(-np.inf, 0.3), (1.0, np.inf), (-0.2, 0.9), (6.0, 6.5)])
def test_draws_between_two_ends_have_the_moments_of_their_law(
    low: float, high: float, seed: int
) -> None:
    n = 20_000
    cuts = [end for end in (low, high) if np.isfinite(end)]
    between = steps(np.full(n, float(np.isfinite(low))), *cuts)
    rng = np.random.default_rng(seed)
    t = between.draw(np.arange(n), np.full((n, 1), -0.5), rng)
    mean = between.expect(np.arange(1), np.full((1, 1, 1), -0.5))[0][0, 0, 0]
    assert np.all((t >= low) & (t <= high))
    assert t.mean() == pytest.approx(mean, abs=5.0 * t.std() / n**0.5)


def test_draws_of_utilities_have_the_moments_of_their_law(seed: int) -> None:
    eta, n = np.array([0.4, -0.3]), 20_000
    rng = np.random.default_rng(seed)
    for code in range(3):
        largest = choices(np.full(n, code), 3, 1)
        mean = largest.expect(np.arange(1), eta[None, None])[0][0, 0]
        t = largest.draw(np.arange(n), np.tile(eta, (n, 1)), rng)
        assert np.allclose(t.mean(axis=0), mean, atol=0.03)


def test_gaps_are_scattered_by_the_precision_of_all_that_tells_of_them(seed: int) -> None:
    """Right-hand sides have noise of covariance Q = A + w w' + N, w w' of rows with a label."""
    n, rng = 20_000, np.random.default_rng(seed)
    known, none, N = np.zeros((n, 2), dtype=bool), np.zeros((n, 2)), np.array([5.0, 0.0])
    label, noise = signs(np.ones(n, dtype=bool)), np.array([0.3, 0.0])
    rows = KnownRows(none, known, label, np.arange(n) % 2 == 0, noise, none, np.tile(N, (n, 1)))
    config = IqgmeConfig(experts=2)
    state = start_gibbs(rows, Prior.of(config, 2), config, rng)
    law = SeenLaw.of(state.q, rows.noise)
    drawn = {True: [], False: []}
    for block in rows.blocks:
        linear = np.zeros((2, block.rows.size, 2))
        _scatter(state, block, law, linear, rng)
        for labelled in (True, False):
            drawn[labelled].append(linear[:, rows.labelled[block.rows] == labelled])
    for labelled, parts in drawn.items():
        for h, own in enumerate(np.concatenate(parts, axis=1)):
            w = labelled * state.q.mw[h, 0, :2]
            Q = law.A[h] + np.outer(w, w) + np.diag(N)
            error = np.sqrt((np.outer(np.diag(Q), np.diag(Q)) + Q**2) / len(own))
            assert np.all(np.abs(np.cov(own.T) - Q) < 4.5 * error)
