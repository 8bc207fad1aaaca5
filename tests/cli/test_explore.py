"""`glfm explore` as a user meets it."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from glfm_cli import explore
from glfm_cli.cli import explore as command
from glfm_cli.exploration import TOP, Request

SHORT = ("--chains", "1", "--warmup", "5", "--draws", "5", "--threads", "1")
TYPES = "columns:\n  id: id\n  heat: {type: real, unit: °C}\n  kind: categorical\n  size: count\n"
N_ROWS = 60


@pytest.fixture
def table(desk: Any, seed: int) -> Any:
    """A desk with a table in which warm rows are of kind b and large."""
    rng = np.random.default_rng(seed)
    warm = rng.random(N_ROWS) < 0.4
    lines = ["id,heat,kind,size"]
    for i, one in enumerate(warm):
        heat, size = rng.normal(30 if one else 10, 2), rng.poisson(20 if one else 4)
        kind = "" if i == 5 else "b" if one else "a"
        lines.append(f"r{i},{heat:.2f},{kind},{size}")
    desk.put("table.csv", "\n".join(lines) + "\n")
    desk.put("types.yaml", TYPES)
    return desk


@pytest.fixture
def explored(table: Any, here: Callable[..., Any]) -> Callable[..., Any]:
    """Run `glfm explore` on the table, with a few sweeps of one chain."""
    return partial(here, "explore", "table.csv", "--types", "types.yaml", *SHORT)


def test_the_terminal_shows_features_patterns_and_typical_rows(
    table: Any, explored: Callable[..., Any]
) -> None:
    said = explored("--chains", "3", "--warmup", "40")
    assert said.status == 0, said.stderr
    lines = said.stdout.splitlines()
    assert lines[0].startswith("60 rows, 3 columns, 3 chains with 15 draws in all")
    for title in ("Features", "Typical rows: the mean, or the likeliest level"):
        assert any(line.startswith(title) for line in lines)
    assert any(line.startswith("Patterns of F1") for line in lines)
    shown = " ".join(said.stdout.split())  # lines may end between words
    assert ("heat higher" in shown) != ("heat lower" in shown)  # either group may be the feature
    assert "heat (°C)" in said.stdout
    assert "\x1b" not in said.stdout  # no colour when piped


def test_columns_that_miss_together_are_said_to(desk: Any, here: Callable[..., Any]) -> None:
    rng = np.random.default_rng(2)
    sick, cells = rng.random(300) < 0.3, rng.normal(size=(300, 4)).round(2).astype(str)
    gaps = rng.random((300, 4)) < np.where(sick, 0.6, 0.05)[:, None]
    gaps[:, 3] = rng.random(300) < 0.2
    cells[gaps] = ""
    desk.put("gaps.csv", "\n".join(["a,b,c,d", *map(",".join, cells)]) + "\n")
    desk.put("gaps.yaml", "columns: {a: real, b: real, c: real, d: real}\n")
    said = here("explore", "gaps.csv", "--types", "gaps.yaml", *SHORT, "--html", "page.html")
    shown = " ".join(said.stdout.split())
    line = re.search(r"Missing in the same rows \(correlation of gaps\): (.*?)\. Feat", shown)
    assert line, shown
    named = [pair.split(" (") for pair in line[1].split(", ")]
    assert {pair for pair, _ in named} == {"a and b", "a and c", "b and c"}
    a, b = (np.array([cell == "" for cell in column]) for column in cells.T[:2])
    (r,) = (float(text.rstrip(")")) for pair, text in named if pair == "a and b")
    assert r == pytest.approx(np.corrcoef(a, b)[0, 1], abs=0.006)
    assert line[0] in " ".join(Path("page.html").read_text().split())
    only = here("explore", "gaps.csv", "--types", "gaps.yaml", *SHORT, "--columns", "a,d")
    assert "Missing in the same rows" not in only.stdout


@pytest.mark.parametrize("width", [80, 100])
def test_no_line_is_wider_than_the_terminal(
    table: Any, monkeypatch: pytest.MonkeyPatch, width: int, explored: Callable[..., Any]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    said = explored("--surprising", "3", "--similar", "1", "--dependence")
    assert said.status == 0, said.stderr
    assert max(map(len, said.stdout.splitlines())) <= width


def test_json_is_one_object_with_the_same_content_as_python(
    table: Any, explored: Callable[..., Any]
) -> None:
    said = explored("--json", "--seed", "3")
    shown = json.loads(said.stdout)
    python = explore(
        "table.csv", "types.yaml", chains=1, warmup=5, draws=5, threads=1, seed=3
    ).to_dict()
    shown.pop("seconds"), python.pop("seconds")
    assert shown == json.loads(json.dumps(python))


def test_a_folder_gets_a_figure_of_every_column(desk: Any, here: Callable[..., Any]) -> None:
    names = [f"a_column/of_a_table_{'x' * 250}_{i}" for i in range(13)]
    rows = [",".join(str((i * j) % 3) for j in range(1, 14)) for i in range(12)]
    desk.put("table.csv", "\n".join([",".join(names), *rows]) + "\n")
    desk.put("types.yaml", f"columns: {{{names[0]}: ordinal, {names[1]}: ordinal}}\nrest: real\n")
    short = ("--chains", "1", "--warmup", "1", "--draws", "1", "--threads", "1")
    said = here("explore", "table.csv", "--types", "types.yaml", *short, "-o", "out")
    assert said.status == 0, said.stderr
    assert {"columns.png", "columns_2.png"} <= {path.name for path in Path("out").iterdir()}
    assert len(list(Path("out").glob("shares_*_a_column_of_a_table_*.png"))) == 2


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_folder_gets_every_table(table: Any, kind: str, explored: Callable[..., Any]) -> None:
    said = explored("-o", "out", "--format", kind, "--dependence", "--similar", "2")
    assert said.status == 0, said.stderr
    names = {path.name for path in Path("out").iterdir()}
    assert {f"{name}.{kind}" for name in ("features", "patterns", "effects", "dependence")} <= names
    path = f"out/memberships.{kind}"
    content = pc.read_csv(path) if kind == "csv" else pq.read_table(path)
    assert content.column_names == ["row", "id", "pattern", "feature", "member", "probability"]
    figures = {
        "overview.png",
        "columns.png",
        "traces.png",
        "fit.png",
        "dependence.png",
        "report.html",
    }
    assert figures | {"shares_2_kind.png"} <= names
    summary = json.loads(Path("out/exploration.json").read_text(encoding="utf-8"))
    assert content.num_rows == N_ROWS * len(summary["features"])
    assert summary["similar_to"] == 2


def test_a_saved_fit_is_explored_without_its_table(table: Any, here: Callable[..., Any]) -> None:
    done = here(
        *("impute", "table.csv", "--types", "types.yaml", "--model", "glfm", *SHORT),
        *("-o", "x.csv", "--save", "run.glfm"),
    )
    assert done.status == 0, done.stderr
    Path("table.csv").unlink()
    said = here("explore", "run.glfm", "--json")
    assert said.status == 0, said.stderr
    shown = json.loads(said.stdout)
    assert (shown["rows"], shown["draws"], shown["options"]["source"]) == (60, 5, "run.glfm")
    said = here("explore", "run.glfm", "--chains", "2")
    assert said.status == 2
    assert said.lines("Error") == [
        "Error: --chains is for sampling, but a saved fit has been sampled"
    ]


def test_a_fit_saved_without_its_table_cannot_be_explored(
    table: Any, here: Callable[..., Any]
) -> None:
    here(
        "impute", "table.csv", "--types", "types.yaml", *SHORT,
        "-o", "x.csv", "--save", "run.glfm", "--no-data",
    )  # fmt: skip
    said = here("explore", "run.glfm")
    assert said.status == 2
    assert "the table was left out of this saved fit" in said.stderr


def test_the_overview_is_drawn(explored: Callable[..., Any]) -> None:
    said = explored("--plot", "page.svg")
    assert said.status == 0, said.stderr
    assert Path("page.svg").read_text(encoding="utf-8").startswith("<?xml")


def test_the_page_is_written_where_it_was_asked_for(explored: Callable[..., Any]) -> None:
    said = explored("--html", "page.html")
    assert said.status == 0, said.stderr
    text = Path("page.html").read_text(encoding="utf-8")
    assert "<title>What structure is in table.csv</title>" in text
    assert "glfm explore table.csv --types TYPES.yaml" in text


def test_a_group_is_found_by_cells_below_limits(
    desk: Any, here: Callable[..., Any], seed: int
) -> None:
    """Nearly all that its rows have of four columns is below one of two limits."""
    rng, lines = np.random.default_rng(seed), ["a,b,c,d,e"]
    for i in range(200):
        cells, limit = np.exp(rng.normal(size=5)), 1.0 if i % 2 else 0.7
        cells[:4] *= 0.1 if i % 3 == 0 else 1.0
        lines.append(",".join(f"<{limit}" if one < limit else f"{one:.3f}" for one in cells))
    desk.put("table.csv", "\n".join(lines) + "\n")
    desk.put("types.yaml", "columns:\n" + "".join(f"  {name}: positive\n" for name in "abcde"))
    said = here("explore", "table.csv", "--types", "types.yaml", *SHORT,
                "--chains", "3", "--warmup", "40")  # fmt: skip
    assert said.status == 0, said.stderr
    shown = " ".join(said.stdout.split())
    (feature,) = re.findall(r"F1 .*?Patterns", shown)
    assert {*"abcd"} == set(re.findall(r"(\w) (?:lower|higher)", feature))
    assert "Missing in the same rows" not in shown


def test_intervals_that_means_leave_out_are_counted(
    table: Any, explored: Callable[..., Any]
) -> None:
    lines = Path("table.csv").read_text().splitlines()
    for i in (3, 7, 9):
        cells = lines[i].split(",")
        lines[i] = ",".join([cells[0], "<8", *cells[2:]])
    table.put("table.csv", "\n".join(lines) + "\n")
    said, note = explored("--html", "page.html"), "The means of all rows leave out intervals: 3 of"
    assert said.status == 0, said.stderr
    assert f"{note} 'heat'." in said.stdout
    assert note in Path("page.html").read_text(encoding="utf-8")


def test_strict_ends_with_status_3_and_shows_everything(
    table: Any, explored: Callable[..., Any]
) -> None:
    said = explored("--strict")
    assert said.status == 3
    assert "Features" in said.stdout
    assert any("--strict" in line for line in said.lines("Warning"))


BAD = {
    ("--sample", "worst"): "--sample, found worst, expected consensus or best or held-out",
    ("--top", "0"): "--top, found 0, expected a whole number from 1",
    ("--surprising", "-1"): "--surprising, found -1, expected a whole number from 0",
    ("--similar", "61"): "--similar, found 61, expected a data row from 1 to 60",
    ("--columns", "heat,knd"): "--columns names no modelled column, found 'knd'",
    ("--columns", "id"): "--columns names no modelled column, found 'id'",
    ("--format", "xlsx"): "--format, found xlsx, expected csv or parquet",
    ("--html", "no/page.html"): "no/page.html: cannot be written: the folder it should be in "
    "does not exist",
    ("--plot", "x.gif"): "x.gif: the name does not tell the figure's format, expected a name "
    "ending in .png, .svg, .pdf",
    ("-o", "table.csv"): "table.csv: --output is the table itself",
    ("-o", "types.yaml"): "types.yaml: --output is the types file",
    ("--set", "colour=1"): "--set colour: no such setting",
}


@pytest.mark.parametrize("options_given", BAD)
def test_a_bad_option_is_one_clear_line(
    table: Any, options_given: tuple[str, str], explored: Callable[..., Any]
) -> None:
    before = table.files()
    said = explored(*options_given)
    assert said.status == 2
    assert said.lines("Error") == [f"Error: {BAD[options_given]}"]
    assert said.stdout == ""
    assert table.files() == before


@pytest.mark.parametrize(
    ("data", "problem"),
    [("nothing.csv", "nothing.csv"), ("no.glfm", "no.glfm"), (".", ".")],
)
def test_what_is_not_there_is_an_error(
    table: Any, data: str, problem: str, here: Callable[..., Any]
) -> None:
    said = here("explore", data)
    assert said.status == 2
    assert len(said.lines("Error")) == 1
    assert problem in said.stderr


def test_a_table_needs_its_types(table: Any, here: Callable[..., Any]) -> None:
    said = here("explore", "table.csv")
    assert said.status == 2
    assert "glfm types table.csv" in said.lines("Hint")[0]


def keys_of(value: Any) -> Iterator[str]:
    """Yield the keys of an object for JSON, but those that are names of the table's own."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            if key not in ("diagnostics", "share", "settings"):
                yield from keys_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys_of(inner)


def test_the_reference_explains_every_key_and_column(
    explored: Callable[..., Any], repository: Path
) -> None:
    folder = repository / "docs" / "reference"
    document = "".join((folder / f"{name}.md").read_text("utf-8") for name in ("tables", "json"))
    said = explored("--json", "-o", "out", *["--surprising", "2", "--similar", "2", "--dependence"])
    names = set(keys_of(json.loads(said.stdout)))
    for path in Path("out").glob("*.csv"):
        assert f"`{path.stem}`" in document
        names |= set(pc.read_csv(path).column_names)
    assert [
        name
        for name in sorted(names - {"id"})
        if not re.search(rf"`{name}\b|, {name}\b", document) and f"/{name}`" not in document
    ] == []


def test_defaults_of_command_and_library_are_the_same() -> None:
    shell = {n: p.default for n, p in inspect.signature(command.run).parameters.items()}
    for field in fields(Request):
        assert shell[field.name] == field.default
    assert shell["top"] == TOP
