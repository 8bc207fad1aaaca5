"""Intercepts of a matrix: how much units differ is found, however little, and so are its moves."""

from __future__ import annotations

import numpy as np
import pytest

from glfm_cli.arrays import Array
from glfm_cli.encoding import pack_trials
from glfm_cli.inference.chain import Chain, start_chain
from glfm_cli.latent.blocks import thread_pool
from glfm_cli.latent.bsvd.config import BsvdConfig
from glfm_cli.latent.bsvd.effects import move_intercepts, slice_draw
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
