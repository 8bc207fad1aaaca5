"""Convergence diagnostics: the published formulas, and a verdict a user can act on."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import rankdata

from glfm_cli.arrays import Array, interval_ranks, log_sum, mean_ranks
from glfm_cli.inference.diagnostics import (
    Flag,
    diagnose,
    ess_bulk,
    ess_tail,
    judgement,
    mcse_mean,
    rank_normalise,
    rhat,
    split,
)


def noise(seed: int, n_chains: int, n_draws: int) -> Array:
    """Return bell-shaped numbers from a fixed integer recursion, the same everywhere."""
    values, state = [], seed
    for _ in range(4 * n_chains * n_draws):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        values.append((state >> 11) / 2**53)
    return np.array(values).reshape(n_chains, n_draws, 4).sum(axis=2) - 2.0


def autoregressive(seed: int, n_chains: int, n_draws: int, phi: float) -> Array:
    chains = noise(seed, n_chains, n_draws)
    for t in range(1, n_draws):
        chains[:, t] += phi * chains[:, t - 1]
    return chains


TRACES: dict[str, Callable[[], Array]] = {
    "independent": lambda: noise(1, 4, 250),
    "slow": lambda: autoregressive(2, 4, 500, 0.95),
    "antithetic": lambda: autoregressive(3, 4, 301, -0.8),
    "one chain elsewhere": lambda: noise(4, 4, 200) + np.array([[0.0], [0.0], [0.0], [1.0]]),
    "one chain wider": lambda: noise(5, 4, 200) * np.array([[1.0], [1.0], [1.0], [3.0]]),
    "heavy tails": lambda: 1.0 / noise(6, 4, 300),
    "counts": lambda: np.floor(np.abs(autoregressive(7, 3, 240, 0.9))),
    "rare events": lambda: (noise(8, 4, 300) > 0.9).astype(float),
    "four draws": lambda: noise(9, 4, 4),
    "nine draws": lambda: noise(10, 2, 9),
    "one chain stuck": lambda: np.vstack((noise(11, 3, 100), np.full((1, 100), 0.3))),
    "far from zero": lambda: 1e6 + 1e-3 * autoregressive(12, 4, 150, 0.7),
    "random walk": lambda: autoregressive(13, 4, 300, 1.0),
}

# rhat, ess(method="bulk"), ess(method="tail", prob=(0.05, 0.95)), mcse(method="mean") of
# arviz-stats 0.8.0 (numpy 2.4.6, scipy 1.17.1).
REFERENCE = {
    "independent": (
        0.9988606219624009,
        1126.1387168855986,
        1038.3888098935752,
        0.016757833929265106,
    ),
    "slow": (1.1237964406470222, 29.86418156869351, 57.58218445305148, 0.31667447294580076),
    "antithetic": (1.0053062280356007, 3695.0174952571497, 602.7957472713018, 0.014460787768975508),
    "one chain elsewhere": (
        1.260050502941592,
        12.047106889061542,
        40.7025640690644,
        0.2144467524395576,
    ),
    "one chain wider": (
        1.1174510384599645,
        776.0156142478019,
        37.62479618361728,
        0.035083289214945496,
    ),
    "heavy tails": (1.0001952795077875, 1269.4615697456177, 1160.327514209789, 6.600625837870571),
    "counts": (1.0269598065927408, 136.9615389943345, 172.4420852818566, 0.0658577885307236),
    "rare events": (
        0.9993874684358286,
        1246.7155360882657,
        1246.7155360882657,
        0.006076634967316819,
    ),
    "four draws": (1.0732226025038276, 19.265919722494797, 19.265919722494797, 0.1329755759386223),
    "nine draws": (1.0723999659207204, 19.265919722494797, 19.265919722494797, 0.1416955311019011),
    "one chain stuck": (
        1.1708571267054957,
        252.98888226244424,
        292.69269770527916,
        0.03441923497580741,
    ),
    "far from zero": (
        1.0385166635806806,
        128.11492833380882,
        218.32093916851687,
        7.505633372264027e-05,
    ),
    "random walk": (1.603997982387041, 6.892953405763508, 13.067337912323875, 1.4170759653805518),
}


@pytest.mark.parametrize("name", TRACES)
def test_diagnostics_equal_the_reference_implementation(name: str) -> None:
    draws = TRACES[name]()
    found = (rhat(draws), ess_bulk(draws), ess_tail(draws), mcse_mean(draws))
    np.testing.assert_allclose(found, REFERENCE[name], rtol=1e-10)


def test_split_drops_the_middle_of_an_odd_chain() -> None:
    halves = split(np.array([[1.0, 2.0, 3.0, 4.0, 5.0], [6.0, 7.0, 8.0, 9.0, 10.0]]))
    assert halves.tolist() == [[1, 2], [6, 7], [4, 5], [9, 10]]


def test_rank_normalisation_gives_ties_one_score_and_keeps_symmetry() -> None:
    scores = rank_normalise(np.array([[3.0, 1.0], [3.0, 9.0]]))
    assert scores[0, 0] == scores[1, 0] == 0.0
    assert scores[0, 1] == -scores[1, 1]


def test_ranks_of_equal_numbers_are_the_mean_of_theirs() -> None:
    x = np.array([2.5, -1.0, 2.5, 7.0, 2.5, -1.0])
    assert mean_ranks(x).tolist() == rankdata(x).tolist()


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=20))
def test_ranks_of_intervals_lie_amid_those_that_their_numbers_can_have(pairs: list[Any]) -> None:
    ends = np.sort(np.array(pairs, dtype=np.float64), axis=1)
    n, (low, high) = len(ends), ends.T
    least = [1 + np.sum(high < one) for one in low]
    most = [n - np.sum(low > one) for one in high]
    assert interval_ranks(low, high).tolist() == (0.5 * np.add(least, most)).tolist()
    assert interval_ranks(low, low).tolist() == rankdata(low).tolist()
    infinite = np.where(low == 0.0, -np.inf, low)
    assert interval_ranks(infinite, high).tolist() == interval_ranks(low, high).tolist()


def test_logs_of_sums_are_those_of_scipy_where_exponentials_overflow_or_vanish() -> None:
    x = np.array([[800.0, -2.0, -np.inf], [801.0, 3.0, -np.inf], [-900.0, -np.inf, -np.inf]])
    for axis in (0, 1):
        assert log_sum(x, axis) == pytest.approx(logsumexp(x, axis=axis), rel=1e-15)
    assert log_sum(x, 1, keepdims=True).shape == (3, 1)
    assert log_sum(x[:, 1]) == pytest.approx(logsumexp(x[:, 1]), rel=1e-15)


def test_one_chain_is_judged_by_its_halves() -> None:
    drifting = noise(1, 1, 400) + np.linspace(0, 3, 400)
    assert rhat(noise(1, 1, 400)) < 1.05 < 1.3 < rhat(drifting)


def test_effective_draws_of_independent_ones_are_all_of_them(seed: int) -> None:
    draws = np.random.default_rng(seed).normal(size=(4, 5000))
    assert ess_bulk(draws) == pytest.approx(draws.size, rel=0.1)
    assert mcse_mean(draws) == pytest.approx(1 / math.sqrt(draws.size), rel=0.1)


def test_effective_draws_of_an_autoregression_follow_theory(seed: int) -> None:
    phi, n = 0.8, 20_000
    step = np.random.default_rng(seed).normal(size=(4, n))
    draws = np.zeros((4, n))
    for t in range(1, n):
        draws[:, t] = phi * draws[:, t - 1] + step[:, t]
    assert ess_bulk(draws) == pytest.approx(draws.size * (1 - phi) / (1 + phi), rel=0.1)


@settings(max_examples=50)
@given(
    seed=st.integers(0, 2**32),
    shape=st.tuples(st.integers(1, 4), st.integers(4, 40)),
    exponent=st.integers(-900, 900),
)
def test_unit_of_measurement_changes_only_the_standard_error(
    seed: int, shape: tuple[int, int], exponent: int
) -> None:
    draws = noise(seed, *shape)
    scaled = np.ldexp(draws, exponent)
    for statistic in (rhat, ess_bulk, ess_tail):
        assert statistic(scaled) == statistic(draws)
    assert mcse_mean(scaled) == pytest.approx(math.ldexp(mcse_mean(draws), exponent), rel=1e-12)


@settings(max_examples=50)
@given(seed=st.integers(0, 2**32), order=st.permutations(range(4)))
def test_order_of_chains_does_not_matter(seed: int, order: list[int]) -> None:
    draws = np.round(noise(seed, 4, 20), 1)
    for statistic in (rhat, ess_bulk, ess_tail, mcse_mean):
        assert statistic(draws[order]) == pytest.approx(statistic(draws), rel=1e-9)


@settings(max_examples=100)
@given(
    rows=st.lists(
        st.lists(st.sampled_from([-1e300, -1.0, 0.0, 1e-300, 0.1, 7.0]), min_size=0, max_size=9),
        min_size=1,
        max_size=4,
    )
)
def test_any_finite_trace_has_a_verdict(rows: list[list[float]]) -> None:
    found = diagnose({"x": [np.array(row) for row in rows]}, {"x"})
    quantity = found["x"]
    assert (quantity.flag is None) == math.isfinite(quantity.rhat)
    assert quantity.flag is Flag.SHORT or quantity.ess > 0
    assert found.summary().endswith(".")
    json.dumps(found.to_dict(), allow_nan=False)


def test_constant_quantity_has_no_rhat_and_does_not_hold_up_convergence() -> None:
    found = diagnose({"flat": np.full((2, 50), 0.1), "x": noise(1, 2, 400)}, {"flat", "x"})
    flat = found["flat"]
    assert flat.flag is Flag.CONSTANT
    assert math.isnan(flat.rhat)
    assert (flat.ess_bulk, flat.ess_tail, flat.mcse_mean) == (100.0, 100.0, 0.0)
    assert (flat.mean, flat.sd) == (0.1, 0.0)


def test_chains_that_stand_still_at_different_values_never_converge() -> None:
    found = diagnose({"K": np.array([[1.0] * 50, [2.0] * 50])}, {"K"})
    assert found["K"].rhat == math.inf
    assert found["K"].flag is Flag.STUCK
    assert found["K"].severity() == math.inf
    assert not found.converged()


def test_chain_that_differs_only_in_its_middle_draw_counts_as_constant() -> None:
    assert diagnose({"x": np.array([[1.0, 1.0, 5.0, 1.0, 1.0]])}, {"x"})["x"].flag is Flag.CONSTANT


def test_fewer_than_four_draws_are_flagged_and_not_converged() -> None:
    found = diagnose({"x": noise(1, 3, 3)}, {"x"})
    assert found["x"].flag is Flag.SHORT
    assert math.isnan(found["x"].rhat)
    assert not found.converged()
    assert "each chain kept 3 draws, 4 are needed" in found.summary()


def test_no_draws_at_all_are_flagged() -> None:
    found = diagnose({"x": np.empty((2, 0))}, {"x"})
    assert found["x"].flag is Flag.SHORT
    assert math.isnan(found["x"].mean)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_draw_that_is_not_finite_is_flagged_and_not_converged(bad: float) -> None:
    draws = noise(1, 2, 400)
    draws[1, 7] = bad
    found = diagnose({"x": draws}, {"x"})
    assert found["x"].flag is Flag.BROKEN
    assert not found.converged()
    assert "not finite" in found.summary()


def test_unequal_chains_are_compared_over_the_first_draws_of_the_shortest() -> None:
    draws = noise(1, 2, 60)
    found = diagnose({"x": [draws[0], draws[1, :50]], "y": draws}, {"x"})
    assert found.n_draws == 50
    assert found["x"].rhat == found["y"].rhat == rhat(draws[:, :50])


def test_quantities_with_different_chains_are_refused() -> None:
    with pytest.raises(ValueError, match="same chains"):
        diagnose({"x": noise(1, 2, 9), "y": noise(1, 3, 9)}, {"x"})
    with pytest.raises(ValueError, match="same chains"):
        diagnose({"x": np.empty((0, 9))}, {"x"})


def test_only_gating_quantities_decide() -> None:
    good, bad = noise(1, 4, 400), autoregressive(2, 4, 400, 1.0)
    found = diagnose({"fit": good, "K": bad}, {"fit"})
    assert found.converged()
    assert not diagnose({"fit": good, "K": bad}, {"K"}).converged()
    assert found.worst() is found["fit"]


def test_nothing_watched_is_not_convergence() -> None:
    found = diagnose({"K": noise(1, 4, 400)}, ())
    assert not found.converged()
    assert found.worst() is None
    assert "not judged" in found.summary()
    assert not diagnose({}, ()).converged()


@pytest.mark.parametrize(
    ("rhat_limit", "ess_limit", "verdict"),
    [(1.05, 100, True), (0.99, 100, False), (1.05, 1e5, False)],
)
def test_both_limits_bind(
    rhat_limit: float, ess_limit: float, verdict: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judgement, "RHAT_LIMIT", rhat_limit)
    monkeypatch.setattr(judgement, "ESS_LIMIT", ess_limit)
    assert diagnose({"x": noise(1, 4, 250)}, {"x"}).converged() is verdict


def test_worst_is_the_quantity_furthest_from_its_limits() -> None:
    traces = {
        "good": noise(1, 4, 400),
        "slow": autoregressive(2, 4, 400, 0.9),
        "lost": noise(3, 4, 400) + np.array([[0.0], [0.0], [0.0], [9.0]]),
    }
    found = diagnose(traces, set(traces))
    assert found.worst() is found["lost"]
    assert [q.name for q in found] == ["good", "slow", "lost"]


def test_summary_says_what_failed() -> None:
    lost = noise(3, 4, 400) + np.array([[0.0], [0.0], [0.0], [9.0]])
    found = diagnose({"log likelihood": lost, "x": noise(1, 4, 400)}, {"log likelihood", "x"})
    assert found.summary().startswith(
        "Not converged (1 of 2 watched quantities): 'log likelihood' has R-hat"
    )


def test_summary_of_a_converged_run_gives_the_tightest_figures() -> None:
    found = diagnose({"x": noise(1, 4, 400), "flat": np.ones((4, 400))}, {"x", "flat"})
    assert found.summary().startswith("Converged: R-hat at most 1.0")
    assert f"at least {math.floor(found['x'].ess):,} independent" in found.summary()
    assert diagnose({"x": np.ones((2, 9))}, {"x"}).summary().startswith("Converged: no watched")


def test_dictionary_is_plain_json_and_holds_every_figure() -> None:
    found = diagnose({"x": noise(1, 2, 20), "K": np.array([[1.0] * 20, [2.0] * 20])}, {"x"})
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert (plain["chains"], plain["draws"], plain["converged"]) == (2, 20, False)
    assert plain["quantities"]["x"]["rhat"] == found["x"].rhat
    assert plain["quantities"]["x"]["gating"] is True
    assert plain["quantities"]["K"]["rhat"] is None
    assert plain["quantities"]["K"]["flag"] == "chains keep to different values"
