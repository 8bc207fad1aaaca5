"""The linear part of the latent feature model: its conditionals, and what becomes of it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from glfm_cli.arrays import Array
from glfm_cli.completion import prepare
from glfm_cli.inference.chain import start_chain
from glfm_cli.latent.glfm import sampler
from glfm_cli.latent.glfm.linear import LinearPart
from glfm_cli.latent.row_laws import draw_normals
from glfm_cli.streams import Streams

REPEATS = 20_000
NOISE = np.array([0.4, 1.0, 2.5])


def test_draws_of_normals_have_their_moments() -> None:
    rng = np.random.default_rng(1)
    root = rng.standard_normal((2, 3, 3))
    Q, b = root @ root.swapaxes(1, 2) + np.eye(3), rng.standard_normal((2, 3))
    drawn = np.array([draw_normals(Q, b, rng) for _ in range(REPEATS)])
    for i in range(2):
        covariance = np.linalg.inv(Q[i])
        away = (drawn[:, i].mean(axis=0) - covariance @ b[i]) / np.sqrt(np.diag(covariance))
        assert np.abs(away).max() < 4 / np.sqrt(REPEATS)
        assert np.allclose(np.cov(drawn[:, i].T), covariance, atol=0.05 * np.abs(covariance).max())


def test_rows_come_from_the_normal_law_given_what_is_seen_of_them() -> None:
    """As the conditional of a joint normal law says it: U and the seen y together."""
    rng = np.random.default_rng(2)
    V, E, seen = rng.standard_normal((2, 3)), np.array([1.0, -2.0, 0.7]), np.array([1.0, 0.0, 1.0])
    part = LinearPart(np.zeros((REPEATS, 2)), V, np.ones(2))
    part.draw_rows(np.tile(E, (REPEATS, 1)), np.tile(seen, (REPEATS, 1)), NOISE, rng)
    at = seen > 0
    gain = V[:, at] @ np.linalg.inv(V[:, at].T @ V[:, at] + np.diag(NOISE[at]))
    mean, covariance = gain @ E[at], np.eye(2) - gain @ V[:, at].T
    away = (part.U.mean(axis=0) - mean) / np.sqrt(np.diag(covariance))
    assert np.abs(away).max() < 4 / np.sqrt(REPEATS)
    assert np.allclose(np.cov(part.U.T), covariance, atol=0.03)


def test_weights_come_from_the_regression_on_rows_that_are_seen() -> None:
    """Copies of one column stand for its draws."""
    rng = np.random.default_rng(3)
    U, E, omega = rng.standard_normal((9, 2)), rng.standard_normal(9), np.array([0.5, 2.0])
    seen = np.array([1.0, 1, 0, 1, 1, 0, 1, 1, 1])
    part = LinearPart(U, np.zeros((2, REPEATS)), omega)
    columns = (np.tile(x[:, None], (1, REPEATS)) for x in (E, seen))
    part.draw_columns(*columns, np.full(REPEATS, 0.7), rng)
    at = seen > 0
    covariance = np.linalg.inv(np.diag(1 / omega) + U[at].T @ U[at] / 0.7)
    away = (part.V.mean(axis=1) - covariance @ U[at].T @ E[at] / 0.7) / np.sqrt(np.diag(covariance))
    assert np.abs(away).max() < 4 / np.sqrt(REPEATS)
    assert np.allclose(np.cov(part.V), covariance, atol=0.03)


def test_prior_standard_deviations_are_half_cauchy_without_data() -> None:
    """A chain of V and omega alone, each drawn given the other."""
    rng = np.random.default_rng(4)
    omega = rng.standard_cauchy(4000) ** 2  # each component is a chain of its own
    part = LinearPart(np.zeros((1, 4000)), np.zeros((4000, 2)), omega)
    for _ in range(5):
        part.V[:] = np.sqrt(part.omega)[:, None] * rng.standard_normal(part.V.shape)
        part.draw_variances(rng)
    assert stats.kstest(np.sqrt(part.omega), stats.halfcauchy.cdf).pvalue > 1e-4


@pytest.mark.parametrize("spans", [((0, 1), (1, 3)), ((0, 3),)])
def test_a_scale_move_counts_the_weights_of_a_column(spans: tuple[tuple[int, int], ...]) -> None:
    part = LinearPart(np.zeros((1, 2)), np.arange(6.0).reshape(2, 3), np.array([0.5, 2.0]))
    squares = np.array([0 + 4.5, 2 + 8.0, 8 + 12.5])
    expected = [[squares[a:b].sum(), 2 * (b - a)] for a, b in spans]
    assert np.allclose(part.scale_group(spans), expected)


def test_a_sweep_moves_the_linear_part_with_the_scale_of_its_columns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Features see y less U V; U sees y less Z B, with y and V multiplied by the same factor."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal(40)
    g = np.where(x + rng.standard_normal(40) > 0, "a", "b")
    table = pa.table({"x": pa.array(x, mask=x > 0.8), "g": g})
    options = {"model": "glfm", "chains": 1, "warmup": 0, "draws": 1, "thin": 1, "seed": 0}
    types = {"columns": {"x": "real", "g": "categorical"}}
    problem, _, _ = prepare(table, types, settings={"components": 2}, **options)
    chain = start_chain(problem, Streams(0, 0))
    for _ in range(3):
        chain.sweep(adapt=False)
    cells, state, part = chain.cells, chain.state, chain.state.linear
    for d, link in enumerate(problem.links):
        cells.scale_group[d] = link.scale_group(chain.params[d])
    y, UV, V, omega = cells.y.copy(), part.U @ part.V, part.V.copy(), part.omega.copy()
    group = cells.scale_group + part.scale_group(cells.spans)
    seen = {}

    def sweep(given: Array, *rest: object) -> tuple[int, int]:
        seen["features"] = given.copy()
        return production(given, *rest)

    def draw_rows(self: LinearPart, E: Array, observed: Array, *rest: object) -> None:
        seen["rows"], seen["V"], seen["which"] = E.copy(), self.V.copy(), observed

    def draw_columns(self: LinearPart, E: Array, observed: Array, *rest: object) -> None:
        seen["columns"], seen["which too"] = E, observed

    production = sampler._glfm.sweep
    spied = SimpleNamespace(
        sweep=sweep, draw_weights=sampler._glfm.draw_weights, fill_eta=sampler._glfm.fill_eta
    )
    monkeypatch.setattr(sampler, "_glfm", spied)
    monkeypatch.setattr(LinearPart, "draw_rows", draw_rows)
    monkeypatch.setattr(LinearPart, "draw_columns", draw_columns)
    chain.model.update(state, cells, chain.streams)
    factor = cells.factor[cells.column]
    assert factor[1] != 1.0
    assert not np.any(part.omega == omega)
    assert np.allclose(seen["features"], y - UV)
    assert np.allclose(cells.scale_group, group)
    assert np.allclose(seen["V"], V * factor)
    ZB = state.Z[:, : state.n_columns] @ state.B[: state.n_columns]
    assert np.allclose(seen["rows"], y * factor - ZB)
    assert np.allclose(seen["columns"], y * factor - ZB)
    for which in (seen["which"], seen["which too"]):
        assert np.array_equal(which, cells.observed[:, cells.column])


def test_missing_pseudo_observations_are_drawn_with_the_noise_of_their_column(seed: int) -> None:
    table = pa.table({"x": pa.array(np.arange(3000.0), mask=np.arange(3000) >= 20)})
    options = {"model": "glfm", "chains": 1, "warmup": 0, "draws": 1, "thin": 1, "seed": 0}
    types = {"columns": {"x": "real"}}
    problem, _, _ = prepare(table, types, settings={"components": 1}, **options)
    chain = start_chain(problem, Streams(seed, 0))
    cells, state = chain.cells, chain.state
    state.noise[:], cells.factor[:] = 0.09, 1.0
    chain.model._draw_linear(state, cells, np.random.default_rng(seed))
    eta = np.empty_like(cells.y)
    chain.model.fill_eta(state, eta)
    away = (cells.y - eta)[20:, 0]
    assert away.mean() == pytest.approx(0.0, abs=0.03)
    assert away.std() == pytest.approx(0.3, rel=0.06)
