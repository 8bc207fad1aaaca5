"""Tables in the files that other programs write: read, completed, written back."""

from __future__ import annotations

import datetime as dt
import json
import math
import sqlite3
import sys
import zipfile
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from decimal import Decimal
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from glfm_cli.io import read_table, write_table

SHORT = ("--chains", "1", "--warmup", "3", "--draws", "4", "--threads", "1")
ROWS = 60


@pytest.fixture
def survey(seed: int) -> dict[str, list[Any]]:
    """Columns of a survey: numbers, codes, texts and dates, with missing cells."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=ROWS)

    def gaps(values: np.ndarray) -> list[Any]:
        return [None if rng.random() < 0.15 else v for v in values.tolist()]

    return {
        "id": [float(i) for i in range(1, ROWS + 1)],
        "sex": [-9.0 if i == 7 else v for i, v in enumerate(gaps(1.0 + (z > 0)))],
        "mood": gaps(np.clip(np.round(3 + z), 1, 5)),
        "weight": gaps(np.round(70 + 8 * z, 1)),
        "town": gaps(np.array(["Oslo", "Köln", "Rom"])[rng.integers(0, 3, ROWS)]),
        "day": [date(2024, 1, 1) + timedelta(days=i) for i in range(ROWS)],
    }


def complete(here: Callable, source: str, output: str) -> str:
    """Guess types and complete a table with them, unedited; return what was said."""
    types = here("types", source, "-o", "types.yaml")
    assert types.status == 0, types.stderr
    said = here("impute", source, "--types", "types.yaml", "-o", output, *SHORT)
    assert said.status == 0, said.stderr
    return said.stderr


def check_kept(before: pa.Table, after: pa.Table, missing: tuple[object, ...] = (None,)) -> None:
    """Check that every observed cell, and the type of every column, is as it was."""
    assert after.schema.names == before.schema.names
    for name in before.column_names:
        old, new = before[name].to_pylist(), after[name].to_pylist()
        assert [o for o in old if o not in missing] == [
            n for o, n in zip(old, new, strict=True) if o not in missing
        ]
    assert [str(k) for k in after.schema.types] == [str(k) for k in before.schema.types]


# Spreadsheets --------------------------------------------------------------------------------


def workbook(path: str, columns: dict[str, list[Any]], title: list[str] | None = None) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Data"
    for text in title or ():
        sheet.append([text])
    sheet.append(list(columns))
    for row in zip(*columns.values(), strict=True):
        sheet.append(row)
    book.create_sheet("Empty")
    book.save(path)


@pytest.mark.parametrize("title", [None, ["Survey 2024", "in two towns"]])
def test_a_workbook_is_completed(desk, here: Callable, survey, title) -> None:
    pytest.importorskip("python_calamine")
    workbook("in.xlsx", survey, title)
    complete(here, "in.xlsx", "out.xlsx")
    before, after = read_table("in.xlsx"), read_table("out.xlsx")
    check_kept(before, after, missing=(None, -9))
    assert after["weight"].null_count == after["town"].null_count == 0
    openpyxl = pytest.importorskip("openpyxl")
    sheet = openpyxl.load_workbook("out.xlsx").active
    assert (sheet.title, sheet["A1"].value) == ("Data", (title or ["id"])[0])


@pytest.mark.parametrize(
    ("name", "written"),
    [("Täglich", "Täglich"), ("a/b", "Sheet1"), ("x" * 32, "Sheet1"), ("", "Sheet1")],
)
def test_a_sheet_keeps_its_name_where_a_workbook_can_have_it(desk, name: str, written: str) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    table = pa.table({"x": [1.5]}).replace_schema_metadata({b"glfm.sheet": name.encode()})
    write_table(table, "out.xlsx")
    assert openpyxl.load_workbook("out.xlsx").sheetnames == [written]


def test_an_open_document_keeps_what_it_holds(desk) -> None:
    pytest.importorskip("odf")
    pytest.importorskip("python_calamine")
    day = dt.datetime(2024, 2, 29, 13, 30, 5)
    table = pa.table(
        {
            "name": ["Åsa", "<b> & co", ""],
            "whole": [1, None, -(2**50)],
            "x": [0.1, 1e-300, None],
            "yes": [True, None, False],
            "when": [day, None, day],
            "day": pa.array([day.date(), None, day.date()]),
            "long": pa.array([dt.timedelta(hours=36, seconds=7), None, dt.timedelta(0)]),
        }
    )
    write_table(table, "out.ods")
    back = read_table("out.ods")
    assert back.column_names == table.column_names
    for name in table.column_names:
        assert back[name].to_pylist() == [v if v != "" else None for v in table[name].to_pylist()]


def test_sheet_and_header_row_can_be_named(desk, here: Callable, survey) -> None:
    pytest.importorskip("python_calamine")
    workbook("in.xlsx", survey)
    assert read_table("in.xlsx?sheet=Data").equals(read_table("in.xlsx?sheet=1&header=1"))
    for query, error in (
        ("sheet=Sheet9", "has no such sheet, found Sheet9, expected Data, Empty"),
        ("sheet=Empty", "the sheet 'Empty' is empty"),
        ("header=0", "header, found 0, expected a row from 1 to 61"),
        ("page=2", "unknown option 'page' behind the `?`, expected sheet=NAME or number or"),
    ):
        said = here("types", f"in.xlsx?{query}")
        assert said.status == 2
        assert error in said.lines("Error")[0]


def test_a_cover_sheet_is_answered_with_the_names_of_the_others(desk, here: Callable) -> None:
    book = pytest.importorskip("openpyxl").Workbook()
    pytest.importorskip("python_calamine")
    book.active.append(["Info"])
    book.active.append(["read me"])
    for name in ("Data 1", "Notes"):
        book.create_sheet(name).append(["x"])
    book.save("in.xlsx")
    for said in (here("types", "in.xlsx"), here("impute", "in.xlsx", "--types", "auto")):
        assert said.status == 2
        assert "The workbook has other sheets: 'Data 1', 'Notes'." in said.stderr
        assert "'in.xlsx?sheet=Data 1'" in said.stderr
    said = here("types", "in.xlsx?sheet=1")
    assert said.status == 2
    assert "other sheets" not in said.stderr


def test_formats_that_are_only_read_are_not_named_for_an_output(desk, here: Callable) -> None:
    desk.put("table.csv", "a,b\n1,2\n2,\n3,1\n")
    said = here("impute", "table.csv", "--types", "auto", "-o", "out.foo")
    assert "expected a name ending in .csv, .tsv" in said.stderr
    named = said.stderr.replace(",", " ").split()
    assert not {".xls", ".xlsb", ".sas7bdat", ".xpt", ".mtx", ".svmlight", ".libsvm"} & set(named)
    assert ".mtx" in here("types", "table.foo").stderr


def test_numbers_beside_text_are_written_as_numbers(desk) -> None:
    pytest.importorskip("python_calamine")
    cells = [0.5, "<0.5", "7", 7, None, 2.25]
    workbook("in.xlsx", {"lab": cells, "x": [1, 2, 3, 4, 5, 6.5]})
    table = read_table("in.xlsx")
    assert table["lab"].to_pylist() == ["0.5", "<0.5", "7", "7", None, "2.25"]
    write_table(table, "out.xlsx")
    openpyxl = pytest.importorskip("openpyxl")
    sheet = openpyxl.load_workbook("out.xlsx").active
    written = [row[0] for row in sheet.iter_rows(min_row=2, values_only=True)]
    # Which of two cells with one text was the number cannot be told: text wins.
    assert written == [0.5, "<0.5", "7", "7", None, 2.25]


def test_a_csv_file_becomes_a_workbook_of_numbers(desk, here: Callable) -> None:
    pytest.importorskip("python_calamine")
    rows = "".join(f"{i},{'' if i % 5 == 0 else i % 7 + 0.5},ab\n" for i in range(30))
    desk.put("in.csv", f"id,x,note\n{rows}")
    complete(here, "in.csv", "out.xlsx")
    table = read_table("out.xlsx")
    assert pa.types.is_floating(table["x"].type)
    assert table["x"].null_count == 0


# Statistical files ---------------------------------------------------------------------------

LABELS = {
    "sex": {1: "male", 2: "female", -9: "refused"},
    "mood": {1: "bad", 2: "rather bad", 3: "so so", 4: "good", 5: "very good"},
}


def test_an_spss_file_keeps_labels_and_missing_codes(desk, here: Callable, survey) -> None:
    pyreadstat = pytest.importorskip("pyreadstat")
    pandas = pytest.importorskip("pandas")
    pyreadstat.write_sav(
        pandas.DataFrame(survey),
        "in.sav",
        file_label="A survey",
        column_labels={"sex": "Sex of the person", "weight": "Weight in kg"},
        variable_value_labels=LABELS,
        missing_ranges={"sex": [-9]},
        variable_measure={"mood": "ordinal", "sex": "nominal"},
    )
    complete(here, "in.sav", "out.sav")
    types = Path("types.yaml").read_text()
    assert 'missing: ["refused"], label: Sex of the person' in types
    assert 'levels: ["bad", "rather bad", "so so", "good", "very good"]' in types
    before, old = pyreadstat.read_sav("in.sav", user_missing=True, output_format="dict")
    after, new = pyreadstat.read_sav("out.sav", user_missing=True, output_format="dict")
    for key in ("variable_value_labels", "missing_ranges", "column_labels", "variable_measure"):
        assert getattr(new, key) == getattr(old, key)
    for name, values in before.items():
        kept = [(o, n) for o, n in zip(values, after[name], strict=True) if o not in (None, "", -9)]
        assert all(o == n for o, n in kept if not (isinstance(o, float) and math.isnan(o)))
    assert set(after["sex"]) == {1.0, 2.0}
    assert set(after["mood"]) <= {1.0, 2.0, 3.0, 4.0, 5.0}


def test_a_stata_file_keeps_labels_and_its_letters_of_missing_values(
    desk, here: Callable, survey
) -> None:
    pyreadstat = pytest.importorskip("pyreadstat")
    pandas = pytest.importorskip("pandas")
    survey["weight"][3] = "a"
    pyreadstat.write_dta(
        pandas.DataFrame(survey),
        "in.dta",
        column_labels={"weight": "Weight in kg"},
        variable_value_labels={"mood": LABELS["mood"]},
        missing_user_values={"weight": ["a"]},
    )
    table = read_table("in.dta")
    write_table(table, "same.dta")
    assert read_table("same.dta").to_pydict() == table.to_pydict()
    complete(here, "in.dta", "out.dta")
    assert 'missing: [".a"], label: Weight in kg' in Path("types.yaml").read_text()
    check_kept(
        read_table("in.dta").drop_columns(["weight"]),
        read_table("out.dta").drop_columns(["weight"]),
        missing=(None, "", -9.0),
    )
    assert read_table("out.dta")["weight"].type == pa.float64()


@pytest.mark.parametrize("suffix", ["dta", "sav"])
def test_labels_of_letters_stay_where_all_such_cells_were_completed(
    desk, here: Callable, survey, suffix: str
) -> None:
    pyreadstat = pytest.importorskip("pyreadstat")
    pandas = pytest.importorskip("pandas")
    labels = {"mood": LABELS["mood"] | {"a": "don't know"}, "weight": {"b": "refused"}}
    survey["mood"][3], survey["weight"][4] = "a", "b"
    pyreadstat.write_dta(
        pandas.DataFrame(survey),
        "in.dta",
        variable_value_labels=labels,
        missing_user_values={"mood": ["a"], "weight": ["b"]},
    )
    complete(here, "in.dta", f"out.{suffix}")
    if suffix == "dta":
        _, new = pyreadstat.read_dta("out.dta", user_missing=True)
        assert new.variable_value_labels == labels
    else:  # which knows neither letters nor Stata's formats
        write_table(read_table("in.dta"), "in.sav")
        for name, codes in (("in.sav", {-1, -2}), ("out.sav", set())):
            found, new = pyreadstat.read_sav(name, user_missing=True, output_format="dict")
            assert new.variable_value_labels == {
                "mood": LABELS["mood"] | {-1: "don't know"},
                "weight": {-2: "refused"},
            }
            assert {v for n in ("mood", "weight") for v in found[n] if v and v < 0} == codes
            assert new.missing_ranges["mood"] == [{"lo": -26.0, "hi": -1.0}]
        write_table(read_table("out.sav"), "again.dta")
    done = read_table(f"out.{suffix}")
    assert set(done["mood"].to_pylist()) <= set(LABELS["mood"].values())
    assert done["weight"].type == pa.float64()


def test_letters_that_are_values_of_texts_are_no_missing_values(desk) -> None:
    pyreadstat = pytest.importorskip("pyreadstat")
    pandas = pytest.importorskip("pandas")
    sex = {"m": "male", "f": "female"}
    frame = pandas.DataFrame({"sex": ["m", "f", "m"], "x": [1.0, 2.0, 3.0]})
    pyreadstat.write_sav(frame, "in.sav", variable_value_labels={"sex": sex})
    write_table(read_table("in.sav"), "out.sav")
    found, new = pyreadstat.read_sav("out.sav")
    assert (new.variable_value_labels, new.missing_ranges) == ({"sex": sex}, {})
    assert found["sex"].to_list() == ["m", "f", "m"]


SPOKEN = "Resp ID;Größe (cm);with;1st;Resp_ID\n" + "".join(
    f"{i};{160 + i % 7};{i % 5};{'' if i % 6 == 1 else i % 3};{i * i % 11}\n" for i in range(30)
)
SPOKEN_TYPES = (
    "columns:\n  Resp ID: id\n  Größe (cm): positive\n  with: real\n  1st: real\n  Resp_ID: real\n"
)


@pytest.mark.parametrize(
    ("suffix", "names"),
    [
        ("sav", ["Resp_ID_2", "Größe_cm", "with_", "v1st", "Resp_ID"]),
        ("dta", ["Resp_ID_2", "Größe_cm", "with_", "v1st", "Resp_ID"]),
    ],
)
def test_names_that_a_program_does_not_allow_become_labels(
    desk, here: Callable, suffix: str, names: list[str]
) -> None:
    pyreadstat = pytest.importorskip("pyreadstat")
    pytest.importorskip("pandas")
    desk.put("table.csv", SPOKEN)
    desk.put("types.yaml", SPOKEN_TYPES)
    said = desk.impute("-o", f"out.{suffix}")
    assert said.status == 0, said.stderr
    program = {"sav": "SPSS", "dta": "Stata"}[suffix]
    assert f"4 columns have names that {program} does not allow: 'Resp ID' is" in said.stderr
    _, meta = getattr(pyreadstat, f"read_{suffix}")(f"out.{suffix}", output_format="dict")
    assert meta.column_names == names
    assert meta.column_labels[:4] == ["Resp ID", "Größe (cm)", "with", "1st"]
    assert not meta.column_labels[4]


@pytest.mark.parametrize(
    ("suffix", "names"), [("sav", ["Imputation_", "id"]), ("dta", ["_mi_m", "_mi_id"])]
)
def test_stacked_versions_have_the_names_of_the_program(
    desk, suffix: str, names: list[str]
) -> None:
    pyreadstat = pytest.importorskip("pyreadstat")
    pytest.importorskip("pandas")
    desk.put("table.csv", SPOKEN)
    desk.put("types.yaml", SPOKEN_TYPES)
    said = desk.impute("--multiple", "2", "-o", f"out.{suffix}")
    assert said.status == 0, said.stderr
    columns, meta = getattr(pyreadstat, f"read_{suffix}")(f"out.{suffix}", output_format="dict")
    assert meta.column_names[:2] == names
    assert list(columns[names[0]]) == [0] * 30 + [1] * 30 + [2] * 30
    assert list(columns[names[1]]) == 3 * list(range(1, 31))


def test_what_a_program_does_not_take_is_refused_before_sampling(desk, here: Callable) -> None:
    pyreadstat = pytest.importorskip("pyreadstat")
    frame = pytest.importorskip("pandas").DataFrame({"a": [1.0, 2.0, None], "b": [1.0, 3.0, 2.0]})
    pyreadstat.write_sav(frame, "in.sav", column_labels={"a": "x" * 100})
    desk.put("types.yaml", "columns: {a: real, b: real}\n")
    said = here("impute", "in.sav", "--types", "types.yaml", "--dry-run", "-o", "out.dta")
    assert said.status == 2
    assert "out.dta: cannot be written" in said.stderr


def test_sas_files_are_read_and_not_written(desk, here: Callable, survey) -> None:
    pyreadstat = pytest.importorskip("pyreadstat")
    pyreadstat.write_xport(pytest.importorskip("pandas").DataFrame(survey), "in.xpt")
    complete(here, "in.xpt", "out.csv")
    said = here("impute", "in.xpt", "--types", "types.yaml", "-o", "out.xpt", *SHORT)
    assert said.status == 2
    assert said.lines("Error") == [
        "Error: out.xpt: files of format sas can be read, but not written"
    ]


@pytest.mark.parametrize("brackets", [False, True])
def test_a_row_of_units_is_kept_and_no_row_of_the_table(desk, here: Callable, brackets) -> None:
    units = ["[-]", "(cm)", "kg"] if brackets else ["", "cm", "kg"]
    columns = {
        "id": [units[0], *range(40)],
        "tall": [units[1], *(None if i % 4 == 0 else 150 + 7 * i % 43 for i in range(40))],
        "heavy": [units[2], *(50.5 + i * i % 37 for i in range(40))],
    }
    workbook("in.xlsx", columns)
    complete(here, "in.xlsx", "out.xlsx")
    types = Path("types.yaml").read_text()
    assert "tall: {type: count, unit: cm}" in types
    assert "unit: kg" in types
    before, after = read_table("in.xlsx"), read_table("out.xlsx")
    check_kept(before, after)
    assert (before.num_rows, after["tall"].type, after["tall"].null_count) == (40, pa.int64(), 0)


def test_a_row_of_labels_in_a_workbook_is_no_row_of_the_table(desk, here: Callable) -> None:
    columns = {
        "id": ["Patient", *(f"P{i}" for i in range(40))],
        "tall": ["Body height", *(None if i % 4 == 0 else 150 + 7 * i % 43 for i in range(40))],
        "heavy": ["Body weight", *(50.5 + i * i % 37 for i in range(40))],
    }
    workbook("in.xlsx", columns)
    complete(here, "in.xlsx", "out.xlsx")
    assert "tall: {type: count, label: Body height}" in Path("types.yaml").read_text()
    after = read_table("out.xlsx")
    assert (after.num_rows, after["tall"].type, after["tall"].null_count) == (40, pa.int64(), 0)


# Addresses of the web ------------------------------------------------------------------------


@pytest.fixture
def server(desk) -> Iterator[str]:
    """Serve the folder of the test; gives the address, without the slash."""

    class Silent(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Silent) as serving:
        thread = Thread(target=serving.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()
        thread.join()


def test_a_table_is_read_from_an_address(desk, here: Callable, survey, server: str) -> None:
    rows = "".join(f"{i},{'' if i % 4 == 1 else i / 2},{i % 2}\n" for i in range(30))
    desk.put("in.csv", f"Nr,a,b\n{rows}")
    desk.put("download", f"Nr,a,b\n{rows}")
    workbook("in.xlsx", survey)
    complete(here, f"{server}/in.csv?version=2", "out.csv")
    assert Path("out.csv").read_text().startswith("Nr,a,b\n0,0.0,0\n1,")
    assert read_table(f"{server}/download").equals(read_table("in.csv"))
    assert read_table(f"{server}/in.xlsx#sheet=Data").equals(read_table("in.xlsx?sheet=Data"))
    for source, error in (
        (f"{server}/not_there.csv", "cannot be read: the server answered 404"),
        ("http://127.0.0.1:1/in.csv", "Connection refused"),
        (f"{server}/in.csv#sheet=1", "unknown option 'sheet'"),
    ):
        said = here("types", source)
        assert (said.status, len(said.lines("Error"))) == (2, 1)
        assert error in said.lines("Error")[0]
    said = here("impute", "in.csv", "--types", "types.yaml", "-o", f"{server}/out.csv", *SHORT)
    assert said.status == 2
    assert "can be read, but not written" in said.lines("Error")[0]


# Databases -----------------------------------------------------------------------------------


def test_a_table_of_sqlite_is_read(desk, here: Callable, survey) -> None:
    with sqlite3.connect("store.db") as base:
        base.execute("CREATE TABLE visits (id, sex, mood, weight, town)")
        rows = zip(*(survey[name] for name in ("id", "sex", "mood", "weight", "town")), strict=True)
        base.executemany("INSERT INTO visits VALUES (?, ?, ?, ?, ?)", rows)
        base.execute("CREATE TABLE other (a)")
    base.close()
    before = Path("store.db").read_bytes()
    complete(here, "store.db?table=visits", "out.parquet")
    assert pq.read_table("out.parquet")["weight"].null_count == 0
    assert read_table("sqlite:store.db?query=select weight from visits limit 3").num_rows == 3
    assert Path("store.db").read_bytes() == before
    for source, error in (
        ("store.db", "store.db: holds several tables, expected other, visits"),
        ("store.db?table=visit", "store.db?table=visit: has no such table, found visit"),
        ("store.db?query=selec", "store.db?query=selec: cannot be read (near"),
        ("duckdb:store.db", "duckdb:store.db: is an SQLite database"),
    ):
        assert error in here("types", source).lines("Error")[0]


def test_a_table_of_duckdb_is_read(desk, here: Callable, survey) -> None:
    duckdb = pytest.importorskip("duckdb")
    table = pa.table(survey)
    with duckdb.connect("store.duckdb") as base:
        base.register("survey", table)
        base.execute("CREATE TABLE visits AS SELECT * FROM survey")
    complete(here, "store.duckdb", "out.parquet")
    check_kept(
        table.cast(pq.read_schema("out.parquet")), pq.read_table("out.parquet"), (None, -9.0)
    )
    assert read_table("duckdb:store.duckdb?query=select mood from visits").column_names == ["mood"]


# Text and Parquet ----------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["db", "duckdb"])
def test_a_table_is_written_as_a_new_one_of_a_database(desk, here: Callable, suffix) -> None:
    if suffix == "duckdb":
        pytest.importorskip("duckdb")
    rows = "".join(f"{i},{'' if i % 4 == 1 else i / 2},{i % 2}\n" for i in range(30))
    desk.put("in.csv", f"Nr,a,b\n{rows}")
    complete(here, "in.csv", f"store.{suffix}?table=first")
    complete(here, "in.csv", f"store.{suffix}?table=second")
    found = read_table(f"store.{suffix}?table=first")
    assert (found["a"].null_count, found["a"].type, found.num_rows) == (0, pa.float64(), 30)
    before = Path(f"store.{suffix}").read_bytes()
    desk.put("text.db", "no database")
    for target, error in (
        (f"store.{suffix}", "a database needs the name of the table to write"),
        (f"store.{suffix}?table=first", "the database has a table 'first' already"),
        ("text.db?table=a", "cannot be written (file is not a database)"),
        ("none/store.db?table=a", "cannot be written: the folder it should be in does not"),
    ):
        said = here("impute", "in.csv", "--types", "types.yaml", "-o", target, *SHORT)
        assert (said.status, len(said.lines("Error"))) == (2, 1)
        assert error in said.lines("Error")[0]
    assert Path(f"store.{suffix}").read_bytes() == before


def test_json_lines_are_completed(desk, here: Callable) -> None:
    lines = [f'{{"a": {i % 5}.5, "b": {"null" if i % 4 == 0 else i}, "c": "x"}}' for i in range(40)]
    desk.put("in.jsonl", "\n".join([*lines, '{"a": 7.5}']) + "\n")
    complete(here, "in.jsonl", "out.jsonl")
    before, after = read_table("in.jsonl"), read_table("out.jsonl")
    check_kept(before, after)
    assert after["b"].null_count == 0
    desk.put("long.jsonl", '{"a": 1}\n{"a": ' + 5000 * "1" + "}\n")
    assert here("types", "long.jsonl").lines("Error") == [
        "Error: long.jsonl: line 2 has a number of thousands of digits"
    ]
    desk.put("bad.jsonl", '{"a": 1}\n[2]\n')
    assert here("types", "bad.jsonl").lines("Error") == [
        "Error: bad.jsonl: line 2 is not a JSON object, expected an object a line, such as "
        '{"age": 5, "city": "Oslo"}'
    ]


def test_json_keeps_long_ids_among_texts_and_writes_nan_as_null(desk) -> None:
    ids = [10**19 + 1, "A1", 12345678901234567, "007", 5, 0.5]
    rows = [{"id": one, "a": i if i % 3 else None, "b": float("nan")} for i, one in enumerate(ids)]
    desk.put("in.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    desk.put("types.yaml", "columns: {id: id, a: real, b: ignore}")
    assert desk.impute("-o", "out.jsonl", table="in.jsonl").status == 0
    after = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert [row["id"] for row in after] == ids
    assert [row["b"] for row in after] == [None] * len(ids)
    assert [row["a"] for i, row in enumerate(after) if i % 3] == [1, 2, 4, 5]


def test_json_keeps_long_ids_and_says_which_column_it_cannot_hold(desk, here: Callable) -> None:
    ids = [Decimal(10**30 + i) for i in range(8)]
    values = pa.array([Decimal("0.5"), None, *map(Decimal, range(6))], pa.decimal128(9, 1))
    table = pa.table({"id": pa.array(ids, pa.decimal128(38, 0)), "a": values})
    write_table(table, "t.parquet")
    desk.put("types.yaml", "columns: {id: id, a: real}\nrest: ignore")
    assert desk.impute("-o", "out.jsonl", table="t.parquet").status == 0
    rows = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert [row["id"] for row in rows] == [10**30 + i for i in range(8)]
    assert rows[0]["a"] == 0.5
    write_table(table.append_column("stay", pa.array([None] * 8, pa.duration("s"))), "t.parquet")
    error = "out.jsonl, column 'stay': JSON cannot hold values of type duration[s]"
    desk.check_rejected(error, desk.impute, "-o", "out.jsonl", table="t.parquet")


@pytest.mark.parametrize("suffix", [".gz", ".zst", ".bz2", ".xz", ".zip"])
def test_packed_text_is_read_and_written_the_same_each_time(
    desk, here: Callable, suffix: str
) -> None:
    text = "a;b\n" + "".join(f"{i % 5}.5;{'' if i % 4 == 0 else i}\n" for i in range(40))
    desk.put("in.csv", text)
    write_table(read_table("in.csv"), f"in.csv{suffix}")
    assert read_table(f"in.csv{suffix}").equals(read_table("in.csv"))
    first = Path(f"in.csv{suffix}").read_bytes()
    write_table(read_table("in.csv"), f"in.csv{suffix}")
    assert Path(f"in.csv{suffix}").read_bytes() == first
    complete(here, f"in.csv{suffix}", f"out.csv{suffix}")
    desk.put(f"cut.csv{suffix}", first[:-9])
    assert "is damaged or cut off" in here("types", f"cut.csv{suffix}").lines("Error")[0]


def test_an_archive_must_hold_one_table(desk, here: Callable) -> None:
    with zipfile.ZipFile("two.zip", "w") as archive:
        archive.writestr("a.csv", "a\n1\n")
        archive.writestr("b.csv", "a\n1\n")
    assert here("types", "two.zip").lines("Error") == [
        "Error: two.zip: the archive holds 2 files, found a.csv, b.csv, expected one table"
    ]


def test_a_folder_of_parquet_files_is_one_table(desk, here: Callable, survey) -> None:
    table = pa.table(survey)
    for year, part in ((2023, table.slice(0, 25)), (2024, table.slice(25))):
        Path(f"parts/year={year}").mkdir(parents=True)
        pq.write_table(part, f"parts/year={year}/part.parquet")
    assert read_table("parts").drop_columns(["year"]).equals(table)
    assert read_table("parts/*/part.parquet").num_rows == ROWS
    complete(here, "parts", "out.parquet")
    assert "no file has such a name" in here("types", "no*.parquet").lines("Error")[0]


# What is not installed -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [
        ("in.xlsx", "python_calamine", "excel"),
        ("in.sav", "pyreadstat", "stats"),
        ("in.duckdb", "duckdb", "sql"),
    ],
)
def test_a_missing_library_is_named_with_the_command_that_installs_it(
    desk, here: Callable, monkeypatch: pytest.MonkeyPatch, name: str, module: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    desk.put(name, b"anything")
    said = here("types", name)
    library = module.replace("_", "-")
    assert said.lines("Error") == [f"Error: {name}: this kind of file needs the library {library}"]
    assert said.lines("Hint") == [f"Hint: Install it: pip install 'glfm-cli[{extra}]'"]


def test_json_of_several_types_passes_through(desk, here: Callable) -> None:
    cells = ['[1, "x"]', "2", '{"k": true}', "null", '"y"'] * 8
    lines = [
        f'{{"a": {i / 4 if i % 6 else "null"}, "n": {cell}}}\n' for i, cell in enumerate(cells)
    ]
    desk.put("in.jsonl", "".join(lines))
    for name in ("out.jsonl", "out.xlsx", "out.csv", "out.parquet"):
        complete(here, "in.jsonl", name)
    assert '"n": ignore' in Path("types.yaml").read_text()
    out = Path("out.jsonl").read_text().splitlines()
    assert [line.partition('"n": ')[2] for line in out] == [f"{cell}}}" for cell in cells]
    desk.put("types.yaml", "columns: {a: real, n: categorical}")
    error = "in.jsonl, column 'n': the column holds values of several types"
    desk.check_rejected(error, desk.impute, table="in.jsonl")
