"""Moves along the scale of a column: what they multiply changes density and volume as they say."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import gamma, invwishart, multivariate_normal, norm

from glfm_cli.arrays import Groups
from glfm_cli.latent.bsvd.moves import SCALE_STEP, move_scales
from glfm_cli.latent.bsvd.prior_means import PriorMeans
from glfm_cli.latent.row_effects import DEGREES, RowEffects


def log_prior(effects: RowEffects) -> float:
    """Return the log density of m, c, Omega and a, of which c has that of 1 / Gamma(1/2, 1)."""
    S = effects.m.size
    scale = 2.0 * DEGREES * np.diag(1.0 / effects.c)
    return float(
        norm.logpdf(effects.m).sum()
        + (gamma(0.5).logpdf(1.0 / effects.c) - 2.0 * np.log(effects.c)).sum()
        + invwishart(DEGREES + S - 1, scale).logpdf(effects.omega)
        + multivariate_normal(effects.m, effects.omega).logpdf(effects.a).sum()
    )


@pytest.mark.parametrize("factor", [0.4, 1.7])
def test_intercepts_of_groups_move_by_their_prior_and_volume(factor: float) -> None:
    rng = np.random.default_rng(0)
    effects = RowEffects.start(Groups(np.array([0, 1, 2, 3]), tuple("abcd"), None), ((0, 2),))
    effects.m[:], effects.c[:] = [0.7, -1.2], [0.5, 2.5]
    effects.omega[:] = [[1.3, 0.4], [0.4, 0.9]]
    effects.a[:] = rng.normal(size=(4, 2))
    (squares, number), = effects.scale_group(((0, 2),))
    before = log_prior(effects)
    effects.rescale(np.full(2, factor))
    # Of a (8), m (2), c (2, by 1 / factor^2) and the three numbers of Omega (by factor^2).
    volume = (8 + 2 - 2 * 2 + 2 * 3) * np.log(factor)
    expected = number * np.log(factor) - 0.5 * squares * (factor**2 - 1.0)
    assert log_prior(effects) - before + volume == pytest.approx(expected)


class Scripted:
    """Random numbers of two moves: their steps of log t, and how unlikely each may be."""

    def __init__(self, steps: list[float], unlikely: list[float]) -> None:
        self.steps, self.unlikely = iter(steps), iter(unlikely)

    def standard_normal(self) -> float:
        return next(self.steps) / SCALE_STEP

    def standard_exponential(self) -> float:
        return next(self.unlikely)


@pytest.mark.parametrize("second", [-0.6, 0.5])
@pytest.mark.parametrize("first", [-0.4, 0.7])
def test_both_scales_of_a_component_move_by_the_ratio_of_densities(
    first: float, second: float
) -> None:
    """The second, of U against s, from where the first, of U against V, has led."""
    rng, alpha = np.random.default_rng(3), 1.7
    U, V, s = rng.normal(size=(6, 1)) / 2.4, rng.normal(size=(3, 1)), np.array([0.9])

    def log_density(U: Any, s: Any) -> float:
        return float(norm(0.0, 6**-0.5).logpdf(U).sum() + norm(0.0, alpha**-0.5).logpdf(s).sum())

    def moved(unlikely: float) -> bool:
        state: Any = SimpleNamespace(
            U=U.copy(), V=V.copy(), s=s.copy(), active=np.arange(1), alpha=alpha,
            of_rows=PriorMeans.of(np.empty((6, 0)), 1),
            of_columns=PriorMeans.of(np.empty((3, 0)), 1),
            matrix=SimpleNamespace(shape=(6, 3)),
        )  # fmt: skip
        script: Any = Scripted([first, second], [1e9, unlikely])  # the first is taken
        move_scales(state, script)
        np.testing.assert_allclose(state.V, V * np.exp(-first))
        return bool(state.s[0] != s[0])

    there = U * np.exp(first)
    ratio = log_density(there * np.exp(second), s * np.exp(-second)) - log_density(there, s)
    ratio += (6 - 1) * second  # of volume
    if ratio > 0.0:
        assert moved(0.0)
        return
    assert moved(-ratio + 1e-8)
    assert not moved(-ratio - 1e-8)
