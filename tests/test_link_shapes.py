"""Shapes of margins: their slopes are derivatives; nodes of correlated normals, their moments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from glfm_cli.links.correlated import points, split
from glfm_cli.links.law import Normal
from glfm_cli.links.shapes import Identity, Log, Log1p, Logit, Probit, Softplus, Sqrt

SHAPES: dict[str, tuple[Any, Any]] = {
    "identity": (Identity(4.0), [-3.0, 0.0, 8.0]),
    "softplus": (Softplus(2.5), [1e-12, 0.01, 2.0, 40.0]),
    "log": (Log(), [1e-6, 0.3, 50.0]),
    "log1p": (Log1p(), [-0.9, 0.0, 0.3, 50.0]),
    "logit": (Logit(-1.0, 3.0), [-0.99, 0.2, 2.9]),
    "probit": (Probit(), [0.01, 0.5, 0.8]),
    "sqrt": (Sqrt(), [0.04, 1.0, 30.0]),
}


@pytest.mark.parametrize("name", SHAPES)
def test_slopes_of_shapes_are_those_of_finite_differences(name: str) -> None:
    shape, at = SHAPES[name]
    x = np.array(at)
    step = 1e-6 * np.maximum(np.abs(x), 1e-3 if shape.domain[0] < 0.0 else 0.0)
    slope = (shape.forward(x + step) - shape.forward(x - step)) / (2.0 * step)
    np.testing.assert_allclose(np.exp(shape.log_slope(x)), slope, rtol=1e-5)
    np.testing.assert_allclose(shape.inverse(shape.forward(x)), x, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("s", [1, 2, 3, 5])
def test_points_have_the_moments_of_standard_normals(s: int) -> None:
    z, weight = points(s)
    assert weight.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(weight @ z, 0.0, atol=1e-9)
    np.testing.assert_allclose((weight * z.T) @ z, np.eye(s), atol=1e-9)


def test_correlated_utilities_are_independent_ones_about_shared_means() -> None:
    """P(both below 0) by a mixture of independent pairs, as by the normal law of two."""
    cov = np.array([[[2.0, 0.5], [0.5, 1.6]]])
    part = Normal(np.array([[0.3, -0.5]]), np.array([[2.0, 1.6]]), cov)
    found = [
        weight * np.prod(multivariate_normal(0.0, 1.0).cdf(-mean[0] / np.sqrt(variances[0])))
        for weight, mean, variances in split(part)
    ]
    whole = multivariate_normal([0.3, -0.5], cov[0]).cdf([0, 0])
    assert np.sum(found) == pytest.approx(whole, abs=1e-3)
