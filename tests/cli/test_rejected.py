"""Bad input: one line that says what is wrong and where, status 2, and no file touched."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

TABLE = "a,b\n1,x\n,y\n3,\n2,x\n"
TYPES = "columns:\n  a: real\n  b: categorical\n"
SUFFIXES = "expected a name ending in .csv, .tsv, .txt, .jsonl, .ndjson, .parquet, .pq, .arrow"


def a_is(said: str) -> str:
    """Return a types file in which column a is something else."""
    return f"columns: {{a: {said}, b: categorical}}\n"


@pytest.fixture
def desk(desk: Any) -> Any:
    """A desk with a good table, its types file, and outputs of an earlier run."""
    desk.put("table.csv", TABLE)
    desk.put("types.yaml", TYPES)
    for name in ("out.csv", "cells.csv", "p.csv"):
        desk.put(name, f"old {name}")
    return desk


# The table -----------------------------------------------------------------------------------

TABLES: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "table.csv: is empty, expected a header line and at least one row"),
    "blank": ("\n \n", "table.csv: is empty, expected a header line"),
    "header only": ("a,b\n", "table.csv: has a header but no rows"),
    "short row": ("a,b\n1,x\n2\n3,y\n", "table.csv, row 2: found 1 field, expected 2, as in"),
    "long row": ("a,b\n1,x\n2,y,z\n", "table.csv, row 2: found 3 fields, expected 2, as in"),
    "blank line": ("a,b\n1,x\n\n2,y\n", "table.csv, row 2: the line is blank"),
    "same name twice": ("a,a\n1,2\n", "table.csv, column 'a': columns 1 and 2 have the same name"),
    "no name": ("a,\n1,x\n", "table.csv: column 2 of 2 has no name"),
    "unclosed quote": ('a,b\n1,x\n2,"y\n', "table.csv, row 2: a cell opens with a quote that is"),
    "text after quote": ('a,b\n1,"x"z\n', "table.csv, row 1: text follows the closing quote"),
    "odd byte": (b"a,b\n\xc3\xa9,\xc3\xa9\ncaf\xe9,y\n", "table.csv, row 2: byte 14"),
    "cut UTF-16": (
        b"\xff\xfea\0,\0b\0\n\0" + b"1",
        "table.csv: its byte-order mark says UTF-16, but byte 11 of the file does not fit",
    ),
    "NUL": ("a,b\n1,x\n2,\0\n", "table.csv, row 2: byte 11 of the file is NUL"),
    "binary junk": (bytes(range(128, 256)) * 9, "table.csv: byte 1 of the file (in the header)"),
    "gzip data": (gzip.compress(TABLE.encode()), "table.csv: holds gzip data, not text"),
    "workbook": (b"PK\x03\x04...", "table.csv: holds an Excel workbook or a zip archive, not"),
    "uncovered column": (
        "a,b,c\n1,x,2\n",
        "types.yaml, column 'c': the types file has no entry for this column of the table",
    ),
    "text in a number": (
        "a,b\n1,x\nhello,y\n",
        "table.csv, column 'a', row 2: found 'hello', expected a number",
    ),
    "decimal comma": ("a;b\n1,5;x\n", "table.csv, column 'a', row 1: found '1,5', expected a n"),
    "thousands": ("a,b\n1_000,x\n", "table.csv, column 'a', row 1: found '1_000', expected a n"),
    "infinity": ("a,b\n1,x\ninf,y\n", "table.csv, column 'a', row 2: found 'inf', expected a n"),
    "minus infinity": ("a,b\n-Infinity,x\n", "table.csv, column 'a', row 1: found '-Infinity', "),
    "NaN": ("a,b\n1,x\nNaN,y\n", "table.csv, column 'a', row 2: found 'NaN', expected a number"),
    "1e400": (
        "a,b\n1,x\n1e400,y\n",
        "table.csv, column 'a', row 2: found '1e400', expected a number below 1.8e308 in size",
    ),
    "nothing observed": (
        "a,b\n,x\n,y\n",
        "table.csv, column 'a': no cell of it is observed, so there is nothing to learn from, "
        "expected at least one value",
    ),
}


@pytest.mark.parametrize(("table", "error"), TABLES.values(), ids=TABLES)
def test_a_bad_table_is_rejected(desk: Any, table: str | bytes, error: str) -> None:
    desk.put("table.csv", table)
    desk.check_rejected(error, desk.impute, "-o", "out.csv")


def test_a_cut_gzip_file_is_rejected(desk: Any) -> None:
    desk.put("table.csv.gz", gzip.compress(TABLE.encode())[:-9])
    desk.check_rejected(
        "table.csv.gz: is damaged or cut off", desk.impute, "-o", "out.csv", table="table.csv.gz"
    )


def test_a_text_file_named_as_gzip_is_rejected(desk: Any) -> None:
    desk.put("table.csv.gz", TABLE)
    desk.check_rejected(
        "table.csv.gz: is not gzip data", desk.impute, "-o", "out.csv", table="table.csv.gz"
    )


def test_a_cut_parquet_file_is_rejected(desk: Any) -> None:
    pq.write_table(pa.table({"a": [1.0, None], "b": ["x", "y"]}), "whole.parquet")
    desk.put("table.parquet", (desk.folder / "whole.parquet").read_bytes()[:-20])
    error = "table.parquet: cannot be read as Parquet: it is damaged, cut off"
    desk.check_rejected(error, desk.impute, "-o", "out.csv", table="table.parquet")


def test_a_csv_file_named_as_parquet_is_rejected(desk: Any) -> None:
    desk.put("table.parquet", TABLE)
    error = "table.parquet: is not a Parquet file"
    desk.check_rejected(error, desk.impute, "-o", "out.csv", table="table.parquet")


def test_infinity_in_a_parquet_file_is_rejected(desk: Any) -> None:
    pq.write_table(pa.table({"a": [1.0, float("inf")], "b": ["x", "y"]}), "table.parquet")
    error = "table.parquet, column 'a', row 2: found inf, expected a finite number"
    desk.check_rejected(error, desk.impute, "-o", "out.csv", table="table.parquet")


def test_dates_as_numbers_are_rejected(desk: Any) -> None:
    days = pa.array([1, 2], pa.date32())
    pq.write_table(pa.table({"a": days, "b": ["x", "y"]}), "table.parquet")
    error = "table.parquet, column 'a': has type real, but the table holds dates or times"
    desk.check_rejected(error, desk.impute, "-o", "out.csv", table="table.parquet")


def test_a_missing_table_is_rejected(desk: Any) -> None:
    error = "none.csv: cannot be read: there is no such file"
    desk.check_rejected(error, desk.impute, "-o", "out.csv", table="none.csv")


def test_a_name_that_tells_no_format_is_rejected(desk: Any) -> None:
    desk.put("table.docx", TABLE)
    error = f"table.docx: the name does not tell the table's format, {SUFFIXES}"
    desk.check_rejected(error, desk.impute, table="table.docx")


# The types file ------------------------------------------------------------------------------

TYPES_FILES: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "types.yaml: the file is empty"),
    "only comments": ("# nothing\n", "types.yaml: the file is empty"),
    "a word": ("hello", "types.yaml: is not a types file, found 'hello', expected a mapping"),
    "a list": ("- a\n- b\n", "types.yaml: is not a types file, found a list of 2, expected a m"),
    "the table": (TABLE, "types.yaml: is not a types file, found 'a,b 1,x ,y 3, 2,x', expected"),
    "not YAML": ("columns: [a: {", "types.yaml: is not valid YAML: line"),
    "a tab": ("columns:\n\ta: real\n", "types.yaml: is not valid YAML: line 2"),
    "binary junk": (b"\x00\xff\x01", "types.yaml: is not a types file, expected YAML text"),
    "Latin-1": (
        "columns:\n  é: real".encode("latin-1"),
        "types.yaml: line 2 is not UTF-8 text, found byte 0xe9",
    ),
    "duplicate key": (
        "columns:\n  a: real\n  a: count\n  b: categorical\n",
        "types.yaml: line 3: 'a' is written twice (first in line 2)",
    ),
    "no columns": ("glfm: 1\n", "types.yaml: `columns` is missing, expected a mapping from"),
    "unknown version": ("glfm: 2\n" + TYPES, "types.yaml: this version of the format is not known"),
    "unknown key at the top": (
        TYPES + "colums: {}\n",
        "types.yaml: unknown key, found 'colums', expected glfm, missing, rest or columns",
    ),
    "unknown key": (
        a_is("{typ: real}"),
        "types.yaml, column 'a': unknown key, found 'typ', expected type, role, levels, aliases",
    ),
    "unknown column": (TYPES + "  c: real\n", "types.yaml, column 'c': the table has no such col"),
    "unknown pattern": (
        TYPES + '  "z*": real\n',
        "types.yaml: the pattern 'z*' matches no column of the table",
    ),
    "unknown word": (
        a_is("reel"),
        "types.yaml, column 'a': found 'reel', expected a type (real, positive, count, "
        "categorical, ordinal, binomial, date, duration) or a role (feature, predictor, ",
    ),
    "unknown type": (
        a_is("{type: reel}"),
        "types.yaml, column 'a': unknown type, found 'reel', expected real, positive, count",
    ),
    "unknown role": (
        a_is("{role: prediktor, type: real}"),
        "types.yaml, column 'a': unknown role, found 'prediktor', expected feature, predictor",
    ),
    "unknown transform": (
        a_is("{type: real, transform: ln}"),
        "types.yaml, column 'a': unknown transform, found 'ln', expected none, log, log1p, logit",
    ),
    "no type": (a_is("{unit: EUR}"), "types.yaml, column 'a': a feature column needs a type, exp"),
    "bounds reversed": (
        a_is("{type: real, bounds: [9, 0]}"),
        "types.yaml, column 'a': `bounds`, found [9, 0], expected the lower limit first",
    ),
    "bounds of one number": (
        a_is("{type: real, bounds: 9}"),
        "types.yaml, column 'a': `bounds`, found '9', expected a lower and an upper limit",
    ),
    "bounds below the type": (
        a_is("{type: count, bounds: [-1, 9]}"),
        "types.yaml, column 'a': `bounds` do not fit type count, found [-1, 9], expected limits",
    ),
    "bounds violated": (
        a_is("{type: real, bounds: [0, 2]}"),
        "table.csv, column 'a', row 3: found '3', expected a value between 0 and 2 (`bounds`)",
    ),
    "levels twice": (
        "columns: {a: real, b: {type: categorical, levels: [x, y, x]}}",
        "types.yaml, column 'b': the level 'x' is listed twice",
    ),
    "levels alike": (
        "columns: {a: {type: ordinal, levels: ['1', '1.0']}, b: categorical}",
        "table.csv, column 'a': levels '1' and '1.0' are the same value",
    ),
    "level is a code": (
        "columns: {a: real, b: {type: categorical, levels: [x, y], missing: [x]}}",
        "types.yaml, column 'b': 'x' is both a level and a missing code",
    ),
    "unknown level": (
        "columns: {a: real, b: {type: categorical, levels: [x, z]}}",
        "table.csv, column 'b', row 2: found 'y', expected one of x, z",
    ),
    "words without order": (
        "columns: {a: real, b: ordinal}",
        "table.csv, column 'b': has type ordinal and no `levels`, and 'x' is not a number to order",
    ),
    "levels of a number": (
        a_is("{type: real, levels: ['1']}"),
        "types.yaml, column 'a': `levels` does not go with type real",
    ),
    "all ignored": (
        "columns: {a: ignore, b: id}",
        "types.yaml: no column of the types file is modelled: all are id or ignore, expected at",
    ),
    "trials that are not there": (
        "columns: {a: {type: binomial, trials: c}, b: count}",
        "types.yaml, column 'a': `trials` names 'c', which the table does not have",
    ),
    "triplets": (
        "columns: {a: {role: value, type: real}, b: row}",
        "types.yaml: a column has role row, but none has role column",
    ),
}


@pytest.mark.parametrize(("types", "error"), TYPES_FILES.values(), ids=TYPES_FILES)
def test_a_bad_types_file_is_rejected(desk: Any, types: str | bytes, error: str) -> None:
    desk.put("types.yaml", types)
    desk.check_rejected(error, desk.impute, "-o", "out.csv")


def test_a_missing_types_file_is_rejected(desk: Any) -> None:
    error = "none.yaml: cannot be read: No such file or directory"
    desk.check_rejected(error, desk.impute, "-o", "out.csv", types="none.yaml")


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("positive", "-3", "a value of 0 or above (type positive)"),
        ("count", "3.5", "a whole number from 0 to 2^53 (type count)"),
        ("count", "-2", "a whole number from 0 to 2^53 (type count)"),
        ("count", "9007199254740994", "a whole number from 0 to 2^53 (type count)"),
        ("{type: real, transform: log}", "0", "a value above 0 (`transform: log`)"),
        ("{type: real, transform: sqrt}", "-1", "a value of 0 or above (`transform: sqrt`)"),
        ("{type: real, transform: log1p}", "-1", "a value above -1 (`transform: log1p`)"),
        (
            "{type: real, transform: logit, bounds: [0, 9]}",
            "9",
            "a value between 0 and 9, both excluded (`transform: logit`)",
        ),
        (
            "{type: real, transform: log, reflect: 5}",
            "5",
            "a value below 5 (`transform: log with reflect: 5`)",
        ),
    ],
)
def test_a_value_outside_its_columns_support_is_rejected(
    desk: Any, kind: str, value: str, expected: str
) -> None:
    desk.put("types.yaml", a_is(kind))
    desk.put("table.csv", f"a,b\n1,x\n,y\n{value},x\n")
    error = f"table.csv, column 'a', row 3: found '{value}', expected {expected}"
    desk.check_rejected(error, desk.impute, "-o", "out.csv")


def test_only_zeros_in_a_positive_column_are_rejected(desk: Any) -> None:
    desk.put("types.yaml", a_is("positive"))
    desk.put("table.csv", "a,b\n0,x\n,y\n0,x\n")
    error = "table.csv, column 'a': has type positive, but every observed value is 0"
    desk.check_rejected(error, desk.impute, "-o", "out.csv")


# Options -------------------------------------------------------------------------------------

OPTIONS: dict[str, str] = {
    "--set max_feature=3": "--set max_feature: no such setting",
    "--set max_features": "--set max_features: expected name=value",
    "--set =3": "--set =3: expected name=value",
    "--set max_features=many": "--set max_features, found many, expected a whole number",
    "--set max_features=1.5": "--set max_features, found 1.5, expected a whole number",
    "--set max_features=20000": "--set max_features, found 20000, expected a whole number from 0",
    "--set alpha=-1": "--set alpha, found -1.0, expected a number from 1e-10 to 1e10, or auto",
    "--set weight_variance=1e300": "--set weight_variance, found 1e+300, expected a number from",
    "--set alpha=nan": "--set alpha, found nan, expected a finite number",
    "--set bias=maybe": "--set bias, found maybe, expected true or false",
    "--set prior_scale=mine": "--set prior_scale, found mine, expected noise or independent",
    "--set link=papr": "--set link, found papr, expected scaled or paper",
    "--set link_noise=-1": "--set link_noise, found -1.0, expected a number of 0 or more",
    "--set initial_share=1": "--set initial_share, found 1.0, expected a share in (0, 1)",
    "--estimate average": "--estimate, found average, expected auto or mean or median or mode or d",
    "--interval 95": "--interval, found 95.0, expected a number between 0 and 1",
    "--interval nan": "--interval, found nan, expected a number between 0 and 1",
    "--model gflm": "--model, found gflm, expected",
    "--model iqgme": "--model iqgme predicts a label",
    "--time-limit 0": "--time-limit, found 0.0, expected seconds above 0",
    "--time-limit inf": "--time-limit, found inf, expected seconds above 0",
    "--chains 0": "Invalid value for '--chains'",
    "--warmup -1": "Invalid value for '--warmup'",
    "--draws none": "Invalid value for '--draws'",
    "--thin 0": "Invalid value for '--thin'",
    "--seed -1": "Invalid value for '--seed'",
    "--threads 0": "Invalid value for '--threads'",
    "--sede 1": "No such option: --sede",
    "another.csv": "Got unexpected extra argument",
}


@pytest.mark.parametrize("options", OPTIONS)
def test_a_bad_option_is_rejected(desk: Any, options: str) -> None:
    desk.check_rejected(OPTIONS[options], desk.impute, "-o", "out.csv", *options.split())


def test_a_misspelled_setting_gets_a_suggestion(desk: Any) -> None:
    said = desk.check_rejected("--set", desk.impute, "--set", "max_feature=3")
    assert said.lines("Hint")[0].startswith("Hint: Did you mean 'max_features'? Settings: alpha, ")


# Outputs -------------------------------------------------------------------------------------

OUTPUTS: dict[str, str] = {
    "-o table.csv": "table.csv: --output is the table itself",
    "-o ./table.csv": "table.csv: --output is the table itself",
    "-o link.csv": "link.csv: --output is the table itself",
    "-o hard.csv": "hard.csv: --output is the table itself",
    "-o types.yaml": "types.yaml: --output is the types file",
    "-o out.csv --cells table.csv": "table.csv: --cells is the table itself",
    "-o out.csv --probabilities types.yaml": "types.yaml: --probabilities is the types file",
    "-o out.csv --cells out.csv": "out.csv: --cells and --output name the same file",
    "-o new.csv --cells ./new.csv": "new.csv: --cells and --output name the same file",
    "-o out.csv --cells p.csv --probabilities p.csv": "p.csv: --probabilities and --cells name",
    "-o none/out.csv": "none/out.csv: cannot be written: the folder it should be in does not",
    "-o out.csv/out.csv": "out.csv/out.csv: cannot be written: a part of its path is a file",
    "-o folder.csv": "folder.csv: is a folder, so no file can be written there",
    "-o out.csv --cells none/cells.csv": "none/cells.csv: cannot be written: the folder it should",
    "-o out.doc": f"out.doc: the name does not tell the table's format, {SUFFIXES}",
    "-o out.doc --cells cells.csv": "out.doc: the name does not tell the table's format",
    "-o out.csv --cells cells.doc": "cells.doc: the name does not tell the table's format",
    "-o out.csv --probabilities p.doc": "p.doc: the name does not tell the table's format",
    "-o out.doc --dry-run": "out.doc: the name does not tell the table's format",
    "-o none/out.csv --dry-run": "none/out.csv: cannot be written: the folder it should be in",
    "--json": "--json and the table both go to standard output",
    "--json -o -": "--json and --output both go to standard output",
    "--json -o out.csv --cells -": "--json and --cells both go to standard output",
    "--cells -": "the table and --cells both go to standard output",
    "-o out.csv --cells - --probabilities -": "--cells and --probabilities both go to standard",
}


@pytest.mark.parametrize("options", OUTPUTS)
def test_a_bad_output_is_rejected_before_the_work(desk: Any, options: str) -> None:
    table = desk.folder / "table.csv"
    (desk.folder / "link.csv").symlink_to(table)
    os.link(table, desk.folder / "hard.csv")
    (desk.folder / "folder.csv").mkdir()
    desk.check_rejected(OUTPUTS[options], desk.impute, *options.split())


@pytest.mark.usefixtures("bound_by_permissions")
def test_a_folder_without_permission_is_rejected(desk: Any) -> None:
    folder = desk.folder / "locked"
    folder.mkdir(mode=0o500)
    error = "locked/out.csv: cannot be written: no permission to write there"
    desk.check_rejected(error, desk.impute, "-o", "locked/out.csv")


def test_a_folder_that_takes_no_files_is_rejected(desk: Any) -> None:
    if not Path("/proc/self").is_dir():
        pytest.skip("no folder that refuses files, even to root")
    error = "/proc/self/out.csv: cannot be written: "
    desk.check_rejected(error, desk.impute, "-o", "/proc/self/out.csv")


def test_flags_that_clash_with_a_column_are_rejected(desk: Any) -> None:
    desk.put("table.csv", "a,a_imp\n1,x\n,y\n")
    desk.put("types.yaml", "columns: {a: real}\nrest: categorical\n")
    error = "column 'a_imp': the table already has a column of the name that the flags need"
    desk.check_rejected(error, desk.impute, "-o", "out.csv", "--flags")


def test_an_id_that_clashes_with_a_column_of_the_cells_is_rejected(desk: Any) -> None:
    desk.put("table.csv", "row,a\n1,2\n2,\n")
    desk.put("types.yaml", "columns: {row: id, a: real}")
    error = "column 'row': the list of completed cells has a column of this name"
    desk.check_rejected(error, desk.impute, "-o", "out.csv", "--cells", "cells.csv")


def test_lists_that_csv_cannot_hold_are_rejected_before_the_work(desk: Any) -> None:
    table = pa.table({"a": [1.0, None], "tags": [["x"], ["y", "z"]]})
    pq.write_table(table, "table.parquet")
    desk.put("types.yaml", "columns: {a: real, tags: id}")
    error = "column 'tags': CSV cannot hold values of type list<"
    desk.check_rejected(error, desk.impute, "-o", "out.csv", table="table.parquet")
    desk.check_rejected(
        error, desk.impute, "-o", "out.parquet", "--cells", "cells.csv", table="table.parquet"
    )
