"""What experts say of rows they have not seen: Student densities of what is known of them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_t

from glfm_cli.latent.iqgme import Experts, IqgmeConfig
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
