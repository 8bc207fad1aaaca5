"""The bits given the weights: their long-run law against the enumerated one."""

from __future__ import annotations

import itertools
from math import lgamma

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import log_ndtr

from glfm_cli._kernels import _glfm_bits

pytestmark = pytest.mark.kernels

Array = NDArray[np.float64]

N, S, K = 3, 5, 3  # rows, pseudo-columns, columns of Z with the bias
COLUMN = np.array([0, 1, 2, 3, 3], dtype=np.int32)
KNOWN = np.zeros(4, dtype=np.uint8)
OBSERVED = np.array([[1, 1, 1, 1], [1, 0, 1, 1], [0, 1, 1, 0]], dtype=np.uint8)
BLOCKS = (slice(0, 2), slice(2, 3))
INF = np.inf
# A point; a two-sided, a lower and an upper interval; a point and an upper one side by side.
LOWER = np.array([[0.4, -0.5, 0.0, 0.7, -INF], [-0.8, 0, -INF, -INF, 0.1], [0, 1.0, 0.3, 0, 0]])
UPPER = np.array([[0.4, 0.6, INF, 0.7, 0.7], [-0.8, 0, 0.2, 0.1, 0.1], [0, 1.2, INF, 0, 0]])
SD = np.array([0.6, 1.3, 1.0, 1.0, 1.0])
SPREAD = np.array([1.0, 1.0, np.sqrt(2.0), 1.0, 1.0])
WEIGHTS = np.array(
    [[0.2, -0.1, 0.3, 0.0, 0.1], [0.9, -1.1, 0.8, 0.5, -0.6], [-0.7, 0.4, 1.2, -0.9, 1.0]]
)


def log_likelihood(Z: Array, shift: float, scale: float) -> float:
    """Return log p(cells | Z B) with the bounds moved by `shift`, by textbook formulas."""
    total = 0.0
    eta = Z @ (scale * WEIGHTS)
    for n, s in itertools.product(range(N), range(S)):
        if not OBSERVED[n, COLUMN[s]]:
            continue
        low, high = LOWER[n, s] + shift - eta[n, s], UPPER[n, s] + shift - eta[n, s]
        if low == high:
            total += -0.5 * (low / SD[s]) ** 2
            continue
        a, b = low / (SD[s] * SPREAD[s]), high / (SD[s] * SPREAD[s])
        if a > 0.0:
            a, b = -b, -a
        total += log_ndtr(b) + np.log1p(-np.exp(log_ndtr(a) - log_ndtr(b)))
    return total


def exact_law(shift: float, scale: float) -> dict[bytes, float]:
    """Return the law of Z given that every feature has a row.

    prod_k (m_k - 1)! (N - m_k)! is the prior of a matrix with K named features.
    """
    laws = {}
    for bits in itertools.product((0, 1), repeat=2 * N):
        Z = np.column_stack([np.ones(N), np.reshape(bits, (N, 2))])
        counts = Z[:, 1:].sum(axis=0)
        if counts.min() == 0:
            continue
        prior = sum(lgamma(m) + lgamma(N - m + 1) for m in counts)
        laws[Z.astype(np.uint8).tobytes()] = prior + log_likelihood(Z, shift, scale)
    values = np.array(list(laws.values()))
    weights = np.exp(values - values.max())
    return dict(zip(laws, weights / weights.sum(), strict=True))


def long_run(
    shift: float, scale: float, sweeps: int, seed: int, *, blocks: bool = False
) -> dict[bytes, float]:
    """Return how often each Z was met; with `blocks`, every other sweep is one of two of them."""
    B = scale * WEIGHTS
    rng = np.random.default_rng(seed)
    Z = np.ones((N, K), dtype=np.uint8)
    y = np.zeros((N, S))
    count = np.full(K, N, dtype=np.int64)
    n_work, n_iwork = _glfm_bits.work_sizes(S)
    work, iwork = np.empty(n_work), np.empty(n_iwork, dtype=np.int32)
    seen: dict[bytes, int] = {}
    for i in range(sweeps):
        eta, odds = Z @ B, None
        parts = [(slice(None), count)]
        if blocks and i % 2:
            odds = np.log(rng.standard_gamma(count)) - np.log(rng.standard_gamma(N + 1 - count))
            parts = [(rows, Z[rows].sum(axis=0, dtype=np.int64)) for rows in BLOCKS]
        for rows, here in parts:
            _glfm_bits.update_bits(
                y[rows], OBSERVED[rows], COLUMN, KNOWN, LOWER[rows] + shift, UPPER[rows] + shift,
                SD, SPREAD, B, Z[rows], K, 1, here, N, True, eta[rows], work, iwork, rng, odds,
            )  # fmt: skip
            assert np.array_equal(here, Z[rows].sum(axis=0))
        count = Z.sum(axis=0, dtype=np.int64)
        np.testing.assert_allclose(eta, Z @ B, atol=1e-12)
        seen[Z.tobytes()] = seen.get(Z.tobytes(), 0) + 1
    return {key: number / sweeps for key, number in seen.items()}


def distance(p: dict[bytes, float], q: dict[bytes, float]) -> float:
    return 0.5 * sum(abs(p.get(key, 0.0) - q.get(key, 0.0)) for key in {*p, *q})


@pytest.mark.parametrize(
    ("shift", "scale"),
    # The last lies beyond every table.
    [(0.0, 1.0), pytest.param(3.0, 1.0, marks=pytest.mark.slow), (-13.0, 0.05)],
)
def test_long_run_law_is_the_exact_one(shift: float, scale: float) -> None:
    exact = exact_law(shift, scale)
    assert distance(long_run(shift, scale, 40_000, seed=1), exact) < 0.02
    # so that the bound would see a small fault
    assert distance(exact_law(shift, 1.3 * scale), exact) > 0.03


def test_blocks_given_the_odds_of_features_have_the_same_law() -> None:
    assert distance(long_run(0.0, 1.0, 40_000, seed=4, blocks=True), exact_law(0.0, 1.0)) < 0.02


@pytest.mark.parametrize("known", [False, True])
def test_missing_cells_follow_the_bits(known: bool) -> None:
    """A missing pseudo-observation is eta plus noise, whatever it was before."""
    rng = np.random.default_rng(2)
    n_rows = 4000
    Z = np.ones((n_rows, K), dtype=np.uint8)
    Z[: n_rows // 2, 1] = 0
    observed = np.tile(np.array([[1, 0, 0, 0]], dtype=np.uint8), (n_rows, 1))
    y = np.full((n_rows, S), 99.0)
    y[:, 0] = np.where(Z[:, 1], -0.5, 0.4)  # the point speaks for the other bit
    nothing = np.full_like(y, np.nan)
    eta = Z.astype(np.float64) @ WEIGHTS
    before = Z.copy()
    n_work, n_iwork = _glfm_bits.work_sizes(S)
    changed = _glfm_bits.update_bits(
        y, observed, COLUMN, np.full(4, known, dtype=np.uint8), *(2 * [nothing if known else y]),
        SD, SPREAD, WEIGHTS, Z, K, 1, Z.sum(axis=0, dtype=np.int64), n_rows, True, eta,
        np.empty(n_work), np.empty(n_iwork, dtype=np.int32), rng,
    )  # fmt: skip
    moved = np.any(before != Z, axis=1)
    assert changed == moved.sum() > n_rows / 10
    assert np.all(y[~moved, 1:] == 99.0)
    residual = (y[moved, 1:] - Z[moved] @ WEIGHTS[:, 1:]) / SD[1:]
    assert abs(residual.mean()) < 5 / np.sqrt(residual.size)
    assert abs(residual.std() - 1) < 5 / np.sqrt(2 * residual.size)


def test_a_feature_of_one_row_keeps_its_bit() -> None:
    rng = np.random.default_rng(3)
    Z = np.array([[1, 1, 1], [1, 0, 1], [1, 0, 0]], dtype=np.uint8)
    eta = Z.astype(np.float64) @ WEIGHTS
    y = np.zeros((N, S))
    n_work, n_iwork = _glfm_bits.work_sizes(S)
    for _ in range(50):
        _glfm_bits.update_bits(
            y, OBSERVED, COLUMN, KNOWN, LOWER, UPPER, SD, SPREAD, 5.0 * WEIGHTS, Z, K, 1,
            Z.sum(axis=0, dtype=np.int64), N, True, eta, np.empty(n_work),
            np.empty(n_iwork, np.int32), rng,
        )  # fmt: skip
        if Z[1:, 1].any():
            break
        assert Z[0, 1] == 1


def log_probabilities(lower: Array, upper: Array, eta: Array, sd: Array, spread: Array) -> Array:
    """Return log p of every cell, up to the points' constants, by textbook formulas."""
    with np.errstate(invalid="ignore"):
        a, b = (lower - eta) / (sd * spread), (upper - eta) / (sd * spread)
    point = lower == upper
    a, b = np.where(point, -1.0, a), np.where(point, 1.0, b)
    a, b = np.where(a > 0.0, -b, a), np.where(a > 0.0, -a, b)
    interval = log_ndtr(b) + np.log1p(-np.exp(log_ndtr(a) - log_ndtr(b)))
    distance = np.where(point, (np.where(point, lower, 0.0) - eta) / sd, 0.0)
    return np.where(point, -0.5 * distance**2, interval)


@pytest.mark.parametrize("scale", [0.1, 1.0, 6.0])  # the last leads far beyond the fast formulas
def test_every_decision_is_the_one_of_textbook_formulas(scale: float, seed: int) -> None:
    """The kernel's bounds may only spare work: the same uniforms lead to the same bits."""
    n_rows, n_latent, n_columns = 300, 37, 9
    rng = np.random.default_rng([seed, 5])
    B = scale * rng.normal(size=(n_columns, n_latent))
    Z = (rng.random((n_rows, n_columns)) < 0.4).astype(np.uint8)
    Z[:, 0] = 1
    eta = Z @ B
    sd, spread = rng.uniform(0.5, 1.5, n_latent), rng.uniform(1.0, 1.5, n_latent)
    middle = eta + scale * rng.normal(size=eta.shape)
    width = 10.0 ** rng.uniform(-4.0, 0.5, eta.shape)
    kind = rng.integers(4, size=eta.shape)
    lower = np.where(kind == 0, -INF, middle)
    upper = np.choose(kind, [middle, INF, middle, middle + width])
    observed = np.ones(eta.shape, dtype=np.uint8)
    counts = Z.sum(axis=0, dtype=np.int64)
    expected, now, uniforms = Z.copy(), eta.copy(), np.random.default_rng(seed)
    for n in range(n_rows):
        for k in range(1, n_columns):
            bit = int(expected[n, k])
            others = counts[k] - bit
            moved = now[n] + (1 - 2 * bit) * B[k]
            cells = (lower[n], upper[n])
            gain = np.sum(
                log_probabilities(*cells, moved, sd, spread)
                - log_probabilities(*cells, now[n], sd, spread)
            )
            log_odds = gain + (1 - 2 * bit) * np.log(others / (n_rows - others))
            u = uniforms.random()
            if log_odds > np.log(u) - np.log1p(-u):
                expected[n, k] = 1 - bit
                counts[k] += 1 - 2 * bit
                now[n] = moved
    n_work, n_iwork = _glfm_bits.work_sizes(n_latent)
    _glfm_bits.update_bits(
        eta.copy(), observed, np.arange(n_latent, dtype=np.int32), np.zeros(n_latent, np.uint8),
        lower, upper, sd, spread, B, Z, n_columns, 1, Z.sum(axis=0, dtype=np.int64), n_rows, True,
        eta, np.empty(n_work), np.empty(n_iwork, np.int32), np.random.default_rng(seed),
    )  # fmt: skip
    assert np.array_equal(Z, expected)
    np.testing.assert_allclose(eta, now, atol=1e-9)
