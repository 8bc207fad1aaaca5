"""Coefficients of an analysis where data leave them open: their prior holds them."""

from __future__ import annotations

import numpy as np
import pytest

from glfm_cli.completion.analysis.counts import FAMILIES
from glfm_cli.completion.analysis.families import WIDE, RegressionDraw, Seen


@pytest.mark.parametrize(("name", "y"), [("logistic", [1.0, 1, 1]), ("poisson", [0.0, 0, 0])])
def test_an_intercept_that_nothing_limits_has_the_posterior_of_its_prior(
    name: str, y: list[float], seed: int
) -> None:
    """N(0, WIDE^2) times a likelihood that grows without end to one side."""
    family, X, b = FAMILIES[name], np.ones((3, 1)), np.linspace(-60.0, 60.0, 6001)
    log_p = [family.log_density(np.array(y), X, RegressionDraw(one)).sum() for one in b[:, None]]
    p = np.exp(np.array(log_p) - 0.5 * (b / WIDE) ** 2)
    mean = p @ b / p.sum()
    sd = np.sqrt(p @ (b - mean) ** 2 / p.sum())
    rng, at, drawn = np.random.default_rng(seed), None, []
    for _ in range(1_500):
        at = family.draw(Seen(np.array(y), X, np.eye(1)), at, rng)
        drawn.append(at.b[0])
    assert np.mean(drawn) == pytest.approx(mean, abs=0.15 * sd)
    assert np.std(drawn) == pytest.approx(sd, rel=0.15)
