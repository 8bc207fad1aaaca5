"""Every derivative of the latent Gaussian process against finite differences and plain formulas."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from clgp_tables import (
    KINDS,
    Array,
    blocks_of,
    bound,
    differences,
    gradient_of,
    mixed_table,
    random_places,
    random_shared,
)
from scipy.special import log_ndtr, logsumexp
from scipy.stats import norm

from glfm_cli.latent.clgp.features import JITTER, Features, Inducing, rbf
from glfm_cli.latent.clgp.likelihoods import Expected, expected
from glfm_cli.latent.clgp.table import ColumnKind, ObservedTable
from glfm_cli.links.intervals import log_interval

N, Q, M, T = 6, 2, 4, 3
SHARED = ("Z", "log_ell", "log_rho", "log_a", "b", "log_noise", "steps", "mu", "log_c")


@pytest.mark.parametrize(("linear", "inducing"), [(True, M), (False, M), (True, 0)])
def test_every_gradient_is_that_of_central_differences(
    seed: int, linear: bool, inducing: int
) -> None:
    rng = np.random.default_rng(seed)
    table = mixed_table(rng, N)
    shared = random_shared(rng, table, Q, inducing, linear)
    places = random_places(rng, N, Q)
    blocks = blocks_of(rng, table, Q, T, cuts=(4,))
    rows, found = gradient_of(blocks, places, shared, table)
    held = {"log_rho"} if not (linear and inducing) else set()
    free = {"b": table.slots.has_intercept, "log_noise": table.slots.has_noise}
    for name in SHARED:
        if name in held:
            assert found[name] == 0.0
            continue
        array = getattr(shared, name)
        expected_ = differences(lambda: bound(blocks, places, shared, table), array)
        expected_ = np.where(free.get(name, True), expected_, 0.0)
        size = np.abs(expected_).max(initial=1e-3)
        np.testing.assert_allclose(found[name], expected_, rtol=0, atol=1e-6 * size, err_msg=name)
    for name in ("m", "log_sd"):
        expected_ = differences(lambda: bound(blocks, places, shared, table), getattr(places, name))
        size = np.abs(expected_).max()
        np.testing.assert_allclose(getattr(rows, name), expected_, rtol=0, atol=1e-6 * size)


def test_gradients_of_rows_under_certain_weights_are_those_of_differences(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = mixed_table(rng, N)
    shared = random_shared(rng, table, Q, M, True)
    shared.log_c = shared.log_c[:, :0]
    places = random_places(rng, N, Q)
    blocks = blocks_of(rng, table, Q, T)
    rows, _ = gradient_of(blocks, places, shared, table, of_weights=False)
    for name in ("m", "log_sd"):
        expected_ = differences(lambda: bound(blocks, places, shared, table), getattr(places, name))
        size = np.abs(expected_).max()
        np.testing.assert_allclose(getattr(rows, name), expected_, rtol=0, atol=1e-6 * size)


def test_the_penalty_of_places_has_its_weight(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = mixed_table(rng, N)
    shared, places = random_shared(rng, table, Q, M, True), random_places(rng, N, Q)
    blocks = blocks_of(rng, table, Q, T)
    none, whole = (gradient_of(blocks, places, shared, table, penalty=p)[0] for p in (0.0, 1.0))
    np.testing.assert_allclose(none.m - whole.m, places.m, atol=1e-12)
    pull = np.exp(2.0 * places.log_sd) - 1.0
    np.testing.assert_allclose(none.log_sd - whole.log_sd, pull, atol=1e-12)


def test_a_rest_at_its_floor_does_not_move(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = mixed_table(rng, N)
    shared = random_shared(rng, table, Q, M, False)
    inducing = Inducing.of(shared)
    features = Features.of(rng.normal(size=(5, Q)), shared, inducing)
    features.r[2] = 1e-10
    none = np.zeros(features.B.shape)
    dX, _ = features.backward(none, none, np.ones(5), shared, inducing)
    assert np.array_equal(dX[2], np.zeros(Q))
    assert np.all(dX[[0, 1, 3, 4]] != 0.0)


def test_features_have_the_kernel_as_their_product(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = mixed_table(rng, N)
    shared = random_shared(rng, table, Q, M, True)
    inducing = Inducing.of(shared)
    at_inducing = Features.of(shared.Z, shared, inducing)
    ell, rho = np.exp(shared.log_ell), np.exp(shared.log_rho)
    apart = (shared.Z[:, None, :] - shared.Z) / ell
    K = np.exp(-0.5 * np.sum(apart**2, axis=2))
    np.testing.assert_allclose(rbf(shared.Z, shared.Z, ell), K, atol=1e-12)
    found = at_inducing.B @ at_inducing.B.T
    np.testing.assert_allclose(found, K + rho * shared.Z @ shared.Z.T, atol=1e-5)
    np.testing.assert_allclose(at_inducing.r, 2.0 * JITTER, atol=1e-6)
    far = Features.of(np.full((1, Q), 50.0), shared, inducing)
    np.testing.assert_allclose(far.r, 1.0 + JITTER)


# Cells ---------------------------------------------------------------------------------------


def one_column(
    kind: ColumnKind, lower: Array, upper: Array, mean: Array, var: Array, normals: Array | None
) -> tuple[Expected, ObservedTable]:
    """Return what the cells of one column say of mean and var (n, K)."""
    table = ObservedTable((kind,), lower[None, :], upper[None, :])
    rng = np.random.default_rng(0)
    shared = random_shared(rng, table, 1, 1, False)
    shared.log_noise[:] = np.log(0.4) * (kind.kind == "number")
    shared.steps[:] = np.array([-1.0, -0.2, 0.3])[: shared.steps.size]
    logits = {} if normals is None else {0: normals}
    return expected(table.rows(slice(None)), mean, var, shared, table.slots, logits), table


S_N = 0.4**0.5
THETA = np.array([-1.0, -1.0 + np.exp(-0.2), -1.0 + np.exp(-0.2) + np.exp(0.3)])
LOG_P: dict[str, Callable[[Array, float, float], Array]] = {
    "point": lambda f, low, high: norm.logpdf(low, f, S_N),
    "interval": lambda f, low, high: log_interval((low - f) / S_N, (high - f) / S_N),
    "below": lambda f, low, high: log_ndtr((high - f) / S_N),
    "ordered": lambda f, low, high: log_interval(
        np.append(-np.inf, THETA)[int(low)] - f, np.append(THETA, np.inf)[int(low)] - f
    ),
    "binary": lambda f, low, high: -np.logaddexp(0.0, -f if low > 0 else f),
}
CASES = [
    ("point", KINDS[0], 0.7, 0.7),
    ("interval", KINDS[0], 0.2, 0.9),
    ("interval", KINDS[0], -1.5, -1.2),
    ("below", KINDS[0], -np.inf, 0.4),
    ("ordered", KINDS[2], 0.0, 0.0),
    ("ordered", KINDS[2], 2.0, 2.0),
    ("ordered", KINDS[2], 3.0, 3.0),
    ("binary", KINDS[4], 0.0, 0.0),
    ("binary", KINDS[4], 1.0, 1.0),
]


@pytest.mark.parametrize(("law", "kind", "low", "high"), CASES)
def test_expected_log_likelihoods_are_the_integrals(
    law: str, kind: ColumnKind, low: float, high: float
) -> None:
    mean, var = np.array([-0.8, 0.0, 1.1]), np.array([0.3, 1.2, 4.5])
    t = np.linspace(-9.0, 9.0, 4001)
    f = mean[:, None] + np.sqrt(var)[:, None] * t
    exact = np.sum(LOG_P[law](f, low, high) * norm.pdf(t) * (t[1] - t[0]), axis=1)
    ends = np.full(3, low), np.full(3, high)
    out, _ = one_column(kind, *ends, mean[:, None], var[:, None], None)
    np.testing.assert_allclose(out.value, exact, rtol=1e-4)
    np.testing.assert_allclose(out.value[:2], exact[:2], rtol=2e-6)
    assert out.columns[0] == pytest.approx(out.value.sum())


@pytest.mark.parametrize("distance", [5.0, 20.0, 300.0])
def test_intervals_far_from_the_mean_keep_their_digits(distance: float) -> None:
    for sign in (1.0, -1.0):
        ends = sorted([sign * distance, sign * (distance + 0.3)])
        lower, upper = np.array(ends[:1]), np.array(ends[1:])
        mean, var = np.zeros((1, 1)), np.full((1, 1), 1e-8)
        out, _ = one_column(KINDS[0], lower, upper, mean, var, None)
        near, far = distance / S_N, (distance + 0.3) / S_N
        log_p = log_ndtr(-near) + np.log1p(-np.exp(log_ndtr(-far) - log_ndtr(-near)))
        np.testing.assert_allclose(out.value[0], log_p, rtol=1e-6)
        assert np.isfinite(out.g2[0, 0])
        slope = np.exp(norm.logpdf(near) - log_p) - np.exp(norm.logpdf(far) - log_p)
        np.testing.assert_allclose(out.g1[0, 0], sign * slope / S_N, rtol=1e-5)


def test_softmax_is_the_mean_over_the_draws_it_is_given(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kind, n, pairs = ColumnKind("levels", 4), 5, 3
    code = np.array([0.0, 1.0, 3.0, np.nan, 2.0])
    mean, var = 2.0 * rng.normal(size=(2 * n, 3)), rng.gamma(2.0, size=(2 * n, 3))
    normals = rng.normal(size=(2 * n, pairs, 3))
    out, _ = one_column(kind, code, code, mean, var, normals)
    eps = np.concatenate([normals, -normals], axis=1)
    F = mean[:, None, :] + np.sqrt(var)[:, None, :] * eps
    F = np.concatenate([np.zeros((2 * n, 2 * pairs, 1)), F], axis=2)
    log_p = F - logsumexp(F, axis=2, keepdims=True)
    seen = ~np.isnan(np.tile(code, 2))
    y = np.nan_to_num(np.tile(code, 2)).astype(int)
    value = log_p[np.arange(2 * n), :, y].mean(axis=1) * seen
    np.testing.assert_allclose(out.value, value, atol=1e-12)
    for of, to in ((mean, out.g1), (var, out.g2)):
        change = differences(
            lambda: float(one_column(kind, code, code, mean, var, normals)[0].value.sum()), of, 1e-6
        )
        np.testing.assert_allclose(to, change, atol=1e-7)


def test_the_curvature_of_softmax_bounds_its_second_derivatives(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kind, n = ColumnKind("levels", 5), 40
    code = rng.integers(0, 5, n).astype(float)
    mean, var = 2.0 * rng.normal(size=(n, 4)), np.full((n, 4), 1e-12)
    out, _ = one_column(kind, code, code, mean, var, rng.normal(size=(n, 1, 4)))
    p = np.exp(mean) / (1.0 + np.exp(mean).sum(axis=1, keepdims=True))
    for i in range(n):
        H = np.diag(p[i]) - np.outer(p[i], p[i])
        assert np.linalg.eigvalsh(np.diag(out.curvature[i]) - H)[0] >= -1e-10
        # No larger than it must be: Gershgorin's row sums.
        np.testing.assert_allclose(out.curvature[i], np.abs(H).sum(axis=1), rtol=1e-6)


def test_missing_cells_say_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = ObservedTable(KINDS, np.full((5, 3), np.nan), np.full((5, 3), np.nan))
    S = table.slots.n_latent
    shared = random_shared(rng, table, Q, M, True)
    mean, var = rng.normal(size=(6, S)), np.ones((6, S))
    normals = {3: rng.normal(size=(6, 2, 2))}
    out = expected(table.rows(slice(None)), mean, var, shared, table.slots, normals)
    for name in ("value", "columns", "g1", "g2", "curvature", "log_noise", "steps"):
        assert not getattr(out, name).any()
