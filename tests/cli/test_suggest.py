"""`glfm suggest` as a user runs it: tables, triplets, saved fits, costs, and what it refuses."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glfm_cli import acquisition
from glfm_cli.cli import suggest as command
from tests.cli.conftest import SHORT, Said, run_here

TYPES = "columns: {id: id, a: real, b: real, kind: categorical}\n"
REPOSITORY = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def table(desk: Any, seed: int) -> Any:
    """A desk with a mixed table of 20 rows in which every fourth cell is a missing cell."""
    rng = np.random.default_rng(seed)
    lines = ["id,a,b,kind"]
    for i in range(20):
        u = rng.normal()
        cells = [f"{u:.3f}", f"{2 * u + 0.1 * rng.normal():.3f}", "xy"[int(u > 0)]]
        lines.append(
            ",".join([f"r{i}", *("" if (3 * i + j) % 4 == 0 else c for j, c in enumerate(cells))])
        )
    desk.put("table.csv", "\n".join(lines) + "\n")
    desk.put("types.yaml", TYPES)
    return desk


def ask(*options: str, source: tuple[str, ...] = ("table.csv", "--types", "types.yaml")) -> Said:
    return run_here("suggest", *source, *(SHORT if len(source) > 1 else ()), *options)


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize("model", ["glfm", "bsvd"])
def test_gaps_are_listed_the_most_useful_first(table: Any, model: str) -> None:
    said = ask("--model", model, "--count", "6")
    assert said.status == 0, said.stderr
    rows = rows_of(said.stdout)
    assert list(rows[0]) == ["number", "id", "row", "column", "gain", "alone"]
    given = rows_of((table.folder / "table.csv").read_text())
    assert all(given[int(row["row"]) - 1][row["column"]] == "" for row in rows)
    gains = [float(row["gain"]) for row in rows]
    assert gains == sorted(gains, reverse=True)


def test_json_has_the_content_of_python(table: Any) -> None:
    said = ask("--json", "--count", "3", "--rule", "uncertainty", "--columns", "a,kind")
    shown = json.loads(said.stdout)
    python = acquisition.suggest(
        "table.csv", "types.yaml", count=3, rule="uncertainty", columns=["a", "kind"],
        chains=1, warmup=5, draws=5, threads=1,
    ).to_dict()  # fmt: skip
    shown.pop("seconds")
    python.pop("seconds")
    assert shown == json.loads(json.dumps(python))
    document = (REPOSITORY / "docs" / "reference" / "json.md").read_text()
    document = document.partition("\n## `glfm suggest`")[2].partition("\n## ")[0]
    assert [key for key in python if f"`{key}`" not in document] == []


def test_a_column_with_a_comma_in_its_name_can_be_asked_for(table: Any) -> None:
    text = (table.folder / "table.csv").read_text()
    table.put("table.csv", text.replace("id,a,b,", 'id,"a,b",c,', 1))
    table.put("types.yaml", 'columns: {id: id, "a,b": real, c: real, kind: categorical}\n')
    said = ask("--columns", "a,b")
    assert said.status == 0, said.stderr
    assert {row["column"] for row in rows_of(said.stdout)} == {"a,b"}
    said = ask("--columns", "c,kind")
    assert {row["column"] for row in rows_of(said.stdout)} == {"c", "kind"}


def test_a_saved_fit_is_not_sampled_again(table: Any) -> None:
    assert table.impute("--model", "bsvd", "--save", "fit.glfm", "-o", "out.csv").status == 0
    kept = ask("--count", "4", source=("fit.glfm",))
    fresh = ask("--count", "4", "--model", "bsvd")
    assert kept.status == fresh.status == 0, kept.stderr
    assert kept.stdout == fresh.stdout
    assert [row["id"] for row in rows_of(kept.stdout)] == [
        f"r{int(row['row']) - 1}" for row in rows_of(kept.stdout)
    ]
    refused = ask("--draws", "9", source=("fit.glfm",))
    assert refused.status == 2
    assert "--draws is for sampling, but a saved fit has been sampled" in refused.stderr


def test_the_last_line_counts_the_chosen_among_the_missing_cells(table: Any) -> None:
    run_here("impute", "table.csv", "--types", "types.yaml", *SHORT, "--save", "fit.glfm")
    header = Path("fit.glfm/run.json")
    said = json.loads(header.read_text()) | {"seconds": 12345.0}
    header.write_text(json.dumps(said))
    said = ask("--count", "2", source=("fit.glfm",))
    assert re.search(r"^2 of \d\d+ cells chosen, \d\.\d s\. ", said.stderr, re.MULTILINE)


def test_costs_are_read_and_written_beside_the_cells(table: Any) -> None:
    table.put("cost.csv", "column,cost\na,1\nb,50\nkind,50\n")
    said = ask("--cost", "cost.csv", "--count", "2", "-o", "cells.csv")
    assert said.status == 0, said.stderr
    assert said.stdout == ""
    rows = rows_of((table.folder / "cells.csv").read_text())
    assert [(row["column"], row["cost"]) for row in rows] == [("a", "1")] * 2


def test_triplets_give_pairs(desk: Any) -> None:
    cells = "".join(f"u{i},{j},{i * j}\n" for i in range(6) for j in range(5) if (i + j) % 2)
    desk.put("table.csv", "u,i,r\n" + cells)
    desk.put("types.yaml", "columns:\n  u: row\n  i: column\n  r: {type: real, role: value}\n")
    desk.put("pairs.csv", "u,i\nu0,0\nu2,2\nu4,4\n")
    said = ask("--pairs", "pairs.csv", "--count", "2", "--missingness-features", "1")
    assert said.status == 0, said.stderr
    rows = rows_of(said.stdout)
    assert list(rows[0]) == ["number", "u", "i", "gain", "alone"]
    assert {(row["u"], row["i"]) for row in rows} < {("u0", "0"), ("u2", "2"), ("u4", "4")}
    desk.put("pairs.csv", "u,i\nu0,0\nu0,1\n")
    refused = ask("--pairs", "pairs.csv")
    assert refused.lines("Error") == [
        "Error: pairs.csv, row 2: this pair has a value already, "
        "expected pairs without one to choose from"
    ]


def test_ids_in_columns_named_row_and_column_are_listed(desk: Any, table: Any) -> None:
    text = Path("table.csv").read_text().replace("id,", "row,").splitlines()
    lines = [f"{line},{'column' if i == 0 else f'c{i}'}" for i, line in enumerate(text)]
    desk.put("table.csv", "\n".join(lines) + "\n")
    desk.put("types.yaml", TYPES.replace("id: id", "row: id, column: id"))
    rows = rows_of(ask("--count", "2").stdout)
    assert list(rows[0]) == ["number", "row", "column", ".row", ".column", "gain", "alone"]
    for row in rows:
        assert (row["row"], row["column"]) == (f"r{int(row['.row']) - 1}", f"c{row['.row']}")
        assert row[".column"] in ("a", "b", "kind")


def test_ids_may_be_called_as_what_is_said_of_them(desk: Any) -> None:
    cells = "".join(f"u{i},{j},{i * j}\n" for i in range(6) for j in range(5) if (i + j) % 2)
    desk.put("table.csv", "number,cost,r\n" + cells)
    types = "columns:\n  number: row\n  cost: column\n  r: {type: real, role: value}\n"
    desk.put("types.yaml", types)
    rows = rows_of(ask("--count", "2").stdout)
    assert list(rows[0]) == [".number", "number", "cost", "gain", "alone"]
    assert [row[".number"] for row in rows] == ["1", "2"]
    assert {row["number"][0] for row in rows} == {"u"}
    desk.put("costs.csv", "number,cost\nu0,1\n")
    assert ask("--cost", "costs.csv").lines("Error") == [
        "Error: column 'cost': the file of --cost has a column of this name, so no id can have it"
    ]


@pytest.mark.parametrize("model", [(), ("--model", "bsvd"), ("--model", "cnpf")])
def test_counts_whose_absent_pairs_are_zeros_say_what_can_be_asked(desk: Any, model: tuple) -> None:
    desk.put("table.csv", "u,i,n\na,x,1\na,y,2\nb,x,3\n")
    types = "columns:\n  u: row\n  i: column\n  n: {type: count, role: value, absent: zero}\n"
    desk.put("types.yaml", types)
    refused = ask(*model)
    assert refused.status == 2
    assert "models of counts whose absent pairs are zeros have no draws" in refused.stderr
    assert "Without `absent: zero` pairs that are not listed are unknown" in refused.stderr
    desk.put("types.yaml", types.replace(", absent: zero", ""))
    assert ask("--count", "1").status == 0


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--count", "0"], "Invalid value for '--count'"),
        (["--rule", "best"], "--rule, found best, expected variance or joint or uncertainty"),
        (["--columns", "A"], "--columns names no modelled column, found 'A'"),
        (["--pairs", "table.csv"], "--pairs is for triplets"),
        (["--model", "bsdv"], "--model, found bsdv, expected"),
        (["--cost", "costs.csv"], "costs.csv: has no cost for column 'b'"),
        (["--cost", "wrong.csv"], "wrong.csv, column 'column': 'c' is not a modelled column"),
        (["-o", "table.csv"], "--output is the table itself"),
    ],
)
def test_what_does_not_fit_is_refused(table: Any, options: list[str], error: str) -> None:
    table.put("costs.csv", "column,cost\na,1\n")
    table.put("wrong.csv", "column,cost\na,1\nb,1\nkind,1\nc,2\n")
    said = ask(*options)
    assert said.status == 2
    (line,) = said.lines("Error")
    assert error in line


def test_asking_for_more_cells_than_there_are_gives_all_and_warns(table: Any) -> None:
    said = ask("--count", "500")
    n = len(rows_of(said.stdout))
    assert said.lines("Warning") == [
        f"Warning: there are only {n} cells to choose from; 500 were asked for"
    ]


def test_the_default_count_is_that_of_python() -> None:
    assert command.COUNT == acquisition.COUNT
