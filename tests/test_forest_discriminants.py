"""Discriminants beside trees of levels: against brute force, laws and draws, and when they pay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from glfm_cli.arrays import Array
from glfm_cli.completion import prepare
from glfm_cli.inference import chains
from glfm_cli.latent.forest import ForestConfig, ForestDraw, discriminants
from glfm_cli.latent.forest.columns import Kinds
from glfm_cli.latent.forest.discriminants import SLOPE_SD, Discriminants, logistic
from glfm_cli.latent.forest.draw import ForestLaw
from glfm_cli.latent.forest.leaves import SHARE_SD, best_way, error_of_levels, share_of
from glfm_cli.latent.forest.lines import WEIGHTS, log_evidence, ridges
from glfm_cli.latent.model import Sizes
from glfm_cli.links.law import Probabilities

pytestmark = pytest.mark.kernels
KINDS = Kinds(  # three unordered levels, two, four ordered ones, and two numbers
    np.array([3, 2, 4, 0, 0], dtype=np.int32),
    np.array([1, 1, 0, 0, 0], dtype=np.uint8),
    np.full(5, np.nan),
    np.zeros(5),
)


def cells(n: int, seed: int = 0, weight: float = 2.0) -> Array:
    """Return cells (5, n) of such columns, the levels by logistic regressions on the numbers."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((2, n))
    three = weight * np.stack([x[0], x[1], -x[0] - x[1]])
    one = weight * (x[0] - x[1])
    four = np.arange(4)[:, None] * one
    levels = [
        (logits + rng.gumbel(size=logits.shape)).argmax(axis=0)
        for logits in (three, np.stack([0.0 * one, one]), four - four.mean(axis=0))
    ]
    return np.vstack([*levels, x]).astype(np.float32).astype(np.float64)


def test_ridges_of_several_columns_have_one_weight_and_leave_out_a_row() -> None:
    rng = np.random.default_rng(0)
    n, P = 25, 3
    x, y = rng.normal(1.0, 2.0, (n, P)), rng.normal(3.0, 1.0, (n, 2))
    y[:, 1] += x[:, 0]
    u = (x - x.mean(axis=0)) / x.std(axis=0)
    size, turn = np.linalg.eigh(u.T @ u)
    v = y - y.mean(axis=0)
    evidence = sum(log_evidence(size, turn.T @ (u.T @ a), float(a @ a), n) for a in v.T)
    penalty = np.diag([0.0, *np.full(P, n * WEIGHTS[np.argmax(evidence)])])
    both = np.column_stack([np.ones(n), u])
    mean, slopes, leverage = ridges(x, y)
    for i in range(n):
        keep = np.arange(n) != i
        found = np.linalg.solve(both[keep].T @ both[keep] + penalty, both[keep].T @ y[keep])
        left = (y[i] - mean - x[i] @ slopes) / (1.0 - leverage[i])
        np.testing.assert_allclose(left, y[i] - both[i] @ found, rtol=1e-7, atol=1e-9)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.integers(2, 30), st.integers(2, 5), st.floats(0.1, 30.0))
def test_the_logistic_regression_is_at_the_maximum_of_its_posterior(
    seed: int, n: int, R: int, size: float
) -> None:
    rng = np.random.default_rng(seed)
    score, code = size * rng.standard_normal((n, R)), rng.integers(R, size=n)

    def lost(at: Array) -> float:
        log_p = log_softmax(np.append(0.0, at[: R - 1]) + at[-1] * score, axis=1)
        added = log_softmax(np.append(0.0, at[: R - 1])).mean()
        prior = 0.5 * (at[-1] - 1.0) ** 2 / SLOPE_SD**2
        return float(prior - log_p[np.arange(n), code].sum() - added)

    slope, add = logistic(score, code)
    best = min(
        (minimize(lost, np.append(np.zeros(R - 1), s), method="BFGS") for s in (0.0, 1.0)),
        key=lambda found: float(found.fun),
    )
    if best.x[-1] > 1e-4:
        assert lost(np.append(add[1:] - add[0], slope)) <= best.fun + 1e-6 * (1.0 + abs(best.fun))
    else:
        assert slope < 1e-3


def test_no_slope_is_below_zero() -> None:
    code = np.repeat([0, 1], 20)
    score = -np.eye(2)[code]
    assert logistic(score, code)[0] == 0.0
    assert logistic(-score, code)[0] > 1.0


def shares(*of: float) -> Array:
    return np.append(of, np.zeros(5 - len(of)))


@pytest.fixture(scope="module")
def found() -> tuple[Array, Array, Discriminants]:
    z, seen = cells(80), np.ones((5, 80), dtype=np.uint8)
    seen[:3, 70:] = 0
    return z, seen, Discriminants.fit(z, seen, KINDS, shares(1, 1, 1), np.random.default_rng(0))


@pytest.mark.parametrize(("d", "R"), [(0, 3), (1, 2), (2, 4)])
def test_probabilities_are_those_of_scores_by_a_ridge_without_the_row(
    found: tuple[Array, Array, Discriminants], d: int, R: int
) -> None:
    """By hand: inputs, scores of observed rows each without it, their units, and the softmax."""
    z, _, made = found
    levels = [z[0] == k for k in range(3)], [z[1]], [z[2]]
    x = np.column_stack([*(a for e, part in enumerate(levels) if e != d for a in part), z[3], z[4]])
    code = z[d].astype(int)
    y = np.eye(3)[code] if R == 3 else code[:, None].astype(float)
    mean, slopes, leverage = ridges(x[:70], y[:70])
    score = x @ slopes + mean
    score[:70] = y[:70] - (y - score)[:70] / (1.0 - leverage[:, None])
    counts = (np.bincount(code[:70], minlength=R) + 1.0 / R) / 71.0
    if R == 3:
        logits = (score - counts) / (counts * (1.0 - counts))
    else:
        middle = counts @ np.arange(R)
        variance = counts @ (np.arange(R) - middle) ** 2
        logits = (score - middle) / variance * np.arange(R)
    slope, add = logistic(logits[:70], code[:70])
    own = np.append(np.arange(70), np.full(10, -1)).astype(np.int32)
    np.testing.assert_allclose(
        np.exp(made.log_p(d, z, np.arange(80), own)), softmax(add + slope * logits, axis=1), 1e-4
    )


def test_a_level_tells_nothing_of_itself_where_it_had_no_part(
    found: tuple[Array, Array, Discriminants],
) -> None:
    z, _, made = found
    other, nobody = z.copy(), np.full(80, -1, dtype=np.int32)
    for d in range(3):
        other[d] = 0.0
        one, two = (made.log_p(d, x, np.arange(80), nobody) for x in (z, other))
        np.testing.assert_allclose(one, two, atol=1e-12)
        other[d] = z[d]


def test_blocks_of_rows_say_what_all_say(
    found: tuple[Array, Array, Discriminants], monkeypatch: pytest.MonkeyPatch
) -> None:
    z, _, made = found
    rows = np.arange(79, -1, -2)
    own = np.where(rows < 70, rows, -1).astype(np.int32)
    whole = made.log_p(0, z, rows, own)
    monkeypatch.setattr(discriminants, "BLOCK", 7)
    np.testing.assert_allclose(made.log_p(0, z, rows, own), whole)


def test_a_long_column_is_fitted_by_some_of_its_rows() -> None:
    z, seen = cells(300), np.ones((5, 300), dtype=np.uint8)
    seen[0, :50] = 0
    made = Discriminants.fit(z, seen, KINDS, shares(1.0), np.random.default_rng(0), most=100)
    leverage = made.of[0].leverage
    assert np.isnan(leverage[:50]).all()
    assert (leverage[50:] > 0.0).sum() == 100
    assert (leverage[50:] == 0.0).sum() == 150


def test_forecasts_are_nearly_those_of_the_right_law() -> None:
    """Of weak logistic regressions, whose logits are nearly weighted sums of the inputs."""
    z, new = cells(2000, weight=0.5), cells(2000, seed=1, weight=0.5)
    seen = np.ones(z.shape, dtype=np.uint8)
    made = Discriminants.fit(z, seen, KINDS, shares(1, 1, 1), np.random.default_rng(0))
    alone = new.copy()
    alone[:3] = z[:3]  # levels given the numbers are independent
    rows, nobody = np.arange(2000), np.full(2000, -1, dtype=np.int32)
    x = new[3:]
    right = [0.5 * np.stack([x[0], x[1], -x[0] - x[1]]), 0.5 * np.stack([0 * x[0], x[0] - x[1]])]
    right.append(0.5 * np.arange(4)[:, None] * (x[0] - x[1]))
    for d, logits in enumerate(right):
        p = softmax(logits.T, axis=1)
        lost = np.mean(np.sum(p * (np.log(p) - made.log_p(d, alone, rows, nobody)), axis=1))
        least = np.mean(np.sum(p * (np.log(p) - np.log(p.mean(axis=0))), axis=1))
        assert lost < 0.06 * least, (d, lost, least)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 1000))
def test_the_share_is_that_of_the_least_mean_square_error(seed: int) -> None:
    """By a search: of the error of mixtures with trees whose errors are given, and the prior."""
    z, rng = cells(60, seed=seed), np.random.default_rng(seed)
    seen, rows = np.ones(z.shape, dtype=np.uint8), np.arange(60)
    for d in range(3):
        p = rng.dirichlet(np.ones(KINDS.levels[d]) * 3.0, 60)
        p[rows, z[d].astype(int)] += rng.uniform(0.0, 3.0)
        p /= p.sum(axis=1, keepdims=True)
        own = rows.astype(np.int32)
        made = Discriminants.fit(z, seen, KINDS, shares(1, 1, 1), np.random.default_rng(0))
        linear = np.exp(made.log_p(d, z, rows, own))
        nominal = bool(KINDS.nominal[d])
        trees = error_of_levels(p, z[d], nominal)
        square = float(np.mean(np.sum(trees**2, axis=1)))
        grid = np.linspace(0.0, 1.0, 201)
        lost = [
            np.mean(np.sum(((1 - s) * trees + s * error_of_levels(linear, z[d], nominal)) ** 2, 1))
            + square / (60 * SHARE_SD**2) * (s - 0.5) ** 2
            for s in grid
        ]
        best = grid[int(np.argmin(lost))]
        found = share_of(z, seen, KINDS, d, rows, (square, trees), np.random.default_rng(0))
        assert found == pytest.approx(best if best >= 0.05 else 0.0, abs=0.006)


def test_errors_of_ordered_levels_are_those_of_cumulative_probabilities() -> None:
    p, code = np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]]), np.array([1.0, 2.0])
    plain, ordered = (error_of_levels(p, code, nominal) for nominal in (True, False))
    np.testing.assert_allclose(plain, [[0.5, -0.7, 0.2], [0.1, 0.2, -0.3]])
    np.testing.assert_allclose(ordered, [[0.5, -0.2, 0.0], [0.1, 0.3, 0.0]], atol=1e-12)


def test_linear_logits_get_a_large_share_and_products_a_small_one() -> None:
    config, seen = ForestConfig(), np.ones((5, 600), dtype=np.uint8)
    z, rng = cells(600, weight=1.0), np.random.default_rng(0)
    product = z.copy()
    product[1] = z[3] * z[4] > 0.0
    for least in (0, 3):  # sizes of leaves are chosen, or set
        config = replace(config, least=least)
        assert best_way(z, seen, KINDS, 1, config, rng)[1] > 0.6
        assert best_way(product, seen, KINDS, 1, config, rng)[1] < 0.2
        never = replace(config, linear="never")
        assert best_way(z, seen, KINDS, 1, never, rng)[1] == 0.0


def test_a_column_that_shows_one_level_is_forecast_and_one_of_many_has_none() -> None:
    z, seen = cells(60), np.ones((5, 60), dtype=np.uint8)
    z[0] = 1.0
    assert 0.0 <= best_way(z, seen, KINDS, 0, ForestConfig(), np.random.default_rng(0))[1] <= 1.0
    made = Discriminants.fit(z, seen, KINDS, shares(1.0), np.random.default_rng(0))
    rows = np.arange(60)
    assert (np.exp(made.log_p(0, z, rows, rows.astype(np.int32)))[:, 1] > 0.9).all()
    many = replace(KINDS, levels=np.array([31, 2, 4, 0, 0], dtype=np.int32))
    assert discriminants.may_have(many).tolist() == [False, True, True, False, False]


LEVELS = {"c": "abc", "b": "yn", "o": "1234"}
TYPES = {
    "columns": {"c": "categorical", "b": "categorical", "o": "ordinal", "x": "real", "u": "real"}
}


def table_of(n: int = 200) -> pa.Table:
    z, gone = cells(n, weight=1.0), np.random.default_rng(5).random((4, n)) < 0.2
    parts = {
        name: pa.array(np.array(list(levels))[z[d].astype(int)], mask=gone[d])
        for d, (name, levels) in enumerate(LEVELS.items())
    }
    return pa.table({**parts, "x": pa.array(z[3], mask=gone[3]), "u": pa.array(z[4])})


def chain_of(linear: str = "auto") -> chains.Chain:
    chain = chains.start(
        prepare(table_of(), TYPES, model="forest", settings={"linear": linear})[0], 1, 0
    )
    for _ in range(6):
        chain.sweep(adapt=True)
    return chain


@pytest.fixture(scope="module")
def draw() -> ForestDraw:
    found: ForestDraw = chain_of().keep().latent
    assert sorted(found.discriminants.of) == [0, 1, 2]
    return found


def with_share(draw: ForestDraw, share: float) -> ForestDraw:
    of = {d: replace(one, share=share) for d, one in draw.discriminants.of.items()}
    return replace(draw, discriminants=replace(draw.discriminants, of=of))


def test_laws_are_mixed_by_the_share(draw: ForestDraw) -> None:
    rows = np.arange(150)
    for d in range(3):
        own = np.where(draw.seen[d][rows] != 0, rows, -1).astype(np.int32)
        linear = np.exp(draw.discriminants.log_p(d, draw.z, rows, own))
        none = replace(draw, discriminants=replace(draw.discriminants, of={}))
        law, trees = (ForestLaw(each, rows).column(d) for each in (with_share(draw, 0.3), none))
        assert isinstance(law, Probabilities)
        assert isinstance(trees, Probabilities)
        np.testing.assert_allclose(law.p, 0.7 * trees.p + 0.3 * linear)


def test_new_rows_are_drawn_by_trees_and_discriminants(draw: ForestDraw) -> None:
    """Of one row, often: shares of levels are its law's, of which that of trees alone is none."""
    n, row = 4000, draw.z[:, 0].copy()
    z = np.repeat(row[:, None], n, axis=1)
    z[0] = np.nan
    whole = with_share(draw, 0.8)
    rng = np.random.default_rng(0)
    new = whole.folded(z, np.full(n, -1, dtype=np.int32), {}, 1, rng)
    assert {0.0, 1.0, 2.0} >= set(new.z[0])
    drawn = np.bincount(new.z[0].astype(int), minlength=3) / n
    p = np.exp(whole.discriminants.log_p(0, new.z, np.arange(1), np.full(1, -1, dtype=np.int32)))[0]
    none = replace(draw, discriminants=replace(draw.discriminants, of={}))
    plain = none.folded(z, np.full(n, -1, dtype=np.int32), {}, 1, rng)
    trees = np.bincount(plain.z[0].astype(int), minlength=3) / n
    np.testing.assert_allclose(drawn, 0.8 * p + 0.2 * trees, atol=0.03)


def test_a_chain_draws_by_both_once_the_share_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only cells that were missing, and by discriminants of which no own cell is left out."""
    chain, asked = chain_of(), []
    draw_of: Callable[..., None] = Discriminants.draw

    def look(self: Discriminants, d: int, z: Array, rows: Array, own: Array, rng: object) -> None:
        asked.append((d, rows.tolist(), own.tolist(), self.of[d].share))
        draw_of(self, d, z, rows, own, rng)

    monkeypatch.setattr(Discriminants, "draw", look)
    chain.sweep(adapt=True)
    gone = [np.flatnonzero(chain.state.seen[d] == 0).tolist() for d in range(3)]
    share = chain.state.share
    assert (share[:3] > 0.0).all()
    assert (share[3:] == 0.0).all()
    assert asked == [(d, gone[d], [-1] * len(gone[d]), share[d]) for d in range(3)]
    assert chain_of("never").state.share.tolist() == [0.0] * 5


SIZES = Sizes(200, 7, ((0, 3), (3, 4), (4, 5), (5, 6), (6, 7)))


def test_a_draw_and_a_state_come_back_with_their_shares(draw: ForestDraw) -> None:
    again = ForestDraw.unpack(draw.pack(), SIZES)
    for d in range(3):
        one, other = (ForestLaw(each, np.arange(200)).column(d) for each in (draw, again))
        assert isinstance(one, Probabilities)
        assert isinstance(other, Probabilities)
        assert one.p.tolist() == other.p.tolist()
    chain = chain_of()
    model, state = chain.model, chain.state
    loaded = model.load(model.save(state), chain.values, state.config)
    assert loaded.share.tolist() == state.share.tolist()
    grown = model.regrow(chain.keep().latent, chain.values, state.config, chain.streams)
    assert grown.share.tolist() == state.share.tolist()


@pytest.mark.parametrize(
    ("name", "value", "phrase"),
    [
        ("level_of", [0, 2, 1], "'level_of' are no columns"),
        ("level_of", [0, 1, 5], "'level_of' are no columns"),
        ("level_of", [-1, 0, 1], "'level_of' are no columns"),
        ("level_of", [0, 1, 3], "'level_of' is of a column that can have no discriminant"),
        ("level_share", [0.5, 0.5, 0.0], "'level_share' is out of range"),
        ("level_share", [0.5, 0.5, 1.1], "'level_share' is out of range"),
    ],
)
def test_discriminants_of_no_such_table_are_refused(
    draw: ForestDraw, name: str, value: list[float], phrase: str
) -> None:
    packed = dict(draw.pack())
    packed[name] = np.array(value, dtype=packed[name].dtype)
    with pytest.raises(ValueError, match=phrase):
        ForestDraw.unpack(packed, SIZES)


def test_leverages_out_of_range_are_refused(draw: ForestDraw) -> None:
    for value in (-0.1, 1.1):
        packed = dict(draw.pack())
        packed["level_leverage"] = packed["level_leverage"].copy()
        packed["level_leverage"][0] = value
        with pytest.raises(ValueError, match="'level_leverage' is out of range"):
            ForestDraw.unpack(packed, SIZES)


@pytest.mark.parametrize(
    ("share", "phrase"),
    [
        ([0.5, 1.5, 0.0, 0.0, 0.0], "'share' is out of range"),
        ([-0.1, 0.5, 0.0, 0.0, 0.0], "'share' is out of range"),
        ([0.5, 0.5, 0.5, 0.5, 0.0], "'share' is of a column that can have no discriminant"),
    ],
)
def test_a_state_with_shares_of_no_such_table_is_refused(share: list[float], phrase: str) -> None:
    chain = chains.start(prepare(table_of(), TYPES, model="forest")[0], 1, 0)
    state = dict(chain.model.save(chain.state))
    state["share"] = np.array(share)
    with pytest.raises(ValueError, match=phrase):
        chain.model.load(state, chain.values, chain.state.config)


def test_levels_by_weighted_sums_are_forecast_better_than_by_trees(seed: int) -> None:
    """Log probabilities of new rows, by how much they lose to the right ones."""
    n = 300
    z, new = cells(n, seed=seed, weight=1.0), cells(2000, seed=seed + 1, weight=1.0)
    lost = {}
    for linear in ("never", "auto"):
        parts = {"c": np.array(list("abc"))[z[0].astype(int)], "x": z[3], "u": z[4]}
        parts["c"] = pa.array(parts["c"], mask=np.arange(n) % 10 == 0)
        types = {"columns": {"c": "categorical"} | {k: {"type": "real"} for k in "xu"}}
        problem = prepare(pa.table(parts), types, model="forest", settings={"linear": linear})[0]
        chain = chains.start(problem, 1, 0)
        for _ in range(8):
            chain.sweep(adapt=True)
        draw: ForestDraw = chain.keep().latent
        scale = [draw.z[1].std() / z[3].std(), draw.z[2].std() / z[4].std()]
        middle = draw.z[1:].mean(axis=1) - [z[3].mean() * scale[0], z[4].mean() * scale[1]]
        rows = np.vstack([np.zeros(2000), *(new[3 + k] * scale[k] + middle[k] for k in (0, 1))])
        nobody = np.full(2000, -1, dtype=np.int32)
        known = np.ones(rows.shape, dtype=np.uint8)
        law = ForestLaw(replace(draw, z=rows, known=known, own=nobody), np.arange(2000)).column(0)
        assert isinstance(law, Probabilities)
        right = softmax(np.stack([new[3], new[4], -new[3] - new[4]]).T, axis=1)
        lost[linear] = np.mean(np.sum(right * (np.log(right) - np.log(law.p)), axis=1))
    assert lost["auto"] < 0.7 * lost["never"]
