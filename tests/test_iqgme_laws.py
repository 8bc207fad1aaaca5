"""What experts say of rows: Student densities of what is known, draws of gaps given it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_t

from glfm_cli.latent.iqgme import Experts, IqgmeConfig, KnownRows
from glfm_cli.latent.iqgme.gibbs import GibbsState, draw_rows
from glfm_cli.latent.iqgme.gibbs_draw import Drawn
from glfm_cli.latent.iqgme.prior import Prior


def experts() -> Experts:
    """Return two experts of three features, without a label."""
    q = Experts.from_prior(Prior.of(IqgmeConfig(experts=2), 3), 2, 0)
    rng = np.random.default_rng(0)
    root = rng.normal(size=(2, 3, 3))
    q.m, q.u, q.nu = rng.normal(size=(2, 3)), np.array([1.5, 4.0]), np.array([4.5, 9.0])
    q.B_inv = root @ np.swapaxes(root, 1, 2) + np.eye(3)
    q.refresh()
    return q


@pytest.mark.parametrize("known", [[0, 1, 2], [0, 2], [1]])
def test_rows_have_the_predictive_density_of_what_is_known(known: list[int]) -> None:
    """Under q(mu, Lam) normal-Wishart, missing features integrated out."""
    q, x = experts(), np.random.default_rng(1).normal(size=(4, 3))
    gone = np.setdiff1d(np.arange(3), known)
    square, log_det = np.empty((2, 4)), np.zeros((2, 4))
    expected = np.empty((2, 4))
    for h in range(2):
        cov, away = np.linalg.inv(q.nB[h]), x[:, known] - q.m[h, known]
        square[h] = np.sum(away * np.linalg.solve(cov[np.ix_(known, known)], away.T).T, axis=1)
        log_det[h] = np.linalg.slogdet(q.nB[h][np.ix_(gone, gone)])[1] if gone.size else 0.0
        df = q.nu[h] + 1.0 - 3
        shape = (q.u[h] + 1.0) / (q.u[h] * df) * q.B_inv[h][np.ix_(known, known)]
        expected[h] = multivariate_t(q.m[h, known], shape, df).logpdf(x[:, known])
    found = q.log_density(square, log_det, np.full(4, float(len(known))))
    np.testing.assert_allclose(found, expected)


def test_gaps_of_which_something_is_told_are_drawn_given_it(seed: int) -> None:
    """Of one expert, normal: its law given the known feature, times what is told of two gaps."""
    rng, n = np.random.default_rng(seed), 6_000
    Lam, m = np.array([[1.5, 0.4, -0.3], [0.4, 0.9, 0.2], [-0.3, 0.2, 1.2]]), np.array([0.3, -1, 1])
    none = np.zeros((1, 0, 4))
    root = np.linalg.cholesky(Lam)[None]
    q = Drawn(np.zeros(0), 1.0, m[None], Lam[None], root, np.ones(1), none, none[0], np.ones(4))
    known, told = np.tile([True, False, False], (n, 1)), np.tile([0.0, 0.8, -0.5], (n, 1))
    precision, x = np.tile([0.0, 4.0, 0.25], (n, 1)), np.tile([0.7, 0.0, 0.0], (n, 1))
    rows = KnownRows(x, known, told=told, precision=precision)
    state = GibbsState(q, np.zeros(n, dtype=int), x.copy(), np.zeros((n, 0)))
    draw_rows(state, rows, rng)
    Q = Lam[1:, 1:] + np.diag([4.0, 0.25])
    pull = Lam[1:, 1:] @ m[1:] - Lam[1:, 0] * (0.7 - m[0]) + np.array([4.0, 0.25]) * [0.8, -0.5]
    cov = np.linalg.inv(Q)
    np.testing.assert_array_equal(state.x[:, 0], 0.7)
    np.testing.assert_allclose(state.x[:, 1:].mean(axis=0), cov @ pull, atol=0.06)
    np.testing.assert_allclose(np.cov(state.x[:, 1:].T), cov, atol=0.05)
