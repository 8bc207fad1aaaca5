"""Snapshots and states that come back, and input that is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cnpf_fits import Array, fit, planted
from cnpf_reference import counts_of

import glfm_cli.latent.cnpf.engine as engine
from glfm_cli.errors import GlfmError
from glfm_cli.latent.cnpf import CnpfConfig, CnpfDraw, Counts
from glfm_cli.latent.cnpf.prediction import fold_in, rates
from glfm_cli.latent.cnpf.state import load_state, save_state
from glfm_cli.latent.model import Sizes

SIZES = Sizes(40, 15, tuple((d, d + 1) for d in range(15)))


def test_a_snapshot_comes_back_and_predicts_the_same(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y, _, _ = planted(rng, 40, 15, 2, 20.0)
    counts = counts_of(y, rng.random(y.shape) < 0.1)
    config = CnpfConfig(components=3, dimensions=2)
    state, _, _ = fit(counts, config, 15)
    draw = replace(engine.draw(state, counts), tau=4.0)
    again = CnpfDraw.unpack(draw.pack(), SIZES)
    row, column = np.divmod(np.arange(600), 15)
    np.testing.assert_array_equal(rates(again, row, column).mean, rates(draw, row, column).mean)
    new = counts_of(y[:5])
    folded = [fold_in(one, new, config) for one in (draw, again)]
    np.testing.assert_array_equal(folded[0].shape, folded[1].shape)


BROKEN: dict[str, tuple[str, Array]] = {
    "another shape": ("A", np.ones((2, 3))),
    "below 0": ("w", np.array([1.0, -1.0, 1.0])),
    "not finite": ("B", np.array([1.0, np.nan, 1.0])),
    "another type": ("x_rate", np.ones((40, 3), dtype=np.float32)),  # type: ignore[dict-item]
    "tau": ("tau", np.array(-1.0)),
    "own": ("own", np.array([3, 3])),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_snapshot_is_refused(what: str, seed: int) -> None:
    y, _, _ = planted(np.random.default_rng(seed), 40, 15, 2, 20.0)
    counts = counts_of(y)
    config = CnpfConfig(components=3, dimensions=2)
    state, _, _ = fit(counts, config, 2)
    name, array = BROKEN[what]
    arrays = engine.draw(state, counts).pack() | {name: array}
    with pytest.raises(ValueError, match=name):
        CnpfDraw.unpack(arrays, SIZES)


@pytest.mark.parametrize("minibatch", [None, 10])
def test_a_broken_state_is_refused(minibatch: int | None, seed: int) -> None:
    y, _, _ = planted(np.random.default_rng(seed), 40, 15, 2, 20.0)
    counts = counts_of(y)
    config = CnpfConfig(components=3, dimensions=2, minibatch=minibatch)
    state, _, _ = fit(counts, config, 2)
    whole = save_state(state)
    for name in whole:
        with pytest.raises(ValueError, match=name):
            load_state({key: whole[key] for key in whole if key != name}, counts, config)
    worse = {"steps": np.array(-1), "bounds": np.zeros(99), "c": np.array(0.0)}
    worse |= {"order": np.zeros(40, np.int64)} if minibatch else {"n": -whole["n"]}
    for name, array in worse.items():
        with pytest.raises(ValueError, match=name):
            load_state(whole | {name: array}, counts, config)


@pytest.mark.parametrize(
    ("row", "column", "count", "missing", "text"),
    [
        ([0, 1], [0, 1], [1, -2], None, "pair (2, 2), found -2, expected a whole number"),
        ([0], [1], [1.5], None, "pair (1, 2), found 1.5, expected a whole number"),
        ([0, 2], [1, 1], [2**31 - 1, 2**31], None, "pair (3, 2), found 2147483648, expected at"),
        ([0, 0], [1, 1], [1, 2], None, "pair (1, 2), expected one count for every pair"),
        ([0, 5], [1, 1], [1, 2], None, "pair (6, 2), expected a pair within 3 x 2"),
        ([0], [1], [3], ([0], [1]), "pair (1, 2), expected a missing pair to have no count"),
        ([0], [1], [3], ([2, 2], [1, 1]), "pair (3, 2), expected a missing pair only once"),
    ],
)
def test_pairs_that_are_wrong_are_named(
    row: list[int],
    column: list[int],
    count: list[float],
    missing: tuple[list[int], list[int]] | None,
    text: str,
) -> None:
    lost = None if missing is None else (np.array(missing[0]), np.array(missing[1]))
    with pytest.raises(GlfmError) as raised:
        Counts.of(np.array(row), np.array(column), np.array(count), (3, 2), lost)
    assert text in str(raised.value)


def test_a_count_of_zero_is_an_absent_pair() -> None:
    counts = Counts.of(np.array([0, 1]), np.array([0, 1]), np.array([0, 2]), (2, 2))
    assert counts.count.tolist() == [2]


@pytest.mark.parametrize(
    "settings",
    [{"components": 0}, {"location_variance": 1.0}, {"column_shape": 0.001}, {"forgetting": 0.5}],
)
def test_settings_out_of_range_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(GlfmError, match="settings"):
        CnpfConfig(**settings)  # type: ignore[arg-type]


def test_small_weights_and_shapes_stay_within_the_range_of_numbers(seed: int) -> None:
    y, _, _ = planted(np.random.default_rng(seed), 40, 15, 2, 200.0)
    counts = counts_of(y)
    config = CnpfConfig(components=40, dimensions=3, column_shape=0.01, initial_weight=1e-6)
    state, _, bounds = fit(counts, config, 30)
    assert np.all(np.isfinite(np.array(bounds, dtype=float)))
    assert state.rows is not None
    np.testing.assert_allclose(state.rows.n.sum(axis=1), counts.row_totals, rtol=1e-10)
