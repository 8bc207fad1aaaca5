"""Which components of counts go together in rows, and from when chance does not explain it."""

from __future__ import annotations

import numpy as np
import pytest

from glfm_cli.arrays import Array
from glfm_cli.latent.cnpf.correlations import count_correlations

PAIRS = np.triu_indices(4, 1)


def counts(
    rng: np.random.Generator, n_rows: int = 400, *, size: float = 0.0, rho: float = 0.0
) -> Array:
    """Return counts (U, 4) in rows whose log sizes have an sd; 0 and 1 together, 2 and 3 apart."""
    covariance = np.eye(4)
    covariance[[0, 1], [1, 0]], covariance[[2, 3], [3, 2]] = rho, -rho
    log_x = rng.multivariate_normal(np.full(4, np.log(10.0)), covariance, n_rows)
    drawn: Array = rng.poisson(np.exp(log_x + size * rng.standard_normal((n_rows, 1)))) * 1.0
    return drawn


@pytest.mark.parametrize("size", [0.0, 0.7])
def test_independent_components_rarely_have_a_pair_above_its_level(seed: int, size: float) -> None:
    above = 0
    for stream in np.random.default_rng(seed).spawn(100):
        rho, level = count_correlations(counts(stream, size=size))
        above += bool((np.abs(rho) > level)[PAIRS].any())
    assert above <= 14  # of about 5; more by chance in 1 of 5,000


@pytest.mark.parametrize("size", [0.0, 0.7])
def test_planted_correlations_are_above_it_with_their_signs(seed: int, size: float) -> None:
    n = counts(np.random.default_rng(seed), 1000, size=size, rho=0.8)
    rho, level = count_correlations(n)
    clear = np.abs(rho) > np.maximum(level, 0.15)
    assert [clear[pair] for pair in zip(*PAIRS, strict=True)] == [1, 0, 0, 0, 0, 1]
    assert 0.6 < rho[0, 1] < 0.95
    assert -0.95 < rho[2, 3] < -0.5


def test_of_small_components_nothing_is_told(seed: int) -> None:
    n = counts(np.random.default_rng(seed))
    rho, level = count_correlations(np.column_stack([n, 0.02 * n[:, 0], np.zeros(len(n))]))
    assert np.array_equal(rho[4:], np.eye(6)[4:])
    assert np.isinf(level[4:]).all()
    assert np.array_equal(rho[:4, :4], count_correlations(n).rho)


@pytest.mark.parametrize("n_rows", [1, 3])
def test_a_few_rows_tell_nothing(n_rows: int) -> None:
    rho, level = count_correlations(counts(np.random.default_rng(1), n_rows))
    assert np.array_equal(rho, np.eye(4))
    assert np.isinf(level).all()


def test_a_component_alike_in_all_rows_goes_with_none() -> None:
    n = counts(np.random.default_rng(1))
    n[:, 2] = 10.0
    rho, level = count_correlations(n)
    assert rho[2].tolist() == [0.0, 0.0, 1.0, 0.0]
    assert not (np.abs(rho) > level)[2].any()
