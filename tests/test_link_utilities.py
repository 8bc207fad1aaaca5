"""Utilities of which the largest is known, beside integrals over a fine grid."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_ndtr, logsumexp

from glfm_cli.arrays import Array
from glfm_cli.links.utilities import expect_largest

pytestmark = pytest.mark.kernels


def expected(winner: int, means: Array) -> tuple[Array, float]:
    """Return E[u | u_winner is largest] (R,) and the log probability of that, u ~ N(means, I)."""
    top = means.max()
    t = np.linspace(min(top, 0.5 * (top + means[winner])) - 9.0, top + 9.0, 20_001)
    others = np.delete(np.arange(means.size), winner)
    u = t - means[others, None]
    log_normal = -0.5 * (t - means[winner]) ** 2 - 0.5 * np.log(2.0 * np.pi)
    log_f = log_normal + log_ndtr(u).sum(axis=0)
    log_z = logsumexp(log_f)
    weight = np.exp(log_f - log_z)
    found = np.empty(means.size)
    found[winner] = weight @ t
    pull = np.exp(-0.5 * u**2 - 0.5 * np.log(2.0 * np.pi) - log_ndtr(u))
    found[others] = means[others] - pull @ weight
    return found, float(log_z + np.log(t[1] - t[0]))


@pytest.mark.parametrize(("n_levels", "error"), [(2, 2e-11), (3, 2e-7), (6, 3e-6)])
@pytest.mark.parametrize("sd", [0.3, 1.0, 6.0, 12.0])
def test_means_and_probabilities_are_integrals(n_levels: int, error: float, sd: float) -> None:
    """Of rows that fill no block of the kernel, some of which nobody would bet on."""
    error *= 0.05 if sd < 1.0 else 1.0
    rng = np.random.default_rng(n_levels)
    reference = 1
    slot = np.insert(np.arange(n_levels - 1)[::-1], reference, -1)
    n = 37 if sd < 12.0 else 200
    eta, winner = sd * rng.standard_normal((2, n, n_levels - 1)), rng.integers(n_levels, size=n)
    mean, log_z = expect_largest(winner, eta, slot)
    for h, i in np.ndindex(2, n):
        means = np.where(slot >= 0, eta[h, i, slot], 0.0)
        u, log_p = expected(int(winner[i]), means)
        assert log_z[h, i] == pytest.approx(log_p, rel=error, abs=error)
        np.testing.assert_allclose(mean[h, i, slot[slot >= 0]], u[slot >= 0], rtol=0, atol=error)


def test_of_no_rows_nothing_is_expected() -> None:
    mean, log_p = expect_largest(np.empty(0, np.intp), np.empty((2, 0, 2)), np.array([-1, 0, 1]))
    assert (mean.shape, log_p.shape) == ((2, 0, 2), (2, 0))
