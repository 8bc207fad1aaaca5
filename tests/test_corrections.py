"""Which corrections known values call for: none without evidence, and as certainty says with it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import trapezoid
from scipy.optimize import minimize

from glfm_cli import impute
from glfm_cli.inference.corrections import (
    ADDED_SD,
    FEW,
    NO_CORRECTION,
    NO_SLOPE,
    POWER_SD,
    TILT_PRIOR,
    Binned,
    _modes,
    fit_powers,
    fit_tilt,
    fit_tilts,
)
from glfm_cli.inference.predictive import predict
from glfm_cli.inference.recalibration import (
    GRID,
    KNOTS,
    Recalibration,
    certainty,
    log_tilt,
    polynomials,
    tilt_moments,
)

tilts = st.tuples(*[st.floats(-1.5, 1.5)] * 4).map(np.array)
NONE = np.zeros(4)


def places_of(b: tuple[float, ...], n: int, seed: int) -> np.ndarray:
    """Where n values lie in forecasts that call for the tilt b."""
    mass = np.cumsum(np.exp(log_tilt(np.array(b), polynomials(GRID))))
    return np.interp(np.random.default_rng(seed).random(n), mass / mass[-1], GRID)


@pytest.mark.parametrize("slope", [None, 0.5])
def test_a_tilt_is_the_likeliest_under_its_prior(slope: float | None) -> None:
    """One prior, whose mean is not 0: found by another method, which knows no derivatives."""
    u, log_sd = places_of((1.0, -0.8, 0.3, 0.0), 30, 4), np.repeat([-1.0, -0.5, 0.0], 10)
    mean, sd, degree = np.array([-0.5, 0.4, 0.0, 0.2]), 0.2, 1.0 / np.sqrt(np.arange(1, 5))
    f, grid = polynomials(u), np.linspace(0.0, 1.0, 2001)
    every, bend = polynomials(grid), -1.0 / 3.0  # where the slope ends, of the only bend asked for

    def loss(theta: np.ndarray) -> float:
        own, more = theta[:4], np.append(theta[4:], np.zeros(8 - theta.size))
        b = own[:, None] + more[:, None] * np.minimum(log_sd - bend, 0.0)
        mass = trapezoid(np.exp(np.tensordot(b.T, every, 1)), grid, axis=1)
        away = np.sum(((own - mean) / (sd * degree)) ** 2)
        if slope is not None:
            away += np.sum((more / (slope * degree)) ** 2)
        return float(np.log(mass).sum() - np.sum(b * f) + 0.5 * away)

    start = np.append(mean, np.zeros(0 if slope is None else 4))
    best = minimize(loss, start, method="Powell", options={"xtol": 1e-8, "ftol": 1e-12}).x
    cells = Binned.of(u, np.exp(log_sd))
    low, high = cells.ends
    x = np.array([np.column_stack([np.ones(3), np.minimum(cells.log_sd - bend, 0.0)])])
    sds_of = np.zeros((1, 2, 4))
    sds_of[0, 0], sds_of[0, 1] = sd * degree, 0.0 if slope is None else slope * degree
    theta, _ = _modes(cells, x, np.array([[mean, np.zeros(4)]]), sds_of)
    np.testing.assert_allclose(theta.ravel()[: best.size], best, atol=2e-5)
    assert (low, high) == (-1.0, 0.0)


def sds(n: int, seed: int = 0) -> np.ndarray:
    return np.exp(np.random.default_rng(seed).normal(-0.5, 0.3, n))


def fitted(places: dict[int, np.ndarray]) -> dict[int, np.ndarray]:
    """The tilts (KNOTS, 4) by column, of forecasts whose certainty does not matter."""
    found = fit_tilts(places, {d: sds(u.size, d) for d, u in places.items()})
    return {d: b for d, (b, _) in found.items()}


def test_the_polynomials_are_orthonormal() -> None:
    f = polynomials(GRID)
    np.testing.assert_allclose(f @ f.T / GRID.size, np.eye(4), atol=1e-5)
    np.testing.assert_allclose(polynomials(np.ones(1))[:, 0] ** 2, [3.0, 5.0, 7.0, 9.0])
    np.testing.assert_allclose(f.mean(axis=1), 0.0, atol=1e-6)


@given(tilts)
def test_moments_of_a_tilt_are_slopes_of_its_mass(b: np.ndarray) -> None:
    mass, mean, covariance = (one[0] for one in tilt_moments(b[None]))
    on_grid = np.exp(b @ polynomials(GRID))
    assert mass == pytest.approx(np.log(on_grid.mean()), abs=1e-4)
    np.testing.assert_allclose(mean, polynomials(GRID) @ on_grid / on_grid.sum(), atol=1e-4)
    step = 1e-5 * np.eye(4)
    slope = [(tilt_moments(b + step)[1][i] - tilt_moments(b - step)[1][i]) / 2e-5 for i in range(4)]
    np.testing.assert_allclose(covariance, slope, atol=1e-6)


@pytest.mark.parametrize("b", [(0.0,) * 4, (0.3, -0.4, 0.1, 0.2), (-0.2, 0.3, -0.2, -0.1)])
def test_the_tilt_of_distribution_functions_is_found(b: tuple[float, ...]) -> None:
    found = fitted({3: places_of(b, 20_000, 1)})[3]
    np.testing.assert_allclose(found, [b] * KNOTS, atol=0.04)


def test_a_tilt_that_depends_on_certainty_is_found() -> None:
    rng = np.random.default_rng(2)
    log_sd, certain = rng.uniform(-4.0, 0.0, 8000), np.array([0.1, -1.0, 0.2, -0.1])
    share = np.clip((-1.3 - log_sd) / 2.7, 0.0, 1.0)  # none above a bend
    u = np.concatenate([places_of(tuple(s * certain), 1, k) for k, s in enumerate(share)])
    b, ends = fit_tilts({0: u}, {0: np.exp(log_sd)})[0]
    np.testing.assert_allclose(ends, [-4.0 + 4.0 * FEW, 0.0], atol=0.1)
    knots = np.clip((-1.3 - np.linspace(*ends, KNOTS)) / 2.7, 0.0, 1.0)
    np.testing.assert_allclose(b, knots[:, None] * certain, atol=0.12)


def test_cells_count_as_so_many_independent_ones() -> None:
    u, sd = places_of((0.3, -0.4, 0.1, 0.2), 300, 1), np.full(300, 0.5)
    once = fit_tilts({0: u}, {0: sd})[0][0]
    thrice = fit_tilts({0: np.tile(u, 3)}, {0: np.tile(sd, 3)}, np.array([1.0 / 3.0]))[0][0]
    np.testing.assert_allclose(thrice, once, atol=1e-6)
    p = np.random.default_rng(2).dirichlet([0.5, 0.5, 0.5], 80)
    codes = p.argmax(axis=1)
    whole = fit_powers(p, codes)
    np.testing.assert_allclose(fit_powers(np.tile(p, (2, 1)), np.tile(codes, 2), 0.5), whole)
    assert whole[0] > 1.2


def test_few_uncertain_forecasts_do_not_bear_what_the_certain_ones_call_for() -> None:
    narrow = places_of((0.0, -1.2, 0.0, -0.4), 360, 0)
    u = np.concatenate([np.random.default_rng(1).random(40), narrow])
    sd = np.where(np.arange(400) < 40, 0.8, 0.03)
    b, _ = fit_tilts({0: u}, {0: sd})[0]
    assert np.abs(b[-1]).max() < 0.1
    np.testing.assert_allclose(b[0], [0.0, -1.2, 0.0, -0.4], atol=0.35)
    alike = fit_tilts({0: u}, {0: np.ones(400)})[0][0]
    assert alike[-1, 1] < -0.5


def test_certain_forecasts_of_a_column_do_not_count_in_what_all_share() -> None:
    places = {d: places_of((0.0, -1.2, 0.0, -0.4), 300, d) for d in range(3)}
    spread = {d: np.where(np.arange(300) < 5, 0.8, 0.03) for d in places}
    few = {9: np.array([0.5])}
    found = fit_tilts(places | few, spread | {9: np.ones(1)})[9][0]
    assert np.abs(found).max() < 0.1
    alike = fit_tilts(places | few, dict.fromkeys(places, np.ones(300)) | {9: np.ones(1)})[9][0]
    assert alike[-1, 1] < -0.3


def test_what_columns_share_is_learnt_from_the_others() -> None:
    b = (0.2, -0.3, 0.2, 0.15)
    places = {d: places_of(b, 60, d) for d in range(12)}
    together, alone = fitted(places), fitted({0: places[0]})
    # Of a column with hardly a cell there is what the others share: width, not place or skew.
    few = fitted(places | {12: np.array([0.5])})[12][-1]
    np.testing.assert_allclose(few[[1, 3]], [-0.15, 0.075], atol=0.04)  # or none at all
    np.testing.assert_allclose(few[[0, 2]], 0.0, atol=0.02)
    away = [np.abs(found[0][-1, [1, 3]] - [-0.3, 0.15]).sum() for found in (together, alone)]
    assert away[0] < 0.5 * away[1]


def test_a_column_alone_shares_nothing() -> None:
    u = places_of((0.1, -0.3, 0.0, 0.1), 200, 5)
    alone = fit_tilt(Binned.of(u, sds(200, 2)), TILT_PRIOR, NONE)
    np.testing.assert_array_equal(fitted({2: u})[2], alone)


@pytest.mark.parametrize("slopes", [NO_SLOPE, {"none": 0.5, 0.1: 0.3, 0.3: 0.2}])
def test_a_tilt_has_the_posterior_mean_of_its_prior(slopes: dict) -> None:
    u, sd = places_of((0.1, -0.15, 0.0, 0.0), 150, 3), np.repeat([0.2, 0.5, 1.0], 50)
    shared, cells = np.array([0.0, -0.2, 0.0, 0.1]), Binned.of(u, sd)
    low, high = cells.ends
    assert [low, high] == pytest.approx([np.log(0.2), 0.0])
    rng, means, weights = np.random.default_rng(0), [], []
    f, knots = polynomials(GRID[32::64]), np.linspace(low, high, KNOTS)
    total = np.array([polynomials(u[50 * j : 50 * j + 50]).sum(axis=1) for j in range(3)])
    prior = {"none": 0.3, "shared": 0.3, 0.1: 0.2, 0.2: 0.2}
    decay = 1.0 / np.sqrt(np.arange(1, 5))
    for kind, p in prior.items():
        for slope, q in slopes.items():
            fixed = isinstance(kind, str) and isinstance(slope, str)
            n = 1 if fixed else 12_000  # draws of each part of the prior
            b = np.tile((kind != "none") * shared, (n, 1))
            c = np.zeros((n, 4))
            if not isinstance(kind, str):
                b = b + kind * decay * rng.standard_normal((n, 4))
            bend = np.full(n, high)
            if not isinstance(slope, str):
                c = slope * decay * rng.standard_normal((n, 4))
                bend = low + (high - low) * rng.choice([1 / 3, 2 / 3, 1.0], n)
            at = np.minimum(np.log([0.2, 0.5, 1.0]) - bend[:, None], 0.0)
            each = b[:, None] + at[:, :, None] * c[:, None]
            log_p = np.sum(each * total, axis=(1, 2))
            log_p -= 50 * np.log(np.exp(each @ f).mean(axis=2)).sum(axis=1)
            likely = np.exp(log_p)
            curve = b[:, None] + np.minimum(knots - bend[:, None], 0.0)[:, :, None] * c[:, None]
            means.append(p * q * np.tensordot(likely, curve, 1) / n)
            weights.append(p * q * likely.mean())
    expected = np.sum(means, axis=0) / np.sum(weights)
    np.testing.assert_allclose(fit_tilt(cells, prior, shared, slopes), expected, atol=0.008)


def test_few_cells_hardly_correct() -> None:
    found = fit_tilts({0: np.array([0.4, 0.5, 0.6])}, {0: np.array([0.1, 0.3, 1.0])})[0][0]
    assert np.abs(found).max() < 0.1
    assert fit_powers(np.array([[0.6, 0.4]] * 3), np.array([0, 0, 0])).max() < 1.2


def test_weak_evidence_is_no_reason_to_correct() -> None:
    found = [fitted({0: np.random.default_rng(seed).random(400)})[0] for seed in range(9)]
    assert np.median(np.abs(found)) < 0.01
    p = np.tile([0.7, 0.3], (200, 1))
    exponents = [
        fit_powers(p, (np.random.default_rng(seed).random(200) < 0.3).astype(int))
        for seed in range(9)
    ]
    assert np.median(np.abs(np.log(exponents))) < 0.03
    narrow = 0.25 + 0.5 * np.random.default_rng(1).random(400)
    assert fitted({0: narrow})[0][-1, 1] < -0.5


def codes_of(p: np.ndarray, seed: int) -> np.ndarray:
    u = np.random.default_rng(seed).random((len(p), 1))
    return (u > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)


@pytest.mark.parametrize("a", [(0.7, 0.7), (1.0, 1.0), (1.4, 1.4), (0.8, 2.0)])
def test_the_powers_of_tempered_forecasts_are_found(a: tuple[float, float]) -> None:
    p = np.random.default_rng(0).dirichlet([1.0, 0.6, 0.4], 4000)
    by = Recalibration(np.array([a]), np.zeros((1, KNOTS, 4)), np.zeros((1, 2)))
    np.testing.assert_allclose(fit_powers(p, codes_of(by.of_levels(0, p), 1)), a, rtol=0.15)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_powers_are_drawn_to_none_as_far_as_evidence_for_them_is_weak(seed: int) -> None:
    """Posterior means by quadrature on a finer grid."""
    p = np.random.default_rng(seed).dirichlet(np.ones(3), 100)
    codes = codes_of(p**1.3 / np.sum(p**1.3, axis=1, keepdims=True), seed)
    first, added = np.linspace(-1.2, 1.2, 121), np.linspace(-3.5, 3.5, 141)
    log_a = first[:, None, None] + added[:, None] * certainty(p)
    parts = np.exp(log_a)[..., None] * np.log(p)
    log_p = np.log(np.exp(parts).sum(axis=3))
    log_p = (parts[:, :, np.arange(100), codes] - log_p).sum(axis=2)
    prior = []
    for at, sd in ((first, POWER_SD), (added, ADDED_SD)):
        normal = np.exp(-0.5 * (at / sd) ** 2)
        normal *= (1.0 - NO_CORRECTION) / normal.sum()
        normal[at.size // 2] += NO_CORRECTION
        prior.append(normal)
    share = np.exp(log_p - log_p.max()) * prior[0][:, None] * prior[1]
    share /= share.sum()
    ends = np.array([share.sum(axis=1) @ first, share.sum(axis=0) @ added]).cumsum()
    np.testing.assert_allclose(np.log(fit_powers(p, codes)), ends, rtol=0.05, atol=0.004)


def table_of_twins(n: int) -> tuple[np.ndarray, np.ndarray, pa.Table]:
    """A premium and what follows from it, a third of each missing."""
    rng = np.random.default_rng(4)
    age = rng.standard_normal(n)
    premium = 50 + 8 * age + 8 * rng.standard_normal(n)
    truth = np.column_stack([(1 + 0.1 * k) * premium + 0.02 * rng.random(n) for k in range(3)])
    gone = rng.random(truth.shape) < 0.3
    names = ["premium", "tax", "total"]
    columns = {name: pa.array(truth[:, k], mask=gone[:, k]) for k, name in enumerate(names)}
    return truth, gone, pa.table(columns | {"age": pa.array(age)})


def test_intervals_hold_where_other_columns_that_say_the_same_are_missing_too() -> None:
    truth, gone, table = table_of_twins(700)
    types = {"columns": dict.fromkeys(table.column_names, "real")}
    posterior = impute(table, types, chains=6, seed=2).posterior
    by = posterior.recalibration
    assert by is not None
    n = len(by.exponents)
    plain = Recalibration.alike(np.ones(n), np.zeros((n, 4)), by.weights)
    rows = {k: np.flatnonzero(gone[:, k]) for k in range(3)}
    after, before = (
        predict(replace(posterior, recalibration=one), rows, (0.025, 0.975)) for one in (by, plain)
    )
    inside = []
    for k, part in after.items():
        low, high = part.quantiles.T
        alone = gone[rows[k]].all(axis=1)
        widths = (high - low) / np.diff(before[k].quantiles)[:, 0]
        assert widths[alone].min() > 0.8  # about as they were, which is right,
        assert np.median(widths[~alone]) < 0.4  # and nearly exact ones are no longer too modest
        inside.append((low <= truth[rows[k], k]) & (truth[rows[k], k] <= high))
        inside[k] = np.stack([inside[k][alone].mean(), inside[k][~alone].mean()])
    assert np.all(np.mean(inside, axis=0) > [0.75, 0.93])


def test_probabilities_hold_where_another_column_that_says_the_same_is_missing_too() -> None:
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.dirichlet(np.full(6, 2.0), 60), rng.dirichlet(np.full(6, 0.2), 340)])
    p[60:] = 0.2 / 6 + 0.8 * np.eye(6)[rng.integers(0, 6, 340)]  # too modest: they are right
    codes = np.concatenate([codes_of(p[:60], 1), p[60:].argmax(axis=1)])
    first, last = fit_powers(p, codes)
    by = Recalibration(np.array([[first, last]]), np.zeros((1, KNOTS, 4)), np.zeros((1, 2)))
    after = by.of_levels(0, p).max(axis=1)
    assert after[60:].mean() > 0.95
    assert after[:60].mean() == pytest.approx(p[:60].max(axis=1).mean(), abs=0.06)
    assert last > 1.5 * first
