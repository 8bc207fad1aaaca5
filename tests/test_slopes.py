"""Rows that respond by factors of their own to the columns' levels: found, kept and applied."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from glfm_cli.arrays import Array
from glfm_cli.inference.chain import Chain, start_chain
from glfm_cli.latent.blocks import thread_pool
from glfm_cli.latent.bsvd.config import BsvdConfig
from glfm_cli.latent.bsvd.draw import BsvdDraw
from glfm_cli.latent.bsvd.effects import draw_effect_precisions, move_intercepts
from glfm_cli.latent.bsvd.new_units import draw_new_units
from glfm_cli.latent.bsvd.sampler import Bsvd
from glfm_cli.latent.model import Entries, Problem, Sparse
from glfm_cli.schema import ColumnType
from glfm_cli.streams import Streams
from tests.statistical.bsvd_prior import make_links

SHAPE = (60, 30)


def chain_of(values: Array, seed: int, *, most: int = 0, slopes: bool = True) -> Chain:
    """Return a chain over the cells of a matrix that are not NaN."""
    row, column = np.nonzero(~np.isnan(values))
    entries = Entries(row.astype(np.int32), column.astype(np.int32), values.shape)
    config = BsvdConfig(max_components=most, slopes=slopes)
    x = values[row, column]
    problem = Problem(Bsvd(), config, make_links(ColumnType.REAL), (x,), layout=Sparse(entries))
    return start_chain(problem, Streams(seed, 0))


def lines(slopes: Array, seed: int) -> Array:
    """Return cells of rows that are straight lines in the columns' levels, with noise."""
    rng = np.random.default_rng(seed)
    level = 2.0 * rng.normal(size=SHAPE[1])
    x = 3.0 + rng.normal(size=(SHAPE[0], 1)) + (1.0 + slopes[:, None]) * level
    return x + 0.8 * rng.normal(size=SHAPE)


@pytest.mark.parametrize(("sd", "low", "high"), [(0.0, 0.0, 0.12), (0.5, 0.35, 0.7)])
def test_slopes_are_found_where_there_are_some(
    seed: int, sd: float, low: float, high: float
) -> None:
    truth = sd * np.random.default_rng(seed).normal(size=SHAPE[0])
    chain = chain_of(lines(truth, seed), seed)
    found, spread = [], []
    for sweep in range(80):
        chain.sweep(adapt=sweep < 20)
        if sweep >= 20:
            found.append(chain.state.slope[:, 0].copy())
            spread.append(chain.state.tau[4] ** -0.5)
    assert low <= np.mean(spread) <= high
    error = np.mean(found, axis=0) - truth
    assert np.sqrt(np.mean((error - error.mean()) ** 2)) < 0.12


def test_means_of_cells_stay_those_of_both_sides(seed: int) -> None:
    chain = chain_of(lines(np.linspace(-0.5, 0.5, SHAPE[0]), seed), seed, most=3)
    for _ in range(3):
        chain.sweep(adapt=True)
    state, rng = chain.state, np.random.default_rng(seed)
    draw_effect_precisions(state, rng)
    left, right = state.sides()
    np.testing.assert_allclose(state.x, (left @ right.T).ravel(), atol=1e-10)
    before = state.slope.copy()
    with thread_pool(1) as each:
        move_intercepts(state, state.matrix.values(chain.cells.y), rng, each)
    assert (state.slope / before).std() < 1e-9
    left, right = state.sides()
    np.testing.assert_allclose(state.x, (left @ right.T).ravel(), atol=1e-10)


def test_a_state_and_its_draws_are_kept(seed: int) -> None:
    chain = chain_of(lines(np.linspace(-0.5, 0.5, SHAPE[0]), seed), seed, most=3)
    chain.sweep(adapt=True)
    model, config = Bsvd(), chain.problem.config
    again = model.load(model.save(chain.state), chain.cells, config)
    for one, other in zip(chain.state.sides(), again.sides(), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(chain.state.x, again.x)
    parts = model.parts(model.draw(again))
    np.testing.assert_array_equal(parts.slope, again.slope)
    np.testing.assert_array_equal(parts.level, again.level)
    assert parts.G_C.shape[1] == parts.C.shape[1] == 1


def test_without_slopes_nothing_of_them_is_kept(seed: int) -> None:
    chain = chain_of(lines(np.zeros(SHAPE[0]), seed), seed, slopes=False)
    assert chain.state.tau.size == 4
    assert "slope" not in Bsvd().save(chain.state)
    assert Bsvd().parts(Bsvd().draw(chain.state)).slope.shape == (SHAPE[0], 0)


def test_new_rows_and_columns_lie_on_their_lines(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_rows, n_columns, mu = 40, 30, 0.5
    level, own, slope = rng.normal(size=n_columns), rng.normal(size=n_rows), rng.normal(size=n_rows)
    left = np.column_stack([np.ones(n_rows), own, slope])
    right = np.column_stack([mu + level, np.ones(n_columns), level])
    cells = np.full((n_rows + 1, n_columns + 1), np.nan)
    cells[-1, :-1] = -0.3 + mu + 1.7 * level  # a row of slope 0.7
    cells[:-1, -1] = own + mu + (1.0 + slope) * 0.9  # a column of level 0.9
    chain = chain_of(cells, seed)
    y = cells[~np.isnan(cells)]
    whole = dataclasses.replace(chain.cells, y=y[:, None].copy())
    noise, tau = np.array([1e-6]), np.full(5, 0.01)
    draw = BsvdDraw(left, right, noise, 0, 1, tau, n_rows, np.empty(0), mu)
    found = draw_new_units(draw, chain.problem.config, whole, lambda eta: None, 2, rng)
    new_left, new_right = found.left, found.right
    np.testing.assert_allclose(new_left[-1], [1.0, -0.3, 0.7], atol=0.01)
    np.testing.assert_allclose(new_right[-1], [mu + 0.9, 1.0, 0.9], atol=0.01)
    np.testing.assert_array_equal(new_left[:-1], left)
    np.testing.assert_array_equal(new_right[:-1], right)
