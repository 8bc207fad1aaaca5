"""What experts say of rows: Student densities of what is known, draws of gaps given it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ks_2samp, multivariate_t

from glfm_cli.latent.iqgme import Experts, IqgmeConfig, KnownRows, label_law
from glfm_cli.latent.iqgme.gibbs import GibbsState, _draw_weights, draw_rows
from glfm_cli.latent.iqgme.gibbs_draw import Drawn, draw_prior
from glfm_cli.latent.iqgme.prior import Prior
from tests.iqgme_problems import choices, signs


def experts(K: int = 0) -> Experts:
    """Return two experts of three features and a label of K variables."""
    q = Experts.from_prior(Prior.of(IqgmeConfig(experts=2), 3), 2, K)
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


def test_scores_of_rows_with_a_gap_are_as_unsure_as_weights_and_gap() -> None:
    """Var(w' [x, 1]) of independent w and x, both with a covariance, beside noise of 1."""
    q, rng = experts(1), np.random.default_rng(2)
    root = rng.normal(size=(2, 4, 4))
    q.mw, q.Sw = rng.normal(size=(2, 1, 4)), 0.3 * root @ np.swapaxes(root, 1, 2)
    q.refresh()
    x, known = np.array([[0.4, -0.7, 0.0]]), np.array([[True, True, False]])
    found = label_law(KnownRows(x, known, signs(np.ones(1)), np.zeros(1, dtype=bool)), q)
    for h in range(2):
        C = 1.0 / q.nB[h, 2, 2]
        gap = q.m[h, 2] - C * q.nB[h, 2, :2] @ (x[0, :2] - q.m[h, :2])
        full = np.array([*x[0, :2], gap, 1.0])
        var = 1.0 + full @ q.Sw[h] @ full + C * (q.mw[h, 0, 2] ** 2 + q.Sw[h, 2, 2])
        assert found.mean[h, 0, 0] == pytest.approx(full @ q.mw[h, 0])
        assert found.var[h, 0, 0] == pytest.approx(var)


def test_weights_of_two_utilities_and_their_precisions_keep_their_prior(seed: int) -> None:
    """A draw given scores that were drawn by them, of three levels, has the law it began with."""
    config = IqgmeConfig(weight_shape=3.0, weight_rate=2.0, rate_shape=4.0, weight_center=0.5)
    rng, prior = np.random.default_rng(seed), Prior.of(config, 1)
    x, z = np.array([[0.5], [-1.0], [2.0], [0.3], [1.1]]), np.array([0, 0, 1, 1, 0])
    rows = KnownRows(x, np.ones((5, 1), bool), choices(np.zeros(5, int), 3, 1), np.ones(5, bool))
    before, after = [], []
    for _ in range(800):
        q = draw_prior(prior, 3, 2, rng)
        before.append([*np.log(q.lam), q.zeta[1, 0], q.mw[0, 1, 0], q.mw[2, 0, 1]])
        t = np.einsum("nkp,np->nk", q.mw[z], np.column_stack([x, np.ones(5)]))
        state = GibbsState(q, z, x, t + rng.standard_normal((5, 2)))
        _draw_weights(state, rows, prior, rng)
        after.append([*np.log(q.lam), q.zeta[1, 0], q.mw[0, 1, 0], q.mw[2, 0, 1]])
    for one, two in zip(np.transpose(before), np.transpose(after), strict=True):
        assert ks_2samp(one, two).pvalue > 1e-3
