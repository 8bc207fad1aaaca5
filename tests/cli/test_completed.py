"""Odd but legitimate input: completed, with a warning where one is due."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from glfm_cli.io import read_table, write_table

Fits = Callable[[str, set[str]], bool]

FITS: dict[str, Fits] = {
    "real": lambda text, seen: math.isfinite(float(text)),
    "positive": lambda text, seen: 0 < float(text) < math.inf or (float(text) == 0 and "0" in seen),
    "count": lambda text, seen: text.isdecimal() and int(text) <= 2**53,
    "categorical": lambda text, seen: text in seen,
    "ordinal": lambda text, seen: text in seen,
}


def check_completed(before: str, after: str, kinds: Sequence[str]) -> None:
    """Check that missing cells hold values of the columns' kinds and all else is as it was."""
    # The csv module gives an empty line, a missing cell of one column, as a row without cells.
    old, new = ([row or [""] for row in csv.reader(io.StringIO(text))] for text in (before, after))
    assert new[0] == old[0]
    assert len(new) == len(old)
    columns = list(zip(*old[1:], strict=True))
    for was, now in zip(old[1:], new[1:], strict=True):
        for kind, column, x, y in zip(kinds, columns, was, now, strict=True):
            if x or kind in ("id", "ignore", "predictor"):
                assert y == x
            else:
                assert FITS[kind](y, set(column) - {""}), f"{y} is not {kind}"


def types_of(table: str, kinds: Sequence[str]) -> str:
    """Return a types file that gives each column its kind."""
    names = next(csv.reader(io.StringIO(table)))
    return json.dumps({"columns": dict(zip(names, kinds, strict=True))})


# Parts of warnings.
ALONE = "so the column says nothing about others"
RESTS = "only one cell is observed; its completed cells all rest on it"
NO_GAP = "no cell is to be completed: the table has no missing cell in the completed columns"
ONE_COLUMN = "only one column is modelled, so missing cells follow its distribution alone"
FOLLOWS = "no observed value and can only follow the columns' distributions"
REAL, POSITIVE, COUNT = "real categorical", "positive categorical", "count categorical"
ORDINAL = "ordinal categorical"

# What is odd: the table, the kinds of its columns, and the warnings, each by a part of it.
ODD: dict[str, tuple[str, str, list[str]]] = {
    "constant real": ("a,b\n5,x\n5,y\n,x\n5,\n", REAL, [f"'a': every observed cell is 5, {ALONE}"]),
    "constant positive": ("a,b\n5,x\n5,y\n,x\n5,\n", POSITIVE, [f"observed cell is 5, {ALONE}"]),
    "constant count": ("a,b\n5,x\n5,y\n,x\n5,\n", COUNT, [f"every observed cell is 5, {ALONE}"]),
    "single level": (
        "a,b\n1,x\n,x\n3,\n2,x\n",
        REAL,
        [f"'b': every observed cell is 'x', {ALONE}"],
    ),
    "single step": (
        "a,b\n4,x\n,y\n4,\n4,x\n",
        ORDINAL,
        [f"'a': every observed cell is '4', {ALONE}"],
    ),
    "row without a value": ("a,b\n1,x\n,\n3,y\n2,x\n", REAL, [f"row 2 has {FOLLOWS}"]),
    "one row with a value": (
        "a,b\n1,x\n,\n,\n",
        REAL,
        [f"'a': {RESTS}", f"'b': {RESTS}", f"2 rows (the first: row 2) have {FOLLOWS}"],
    ),
    "column with one value": ("a,b\n,x\n,y\n7,x\n,y\n", REAL, [f"'a': {RESTS}"]),
    "count with one value": ("a,b\n,x\n,y\n7,x\n,y\n", COUNT, [f"'a': {RESTS}"]),
    "positive with one value": ("a,b\n,x\n,y\n7,x\n,y\n", POSITIVE, [f"'a': {RESTS}"]),
    "step with one value": ("a,b\n,x\n,y\n7,x\n,y\n", ORDINAL, [f"'a': {RESTS}"]),
    "one column": ("a\n5\n\n7\n8\n", "real", [f"row 2 has {FOLLOWS}", ONE_COLUMN]),
    "one column of levels": ("a\nx\n\ny\n", "categorical", [f"row 2 has {FOLLOWS}", ONE_COLUMN]),
    "one modelled column": (
        "id,a\nP1,5\nP2,\nP3,7\n",
        "id real",
        [f"row 2 has {FOLLOWS}", ONE_COLUMN],
    ),
    "one row": ("a,b\n1,x\n", REAL, [NO_GAP]),
    "one row with a missing cell": ("a,b\n1,x\n2,\n", REAL, [f"'b': {RESTS}"]),
    "one cell": ("a\n1\n", "count", [ONE_COLUMN, NO_GAP]),
    "two rows": ("a,b\n1,x\n,y\n", REAL, [f"'a': {RESTS}"]),
    "two identical rows": ("a,b\n1,x\n1,x\n", REAL, ["'a': every", "'b': every", NO_GAP]),
    "many identical rows": ("a,b\n" + "1,x\n2,y\n" * 30 + ",x\n2,\n", COUNT, []),
    "no missing cell": ("a,b\n1,x\n2,y\n3,x\n", REAL, [NO_GAP]),
    "zeros in a positive column": (
        "a,b\n0,x\n0,y\n,x\n3,\n5,x\n",
        POSITIVE,
        ["'a': 2 cells are 0, taken as below the smallest positive value"],
    ),
    "all zeros but one": (
        "a,b\n0,x\n0,y\n,x\n3,\n0,y\n",
        POSITIVE,
        ["'a': 3 cells are 0, taken as below the smallest positive value"],
    ),
    "zeros in a count": ("a,b\n0,x\n0,y\n,x\n1,\n0,y\n", COUNT, []),
    "1e300": ("a,b\n1e300,x\n1,y\n,x\n3,\n", REAL, []),
    "1e300, positive": ("a,b\n1e300,x\n1,y\n,x\n3,\n", POSITIVE, []),
    "1e-300": ("a,b\n1e-300,x\n2e-300,y\n,x\n3e-300,\n", REAL, []),
    "1e-300, positive": ("a,b\n1e-300,x\n2e-300,y\n,x\n1,\n", POSITIVE, []),
    "nearly the largest double": ("a,b\n1.797e308,x\n-1.797e308,y\n,x\n3,\n", REAL, []),
    "the smallest double": ("a,b\n5e-324,x\n1e-323,y\n,x\n1,\n", POSITIVE, []),
    "the largest count": ("a,b\n9007199254740992,x\n9007199254740991,y\n,x\n3,\n", COUNT, []),
    "a level seen once each": ("a,b\n1,x\n2,y\n3,z\n,w\n5,\n", REAL, []),
    "numbers as levels": ("a,b\n1e300,x\n007,y\n-2.50,x\n,y\n", "categorical categorical", []),
    "numbers in other forms": ("a,b\n+1.50,x\n .5 ,y\n1E2,x\n,y\n1.,\n", REAL, []),
    "names in other scripts": ("größe,城市\n1,京\n,東\n3,\n", REAL, []),
    "awkward names": ('"a b",c.d\n1,x\n,y\n3,\n', REAL, []),
    "names with quotes": ('"e""f","g,h"\n1,x\n,y\n3,\n', REAL, []),
    "names that YAML knows": ("no,null\n1,x\n,y\n3,\n", REAL, []),
    "text that spreadsheets know": ("a,b\n1,=SUM(A1)\n,#N/A\n3,\n", REAL, []),
    "half a predictor": ("a,b\n1,x\n,y\n3,\n2,x\n", "real predictor", ["'b': no type given"]),
    "ignored text": (
        "a,note\n1,\n,ü\n3,\n2,\n",
        "real ignore",
        [f"row 2 has {FOLLOWS}", ONE_COLUMN],
    ),
}


@pytest.mark.parametrize(("table", "kinds", "warnings"), ODD.values(), ids=ODD)
def test_an_odd_table_is_completed(desk: Any, table: str, kinds: str, warnings: list[str]) -> None:
    desk.put("table.csv", table)
    desk.put("types.yaml", types_of(table, kinds.split()))
    said, completed = desk.complete()
    check_completed(table, completed, kinds.split())
    found = said.lines("Warning")
    assert len(found) == len(warnings)
    assert all(part in line for part, line in zip(warnings, found, strict=True))


def test_five_hundred_levels_are_completed_with_a_warning(desk: Any) -> None:
    table = "a,b\n" + "".join(f"{i % 7},L{i}\n" for i in range(500)) + ",L3\n4,\n"
    desk.put("table.csv", table)
    desk.put("types.yaml", types_of(table, REAL.split()))
    said, completed = desk.complete("--warmup", "0", "--draws", "1")
    check_completed(table, completed, REAL.split())
    assert [line[:60] for line in said.lines("Warning")] == [
        "Warning: column 'b': 500 levels make the model slow and each"
    ]


@pytest.mark.parametrize("more", [(), ("--multiple", "2"), ("--estimate", "draw", "--json")])
def test_a_table_without_a_gap_is_not_fitted(
    desk: Any, here: Callable[..., Any], more: tuple[str, ...]
) -> None:
    table = 'id;a;"b"\r\n1;" 1.50";"x;y"\r\n2;2e0;\'z\'\r\n'.encode("utf-16")
    desk.put("table.csv", table)
    desk.put("types.yaml", "columns: {id: id, a: real, b: categorical}")
    said = desk.impute("-o", "out.csv", *more)
    assert (said.status, said.stderr.count("\n"), len(said.lines("Warning"))) == (0, 1, 1)
    assert NO_GAP in said.stderr
    if "--multiple" not in more:
        assert (desk.folder / "out.csv").read_bytes() == table
    if "--json" in more:
        told = json.loads(said.stdout)
        assert (told["draws"], told["cells_completed"], len(told["warnings"])) == (0, 0, 1)
    assert desk.impute("-o", "out.csv", *more, "--save", "kept.glfm").status == 0
    assert (desk.folder / "kept.glfm").is_dir()
    new = here("impute", "table.csv", "-o", "new.csv", "--fit", "kept.glfm")
    assert (new.status, NO_GAP in new.stderr) == (0, True)


# Ways to write a table -----------------------------------------------------------------------

PLAIN = "a,b\n1,x\n,y\n3,\n2,x\n"


GAPS = "a,b\n1,x\n{},y\n3,{}\n2,x\n"
DIALECTS: dict[str, tuple[str, str]] = {
    "CRLF": ("table.csv", GAPS.replace("\n", "\r\n")),
    "CR": ("table.csv", GAPS.replace("\n", "\r")),
    "byte-order mark": ("table.csv", "\ufeff" + GAPS),
    "no last line end": ("table.csv", GAPS.rstrip("\n")),
    "blank lines at the end": ("table.csv", GAPS + "\n\n"),
    "semicolons": ("table.csv", GAPS.replace(",", ";")),
    "bars": ("table.txt", GAPS.replace(",", "|")),
    "tabs": ("table.tsv", GAPS.replace(",", "\t")),
    "line ends in quotes": ("table.csv", 'a,b\n1,"x\ny"\n{},"x\ny"\n3,{}\n4,"say ""hi"""\n'),
    "all in quotes": ("table.csv", '"a","b"\n"1","x"\n"{}","y"\n"3","{}"\n'),
}


@pytest.mark.parametrize(("name", "table"), DIALECTS.values(), ids=DIALECTS)
def test_a_dialect_is_kept(desk: Any, name: str, table: str) -> None:
    desk.put(name, table.format("", ""))
    desk.put("types.yaml", "columns: {a: real, b: categorical}")
    assert desk.impute("-o", f"out{name[-4:]}", table=name).status == 0
    after = (desk.folder / f"out{name[-4:]}").read_bytes().decode()
    found = re.fullmatch(re.escape(table).replace(r"\{\}", "(.+)"), after, re.DOTALL)
    assert found is not None
    assert math.isfinite(float(found[1]))
    assert found[2] in ("x", "y", '"x\ny"', '"say ""hi"""')


def test_compressed_tables_come_in_and_go_out(desk: Any) -> None:
    desk.put("table.csv.gz", gzip.compress(PLAIN.encode()))
    desk.put("types.yaml", "columns: {a: real, b: categorical}")
    assert desk.impute("-o", "out.csv.gz", table="table.csv.gz").status == 0
    after = gzip.decompress((desk.folder / "out.csv.gz").read_bytes()).decode()
    check_completed(PLAIN, after, ["real", "categorical"])


def test_standard_input_and_output_are_dashes(glfm: Any, tmp_path: Any) -> None:
    (tmp_path / "types.yaml").write_text("columns: {a: real, b: categorical}")
    short = ["--types", "types.yaml", "--chains", "1", "--warmup", "5", "--draws", "5"]
    done = glfm("impute", "-", *short, "-o", "-", "--quiet", stdin=PLAIN.encode())
    assert (done.returncode, done.stderr) == (0, "")
    check_completed(PLAIN, done.stdout, ["real", "categorical"])


def test_standard_input_may_be_arrow(glfm: Any, tmp_path: Any) -> None:
    (tmp_path / "types.yaml").write_text("columns: {a: real, b: categorical}")
    stream, table = pa.BufferOutputStream(), pa.table({"a": [1.0, None, 2.5], "b": ["x", "y", "x"]})
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    short = ["--types", "types.yaml", "--chains", "1", "--warmup", "5", "--draws", "5"]
    done = glfm("impute", "-", *short, "-q", stdin=stream.getvalue().to_pybytes())
    assert (done.returncode, done.stderr) == (0, "")
    check_completed("a,b\n1,x\n,y\n2.5,x\n", done.stdout, ["real", "categorical"])


def test_a_device_takes_the_table(desk: Any) -> None:
    desk.put("table.csv", PLAIN)
    desk.put("types.yaml", "columns: {a: real, b: categorical}")
    assert desk.impute("-o", "/dev/null").status == 0


def typed_table() -> pa.Table:
    """Return a table with the column types of Parquet and Arrow that CSV does not have."""
    n = 8

    def gaps(values: Sequence[Any]) -> list[Any]:
        return [None if i % 4 == 1 else value for i, value in enumerate(values)]

    steps = pa.array([0, 1, None, 2, 0, 1, 2, 0], pa.int8())
    columns = {
        "id": pa.array(range(n), pa.int64()),
        "whole": pa.array(gaps([3, 0, 7, 1, 2, 9, 4, 4]), pa.int16()),
        "unsigned": pa.array(gaps([3, 0, 7, 1, 2, 9, 4, 2**53]), pa.uint64()),
        "single": pa.array(gaps([0.5, 1, 2, -3.25, 0, 1, 2, 8]), pa.float32()),
        "nan": pa.array([math.nan if i == 3 else i / 3 for i in range(n)], pa.float64()),
        "price": pa.array(
            gaps([Decimal(i * 7 + 1).scaleb(-2) for i in range(n)]), pa.decimal128(9, 2)
        ),
        "yes": pa.array(gaps([i % 3 == 0 for i in range(n)])),
        "city": pa.array(gaps(list("abcabcab"))).dictionary_encode(),
        "grade": pa.DictionaryArray.from_arrays(steps, ["lo", "mid", "hi"], ordered=True),
        "code": pa.array(gaps([10, 20, 10, 30, 10, 20, 30, 10]), pa.int32()),
        "day": pa.array([date(2020, 1, i + 1) for i in range(n)]),
        "when": pa.array(gaps([datetime(2020, 1, i + 1, tzinfo=UTC) for i in range(n)])),
        "tags": pa.array([[str(i)] for i in range(n)]),
    }
    return pa.table(columns).replace_schema_metadata({b"source": b"invented"})


TYPED = """
rest: ignore
columns:
  id: id
  whole: count
  unsigned: count
  single: real
  nan: real
  price: positive
  yes: categorical
  city: categorical
  grade: ordinal
  code: categorical
"""


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_column_types_and_values_are_kept(desk: Any, suffix: str) -> None:
    table = typed_table()
    write_table(table, f"table.{suffix}")
    desk.put("types.yaml", TYPED)
    said = desk.impute("-o", f"out.{suffix}", "--cells", "cells.csv", table=f"table.{suffix}")
    assert said.status == 0, said.stderr
    completed = read_table(f"out.{suffix}")
    assert completed.schema.equals(table.schema, check_metadata=True)
    assert pc.all(pc.is_finite(completed["nan"])).as_py()
    for name in ("whole", "unsigned", "single", "price", "yes", "city", "grade", "code"):
        was, now = table[name].to_pylist(), completed[name].to_pylist()
        assert None in was
        assert None not in now
        assert [y for x, y in zip(was, now, strict=True) if x is not None] == [
            x for x in was if x is not None
        ]
    for name in ("id", "day", "when", "tags"):
        assert completed[name].to_pylist() == table[name].to_pylist()
    assert set(completed["city"].to_pylist()) <= set("abc")
    assert set(completed["code"].to_pylist()) <= {10, 20, 30}
    assert min(completed["price"].to_pylist()) > 0
    assert min(completed["whole"].to_pylist()) >= 0


def test_a_parquet_table_can_become_csv_and_back(desk: Any) -> None:
    write_table(typed_table().drop(["tags"]), "table.parquet")
    desk.put("types.yaml", TYPED)
    assert desk.impute("-o", "out.csv", table="table.parquet").status == 0
    text = read_table("out.csv")
    assert text["day"].to_pylist()[0] == "2020-01-01"
    assert "" not in text["city"].to_pylist()
    desk.put("table.csv", PLAIN)
    desk.put("types.yaml", "columns: {a: count, b: categorical}")
    assert desk.impute("-o", "out.parquet").status == 0
    assert read_table("out.parquet").schema.types == [pa.int64(), pa.string()]


# Options -------------------------------------------------------------------------------------

MIXED_KINDS = ["id", "real", "positive", "count", "categorical", "ordinal"]


def mixed_table() -> str:
    """Return a small table of all types with missing cells in each column."""
    rows = ["id,r,p,c,k,o"]
    for i in range(30):
        cells = [f"{i * 0.37 - 4:.2f}", f"{1 + i % 9}.5", str(i % 5), "xyz"[i % 3], str(1 + i % 4)]
        cells[i % 5] = "" if i % 3 == 0 else cells[i % 5]
        rows.append(",".join([f"P{i}", *cells]))
    return "\n".join(rows) + "\n"


OPTIONS = [
    "--estimate auto",
    "--estimate mean",
    "--estimate median",
    "--estimate mode",
    "--estimate draw",
    "--set max_features=0",
    "--set max_features=1 --set alpha=50",
    "--set bias=false",
    "--set bias=false --set first_threshold_fixed=true",
    "--set prior_scale=independent",
    "--set link=paper --set rank_kurtosis=0",
    "--set link_noise=0.1",
    "--set alpha=2",
    "--set weight_variance=0.5 --set bias_variance=1",
    "--set noise_shape=3 --set noise_rate=1",
    "--set initial_features=0",
    "--set rank_kurtosis=0",
    "--set threshold_variance=1",
    "--thin 3",
    "--warmup 0 --draws 1",
    "--seed 123456789012345678901234567890",
    "--chains 3 --threads 2",
    "--interval 0.01",
]


@pytest.mark.parametrize("options", OPTIONS)
def test_every_option_completes_the_table(desk: Any, options: str) -> None:
    table = mixed_table()
    desk.put("table.csv", table)
    desk.put("types.yaml", types_of(table, MIXED_KINDS))
    _, completed = desk.complete(*options.split())
    check_completed(table, completed, MIXED_KINDS)


def test_settings_change_the_answer(desk: Any) -> None:
    table = mixed_table()
    desk.put("table.csv", table)
    desk.put("types.yaml", types_of(table, MIXED_KINDS))
    chosen = [option for option in OPTIONS if option.startswith("--set") or "draw" in option]
    answers = {option: desk.complete(*option.split())[1] for option in ["", *chosen]}
    assert len(set(answers.values())) == len(answers)


def test_the_cap_on_features_is_a_warning(desk: Any) -> None:
    table = mixed_table()
    desk.put("table.csv", table)
    desk.put("types.yaml", types_of(table, MIXED_KINDS))
    said, _ = desk.complete("--set", "max_features=1", "--set", "alpha=50")
    assert said.lines("Warning") == [
        "Warning: the number of features reached its cap of 1; raise it with --set max_features=N"
    ]


def test_quiet_leaves_only_warnings(desk: Any) -> None:
    desk.put("table.csv", PLAIN)
    desk.put("types.yaml", "columns: {a: real, b: categorical}")
    said, _ = desk.complete()
    assert said.stderr.startswith("2 cells completed in 4 rows")
    assert desk.complete("--quiet")[0].stderr == ""
    desk.put("table.csv", "a,b\n5,x\n5,y\n,x\n")
    assert desk.complete("-q")[0].stderr.splitlines() == [
        f"Warning: column 'a': every observed cell is 5, {ALONE}"
    ]


@pytest.mark.parametrize(
    "kind", ["{type: positive, atom: 0}", "positive", "{type: positive, atom: none}"]
)
def test_zeros_of_an_atom_are_not_said_to_be_small(desk: Any, kind: str) -> None:
    desk.put(
        "table.csv", "a,b\n" + "".join(f"{i % 2 * i + i % 2 / 4},{i}\n" for i in range(60)) + ",3\n"
    )
    desk.put("types.yaml", f"columns: {{a: '{kind}', b: real}}".replace("'", ""))
    said, _ = desk.complete("-q")
    assert ("below the smallest positive value" in said.stderr) == ("none" in kind)


def test_a_code_below_zero_is_first_said_to_be_a_missing_one(desk: Any) -> None:
    desk.put("table.csv", "a,b\n1,2\n-99,4\n3,5\n")
    desk.put("types.yaml", "columns: {a: positive, b: real}")
    said = desk.impute()
    assert said.lines("Hint") == [
        "Hint: List it under `missing:` if it stands for a missing cell, or set `type: real` for "
        "'a' in the types file."
    ]


def test_a_tab_in_a_types_file_is_named(desk: Any) -> None:
    desk.put("table.csv", PLAIN)
    desk.put("types.yaml", "columns:\n\ta: real\n\tb: categorical\n")
    said = desk.impute()
    assert "Hint: The line begins with a tab" in said.stderr


def test_codes_that_are_left_stay_and_others_are_completed(desk: Any) -> None:
    table = "a,b\n1,x\n-9,y\n-1,?\n4,x\n-9.0,y\n"
    desk.put("table.csv", table)
    desk.put(
        "types.yaml",
        'columns: {a: {type: count, missing: ["-1", {value: "-9", impute: false}]},'
        ' b: {type: categorical, missing: ["?"]}}',
    )
    _, completed = desk.complete("--flags")
    rows = list(csv.reader(io.StringIO(completed)))
    assert rows[0] == ["a", "b", "a_imp", "b_imp"]
    assert [row[2:] for row in rows[1:]] == [
        ["0", "0"],
        ["0", "0"],
        ["1", "1"],
        ["0", "0"],
        ["0", "0"],
    ]
    assert [rows[2][0], rows[5][0]] == ["-9", "-9.0"]
    assert rows[3][0].isdecimal()
    assert rows[3][1] in ("x", "y")
