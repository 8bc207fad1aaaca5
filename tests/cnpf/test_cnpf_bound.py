"""The bound and its derivatives, against the bound written out."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from cnpf_reference import (
    MODELS,
    Q,
    after_visit,
    begin,
    counts_of,
    full_bound,
    full_covariance,
    problem,
    rates_of,
    slope,
)
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.special import gammaln
from scipy.stats import norm

from glfm_cli._kernels import _cnpf
from glfm_cli.latent.blocks import thread_pool
from glfm_cli.latent.cnpf.ascent import run_pass
from glfm_cli.latent.cnpf.bound import bound_of, rounding_of
from glfm_cli.latent.cnpf.config import CnpfConfig
from glfm_cli.latent.cnpf.counts import Counts
from glfm_cli.latent.cnpf.locations import (
    evaluate_locations,
    newton_step,
    sum_locations,
    update_locations,
)
from glfm_cli.latent.cnpf.rows import Rows, count_columns, exposures, sum_rates, visit_rows
from glfm_cli.latent.cnpf.tables import Globals, tables_of
from glfm_cli.latent.cnpf.weights import LEAST, settle_weights, sum_rises, update_weights


def run(
    config: CnpfConfig, counts: Counts, passes: int, seed: int
) -> tuple[Globals, Rows, list[float]]:
    shared, rows = begin(config, counts, seed)
    with thread_pool(1) as each:
        bounds = [run_pass(config, shared, rows, counts, each, p) for p in range(passes)]
    return shared, rows, bounds


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_collapsed_and_uncollapsed_bound_agree(name: str, missing: bool, seed: int) -> None:
    for i in range(3):
        config, counts = problem(name, seed + i, missing=missing)
        shared, rows, _ = run(config, counts, 5, seed)
        _, q = after_visit(config, shared, rows, counts)
        whole = full_bound(config, q, shared.column_rate)
        assert bound_of(config, shared, rows, counts) == pytest.approx(whole, rel=1e-9, abs=1e-7)


def never_falls(name: str, seed: int, missing: bool) -> bool:
    config, counts = problem(name, seed, missing=missing)
    bounds = np.array(run(config, counts, 30, seed)[2])
    return bool(np.all(np.diff(bounds) >= -1e-8 * np.abs(bounds[1:])))


@pytest.mark.parametrize("name", MODELS)
def test_the_bound_never_falls(name: str, seed: int) -> None:
    assert all(never_falls(name, seed + i, missing=i % 3 == 0) for i in range(12))


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_the_bound_never_falls_in_many_problems(name: str, seed: int) -> None:
    assert all(never_falls(name, seed + 100 + i, missing=i % 3 == 0) for i in range(100))


def test_rounding_lets_the_bound_fall_by_less_than_an_error_would() -> None:
    one = np.zeros(1, np.int64)
    small, large = (Counts.of(one, one, np.array([y]), (1, 1)) for y in (3.0, 1e9))
    assert rounding_of(small) < 1e-12
    # log y! is 2e10 of a thousand million, known to sixteen digits.
    assert 4e-6 < rounding_of(large) < 4e-3


@pytest.mark.parametrize("name", ["exp", "softplus", "diln"])
def test_the_bound_of_every_row_rises_from_far_away(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for i in range(8):
        config, counts = problem(name, seed + i, dimensions=2, size_variance=20.0)
        shared, rows = begin(config, counts, seed)
        shared.l[:] = 2.0 * rng.standard_normal(shared.l.shape)
        rows.m[:] = 4.0 * rng.standard_normal(rows.m.shape)
        bounds = []
        for _ in range(15):
            after_visit(config, shared, rows, counts)
            bounds.append(rows.bound.copy())
        found = np.array(bounds)
        assert np.all(np.diff(found, axis=0) >= -1e-9 * (1.0 + np.abs(found[1:])))


def test_the_bound_never_falls_with_diagonal_covariances(seed: int) -> None:
    config, counts = problem("exp", seed, dimensions=16, components=6)
    bounds = np.array(run(config, counts, 30, seed)[2])
    assert config.diagonal
    assert np.all(np.diff(bounds) >= -1e-8 * np.abs(bounds[1:]))


@pytest.mark.parametrize("name", ["scaled", "exp", "softplus", "diln"])
def test_slopes_of_rows_are_those_of_the_bound(name: str, seed: int) -> None:
    config, counts = problem(name, seed + 1, components=4, dimensions=2)
    shared, rows, _ = run(config, counts, 6, seed)
    tables, q = after_visit(config, shared, rows, counts)
    F = config.n_free
    J = F * (F + 1) // 2
    P = np.diag(tables.prior)
    i, j = np.tril_indices(F)
    for u in range(3):
        gradient, bends, spreads = np.empty(F), np.empty(J), np.empty(J)
        work = np.empty(_cnpf.work_size(tables.w.size, F))
        S = exposures(rows, tables)[u]
        tables_u = (tables.loadings, tables.products, tables.prior, *tables.link, False)
        law = (rows.m[u], rows.cov[u], gradient, bends, spreads, work)
        _cnpf.slopes_of_row(tables.w, rows.n[u], S, *tables_u, *law)
        matrix = full_covariance(config, spreads[None])[0]
        of_cov = -0.5 * (matrix + P - np.linalg.inv(q.cov[u]))
        for f in range(F):
            direction = np.zeros_like(q.m)
            direction[u, f] = 1.0
            found = slope(config, q, shared.column_rate, "m", direction, 1e-5)
            assert found == pytest.approx(gradient[f], rel=1e-5, abs=2e-5)
        for a, b in zip(i, j, strict=True):
            direction = np.zeros_like(q.cov)
            direction[u, a, b] = direction[u, b, a] = 1.0
            found = slope(config, q, shared.column_rate, "cov", direction, 1e-6)
            total = of_cov[a, b] * (1 if a == b else 2)
            assert found == pytest.approx(total, rel=1e-4, abs=2e-4)


def test_the_bend_of_a_row_is_the_second_derivative_with_rates_profiled_out(seed: int) -> None:
    config, counts = problem("exp", seed + 1, components=4, dimensions=2)
    shared, rows, _ = run(config, counts, 6, seed)
    tables, _ = after_visit(config, shared, rows, counts)
    F = config.n_free

    def gradient_at(m: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        gradient, bends, spreads = (
            np.empty(F),
            np.empty(F * (F + 1) // 2),
            np.empty(F * (F + 1) // 2),
        )
        work = np.empty(_cnpf.work_size(tables.w.size, F))
        given = (tables.loadings, tables.products, tables.prior, *tables.link, False)
        law = (m, rows.cov[0], gradient, bends, spreads, work)
        _cnpf.slopes_of_row(tables.w, rows.n[0], tables.S, *given, *law)
        return gradient, bends

    bends = full_covariance(config, gradient_at(rows.m[0])[1][None])[0] + np.diag(tables.prior)
    for f in range(F):
        step = 1e-5 * np.eye(F)[f]
        found = (gradient_at(rows.m[0] - step)[0] - gradient_at(rows.m[0] + step)[0]) / 2e-5
        np.testing.assert_allclose(bends[f], found, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("name", ["exp", "softplus", "diln"])
def test_slopes_of_locations_are_those_of_the_bound(name: str, missing: bool, seed: int) -> None:
    config, counts = problem(name, seed + 2, missing=missing, components=3, dimensions=2)
    shared, rows, _ = run(config, counts, 6, seed)
    shared.l[:] += 1.0
    tables, q = after_visit(config, shared, rows, counts)
    with thread_pool(1) as each:
        gradient, hessian = sum_locations(rows, counts, tables, each)
    gradient = gradient - shared.l / config.location_variance
    hessian = hessian + np.eye(2) / config.location_variance
    for k in range(3):
        for d in range(2):
            direction = np.zeros_like(q.l)
            direction[k, d] = 1.0
            found = slope(config, q, shared.column_rate, "l", direction, 1e-5)
            assert found == pytest.approx(gradient[k, d], rel=1e-5, abs=1e-5)
    if name != "softplus":
        for d in range(2):
            step = 1e-2 * np.eye(2)[d]

            def at(t: float, step: np.ndarray = step) -> float:
                moved = q.l.copy()
                moved[0] += t * step
                return full_bound(config, replace(q, l=moved), shared.column_rate)

            second = (2 * at(0.0) - at(1.0) - at(-1.0)) / 1e-4
            assert second == pytest.approx(hessian[0, d, d], rel=1e-3)


@pytest.mark.parametrize("name", ["exp", "softplus"])
def test_the_objective_of_locations_is_the_bound_but_for_a_constant(name: str, seed: int) -> None:
    config, counts = problem(name, seed + 2, missing=True, components=3, dimensions=2)
    shared, rows, _ = run(config, counts, 6, seed)
    tables, q = after_visit(config, shared, rows, counts)
    moved = shared.l + 0.2
    with thread_pool(1) as each:
        values = [
            evaluate_locations(at, rows, counts, tables, each, np.empty_like(rows.rho))[0, :3].sum()
            - (at**2).sum() / (2 * config.location_variance)
            for at in (shared.l, moved)
        ]
    bounds = [full_bound(config, replace(q, l=at), shared.column_rate) for at in (q.l, moved)]
    assert values[1] - values[0] == pytest.approx(bounds[1] - bounds[0], rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("name", ["exp", "softplus", "diln"])
def test_locations_raise_the_bound_and_rates_follow_them(name: str, seed: int) -> None:
    config, counts = problem(name, seed + 2, missing=True, components=3, dimensions=2)
    shared, rows, _ = run(config, counts, 6, seed)
    shared.l[:] += 0.5
    tables, q = after_visit(config, shared, rows, counts)
    before = full_bound(config, q, shared.column_rate)
    with thread_pool(1) as each:
        log_sum = update_locations(shared, rows, counts, tables, each)
    moved = replace(q, l=shared.l)
    log_r, rho = rates_of(config, moved)
    assert full_bound(config, moved, shared.column_rate) > before
    np.testing.assert_allclose(rows.rho[:, :3], rho, rtol=1e-8)
    np.testing.assert_allclose(log_sum[:3], log_r.sum(axis=0), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", ["exp", "softplus", "diln"])
def test_locations_take_the_whole_step_where_their_prior_is_narrow(name: str, seed: int) -> None:
    settings = {"components": 3, "dimensions": 2, "location_variance": 0.001}
    config, counts = problem(name, seed + 2, **settings)
    shared, rows, _ = run(config, counts, 2, seed)
    shared.l[:] = 0.0
    tables, _ = after_visit(config, shared, rows, counts)
    # Which says nothing of the rates yet.
    rows.m[:, :2] += np.random.default_rng(seed).standard_normal((counts.shape[0], 2))
    with thread_pool(1) as each:
        step = newton_step(shared.l, *sum_locations(rows, counts, tables, each), 0.001)
        update_locations(shared, rows, counts, tables, each)
    assert np.abs(step).max() > 1e-5
    np.testing.assert_allclose(shared.l, step, rtol=1e-10)


@pytest.mark.parametrize("name", MODELS)
def test_slopes_of_weights_are_those_of_the_profiled_bound(name: str, seed: int) -> None:
    config, counts = problem(name, seed + 3, missing=True, components=3)
    shared, rows, _ = run(config, counts, 6, seed)
    tables, q = after_visit(config, shared, rows, counts)
    with thread_pool(1) as each:
        rises = sum_rises(rows, counts, shared.w, each)
        log_rate = sum_rates(rows, counts, tables, tables.w, each)[0]
        log_r = evaluate_locations(shared.l, rows, counts, tables, each, rows.x)[1]
    R = shared.c + (log_rate - log_r)[:3]
    gradient = rises[1] + config.concentration / 3 - shared.w * R
    n = q.ax - q.w

    def at(k: int, t: float) -> float:
        w = q.w.copy()
        w[k] *= np.exp(t)
        return full_bound(config, replace(q, w=w, ax=w + n), shared.column_rate)

    for k in range(3):
        found = (at(k, 1e-5) - at(k, -1e-5)) / 2e-5
        assert found == pytest.approx(gradient[k], rel=1e-5, abs=1e-5)
    # Its own derivative, of the three sums at two weights.
    with thread_pool(1) as each:
        up, down = (sum_rises(rows, counts, shared.w * np.exp(t), each) for t in (1e-4, -1e-4))
    np.testing.assert_allclose((up[0] - down[0]) / 2e-4, rises[1], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose((up[1] - down[1]) / 2e-4, rises[1] + rises[2], rtol=1e-5, atol=1e-6)


def test_a_few_steps_bring_weights_to_their_maximum(seed: int) -> None:
    config, counts = problem("exp", seed + 3, components=3)
    shared, rows, _ = run(config, counts, 6, seed)
    tables, _ = after_visit(config, shared, rows, counts)
    shape = config.concentration / 3
    with thread_pool(1) as each:
        log_rate = sum_rates(rows, counts, tables, tables.w, each)[0]
        log_r = evaluate_locations(shared.l, rows, counts, tables, each, rows.x)[1]
        R = shared.c + (log_rate - log_r)[:3]

        def loss(v: float, k: int) -> float:
            rises = sum_rises(rows, counts, np.full(3, np.exp(v)), each)
            return float(np.exp(v) * R[k] - rises[0, k] - shape * v)

        found = [minimize_scalar(loss, (-3.0, 1.0), args=(k,), tol=1e-8).x for k in range(3)]
        best = np.exp(found)
        shared.w = best * np.array([1.4, 0.7, 1.2])
        update_weights(shared, rows, counts, R, each, shape)
    np.testing.assert_allclose(shared.w, best, rtol=1e-5)


def stationary(config: CnpfConfig, q: Q, rate: float, rng: np.random.Generator) -> dict[str, float]:
    """Return the slopes of the bound along random directions in each of its arguments."""
    F = config.n_free
    away = {"w": q.w * rng.standard_normal(q.w.shape), "c": np.array(q.c)}
    if config.n_locations:
        away["l"] = rng.standard_normal(q.l.shape)
    if F:
        away["m"] = rng.standard_normal(q.m.shape)
        cov = rng.standard_normal(q.cov.shape)
        away["cov"] = 0.1 * q.cov @ (cov + cov.transpose(0, 2, 1)) @ q.cov
    away["A"] = q.A * rng.standard_normal(q.A.shape)
    away["ax"] = q.ax * rng.standard_normal(q.ax.shape)
    away["bx"] = q.bx * rng.standard_normal(q.bx.shape)
    if config.topics:
        away["xi"] = q.xi * rng.standard_normal(q.xi.shape)
    else:
        away["B"] = q.B * rng.standard_normal(q.B.shape)
    # The weights' slope is that with q(x) held: at the joint optimum both are 0.
    return {name: slope(config, q, rate, name, along, 1e-5) for name, along in away.items()}


@pytest.mark.parametrize("name", MODELS)
def test_a_fit_that_has_converged_is_stationary_in_everything(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = np.kron(np.eye(2), np.ones((4, 3))) * 6 + rng.poisson(1.0, (8, 6))
    y[0] = 0
    lost = np.zeros(y.shape, dtype=bool)
    lost[1, 1] = lost[2, :5] = lost[3:, 0] = True
    counts = counts_of(y, None if name == "diln" else lost)
    settings = {"components": 2, "dimensions": 2, "free_pass": 2, "merge_every": 0}
    config = CnpfConfig(**(settings | MODELS[name]))  # type: ignore[arg-type]
    shared, rows, _ = run(config, counts, 500, seed)
    tables, q = after_visit(config, shared, rows, counts)
    slopes = stationary(config, q, shared.column_rate, rng)
    assert max(map(abs, slopes.values())) < 2e-3, slopes
    # And the shares and exposures themselves are those of q.
    T = 2
    mean_a = q.A / q.B
    if name != "diln":
        np.testing.assert_allclose(
            q.bx, rows.rho[:, :T] + q.mask @ mean_a, rtol=1e-8, err_msg="exposures"
        )
    with thread_pool(1) as each:
        of_columns = count_columns(rows, counts, tables, each)
    np.testing.assert_allclose(of_columns, np.einsum("ui,uik->ik", q.y, q.phi), atol=1e-9)
    np.testing.assert_allclose(rows.n[:, :T], np.einsum("ui,uik->uk", q.y, q.phi), atol=1e-9)


@pytest.mark.parametrize("w", [0.01, 0.3, 3.0])
def test_weights_settle_by_what_uncertain_counts_say(w: float) -> None:
    share = np.array([[0.02, 0.05, 0.1, 0.03], [0.6, 0.3, 0.1, 0.2], [0.0, 0.0, 0.0, 0.0]])
    counts = counts_of(np.array([[1], [0], [0]]))
    shared, rows = begin(CnpfConfig(components=1, scaled=False), counts, 0)
    rows.n[:, 0] = share.sum(axis=1)
    shared.w[:] = w
    K = 0.0
    for p in share:
        for here in product([0, 1], repeat=4):
            chance = np.prod(np.where(here, p, 1.0 - p))
            K += chance * sum(w / (w + j) for j in range(sum(here)))
    with thread_pool(1) as each:
        settle_weights(shared, rows, counts, np.full(1, 2.0), each, 0.1)
        assert 2.0 * shared.w[0] - 0.1 == pytest.approx(K, rel=0.15)
        shared.w[:] = LEAST
        settle_weights(shared, rows, counts, np.full(1, 2.0), each, 0.1)
    assert shared.w[0] == LEAST


def test_locations_move_once_components_have_taken_shape(seed: int) -> None:
    config, counts = problem("exp", seed, passes=30)
    shared, rows = begin(config, counts, seed)
    start = shared.l.copy()
    with thread_pool(1) as each:
        for number in range(11):
            assert np.array_equal(shared.l, start)
            run_pass(config, shared, rows, counts, each, number)
    assert not np.array_equal(shared.l, start)


# Closed forms ---------------------------------------------------------------------------------


def one_row(
    y: list[int], a: list[float], w: float, **settings: object
) -> tuple[CnpfConfig, Rows, float]:
    """Return a row of one component whose columns are known, settled, and its bound."""
    config = CnpfConfig(components=1, dimensions=1, **settings)  # type: ignore[arg-type]
    counts = counts_of(np.array([y]))
    shared, rows = begin(config, counts, 0)
    shared.w[:] = w
    shared.l[:] = 0.0
    tables = tables_of(config, shared, counts, counts.missing_columns)
    tables.a[:, 0] = a
    tables.S[0] = sum(a)
    with thread_pool(1) as each:
        visit_rows(rows, counts, tables, each, 200, 0.0)
    F = config.n_free
    constant = 0.5 * np.log(tables.prior).sum() + 0.5 * F
    return config, rows, float(rows.bound[0] + constant - counts.log_factorials)


def negative_binomial(y: list[int], a: list[float], w: float, r: float) -> float:
    """Return log p(y) of Poisson counts whose rates share a gamma factor, shape w and rate r."""
    N, S = sum(y), sum(a)
    total = gammaln(w + N) - gammaln(w) + w * np.log(r) - (w + N) * np.log(r + S)
    return float(total + sum(k * np.log(b) - gammaln(k + 1) for k, b in zip(y, a, strict=True)))


@pytest.mark.parametrize(("y", "a"), [([3], [0.7]), ([0], [2.0]), ([5, 0, 2], [0.3, 1.0, 2.0])])
def test_one_component_with_known_columns_has_the_evidence_of_gamma_poisson(
    y: list[int], a: list[float]
) -> None:
    bound = one_row(y, a, 0.6, scaled=False)[2]
    assert bound == pytest.approx(negative_binomial(y, a, 0.6, 1.0), rel=1e-12)


@pytest.mark.parametrize("link", ["exp", "softplus"])
@pytest.mark.parametrize("correlated", [False, True])
def test_the_bound_of_a_row_lies_closely_below_its_evidence(link: str, correlated: bool) -> None:
    y, a, w = [6, 1], [1.0, 0.5], 2.0

    def density(mu: float) -> float:
        r = np.exp(-mu) if link == "exp" else 1.0 / np.logaddexp(0.0, mu)
        return float(np.exp(negative_binomial(y, a, w, r)) * norm.pdf(mu, scale=np.sqrt(0.5)))

    evidence = np.log(quad(density, -8, 8)[0])
    bound = one_row(y, a, w, inverse_link=link, correlated=correlated, size_variance=0.5)[2]
    assert evidence - 0.15 < bound < evidence  # q(x) q(v) for what is not independent


def test_locations_of_zero_are_the_scaled_process(seed: int) -> None:
    whole, counts = problem("exp", seed, free_pass=100)
    scaled = replace(whole, correlated=False)
    bounds, kept = [], []
    for config in (whole, scaled):
        shared, rows = begin(config, counts, seed)
        start = begin(scaled, counts, seed)
        shared.A, shared.B, rows.n = start[0].A.copy(), start[0].B.copy(), start[1].n.copy()
        shared.l[:] = 0.0
        rows.m[:] = 0.0
        with thread_pool(1) as each:
            bounds.append([run_pass(config, shared, rows, counts, each, p) for p in range(20)][-1])
        kept.append((shared, rows))
    D = whole.dimensions
    extra = whole.components * D / 2 * np.log(2 * np.pi * whole.location_variance)
    assert bounds[0] + extra == pytest.approx(bounds[1], rel=1e-10)
    np.testing.assert_allclose(kept[0][1].n, kept[1][1].n, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(kept[0][1].m[:, D:], kept[1][1].m, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(kept[0][0].A, kept[1][0].A, rtol=1e-7)
