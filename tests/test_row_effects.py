"""What rows of a group share: against dense normal laws, and the joint law of whole sweeps."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.interpolate import CubicSpline
from scipy.stats import halfcauchy, multivariate_normal, norm

from glfm_cli import impute
from glfm_cli.arrays import Array, Groups
from glfm_cli.completion import prepare
from glfm_cli.errors import GlfmError
from glfm_cli.inference.chain import Chain, start_chain
from glfm_cli.inference.folding import fold_in
from glfm_cli.inference.sampling import sample
from glfm_cli.latent import MODELS
from glfm_cli.latent.factor_series import FactorSeries, OwnSeries
from glfm_cli.latent.given import GroupPredictors
from glfm_cli.latent.glfm import Glfm
from glfm_cli.latent.glfm.state import GlfmConfig
from glfm_cli.latent.grouped import GroupedState, with_groups
from glfm_cli.latent.joined_rows import RowsToJoin
from glfm_cli.latent.model import Problem
from glfm_cli.latent.row_effects import RowEffects
from glfm_cli.latent.row_laws import (
    Series,
    SeriesLaw,
    curve,
    draw_intercepts,
    draw_variances,
    group_sums,
    intercept_law,
    knots_precision,
)
from glfm_cli.schema import ColumnType
from glfm_cli.streams import Streams
from tests.statistical import bsvd_prior
from tests.statistical.geweke import JointLaw, even, odd
from tests.statistical.series import Scripted, smooth

CODE = np.array([0, 1, 0, 2, 1, 0, 2, 2, 0, 1])
TIME = np.array([3.0, 0.0, 1.0, 5.0, 0.5, 1.5, 2.0, 2.5, 9.0, 4.0])


@pytest.mark.parametrize("lengths", [(1.7, 0.4), (3.0, 2.999), (0.05, 6.0), (9.0, 1e-5)])
def test_a_series_is_an_autoregression_within_groups(
    lengths: tuple[float, float], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    code, time = np.append(CODE, 0), np.append(TIME, 1.0)  # two rows at a time
    series, v, noise = Series.of(code, time), 0.6, 0.3
    assert series.step == np.median([0.5, 1.5, 6.0, 0.5, 3.5, 0.5, 2.5])
    K = v * np.where(code[:, None] == code, smooth(time, series.step, lengths), 0.0)
    seen = np.array([1, 1, 0, 1, 1, 1, 1, 0, 1, 1, 1]) / noise
    e = rng.normal(size=code.size)
    cov = K - K @ (seen[:, None] * np.linalg.solve(np.eye(11) + K * seen, K))
    law, b = SeriesLaw(series, lengths, v, series.sums(seen)), series.sums(seen * e)
    drawn, squares = np.empty((5_000, code.size)), np.empty(5_000)
    for n in range(len(drawn)):
        x = law.draw(b, rng).T / [[1.0], [np.sqrt(lengths[0] * lengths[1])]]
        own = OwnSeries(x[None], np.array([lengths]).T, np.array([v]))
        drawn[n], squares[n] = x[0, series.node], own.energy(series)[0]
    whole = np.linalg.slogdet(np.eye(len(K)) + K * seen)[1]
    assert law.log_ratio == pytest.approx(whole, abs=1e-6)
    assert np.sum(law.half(b) ** 2) == pytest.approx(seen * e @ cov @ (seen * e), abs=1e-6)
    assert drawn.mean(axis=0) == pytest.approx(cov @ (seen * e), abs=0.04)
    assert np.cov(drawn.T) == pytest.approx(cov, abs=0.04)
    # Of a quadratic form of N variables, less what is seen of them: the trace.
    first = np.unique(series.node, return_index=True)[1]
    rest = np.sum(series.sums(seen) * (drawn[:, first] ** 2).mean(axis=0))
    assert squares.mean() + rest == pytest.approx(20.0 + np.sum(law.half(b) ** 2), abs=0.5)


def test_intercepts_are_drawn_given_the_rows_of_their_group(seed: int) -> None:
    rng = np.random.default_rng(seed)
    omega, m = np.array([[1.0, 0.7], [0.7, 0.8]]), np.array([0.5, -1.0])
    noise = np.array([0.5, 2.0])
    e, observed = np.array([[0.3, 9.0], [0.7, 9.0], [1.0, 9.0]]), np.array([[1.0, 0.0]] * 3)
    rows = group_sums(np.zeros(3, np.int64), 2, e, observed, noise)
    a = np.array([draw_intercepts(*rows, m, omega, rng) for _ in range(8_000)])
    # Three values of the first column with sum 2; the second column knows of it by omega alone.
    gain = omega[:, 0] / (omega[0, 0] + noise[0] / 3.0)
    assert a[:, 0].mean(axis=0) == pytest.approx(m + gain * (2.0 / 3.0 - m[0]), abs=0.03)
    assert np.cov(a[:, 0].T) == pytest.approx(omega - np.outer(gain, omega[0]), abs=0.04)
    assert a[:, 1].mean(axis=0) == pytest.approx(m, abs=0.03)
    assert np.cov(a[:, 1].T) == pytest.approx(omega, abs=0.05)


def test_new_rows_follow_their_group_and_their_neighbours_in_time(seed: int) -> None:
    rng = np.random.default_rng(seed)
    spans = ((0, 1), (1, 2), (2, 3))  # the second is the time, the third a predictor of groups
    time, of_x = np.array([0.0, 1.0, 3.0, 0.0]), np.full((4, 3), np.nan)
    of_x[:, 2] = [1.0, 1.0, 1.0, 3.0]
    groups = Groups(np.array([0, 0, 0, 1]), ("a", "b"), time, 1)
    fitted = RowEffects.start(groups, spans, of_x)
    fitted.a[:], fitted.m[:] = [[0.5, 0.0], [-0.5, 0.0]], [0.2, 0.0]
    fitted.omega[:] = np.diag([0.9, 1.0])
    fitted.v[:], fitted.length[:], fitted.u[:, 0] = 0.7, [[2.0], [0.8]], [1.0, 0.3, -0.4, 0.0]
    fitted.b[:, 0], fitted.q[:], fitted.d[:] = [0.3, -0.2], 0.5, 0.4
    fitted.f[:, 0] = [0.4, -0.6, 1.0]  # at 0, 1 and 3
    fitted.h[0, :, 0] = [0.5, 0.2, -0.3]
    assert fitted.step == 1.5
    g = np.array([[0.9], [-0.2], [1.1], [0.0]])
    load, lengths = np.array([[0.8, 0.0]]), np.array([[3.0], [1.2]])
    fitted.factors = FactorSeries(g, load, np.ones(1), lengths)
    # Two rows of the first group, the second of them unseen, and so of a new one.
    later = np.array([2.0, 4.5, 0.0, 1.5])
    of_x[:, 2] = [7.0, np.nan, np.nan, 2.5]  # of groups that the fit has, what it knew
    groups = Groups(np.array([0, 0, 2, 2]), ("a", "b", "c"), later, 1)
    rows = RowsToJoin(fitted, groups, of_x)
    e, seen = np.array([[1.2], [9.0], [1.8], [9.0]]), np.array([[1], [0], [1], [0]])
    noise, both = np.array([0.4, 1.0, 1.0]), np.zeros((4, 2))
    drawn = np.empty((4_000, 4))
    for one in drawn:
        rows.update(np.hstack([e, both]), np.hstack([seen, both]), noise, rng)
        assert np.all(rows.w[:, 1] == 0.0)
        one[:] = rows.w[:, 0]
    every = np.concatenate([time[:3], later])
    code = np.array([0, 0, 0, 0, 0, 1, 1])
    t = ((every - time.mean()) / time.std())[3:]
    slope = 1.0 + 0.4 * t
    mean = np.array([0.5, 0.5, 0.2, 0.2]) * slope
    mean[:2] += 0.3 * t[:2]
    common = curve(fitted.knots, fitted.f, later)[:, 0]
    mean += common + curve(fitted.knots, fitted.h[0], later)[:, 0] * [-1.0, -1.0, 0.5, 0.5]
    cov = np.zeros((4, 4))
    cov[2:, 2:] = 0.9 * np.outer(slope[2:], slope[2:]) + 0.5 * np.outer(t[2:], t[2:])
    # What the rows of the fit say of the series of the column, and of the shared one.
    parts = (1.0, 0.7, fitted.u[:3, 0], (2.0, 0.8)), (0.8, 1.0, g[:3, 0], (3.0, 1.2))
    for weight, v, x, own in parts:
        K = v * smooth(every, 1.5, own) * (code[:, None] == code)
        gain = K[3:, :3] @ np.linalg.inv(K[:3, :3])
        mean += weight * gain @ x
        cov += weight**2 * (K[3:, 3:] - gain @ K[:3, 3:])
    # With second derivatives of 0 at both ends, and straight beyond the last.
    assert common[2] == pytest.approx(0.4)
    assert common[1] == pytest.approx(1.0 + 1.5 * (0.8 + 2.0 * (0.8 + 1.0) / (2.0 * 3.0)))
    at = [0, 2]
    gain = cov[:, at] @ np.linalg.inv(cov[np.ix_(at, at)] + 0.4 * np.eye(2))
    assert drawn.mean(axis=0) == pytest.approx(mean + gain @ (e[at, 0] - mean[at]), abs=0.06)
    assert np.cov(drawn.T) == pytest.approx(cov - gain @ cov[at], abs=0.07)



def test_what_rows_say_of_intercepts_and_slopes_is_that_of_dense_laws(seed: int) -> None:
    rng = np.random.default_rng(seed)
    series, lengths, v, q, noise = Series.of(CODE, TIME), (1.7, 0.9), 0.6, 0.8, 0.3
    t = (TIME - TIME.mean()) / TIME.std()
    same = CODE[:, None] == CODE
    K = v * np.where(same, smooth(TIME, series.step, lengths), 0.0)
    seen = np.array([1, 1, 0, 1, 1, 1, 1, 0, 1, 1]) / noise
    e, at = rng.normal(size=CODE.size), np.flatnonzero(seen)
    law = SeriesLaw(series, lengths, v, series.sums(seen))
    lines = np.column_stack([np.ones(10), (series.time - TIME.mean()) / TIME.std()])
    A, B = law.lines(series.sums(seen * e), lines, series.code, 3)
    of_a = intercept_law(A, B, q)
    for g in range(3):
        own = at[CODE[at] == g]
        V = (K + noise * np.eye(CODE.size))[np.ix_(own, own)]
        X = np.column_stack([np.ones(own.size), t[own]])
        assert A[g] == pytest.approx(X.T @ np.linalg.solve(V, X))
        assert B[g] == pytest.approx(X.T @ np.linalg.solve(V, e[own]))
        V += q * np.outer(t[own], t[own])
        assert of_a[0][g] == pytest.approx(np.linalg.inv(V).sum())
        assert of_a[1][g] == pytest.approx(np.linalg.solve(V, e[own]).sum())


OMEGA = [[1.5, 0.9, 0.0], [0.9, 1.1, 0.0], [0.0, 0.0, 1.0]]


def test_curves_and_intercepts_are_drawn_from_their_dense_law(seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups, spans = Groups(CODE, ("a", "b", "c"), TIME, 1), ((0, 1), (1, 2), (2, 3), (3, 4))
    of_groups = np.array([2.0, 5.0, 4.0])[CODE]
    effects = RowEffects.start(groups, spans, np.column_stack([*3 * [0 * TIME], of_groups]))
    assert list(effects.at) == [0, 2, 3]  # not time
    assert list(effects.led) == [True, True, False]  # not the predictor itself
    x = (of_groups - 11.0 / 3.0) / np.std([2.0, 5.0, 4.0])
    effects.p[:], effects.q[:], effects.r[:], effects.d[:] = 0.7, 0.2, 1.2, 0.3
    lengths, v, noise = (1.7, 0.9), 0.6, 0.3
    effects.omega[:], effects.m[:], effects.a[:, 1] = OMEGA, [0.4, -0.2, 0.0], 0.5
    series, t, same = Series.of(CODE, TIME), effects.clocked(TIME), CODE[:, None] == CODE
    seen, e = np.array([1, 1, 0, 1, 1, 1, 1, 0, 1, 1]) / noise, rng.normal(size=10)
    law = SeriesLaw(series, lengths, v, series.sums(seen))
    shapes, drawn = curve(effects.knots, np.eye(10), series.time), np.empty((2_500, 30))
    for one in drawn:
        effects._draw_curves(0, series, shapes, law, series.sums(seen * e), rng)
        values = curve(effects.knots, np.column_stack([effects.f[:, 0], effects.h[0, :, 0]]), TIME)
        one[:] = np.concatenate([*values.T, effects.a[CODE, 0]])
    away = np.abs(TIME[:, None] - TIME) / 3.0  # values at knots are the parameters
    R, at = (1.0 + away) * np.exp(-away), seen > 0.0
    mean = 0.4 + 0.9 / 1.1 * (0.5 + 0.2)  # of intercepts, given those of the other column
    prior = np.zeros((30, 30))
    prior[:10, :10], prior[10:20, 10:20] = 0.7 * R, 1.2 * R
    prior[20:, 20:] = (1.5 - 0.9**2 / 1.1) * same
    load = 1.0 + 0.3 * t
    to = np.hstack([np.eye(10), np.diag(x), np.diag(load)])[at]
    V = np.where(same, v * smooth(TIME, series.step, lengths) + 0.2 * np.outer(t, t), 0.0)
    V = to @ prior @ to.T + (V + noise * np.eye(10))[np.ix_(at, at)]
    gain = prior @ to.T @ np.linalg.inv(V)
    expected = gain @ (e - mean * load)[at] + np.repeat([0.0, 0.0, mean], 10)
    assert drawn.mean(axis=0) == pytest.approx(expected, abs=0.1)
    assert np.cov(drawn.T) == pytest.approx(prior - gain @ to @ prior, abs=0.15)


def test_slopes_go_with_intercepts_as_dense_laws_say(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("glfm_cli.latent.row_effects.PROPOSALS", 0)
    rng = np.random.default_rng(seed)
    effects = RowEffects.start(Groups(CODE, ("a", "b", "c"), TIME), ((0, 1),))
    effects.v[:], effects.q[:], effects.length[:] = 0.3, 0.2, [[1.7], [0.9]]
    effects.omega[:] = 2.0
    series, t, same = Series.of(CODE, TIME), effects.clocked(TIME), CODE[:, None] == CODE
    seen, e = np.array([1, 1, 0, 1, 1, 1, 1, 0, 1, 1]) / 0.3, 2.0 * rng.normal(size=10)
    shapes, at = curve(effects.knots, np.eye(10), series.time), seen > 0.0
    V = np.where(same, 0.3 * smooth(TIME, series.step, (1.7, 0.9)) + 0.2 * np.outer(t, t), 0.0)
    V = (V + 0.3 * np.eye(10))[np.ix_(at, at)]
    away = np.empty(800)
    for n in range(away.size):
        effects._draw_series(0, series, shapes, np.zeros((10, 0)), e, seen, rng)
        a = effects.a[CODE, 0]
        X, rest = (a * t)[at], (e - a - curve(effects.knots, effects.f, TIME)[:, 0])[at]
        precision = X @ np.linalg.solve(V, X) + 10.0
        mean = X @ np.linalg.solve(V, rest) / precision
        away[n] = (effects.d[0] - mean) * np.sqrt(precision)
    assert away.mean() == pytest.approx(0.0, abs=0.13)
    assert away.std() == pytest.approx(1.0, abs=0.09)


@pytest.mark.parametrize("n", [2, 3, 7])
def test_curves_are_natural_cubic_splines(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    knots, values = np.sort(rng.normal(size=n)), rng.normal(size=(n, 2))
    spline = CubicSpline(knots, values, bc_type="natural")
    time = np.concatenate([np.linspace(knots[0], knots[-1], 40), knots])
    assert curve(knots, values, time) == pytest.approx(spline(time))
    later = curve(knots, values, knots[[0, -1]] + [-0.7, 0.9])
    assert later == pytest.approx(values[[0, -1]] + [[-0.7], [0.9]] * spline(knots[[0, -1]], 1))


def test_variances_have_their_law_given_squares(seed: int) -> None:
    rng, p, found = np.random.default_rng(seed), np.ones(4_000), []
    for _ in range(60):
        p = draw_variances(p, np.full(p.size, 0.3), 2, rng)
        found.append(np.mean(np.log(p)))
    x = np.linspace(-15.0, 15.0, 4001)  # log p, of which sqrt(p) has the density of e^x/2
    weights = np.exp(-x - 0.15 * np.exp(-x)) * halfcauchy.pdf(np.exp(0.5 * x)) * np.exp(0.5 * x)
    mean = np.sum(x * weights) / np.sum(weights)
    assert np.mean(found[10:]) == pytest.approx(mean, abs=0.03)


def part_ways() -> tuple[RowEffects, Array]:
    """Return curves f and h, of 100 groups without intercepts, half of them seen early, and w."""
    code, early = np.repeat(np.arange(100), 2), np.repeat(np.arange(100) < 50, 2)
    time, x = np.tile([0.0, 1.0], 100) + np.where(early, 0.0, 2.0), np.where(code % 2, 3.0, 1.0)
    groups = Groups(code, tuple(str(g) for g in range(100)), time)
    of_x = np.column_stack([np.full(200, np.nan), x])
    effects = RowEffects.start(groups, ((0, 1), (1, 2)), of_x)
    effects.f[:, 0], effects.h[0, :, 0] = [0.0, 0.0, 5.0, 5.0], [4.0, 4.0, -2.0, 3.0]
    effects.omega[:], effects.v[:], effects.q[:] = np.diag([25.0, 1.0]), 1e-4, 1e-4
    h = np.array([4.0, 4.0, -2.0, 3.0])[time.astype(int)]
    return effects, np.column_stack([np.where(early, 0.0, 5.0) + h * (x - 2.0), x])


def test_intercepts_are_what_curves_leave(seed: int) -> None:
    effects, e = part_ways()
    assert effects.shift() == pytest.approx(e * [1.0, 0.0])
    effects.update(e, np.ones((200, 2)), np.array([1e-4, 1.0]), np.random.default_rng(seed))
    assert effects.omega[0, 0] < 1.0  # of intercepts that are 0
    assert effects.shift()[:, 0] == pytest.approx(e[:, 0], abs=0.1)


def test_curves_have_variances_of_their_own(seed: int) -> None:
    rng = np.random.default_rng(seed)
    effects, e = part_ways()
    effects.h *= 0.05
    e[:, 0] = effects.shift()[:, 0]
    both = [effects.f[:, 0].copy(), effects.h[0, :, 0].copy()]
    squares = np.array([one @ knots_precision(effects.knots) @ one for one in both])
    found, expected, variances = np.empty((200, 2)), np.empty((3_000, 2)), np.ones(2)
    for one in found:
        effects.update(e, np.ones((200, 2)), np.array([1e-4, 1.0]), rng)
        one[:] = np.log([effects.p[0], effects.r[0, 0]])
    for one in expected:
        variances = draw_variances(variances, squares, 4, rng)
        one[:] = np.log(variances)
    assert found[30:].mean(axis=0) == pytest.approx(expected.mean(axis=0), abs=0.4)
    assert not effects.h[0, :, 1].any()  # that of the predictor itself


@pytest.mark.parametrize(
    "step", [[0.5, 0, 0, 0], [0, -0.7, 0, 0], [0, 0, 0.9, 0], [0, 0, 0, 1], [-0.4, 0.3, -0.6, -0.2]]
)
def test_laws_of_series_and_slopes_move_by_the_ratio_of_dense_posteriors(
    step: list[float], seed: int
) -> None:
    effects = RowEffects.start(Groups(CODE, ("a", "b", "c"), TIME), ((0, 1),))
    series, noise = Series.of(CODE, TIME), 0.3
    t, same = (TIME - TIME.mean()) / TIME.std(), CODE[:, None] == CODE
    e, seen = np.random.default_rng(seed).normal(size=10), np.arange(10) % 4 != 2
    before, common = np.array([0.8, 1.9, 3.0, 0.7]), np.linspace(-1.0, 0.5, 10)[:, None] ** 2
    own = np.array([[0.7], [-0.4], [0.2]])
    rest = (e - common[np.argsort(np.argsort(TIME)), 0] - own[CODE, 0] * (1.0 + 0.3 * t))[seen]

    def log_density(v: float, q: float, *lengths: float) -> float:
        K = v * smooth(TIME, series.step, lengths)
        V = np.where(same, K + q * np.outer(t, t), 0.0) + noise * np.eye(10)
        found = multivariate_normal(None, V[np.ix_(seen, seen)]).logpdf(rest)
        found += norm(np.log([5.0, 0.5]), [1.5, 2.0]).logpdf(np.log(lengths)).sum()
        for variance in (v, q):  # of an sd and of the log of its square
            found += halfcauchy.logpdf(np.sqrt(variance)) + 0.5 * np.log(variance)
        return float(found)

    def moved(way: float, u: float) -> bool:
        start = before if way > 0 else before * np.exp(step)
        effects.v[0], effects.q[0], *effects.length[:, 0] = start
        effects.f[:], effects.a[:], effects.d[:] = common, own, 0.3
        rng: Any = Scripted([way * one for one in step], u)
        shapes = curve(effects.knots, np.eye(10), series.time)
        effects._draw_series(0, series, shapes, np.zeros((10, 0)), e, seen / noise, rng)
        return [effects.v[0], effects.q[0], *effects.length[:, 0]] != pytest.approx(start)

    ratio = log_density(*before * np.exp(step)) - log_density(*before)
    way, u = -np.sign(ratio), np.exp(-abs(ratio))  # to where the density is less
    assert moved(-way, 0.999)
    assert moved(way, u * (1.0 - 1e-8))
    assert not moved(way, u * (1.0 + 1e-8))


def test_slopes_are_on_the_scale_of_their_column(seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups = Groups(CODE, ("a", "b", "c"), TIME)
    effects = RowEffects.start(groups, ((0, 1), (1, 3)))
    x = GroupPredictors(np.array([9]), np.ones((2, 1)), rng.normal(size=(3, 1)))
    effects = replace(effects, given=x, h=np.zeros((1, 10, 3)), r=rng.gamma(2.0, size=(1, 3)))
    before = effects.scale_group(((0, 1), (1, 3)))
    effects.b[:], effects.q[:] = rng.normal(size=(3, 3)), rng.gamma(2.0, size=3)
    after = effects.scale_group(((0, 1), (1, 3)))
    squares = np.sum(effects.b**2 / effects.q, axis=0)
    effects.f[:], effects.p[:] = rng.normal(size=(10, 3)), rng.gamma(2.0, size=3)
    R = np.linalg.inv(knots_precision(effects.knots))
    more = effects.scale_group(((0, 1), (1, 3)))[:, 0] - after[:, 0]
    of_f = np.diagonal(effects.f.T @ np.linalg.solve(R, effects.f)) / effects.p
    assert more == pytest.approx([of_f[0], of_f[1:].sum()], rel=1e-4)
    assert after[:, 0] - before[:, 0] == pytest.approx([squares[0], squares[1:].sum()])
    assert list(after[:, 1]) == [20 + 20 + 3 + 2, 2 * (20 + 20 + 3 + 2)]
    effects.h[:] = rng.normal(size=(1, 10, 3))
    of_h = np.diagonal(effects.h[0].T @ np.linalg.solve(R, effects.h[0])) / effects.r[0]
    more = effects.scale_group(((0, 1), (1, 3)))[:, 0] - after[:, 0] - more
    assert more == pytest.approx([of_h[0], of_h[1:].sum()], rel=1e-4)
    before = effects.scale_group(((0, 1), (1, 3)))
    shared, loading = FactorSeries.none(10, 3, 2), rng.normal(size=(2, 3))
    effects.factors = replace(shared, loading=loading.copy(), p=np.array([0.3, 2.0]))
    more = effects.scale_group(((0, 1), (1, 3))) - before
    of_loadings = np.sum(loading**2 / [[0.3], [2.0]], axis=0)
    assert more[:, 0] == pytest.approx([of_loadings[0], of_loadings[1:].sum()])
    assert list(more[:, 1]) == [2, 4]
    b, f, h = effects.b.copy(), effects.f.copy(), effects.h.copy()
    effects.rescale(np.array([2.0, 3.0, 3.0]))
    assert effects.factors.loading == pytest.approx(loading * [2.0, 3.0, 3.0])
    assert effects.b == pytest.approx(b * [2.0, 3.0, 3.0])
    assert effects.f == pytest.approx(f * [2.0, 3.0, 3.0])
    assert effects.h == pytest.approx(h * [2.0, 3.0, 3.0])


# The joint law of a sweep ----------------------------------------------------------------------


def grouped(timed: bool) -> JointLaw:
    """Return the joint law of a bias, groups and series; numbers, categories and an order.

    With time the groups have a predictor besides.
    """
    config = GlfmConfig(max_features=0, noise_shape=3.0, noise_rate=2.0, bias_variance=0.5)
    links = bsvd_prior.make_links(ColumnType.REAL, ColumnType.ORDINAL, ColumnType.CATEGORICAL)
    groups = Groups(CODE, ("a", "b", "c"), TIME if timed else None)
    seen = np.random.default_rng(5).random((CODE.size, 3)) < 0.8
    model = with_groups(Glfm())

    def new_chain(seed: int, index: int) -> Chain:
        xs = tuple(np.where(column, 1.0, np.nan) for column in seen.T)
        problem = Problem(model, config, links, xs, groups=groups)
        chain = start_chain(problem, Streams(seed, index))
        effects = chain.state.effects
        if timed:
            x = GroupPredictors(np.array([9]), np.ones((2, 1)), np.array([[1.2], [-1.0], [-0.2]]))
            h, r = np.zeros((1, *effects.f.shape)), np.ones((1, effects.p.size))
            chain.state.effects = replace(effects, given=x, h=h, r=r)
        return chain

    def draw_prior(chain: Chain, rng: np.random.Generator) -> None:
        state, effects = chain.state, chain.state.effects
        rate = (1.0 / 3.0 if timed else 1.0) * config.noise_rate
        state.noise[0] = rate / rng.gamma(config.noise_shape)
        sd = np.sqrt(config.bias_variance * state.noise[chain.cells.column])
        state.B[0] = sd * rng.standard_normal(sd.size)
        draw_effects(effects, rng)
        thresholds = bsvd_prior._thresholds(links[1], rng)  # type: ignore[arg-type]
        chain.params[1]["thresholds"][:] = thresholds

    def draw_table(chain: Chain, rng: np.random.Generator) -> None:
        bsvd_prior.draw_table(OfLinks(links), chain, rng)  # type: ignore[arg-type]
        chain.problem.model.fill_eta(chain.state, chain.eta)  # type: ignore[attr-defined]
        sd = np.sqrt(chain.state.noise[chain.cells.column])
        gone = ~seen[:, chain.cells.column]
        y = chain.eta + sd * rng.standard_normal(chain.eta.shape)
        chain.cells.y[gone] = y[gone]

    return JointLaw(new_chain, draw_prior, draw_table, partial(statistics, seen))


class OfLinks:
    """What `bsvd_prior.draw_table` needs to know."""

    def __init__(self, links: object) -> None:
        self.links = links


def draw_effects(effects: RowEffects, rng: np.random.Generator) -> None:
    """Put a draw of the prior into the effects, by dense matrices."""
    (G, S), N = effects.a.shape, CODE.size
    effects.m[:] = rng.standard_normal(S)
    effects.c[:] = 1.0 / rng.gamma(0.5, size=S)
    # An inverse-Wishart law of S + 1 degrees as the inverse of a sum of outer products.
    X = rng.standard_normal((S + 1, S)) / np.sqrt(4.0 / effects.c)
    effects.omega[:] = np.linalg.inv(X.T @ X)
    effects.a[:] = rng.multivariate_normal(effects.m, effects.omega, G, "ignore")
    if len(effects.u):
        effects.v[:] = np.abs(rng.standard_cauchy(S)) ** 2
        wide = np.array([[1.5], [2.0]]) * rng.standard_normal((2, S))
        effects.length[:] = np.array([[5.0], [0.5]]) * np.exp(wide)
        for s in range(S):
            K = smooth(TIME, effects.step, tuple(effects.length[:, s]))
            values, vectors = np.linalg.eigh(np.where(CODE[:, None] == CODE, K, 0.0))
            root = vectors * np.sqrt(np.maximum(values, 0.0))
            effects.u[:, s] = np.sqrt(effects.v[s]) * root @ rng.standard_normal(N)
        effects.p[:] = np.abs(rng.standard_cauchy(S)) ** 2
        away = np.abs(effects.knots[:, None] - effects.knots) / 3.0  # of times from 0 to 9
        R = np.linalg.cholesky((1.0 + away) * np.exp(-away) + 1e-9 * np.eye(10))
        effects.f[:] = np.sqrt(effects.p) * (R @ rng.standard_normal((10, S)))
        effects.r[:] = np.abs(rng.standard_cauchy((1, S))) ** 2
        effects.h[0] = np.sqrt(effects.r[0]) * (R @ rng.standard_normal((10, S)))
        effects.q[:] = np.abs(rng.standard_cauchy(S)) ** 2
        effects.b[:] = np.sqrt(effects.q) * rng.standard_normal((G, S))
        effects.d[:] = np.sqrt(0.1) * rng.standard_normal(S)
        draw_factors(effects.factors, effects.step, rng)


def draw_factors(shared: FactorSeries, step: float, rng: np.random.Generator) -> None:
    """Put a draw of the prior into shared series, by dense matrices."""
    shared.p[:] = np.abs(rng.standard_cauchy(shared.p.size)) ** 2
    shared.loading[:] = np.sqrt(shared.p)[:, None] * rng.standard_normal(shared.loading.shape)
    wide = np.array([[1.5], [2.0]]) * rng.standard_normal(shared.length.shape)
    shared.length[:] = np.array([[5.0], [0.5]]) * np.exp(wide)
    for k in range(shared.p.size):
        K = smooth(TIME, step, tuple(shared.length[:, k]))
        values, vectors = np.linalg.eigh(np.where(CODE[:, None] == CODE, K, 0.0))
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        shared.g[:, k] = root @ rng.standard_normal(CODE.size)


def statistics(seen: Array, chain: Chain) -> tuple[list[str], Array]:
    state, effects, y = chain.state, chain.state.effects, chain.cells.y
    chain.problem.model.fill_eta(state, chain.eta)  # type: ignore[attr-defined]
    sd = np.sqrt(np.diagonal(effects.omega))
    away, w = (y - chain.eta) / np.sqrt(state.noise[chain.cells.column]), effects.shift()
    at = seen[:, chain.cells.column]
    a = (effects.a - effects.m) / sd
    pairs = np.triu_indices(sd.size, 1)
    found = {
        "log noise": [np.log(state.noise[0])],
        "bias": odd(state.B[0]),
        "m": odd(effects.m),
        "m square": even(effects.m),
        "c": odd(np.log(effects.c)),
        "omega": odd(np.log(sd)),
        "correlations": [(effects.omega / np.outer(sd, sd))[pairs].sum()],
        "a": odd(a).sum(axis=0),
        "a square": even(a).sum(axis=0),
        "y along w": (odd(y) * odd(w) * at).sum(axis=0),
        "residual square": (even(away) * at).sum(axis=0),
        "residual along w": (odd(away) * odd(w) * at).sum(axis=0),
        "theta gap": [np.log(np.diff(chain.params[1]["thresholds"])[0])],
        "levels": [np.sum(x == 0.0) for x in chain.problem.xs[1:]],
    }
    if len(effects.u):
        found["v"] = odd(np.log(effects.v))
        found["length"] = odd(np.log(effects.length)).sum(axis=1)
        found["q"] = odd(np.log(effects.q))
        found["p"] = odd(np.log(effects.p))
        f, b = effects.f / np.sqrt(effects.p), effects.b / np.sqrt(effects.q)
        found["f"] = [odd(f).sum(), even(f).sum()]
        found["r"] = odd(np.log(effects.r[0]))
        h = effects.h[0] / np.sqrt(effects.r[0])
        found["h"] = [odd(h).sum(), even(h).sum(), (odd(effects.f) * odd(effects.h[0])).sum()]
        found["b"] = [odd(b).sum(), even(b).sum()]
        found["d"] = [odd(effects.d).sum(), even(effects.d).sum()]
        u = effects.u / np.sqrt(effects.v)
        found["u square"] = even(u).sum(axis=0)
        found["u next"] = (odd(u[[2, 1, 6]]) * odd(u[[5, 4, 7]])).sum(axis=0)
        factors = effects.factors
        g, L = factors.g, factors.loading / np.sqrt(factors.p)[:, None]
        found["shared p"] = odd(np.log(factors.p))
        found["shared length"] = odd(np.log(factors.length)).sum(axis=1)
        found["g square"] = even(g).sum(axis=0)
        found["g next"] = (odd(g[[2, 1, 6]]) * odd(g[[5, 4, 7]])).sum(axis=0)
        found["g along u"] = [(odd(g) * odd(u).sum(axis=1, keepdims=True)).sum()]
        found["loading"] = even(L).sum(axis=1)
        found["y along loadings"] = [(odd(y) * odd(factors.shift()) * at).sum()]
    names = [f"{name} {i}" for name, part in found.items() for i in range(len(part))]
    return names, np.concatenate([np.asarray(part, dtype=float) for part in found.values()])


def test_a_sweep_with_groups_has_the_joint_law_in_short(seed: int) -> None:
    comparison = grouped(timed=True).compare(400, seed)
    assert comparison.passes, str(comparison)


@pytest.mark.slow
@pytest.mark.parametrize("timed", [False, True])
def test_a_sweep_with_groups_has_the_joint_law(timed: bool, seed: int) -> None:
    comparison = grouped(timed).compare(40_000, seed)
    print(comparison)
    assert comparison.passes, str(comparison)


# Tables ----------------------------------------------------------------------------------------


def visits(seed: int) -> tuple[pa.Table, Array, Array]:
    """Return 25 persons with 6 visits and levels of their own, what is hidden, and the truth."""
    rng, (G, n) = np.random.default_rng(seed), (25, 6)
    level = rng.multivariate_normal([0.0, 0.0], [[1.0, 0.9], [0.9, 1.0]], G)
    x = 10.0 + 2.0 * (np.repeat(level, n, axis=0) + 0.5 * rng.standard_normal((G * n, 2)))
    hidden = rng.random(x.shape) < 0.2
    hidden[: 2 * n, 0] = True  # two of whom the first is never known
    columns = {"who": np.repeat([f"p{g}" for g in range(G)], n), "day": np.tile(range(n), G) / 2}
    cells = {f"x{d}": pa.array(x[:, d], mask=hidden[:, d]) for d in range(2)}
    return pa.table(columns | cells), hidden, x


def error_of(types: dict[str, object], seed: int, model: str = "glfm") -> tuple[float, float]:
    """Return the error of hidden cells, those of persons with and without values of the column."""
    table, hidden, x = visits(seed)
    columns = {**types, "x0": "real", "x1": "real"}
    plain = {"recalibrate": False}
    length = {"chains": 2, "warmup": 60, "draws": 40, "seed": 1, "settings": plain}
    found = impute(table, {"columns": columns}, model=model, **length)  # type: ignore[arg-type]
    away = np.column_stack([found.table[f"x{d}"].to_numpy() for d in range(2)]) - x
    never = np.zeros_like(hidden)
    never[:12, 0] = True
    parts = (away[hidden & ~never], away[never])
    return float(np.sqrt(np.mean(parts[0] ** 2))), float(np.sqrt(np.mean(parts[1] ** 2)))


@pytest.mark.parametrize("model", ["glfm", "bsvd", "mixture"])
def test_groups_are_told_by_what_their_rows_share(model: str) -> None:
    together = {"who": "group", "day": {"type": "real", "role": "time"}}
    own, never = error_of(together, 3, model)
    assert own < 1.2  # 1.0 is the noise; 2.2 the spread of all rows
    assert never < 1.75  # the level of the other column tells that of this


def test_groups_part_as_they_did(seed: int) -> None:
    """Who is high rises, and leaves early."""
    away, visit = [], np.arange(5.0)
    types = {"who": "group", "visit": {"type": "real", "role": "time"}, "y": "real"}
    for i in range(3):
        rng = np.random.default_rng(seed + i)
        level = rng.standard_normal((40, 1))
        y = 10.0 + level * (1.0 + visit) + 0.7 * rng.standard_normal((40, 5))
        gone = (y[:, [2]] > 11.0) & (visit > 2.0)
        columns = {"who": np.repeat([f"p{g}" for g in range(40)], 5), "visit": np.tile(visit, 40)}
        table = pa.table(columns | {"y": pa.array(y.ravel(), mask=gone.ravel())})
        length = {"chains": 1, "warmup": 60, "draws": 40, "seed": 1, "threads": 1}
        plain = {"model": "glfm", "settings": {"recalibrate": False}}
        found = impute(table, {"columns": types}, **plain, **length).table["y"]  # type: ignore[arg-type]
        away.append((found.to_numpy().reshape(40, 5) - y)[gone[:, 4], 4].mean())
    assert abs(np.mean(away)) < 1.2  # -2.2 where slopes know nothing of intercepts


def test_hidden_cells_are_forecast_by_groups_that_have_not_seen_them() -> None:
    table, _, _ = visits(4)
    types = {"columns": {"who": "group", "day": "ignore", "x0": "real", "x1": "real"}}
    length = {"chains": 1, "warmup": 30, "draws": 20, "seed": 1}
    problem, _, plan = prepare(table, types, model="glfm", **length)
    posterior = sample(problem, plan).posterior
    groups = problem.groups
    assert groups is not None
    empty = tuple(np.full_like(x, np.nan) for x in problem.xs)
    again = Problem(
        problem.model, problem.config, problem.links, empty, groups=groups.as_new()
    )
    own = [draw.latent.effects.a for draw in posterior.draws()]
    new = [draw.latent.effects.w for draw in fold_in(posterior, again, seed=0).draws()]
    assert all(isinstance(draw.latent, GroupedState) for draw in posterior.draws())
    apart = [np.corrcoef(a[groups.code, 0], w[:, 0])[0, 1] for a, w in zip(own, new, strict=True)]
    assert abs(np.mean(apart)) < 0.25
    assert np.all(np.diff(new[0].reshape(25, 6, 2), axis=1) == 0.0)  # shared within groups


@pytest.mark.parametrize(
    ("types", "change", "line"),
    [
        ({"who": "group"}, ("who", 3), "column 'who', row 4: the cell of role group is empty"),
        (
            {"who": "ignore", "day": {"type": "real", "role": "time"}},
            ("day", 5),
            "column 'day', row 6: the cell of role time is empty, expected a value in every row",
        ),
        (
            {"who": {"type": "categorical", "role": "time"}},
            None,
            "column 'who': has role time, and its values are not numbers, dates or durations, "
            "found type categorical",
        ),
        ({"who": "group", "day": "group"}, None, "two columns have role group"),
    ],
)
def test_groups_and_times_are_in_every_row(
    types: dict[str, object], change: tuple[str, int] | None, line: str
) -> None:
    table = visits(0)[0]
    if change is not None:
        name, row = change
        values = table[name].to_pylist()
        values[row] = None
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    with pytest.raises(GlfmError, match=line):
        impute(table, {"rest": "ignore", "columns": {**types, "x0": "real"}})


@pytest.mark.parametrize("name", ["glfm", "bsvd", "mixture", "auto"])
def test_a_model_with_groups_can_be_sent_to_another_process(name: str) -> None:
    model = with_groups(MODELS[name])
    again = pickle.loads(pickle.dumps(model))
    assert type(again) is type(model)
    assert again.name == name


def test_a_model_that_sees_values_takes_no_groups() -> None:
    types = {"rest": "ignore", "columns": {"who": "group", "x0": "real"}}
    with pytest.raises(GlfmError, match='model="clgp" takes no columns of role group or time'):
        impute(visits(0)[0], types, model="clgp")
