"""Moments of standard normals cut off at one end, at both, or at none are those of SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm, truncnorm

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
