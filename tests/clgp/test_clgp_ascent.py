"""The ascent of the latent Gaussian process: steps, starts, saved states, threads."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from clgp_tables import (
    Array,
    blocks_of,
    bound,
    gradient_of,
    mixed_table,
    number_table,
    planted_table,
    random_places,
    random_shared,
)

import glfm_cli.latent.clgp.engine as engine
from glfm_cli.errors import NumericalError, UsageError
from glfm_cli.latent.clgp import (
    Clgp,
    ClgpConfig,
    ClgpState,
    ColumnKind,
    ObservedTable,
    new_rows,
    relevances,
)
from glfm_cli.latent.clgp.adam import GradientMoments, rate_at
from glfm_cli.latent.clgp.ascent import penalty_at, step
from glfm_cli.latent.clgp.bound import moments
from glfm_cli.latent.clgp.features import Features, Inducing
from glfm_cli.latent.clgp.parameters import LEAST_NOISE
from glfm_cli.latent.clgp.starts import components, first_places, scores
from glfm_cli.streams import Streams

SMALL = ClgpConfig(dimensions=2, inducing=5, iterations=12)
BATCHES = ClgpConfig(dimensions=2, inducing=5, iterations=12, batch=16, passes=4)


def ascended(
    table: ObservedTable,
    config: ClgpConfig,
    seed: int,
    n: int,
    pool: ThreadPoolExecutor | None = None,
) -> tuple[ClgpState, Streams]:
    """Return a state after n iterations, and its streams."""
    streams = Streams(seed, 0)
    state = engine.start(table, config, streams)
    for _ in range(n):
        step(state, table, streams, pool)
    return state, streams


def bytes_of(state: ClgpState) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in engine.save(state).items()}


# The same bytes --------------------------------------------------------------------------------


@pytest.mark.parametrize("config", [SMALL, BATCHES], ids=["whole", "batches"])
def test_a_saved_ascent_goes_on_bit_for_bit(seed: int, config: ClgpConfig) -> None:
    table = mixed_table(np.random.default_rng(seed), 40)
    whole, _ = ascended(table, config, seed, 9)
    half, streams = ascended(table, config, seed, 4)
    arrays = {name: array.copy() for name, array in engine.save(half).items()}
    again = engine.load(arrays, table, config)
    streams = Streams.load(streams.save())
    for _ in range(5):
        step(half, table, Streams(seed + 1, 0))  # what was saved is no part of this one
        step(again, table, streams)
    assert bytes_of(again) == bytes_of(whole)
    assert bytes_of(half) != bytes_of(whole)


def test_the_number_of_threads_changes_no_byte(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(new_rows, "ITERATIONS", 3)
    table = mixed_table(np.random.default_rng(seed), 1200)
    alone, _ = ascended(table, SMALL, seed, 3)
    for threads in (1, 2):
        with ThreadPoolExecutor(threads) as pool:
            together, _ = ascended(table, SMALL, seed, 3, pool)
            assert bytes_of(together) == bytes_of(alone)
            assert engine.bound(together, table, pool) == engine.bound(alone, table)
    new = mixed_table(np.random.default_rng(seed + 1), 520)
    draw = engine.draw(alone, table)
    with ThreadPoolExecutor(2) as pool:
        first = new_rows.fold_in(draw, SMALL, new, Streams(seed, 1))
        second = new_rows.fold_in(draw, SMALL, new, Streams(seed, 1), pool)
    assert first.m.tobytes() == second.m.tobytes()


def test_seeds_differ_and_restarts_compare_under_the_same_normals(seed: int) -> None:
    table = mixed_table(np.random.default_rng(seed), 40)
    one, two = (ascended(table, SMALL, seed + k, 3)[0] for k in (0, 1))
    assert bytes_of(one) != bytes_of(two)
    assert engine.bound(one, table) == engine.bound(one, table)
    # Neither the run's seed nor how far a restart has come decides on them.
    loaded = engine.load(engine.save(two), table, SMALL)
    assert engine.bound(loaded, table) == engine.bound(two, table)


BROKEN = {
    "Z": (lambda a: a[:3], "does not fit|not of the settings"),
    "mu": (lambda a: a[:-1], "'mu' does not fit 'Z'"),
    "log_ell": (lambda a: a * np.nan, "not finite"),
    "log_a": (lambda a: a + 100.0, "beyond"),
    "log_noise": (lambda a: a - 20.0, "below its floor"),
    "V": (lambda a: 1.1 * a, "not orthogonal"),
    "log_sd": (lambda a: a + 5.0, "from -50 to 0"),
    "m": (lambda a: a[:-1], "expected"),
    "m_second": (lambda a: a - 1.0, "negative"),
    "order": (lambda a: a * 0, "no order"),
    "bounds": (lambda a: a.astype(np.float32), "expected"),
    "steps": (lambda a: a[1:], "expected"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_state_is_rejected(seed: int, name: str) -> None:
    table = mixed_table(np.random.default_rng(seed), 30)
    state, _ = ascended(table, SMALL, seed, 1)
    arrays = dict(engine.save(state))
    change, words = BROKEN[name]
    arrays[name] = change(arrays[name])
    with pytest.raises(ValueError, match=words):
        engine.load(arrays, table, SMALL)
    del arrays[name]
    with pytest.raises(ValueError, match=f"'{name}' is missing"):
        engine.load(arrays, table, SMALL)


def test_a_state_of_other_settings_is_rejected(seed: int) -> None:
    table = mixed_table(np.random.default_rng(seed), 30)
    arrays = engine.save(ascended(table, SMALL, seed, 1)[0])
    for config in (
        ClgpConfig(dimensions=3, inducing=5),
        ClgpConfig(dimensions=2, inducing=6),
        ClgpConfig(dimensions=2, inducing=5, kernel="rbf"),
    ):
        with pytest.raises(ValueError, match="settings"):
            engine.load(arrays, table, config)


# Iterations ------------------------------------------------------------------------------------


def test_every_row_is_taken_once_a_pass(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from glfm_cli.latent.clgp import ascent

    table = mixed_table(np.random.default_rng(seed), 40)
    taken: list[Array] = []
    drawn = ascent.drawn_block

    def seen(state: ClgpState, table: ObservedTable, rows: Array, *rest: object) -> object:
        taken.append(rows)
        return drawn(state, table, rows, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(ascent, "drawn_block", seen)
    state, streams = ascended(table, BATCHES, seed, 0)
    assert state.n_batches == 3
    assert state.n_iterations == 12
    done = [step(state, table, streams).done for _ in range(12)]
    assert done == [False] * 11 + [True]
    orders = [np.concatenate(taken[k : k + 3]) for k in range(0, 12, 3)]
    for order in orders:
        assert np.array_equal(np.sort(order), np.arange(40))
    assert not np.array_equal(orders[0], orders[1])


def test_a_rows_first_gradient_moves_it_by_the_rate_in_any_batch(seed: int) -> None:
    """Adam counts the gradients that a row has seen; seen in one of three, it moves faster."""
    table = mixed_table(np.random.default_rng(seed), 40, missing=0.0)
    state, streams = ascended(table, BATCHES, seed, 1)
    before = state.places.m.copy()
    step(state, table, streams)
    moved = np.abs(state.places.m - before)[np.any(state.places.m != before, axis=1)]
    assert moved.shape[0] == 13
    rate = rate_at(1, state.n_iterations, BATCHES.learning_rate)
    np.testing.assert_allclose(moved, 3.0 * rate, rtol=1e-3)


@pytest.mark.parametrize("batches", [False, True])
def test_a_step_tells_the_bound_it_found(seed: int, batches: bool) -> None:
    config = BATCHES if batches else SMALL
    table = mixed_table(np.random.default_rng(seed), 40)
    state, streams = ascended(table, config, seed, 9)  # a pass begins
    fair = engine.bound(state, table)
    told = [
        step(engine.load(engine.save(state), table, config), table, Streams(k, 3)).bound
        for k in range(60)
    ]
    assert abs(np.mean(told) - fair) < 4.0 * np.std(told) / 60**0.5 + 0.01 * abs(fair)
    assert step(state, table, streams).bound == state.bounds[-1]


def test_a_step_goes_uphill_by_adam(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=3)
    moments = GradientMoments.of(x)
    first, second = np.zeros(3), np.zeros(3)
    for t in range(1, 5):
        g = rng.normal(size=3)
        first, second = 0.9 * first + 0.1 * g, 0.99 * second + 0.01 * g * g
        expected = 0.05 * (first / (1 - 0.9**t)) / (np.sqrt(second / (1 - 0.99**t)) + 1e-8)
        np.testing.assert_allclose(moments.ascend(g, 0.05, t), expected)
    some = GradientMoments.of(np.zeros((4, 2)))
    g = rng.normal(size=(2, 2))
    np.testing.assert_allclose(
        some.ascend(g, 0.1, 1, np.array([2, 0])), 0.1 * np.sign(g), rtol=1e-6
    )
    assert not some.first[[1, 3]].any()
    np.testing.assert_allclose(some.first[[2, 0]], 0.1 * g)


def test_rates_and_penalties_keep_their_schedule() -> None:
    rates = np.array([rate_at(t, 100, 0.03) for t in range(100)])
    assert rates[0] == pytest.approx(0.003, rel=0.01)
    assert np.all(np.diff(rates[:9]) > 0)
    assert np.all(np.diff(rates[10:]) < 0)
    assert rate_at(100, 100, 0.03) == pytest.approx(0.0006)
    penalties = [penalty_at(t / 50, 0.2) for t in (0, 25, 50, 99)]
    assert penalties == pytest.approx([0.2, 0.6, 1.0, 1.0])


def test_what_is_held_does_not_move(seed: int) -> None:
    table = mixed_table(np.random.default_rng(seed), 40)
    state, _ = ascended(table, ClgpConfig(dimensions=2, kernel="linear"), seed, 3)
    slots = table.slots
    assert state.shared.log_rho == 0.0
    assert state.shared.Z.shape == (0, 2)
    assert not state.shared.b[~slots.has_intercept].any()
    assert not state.shared.log_noise[~slots.has_noise].any()
    assert np.all(state.places.log_sd <= 0.0)


def test_noise_stays_above_its_floor(seed: int) -> None:
    config = ClgpConfig(dimensions=1, learning_rate=1.0, iterations=40)
    state, _ = ascended(number_table(np.zeros((30, 4))), config, seed, 40)
    assert state.shared.log_noise.min() == np.log(LEAST_NOISE)


def test_a_curve_is_followed_where_the_linear_kernel_is_not(seed: int) -> None:
    table, y = planted_table(np.random.default_rng(seed), 150)
    hidden = np.isnan(table.lower.T)
    errors = {}
    for kernel in ("both", "linear"):
        config = ClgpConfig(dimensions=2, inducing=20, iterations=120, kernel=kernel)
        state, _ = ascended(table, config, seed, 120)
        mean = engine.draw(state, table).law(slice(None)).mean.mean(axis=1)
        errors[kernel] = np.sqrt(np.mean((mean - y)[hidden] ** 2))
    assert errors["both"] < 0.7 * errors["linear"]


def test_xor_is_told_by_the_restart_of_fewer_dimensions_and_not_by_a_line(seed: int) -> None:
    bits = np.array([[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]])
    rows = np.concatenate([np.tile(bits, (25, 1)), bits]).astype(float)
    rows[100:, 2] = np.nan
    lower = np.ascontiguousarray(rows.T)
    table = ObservedTable((ColumnKind("levels", 2),) * 3, lower, lower.copy())
    perplexity = {}
    for kernel, n in (("both", 150), ("linear", 50)):
        streams, config = Streams(seed, 3), ClgpConfig(iterations=n, kernel=kernel)
        state = engine.start(table, config, streams, 3)
        for _ in range(n):
            step(state, table, streams)
        p = engine.draw(state, table).law(slice(100, 104)).column(2).p[range(4), bits[:, 2]]
        perplexity[kernel] = np.exp(-np.mean(np.log(p)))
    assert perplexity["both"] < 1.5
    assert perplexity["linear"] > 1.9


def test_only_an_ascent_that_is_level_has_converged(seed: int) -> None:
    table = mixed_table(np.random.default_rng(seed), 30)
    state, _ = ascended(table, SMALL, seed, 1)
    rng = np.random.default_rng(seed)
    state.bounds = list(-100.0 + rng.normal(size=200))
    assert engine.converged(state)
    assert engine.warnings(state) == []
    state.bounds = list(np.linspace(-300.0, -100.0, 200) + rng.normal(size=200))
    assert not engine.converged(state)
    assert "iterations" in engine.warnings(state)[0]


# Starts ----------------------------------------------------------------------------------------


def test_scores_are_standard_and_missing_where_cells_are(seed: int) -> None:
    table = mixed_table(np.random.default_rng(seed), 300)
    y, slots = scores(table), table.slots
    for d, span in enumerate(slots.spans):
        assert np.array_equal(np.isnan(y[:, span]).any(axis=1), np.isnan(table.lower[d]))
        np.testing.assert_allclose(np.nanmean(y[:, span], axis=0), 0.0, atol=1e-12)
        assert np.nansum(np.nanvar(y[:, span], axis=0)) == pytest.approx(1.0)


def test_components_complete_a_matrix_of_low_rank(seed: int) -> None:
    rng = np.random.default_rng(seed)
    left, right = rng.normal(size=(200, 2)), rng.normal(size=(9, 2))
    y = left @ right.T
    hidden = np.where(rng.random(y.shape) < 0.1, np.nan, y)
    found = components(hidden, 2)
    np.testing.assert_allclose(np.mean(found**2, axis=0), 1.0, rtol=0.2)
    exact = np.linalg.svd(y, full_matrices=False)[0][:, :2]
    overlap = np.linalg.svd(np.linalg.qr(found)[0].T @ exact, compute_uv=False)
    assert overlap.min() > 0.98
    assert not components(np.zeros((5, 2)), 4).any()


def test_later_restarts_are_shaken(seed: int) -> None:
    table = mixed_table(np.random.default_rng(seed), 100)
    plain, again = (first_places(table, 2, 0, np.random.default_rng(k)).m for k in (0, 1))
    np.testing.assert_allclose(plain, again, atol=0.1)
    shaken = first_places(table, 2, 1, np.random.default_rng(0)).m
    assert np.abs(shaken - plain).mean() > 0.2


# Dimensions ------------------------------------------------------------------------------------


def test_restarts_differ_in_penalty_and_dimensions_and_each_is_read_back(seed: int) -> None:
    table = mixed_table(np.random.default_rng(seed), 40)
    config = ClgpConfig(iterations=3)
    states = [engine.start(table, config, Streams(seed, c), c) for c in range(4)]
    assert [state.first_penalty for state in states] == [1.0, 0.1, 1.0, 0.1]
    assert [state.places.m.shape[1] for state in states] == [3, 3, 3, 1]
    for state in states:
        again = engine.load(engine.save(state), table, config)
        assert again.first_penalty == state.first_penalty
        assert again.places.m.tobytes() == state.places.m.tobytes()
    fixed = ClgpConfig(iterations=3, dimensions=3)
    assert engine.start(table, fixed, Streams(seed, 3), 3).places.m.shape[1] == 3
    with pytest.raises(ValueError, match="not of the settings' dimensions"):
        engine.load(engine.save(states[3]), table, fixed)


def test_restarts_near_the_best_predict_together_and_others_hardly() -> None:
    weights = Clgp().weights(None, {0: -198.0, 1: -200.0, 2: -250.0})
    assert sum(weights) == pytest.approx(1.0)
    assert weights[0] + weights[1] > 0.99
    assert 0.5 < weights[0] < 0.6
    of_tall = Clgp().weights(None, {0: -19800.0, 1: -20000.0, 2: -25000.0})
    np.testing.assert_allclose(of_tall, weights, rtol=1e-12)  # by share of the bound
    of_few = Clgp().weights(None, {0: -1.0, 1: 4.0})
    np.testing.assert_allclose(of_few[1] / of_few[0], np.e)  # by nats


@pytest.mark.parametrize(("inducing", "linear"), [(6, True), (6, False), (0, True)])
def test_relevances_are_of_the_slopes_of_means(seed: int, inducing: int, linear: bool) -> None:
    rng = np.random.default_rng(seed)
    table = mixed_table(rng, 8)
    shared = random_shared(rng, table, 3, inducing, linear)
    places = random_places(rng, 8, 3)
    fixed = Inducing.of(shared)

    def means(x: Array) -> Array:
        return moments(Features.of(x, shared, fixed), shared)[0]

    size = np.zeros(3)
    for q in range(3):
        step = 1e-5 * np.eye(3)[q]
        slope = (means(places.m + step) - means(places.m - step)) / 2e-5
        v = np.mean(places.m[:, q] ** 2 + np.exp(2.0 * places.log_sd[:, q]))
        size[q] = v * np.sum(np.mean(slope**2, axis=0))
    found = relevances(shared, places.m, np.exp(2.0 * places.log_sd))
    np.testing.assert_allclose(found, size / size.sum(), rtol=1e-6)


# Input -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dimensions", 0),
        ("inducing", 0),
        ("samples", 3),
        ("category_samples", 0),
        ("kernel", "cubic"),
        ("learning_rate", 0.0),
        ("warm_up", 1.5),
        ("batch", 0),
    ],
)
def test_settings_out_of_range_are_said(name: str, value: object) -> None:
    with pytest.raises(UsageError, match=re.escape(f'settings["{name}"]')):
        ClgpConfig(**{name: value})  # type: ignore[arg-type]


def test_sizes_follow_the_table() -> None:
    config = ClgpConfig()
    assert [config.sizes(d)[0] for d in (1, 5, 12, 30, 31)] == [1, 3, 6, 10, 16]
    assert [config.n_inducing(n) for n in (8, 60, 300, 5000)] == [8, 20, 60, 100]
    assert ClgpConfig(kernel="linear").n_inducing(300) == 0


@pytest.mark.parametrize(
    ("kind", "lower", "upper"),
    [
        (ColumnKind("number"), 1.0, 0.0),
        (ColumnKind("number"), np.inf, np.inf),
        (ColumnKind("number"), np.nan, 0.0),
        (ColumnKind("levels", 3), 3.0, 3.0),
        (ColumnKind("levels", 3), 0.5, 0.5),
        (ColumnKind("ordered", 3), 0.0, 1.0),
        (ColumnKind("ordered", 3), -1.0, -1.0),
    ],
)
def test_cells_that_are_none_of_their_kind_are_rejected(
    kind: ColumnKind, lower: float, upper: float
) -> None:
    with pytest.raises(ValueError, match=r"no|missing together"):
        ObservedTable((kind,), np.array([[lower]]), np.array([[upper]]))


def test_a_kernel_without_numbers_is_said(seed: int) -> None:
    table = mixed_table(np.random.default_rng(seed), 8)
    shared = random_shared(np.random.default_rng(seed), table, 2, 4, True)
    shared.Z[0, 0] = np.nan
    with pytest.raises(NumericalError, match="lost its rank"):
        Inducing.of(shared)


@pytest.mark.parametrize("shape", [(1, 1), (3, 1), (1, 6), (40, 1)])
def test_tables_of_any_shape_ascend(seed: int, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(seed)
    table = number_table(rng.normal(size=shape))
    config = ClgpConfig(iterations=3)
    state, _ = ascended(table, config, seed, 3)
    assert np.isfinite(state.bounds).all()
    assert engine.draw(state, table).law(slice(None)).mean.shape == (shape[0], 16, shape[1])


def test_columns_that_say_nothing_do_no_harm(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kinds = (ColumnKind("number"), ColumnKind("levels", 1), ColumnKind("ordered", 1))
    lower = np.stack([rng.normal(size=20), np.zeros(20), np.full(20, np.nan)])
    table = ObservedTable(
        (*kinds, ColumnKind("number")), np.vstack([lower, lower[2:]]), np.vstack([lower, lower[2:]])
    )
    state, _ = ascended(table, SMALL, seed, 5)
    assert np.isfinite(state.bounds).all()
    assert engine.draw(state, table).law(slice(None)).mean.shape == (20, 16, 3)


def test_gradients_reach_what_they_are_for(seed: int) -> None:
    """An ascent on frozen normals: small steps along the gradient raise the bound."""
    rng = np.random.default_rng(seed)
    table = mixed_table(rng, 20)
    shared, places = random_shared(rng, table, 2, 4, True), random_places(rng, 20, 2)
    blocks = blocks_of(rng, table, 2, 2)
    before = bound(blocks, places, shared, table)
    rows, found = gradient_of(blocks, places, shared, table)
    for name, value in found.items():
        setattr(shared, name, getattr(shared, name) + 1e-5 * value)
    places.m += 1e-5 * rows.m
    places.log_sd += 1e-5 * rows.log_sd
    assert bound(blocks, places, shared, table) > before
