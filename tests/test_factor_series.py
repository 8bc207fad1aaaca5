"""Series that columns share: against dense normal laws, and what they are worth in gaps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import multivariate_normal, norm

from glfm_cli import impute
from glfm_cli.arrays import Array, Groups
from glfm_cli.latent.factor_series import Blocks, FactorSeries, OwnSeries
from glfm_cli.latent.joined_rows import RowsToJoin
from glfm_cli.latent.row_effects import RowEffects
from glfm_cli.latent.row_laws import Series, SeriesLaw
from tests.statistical.series import Scripted, smooth

CODE = np.array([0, 1, 0, 1, 0, 0, 1, 0])
TIME = np.array([3.0, 0.0, 1.0, 4.5, 2.5, 0.0, 1.0, 2.5])  # two rows at the last time
SERIES = Series.of(CODE, TIME)
M, K, S = SERIES.code.size, 2, 3
LOADING = np.array([[0.9, -0.4, 1.3], [0.2, 1.1, -0.5]])
LENGTH = np.array([[4.0, 1.5], [0.6, 1.4]])
OWN_LENGTH, OWN_V = np.array([[2.0, 0.3, 5.0], [0.7, 3.0, 0.2]]), np.array([0.4, 0.9, 0.15])


class Directions:
    """Normals in place of random ones: 0, or 1 at one place; steps of lengths are 0."""

    def __init__(self, at: int | None = None) -> None:
        self.at = at

    def standard_normal(self, shape: Any) -> Array:
        z = np.zeros(shape)
        if self.at is not None and z.size > 2:
            z.flat[self.at] = 1.0
        return z


class Two(Directions):
    """The same of two normals."""

    def standard_normal(self, shape: Any) -> Array:
        return np.eye(2)[self.at].reshape(shape)


def moments(draw: Any, n: int) -> tuple[Array, Array]:
    """Return mean and covariance of normal draws made of n standard ones."""
    mean = np.ravel(draw(Directions()))
    root = np.array([np.ravel(draw(Directions(at))) - mean for at in range(n)])
    return mean, root.T @ root


def dense(lengths: Array, v: float = 1.0) -> Array:
    """Return the covariance (2 M, 2 M) of a series, then its velocity, at the times of groups."""
    (long, short), gap = lengths, lengths[0] - lengths[1]
    away = (SERIES.time[:, None] - SERIES.time) / SERIES.step
    r, sign = np.abs(away), np.sign(away)
    slow, fast = np.exp(-r / long), np.exp(-r / short)
    value, slope = (long * slow - short * fast) / gap, (fast - slow) / gap
    whole = np.block([[value, -sign * slope], [sign * slope, (fast / short - slow / long) / gap]])
    same = np.tile(SERIES.code[:, None] == SERIES.code, (2, 2))
    return v * np.where(same, whole, 0.0)


def shared() -> FactorSeries:
    g, p = np.zeros((CODE.size, K)), np.array([0.5, 2.0])
    return FactorSeries(g, LOADING.copy(), p, LENGTH.copy())


def test_a_series_and_its_velocity_have_their_law() -> None:
    lengths, b = np.array([2.0, 0.7]), np.random.default_rng(0).normal(size=(2, M))
    Q = Blocks.of_series(SERIES, lengths, 0.4)
    mean, cov = moments(lambda rng: Q.draw(b, rng), 2 * M)
    assert cov == pytest.approx(dense(lengths, 0.4), abs=1e-8)
    assert mean == pytest.approx(cov @ b.ravel(), abs=1e-8)
    assert Q.times(mean.reshape(2, M)) == pytest.approx(b, abs=1e-8)


def test_series_given_sums_have_their_dense_law(seed: int) -> None:
    rng = np.random.default_rng(seed)
    G, x = rng.normal(size=(K, 2, M)), rng.normal(size=(S, 2, M))
    z = x + np.einsum("ks,kin->sin", LOADING, G)
    prior = np.zeros((K, 2 * M, K, 2 * M))
    for k in range(K):
        prior[k, :, k] = dense(LENGTH[:, k])
    prior = prior.reshape(K * 2 * M, -1)
    load = np.kron(LOADING.T, np.eye(2 * M))
    own = np.zeros((S, 2 * M, S, 2 * M))
    for s in range(S):
        own[s, :, s] = dense(OWN_LENGTH[:, s], OWN_V[s])
    gain = prior @ load.T @ np.linalg.inv(load @ prior @ load.T + own.reshape(S * 2 * M, -1))
    parts = OwnSeries(x, OWN_LENGTH, OWN_V)
    mean, cov = moments(lambda rng: shared().given_sums(SERIES, G, parts, rng)[0], K * 2 * M)
    assert mean == pytest.approx(gain @ z.ravel(), abs=1e-6)
    assert cov == pytest.approx(prior - gain @ load @ prior, abs=1e-6)
    g, u = shared().given_sums(SERIES, G, parts, np.random.default_rng(1))
    assert u + np.einsum("ks,kin->sin", LOADING, g) == pytest.approx(z)
    assert parts.energy(SERIES) == pytest.approx(
        [x[s].ravel() @ np.linalg.solve(own[s, :, s], x[s].ravel()) for s in range(S)]
    )


def test_series_stay_where_rounding_leaves_no_law_of_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    G, x = rng.normal(size=(K, 2, M)), rng.normal(size=(S, 2, M))
    parts = shared()
    parts.loading[:] = 1e7 * np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
    own = OwnSeries(x, OWN_LENGTH, np.full(S, 1e-12))
    g, u = parts.given_sums(SERIES, G, own, rng)
    assert np.array_equal(g, G)
    assert np.array_equal(u, x)


def test_what_is_held_stays(seed: int) -> None:
    rng = np.random.default_rng(seed)
    G, x = rng.normal(size=(K, 2, M)), rng.normal(size=(S, 2, M))
    held = np.where(np.arange(M) < 3, 1e8, 0.0)
    found = shared().given_sums(SERIES, G, OwnSeries(x, OWN_LENGTH, OWN_V), rng, held)[0]
    assert found[:, 0, :3] == pytest.approx(G[:, 0, :3], abs=1e-3)
    assert np.max(np.abs(found[:, 0, 3:] - G[:, 0, 3:])) > 0.01
    parts = shared()
    g, e = G[:, 0].T, rng.normal(size=(CODE.size, S))
    found = parts.given_own(SERIES, g, e, np.ones_like(e), rng, held)
    assert found[:, 0, :3] == pytest.approx(G[:, 0, :3], abs=1e-3)
    assert np.array_equal(parts.length, LENGTH)


def test_series_given_the_own_of_columns_have_their_dense_law(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("glfm_cli.latent.factor_series.PROPOSALS", 0)
    rng = np.random.default_rng(seed)
    e, seen = rng.normal(size=(CODE.size, S)), rng.gamma(2.0, size=(CODE.size, S))
    seen[1, 2] = seen[4, 0] = 0.0
    g, rows = rng.normal(size=(M, K)), np.eye(M)[SERIES.node]

    def expected(k: int, other: Array) -> tuple[Array, Array]:
        """Return mean and covariance of one of the two given the other (M,)."""
        rest = e - np.outer(other[SERIES.node], LOADING[1 - k])
        precision = np.zeros((2 * M, 2 * M))
        precision[:M, :M] = rows.T @ (rows * (seen @ LOADING[k] ** 2)[:, None])
        cov = np.linalg.inv(np.linalg.inv(dense(LENGTH[:, k])) + precision)
        return cov[:, :M] @ rows.T @ ((seen * rest) @ LOADING[k]), cov

    mean, cov = moments(lambda rng: shared().given_own(SERIES, g, e, seen, rng)[0], 2 * M)
    assert mean == pytest.approx(expected(0, g[:, 1])[0], abs=1e-6)
    assert cov == pytest.approx(expected(0, g[:, 1])[1], abs=1e-6)
    first, second = shared().given_own(SERIES, g, e, seen, Directions())
    assert second.ravel() == pytest.approx(expected(1, first[0])[0], abs=1e-6)


def test_loadings_have_their_dense_law(seed: int) -> None:
    rng = np.random.default_rng(seed)
    g, e, seen = rng.normal(size=(M, K)), rng.normal(size=M), rng.gamma(2.0, size=M)
    law = SeriesLaw(SERIES, OWN_LENGTH[:, 1], OWN_V[1], seen)
    parts = shared()

    def draw(rng: Any) -> Array:
        parts.draw_loadings(1, g, law, seen * e, SERIES.code, rng)
        return parts.loading[:, 1].copy()

    mean = draw(Directions())
    root = np.array([draw(Two(at)) - mean for at in range(K)])
    cov = root.T @ root
    V = dense(OWN_LENGTH[:, 1], OWN_V[1])[:M, :M] + np.diag(1.0 / seen)
    expected = np.linalg.inv(g.T @ np.linalg.solve(V, g) + np.diag([2.0, 0.5]))
    assert cov == pytest.approx(expected, abs=1e-8)
    assert mean == pytest.approx(expected @ g.T @ np.linalg.solve(V, e), abs=1e-8)
    assert np.array_equal(parts.loading[:, [0, 2]], LOADING[:, [0, 2]])


@pytest.mark.parametrize("step", [[0.9, 0.0], [0.0, -1.0], [-0.6, 0.4]])
def test_lengths_move_by_the_ratio_of_dense_posteriors(
    step: list[float], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("glfm_cli.latent.factor_series.PROPOSALS", 1)
    rng = np.random.default_rng(seed)
    e, noise = rng.normal(size=(CODE.size, S)), np.array([0.3, 0.6, 0.2])
    seen = (rng.random((CODE.size, S)) < 0.8) / noise
    rows, at = np.eye(M)[SERIES.node], (seen.T > 0.0).ravel()
    load = np.vstack([rows * weight for weight in LOADING[0]])[at]

    def log_density(lengths: Array) -> float:
        V = load @ dense(lengths)[:M, :M] @ load.T + np.diag(np.repeat(noise, CODE.size)[at])
        found = multivariate_normal(None, V).logpdf(e.T.ravel()[at])
        return float(found + norm(np.log([5.0, 0.5]), [1.5, 2.0]).logpdf(np.log(lengths)).sum())

    def moved(way: float, u: float) -> bool:
        g = np.zeros((CODE.size, 1))
        first = FactorSeries(g, LOADING[:1], np.ones(1), LENGTH[:, :1].copy())
        start = LENGTH[:, 0] * (1.0 if way > 0 else np.exp(step))
        first.length[:, 0] = start
        drawn: Any = Scripted(way * np.array(step), u)
        first.given_own(SERIES, np.zeros((M, 1)), e, seen, drawn)
        return first.length[:, 0] != pytest.approx(start)

    ratio = log_density(LENGTH[:, 0] * np.exp(step)) - log_density(LENGTH[:, 0])
    way, u = -np.sign(ratio), np.exp(-abs(ratio))  # to where the density is less
    assert moved(-way, 0.999)
    assert moved(way, u * (1.0 - 1e-7))
    assert not moved(way, u * (1.0 + 1e-7))


def test_a_chain_begins_with_what_columns_have_in_common(seed: int) -> None:
    rng = np.random.default_rng(seed)
    series = Series.of(np.zeros(40, dtype=np.int64), rng.permutation(40).astype(float))
    lines = np.array([[1.0, 0.5, -1.0, 0.2], [0.3, -0.8, 0.6, 1.0]])
    t = series.time[series.node]
    y = np.column_stack([t - 19.5, np.abs(t - 19.5) - 10.0]) @ lines
    observed = np.ones(y.shape, dtype=bool)
    observed[np.isin(t, [5, 6, 7, 30]), 1] = False
    start = FactorSeries.begin(series, np.where(observed, y, 99.0), observed)
    assert start.g.shape == (40, 2)
    assert np.mean(start.g**2, axis=0) == pytest.approx(1.0)
    assert start.shift() == pytest.approx(y - y.mean(axis=0), abs=1e-6)


def groups_apart() -> tuple[RowEffects, Array]:
    """Return effects of 100 groups of two rows, and shared series (200, 1) that tell them apart."""
    code, time = np.repeat(np.arange(100), 2), np.tile([0.0, 1.0], 100)
    groups = Groups(code, tuple(str(g) for g in range(100)), time)
    g = np.where(code % 2, 1.0, -1.0)[:, None]
    return RowEffects.start(groups, ((0, 1), (1, 2))), g


def test_intercepts_are_what_shared_series_leave(seed: int) -> None:
    effects, g = groups_apart()
    effects.omega[:], effects.v[:], effects.q[:] = 25.0 * np.eye(2), 1e-4, 1e-4
    load, lengths = np.array([[5.0, -3.0]]), np.array([[9.0], [1.0]])
    effects.factors = FactorSeries(g, load, np.ones(1), lengths)
    e, noise = g @ load, np.full(2, 1e-4)
    effects.update(e, np.ones_like(e), noise, np.random.default_rng(seed))
    assert np.all(np.diagonal(effects.omega) < 1.0)  # of intercepts that are 0


def test_a_chain_begins_with_what_intercepts_leave(seed: int) -> None:
    effects, g = groups_apart()
    y = 3.0 * g @ np.ones((1, 2))
    effects.begin(y, np.ones(y.shape, dtype=bool), np.random.default_rng(seed))
    assert np.std(effects.factors.shift()) < 0.5


def test_columns_own_series_are_what_shared_ones_leave(seed: int) -> None:
    rng = np.random.default_rng(seed)
    effects = RowEffects.start(Groups(CODE, (), TIME), tuple((s, s + 1) for s in range(S)))
    effects.v[:], effects.length[:] = OWN_V, OWN_LENGTH
    effects.factors = replace(shared(), g=rng.normal(size=(CODE.size, K)))
    before, g, x = effects.copy(), rng.normal(size=(M, K)), rng.normal(size=(S, 2, M))
    e, seen = rng.normal(size=(CODE.size, S)), np.ones((CODE.size, S))
    effects._draw_shared(SERIES, g, x, e, seen, np.random.default_rng(1))
    again, rng = before.factors, np.random.default_rng(1)
    G = again.given_own(SERIES, g, e - x[:, 0, SERIES.node].T, seen, rng)
    G, x = again.given_sums(SERIES, G, OwnSeries(x, OWN_LENGTH, OWN_V), rng)
    assert effects.u == pytest.approx(x[:, 0, SERIES.node].T)
    assert effects.factors.g == pytest.approx(G[:, 0, SERIES.node].T)
    assert effects.energy == pytest.approx(OwnSeries(x, OWN_LENGTH, OWN_V).energy(SERIES))
    assert before.factors.g is not effects.factors.g
    assert np.all(before.factors.p != effects.factors.p)


def test_new_rows_follow_shared_series_and_their_own(seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups = Groups(np.zeros(3, dtype=np.int64), (), np.array([0.0, 1.0, 3.0]))
    spans = ((0, 1), (1, 2), (2, 3))
    fitted = RowEffects.start(groups, spans)
    fitted.v[:], fitted.length[:] = OWN_V, OWN_LENGTH
    fitted.u[:] = rng.normal(size=(3, S)) * np.sqrt(OWN_V)
    fitted.factors = replace(shared(), g=rng.normal(size=(3, K)))
    later = np.array([2.0, 4.5, 1.0])  # the last at a time that is known
    rows = RowsToJoin(fitted, replace(groups, time=later), None)
    e, seen, noise = rng.normal(size=(3, S)), np.ones((3, S)), np.array([0.3, 0.6, 0.2])
    seen[0, 0] = seen[1, 1:] = 0.0
    drawn = np.empty((2_500, 3 * S))
    for one in drawn:
        rows.update(e, seen, noise, rng)
        one[:] = rows.w.ravel()
    drawn = drawn[100:]
    every = np.concatenate([[0.0, 1.0, 3.0], later])

    # Shared and own series at all rows, of which those of the first three are known.
    parts = [smooth(every, fitted.step, one) for one in LENGTH.T]
    own = zip(OWN_V, OWN_LENGTH.T, strict=True)
    parts += [v * smooth(every, fitted.step, one) for v, one in own]
    known = np.concatenate([fitted.factors.g, fitted.u], axis=1)
    load, mean, cov = np.vstack([LOADING, np.eye(S)]), np.zeros((3, S)), np.zeros((3, S, 3, S))
    for weight, kernel_of, x in zip(load, parts, known.T, strict=True):
        gain = kernel_of[3:, :3] @ np.linalg.inv(kernel_of[:3, :3])
        left = kernel_of[3:, 3:] - gain @ kernel_of[:3, 3:]
        mean += np.outer(gain @ x, weight)
        cov += np.einsum("nm,s,t->nsmt", left, weight, weight)
    wide, told = cov.reshape(3 * S, -1), np.flatnonzero(seen.ravel())
    noises = np.diag(np.tile(noise, 3)[told])
    gain = wide[:, told] @ np.linalg.inv(wide[np.ix_(told, told)] + noises)
    expected = mean.ravel() + gain @ (e.ravel() - mean.ravel())[told]
    assert drawn.mean(axis=0) == pytest.approx(expected, abs=0.08)
    assert np.cov(drawn.T) == pytest.approx(wide - gain @ wide[told], abs=0.08)


def test_they_are_kept_with_a_fit() -> None:
    parts, none = shared(), FactorSeries.none(CODE.size, S)
    found = FactorSeries.unpack(parts.pack(), CODE.size, S)
    for name in ("g", "loading", "p", "length"):
        assert np.array_equal(getattr(found, name), getattr(parts, name))
    assert not none.pack()
    assert FactorSeries.unpack({}, CODE.size, S).g.shape == (CODE.size, 0)
    for name in parts.pack():
        rest = {one: x for one, x in parts.pack().items() if one != name}
        with pytest.raises(ValueError, match="factor"):
            FactorSeries.unpack(rest, CODE.size, S)
    for broken in ({"p": np.array([0.5, -1.0])}, {"length": LENGTH - 1.0}, {"g": np.zeros((1, K))}):
        arrays = parts.pack() | {f"effects.factor.{name}": x for name, x in broken.items()}
        with pytest.raises(ValueError, match="factor"):
            FactorSeries.unpack(arrays, CODE.size, S)


def test_columns_tell_of_each_other_where_one_has_a_long_gap(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of four columns is two autoregressions that all share, and one of its own."""
    rng, n = np.random.default_rng(seed), 160
    shared_, own = np.zeros((n, 2)), np.zeros((n, 4))
    for t in range(1, n):
        shared_[t] = 0.95 * shared_[t - 1] + 0.3 * rng.normal(size=2)
        own[t] = 0.8 * own[t - 1] + 0.15 * rng.normal(size=4)
    x = shared_ @ np.array([[1.0, 0.6, -0.8, 0.1], [0.2, -0.7, 0.5, 1.0]]) + own
    gone = np.zeros(x.shape, dtype=bool)
    for d in range(4):
        gone[40 * d + 15 : 40 * d + 35, d] = True
    table = pa.table(
        {"day": np.arange(n, dtype=float)}
        | {f"x{d}": pa.array(x[:, d], mask=gone[:, d]) for d in range(4)}
    )
    types = {"rest": "real", "columns": {"day": {"type": "real", "role": "time"}}}

    def error() -> float:
        done = impute(table, types, model="glfm", chains=1, warmup=40, draws=40, seed=seed).table
        found = np.column_stack([done[f"x{d}"].to_numpy() for d in range(4)])
        return float(np.sqrt(np.mean((found - x)[gone] ** 2)))

    together = error()
    monkeypatch.setattr("glfm_cli.latent.factor_series.MOST", 0)
    assert together < 0.8 * error()
