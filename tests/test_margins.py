"""Margins: increasing maps between a column's unit and the latent scale."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy.interpolate import CubicHermiteSpline, PchipInterpolator
from scipy.special import ndtr, ndtri

from glfm_cli.links.margins import (
    FEWEST_FOR_TAILS,
    Margin,
    Reflected,
    Smooth,
    count_rank_margin,
    monotone_cubic,
    rank_margin,
    standard_moment,
)
from glfm_cli.links.shapes import Identity, Log, Log1p, Logit, Shape, Softplus, Sqrt

POSITIVE = st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=30)
SHAPES = {
    "affine": Identity(),
    "affine in other units": Identity(2.0**20),
    "softplus": Softplus(3.0),
    "log": Log(),
    "log1p": Log1p(),
    "logit": Logit(0.0, 2e3),
    "sqrt": Sqrt(),
}


def smooth(shape: Shape, sample: np.ndarray, reflect: bool) -> Margin:
    if reflect:
        return Reflected(Smooth.calibrate(shape, 1.5e3 - sample), 1.5e3)
    return Smooth.calibrate(shape, sample)


@pytest.mark.parametrize("reflect", [False, True])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
@settings(max_examples=20)
@given(values=POSITIVE)
@example(values=[1e-3, 1e3])
def test_value_undoes_latent(shape: Shape, reflect: bool, values: list[float]) -> None:
    x = np.array(values)
    assume(np.ptp(x) > 1e-3)
    margin = smooth(shape, x, reflect)
    np.testing.assert_allclose(margin.to_value(margin.to_latent(x)), x, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("reflect", [False, True])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
@settings(max_examples=20)
@given(values=POSITIVE)
def test_log_slope_is_the_slope(shape: Shape, reflect: bool, values: list[float]) -> None:
    x = np.array(values)
    assume(np.ptp(x) > 1e-1)
    margin = smooth(shape, x, reflect)
    h = 1e-5 * x
    slope = (margin.to_latent(x + h) - margin.to_latent(x - h)) / (2.0 * h)
    # Subtraction costs digits where the reflected value or the slope is comparatively small.
    np.testing.assert_allclose(np.exp(margin.log_slope(x)), slope, rtol=1e-3, atol=1e-9)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
@settings(max_examples=20)
@given(values=POSITIVE)
def test_calibration_gives_mean_0_and_sd_1(shape: Shape, values: list[float]) -> None:
    x = np.array(values)
    assume(np.ptp(x) > 1e-3)
    y = Smooth.calibrate(shape, x).to_latent(x)
    assert abs(y.mean()) < 1e-6
    assert abs(y.std() - 1.0) < 1e-6


@settings(max_examples=20)
@given(values=st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=FEWEST_FOR_TAILS - 1))
def test_rank_margin_of_few_values_passes_through_its_normal_scores(values: list[float]) -> None:
    x = np.array(values)
    assume(np.min(np.diff(np.unique(x)), initial=1.0) > 1e-290 and np.ptp(x) > 0.0)
    margin = rank_margin(x)
    y = margin.to_latent(x)
    np.testing.assert_allclose(margin.to_value(y), x, rtol=1e-9, atol=1e-290)
    assert abs(y.mean()) < 1e-9
    assert abs(y.std() - 1.0) < 1e-9
    mid_rank = np.array([np.sum(x < v) + 0.5 * np.sum(x == v) for v in x]) / x.size
    scores = ndtri(mid_rank)
    np.testing.assert_allclose(y, (scores - scores.mean()) / scores.std(), atol=1e-9)


def test_rank_margin_gives_unseen_values_the_density_of_their_law() -> None:
    rng = np.random.default_rng(6)
    unseen = rng.exponential(size=4000)
    for n, loss in ((60, 0.2), (2000, 0.03)):
        margin = rank_margin(rng.exponential(size=n))
        y = margin.to_latent(unseen)
        log_density = -0.5 * y**2 - 0.5 * np.log(2.0 * np.pi) + margin.log_slope(unseen)
        assert -unseen.mean() - loss < log_density.mean()


def test_the_gap_before_an_outlier_is_its_own() -> None:
    x = np.append(np.random.default_rng(2).exponential(size=99), 50.0)
    values = np.sort(x)
    y = np.array([ndtri(97.0 / 100.0), ndtri(2.5 / 100.0)])
    rank_scores = ndtri((np.arange(100) + 0.5) / 100.0)
    inside = rank_margin(x).to_value(y / rank_scores.std())
    assert values[95] < inside[0] < values[98]
    low = rank_margin(-x).to_value(-y[:1] / rank_scores.std())
    assert -values[98] < low[0] < -values[95]


def test_curves_between_knots_are_those_of_scipy() -> None:
    rng = np.random.default_rng(4)
    x, y = (np.cumsum(rng.exponential(size=30) ** 3) for _ in range(2))
    d = PchipInterpolator(x, y).derivative()(x)
    d[[0, -1]] = np.diff(y)[[0, -1]] / np.diff(x)[[0, -1]]  # which end straight here
    at = np.linspace(x[0], x[-1], 500)
    np.testing.assert_allclose(monotone_cubic(x, y, at), CubicHermiteSpline(x, y, d)(at))
    y[10:13] = y[10]
    assert np.all(np.diff(monotone_cubic(x, y, at)) >= 0.0)
    y -= y[10]
    y[10:13] = 1e-309 * np.arange(3)
    assert np.all(np.diff(monotone_cubic(x, y, at)) >= 0.0)


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), n=st.integers(FEWEST_FOR_TAILS, 300))
def test_rank_margin_stays_near_the_empirical_distribution(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.exponential(size=n), np.full(n // 3, 0.7)])
    margin = rank_margin(x)
    values, counts = np.unique(x, return_counts=True)
    upto = (np.cumsum(counts) - 0.5 * counts) / x.size
    scores = ndtri(upto)
    m, sd = (f(np.repeat(scores, counts)) for f in (np.mean, np.std))
    found = ndtr(m + sd * margin.to_latent(values))
    cells = 0.15 * x.size * 0.4 * sd + 10.0  # between knots, at most
    assert np.abs(found - upto).max() < 0.5 * cells / x.size
    shared = np.flatnonzero(counts >= 3) + np.array([-1, 0, 1])
    exact = np.concatenate([[0, values.size - 1], shared])
    np.testing.assert_allclose(found[exact], upto[exact], atol=1e-9)


def test_rank_margin_gives_far_values_the_probability_of_a_pareto_tail() -> None:
    margin = rank_margin(np.random.default_rng(3).exponential(size=400))
    top, end = margin.x[-1] * margin.unit, margin.y[-1]
    x = top * np.array([1.5, 3.0, 30.0, 1e6])
    slope = np.exp(margin.tails[1]) / margin.unit
    beyond = ndtr(-end)
    hazard = np.exp(-0.5 * end**2) / np.sqrt(2.0 * np.pi) / beyond
    expected = beyond / (1.0 + slope * hazard * (x - top))
    np.testing.assert_allclose(ndtr(-margin.to_latent(x)), expected, rtol=1e-9)
    assert margin.to_latent(np.array([1e300]))[0] < 40.0


def test_rank_margin_is_increasing_and_continued_beyond_the_sample() -> None:
    margin = rank_margin(np.array([1.0, 2.0, 2.0, 5.0, 100.0]))
    at = np.linspace(-50.0, 300.0, 4001)
    y = margin.to_latent(at)
    assert np.all(np.diff(y) > 0.0)
    assert np.all((margin.to_value(y) >= 1.0) & (margin.to_value(y) <= 100.0))
    between = at[(np.abs(at[:, None] - margin.x * margin.unit) > 1e-2).all(axis=1)]
    slope = (margin.to_latent(between + 1e-4) - margin.to_latent(between - 1e-4)) / 2e-4
    np.testing.assert_allclose(np.exp(margin.log_slope(between)), slope, rtol=2e-7)


def test_rank_margin_counts_the_cells_below_its_sample() -> None:
    x = np.array([1.0, 2.0, 3.0, 4.0])
    ranks = ndtri((6.0 + np.arange(4) + 0.5) / 10.0)
    y = rank_margin(x, n_below=6).to_latent(x)
    np.testing.assert_allclose(np.diff(y) / np.diff(y)[0], np.diff(ranks) / np.diff(ranks)[0])


def test_neighbouring_counts_are_cut_at_the_empirical_distribution() -> None:
    x = np.repeat([0.0, 1.0, 2.0, 3.0], [50, 30, 15, 5])
    cuts = count_rank_margin(x).to_latent(np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(cuts, ndtri([0.5, 0.8, 0.95]))


@settings(max_examples=20)
@given(values=st.lists(st.integers(0, 3000), min_size=1, max_size=40))
def test_every_count_has_an_interval(values: list[int]) -> None:
    margin = count_rank_margin(np.array(values, dtype=float))
    assert np.all(np.diff(margin.to_latent(np.arange(1.0, 3100.0))) > 0.0)


EXTREME = [
    [5.0],
    [5.0, 5.0],
    [1e300, 1e300],
    [5e-324, 1e-323],
    [5e-324, 1e300],
    [1e308, 1.7e308],
    [1.7e308, 1e-300, 3.0],
    [1e16, 1e16 + 2],
    [1e-320] * 3,
]


@pytest.mark.parametrize("values", EXTREME)
@pytest.mark.parametrize("shape", [Identity(), Softplus(1.0), Log(), Log1p(), Sqrt(), None])
def test_extreme_values_have_finite_latent_values(values: list[float], shape: Shape | None) -> None:
    x = np.array(values)
    margin = rank_margin(x) if shape is None else Smooth.calibrate(shape, x)
    assert np.all(np.isfinite(margin.to_latent(x)))
    assert np.all(np.isfinite(margin.log_slope(x)))
    assert np.all(np.isfinite(margin.to_value(np.array([-1e300, -9.0, 0.0, 9.0, 1e300]))))
    assert np.all(np.isnan(margin.to_latent(np.array([np.nan]))))


def test_ends_of_the_domain_are_the_ends_of_the_latent_scale() -> None:
    x = np.array([0.2, 0.5, 0.9])
    logit = Smooth.calibrate(Logit(0.0, 1.0), x)
    assert logit.to_latent(np.array([-1.0, 0.0])).tolist() == [-np.inf, -np.inf]
    assert logit.to_latent(np.array([1.0, np.inf])).tolist() == [np.inf, np.inf]
    root = Smooth.calibrate(Sqrt(), x)
    assert root.to_latent(np.array([0.0]))[0] == root.latent_range[0] > -np.inf


def test_skewness_is_the_third_standardised_moment() -> None:
    x = np.array([1.0, 2.0, 2.0, 9.0])
    z = (x - x.mean()) / x.std()
    assert standard_moment(x, 3) == pytest.approx(np.mean(z**3))
    assert standard_moment(x * 1e300, 3) == pytest.approx(np.mean(z**3))
    assert standard_moment(np.full(5, 3.0), 3) == 0.0
