"""Truncated normals and the kernels' normal distribution function."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import trapezoid
from scipy.special import ndtr

from glfm_cli._kernels._categorical import standard_normals
from glfm_cli._kernels._links import normal_cdf
from glfm_cli._kernels._variates import fill_truncated_normal, quantiles_between

pytestmark = pytest.mark.kernels

REGIMES = [
    (-np.inf, np.inf),
    (-1.0, 1.0),
    (-0.3, 0.4),
    (-np.inf, 0.5),
    (0.0, np.inf),
    (0.3, 2.0),
    (2.0, np.inf),
    (8.0, 8.0001),
    (38.0, np.inf),
    (-40.0, -39.0),
    (-np.inf, -10.0),
    (5.0, 6.0),
    (-3.0, 0.01),
    (1.0, 1.5),
]


def draw(n: int, a: float, b: float, seed: int, mean: float = 0.0, sd: float = 1.0) -> np.ndarray:
    out = np.empty(n)
    ends = np.full(n, a), np.full(n, b)
    fill_truncated_normal(np.full(n, mean), sd, *ends, np.random.default_rng(seed), out)
    return out


@pytest.mark.parametrize(("a", "b"), REGIMES)
def test_truncated_normal_has_the_law_of_scipy(a: float, b: float, seed: int) -> None:
    x = draw(20_000, a, b, seed)
    assert np.all((x >= a) & (x <= b))
    assert stats.kstest(x, stats.truncnorm(a, b).cdf).pvalue > 1e-4


@pytest.mark.parametrize(("a", "b"), REGIMES)
def test_truncated_normal_moves_and_scales(a: float, b: float, seed: int) -> None:
    x = draw(5000, 3.0 + 0.2 * a, 3.0 + 0.2 * b, seed, mean=3.0, sd=0.2)
    assert stats.kstest((x - 3.0) / 0.2, stats.truncnorm(a, b).cdf).pvalue > 1e-4


@pytest.mark.parametrize(
    ("a", "width"), [(9.0, np.inf), (38.0, np.inf), (12.0, 0.3), (20.0, 0.05), (60.0, 0.018)]
)
def test_draws_far_out_have_the_mean_of_their_law(a: float, width: float, seed: int) -> None:
    """Of x - a, whose density is exp(-a t - t^2 / 2); a million draws tell one part in a thousand.
    """
    t = np.linspace(0.0, min(width, 60.0 / a), 200_001)
    p = np.exp(-a * t - 0.5 * t * t)
    mean = trapezoid(t * p, t) / trapezoid(p, t)
    sd = np.sqrt(trapezoid((t - mean) ** 2 * p, t) / trapezoid(p, t))
    drawn = draw(1_000_000, a, a + width, seed) - a
    assert drawn.mean() == pytest.approx(mean, abs=4.5e-3 * sd)
    assert drawn.std() == pytest.approx(sd, rel=1e-2)



def test_normals_drawn_together_are_normal_and_independent(seed: int) -> None:
    x = np.empty(1 << 18)
    standard_normals(np.random.Generator(np.random.SFC64(seed)), x)
    assert stats.kstest(x, "norm").pvalue > 1e-4
    for far in (2.0, 3.0, 4.0):
        expected = 2.0 * stats.norm.sf(far)
        assert stats.binomtest(int(np.sum(np.abs(x) > far)), x.size, expected).pvalue > 1e-4
    # Two that come from one word are as far apart as half of those drawn together.
    for apart in (1, 2, 8, 512):
        for power in (1, 2):
            found = stats.pearsonr(x[:-apart] ** power, x[apart:] ** power)
            assert found.pvalue > 1e-5
    # All quarters of the plane, and both halves of each.
    one, other = x.reshape(-1, 2, 512).swapaxes(0, 1).reshape(2, -1)
    turn = np.arctan2(other, one)
    assert stats.kstest(turn, stats.uniform(-np.pi, 2.0 * np.pi).cdf).pvalue > 1e-4


@given(
    low=st.floats(-9.0, 9.0),
    width=st.floats(2e-4, 20.0) | st.just(np.inf),
    u=st.floats(0.0, 1.0, exclude_max=True),
    flip=st.booleans(),
)
def test_quantiles_are_those_of_scipy(low: float, width: float, u: float, flip: bool) -> None:
    a, b = (-(low + width), -low) if flip else (low, low + width)
    (x,) = quantiles_between(np.array([a]), np.array([b]), np.array([u]))
    if a > 6.0 or b < -6.0:
        assert np.isnan(x)
        return
    assert a <= x <= b
    # Between the values of neighbouring probabilities: at the ends of the law Phi is coarse.
    law = stats.truncnorm(a, b)
    near = np.clip([u - 1e-11, u + 1e-11], 0.0, 1.0)
    under, over = law.ppf(near)
    assert under - 1e-10 <= x <= over + 1e-10


def test_narrow_intervals_have_no_quantiles() -> None:
    a = np.array([-0.1, 0.0, 5.9, np.nan])
    assert np.all(np.isnan(quantiles_between(a, a + 9e-5, np.full(4, 0.5))))


@pytest.mark.parametrize("a", [1e7, 1e9, 1e100, 1e300])
def test_farthest_tail_is_exponential(a: float, seed: int) -> None:
    x = draw(2000, a, np.inf, seed)
    assert np.all(np.isfinite(x) & (x >= a))
    assert np.all(draw(100, -np.inf, -a, seed) <= -a)
    if a < 1e8:
        assert stats.kstest((x - a) * a, "expon").pvalue > 1e-4


def test_far_interval_that_is_narrow_against_the_tail(seed: int) -> None:
    x = draw(1000, 1e9, 1e9 + 1e-6, seed)
    assert np.all((x >= 1e9) & (x <= 1e9 + 1e-6))


def test_interval_without_width_gives_its_end(seed: int) -> None:
    assert np.all(draw(10, 2.0, 2.0, seed) == 2.0)
    assert np.all(draw(10, -1.0, -1.0, seed, mean=1e300) == -1.0)


def test_rows_with_nan_ends_are_left_alone_and_strides_are_kept(seed: int) -> None:
    y = np.full((50, 3), 7.0)
    lower = np.where(np.arange(50) % 2 == 0, 1.0, np.nan)
    upper, rng = np.full(50, 2.0), np.random.default_rng(seed)
    fill_truncated_normal(np.zeros(50), 1.0, lower, upper, rng, y[:, 1])
    assert np.all(y[1::2] == 7.0)
    assert np.all(y[:, [0, 2]] == 7.0)
    assert np.all((y[::2, 1] > 1.0) & (y[::2, 1] < 2.0))


def test_same_seed_gives_the_same_draws(seed: int) -> None:
    assert np.array_equal(draw(1000, -1.0, 3.0, seed), draw(1000, -1.0, 3.0, seed))


def test_normal_cdf_of_the_kernels_is_accurate_in_the_tails() -> None:
    x = np.linspace(-12.0, 12.0, 100_001)
    out = np.empty_like(x)
    normal_cdf(x, out)
    np.testing.assert_allclose(out, ndtr(x), rtol=1e-11, atol=0)
