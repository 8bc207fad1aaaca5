"""Posterior draws of the package are calibrated over tables drawn from the model.

`python -m pytest -m slow -rP tests/statistical/test_calibration.py` shows the long run's figures.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from glfm_cli.latent.glfm.state import GlfmConfig
from tests.statistical.calibration import (
    Calibration,
    Design,
    calibrate,
    coverage,
    ecdf_band,
    histogram_band,
)

SHORT = Design(
    types=("real", "positive", "count", "categorical", "ordinal"),
    n_rows=12,
    n_missing=2,
    n_held=2,
    warmup=75,
    thin=15,
    n_draws=15,
    n_bins=8,
)
# Autocorrelation times at this size are 5 to 150 sweeps, longest for the number of features.
LONG = Design(
    types=(*SHORT.types, "real", "positive with zeros", "categorical"),
    n_rows=30,
    n_missing=4,
    n_held=3,
    warmup=500,
    thin=100,
    n_draws=15,
    n_bins=16,
)


def test_ranks_are_uniform_in_short(seed: int) -> None:
    calibration = calibrate(SHORT, 30, seed)
    assert calibration.passes, str(calibration)


@pytest.mark.slow
def test_ranks_are_uniform(seed: int) -> None:
    calibration = calibrate(LONG, 500, seed)
    print(calibration)
    assert calibration.passes, str(calibration)


@pytest.mark.slow
def test_a_wrong_prior_is_caught(seed: int) -> None:
    wrong = dataclasses.replace(SHORT, truth=GlfmConfig(alpha_shape=4.0))
    calibration = calibrate(wrong, 60, seed)
    assert not calibration.passes, str(calibration)


# The bands ---------------------------------------------------------------------------------------


def ranks_of(truth: np.ndarray, draws: np.ndarray) -> Calibration:
    """Return the calibration of one quantity; draws (n, L)."""
    ranks = (draws < truth[:, None]).sum(axis=1, keepdims=True)
    return Calibration(("a",), ranks, draws.shape[1], 16)


@pytest.mark.parametrize("n", [60, 500])
def test_bands_hold_uniform_ranks_as_often_as_they_say(n: int, seed: int) -> None:
    level, trials = 0.1, 4_000
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(n, np.full(16, 1 / 16), size=trials)
    lower, _, upper = ecdf_band(n, 16, level)
    cumulated = counts.cumsum(axis=1)[:, :-1]
    inside = np.all((lower <= cumulated) & (cumulated <= upper), axis=1).mean()
    # Counts are whole numbers: the band may hold a little more than it must.
    assert 1 - level - 4 * np.sqrt(level / trials) < inside < 1 - level / 2
    lower, _, upper = histogram_band(n, 16, level)
    inside = np.all((lower <= counts) & (counts <= upper), axis=1).mean()
    assert 1 - level - 4 * np.sqrt(level / trials) < inside < 1.0


def test_coverage_counts_the_ways_to_stay_inside() -> None:
    # Two uniforms, ends 1/2 and 3/4: exactly one below 1/2, and at most one below 3/4.
    ends = np.array([0.5, 0.75])
    inside = coverage(np.array([1.0, 0.0]), np.array([1.0, 1.0]), 2, ends)
    assert inside == pytest.approx(2 * 0.5 * 0.25)
    assert coverage(np.zeros(2), np.full(2, 2.0), 2, ends) == pytest.approx(1.0)


def test_bands_hold_ranks_of_right_draws(seed: int) -> None:
    truth, *draws = np.random.default_rng(seed).normal(size=(64, 500))
    assert ranks_of(truth, np.array(draws).T).passes


@pytest.mark.parametrize(
    ("shift", "spread"), [(0.0, 0.7), (0.0, 1.5), (0.4, 1.0)], ids=["narrow", "wide", "shifted"]
)
def test_bands_reject_ranks_of_wrong_draws(shift: float, spread: float, seed: int) -> None:
    truth, *draws = np.random.default_rng(seed).normal(size=(64, 500))
    assert not ranks_of(truth, shift + spread * np.array(draws).T).passes
