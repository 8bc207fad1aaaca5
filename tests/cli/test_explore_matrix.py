"""`glfm explore` with the low-rank model, of tables, triplets and saved fits."""

from __future__ import annotations

import json
from typing import Any

import pyarrow.csv as pc
import pytest

from tests.cli.conftest import SHORT, Said, run_here

TYPES = "columns:\n  u: row\n  i: column\n  r: {type: ordinal, role: value}\n"
CELLS = "".join(f"u{i},{j},{1 + (i * j) % 3}\n" for i in range(9) for j in range(7) if (i + j) % 3)
TABLE = "id,a,b,kind\n" + "".join(f"r{i},{i},{2 * i + i % 3},{'xyz'[i % 3]}\n" for i in range(30))


@pytest.fixture
def matrix(desk: Any) -> Any:
    """A desk with ratings of 9 users and 7 items, and with a mixed table."""
    desk.put("ratings.csv", "u,i,r\n" + CELLS)
    desk.put("ratings.yaml", TYPES)
    desk.put("table.csv", TABLE)
    desk.put("types.yaml", "columns: {id: id, a: real, b: real, kind: categorical}\n")
    return desk


def explored(*options: str, name: str = "ratings", types: str = "ratings.yaml") -> Said:
    return run_here("explore", f"{name}.csv", "--types", types, *SHORT, "--warmup", "25", *options)


def test_triplets_show_rank_components_and_variance(matrix: Any) -> None:
    matrix.put("users.csv", "u,age\n" + "".join(f"u{i},{i * i}\n" for i in range(9)))
    matrix.put("users.yaml", "columns: {u: id, age: real}\n")
    said = explored("--row-features", "users.csv", "--row-types", "users.yaml")
    assert said.status == 0, said.stderr
    lines = said.stdout.splitlines()
    assert lines[0].startswith("9 rows, 7 columns, 1 chain with 5 draws in all")
    assert lines[1].startswith("Rank ")
    for title in ("Shares of the variance", "Covariates: what one standard deviation more does"):
        assert title in lines[3:] or any(line.startswith(title) for line in lines)
    assert any(line.startswith("rows") and "age" in line for line in lines)


def test_units_are_called_by_their_labels_and_in_a_saved_fit_too(matrix: Any) -> None:
    films = ["Alien", "Brazil", "", "Diva", "Heat", "Ran", "Z"]
    rows = "".join(f"{j},{name},{j % 2}\n" for j, name in enumerate(films))
    matrix.put("films.csv", "i,title,old\n" + rows)
    matrix.put("films.yaml", "columns: {i: id, title: label, old: real}\n")
    given = ("--column-features", "films.csv", "--column-types", "films.yaml")
    first = explored(*given, "--json", "--save", "fit.glfm")
    assert first.status == 0, first.stderr
    for said in (first, run_here("explore", "fit.glfm", "--json")):
        found = json.loads(said.stdout)["components"]
        named = {one["name"] for component in found for one in component["leading_columns"]}
        assert named <= {*films, "2"} - {""}
        assert all(one["goes_with"][0]["covariate"] == "old" for one in found)
    refused = run_here("impute", "films.csv", "--types", "films.yaml")
    assert "role label is not used" in refused.stderr


@pytest.mark.parametrize("name", ["cells", "label", "score", "component"])
def test_ids_are_told_whatever_their_column_is_called(matrix: Any, name: str) -> None:
    matrix.put("ratings.csv", f"{name},i,r\n" + CELLS)
    matrix.put("ratings.yaml", TYPES.replace("u: row", f"{name}: row"))
    assert explored("--output", "out").status == 0
    rows = pc.read_csv("out/rows.csv")
    assert rows.column_names == ["component", "row", "cells", "score", "sd"]
    assert set(rows["row"].to_pylist()) <= {f"u{i}" for i in range(9)}


def test_rows_without_an_id_are_called_by_what_they_have(matrix: Any) -> None:
    lines = [f",{line}" for line in TABLE.splitlines()[1:]]
    matrix.put("table.csv", "label,component,a,b,kind\n" + "\n".join(lines) + "\n")
    matrix.put("types.yaml", "columns: {label: id, component: id, a: real, b: real, kind: id}\n")
    said = explored("--model", "bsvd", "-o", "out", "--json", name="table", types="types.yaml")
    assert said.status == 0, said.stderr
    (first, *_) = json.loads(said.stdout)["components"]
    assert all(one["name"].startswith("r") for one in first["leading_rows"])
    rows = pc.read_csv("out/rows.csv")
    assert rows.column_names == ["component", "label", "kind", "row", "score", "sd"]
    assert set(rows["component"].to_pylist()) <= {"C1", "C2"}


def test_a_plan_says_what_triplets_need(matrix: Any) -> None:
    said = explored("--dry-run")
    assert said.status == 0, said.stderr
    assert said.stdout.startswith("9 rows, 7 columns, 42 observed cells\n")
    assert "about " in said.stdout
    assert "--effort thorough: 1 chain of " in said.stdout


def test_tables_show_what_components_explain(matrix: Any) -> None:
    said = explored("--model", "bsvd", "--json", name="table", types="types.yaml")
    assert said.status == 0, said.stderr
    shown = json.loads(said.stdout)
    assert [part["column"] for part in shown["explained"]] == ["a", "b", "kind=y", "kind=z"]
    assert shown["rank"]["posterior"]
    first = shown["components"][0]
    assert {one["name"] for one in first["leading_columns"]} <= {"a", "b", "kind=y", "kind=z"}
    assert all(one["name"].startswith("r") for one in first["leading_rows"])


def test_no_line_is_wider_than_the_terminal(matrix: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for said in (
        explored("--model", "bsvd", name="table", types="types.yaml"),
        explored("--missingness-features", "2"),
    ):
        assert said.status == 0, said.stderr
        assert max(map(len, said.stdout.splitlines())) <= 80


def test_everything_is_written_to_a_folder(matrix: Any) -> None:
    said = explored("-o", "found", "--missingness-features", "1")
    assert said.status == 0, said.stderr
    written = {path.name for path in (matrix.folder / "found").iterdir()}
    names = ("components", "rows", "columns", "rank", "rank_trace", "variance", "covariates")
    names += ("goes_with",)
    drawn = {"exploration.json", "overview.png", "report.html"}
    assert written == {*(f"{name}.csv" for name in names), *drawn}
    trace = pc.read_csv(matrix.folder / "found" / "rank_trace.csv")
    assert trace.column_names == ["chain", "draw", "rank"]
    assert trace.num_rows == 5


@pytest.mark.parametrize("kind", ["ratings", "table"])
def test_a_page_a_figure_traces_and_a_record_are_written(matrix: Any, kind: str) -> None:
    types = {"ratings": "ratings.yaml", "table": "types.yaml"}[kind]
    written = ["--html", "f.html", "--plot", "f.png", "--record", "f.json", "--traces-to", "f.nc"]
    said = explored("--model", "bsvd", *written, name=kind, types=types)
    assert said.status == 0, said.stderr
    page = (matrix.folder / "f.html").read_text()
    assert f"What structure is in {kind}.csv" in page
    assert "glfm explore" in page
    assert "Leading columns and rows" in page
    assert (matrix.folder / "f.png").read_bytes().startswith(b"\x89PNG")
    record = json.loads((matrix.folder / "f.json").read_text())
    assert record["request"]["top"] == 5
    assert set(record["outputs"]) >= {"--html", "--plot"}
    assert (matrix.folder / "f.nc").stat().st_size


def test_a_saved_fit_is_explored(matrix: Any) -> None:
    done = matrix.impute("--model", "bsvd", "--save", "fit.glfm", "-o", "out.csv")
    assert done.status == 0, done.stderr
    said = run_here("explore", "fit.glfm")
    assert said.status == 0, said.stderr
    assert said.stdout.startswith("30 rows, 4 latent columns")
    refused = run_here("explore", "fit.glfm", "--chains", "2")
    assert refused.status == 2


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--dependence"], "--dependence is not available: the low-rank model has no binary"),
        (["--top", "0"], "--top, found 0, expected a whole number from 1"),
        (["--model", "glfm"], "--model glfm does not take triplets"),
        (["--row-features", "table.csv"], "--row-features needs --row-types FILE"),
    ],
)
def test_what_does_not_fit_is_refused(matrix: Any, options: list[str], error: str) -> None:
    said = explored(*options)
    assert said.status == 2
    (line,) = said.lines("Error")
    assert error in line


def test_options_of_triplets_are_refused_for_a_table_explored_by_features(matrix: Any) -> None:
    said = explored("--missingness-features", "1", name="table", types="types.yaml")
    assert said.status == 2
    assert "--missingness-features is for triplets" in said.stderr
