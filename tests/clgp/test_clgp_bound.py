"""The bound of the latent Gaussian process against what it must be where that is known."""

from __future__ import annotations

import numpy as np
import pytest
from clgp_tables import (
    Array,
    blocks_of,
    bound,
    differences,
    gradient_of,
    looked,
    mixed_table,
    number_table,
    random_places,
    random_shared,
)
from scipy.linalg import block_diag
from scipy.stats import multivariate_normal

from glfm_cli.latent.clgp.blocks import RowBlock
from glfm_cli.latent.clgp.bound import (
    EvaluatedBlock,
    bound_of_rows,
    log_prior,
    moments,
    penalty_of_weights,
    row_penalties,
)
from glfm_cli.latent.clgp.features import JITTER, Features, Inducing, rbf
from glfm_cli.latent.clgp.parameters import Places, Shared
from glfm_cli.latent.clgp.table import ObservedTable
from glfm_cli.latent.clgp.weights import newton, renew_basis, update_weights

Q, M = 2, 4


def test_the_bound_has_the_same_mean_for_any_number_of_samples(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = mixed_table(rng, 12)
    shared, places = random_shared(rng, table, Q, M, True), random_places(rng, 12, Q)

    def values(n: int, samples: int, category_samples: int) -> Array:
        return np.array(
            [
                bound(blocks_of(rng, table, Q, samples, category_samples), places, shared, table)
                for _ in range(n)
            ]
        )

    few, many = values(1500, 1, 2), values(100, 20, 8)
    error = np.sqrt(few.var() / few.size + many.var() / many.size)
    assert abs(few.mean() - many.mean()) < 4.0 * error
    assert error < 0.005 * abs(few.mean())
    pairs = values(300, 2, 2)
    error = np.sqrt(pairs.var() / pairs.size + many.var() / many.size)
    assert abs(pairs.mean() - many.mean()) < 4.0 * error


def converged(
    y: Array, x: Array, M: int, linear: bool, rng: np.random.Generator
) -> tuple[list[EvaluatedBlock], Shared, Places, ObservedTable]:
    """Return Gaussian columns at certain places, inducing places among them, q(e) at its best."""
    table = number_table(y)
    shared = random_shared(rng, table, x.shape[1], M, linear)
    shared.Z = x[:M].copy()
    places = Places(x, np.full(x.shape, -20.0))
    local = looked(blocks_of(rng, table, x.shape[1], 1), places, shared, table)
    local, _ = renew_basis(shared, local, Inducing.of(shared))
    local = update_weights(shared, local, table.slots, 1.0, 1.0, 60, None)
    return local, shared, places, table


@pytest.mark.parametrize(("linear", "rbf_part"), [(False, True), (True, True), (True, False)])
def test_inducing_places_at_all_rows_give_the_full_process(
    seed: int, linear: bool, rbf_part: bool
) -> None:
    """And the linear kernel, which needs none, the latent Gaussian model f = b + W x, W ~ N."""
    rng = np.random.default_rng(seed)
    N, D = 9, 3
    x, y = 1.5 * rng.normal(size=(N, Q)), rng.normal(size=(N, D))
    local, shared, _, _ = converged(y, x, N if rbf_part else 0, linear, rng)
    ell, rho = np.exp(shared.log_ell), float(np.exp(shared.log_rho))
    K = np.zeros((N, N))
    if rbf_part:
        K += rbf(x, x, ell) + JITTER * np.eye(N)
    if linear:
        K += rho * x @ x.T
    found = sum(one.value() for one in local) - penalty_of_weights(shared)
    exact = 0.0
    for d in range(D):
        a2, s2 = np.exp(2.0 * shared.log_a[d]), np.exp(shared.log_noise[d])
        mean = np.full(N, shared.b[d])
        cov = a2 * K + s2 * np.eye(N)
        exact += multivariate_normal(mean, cov).logpdf(y[:, d])
        smooth = mean + a2 * K @ np.linalg.solve(cov, y[:, d] - mean)
        np.testing.assert_allclose(local[0].mean[:, d], smooth, atol=1e-4)
        left = a2 * K - a2 * a2 * K @ np.linalg.solve(cov, K)
        np.testing.assert_allclose(local[0].var[:, d], np.diag(left), atol=1e-4)
    assert found == pytest.approx(exact, abs=1e-3 * N * D)


def test_fewer_inducing_places_bound_the_full_process_from_below(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = 1.5 * rng.normal(size=(12, Q)), rng.normal(size=(12, 2))
    local, shared, _, _ = converged(y, x, 5, False, rng)
    K = rbf(x, x, np.exp(shared.log_ell)) + JITTER * np.eye(12)
    found = sum(one.value() for one in local) - penalty_of_weights(shared)
    exact = 0.0
    for d in range(2):
        a2, s2 = np.exp(2.0 * shared.log_a[d]), np.exp(shared.log_noise[d])
        cov = a2 * K + s2 * np.eye(12)
        exact += multivariate_normal(np.full(12, shared.b[d]), cov).logpdf(y[:, d])
    assert found < exact - 0.1


def test_the_linear_kernel_has_the_bound_of_the_latent_gaussian_model(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = mixed_table(rng, 8)
    shared, places = random_shared(rng, table, Q, 0, True), random_places(rng, 8, Q)
    blocks = blocks_of(rng, table, Q, 3)
    local = looked(blocks, places, shared, table)[0]
    x = (places.m + np.exp(places.log_sd) * blocks[0].places).reshape(-1, Q)
    total = 0.0
    for s in range(table.slots.n_latent):
        W = np.exp(shared.log_a[s]) * shared.mu[:, s]
        root = np.exp(shared.log_a[s]) * shared.V * np.exp(shared.log_c[s])
        cov = root @ root.T
        np.testing.assert_allclose(local.mean[:, s], shared.b[s] + x @ W, atol=1e-12)
        np.testing.assert_allclose(local.var[:, s], np.sum(x @ cov * x, axis=1), atol=1e-10)
        # KL of the loadings N(W, cov) to their prior N(0, a^2 I)
        prior = np.exp(2.0 * shared.log_a[s]) * np.eye(Q)
        total += gaussian_kl(W, cov, prior)
    assert penalty_of_weights(shared) == pytest.approx(total)


def gaussian_kl(mean: Array, cov: Array, prior: Array) -> float:
    """Return KL(N(mean, cov) || N(0, prior))."""
    solved = np.linalg.solve(prior, cov)
    gain = np.linalg.slogdet(prior)[1] - np.linalg.slogdet(cov)[1]
    square = float(mean @ np.linalg.solve(prior, mean))
    return 0.5 * (float(np.trace(solved)) + square - mean.size + float(gain))


def test_whitened_and_unwhitened_weights_have_the_same_penalty(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = mixed_table(rng, 8)
    shared = random_shared(rng, table, Q, M, True)
    inducing = Inducing.of(shared)
    rho = float(np.exp(shared.log_rho))
    root = block_diag(np.sqrt(rho) * np.eye(Q), inducing.L)
    prior = block_diag(rho * np.eye(Q), inducing.K + JITTER * np.eye(M))
    total = 0.0
    for s in range(table.slots.n_latent):
        spread = root @ shared.V * np.exp(shared.log_c[s])
        total += gaussian_kl(root @ shared.mu[:, s], spread @ spread.T, prior)
    assert penalty_of_weights(shared) == pytest.approx(total, rel=1e-8)


def test_the_penalty_of_places_is_that_of_normals(seed: int) -> None:
    rng = np.random.default_rng(seed)
    places = random_places(rng, 5, 3)
    for n in range(5):
        cov = np.diag(np.exp(2.0 * places.log_sd[n]))
        kl = gaussian_kl(places.m[n], cov, np.eye(3))
        assert row_penalties(places)[n] == pytest.approx(kl)


def test_priors_are_of_what_a_kernel_has(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = mixed_table(rng, 6)
    for inducing, linear, names in (
        (M, True, ("log_ell", "log_rho")),
        (M, False, ("log_ell",)),
        (0, True, ()),
    ):
        shared = random_shared(rng, table, Q, inducing, linear)
        shared.log_rho = np.array(0.7)
        wide = np.where(np.isin(table.slots.column, [2, 3, 4]), 9.0, 1.0)
        squares = float(np.sum(shared.log_a**2 / wide))
        squares += sum(float(np.sum(getattr(shared, name) ** 2)) for name in names)
        assert log_prior(shared, table.slots) == pytest.approx(-0.5 * squares)


# Newton's step ---------------------------------------------------------------------------------


def test_weights_of_gaussian_cells_are_at_their_best_after_one_step(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = np.where(rng.random((15, 4)) < 0.3, np.nan, rng.normal(size=(15, 4)))
    table = number_table(y)
    shared, places = random_shared(rng, table, Q, M, True), random_places(rng, 15, Q)
    blocks = blocks_of(rng, table, Q, 2, cuts=(6, 11))
    local, _ = renew_basis(shared, looked(blocks, places, shared, table), Inducing.of(shared))
    update_weights(shared, local, table.slots, 1.0, 1.0, 30, None)
    _, found = gradient_of(blocks, places, shared, table)
    np.testing.assert_allclose(found["mu"], 0.0, atol=1e-8)
    np.testing.assert_allclose(found["log_c"], 0.0, atol=1e-8)


def test_the_gradient_after_the_step_is_that_of_the_collapsed_bound(seed: int) -> None:
    """By the envelope theorem: weights at their best are no function that must be followed."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random((7, 3)) < 0.2, np.nan, rng.normal(size=(7, 3)))
    table = number_table(y)
    shared, places = random_shared(rng, table, Q, M, True), random_places(rng, 7, Q)
    blocks = blocks_of(rng, table, Q, 2)

    def collapsed() -> float:
        local = looked(blocks, places, shared, table)
        update_weights(shared, local, table.slots, 1.0, 1.0, 30, None)
        return bound(blocks, places, shared, table)

    collapsed()
    rows, found = gradient_of(blocks, places, shared, table)
    for array, gradient in (
        (places.m, rows.m),
        (places.log_sd, rows.log_sd),
        (shared.Z, found["Z"]),
        (shared.log_ell, found["log_ell"]),
        (shared.log_a, found["log_a"]),
        (shared.log_noise, found["log_noise"]),
    ):
        expected = differences(collapsed, array)
        np.testing.assert_allclose(gradient, expected, atol=1e-6 * np.abs(expected).max())


def test_the_step_of_weights_solves_newtons_equations(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = mixed_table(rng, 15)
    shared, places = random_shared(rng, table, Q, M, True), random_places(rng, 15, Q)
    local = looked(blocks_of(rng, table, Q, 2), places, shared, table)
    scale, step = 3.0, 0.7
    mu, log_c = newton(shared, local, scale, step, 40, None)
    B, cells = local[0].features.B, local[0].cells
    Psi = B @ shared.V.T
    for s in range(table.slots.n_latent):
        a = np.exp(shared.log_a[s])
        weight = scale / 2.0
        Lambda = np.eye(Q + M) + weight * a * a * (Psi.T * cells.curvature[:, s]) @ Psi
        g = weight * a * Psi.T @ cells.g1[:, s] - shared.mu[:, s]
        expected = shared.mu[:, s] + step * np.linalg.solve(Lambda, g)
        np.testing.assert_allclose(mu[:, s], expected, rtol=1e-6, atol=1e-8)
        best = np.maximum(1.0 - 2.0 * weight * a * a * cells.g2[:, s] @ (B * B), 1.0)
        mixed = (1.0 - step) * np.exp(-2.0 * shared.log_c[s]) + step * best
        np.testing.assert_allclose(np.exp(-2.0 * log_c[s]), mixed, rtol=1e-9)


def test_no_columns_part_of_the_bound_falls_by_a_step(seed: int) -> None:
    """Logits far off make a whole step too long."""
    rng = np.random.default_rng(seed)
    table = mixed_table(rng, 40)
    shared, places = random_shared(rng, table, Q, M, True), random_places(rng, 40, Q)
    shared.log_a += 2.0
    shared.mu *= 4.0
    blocks = blocks_of(rng, table, Q, 2)
    for _ in range(4):
        local = looked(blocks, places, shared, table)
        before = bound(blocks, places, shared, table)
        after = update_weights(shared, local, table.slots, 1.0, 1.0, 10, None)
        fresh = looked(blocks, places, shared, table)
        assert np.array_equal(after[0].cells.value, fresh[0].cells.value)
        assert bound(blocks, places, shared, table) >= before - 1e-6


def test_a_step_that_is_too_long_is_halved(seed: int) -> None:
    """Three times the way to the best of Gaussian cells is worse than none, half of that is not."""
    rng = np.random.default_rng(seed)
    table = number_table(rng.normal(size=(15, 4)))
    shared, places = random_shared(rng, table, Q, M, True), random_places(rng, 15, Q)
    local = looked(blocks_of(rng, table, Q, 2), places, shared, table)
    local = update_weights(shared, local, table.slots, 1.0, 1.0, 40, None)
    best = shared.mu
    shared.mu = best + rng.normal(size=best.shape)
    expected = 1.5 * best - 0.5 * shared.mu
    local = [EvaluatedBlock.of(one.block, one.features, shared, table.slots) for one in local]
    update_weights(shared, local, table.slots, 1.0, 3.0, 40, None)
    np.testing.assert_allclose(shared.mu, expected, atol=1e-6)


def test_another_basis_keeps_the_variances_along_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = mixed_table(rng, 20)
    shared, places = random_shared(rng, table, Q, M, True), random_places(rng, 20, Q)
    local = looked(blocks_of(rng, table, Q, 2, cuts=(7,)), places, shared, table)
    cov = (shared.V * np.exp(2.0 * shared.log_c[0])) @ shared.V.T
    Psi = np.concatenate([one.features.B @ shared.V.T for one in local])
    turned, inducing = renew_basis(shared, local, Inducing.of(shared))
    along = np.diag(shared.V.T @ cov @ shared.V)
    np.testing.assert_allclose(np.exp(2.0 * shared.log_c[0]), along)
    moment = shared.V.T @ Psi.T @ Psi @ shared.V
    np.testing.assert_allclose(moment, np.diag(np.diag(moment)), atol=1e-9 * moment.max())
    found = np.concatenate([one.features.B for one in turned])
    np.testing.assert_allclose(found, Psi @ shared.V, atol=1e-10)
    again = Inducing.of(shared)
    for name in ("linear", "root", "V"):
        np.testing.assert_allclose(getattr(inducing, name), getattr(again, name), atol=1e-9)


# Rows and columns ------------------------------------------------------------------------------


def test_sums_over_batches_are_those_of_the_table(seed: int) -> None:
    """A batch's gradient, its cells scaled up, is unbiased for the whole."""
    rng = np.random.default_rng(seed)
    table = mixed_table(rng, 12)
    shared, places = random_shared(rng, table, Q, M, True), random_places(rng, 12, Q)
    blocks = blocks_of(rng, table, Q, 2, cuts=(3, 6, 9))
    rows, whole = gradient_of(blocks, places, shared, table)
    parts = [gradient_of([block], places, shared, table, scale=4.0) for block in blocks]
    for name, value in whole.items():
        mean = sum(part[1][name] for part in parts) / 4.0
        np.testing.assert_allclose(mean, value, atol=1e-9, err_msg=name)
    # Places are of one row each: theirs need no scale.
    for name in ("m", "log_sd"):
        found = np.concatenate([getattr(part[0], name) for part in parts])
        np.testing.assert_allclose(found, getattr(rows, name), atol=1e-10)
    seen = looked(blocks, places, shared, table)
    total = sum(4.0 * bound_of_rows([one], places) for one in seen) / 4.0
    assert total == pytest.approx(bound_of_rows(seen, places))


def test_the_order_of_rows_changes_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = mixed_table(rng, 10)
    shared, places = random_shared(rng, table, Q, M, True), random_places(rng, 10, Q)
    block = blocks_of(rng, table, Q, 2)[0]
    order = rng.permutation(10)
    stacked = np.concatenate([order, 10 + order])
    turned = ObservedTable(table.kinds, table.lower[:, order], table.upper[:, order])
    again = RowBlock(
        np.arange(10),
        turned.rows(slice(None)),
        block.places[:, order],
        {d: normals[stacked] for d, normals in block.logits.items()},
    )
    moved = places.of(order)
    assert bound([again], moved, shared, turned) == pytest.approx(
        bound([block], places, shared, table), abs=1e-9
    )
    rows, of_shared = gradient_of([block], places, shared, table)
    rows_again, again_shared = gradient_of([again], moved, shared, turned)
    np.testing.assert_allclose(rows_again.m, rows.m[order], atol=1e-9)
    for name, value in of_shared.items():
        np.testing.assert_allclose(again_shared[name], value, atol=1e-8, err_msg=name)


def test_the_order_of_columns_changes_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = mixed_table(rng, 10)
    shared, places = random_shared(rng, table, Q, M, True), random_places(rng, 10, Q)
    block = blocks_of(rng, table, Q, 2)[0]
    order = np.array([3, 0, 4, 2, 1])
    slots = table.slots
    s = np.concatenate([np.arange(S.start, S.stop) for S in (slots.spans[d] for d in order)])
    kinds = tuple(table.kinds[d] for d in order)
    turned = ObservedTable(kinds, table.lower[order], table.upper[order])
    again = Shared(
        Z=shared.Z,
        log_ell=shared.log_ell,
        log_rho=shared.log_rho,
        log_a=shared.log_a[s],
        b=shared.b[s],
        log_noise=shared.log_noise[order],
        steps=shared.steps,
        mu=shared.mu[:, s],
        log_c=shared.log_c[s],
        V=shared.V,
    )
    logits = {0: block.logits[3]}
    block_again = RowBlock(block.rows, turned.rows(slice(None)), block.places, logits)
    assert bound([block_again], places, again, turned) == pytest.approx(
        bound([block], places, shared, table), abs=1e-9
    )


def test_without_amplitude_a_column_is_its_intercept(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = mixed_table(rng, 6)
    shared = random_shared(rng, table, Q, M, True)
    shared.log_a[:] = -40.0
    features = Features.of(rng.normal(size=(7, Q)), shared, Inducing.of(shared))
    mean, var = moments(features, shared)
    np.testing.assert_allclose(mean, np.broadcast_to(shared.b, mean.shape), atol=1e-12)
    np.testing.assert_allclose(var, 1e-12)
