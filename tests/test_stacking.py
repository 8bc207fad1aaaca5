"""Candidates weighed by column: weights, forecasts, draws, precision, and what is kept and said."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import ndtr

from glfm_cli import explore, impute, load_fit
from glfm_cli.completion import Files, prepare
from glfm_cli.completion.multiple import spread
from glfm_cli.errors import GlfmError, StoreError, UsageError
from glfm_cli.inference import chains, hidden_cells, hiding
from glfm_cli.inference.chain_means import ChainMeans, within_candidates
from glfm_cli.inference.hidden_cells import (
    Folded,
    recalibrate,
    stacked_forecasts,
    without_cells,
)
from glfm_cli.inference.joint_draws import FINE, JointDraws, _move_numbers
from glfm_cli.inference.posterior import Posterior
from glfm_cli.inference.precision import _contrasts, measure_precision
from glfm_cli.inference.predictive import chain_means, predict
from glfm_cli.inference.recalibration import Recalibration
from glfm_cli.inference.sampling import sample
from glfm_cli.inference.scoring import forecasts, log_scores
from glfm_cli.latent import MODELS
from glfm_cli.latent.model import Problem

TYPES = {"columns": {"x": "real", "y": "real", "c": "categorical", "o": "ordinal"}}

PAIR = {"glfm": 1, "mixture": 1, "forest": 0, "linear": 0}


def table_of(n: int = 240, seed: int = 0) -> pa.Table:
    """A table of two groups, whose columns hang together in each by another sign."""
    rng = np.random.default_rng(seed)
    group = rng.random(n) < 0.5
    t = rng.standard_normal(n)
    columns = {
        "x": t + 0.2 * rng.standard_normal(n),
        "y": np.where(group, t, -t) + 3.0 * group + 0.2 * rng.standard_normal(n),
        "c": np.array(["a", "b", "c"])[np.digitize(t + 0.3 * rng.standard_normal(n), [-0.5, 0.5])],
        "o": np.digitize(t + 2.0 * group, [-1.0, 1.0, 2.0]),
    }
    return pa.table({name: pa.array(x, mask=rng.random(n) < 0.2) for name, x in columns.items()})


@pytest.fixture(scope="module")
def problem() -> Problem:
    return prepare(table_of(), TYPES, model="auto", seed=2, settings=PAIR)[0]


@pytest.fixture(scope="module")
def posterior(problem: Problem) -> Posterior:
    """Four chains, of two candidates in turn."""
    options = {"model": "auto", "chains": 4, "warmup": 15, "draws": 8, "thin": 1, "seed": 2}
    plan = prepare(table_of(), TYPES, settings=PAIR, **options)[2]
    return sample(problem, plan).posterior


def weighted(posterior: Posterior, weights: np.ndarray) -> Posterior:
    n = len(posterior.links)
    by = Recalibration.alike(np.ones(n), np.zeros((n, 4)), weights)
    return replace(posterior, recalibration=by)


WEIGHTS = np.array([[0.9, 0.1, 0, 0], [0.2, 0.8, 0, 0], [0.3, 0.7, 0, 0], [0.6, 0.4, 0, 0]])
CELLS = {d: np.arange(d, 12 + d) for d in range(4)}


# Chains ----------------------------------------------------------------------------------------


def test_a_chain_is_the_one_that_its_model_would_make(problem: Problem) -> None:
    for index, name in enumerate(["glfm", "mixture", "glfm"]):
        alone = replace(problem, model=MODELS[name], config=MODELS[name].Config())
        ours, theirs = (chains.start(one, 5, index) for one in (problem, alone))
        for _ in range(3):
            ours.sweep(adapt=True)
            theirs.sweep(adapt=True)
        own = problem.model.pack(ours.keep().latent)
        for key, value in alone.model.pack(alone.model.draw(theirs.state)).items():
            np.testing.assert_array_equal(own[key], value)
        assert int(own["candidate"]) == index % 2


def test_candidates_search_unless_told_not_to_as_by_a_quick_effort() -> None:
    length = {"warmup": 30, "draws": 5, "thin": 2, "chains": 2}
    settings = {"glfm": 1, "forest": 1, "linear": 0}
    x = np.linspace(0.0, 1.0, 400)  # of which trees make most with leaves of one member
    u, e = np.random.default_rng(2).standard_normal((2, 400))
    v = np.where(x < 0.1, np.nan, u + 0.1 * e)  # which a line forecasts better than trees
    table = pa.table({"x": x, "y": np.where(x > 0.9, np.nan, np.sin(9.0 * x)), "u": u, "v": v})
    types = {"columns": dict.fromkeys("xyuv", "real")}
    least, lines = {}, {}
    for search in (True, False):
        given = {**settings, "search": search}
        problem, _, plan = prepare(table, types, model="auto", settings=given, seed=1, **length)
        forest = sample(problem, plan).posterior.chains[1][-1].latent.own
        least[search] = forest.trees.fewest.min()
        lines[search] = bool((forest.lines.place >= 0).any())
    assert least == {True: 1, False: 3}
    assert lines == {True: True, False: False}
    quick = prepare(table, types, model="auto", effort="quick")[0]
    assert quick.config == MODELS["auto"].Config(linear=0, search=False)


def test_candidates_are_as_many_as_set(problem: Problem) -> None:
    config = MODELS["auto"].Config(glfm=3, mixture=1, bsvd=2, forest=0, linear=0)
    assert config.turns == (0, 1, 2, 0, 2, 0)
    turns = MODELS["auto"].Config().turns
    assert turns == (0, 3, 0, 3, 4, 4, 3), "two of each where there are four, or six"
    plain, linear = (problem.model.problem_of(problem, which) for which in (0, 4))
    assert (plain.config.components, linear.config.components) == (0, 5)
    assert MODELS["auto"].Config(linear=0).turns == (0, 3, 0, 3, 3)
    with pytest.raises(UsageError, match="one candidate at least"):
        MODELS["auto"].Config(glfm=0, mixture=0, forest=0, linear=0)
    with pytest.raises(UsageError, match="a whole number from 0 to 8"):
        MODELS["auto"].Config(glfm=-1)


def test_trees_are_kept_of_the_first_of_every_four_draws(tmp_path: Path) -> None:
    """Those that a chain alone has then; what is told and asked of draws knows how many there are.
    """
    table, length = table_of(60), {"chains": 2, "warmup": 3, "thin": 2}
    options = {"model": "auto", "settings": {"recalibrate": False}, **length}
    done = impute(table, TYPES, draws=6, threads=1, save=tmp_path / "a.glfm", **options)
    ours = done.posterior.chains[1]
    assert [len(chain) for chain in done.posterior.chains] == [6, 2]
    problem, _, plan = prepare(table, TYPES, **options)
    alone = chains.start(problem.model.problem_of(problem, 3), plan.seed, 1)
    kept = []
    for _ in range(plan.warmup + 2 * 5):
        alone.sweep(adapt=False)
        kept.append(alone.keep().latent)
    for draw, sweep in zip(ours, (5, 13), strict=True):
        np.testing.assert_array_equal(draw.latent.own.z, kept[sweep - 1].z)
    assert done.posterior.traces()["log_likelihood"].shape == (2, 2)
    assert not load_fit(tmp_path / "a.glfm").notes, "nothing was cut short"
    more = impute(table, draws=9, threads=1, resume=tmp_path / "a.glfm", chains=2)
    assert [len(chain) for chain in more.posterior.chains] == [9, 3]
    files = Files(tmp_path / "m.csv", multiple=9)
    with pytest.raises(UsageError, match="multiple=9 needs a draw for each table, but 8 will"):
        impute(table, TYPES, draws=6, files=files, **options)


def test_trees_count_where_columns_follow_rules(tmp_path: Path) -> None:
    """y is x where a and b agree, else -x, which latent features foretell less well."""
    rng, n = np.random.default_rng(2), 400
    a, b = rng.integers(2, size=(2, n))
    x = rng.standard_normal(n)
    y = np.where(a == b, x, -x) + 0.05 * rng.standard_normal(n)
    columns = {"a": [f"a{i}" for i in a], "b": [f"b{i}" for i in b], "x": x}
    table = pa.table({**columns, "y": pa.array(y, mask=rng.random(n) < 0.3)})
    types = {"columns": {"a": "categorical", "b": "categorical", "x": "real", "y": "real"}}
    options = {"model": "auto", "chains": 3, "warmup": 20, "draws": 12, "thin": 1}
    folder = tmp_path / "rules.glfm"
    done = impute(table, types, save=folder, **options)
    assert done.candidates(3)["forest"] > 0.5
    new = pa.table({"a": ["a0"], "b": ["b1"], "x": [1.0], "y": pa.array([None], pa.float64())})
    new = impute(new, fit=folder)
    assert new.to_table()["y"][0].as_py() == pytest.approx(-1.0, abs=0.6)


def test_trees_count_where_columns_are_smooth() -> None:
    """Sines of two numbers, which latent features and lines foretell far less well."""
    rng = np.random.default_rng(3)
    x = np.sin(rng.uniform(-2.0, 2.0, (300, 2)) @ rng.normal(size=(2, 8)) + rng.uniform(0, 6, 8))
    gone = rng.random(x.shape) < 0.2
    table = pa.table({f"x{d}": pa.array(x[:, d], mask=gone[:, d]) for d in range(8)})
    types = {"columns": dict.fromkeys(table.column_names, "real")}
    done = impute(table, types, model="auto", chains=7, warmup=20, draws=12, thin=1)
    assert np.mean([done.candidates(d)["forest"] for d in range(8)]) > 0.88


def test_candidates_that_do_not_take_a_table_have_no_chain() -> None:
    table = pa.table({"h": ["1", "2"], "n": ["3", "4"], "x": [1.0, None]})
    types = {"columns": {"h": {"type": "binomial", "trials": "n"}, "n": "ignore", "x": "real"}}
    one = prepare(table, types, model="auto")[0]
    names = [one.model.candidates[one.model.turn(one, c)] for c in range(9)]
    assert set(names) == {"glfm", "linear"}
    alone = {"glfm": 0, "mixture": 0, "forest": 1, "linear": 0}
    one = prepare(table, types, model="auto", settings=alone)[0]
    with pytest.raises(GlfmError, match="takes no binomial"):
        chains.start(one, 0, 0)


# Forecasts -------------------------------------------------------------------------------------


def test_a_forecast_is_the_weighted_sum_of_the_candidates(posterior: Posterior) -> None:
    both = predict(weighted(posterior, WEIGHTS), CELLS)
    parts = [predict(posterior.of_candidate(which), CELLS) for which in (0, 1)]
    for d, w in enumerate(WEIGHTS):
        means = [part[d].mean for part in parts]
        if posterior.links[d].discrete:
            expected = w[0] * parts[0][d].probabilities + w[1] * parts[1][d].probabilities
            np.testing.assert_allclose(both[d].probabilities, expected, rtol=1e-9)
        else:
            np.testing.assert_allclose(both[d].mean, w[0] * means[0] + w[1] * means[1], rtol=1e-9)
            square = sum(w[k] * (parts[k][d].sd ** 2 + parts[k][d].mean ** 2) for k in (0, 1))
            np.testing.assert_allclose(both[d].sd ** 2, square - both[d].mean ** 2, rtol=1e-7)


def test_candidates_without_chains_do_not_count(posterior: Posterior) -> None:
    away = weighted(posterior, np.tile([0.25, 0.25, 0.5, 0.0], (4, 1)))
    assert away.chain_weights(0).tolist() == [0.25] * 4
    assert weighted(posterior, np.tile([0.0, 0.0, 1.0, 0.0], (4, 1))).chain_weights(1).sum() == 1.0


def test_scores_are_of_the_weighted_sum(posterior: Posterior) -> None:
    truth = {0: np.full(12, 0.3), 1: np.full(12, 1.0), 2: np.ones(12), 3: np.full(12, 2.0)}
    both = log_scores(weighted(posterior, WEIGHTS), CELLS, truth)
    parts = [log_scores(posterior.of_candidate(which), CELLS, truth) for which in (0, 1)]
    for d, w in enumerate(WEIGHTS):
        expected = np.log(w[0] * np.exp(parts[0][d]) + w[1] * np.exp(parts[1][d]))
        np.testing.assert_allclose(both[d], expected, rtol=1e-9)


def test_what_is_recalibrated_is_the_weighted_sum(posterior: Posterior) -> None:
    hidden = {0: (CELLS[0], np.full(12, 0.3)), 2: (CELLS[2], np.ones(12))}
    found = forecasts(weighted(posterior, WEIGHTS), hidden)
    parts = [forecasts(posterior.of_candidate(which), hidden) for which in (0, 1)]
    for d in hidden:
        expected = 2.0 * (WEIGHTS[d, 0] * parts[0][d] + WEIGHTS[d, 1] * parts[1][d])
        np.testing.assert_allclose(found[d], expected, rtol=1e-9)


def test_joint_draws_of_each_candidate_follow_the_stacked_forecast(
    problem: Problem, posterior: Posterior
) -> None:
    """Over the missing cells of a column, whichever candidate made the draws."""
    rows = {d: np.flatnonzero(np.isnan(problem.xs[d])) for d in (0, 2)}
    stack, rng = weighted(posterior, WEIGHTS[:, [1, 0, 2, 3]]), np.random.default_rng(3)
    marginal, joint = predict(stack, rows, (0.1, 0.25, 0.5, 0.75, 0.9)), JointDraws(stack, rows)
    np.testing.assert_array_equal(joint.levels[2], marginal[2].probabilities)
    np.testing.assert_allclose(joint.quantiles[0][:, 14], marginal[0].quantiles[:, 2], rtol=1e-9)
    for which in (0, 1):
        of = [c for c, group in zip(stack.chains, stack.groups, strict=True) if group == which]
        found = [joint.draw(rng, draw) for chain in of for draw in chain for _ in range(5)]
        below = np.mean([one[0][:, None] <= marginal[0].quantiles for one in found], axis=(0, 1))
        np.testing.assert_allclose(below, [0.1, 0.25, 0.5, 0.75, 0.9], atol=0.04)
        shares = [np.mean([one[2] == level for one in found], axis=0) for level in range(3)]
        away = np.array(shares).T - marginal[2].probabilities
        np.testing.assert_allclose(away.mean(axis=0), 0.0, atol=0.02)
        assert np.sqrt(np.mean(away**2)) < 0.12


def test_joint_draws_of_needed_columns_are_the_same_beside_others(
    problem: Problem, posterior: Posterior
) -> None:
    """Stacked or corrected: columns that need not be moved draw their random numbers alone."""
    rows = {d: np.flatnonzero(np.isnan(x)) for d, x in enumerate(problem.xs)}
    tilts = np.array([[0.6, -0.2, 0.1, 0.1]] * 2 + [[0.0] * 4] * 2)
    by = Recalibration.alike(np.full(4, 0.7), tilts)
    for one in (weighted(posterior, WEIGHTS), replace(posterior, recalibration=by)):
        draw = one.chains[0][0]
        rngs = [np.random.default_rng(3) for _ in range(4)]
        needed = [None, {0}, {2}, {1, 3}]
        joint = [JointDraws(one, rows, needed=columns) for columns in needed]
        for _ in range(2):
            whole, *parts = (of.draw(rng, draw) for of, rng in zip(joint, rngs, strict=True))
            for columns, part in zip(needed[1:], parts, strict=True):
                for d in columns:
                    np.testing.assert_array_equal(part[d], whole[d])


def test_joint_draws_inside_bounds_follow_the_stacked_forecast(
    problem: Problem, posterior: Posterior
) -> None:
    rows = {0: np.flatnonzero(np.isnan(problem.xs[0]))}
    bounded = replace(posterior.links[0], latent_bounds=(0.0, np.inf))
    stack = replace(weighted(posterior, WEIGHTS), links=(bounded, *posterior.links[1:]))
    at, rng = [0.25, 0.5, 0.75], np.random.default_rng(3)
    marginal, joint = predict(stack, rows, at)[0], JointDraws(stack, rows)
    for which in (0, 1):
        of = [c for c, group in zip(stack.chains, stack.groups, strict=True) if group == which]
        found = [joint.draw(rng, draw)[0] for chain in of for draw in chain for _ in range(5)]
        below = np.mean([x[:, None] <= marginal.quantiles for x in found], axis=0)
        some = below[np.ptp(marginal.quantiles, axis=1) > 0.1]  # not all at the bound
        assert len(some) > 20
        np.testing.assert_allclose(some.mean(axis=0), at, atol=0.02)


def test_versions_come_from_candidates_by_weight() -> None:
    places = spread([8, 8, 8, 8], 8, [0.45, 0.05, 0.45, 0.05])
    chains_of = [chain for chain, _ in places]
    assert [chains_of.count(c) for c in range(4)] == [4, 0, 4, 0]
    assert spread([8, 8], 4) == spread([8, 8], 4, [0.5, 0.5])


# Precision -------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [1.0, 2.0**1000, 2.0**-1000])
def test_the_error_in_units_of_the_sd_does_not_depend_on_the_unit(unit: float) -> None:
    whole, sd = np.array([[1.0, 5.0], [3.0, 5.0]]), np.array([4.0, 0.0])
    means = ChainMeans(whole * unit, whole * unit, whole * unit, sd * unit)
    np.testing.assert_array_equal(means.relative_error(), [0.25, 0.0])


def test_the_error_is_that_of_a_weighted_sum_of_means(posterior: Posterior) -> None:
    stack = weighted(posterior, WEIGHTS)
    plain = (
        chain_means(posterior.of_candidate(0), CELLS),
        chain_means(posterior.of_candidate(1), CELLS),
    )
    for d, means in chain_means(stack, CELLS).items():
        w = WEIGHTS[d]
        variance = sum(
            w[k] ** 2 * np.var(raw(stack, k, d), axis=0, ddof=1) / 2 for k in range(len(plain))
        )
        expected = np.sqrt(variance) / means.sd
        np.testing.assert_allclose(means.relative_error(), expected, rtol=1e-7)
        drawn = np.mean(means.first, axis=0)
        assert drawn == pytest.approx(
            sum(w[k] * raw(stack, k, d, half=True).mean(axis=0) for k in (0, 1)), rel=1e-7
        )


def raw(posterior: Posterior, which: int, d: int, half: bool = False) -> np.ndarray:
    """Return what each chain of a candidate says, one chain at a time."""
    own = posterior.of_candidate(which)
    found = []
    for chain in own.chains:
        part = chain[: len(chain) // 2] if half else chain
        marginal = predict(replace(own, chains=(part,)), CELLS)[d]
        if posterior.links[d].discrete and not posterior.links[d].ordered:
            found.append(marginal.probabilities)
        else:
            found.append(marginal.mean)
    if np.ndim(found[0]) == 2:  # of the level that all together hold likeliest
        best = predict(posterior, CELLS)[d].probabilities.argmax(axis=1)
        found = [p[np.arange(best.size), best] for p in found]
    return np.array(found)


def test_candidates_that_differ_are_no_reason_for_more_chains(posterior: Posterior) -> None:
    """Chains of each candidate twice over agree to the last digit, however far the models are."""
    one, two = posterior.chains[:2]
    twins = weighted(replace(posterior, chains=(one, two, one, two)), WEIGHTS)
    found = measure_precision(twins, CELLS, np.random.default_rng(0))
    assert found.typical < 1e-9
    apart = twins.diagnose({"log_likelihood": np.array([[1.0, 2.0] * 4, [9.0, 8.0] * 4] * 2)})
    assert apart.quantities[0].rhat < 1.01


def test_a_single_chain_of_a_candidate_tells_of_no_precision(posterior: Posterior) -> None:
    """Not even beside two of the other, which alone would make estimates seem exact."""
    for n in (2, 3):
        few = weighted(replace(posterior, chains=posterior.chains[:n]), WEIGHTS)
        assert np.isnan(predict(few, CELLS)[0].relative_error).all()
        found = measure_precision(few, CELLS, np.random.default_rng(0))
        assert np.isnan(found.typical)
        assert not found.good


def test_the_stated_error_of_unequal_weights_is_how_far_two_runs_differ(
    posterior: Posterior,
) -> None:
    """Its quantiles over cells, and not the mean square alone, which few heavy chains mislead."""
    of = np.array(posterior.groups)
    for share in (0.9, 0.5, 1.0):
        own = weighted(posterior, np.tile([share, 1.0 - share], (4, 1)))
        v, sd = own.chain_weights(0), np.where(of == of[0], 1.0, 2.0)[:, None]
        m, other = sd * np.random.default_rng(3).standard_normal((2, of.size, 40_000))
        m[v == 0.0] = np.nan  # of a column to which only one candidate counts
        means = within_candidates(own, 0, ChainMeans(m, m, m, np.ones(m.shape[1])))
        found = np.quantile(np.abs(_contrasts(means.whole, of)), (0.5, 0.95))
        differ = np.nan_to_num(v @ np.where(v[:, None] > 0.0, m - other, 0.0))
        np.testing.assert_allclose(found, np.quantile(np.abs(differ), (0.5, 0.95)), rtol=0.02)
        variance = np.mean(means.relative_error() ** 2)
        assert 2.0 * variance == pytest.approx(np.var(differ), rel=0.03)


# What is learnt, kept and said -------------------------------------------------------------------


def test_weights_are_learnt_and_do_not_depend_on_threads(
    problem: Problem, posterior: Posterior
) -> None:
    one, two = (recalibrate(posterior, problem, threads=n).recalibration for n in (1, 2))
    assert one is not None
    assert two is not None
    assert one.weights is not None
    np.testing.assert_array_equal(one.weights, two.weights)
    assert one.weights.shape == (4, 5)
    assert (one.weights[:, :2] > 0).all()
    assert not one.weights[:, 2:].any()
    assert one.weights[1, 1] > 0.55, "two groups that lie crosswise are a mixture's"


def test_hidden_cells_are_forecast_by_some_draws_of_every_chain(
    problem: Problem, posterior: Posterior
) -> None:
    """By seven of chains that go on, by three where rows are too many for that."""
    many = replace(posterior, chains=posterior.chains * 3)
    assert {len(chain) for chain in without_cells(many, problem)[0].chains} == {7}
    again = replace(problem, xs=tuple(np.tile(x, 9) for x in problem.xs))
    folded, hidden = without_cells(many, again)
    assert {len(chain) for chain in folded.chains} == {3}
    assert 1000 <= max(at.max() for at, _ in hidden.values()) < 2000  # places among those taken


def test_chains_that_come_later_leave_what_was_found_of_the_first(
    problem: Problem, posterior: Posterior
) -> None:
    folded: Folded = {}
    chains = (posterior.chains * 3)[:9]  # as many draws of each, from six chains on
    first = replace(posterior, chains=chains[:7])
    recalibrate(first, problem, folded=folded)
    found = {time: part for time, (_, part) in folded.items()}
    every = replace(posterior, chains=chains)
    after = recalibrate(every, problem, folded=folded).recalibration
    assert sorted(folded) == [0, 1, 2, 3]
    for time, part in found.items():
        again = folded[time][1]
        assert len(again) == 9
        assert all(one is other for one, other in zip(part, again, strict=False))
    at_once = recalibrate(every, problem).recalibration
    assert after is not None
    assert at_once is not None
    np.testing.assert_array_equal(after.weights, at_once.weights)
    np.testing.assert_array_equal(after.tilts, at_once.tilts)
    others = replace(posterior, chains=chains[::-1])
    of_others = recalibrate(others, problem, folded=folded).recalibration
    alone = recalibrate(others, problem).recalibration
    assert of_others is not None
    assert alone is not None
    np.testing.assert_array_equal(of_others.weights, alone.weights)


def test_of_a_thousand_rows_and_more_all_are_taken_fewer_times(
    posterior: Posterior, problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hiding, "ROWS", 200)  # of the 240 of the table
    times = []

    def counted(*of: Any, **how: Any) -> Any:
        times.append(of[2])
        return without_cells(*of, **how)

    monkeypatch.setattr(hidden_cells, "without_cells", counted)
    recalibrate(posterior, problem)
    assert times == [0, 1]
    monkeypatch.setattr(hiding, "ROWS", 1000)
    recalibrate(posterior, problem)
    assert times[2:] == [0, 1, 2, 3]
    assert max(at.max() for at, _ in without_cells(posterior, problem)[1].values()) >= 200


def test_short_chains_take_fewer_hidden_cells_sweeps_and_draws(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So that these do not take longer than the chains themselves."""
    times, sweeps, resumed = {}, [], hidden_cells.resumed

    def counted(*args: Any, **how: Any) -> Posterior:
        sweeps.append(how["sweeps"])
        return resumed(*args, **how)

    monkeypatch.setattr(hidden_cells, "resumed", counted)
    for draws in (5, 6):
        options = {"model": "auto", "chains": 6, "warmup": 3, "draws": draws, "thin": 1}
        pair = {"glfm": 1, "forest": 1, "linear": 0}
        problem, _, plan = prepare(table_of(), TYPES, settings=pair, **options)
        folded: Folded = {}
        recalibrate(sample(problem, plan).posterior, problem, folded=folded)
        kept = {len(chain) for _, chains in folded.values() for chain in chains}
        times[draws] = len(folded), kept, set(sweeps)
        sweeps.clear()
    assert times == {5: (2, {1, 4}, {6}), 6: (4, {2, 7}, {12})}


def test_forecasts_of_parts_with_unlike_numbers_of_draws_count_by_their_cells(
    problem: Problem, posterior: Posterior
) -> None:
    odd = [without_cells(posterior, problem, time) for time in (0, 1)]
    shorter = replace(odd[1][0], chains=tuple(chain[:3] for chain in odd[1][0].chains))
    parts = [odd[0], (shorter, odd[1][1])]
    assert len({len(chain) for folded, _ in parts for chain in folded.chains}) > 1
    truth = {d: np.concatenate([hidden[d][1] for _, hidden in parts]) for d in range(4)}
    found, weights = stacked_forecasts(parts, truth, 5, np.ones(4))
    for d in truth:
        each = [
            forecasts(weighted(folded, weights), hidden)[d] / folded.n_draws
            for folded, hidden in parts
        ]
        np.testing.assert_allclose(found[d], np.concatenate(each), rtol=1e-9)


def test_weights_are_told_and_kept(tmp_path: Path) -> None:
    options = {"model": "auto", "chains": 4, "warmup": 10, "draws": 8, "thin": 1, "threads": 1}
    options["settings"] = PAIR
    folder = tmp_path / "a.glfm"
    done = impute(table_of(), TYPES, save=folder, **options)
    said = done.to_dict()
    assert said["candidates"].keys() == {"glfm", "mixture"}
    assert sum(said["candidates"].values()) == pytest.approx(1.0, abs=1e-3)
    column = said["per_column"][1]["candidates"]
    by = done.posterior.recalibration
    weights = {"glfm": by.weights[1, 0], "mixture": by.weights[1, 1]}
    assert column == pytest.approx(weights, abs=1e-4)
    assert f"by glfm {said['candidates']['glfm']:.2f} and mixture" in done.in_words()
    kept = load_fit(folder).posterior
    np.testing.assert_array_equal(kept.recalibration.weights, by.weights)
    explored = explore(folder).posterior
    assert explored.model is MODELS["glfm"]
    assert [len(chain) for chain in explored.chains] == [8, 8]
    header = json.loads((folder / "run.json").read_text())
    for wrong in ([[0.5, 0.5]] * 4, [[0.7, 0.7, 0.0, 0.0]] * 4, [[-0.5, 1.5, 0.0, 0.0]] * 4, None):
        header["recalibration"]["weights"] = wrong
        (folder / "run.json").write_text(json.dumps(header))
        with pytest.raises(StoreError, match="recalibration"):
            load_fit(folder)


def test_a_column_with_an_atom_is_forecast_with_the_weights_of_all_columns() -> None:
    """Nothing corrects its forecasts, and no hidden cell of its own says who forecasts it best."""
    rng = np.random.default_rng(4)
    x, amount = rng.standard_normal(300), rng.gamma(2.0, 3.0, 300)
    rain = np.where(np.sin(4.0 * x) < 0.3, 0.0, amount)
    table = pa.table({"rain": rain, "x": np.where(rng.random(300) < 0.1, np.nan, x)})
    types = {"columns": {"rain": "positive", "x": "real"}}
    done = impute(table, types, model="auto", chains=4, warmup=30, draws=8, seed=1, threads=1)
    by = done.posterior.recalibration
    assert by is not None
    assert by.weights is not None
    own, shared = by.weights[1], by.weights[0]
    assert (shared[own > 0.0] > 0.0).all()
    # The other column alone has a say, and its own weights lie further out than those of all.
    equal = 1.0 / np.count_nonzero(own)
    assert (np.abs(shared - equal) <= np.abs(own - equal) + 1e-9)[own > 0.0].all()


def test_numbers_at_an_atom_are_moved_to_what_is_forecast_of_both_parts() -> None:
    rng, n = np.random.default_rng(2), 20_000
    p = ndtr(FINE)
    here, there = (
        np.where(p < atom, 0.0, -size * np.log1p(-np.clip((p - atom) / (1.0 - atom), 0.0, 1.0)))
        for atom, size in ((0.7, 1.0), (0.4, 3.0))
    )
    x = np.where(rng.random(n) < 0.7, 0.0, rng.exponential(1.0, n))
    quantiles = (np.tile(one, (n, 1)) for one in (here, there))
    moved = _move_numbers(x, FINE, next(quantiles), next(quantiles), rng.random(n))
    assert np.mean(moved == 0.0) == pytest.approx(0.4, abs=0.02)
    assert moved[moved > 0.0].min() > 0.001
    above = np.quantile(moved[moved > 0.0], [0.25, 0.5, 0.75])
    np.testing.assert_allclose(above, -3.0 * np.log([0.75, 0.5, 0.25]), rtol=0.08)


def test_without_hidden_cells_every_chain_counts_the_same() -> None:
    options = {"model": "auto", "chains": 3, "warmup": 3, "draws": 2, "threads": 1}
    done = impute(table_of(), TYPES, settings={"recalibrate": False}, **options)
    equal = {"glfm": 2 / 3, "forest": 1 / 3}
    assert done.to_dict()["candidates"] == pytest.approx(equal, abs=1e-4)
    alone = impute(table_of(), TYPES, **{**options, "model": "mixture"})
    assert "candidates" not in alone.to_dict()
