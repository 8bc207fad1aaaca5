"""Tables with numbers as people write them, guessed and completed without an edit."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable

import numpy as np
import pyarrow.parquet as pq
import pytest

from glfm_cli.schema import read_schema

SHORT = ("--chains", "1", "--warmup", "5", "--draws", "5", "--threads", "1")


def german(rng: np.random.Generator, rows: int = 80) -> str:
    """Return an export of a German spreadsheet, gaps in five columns."""
    z = rng.normal(size=(rows, 5))
    height = np.round(165 + 8 * z[:, 0])
    income = np.round(3000 * np.exp(0.5 * z[:, 0] + 0.3 * z[:, 1]), 2)
    fever, share = np.round(37 + 0.4 * z[:, 2], 1), np.round(9 + z[:, 2] + 0.2 * z[:, 3], 1)
    columns = [
        [f"{x:,.2f}".translate(str.maketrans(",.", ".,")) for x in income],
        [f"{x:.1f}".replace(".", ",") for x in fever],
        [f"{x:.1f}%".replace(".", ",") for x in share],
        [f"{x:.0f} cm" for x in height],
        [("m", "w")[int(x > 0)] for x in z[:, 4]],
    ]
    gap = rng.random((rows, 5)) < 0.15
    lines = ["Nr;Einkommen;Temperatur;Quote;Größe;Geschlecht"]
    for i in range(rows):
        cells = ["" if gap[i, j] else column[i] for j, column in enumerate(columns)]
        lines.append(f"{i + 1};" + ";".join(cells))
    return "\r\n".join(lines) + "\r\n"


def rows_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text), delimiter=";"))


@pytest.fixture
def export(desk, here: Callable, seed: int) -> str:
    """A German export on the desk, with the types file that `glfm types` wrote of it."""
    text = german(np.random.default_rng(seed))
    desk.put("table.csv", text)
    assert here("types", "table.csv", "-o", "types.yaml").status == 0
    return text


def test_a_german_export_is_completed_in_its_own_style_without_an_edit(desk, export: str) -> None:
    said, text = desk.complete()
    assert said.lines("Warning") == []
    before, after = rows_of(export), rows_of(text)
    styles = [r"\d+", r"(\d{1,3}(\.\d{3})*),\d\d", r"\d+,\d", r"\d+,\d%", r"\d+ cm", "[mw]"]
    assert len(after) == len(before)
    for old, new in zip(before[1:], after[1:], strict=True):
        assert [o or n for o, n in zip(old, new, strict=True)] == new
        assert all(map(re.fullmatch, styles, new)), new


def test_written_numbers_become_numbers_in_parquet(desk, export: str) -> None:
    assert desk.impute("-o", "out.parquet").status == 0
    table = pq.read_table("out.parquet")
    assert [str(kind) for kind in table.schema.types[1:5]] == [
        "double",
        "double",
        "double",
        "int64",
    ]
    first = next(row for row in rows_of(export)[1:] if row[1])
    number = float(first[1].replace(".", "").replace(",", "."))
    assert table["Einkommen"][int(first[0]) - 1].as_py() == number


def last_line(said) -> str:
    return said.stdout.splitlines()[-1]


def test_a_fit_completes_new_rows_in_their_style(desk, here: Callable, export: str) -> None:
    assert desk.impute("--save", "fit.glfm", "-o", "out.csv").status == 0
    header, *rows = export.splitlines()
    desk.put("table.csv", "\r\n".join([header, *rows[:10], "99;;38,1;;170 cm;m"]) + "\r\n")
    said = here("impute", "table.csv", "--fit", "fit.glfm", "-q")
    assert re.fullmatch(r"99;(\d{1,3}(\.\d{3})*),\d\d;38,1;\d+,\d%;170 cm;m", last_line(said))


def test_new_rows_without_a_number_are_completed_in_the_style_of_the_fit(
    desk, here: Callable, export: str
) -> None:
    assert desk.impute("--save", "fit.glfm", "-o", "out.csv").status == 0
    header, *rows = export.splitlines()
    desk.put("table.csv", f"{header}\r\n99;;;;;m\r\n")
    new = last_line(here("impute", "table.csv", "--fit", "fit.glfm", "-q"))
    assert re.fullmatch(r"99;(\d{1,3}(\.\d{3})*),\d\d;\d+,\d;\d+,\d%;\d+ cm;m", new)
    desk.put("table.csv", "\r\n".join([header, *rows[:10], new]) + "\r\n")
    again = here("impute", "table.csv", "--fit", "fit.glfm", "-q")
    assert (again.status, last_line(again)) == (0, new)


def test_a_fit_that_does_not_say_how_numbers_are_written_completes_new_rows(
    desk, here: Callable, export: str
) -> None:
    assert desk.impute("--save", "fit.glfm", "-o", "out.csv").status == 0
    run = desk.folder / "fit.glfm" / "run.json"
    said = json.loads(run.read_text(encoding="utf-8"))
    for column in said["modelled"]:
        del column["style"]
    run.write_text(json.dumps(said), encoding="utf-8")
    header, *rows = export.splitlines()
    desk.put("table.csv", "\r\n".join([header, *rows[:10], "99;;38,1;;170 cm;m"]) + "\r\n")
    said = here("impute", "table.csv", "--fit", "fit.glfm", "-q")
    assert re.fullmatch(r"99;(\d{1,3}(\.\d{3})*),\d\d;38,1;\d+,\d%;170 cm;m", last_line(said))


def test_a_round_number_in_new_rows_takes_no_decimals_from_the_others(desk, here: Callable) -> None:
    numbers = [f"{20 + i % 7},{i % 5}".removesuffix(",0") for i in range(40)]
    table = "".join(f"{x};{2 * i % 9}\n" for i, x in enumerate(numbers))
    desk.put("table.csv", f"a;b\n{table};3\n")
    desk.put("types.yaml", 'columns: {a: {type: real, decimal: ","}, b: real}\n')
    assert desk.impute("--save", "fit.glfm", "-o", "out.csv").status == 0
    desk.put("table.csv", "a;b\n21;1\n" + 20 * ";4\n")
    said = here("impute", "table.csv", "--fit", "fit.glfm", "-q")
    assert re.search(r"^\d+,\d;4$", said.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("column", "odd", "like"),
    [("Einkommen", "3,041.30", "3.041,30"), ("Größe", "148", "150 cm"), ("Quote", "8.6%", "8,6%")],
)
def test_a_mixture_of_styles_names_the_first_rows(desk, column: str, odd: str, like: str) -> None:
    place = ["Einkommen", "Größe", "Quote"].index(column)
    usual = ["3.041,30", "150 cm", "8,6%"]
    lines = [list(usual) for _ in range(12)]
    for row in (4, 9):
        lines[row][place] = odd
    desk.put("table.csv", "Einkommen;Größe;Quote\n" + "\n".join(map(";".join, lines)) + "\n")
    desk.put(
        "types.yaml",
        'columns:\n  Einkommen: {type: positive, decimal: ",", thousands: "."}\n'
        '  Größe: {type: count, unit: cm}\n  Quote: {type: real, decimal: ",", percent: true}\n',
    )
    said = desk.check_rejected(
        f"table.csv, column '{column}', row 5: found '{odd}', expected a number written like "
        f"{like} (2 cells are not: rows 5, 10)",
        desk.impute,
    )
    assert "Write all cells of the column alike" in said.stderr


@pytest.mark.parametrize(
    ("entry", "error"),
    [
        ('{type: real, decimal: ";"}', '`decimal`, found \';\', expected "." or ","'),
        ('{type: real, thousands: "."}', "`decimal` and `thousands` are the same character"),
        ("{type: real, percent: often}", "`percent`, found 'often', expected true or false"),
        ("{type: real, percent: true, unit: m}", "`percent` and `unit` are both given"),
        ('{type: categorical, decimal: ","}', "`decimal` does not go with type categorical"),
    ],
)
def test_a_types_file_that_says_impossible_things_is_refused(desk, entry: str, error: str) -> None:
    desk.put("table.csv", "x,y\n1,2\n2,3\n,1\n")
    desk.put("types.yaml", f"columns:\n  x: {entry}\n  y: real\n")
    desk.check_rejected(f"types.yaml, column 'x': {error}", desk.impute)


def test_the_types_file_keeps_how_numbers_are_written(desk, export: str) -> None:
    schema = read_schema("types.yaml")
    assert schema == type(schema).from_yaml(schema.to_yaml())
    income = next(column for column in schema.columns if column.name == "Einkommen")
    assert (income.decimal, income.thousands) == (",", ".")


def test_numbers_with_exponents_are_completed_with_exponents(desk) -> None:
    numbers = ["" if i % 9 == 4 else f"{3 + i % 7}.1{i % 10}e+15" for i in range(60)]
    desk.put("table.csv", "x,y\n" + "".join(f"{x},{i % 7}\n" for i, x in enumerate(numbers)))
    desk.put("types.yaml", "columns: {x: positive, y: real}\n")
    _, text = desk.complete("--cells", "cells.csv")
    cells = list(csv.DictReader(io.StringIO((desk.folder / "cells.csv").read_text())))
    completed = [line.split(",")[0] for i, line in enumerate(text.splitlines()[1:]) if i % 9 == 4]
    for cell, written in zip(cells, completed, strict=True):
        assert re.fullmatch(r"\d(\.\d+)?e\+\d\d", written)
        assert float(written) == pytest.approx(float(cell["mean"]), rel=1e-6)
        assert float(cell["lower"]) < float(written) < float(cell["upper"])


@pytest.mark.parametrize("zeros", [21, 30], ids=["below 1e25", "beyond"])
def test_large_whole_numbers_beside_decimal_commas_are_completed_whole(desk, zeros: int) -> None:
    numbers = ["" if i % 9 == 4 else f"{3 + i % 7}{i % 10}" + zeros * "0" for i in range(60)]
    desk.put("table.csv", "x,y\n" + "".join(f'"{i},5",{y}\n' for i, y in enumerate(numbers)))
    desk.put("types.yaml", "columns: {x: {type: real, decimal: ','}, y: positive}\n")
    _, text = desk.complete()
    completed = [line.split(",")[-1] for i, line in enumerate(text.splitlines()[1:]) if i % 9 == 4]
    assert len(set(completed)) == len(completed)
    for written in completed:
        assert written.isdigit()
        assert 0.1 < float(written) / 10 ** (zeros + 2) < 10


def test_runtimes_and_months_are_completed_as_they_are_written(desk, here: Callable) -> None:
    rng = np.random.default_rng(3)
    minutes = rng.integers(80, 160, 60).tolist()
    lines = ["Runtime,Registered,x"]
    for i, one in enumerate(minutes):
        runtime = f"{one // 60}h {one % 60}min" if one % 60 else f"{one // 60}h"
        registered = f"{1 + i % 12:02d}/{2000 + one // 8}"
        lines.append(f"{'' if i % 7 == 3 else runtime},{registered if i % 9 else ''},{one + i % 5}")
    text = "\n".join(lines) + "\n"
    desk.put("films.csv", text)
    done = here("impute", "films.csv", "--types", "auto", *SHORT)
    assert done.status == 0, done.stderr
    assert done.lines("Warning") == []
    styles = (r"(\dh)?( ?\d+min)?", r"(0[1-9]|1[0-2])/20\d\d", r"\d+")
    after = csv.reader(done.stdout.splitlines()[1:])
    for old, new in zip(csv.reader(lines[1:]), after, strict=True):
        for was, now, style in zip(old, new, styles, strict=True):
            assert now == was or (not was and now and re.fullmatch(style, now))
