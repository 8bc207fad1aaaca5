"""Questions asked of some rows only: conditions that rest on others, and what they tell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from glfm_cli import impute
from glfm_cli.encoding import bounds_of, encode, rows_inside, settle, with_known
from glfm_cli.encoding.data import Data
from glfm_cli.errors import SchemaError
from glfm_cli.inference.joint_draws import JointDraws
from glfm_cli.schema import Schema
from glfm_cli.schema.formula import parse_formula

SHORT: dict[str, Any] = {"model": "bsvd", "chains": 2, "warmup": 20, "draws": 10, "threads": 1}
EMPLOYED = {
    # Names columns that come later.
    "paid": {"type": "categorical", "only_if": 'works == "yes" and hours > 40'},
    "hours": {"type": "count", "only_if": 'works == "yes"'},
    "works": "categorical",
}


def known(columns: dict[str, Any], types: dict[str, Any]) -> Data:
    return with_known(encode(pa.table(columns), Schema.from_dict({"columns": types})))


def missing(data: Data, name: str) -> list[int]:
    found = next(one for one in data.columns if one.column.name == name)
    return list(np.flatnonzero(found.requested & ~found.observed))


@pytest.mark.parametrize(
    ("text", "x", "y", "truth"),
    [
        ("x > 1 and y > 1", [0, None, 2, 2, None], [None, 0, None, 2, None], "0 0 - 1 -"),
        ("x > 1 or y > 1", [0, None, 2, 0, None], [None, 2, None, 0, 0], "- 1 1 0 -"),
        ("not (x > 1 and y > 1)", [0, None, 2, 2], [None, 0, None, 2], "1 1 - 0"),
        ("not (x > 1 or not y > 1)", [0, None, 2, 0], [2, 0, None, None], "1 0 0 -"),
        ("0 < x < 3 and y == 1", [None, 3, 2], [0, None, 1], "0 0 1"),
    ],
)
def test_what_is_not_known_decides_nothing_that_is_decided(
    text: str, x: list[float | None], y: list[float | None], truth: str
) -> None:
    cells = {name: np.array(values, dtype=float) for name, values in (("x", x), ("y", y))}
    unknown = {name: np.isnan(values) for name, values in cells.items()}
    absent = {name: np.zeros(values.size, bool) for name, values in cells.items()}
    found = parse_formula(text).truth(cells, (unknown, absent))
    assert " ".join("-" if np.isnan(one) else f"{one:.0f}" for one in found) == truth


@pytest.mark.parametrize("text", ["x > 1", "not x > 1", "x != 1", "not (x == 1 or x > 4)"])
def test_nothing_is_true_of_a_column_without_a_value(text: str) -> None:
    gone = {"x": np.array([True])}
    assert parse_formula(text).truth({"x": np.array([np.nan])}, (gone, gone)) == 0.0


def test_a_question_after_one_that_was_not_asked_was_not_asked() -> None:
    columns = {
        "paid": ["yes", None, None, None, None, "no"],
        "hours": ["45", None, "39", None, "50", "60"],
        "works": ["yes", "no", "yes", "yes", "yes", "yes"],
    }
    for condition in ('works == "yes" and hours > 40', "hours > 40", "not (hours <= 40)"):
        types = EMPLOYED | {"paid": {"type": "categorical", "only_if": condition}}
        data = known(columns, types)
        assert missing(data, "hours") == [3]
        assert missing(data, "paid") == [3, 4]
        assert list(rows_inside(data.columns)[0]) == [True, False, False, True, True, True]
        for hours, put_in in ((30.0, [np.nan, 1.0]), (41.0, [0.0, 1.0])):
            fills = settle(data, {0: np.array([0.0, 1.0]), 1: np.array([hours])})
            np.testing.assert_array_equal(fills[0], put_in)


def test_conditions_rest_on_stated_values() -> None:
    columns = {"smokes": ["y", "n", "y"], "cigs": ["20", None, "5"], "brand": ["a", None, None]}
    cigs = {"type": "count", "only_if": 'smokes == "y"', "otherwise": "0"}
    brand = {"type": "categorical", "levels": ["a", "b"], "only_if": "cigs > 9"}
    types = {"smokes": "categorical", "cigs": cigs, "brand": brand}
    assert missing(known(columns, types), "brand") == []


def test_an_answer_tells_of_the_questions_that_led_to_it() -> None:
    columns = {
        "paid": ["yes", "no", None, "no"],
        "hours": [None, "50", None, None],
        "works": [None, "yes", "no", "yes"],
        "age": ["20", None, None, "30"],
    }
    data = known(columns, EMPLOYED | {"age": "count"})
    assert missing(data, "works") == []  # who is paid for long hours works
    paid = {"type": "categorical", "only_if": "hours > 40"}  # who works is told by the hours
    assert missing(known(columns, EMPLOYED | {"age": "count", "paid": paid}), "works") == []
    found = bounds_of(data)
    assert {d: ends.tolist() for d, ends in found.items()} == {1: [[41.0, np.inf], [41.0, np.inf]]}


@pytest.mark.parametrize(
    ("type_", "condition", "least", "most"),
    [
        ("count", "x > 2", 3, np.inf),
        ("count", "x >= 2.5 and 7 >= x", 3, 7),
        ("count", "2 < x < 7.5", 3, 7),
        ("count", "x != 0", 1, np.inf),
        ("count", "x == 4", 4, 4),
        ("positive", "x > 2", np.nextafter(2, 3), np.inf),
        ("real", "x <= -1 and x < 5", -np.inf, -1),
    ],
)
def test_missing_numbers_lie_where_the_condition_says(
    type_: str, condition: str, least: float, most: float
) -> None:
    columns = {"x": [None, "5", "8", None], "y": ["1", "2", None, None]}
    data = known(columns, {"x": type_, "y": {"type": "real", "only_if": condition}})
    np.testing.assert_array_equal(bounds_of(data)[0], [[least, most], [np.nan, np.nan]])


def test_no_version_has_an_answer_to_what_was_not_asked() -> None:
    rng = np.random.default_rng(1)
    n = 120
    kids = rng.poisson(0.8, n)
    ages = [[str(rng.integers(0, 18))] if k else [None] for k in kids]
    gone = rng.random((2, n)) < 0.25
    columns = {
        "kids": [None if g else str(k) for k, g in zip(kids, gone[0], strict=True)],
        "youngest": [None if g else a[0] for a, g in zip(ages, gone[1], strict=True)],
        "school": [None] * n,
    }
    columns["school"] = [
        None if a is None or rng.random() < 0.2 else "yn"[int(a) > 5] if int(a) > 3 else None
        for a in columns["youngest"]
    ]
    types = {
        "kids": "count",
        "youngest": {"type": "count", "only_if": "kids > 0", "bounds": [0, 17]},
        "school": {"type": "categorical", "only_if": "youngest > 3"},
    }
    done = impute(pa.table(columns), {"columns": types}, seed=1, **SHORT)
    for made in (done.table, *done.multiple(5).tables()):
        for row in made.to_pylist():
            assert (row["youngest"] not in (None, "")) == (int(row["kids"]) > 0)
            asked = row["youngest"] not in (None, "") and int(row["youngest"]) > 3
            assert (row["school"] not in (None, "")) == asked


def test_levels_that_leave_no_place_for_an_answer_are_not_put_in() -> None:
    rng = np.random.default_rng(3)
    n = 150
    level = rng.integers(0, 3, n)  # of those asked, the middle one is half as frequent as the last
    level[: n // 2] = 2
    gone = rng.random(n) < 0.3
    columns = {
        name: [None if g else texts[k] for k, g in zip(level, gone, strict=True)]
        for name, texts in (("smokes", ("no", "past", "now")), ("often", "123"))
    } | {
        "x": [f"{one:.3f}" for one in rng.normal(size=n)],
        "cigs": [str(rng.poisson(9)) if k else None for k in level],
    }
    for name, type_ in (("smokes", "categorical"), ("often", "ordinal")):
        other = {"smokes": "often", "often": "smokes"}[name]
        own = {"smokes": 'smokes in ["past", "now"]', "often": 'often in ["2", "3"]'}[name]
        cigs = {"type": "count", "only_if": own}
        types = {name: type_, other: "ignore", "x": "real", "cigs": cigs}
        done = impute(pa.table(columns), {"columns": types}, seed=1, **SHORT)
        part = next(p for p in done.columns if p.encoded.column.name == name)
        asked = np.array(columns["cigs"])[part.marginal.rows] != None  # noqa: E711
        levels = part.encoded.levels
        none = levels.index("no" if name == "smokes" else "1")
        p = part.marginal.probabilities
        assert p is not None
        assert asked.sum() > 20
        assert (~asked).sum() > 2
        assert np.all(p[asked, none] == 0.0)
        np.testing.assert_allclose(p.sum(axis=1), 1.0)
        assert np.all(p[~asked, none] > 0.0)
        if name == "often":
            np.testing.assert_allclose(part.marginal.mean, p @ [0, 1, 2])
            assert np.all(part.marginal.quantiles[asked, 0] == 1)
        shares = []
        for made in (done.table, *done.multiple(20).tables()):
            drawn = np.array(made[name].to_pylist())[part.marginal.rows[asked]]
            assert levels[none] not in drawn
            shares.append(np.mean(drawn == levels[np.argmax(p[asked].sum(axis=0))]))
        assert abs(np.mean(shares[1:]) - p[asked].max(axis=1).mean()) < 0.08


def test_conditions_go_in_no_circle() -> None:
    types = {
        "a": {"type": "count", "only_if": "b > 0"},
        "b": {"type": "count", "only_if": "a > 0"},
    }
    with pytest.raises(SchemaError, match="the conditions go in a circle"):
        known({"a": ["1", None], "b": ["1", None]}, types)


def test_cells_that_no_condition_holds_keep_the_correction_of_forecasts() -> None:
    rng = np.random.default_rng(5)
    x = np.exp(rng.normal(size=160))
    gone = rng.random(160) < 0.3
    columns = {
        "z": [f"{one:.3f}" for one in np.log(x) + rng.normal(size=160)],
        "x": [None if g else f"{one:.3f}" for one, g in zip(x, gone, strict=True)],
        "y": [f"{one:.2f}" if k % 9 == 0 and one > 2 else None for k, one in enumerate(x)],
    }
    types = {"z": "real", "x": "positive", "y": {"type": "positive", "only_if": "x > 2"}}
    table, schema = pa.table(columns), Schema.from_dict({"columns": types})
    done = impute(table, schema, seed=1, **(SHORT | {"model": "glfm"}))
    posterior, data = done.run.posterior, done.data
    (ends,) = bounds_of(data).values()
    held = ~np.isnan(ends[:, 0])
    assert 0 < held.sum() < held.size
    both = [JointDraws(posterior, data.missing, one) for one in ({1: ends}, {})]
    assert all(1 in one.quantiles for one in both)
    drawn = [one.draw(np.random.default_rng(k))[1] for one in both[:1] for k in range(60)]
    assert np.min(np.array(drawn)[:, held]) > 2.0
    free = [one.draw(np.random.default_rng(k))[1][~held] for one in both for k in range(60)]
    spread = [np.std(np.log(free[:60])), np.std(np.log(free[60:]))]
    assert abs(spread[0] / spread[1] - 1.0) < 0.05
