"""Every score against an independent implementation or an example worked by hand."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy import integrate, stats

from glfm_cli.encoding import encode
from glfm_cli.evaluation import scores
from glfm_cli.evaluation.scoring import Score, level_quantiles, score_all, spans
from glfm_cli.evaluation.task import AT, ENDS, GRID, GRID_START, Prediction
from glfm_cli.schema import Schema

HAND = pa.table(
    {
        "price": [2.0, 4.0, 10.0, 6.0],
        "city": ["Oslo", "Rome", "Oslo", "Paris"],
        "grade": ["low", "high", "mid", "mid"],
    }
)
HAND_TYPES = Schema.from_dict(
    {
        "columns": {
            "price": "positive",
            "city": "categorical",
            "grade": {"type": "ordinal", "levels": ["low", "mid", "high"]},
        }
    }
)


def by_hand() -> list[Score]:
    """Score a 4 x 3 table: two prices, three cities and two grades hidden."""
    data = encode(HAND, HAND_TYPES)
    truth = {0: np.array([2.0, 10.0]), 1: np.array([0.0, 2.0, 1.0]), 2: np.array([0.0, 1.0])}
    put_in = {0: np.array([5.0, 6.0]), 1: np.array([0.0, 0.0, 1.0]), 2: np.array([2.0, 1.0])}
    predictions = {d: Prediction(x) for d, x in put_in.items()}
    return score_all(data.columns, spans(data.columns), truth, predictions)


def value(rows: list[Score], score: str, scope: str = "all", name: str = "") -> float:
    (found,) = [
        r for r in rows if (r.score, r.scope) == (score, scope) and name in (r.column, r.type)
    ]
    return found.value


def test_the_paper_s_error_of_a_small_table_is_that_worked_by_hand() -> None:
    rows = by_hand()
    price = np.sqrt((3**2 + 4**2) / 2) / 8  # range 10 - 2
    assert value(rows, "error", "column", "price") == pytest.approx(price)
    assert value(rows, "error", "column", "city") == pytest.approx(1 / 3)
    assert value(rows, "error", "column", "grade") == pytest.approx((2 + 0) / 2 / 2)
    assert value(rows, "error") == pytest.approx((price + 1 / 3 + 1 / 2) / 3)
    assert value(rows, "error", "type", "ordinal") == pytest.approx(1 / 2)
    assert value(rows, "mae", "column", "price") == pytest.approx(3.5)
    assert value(rows, "mae", "column", "grade") == pytest.approx(1.0)
    assert value(rows, "nmae") == pytest.approx((3.5 / 8 + 1 / 2) / 2)
    assert {row.cells for row in rows if row.score == "error" and row.scope == "all"} == {7}


def test_methods_without_distributions_get_no_distributional_scores() -> None:
    assert {row.score for row in by_hand()} == {"error", "mae", "nmae"}


def test_a_constant_column_has_no_error_over_its_range() -> None:
    table = pa.table({"a": [1.0, 1.0, 1.0], "b": [1.0, 2.0, 3.0]})
    data = encode(table, Schema.from_dict({"rest": "real"}))
    truth = {0: np.array([1.0]), 1: np.array([2.0])}
    predictions = {d: Prediction(truth[d] + 1) for d in truth}
    rows = score_all(data.columns, spans(data.columns), truth, predictions)
    assert [(r.column, r.score) for r in rows if r.scope == "column" and r.score != "nmae"] == [
        ("a", "mae"), ("b", "mae"), ("b", "error"),
    ]  # fmt: skip
    assert value(rows, "error") == pytest.approx(0.5)


# CRPS and its relatives -----------------------------------------------------------------------


@pytest.mark.parametrize("x", [-3.0, -0.2, 0.0, 0.7, 2.5])
def test_crps_is_its_integral(x: float) -> None:
    law = stats.gamma(3.0, loc=-3.0)

    def squared(t: float) -> float:
        return (law.cdf(t) - (x <= t)) ** 2

    exact = integrate.quad(squared, -3.5, x)[0] + integrate.quad(squared, x, 30.0)[0]
    (found,) = scores.crps(np.array([x]), law.ppf(GRID)[None])
    assert found == pytest.approx(exact, rel=0.01)


def test_crps_of_a_normal_is_its_closed_form() -> None:
    """[Gneiting and Raftery 2007, sect. 4.2]: sd (z (2 Phi(z) - 1) + 2 phi(z) - 1/sqrt(pi))."""
    x = np.linspace(-8.0, 12.0, 41)
    z = (x - 2.0) / 3.0
    exact = 3.0 * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi))
    found = scores.crps(x, np.tile(stats.norm.ppf(GRID, 2.0, 3.0), (x.size, 1)))
    np.testing.assert_allclose(found, exact, rtol=0.01)


def test_crps_of_a_point_is_the_absolute_error() -> None:
    x = np.array([-1.0, 4.0, 2.0])
    np.testing.assert_allclose(scores.crps(x, np.full((3, 50), 2.0)), [3.0, 2.0, 0.0])


def test_crps_of_a_sample_is_the_energy_form(seed: int) -> None:
    """E|X - x| - E|X - X'| / 2, for a law that puts 1/50 on each of 50 numbers."""
    sample = np.sort(np.random.default_rng(seed).standard_normal(50))
    x = np.array([-2.5, 0.1, 1.0])
    energy = np.abs(sample - x[:, None]).mean(axis=1)
    energy -= np.abs(sample[:, None] - sample).mean() / 2
    np.testing.assert_allclose(scores.crps(x, np.tile(sample, (3, 1))), energy, rtol=1e-12)


def test_ranked_probability_score_is_that_worked_by_hand() -> None:
    p = np.array([[0.2, 0.5, 0.3], [0.2, 0.5, 0.3], [0.0, 0.0, 1.0]])
    x = np.array([0.0, 2.0, 2.0])
    # cumulative 0.2, 0.7: against 1, 1; against 0, 0; a certain hit costs nothing
    expected = [0.8**2 + 0.3**2, 0.2**2 + 0.7**2, 0.0]
    np.testing.assert_allclose(scores.ranked_probability_score(x, p), expected)


def test_ranked_probability_score_is_the_crps_of_the_codes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, x = rng.dirichlet(np.ones(4), 20), rng.integers(0, 4, 20).astype(float)
    grid = np.linspace(0, 3, 3001)[:-1]  # both laws are steps at whole numbers
    cdf = np.cumsum(p, axis=1)[:, grid.astype(int)]
    integral = ((cdf - (x[:, None] <= grid)) ** 2).mean(axis=1) * 3
    np.testing.assert_allclose(scores.ranked_probability_score(x, p), integral, rtol=1e-2)


def test_brier_score_is_that_worked_by_hand() -> None:
    p = np.array([[0.2, 0.5, 0.3], [1.0, 0.0, 0.0]])
    found = scores.brier_score(np.array([1.0, 2.0]), p)
    np.testing.assert_allclose(found, [0.2**2 + 0.5**2 + 0.3**2, 2.0])


def test_log_probability_of_an_impossible_level_is_minus_infinity() -> None:
    found = scores.log_probability(np.array([1.0, 0.0]), np.array([[0.25, 0.75], [0.0, 1.0]]))
    np.testing.assert_allclose(found, [np.log(0.75), -np.inf])


# Intervals and calibration --------------------------------------------------------------------


def test_coverage_and_width_of_a_known_law_are_right(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 40_000
    mean, sd = rng.standard_normal(n), rng.gamma(2.0, size=n)
    x = mean + sd * rng.standard_normal(n)
    data = encode(pa.table({"v": [0.0, 10.0]}), Schema.from_dict({"columns": {"v": "real"}}))
    q = stats.norm.ppf(np.array(AT), mean[:, None], sd[:, None])
    rows = score_all(data.columns, {0: 10.0}, {0: x}, {0: Prediction(mean, quantiles=q)})
    for level in ENDS:
        error = np.sqrt(level * (1 - level) / n)
        assert value(rows, f"coverage_{100 * level:.0f}") == pytest.approx(level, abs=4 * error)
        width = 2 * stats.norm.ppf((1 + level) / 2) * sd.mean() / 10
        assert value(rows, f"width_{100 * level:.0f}") == pytest.approx(width)


def test_the_ends_of_intervals_and_the_grid_are_where_they_are_said_to_be() -> None:
    assert AT[1] == 0.5  # the median, where `completion.point` looks for it
    np.testing.assert_array_equal(AT[GRID_START:], GRID)
    for level, (low, high) in ENDS.items():
        assert Fraction(AT[high] - AT[low]).limit_denominator(100) == Fraction(str(level))


def test_quantiles_of_levels_are_the_lowest_code_that_reaches_them() -> None:
    p = np.array([[0.1, 0.5, 0.4], [0.0, 0.0, 1.0]])
    found = level_quantiles(p)
    law = stats.rv_discrete(values=([0, 1, 2], p[0]))
    np.testing.assert_array_equal(found[0], law.ppf(np.array(AT)))
    assert (found[1] == 2).all()


def test_reliability_counts_every_level_of_every_cell() -> None:
    p = np.array([[0.25, 0.75], [0.31, 0.69], [1.0, 0.0]])
    tally = scores.reliability(np.array([1.0, 0.0, 0.0]), p)
    n = np.zeros(10)
    n[[0, 2, 3, 6, 7, 9]] = 1
    np.testing.assert_array_equal(tally.n, n)
    np.testing.assert_allclose(tally.p[[0, 2, 3, 6, 7, 9]], [0.0, 0.25, 0.31, 0.69, 0.75, 1.0])
    np.testing.assert_array_equal(tally.successes[[0, 2, 3, 6, 7, 9]], [0, 0, 1, 0, 1, 1])
    assert scores.calibration_error(tally) == pytest.approx((0.25 + 0.69 + 0.69 + 0.25) / 6)


def test_calibrated_levels_have_a_small_calibration_error(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(3), 20_000)
    x = (rng.random((20_000, 1)) > np.cumsum(p, axis=1)).sum(axis=1).astype(float)
    assert scores.calibration_error(scores.reliability(x, p)) < 0.01
    assert scores.calibration_error(scores.reliability((x + 1) % 3, p)) > 0.1


# How scores of columns are put together -------------------------------------------------------


def test_log_scores_weigh_cells_and_errors_weigh_columns() -> None:
    data = encode(HAND, HAND_TYPES)
    truth = {0: np.array([2.0]), 2: np.array([0.0, 1.0, 1.0])}
    predictions = {
        0: Prediction(truth[0], log_score=np.array([-4.0])),
        2: Prediction(truth[2], log_score=np.array([-1.0, -2.0, -3.0])),
    }
    rows = score_all(data.columns, spans(data.columns), truth, predictions)
    assert value(rows, "log_score") == pytest.approx(-2.5)
    assert value(rows, "log_score", "type", "ordinal") == pytest.approx(-2.0)


def test_a_log_score_that_some_columns_lack_is_not_given_for_all() -> None:
    data = encode(HAND, HAND_TYPES)
    truth = {0: np.array([2.0]), 1: np.array([0.0])}
    predictions = {0: Prediction(truth[0]), 1: Prediction(truth[1], log_score=np.array([-1.0]))}
    found = score_all(data.columns, spans(data.columns), truth, predictions)
    rows = [r for r in found if r.score == "log_score"]
    assert [row.scope for row in rows] == ["column", "type"]
