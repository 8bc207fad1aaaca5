"""Lines before trees: the ridge regression against brute force, laws with it, and when it pays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from glfm_cli import impute
from glfm_cli.arrays import Array
from glfm_cli.completion import prepare
from glfm_cli.inference import chains
from glfm_cli.latent.forest import ForestConfig, ForestDraw, lines
from glfm_cli.latent.forest.columns import Kinds
from glfm_cli.latent.forest.draw import ForestLaw
from glfm_cli.latent.forest.leaves import best_way
from glfm_cli.latent.forest.lines import WEIGHTS, Lines, log_evidence, may_have, ridge
from glfm_cli.latent.forest.trees import grow, scaled
from glfm_cli.latent.model import Sizes
from glfm_cli.links.law import NormalMixture
from tests.normals import whole_of

pytestmark = pytest.mark.kernels
KINDS = Kinds(  # a number, one with an atom, three unordered levels, two, and four ordered ones
    np.array([0, 0, 3, 2, 4], dtype=np.int32),
    np.array([0, 0, 1, 1, 0], dtype=np.uint8),
    np.array([np.nan, -2.5, np.nan, np.nan, np.nan]),
    np.zeros(5),
)


def cells(n: int, seed: int = 0) -> Array:
    """Return cells (5, n) of such columns: the first a weighted sum of the others, and noise."""
    rng = np.random.default_rng(seed)
    a = np.where(rng.random(n) < 0.3, -2.5, rng.standard_normal(n))
    c, b, o = (rng.integers(k, size=n).astype(float) for k in (3, 2, 4))
    y = 0.7 * np.where(a == -2.5, -1.0, a) + 0.5 * (c == 1) - b + 0.3 * o
    z = np.stack([y + 0.2 * rng.standard_normal(n), a, c, b, o])
    return z.astype(np.float32).astype(np.float64)


def test_a_regression_sees_numbers_codes_and_indicators() -> None:
    z = np.array([[1.5, 0.5], [-2.5, 0.25], [2.0, 0.0], [1.0, 0.0], [3.0, 1.0]])
    x = KINDS.inputs.see(z)
    first = [1.5, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 3.0]
    second = [0.5, 0.25, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]
    assert x.tolist() == [first, second]


@given(st.integers(0, 10_000), st.integers(5, 30), st.integers(1, 8))
def test_errors_without_a_row_are_those_of_a_fit_without_it(seed: int, n: int, P: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.normal(1.0, 2.0, (n, P)), rng.normal(3.0, 1.0, n)
    mean, slopes, left = ridge(x, y)
    u = (x - x.mean(axis=0)) / x.std(axis=0)
    both = np.column_stack([np.ones(n), u])
    # The weight of the ridge, from the slopes: u'(v - u b) = w b.
    b, v = slopes * x.std(axis=0), y - y.mean()
    w = float(u.T @ (v - u @ b) @ b / (b @ b))
    assert w / n == pytest.approx(WEIGHTS[np.argmin(abs(np.log(WEIGHTS * n / w)))], rel=1e-6)
    penalty = np.diag([0.0, *np.full(P, w)])
    hat = both @ np.linalg.solve(both.T @ both + penalty, both.T)
    assume(np.diag(hat).max() < 0.99)
    for i in range(n):
        keep = np.arange(n) != i
        found = np.linalg.solve(both[keep].T @ both[keep] + penalty, both[keep].T @ y[keep])
        assert left[i] == pytest.approx(y[i] - both[i] @ found, rel=1e-6, abs=1e-8)
    whole = np.linalg.solve(both.T @ both + penalty, both.T @ y)
    np.testing.assert_allclose(mean + x @ slopes, both @ whole, rtol=1e-8, atol=1e-8)


def test_the_weight_is_that_of_most_evidence(seed: int) -> None:
    """The evidence is that of y given the weight, its mean and error integrated numerically."""
    rng = np.random.default_rng(seed)
    n, P = 12, 3
    u = rng.standard_normal((n, P))
    u -= u.mean(axis=0)
    y = u @ rng.normal(0.0, 0.5, P) + rng.standard_normal(n)
    y -= y.mean()
    size, turn = np.linalg.eigh(u.T @ u)
    found = log_evidence(size, turn.T @ (u.T @ y), float(y @ y), n)
    at = [8, 16, 24, 30]
    contrast = np.linalg.svd(np.ones((1, n)))[2][1:]  # a flat mean leaves n - 1 contrasts
    log_sd = np.linspace(-6.0, 6.0, 2001)
    true = []
    for k in at:
        cov = contrast @ (np.eye(n) + u @ u.T / (n * WEIGHTS[k])) @ contrast.T
        root = np.linalg.cholesky(cov)
        e, log_det = np.linalg.solve(root, contrast @ y), np.log(np.diag(root)).sum()
        log_p = -(n - 1) * log_sd - 0.5 * (e @ e) * np.exp(-2.0 * log_sd) - log_det
        true.append(np.log(np.exp(log_p - log_p.max()).sum()) + log_p.max())
        sigma = 0.7
        other = multivariate_normal(np.zeros(n - 1), sigma**2 * cov).logpdf(contrast @ y)
        mine = -(n - 1) * (np.log(sigma) + 0.5 * np.log(2 * np.pi))
        assert mine - 0.5 * (e @ e) / sigma**2 - log_det == pytest.approx(other)
    np.testing.assert_allclose(np.diff(found[at]), np.diff(true), rtol=1e-6)


def test_lines_say_of_every_block_of_rows_what_they_say_of_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    z, seen = cells(50), np.ones((5, 50), dtype=np.uint8)
    seen[0, 40:] = 0
    once = (z, seen, KINDS, [0], np.random.default_rng(0))
    whole, rows = Lines.fit(*once), np.arange(3, 50, 2)
    monkeypatch.setattr(lines, "BLOCK", 7)
    again = Lines.fit(*once)
    np.testing.assert_allclose(again.left, whole.left, rtol=1e-6)
    np.testing.assert_allclose(again.forecast(0, z, rows), whole.forecast(0, z, rows))
    assert np.isnan(whole.left[0, 40:]).all()
    x = whole.inputs.see(z[:, :40])[:, 1:]
    np.testing.assert_allclose(whole.left[0, :40], ridge(x, z[0, :40])[2], rtol=1e-5)


def test_a_long_column_is_fitted_by_some_rows_and_leaves_over_of_all() -> None:
    z, seen = cells(300), np.ones((5, 300), dtype=np.uint8)
    found = Lines.fit(z, seen, KINDS, [0], np.random.default_rng(0), most=100)
    plain = z[0] - found.forecast(0, z, np.arange(300))
    fitted = np.abs(found.left[0] - plain) > 1e-5
    assert fitted.sum() == 100
    assert (np.abs(found.left[0]) >= np.abs(plain) - 1e-5).all()


def test_no_line_goes_far_beyond_what_was_observed() -> None:
    z, seen = cells(60), np.ones((5, 60), dtype=np.uint8)
    found = Lines.fit(z, seen, KINDS, [0], np.random.default_rng(0))
    far = z[:, :2].copy()
    far[1] = [1e3, -1e3]
    low, high = z[0].min() - lines.BEYOND, z[0].max() + lines.BEYOND
    assert found.forecast(0, far, np.arange(2)).tolist() == [high, low]


def test_a_weighted_sum_gets_a_line_and_a_step_none() -> None:
    rng, config = np.random.default_rng(0), ForestConfig()
    z, seen = cells(400), np.ones((5, 400), dtype=np.uint8)
    assert best_way(z, seen, KINDS, 0, config, rng)[1]
    assert not best_way(z, seen, KINDS, 0, replace(config, linear="never"), rng)[1]
    z[0] = np.sign(z[1]) + 0.02 * rng.standard_normal(400)
    assert not best_way(z, seen, KINDS, 0, config, rng)[1]
    assert best_way(z, seen, KINDS, 0, replace(config, linear="always"), rng)[1]
    for d in (1, 2, 4):  # part of a column at one value, and levels
        assert not best_way(z, seen, KINDS, d, replace(config, linear="always"), rng)[1]


TYPES = {
    "columns": {
        "y": {"type": "real", "transform": "none"},
        "x": {"type": "real", "transform": "none"},
        "c": "categorical",
    }
}


def table_of(n: int = 300, seed: int = 0) -> tuple[pa.Table, Array, Array]:
    """Return a table whose y is a sum, a fifth of it missing, the truth, and the gaps."""
    rng = np.random.default_rng(seed)
    x, c = rng.standard_normal(n), rng.integers(4, size=n)
    y = x + np.array([-2.0, 0.0, 1.0, 2.0])[c] + 0.3 * rng.standard_normal(n)
    gone, few = rng.random(n) < 0.2, np.arange(n) % 25 == 0
    cells = {"y": pa.array(y, mask=gone), "x": pa.array(x, mask=few)}
    return pa.table(cells | {"c": np.array(list("abcd"))[c]}), y, gone & ~few


@pytest.fixture(scope="module")
def draw() -> ForestDraw:
    problem = prepare(table_of()[0], TYPES, model="forest", settings={"linear": "always"})[0]
    chain = chains.start(problem, 1, 0)
    for _ in range(6):
        chain.sweep(adapt=True)
    found: ForestDraw = chain.keep().latent
    assert found.lines.place.tolist() == [0, 1, -1]
    return found


def test_laws_are_those_of_what_is_left_over_around_the_line(draw: ForestDraw) -> None:
    """By hand: the line of all rows, of an observed cell the one without it, and its leaves."""
    rows = np.arange(draw.own.size)
    law = ForestLaw(draw, rows).column(0)
    seen = draw.seen[0] != 0
    x = np.column_stack([draw.z[1], *(draw.z[2] == k for k in range(4)), np.ones(rows.size)])
    w = draw.lines.weight[0][1:]
    line = x @ w
    line[seen] = draw.z[0][seen] - draw.lines.left[0][seen]
    flat = replace(draw.trees, slope=np.zeros(3))  # the column's mean of what is left over
    found = ForestLaw(replace(draw, trees=flat), rows).column(0)
    left = np.nanmean(draw.lines.left[0].astype(float))
    np.testing.assert_allclose(whole_of(found)[0][:, 0], line + left, atol=1e-5)
    # What leaves say beside it is small, as trees forecast errors of a right line.
    assert np.std(whole_of(law)[0][:, 0] - line) < 0.3 * np.std(line)


def test_a_row_whose_other_cells_are_drawn_anew_is_forecast_from_these(draw: ForestDraw) -> None:
    """Less what its own cell adds to its forecast: that is drawn to the cell by its leverage."""
    rows = np.flatnonzero(draw.seen[0])[:20]
    other = draw.z.copy()
    other[1, rows] += 0.5
    anew = replace(draw, z=other)
    own = rows.astype(np.int32)
    before, after = (x.base(0, rows, own, draw.lines) for x in (draw, anew))
    assert before is not None
    assert after is not None
    np.testing.assert_allclose(before, draw.z[0, rows] - draw.lines.left[0, rows], atol=1e-6)
    np.testing.assert_allclose(after - before, 0.5 * draw.lines.weight[0][1], rtol=1e-6)
    nobody = np.full(rows.size, -1, dtype=np.int32)
    plain = anew.base(0, rows, nobody, draw.lines)
    np.testing.assert_array_equal(plain, draw.lines.forecast(0, other, rows))
    both = anew.base(0, rows, np.where(np.arange(20) % 2, own, nobody), draw.lines)
    np.testing.assert_array_equal(both, np.where(np.arange(20) % 2, after, plain))


def test_trees_ask_what_tells_most_of_what_is_left_over(draw: ForestDraw) -> None:
    left = draw.z.copy()
    left[0] = draw.lines.left[0]
    once = draw.seen, draw.kinds, [0], 4, 1, np.full(3, 3), ForestConfig()
    one = grow(draw.z, *once, np.random.default_rng(0), draw.lines)
    other = grow(left, *once, np.random.default_rng(0))
    for name in ("feature", "threshold", "within"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist()


def test_slopes_and_scales_are_those_of_trees_of_what_is_left_over(draw: ForestDraw) -> None:
    found = scaled(draw.trees, draw.z, draw.seen, draw.kinds, draw.prior, draw.lines)
    for d in range(2):
        left = draw.z.copy()
        left[d] = draw.lines.left[d]
        right = scaled(draw.trees, left, draw.seen, draw.kinds, draw.prior)
        assert (found.slope[d], found.scale[d]) == (right.slope[d], right.scale[d])


def test_new_rows_are_drawn_around_the_line(draw: ForestDraw) -> None:
    n = 2000
    z = np.stack([np.full(n, np.nan), np.full(n, 0.5), np.full(n, 2.0)])
    new = draw.folded(z, np.full(n, -1, dtype=np.int32), {}, 2, np.random.default_rng(0))
    law = ForestLaw(new, np.arange(1)).column(0)
    mean, sd = float(whole_of(law)[0][0, 0]), float(np.sqrt(whole_of(law)[1][0, 0]))
    assert new.z[0].mean() == pytest.approx(mean, abs=0.5 * sd)
    assert new.z[0].std() < 2.0 * sd
    assert (new.z[0] == new.z[0].astype(np.float32)).all()


def test_a_draw_comes_back_with_its_lines(draw: ForestDraw) -> None:
    sizes = Sizes(draw.own.size, 3, ((0, 1), (1, 2), (2, 6)))
    again = ForestDraw.unpack(draw.pack(), sizes)
    for d in range(2):
        one, other = (ForestLaw(x, np.arange(50)).column(d) for x in (draw, again))
        assert isinstance(one, NormalMixture)
        assert isinstance(other, NormalMixture)
        assert one.means.tolist() == other.means.tolist()
        assert one.variances.tolist() == other.variances.tolist()


@pytest.mark.parametrize(
    ("name", "value", "phrase"),
    [
        ("line", [0, 2, -1], "'line' does not number columns"),
        ("line", [0, -1, 1], "'line' is of a column that can have none"),
        ("ends", [[0.0, -1.0], [0.0, 1.0]], "'ends' are in no order"),
    ],
)
def test_lines_of_no_such_table_are_refused(
    draw: ForestDraw, name: str, value: list[object], phrase: str
) -> None:
    sizes = Sizes(draw.own.size, 3, ((0, 1), (1, 2), (2, 6)))
    packed = dict(draw.pack())
    packed[name] = np.array(value, dtype=packed[name].dtype)
    with pytest.raises(ValueError, match=phrase):
        ForestDraw.unpack(packed, sizes)


def test_a_state_with_a_line_of_levels_is_refused() -> None:
    problem = prepare(table_of()[0], TYPES, model="forest")[0]
    chain = chains.start(problem, 1, 0)
    state = dict(chain.model.save(chain.state))
    state["way"] = np.array([[3, 3, 3], [0, 1, 1]])
    with pytest.raises(ValueError, match="'way' has a line of a column that can have none"):
        chain.model.load(state, chain.values, problem.config)


def test_a_sum_of_a_number_and_categories_is_forecast_nearly_as_well_as_by_it() -> None:
    """Trees alone are a fifth worse."""
    errors = {}
    for linear in ("never", "auto"):
        table, y, gone = table_of()
        done = impute(table, TYPES, model="forest", chains=2, settings={"linear": linear})
        e = done.table["y"].to_numpy()[gone] - y[gone]
        errors[linear] = float(np.sqrt(np.mean(e**2)))
    assert errors["auto"] < 0.85 * errors["never"]


@pytest.mark.parametrize(("columns", "has"), [(200, True), (201, False)])
def test_of_many_inputs_there_are_no_lines(columns: int, has: bool) -> None:
    """Each would cost more than trees, as the cube of their number."""
    none, no_atom = np.zeros(columns, np.int32), np.full(columns, np.nan)
    kinds = Kinds(none, none.astype(np.uint8), no_atom, np.zeros(columns))
    assert may_have(kinds).tolist() == [has] * columns
