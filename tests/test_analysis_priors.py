"""Coefficients of an analysis where data leave them open: their prior holds them."""

from __future__ import annotations

import numpy as np
import pytest

from glfm_cli.completion.analysis.counts import FAMILIES
from glfm_cli.completion.analysis.families import WIDE, WIDE_LINEAR, Linear, RegressionDraw, Seen


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
    for _ in range(2_500):
        at = family.draw(Seen(np.array(y), X, np.eye(1)), at, rng)
        drawn.append(at.b[0])
    assert np.mean(drawn) == pytest.approx(mean, abs=0.22 * sd)
    assert np.std(drawn) == pytest.approx(sd, rel=0.2)


def test_a_slope_of_which_nothing_is_seen_is_as_wide_as_its_prior(seed: int) -> None:
    """N(0, s2 WIDE_LINEAR^2 / 4), of a covariate of precision 4 that is 0 in all rows seen."""
    X, y = np.column_stack([np.ones(6), np.zeros(6)]), np.arange(6.0)
    rng = np.random.default_rng(seed)
    drawn = [Linear().draw(Seen(y, X, np.diag([1.0, 4.0])), None, rng) for _ in range(3_000)]
    z = [2.0 * at.b[1] / (WIDE_LINEAR * np.sqrt(at.s2)) for at in drawn]
    assert np.mean(z) == pytest.approx(0.0, abs=0.08)
    assert np.std(z) == pytest.approx(1.0, rel=0.06)
