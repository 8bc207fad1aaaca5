"""What is forecast of cells, and drawn, where more is known of them or one value has much."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import ndtr, ndtri

from glfm_cli import impute
from glfm_cli.inference.joint_draws import STEP, Z, _interpolate, _quantiles
from glfm_cli.inference.one_draw import _redraw
from glfm_cli.inference.predictive import Marginal, predict
from glfm_cli.inference.recalibration import Recalibration
from glfm_cli.inference.scoring import log_scores
from glfm_cli.links.averages import LevelAverage, NumberAverage
from glfm_cli.links.law import Probabilities, normal
from glfm_cli.schema import ColumnType, Transform
from tests.statistical.bsvd_prior import make_links
from tests.test_links import link_of


def test_beside_a_heap_quantiles_jump_half_way() -> None:
    """A value with much of the probability has no neighbours that a line could lead to."""
    k = Z.size // 2
    own = np.where(np.arange(Z.size) <= k, 0.0, 5.0 + Z)
    assert np.all(own[k + 1 - STEP : k + 1] == 0.0)
    middle = 0.5 * (Z[k] + Z[k + 1])

    def quantile(z: float) -> float:
        return float(_quantiles(np.array([z]), Z, own[None])[0])

    assert quantile(Z[k]) == 0.0
    assert quantile(middle - 1e-9) == 0.0
    assert quantile(middle + 1e-9) == own[k + 1]
    on_line = quantile(0.5 * (Z[k + 1] + Z[k + 2]))
    assert on_line == pytest.approx(0.5 * (own[k + 1] + own[k + 2]))


def test_a_value_with_much_of_the_probability_has_the_scores_of_its_knots() -> None:
    """All between the first and the last, in probability; of an end all that is left, too."""
    scores, knots = np.array([-2.0, -1.0, 0.5, 1.0, 2.0]), np.array([[0.0, 1.0, 1.0, 1.0, 4.0]])
    inside = [_interpolate(np.ones(1), knots, scores, within)[0] for within in (0.0, 0.5, 1.0)]
    middle = 0.5 * (ndtr(-1.0) + ndtr(1.0))
    np.testing.assert_allclose(inside, [-1.0, ndtri(middle), 1.0], atol=1e-12)
    ends = np.array([[1.0, 1.0, 2.0, 3.0, 3.0]])
    first, last = (_interpolate(np.array([x]), ends, scores, 0.5)[0] for x in (1.0, 3.0))
    np.testing.assert_allclose(ndtr([first, last]), [ndtr(-1.0) / 2, (1.0 + ndtr(1.0)) / 2])


def test_two_cells_are_drawn_given_that_one_is_less() -> None:
    """Of three numbers each, all pairs in order are as likely, and no other is left."""
    rng, n = np.random.default_rng(0), 6000
    found = {0: rng.integers(3, size=n).astype(float), 1: rng.integers(3, size=n).astype(float)}

    def sample(d: int, at: np.ndarray, times: int = 1) -> np.ndarray:
        return rng.integers(3, size=times * at.size).astype(float)

    _redraw((0, 1), {0: np.arange(n), 1: np.arange(n)}, found, sample)
    count = np.bincount((3 * found[0] + found[1]).astype(int), minlength=9).reshape(3, 3)
    expected = n / 3 * np.triu(np.ones((3, 3)), 1)
    assert np.abs(count - expected).max() < 5 * np.sqrt(n * 2 / 9)
    assert np.all(count[np.tril_indices(3)] == 0)


def test_quantiles_among_possible_levels_are_the_least_with_enough_below() -> None:
    """Of two that are as likely the median is the first: P(X <= 0) is one half."""
    p = np.array([[0.2, 0.2, 0.6], [0.1, 0.3, 0.6], [0.2, 0.3, 0.5]])
    whole = Marginal(np.arange(3), p @ np.arange(3.0), np.ones(3), np.full((3, 3), 9.0), p)
    possible = np.array([[True, True, False], [True, True, False], [True, True, True]])
    found = whole.among(possible, (0.25, 0.5, 0.76))
    np.testing.assert_allclose(found.probabilities, [[0.5, 0.5, 0], [0.25, 0.75, 0], p[2]])
    np.testing.assert_array_equal(found.quantiles, [[0, 0, 1], [0, 1, 1], [9, 9, 9]])
    np.testing.assert_allclose(found.mean, [0.5, 0.75, 1.3])
    np.testing.assert_allclose(found.sd, [0.5, 0.1875**0.5, 1.0])


def test_levels_that_are_numbers_have_the_moments_of_these() -> None:
    p = np.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]])
    codes = Marginal(np.arange(2), p @ np.arange(3.0), np.ones(2), np.empty((2, 0)), p)
    found = codes.at_levels(np.array([10.0, 20.0, 50.0]))
    np.testing.assert_allclose(found.mean, [33.0, 10.0])
    np.testing.assert_allclose(found.sd, [(0.2 * 23**2 + 0.3 * 13**2 + 0.5 * 17**2) ** 0.5, 0.0])


def test_cells_between_ends_are_forecast_by_all_draws() -> None:
    """Ends that are no limit leave mean, sd and quantiles as they are, but for sampling."""
    x = np.random.default_rng(0).normal(size=30)
    table = pa.table({"a": pa.array(x, mask=np.arange(30) < 3), "b": x**2})
    options = {"model": "glfm", "chains": 2, "warmup": 3, "draws": 10, "threads": 1}
    done = impute(table, {"columns": {"*": "real"}}, **options)
    first, second = done.posterior.chains
    raised = tuple(
        replace(draw, latent=replace(draw.latent, B=draw.latent.B + 2.0 * (draw.latent.B != 0.0)))
        for draw in second
    )
    posterior = replace(done.posterior, chains=(first, raised), recalibration=None)
    cells, ends, at = {0: np.arange(3)}, {0: np.full((3, 2), [-1e6, 1e6])}, (0.2, 0.5, 0.8)
    plain, between = (predict(posterior, cells, at, ends=e)[0] for e in ({}, ends))
    assert np.all(plain.mean - predict(replace(posterior, chains=(first,)), cells)[0].mean > 0.5)
    np.testing.assert_allclose(between.mean, plain.mean, atol=0.25)
    np.testing.assert_allclose(between.sd, plain.sd, rtol=0.12)
    np.testing.assert_allclose(between.quantiles, plain.quantiles, atol=0.4)


@pytest.mark.parametrize("draws", [[(0.4, 1.0)], [(-1.0, 0.01), (1.0, 0.01)]])
def test_moments_follow_a_correction(
    draws: list[tuple[float, float]],
) -> None:
    """F^2 is the law of the larger of two: of two normals, and of two that are -1 or 1."""
    (link,) = make_links(ColumnType.REAL)
    average = NumberAverage(link, 1, len(draws))
    for mean, var in draws:
        average.add(normal(np.full((1, 1), mean), var), {}, 1.0, quantiles=True)
    one = len(draws) == 1
    moved, width = (np.pi**-0.5, (1.0 - 1.0 / np.pi) ** 0.5) if one else (0.5, (0.75 + 0.01) ** 0.5)
    mean, ratio = average.corrected(np.square)
    usual, sd = average.moments()
    assert (mean - usual) / sd == pytest.approx([moved], rel=0.06)
    assert ratio == pytest.approx([width], rel=0.03)


def test_means_that_a_correction_moves_stay_inside_the_bounds() -> None:
    """Of a count that is nearly surely the least: sums over a grid take off more than there is."""
    x = np.random.default_rng(0).poisson(4.0, 300).clip(2)
    link = link_of(x, ColumnType.COUNT, transform=Transform.NONE, bounds=(2, None))
    average, sd = NumberAverage(link, 1, 1), 0.1
    mean = np.full((1, 1), float(link.cut(np.array([3.0]))[0]) - 2.3 * sd)
    average.add(normal(mean, sd**2), {}, 1.0, quantiles=True)
    moved, _ = average.corrected(lambda F: F**0.01)
    assert 2.0 <= moved[0] < average.moments()[0][0]


def test_codes_of_ordered_levels_have_the_moments_of_averaged_probabilities() -> None:
    (link,) = make_links(ColumnType.ORDINAL)
    average = LevelAverage(link, 2)
    p = np.random.default_rng(0).dirichlet(np.ones(link.n_levels), (2, 2))
    for one, share in zip(p, (0.25, 0.75), strict=True):
        average.add(Probabilities(one), {}, share, quantiles=False)
    found, whole, codes = average.result((), lambda q: q), 0.25 * p[0] + 0.75 * p[1], np.arange(4)
    mean = whole @ codes[: link.n_levels]
    variance = np.sum(whole * (codes[: link.n_levels] - mean[:, None]) ** 2, axis=1)
    np.testing.assert_allclose(found.mean, mean)
    np.testing.assert_allclose(found.sd, np.sqrt(variance))


def test_densities_inside_bounds_that_were_corrected_add_up_to_one() -> None:
    x = np.random.default_rng(1).normal(size=30)
    table = pa.table({"a": pa.array(x, mask=np.arange(30) < 3), "b": x**2})
    types = {"a": {"type": "real", "bounds": [-1.0, 9.0], "transform": "none"}, "b": "real"}
    table = table.set_column(0, "a", pa.array(np.maximum(x, -1.0), mask=np.arange(30) < 3))
    options = {"model": "glfm", "chains": 1, "warmup": 3, "draws": 5, "threads": 1}
    done = impute(table, {"columns": types}, **options)
    by = Recalibration.alike(np.ones(2), np.array([[0.5, 0.3, 0.0, 0.1], [0.0] * 4]))
    posterior = replace(done.posterior, recalibration=by)
    at = np.linspace(-1.0, 9.0, 4002)[1:]
    log_p = log_scores(posterior, {0: np.zeros(at.size, int)}, {0: at})[0]
    assert np.sum(np.exp(log_p)) * (at[1] - at[0]) == pytest.approx(1.0, abs=3e-3)
