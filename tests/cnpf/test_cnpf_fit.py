"""Fits of the Poisson factorization: what they must not depend on, and what they find."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from cnpf_fits import Array, arrays_equal, fit, planted
from cnpf_reference import MODELS, begin, counts_of, problem

import glfm_cli.latent.cnpf.engine as engine
from glfm_cli import GlfmFactorizer
from glfm_cli.latent.blocks import thread_pool
from glfm_cli.latent.cnpf import CnpfConfig, Counts
from glfm_cli.latent.cnpf import counts as counts_module
from glfm_cli.latent.cnpf.ascent import LAST_PASSES, SHARPER, move_locations, run_pass, settle
from glfm_cli.latent.cnpf.excess import excess_of
from glfm_cli.latent.cnpf.locations import (
    evaluate_locations,
    newton_step,
    sum_locations,
)
from glfm_cli.latent.cnpf.masks import hide_columns
from glfm_cli.latent.cnpf.merges import alike, join, merge_components, shares
from glfm_cli.latent.cnpf.prediction import (
    cell_shares,
    fold_in,
    rates,
    sample_rates,
)
from glfm_cli.latent.cnpf.rows import Rows, mean_x, sum_rates, visit_rows
from glfm_cli.latent.cnpf.state import load_state, save_state
from glfm_cli.latent.cnpf.stochastic import Averages, run_minibatch
from glfm_cli.latent.cnpf.tables import Globals, Tables, columns_of, padded, tables_of
from glfm_cli.latent.cnpf.weights import settle_weights, sum_rises
from glfm_cli.streams import Streams

# What nothing may depend on ------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_permuted_rows_and_columns_give_permuted_results(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = rng.poisson(rng.gamma(0.5, 3.0, (30, 12)))
    lost = rng.random(y.shape) < 0.1
    of_rows, of_columns = rng.permutation(30), rng.permutation(12)
    settings = {"components": 4, "dimensions": 2, "free_pass": 2}
    config = CnpfConfig(**(settings | MODELS[name]))  # type: ignore[arg-type]
    plain = counts_of(y, lost)
    moved = counts_of(y[of_rows][:, of_columns], lost[of_rows][:, of_columns])
    shared, rows = begin(config, plain, seed)
    other, its_rows = shared.copy(), rows.copy()
    other.A = other.A[of_columns]
    for part in ("n", "m", "cov", "g"):
        whole = getattr(its_rows, part)
        setattr(its_rows, part, whole[of_rows] if whole.size else whole)
    with thread_pool(1) as each:
        for p in range(12):
            bounds = (
                run_pass(config, shared, rows, plain, each, p),
                run_pass(config, other, its_rows, moved, each, p),
            )
    assert bounds[0] == pytest.approx(bounds[1], rel=1e-9)
    np.testing.assert_allclose(shared.A[of_columns], other.A, rtol=1e-6)
    np.testing.assert_allclose(rows.n[of_rows], its_rows.n, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(shared.w, other.w, rtol=1e-6)


def test_columns_settle_by_shares_that_rest_on_other_cells(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y, _, _ = planted(rng, 30, 12, 2, 20.0)
    y = 3 * y  # vary more than their rates
    counts = counts_of(y)
    config = CnpfConfig(components=3, scaled=False, correlated=False, free_pass=3)
    state = fit(counts, config, 8)[0]
    before = {name: array.copy() for name, array in save_state(state).items()}
    draw = engine.draw(state, counts)
    assert arrays_equal(save_state(state), before)
    n, w, rate = before["n"], before["w"], SHARPER * float(before["column_rate"])
    least = SHARPER * config.column_shape
    A, B = before["A"], before["B"]

    def weights() -> Array:
        return (w + n) / (1.0 + (A / B).sum(axis=0))

    def split(shares: Array) -> Array:
        return y[:, :, None] * shares / shares.sum(axis=2, keepdims=True)

    n = split(weights()[:, None] * (A / B)).sum(axis=1)
    own = np.zeros((*y.shape, 3))
    for _ in range(LAST_PASSES):
        x = np.maximum(w + n[:, None] - own, w)
        parts = split(x * np.maximum(A - own, least) / (B * (1.0 + (A / B).sum(axis=0))))
        own = np.where(parts == parts.max(axis=2, keepdims=True), parts, 0.0)
        n, A_new = parts.sum(axis=1), least + parts.sum(axis=0)
        B, A = rate + weights().sum(axis=0), A_new
    n = split(weights()[:, None] * (A / B)).sum(axis=1)
    np.testing.assert_allclose(draw.mean_a, A / B, rtol=1e-3)
    np.testing.assert_allclose(draw.mean_x, weights(), rtol=1e-3)
    weaker = replace(config, column_shape=least)
    assert draw.excess == excess_of(weaker, draw, counts)
    assert sum(draw.excess) > 0.0


def test_locations_and_weights_settle_with_the_rows(seed: int) -> None:
    y, _, _ = planted(np.random.default_rng(seed), 200, 40, 4, 40.0)
    counts = counts_of(y)
    config = CnpfConfig(components=6, dimensions=2)
    state = fit(counts, config, 60)[0]
    shared, rows, columns = state.shared.copy(), state.rows.copy(), columns_of(config, counts)
    with thread_pool(1) as each:
        end, _ = settle(config, shared, rows, counts, each)
        steps = []
        for start in (state.shared.l, shared.l):
            at = shared.copy()
            at.l = start.copy()
            trial, tables = rows.copy(), tables_of(end, at, counts, columns, mean_step=True)
            visit_rows(trial, counts, tables, each, 1, mean_step=True)
            slopes = sum_locations(trial, counts, tables, each)
            steps.append(np.abs(newton_step(at.l, *slopes, config.location_variance)).max())
        R, settled = move_locations(at, trial, counts, tables, each, free=False), at.w.copy()
        settle_weights(at, trial, counts, R, each, config.concentration / 6)
    assert steps[1] < 0.8 * steps[0]
    away = [np.abs(np.log(w / at.w)).max() for w in (settled, state.shared.w)]
    assert away[0] < 0.3 * away[1]


def test_settling_brings_no_component_back(seed: int) -> None:
    y, _, _ = planted(np.random.default_rng(seed), 60, 20, 2, 20.0)
    counts = counts_of(y)
    state = fit(counts, CnpfConfig(components=4, dimensions=2), 12)[0]
    state.rows.n[:, 1] = 0.0
    draw = engine.draw(state, counts)
    theta = draw.mean_x * draw.mean_a.sum(axis=0)
    assert np.mean(theta[:, 1] / theta.sum(axis=1)) < 0.02
    assert draw.shared.w[1] < 1e-9


def test_a_fit_takes_at_most_forty_bytes_more_for_a_count_more(seed: int) -> None:
    rng, shape, sizes, most = np.random.default_rng(seed), (1000, 1000), (80_000, 200_000), []
    config = CnpfConfig(components=4, correlated=False, passes=2)
    for size in sizes:
        cell = rng.permutation(shape[0] * shape[1])[:size]
        ones = np.ones(size)
        tracemalloc.start()
        counts = Counts.of(cell // shape[1], cell % shape[1], ones, shape)
        state = fit(counts, config, 2)[0]
        tracemalloc.reset_peak()
        engine.draw(state, counts)
        most.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert (most[1] - most[0]) / (sizes[1] - sizes[0]) < 40.0


@pytest.mark.parametrize("name", MODELS)
def test_the_number_of_threads_changes_no_byte(
    name: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counts_module, "BLOCK", 600)
    y, _, _ = planted(np.random.default_rng(seed), 90, 40, 4, 30.0)
    lost = np.random.default_rng(seed).random(y.shape) < 0.05
    config = CnpfConfig(components=6, dimensions=2, free_pass=1, **MODELS[name])  # type: ignore[arg-type]
    found = []
    for threads in (1, 2, 3):
        counts = counts_of(y, lost, threads)
        assert len(counts.rows.cuts) > 5
        state, _, bounds = fit(counts, config, 5)
        found.append((save_state(state), engine.draw(state, counts).pack(), bounds))
    assert all(arrays_equal(found[0][i], other[i]) for other in found[1:] for i in (0, 1))
    assert found[0][2] == found[1][2] == found[2][2]


@pytest.mark.parametrize("minibatch", [None, 20])
@pytest.mark.parametrize("name", MODELS)
def test_a_saved_fit_goes_on_bit_for_bit(name: str, minibatch: int | None, seed: int) -> None:
    rng = np.random.default_rng(seed)
    y, _, _ = planted(rng, 90, 40, 4, 30.0)
    counts = counts_of(y, rng.random(y.shape) < 0.05)
    settings = {"components": 6, "dimensions": 2, "free_pass": 1, "minibatch": minibatch}
    settings["merge_every"] = 3
    config = CnpfConfig(**(settings | MODELS[name]))  # type: ignore[arg-type]
    whole, _, bounds = fit(counts, config, 7)
    state, streams, first = fit(counts, config, 3)
    for _ in range(4):
        kept = {name: array.copy() for name, array in save_state(state).items()}
        streams = Streams.load(streams.save())
        state = load_state(kept, counts, config)
        first.append(engine.step(state, counts, streams).bound)
    assert first == bounds
    assert arrays_equal(save_state(state), save_state(whole))
    draws = [engine.draw(one, counts).pack() for one in (state, whole)]
    assert arrays_equal(*draws)


@pytest.mark.parametrize("name", MODELS)
def test_a_minibatch_of_all_rows_with_step_one_is_a_pass(name: str, seed: int) -> None:
    config, counts = problem(name, seed + 7, missing=True, components=4, dimensions=2)
    shared, rows = begin(config, counts, seed)
    with thread_pool(1) as each:
        for p in range(40):
            run_pass(config, shared, rows, counts, each, p)
        other, its_rows = shared.copy(), rows.copy()
        expected, expected_rows = shared.copy(), rows.copy()
        run_minibatch(
            *(config, other, Averages.of(config), counts, counts.shape[0], 1.0),
            *(True, True, each, its_rows, 1),
        )
        run_pass(config, expected, expected_rows, counts, each, 40)
        # Weights make one fixed-point step there, and Newton's here.
        tables = tables_of(config, shared, counts, columns_of(config, counts))
        visit_rows(rows, counts, tables, each, 1)
        log_r = evaluate_locations(expected.l, rows, counts, tables, each, rows.x)[1]
        rows.rho, rows.x = rows.x, rows.rho
        K = sum_rises(rows, counts, shared.w, each)[1]
        R = shared.c + (sum_rates(rows, counts, tables, tables.w, each)[0] - log_r)[:4]
    np.testing.assert_allclose(other.A, expected.A, rtol=1e-12)
    np.testing.assert_allclose(other.l, expected.l, rtol=1e-12)
    np.testing.assert_allclose(other.w, (config.concentration / 4 + K) / R, rtol=1e-10)
    np.testing.assert_allclose(its_rows.n, expected_rows.n, rtol=1e-12)
    weights = padded_means(config, other, its_rows, tables)
    B = other.B if config.topics else shared.column_rate + weights.sum(axis=0)
    np.testing.assert_allclose(other.B, B, rtol=1e-10)


def padded_means(config: CnpfConfig, shared: Globals, rows: Rows, tables: Tables) -> Array:
    return mean_x(rows, tables, padded(shared.w))[:, : config.components]


@pytest.mark.parametrize("name", MODELS)
def test_half_the_rows_stand_for_their_doubles(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = rng.poisson(rng.gamma(0.5, 3.0, (20, 12)))
    lost = rng.random(y.shape) < 0.1
    settings = {"components": 4, "dimensions": 2}
    config = CnpfConfig(**(settings | MODELS[name]))  # type: ignore[arg-type]
    half, whole = counts_of(y, lost), counts_of(np.tile(y, (2, 1)), np.tile(lost, (2, 1)))
    start, _ = begin(config, whole, seed)
    start.l[:] *= 3.0
    found = []
    for counts in (half, whole):
        shared, averages = start.copy(), Averages.of(config)
        with thread_pool(1) as each:
            for t in range(3):
                run_minibatch(config, shared, averages, counts, 40, 0.5, t == 0, True, each)
        found.append((shared, averages))
    for part in ("w", "c", "l", "A", "B", "own_B"):
        values = [getattr(shared, part) for shared, _ in found]
        np.testing.assert_allclose(*values, rtol=1e-8, err_msg=part)
    for part in ("K", "R", "hessian"):
        values = [getattr(averages, part) for _, averages in found]
        np.testing.assert_allclose(*values, rtol=1e-8, err_msg=part)


def test_steps_go_part_of_the_way(seed: int) -> None:
    config, counts = problem("exp", seed, missing=True, components=4, dimensions=2)
    start, _ = begin(config, counts, seed)
    before = Averages(np.full(4, 2.0), np.full(4, 30.0), np.ones((4, 2, 2)))
    found = []
    for rate, first in ((1.0, True), (0.25, False)):
        shared, averages = start.copy(), Averages.of(config)
        if not first:
            averages = Averages(before.K.copy(), before.R.copy(), before.hessian.copy())
        with thread_pool(1) as each:
            args = (config, shared, averages, counts, counts.shape[0], rate, first, True, each)
            run_minibatch(*args)
        found.append((shared, averages))
    (whole, all_of), (part, some_of) = found
    np.testing.assert_allclose(part.A, start.A + 0.25 * (whole.A - start.A), rtol=1e-12)
    for name in ("K", "hessian"):
        old, new = getattr(before, name), getattr(all_of, name)
        np.testing.assert_allclose(getattr(some_of, name), old + 0.25 * (new - old), rtol=1e-12)
    np.testing.assert_allclose(
        part.w, (config.concentration / 4 + some_of.K) / (start.c + some_of.R), rtol=1e-12
    )
    assert np.all(np.abs(some_of.R - before.R) < 0.5 * np.abs(all_of.R - before.R) + 1.0)


def test_minibatches_come_near_the_fit_of_all_rows(seed: int) -> None:
    y, a, _ = planted(np.random.default_rng(seed), 1200, 50, 3, 60.0)
    counts = counts_of(y)
    settings = {"components": 6, "dimensions": 2, "merge_every": 0, "delay": 10.0}
    config = CnpfConfig(**settings, minibatch=100)  # type: ignore[arg-type]
    state, _, bounds = fit(counts, config, 12 * 12)
    assert np.isfinite(np.array(bounds, dtype=float)).all()
    draw = engine.draw(state, counts)
    b = draw.mean_a / draw.mean_a.sum(axis=0)
    cosine = (a / np.linalg.norm(a, axis=0)).T @ (b / np.linalg.norm(b, axis=0))
    assert np.median(cosine.max(axis=1)) > 0.9
    flat = unigram_of(counts)[counts.rows.index]
    assert perplexity(counts, cell_shares(draw, counts)) < 0.8 * perplexity(counts, flat)


def unigram_of(counts: Counts) -> Array:
    total = counts.column_totals + 0.01
    return np.asarray(total / total.sum())


def perplexity(counts: Counts, share: Array) -> float:
    return float(np.exp(-(counts.count @ np.log(share)) / counts.count.sum()))


# What a fit finds ----------------------------------------------------------------------------


def test_planted_components_and_which_exclude_each_other_are_found(seed: int) -> None:
    y, a, sign = planted(np.random.default_rng(seed), 800, 80, 4, 80.0)
    counts = counts_of(y)
    # Without merges a planted component is two of the largest in three seeds of ten.
    config = CnpfConfig(components=10, dimensions=4, passes=60, merge_every=15)
    streams = Streams(seed, 0)
    state = engine.start(counts, config, streams)
    while not engine.step(state, counts, streams).done:
        pass
    draw = engine.draw(state, counts)
    assert state.rows is not None
    order = np.argsort(-shares(state.rows, 10))[:4]
    b = draw.mean_a[:, order] / np.linalg.norm(draw.mean_a[:, order], axis=0)
    cosine = (a / np.linalg.norm(a, axis=0)).T @ b
    match = cosine.argmax(axis=1)
    assert sorted(match) == [0, 1, 2, 3]
    assert cosine.max(axis=1).min() > 0.9
    rho = draw.correlations().rho[np.ix_(order[match], order[match])]
    alike = np.outer(sign, sign) > 0
    assert rho[~alike].max() < min(-0.1, rho[alike].min())


def test_a_component_that_was_split_becomes_one(seed: int) -> None:
    y, _, _ = planted(np.random.default_rng(seed), 300, 60, 2, 60.0)
    counts = counts_of(y)
    config = CnpfConfig(components=8, dimensions=2, merge_every=0, passes=1000)
    state, _, _ = fit(counts, config, 30)
    shared, rows = state.shared, state.rows
    assert rows is not None
    order = np.argsort(shares(rows, 8))
    j, k = order[-1], order[0]
    half = 0.5 * (shared.A[:, j] - config.column_shape)
    shared.A[:, j] = shared.A[:, k] = config.column_shape + half
    shared.B[k], shared.l[k] = shared.B[j], shared.l[j]
    shared.w[j] = shared.w[k] = 0.5 * shared.w[j]
    rows.n[:, j] = rows.n[:, k] = 0.5 * rows.n[:, j]
    assert {int(j), int(k)} in map(set, alike(config, shared, rows, counts))
    with thread_pool(1) as each:
        before = run_pass(config, shared.copy(), rows.copy(), counts, each, 30)
        live = int((shares(rows, 8) > 0.01).sum())
        shared, rows, merged = merge_components(config, shared, rows, counts, each, 30)
        after = run_pass(config, shared, rows, counts, each, 30)
    assert merged > 0
    assert int((shares(rows, 8) > 0.01).sum()) < live
    assert after > before


def test_components_that_passes_empty_between_merges_are_let_be() -> None:
    rng = np.random.default_rng(11)
    k = rng.integers(2, 5)
    columns = rng.gamma(0.2, 1.0, (k, 30))
    columns /= columns.sum(axis=1, keepdims=True)
    y = rng.poisson(30.0 * rng.dirichlet([0.3] * k, 60) @ columns)
    settings = {"merge_every": 3}
    model = GlfmFactorizer(components=15, restarts=1, seed=11, settings=settings).fit(y)
    assert np.isfinite(model.components_).all()


def test_the_bound_never_falls_where_components_are_merged(seed: int) -> None:
    y, _, _ = planted(np.random.default_rng(seed), 300, 60, 2, 60.0)
    config = CnpfConfig(components=8, dimensions=2, merge_every=12, passes=1000)
    bounds = np.array(fit(counts_of(y), config, 36)[2], dtype=float)
    assert np.all(np.diff(bounds) > -1e-8 * np.abs(bounds[1:]))


def test_joining_two_components_loses_no_count(seed: int) -> None:
    y, _, _ = planted(np.random.default_rng(seed), 40, 15, 2, 20.0)
    lost = np.random.default_rng(seed).random(y.shape) < 0.05
    config = CnpfConfig(components=4, dimensions=2)
    state, _, _ = fit(counts_of(y, lost), config, 15)
    before, rows = state.shared.copy(), state.rows
    assert rows is not None
    n, shape = rows.n.copy(), config.column_shape
    j, k = np.argsort(-shares(rows, 4))[:2]
    join(config, state.shared, rows, j, k)
    np.testing.assert_allclose(rows.n[:, j], n[:, j] + n[:, k])
    np.testing.assert_allclose(rows.n.sum(axis=1), n.sum(axis=1))
    np.testing.assert_allclose(state.shared.A[:, j] - shape, (before.A - shape)[:, [j, k]].sum(1))
    assert state.shared.w[j] == before.w[j] + before.w[k]
    assert np.all(state.shared.A[:, k] == shape)
    part = n[:, [j, k]].sum(axis=0) / n[:, [j, k]].sum()
    # Rows of mean composition expect as many counts as before.
    exposure = (before.A / before.B).sum(axis=0)[[j, k]] @ part
    assert state.shared.A[:, j].sum() / state.shared.B[j] == pytest.approx(exposure)
    np.testing.assert_allclose(state.shared.l[j], part @ before.l[[j, k]])


@pytest.mark.parametrize("name", ["exp", "softplus", "diln"])
def test_new_rows_are_predicted_better_than_by_the_unigram(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    y, _, _ = planted(rng, 500, 60, 4, 60.0)
    train = counts_of(y[:400])
    config = CnpfConfig(components=6, dimensions=2, **MODELS[name])  # type: ignore[arg-type]
    state, _, _ = fit(train, config, 30)
    draw = engine.draw(state, train)
    seen, held_out = hide_columns(counts_of(y[400:]), rng.random((100, 60)) < 0.5)
    flat = perplexity(held_out, unigram_of(train)[held_out.rows.index])
    folded = fold_in(draw, seen, config)
    assert perplexity(held_out, cell_shares(folded, held_out)) < 0.95 * flat


def test_missing_pairs_say_nothing_and_zeros_do(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = rng.poisson(rng.gamma(1.0, 1.0, (200, 3)) @ rng.gamma(1.0, 1.0, (3, 30)))
    column = int(y[150:].sum(axis=0).argmax())
    lost = np.zeros(y.shape, dtype=bool)
    lost[:150, column] = True
    lost[0, :20] = True
    config = CnpfConfig(components=5, dimensions=2)
    means = []
    for counts in (counts_of(y, lost), counts_of(np.where(lost, 0, y))):
        state, _, _ = fit(counts, config, 40)
        draw = engine.draw(state, counts)
        means.append(rates(draw, np.arange(200), np.full(200, column)).mean.mean())
    assert means[0] == pytest.approx(y[:, column].mean(), rel=0.3)
    assert means[1] < 0.5 * means[0]


def test_rows_and_columns_without_counts_are_kept(seed: int) -> None:
    y, _, _ = planted(np.random.default_rng(seed), 50, 20, 2, 20.0)
    y[3] = 0
    y[:, 4] = 0
    counts = counts_of(y)
    state, _, _ = fit(counts, CnpfConfig(components=4, dimensions=2), 25)
    draw = engine.draw(state, counts)
    cells = rates(draw, np.array([3, 7]), np.array([2, 4]))
    assert np.all(cells.mean > 0.0)
    assert np.all(cells.mean < 0.5)


def test_moments_of_rates_are_those_of_their_draws(seed: int) -> None:
    y, _, _ = planted(np.random.default_rng(seed), 30, 10, 2, 20.0)
    counts = counts_of(y)
    state, _, _ = fit(counts, CnpfConfig(components=3, dimensions=2), 15)
    draw = replace(engine.draw(state, counts), excess=(0.0, 0.0))
    row, column = np.divmod(np.arange(300), 10)
    largest = np.argsort(-rates(draw, row, column).mean)[:3]
    row, column = row[largest], column[largest]
    found = rates(draw, row, column)
    drawn = sample_rates(draw, row, column, 4_000, np.random.default_rng(seed))
    error = np.sqrt(found.var / 4_000)
    assert np.all(np.abs(drawn.mean(axis=0) - found.mean) < 5 * error)
    np.testing.assert_allclose(drawn.var(axis=0), found.var, rtol=0.2)
