"""One correction for all cells of a column, of which some are far less certain than others."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from glfm_cli import impute
from glfm_cli.completion import prepare
from glfm_cli.inference.hidden_cells import without_cells
from glfm_cli.inference.holding_back import LOSS, Gain, bearable, held_tilts
from glfm_cli.inference.recalibration import GRID, log_tilt, polynomials
from glfm_cli.inference.sampling import sample
from glfm_cli.schema import Schema

N, UNCERTAIN = 400, 40
SHARP = np.array([0.0, -1.2, 0.0, -0.4])  # draws forecasts together


def gain_of(u: np.ndarray) -> Gain:
    return lambda share: log_tilt(share * SHARP, polynomials(u))


def places(rng: np.random.Generator, n: int, b: np.ndarray) -> np.ndarray:
    """Where n values lie in forecasts that call for the tilt b."""
    mass = np.exp(log_tilt(b, polynomials(GRID)))
    return rng.choice(GRID, n, p=mass / mass.sum())


def test_a_correction_that_all_cells_call_for_is_left_whole() -> None:
    rng = np.random.default_rng(0)
    assert bearable(gain_of(places(rng, N, SHARP)), rng.random(N)) == 1.0


def test_a_correction_is_weakened_until_the_least_certain_cells_lose_no_more_than_chance() -> None:
    rng = np.random.default_rng(0)
    u = np.concatenate([places(rng, UNCERTAIN, 0 * SHARP), places(rng, N - UNCERTAIN, SHARP)])
    uncertainty = np.where(np.arange(N) < UNCERTAIN, 1.0 + rng.random(N), rng.random(N))
    gain = gain_of(u)
    assert gain(1.0).sum() > 40.0  # of all cells together
    share = bearable(gain, uncertainty)
    assert 0.0 < share < 0.5
    order = np.argsort(-uncertainty)
    worst = [np.cumsum(gain(one)[order]).min() for one in (share, share + 1 / 32)]
    assert worst[1] < -LOSS <= worst[0]
    assert bearable(gain, -uncertainty) == 1.0  # the certain ones gain all along


def test_every_column_keeps_what_its_own_cells_bear() -> None:
    rng = np.random.default_rng(0)
    table = pa.table(dict(zip("xyz", rng.standard_normal((3, N)), strict=True)))
    schema = Schema.from_dict({"rest": "real", "columns": {}})
    problem, _, plan = prepare(table, schema, model="glfm", chains=2, warmup=2, draws=2, seed=1)
    part = without_cells(sample(problem, plan).posterior, problem)
    calls = {0: SHARP, 1: 0 * SHARP, 2: SHARP}
    u = {d: places(rng, part[1][d][0].size, b) for d, b in calls.items()}
    held = held_tilts({0: SHARP, 1: SHARP, 2: 1e-3 * SHARP}, u, [part])
    np.testing.assert_array_equal(held[0], SHARP)
    assert -0.6 < held[1][1] <= 0.0
    np.testing.assert_array_equal(held[2], 1e-3 * SHARP)


def test_intervals_hold_where_other_columns_that_say_the_same_are_missing_too() -> None:
    rng = np.random.default_rng(4)
    n = 700
    age = rng.standard_normal(n)
    premium = 50 + 8 * age + 8 * rng.standard_normal(n)
    truth = np.column_stack([(1 + 0.1 * k) * premium + 0.02 * rng.random(n) for k in range(3)])
    gone = rng.random(truth.shape) < 0.3
    names = ["premium", "tax", "total"]
    columns = {name: pa.array(truth[:, k], mask=gone[:, k]) for k, name in enumerate(names)}
    columns["age"] = pa.array(age)
    types = {"columns": dict.fromkeys(columns, "real")}
    completed = impute(pa.table(columns), types, chains=6, seed=2)
    inside, widths = [], []
    for k, part in enumerate(completed.columns[:3]):
        rows, (low, _, high) = part.marginal.rows, part.marginal.quantiles.T
        alone = gone[rows].all(axis=1)
        inside += ((low <= truth[rows, k]) & (truth[rows, k] <= high))[alone].tolist()
        widths.append((high - low)[alone].mean() / (high - low)[~alone].mean())
    assert len(inside) > 50
    assert np.mean(inside) > 0.75
    assert min(widths) > 8.0
