"""What `glfm impute` does not complete is named, with the reason, in a line and in `--json`."""

from __future__ import annotations

import json
from collections.abc import Callable

TABLE = "id,a,b,visits,note,group\n" + "".join(
    f"{'' if i == 3 else i},{i % 5 + 0.5},{'' if i % 7 == 0 else i % 3},"
    f"{-9 if i % 4 == 0 else i % 4},{'' if i % 2 else 'text'},"
    f"{'NA' if i % 6 == 0 else 'xy'[i % 2]}\n"
    for i in range(28)
)
TYPES = """\
missing: [NA]
columns:
  id: id
  a: positive
  b: count
  visits: {type: count, missing: [{value: "-9", impute: false}]}
  note: ignore
  group: {type: categorical, role: predictor}
"""
LEFT = [
    ("id", 1, "role id"),
    ("visits", 7, "impute: false for -9"),
    ("note", 14, "role ignore"),
    ("group", 5, "role predictor"),
]


def test_what_is_not_completed_is_named_with_the_reason(desk) -> None:
    desk.put("table.csv", TABLE)
    desk.put("types.yaml", TYPES)
    said, _ = desk.complete()
    named = ", ".join(f"{cells} in '{column}' ({why})" for column, cells, why in LEFT)
    assert said.stderr.splitlines()[-1] == f"27 cells not completed: {named}."
    done = json.loads(desk.impute("--json", "-o", "out.csv").stdout)
    assert [tuple(one.values()) for one in done["not_completed"]] == LEFT
    assert done["cells_completed"] == 4


def test_columns_that_a_guess_leaves_out_have_its_reasons(desk) -> None:
    rows = [f"{'' if i % 7 == 0 else i % 5 + 0.5},,{'' if i % 2 else f'so {i}'}" for i in range(28)]
    desk.put("table.csv", "\n".join(["a,none,note", *rows]) + "\n")
    said, _ = desk.complete(types="auto")
    assert said.stderr.splitlines()[-1] == (
        "42 cells not completed: 28 in 'none' (ignored: holds no value), "
        "14 in 'note' (ignored: text that is different in each of its 14 cells)."
    )


def test_nothing_is_said_where_nothing_is_not_completed(desk) -> None:
    desk.put("table.csv", "a,b\n1.5,2\n,3\n2.5,4\n")
    desk.put("types.yaml", "columns: {a: positive, b: count}\n")
    assert "not completed" not in desk.complete()[0].stderr
    assert json.loads(desk.impute("--json", "-o", "out.csv").stdout)["not_completed"] == []


def test_levels_that_a_fit_does_not_know_are_named(desk, here: Callable) -> None:
    desk.put("table.csv", "a,b\n" + "".join(f"{i}.5,{'xy'[i % 2]}\n" for i in range(12)) + ",x\n")
    desk.put("types.yaml", "columns: {a: positive, b: categorical}\n")
    assert desk.impute("--save", "fit.glfm", "-o", "out.csv").status == 0
    desk.put("new.csv", "a,b\n1.5,z\n2.5,\n,z\n")
    said = here("impute", "new.csv", "--fit", "fit.glfm", "--unseen", "missing")
    assert said.stderr.splitlines()[-1] == (
        "2 cells not completed: 2 in 'b' (levels that the fit has not seen)."
    )


def test_many_columns_are_counted_after_the_first_eight(desk) -> None:
    names = [f"n{i}" for i in range(12)]
    desk.put("table.csv", ",".join(["a", *names]) + "\n1.5" + "," * 12 + "\n2.5" + "," * 12 + "\n")
    desk.put("types.yaml", "rest: ignore\ncolumns: {a: positive}\n")
    said, _ = desk.complete()
    assert said.stderr.splitlines()[-1].endswith("2 in 'n7' (role ignore), 8 in 4 more columns.")
