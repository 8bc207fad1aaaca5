"""Intercepts of a matrix: how much units differ is found, however little, and so are its moves."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import halfcauchy, kstest

from glfm_cli.arrays import Array
from glfm_cli.encoding import pack_trials
from glfm_cli.inference.chain import Chain, start_chain
from glfm_cli.latent.blocks import thread_pool
from glfm_cli.latent.bsvd.config import BsvdConfig
from glfm_cli.latent.bsvd.effects import _draw_mean, _rescaled, move_intercepts, slice_draw
from glfm_cli.latent.bsvd.sampler import Bsvd
from glfm_cli.latent.model import Entries, Problem, Sparse
from glfm_cli.links.binomial import BinomialLink
from glfm_cli.streams import Streams


def trials_of(rows: Array, seed: int) -> Chain:
    """Return a chain over 60 x 20 cells of 30 trials, each row with a rate of its own."""
    rng = np.random.default_rng(seed)
    row, column = (index.ravel() for index in np.indices((rows.size, 20)))
    hits = rng.binomial(30, rows[row]).astype(np.float64)
    link, x = BinomialLink.of("hits"), pack_trials(hits, np.full(hits.size, 30.0))
    entries = Entries(row.astype(np.int32), column.astype(np.int32), (rows.size, 20))
    config = BsvdConfig(max_components=2, initial_components=0)
    problem = Problem(Bsvd(), config, (link,), (x,), layout=Sparse(entries))
    return start_chain(problem, Streams(seed, 0))


@pytest.mark.parametrize(("sd", "low", "high"), [(0.0, 0.0, 0.06), (0.3, 0.2, 0.45)])
def test_rows_that_differ_little_are_told_from_those_that_differ(
    seed: int, sd: float, low: float, high: float
) -> None:
    rates = 0.3 + sd * np.random.default_rng(seed).normal(size=60) / 3.0
    chain = trials_of(np.clip(rates, 0.01, 0.99), seed)
    found = []
    for sweep in range(60):
        chain.sweep(adapt=sweep < 20)
        if sweep >= 20:
            found.append(chain.state.tau[2] ** -0.5)
    assert low <= np.mean(found) <= high


def test_means_of_cells_move_with_the_intercepts(seed: int) -> None:
    chain = trials_of(np.full(60, 0.3), seed)
    for _ in range(3):
        chain.sweep(adapt=True)
    state = chain.state
    before = state.G_C.copy(), state.G_R.copy(), state.tau.copy()
    with thread_pool(1) as each:
        y = state.matrix.values(chain.cells.y)
        move_intercepts(state, y, np.random.default_rng(seed), each)
    ratio = (state.G_C / before[0])[:, 0]
    assert ratio.std() < 1e-12
    np.testing.assert_allclose(state.tau[2], before[2][2] / ratio[0] ** 2)
    assert not np.allclose(state.G_R, before[1])
    left, right = state.sides()
    np.testing.assert_allclose(state.x, (left @ right.T).ravel(), atol=1e-10)


def test_slice_sampling_has_the_law_that_it_is_given(seed: int) -> None:
    rng, x, found = np.random.default_rng(seed), 0.0, []
    for _ in range(4_000):
        x = slice_draw(lambda v: -0.5 * (v - 3.0) ** 2 / 0.04, x, rng)
        found.append(x)
    assert abs(np.mean(found[50:]) - 3.0) < 0.02
    assert abs(np.std(found[50:]) - 0.2) < 0.02


def test_brackets_that_must_not_grow_further_leave_the_law_as_it_is(seed: int) -> None:
    """Of a law wider than all steps of a bracket together: 4,000 chains that begin with it."""
    rng, width = np.random.default_rng(seed), 30.0
    at = width * rng.random(4_000)

    def log_density(x: float) -> float:
        return 0.0 if 0.0 < x < width else -np.inf

    for _ in range(3):
        at = np.array([slice_draw(log_density, x, rng) for x in at])
    assert kstest(at / width, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("slopes", [False, True])
def test_the_mean_of_intercepts_keeps_its_prior_and_that_of_both_sides(
    slopes: bool, seed: int
) -> None:
    """mu ~ N(0, 0.6), g_j ~ N(mu, 1 / 1.5), d_i ~ N(0, 1 / 0.8); cells are as they were."""
    rng, found = np.random.default_rng(seed), []
    nothing = SimpleNamespace(of_intercepts=np.zeros(1))
    for _ in range(3_000):
        mu, c = 0.6**0.5 * rng.standard_normal(), 2.0 * rng.standard_normal(3) * slopes
        g = mu + 1.5**-0.5 * rng.standard_normal(2)
        d = 0.8**-0.5 * rng.standard_normal(3)
        state: Any = SimpleNamespace(
            G_R=g[:, None].copy(), G_C=d[:, None].copy(), slope=c[:, None], mu=mu,
            tau=np.array([1.5, 9.0, 0.8, 9.0, 9.0]), of_rows=nothing, of_columns=nothing,
            config=SimpleNamespace(bias_variance=0.6), design=SimpleNamespace(slopes=slopes),
        )  # fmt: skip
        _draw_mean(state, rng)
        new_g, new_d = state.G_R[:, 0], state.G_C[:, 0]
        x = new_d[:, None] + new_g + np.outer(c, new_g - state.mu)
        np.testing.assert_allclose(x, d[:, None] + g + np.outer(c, g - mu), atol=1e-9)
        found.append([state.mu / 0.6**0.5, *(1.5**0.5 * (new_g - state.mu)), *(0.8**0.5 * new_d)])
    for one in np.array(found).T:
        assert kstest(one, "norm").pvalue > 1e-3


def test_effects_and_their_sd_are_multiplied_by_what_cells_and_prior_say(seed: int) -> None:
    """Against a grid of the factor c of d: cells r_i ~ N(c d_i, 1 / Q_i), c sd half-Cauchy."""
    rng, scale = np.random.default_rng(seed), 0.7
    d, Q, r = np.array([0.5, -1.0, 0.8]), np.array([1.0, 2.0, 0.5]), np.array([0.9, -0.6, 0.1])
    state: Any = SimpleNamespace(
        tau=np.array([0.25]), config=SimpleNamespace(intercept_scale=scale)
    )  # an sd of 2
    found, now = [], d
    for _ in range(12_000):
        now = _rescaled(state, 0, now, Q * (r - now), Q, rng)
        found.append(np.log(now[0] / d[0]))
        assert state.tau[0] == pytest.approx(0.25 * (d[0] / now[0]) ** 2)
    x = np.linspace(-12.0, 4.0, 4001)
    c = np.exp(x)
    weights = np.exp(-0.5 * np.sum(Q * (r - c[:, None] * d) ** 2, axis=1))
    weights *= c * halfcauchy(0.0, scale).pdf(2.0 * c)
    mean = weights @ x / weights.sum()
    sd = np.sqrt(weights @ (x - mean) ** 2 / weights.sum())
    assert np.mean(found) == pytest.approx(mean, abs=0.12 * sd)
    assert np.std(found) == pytest.approx(sd, rel=0.1)
