"""Which features are listed: judged apart from the rows and columns that found them."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from glfm_cli import explore
from glfm_cli.exploration.crossfit import CrossFit, cross_fit, without_each
from glfm_cli.exploration.evidence import weigh
from glfm_cli.exploration.explanation import explain
from glfm_cli.exploration.explore import plan_explore
from glfm_cli.exploration.features import effects
from glfm_cli.exploration.halves import sample_halves
from glfm_cli.exploration.job import ExplorationJob
from glfm_cli.exploration.request import Request
from glfm_cli.exploration.scales import Scale, scale_of
from glfm_cli.exploration.stability import standard_error
from glfm_cli.inference.sampling import Plan, sample
from glfm_cli.options import MatrixOptions, Sampling, Saving

PLAN = Plan(chains=4, warmup=10, draws=6, thin=1, seed=3)


def job_of(columns: dict[str, Any], types: dict[str, Any]) -> tuple[ExplorationJob, list[Scale]]:
    """Return a table ready to be explored, and its scales."""
    groups = Sampling(), Saving(), MatrixOptions()
    job = plan_explore(pa.table(columns), {"columns": types}, groups, Request())
    spans, start = [], 0
    for link in job.links:
        spans.append((start, start + link.n_latent))
        start += link.n_latent
    return job, [
        scale_of(d, encoded, link, span)
        for d, (encoded, link, span) in enumerate(
            zip(job.data.columns, job.links, spans, strict=True)
        )
    ]


def two_halves(probability: np.ndarray) -> list[CrossFit]:
    """Return probabilities (D, N, K) as if each half of the rows had been told by the other."""
    rows, found = np.arange(probability.shape[1]), np.ones((2, probability.shape[2]))
    return [CrossFit(some, probability[:, some], found) for some in (rows[::2], rows[1::2])]


@pytest.fixture(scope="module")
def grouped(seed: int) -> tuple[ExplorationJob, list[Scale], np.ndarray]:
    """A table in which 30 % of the rows are higher in two numbers and have other levels."""
    rng = np.random.default_rng(seed)
    z = rng.random(160) < 0.3
    y = rng.standard_normal((160, 4)) + 3.0 * np.outer(z, [1, 1, 1, 0])
    columns = {
        "a": y[:, 0],
        "b": np.exp(y[:, 1]),
        "c": np.where(y[:, 2] > 1.5, "x", "y"),
        "d": y[:, 3],
    }
    types = {"a": "real", "b": "positive", "c": "categorical", "d": "real"}
    return *job_of(columns, types), z


# Who has a feature --------------------------------------------------------------------------


@given(nps.arrays(np.float64, (3, 4, 5), elements=st.floats(-30, 0)))
def test_a_column_has_no_part_in_what_is_told_without_it(log_p: np.ndarray) -> None:
    weights = without_each(list(log_p))
    for d in range(3):
        others = np.exp(np.delete(log_p, d, axis=0).sum(axis=0))
        expected = others / others.sum(axis=1, keepdims=True)
        assert weights[d] == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_halves_share_no_row_and_draws_know_their_own_alone(
    grouped: tuple[ExplorationJob, list[Scale], np.ndarray],
) -> None:
    problem = grouped[0].problem
    halves, stopped = sample_halves(problem, PLAN)
    again, _ = sample_halves(problem, PLAN, threads=2)
    assert stopped is None
    assert len(halves) == 2
    for half, same, other in zip(halves, again, halves[::-1], strict=True):
        assert np.array_equal(half.own, other.other)
        assert np.array_equal(np.sort([*half.own, *half.other]), np.arange(160))
        assert len(half.posterior.chains) == 1
        assert [len(chain) for chain in half.posterior.chains] == [3]
        draw, twin = half.posterior.chains[0][-1].latent, same.posterior.chains[0][-1].latent
        assert draw.bits.shape[0] == half.own.size
        assert np.array_equal(draw.B, twin.B)
    first, second = (half.posterior.chains[0][-1].latent for half in halves)
    assert first.B.shape != second.B.shape or not np.allclose(first.B, second.B)


def test_chains_without_time_judge_nothing(
    grouped: tuple[ExplorationJob, list[Scale], np.ndarray],
) -> None:
    problem = grouped[0].problem
    assert sample_halves(problem, PLAN, time_limit=0.0) == ((), "time limit")
    three = dataclasses.replace(problem, xs=tuple(x[:3] for x in problem.xs))
    assert sample_halves(three, PLAN) == ((), None)


def test_members_are_told_by_other_columns_and_other_rows(
    grouped: tuple[ExplorationJob, list[Scale], np.ndarray],
) -> None:
    job, scales, z = grouped
    plan = dataclasses.replace(PLAN, warmup=60)
    run = sample(job.problem, plan)
    shown = explain(run.posterior, 0, 5, bias=True)
    k = int(np.argmax(np.abs([np.corrcoef(z, column)[0, 1] for column in shown.Z.T])))
    (half, _), _ = sample_halves(job.problem, plan)
    fit = cross_fit(half, shown, scales, bias=True)
    assert fit.known[k]
    told = fit.probability[:, :, k]
    assert np.array_equal(fit.rows, half.other)
    for d in range(4):  # three columns tell it, be it without a, b, c or d
        assert np.corrcoef(told[d], shown.Z[fit.rows, k])[0, 1] > 0.7
        x = scales[d].encoded.x.copy()
        x[half.other] = x[half.other][::-1]
        encoded = dataclasses.replace(scales[d].encoded, x=x)
        moved = [*scales]
        moved[d] = dataclasses.replace(scales[d], encoded=encoded)
        other = cross_fit(half, shown, moved, bias=True).probability
        assert np.allclose(other[d], fit.probability[d])
        assert not np.allclose(np.delete(other, d, 0), np.delete(fit.probability, d, 0))
    turned = dataclasses.replace(shown, Z=1 - shown.Z)
    assert np.allclose(cross_fit(half, turned, scales, bias=True).probability[:, :, k], 1 - told)


# What is more than chance -------------------------------------------------------------------


def test_chance_is_above_the_null_level_in_one_of_twenty_tables(seed: int) -> None:
    rng = np.random.default_rng(seed)
    above = 0
    for repeat in range(100):
        columns = {
            "a": rng.standard_cauchy(60),
            "b": rng.choice(list("xyz"), 60, p=[0.05, 0.15, 0.8]),
            "c": rng.standard_normal(60),
        }
        _, scales = job_of(columns, {"a": "real", "b": "categorical", "c": "real"})
        probability = rng.beta(0.1, 0.3, (3, 60, 4))
        above += bool(weigh(two_halves(probability), scales, repeat).order)
    assert above <= 10  # of which at most 5 are expected


def test_one_half_alone_is_above_the_null_level_in_one_of_twenty_tables(seed: int) -> None:
    rng = np.random.default_rng(seed)
    _, scales = job_of(
        {"a": rng.standard_normal(50), "b": list("xy") * 25}, {"a": "real", "b": "categorical"}
    )
    above = 0
    for repeat in range(200):
        one = CrossFit(np.arange(50), rng.random((2, 50, 3)), np.ones((1, 3)))
        above += bool(weigh([one], scales, repeat).order)
    assert 2 <= above <= 20  # 10 are expected


def test_features_are_taken_for_what_they_add(
    grouped: tuple[ExplorationJob, list[Scale], np.ndarray], seed: int
) -> None:
    _, scales, z = grouped
    rng = np.random.default_rng(seed + 1)  # not the random numbers of the table
    other = scales[3].encoded.x > 0
    p = np.column_stack([rng.random(160), np.abs(other - 0.2), np.abs(z - 0.1), 0.5 + 0.1 * z])
    found = weigh(two_halves(np.tile(p, (4, 1, 1))), scales, seed)
    assert found.order == (2, 1) or found.order == (3, 1)  # a twin is taken once
    assert found.credible[2].tolist() == [True, True, True, False]
    assert found.credible[1].tolist()[3]
    assert not found.credible[0].any()
    assert (np.sign(found.z[2, :2]) == 1).all()
    assert np.allclose(found.z[2], found.z[3])


def test_a_feature_that_others_hide_has_to_do_with_the_columns_it_was_taken_for() -> None:
    rng = np.random.default_rng(4)
    z, w, noise = rng.normal(size=(3, 400))
    w -= z * (z @ w) / (z @ z)
    columns = {"a": z + 0.1 * noise, "b": w / w.std() - z / z.std() + 0.1 * noise, "c": noise}
    _, scales = job_of(columns, dict.fromkeys(columns, "real"))
    p = 0.5 + 0.1 * np.column_stack([z / z.std(), z / z.std() + w / w.std()])
    found = weigh(two_halves(np.tile(p, (3, 1, 1))), scales, 0)
    assert found.order == (0, 1)
    assert abs(found.z[1, 1]) < found.null_level < abs(found.taken[1, 1])
    assert found.credible[1, 1]


def test_a_half_without_the_feature_takes_nothing_away(
    grouped: tuple[ExplorationJob, list[Scale], np.ndarray],
) -> None:
    _, scales, z = grouped
    one, two = two_halves(np.tile(np.abs(z - 0.1)[:, None], (4, 1, 1)))
    none = CrossFit(two.rows, np.zeros((4, 80, 1)), np.zeros((1, 1)))
    alone, both = weigh([one], scales, 0), weigh([one, two], scales, 0)
    assert np.allclose(weigh([one, none], scales, 0).z, alone.z)
    assert np.allclose(both.z, (alone.z + weigh([two], scales, 0).z) / 2)


def test_a_few_rows_are_no_evidence() -> None:
    rare = np.zeros(200, dtype=bool)
    rare[:4] = True
    columns = {"a": np.where(rare, "x", "y"), "b": np.arange(200.0)}
    _, scales = job_of(columns, {"a": "categorical", "b": "real"})
    found = weigh(two_halves(np.tile(rare[:, None] * 1.0, (2, 1, 1))), scales, 0)
    assert found.order == ()
    assert not found.z[0, 0]


def test_without_halves_nothing_is_credible() -> None:
    _, scales = job_of({"a": [1.0, 2.0, 5.0]}, {"a": "real"})
    found = weigh([], scales, 0)
    assert found.order == ()


# What is said of it -------------------------------------------------------------------------


def test_effects_are_means_of_observed_cells_by_membership() -> None:
    columns = {"a": [1.0, 2.0, None, 4.0, 8.0, 6.0], "b": ["x", "y", "x", None, "y", "y"]}
    _, scales = job_of(columns, {"a": {"type": "real", "transform": "none"}, "b": "categorical"})
    p = np.array([[0.5, 1.0, 1.0, 0.0], [0.25, 0.0, 1.0, 1.0]])[:, :, None]
    known = CrossFit(np.array([0, 1, 2, 3]), p, np.ones((1, 1)))
    unknown = CrossFit(np.array([4, 5]), np.zeros((2, 2, 1)), np.zeros((1, 1)))
    found = effects([known, unknown], 0, scales, np.array([3.0, -4.0]), np.array([False, True]))
    a, b = sorted(found, key=lambda effect: effect.scale.d)
    assert a.on.mean == pytest.approx((0.5 * 1 + 1.0 * 2) / 1.5)
    assert a.off.mean == pytest.approx((0.5 * 1 + 1.0 * 4) / 1.5)
    assert b.on.mass == pytest.approx([1.0, 0.0])
    assert b.off.mass == pytest.approx([0.75 / 1.75, 1.0 / 1.75])
    assert (a.z, a.credible, b.z, b.credible) == (3.0, False, -4.0, True)
    assert a.size == pytest.approx(2 / 3)  # P(a at most 2): 1 with it, 1/3 without
    assert b.size == pytest.approx(1.0 / 1.75)
    assert effects([unknown], 0, scales, np.zeros(2), np.zeros(2)) == ()


@given(nps.arrays(np.float64, (7, 3), elements=st.floats(0, 1)))
def test_a_chain_is_one_trial_of_stability(shares: np.ndarray) -> None:
    error = standard_error(shares)
    assert np.allclose(error, standard_error(1 - shares))
    assert (standard_error(np.vstack([shares, shares])) < error).all()
    assert (error <= 0.5 / np.sqrt(8)).all()
    assert standard_error(np.ones((7, 1)))[0] == pytest.approx(np.sqrt(8 / (81 * 10)))


def test_a_run_that_is_cut_short_says_who_judged(
    grouped: tuple[ExplorationJob, list[Scale], np.ndarray],
) -> None:
    columns = {"a": np.arange(40.0), "b": np.arange(40.0) % 7}
    types = {"columns": {"a": "real", "b": "real"}}
    found = explore(pa.table(columns), types, chains=1, draws=10**6, threads=1, time_limit=0.2)
    assert found.stopped == "time limit"
    assert any("judged by the rows that found them" in text for text in found.warnings)
