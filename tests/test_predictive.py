"""Predictive distributions against direct computation, under a law of eta that is written down."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm

from glfm_cli._kernels._predictive import mixture_quantiles, pick_columns
from glfm_cli.encoding import EncodedColumn
from glfm_cli.inference import predictive, scoring
from glfm_cli.inference.cell_traces import TRACED_CELLS, trace_cells
from glfm_cli.inference.chain import spans_of
from glfm_cli.inference.joint_draws import JointDraws
from glfm_cli.inference.one_draw import draw_jointly
from glfm_cli.inference.posterior import Draw, Posterior
from glfm_cli.inference.predictive import predict
from glfm_cli.inference.scoring import log_scores
from glfm_cli.links import LinkConfig, make_link
from glfm_cli.links.law import GivenLatent, NormalMixture, joined, normal
from glfm_cli.schema import COLUMN_TYPES, Column

pytestmark = pytest.mark.kernels

AT = (0.025, 0.5, 0.975)


class Written:
    """A latent model whose draws are laws written down: (weight, mean, var of eta, noise)."""

    def __init__(self, spans: Any) -> None:
        self.spans = spans

    def cells_law(self, draw: Any, rows: Any) -> WrittenLaw:
        return WrittenLaw(self.spans, draw, rows)

    def joint(self, draw: Any, rows: Any, rng: np.random.Generator) -> GivenLatent:
        return GivenLatent(draw[1][rows][:, 0], draw[3], self.spans)


class WrittenLaw:
    def __init__(self, spans: Any, draw: Any, rows: Any) -> None:
        self.spans, self.draw, self.rows = spans, draw, rows

    def column(self, d: int, at: Any = slice(None)) -> NormalMixture:
        weight, mean, var, noise = self.draw
        own = slice(*self.spans[d])
        mean = mean[self.rows][at][..., own]
        within = 0.0 if var is None else var[self.rows][at][..., own]
        variances = np.broadcast_to(within + noise[d], mean.shape)
        return NormalMixture(weight[self.rows][at], mean, variances)


def link_of(kind: str, x: Any, n_levels: int = 0, noise: float = 0.0, **more: Any) -> Any:
    x = np.array(x, dtype=np.float64)
    levels = tuple(str(r) for r in range(n_levels))
    column = Column("c", type=COLUMN_TYPES[kind], **more)
    observed = np.ones(x.size, dtype=bool)
    encoded = EncodedColumn(column, 0, x, observed, ~observed, levels)
    return make_link(encoded, LinkConfig(link_noise=noise))


def posterior_of(links: list[Any], draws: list[Any], chains: int = 1) -> Posterior:
    """Return draws (weight, mean, var, noise) as a posterior; thresholds as they start."""
    params = tuple(link.start(np.arange(2.0))[0] for link in links)
    made = [Draw(draw, params, {}) for draw in draws]
    each = len(made) // chains
    parts = tuple(tuple(made[c * each : (c + 1) * each]) for c in range(chains))
    spans = spans_of(links)
    return Posterior(Written(spans), tuple(links), spans, parts)


def random_draws(links: list[Any], n_rows: int, n_draws: int, seed: int, parts: int = 1) -> list:
    """Return draws with `parts` components of eta a row."""
    rng = np.random.default_rng(seed)
    n_latent = sum(link.n_latent for link in links)
    draws = []
    for _ in range(n_draws):
        weight = rng.dirichlet(np.ones(parts), n_rows)
        mean = rng.normal(size=(n_rows, parts, n_latent))
        var = None if parts == 1 else rng.gamma(2.0, 0.2, mean.shape)
        noise = np.array([1.0 if link.unit_noise else rng.gamma(4.0, 0.1) for link in links])
        draws.append((weight, mean, var, noise))
    return draws


def components(posterior: Posterior, d: int, row: int) -> list[tuple[float, float, float, Any]]:
    """Return (weight, eta, var, params) of each component of each draw for one numeric cell."""
    out = []
    for draw in posterior.draws():
        weight, mean, var, noise = draw.latent
        for c in range(weight.shape[1]):
            extra = 0.0 if var is None else var[row, c, posterior.spans[d][0]]
            eta = mean[row, c, posterior.spans[d][0]]
            out.append((weight[row, c], eta, noise[d] + extra, draw.params[d]))
    total = sum(part[0] for part in out)
    return [(weight / total, *rest) for weight, *rest in out]


SAMPLE = np.random.default_rng(7).gamma(2.0, 3.0, 80)

NUMERIC: dict[str, dict[str, Any]] = {
    "real": {"kind": "real", "x": SAMPLE - 4.0},
    "real, ranks": {"kind": "real", "x": SAMPLE, "transform": "rank"},
    "positive": {"kind": "positive", "x": SAMPLE},
    "positive, log": {"kind": "positive", "x": SAMPLE, "transform": "log"},
    "count": {"kind": "count", "x": np.floor(SAMPLE)},
    "bounded": {"kind": "real", "x": SAMPLE, "bounds": (0.0, 20.0), "transform": "none"},
    "bounded count": {"kind": "count", "x": np.floor(SAMPLE), "bounds": (0.0, 30.0)},
    "link noise": {"kind": "real", "x": SAMPLE, "noise": 0.8, "transform": "none"},
    "link noise, positive": {"kind": "positive", "x": SAMPLE, "noise": 0.8},
}


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("case", NUMERIC)
def test_numeric_quantiles_invert_the_averaged_distribution_function(
    case: str, parts: int, seed: int
) -> None:
    link = link_of(**NUMERIC[case])
    posterior = posterior_of([link], random_draws([link], 3, 5, seed, parts))
    found = predict(posterior, {0: np.arange(3)}, AT)[0].quantiles
    for row in range(3):
        mixture = components(posterior, 0, row)
        for j, p in enumerate(AT):
            assert found[row, j] == pytest.approx(quantile(link, mixture, p), rel=1e-6)


def quantile(link: Any, mixture: list[tuple[float, float, float, Any]], p: float) -> float:
    """Return the value below which a share p of a truncated mixture lies, by root finding."""
    low, high = link.latent_bounds

    def cdf(y: float) -> float:
        return sum(w * norm.cdf(y, eta, np.sqrt(v + link.noise)) for w, eta, v, _ in mixture)

    target = cdf(low) + p * (cdf(high) - cdf(low))
    y = brentq(lambda y: cdf(y) - target, max(low, -30.0), min(high, 30.0), xtol=1e-12)
    return float(link.value(np.array(y)))


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("case", NUMERIC)
def test_numeric_moments_integrate_the_averaged_distribution(
    case: str, parts: int, seed: int
) -> None:
    link = link_of(**NUMERIC[case])
    posterior = posterior_of([link], random_draws([link], 2, 4, seed, parts))
    found = predict(posterior, {0: np.array([1])}, AT)[0]
    mixture = components(posterior, 0, 1)
    low, high = max(link.latent_bounds[0], -9.0), min(link.latent_bounds[1], 9.0)
    y = np.linspace(low, high, 400_001)
    weight = sum(w * norm.pdf(y, eta, np.sqrt(v + link.noise)) for w, eta, v, _ in mixture)
    weight /= weight.sum()
    x = link.value(y)
    mean = weight @ x
    assert found.mean[0] == pytest.approx(mean, rel=2e-3)
    assert found.sd[0] == pytest.approx(np.sqrt(weight @ (x - mean) ** 2), rel=5e-3)


def test_bounds_without_any_mass_give_the_nearest_end(seed: int) -> None:
    link = link_of("real", SAMPLE, bounds=(0.0, 50.0), transform="none")
    draws = [
        (np.ones((2, 1)), np.array([[[-1e4]], [[1e4]]]), None, np.array([0.01])) for _ in range(3)
    ]
    found = predict(posterior_of([link], draws), {0: np.arange(2)}, AT)[0]
    np.testing.assert_allclose(found.mean, [0.0, 50.0])
    np.testing.assert_allclose(found.quantiles, [[0.0] * 3, [50.0] * 3])
    np.testing.assert_array_equal(found.sd, 0.0)


@pytest.mark.parametrize("lower", [-np.inf, 0.5, 90.0])
def test_quantiles_that_are_left_out_leave_the_others(lower: float) -> None:
    mean, sd = np.array([[0.0, 2.0], [1.0, 1.5]]), np.array([[1.0, 0.3], [0.2, 2.0]])
    weight, p = np.full((2, 2), 0.5), np.array([[0.1, 0.5, 0.9]] * 2)
    every, some = np.empty(p.shape), np.empty(p.shape)
    mixture_quantiles(mean, sd, weight, p, lower, np.inf, every)
    p[0, 0] = p[1, 2] = np.nan
    mixture_quantiles(mean, sd, weight, p, lower, np.inf, some)
    np.testing.assert_array_equal(some, np.where(np.isnan(p), np.nan, every))


@pytest.mark.parametrize("kind", ["categorical", "ordinal"])
@pytest.mark.parametrize("n_levels", [2, 4])
def test_level_probabilities_are_averaged_over_draws(kind: str, n_levels: int, seed: int) -> None:
    link = link_of(kind, np.arange(40) % n_levels, n_levels)
    posterior = posterior_of([link], random_draws([link], 5, 6, seed))
    found = predict(posterior, {0: np.array([0, 3])}, AT)[0]
    assert found.probabilities is not None
    expected = np.zeros((2, n_levels))
    for draw in posterior.draws():
        eta = draw.latent[1][[0, 3], 0]
        eta = eta[:, 0] if link.n_latent == 1 else eta
        expected += link.probabilities(normal(eta, 1.0), draw.params[0]) / 6
    np.testing.assert_allclose(found.probabilities, expected, rtol=1e-9)
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1.0)
    if kind == "categorical":
        assert np.all(np.isnan(found.quantiles))
        return
    codes = np.arange(n_levels)
    np.testing.assert_allclose(found.mean, expected @ codes)
    for row, p in enumerate(expected):
        inverse = [int(np.flatnonzero(np.cumsum(p) >= q - 1e-9)[0]) for q in AT]
        assert found.quantiles[row].tolist() == inverse


def test_quantiles_use_all_rows_of_all_blocks(seed: int) -> None:
    link = link_of("real", SAMPLE, transform="none")
    size = predictive.MOST_BLOCK_ROWS
    n = 2 * size + 7
    posterior = posterior_of([link], random_draws([link], n, 3, seed))
    assert predictive.rows_of_block(posterior) == size
    every = predict(posterior, {0: np.arange(n)}, AT)[0]
    rows = np.array([0, size - 1, size, n - 1])
    some = predict(posterior, {0: rows}, AT)[0]
    np.testing.assert_array_equal(every.rows, np.arange(n))
    np.testing.assert_allclose(every.quantiles[rows], some.quantiles, rtol=1e-9)
    np.testing.assert_allclose(every.mean[rows], some.mean, rtol=1e-6)


def test_threads_change_nothing(seed: int) -> None:
    n_rows = 2 * predictive.MOST_BLOCK_ROWS + 10
    links = [link_of("real", SAMPLE), link_of("ordinal", np.arange(9) % 3, 3)]
    posterior = posterior_of(links, random_draws(links, n_rows, 4, seed))
    rows = np.flatnonzero(np.random.default_rng(seed).random(n_rows) < 0.3)
    one, many = (predict(posterior, {0: rows, 1: rows}, AT, threads=n) for n in (1, 3))
    for d in (0, 1):
        assert np.array_equal(one[d].mean, many[d].mean)
        assert np.array_equal(one[d].quantiles, many[d].quantiles)


def test_no_cells_give_empty_results(seed: int) -> None:
    links = [link_of("real", SAMPLE), link_of("ordinal", np.arange(9) % 3, 3)]
    posterior = posterior_of(links, random_draws(links, 4, 2, seed))
    none = np.empty(0, dtype=np.intp)
    found = predict(posterior, {0: none, 1: none}, AT)
    assert found[0].quantiles.shape == (0, 3)
    assert found[1].probabilities is not None
    assert found[1].probabilities.shape == (0, 3)
    assert predict(posterior, {}, AT) == {}


def test_memory_grows_by_what_quantiles_need_of_each_column(seed: int) -> None:
    n_rows, n_draws = 200, 30
    needed = 3 * n_rows * n_draws * 8  # weight, eta and variance of every cell and draw

    def peak(n_columns: int) -> int:
        links = [link_of("real", SAMPLE) for _ in range(n_columns)]
        posterior = posterior_of(links, random_draws(links, n_rows, n_draws, seed))
        tracemalloc.start()
        try:
            predict(posterior, {d: np.arange(n_rows) for d in range(n_columns)}, AT)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(60) - peak(20) < 2 * 40 * needed


# Scores --------------------------------------------------------------------------------------


@pytest.mark.parametrize("parts", [1, 3])
def test_log_scores_average_densities_and_not_their_logarithms(parts: int, seed: int) -> None:
    links = [link_of("positive", SAMPLE), link_of("count", np.floor(SAMPLE))]
    posterior = posterior_of(links, random_draws(links, 4, 6, seed, parts))
    rows, truth = np.array([1, 3]), np.array([2.0, 9.0])
    found = log_scores(posterior, {0: rows, 1: rows}, {0: truth, 1: truth})
    for d, link in enumerate(links):
        for i, row in enumerate(rows):
            density = sum(
                weight
                * np.exp(link.log_density(truth[[i]], normal(np.array([eta]), var), params)[0])
                for weight, eta, var, params in components(posterior, d, row)
            )
            assert found[d][i] == pytest.approx(np.log(density), rel=1e-9)


def test_log_scores_of_a_real_column_integrate_to_one(seed: int) -> None:
    link = link_of("real", SAMPLE, transform="none")
    posterior = posterior_of([link], random_draws([link], 1, 4, seed))

    def density(x: float) -> float:
        return float(np.exp(log_scores(posterior, {0: np.array([0])}, {0: np.array([x])})[0][0]))

    middle, wide = SAMPLE.mean(), 12 * SAMPLE.std()
    assert quad(density, middle - wide, middle + wide, limit=200)[0] == pytest.approx(1.0, abs=1e-6)


def test_log_scores_take_every_draw_and_row_once(seed: int) -> None:
    links = [link_of("positive", SAMPLE) for _ in range(50)]
    n_rows, n_draws = scoring.BLOCK_ROWS + 50, 60
    assert scoring.BLOCK_ROWS * len(links) * n_draws > scoring.MOST
    draws = random_draws(links, n_rows, n_draws, seed)
    rows = np.array([3, scoring.BLOCK_ROWS - 1, scoring.BLOCK_ROWS, n_rows - 1, 3])
    cells, truth = {0: np.arange(n_rows), 7: rows}, {0: np.full(n_rows, 4.0), 7: np.arange(5.0)}
    found = log_scores(posterior_of(links, draws), cells, truth)
    each = [log_scores(posterior_of(links, [draw]), cells, truth) for draw in draws]
    for d in cells:
        expected = np.logaddexp.reduce([one[d] for one in each]) - np.log(n_draws)
        np.testing.assert_allclose(found[d], expected, rtol=1e-9)


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 2, 1), (5, 1, 3), (5, 2, 3)])
def test_laws_below_each_other_are_those_of_each(shape: tuple[int, ...], seed: int) -> None:
    rng, (_, parts, wide) = np.random.default_rng(seed), shape
    laws = [
        NormalMixture(
            rng.dirichlet(np.ones(parts), shape[0]), rng.normal(size=(5, parts, wide)), variances
        )
        for variances in (rng.gamma(2.0, size=shape), rng.gamma(2.0, size=(5, parts, wide)))
    ]
    whole = joined(laws)
    assert isinstance(whole, NormalMixture)
    for k, law in enumerate(laws):
        part = whole.take(np.arange(5 * k, 5 * k + 5))
        for found, expected in zip(part.moments(), law.moments(), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


# Joint draws ---------------------------------------------------------------------------------


def test_joint_draws_keep_columns_that_share_a_feature_together(seed: int) -> None:
    links = [link_of("real", SAMPLE, transform="none"), link_of("real", -SAMPLE, transform="none")]
    # In half of the draws the row has the feature that lifts both columns.
    draws = [
        (np.ones((1, 1)), np.full((1, 1, 2), sign), None, np.array([0.25, 0.25]))
        for sign in (-1.0, 1.0)
    ]
    posterior, rng = posterior_of(links, draws), np.random.default_rng(seed)
    cell = np.array([0])
    drawn = [draw_jointly(posterior, {0: cell, 1: cell}, rng) for _ in range(1500)]
    pairs = np.array([[one[0][0], one[1][0]] for one in drawn])
    # Variance 1 between the draws and 0.25 within; 6 standard errors of a correlation.
    assert np.corrcoef(pairs.T)[0, 1] == pytest.approx(0.8, abs=6 * 0.36 / np.sqrt(1500))
    together = draw_jointly(posterior, {0: cell}, np.random.default_rng(1))
    assert set(together) == {0}


def test_joint_draws_follow_the_marginal_distribution(seed: int) -> None:
    links = [link_of("count", np.floor(SAMPLE)), link_of("categorical", np.arange(9) % 3, 3)]
    posterior = posterior_of(links, random_draws(links, 1, 8, seed))
    cell, rng, n = np.array([0]), np.random.default_rng(seed), 3000
    marginal = predict(posterior, {0: cell, 1: cell}, AT)
    drawn = [draw_jointly(posterior, {0: cell, 1: cell}, rng) for _ in range(n)]
    counts = np.array([one[0][0] for one in drawn])
    levels = np.bincount([int(one[1][0]) for one in drawn], minlength=3) / n
    error = 5 * marginal[0].sd[0] / np.sqrt(n)
    assert counts.mean() == pytest.approx(marginal[0].mean[0], abs=error)
    assert marginal[1].probabilities is not None
    np.testing.assert_allclose(levels, marginal[1].probabilities[0], atol=5 * 0.5 / np.sqrt(n))


@pytest.mark.parametrize("kind", ["real", "count"])
def test_joint_draws_inside_bounds_follow_the_marginal_distribution(kind: str) -> None:
    """A draw that gives what lies inside little probability counts little in the forecast."""
    x = np.arange(9.0) if kind == "count" else np.linspace(0.0, 4.0, 10)
    link = link_of(kind, x, bounds=(0.0, x[-1]), transform="none")
    means = link.latent_bounds[1] + np.array([2.0, 1.0, -0.5, -2.0])
    draws = [(np.ones((1, 1)), np.full((1, 1, 1), m), None, np.array([0.5])) for m in means]
    posterior = posterior_of([link], draws)
    cells, rng, n = {0: np.array([0])}, np.random.default_rng(0), 1500
    marginal = predict(posterior, cells, (0.1, 0.3, 0.5, 0.7, 0.9))[0]
    joint = JointDraws(posterior, cells)
    every = list(posterior.draws())
    moved = np.array([joint.draw(rng, draw)[0][0] for _ in range(n) for draw in every])
    plain = np.array(
        [draw_jointly(posterior, cells, rng, draw)[0][0] for draw in every for _ in range(n)]
    )
    error = 5 * marginal.sd[0] / np.sqrt(moved.size)
    assert moved.mean() == pytest.approx(marginal.mean[0], abs=error)
    assert plain.mean() > marginal.mean[0] + 0.3 * marginal.sd[0]
    p = [np.exp(log_scores(posterior, cells, {0: np.array([q])})[0][0]) for q in range(9)]
    if kind == "count":
        found = [np.mean(moved == q) for q in range(9)]
        np.testing.assert_allclose(found, p, atol=5 * 0.5 / np.sqrt(moved.size))
    else:
        for q, at in zip(marginal.quantiles[0], (0.1, 0.3, 0.5, 0.7, 0.9), strict=True):
            assert np.mean(moved <= q) == pytest.approx(at, abs=0.03)


def test_joint_draws_cover_every_gap_of_every_block(seed: int) -> None:
    link = link_of("real", SAMPLE)
    n = predictive.BLOCK_ROWS + 3
    posterior = posterior_of([link], random_draws([link], n, 2, seed))
    rows = np.array([0, 5, n - 1])
    assert draw_jointly(posterior, {0: rows}, np.random.default_rng(0))[0].shape == (3,)


# Traces --------------------------------------------------------------------------------------


def test_traced_cells_are_predictive_means_of_each_draw(seed: int) -> None:
    links = [link_of("real", SAMPLE), link_of("ordinal", np.arange(9) % 3, 3)]
    posterior = posterior_of(links, random_draws(links, 6, 8, seed), chains=2)
    cells = {0: np.array([1, 4]), 1: np.array([4])}
    traces = trace_cells(posterior, cells, np.random.default_rng(0))
    assert set(traces) == {"cell_2_0", "cell_5_0", "cell_5_1"}
    assert all(trace.shape == (2, 4) for trace in traces.values())
    marginal = predict(posterior, cells, ())
    assert traces["cell_5_1"].mean() == pytest.approx(marginal[1].mean[0])
    assert traces["cell_2_0"].mean() == pytest.approx(marginal[0].mean[0], rel=1e-3)


def test_at_most_fifty_cells_are_traced(seed: int) -> None:
    link = link_of("real", SAMPLE)
    posterior = posterior_of([link], random_draws([link], 200, 2, seed))
    traces = trace_cells(posterior, {0: np.arange(200)}, np.random.default_rng(seed))
    assert len(traces) == TRACED_CELLS
    assert trace_cells(posterior, {}, np.random.default_rng(seed)) == {}


@pytest.mark.parametrize("n", [1, 5, 32, 77, 256])
def test_columns_are_picked_by_their_weights(n: int, seed: int) -> None:
    weight = np.random.default_rng(seed).random((1, n)).astype(np.float32)
    weight[0, n // 2 :: 3] = 0.0
    weight[0, 0] += 0.1
    u = (np.arange(4000) + 0.5) / 4000
    found = np.empty(4000, dtype=np.intp)
    pick_columns(np.repeat(weight, 4000, axis=0), u, found)
    assert np.all(np.diff(found) >= 0)
    share = np.bincount(found, minlength=n) / 4000
    np.testing.assert_allclose(share, weight[0] / weight.sum(), atol=3 / 4000)
    assert not share[weight[0] == 0.0].any()


def test_draws_of_unlike_noise_have_each_their_own(seed: int) -> None:
    link = link_of("real", SAMPLE, transform="none")
    rng, variances = np.random.default_rng(seed), (0.1, 2.0)
    eta = rng.standard_normal((2, 4))
    average = link.average(4, 2)
    for one, var in zip(eta, variances, strict=True):
        average.add(normal(one, var), {}, 1.0, quantiles=False)
    found = average.result((), lambda p: p)
    each = [link.standard_moments(one, var, {}) for one, var in zip(eta, variances, strict=True)]
    mass, first, second = np.sum(each, axis=0)
    sd = np.sqrt(second / mass - (first / mass) ** 2)
    np.testing.assert_allclose(found.sd, link.scale * sd, rtol=1e-6)


@pytest.mark.parametrize("size", [1, 7, 8, 19, 300])
@pytest.mark.parametrize(("lower", "upper"), [(-np.inf, np.inf), (-9.0, np.inf), (0.5, 1.5)])
def test_quantiles_of_mixtures_have_their_probability(
    size: int, lower: float, upper: float
) -> None:
    rng = np.random.default_rng(size)
    n, p = 12, np.array([1e-9, 0.025, 0.3, 0.5, 0.9, 1.0 - 1e-9])
    mean, sd = rng.uniform(-1.0, 2.0, (n, size)), rng.uniform(0.3, 2.0, (n, size))
    weight, found = rng.dirichlet(np.ones(size), n), np.empty((n, p.size))
    mixture_quantiles(mean, sd, weight, np.tile(p, (n, 1)), lower, upper, found)
    assert np.all(np.diff(found) > 0.0)
    assert np.all((found >= lower) & (found <= upper))
    at = np.column_stack([np.full(n, lower), np.full(n, upper), found])
    z = (at[:, :, None] - mean[:, None]) / sd[:, None]
    below = np.einsum("nkt,nt->nk", norm.cdf(z), weight)
    inside = (below[:, 1] - below[:, 0])[:, None]
    np.testing.assert_allclose(
        below[:, 2:] - below[:, :1], p * inside, rtol=1e-6, atol=1e-9 * inside.max()
    )
