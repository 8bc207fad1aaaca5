"""Forecasts recalibrated by those of observed cells: refits, quadrature and known truths."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.integrate import quad
from scipy.special import ndtr

from glfm_cli import impute, load_fit
from glfm_cli.completion import prepare
from glfm_cli.errors import StoreError
from glfm_cli.inference.hidden_cells import OF_RESUMED, Folded, recalibrate, without_cells
from glfm_cli.inference.joint_draws import JointDraws, Z, _spread
from glfm_cli.inference.posterior import Posterior
from glfm_cli.inference.predictive import _average, predict
from glfm_cli.inference.recalibration import (
    EDGES,
    KNOTS,
    Recalibration,
    log_tilt,
    polynomials,
)
from glfm_cli.inference.sampling import Plan, sample
from glfm_cli.inference.scoring import forecasts, log_scores
from glfm_cli.latent.model import Problem
from glfm_cli.links import LinkConfig
from glfm_cli.links.averages import NumberAverage
from glfm_cli.schema import Schema

tilts = st.tuples(*[st.floats(-1.5, 1.5)] * 4).map(np.array)
NONE, ONE = np.zeros(4), np.ones(1)
TYPES = {"columns": {"x": "real", "p": "positive", "c": "categorical", "o": "ordinal"}}


def table_of(n: int, seed: int, gaps: float = 0.2) -> pa.Table:
    """A table in which everything goes up and down together."""
    rng = np.random.default_rng(seed)
    t = rng.standard_normal(n)
    columns = {
        "x": t + 0.5 * rng.standard_normal(n),
        "p": np.exp(0.3 * t + 0.1 * rng.standard_normal(n)),
        "c": np.array(["a", "b", "c"])[np.digitize(t + 0.3 * rng.standard_normal(n), [-0.5, 0.5])],
        "o": np.digitize(t + 0.3 * rng.standard_normal(n), [-1.0, 0.0, 1.0]),
    }
    return pa.table({name: pa.array(x, mask=rng.random(n) < gaps) for name, x in columns.items()})


def fitted(table: pa.Table, **settings: object) -> tuple[Problem, Posterior]:
    options = {"model": "glfm", "chains": 2, "warmup": 20, "draws": 40, "thin": 1, "seed": 3}
    problem, _, plan = prepare(table, Schema.from_dict(TYPES), settings=settings, **options)
    return problem, sample(problem, plan).posterior


def depends(exponents: np.ndarray, tilts: np.ndarray) -> Recalibration:
    """Return a correction that is that of forecasts that know little, and another of others."""
    share = np.linspace(2.0, 0.9, KNOTS)[:, None]
    powers = np.column_stack([exponents, exponents**1.5])
    return Recalibration(powers, share * tilts[:, None], np.tile([-1.5, 0.3], (len(tilts), 1)))


@pytest.fixture(scope="module")
def run() -> tuple[Problem, Posterior]:
    return fitted(table_of(300, 0))


@given(b=tilts)
def test_a_tilted_density_has_mass_one(b: np.ndarray) -> None:
    density = quad(lambda u: np.exp(log_tilt(b, polynomials(np.array([u])))[0]), 0, 1)[0]
    assert density == pytest.approx(1.0, abs=1e-4)


@given(b=tilts, at=st.floats(0.01, 0.99))
def test_the_uncorrected_quantile_has_the_corrected_probability_below_it(
    b: np.ndarray, at: float
) -> None:
    (u,) = Recalibration.alike(np.ones(1), b[None]).uncorrected(0, [at], ONE)[0]
    below = quad(lambda v: np.exp(log_tilt(b, polynomials(np.array([v])))[0]), 0, u)[0]
    assert below == pytest.approx(at, abs=2e-4)


@given(p=hnp.arrays(np.float64, (5, 3), elements=st.floats(1e-6, 1)), a=st.floats(0.3, 3))
def test_corrected_probabilities_keep_their_order_and_total(p: np.ndarray, a: float) -> None:
    p = p / p.sum(axis=1, keepdims=True)
    corrected = Recalibration.alike(np.array([a]), np.zeros((1, 4))).of_levels(0, p)
    np.testing.assert_allclose(corrected.sum(axis=1), 1.0)
    ordered = np.take_along_axis(corrected, np.argsort(p, axis=1), axis=1)
    assert (np.diff(ordered, axis=1) >= -1e-12).all()
    log_ratio = np.log(p[:, 0] / p[:, 1])
    np.testing.assert_allclose(np.log(corrected[:, 0] / corrected[:, 1]), a * log_ratio, atol=1e-9)


varying = hnp.arrays(np.float64, (KNOTS, 4), elements=st.floats(-1.5, 1.5))


@given(b=varying, log_sd=st.floats(-5.0, 1.0))
def test_a_correction_that_depends_on_certainty_is_one_law_of_each_cell(
    b: np.ndarray, log_sd: float
) -> None:
    by = Recalibration(np.ones((1, 2)), b[None], np.array([[-3.0, 0.0]]))
    sd, u = np.exp(np.full(EDGES.size, log_sd)), EDGES
    F = by.corrected(0, u, sd)
    assert (F[0], F[-1]) == (0.0, pytest.approx(1.0))
    assert (np.diff(F) >= 0.0).all()
    middle = 0.5 * (u[1:] + u[:-1])
    density = np.exp(by.log_factor(0, middle, middle, sd[1:]))
    np.testing.assert_allclose(density, np.diff(F) / np.diff(u), rtol=2e-3)
    at = np.array([0.1, 0.5, 0.9])
    np.testing.assert_allclose(np.interp(by.uncorrected(0, at, sd[:1])[0], u, F), at, atol=1e-6)
    step = np.rint(48 * np.clip((log_sd + 3.0) / 3.0, 0.0, 1.0)) / 16.0
    own = [np.interp(step, np.arange(KNOTS), one) for one in b.T]
    alike = Recalibration.alike(np.ones(1), np.array([own]))
    np.testing.assert_allclose(F, alike.corrected(0, u, sd), atol=1e-9)


def test_every_cell_has_the_tilt_of_its_own_certainty() -> None:
    b = np.linspace(-1.0, 0.5, KNOTS)[:, None] * [0.1, 1.0, 0.2, -0.3]
    by = Recalibration(np.ones((1, 2)), b[None], np.array([[-2.0, 0.5]]))
    rng = np.random.default_rng(0)
    u, sd = np.sort(rng.random((2, 40)), axis=0), np.exp(rng.uniform(-3.0, 1.0, 40))
    together = by.corrected(0, u, sd), by.log_factor(0, u[1], u[0], sd), by.uncorrected(0, u[0], sd)
    for k in range(40):
        one = sd[k : k + 1]
        own = by.corrected(0, u[:, k : k + 1], one)[:, 0]
        np.testing.assert_array_equal(together[0][:, k], own)
        assert together[1][k] == by.log_factor(0, u[1, k : k + 1], u[0, k : k + 1], one)[0]
        np.testing.assert_array_equal(together[2][k], by.uncorrected(0, u[0], one)[0])


@given(r=st.integers(2, 6), first=st.floats(0.6, 1.5), last=st.floats(0.6, 4.0))
def test_powers_that_depend_on_certainty_keep_order(r: int, first: float, last: float) -> None:
    by = Recalibration(np.array([[first, last]]), np.zeros((1, KNOTS, 4)), np.zeros((1, 2)))
    top = np.linspace(1.0 / r, 1.0 - 1e-6, 50)
    p = np.column_stack([top, *[(1.0 - top) / (r - 1)] * (r - 1)])
    q = by.of_levels(0, p)
    np.testing.assert_allclose(q.sum(axis=1), 1.0)
    assert (np.diff(q[:, 0]) > -1e-12).all()  # who is surer stays so
    np.testing.assert_allclose(by.powers(0, p)[[0, -1]], [first, last], rtol=1e-4)


def test_no_correction_changes_nothing() -> None:
    p = np.array([[0.1, 0.9], [0.5, 0.5]])
    none = Recalibration.alike(np.ones(1), np.zeros((1, 4)))
    assert none.of_levels(0, p) is p
    np.testing.assert_array_equal(none.uncorrected(0, (0.025, 0.5), ONE), [[0.025, 0.5]])
    factor = none.log_factor(0, np.array([0.0, 0.3, 1.0]), np.array([0.0, 0.1, 0.9]), np.ones(3))
    np.testing.assert_allclose(factor, 0.0, atol=1e-12)


@given(b=tilts, ends=st.tuples(st.floats(0, 1), st.floats(0, 1)).map(sorted))
def test_an_atom_gets_the_mean_of_the_tilt_over_its_jump(b: np.ndarray, ends: list[float]) -> None:
    v, u = ends
    by = Recalibration.alike(np.ones(1), b[None])
    (found,) = by.log_factor(0, np.array([u]), np.array([v]), ONE)
    if u - v > 1e-3:  # the quadrature underflows on jumps of no width
        mass = quad(lambda w: np.exp(log_tilt(b, polynomials(np.array([w])))[0]), v, u)[0]
        assert np.exp(found) == pytest.approx(mass / (u - v), rel=1e-3, abs=1e-6)
    (at,) = by.log_factor(0, np.array([u]), np.array([u]), ONE)
    assert at == pytest.approx(log_tilt(b, polynomials(np.array([u])))[0])


def test_forecasts_of_hidden_cells_are_those_of_refits_without_them(
    run: tuple[Problem, Posterior],
) -> None:
    problem, posterior = run
    folded, hidden = without_cells(posterior, problem)
    xs = [x.copy() for x in problem.xs]
    for d, (at, x) in hidden.items():
        assert at.size > 20
        np.testing.assert_array_equal(xs[d][at], x)
        xs[d][at] = np.nan
    refit = sample(replace(problem, xs=tuple(xs)), Plan(2, 30, 20, 2, 8)).posterior
    # Draws that have seen the cells give them more than those that have not.
    score = {
        name: np.mean([np.log(true_share(one, hidden, d)).mean() for d in (2, 3)])
        for name, one in (("folded", folded), ("refit", refit), ("seen", posterior))
    }
    assert score["folded"] == pytest.approx(score["refit"], abs=0.15)
    assert score["seen"] > max(score["folded"], score["refit"]) + 0.1


def test_cells_that_would_follow_from_others_are_no_hidden_ones(
    run: tuple[Problem, Posterior],
) -> None:
    problem, posterior = run
    plain = without_cells(posterior, problem)[1]
    found = without_cells(posterior, replace(problem, equations=((0, 1),)))[1]
    gone = [np.isnan(x) for x in problem.xs[:2]]
    for d, other in ((0, 1), (1, 0)):
        kept = gone[other][plain[d][0]] | np.isin(plain[d][0], plain[other][0])
        np.testing.assert_array_equal(found[d][0], plain[d][0][kept])
        np.testing.assert_array_equal(found[d][1], plain[d][1][kept])
        assert 0 < found[d][0].size < plain[d][0].size
    np.testing.assert_array_equal(found[2][0], plain[2][0])


def test_each_time_other_cells_are_hidden_under_other_draws(run: tuple[Problem, Posterior]) -> None:
    problem, posterior = run
    done: Folded = {}
    parts = [without_cells(posterior, problem, time, done=done) for time in (0, 1)]
    for d, x in enumerate(problem.xs):
        first, second = (hidden[d] for _, hidden in parts)
        assert not set(first[0]) & set(second[0])
        np.testing.assert_array_equal(second[1], x[second[0]])
        share = (first[0].size + second[0].size) / np.sum(~np.isnan(x))
        assert share == pytest.approx(0.25, abs=0.08)
    for draws in ([draw for chain in done[time][0] for draw in chain] for time in (0, 1)):
        assert len(draws) > 1
    first, second = ({id(d) for chain in done[time][0] for d in chain} for time in (0, 1))
    assert not first & second
    noise = [{float(d.latent.noise[0]) for d in folded.draws()} for folded, _ in parts]
    assert not noise[0] & noise[1]
    assert [len(one) for one in noise] == [OF_RESUMED * len(posterior.chains)] * 2


def true_share(
    posterior: Posterior, hidden: dict[int, tuple[np.ndarray, np.ndarray]], d: int
) -> np.ndarray:
    """Return the probabilities of the true levels, with a little for each level."""
    p = forecasts(posterior, {d: hidden[d]})[d] / posterior.n_draws
    return 0.98 * p[np.arange(p.shape[0]), hidden[d][1].astype(int)] + 0.005


def test_log_scores_are_those_of_the_corrected_forecasts() -> None:
    problem, posterior = fitted(table_of(150, 0))
    n = len(problem.links)
    by = depends(np.full(n, 1.3), np.tile([0.1, -0.3, 0.05, 0.1], (n, 1)))
    corrected = replace(posterior, recalibration=by)
    rows = np.flatnonzero(np.isnan(np.column_stack(problem.xs)).any(axis=1))[:20]
    at = np.linspace(0.1, 0.9, 401)
    for d, marginal in predict(corrected, dict.fromkeys(range(n), rows), tuple(at)).items():
        if marginal.probabilities is not None:
            for level in range(marginal.probabilities.shape[1]):
                truth = {d: np.full(rows.size, float(level))}
                score = log_scores(corrected, {d: rows}, truth)[d]
                np.testing.assert_allclose(np.exp(score), marginal.probabilities[:, level])
            continue
        x = marginal.quantiles
        for j, row in enumerate(rows):
            same = np.full(at.size, row)
            density = np.array(
                [np.exp(log_scores(corrected, {d: same[:1]}, {d: x[j, i : i + 1]})[d][0])
                 for i in range(0, at.size, 20)]
            )  # fmt: skip
            mass = np.trapezoid(density, x[j, ::20])
            assert mass == pytest.approx(0.8, abs=0.02)
            if j == 2:
                break


@pytest.mark.parametrize("tilt", [(0.1, -0.3, 0.05, 0.1), (-0.2, 0.2, 0.2, 0.0), (0.0,) * 4])
def test_moments_of_numbers_are_those_of_their_corrected_quantiles(
    tilt: tuple[float, ...],
) -> None:
    rng = np.random.default_rng(1)
    table = table_of(120, 2).append_column("n", pa.array(rng.poisson(5.0, 120)))
    types = {"columns": {**TYPES["columns"], "n": {"type": "count", "bounds": [2, None]}}}
    table = table.filter(pc.greater_equal(table["n"], 2))
    options = {"model": "glfm", "chains": 2, "warmup": 20, "draws": 20, "thin": 1, "seed": 3}
    problem, _, plan = prepare(table, Schema.from_dict(types), settings={}, **options)
    plain = sample(problem, plan).posterior
    numbers = [d for d, link in enumerate(problem.links) if not link.discrete]
    n = len(problem.links)
    by = depends(np.ones(n), np.tile(tilt, (n, 1)))
    cells = dict.fromkeys(numbers, np.arange(0, problem.n_rows, 9))
    at = ((np.arange(1000) + 0.5) / 1000).tolist()
    corrected = replace(plain, recalibration=by)
    found, before = (predict(one, cells, at) for one in (corrected, plain))
    alone = predict(corrected, cells, at, numeric_quantiles=False)
    for d in numbers:
        wide, usual = found[d].quantiles.std(axis=1), before[d].quantiles.std(axis=1)
        # The same quantiles of the uncorrected law say what a thousand of them leave out.
        np.testing.assert_allclose(found[d].sd / before[d].sd, wide / usual, rtol=0.03)
        moved = found[d].quantiles.mean(axis=1) - before[d].quantiles.mean(axis=1)
        change = found[d].mean - before[d].mean
        np.testing.assert_allclose(change / before[d].sd, moved / before[d].sd, atol=0.03)
        np.testing.assert_array_equal(alone[d].mean, found[d].mean)
        np.testing.assert_array_equal(alone[d].sd, found[d].sd)
        assert np.isnan(alone[d].quantiles).all()
        np.testing.assert_allclose(found[d].mcse, before[d].mcse)
        if any(tilt):
            assert (np.abs(found[d].sd / before[d].sd - 1.0) > 0.03).all()


def test_a_law_that_its_correction_leaves_no_width_keeps_its_sd(
    run: tuple[Problem, Posterior],
) -> None:
    problem, posterior = run
    d = next(d for d, link in enumerate(problem.links) if not link.discrete)
    average, _ = _average(posterior, np.arange(9), {d: np.arange(9)}, [d])[d]
    assert isinstance(average, NumberAverage)
    _, ratio = average.corrected(lambda F: (F > 0.5).astype(float))
    np.testing.assert_array_equal(ratio, np.ones(9))


def test_the_result_does_not_depend_on_threads(run: tuple[Problem, Posterior]) -> None:
    problem, posterior = run
    one, two = (recalibrate(posterior, problem, threads=n).recalibration for n in (1, 2))
    assert one is not None
    assert two is not None
    np.testing.assert_array_equal(one.exponents, two.exponents)
    np.testing.assert_array_equal(one.tilts, two.tilts)
    np.testing.assert_array_equal(one.log_sds, two.log_sds)
    assert (one.exponents[2:] != 1.0).all()


def test_the_setting_and_too_few_draws_leave_forecasts_as_they_are(
    run: tuple[Problem, Posterior],
) -> None:
    problem, posterior = run
    off = replace(problem, link_config=LinkConfig(recalibrate=False))
    assert recalibrate(posterior, off) is posterior
    few = replace(posterior, chains=(posterior.chains[0][:10],))
    assert recalibrate(few, problem) is few


def test_columns_of_mostly_one_value_are_left_alone() -> None:
    rng = np.random.default_rng(2)
    zeros = np.where(rng.random(200) < 0.8, 0.0, rng.exponential(size=200))
    table = pa.table({"n": rng.poisson(3.0, 200), "z": zeros, "x": rng.standard_normal(200)})
    types = Schema.from_dict({"columns": {"n": "count", "z": "positive", "x": "real"}})
    options = {"model": "glfm", "chains": 1, "warmup": 5, "draws": 100, "thin": 1, "seed": 0}
    problem, _, plan = prepare(table, types, settings={}, **options)
    found = recalibrate(sample(problem, plan).posterior, problem).recalibration
    assert found is not None
    assert found.tilts.any(axis=(1, 2)).tolist() == [True, False, True]
    # Poisson counts among noise call for none, but for the few that such a fit is too sure of.
    assert np.abs(found.tilts[0, -2:]).max() < 0.15


def test_forecasts_of_hidden_cells_gain(run: tuple[Problem, Posterior]) -> None:
    """Short chains are pooled into a blurred forecast of columns that are nearly certain."""
    problem, posterior = run
    full = table_of(300, 0, gaps=0.0)
    truth = {d: full.column(name) for d, name in enumerate(TYPES["columns"])}
    after = recalibrate(posterior, problem)
    gains = []
    for d in (2, 3):
        rows = np.flatnonzero(np.isnan(problem.xs[d]))
        labels = truth[d].to_pylist()
        codes = np.array([sorted(set(labels)).index(labels[i]) for i in rows], dtype=float)
        for p in (posterior, after):
            gains.append(log_scores(p, {d: rows}, {d: codes})[d].mean())
    assert gains[1] + gains[3] > gains[0] + gains[2] - 0.01


def test_a_saved_fit_keeps_its_recalibration(tmp_path: Path) -> None:
    table, folder = table_of(200, 1), tmp_path / "fit.glfm"
    done = impute(table, TYPES, chains=1, warmup=20, draws=60, thin=1, save=folder)
    found, kept = load_fit(folder).posterior.recalibration, done.posterior.recalibration
    assert found is not None
    assert kept is not None
    np.testing.assert_array_equal(found.exponents, kept.exponents)
    np.testing.assert_array_equal(found.tilts, kept.tilts)
    np.testing.assert_array_equal(found.log_sds, kept.log_sds)
    again = impute(table, fit=folder)
    assert again.cells().equals(done.cells())
    raw = impute(
        table, TYPES, chains=1, warmup=20, draws=60, thin=1, settings={"recalibrate": False}
    )
    assert not raw.cells().equals(done.cells())


@pytest.mark.parametrize("broken", ['"exponents": [', '"tilts": [', '"log_sds": ['])
def test_a_broken_recalibration_is_refused(tmp_path: Path, broken: str) -> None:
    folder = tmp_path / "fit.glfm"
    impute(table_of(60, 1), TYPES, chains=1, warmup=20, draws=60, thin=1, save=folder)
    header = folder / "run.json"
    text = header.read_text()
    name = broken.split(":", maxsplit=1)[0]
    assert name in text
    header.write_text(text.replace(f"{name}: [", f"{name}: [-1.0, ", 1))
    with pytest.raises(StoreError, match="recalibration"):
        load_fit(folder)


def test_joint_draws_are_of_the_corrected_forecasts() -> None:
    problem, posterior = fitted(table_of(80, 1))
    tilts = np.array([[0.6, -0.2, 0.1, 0.1], [0.0, 0.6, 0.0, -0.1], NONE, NONE])
    by = depends(np.array([1.0, 1.0, 1.8, 0.6]), tilts)
    none = np.arange(KNOTS)[:, None] < KNOTS - 1  # of forecasts that know nothing
    by = replace(by, tilts=none * tilts[:, None], log_sds=np.tile([-0.3, 0.0], (4, 1)))
    posterior = replace(posterior, recalibration=by)
    cells = {d: np.flatnonzero(np.isnan(x))[:3] for d, x in enumerate(problem.xs)}
    joint, rng = JointDraws(posterior, cells), np.random.default_rng(5)
    drawn = [joint.draw(rng, draw) for _ in range(25) for draw in posterior.draws()]
    at = (0.1, 0.4, 0.75)
    found = predict(posterior, cells, at)
    n = len(drawn)
    for d in (0, 1):
        x = np.array([one[d] for one in drawn])
        for j, p in enumerate(at):
            share = np.mean(x <= found[d].quantiles[:, j], axis=0)
            np.testing.assert_allclose(share, p, atol=5 * np.sqrt(p * (1 - p) / n) + 0.02)
    for d in (2, 3):
        codes = np.array([one[d] for one in drawn])
        for r, p in enumerate(found[d].probabilities.T):
            share = np.mean(codes == r, axis=0)
            np.testing.assert_allclose(share, p, atol=5 * 0.5 / np.sqrt(n))


def test_probabilities_of_counts_are_corrected_alike_in_scores_intervals_and_draws() -> None:
    rng = np.random.default_rng(4)
    n = np.where(rng.random(80) < 0.2, np.nan, rng.poisson(4.0, 80))
    table = pa.table({"n": pa.array(n, from_pandas=True), "x": n % 2 + rng.standard_normal(80)})
    types = {"columns": {"n": "count", "x": "real"}}
    done = impute(table, types, model="glfm", chains=2, warmup=10, draws=10, thin=1, threads=1)
    by = depends(np.ones(2), np.array([[0.2, -0.4, 0.1, 0.2], NONE]))
    posterior = replace(done.posterior, recalibration=by)
    rows, at = np.flatnonzero(np.isnan(n))[:2], (0.05, 0.3, 0.6, 0.95)
    upto, joint = np.arange(60.0), JointDraws(posterior, {0: rows})
    found_all = predict(posterior, {0: rows}, at)[0].quantiles
    drawn = np.array([joint.draw(rng, d)[0] for _ in range(60) for d in posterior.draws()])
    for row, found, own in zip(rows, found_all, drawn.T, strict=True):
        same = np.full(upto.size, row)
        p = np.exp(log_scores(posterior, {0: same}, {0: upto})[0])
        assert p.sum() == pytest.approx(1.0, abs=1e-3)
        below = np.cumsum(p)[found.astype(int)]
        assert np.all((below > np.array(at) - 2e-3) & (below - p[found.astype(int)] < at))
        counted = np.bincount(own.astype(int), minlength=60) / own.size
        assert np.abs(np.cumsum(counted) - np.cumsum(p)).max() < 0.06
        every = predict(posterior, {0: np.array([row])}, ndtr(Z).tolist())[0]
        spread = _spread(posterior, 0, every)[0]
        below = np.interp(spread, np.r_[-1.0, upto], np.r_[0.0, np.cumsum(p)])
        np.testing.assert_allclose(below, ndtr(Z), atol=0.03)  # the same but within a unit
        plain = np.exp(log_scores(done.posterior, {0: same}, {0: upto})[0])
        assert np.abs(np.cumsum(plain) - np.cumsum(p)).max() > 0.1


def test_scores_inside_bounds_add_up_to_one() -> None:
    types = {"columns": {**TYPES["columns"], "p": {"type": "positive", "bounds": [0.6, 2.5]}}}
    table = table_of(60, 2)
    p = np.clip(table["p"].to_numpy(zero_copy_only=False), 0.6, 2.5)
    table = table.set_column(1, "p", pa.array(p, from_pandas=True))
    done = impute(table, types, model="glfm", chains=2, warmup=10, draws=5, thin=1, threads=1)
    row = np.flatnonzero(np.isnan(p))[0]
    at = np.linspace(0.6, 2.5, 4001)
    middles = 0.5 * (at[1:] + at[:-1])
    rows = np.full(middles.size, row)
    for posterior in (done.posterior, replace(done.posterior, recalibration=None)):
        logs = log_scores(posterior, {1: rows}, {1: middles})[1]
        assert np.sum(np.exp(logs) * np.diff(at)) == pytest.approx(1.0, abs=2e-3)
