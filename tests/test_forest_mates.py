"""Rows of the same group as inputs of trees: what they say, of whom, and what it is worth."""

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
from glfm_cli.latent.forest.columns import Kinds
from glfm_cli.latent.forest.draw import ForestDraw
from glfm_cli.latent.forest.mates import HANDS, GroupMates
from glfm_cli.latent.forest.related import RelatedRows
from glfm_cli.latent.model import Sizes

N, G = 200, 25
KINDS = Kinds(  # a number, two levels, three levels with and three without an order
    np.array([0, 2, 3, 3], np.int32), np.array([0, 1, 0, 1], np.uint8), np.full(4, np.nan),
    np.zeros(4),
)


def cells(seed: int) -> tuple[Array, Array, Array]:
    """Return groups, and columns that differ between them, a quarter of the cells missing."""
    rng = np.random.default_rng(seed)
    code = rng.integers(G, size=N)
    level = rng.normal(size=(4, G))[:, code] + 0.7 * rng.normal(size=(4, N))
    z = np.stack([level[0], level[1] > 0, *np.digitize(level[2:], [-0.5, 0.5])]).astype(np.float32)
    return code, z.astype(float), (rng.random((4, N)) < 0.75).astype(np.uint8)


def prior_of(y: Array, code: Array) -> tuple[float, float]:
    """Return how many cells the mean of all groups is worth, and that mean, by sums over groups."""
    each = [y[code == g] for g in np.unique(code)]
    within = sum(((v - v.mean()) ** 2).sum() for v in each) / (y.size - len(each))
    among = sum(v.size * (v.mean() - y.mean()) ** 2 for v in each) / (len(each) - 1)
    size = (y.size - sum(v.size**2 for v in each) / y.size) / (len(each) - 1)
    return within / ((among - within) / size), y.mean()


def test_a_missing_cell_is_told_the_shrunken_mean_of_its_group(seed: int) -> None:
    code, z, seen = cells(seed)
    _, told, _ = GroupMates.of(code, z, seen, KINDS)
    for d in range(3):
        there = seen[d] != 0
        worth, middle = prior_of(z[d, there], code[there])
        for n in np.flatnonzero(~there):
            y = z[d, there & (code == code[n])]
            expected = (y.sum() + worth * middle) / (y.size + worth)
            assert told[d, n] == pytest.approx(expected, rel=1e-5)


def test_a_missing_cell_is_told_the_most_frequent_level_of_its_group(seed: int) -> None:
    code, z, seen = cells(seed)
    _, told, _ = GroupMates.of(code, z, seen, KINDS)
    there = seen[3] != 0
    every = np.bincount(z[3, there].astype(int), minlength=3)
    for n in np.flatnonzero(~there):
        own = np.bincount(z[3, there & (code == code[n])].astype(int), minlength=3)
        best = max(range(3), key=lambda r: (own[r], every[r]))
        assert told[3, n] == best


def test_no_cell_is_told_of_itself_nor_all_of_a_group_by_a_difference(seed: int) -> None:
    """Moving one cell moves what it is told by nothing, and what a fifth of its mates are told."""
    code, z, seen = cells(seed)
    moved, there = z.copy(), seen[0] != 0
    group = int(np.argmax(np.bincount(code[there])))
    n, *mates = np.flatnonzero(there & (code == group)).tolist()
    assert len(mates) >= 2 * HANDS
    moved[0, n] += 1e-3
    before, after = (GroupMates.of(code, y, seen, KINDS)[1][0] for y in (z, moved))
    changed = np.abs(after - before) > 2e-5  # beyond what the mean of all groups moves them
    assert not changed[n]
    same_hand = sum(not changed[m] for m in mates)
    assert 1 <= same_hand <= 1 + len(mates) // HANDS


def test_nothing_is_said_of_columns_of_groups(seed: int) -> None:
    code, z, seen = cells(seed)
    _, told, _ = GroupMates.of(code, z, seen, KINDS, same=(0, 3))
    assert np.unique(told[0]).size == np.unique(told[3]).size == 1
    assert np.unique(told[1]).size > 1


def test_cells_without_mates_are_apart_whether_others_are_missing_or_not() -> None:
    code = np.repeat(np.arange(60), 2)
    seen = np.ones((3, 120), np.uint8)
    seen[0, :10] = seen[0, 20:30:2] = 0  # five groups of nobody, five cells beside a mate
    seen[1, :10] = 0  # of nobody alone
    seen[2, 20:30:2] = 0  # beside a mate
    kinds = Kinds(np.zeros(3, np.int32), np.zeros(3, np.uint8), np.full(3, np.nan), np.zeros(3))
    z = np.random.default_rng(0).normal(size=(3, 120))
    groups = Groups(code, tuple(map(str, range(60))))
    fit, told = RelatedRows.of(groups, z, seen, kinds)
    assert fit.two.tolist() == [True, True, False]
    for d in range(2):
        assert np.flatnonzero(told.far[d]).tolist() == list(range(10))
    assert not told.far[2].any()
    new = Groups(np.array([0, 15, 60]), groups.labels)  # of nobody, of a mate, and a new group
    found = fit.of_new(z, seen, np.full((3, 3), np.nan), np.full(3, -1), new, kinds)
    assert found.far.tolist() == [[True, False, True], [True, False, True], [False] * 3]
    near, far = fit.kinds(kinds)  # twins that are drawn together are told of mates where they can
    assert (near.about.tolist(), far.about.tolist()) == ([0, 1, 2], [-1, -1, 2])
    same, told = RelatedRows.of(groups, z, seen, kinds, same=(1,))
    assert same.two.tolist() == [True, False, False]


def test_a_new_row_is_told_what_it_would_be_told_in_the_fit(seed: int) -> None:
    code, z, seen = cells(seed)
    fit, told, _ = GroupMates.of(code, z, seen, KINDS)
    rows = np.flatnonzero(seen.min(axis=0) == 0)
    new = np.where(seen[:, rows] != 0, z[:, rows], np.nan)
    found, _ = fit.of_new(z, seen, new, rows, code[rows], KINDS)
    gone = np.isnan(new)
    assert np.allclose(found[gone], told[:, rows][gone])
    moved, known = new.copy(), int(np.flatnonzero(~gone[0])[0])
    moved[0, known] = 9.0
    again, _ = fit.of_new(z, seen, moved, rows, code[rows], KINDS)
    assert again[0, known] == found[0, known]
    assert not np.array_equal(again[0], found[0])


def test_a_new_row_alone_in_its_group_is_told_of_all_that_the_fit_has_of_it(seed: int) -> None:
    code, z, seen = cells(seed)
    fit, _, _ = GroupMates.of(code, z, seen, KINDS)
    nobody = np.full(G, -1)
    gone, known = (
        fit.of_new(z, seen, new, nobody, np.arange(G), KINDS)[0]
        for new in (np.full((4, G), np.nan), np.ones((4, G)))
    )
    assert np.array_equal(gone, known)


def test_with_both_roles_a_group_tells_of_its_own_cells_alone(seed: int) -> None:
    code, z, seen = cells(seed)
    time = np.random.default_rng(seed).permutation(N).astype(float)
    groups = Groups(code, tuple(map(str, range(G))), time)
    fit, told = RelatedRows.of(groups, z, seen, KINDS)
    near, far = fit.kinds(KINDS)
    assert near.about[:8].tolist() == [0, 1, 2, 3, -1, -1, -1, -1]
    assert far.about[:8].tolist() == [-1, -1, -1, -1, 0, 1, 2, 3]
    assert near.levels[4:12].tolist() == [0, 0, 0, 3, 0, 0, 0, 3]
    assert fit.neighbours is not None
    before_after = np.flatnonzero(near.about == 0)[[2, 3]]
    for n in range(N):
        own = z[0, (seen[0] != 0) & (code == code[n])]
        heard = np.append(own, fit.neighbours.shape[0, 2]).astype(np.float32)
        assert np.isin(told.inputs[before_after, n], heard).all()
    rows = np.flatnonzero(seen[0] == 0)
    new = np.where(seen[:, rows] != 0, z[:, rows], np.nan)
    found = fit.of_new(z, seen, new, rows, groups.take(rows), KINDS)
    at = [0, *before_after]
    assert np.allclose(found.inputs[at], told.inputs[np.ix_(at, rows)])


def test_in_time_as_many_observed_cells_are_told_of_nobody_as_missing_ones() -> None:
    rng = np.random.default_rng(0)
    code, time = np.repeat(np.arange(100), 5), np.tile(np.arange(5.0), 100)
    seen = np.ones((2, 500), np.uint8)
    seen[:, code < 30] = 0
    seen[1, 202::20] = 0  # near ones, of the first column none
    seen[1, 4:150:5] = 1  # far ones beside a mate
    seen[1, 54:150:5] = 0
    z = 3.0 * rng.normal(size=(2, 100))[:, code] + rng.normal(size=(2, 500))
    kinds = Kinds(np.zeros(2, np.int32), np.zeros(2, np.uint8), np.full(2, np.nan), np.zeros(2))
    groups = Groups(code, tuple(map(str, range(100))), time)
    fit, told = RelatedRows.of(groups, z, seen, kinds)
    assert fit.two.tolist() == [False, True]
    assert fit.mates is not None
    nobody = told.inputs[:4] == fit.mates.prior[[0, 1, 0, 1], 1].astype(np.float32)[:, None]
    share = [nobody[k, seen[k % 2] != 0].mean() for k in range(4)]  # to near cells, to far ones
    far = told.far[1]
    alone = ~np.isin(code, code[seen[1] != 0])
    assert share[0] == 1.0
    assert share[1] < 0.05  # of groups with a single cell
    assert share[3] == pytest.approx((far & alone).sum() / far.sum(), abs=0.06)


def table_in_groups(seed: int, groups: int = 24, size: int = 10) -> tuple[pa.Table, Array, Array]:
    """Return levels of groups beside a curve that all of them follow, and which are missing."""
    rng = np.random.default_rng(seed)
    code = np.repeat(np.arange(groups), size)
    x = rng.uniform(-2.0, 2.0, size=code.size)
    y = 2.0 * rng.normal(size=groups)[code] + 2.0 * np.abs(x) + 0.2 * rng.normal(size=code.size)
    gone = rng.random(code.size) < 0.3
    columns = {"who": [f"g{c}" for c in code], "x": x, "y": pa.array(y, mask=gone)}
    columns["sex"] = pa.array(np.array(["f", "m"])[code % 2], mask=rng.random(code.size) < 0.1)
    return pa.table(columns), y, gone


TYPES = {"columns": {"who": "group", "x": "real", "y": "real", "sex": "categorical"}}
SHORT = {"warmup": 20, "draws": 30, "seed": 0}


def error(found: pa.Table, y: Array, gone: Array) -> float:
    off = found.column("y").to_numpy()[gone] - y[gone]
    return float(np.sqrt(np.mean(off**2)) / y.std())


def test_a_fit_knows_which_columns_are_of_groups() -> None:
    problem = prepare(table_in_groups(0)[0], TYPES, model="forest", seed=0)[0]
    draw = chains.start(problem, 0, 0).keep().latent
    assert problem.group_level == (2,)
    assert (draw.related.mates.prior[:, 0] > 0).tolist() == [True, True, False]


def test_groups_help_trees_and_trees_help_groups(seed: int) -> None:
    table, y, gone = table_in_groups(seed)
    without = {"columns": {**TYPES["columns"], "who": "ignore"}}
    trees = error(impute(table, TYPES, model="forest", chains=3, **SHORT).table, y, gone)
    for types, model in ((without, "forest"), (TYPES, "glfm")):
        other = error(impute(table, types, model=model, chains=3, **SHORT).table, y, gone)
        assert trees < 0.8 * other
    best = error(impute(table, TYPES, seed=0).table, y, gone)
    assert best < 1.1 * trees


@pytest.mark.parametrize("time", [False, True])
def test_intervals_hold_where_whole_groups_are_missing(time: bool) -> None:
    """Trees that are told levels of groups do not take that of all groups for one of them."""
    held = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        code = np.repeat(np.arange(60), 6)
        z = 0.95 * rng.normal(size=(3, 60))[:, code] + 0.3 * rng.normal(size=(3, 360))
        gone = rng.random((3, 60))[:, code] < 0.25
        columns = {f"y{k}": pa.array(z[k], mask=gone[k]) for k in range(3)}
        types = {"who": "group", **dict.fromkeys(columns, "real")}
        columns |= {"who": [f"g{c}" for c in code], "day": np.tile(np.arange(6.0), 60)}
        types["day"] = {"type": "real", "role": "time"} if time else "ignore"
        found = impute(pa.table(columns), {"columns": types}, model="forest", chains=2, **SHORT)
        for part in found.columns:
            k, rows = int(part.encoded.column.name[1]), part.marginal.rows
            low, _, high = part.marginal.quantiles.T
            held.append((z[k, rows] >= low) & (z[k, rows] <= high))
    assert np.mean(np.concatenate(held)) > 0.8


def test_twins_that_are_missing_together_are_told_of_their_group() -> None:
    rng = np.random.default_rng(0)
    code = np.repeat(np.arange(40), 8)
    y = 2.0 * rng.normal(size=40)[code] + 0.5 * rng.normal(size=320)
    gone = rng.random(320) < 0.3
    twins = {name: pa.array(y + 0.1 * rng.normal(size=320), mask=gone) for name in ("y", "twin")}
    table = pa.table({"who": [f"g{c}" for c in code], "x": rng.normal(size=320), **twins})
    types = {"columns": {"who": "group", "x": "real", "y": "real", "twin": "real"}}
    found = impute(table, types, model="forest", chains=2, **SHORT).table
    assert error(found, y, gone) < 0.5


def test_trees_that_knew_every_group_leave_new_groups_to_other_models() -> None:
    table, _, _ = table_in_groups(0)
    problem = prepare(table, TYPES, model="forest", seed=0)[0]
    draw, model = chains.start(problem, 0, 0).keep().latent, problem.model
    assert problem.groups is not None
    rows = np.arange(0, table.num_rows, 10)
    few = problem.take(rows)
    xs = tuple(np.full_like(x, np.nan) if d == 1 else x for d, x in enumerate(few.xs))
    known = replace(few, xs=xs)
    assert model.reaches(draw, known)
    code = few.groups.code
    for n, reached in ((1, True), (4, False)):  # of 24 missing cells of y, and some of sex
        groups = replace(few.groups, code=np.where(np.arange(rows.size) < n, code + 24, code))
        assert model.reaches(draw, replace(known, groups=groups)) == reached
    filled = few.xs[1].copy()
    filled[np.isnan(filled)] = 0.0
    strangers = replace(few, xs=(few.xs[0], filled, few.xs[2]), groups=few.groups.as_new())
    assert model.reaches(draw, strangers)  # of sex, a column of groups, nothing was ever told


@pytest.mark.parametrize(("name", "wrong"), [("two", 0), ("two", 1), ("is_far", 1), ("root", -1)])
def test_a_draw_without_trees_of_its_cells_is_refused(name: str, wrong: int) -> None:
    code, z, seen = cells(0)
    seen[0, code < 4] = 0
    columns = {f"c{d}": pa.array(z[d], mask=seen[d] == 0) for d in range(2)}
    table = pa.table({"who": [f"g{c}" for c in code], **columns})
    types = {"columns": {"who": "group", "c0": "real", "c1": "real"}}
    problem = prepare(table, types, model="forest", seed=0)[0]
    draw = chains.start(problem, 0, 0).keep().latent
    sizes = Sizes(rows=N, latent=2, spans=((0, 1), (1, 2)))
    assert draw.related.two.tolist() == [True, False]
    arrays = draw.pack()
    ForestDraw.unpack(arrays, sizes)
    with pytest.raises(ValueError, match="no trees"):
        ForestDraw.unpack({**arrays, name: np.full_like(arrays[name], wrong)}, sizes)


def test_a_saved_fit_knows_its_groups_and_any_order_of_rows(tmp_path: Path) -> None:
    table, y, gone = table_in_groups(1)
    fit, new = tmp_path / "a.glfm", np.arange(0, table.num_rows, 5)
    rest = np.setdiff1d(np.arange(table.num_rows), new)
    impute(table.take(rest), TYPES, model="forest", chains=3, save=fit, **SHORT)
    one, two = (impute(table.take(new), fit=fit, seed=3, threads=k).table for k in (1, 2))
    assert one.equals(two)
    strangers = table.take(new).set_column(0, "who", [[f"n{k}" for k in new]])
    known, unknown = (
        error(impute(rows, fit=fit, seed=3).table, y[new], gone[new])
        for rows in (table.take(new), strangers)
    )
    assert known < 0.7 * unknown


def test_a_resumed_run_is_the_run_that_was_not_interrupted(tmp_path: Path) -> None:
    table, _, _ = table_in_groups(2, 12)
    how = {"model": "forest", "chains": 2, "warmup": 8, "seed": 0}
    whole = impute(table, TYPES, draws=24, save=tmp_path / "whole.glfm", **how)
    impute(table, TYPES, draws=12, save=tmp_path / "half.glfm", **how)
    resumed = impute(table, resume=tmp_path / "half.glfm", draws=24)
    assert resumed.table.equals(whole.table)
