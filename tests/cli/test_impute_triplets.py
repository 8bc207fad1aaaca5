"""`glfm impute` of triplets as a user runs it: long form, pairs, features, and what it refuses."""

from __future__ import annotations

import csv
import io
import json
import math
from typing import Any

import pytest

TYPES = "columns:\n  user: row\n  item: column\n  rating: {type: ordinal, role: value}\n"
RATINGS = "user,item,rating\n" + "".join(
    f"u{i},{j},{1 + (i * j) % 3}\n" for i in range(8) for j in range(6) if (i + j) % 3
)


@pytest.fixture
def matrix(desk: Any) -> Any:
    """A desk with ratings of 8 users and 6 items."""
    desk.put("table.csv", RATINGS)
    desk.put("types.yaml", TYPES)
    return desk


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_every_unobserved_pair_is_predicted_in_long_form(matrix: Any) -> None:
    said, text = matrix.complete()
    rows = rows_of(text)
    assert list(rows[0])[:7] == ["user", "item", "estimate", "mean", "sd", "lower", "upper"]
    seen = {(row["user"], row["item"]) for row in rows_of(RATINGS)}
    found = {(row["user"], row["item"]) for row in rows}
    assert found | seen == {(f"u{i}", str(j)) for i in range(8) for j in range(6)}
    assert not found & seen
    assert said.lines("Error") == []


def test_two_levels_are_predicted_alike_with_an_order_and_without(matrix: Any) -> None:
    found = {}
    matrix.put("table.csv", RATINGS.replace(",3\n", ",2\n"))
    for kind in ("ordinal", "categorical"):
        matrix.put("types.yaml", TYPES.replace("ordinal", kind))
        rows = rows_of(matrix.complete("--warmup", "20", "--draws", "10")[1])
        found[kind] = [(row["estimate"], row["p_1"], row["p_2"]) for row in rows]
    assert found["categorical"] == found["ordinal"]


@pytest.mark.parametrize("kind", ["real", "ordinal", "categorical", "count"])
def test_a_single_row_or_column_is_completed(matrix: Any, kind: str) -> None:
    matrix.put("types.yaml", TYPES.replace("ordinal", kind))
    for cells in ("a,x,1\na,y,2\na,z,\n", "a,x,1\nb,x,2\nc,x,\n"):
        matrix.put("table.csv", "user,item,rating\n" + cells)
        (row,) = rows_of(matrix.complete("--warmup", "20", "--draws", "10")[1])
        assert float(row["estimate"]) >= 0.0


def test_ids_that_only_pairs_have_are_predicted_and_named(matrix: Any) -> None:
    matrix.put("pairs.csv", "user,item\nu1,1\nnew,1\nnew,77\n")
    said = matrix.impute("--pairs", "pairs.csv", "-o", "out.csv", "--save", "fit.glfm")
    assert said.status == 0, said.stderr
    assert "column 'user': 1 id of --pairs without any cell ('new')" in said.stderr
    found = rows_of((matrix.folder / "out.csv").read_text())
    assert [(row["user"], row["item"]) for row in found[1:]] == [("new", "1"), ("new", "77")]
    assert all(0.0 < float(row["p_2"]) < 1.0 for row in found)
    matrix.put("features.csv", "item,old\n" + "".join(f"{j},{j % 2}\n" for j in range(6)))
    matrix.put("features.yaml", "columns: {item: id, old: real}\n")
    with_features = ["--column-features", "features.csv", "--column-types", "features.yaml"]
    refused = matrix.impute("--pairs", "pairs.csv", *with_features)
    assert "features.csv: has no row for item '77'" in refused.stderr


def test_numbers_between_bounds_have_intervals_that_end_at_them(matrix: Any) -> None:
    types = TYPES.replace("ordinal,", "real, bounds: [1, 3],")
    matrix.put("types.yaml", types)
    cells = [(i, j) for i in range(8) for j in range(6) if (i + 2 * j) % 4]
    table = "".join(f"u{i},{j},{(3, 3, 1, 3, 2)[(7 * i * i + 5 * j) % 5]}\n" for i, j in cells)
    matrix.put("table.csv", "user,item,rating\n" + table)
    rows = rows_of(matrix.complete()[1])
    low, high = ([float(row[name]) for row in rows] for name in ("lower", "upper"))
    assert min(low) >= 1.0
    assert max(high) <= 3.0
    assert 3.0 in high  # a heap at the end of the scale can be told
    assert all(1.0 <= float(row["mean"]) <= 3.0 for row in rows)


def test_listed_pairs_are_predicted_in_their_order_and_summarised(matrix: Any) -> None:
    matrix.put("pairs.csv", "item,user,note\n5,u3,x\n0,u1,y\n")
    said = matrix.impute("--pairs", "pairs.csv", "-o", "out.csv", "--json")
    assert said.status == 0, said.stderr
    found = rows_of((matrix.folder / "out.csv").read_text())
    assert [(row["user"], row["item"]) for row in found] == [("u3", "5"), ("u1", "0")]
    assert json.loads(said.stdout)["rows"] == 8


@pytest.mark.parametrize("kind", ["ordinal", "categorical"])
def test_levels_of_listed_pairs_are_scored_by_their_probability(matrix: Any, kind: str) -> None:
    matrix.put("types.yaml", TYPES.replace("ordinal", kind))
    matrix.put("table.csv", RATINGS.replace(",3\n", ",2\n"))
    matrix.put("pairs.csv", "user,item,rating\nu0,0,2\nu1,2,\nu3,3,1\nu3,0,7\n")
    found = rows_of(matrix.complete("--pairs", "pairs.csv")[1])
    for row, level in ((found[0], "2"), (found[2], "1")):
        assert float(row["log_score"]) == pytest.approx(math.log(float(row[f"p_{level}"])))
    assert [row["log_score"] for row in (found[1], found[3])] == ["", ""]


@pytest.mark.parametrize("kind", ["ordinal", "real"])
def test_recommended_columns_are_those_with_the_highest_expected_values(
    matrix: Any, kind: str
) -> None:
    matrix.put("types.yaml", TYPES.replace("ordinal", kind))
    every = rows_of(matrix.complete("--save", "fit.glfm")[1])
    matrix.put("rows.csv", "user\nu5\nu2\n")
    best = rows_of(matrix.complete("--recommend", "2")[1])
    few = matrix.impute("--recommend", "2", "--rows", "rows.csv", "-o", "few.csv")
    assert few.status == 0, few.stderr
    for user in {row["user"] for row in every}:
        own = sorted(
            (row for row in every if row["user"] == user), key=lambda row: -float(row["mean"])
        )
        found = [row for row in best if row["user"] == user]
        assert [row["mean"] for row in found] == [row["mean"] for row in own[:2]]
    listed = rows_of((matrix.folder / "few.csv").read_text())
    assert [row["user"] for row in listed] == ["u2", "u2", "u5", "u5"]


def test_features_of_both_sides_are_read(matrix: Any) -> None:
    lines = [f"u{i},{i},{'ab'[i % 2]}" for i in range(9)]
    matrix.put("users.csv", "user,age,kind\n" + "\n".join(lines) + "\n")
    matrix.put("users.yaml", "columns: {user: id, age: real, kind: categorical}\n")
    matrix.put("items.csv", "item,year\n" + "".join(f"{j},{j * j}\n" for j in range(6)))
    matrix.put("items.yaml", "columns: {item: id, year: count}\n")
    given = ["--row-features", "users.csv", "--row-types", "users.yaml"]
    given += ["--column-features", "items.csv", "--column-types", "items.yaml"]
    given += ["--missingness-features", "2"]
    rows = rows_of(matrix.complete(*given)[1])
    assert sum(row["user"] == "u8" for row in rows) == 6  # known from its features alone


def test_a_dry_run_says_what_would_be_done(matrix: Any) -> None:
    said = matrix.impute("--dry-run")
    assert said.status == 0
    assert said.stdout.startswith("8 rows, 6 columns, 32 observed cells")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--model", "glfm"], "--model glfm does not take triplets, expected --model bsvd"),
        (["--flags"], "--flags is for tables, but the types file describes triplets"),
        (["--multiple", "3"], "--multiple is for tables, but the types file describes triplets"),
        (["--estimate", "draw"], "--estimate draw is for tables"),
        (["--row-features", "table.csv"], "--row-features needs --row-types FILE"),
        (["--missingness-features", "7"], "--missingness-features, found 7, expected a whole"),
        (["--column-types", "t.yaml"], "--column-types needs --column-features FILE"),
    ],
)
def test_options_that_do_not_fit_are_refused(matrix: Any, options: list[str], error: str) -> None:
    matrix.put("pairs.csv", "user,item\nu1,1\nnew,1\n")
    said = matrix.impute(*options)
    assert said.status == 2
    (line,) = said.lines("Error")
    assert error in line


@pytest.mark.parametrize(
    ("table", "types", "error"),
    [
        ("id,age\nu0,1\n", "", "users.csv: has no row for user 'u1' and 6 more, expected a row"),
        (
            "id,age\n" + "".join(f"u{i},{i if i - 3 else ''}\n" for i in range(8)),
            "",
            "users.csv, column 'age', row 4: the cell is empty, expected a value in every cell",
        ),
        (
            "id,age\nu0,1\nu0,2\n",
            "",
            "users.csv, column 'id', row 2: found 'u0', expected each id once",
        ),
        ("id,age\nu0,1\n", "columns: {id: real, age: real}\n", "0 columns have role id"),
    ],
)
def test_features_that_do_not_fit_are_refused(
    matrix: Any, table: str, types: str, error: str
) -> None:
    matrix.put("users.csv", table)
    matrix.put("users.yaml", types or "columns: {id: id, age: real}\n")
    said = matrix.impute("--row-features", "users.csv", "--row-types", "users.yaml")
    assert said.status == 2
    (line,) = said.lines("Error")
    assert error in line


def test_options_of_matrices_are_refused_for_a_table(desk: Any) -> None:
    desk.put("table.csv", "a,b\n1,2\n2,\n3,1\n")
    desk.put("types.yaml", "columns: {a: real, b: real}\n")
    said = desk.impute("--all-pairs")
    assert said.status == 2
    assert "--all-pairs is for triplets" in said.stderr
