"""How much surer forecasts are made than a fit is, by labels left out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import log_softmax

from glfm_cli.latent.iqgme.packing import power_in
from glfm_cli.latent.iqgme.temperature import SPREAD, inverse_temperature, tempered


def drawn(seed: int, n: int, power: float) -> tuple[np.ndarray, np.ndarray]:
    """Return forecasts (n, 3) of labels that are drawn from their power."""
    rng = np.random.default_rng(seed)
    log_p = log_softmax(1.5 * rng.standard_normal((n, 3)), axis=1)
    at = rng.random((n, 1)) > np.cumsum(np.exp(tempered(log_p, power)), axis=1)
    return log_p, np.minimum(at.sum(axis=1), 2)


@pytest.mark.parametrize("power", [0.8, 1.2])
def test_the_power_is_the_posterior_mean_of_a_lump_and_a_normal_law(
    power: float, seed: int
) -> None:
    log_p, code = drawn(seed, 60, power)

    def like(u: float) -> float:
        with_power = np.exp(np.exp(u) * log_p)
        p = with_power[np.arange(60), code] / with_power.sum(axis=1)
        return float(np.exp(np.log(p).sum() - base))

    base = 0.0
    base = np.log(like(0.0))
    slab = lambda u: like(u) * np.exp(-0.5 * (u / SPREAD) ** 2) / (SPREAD * np.sqrt(2.0 * np.pi))  # noqa: E731
    total = quad(slab, -1.25, 1.25)[0]
    mean = quad(lambda u: u * slab(u), -1.25, 1.25)[0] / (total + 1.0)
    assert inverse_temperature(log_p, code) == pytest.approx(np.exp(mean), rel=1e-4)


def test_the_power_of_many_labels_is_that_they_were_drawn_with(seed: int) -> None:
    for power, room in [(1.0, 0.04), (1.5, 0.15)]:
        found = inverse_temperature(*drawn(seed, 4000, power))
        assert found == pytest.approx(power, abs=room)
    assert inverse_temperature(np.empty((0, 2)), np.empty(0)) == pytest.approx(1.0)


@pytest.mark.parametrize("power", [0.0, -1.0, 1e300])
def test_a_power_that_labels_cannot_choose_is_refused(power: float) -> None:
    with pytest.raises(ValueError, match="'power'"):
        power_in({"power": np.array(power)})
    assert power_in({"power": np.array(1.2)}) == 1.2
    assert power_in({}) == 1.0
