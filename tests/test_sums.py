"""Sums of truncated normals that are drawn at once have the law of sums of single draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ks_2samp, truncnorm

from glfm_cli.encoding import pack_trials
from glfm_cli.links.binomial import MANY, BinomialLink
from glfm_cli.links.sums import Density, draw_sums
from glfm_cli.links.tangents import Envelope

pytestmark = pytest.mark.kernels

CASES = [
    (150, 300, 0.0),
    (3, 300, -2.0),
    (0, 420, 0.7),
    (400, 400, 5.0),
    (1, 350, 9.0),
    (90, 300, -6.0),
]


def moments_of(hits: int, trials: int, eta: float) -> tuple[float, float]:
    """Return mean and variance of the sum, from SciPy's truncated normals."""
    above, below = truncnorm(-eta, np.inf, loc=eta), truncnorm(-np.inf, -eta, loc=eta)
    return tuple(
        hits * getattr(above, name)() + (trials - hits) * getattr(below, name)()
        for name in ("mean", "var")
    )


@pytest.mark.parametrize(("hits", "trials", "eta"), CASES)
def test_sums_have_the_law_of_sums_of_single_draws(
    seed: int, hits: int, trials: int, eta: float
) -> None:
    rng = np.random.default_rng(seed)
    n = 1_500
    sums, failed = draw_sums(np.full(n, hits), np.full(n, trials), np.full(n, eta), rng)
    assert not failed.any()
    link, x = BinomialLink.of("h"), pack_trials(np.full(n, hits * 1.0), np.full(n, trials * 1.0))
    single = np.zeros((n, 1))
    link._augment_singly(x, np.full(n, eta), np.arange(n), rng, single)
    assert ks_2samp(sums, single[:, 0] * trials).pvalue > 1e-4
    mean, var = moments_of(hits, trials, eta)
    assert abs(sums.mean() - mean) < 4.5 * np.sqrt(var / n)


@pytest.mark.parametrize("trials", [MANY, 1_000_000])
def test_the_density_has_the_moments_of_the_sum_and_lies_below_its_envelope(trials: int) -> None:
    h, n, eta = (np.full(1, v) for v in (0.2 * trials, 1.0 * trials, -0.5))
    density = Density(h, n, eta)
    (sd,) = np.sqrt(density.var)
    grid = density.mean[0] + sd * np.linspace(-7.0, 7.0, 281)
    which = np.zeros(grid.size, dtype=np.intp)
    log_p, slope = density.log(which, grid)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    assert abs(p @ grid - density.mean[0]) < 1e-7 * sd
    assert abs(p @ (grid - density.mean[0]) ** 2 / sd**2 - 1.0) < 1e-6
    assert np.all(np.diff(slope) < 0.0)
    np.testing.assert_allclose(
        np.diff(log_p), np.diff(grid) * (slope[1:] + slope[:-1]) / 2, atol=2e-4
    )
    envelope = Envelope.of(density)
    tangents = envelope.y + envelope.slope * (grid[:, None] - envelope.x)
    assert np.all(tangents.min(axis=1) >= log_p - 1e-6)


def test_cells_of_many_trials_are_drawn_beside_those_of_few(seed: int) -> None:
    rng = np.random.default_rng(seed)
    trials = np.array([5.0, 5_000.0, 200_000.0])
    link, x = BinomialLink.of("h"), pack_trials(np.floor(0.3 * trials), trials)
    y, eta = np.full((4, 1), 7.0), np.array([-0.5, -0.5, -0.5, 0.0])
    link.augment(np.append(x, np.nan), eta, 0.0, {}, rng, y)
    assert y[3, 0] == 7.0
    for i in (1, 2):
        mean, var = moments_of(int(0.3 * trials[i]), int(trials[i]), -0.5)
        assert abs(y[i, 0] * trials[i] - mean) < 5.0 * np.sqrt(var)
