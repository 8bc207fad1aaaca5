"""Laws of what rows of a group share, drawn: those of SciPy."""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2, kstest

from glfm_cli.latent.row_laws import draw_inverse_wishart


def test_covariances_are_drawn_from_the_inverse_wishart_law(seed: int) -> None:
    """Along every c: c' S c over c' Omega c is chi-square, and c' Omega^-1 c over c' S^-1 c."""
    rng, scale = np.random.default_rng(seed), np.array([[2.0, 0.5], [0.5, 1.0]])
    drawn = np.array([draw_inverse_wishart(5.0, scale, rng) for _ in range(4_000)])
    for c in np.array([[1.0, 0.0], [0.0, 1.0], [1.0, -2.0]]):
        of_omega = np.einsum("i,nij,j->n", c, drawn, c)
        assert kstest(c @ scale @ c / of_omega, chi2(5.0 - 1.0).cdf).pvalue > 1e-3
        of_inverse = np.einsum("i,nij,j->n", c, np.linalg.inv(drawn), c)
        assert kstest(of_inverse / (c @ np.linalg.solve(scale, c)), chi2(5.0).cdf).pvalue > 1e-3
