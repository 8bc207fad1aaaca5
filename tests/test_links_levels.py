"""Links of categorical and ordinal columns: the probit laws, their draws, and the thresholds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import log_ndtr, ndtr

from glfm_cli._kernels._links import sum_log_interval
from glfm_cli.encoding import EncodedColumn
from glfm_cli.errors import NumericalError
from glfm_cli.links import LinkConfig, make_link
from glfm_cli.links.law import normal
from glfm_cli.schema import Column, ColumnType

pytestmark = pytest.mark.kernels

CATEGORICAL, ORDINAL = ColumnType.CATEGORICAL, ColumnType.ORDINAL


def link_of(x: Any, kind: ColumnType, n_levels: int, config: LinkConfig | None = None) -> Any:
    x = np.array(x, dtype=np.float64)
    levels = tuple(str(r) for r in range(n_levels))
    encoded = EncodedColumn(Column("c", type=kind), 0, x, ~np.isnan(x), np.isnan(x), levels)
    return make_link(encoded, config or LinkConfig())


def utilities(link: Any, eta: np.ndarray) -> np.ndarray:
    full = np.zeros(link.slot.size)
    full[link.slot >= 0] = eta[link.slot[link.slot >= 0]]
    return full


def hermite(e: np.ndarray) -> np.ndarray:
    """P(x = r) by 80-node Gauss-Hermite quadrature over the winner's utility."""
    t, w = np.polynomial.hermite_e.hermegauss(80)
    others = [np.delete(np.arange(e.size), r) for r in range(e.size)]
    p = [w @ np.prod(ndtr(t[:, None] + e[r] - e[j][None, :]), axis=1) for r, j in enumerate(others)]
    return np.array(p) / w.sum()


def latent(eta: np.ndarray) -> np.ndarray:
    return eta[:, 0] if eta.shape[1] == 1 else eta


@pytest.mark.parametrize("n_levels", [2, 3, 5, 20])
def test_categorical_probabilities_agree_with_quadrature(n_levels: int, seed: int) -> None:
    link = link_of([1.0, 1.0, 0.0], CATEGORICAL, n_levels)
    assert link.reference == 1
    eta = 2.0 * np.random.default_rng(seed).normal(size=(60, n_levels - 1))
    p = link.probabilities(normal(latent(eta), 1.0), {})
    expected = np.array([hermite(utilities(link, e)) for e in eta])
    np.testing.assert_allclose(p, expected, atol=1e-9)
    likely = expected > 1e-10
    np.testing.assert_allclose(p[likely], expected[likely], rtol=1e-5)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-14)
    x = np.zeros(60)
    log_p = link.log_density(x, normal(latent(eta), 1.0), {})
    seen = expected[:, 0] > 1e-10
    np.testing.assert_allclose(log_p[seen], np.log(expected[seen, 0]), atol=1e-5)


@pytest.mark.parametrize("n_levels", [2, 4])
@pytest.mark.parametrize("var", [1.0, 3.0])
def test_categorical_samples_have_the_stated_probabilities(n_levels: int, var: float, seed: int):
    link = link_of([0.0, 2.0, 1.0, 1.0], CATEGORICAL, n_levels + 1)
    eta = np.tile(np.linspace(-1.0, 1.5, n_levels), (40_000, 1))
    x = link.sample(normal(eta, var), {}, np.random.default_rng(seed))
    p = link.probabilities(normal(eta[:1], var), {})[0]
    share = np.bincount(x.astype(int), minlength=p.size) / x.size
    assert np.all(np.abs(share - p) < 5.0 * np.sqrt(p * (1 - p) / x.size) + 1e-9)


def test_rare_levels_have_accurate_log_probabilities() -> None:
    link = link_of([0.0, 1.0, 2.0, 2.0], CATEGORICAL, 3)
    for eta in ([-20.0, 3.0], [-40.0, 10.0], [-9.0, -1.0]):
        t = np.linspace(-60.0, 60.0, 400_001)
        others = log_ndtr(t - eta[1]) + log_ndtr(t)
        log_f = stats.norm.logpdf(t, eta[0]) + others
        expected = log_f.max() + np.log(np.exp(log_f - log_f.max()).sum() * (t[1] - t[0]))
        got = link.log_density(np.zeros(1), normal(np.array([eta]), 1.0), {})
        np.testing.assert_allclose(got, expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("eta", "level"),
    [([0.5], 0), ([0.5], 1), ([0.4, -0.7], 0), ([0.4, -0.7], 2), ([-1, 1, 0.2], 0)],
)
def test_categorical_draw_agrees_with_rejection(eta: Any, level: int, seed: int) -> None:
    n_levels = len(eta) + 1
    link = link_of([n_levels - 1.0], CATEGORICAL, n_levels)
    n, rng = 20_000, np.random.default_rng(seed)
    free = rng.standard_normal((400_000, n_levels)) + utilities(link, np.array(eta, dtype=float))
    kept = free[np.argmax(free, axis=1) == level][:, :-1]
    y = np.zeros((n, n_levels + 1))
    rows = latent(np.tile(np.array(eta, dtype=float), (n, 1)))
    link.augment(np.full(n, float(level)), rows, 1.0, {}, rng, y[:, 1:-1])
    drawn = y[:, 1:-1]
    for s in range(len(eta)):
        assert stats.ks_2samp(drawn[:, s], kept[:, s]).pvalue > 1e-4
    if len(eta) > 1:
        assert stats.ks_2samp(drawn[:, 0] - drawn[:, 1], kept[:, 0] - kept[:, 1]).pvalue > 1e-4
    assert np.all(y[:, [0, -1]] == 0.0)


@pytest.mark.parametrize("n_levels", [2, 3, 4, 5])
def test_utilities_drawn_given_levels_drawn_from_them_are_normal(n_levels: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 6000
    link = link_of([n_levels - 1.0], CATEGORICAL, n_levels)
    eta = 1.5 * rng.standard_normal((n, n_levels - 1))
    free = rng.standard_normal((n, n_levels))
    x = np.argmax(free + np.column_stack([eta, np.zeros(n)]), axis=1).astype(float)
    gap = rng.random(n) < 0.1
    x[gap] = np.nan
    y, params = np.full((n, n_levels - 1), 7.0), dict[str, Any]()
    link.augment(x, eta, 1.0, params, rng, y)
    assert np.all(y[gap] == 7.0)
    y, eta, x = y[~gap], eta[~gap], x[~gap].astype(int)
    for s in range(n_levels - 1):
        assert stats.kstest(y[:, s] - eta[:, s], "norm").pvalue > 1e-4
    squares, count = params["reference"]
    assert count == x.size
    assert 1e-4 < stats.chi2.cdf(squares, count) < 1.0 - 1e-4
    for s in range(n_levels - 1):
        if n_levels > 2:
            assert np.all(np.argmax(y[x == s], axis=1) == s)


@pytest.mark.parametrize("n_levels", [3, 4])
def test_categorical_draw_reaches_levels_that_are_hardly_possible(n_levels: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    link = link_of([n_levels - 1.0], CATEGORICAL, n_levels)
    n = 1000
    eta = np.where(np.arange(n_levels - 1) == 0, -6.0, 2.0) * np.ones((n, 1))
    y = np.zeros((n, n_levels - 1))
    link.augment(np.zeros(n), eta, 1.0, {}, rng, y)
    assert np.all(np.argmax(y, axis=1) == 0)
    assert np.ptp(y[:, 0]) > 1.0


def test_a_reference_level_that_won_bounds_by_a_normal_above_the_others(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 3000
    link = link_of([2.0], CATEGORICAL, 3)
    y = rng.normal(-0.5, 1.0, size=(n, 2))
    lower, upper = np.zeros((n, 2)), np.zeros((n, 2))
    link.bound(np.full(n, 2.0), {}, y, rng, lower, upper)
    assert np.all(lower == -np.inf)
    assert np.all(upper[:, 0] == upper[:, 1])
    share = stats.norm.sf(upper[:, 0]) / stats.norm.sf(y.max(axis=1))
    assert stats.kstest(share, "uniform").pvalue > 1e-4


def test_categorical_draw_keeps_the_observed_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_levels = 500
    x = rng.integers(0, n_levels, 60).astype(float)
    x[:5] = np.nan
    link = link_of(x, CATEGORICAL, n_levels)
    params, y = link.start(x)
    eta = 5.0 * rng.standard_normal((60, n_levels - 1))
    link.augment(x, eta, 1.0, params, rng, y)
    assert np.all(y[:5] == 0.0)
    for row in range(5, 60):
        column = link.slot[int(x[row])]
        assert column < 0 or np.argmax(y[row]) == column
    p = link.probabilities(normal(eta, 1.0), params)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)


def test_categorical_draw_refuses_what_is_not_finite() -> None:
    link = link_of([0.0, 1.0, 2.0], CATEGORICAL, 3)
    eta = np.zeros((3, 2))
    eta[1, 0] = np.nan
    with pytest.raises(NumericalError, match="row 2"):
        link.augment(np.arange(3.0), eta, 1.0, {}, np.random.default_rng(0), np.zeros((3, 2)))


def test_single_level_needs_no_latent_column() -> None:
    x, rng = np.array([0.0, np.nan]), np.random.default_rng(0)
    link = link_of(x, CATEGORICAL, 1)
    params, y = link.start(x)
    assert (link.n_latent, y.shape, link.known) == (0, (2, 0), True)
    link.augment(x, np.empty((2, 0)), 1.0, params, rng, y)
    assert link.probabilities(normal(np.empty((2, 0)), 1.0), params).tolist() == [[1.0], [1.0]]
    assert link.log_density(x[:1], normal(np.empty((1, 0)), 1.0), params).tolist() == [0.0]
    assert link.sample(normal(np.empty((2, 0)), 1.0), params, rng).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("n_levels", [1, 2, 3, 7])
@pytest.mark.parametrize("fixed", [True, False])
def test_ordinal_link_stays_consistent(n_levels: int, fixed: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = np.append(np.minimum(rng.integers(0, 3, 200), n_levels - 1), np.nan).astype(float)
    link = link_of(x, ORDINAL, n_levels, LinkConfig(first_threshold_fixed=fixed))
    params, y = link.start(x)
    assert not (fixed and n_levels > 1) or params["thresholds"][0] == 0.0
    eta = rng.standard_normal(201)
    for _ in range(30):
        link.update_params(x, eta, params, rng, True)
        link.augment(x, eta, 1.0, params, rng, y)
    theta = params["thresholds"]
    assert np.all(np.diff(theta) > 0.0)
    assert not (fixed and n_levels > 1) or theta[0] == 0.0
    assert np.array_equal(np.searchsorted(theta, y[:-1, 0]), x[:-1])
    assert y[-1, 0] == 0.0
    p = link.probabilities(normal(eta, 1.0), params)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
    by_row = np.log(p[np.arange(200), x[:-1].astype(int)])
    np.testing.assert_allclose(
        link.log_density(x[:-1], normal(eta[:-1], 1.0), params), by_row, atol=1e-9
    )
    cuts = np.concatenate([[-np.inf], theta, [np.inf]])
    assert sum_log_interval(x, eta, cuts) == pytest.approx(by_row.sum(), abs=1e-7)
    drawn = link.sample(normal(np.full(20_000, 0.3), 1.0), params, rng)
    share = np.bincount(drawn.astype(int), minlength=n_levels) / drawn.size
    q = link.probabilities(normal(np.array([0.3]), 1.0), params)[0]
    assert np.all(np.abs(share - q) < 5.0 * np.sqrt(q * (1 - q) / drawn.size) + 1e-9)


@pytest.mark.parametrize("width", [1e-7, 1e-4, 0.03, 0.4])
def test_narrow_intervals_have_their_log_probability_wherever_they_lie(width: float) -> None:
    """Against the density at the middle, integrated by Gaussian nodes."""
    node, weight = np.polynomial.legendre.leggauss(12)
    for middle in (-31.0, -7.0, -2.5, 0.01, 3.2, 8.5, 30.0):
        cuts = np.array([-np.inf, -0.5 * width, 0.5 * width, np.inf])
        at = middle + 0.5 * width * node
        top = np.max(-0.5 * at * at)
        mass = 0.5 * width * (weight @ np.exp(-0.5 * at * at - top))
        expected = top + np.log(mass) - 0.5 * np.log(2.0 * np.pi)
        found = sum_log_interval(np.ones(1), np.array([-middle]), cuts)
        assert found == pytest.approx(expected, rel=1e-8, abs=1e-6)


def test_step_is_tuned_only_when_asked(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, eta = np.arange(30.0) % 4, rng.standard_normal(30)
    link = link_of(x, ORDINAL, 4)
    params, _ = link.start(x)
    before = params["log_step"].copy()
    link.update_params(x, eta, params, rng, False)
    assert np.array_equal(params["log_step"], before)
    link.update_params(x, eta, params, rng, True)
    assert not np.array_equal(params["log_step"], before)


def threshold_moments(x: np.ndarray, eta: np.ndarray, fixed: bool) -> np.ndarray:
    """Exact posterior means and second moments of two thresholds, on a grid."""
    first = np.zeros(1) if fixed else np.linspace(-4.0, 3.0, 281)
    second = np.linspace(-3.0, 7.0, 801)
    a, b = np.meshgrid(first, second, indexing="ij")
    log_p = -(a**2 + b**2) / 8.0
    with np.errstate(divide="ignore"):
        for code, e in zip(x, eta, strict=True):
            ends = [np.full_like(a, -np.inf), a, b, np.full_like(a, np.inf)]
            mass = ndtr(ends[int(code) + 1] - e) - ndtr(ends[int(code)] - e)
            log_p += np.log(np.maximum(mass, 0.0))
    p = np.where(b > a, np.exp(log_p - log_p[b > a].max()), 0.0)
    p /= p.sum()
    return np.array([(p * f).sum() for f in (a, b, a * a, b * b, a * b)])


@pytest.mark.parametrize("fixed", [True, False])
def test_threshold_update_has_the_exact_posterior(fixed: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = np.array([0.0, 1, 1, 2, 0, 2, 1, 0])
    eta = rng.normal(0.5, 0.8, 8)
    link = link_of(x, ORDINAL, 3, LinkConfig(first_threshold_fixed=fixed))
    params, _ = link.start(x)
    params["log_step"][0] = np.log(1.0)
    draws = np.empty((15_000, 5))
    for i in range(len(draws)):
        link.update_params(x, eta, params, rng, False)
        a, b = params["thresholds"]
        draws[i] = a, b, a * a, b * b, a * b
    batches = draws.reshape(50, -1, 5).mean(axis=1)
    error = np.maximum(batches.std(axis=0, ddof=1) / np.sqrt(50), 1e-12)
    z = (draws.mean(axis=0) - threshold_moments(x, eta, fixed)) / error
    moving = [1, 3] if fixed else [0, 1, 2, 3, 4]
    assert np.all(np.abs(z[moving]) < 4.5)


class Scripted:
    """Random numbers of tries: their steps, and how unlikely each may be."""

    def __init__(self, steps: list[Any], unlikely: list[float]) -> None:
        self.steps, self.unlikely = iter(steps), iter(unlikely)

    def standard_normal(self, size: int) -> np.ndarray:
        return np.array(next(self.steps))

    def standard_exponential(self) -> float:
        return next(self.unlikely)


@pytest.mark.parametrize("back", [-0.6, 0.9])
def test_a_try_of_thresholds_is_judged_from_where_the_last_has_led(back: float, seed: int) -> None:
    x, eta = np.array([0.0, 1, 1, 2]), np.random.default_rng(seed).normal(0.5, 0.8, 4)
    link = link_of(x, ORDINAL, 3, LinkConfig(first_threshold_fixed=False))

    def log_target(first: float, gap: float) -> float:
        """Of the first threshold and the log of what the second is above it; prior N(0, 4)."""
        theta = np.array([first, first + np.exp(gap)])
        cuts = np.concatenate([[-np.inf], theta, [np.inf]])
        code = x.astype(int)
        mass = ndtr(cuts[code + 1] - eta) - ndtr(cuts[code] - eta)
        return float(np.log(mass).sum() - theta @ theta / 8.0 + gap)

    def moved(unlikely: float) -> np.ndarray:
        params, _ = link.start(x)
        params["thresholds"][:], params["log_step"][0] = [0.2, 1.2], 0.0
        script: Any = Scripted([[-1.5, 0.7], [back, -0.4]], [1e9, unlikely])  # one is taken
        link.update_params(x, eta, params, script, False)
        return params["thresholds"]

    once, twice = (-1.3, 0.7), (-1.3 + back, 0.3)
    ratio = log_target(*twice) - log_target(*once)
    if ratio < 0.0:
        np.testing.assert_allclose(moved(-ratio - 1e-6), [once[0], once[0] + np.exp(once[1])])
    after = moved(max(-ratio, 0.0) + 1e-6)
    np.testing.assert_allclose(after, [twice[0], twice[0] + np.exp(twice[1])])


def test_squares_of_reference_utilities_follow_their_scale(seed: int) -> None:
    link, rng = link_of([0, 1, 2, 0], CATEGORICAL, 3), np.random.default_rng(seed)
    x = np.array([0.0, 1, 2, 0])
    params, y = link.start(x)
    link.augment(x, np.zeros((4, 2)), 1.0, params, rng, y)
    squares, number = link.scale_group(params)
    assert number == 4
    link.rescale(params, 1.5)
    assert link.scale_group(params) == pytest.approx((2.25 * squares, 4))


def test_thresholds_move_with_their_scale_by_their_prior() -> None:
    """log p of thresholds times a factor less log p: normals of variance 2.5, in any order."""
    link = link_of([0, 1, 2, 3], ORDINAL, 4, LinkConfig(threshold_variance=2.5))
    params = {"thresholds": np.array([-0.4, 0.5, 1.9])}
    squares, number = link.scale_group(params)
    moving = 2 if link.config.first_threshold_fixed else 3
    theta = params["thresholds"][3 - moving :].copy()
    law = stats.norm(0.0, 2.5**0.5)
    link.rescale(params, 1.4)
    ratio = law.logpdf(1.4 * theta).sum() - law.logpdf(theta).sum()
    assert (number, -0.5 * squares * (1.4**2 - 1.0)) == pytest.approx((moving, ratio))
    assert params["thresholds"][3 - moving :] == pytest.approx(1.4 * theta)
