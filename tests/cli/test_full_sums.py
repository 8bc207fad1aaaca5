"""Parts of a sum that known parts fill are 0, whatever rounding leaves of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from glfm_cli.io import read_table

NAMES = ("quartz", "feldspar", "calcite", "mica", "clay", "total")
TYPES = """rest: {type: positive, parts_of: total}
columns:
  clay: {type: positive, parts_of: total, atom: 0}
  total: positive
"""
SHORT = ("--model", "glfm", "--chains", "1", "--warmup", "3", "--draws", "3",
         "--set", "recalibrate=no")  # fmt: skip


def minerals() -> list[str]:
    """Return sixty rows of percentages with one decimal, zeros among them, and their sum."""
    rng = np.random.default_rng(1)
    share = np.exp(rng.normal(size=(60, 5)))
    share[:, 3:][rng.random((60, 2)) < 0.4] = 0.0
    tenths = np.floor(1000 * share / share.sum(axis=1, keepdims=True))
    tenths[:, 0] += 1000 - tenths.sum(axis=1)
    return [",".join(f"{x / 10:.1f}" for x in row) + ",100" for row in tenths]


def completed(desk: Any, here: Callable[..., Any], rows: list[str], types: str = TYPES) -> Any:
    """Return the last rows of a table as completed, and what was said."""
    desk.put("m.csv", "\n".join([",".join(NAMES), *minerals(), *rows]) + "\n")
    desk.put("types.yaml", types)
    said = here("impute", "m.csv", "--types", "types.yaml", "-o", "out.csv", *SHORT)
    assert said.status == 0, said.stderr
    made = read_table(desk.folder / "out.csv").slice(60).to_pylist()
    return [[float(row[name]) for name in NAMES] for row in made], said


def test_missing_parts_of_a_full_sum_are_zero(desk: Any, here: Callable[..., Any]) -> None:
    rows = ["59.9,17.3,17.9,4.9,,100", "89.5,10.5,0.0,0.0,,100", "100.0,,,0.0,,100"]
    made, said = completed(desk, here, rows)
    assert made[0] == [59.9, 17.3, 17.9, 4.9, 0.0, 100.0]
    assert made[1] == [89.5, 10.5, 0.0, 0.0, 0.0, 100.0]
    assert made[2] == [100.0, 0.0, 0.0, 0.0, 0.0, 100.0]
    assert "less than" not in said.stderr


def test_what_is_left_is_no_rounding_however_small(desk: Any, here: Callable[..., Any]) -> None:
    made, _ = completed(desk, here, ["99.9,0.05,0.04,0.0099999,,100", "1e9,0,0,,0,1000000000.01"])
    np.testing.assert_allclose(made[0][4], 1e-7, rtol=1e-4)
    np.testing.assert_allclose(made[1][3], 0.01, rtol=1e-4)


def test_parts_beyond_their_sum_are_told(desk: Any, here: Callable[..., Any]) -> None:
    made, said = completed(desk, here, ["80.0,30.0,,,,100", "60.1,40.0,,,,100"])
    assert [row[2:5] for row in made] == [[0.0, 0.0, 0.0]] * 2
    # A tenth too much is what rounding does to five parts.
    (line,) = [one for one in said.lines("Warning") if "less than the known parts" in one]
    assert "'total'" in line
    assert "(row 61)" in line


def test_parts_that_may_be_negative_are_not_zero(desk: Any, here: Callable[..., Any]) -> None:
    signed = TYPES.replace("  clay: {type: positive, parts_of: total, atom: 0}",
                           "  clay: {type: real, parts_of: total}")  # fmt: skip
    made, said = completed(desk, here, ["80.0,30.0,0.0,0.0,,100"], signed)
    np.testing.assert_allclose(made[0][4], -10.0)
    assert "less than" not in said.stderr


def test_the_result_of_a_formula_is_zero_where_rounding_is_all_of_it(
    desk: Any, here: Callable[..., Any]
) -> None:
    rest = "total - quartz - feldspar - calcite - mica"
    types = f"rest: positive\ncolumns:\n  clay: {{type: positive, atom: 0, formula: {rest}}}\n"
    made, said = completed(desk, here, ["59.9,17.3,17.9,4.9,,100"], types)
    assert made[0][4] == 0.0
    assert "not to be had" not in said.stderr


def test_sums_of_answers_that_were_scaled_up_are_told(desk: Any, here: Callable[..., Any]) -> None:
    """Items are counts, the total three times the mean of those that are there."""
    rows = [f"{i % 4},{i % 3},{i % 5},{i % 4 + i % 3 + i % 5}.0" for i in range(30)]
    rows += ["1,,3,6.0", ",,1,3.0", "1,,2,4.5", "2,2,,6.6"]
    desk.put("m.csv", "\n".join(["a,b,c,total", *rows]) + "\n")
    types = "columns: {a: count, b: count, c: count, total: {type: real, formula: a + b + c}}"
    desk.put("types.yaml", types)
    said = here("impute", "m.csv", "--types", "types.yaml", "-o", "out.csv", *SHORT)
    (line,) = said.lines("Warning")
    assert "'total': 2 cells are no `a + b + c` of whole numbers" in line
    assert "give 'total' `role: ignore` (rows 33, 34)" in line
    parted = [row.rpartition(",") for row in rows]
    halves = [f"{items},{float(total) / 2}" for items, _, total in parted]
    desk.put("m.csv", "\n".join(["a,b,c,total", *halves]) + "\n")
    desk.put("types.yaml", types.replace("a + b + c", "(a + b + c) / 2"))
    said = here("impute", "m.csv", "--types", "types.yaml", "-o", "out.csv", *SHORT)
    assert "of whole numbers" not in said.stderr
    desk.put("m.csv", "\n".join(["a,b,c,total", *rows]) + "\n")
    desk.put("types.yaml", types.replace("count", "real"))
    said = here("impute", "m.csv", "--types", "types.yaml", "-o", "out.csv", *SHORT)
    assert said.lines("Warning") == []
    desk.put("m.csv", "\n".join(["a,b,c,total", *rows, "1,1,1,3.5"]) + "\n")
    desk.put("types.yaml", types)
    said = here("impute", "m.csv", "--types", "types.yaml", "-o", "out.csv", *SHORT)
    assert "33, 34)" in said.stderr  # of a row without gaps another warning tells
