"""Chains of triplets begin with the components that births bring in; of tables, with 10."""

from __future__ import annotations

import numpy as np
import pytest

from glfm_cli.arrays import Array
from glfm_cli.inference.chain import Chain, start_chain
from glfm_cli.latent.bsvd.config import BsvdConfig
from glfm_cli.latent.bsvd.sampler import COMPONENTS, Bsvd
from glfm_cli.latent.model import Entries, Problem, Sparse
from glfm_cli.schema import ColumnType
from glfm_cli.streams import Streams
from tests.statistical.bsvd_prior import make_links


def begun(x: Array, share: float, seed: int, initial: int | None = None, threads: int = 1) -> Chain:
    """Return a chain of real values that has not made a sweep, over some of the cells."""
    row, column = np.nonzero(np.random.default_rng(seed).random(x.shape) < share)
    entries = Entries(row.astype(np.int32), column.astype(np.int32), x.shape)
    config = BsvdConfig(initial_components=initial)
    links = make_links(ColumnType.REAL)
    problem = Problem(Bsvd(), config, links, (x[row, column],), layout=Sparse(entries))
    return start_chain(problem, Streams(seed, 0), threads)


def of_rank(r: int, shape: tuple[int, int], seed: int) -> Array:
    """Return a matrix of unit noise around so many components of root mean square 2."""
    rng = np.random.default_rng(seed)
    x = 2.0 * rng.normal(size=(shape[0], r)) @ rng.normal(size=(r, shape[1]))
    return 3.0 + x + rng.normal(size=shape)


def test_noise_with_few_cells_a_row_begins_without_components(seed: int) -> None:
    chains = [begun(of_rank(0, (600, 300), seed + i), 0.03, seed + i) for i in range(4)]
    assert sum(chain.state.active.size for chain in chains) <= 1


def test_weak_components_are_begun_with_where_many_cells_show_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(700, 4)) @ rng.normal(size=(4, 400)) / 6 + rng.normal(size=(700, 400))
    chain = begun(x, 0.25, seed)
    assert chain.state.active.size == 4


def test_components_that_are_there_are_begun_with(seed: int) -> None:
    chain = begun(of_rank(5, (200, 100), seed), 0.4, seed)
    assert chain.state.active.size in (5, 6)
    for _ in range(10):
        chain.sweep(adapt=True)
    state = chain.state
    left, right = state.sides()
    np.testing.assert_allclose(
        state.x, np.sum(left[np.repeat(np.arange(200), np.diff(state.matrix.rows.indptr))]
                        * right[state.matrix.rows.index], axis=1), atol=1e-9)  # fmt: skip
    residual = state.matrix.values(chain.cells.y) - state.x
    assert residual.var() < 0.1 * state.matrix.values(chain.cells.y).var()


@pytest.mark.parametrize("initial", [0, 3])
def test_a_number_that_is_asked_for_is_kept(seed: int, initial: int) -> None:
    chain = begun(of_rank(5, (40, 30), seed), 0.5, seed, initial)
    assert chain.state.active.size == initial


def test_one_thread_and_two_begin_alike(seed: int) -> None:
    x = of_rank(1, (900, 200), seed)
    one, two = (begun(x, 0.2, seed, threads=n).state for n in (1, 2))
    assert len(one.matrix.rows.cuts) > 2
    np.testing.assert_array_equal(one.x, two.x)
    np.testing.assert_array_equal(one.U, two.U)


def test_matrices_too_small_to_hide_cells_of_begin(seed: int) -> None:
    chain = begun(of_rank(1, (2, 2), seed), 1.0, seed)
    chain.sweep(adapt=True)
    assert np.isfinite(chain.state.x).all()


def test_tables_begin_with_ten(seed: int) -> None:
    rng = np.random.default_rng(seed)
    links = make_links(*[ColumnType.REAL] * 12)
    xs = tuple(rng.normal(3.0, 2.0, size=30) for _ in links)
    chain = start_chain(Problem(Bsvd(), BsvdConfig(), links, xs), Streams(seed, 0))
    assert chain.state.active.size == COMPONENTS == 10
