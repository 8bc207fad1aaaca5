"""Moments of standard normals cut off at one end, at both, or at none are those of SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm, truncnorm

from glfm_cli.classification.evidence import normal_evidence
from glfm_cli.links.censored import moments_between
from glfm_cli.links.intervals import interval_moments

sf = norm.sf
BELOW, ABOVE = [(-np.inf, 0.3), (-np.inf, -6.0)], [(-1.2, np.inf), (5.0, np.inf)]
BOTH = [(-0.4, 1.5), (3.0, 4.0), (-7.0, -5.0)]


@pytest.mark.parametrize("ends", [BELOW, ABOVE, BELOW + ABOVE, BELOW + BOTH + [(-np.inf, np.inf)]])
def test_moments_are_those_of_truncated_normals(ends: list[tuple[float, float]]) -> None:
    a, b = np.array(ends).T
    with np.errstate(invalid="ignore"):  # the ends of the whole line have no sum
        mean, var, log_p = interval_moments(a, b)
    law = truncnorm(a, b)
    assert mean == pytest.approx(law.mean(), abs=1e-9)
    assert var == pytest.approx(law.var(), abs=1e-7)
    assert np.exp(log_p) == pytest.approx(np.where(a > 0, sf(a) - sf(b), sf(-b) - sf(-a)))


def test_the_density_that_stands_for_an_interval_leaves_its_mean_and_variance() -> None:
    """N(0, 1) times it is normal, with the moments of N(0, 1) between the ends."""
    low, high = np.array(BELOW[:1] + ABOVE[:1] + BOTH + [(-np.inf, np.inf)]).T
    mean, precision = normal_evidence(low, high)
    law = truncnorm(low, high)
    assert 1.0 / (1.0 + precision) == pytest.approx(law.var(), rel=1e-5)
    assert precision * mean / (1.0 + precision) == pytest.approx(law.mean(), rel=1e-5)


def test_narrow_intervals_have_the_moments_of_even_ones() -> None:
    mean, var = moments_between(np.array([0.7, -3.0]), np.array([0.7 + 1e-4, -3.0 + 1e-5]))
    assert mean == pytest.approx([0.70005, -2.999995])
    assert var * 12.0 == pytest.approx([1e-8, 1e-10], rel=1e-6)
