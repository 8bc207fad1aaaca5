"""The linear part of the latent feature model: its conditionals, and what becomes of it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from glfm_cli.latent.glfm.linear import LinearPart, draw_normals

REPEATS = 20_000
NOISE = np.array([0.4, 1.0, 2.5])


def test_draws_of_normals_have_their_moments() -> None:
    rng = np.random.default_rng(1)
    root = rng.standard_normal((2, 3, 3))
    Q, b = root @ root.swapaxes(1, 2) + np.eye(3), rng.standard_normal((2, 3))
    drawn = np.array([draw_normals(Q, b, rng) for _ in range(REPEATS)])
    for i in range(2):
        covariance = np.linalg.inv(Q[i])
        away = (drawn[:, i].mean(axis=0) - covariance @ b[i]) / np.sqrt(np.diag(covariance))
        assert np.abs(away).max() < 4 / np.sqrt(REPEATS)
        assert np.allclose(np.cov(drawn[:, i].T), covariance, atol=0.05 * np.abs(covariance).max())


def test_rows_come_from_the_normal_law_given_what_is_seen_of_them() -> None:
    """As the conditional of a joint normal law says it: U and the seen y together."""
    rng = np.random.default_rng(2)
    V, E, seen = rng.standard_normal((2, 3)), np.array([1.0, -2.0, 0.7]), np.array([1.0, 0.0, 1.0])
    part = LinearPart(np.zeros((REPEATS, 2)), V, np.ones(2))
    part.draw_rows(np.tile(E, (REPEATS, 1)), np.tile(seen, (REPEATS, 1)), NOISE, rng)
    at = seen > 0
    gain = V[:, at] @ np.linalg.inv(V[:, at].T @ V[:, at] + np.diag(NOISE[at]))
    mean, covariance = gain @ E[at], np.eye(2) - gain @ V[:, at].T
    away = (part.U.mean(axis=0) - mean) / np.sqrt(np.diag(covariance))
    assert np.abs(away).max() < 4 / np.sqrt(REPEATS)
    assert np.allclose(np.cov(part.U.T), covariance, atol=0.03)


def test_weights_come_from_the_regression_on_rows_that_are_seen() -> None:
    """Copies of one column stand for its draws."""
    rng = np.random.default_rng(3)
    U, E, omega = rng.standard_normal((9, 2)), rng.standard_normal(9), np.array([0.5, 2.0])
    seen = np.array([1.0, 1, 0, 1, 1, 0, 1, 1, 1])
    part = LinearPart(U, np.zeros((2, REPEATS)), omega)
    columns = (np.tile(x[:, None], (1, REPEATS)) for x in (E, seen))
    part.draw_columns(*columns, np.full(REPEATS, 0.7), rng)
    at = seen > 0
    covariance = np.linalg.inv(np.diag(1 / omega) + U[at].T @ U[at] / 0.7)
    away = (part.V.mean(axis=1) - covariance @ U[at].T @ E[at] / 0.7) / np.sqrt(np.diag(covariance))
    assert np.abs(away).max() < 4 / np.sqrt(REPEATS)
    assert np.allclose(np.cov(part.V), covariance, atol=0.03)


def test_prior_standard_deviations_are_half_cauchy_without_data() -> None:
    """A chain of V and omega alone, each drawn given the other."""
    rng = np.random.default_rng(4)
    omega = rng.standard_cauchy(4000) ** 2  # each component is a chain of its own
    part = LinearPart(np.zeros((1, 4000)), np.zeros((4000, 2)), omega)
    for _ in range(5):
        part.V[:] = np.sqrt(part.omega)[:, None] * rng.standard_normal(part.V.shape)
        part.draw_variances(rng)
    assert stats.kstest(np.sqrt(part.omega), stats.halfcauchy.cdf).pvalue > 1e-4


@pytest.mark.parametrize("spans", [((0, 1), (1, 3)), ((0, 3),)])
def test_a_scale_move_counts_the_weights_of_a_column(spans: tuple[tuple[int, int], ...]) -> None:
    part = LinearPart(np.zeros((1, 2)), np.arange(6.0).reshape(2, 3), np.array([0.5, 2.0]))
    squares = np.array([0 + 4.5, 2 + 8.0, 8 + 12.5])
    expected = [[squares[a:b].sum(), 2 * (b - a)] for a, b in spans]
    assert np.allclose(part.scale_group(spans), expected)
