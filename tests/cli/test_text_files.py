"""Text files as programs of other times and places write them, through the command line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from glfm_cli.io import read_table
from glfm_cli.io.batches import read_batches

TOWNS = ["", "Köln", "Rom", "Rom"]
ROWS = "".join(f"{i};{i % 5},5;{TOWNS[i % 4]};x{i % 2}\n" for i in range(30))


def test_a_windows_file_is_named_and_written_back_in_its_encoding(desk, here: Callable) -> None:
    table = f"Nr;Größe;Ort;Art\n{ROWS}".encode("cp1252")
    desk.put("table.csv", table)
    said = here("types", "table.csv", "-o", "types.yaml")
    note = "Warning: the file is not UTF-8: it was read as Windows-1252"
    assert said.lines("Warning") == [note]
    done = desk.impute()
    assert note in done.lines("Warning")
    assert done.output.decode("cp1252").startswith("Nr;Größe;Ort;Art\n0;0,5;")


def test_what_is_in_no_encoding_that_is_known_is_said_to_convert(desk, here: Callable) -> None:
    desk.put("table.csv", "患者番号,診療科\n1,内科\n2,外科\n".encode("cp932"))
    said = here("types", "table.csv", "-o", "types.yaml")
    assert said.status == 2
    assert "iconv -f CP932 -t UTF-8 old.csv > new.csv" in said.stderr


def test_empty_columns_at_the_end_without_a_name_stay(desk, here: Callable) -> None:
    rows = ROWS.replace("\n", ";;\n")
    desk.put("table.csv", "Nr;a;b;c;;\n" + rows)
    assert here("types", "table.csv", "-o", "types.yaml").stderr.count("Warning") == 0
    done = desk.impute("--flags").stdout.splitlines()
    assert done[0] == "Nr;a;b;c;a_imp;b_imp;c_imp;;"
    assert all(line.endswith(";;") for line in done)
    whole = desk.impute().stdout.splitlines()
    firsts = [line.split(";")[0] for line in rows.splitlines()]
    assert [line.split(";")[0] for line in whole[1:]] == firsts


def test_a_cell_in_a_column_without_a_name_is_an_error(desk, here: Callable) -> None:
    desk.put("table.csv", "Nr;a;b;c;;\n" + ROWS.replace("\n", ";;7\n"))
    said = here("types", "table.csv", "-o", "types.yaml")
    assert said.status == 2
    assert "table.csv: column 5 of 6 has no name" in said.stderr
    assert "Give it a name in the header" in said.stderr


def test_all_names_that_stand_twice_are_named(desk, here: Callable) -> None:
    desk.put("table.csv", "t,p,t,p,t,q\n1,2,3,4,5,6\n")
    said = here("types", "table.csv")
    assert "column 't': columns 1 and 3 have the same name" in said.stderr
    hint = "Hint: Rename one of them in the header; likewise 'p' (2 and 4)."
    assert said.lines("Hint") == [hint]


def test_a_title_and_a_separator_line_are_kept(desk, here: Callable) -> None:
    for first, warned in (("sep=;\r\n", False), ("Bericht;;;\r\n;;;\r\n", True)):
        desk.put("table.csv", first + "Nr;a;b;c\r\n" + ROWS.replace("\n", "\r\n"))
        said = here("types", "table.csv", "-o", "types.yaml")
        assert bool(said.lines("Warning")) is warned
        assert desk.impute().stdout.startswith(first + "Nr;a;b;c\r\n0;0,5;")


def test_row_names_without_a_name_are_an_id(desk, here: Callable) -> None:
    rows = "".join(f'"r{i}",{i % 5}.5,{"NA" if i % 6 == 0 else i}\n' for i in range(30))
    desk.put("table.csv", f'"","a","b"\n{rows}')
    assert here("types", "table.csv", "-o", "types.yaml").status == 0
    assert '"": id' in (desk.folder / "types.yaml").read_text()
    assert desk.complete()[1].startswith('"","a","b"\n"r0",0.5,')


def test_a_row_of_units_is_written_back_where_it_stood(desk, here: Callable) -> None:
    rows = "".join(f"{i};{'' if i % 6 == 0 else f'{i},5'};x{i % 2}\n" for i in range(30))
    top = 'Nr;Länge;Art\n"";"cm";-\n'
    desk.put("table.csv", top + rows)
    said = here("types", "table.csv", "-o", "types.yaml")
    note = "Warning: the row below the header holds units, and is written back"
    assert said.lines("Warning") == [note]
    assert 'Länge: {type: positive, decimal: ",", unit: cm}' in (
        desk.folder / "types.yaml"
    ).read_text("utf-8")
    assert desk.impute().stdout.startswith(top + "0;")
    flagged = desk.impute("--flags").stdout.splitlines()
    assert flagged[:2] == ["Nr;Länge;Art;Länge_imp;Art_imp", '"";"cm";-;"";""']


def test_units_stand_above_cells_below_a_limit(desk, here: Callable) -> None:
    rows = "".join(f"{i};{'<0,2' if i % 3 else f'{i},5'};{i * i % 31}\n" for i in range(1, 31))
    desk.put("table.csv", "Nr;Blei;Leitwert\n;µg/l;µS/cm\n" + rows)
    said = here("types", "table.csv").stdout
    assert 'Blei: {type: positive, decimal: ",", unit: µg/l}' in said
    assert "Leitwert: {type: count, unit: µS/cm}" in said


def test_units_of_flows_and_turbidity_are_known(desk, here: Callable) -> None:
    rows = "".join(f"2024-01-{i:02d};{i},5;{i * i % 31},2;7,{i}\n" for i in range(1, 31))
    desk.put("table.csv", "Tag;FI102;QI7;QI8\n;m³/h;NTU;-\n" + rows)
    said = here("types", "table.csv").stdout
    assert 'FI102: {type: positive, decimal: ",", unit: m³/h}' in said
    assert 'QI7: {type: positive, decimal: ",", unit: NTU}' in said


def test_a_row_of_labels_is_written_back_and_is_no_row(desk, here: Callable) -> None:
    rows = "".join(f"{i:03d}-1,{'AB'[i % 2]},{i % 7}.5,{i if i % 6 else '.'}\n" for i in range(40))
    top = 'USUBJID,ARM,BASE,AVAL\n"Subject, unique",Planned arm,Baseline value,Week 12\n'
    desk.put("table.csv", top + rows)
    said = here("types", "table.csv", "-o", "types.yaml")
    note = "Warning: the row below the header holds labels, and is written back"
    assert said.lines("Warning") == [note]
    types = (desk.folder / "types.yaml").read_text()
    assert 'ARM: {type: categorical, levels: ["A", "B"], label: Planned arm}' in types
    assert "AVAL: {type: count, label: Week 12}" in types
    assert desk.impute().stdout.startswith(top + "000-1,A,0.5,")
    stacked = desk.impute("--multiple", "2").stdout.splitlines()
    assert stacked[1] == ',,"Subject, unique",Planned arm,Baseline value,Week 12'
    assert len(stacked) == 2 + 3 * 40


@pytest.mark.parametrize("questions", [True, False])
def test_questions_and_their_ids_are_no_rows(desk, here: Callable, questions: bool) -> None:
    top = "ResponseId,Q1,Q2_1,Q3\n"
    if questions:  # of a grid they may recur
        top += 'Response ID,How old?,"Do you agree?\n\n - Yes",How old?\n'
    ids = '{""ImportId"":""%s"",""timeZone"":""UTC""}'
    top += ",".join(f'"{ids % name}"' for name in ("_recordId", "QID1", "QID2_1", "QID3")) + "\n"
    scale = ["Agree", "Neither agree nor disagree", "Disagree"]
    rows = "".join(
        f"R_{i:03d},{i % 9 + 20},{scale[i % 3]},{i if i % 6 else ''}\n" for i in range(40)
    )
    desk.put("table.csv", top + rows)
    said = here("types", "table.csv", "-o", "types.yaml")
    held = "rows below the header hold labels and ids" if questions else "holds ids of questions"
    assert held in said.lines("Warning")[0]
    types = (desk.folder / "types.yaml").read_text()
    assert "40 rows, 4 columns" in types
    assert "Q2_1: {type: ordinal, levels: [Disagree" in types.replace('"', "")
    assert ('label: "How old?"' in types) is questions
    assert desk.impute().stdout.startswith(top + "R_000,20,Agree,")
    desk.impute("--flags", "-o", "flagged.csv")
    again = read_table(desk.folder / "flagged.csv")
    assert again.num_rows == 40
    desk.impute("-o", "out.xlsx")
    assert read_table(desk.folder / "out.xlsx").num_rows == 40
    parts = list(read_batches(desk.folder / "table.csv", 15))
    assert [part.num_rows for part in parts] == [15, 15, 10]


@pytest.mark.parametrize(
    "first",
    [
        "P1,A,ND,NQ",  # codes
        "P1,A,ND,not done",
        "P1,A,not done,not done",
        "P1,A,not done,3",
        "P1,,not done,missing",
        "A99,A,not done,unknown",  # A1 stands below
        "P1,B,not done,unknown",
        "1,A,not done,unknown",
    ],
)
def test_a_row_of_codes_is_no_row_of_labels(desk, here: Callable, first: str) -> None:
    rows = "".join(f"A{i},{'BC'[i % 2]},{i % 7}.5,{i}\n" for i in range(40))
    desk.put("table.csv", f"id,arm,x,y\n{first}\n{rows}")
    said = here("types", "table.csv")
    assert "holds labels" not in said.stderr
    assert "41 rows" in said.stdout
    one = "".join(f"A{i},{'BC'[i % 2]},{i % 7}.5\n" for i in range(40))
    desk.put("table.csv", f"id,arm,x\nP1,A,not done\n{one}")  # one column of numbers
    assert "41 rows" in here("types", "table.csv").stdout


def test_a_last_row_that_looks_like_a_total_is_named(desk, here: Callable) -> None:
    rows = "".join(f"{'north' if i % 2 else 'south'},{i},{i * 1.5}\n" for i in range(30))
    desk.put("table.csv", f"region,n,cost\n{rows}Total:,435,652.5\n")
    said = here("types", "table.csv", "-o", "types.yaml").lines("Warning")
    assert len(said) == 1
    assert "the last row, 31, looks like a total of the others ('region' is 'Total:')" in said[0]
    desk.put("table.csv", f"region,n,cost\nTotal:,1,2\n{rows}Total:,435,652.5\n")  # a level
    assert here("types", "table.csv").lines("Warning") == []


def test_last_rows_that_look_like_totals_and_means_are_named(desk, here: Callable) -> None:
    rows = "".join(f"{i},{i},{i * 1.5}\n" for i in range(30))
    for names, shown in (
        (["Mittelwert"], "the last row, 31, looks like a total of the others ('Nr'"),
        (["Mean", "SD", "Max."], "the last 3 rows, from 31, look like totals of the others ('Nr'"),
        (["Max"], None),
        (["Total", "Total"], None),
    ):
        desk.put("table.csv", f"Nr,n,cost\n{rows}" + "".join(f"{name},3,9.5\n" for name in names))
        said = here("types", "table.csv").lines("Warning")
        assert [shown in line for line in said] == ([True] if shown else [])


NOTES = ";;;\n* unsicher;;;\n1) verunreinigt;;;\n"


@pytest.mark.parametrize("end", ["", "Mittelwert;2,5;x;3\n"])
def test_notes_below_a_blank_line_or_a_total_are_no_rows(desk, here: Callable, end: str) -> None:
    notes = NOTES if not end else NOTES[4:]
    desk.put("table.csv", f"Nr;a;b;c\n{ROWS}{end}{notes}")
    said = here("types", "table.csv", "-o", "types.yaml")
    line = "Warning: the 2 lines below the table stand for no rows, and are written back"
    assert line in said.lines("Warning")
    assert f"{31 if end else 30} rows" in (desk.folder / "types.yaml").read_text()
    assert desk.impute().stdout.endswith(notes)
    desk.impute("--flags", "-o", "flagged.csv")
    assert read_table(desk.folder / "flagged.csv").num_rows == (31 if end else 30)


@pytest.mark.parametrize(
    "last",
    [
        ";;;\nP97;;;\nP98;;;\n",  # ids of rows to come
        ";;;\n97;;;\n",
        ";;;\nunsicher;;;\n;;x;\n",
        "* unsicher;;;\n",  # a row, for all that the file says
        ";;;\nunsicher;;x;\n",
        ";;;\nunsicher;1,5;;\n",
        ";;;\n",
        "Ernst;1,5;;\nunsicher;;;\n",
    ],
)
def test_rows_with_little_in_them_stay_rows(desk, here: Callable, last: str) -> None:
    desk.put("table.csv", f"Nr;a;b;c\n{'P' + ROWS[:-1].replace(chr(10), chr(10) + 'P')}\n{last}")
    said = here("types", "table.csv")
    assert "below the table" not in said.stderr
    assert f"{30 + last.count(chr(10))} rows" in said.stdout


def test_notes_below_the_table_of_a_workbook_are_written_back(desk, here: Callable) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in [("Nr", "a", "b")] + [(i, i % 7, i % 5 or None) for i in range(30)]:
        book.active.append(row)
    book.active.append((None, None, None))
    book.active.append(("* uncertain",))
    book.save(desk.folder / "table.xlsx")
    said = here("types", "table.xlsx", "-o", "types.yaml")
    assert "the line below the table stands for no row" in said.stderr
    assert "30 rows" in (desk.folder / "types.yaml").read_text()
    desk.impute("-o", "out.xlsx", table="table.xlsx")
    sheet = list(openpyxl.load_workbook(desk.folder / "out.xlsx").active.values)
    assert len(sheet) == 33
    assert sheet[-1][0] == "* uncertain"
    assert sheet[-2][0] is None


def test_names_of_groups_of_columns_stand_above_the_header(desk, here: Callable) -> None:
    top = "Labor;;;\nProbe;Metalle;;\nNr;Pb;Art;Zn\n"
    rows = "".join(f"{i};{i % 5},5;{TOWNS[i % 4]};{i % 7}\n" for i in range(30))
    desk.put("table.csv", (top + rows).encode("cp1252"))
    said = here("types", "table.csv", "-o", "types.yaml")
    assert "the 2 lines above the header stand for no rows" in said.stderr
    assert desk.impute().output.decode("cp1252").startswith(top + "0;0,5;")
    for first, last in (  # of rows below a header that lacks a name
        ("A;B;C;", 2),
        ("x0;ND;z;NQ", 2),
        ("1;ND;z;NQ", 2),
        ("A;ND;z;ND", 2),
        ("A;ND;z;NQ", "w"),
    ):
        rows = "".join(f"x{i};{i};y;{last}\n" for i in range(9))
        desk.put("table.csv", f"Nr;;Art;Zn\n{first}\n{rows}")
        said = here("types", "table.csv")
        assert said.status == 2
        assert "column 2 of 4 has no name" in said.stderr


def test_notes_under_a_table_are_told_from_rows(desk, here: Callable) -> None:
    desk.put("table.csv", "a,b\n1,x\n2,y\n\n* above the limit\n")
    said = here("types", "table.csv")
    assert said.status == 2
    assert "Hint: Delete it, and the line below it, which look like notes" in said.stderr
    rows = "".join(f"{i},x,y\n" for i in range(40))
    for notes, lines in (("End\n", "this line"), ("40 rows\nEnd\n", "the last 2 lines")):
        desk.put("table.csv", f"a,b,c\n{rows}{notes}")
        said = here("types", "table.csv")
        assert said.lines("Hint") == [
            f"Hint: Delete {lines}, if notes under the table; else add the missing delimiters."
        ]
    desk.put("table.csv", f"a,b,c\nEnd\n{rows}")
    assert "Hint: Add the missing delimiters" in here("types", "table.csv").stderr


def test_a_row_that_only_looks_like_units_stays_a_row(desk, here: Callable) -> None:
    desk.put("table.csv", "sex,grade\nm,1\n" + "m,2\nf,1\n" * 20)
    assert here("types", "table.csv", "-o", "types.yaml").lines("Warning") == []
    assert desk.impute().stdout.startswith("sex,grade\nm,1\n")


def test_cells_that_stay_intervals_stay_in_files_of_typed_columns(desk) -> None:
    rows = "".join(f"{i},{'<2' if i % 5 == 0 else i / 7},{i if i % 3 else ''}\n" for i in range(30))
    desk.put("table.csv", f"id,lab,x\n{rows}")
    desk.put("types.yaml", "columns: {id: id, lab: positive, x: real}")
    for name in ("out.parquet", "out.xlsx", "out.arrow"):
        desk.impute("-o", name)
        lab = read_table(desk.folder / name)["lab"].to_pylist()
        assert lab[::5] == ["<2"] * 6
        assert float(lab[1]) == 1 / 7
    desk.put("types.yaml", "columns: {id: id, lab: {type: positive, impute: censored}, x: real}")
    desk.impute("-o", "out.parquet")
    lab = read_table(desk.folder / "out.parquet")["lab"].to_pylist()
    assert all(0.0 < x < 2.0 for x in lab[::5])


def test_no_point_is_written_into_a_file_of_decimal_commas(desk) -> None:
    rows = "".join(f"{i / 7:.2f};{170 + i % 9 if i % 4 else ''}\n" for i in range(40))
    desk.put("table.csv", "x;height\n" + rows.replace(".", ","))
    desk.put("types.yaml", 'columns: {x: {type: real, decimal: ","}, height: positive}')
    done = desk.impute("--cells", "cells.csv")
    assert "." not in done.stdout
    cells = read_table(desk.folder / "cells.csv").to_pylist()
    assert all(150 < int(cell["estimate"]) < 200 for cell in cells)


def test_cells_have_points_whatever_marks_the_table_has(desk) -> None:
    rows = "".join(f"{i};{f'{i / 7:.2f} %' if i % 4 else ''}\n" for i in range(40))
    desk.put("table.csv", "n;share\n" + rows.replace(".", ","))
    types = 'columns: {n: count, share: {type: real, decimal: ",", percent: true}}'
    desk.put("types.yaml", types)
    desk.impute("--cells", "cells.csv")
    for cell in read_table(desk.folder / "cells.csv").to_pylist():
        lower, estimate, upper = (float(cell[one]) for one in ("lower", "estimate", "upper"))
        assert lower <= estimate <= upper
        assert abs(estimate - float(cell["mean"])) < 0.01


def test_a_list_of_objects_is_told_how_to_become_a_table(desk, here: Callable) -> None:
    desk.put("table.json", '[{"a": 1}, {"a": 2}]')
    said = here("types", "table.json")
    assert said.status == 2
    assert "`jq -c '.[]' table.json > table.jsonl`" in said.stderr
