"""Counts predicted from what is kept of a fit: new rows, draws of rates, several restarts."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from cnpf_fits import fit
from cnpf_reference import counts_of

import glfm_cli.latent.cnpf.engine as engine
from glfm_cli.latent.cnpf import CnpfConfig, Counts
from glfm_cli.latent.cnpf.calibration import ALIKE, Factors, chosen_tau, weights_of
from glfm_cli.latent.cnpf.masks import hide_columns
from glfm_cli.latent.cnpf.prediction import cell_shares, fold_in, rates, sample_rates

CONFIG = CnpfConfig(components=3, scaled=False, correlated=False, free_pass=3)


def test_new_rows_have_the_weights_of_the_fit_times_tau(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = rng.poisson(rng.gamma(0.5, 2.0, (60, 3)) @ rng.gamma(0.4, 1.0, (3, 20)))
    counts, new = counts_of(y[:50]), counts_of(y[50:])
    draw = engine.draw(fit(counts, CONFIG, 20)[0], counts)
    heavier = draw.shared.copy()
    heavier.w = 4.0 * heavier.w
    found = fold_in(replace(draw, tau=4.0), new, CONFIG)
    expected = fold_in(replace(draw, shared=heavier), new, CONFIG)
    np.testing.assert_array_equal(found.shape, expected.shape)
    np.testing.assert_array_equal(found.rate, expected.rate)
    assert np.abs(found.mean_x - fold_in(draw, new, CONFIG).mean_x).max() > 0.1
    np.testing.assert_array_equal(found.shared.w, draw.shared.w)


def test_rates_of_a_topic_model_are_drawn_for_rows_of_their_size(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = rng.poisson(np.array([[5.0], [40.0]] * 10) * rng.dirichlet(np.ones(8), 20))
    config = CnpfConfig(components=2, likelihood="topics")
    counts = counts_of(y)
    draw = engine.draw(fit(counts, config, 15)[0], counts)
    row, column = np.arange(20), y.argmax(axis=1)
    found, drawn = rates(draw, row, column), sample_rates(draw, row, column, 2_000, rng)
    assert found.mean == pytest.approx(drawn.mean(axis=0), rel=0.1)


def test_restarts_that_differ_by_little_of_the_bound_predict_together() -> None:
    weights = weights_of(np.array([-9_900.0, -10_000.0, -20_000.0]))
    unit = 10_000.0 * 2.0 * ALIKE + 1.0
    assert np.log(weights[0] / weights[1]) == pytest.approx(100.0 / unit)
    assert np.log(weights[0] / weights[2]) == pytest.approx(10_100.0 / unit)
    assert weights.sum() == pytest.approx(1.0)


def test_the_perplexity_of_hidden_counts_is_that_of_restarts_by_their_weights(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = counts_of(rng.poisson(rng.gamma(0.5, 2.0, (60, 3)) @ rng.gamma(0.4, 1.0, (3, 20))))
    draws = tuple(engine.draw(fit(counts, CONFIG, n)[0], counts) for n in (1, 20))
    seen, hidden = hide_columns(counts.take(np.arange(10)), rng.random((10, 20)) < 0.5)
    shares = [cell_shares(fold_in(draw, seen, CONFIG), hidden) for draw in draws]
    log_p = np.log(0.8 * shares[0] + 0.2 * shares[1])
    expected = np.exp(-np.sum(hidden.count * log_p) / hidden.count.sum())
    fitted = Factors(draws, (-1.0, -2.0), (0.8, 0.2), ())
    assert fitted.perplexity(seen, hidden, CONFIG) == pytest.approx(expected)


def test_many_columns_of_rows_left_out_are_not_held_at_once() -> None:
    """A mask of 1,000 rows would take 70 bytes a cell."""
    rng = np.random.default_rng(0)
    row, column = np.arange(7_000), rng.integers(15_000, size=7_000)
    counts = Counts.of(row, column, np.ones(7_000), (7_000, 15_000))
    config = CnpfConfig(components=2, scaled=False, correlated=False, passes=1)
    tracemalloc.start()
    try:
        chosen_tau(counts, config, 0, 0.1, 1)
        assert tracemalloc.get_traced_memory()[1] < 500e6
    finally:
        tracemalloc.stop()
