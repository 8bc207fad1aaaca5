"""The Gibbs sampler of the mixture of experts beside its variational fit."""

from __future__ import annotations

import numpy as np
import pytest
from iqgme_problems import signs

from glfm_cli.latent.iqgme import (
    Between,
    IqgmeConfig,
    LabelLaw,
    Largest,
    Rows,
    fit_experts,
    fit_gibbs,
    label_law,
)

CONFIG = IqgmeConfig(experts=6, sweeps=240, draws=20)


def groups(n: int, seed: int, gaps: float) -> Rows:
    """Return two groups of rows in which the second feature speaks for opposite labels."""
    rng = np.random.default_rng(seed)
    group = rng.integers(2, size=n)
    x = np.column_stack([rng.normal(4.0 * group - 2.0, 1.0), rng.standard_normal(n)])
    score = 2.0 * np.where(group == 1, x[:, 1], -x[:, 1]) + rng.standard_normal(n)
    x /= x.std(axis=0)
    known = rng.random(x.shape) >= gaps
    return Rows(np.where(known, x, 0.0), known, signs(score > 0), np.ones(n, dtype=bool))


def test_sampling_and_the_variational_fit_predict_alike(seed: int) -> None:
    """They order rows alike; the approximation has smaller weights, so that it is less sure."""
    train, new = groups(120, seed, 0.2), groups(200, seed + 1, 0.3)
    q = fit_experts(train, CONFIG, [np.random.default_rng(s) for s in range(2)]).experts
    drawn = fit_gibbs(train, CONFIG, [np.random.default_rng(s) for s in range(2)])
    assert len(drawn.draws) == 40
    laws = LabelLaw.average([label_law(new, one) for one in drawn.draws])
    bound, sampled = label_law(new, q).probability_above(), laws.probability_above()
    assert np.mean(np.abs(bound - sampled)) < 0.06
    assert np.mean(np.abs(sampled - 0.5) - np.abs(bound - 0.5)) > 0.0
    assert np.corrcoef(bound, sampled)[0, 1] > 0.95


def test_a_chain_that_is_stopped_keeps_what_it_has(seed: int) -> None:
    rows = groups(20, seed, 0.2)
    asked = iter([False, False, True])
    drawn = fit_gibbs(rows, CONFIG, [np.random.default_rng(0)], stop=lambda: next(asked))
    assert len(drawn.draws) == 1
    assert np.isfinite(drawn.trace).sum() == 3


@pytest.mark.parametrize(("low", "high"), [(-np.inf, 0.3), (1.0, np.inf), (-0.2, 0.9), (6.0, 6.5)])
def test_draws_between_two_ends_have_the_moments_of_their_law(
    low: float, high: float, seed: int
) -> None:
    n = 20_000
    ends = Between(np.full((n, 1), low), np.full((n, 1), high))
    rng = np.random.default_rng(seed)
    t = ends.draw(np.arange(n), np.full((n, 1), -0.5), np.zeros((n, 1)), rng)
    mean = ends.expect(np.arange(1), np.full((1, 1, 1), -0.5))[0][0, 0, 0]
    assert np.all((t >= low) & (t <= high))
    assert t.mean() == pytest.approx(mean, abs=5.0 * t.std() / n**0.5)


def test_draws_of_utilities_have_the_moments_of_their_law(seed: int) -> None:
    eta, n = np.array([0.4, -0.3]), 20_000
    rng = np.random.default_rng(seed)
    for code in range(3):
        largest = Largest(np.full(n, float(code)), 3, 1)
        mean = largest.expect(np.arange(1), eta[None, None])[0][0, 0]
        t = np.tile(mean, (n, 1))
        for _ in range(12):
            t = largest.draw(np.arange(n), np.tile(eta, (n, 1)), t, rng)
        assert np.allclose(t.mean(axis=0), mean, atol=0.03)
