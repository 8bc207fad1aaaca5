"""Cells come out of a file as they went in, or one line says that it cannot hold them."""

from __future__ import annotations

import datetime as dt
import gzip
import json
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from glfm_cli import impute
from glfm_cli.completion import prepare
from glfm_cli.completion.files import Files
from glfm_cli.errors import GlfmError, OutputError, TableError, UsageError
from glfm_cli.io import read_batches, read_table, write_parts, write_table
from glfm_cli.io.frames import table_of

NEEDED = {"xlsx": "openpyxl", "ods": "odf", "sav": "pyreadstat", "dta": "pyreadstat"}


def again(cells: pa.Array, path: Path) -> list[object]:
    """Return what cells are once they were written and read, beside a column of numbers."""
    pytest.importorskip(NEEDED[path.suffix[1:]])
    write_table(pa.table({"v": cells, "n": np.arange(len(cells))}), path)
    return read_table(path)["v"].to_pylist()


def test_a_text_that_looks_like_a_formula_stays_a_text(tmp_path: Path) -> None:
    texts = ["=1+1", "#N/A", "a\x0bb", "a\r\nb", "_x0041_", "x"]
    assert again(pa.array(texts), tmp_path / "t.xlsx") == texts


@pytest.mark.parametrize("kind", ["xlsx", "ods", "sav", "dta"])
def test_digits_that_no_float_has_are_kept(tmp_path: Path, kind: str) -> None:
    ids = again(pa.array([1, 2**53 + 1], pa.int64()), tmp_path / f"t.{kind}")
    assert ids == ["1", "9007199254740993"]


@pytest.mark.parametrize("kind", ["xlsx", "ods"])
def test_decimals_and_infinite_numbers_stay_in_a_workbook(tmp_path: Path, kind: str) -> None:
    file = tmp_path / f"t.{kind}"
    assert again(pa.array([Decimal("1.50"), Decimal("2.25")]), file) == [1.5, 2.25]
    assert again(pa.array([Decimal("12345678901234567890.5")]), file) == ["12345678901234567890.5"]
    assert again(pa.array([0.5, np.inf, np.nan]), file) == ["0.5", "inf", None]


def test_days_before_those_of_a_workbook_are_texts(tmp_path: Path) -> None:
    days = pa.array([dt.date(1899, 12, 31), dt.date(2000, 1, 2)])
    assert again(days, tmp_path / "t.xlsx") == ["1899-12-31", "2000-01-02"]


@pytest.mark.parametrize(
    ("cells", "kind", "line"),
    [
        (pa.array(["x" * 40_000]), "xlsx", "found a text of 40000"),
        (pa.array(["a\x0bb"]), "ods", "cannot hold control characters"),
        (pa.array(["a\0b"]), "sav", r"column 'v', row 1: a .sav file cannot hold.*found 'a.x00b'"),
        (pa.array(["a\0b"]).dictionary_encode(), "dta", "column 'v', row 1: a .dta file"),
        (pa.array([b"a"]), "sav", "a .sav file cannot hold values of type binary"),
    ],
)
def test_what_a_file_cannot_hold_is_said(
    tmp_path: Path, cells: pa.Array, kind: str, line: str
) -> None:
    with pytest.raises(OutputError, match=line):
        again(cells, tmp_path / f"t.{kind}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", ["table", "cells"])
@pytest.mark.parametrize("kind", ["sav", "dta", "ods", "csv", "tsv"])
def test_texts_that_a_file_cannot_hold_are_refused_before_the_work(
    tmp_path: Path, kind: str, option: str
) -> None:
    names = pa.array(["a"] * 8 + ["b\0c", "d"])
    table = pa.table({"who": names, "x": [None, *map(float, range(9))]})
    types, files = {"columns": {"who": "id", "x": "real"}}, {option: tmp_path / f"t.{kind}"}
    with pytest.raises(OutputError, match=r"'who', row 9: .* cannot hold this control character"):
        impute(table, types, files=Files(**files), observer=_NeverBegun())
    assert not list(tmp_path.iterdir())


def test_texts_of_later_parts_that_a_file_cannot_hold_are_named_by_their_rows(
    tmp_path: Path,
) -> None:
    parts = [pa.table({"v": ["a", "b"]}), pa.table({"v": ["c", "d\0"]})]
    with pytest.raises(OutputError, match=r"column 'v', row 4: a \.csv file cannot hold"):
        write_parts(parts, tmp_path / "t.csv")
    with pytest.raises(OutputError, match=r"column 'v', row 2: a \.csv file cannot hold"):
        write_table(parts[1], tmp_path / "t.csv")
    with pytest.raises(OutputError, match=r"in the name of a column, found 'a.x00'"):
        write_table(pa.table({"a\0": [1.0]}), tmp_path / "t.csv")
    assert not list(tmp_path.iterdir())


class _NeverBegun:
    """Fails when a run begins."""

    def begun(self, session: object) -> None:
        raise AssertionError

    def swept(self, chain: int, sweep: int, trace: object) -> None:
        """Be told of a sweep."""


def test_dates_of_spss_may_have_missing_codes(tmp_path: Path) -> None:
    pyreadstat, pandas = pytest.importorskip("pyreadstat"), pytest.importorskip("pandas")
    days = [dt.date(1900, 1, 1), dt.date(2000, 1, 2)]
    code = (days[0] - dt.date(1582, 10, 14)).days * 86_400.0
    frame, source = pandas.DataFrame({"d": days, "x": [1.0, 2.0]}), str(tmp_path / "t.sav")
    pyreadstat.write_sav(frame, source, missing_ranges={"d": [{"lo": code, "hi": code}]})
    table = read_table(source)
    assert table["d"].to_pylist() == days
    assert table.schema.field("d").metadata[b"glfm.missing"] == b'["1900-01-01"]'
    write_table(table, target := tmp_path / "u.sav")
    _, meta = pyreadstat.read_sav(str(target), user_missing=True)
    assert meta.missing_ranges["d"] == [{"lo": days[0], "hi": days[0]}]


@pytest.mark.parametrize("moment", [dt.date(2000, 1, 2), dt.datetime(2000, 1, 2, 3, 4)])
def test_dates_of_stata_may_have_letters_of_missing_values(
    tmp_path: Path, moment: dt.date
) -> None:
    pyreadstat, pandas = pytest.importorskip("pyreadstat"), pytest.importorskip("pandas")
    cells = pandas.Series([moment, "a", None], dtype=object)
    frame, source = pandas.DataFrame({"d": cells, "x": [1.0, 2.0, 3.0]}), str(tmp_path / "t.dta")
    pyreadstat.write_dta(frame, source, missing_user_values={"d": ["a"]})
    table = read_table(source)
    assert table["d"].to_pylist() == [moment.isoformat(), ".a", None]
    write_table(table, tmp_path / "u.dta")
    assert read_table(tmp_path / "u.dta").equals(table, check_metadata=True)
    write_table(table, tmp_path / "u.sav")
    assert read_table(tmp_path / "u.sav")["d"].to_pylist() == [moment, None, None]


def test_texts_keep_their_line_ends_and_delimiters(tmp_path: Path) -> None:
    lines = b'a,b\r1,"x\ny"\r2,z\r'  # CSV (Macintosh)
    for text in (b"a,b\r\n1,2", b"sep=\\\na\\b\n1\\2\n", lines):
        (tmp_path / "t.csv").write_bytes(text)
        write_table(read_table(tmp_path / "t.csv"), tmp_path / "u.csv")
        assert (tmp_path / "u.csv").read_bytes() == text


def test_packed_text_that_is_cut_off_is_not_read_in_batches(tmp_path: Path) -> None:
    text = "\n".join(["a,b", *(f"{i},{i * i % 1013}" for i in range(100_000))])
    packed = gzip.compress(text.encode())
    (tmp_path / "t.csv.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(TableError, match="cannot be read"):
        list(read_batches(tmp_path / "t.csv.gz", 1000))


def test_a_query_without_an_answer_has_no_rows(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "t.duckdb")) as base:
        base.execute("create table t as select 1 a")
    with pytest.raises(TableError, match="no rows"):
        read_table(f"{tmp_path}/t.duckdb?query=")


@pytest.mark.parametrize(
    ("data", "line"),
    [([[1.0, 2.0], [3.0]], "rows of several lengths"), (np.array([[1j, 2.0]]), "complex numbers")],
)
def test_what_is_no_matrix_of_real_numbers_is_refused(data: object, line: str) -> None:
    with pytest.raises(UsageError, match=line):
        table_of(data)


def test_cells_of_a_sparse_matrix_have_whole_numbers_from_the_first_name_on(
    tmp_path: Path,
) -> None:
    (tmp_path / "names.txt").write_text("a\nb\nc\n")
    (tmp_path / "t.svmlight").write_text("1 -1:2 2:4\n")
    (tmp_path / "t.mtx").write_text(
        "%%MatrixMarket matrix coordinate real general\n3 3 1\n1.5 2 3\n"
    )
    for source in ("t.svmlight?columns=" + str(tmp_path / "names.txt"), "t.mtx"):
        with pytest.raises(GlfmError, match=r"column -2|no whole number"):
            read_table(f"{tmp_path}/{source}")


def test_more_rows_than_a_sheet_has_are_refused_before_the_work(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    table = pa.table({"x": [0.5, None, 2.5, 1.0] * 5})
    data = prepare(table, {"columns": {"x": "real"}})[1]
    Files(tmp_path / "o.xlsx", multiple=50_000).check(table, data)
    with pytest.raises(OutputError, match="a sheet has 1048575 rows"):
        Files(tmp_path / "o.xlsx", multiple=60_000).check(table, data)


def test_whole_numbers_among_others_are_written_as_they_were(tmp_path: Path) -> None:
    for text in ('{"a": 1}\n{"a": 2.5}\n{"a": null}\n', '{"a": 1.0}\n{"a": 2.5}\n{"a": null}\n'):
        (tmp_path / "t.jsonl").write_text(text)
        write_table(read_table(tmp_path / "t.jsonl"), tmp_path / "u.jsonl")
        assert (tmp_path / "u.jsonl").read_text() == text
    cells = [i / 2 if i % 2 else i // 2 for i in range(30)]
    cells[4] = None
    rows = [json.dumps({"a": a, "b": i + 0.25}) for i, a in enumerate(cells)]
    (tmp_path / "t.jsonl").write_text("\n".join(rows) + "\n")
    done = impute(tmp_path / "t.jsonl", "auto", chains=1, warmup=2, draws=2)
    write_table(done.table, tmp_path / "u.jsonl")
    written = (tmp_path / "u.jsonl").read_text().splitlines()
    assert written[:4] + written[5:] == rows[:4] + rows[5:]


def test_a_table_of_many_columns_becomes_typed_at_once(tmp_path: Path) -> None:
    """Not column by column, each of which would copy all others."""
    names = [f"c{i}" for i in range(300)]
    (tmp_path / "t.csv").write_text(",".join(names) + "\n" + ",".join(["x"] * 300) + "\n")
    table = read_table(tmp_path / "t.csv")
    kept = {field.name: {b"label": field.name.encode()} for field in table.schema}
    fields = [field.with_metadata(kept[field.name]) for field in table.schema]
    table = table.cast(pa.schema(fields, table.schema.metadata))
    write_table(table, tmp_path / "t.arrow")
    written = read_table(tmp_path / "t.arrow")
    assert written.column_names == names
    assert {field.name: field.metadata for field in written.schema} == kept
    assert written.schema.metadata is None
