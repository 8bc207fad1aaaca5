"""The low-rank model: kernels against NumPy, conditionals and tiny posteriors against numbers."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from glfm_cli import impute
from glfm_cli._kernels import _bsvd
from glfm_cli.arrays import Array
from glfm_cli.completion.prepare import prepare
from glfm_cli.errors import NumericalError
from glfm_cli.inference import chain as chains
from glfm_cli.inference.chain import Chain, start_chain
from glfm_cli.io import read_table
from glfm_cli.latent import blocks
from glfm_cli.latent.blocks import thread_pool
from glfm_cli.latent.bsvd import matrix as storage
from glfm_cli.latent.bsvd.config import BsvdConfig
from glfm_cli.latent.bsvd.draw import BsvdDraw
from glfm_cli.latent.bsvd.matrix import Matrix
from glfm_cli.latent.bsvd.moves import Regression
from glfm_cli.latent.bsvd.sampler import Bsvd
from glfm_cli.latent.model import Cells, Entries, Problem, Sparse
from glfm_cli.schema import ColumnType
from glfm_cli.streams import Streams
from tests.statistical.bsvd_prior import make_links

pytestmark = pytest.mark.kernels


def cells_of(y: Array, observed: Array) -> Cells:
    """Return a table of known pseudo-observations with a noise variance for each column."""
    n_columns = y.shape[1]
    return Cells(
        y=np.where(observed, y, 0.0),
        observed=observed.astype(np.uint8),
        column=np.arange(n_columns, dtype=np.int32),
        unit_noise=np.zeros(n_columns, dtype=np.uint8),
        known=np.ones(n_columns, dtype=np.uint8),
        scale_group=np.zeros((n_columns, 2)),
        factor=np.ones(n_columns),
        lower=np.zeros((0, 0)),
        upper=np.zeros((0, 0)),
        spread=np.ones(n_columns),
    )


def random_cells(seed: int, shape: tuple[int, int] = (7, 5)) -> Cells:
    rng = np.random.default_rng(seed)
    return cells_of(rng.normal(size=shape), rng.random(shape) < 0.6)


def weighed(cells: Cells, seed: int) -> tuple[Matrix, Array]:
    """Return the storage of cells with random precisions, and these, 0 where none is observed."""
    W = np.random.default_rng(seed + 1).integers(1, 5, cells.y.shape) * cells.observed
    return replace(Matrix.of(cells), weight=W[cells.observed == 1].astype(np.float64)), W


# Storage and kernels -------------------------------------------------------------------------


def test_storage_by_column_holds_the_same_cells_as_by_row(seed: int) -> None:
    cells = random_cells(seed)
    matrix = Matrix.of(cells)
    y, (rows, columns) = matrix.values(cells.y), (matrix.rows, matrix.columns)
    for i in range(rows.n):
        part = slice(rows.indptr[i], rows.indptr[i + 1])
        assert np.array_equal(y[part], cells.y[i, rows.index[part]])
    for j in range(columns.n):
        part = slice(columns.indptr[j], columns.indptr[j + 1])
        assert np.array_equal(y[columns.cell[part]], cells.y[columns.index[part], j])


def test_passes_over_cells_are_those_of_numpy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cells = random_cells(seed)
    matrix, W = weighed(cells, seed)
    rows, (n, m) = matrix.rows, cells.y.shape
    E, v, step = matrix.values(cells.y).copy(), rng.normal(size=m), rng.normal(size=n)
    precision = rng.gamma(2.0, size=m)
    R, Q = np.zeros(n), np.zeros(n)
    both = np.stack([precision * v, precision * v * v], axis=1)
    _bsvd.scan_component(0, n, rows.indptr, rows.index, rows.cell, matrix.weight, both, E, R, Q)
    np.testing.assert_allclose(R, (W * precision * cells.y) @ v, atol=1e-12)
    np.testing.assert_allclose(Q, (W * precision) @ (v * v), atol=1e-12)
    _bsvd.shift_residuals(0, n, rows.indptr, rows.index, step, v, E)
    shifted = cells.y + np.outer(step, v)
    np.testing.assert_allclose(E, matrix.values(shifted), atol=1e-12)
    left, right = rng.normal(size=(n, 3)), rng.normal(size=(m, 3))
    _bsvd.fill_means(0, n, rows.indptr, rows.index, left, right, E)
    np.testing.assert_allclose(E, matrix.values(left @ right.T), atol=1e-12)


@pytest.mark.parametrize(("by_row", "q"), [(True, 3), (False, 3), (True, 7), (False, 16)])
def test_units_have_the_normal_conditional_of_a_weighted_regression(
    seed: int, by_row: bool, q: int
) -> None:
    rng = np.random.default_rng(seed)
    cells = random_cells(seed, (90, 80))  # more cells a unit than are gathered at a time
    matrix, W = weighed(cells, seed)
    side = matrix.rows if by_row else matrix.columns
    n, n_other = (90, 80) if by_row else (80, 90)
    shapes = (n, 2), (n_other, 2), (n_other, q)
    own, other, H = (rng.normal(size=shape) for shape in shapes)
    precision = rng.gamma(2.0, size=n), rng.gamma(2.0, size=n_other)
    prior, linear = np.linspace(0.5, 2.0, q), np.linspace(-1.0, 1.0, q)
    regression = Regression(precision, own, other, H, prior, linear)
    with thread_pool(1) as each:
        found = regression.solve(side, matrix.weight, matrix.values(cells.y), rng, each)
    Y, W = (cells.y, W) if by_row else (cells.y.T, W.T)
    again = np.random.default_rng(seed)
    for shape in shapes:
        again.normal(size=shape)
    again.gamma(2.0, size=n), again.gamma(2.0, size=n_other)
    normals = again.standard_normal((n, q))
    for u in (0, 17, n - 1):
        w = W[u] * precision[0][u] * precision[1]
        t = Y[u] - other @ own[u]
        P = np.diag(prior) + (H.T * w) @ H
        b = linear + H.T @ (w * t)
        np.testing.assert_allclose(found.mean[u], np.linalg.solve(P, b), rtol=1e-9)
        expected = np.linalg.solve(np.linalg.cholesky(P).T, normals[u])
        np.testing.assert_allclose(found.deviation[u], expected, rtol=1e-9)
        np.testing.assert_allclose(
            found.quadratic[u], w @ t**2 - b @ np.linalg.solve(P, b), rtol=1e-8
        )


def test_a_precision_that_is_not_positive_definite_is_refused(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cells = random_cells(seed)
    matrix, (n, m) = Matrix.of(cells), cells.y.shape
    none, H = np.zeros((n, 0)), rng.normal(size=(m, 3))
    prior = np.array([1.0, -1e6, 1.0])
    ones = np.ones(n), np.ones(m)
    regression = Regression(ones, none, np.zeros((m, 0)), H, prior, np.zeros(3))
    with thread_pool(1) as each, pytest.raises(NumericalError, match="positive definiteness"):
        regression.solve(matrix.rows, matrix.weight, matrix.values(cells.y), rng, each)


# Posteriors of tiny matrices -----------------------------------------------------------------

FIXED = BsvdConfig(
    max_components=2,
    initial_components=1,
    bias=False,
    scale_shape=1e7,  # alpha I J and the noise variance are as good as known
    scale_rate=1e7,
    noise_shape=1e7,
    noise_rate=0.09e7,
)


def test_rank_and_means_of_a_tiny_matrix_have_their_exact_posterior(seed: int) -> None:
    # Importance sampling from the prior is exact enough for 2 x 2 cells.
    rng = np.random.default_rng(seed)
    y = np.array([[0.9, -0.4], [0.5, 0.0]])
    observed = np.array([[True, True], [True, False]])
    n = 200_000
    log_p, means, ranks = [], [], []
    for z in product([0, 1], repeat=2):
        s = np.abs(rng.normal(size=(n, 2))) * 2.0  # alpha = 1 / (I J) = 1 / 4
        U, V = (rng.normal(size=(n, 2, 2)) / np.sqrt(2.0) for _ in range(2))
        x = np.einsum("nk,nik,njk,k->nij", s, U, V, np.array(z, dtype=float))
        log_p.append(-0.5 * np.sum((y - x)[:, observed] ** 2, axis=1) / 0.09)
        means.append(x[:, 1, 1])
        ranks.append(np.full(n, sum(z)))
    w = np.exp(np.concatenate(log_p))  # p0 = 1/2: every z is as probable
    w /= w.sum()
    rank, mean = np.concatenate(ranks), np.concatenate(means)
    expected = [w @ (rank == 0), w @ (rank == 2), w @ np.tanh(mean), w @ np.tanh(mean) ** 2]

    cells, model = cells_of(y, observed), Bsvd()
    found = []
    for chain in range(20):
        streams = Streams(seed, chain)
        state = model.start(cells, FIXED, streams)
        out = np.zeros((2, 2))
        for sweep in range(300):
            model.update(state, cells, streams)
            model.finish(state, streams)
            model.fill_eta(state, out)
            if sweep >= 20:
                k, x = int(state.on.sum()), np.tanh(out[1, 1])
                found.append([k == 0, k == 2, x, x * x])
    of_chains = np.array(found, dtype=float).reshape(20, 280, 4).mean(axis=1)
    error = of_chains.std(axis=0, ddof=1) / np.sqrt(20)
    assert np.all(np.abs(of_chains.mean(axis=0) - expected) < 4.0 * error + 0.003)


def test_a_row_never_observed_has_its_prior(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y, observed = rng.normal(size=(5, 4)), np.ones((5, 4), dtype=bool)
    observed[4] = False
    config = BsvdConfig(max_components=1, bias=False)  # a single component is always on
    cells, model, streams = cells_of(y, observed), Bsvd(), Streams(seed, 0)
    state = model.start(cells, config, streams)
    found = []
    for _ in range(2_000):
        model.update(state, cells, streams)
        found.append(state.U[4, 0] * np.sqrt(5.0))
    assert abs(np.mean(found)) < 0.2
    assert abs(np.var(found) - 1.0) < 0.25


def test_planted_rank_is_found_and_gaps_are_filled(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 3)) @ rng.normal(size=(3, 60)) / np.sqrt(3.0)
    observed = rng.random(X.shape) < 0.4
    cells = cells_of(X + 0.1 * rng.normal(size=X.shape), observed)
    model, streams, out, total = Bsvd(), Streams(seed, 0), np.zeros(X.shape), np.zeros(X.shape)
    state = model.start(cells, BsvdConfig(), streams)
    for sweep in range(130):
        model.update(state, cells, streams)
        model.finish(state, streams)
        if sweep >= 80:
            model.fill_eta(state, out)
            total += out / 50
    assert model.trace(state)["rank"] in (3.0, 4.0)
    assert np.sqrt(np.mean((total - X)[~observed] ** 2)) < 0.1


# One result for any number of threads, and after an interruption ------------------------------


def matrix_chain(seed: int, threads: int, kind: ColumnType = ColumnType.ORDINAL) -> Chain:
    rng = np.random.default_rng(seed)
    row, column = np.nonzero(rng.random((60, 50)) < 0.5)
    entries = Entries(row.astype(np.int32), column.astype(np.int32), (60, 50))
    x = rng.integers(0, 4, size=row.size).astype(np.float64)
    links = make_links(kind)
    problem = Problem(Bsvd(), BsvdConfig(), links, (x,), layout=Sparse(entries))
    return start_chain(problem, Streams(seed, 0), threads)


def test_one_and_two_threads_give_the_same_draws(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK", 100)
    one, two = matrix_chain(seed, 1), matrix_chain(seed, 2)
    assert len(two.state.matrix.rows.cuts) > 5
    for _ in range(5):
        one.sweep(adapt=True)
        two.sweep(adapt=True)
    first, second = one.save(), two.save()
    assert first.keys() == second.keys()
    assert all(first[name].tobytes() == second[name].tobytes() for name in first)


# Memory --------------------------------------------------------------------------------------


def test_a_sweep_takes_at_most_sixty_bytes_a_cell(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (storage, chains):  # so that parts are as small beside this matrix as they
        monkeypatch.setattr(module, "PART", 1 << 14)  # are beside one of ten million cells
    n, K = 600, 2
    row, column = np.divmod(np.arange(n * n), n)
    entries = Entries(row.astype(np.int32), column.astype(np.int32), (n, n))
    values = np.random.default_rng(seed).normal(3.0, 2.0, n * n)
    config, links = BsvdConfig(max_components=K, initial_components=K), make_links(ColumnType.REAL)
    tracemalloc.start()
    try:
        x, ids = values.copy(), replace(entries, row=entries.row.copy())
        problem = Problem(Bsvd(), config, links, (x,), layout=Sparse(ids))
        chain = start_chain(problem, Streams(seed, 0))
        chain.sweep(adapt=True)
        chain.keep()
        peak = tracemalloc.get_traced_memory()[1] + entries.column.nbytes
    finally:
        tracemalloc.stop()
    assert 20.0 < peak / values.size < 60.0


@pytest.mark.parametrize("kind", [ColumnType.REAL, ColumnType.ORDINAL])
def test_sums_over_parts_are_those_over_all_cells(
    kind: ColumnType, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = matrix_chain(seed, 1, kind)
    whole.sweep(adapt=True)
    monkeypatch.setattr(storage, "PART", 101)
    monkeypatch.setattr(chains, "PART", 101)
    parts = matrix_chain(seed, 1, kind)
    parts.sweep(adapt=True)
    np.testing.assert_allclose(parts.state.x, whole.state.x, rtol=1e-6)
    assert parts.log_likelihood() == pytest.approx(whole.log_likelihood(), rel=1e-9)


def test_fold_in_of_known_cells_has_the_rows_exact_conditional(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, k, n_columns, n_fitted = 3_000, 2, 4, 50
    right = np.concatenate([3.0 * rng.normal(size=(n_columns, k)), rng.normal(size=(4, 1))], axis=1)
    noise = np.array([0.5, 1.0, 0.2, 0.4])
    draw = BsvdDraw(np.zeros((n_fitted, 3)), right, noise, k, 1, np.ones(4), n_fitted)
    y = np.tile([0.5, -1.0, 0.3, np.nan], (n, 1))
    cells = cells_of(y, ~np.isnan(y))
    folded = Bsvd().fold_in(
        draw, BsvdConfig(), cells, lambda eta: None, lambda eta, rows: eta, 1, rng
    )
    H, t = right[:3, :k], y[0, :3] - right[:3, k]
    P = n_fitted * np.eye(k) + (H.T / noise[:3]) @ H
    mean = np.linalg.solve(P, (H.T / noise[:3]) @ t)
    drawn = folded.left[:, :k]
    assert np.all(folded.left[:, k] == 1.0)
    sd = np.sqrt(np.diag(np.linalg.inv(P)))
    assert np.all(np.abs(drawn.mean(axis=0) - mean) < 4.0 * sd / np.sqrt(n))
    np.testing.assert_allclose(np.cov(drawn.T), np.linalg.inv(P), atol=0.2 * sd.max() ** 2)


# The parts that models share ------------------------------------------------------------------


def test_both_models_run_the_same_links(sample_data: Path) -> None:
    table = read_table(sample_data / "pbc.csv")
    types = sample_data / "pbc.types.yaml"
    few = {"chains": 1, "warmup": 1, "draws": 1, "thin": 1, "seed": 0, "settings": None}
    glfm, bsvd = (prepare(table, types, model=name, **few)[0] for name in ("glfm", "bsvd"))
    assert {type(link).__name__ for link in glfm.links} == {
        "RealLink",
        "PositiveLink",
        "CountLink",
        "CategoricalLink",
        "OrdinalLink",
    }
    for ours, theirs in zip(glfm.links, bsvd.links, strict=True):
        assert type(ours) is type(theirs)
        kept, other = ours.constants(), theirs.constants()
        assert kept.keys() == other.keys()
        assert all(np.array_equal(kept[name], other[name], equal_nan=True) for name in kept)
        for method in ("start", "update_params", "augment", "log_density", "sample"):
            assert getattr(type(ours), method) is getattr(type(theirs), method)


def test_thresholds_are_right_without_bias_and_components(seed: int) -> None:
    cuts = np.array([-1.25, 0.0, 1.0])
    levels = np.digitize(np.random.default_rng(seed).standard_normal(200), cuts)
    done = impute(
        pa.table({"k": [*levels.tolist(), None], "i": list(range(201))}),
        {"columns": {"k": {"type": "ordinal"}, "i": "id"}},
        model="bsvd", chains=1, warmup=100, draws=50, threads=1, seed=seed,
        settings={"bias": False, "max_components": 0},
    )  # fmt: skip
    found = np.mean([draw.params[0]["thresholds"] for draw in done.posterior.draws()], axis=0)
    assert np.abs(found - cuts).max() < 0.4  # four posterior sd
