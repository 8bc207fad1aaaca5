"""The order in which the row update visits features is uniformly random."""

from __future__ import annotations

from collections import Counter
from math import factorial

import numpy as np
import pytest
from scipy.stats import chi2

from glfm_cli._kernels._glfm import permutation


@pytest.mark.parametrize("n", [2, 3, 5])
def test_every_order_is_equally_likely(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    expected = 400
    counts = Counter(tuple(permutation(n, rng)) for _ in range(expected * factorial(n)))
    assert len(counts) == factorial(n)
    statistic = sum((count - expected) ** 2 / expected for count in counts.values())
    assert chi2.sf(statistic, factorial(n) - 1) > 1e-4


def test_every_feature_stands_anywhere_and_before_any_other(seed: int) -> None:
    """So many that one random word does not do for all."""
    rng = np.random.default_rng(seed)
    n, n_draws = 23, 20_000
    orders = np.array([permutation(n, rng) for _ in range(n_draws)])
    assert np.array_equal(np.sort(orders, axis=1), np.tile(np.arange(n), (n_draws, 1)))
    at = np.argsort(orders, axis=1)
    places = np.array([np.bincount(column, minlength=n) for column in at.T])
    statistic = np.sum((places - n_draws / n) ** 2 / (n_draws / n))
    assert chi2.sf(statistic, (n - 1) ** 2) > 1e-4
    before = np.array([[np.mean(a < b) for b in at.T] for a in at.T])[~np.eye(n, dtype=bool)]
    assert np.abs(before - 0.5).max() < 5.5 * 0.5 / np.sqrt(n_draws)
