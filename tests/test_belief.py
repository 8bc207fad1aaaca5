"""What a classifier believes of how many experts there are."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta, gamma

from glfm_cli.classification.belief import DOMINANT, Belief, _of_fit, believed
from glfm_cli.classification.classifier import Classifier
from glfm_cli.classification.features import Calibrated, LatentColumn
from glfm_cli.classification.fit import ExpertsFit
from glfm_cli.latent.iqgme import Experts, IqgmeConfig, Member
from glfm_cli.latent.iqgme.prior import Prior


def shares_that_count(sticks: list[np.ndarray]) -> np.ndarray:
    """Return how many shares count at every point of a grid of two sticks."""
    first, second = np.meshgrid(*sticks, indexing="ij")
    shares = (first, (1.0 - first) * second, (1.0 - first) * (1.0 - second))
    return sum((share > DOMINANT).astype(int) for share in shares)


def experts(v1: float, v2: float, tau1: float = 3.0) -> Experts:
    """Return q of an expert with rows, and of those without, behind one stick."""
    q = Experts.from_prior(Prior.of(IqgmeConfig(), 2), 2, 1)
    q.v1, q.v2, q.tau1, q.tau2 = np.array([v1]), np.array([v2]), tau1, 2.0
    return q


def test_the_number_of_experts_is_that_of_sticks_integrated_out(seed: int) -> None:
    q = experts(30.0, 0.4, 12.0)
    sticks, alpha = _of_fit(q, 3, np.random.default_rng(seed))
    found = Belief.of(sticks, alpha, np.full(alpha.size, 1.0 / alpha.size))
    p = (np.arange(400) + 0.5) / 400  # q of the stick of empty experts is Beta(1, E alpha)
    grid = shares_that_count([beta(30.0, 0.4).ppf(p), beta(1.0, 6.0).ppf(p)])
    expected = np.bincount(grid.ravel(), minlength=4) / grid.size
    np.testing.assert_allclose(found.counts, expected, atol=0.03)
    np.testing.assert_allclose(found.alpha, gamma(12.0, scale=0.5).ppf([0.1, 0.5, 0.9]), rtol=0.06)


def test_fits_count_by_their_weights_and_the_prior_is_that_of_the_model() -> None:
    config = IqgmeConfig(experts=3, alpha_shape=4.0, alpha_rate=2.0)
    members = tuple(Member(experts(*v), w) for v, w in [((1e6, 1.0), 0.8), ((1e3, 1e3), 0.2)])
    label = LatentColumn.of_label(np.array([0.0, 1.0]), 2)
    seen = Calibrated((), (), label, np.empty(0, np.intp))
    after, before = believed(Classifier(seen, ExpertsFit(members), members, None, config=config))
    assert after.counts[1] == pytest.approx(0.8, abs=1e-3)
    assert after.counts[3] == pytest.approx(0.2, abs=0.01), "the rest is broken, too"
    assert after.named == pytest.approx({1: 0.8, 3: 0.2}, abs=0.01)
    np.testing.assert_allclose(before.alpha, gamma(4.0, scale=0.5).ppf([0.1, 0.5, 0.9]), rtol=0.06)
    rng = np.random.default_rng(5)
    alpha = gamma(4.0, scale=0.5).rvs(20_000, random_state=rng)
    sticks = [1.0 - rng.random(alpha.size) ** (1.0 / alpha) for _ in range(2)]  # Beta(1, alpha)
    shares = (sticks[0], (1 - sticks[0]) * sticks[1], (1 - sticks[0]) * (1 - sticks[1]))
    counts = sum((share > DOMINANT).astype(int) for share in shares)
    np.testing.assert_allclose(before.counts, np.bincount(counts, minlength=4) / 2e4, atol=0.03)
