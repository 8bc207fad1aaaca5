"""Triplets that are wrong: one clear line; odd ones that are right: completed."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

TRIALS = (
    "columns:\n  u: row\n  i: column\n  h: {type: binomial, trials: n, role: value}\n  n: ignore\n"
)
REAL = "columns:\n  u: row\n  i: column\n  r: {type: real, role: value}\n"
LEVELS = "columns:\n  u: row\n  i: column\n  r: {type: ordinal, role: value, levels: [lo, hi]}\n"
KINDS = "columns:\n  u: row\n  i: column\n  r: {type: categorical, role: value, levels: [a, b]}\n"


@pytest.mark.parametrize(
    ("types", "cells", "error"),
    [
        (
            REAL,
            "a,1,2\nb,1,3\na,1,2",
            "table.csv, row 3: the pair u 'a', i '1' was in row 1 already, "
            "expected one value for each pair",
        ),
        (TRIALS, "a,1,2,3\nb,1,5,4", "column 'h', row 2: found 5 successes, expected at most"),
        (TRIALS, "a,1,2,3\nb,1,0,-4", "column 'n', row 2: found '-4', expected a whole number of"),
        (TRIALS, "a,1,2,3\nb,1,0,2.5", "column 'n', row 2: found '2.5', expected a whole number"),
        (TRIALS, "a,1,2,3\nb,1,-1,2", "column 'h', row 2: found '-1', expected a whole number of"),
        (TRIALS, "a,1,2,3\nb,1,0.5,2", "column 'h', row 2: found '0.5', expected a whole number"),
        (TRIALS, "a,1,2,3\nb,1,x,2", "column 'h', row 2: found 'x', expected a number"),
        (TRIALS, "a,1,2,3\nb,1,1,", "column 'h', row 2: found 1 successes, expected the number"),
        (TRIALS, "a,1,2,3\nb,1,1,1e9", "column 'n', row 2: found '1e9', expected at most 1000000"),
        (TRIALS, "a,1,0,0\nb,1,0,0", "column 'h': no cell of it is observed"),
        (LEVELS, "a,1,lo\nb,1,mid", "column 'r', row 2: found 'mid', expected one of lo, hi"),
        (KINDS, "a,1,a\nb,1,c", "column 'r', row 2: found 'c', expected one of a, b"),
        (REAL, "1,x,2\n1.0,y,3", "column 'u', row 2: found '1.0', expected one way to write"),
        (REAL, "a,1,2\n,1,3", "column 'u', row 2: found '', expected an id"),
        (REAL, "a,1,2\nb,1,much", "column 'r', row 2: found 'much', expected a number"),
    ],
)
def test_wrong_triplets_are_refused_in_one_line(
    desk: Any, types: str, cells: str, error: str
) -> None:
    names = "u,i,h,n" if types is TRIALS else "u,i,r"
    desk.put("table.csv", f"{names}\n{cells}\n")
    desk.put("types.yaml", types)
    said = desk.impute()
    assert said.status == 2
    assert said.stdout == ""
    (line,) = said.lines("Error")
    assert error in line
    assert len(said.stderr.splitlines()) <= 2


def test_ids_that_differ_in_type_alone_are_one_across_files(desk: Any) -> None:
    desk.put("table.csv", "u,i,r\n1,x,2\n2,x,3\n2,y,1\n")
    desk.put("types.yaml", REAL)
    desk.put("pairs.csv", "u,i\n1.0,y\n")
    desk.put("users.csv", 'id,age\n"1.0",30\n2.0,40\n')
    desk.put("users.yaml", "columns: {id: id, age: real}\n")
    given = ["--row-features", "users.csv", "--row-types", "users.yaml"]
    text = desk.complete("--pairs", "pairs.csv", *given)[1]
    assert [row["u"] for row in csv.DictReader(io.StringIO(text))] == ["1"]


def test_empty_rows_and_columns_are_completed_from_the_prior(desk: Any) -> None:
    cells = "\n".join(f"u{i},{j},{i + j}" for i in range(6) for j in range(5))
    desk.put("table.csv", f"u,i,r\n{cells}\nempty,0,\nu0,empty,\n")
    desk.put("types.yaml", REAL)
    text = desk.complete("--warmup", "30", "--draws", "30")[1]
    found = {(row["u"], row["i"]): row for row in csv.DictReader(io.StringIO(text))}
    assert len(found) == 6 + 5 + 1
    for row in found.values():
        assert float(row["lower"]) < float(row["estimate"]) < float(row["upper"])
    known_row = float(found["u5", "empty"]["sd"])
    assert known_row < float(found["empty", "empty"]["sd"])
