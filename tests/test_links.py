"""Links: cells to Gaussian pseudo-observations and back, for the five column types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

from glfm_cli.encoding import EncodedColumn
from glfm_cli.errors import GlfmError, SchemaError, TableError
from glfm_cli.links import LinkConfig, make_link
from glfm_cli.links.expectation import Nodes, integrate_steps
from glfm_cli.links.law import normal
from glfm_cli.links.margins import Interpolated, Smooth
from glfm_cli.links.shapes import Log
from glfm_cli.schema import Column, ColumnType, Role, Transform

pytestmark = pytest.mark.kernels

REAL, POSITIVE, COUNT = ColumnType.REAL, ColumnType.POSITIVE, ColumnType.COUNT
CATEGORICAL, ORDINAL = ColumnType.CATEGORICAL, ColumnType.ORDINAL
TRANSFORMS = [*Transform, None]


def link_of(x: Any, kind: ColumnType, config: LinkConfig | None = None, **more: Any) -> Any:
    x = np.array(x, dtype=np.float64)
    levels = tuple(str(r) for r in range(more.pop("n_levels", 0)))
    missing = np.isnan(x)
    encoded = EncodedColumn(Column("c", type=kind, **more), 0, x, ~missing, missing, levels)
    return make_link(encoded, config or LinkConfig(atoms=False))


def sample_of(kind: ColumnType, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    match kind:
        case ColumnType.REAL:
            return rng.normal(3.0, 2.0, 150) ** 2
        case ColumnType.POSITIVE:
            return np.concatenate([np.zeros(30), rng.gamma(2.0, 3.0, 120)])
        case _:
            return rng.poisson(4.0, 150).astype(float)


NUMERIC = [
    (kind, transform, bounds)
    for kind in (REAL, POSITIVE, COUNT)
    for transform in TRANSFORMS
    for bounds in ((None, None), (0.0, 200.0))
    if not (transform is Transform.LOGIT and bounds[1] is None)
    if not (kind is POSITIVE and transform is Transform.LOGIT)
]


@pytest.mark.parametrize(("kind", "transform", "bounds"), NUMERIC)
def test_numeric_link_round_trip_and_support(kind: Any, transform: Any, bounds: Any, seed: int):
    x = np.append(sample_of(kind, seed), np.nan)
    link = link_of(x, kind, transform=transform, bounds=bounds)
    rng = np.random.default_rng(seed)
    params, y = link.start(x)
    assert y.shape == (151, 1)
    assert y[-1, 0] == 0.0
    np.testing.assert_allclose(link.value(y[:-1, 0]), x[:-1], rtol=1e-9, atol=1e-9)
    eta = rng.standard_normal(151)
    link.augment(x, eta, 0.7, params, rng, y)
    assert y[-1, 0] == 0.0
    np.testing.assert_allclose(link.value(y[:-1, 0]), x[:-1], rtol=1e-9, atol=1e-9)
    drawn = link.sample(normal(3.0 * eta, 2.0), params, rng)
    low, high = link.latent_bounds
    assert np.all(drawn >= (0.0 if kind is not REAL else bounds[0] or -np.inf))
    assert np.all(drawn <= (bounds[1] or np.inf))
    assert low < high
    if kind is COUNT:
        assert np.all(drawn == np.floor(drawn))
    assert np.all(np.diff(link.value(np.linspace(-9.0, 9.0, 2001))) >= 0.0)


def integral(link: Any, eta: float, var: float) -> np.ndarray:
    """Mass and moments by brute force, split where the value jumps."""
    sd = np.sqrt(var + link.noise)
    low = max(link.latent_bounds[0], eta - 16 * sd)
    high = min(link.latent_bounds[1], eta + 16 * sd)
    grid = np.linspace(low, high, 200_001)
    middle = 0.5 * (grid[1:] + grid[:-1])
    weight = stats.norm.pdf(middle, eta, sd) * np.diff(grid)
    u = link.standard(link.value(middle))
    return np.array([weight.sum(), weight @ u, weight @ (u * u)])


@pytest.mark.parametrize(("kind", "transform", "bounds"), NUMERIC)
def test_moments_agree_with_integration(kind: Any, transform: Any, bounds: Any, seed: int):
    link = link_of(sample_of(kind, seed), kind, transform=transform, bounds=bounds)
    eta = np.array([-2.0, 1.3])
    smooth = kind is not COUNT and link.margin.sharpness > 0 and getattr(link, "cut", 0.0) == 0.0
    for var in (0.04, 1.0):
        got = np.stack(link.standard_moments(eta, var, {}), axis=1)
        expected = np.stack([integral(link, e, var) for e in eta])
        # At jumps and kinks the brute force sum itself is good to the grid's width only.
        rtol, atol = (1e-6, 1e-7) if smooth else (1e-4, 1e-4)
        np.testing.assert_allclose(got, expected, rtol=rtol, atol=atol)
        again = np.stack(link.standard_moments(eta, np.full(2, var), {}), axis=1)
        np.testing.assert_allclose(again, got, rtol=1e-9, atol=1e-12)
        mass, first, _ = link.moments(eta, var, {})
        np.testing.assert_allclose(first, link.center * mass + link.scale * got[:, 1])


def test_tabulated_moments_agree_with_direct_ones(seed: int) -> None:
    for kind in (POSITIVE, COUNT):
        link = link_of(sample_of(kind, seed), kind, transform=Transform.NONE)
        eta = np.random.default_rng(seed).normal(size=5000)
        few = np.stack(link.standard_moments(eta[:50], 0.3, {}))
        many = np.stack(link.standard_moments(eta, 0.3, {}))[:, :50]
        np.testing.assert_allclose(many, few, atol=5e-7)
        var = np.random.default_rng(seed + 1).uniform(0.28, 0.32, 5000)
        few = np.stack(link.standard_moments(eta[:50], var[:50], {}))
        many = np.stack(link.standard_moments(eta, var, {}))[:, :50]
        np.testing.assert_allclose(many, few, atol=5e-6)
        near = np.where(np.arange(5000) % 2 == 0, 0.3, np.nextafter(0.3, 1.0))  # all but equal
        few = np.stack(link.standard_moments(eta[:50], near[:50], {}))
        many = np.stack(link.standard_moments(eta, near, {}))[:, :50]
        np.testing.assert_allclose(many, few, atol=5e-7)
        var = np.exp(np.random.default_rng(seed + 2).uniform(np.log(0.05), np.log(2.0), 5000))
        few = [link.standard_moments(eta[i : i + 1], var[i], {}) for i in range(20)]
        many = np.stack(link.standard_moments(eta, var, {}))[:, :20]
        np.testing.assert_allclose(many.T, np.array(few)[:, :, 0], rtol=5e-5, atol=5e-6)


def test_many_counts_are_summed_as_well_as_few(seed: int) -> None:
    x = np.random.default_rng(seed).poisson(50_000, 200) * np.array([1.0, 3.0]).repeat(100)
    link = link_of(x, COUNT, transform=Transform.LOG)
    eta = np.array([-1.0, 0.0, 1.5])
    got = np.stack(link.standard_moments(eta, 0.5, {}), axis=1)
    np.testing.assert_allclose(got, [integral(link, e, 0.5) for e in eta], rtol=1e-6, atol=1e-6)


def test_narrow_laws_far_apart_are_integrated_each_where_it_is(seed: int) -> None:
    """Farther apart than common nodes reach: means and variances follow the slope of the map."""
    rng = np.random.default_rng(seed)
    link = link_of(np.exp(rng.normal(size=300)), REAL, transform=Transform.LOG)
    eta, sd = np.append(rng.uniform(-3.0, 3.0, 60), [-3.0, 3.0]), 1e-4
    mass, first, second = link.standard_moments(eta, sd**2, {})
    np.testing.assert_allclose(mass, 1.0)
    np.testing.assert_allclose(first, link.standard(link.value(eta)), atol=1e-6)
    slope = (link.value(eta + sd) - link.value(eta - sd)) / (2.0 * sd * link.scale)
    np.testing.assert_allclose(second - first**2, (slope * sd) ** 2, rtol=1e-3, atol=1e-11)


def test_many_counts_have_the_width_of_their_steps(seed: int) -> None:
    """Counts too many to be summed one by one, of a law hardly wider than a step."""
    x = np.random.default_rng(seed).integers(0, 4_000, 300)
    link = link_of(x, COUNT, transform=Transform.NONE)
    sd = 1.2 * float(np.diff(link.cut(np.array([3_000.0, 3_001.0])))[0])
    eta = link.margin.to_latent(np.array([2_500.0, 3_620.2, 3_650.9]))
    _, first, second = link.standard_moments(eta, sd**2, {})
    count = np.arange(4_100.0)
    p = np.diff(ndtr((link.cut(np.arange(4_101.0)) - eta[:, None]) / sd), axis=1)
    exact = p @ count
    np.testing.assert_allclose(link.center + link.scale * first, exact, atol=1e-5)
    spread = np.sum(p * (count - exact[:, None]) ** 2, axis=1)
    np.testing.assert_allclose((second - first**2) * link.scale**2, spread, rtol=1e-4)


@pytest.mark.parametrize("transform", [Transform.NONE, Transform.RANK])
def test_clamped_values_have_the_law_of_values_cut_off(transform: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = np.clip(rng.normal(3.0, 1.4, size=400), 1.0, 5.0)
    link = link_of(x, ColumnType.REAL, transform=transform, bounds=(1.0, 5.0)).clamped()
    eta, var = np.array([-2.0, 0.0, 1.7, 40.0]), np.array([0.5, 1.2, 0.3, 1.0])
    drawn = link.value(eta + np.sqrt(var) * rng.normal(size=(40_000, 4)))
    mass, first, second = link.moments(eta, var, {})
    np.testing.assert_allclose(mass, 1.0)
    np.testing.assert_allclose(first, drawn.mean(axis=0), atol=0.03)
    np.testing.assert_allclose(second, (drawn**2).mean(axis=0), atol=0.2)
    sampled = link.sample(normal(np.repeat(eta[:, None], 3, axis=1).T[:, [2]], 0.3), {}, rng)
    assert ((sampled >= 1.0) & (sampled <= 5.0)).all()
    assert first[3] == pytest.approx(5.0)


def test_moments_survive_large_offsets(seed: int) -> None:
    x = 1.7e9 + np.random.default_rng(seed).normal(size=300)
    link = link_of(x, REAL, transform=Transform.NONE)
    mass, first, second = link.standard_moments(np.zeros(1), 0.25, {})
    sd = np.sqrt(second / mass - (first / mass) ** 2) * link.scale
    assert sd[0] == pytest.approx(0.5 * x.std(), rel=1e-4)


@pytest.mark.parametrize(
    ("kind", "transform"),
    [(k, t) for k in (REAL, POSITIVE) for t in (Transform.NONE, Transform.RANK, Transform.LOG)],
)
def test_log_density_integrates_to_one(kind: Any, transform: Any, seed: int) -> None:
    x = sample_of(kind, seed)
    link = link_of(x, kind, transform=transform)
    # Along g, so that a steep piece of the margin is resolved like a flat one.
    at = np.unique(np.concatenate([link.value(np.linspace(-8.0, 8.0, 100_001)), x]))
    at = np.concatenate(
        [at[0] - np.geomspace(500.0, 1e-6, 4000), at, at[-1] + np.geomspace(1e-6, 900.0, 4000)]
    )
    at = at[at > (0.0 if kind is POSITIVE or transform is Transform.LOG else -np.inf)]
    middle = 0.5 * (at[1:] + at[:-1])
    eta, var = np.full(middle.size, -0.2), 0.6
    density = np.exp(link.log_density(middle, normal(eta, var), {}))
    if kind is POSITIVE:
        density = density * (middle >= link.smallest)
    total = density @ np.diff(at)
    if kind is POSITIVE:
        total += np.exp(link.log_density(np.zeros(1), normal(eta[:1], var), {})[0])
    assert total == pytest.approx(1.0, abs=2e-4)


@pytest.mark.parametrize("transform", [t for t in TRANSFORMS if t is not Transform.LOGIT])
def test_count_probabilities_sum_to_one_and_fit_the_cdf(transform: Any, seed: int) -> None:
    link = link_of(sample_of(COUNT, seed), COUNT, transform=transform)
    c = np.arange(0.0, 4000.0)
    p = np.exp(link.log_density(c, normal(np.full(c.size, 0.4), 0.8), {}))
    assert p.sum() == pytest.approx(1.0, abs=1e-6)
    if transform not in (Transform.RANK, None):
        exact = [p.sum(), p @ link.standard(c), p @ link.standard(c) ** 2]
        got = np.ravel(link.standard_moments(np.array([0.4]), 0.8, {}))
        np.testing.assert_allclose(got, exact, rtol=1e-6, atol=1e-6)
    inner = (c >= link.lower) & (c < min(link.upper, 8.0))
    got = link.cdf(c[inner] + 0.5, normal(np.full(inner.sum(), 0.4), 0.8), {})
    np.testing.assert_allclose(got, np.cumsum(p)[inner], atol=1e-12)


@pytest.mark.parametrize(("kind", "transform", "bounds"), NUMERIC)
def test_sample_follows_the_truncated_cdf(kind: Any, transform: Any, bounds: Any, seed: int):
    link = link_of(sample_of(kind, seed), kind, transform=transform, bounds=bounds)
    n, eta, var = 20_000, np.full(20_000, 1.0), np.full(20_000, 0.9)
    x = link.sample(normal(eta, var), {}, np.random.default_rng(seed))
    low = ndtr((link.latent_bounds[0] - 1.0) / np.sqrt(0.9 + link.noise))
    mass = link.moments(eta[:1], 0.9, {})[0][0]
    for at in np.quantile(x, [0.1, 0.5, 0.9]):
        p = np.clip(link.cdf(np.array([at]), normal(eta[:1], 0.9), {})[0] - low, 0.0, mass) / mass
        # The nearest value from above: quantiles of draws are themselves draws.
        assert abs(np.mean(x <= at) - p) < 5.0 * np.sqrt(0.25 / n)


def test_log_density_is_finite_in_far_tails() -> None:
    eta = np.array([1e3, -1e3, 1e5])
    for kind, x in ((COUNT, [0.0, 3.0, 7.0]), (POSITIVE, [0.0, 3.0, 7.0]), (REAL, [0.0, 3.0, 7.0])):
        assert np.all(np.isfinite(link_of(x, kind).log_density(np.array(x), normal(eta, 1.0), {})))
    ordinal = link_of([0, 1, 2], ORDINAL, n_levels=3)
    params, _ = ordinal.start(np.arange(3.0))
    assert np.all(np.isfinite(ordinal.log_density(np.arange(3.0), normal(eta, 1.0), params)))
    categorical = link_of([0, 1, 2], CATEGORICAL, n_levels=3)
    pairs = np.array([[1e3, -1e3], [-1e3, 1e3], [50.0, 1e3]])
    assert np.all(np.isfinite(categorical.log_density(np.arange(3.0), normal(pairs, 1.0), {})))


def test_link_noise_is_drawn_from_its_conditional(seed: int) -> None:
    x = np.full(20_000, 4.0)
    x[0] = 2.0
    config = LinkConfig(link_noise=0.5)
    link = link_of(x, REAL, config, transform=Transform.NONE)
    assert not link.known
    params, y = link.start(x)
    total = y[1, 0]
    link.augment(x, np.full(x.size, 1.0), 0.25, params, np.random.default_rng(seed), y)
    v = 1.0 / (1.0 / 0.25 + 1.0 / 0.5)
    law = stats.norm(v * (1.0 / 0.25 + total / 0.5), np.sqrt(v))
    assert stats.kstest(y[1:, 0], law.cdf).pvalue > 1e-4


def test_zeros_with_link_noise_are_drawn_below_the_cut(seed: int) -> None:
    x = np.concatenate([np.zeros(20_000), [1.0, 2.0, 3.0]])
    link = link_of(x, POSITIVE, LinkConfig(link_noise=0.3), transform=Transform.LOG)
    params, y = link.start(x)
    link.augment(x, np.full(x.size, 0.5), 0.4, params, np.random.default_rng(seed), y)
    rng = np.random.default_rng(seed + 1)
    free = 0.5 + np.sqrt(0.4) * rng.standard_normal(2_000_000)
    below = free[free + np.sqrt(0.3) * rng.standard_normal(free.size) < link.cut]
    assert stats.ks_2samp(y[:20_000, 0], below).pvalue > 1e-4


def test_rank_is_chosen_for_skewed_columns_unless_forbidden(seed: int) -> None:
    x = np.random.default_rng(seed).exponential(size=300) ** 2
    assert link_of(x, POSITIVE).margin.sharpness == 0.0
    assert link_of(x, POSITIVE, transform=Transform.NONE).margin.sharpness > 0.0
    assert link_of(x, POSITIVE, LinkConfig(rank_skewness=np.inf)).margin.sharpness > 0.0
    assert np.all(link_of([3.0, 3.0], COUNT).value(np.linspace(-5, 5, 11)) == 3.0)


LOG_NORMAL = np.exp(stats.norm.ppf((np.arange(400) + 0.5) / 400))


@pytest.mark.parametrize(
    ("x", "config", "log"),
    [
        (LOG_NORMAL, LinkConfig(), True),
        (LOG_NORMAL**0.6, LinkConfig(), True),
        (LOG_NORMAL**0.4, LinkConfig(), False),  # spread too little to matter
        (LOG_NORMAL, LinkConfig(rank_skewness=np.inf, rank_kurtosis=0.0), False),
        (LOG_NORMAL[::10], LinkConfig(), False),  # too few to tell
        (np.append(LOG_NORMAL, 0.0), LinkConfig(), False),
        (np.append(LOG_NORMAL, np.full(30, 2.0)), LinkConfig(), False),
        (-np.log1p(-stats.norm.cdf(np.log(LOG_NORMAL))), LinkConfig(), False),  # exponential
        (np.exp(np.sinh(1.5 * np.log(LOG_NORMAL)) / 2.0), LinkConfig(), False),  # heavier tails
        (np.exp(np.sin(np.linspace(-1.5, 1.5, 400))), LinkConfig(), False),  # two humps
    ],
)
def test_positive_columns_with_normal_logarithms_are_seen_by_these(
    x: np.ndarray, config: LinkConfig, log: bool
) -> None:
    margin = link_of(x, POSITIVE, config).margin
    assert (isinstance(margin, Smooth) and isinstance(margin.shape, Log)) is log


def test_logarithms_are_not_taken_of_reflected_or_transformed_columns() -> None:
    for more in ({"transform": Transform.RANK}, {"reflect": 100.0}):
        margin = link_of(LOG_NORMAL, POSITIVE, **more).margin
        assert isinstance(margin, Interpolated)


def test_values_seen_by_logarithms_are_put_in_one_sd_of_these_beyond_the_largest_at_most(
    seed: int,
) -> None:
    link, v = link_of(LOG_NORMAL, POSITIVE), np.log(LOG_NORMAL)
    reach = np.exp(v.max() + v.std())
    far = normal(np.full(3, 9.0), 0.1)
    np.testing.assert_allclose(link.sample(far, {}, np.random.default_rng(seed)), reach)
    np.testing.assert_allclose(link.expected(far, {}), reach, rtol=1e-4)
    near = normal(np.full(100_000, link.margin.to_latent(np.array(reach))), 0.5)
    draws = link.sample(near, {}, np.random.default_rng(seed))
    assert np.mean(draws > 0.999 * reach) == pytest.approx(0.5, abs=0.01)
    assert link.expected(near.take(slice(1)), {})[0] == pytest.approx(draws.mean(), rel=0.01)
    assert link.upper_end(np.array([0.99 * reach, 1.01 * reach]))[1] == np.inf
    kept, column = link.constants(), Column("c", type=POSITIVE)
    assert link.from_constants(column, 0, kept, LinkConfig()).reach == pytest.approx(reach)
    del kept["reach"]  # as fits made before had none
    assert link.from_constants(column, 0, kept, LinkConfig()).reach == np.inf
    assert link_of(sample_of(POSITIVE, seed), POSITIVE).reach == np.inf


def test_values_known_to_lie_above_limits_have_no_such_end() -> None:
    ends = np.full((LOG_NORMAL.size, 2), np.nan)
    ends[-1] = 1e4, np.inf
    x = np.append(LOG_NORMAL[:-1], np.nan)
    seen, column = ~np.isnan(x), Column("c", type=POSITIVE, transform=Transform.LOG)
    link: Any = make_link(EncodedColumn(column, 0, x, seen, ~seen, (), ends=ends), LinkConfig())
    assert link.reach == np.inf


@pytest.mark.parametrize("upper", [0.5, 5e3])
def test_values_below_a_limit_or_in_a_band_have_it(upper: float) -> None:
    """What a few draws put far above all cells would be all of a mean."""
    ends = np.full((LOG_NORMAL.size, 2), np.nan)
    ends[-50:] = 0.0, upper
    x = np.append(LOG_NORMAL[:-50], np.full(50, np.nan))
    seen, column = ~np.isnan(x), Column("c", type=POSITIVE, transform=Transform.LOG)
    link: Any = make_link(EncodedColumn(column, 0, x, seen, ~seen, (), ends=ends), LinkConfig())
    largest = max(LOG_NORMAL[:-50].max(), upper)
    assert largest < link.reach < 100.0 * largest
    np.testing.assert_allclose(link.expected(normal(np.full(3, 9.0), 0.1), {}), link.reach, 1e-4)


def test_paper_constants_leave_the_scale_at_one(seed: int) -> None:
    x = sample_of(POSITIVE, seed)[30:]
    scaled = link_of(x, POSITIVE, transform=Transform.NONE)
    paper = link_of(x, POSITIVE, LinkConfig(link="paper"), transform=Transform.NONE)
    assert paper.margin.shape.scale == 1.0
    assert scaled.margin.shape.scale == pytest.approx(x.std() / 2)


def test_ranks_go_on_beyond_the_sample_but_not_beyond_a_shared_end(seed: int) -> None:
    x = np.random.default_rng(seed).lognormal(size=300)
    link = link_of(x, ColumnType.POSITIVE, transform=Transform.RANK)
    law = normal(np.full((20_000, 1), 2.0), 1.0)
    draws = link.sample(law, {}, np.random.default_rng(seed))
    assert 0.05 < np.mean(draws > x.max()) < 0.5
    assert (draws > 0.0).all()
    capped = link_of(np.minimum(x, 3.0), ColumnType.POSITIVE, transform=Transform.RANK)
    assert capped.sample(law, {}, np.random.default_rng(seed)).max() == 3.0


def test_bounds_inside_the_tails_of_ranks_hold_no_share_of_their_own(seed: int) -> None:
    x = np.minimum(np.random.default_rng(seed).lognormal(size=300), 9.0)
    x = np.append(x[x < 9.0], 8.9)
    link = link_of(x, POSITIVE, transform=Transform.RANK, bounds=(None, 9.5))
    draws = link.sample(normal(np.full((20_000, 1), 2.0), 1.0), {}, np.random.default_rng(seed))
    assert np.mean(draws > 8.9) > 0.001
    assert draws.max() <= 9.5
    assert np.mean(draws == 9.5) == 0.0


def test_flat_columns_are_seen_by_ranks(seed: int) -> None:
    flat = np.random.default_rng(seed).uniform(1.0, 5.0, 300)
    assert isinstance(link_of(flat, REAL).margin, Interpolated)
    assert not isinstance(link_of(flat, REAL, transform=Transform.NONE).margin, Interpolated)
    humped = np.random.default_rng(seed).normal(size=300)
    assert not isinstance(link_of(humped, REAL).margin, Interpolated)
    assert not isinstance(link_of(flat, REAL, moment="date").margin, Interpolated)
    time = link_of(flat, REAL, moment="date", role=Role.TIME)
    assert isinstance(time.margin, Interpolated)


@pytest.mark.parametrize("transform", [Transform.NONE, Transform.RANK, Transform.LOG])
def test_a_zero_that_none_was_seen_of_is_rare_not_impossible(transform: Any, seed: int) -> None:
    x = np.random.default_rng(seed).gamma(2.0, 3.0, 120)
    link, law = link_of(x, POSITIVE, transform=transform), normal(np.full(1, -0.2), 0.6)
    zero, least = np.zeros(1), np.array([link.smallest])
    below = link.cdf(least, law, {})
    assert np.exp(link.log_density(zero, law, {})) == pytest.approx(1e-3 * below)
    assert link.cdf(zero, law, {}) == 0.0


def test_a_column_of_zeros_is_completed_by_zeros() -> None:
    link = link_of([0.0, 0.0], POSITIVE)
    assert np.all(link.value(np.linspace(-5, 5, 11)) == 0.0)


@pytest.mark.parametrize(
    ("x", "kind", "more"),
    [
        ([1.0, -2.0], REAL, {"transform": Transform.LOG}),
        ([1.0, -2.0], REAL, {"transform": Transform.SQRT}),
        ([0.5, 2.0], REAL, {"transform": Transform.LOGIT}),
        ([0.5, 9.0], POSITIVE, {"transform": Transform.LOG, "reflect": 9.0}),
    ],
)
def test_values_outside_the_domain_are_named(x: Any, kind: Any, more: Any) -> None:
    with pytest.raises(TableError) as caught:
        link_of(x, kind, **more)
    assert (caught.value.column, caught.value.row) == ("c", 2)
    assert caught.value.value is not None


def test_impossible_requests_are_refused() -> None:
    for attempt in (
        lambda: link_of([1.0, 2.0], COUNT, transform=Transform.LOGIT),
        lambda: LinkConfig(link="other"),
        lambda: LinkConfig(link_noise=-1.0),
        lambda: LinkConfig(threshold_variance=0.0),
    ):
        with pytest.raises(SchemaError):
            attempt()
    with pytest.raises(GlfmError):
        link_of([np.nan], CATEGORICAL, n_levels=0)


@pytest.mark.parametrize("n", [1, 7, 8, 511, 1030])
@pytest.mark.parametrize("end", [np.inf, 0.7])
def test_steps_are_weighed_by_the_probabilities_beyond_them(n: int, end: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    at, weights = np.sort(rng.uniform(-20.0, min(end, 20.0), n)), rng.random((n, 2))
    eta, sd = 3.0 * rng.standard_normal(9), rng.gamma(4.0, 0.3, 9)
    p = ndtr((eta[:, None] - at) / sd[:, None]) - ndtr((eta - end) / sd)[:, None]
    found = integrate_steps(Nodes(at, weights), eta, sd, end)
    np.testing.assert_allclose(found, p @ weights, rtol=1e-10, atol=1e-15)
