"""Reading and writing: what goes in comes out, and what cannot be read is said exactly."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import stat
import sys
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from glfm_cli.errors import GlfmError, OutputError, TableError, UsageError
from glfm_cli.io import atomic_write, read_table, same_file, write_parts, write_table
from glfm_cli.io.batches import read_batches


def written(folder: Path, data: bytes, name: str = "in.csv") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def round_trip(folder: Path, data: bytes, name: str = "in.csv") -> bytes:
    table = read_table(written(folder, data, name))
    target = folder / f"out-{name}"
    write_table(table, target)
    return target.read_bytes()


# CSV: the text of every cell ---------------------------------------------------------------


def test_csv_cells_keep_their_exact_text(tmp_path: Path) -> None:
    path = written(tmp_path, b'a,b\n007, x \n1.50,NA\n,"say ""hi"", twice"\n"two\nlines",null\n')
    assert read_table(path).to_pydict() == {
        "a": ["007", "1.50", "", "two\nlines"],
        "b": [" x ", "NA", 'say "hi", twice', "null"],
    }


@pytest.mark.parametrize(
    ("data", "delimiter"),
    [
        (b"a,b\n1,2\n", ","),
        (b"a;b\n1,5;2,5\n", ";"),
        (b"a\tb\nx, y\tz\n", "\t"),
        (b"a|b|c\n1|2|3\n", "|"),
        (b'"a;x",b\n"1;2;3",4\n', ","),
    ],
)
def test_delimiter_is_told_from_the_rows(tmp_path: Path, data: bytes, delimiter: str) -> None:
    columns = len(data.split(b"\n")[1].split(delimiter.encode()))
    assert read_table(written(tmp_path, data)).num_columns == columns


def test_tsv_is_cut_at_tabs_only(tmp_path: Path) -> None:
    table = read_table(written(tmp_path, b"a,b\n1,2\n", "in.tsv"))
    assert table.to_pydict() == {"a,b": ["1,2"]}


def test_every_line_of_a_single_column_is_a_row(tmp_path: Path) -> None:
    assert read_table(written(tmp_path, b"a\n1\n\n3\n\n")).to_pydict() == {"a": ["1", "", "3", ""]}


ORDINARY = {
    "plain": b"a,b\n1,2\n3,4\n",
    "no last newline": b"a,b\n1,2\n3,4",
    "crlf": b"a,b\r\n1,2\r\n3,\r\n",
    "cr": b"a,b\r1,2\r3,4\r",
    "blank lines at the end": b"a,b\n1,2\n\n\n",
    "byte-order mark": b"\xef\xbb\xbfa,b\n1,2\n",
    "utf-16": "a,b\né,2\n".encode("utf-16"),
    "utf-16 big end": b"\xfe\xff" + "a,b\né,2\n".encode("utf-16-be"),
    "utf-32": "a;b\né;2\n".encode("utf-32"),
    "all quoted": b'"a","b"\n"1",""\n"x ""y""","2"\n',
    "text quoted, NA bare": b'"id","n"\n"r1",1\n"r2",NA\nNA,2.5\n',
    "quotes where needed": b'a,b\n"1,5",x\n"two\nlines",y\n"a ""b""",z\n',
    "numbers bare": b'"a","b"\n"x",1\n3,"y"\n',
    "a quote inside a cell": b'size,n\n5" pipe,"x,1"\n6" pipe,y\n',
    "one column": b"a\n1\n\n2",
    "one column, empty at the end": b"a\n1\n\n",
    "one column, quoted empty": b'a\n1\n""\n',
    "semicolons": b"a;b;c\n1,5;;3\n",
    "some cells quoted": b'a,b\n"x",1\ny,2\n"x",3\n',
    "columns without a name or a cell": b"a,b,,\r\n1,2,,\r\n3,,,\r\n\r\n",
    "the same, of one column": b"a,\n1,\n,",
    "a delimiter at the end of every line": b"a;b;\n1;2;\n;;\n",
    "the same below units": b"a;b;;\nkg;cm;;\n1;2;;\n3;2;;\n",
}


@pytest.mark.parametrize("data", ORDINARY.values(), ids=ORDINARY.keys())
def test_unchanged_csv_is_written_byte_for_byte(tmp_path: Path, data: bytes) -> None:
    assert round_trip(tmp_path, data) == data


def test_columns_at_the_end_without_a_name_or_a_cell_are_none(tmp_path: Path) -> None:
    table = read_table(written(tmp_path, b"a,b,,\n1,2,,\n,4,,\n"))
    assert table.to_pydict() == {"a": ["1", ""], "b": ["2", "4"]}
    for data in (b"a,b,,\n1,2,,x\n", b'a,b,""\n1,2,\n', b"a,b,\n1,2,\n\n3,4,\n"):
        with pytest.raises(TableError, match=r"column 3 of \d has no name"):
            read_table(written(tmp_path, data))


@pytest.mark.parametrize("name", ["pbc", "lung", "airquality"])
def test_sample_tables_are_written_byte_for_byte(
    tmp_path: Path, sample_data: Path, name: str
) -> None:
    data = (sample_data / f"{name}.csv").read_bytes()
    assert round_trip(tmp_path, data) == data


def test_zipped_csv_is_read_and_written(tmp_path: Path) -> None:
    plain = b"a\tb\n1\t2\n"
    path = written(tmp_path, gzip.compress(plain), "in.tsv.gz")
    write_table(read_table(path), tmp_path / "out.tsv.gz")
    write_table(read_table(path), tmp_path / "again.tsv.gz")
    out = (tmp_path / "out.tsv.gz").read_bytes()
    assert gzip.decompress(out) == plain
    assert out == (tmp_path / "again.tsv.gz").read_bytes()


CELL = st.text(
    st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=["Cs"]), max_size=6
) | st.sampled_from(['"', ",", "\n", "\r\n", ";", "\t", '""', ' "x"', "", "NA", "1.0", "\r"])
NAME = CELL.filter(lambda name: bool(name.strip()))


@given(
    names=st.lists(NAME, min_size=1, max_size=4, unique=True),
    rows=st.lists(st.lists(CELL, min_size=4, max_size=4), min_size=1, max_size=5),
)
@example(names=["a"], rows=[["\r", "", "", ""]])
@example(names=["a", "b"], rows=[["", '"', "", ""], ["", "", "", ""]])
def test_any_text_survives_writing_and_reading(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], rows: list[list[str]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.tsv"
    columns = {name: [row[j] for row in rows] for j, name in enumerate(names)}
    write_table(pa.table(columns), path)
    assert read_table(path).to_pydict() == columns


@given(
    rows=st.lists(st.lists(CELL, min_size=2, max_size=2), min_size=1, max_size=6),
    quoted=st.lists(st.booleans(), min_size=12, max_size=12),
    newline=st.sampled_from(["\n", "\r\n"]),
)
def test_reading_agrees_with_the_rules_of_csv(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[list[str]],
    quoted: list[bool],
    newline: str,
) -> None:
    def cell(text: str, wish: bool) -> str:
        needed = wish or text.startswith('"') or any(c in text for c in "\t\r\n")
        return '"' + text.replace('"', '""') + '"' if needed else text

    wishes = iter(quoted)
    lines = ["a\tb"] + ["\t".join(cell(text, next(wishes)) for text in row) for row in rows]
    data = (newline.join(lines) + newline).encode()
    path = tmp_path_factory.getbasetemp() / "rules.tsv"
    path.write_bytes(data)
    table = read_table(path)
    assert [list(row.values()) for row in table.to_pylist()] == rows
    write_table(table, path)
    assert read_table(path).equals(table)


def test_columns_of_many_megabytes_and_rows_beyond_one_block(tmp_path: Path) -> None:
    data = b"a,b\n" + b"".join(b"%d,x%d\n" % (i, i) for i in range(70_000))
    assert round_trip(tmp_path, data) == data


# CSV: what is refused -----------------------------------------------------------------------

REFUSED = {
    "empty": (b"", "is empty", None),
    "blank": (b"\n\n", "is empty", None),
    "header only": (b"a,b\n", "no rows", None),
    "too few fields": (b"a,b\n1,2\n3\n", "found 1 field, expected 2", 2),
    "too many fields": (b"a,b\n1,2\n3,4\n5,6,7\n", "found 3 fields, expected 2", 3),
    "ragged after a quoted newline": (b'a,b\n"1\n1",2\n3\n', "found 1 field", 2),
    "blank line inside": (b"a,b\n1,2\n\n3,4\n", "blank", 2),
    "same name twice": (b"a,b,a\n1,2,3\n", "columns 1 and 3 have the same name", None),
    "no name": (b"a,,c\n1,2,3\n", "column 2 of 3 has no name", None),
    "quote not closed": (b'a,b\n1,2\n"3,4\n5,6\n', "never closed", 2),
    "text after a quote": (b'a,b\n"1"x,2\n', "text follows the closing quote", 1),
    "odd byte": (b"a,b\n\xc3\xa9,\xc3\xa9\ncaf\xe9,4\n", "byte 14 of the file is not UTF-8", 2),
    "odd byte in the header": (b"\xe9,\xc3\xa9\xc3\xa9\n1,2\n", "in the header", None),
    "NUL": (b"a,b\n1,2\n3,\x004\n", "NUL", 2),
    "utf-16 cut off": ("a,b\n1,2\n".encode("utf-16")[:-1], "UTF-16", None),
    "excel": (b"PK\x03\x04" + bytes(40), "Excel", None),
    "old excel": (b"\xd0\xcf\x11\xe0" + bytes(40), "Excel", None),
    "parquet": (b"PAR1" + bytes(40), "Parquet", None),
    "gzip": (gzip.compress(b"a,b\n1,2\n"), "gzip", None),
    "junk": (bytes(range(256)) * 8, "NUL", None),
}


@pytest.mark.parametrize(("data", "said", "row"), REFUSED.values(), ids=REFUSED.keys())
def test_bad_csv_is_refused_with_its_place(
    tmp_path: Path, data: bytes, said: str, row: int | None
) -> None:
    with pytest.raises(TableError) as caught:
        read_table(written(tmp_path, data))
    assert said in str(caught.value)
    assert caught.value.row == row
    assert caught.value.file == str(tmp_path / "in.csv")


GERMAN = "Größe;Preis\n1,5;3 €\n2,5;\n"


@pytest.mark.parametrize(
    ("data", "names"),
    [
        (GERMAN.encode("cp1252"), ["Größe", "Preis"]),
        ((GERMAN.replace("€", "\x81") + 40 * "1,5;x\n").encode("latin-1"), ["Größe", "Preis"]),
        (GERMAN.encode("utf-16-le"), ["Größe", "Preis"]),
        (GERMAN.encode("utf-16-be"), ["Größe", "Preis"]),
        (b"sep=;\r\na;b\r\n1;2\r\n", ["a", "b"]),
        (b"\xef\xbb\xbfsep=|\na|b\n1|2,3;4\n", ["a", "b"]),
        (b"Report 2024\n\na,b,c\n1,2,3\n4,5,6\n", ["a", "b", "c"]),
        (b"Report 2024;;\r\n;;\r\na;b;c\r\n1;2;3\r\n4;5;6\r\n", ["a", "b", "c"]),
        (b"a;b;c\n3,1;15;8,6\n4,1;16;9,6\n", ["a", "b", "c"]),
        (b"a;b\n3,1;8,6\n4,1;9,6\n", ["a", "b"]),
        (b'"","a","b"\n"1",2,3\n', ["", "a", "b"]),
        (b",a,b\n0,2,3\n", ["", "a", "b"]),
    ],
)
def test_what_is_special_about_a_text_file_is_written_back(
    tmp_path: Path, data: bytes, names: list[str]
) -> None:
    assert round_trip(tmp_path, data) == data
    assert read_table(tmp_path / "in.csv").column_names == names


def test_a_letter_that_the_encoding_has_not_is_refused(tmp_path: Path) -> None:
    table = read_table(written(tmp_path, GERMAN.encode("cp1252")))
    table = table.set_column(1, "Preis", pa.array(["Ł", "x"]))
    with pytest.raises(OutputError, match="cp1252, has no letter 'Ł'"):
        write_table(table, tmp_path / "out.csv")


@pytest.mark.parametrize(
    "data",
    [
        b"a\tb\nr1\t1\t2\nr2\tNA\t4\n",
        b'"a" "b"\n"r 1" 1 "x y"\n"r 2" NA "z"\n\n',
        b'"a","b"\r\n"1",1,2\r\n"2",3,4\r\n',
    ],
)
def test_names_of_rows_that_the_header_leaves_out_are_read_and_left_out_again(
    tmp_path: Path, data: bytes
) -> None:
    table = read_table(written(tmp_path, data))
    assert table.column_names == ["", "a", "b"]
    assert round_trip(tmp_path, data) == data
    batches = list(read_batches(written(tmp_path, data), 1))
    assert [b.column_names for b in batches] == [table.column_names] * 2
    write_table(table.drop_columns([""]), tmp_path / "out.csv")
    assert read_table(tmp_path / "out.csv").column_names == ["a", "b"]


@pytest.mark.parametrize(
    "data",
    [
        b"a,b\n1,2,\n3,4,\n",  # a comma ends every row
        b"a,b\nr1,1,2\nr1,3,4\n",  # the same name twice
        b"a,b\nr1,1,2\n,3,4\n",
        b"a\nDoe, John\nRoe, Ann\n",
    ],
)
def test_rows_longer_than_the_header_otherwise_are_an_error(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(TableError, match=r"2 fields|3 fields"):
        read_table(written(tmp_path, data))


def test_missing_files_and_folders_are_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(TableError, match="no such file"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(TableError, match="it is a folder"):
        read_table(tmp_path / "folder.csv")
    with pytest.raises(TableError, match="not a folder"):
        read_table(written(tmp_path, b"a\n1\n") / "in.csv")


@pytest.mark.usefixtures("bound_by_permissions")
def test_files_without_permission_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, b"a,b\n1,2\n")
    path.chmod(0)
    with pytest.raises(TableError, match="no permission"):
        read_table(path)


@pytest.mark.parametrize("name", ["in.docx", "in", "in.json", "in.parquet.gz", "in.gz"])
def test_unknown_suffixes_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="format"):
        read_table(written(tmp_path, b"a,b\n1,2\n", name))
    with pytest.raises(UsageError, match="format"):
        write_table(pa.table({"a": [1]}), tmp_path / name)


def test_a_stated_format_wins_over_the_suffix(tmp_path: Path) -> None:
    path = written(tmp_path, b"a,b\n1,2\n", "in.data")
    assert read_table(path, format="csv").num_columns == 2
    with pytest.raises(UsageError, match="unknown table format"):
        read_table(path, format="excel")


@pytest.mark.parametrize("cut", [5, 15, -1])
def test_cut_off_gzip_is_refused(tmp_path: Path, cut: int) -> None:
    data = gzip.compress(b"a,b\n1,2\n" * 20)[:cut]
    with pytest.raises(TableError, match="gzip data"):
        read_table(written(tmp_path, data, "in.csv.gz"))


def test_gzip_suffix_on_plain_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="not gzip data"):
        read_table(written(tmp_path, b"a,b\n1,2\n", "in.csv.gz"))


@given(data=st.binary(max_size=200), name=st.sampled_from(["csv", "tsv", "parquet", "arrow"]))
def test_no_bytes_give_a_traceback(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, name: str
) -> None:
    path = tmp_path_factory.getbasetemp() / f"bytes.{name}"
    path.write_bytes(data)
    with contextlib.suppress(GlfmError):
        assert read_table(path).num_rows > 0


# Parquet and Arrow --------------------------------------------------------------------------


@pytest.fixture
def typed() -> pa.Table:
    fields = {
        "int": pa.array([1, None, 3], pa.int16()),
        "uint": pa.array([1, None, 2**60], pa.uint64()),
        "float": pa.array([0.5, None, float("nan")], pa.float32()),
        "text": pa.array(["a", "", None], pa.large_string()),
        "flag": pa.array([True, None, False]),
        "level": pa.DictionaryArray.from_arrays(
            pa.array([1, None, 0], pa.int8()), ["x", "y"], ordered=True
        ),
        "money": pa.array([Decimal("1.50"), None, Decimal("-2.00")], pa.decimal128(9, 2)),
        "day": pa.array([date(2020, 2, 29), None, date(1969, 1, 1)]),
        "time": pa.array([datetime(2020, 1, 1, 12), None, None], pa.timestamp("us", "UTC")),
        "list": pa.array([[1, 2], None, []]),
    }
    table = pa.table(fields)
    marked = table.schema.field("int").with_metadata({"unit": "kg"})
    table = table.set_column(0, marked, table.column(0))
    return table.replace_schema_metadata({"origin": "a test"})


@pytest.mark.parametrize("name", ["t.parquet", "t.pq", "t.arrow", "t.feather", "t.ipc"])
def test_types_values_and_metadata_are_kept(tmp_path: Path, typed: pa.Table, name: str) -> None:
    write_table(typed, tmp_path / name)
    once = read_table(tmp_path / name)
    write_table(once, tmp_path / f"again-{name}")
    again = read_table(tmp_path / f"again-{name}")
    assert once.schema.equals(typed.schema, check_metadata=True)
    assert again.schema.equals(typed.schema, check_metadata=True)
    assert str(again.to_pydict()) == str(typed.to_pydict())


def test_arrow_streams_are_read(tmp_path: Path, typed: pa.Table) -> None:
    with pa.ipc.new_stream(tmp_path / "t.arrow", typed.schema) as writer:
        writer.write_table(typed)
    assert str(read_table(tmp_path / "t.arrow").to_pydict()) == str(typed.to_pydict())


def test_folders_named_like_partitions_add_no_column(tmp_path: Path) -> None:
    folder = tmp_path / "year=2020"
    folder.mkdir()
    write_table(pa.table({"a": [1]}), folder / "t.parquet")
    assert read_table(folder / "t.parquet").column_names == ["a"]


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow"])
@pytest.mark.parametrize("keep", [0, 3, 60, -10])
def test_cut_off_binary_files_are_refused(
    tmp_path: Path, typed: pa.Table, name: str, keep: int
) -> None:
    path = tmp_path / name
    write_table(typed, path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(TableError):
        read_table(path)


def test_binary_tables_without_rows_or_with_equal_names_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": pa.array([], pa.int64())}), tmp_path / "none.parquet")
    twice = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    write_table(twice, tmp_path / "twice.arrow")
    with pytest.raises(TableError, match="no rows"):
        read_table(tmp_path / "none.parquet")
    with pytest.raises(TableError, match="same name"):
        read_table(tmp_path / "twice.arrow")


# From one format to another -----------------------------------------------------------------


def test_parquet_to_csv_writes_plain_text(tmp_path: Path, typed: pa.Table) -> None:
    write_table(typed.drop_columns("list"), tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text().splitlines() == [
        "int,uint,float,text,flag,level,money,day,time",
        "1,1,0.5,a,true,y,1.50,2020-02-29,2020-01-01 12:00:00.000000Z",
        ",,,,,,,,",
        "3,1152921504606846976,,,false,x,-2.00,1969-01-01,",
    ]


def test_lists_do_not_fit_into_csv(tmp_path: Path, typed: pa.Table) -> None:
    with pytest.raises(OutputError, match="column 'list'"):
        write_table(typed, tmp_path / "t.csv")
    assert not (tmp_path / "t.csv").exists()


def test_csv_to_parquet_keeps_text_and_makes_empty_cells_null(tmp_path: Path) -> None:
    path = written(tmp_path, b"code,n\n007,1\n,NA\n")
    write_table(read_table(path), tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    assert table.to_pydict() == {"code": ["007", None], "n": ["1", "NA"]}
    assert table.schema.metadata is None


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("in.csv", "out.tsv", b"a\tb\r\n1\tx;y\r\n"),
        ("in.csv", "out.csv", b"a|b\r\n1|x;y\r\n"),
        ("in.csv", "out.txt", b"a|b\r\n1|x;y\r\n"),
    ],
)
def test_the_suffix_sets_the_delimiter_and_the_source_the_rest(
    tmp_path: Path, source: str, target: str, expected: bytes
) -> None:
    path = written(tmp_path, b"a|b\r\n1|x;y\r\n", source)
    write_table(read_table(path), tmp_path / target)
    assert (tmp_path / target).read_bytes() == expected


def test_like_lends_its_dialect(tmp_path: Path) -> None:
    like = read_table(written(tmp_path, b'"a";"b"\r\n"1";"2"\r\n'))
    write_table(pa.table({"a": ["x"], "new": ["y"]}), tmp_path / "out.csv", like=like)
    assert (tmp_path / "out.csv").read_bytes() == b'"a";"new"\r\n"x";"y"\r\n'


# Standard streams ---------------------------------------------------------------------------


def as_stdin(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def test_standard_input_is_told_by_its_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.table({"a": ["1"], "b": ["2"]})
    for name in ("t.parquet", "t.arrow", "t.csv", "t.tsv", "t.csv.gz", "t.jsonl"):
        write_table(table, tmp_path / name)
        as_stdin(monkeypatch, (tmp_path / name).read_bytes())
        assert read_table("-").to_pydict() == {"a": ["1"], "b": ["2"]}
    with pa.ipc.new_stream(tmp_path / "s", table.schema) as writer:
        writer.write_table(table)
    as_stdin(monkeypatch, (tmp_path / "s").read_bytes())
    assert read_table("-").to_pydict() == {"a": ["1"], "b": ["2"]}


def test_errors_call_standard_input_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    as_stdin(monkeypatch, b"a,b\n1\n")
    with pytest.raises(TableError, match=r"^standard input, row 1"):
        read_table("-")


def test_standard_output_takes_the_dialect_or_the_stated_format(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    data = b"a\tb\r\n1\t2\r\n"
    table = read_table(written(tmp_path, data, "in.tsv"))
    write_table(table, "-")
    assert capfdbinary.readouterr().out == data
    write_table(table, "-", format="parquet")
    out = capfdbinary.readouterr().out
    assert pq.read_table(pa.BufferReader(out)).to_pydict() == {"a": ["1"], "b": ["2"]}


# Files that appear all at once --------------------------------------------------------------


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = written(tmp_path, b"old")

    def fail_halfway() -> None:
        with atomic_write(path) as file:
            file.write(b"new")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_halfway()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_finished_write_replaces_the_file_and_keeps_its_permissions(tmp_path: Path) -> None:
    path = written(tmp_path, b"old")
    path.chmod(0o640)
    link = tmp_path / "link.csv"
    link.symlink_to(path)
    with atomic_write(link, "w") as file:
        file.write("é\r\n")
    assert path.read_bytes() == "é\r\n".encode()
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_unwritable_places_are_said(tmp_path: Path) -> None:
    table = pa.table({"a": [1]})
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(OutputError, match="folder it should be in does not exist"):
        write_table(table, tmp_path / "none" / "out.csv")
    with pytest.raises(OutputError, match="is a folder"):
        write_table(table, tmp_path / "folder.csv")
    with pytest.raises(OutputError, match="not a folder"):
        write_table(table, written(tmp_path, b"x") / "out.csv")
    with pytest.raises(OutputError, match="name is too long"):
        write_table(table, tmp_path / f"{'x' * 300}.csv")


@pytest.mark.usefixtures("bound_by_permissions")
def test_folders_without_permission_are_said(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(OutputError, match="no permission"):
        write_table(pa.table({"a": [1]}), tmp_path / "out.csv")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_said() -> None:
    with pytest.raises(OutputError, match="the disk is full") as caught:
        write_table(pa.table({"a": ["x" * 100_000]}), "/dev/full", format="csv")
    assert caught.value.exit_status == 1


def test_devices_are_written_not_replaced() -> None:
    write_table(pa.table({"a": [1]}), os.devnull, format="csv")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_same_file_sees_through_links_and_spellings(tmp_path: Path) -> None:
    path = written(tmp_path, b"x")
    link = tmp_path / "link.csv"
    link.symlink_to(path)
    assert same_file(path, link)
    assert same_file(tmp_path / "new.csv", f"{tmp_path}/./new.csv")
    assert not same_file(path, tmp_path / "other.csv")
    assert not same_file("-", "-")


@pytest.mark.parametrize("suffix", ["bz2", "xz"])
def test_what_is_cut_off_or_not_packed_as_it_is_named_is_refused(
    tmp_path: Path, suffix: str
) -> None:
    write_table(pa.table({"a": [str(i) for i in range(5000)]}), tmp_path / f"t.csv.{suffix}")
    packed = (tmp_path / f"t.csv.{suffix}").read_bytes()
    with pytest.raises(TableError, match="is damaged or cut off"):
        read_table(written(tmp_path, packed[: len(packed) // 2], f"cut.csv.{suffix}"))
    with pytest.raises(TableError, match=f"though its name ends in .{suffix}"):
        read_table(written(tmp_path, b"a,b\n1,2\n", f"in.csv.{suffix}"))


def test_an_arrow_stream_is_written_as_one(tmp_path: Path) -> None:
    table = pa.table({"a": [1, None], "b": pa.array(["x", "y"]).dictionary_encode()})
    write_table(table, tmp_path / "t.arrows")
    with pa.ipc.open_stream((tmp_path / "t.arrows").read_bytes()) as stream:
        assert stream.read_all().equals(table)
    assert read_table(tmp_path / "t.arrows").equals(table)
    assert pa.concat_tables(read_batches(tmp_path / "t.arrows", 1)).equals(table)
    write_parts(iter([table, table]), tmp_path / "again.arrows")
    assert read_table(tmp_path / "again.arrows").equals(pa.concat_tables([table, table]))
