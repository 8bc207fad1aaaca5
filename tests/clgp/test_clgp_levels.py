"""Probabilities of levels, their logits integrated: by quadrature that the code did not write."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm

from glfm_cli.latent.clgp.laws import softmax_mean


@pytest.mark.parametrize("var", [0.09, 2.0, 9.0])
def test_two_levels_have_the_mean_of_a_logistic_function_of_a_normal(var: float) -> None:
    mean = np.array([[[0.7], [-1.5]], [[2.0], [0.0]]])  # two rows of two places each
    expected = [
        np.mean([
            quad(lambda t, m=m: expit(m + var**0.5 * t) * norm.pdf(t), -9, 9)[0] for m in row
        ])
        for row in mean[:, :, 0]
    ]  # fmt: skip
    found = softmax_mean(mean, np.full((2, 1, 1), var))
    np.testing.assert_allclose(found[:, 1], expected, atol=2e-4)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
