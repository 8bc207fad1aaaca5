"""Draws of log-concave densities below three tangents, each against its law."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from glfm_cli.links.tangents import Envelope, draw_log_concave

LAWS: dict[str, Any] = {
    "gumbel": stats.gumbel_r(2.0, 1.5),
    "log of gamma": stats.loggamma(0.7, -1.0, 0.5),
    "normal": stats.norm(3.0, 0.2),
    "logistic": stats.logistic(-5.0, 2.0),
}


class Density:
    """One law many times, its density up to a factor."""

    def __init__(self, law: Any, n: int) -> None:
        self.law, self.mean = law, np.full(n, law.mean())
        self.var = np.full(n, law.var())

    def log(self, which: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        step = 1e-5 * self.law.std()
        slope = (self.law.logpdf(at + step) - self.law.logpdf(at - step)) / (2.0 * step)
        return self.law.logpdf(at) + 7.0, slope


@pytest.mark.parametrize("name", LAWS)
def test_draws_have_the_law_of_their_density(name: str, seed: int) -> None:
    drawn, failed = draw_log_concave(Density(LAWS[name], 8_000), np.random.default_rng(seed))
    assert not failed.any()
    assert stats.kstest(drawn, LAWS[name].cdf).pvalue > 1e-3


@pytest.mark.parametrize("name", LAWS)
def test_masses_below_tangents_are_their_integrals(name: str) -> None:
    envelope = Envelope.of(Density(LAWS[name], 1))
    (low, high), far = envelope.cut[0], 60.0 * LAWS[name].std()
    ends = [low - far, low, high, high + far]
    for k in range(3):
        t = np.linspace(ends[k], ends[k + 1], 200_001)
        log_hat = envelope.y[0, k] + envelope.slope[0, k] * (t - envelope.x[0, k])
        expected = logsumexp(log_hat) + np.log(t[1] - t[0])
        assert envelope._log_mass[0, k] == pytest.approx(expected, abs=5e-3)
