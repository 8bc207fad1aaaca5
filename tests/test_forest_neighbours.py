"""Neighbours in time as inputs of trees: which they are, what they say, and what it is worth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from glfm_cli import impute
from glfm_cli.arrays import Array, Groups
from glfm_cli.completion import prepare
from glfm_cli.inference import chains
from glfm_cli.latent.capabilities import Candidates
from glfm_cli.latent.forest.columns import Kinds
from glfm_cli.latent.forest.draw import ForestLaw
from glfm_cli.latent.forest.neighbours import together
from glfm_cli.latent.forest.related import RelatedInputs, RelatedRows
from glfm_cli.latent.forest.series import NONE, RowsInTime
from glfm_cli.latent.model import Problem
from glfm_cli.links.law import NormalMixture

N = 60
KINDS = Kinds(  # two numbers, and three levels
    np.array([0, 0, 3], np.int32), np.array([0, 0, 1], np.uint8), np.full(3, np.nan), np.zeros(3)
)


def cells(seed: int) -> tuple[RowsInTime, Array, Array]:
    """Return rows in time, and three columns with single missing cells and two gaps."""
    rng = np.random.default_rng(seed)
    time = rng.permutation(N).astype(float)
    y = rng.normal(size=(2, N)).cumsum(axis=1)[:, time.astype(int)]
    z = np.vstack([y, rng.integers(3, size=N)]).astype(np.float32).astype(float)
    seen = (rng.random((3, N)) < 0.75).astype(np.uint8)
    seen[:, (time > 20) & (time < 28)] = 0
    return RowsInTime(time), z, seen


def related(
    series: RowsInTime, z: Array, seen: Array, kinds: Kinds = KINDS
) -> tuple[RelatedRows, RelatedInputs]:
    """Return the rows as trees have them, and what is told of their cells."""
    groups = Groups(np.zeros(series.time.size, dtype=np.int64), time=series.time)
    return RelatedRows.of(groups, z, seen, kinds)


def brute(time: Array, seen: Array, n: int, least: Array) -> list[tuple[int, int]]:
    """Return the neighbours of row n before and after, and how many rows away they are."""
    order, found = np.argsort(time), []
    place = int(np.flatnonzero(order == n)[0])
    for way, least_of in ((-1, least[0]), (1, least[1])):
        k = place + way * int(least_of)
        while 0 <= k < order.size and not seen[order[k]]:
            k += way
        there = 0 <= k < order.size
        found.append((int(order[k]), abs(k - place)) if there else (-1, NONE))
    return found


def test_neighbours_are_the_nearest_observed_cells_at_least_so_far_away(seed: int) -> None:
    series, _, seen = cells(seed)
    there = seen[0] != 0
    least = np.random.default_rng(seed).integers(1, 9, size=(2, N))
    least[0, :3] = NONE
    found = series.neighbours(there, least)
    for n in range(N):
        expected = brute(series.time, there, n, least[:, n])
        assert list(zip(found.at[:, n], found.rows[:, n], strict=True)) == expected


def test_neighbours_are_of_the_same_group(seed: int) -> None:
    series, _, seen = cells(seed)
    code = np.random.default_rng(seed).integers(4, size=N)
    least = np.random.default_rng(seed).integers(1, 4, size=(2, N))
    found = RowsInTime(series.time, code).neighbours(seen[0] != 0, least)
    for g in range(4):
        rows = np.flatnonzero(code == g)
        own = RowsInTime(series.time[rows]).neighbours(seen[0, rows] != 0, least[:, rows])
        assert np.array_equal(found.at[:, rows], np.where(own.at >= 0, rows[own.at], -1))
        assert np.array_equal(found.rows[:, rows], own.rows)


def test_neighbours_say_what_an_autoregression_with_noise_says() -> None:
    reach, share, middle = shape = np.array([3.0, 0.8, 1.5])
    y, away = np.array([2.0, -1.0]), np.array([[1.0], [2.5]])
    inside = share * np.exp(-3.5 / reach)
    with_cell = share * np.exp(-away[:, 0] / reach)
    weight = np.linalg.solve(np.array([[1.0, inside], [inside, 1.0]]), with_cell)
    expected = middle + weight @ (y - middle)
    assert together(y, np.array([[0], [1]]), away, shape)[0] == pytest.approx(expected)
    before = middle + with_cell[0] * (y[0] - middle)
    assert together(y, np.array([[0], [-1]]), away, shape)[0] == pytest.approx(before)


def test_no_cell_is_told_of_itself(seed: int) -> None:
    series, z, seen = cells(seed)
    for d in range(2):
        n = int(np.flatnonzero(seen[d])[5])
        rows, found = related(series, z, seen)
        moved = z.copy()
        moved[d, n] += 50.0
        _, again = related(series, moved, seen)
        kinds, for_far = rows.kinds(KINDS)
        own = np.flatnonzero((kinds.about == d) | (for_far.about == d))
        before_after = own[[1, 2, 4, 5]]  # the others also depend on ranges
        assert np.array_equal(found.inputs[before_after, n], again.inputs[before_after, n])
        assert not np.array_equal(found.inputs[before_after], again.inputs[before_after])
        assert rows.two[d]


def test_an_observed_cell_borrows_the_distances_of_a_missing_one(seed: int) -> None:
    series, _, seen = cells(seed)
    there = seen[0] != 0
    steps = np.array([[4], [7]])
    near = series.borrowed(there, steps, np.random.default_rng(seed))
    for n in np.flatnonzero(there):
        assert near[:, n].tolist() == [at for at, _ in brute(series.time, there, n, steps[:, 0])]
    for n in np.flatnonzero(~there):
        assert near[:, n].tolist() == [at for at, _ in brute(series.time, there, n, [1, 1])]


def test_a_new_row_is_told_what_it_would_be_told_in_the_fit(seed: int) -> None:
    series, z, seen = cells(seed)
    fit, found = related(series, z, seen)
    rows = np.flatnonzero(~seen[0].astype(bool))
    new = np.where(seen[:, rows] != 0, z[:, rows], np.nan)
    groups = Groups(np.zeros(rows.size, dtype=np.int64), time=series.time[rows])
    told = fit.of_new(z, seen, new, rows, groups, KINDS)
    kinds, _ = fit.kinds(KINDS)
    of_first = np.flatnonzero(kinds.about == 0)
    far = of_first + kinds.about.size // 2
    of_near = ~found.far[0, rows]
    assert np.array_equal(told.far[0], found.far[0, rows])
    for inputs, which in ((of_first, of_near), (far, ~of_near)):
        expected = found.inputs[np.ix_(inputs, rows[which])]
        assert np.array_equal(told.inputs[np.ix_(inputs, np.flatnonzero(which))], expected)


def test_trees_ask_of_no_other_columns_neighbours() -> None:
    near, far = related(*cells(0))[0].kinds(KINDS)
    D, E = 3, 2 * (3 + 3 + 2)
    for kinds, own in ((near, [3, 4, 5]), (far, [11, 12, 13])):
        assert kinds.n_columns == D
        assert sorted([*kinds.not_of(0), *own]) == list(range(D, D + E))
    assert near.levels[[3, 9, 10]].tolist() == [0, 3, 3]


def table_in_time(seed: int, n: int = 240) -> tuple[pa.Table, Array, Array]:
    """Return a series that jumps with the hour and drifts slowly, and which cells are missing."""
    rng = np.random.default_rng(seed)
    hour = np.arange(n) % 12
    jump = 3.0 * rng.permutation(12)[hour] / 4.0
    drift = np.cumsum(rng.normal(scale=0.5, size=n))
    y = jump + drift + 0.1 * rng.normal(size=n)
    gone = rng.random(n) < 0.15
    for start in (50, 120, 190):
        gone[start : start + 9] = True
    other = (y + rng.normal(size=n)).round(3)
    columns = {"t": np.arange(n), "hour": [f"h{h}" for h in hour], "other": other}
    return pa.table({**columns, "y": pa.array(y, mask=gone)}), y, gone


TYPES = {"hour": "categorical", "other": "real", "y": "real"}
IN_TIME = {"columns": {"t": {"type": "real", "role": "time"}, **TYPES}}
SHORT = {"warmup": 20, "draws": 30, "seed": 0}


def error(table: pa.Table, y: Array, gone: Array, types: object, model: str) -> float:
    done = impute(table, types, model=model, chains=3, **SHORT)
    found = done.table.column("y").to_numpy()
    return float(np.sqrt(np.mean((found[gone] - y[gone]) ** 2)) / y.std())


def test_neighbours_help_trees(seed: int) -> None:
    table, y, gone = table_in_time(seed)
    without = error(table, y, gone, {"columns": {"t": "real", **TYPES}}, "forest")
    with_role = error(table, y, gone, IN_TIME, "forest")
    assert with_role < 0.9 * without


def test_far_cells_alone_are_drawn_and_forecast_by_trees_of_their_own() -> None:
    table, _, gone = table_in_time(0)
    problem = prepare(table, IN_TIME, model="forest", seed=0)[0]
    chain = chains.start(problem, 0, 0)
    for _ in range(5):
        chain.sweep(adapt=False)
    draw, d = chain.keep().latent, len(problem.links) - 1
    assert draw.far is not None
    rows = np.flatnonzero(gone)
    is_far = draw.is_far[d, rows]
    parts = [(part.tolist(), trees) for part, trees, _ in draw.parts(d, rows)]
    assert parts == [(rows[~is_far].tolist(), draw.trees), (rows[is_far].tolist(), draw.far.trees)]
    laws = [ForestLaw(one, rows).column(d) for one in (draw, replace(draw, far=None))]
    means = [law.means for law in laws if isinstance(law, NormalMixture)]
    differ = np.any(means[0] != means[1], axis=(1, 2))
    assert not differ[~is_far].any()
    assert differ[is_far].mean() > 0.9


def candidate(problem: Problem, chain: int) -> str:
    """Return the model of which a chain of `auto` is."""
    assert isinstance(problem.model, Candidates)
    return problem.model.candidates[problem.model.turn(problem, chain)]


@pytest.mark.parametrize("more", [{}, {"g": "group"}])
def test_trees_take_part_in_time_and_in_groups(more: dict[str, str]) -> None:
    table, _, _ = table_in_time(0, 60)
    table = table.append_column("g", [["a", "b"] * 30])
    types = {"columns": {"g": "ignore", **IN_TIME["columns"], **more}}
    problem, _, _ = prepare(table, types)
    assert problem.model.name == "auto"
    assert [candidate(problem, k) for k in range(7)].count("forest") == 3


def test_a_saved_fit_completes_later_rows(tmp_path: Path) -> None:
    table, _, _ = table_in_time(1, 120)
    fit = tmp_path / "a.glfm"
    impute(table.slice(0, 90), IN_TIME, model="forest", chains=2, save=fit, **SHORT)
    one, two = (impute(table.slice(90), fit=fit, seed=3, threads=k).table for k in (1, 2))
    assert one.equals(two)
    known = table.slice(90).column("y")
    assert all(a == b for a, b in zip(known, one.column("y"), strict=True) if a.is_valid)


@pytest.mark.parametrize("lift", [0.0, 30.0])
def test_rows_beyond_all_values_of_the_fit_are_completed_without_trees(
    tmp_path: Path, lift: float
) -> None:
    """A predictor that is the time is always beyond, and does not count."""
    table, _, _ = table_in_time(1, 120)
    fit = tmp_path / "a.glfm"
    impute(table.slice(0, 90), IN_TIME, chains=7, warmup=8, draws=8, seed=0, save=fit)
    new = table.slice(90)
    for name in ("other", "y"):
        moved = [None if x is None else x % 3.0 + lift for x in new.column(name).to_pylist()]
        new = new.set_column(new.schema.get_field_index(name), name, pa.array(moved))
    done = impute(new, fit=fit)
    model = done.posterior.model
    assert isinstance(model, Candidates)
    found = {model.candidates[which] for which in done.posterior.groups}
    assert found == {"glfm", "linear", *(["forest"] if not lift else [])}


def test_a_resumed_run_is_the_run_that_was_not_interrupted(tmp_path: Path) -> None:
    table, _, _ = table_in_time(2, 90)
    how = {"model": "forest", "chains": 2, "warmup": 8, "seed": 0}
    whole = impute(table, IN_TIME, draws=24, save=tmp_path / "whole.glfm", **how)
    impute(table, IN_TIME, draws=12, save=tmp_path / "half.glfm", **how)
    resumed = impute(table, resume=tmp_path / "half.glfm", draws=24)
    assert resumed.table.equals(whole.table)


def gaps(*lengths: int) -> Array:
    """Return which of 120 rows are observed, beside gaps of so many rows, two or more apart."""
    seen, start = np.ones(120, np.uint8), 3
    for length in lengths:
        seen[start : start + length] = 0
        start += length + 2
    return seen


def test_cells_in_gaps_of_three_rows_are_far_where_there_are_enough_of_both() -> None:
    """A column has trees of their own for five cells of each kind, none for fewer."""
    kinds = Kinds(np.zeros(4, np.int32), np.zeros(4, np.uint8), np.full(4, np.nan), np.zeros(4))
    columns = [[1] * 5 + [3, 3], [1] * 5 + [3], [1] * 4 + [3, 3], [2] * 6]
    seen = np.stack([gaps(*lengths) for lengths in columns])
    z, series = np.tile(np.arange(120.0), (4, 1)), RowsInTime(np.arange(120.0))
    fit, told = related(series, z, seen, kinds)
    assert fit.two.tolist() == [True, False, False, False]
    assert np.flatnonzero(told.far[0]).tolist() == [18, 19, 20, 23, 24, 25]
    assert not told.far[1:].any()
    back = np.arange(120.0) - told.inputs[[1, 13]]  # rows to the cell before, to trees of each kind
    middle = slice(10, -10)
    first, last = back[:, seen[0] != 0][:, middle]
    assert first.mean() < 1.5 < last.mean()
    new = Groups(np.zeros(3, dtype=np.int64), time=np.arange(130.0, 133.0))
    args = np.full((4, 3), np.nan), np.full(3, -1), new, kinds
    assert fit.of_new(z, seen, *args).far.all(axis=1).tolist() == fit.two.tolist()
