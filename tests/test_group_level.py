"""Columns that are the same in all rows of a group: schools' own in a table of pupils."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glfm_cli import impute, load_fit, suggest
from glfm_cli.arrays import Array, Groups
from glfm_cli.completion import prepare
from glfm_cli.encoding import encode, first_of_group, settle, with_known
from glfm_cli.guess import guess_schema
from glfm_cli.guess.levels import is_group_level
from glfm_cli.guess.skips import is_known_once
from glfm_cli.inference.hidden_cells import without_cells
from glfm_cli.inference.hiding import TIMES, chosen_cells
from glfm_cli.inference.sampling import sample
from glfm_cli.schema import Schema

SHORT: dict[str, Any] = {"model": "bsvd", "chains": 2, "warmup": 20, "draws": 5, "threads": 1}
TYPES = {
    "columns": {
        "school": "group",
        "score": "real",
        "size": "count",
        "rural": "categorical",
        "mark": "real",
    }
}


def schools(seed: int = 0, n_schools: int = 30, n: int = 6) -> tuple[pa.Table, dict[str, Array]]:
    """Return pupils, of whose schools a third has no size, a third one in half of the rows."""
    rng = np.random.default_rng(seed)
    school = np.repeat(np.arange(n_schools), n)
    size = rng.integers(50, 400, n_schools)
    rural = np.arange(n_schools) % 2
    score = (size / 100)[school] + rng.standard_normal(school.size)
    part = school % 3
    unknown = (part == 0) | ((part == 1) & (np.arange(school.size) % 2 == 0))
    table = {
        "school": [f"s{g}" for g in school],
        "score": pa.array(score, mask=rng.random(school.size) < 0.2),
        "size": pa.array(size[school], mask=unknown),
        "rural": pa.array(np.array(["no", "yes"])[rural[school]], mask=unknown),
        "mark": pa.array(rng.standard_normal(school.size), mask=unknown),
    }
    return pa.table(table), {"school": school, "size": size[school], "part": part}


def test_rows_of_a_group_get_one_value_in_every_version() -> None:
    table, true = schools()
    found = impute(table, TYPES, **SHORT)
    versions = [*found.multiple(4).tables(), found.table]
    for version in versions:
        size = version["size"].to_numpy()
        assert np.array_equal(size[true["part"] > 0], true["size"][true["part"] > 0])
        for name in ("size", "rural"):
            values = version[name].to_numpy(zero_copy_only=False).reshape(30, 6)
            assert np.all(values == values[:, :1])
        assert np.ptp(version["mark"].to_numpy()[:6]) > 0
    drawn = np.array([v["size"].to_numpy()[true["part"] == 0] for v in versions[:4]])
    assert np.ptp(drawn, axis=0).max() > 0  # of a school that says nothing nothing is certain
    said = "'size', 'rural': constant within each group, and completed so"
    assert found.warnings.count(said) == 1


def test_a_column_known_in_one_row_of_each_group_is_named() -> None:
    table, true = schools()
    first = np.arange(len(true["size"])) % 6 == 2
    late = {
        "once": (first, True),
        "rarely": (first & (true["school"] % 3 == 0), False),
        "twice": (first | (np.arange(first.size) == 0), False),
    }
    for name, (known, named) in late.items():
        one = table.append_column(name, pa.array(true["size"], mask=~known))
        types = {"columns": {**TYPES["columns"], name: "count"}}
        warnings = impute(one, types, **SHORT).warnings
        begins = f"'{name}': known in one row of each group, and completed in its other rows"
        assert sum(said.startswith(begins) for said in warnings) == named


def test_rows_without_others_in_their_group_say_nothing_of_it() -> None:
    alone, pairs = np.arange(20), np.repeat(np.arange(20, 40), 2)
    group = np.concatenate([alone, pairs])
    for n, expected in ((9, False), (12, True)):
        there = np.isin(np.arange(60), [*range(20), *range(20, 20 + 2 * n, 2)])
        assert is_known_once(there, group) is expected


def test_uncertainty_is_that_of_the_group() -> None:
    table, true = schools()
    cells = impute(table, TYPES, **SHORT).cells().to_pydict()
    row, column = np.array(cells["row"]) - 1, np.array(cells["column"])
    here = column == "size"
    part, sd = true["part"][row], np.array(cells["sd"], dtype=float)
    assert np.all(sd[here & (part == 1)] == 0.0)
    assert np.all(sd[here & (part == 0)] > 0.0)
    for name in ("mean", "sd", "lower", "upper"):
        of_school = np.array(cells[name], dtype=float)[here & (part == 0)].reshape(-1, 6)
        assert np.all(of_school == of_school[:, :1])
    level = column == "rural"
    sure = np.array(cells["probability"], dtype=float)
    assert np.all(sure[level & (part == 1)] == 1.0)
    assert np.all(sure[level & (part == 0)] < 1.0)


def test_ends_of_what_is_certain_have_all_its_digits() -> None:
    table, true = schools()
    area = pa.array(np.sqrt(true["size"]), mask=table["size"].is_null().to_numpy())
    types = {"columns": {**TYPES["columns"], "area": "real"}}
    cells = impute(table.append_column("area", area), types, **SHORT).cells().to_pandas()
    sure = cells[(cells.column == "area") & (cells.sd == 0.0)]
    assert len(sure) == 30
    assert sure.lower.equals(sure.estimate)
    assert sure.upper.equals(sure.estimate)


def test_new_rows_have_what_their_fit_found(tmp_path: Path) -> None:
    table, _ = schools()
    fit = str(tmp_path / "schools.glfm")
    impute(table, TYPES, **SHORT, save=fit)
    new = pa.table(
        {
            "school": ["n1", "n1", "n1", "n2", "n2"],
            "score": [1.0, 2.0, None, 3.0, 0.5],
            "size": pa.array([None, 210, None, None, None], pa.int64()),
            "rural": ["no", None, None, None, None],
            "mark": [0.1, None, None, 0.2, None],
        }
    )
    for version in impute(new, fit=load_fit(fit)).multiple(3).tables():
        assert version["size"].to_pylist()[:3] == [210, 210, 210]
        assert version["rural"].to_pylist()[:3] == ["no", "no", "no"]
        assert version["size"][3] == version["size"][4]
        assert len(set(version["mark"].to_pylist())) == 5


@pytest.mark.parametrize("rare", [0, 1, 3])
def test_values_that_agree_by_chance_are_not_those_of_groups(rare: int) -> None:
    code = np.repeat(np.arange(40), 3)
    x = np.zeros(code.size)
    x[: 3 * rare] = 1.0  # rare whole groups; up to 3 of 40 are expected to differ in fewer than 10
    assert not is_group_level(x, code)


def test_a_single_value_in_each_group_says_nothing() -> None:
    x = np.full(120, np.nan)
    x[::3] = np.arange(40)
    assert not is_group_level(x, np.repeat(np.arange(40), 3))


@settings(max_examples=50)
@given(seed=st.integers(0, 10**6), n_groups=st.integers(12, 40), size=st.integers(2, 5))
def test_one_differing_row_is_enough(seed: int, n_groups: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    order = rng.permutation(n_groups * size)
    code = np.repeat(np.arange(n_groups), size)[order]
    x = code * 1.5
    x[rng.random(x.size) < 0.1] = np.nan
    several = np.bincount(code[~np.isnan(x)], minlength=n_groups) > 1
    assert is_group_level(x, code) or several.sum() <= 10
    if several.any():
        x[rng.choice(np.flatnonzero(several[code] & ~np.isnan(x)))] += 1.0
        assert not is_group_level(x, code)


def test_few_groups_are_enough_where_each_has_a_value_of_its_own() -> None:
    code = np.repeat(np.arange(5), 20)
    area = np.where(code == 4, np.nan, np.array([8.5, 40, 138.6, 17, 0])[code])
    assert is_group_level(area, code)
    assert not is_group_level(np.where(code < 2, 1.0, 2.0), code)  # by chance, or slowly changing
    assert not is_group_level(area[::10], code[::10])
    area[3] = 9.0
    assert not is_group_level(area, code)


@pytest.mark.parametrize("n_stations", [6, 14])
def test_levels_that_are_groups_of_which_some_have_no_value_are_named(n_stations: int) -> None:
    rng = np.random.default_rng(n_stations)
    station = np.repeat(np.arange(n_stations), 20)
    forest = rng.uniform(5, 90, n_stations)
    ph = 7 + 0.01 * forest[station] + 0.1 * rng.standard_normal(station.size)
    table = pa.table(
        {
            "station": [f"S{g}" for g in station],
            "forest": pa.array(forest[station], mask=station == 2),
            "ph": pa.array(ph, mask=rng.random(ph.size) < 0.1),
        }
    )
    types = {"columns": {"station": "categorical", "forest": "positive", "ph": "positive"}}
    said = "'forest': the same in all rows of each 'station', of which some have no value, "
    (warning,) = (one for one in impute(table, types, **SHORT).warnings if one.startswith(said))
    assert "give 'station' `role: group`" in warning
    types["columns"]["station"] = "group"
    warnings = impute(table, types, **SHORT).warnings
    assert "'forest': constant within each group, and completed so" in warnings
    assert not any(one.startswith(said) for one in warnings)
    hint = guess_schema(table).skips["forest"]
    assert hint.startswith("the same in all rows of each station, of which some have none; ")
    assert hint.endswith('only_if: station != "S2"')


def test_cells_are_alike_within_groups_alone() -> None:
    table, true = schools(seed=3)
    data = with_known(encode(table, Schema.from_dict(TYPES)))
    assert isinstance(data.groups, Groups)
    fills = {d: np.arange(rows.size) + 0.5 for d, rows in data.missing.items()}
    done = settle(data, fills)
    d = next(d for d, e in enumerate(data.columns) if e.column.name == "size")
    rows = data.missing[d]
    unknown = true["part"][rows] == 0
    first = np.searchsorted(true["school"][rows], true["school"][rows])
    np.testing.assert_array_equal(done[d][unknown], fills[d][first][unknown])
    np.testing.assert_array_equal(done[d][~unknown], true["size"][rows][~unknown])
    assert sorted(first_of_group(data)) == [d, d + 1]


def test_draws_of_a_group_without_a_value_vary_as_schools_do() -> None:
    rng = np.random.default_rng(1)
    school = np.repeat(np.arange(60), 5)
    tuition = rng.standard_normal(60)
    score = 0.5 * tuition[school] + rng.standard_normal(school.size)
    unknown = school % 3 == 0
    fee = pa.array(tuition[school], mask=unknown)
    table = pa.table({"school": school, "score": score, "fee": fee})
    types = {"columns": {"school": "group", "score": "real", "fee": "real"}}
    found = impute(table, types, **SHORT | {"draws": 20, "warmup": 40})
    fees = np.array([v["fee"].to_numpy()[unknown][::5] for v in found.multiple(20).tables()])
    # What five scores of a school tell leaves an sd of 0.67; corrected by cells beside known ones,
    # whose forecasts are too modest, it was 0.2.
    assert 0.5 < np.sqrt(np.mean(np.var(fees, axis=0, ddof=1))) < 1.1


def test_forecasts_that_correct_are_of_whole_groups_once_each() -> None:
    problem, data, plan = prepare(schools(n_schools=60)[0], TYPES, **SHORT)
    d = next(d for d, e in enumerate(data.columns) if e.column.name == "size")
    assert problem.group_level == (d, d + 1)
    assert problem.groups is not None
    posterior, seen, n_hidden = sample(problem, plan).posterior, problem.seen[:, d], 0
    for time in range(TIMES):
        rows, chosen = chosen_cells(problem, time)
        code = problem.groups.code[rows]
        groups = np.unique(code[chosen[:, d]])
        assert np.array_equal(chosen[:, d], np.isin(code, groups) & seen[rows])
        at, x = without_cells(posterior, problem, time)[1][d]
        assert np.array_equal(np.sort(code[at]), groups)
        np.testing.assert_array_equal(x, problem.xs[d][rows][at])
        n_hidden += groups.size
    assert 5 < n_hidden < 35  # half of 40 schools


def test_a_group_is_asked_for_once() -> None:
    table, true = schools()
    found = suggest(table, TYPES, count=12, columns=["size"], **SHORT).to_table()
    row = found["row"].to_numpy() - 1
    assert np.all(true["part"][row] == 0)
    assert len(set(true["school"][row])) == found.num_rows == 10
