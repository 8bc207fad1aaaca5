"""Gaps that are runs of rows: told from others, imitated, and what forecasts of them rest on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glfm_cli.arrays import is_clock
from glfm_cli.completion import prepare
from glfm_cli.inference.corrections import fit_powers, fit_tilts
from glfm_cli.inference.folding import fold_in
from glfm_cli.inference.gap_runs import cells_in_runs, in_runs, series_order, worth
from glfm_cli.inference.hidden_cells import Hidden, recalibrate, without_cells
from glfm_cli.inference.hiding import chosen_cells, worth_of_cells
from glfm_cli.inference.posterior import Posterior
from glfm_cli.inference.predictive import predict
from glfm_cli.inference.sampling import Plan, sample
from glfm_cli.inference.value_chain import start_values
from glfm_cli.latent.model import Problem
from glfm_cli.schema import Schema
from glfm_cli.streams import Streams

LONG = 40  # rows of a gap


def sensors(n: int, seed: int, columns: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Smooth series (n, columns), and long gaps in them (n, columns)."""
    rng = np.random.default_rng(seed)
    x = np.zeros((n, columns))
    for t in range(1, n):
        x[t] = 0.95 * x[t - 1] + 0.3 * rng.standard_normal(columns)
    gaps = np.zeros(x.shape, dtype=bool)
    for d in range(columns):
        for start in rng.integers(0, n - LONG, 3):
            gaps[start : start + LONG, d] = True
    return x, gaps


def table_of(x: np.ndarray, gaps: np.ndarray, order: np.ndarray) -> pa.Table:
    """Return rows in some order, each with the hour it is of."""
    columns = {f"s{d}": pa.array(x[order, d], mask=gaps[order, d]) for d in range(x.shape[1])}
    return pa.table({"hour": pa.array(order), **columns})


def problem_of(table: pa.Table, hour: str = "real", **how: object) -> Problem:
    names = [name for name in table.column_names if name != "hour"]
    types = {"columns": {"hour": hour, **dict.fromkeys(names, "real")}}
    return prepare(table, Schema.from_dict(types), **how)[0]


def lengths_of(gaps: np.ndarray) -> np.ndarray:
    """Return how long the runs of missing cells of one column are."""
    edges = np.diff(np.concatenate([[0], gaps.astype(int), [0]]))
    return np.flatnonzero(edges == -1) - np.flatnonzero(edges == 1)


def test_rows_of_a_series_are_put_in_the_order_of_its_clock() -> None:
    x, gaps = sensors(300, 0)
    shuffled = np.random.default_rng(1).permutation(300)
    order = series_order(problem_of(table_of(x, gaps, shuffled)))
    assert order is not None
    np.testing.assert_array_equal(shuffled[order], np.arange(300))
    order = series_order(problem_of(table_of(x, gaps, np.arange(300)), "ignore"))
    np.testing.assert_array_equal(order, np.arange(300))


def test_other_tables_are_no_series() -> None:
    x, gaps = sensors(300, 0)
    rng = np.random.default_rng(1)
    shuffled, rows = rng.permutation(300), np.arange(300)
    assert series_order(problem_of(table_of(x, gaps, shuffled), "ignore")) is None
    assert series_order(problem_of(table_of(x[shuffled], gaps, rows))) is None
    single = rng.random(gaps.shape) < gaps.mean()
    assert series_order(problem_of(table_of(x, single, rows))) is None
    assert series_order(problem_of(table_of(x, np.zeros_like(gaps), rows))) is None
    timed = {"columns": {"hour": {"type": "real", "role": "time"}, "s0": "real", "s1": "real"}}
    table = table_of(x, gaps, rows).drop_columns("s2")
    assert series_order(prepare(table, Schema.from_dict(timed))[0]) is None


def test_a_clock_goes_in_steps() -> None:
    rng = np.random.default_rng(0)
    steps = np.arange(100) / 144.0
    assert is_clock(rng.permutation(steps))
    assert is_clock(np.delete(steps, slice(20, 50)))
    assert is_clock(np.append(steps, steps[:5]))
    assert not is_clock(rng.standard_normal(100))
    assert not is_clock(np.repeat(steps, 2))
    assert not is_clock(np.where(steps > 0.5, steps, np.nan))
    assert not is_clock(np.append(1e-200 * rng.standard_normal(99), 1e200))


@settings(max_examples=20)
@given(st.integers(0, 1000), st.floats(0.05, 0.6))
def test_single_missing_cells_are_not_runs(seed: int, share: float) -> None:
    gaps = np.random.default_rng(seed).random((400, 3)) < share
    assert not in_runs(gaps)
    assert in_runs(np.repeat(gaps, 4, axis=0))


@settings(max_examples=20)
@given(st.integers(0, 1000), st.integers(0, 3))
def test_hidden_cells_are_observed_ones_in_gaps_as_long(seed: int, time: int) -> None:
    _, gaps = sensors(800, seed)
    gaps[:, 2] = False
    hidden = np.isfinite(cells_in_runs(~gaps, 0.125, time, np.random.default_rng(0)))
    other = np.isfinite(cells_in_runs(~gaps, 0.125, time + 1, np.random.default_rng(0)))
    assert not (hidden & gaps).any()
    assert not (hidden & other).any()
    assert not hidden[:, 2].any()
    for d in (0, 1):
        assert hidden[:, d].sum() == pytest.approx(0.125 * (~gaps[:, d]).sum(), abs=1)
        assert lengths_of(hidden[:, d] | gaps[:, d]).max() >= LONG
        assert np.average(lengths_of(hidden[:, d]), weights=lengths_of(hidden[:, d])) > LONG / 4


def test_gaps_of_several_columns_at_once_are_hidden_at_once() -> None:
    gaps = np.zeros((600, 2), dtype=bool)
    gaps[100:120] = gaps[300:330] = True
    hidden = np.isfinite(cells_in_runs(~gaps, 0.125, 0, np.random.default_rng(0)))
    np.testing.assert_array_equal(hidden[:, 0], hidden[:, 1])


def timed(x: np.ndarray, gaps: np.ndarray, order: np.ndarray, **more: object) -> Problem:
    """Return rows in some order with role time, the last column one of two levels."""
    table = table_of(x[:, :-1], gaps[:, :-1], order)
    level = np.where(x[order, -1] > 0.0, "high", "low")
    table = table.append_column("level", pa.array(level, mask=gaps[order, -1]))
    for name, values in more.items():
        table = table.append_column(name, pa.array(values))
    types = {"hour": {"type": "real", "role": "time"}, "level": "categorical"}
    columns = {"rest": "real", "columns": types | dict.fromkeys(more, "group")}
    return prepare(table, Schema.from_dict(columns), model="glfm")[0]


def test_gaps_like_those_of_a_series_are_hidden_with_role_time() -> None:
    x, gaps = sensors(300, 1)
    order = np.random.default_rng(3).permutation(300)
    problem = timed(x, gaps, order)
    parts = [chosen_cells(problem, time) for time in (0, 1)]
    for rows, chosen in parts:
        np.testing.assert_array_equal(rows, np.arange(300))
        in_time = chosen[np.argsort(order)]
        assert not in_time[:, 0].any()
        for d in (1, 2, 3):
            assert in_time[:, d].sum() == pytest.approx(0.125 * (~gaps[:, d - 1]).sum(), abs=1)
            assert not np.any(in_time[:, d] & gaps[:, d - 1])
            assert lengths_of(in_time[:, d]).max() > 10
    assert not np.any(parts[0][1] & parts[1][1])
    alone = np.random.default_rng(4).random(gaps.shape) < 0.1
    schools = np.repeat(["a", "b"], 150)
    for other in (timed(x, alone, order), timed(x, gaps, np.arange(300), school=schools)):
        chosen = chosen_cells(other, 0)[1]
        assert max(lengths_of(one).max() for one in chosen.T) < 8


def test_cells_of_runs_count_as_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    two = np.array([[1, 1, 0], [0, 1, 0], [0, 1, 0], [1, 0, 0]], dtype=bool)
    np.testing.assert_allclose(worth([two]), [1.0, 3.0 / 9.0, 0.0])
    np.testing.assert_allclose(worth([two, two[:, [1, 0, 2]]]), [5.0 / 11.0, 5.0 / 11.0, 0.0])
    x, gaps = sensors(140, 1)
    order = np.random.default_rng(3).permutation(140)
    counted: list[float] = []

    def of_numbers(places: Any, sds: Any, counts: Any) -> Any:
        counted.extend(counts[d] for d in places)
        return fit_tilts(places, sds, counts)

    def of_levels(p: Any, codes: Any, count: float) -> Any:
        counted.append(count)
        return fit_powers(p, codes, count)

    monkeypatch.setattr("glfm_cli.inference.hidden_cells.fit_tilts", of_numbers)
    monkeypatch.setattr("glfm_cli.inference.hidden_cells.fit_powers", of_levels)
    problem = timed(x, gaps, order)
    recalibrate(sample(problem, Plan(2, 2, 10, 1, 5)).posterior, problem)
    assert len(counted) == 3
    assert all(1.0 / LONG <= one < 0.2 for one in counted)
    untimed = worth_of_cells(problem_of(table_of(x, gaps, order), model="glfm"), 2)
    assert np.all((untimed[1:] >= 1.0 / LONG) & (untimed[1:] < 0.2))
    single = timed(x, np.random.default_rng(4).random(gaps.shape) < 0.1, order)
    assert worth_of_cells(single, 2).tolist() == [1.0] * 4


def error_of(posterior: Posterior, hidden: Hidden) -> float:
    """Return the root mean square error of forecasts of hidden cells."""
    found = predict(posterior, {d: at for d, (at, _) in hidden.items()})
    away = [found[d].mean - x for d, (_, x) in hidden.items()]
    return float(np.sqrt(np.mean(np.concatenate(away) ** 2)))


@pytest.mark.parametrize("most", [2000, 150])
def test_trees_forget_the_neighbours_of_hidden_cells(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trees that leave out a row know those beside it, which a long gap has not."""
    monkeypatch.setattr("glfm_cli.inference.hiding.ALL_ROWS", most)
    x, gaps = sensors(400, 5)
    problem = problem_of(table_of(x, gaps, np.arange(400)), model="forest")
    fitted = sample(problem, Plan(2, 12, 12, 1, 5)).posterior
    folded, hidden = without_cells(fitted, problem)
    hidden = {d: part for d, part in hidden.items() if part[0].size}
    rows = folded.chains[0][0].latent.own
    assert rows.size == min(most, 400)
    whole = {d: (rows[at], truth) for d, (at, truth) in hidden.items()}
    assert whole.keys() == {1, 2, 3}
    xs = [x.copy() for x in problem.xs]
    for d, (at, truth) in whole.items():
        np.testing.assert_array_equal(xs[d][at], truth)
        xs[d][at] = np.nan
        assert lengths_of(np.isin(np.arange(400), at)).max() > 10
    less = replace(problem, xs=tuple(xs))
    refit = sample(less, Plan(2, 12, 12, 1, 6)).posterior
    known = fold_in(fitted.thinned(8), replace(less, of_fit=np.arange(400)), seed=0)
    assert error_of(folded, hidden) == pytest.approx(error_of(refit, whole), rel=0.1)
    assert error_of(known, whole) < 0.7 * error_of(refit, whole)


def test_trees_that_are_grown_again_have_leaves_of_the_same_sizes_and_lines_as_before() -> None:
    x, gaps = sensors(200, 1)
    problem = problem_of(table_of(x, gaps, np.arange(200)), model="forest")
    chain = start_values(problem, Streams(0, 0), 0)
    for least, linear in (([1, 3, 10, 3], [0, 1, 1, 0]), ([10, 1, 1, 3], [1, 0, 1, 0])):
        chain.state.least[:], chain.state.linear[:], chain.state.kept = least, linear, None
        draw = problem.model.draw(chain.state)
        again = problem.model.regrow(draw, chain.values, problem.config, Streams(1, 0))
        assert again.least.tolist() == least
        assert again.linear.tolist() == linear
        np.testing.assert_array_equal(again.z, draw.z)
