"""Folders and patterns of Parquet files: one table if the columns are the same, else one error."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from glfm_cli.io import read_batches, read_table

ROWS = 12
TEXTS = [f"{i % 3:02d}" for i in range(ROWS)]
TYPES = "{rest: ignore, columns: {a: real}}"


@pytest.fixture
def put(desk, seed: int) -> Callable[..., None]:
    """Write a folder `parts` of files with a column `a`, some cells missing, and others."""
    desk.put("types.yaml", TYPES)

    def put(*files: dict[str, Any], nullable: bool = True) -> None:
        rng = np.random.default_rng(seed)
        Path("parts").mkdir()
        for k, columns in enumerate(files):
            a = rng.normal(size=ROWS)
            table = pa.table({"a": pa.array(a, mask=a > 1), **columns})
            fields = [field.with_nullable(nullable or k > 0) for field in table.schema]
            fields[table.column_names.index("a")] = pa.field("a", pa.float64())
            pq.write_table(table.cast(pa.schema(fields)), f"parts/{k}.parquet")

    return put


def both_ways() -> pa.Table:
    """Return the table in the folder, which must be the same when it is read in batches."""
    whole = read_table("parts")
    in_batches = pa.concat_tables(read_batches("parts", 5))
    assert in_batches.schema.equals(whole.schema, check_metadata=True)
    assert in_batches.to_pydict() == whole.to_pydict()
    return whole


DIFFERENT = {
    "numbers and text": (pa.array(range(ROWS), pa.int32()), pa.array(TEXTS), "string", "int32"),
    "text and numbers": (pa.array(TEXTS), pa.array([1.5] * ROWS), "double", "string"),
    "text and booleans": (pa.array(TEXTS), pa.array([True] * ROWS), "bool", "string"),
    "whole and not": (pa.array(range(ROWS), pa.int32()), pa.array([0.5] * ROWS), "double", "int32"),
    "not and whole": (pa.array([0.5] * ROWS), pa.array([2**53 + 1] * ROWS), "int64", "double"),
    "precisions": (
        pa.array([0.5] * ROWS, pa.float32()),
        pa.array([0.1] * ROWS),
        "double",
        "float",
    ),
    "signs": (
        pa.array([1] * ROWS, pa.uint64()),
        pa.array([-1] * ROWS, pa.int64()),
        "int64",
        "uint64",
    ),
    "units of time": (
        pa.array([5] * ROWS, pa.timestamp("ms")),
        pa.array([5] * ROWS, pa.timestamp("ns")),
        "timestamp[ns]",
        "timestamp[ms]",
    ),
    "zones": (
        pa.array([5] * ROWS, pa.timestamp("ms")),
        pa.array([5] * ROWS, pa.timestamp("ms", "Europe/Oslo")),
        "timestamp[ms, tz=Europe/Oslo]",
        "timestamp[ms]",
    ),
    "structs": (
        pa.array([{"x": 1, "y": 2}] * ROWS),
        pa.array([{"x": 1}] * ROWS),
        "struct<x: int64>",
        "struct<x: int64, y: int64>",
    ),
}


@pytest.mark.parametrize("case", DIFFERENT)
def test_a_column_with_two_types_names_its_file(desk, here: Callable, put, case) -> None:
    one, other, value, expected = DIFFERENT[case]
    put({"q": one}, {"q": one}, {"q": other})
    error = (
        f"parts/2.parquet, column 'q': found values of type {value}, "
        f"expected {expected} as in parts/0.parquet"
    )
    desk.check_rejected(error, here, "types", "parts/*.parquet")
    said = desk.check_rejected(error, desk.impute, "-o", "out.parquet", table="parts")
    assert "one type in all files" in said.lines("Hint")[0]


ONLY_TEXT = {"q": pa.array(TEXTS)}
LACKING = {
    "lacks one": ((ONLY_TEXT, {}), "parts/1.parquet, column 'q': is not in this file, but in "),
    "has one more": (({}, ONLY_TEXT), "parts/0.parquet, column 'q': is not in this file, but in "),
    "writes it in capitals": (
        (ONLY_TEXT, {"Q": pa.array(TEXTS)}),
        "parts/1.parquet, column 'q': is not in this file, but in parts/0.parquet; here it is 'Q'",
    ),
}


@pytest.mark.parametrize("case", LACKING)
def test_a_column_that_a_file_lacks_is_not_invented(desk, here: Callable, put, case) -> None:
    files, error = LACKING[case]
    put(*files)
    desk.check_rejected(error, here, "types", "parts")
    desk.check_rejected(error, desk.impute, table="parts/*")


def test_a_completion_in_batches_ends_in_the_same_error(desk, here: Callable, put) -> None:
    put(ONLY_TEXT, ONLY_TEXT)
    assert desk.impute("--save", "f.glfm", "-o", "out.parquet", table="parts").status == 0
    other = pa.array(range(ROWS), pa.int32())
    pq.write_table(pa.table({"a": pa.nulls(ROWS, pa.float64()), "q": other}), "parts/1.parquet")
    options = ("--fit", "f.glfm", "--memory", "1k", "-o", "again.parquet")
    error = "parts/1.parquet, column 'q': found values of type int32, expected string as in"
    desk.check_rejected(error, here, "impute", "parts", *options)


def test_the_order_of_the_first_file_is_taken(put) -> None:
    put({"q": pa.array(TEXTS)}, {"q": pa.array(TEXTS)})
    table = pq.read_table("parts/1.parquet")
    pq.write_table(table.select(["q", "a"]), "parts/1.parquet")
    found = both_ways()
    assert found.column_names == ["a", "q"]
    assert found["q"].to_pylist() == TEXTS * 2


def levels(index: pa.DataType) -> pa.Array:
    return pa.array(TEXTS).dictionary_encode().cast(pa.dictionary(index, pa.string()))


WIDER = {
    "empty first": (pa.nulls(ROWS), pa.array(TEXTS), pa.string()),
    "empty last": (levels(pa.int8()), pa.nulls(ROWS), pa.dictionary(pa.int8(), pa.string())),
    "empty dates": (
        pa.nulls(ROWS),
        pa.array([5] * ROWS, pa.timestamp("ms", "UTC")),
        pa.timestamp("ms", "UTC"),
    ),
    "integers": (pa.array(range(ROWS), pa.int32()), pa.array([2**60] * ROWS), pa.int64()),
    "wider first": (pa.array([2**60] * ROWS), pa.array(range(ROWS), pa.int8()), pa.int64()),
    "long texts": (pa.array(TEXTS), pa.array(TEXTS, pa.large_string()), pa.large_string()),
    "levels": (levels(pa.int8()), levels(pa.int16()), pa.dictionary(pa.int16(), pa.string())),
}


@pytest.mark.parametrize("case", WIDER)
def test_a_type_that_holds_both_loses_nothing(put, case) -> None:
    one, other, expected = WIDER[case]
    put({"q": one}, {"q": other})
    found = both_ways()
    assert found.schema.field("q").type == expected
    assert found["q"].to_pylist() == one.to_pylist() + other.to_pylist()


def test_a_column_may_lack_cells_in_a_later_file(desk, put) -> None:
    put({"q": pa.array(TEXTS)}, {"q": pa.nulls(ROWS, pa.string())}, nullable=False)
    assert both_ways()["q"].null_count == ROWS
    assert desk.impute("-o", "out.parquet", table="parts").status == 0


def test_names_of_folders_are_columns_of_all_files(desk, here: Callable, put) -> None:
    put(ONLY_TEXT, ONLY_TEXT)
    Path("parts/year=2024").mkdir()
    Path("parts/1.parquet").rename("parts/year=2024/1.parquet")
    error = "parts/0.parquet, column 'year': is not in this file, but in parts/year=2024/1.parquet"
    desk.check_rejected(error, here, "types", "parts")
    Path("parts/0.parquet").unlink()
    assert both_ways()["year"].to_pylist() == [2024] * ROWS
    year = pa.array([1999] * ROWS, pa.int32())
    pq.write_table(pa.table({"year": year}), "parts/year=2024/1.parquet")
    error = "parts/year=2024/1.parquet, column 'year': stands in the file, and in the name of its"
    desk.check_rejected(error, here, "types", "parts")


def test_two_stars_stand_for_any_folders_below(put) -> None:
    put(ONLY_TEXT, ONLY_TEXT)
    for k in (0, 1):
        Path(f"parts/year=2024/month={k}").mkdir(parents=True)
        Path(f"parts/{k}.parquet").rename(f"parts/year=2024/month={k}/{k}.parquet")
    for pattern in ("parts/**/*.parquet", "parts/**"):
        table = read_table(pattern)
        assert table["month"].to_pylist() == [0] * ROWS + [1] * ROWS
        assert table.num_rows == sum(one.num_rows for one in read_batches(pattern, 5))


def test_what_is_no_parquet_file_is_named(desk, here: Callable, put) -> None:
    put(ONLY_TEXT)
    desk.put("parts/1.txt", "a\n1\n")
    desk.check_rejected("parts/1.txt: cannot be read as Parquet", here, "types", "parts")
    Path("empty").mkdir()
    desk.check_rejected("empty: holds no Parquet file", here, "types", "empty")


@pytest.mark.parametrize("codec", ["zstd", "gzip", "none", "snappy"])
def test_the_compression_of_the_input_is_kept(desk, here: Callable, codec: str) -> None:
    desk.put("types.yaml", TYPES)
    table = pa.table({"a": [None, *np.arange(ROWS - 1.0)], "q": TEXTS})
    pq.write_table(table, "t.parquet", compression=codec, row_group_size=5)
    Path("parts").mkdir()
    pq.write_table(table, "parts/0.parquet", compression=codec)
    options = ("--fit", "f.glfm", "--memory", "1k")
    for source in ("t.parquet", "parts"):
        said = desk.impute("--save", "f.glfm", "--flags", "-o", "out.parquet", table=source)
        assert said.status == 0, said.stderr
        assert here("impute", source, *options, "-o", "batches.parquet").status == 0
        for out in ("out.parquet", "batches.parquet"):
            found = pq.read_metadata(out)
            columns = range(found.num_columns)
            used = {found.row_group(0).column(i).compression for i in columns}
            assert used == {"UNCOMPRESSED" if codec == "none" else codec.upper()}
            assert b"glfm.parquet" not in (found.metadata or {})
            assert b"glfm.parquet" not in (pq.read_schema(out).metadata or {})
        if source == "t.parquet":
            found = pq.read_metadata("out.parquet")
            assert [found.row_group(i).num_rows for i in range(3)] == [5, 5, 2]
        shutil.rmtree("f.glfm")
    assert desk.impute("-o", "out.arrow", table="t.parquet").status == 0
    assert b"glfm.parquet" not in (read_table("out.arrow").schema.metadata or {})
