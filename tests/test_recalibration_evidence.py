"""How far probabilities of levels are corrected: by the evidence that they call for it."""

from __future__ import annotations

import numpy as np
import pytest

from glfm_cli.inference.hidden_cells import EXPONENT_SD, NO_CORRECTION, fit_exponent


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_power_is_drawn_to_none_as_far_as_evidence_for_it_is_weak(seed: int) -> None:
    """The mode of a normal part of log a, times the probability of that part, by quadrature."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(3), 250)
    true = p**1.25 / np.sum(p**1.25, axis=1, keepdims=True)
    codes = np.sum(np.cumsum(true, axis=1) < rng.random((250, 1)), axis=1)
    log_a = np.linspace(-1.0, 1.0, 4001)
    power = np.exp(log_a)[:, None, None] * np.log(p)
    own = power[:, np.arange(250), codes] - np.log(np.exp(power).sum(axis=2))
    log_p = own.sum(axis=1)
    none = log_p[2000]
    prior = np.exp(-0.5 * (log_a / EXPONENT_SD) ** 2) / (EXPONENT_SD * np.sqrt(2.0 * np.pi))
    mode = log_a[np.argmax(log_p + np.log(prior))]
    some = np.sum(np.exp(log_p - none) * prior) * (log_a[1] - log_a[0])
    probability = (1.0 - NO_CORRECTION) * some / ((1.0 - NO_CORRECTION) * some + NO_CORRECTION)
    assert np.log(fit_exponent(p, codes)) == pytest.approx(mode * probability, rel=0.04)
    assert 0.05 < probability < 0.97
