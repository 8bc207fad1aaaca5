"""Random small tables and types files: completed or refused, never a traceback."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glfm_cli.io import read_table, write_table

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
EXTREMES = ["0", "-0.0", "1e300", "-1e300", "1.797e308", "1e-300", "5e-324", "9007199254740992"]
EXTREMES += ["9007199254740991", "0.1", "-1", "1e16", "123456.789", "-9", "1", "2"]
WORDS = ["x", "y", "Ü", "a b", "NA", "?", "007", "7.0", "7", "=1", 'q"', "p,q", "l\nm", " z ", "-9"]
KINDS = ["real", "positive", "count", "categorical", "ordinal", "id", "ignore", "predictor"]
CODES = [["NA"], ["?", "-9"], [{"value": "-9", "impute": False}, "NA"], ["0"], [""]]
TRANSFORMS = ["none", "rank", "log", "log1p", "sqrt", "logit"]


class Column(NamedTuple):
    """A column as the types file describes it, and its cells as text."""

    entry: dict[str, Any]
    cells: list[str]

    @property
    def kind(self) -> str:
        return str(self.entry.get("type", self.entry.get("role")))


@st.composite
def numbers(draw: st.DrawFn, kind: str) -> str:
    """Draw a number as text that mostly fits a kind of column."""
    if draw(st.integers(0, 3)) == 0:
        text = draw(st.sampled_from(EXTREMES))
    elif kind == "count":
        text = str(draw(st.integers(0, 9) | st.integers(0, 2**53)))
    else:
        text = repr(draw(st.integers(-99, 99)) / 4 if draw(st.booleans()) else draw(FLOATS))
    if kind in ("positive", "count"):
        text = text.removeprefix("-")
    return text.split("e")[0].split(".")[0] or "0" if kind == "count" else text


FLOATS = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def columns(draw: st.DrawFn, n_rows: int, kinds: list[str]) -> Column:
    """Draw a column whose cells mostly, but not always, fit what is said of it."""
    kind = draw(st.sampled_from(kinds))
    entry: dict[str, Any] = {"type": kind} if kind in KINDS[:5] else {"role": kind}
    wild = draw(st.integers(0, 19)) == 0
    if kind in ("real", "positive", "count"):
        value = numbers(kind)
        if draw(st.integers(0, 3)) == 0:
            entry["transform"] = draw(st.sampled_from(TRANSFORMS))
        if draw(st.integers(0, 5)) == 0:
            entry["bounds"] = draw(st.sampled_from([[0, None], [0, 1000], [None, 1e9], [-99, 99]]))
    elif kind == "ordinal":
        value = st.integers(1, 5).map(str)
    else:
        value = st.sampled_from(WORDS)
    if wild:
        value = st.sampled_from(WORDS + EXTREMES) | st.text(max_size=3)
    if draw(st.integers(0, 3)) == 0:
        entry["missing"] = draw(st.sampled_from(CODES))
        value = value | st.sampled_from(["NA", "-9", "?"][: 3 if kind == "categorical" else 1])
    share = draw(st.integers(0, 2))
    cell = st.one_of([value] * 3 + [st.just("")] * share)
    cells = draw(st.lists(cell, min_size=n_rows, max_size=n_rows))
    if kind == "categorical" and draw(st.integers(0, 4)) == 0:
        entry["levels"] = sorted(
            {*WORDS, *(c.strip() for c in cells if c.strip())} - {" z ", "7.0"}
        )
    return Column(entry, cells)


@st.composite
def tables(draw: st.DrawFn) -> list[Column]:
    """Draw one to four columns of one to twelve rows."""
    n_rows = draw(st.integers(1, 12))
    return [
        draw(columns(n_rows, KINDS[:5])),
        *draw(st.lists(columns(n_rows, KINDS), max_size=3)),
    ]


OPTIONS = st.sampled_from(
    [
        "",
        "--estimate median",
        "--estimate mode",
        "--estimate draw",
        "--flags",
        "--set max_features=0",
        "--set max_features=2 --set alpha=9",
        "--set bias=false",
        "--set prior_scale=independent",
        "--set link=paper",
        "--set link_noise=0.5",
        "--set initial_features=0 --warmup 0 --draws 1",
        "--chains 2 --thin 2",
        "--interval 0.5",
    ]
)


# Run and check -------------------------------------------------------------------------------


def as_csv(names: list[str], rows: list[list[str]], delimiter: str, quoting: int) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n", quoting=quoting)
    writer.writerow(names)
    writer.writerows(rows)
    return text.getvalue()


def level_key(text: str) -> str:
    """Return what the two writings 7 and 7.0 of one level share."""
    return text.strip().removesuffix(".0")


def gap_at(column: Column, text: str) -> str | None:
    """Return "fill" or "leave" for a missing cell, None for an observed cell."""
    numeric = column.kind in ("real", "positive", "count")
    found = None if text.strip() else "fill"
    for code in column.entry.get("missing", []):
        value, impute = (code, True) if isinstance(code, str) else (code["value"], code["impute"])
        same = text.strip() == value
        if numeric and NUMBER.fullmatch(value) and NUMBER.fullmatch(text.strip()):
            same |= float(text) == float(value)
        elif not numeric and NUMBER.fullmatch(value):
            same |= level_key(text) == value
        if same:
            found = "fill" if impute else "leave"
    return found if column.kind in KINDS[:5] else None


def fits(column: Column, text: str) -> bool:
    """Return whether a completed cell lies in its column's support."""
    observed = [cell for cell in column.cells if gap_at(column, cell) is None]
    if column.kind in ("categorical", "ordinal"):
        levels = column.entry.get("levels", observed)
        return level_key(text) in {level_key(level) for level in levels}
    value = float(text)
    lower, upper = column.entry.get("bounds", [None, None])
    inside = (lower is None or value >= lower) and (upper is None or value <= upper)
    if column.kind == "positive":
        inside &= value > 0 or any(float(cell) == 0 for cell in observed)
    if column.kind == "count":
        inside &= text.isdecimal()
    return math.isfinite(value) and inside


def check_refused(said: Any, output: Path) -> None:
    lines = said.stderr.splitlines()
    assert lines[0].startswith("Error: ")
    assert [line.split(" ")[0] for line in lines[1:]] in ([], ["Hint:"])
    assert output.read_bytes() == b"old"
    assert said.output == b""


@settings(max_examples=40)
@given(
    tables(), OPTIONS, st.sampled_from(",;\t"), st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
)
def test_a_random_text_table_is_completed_or_refused(
    here: Callable[..., Any], table: list[Column], options: str, delimiter: str, quoting: int
) -> None:
    names = [f"c{i}" for i in range(len(table))]
    rows = [list(row) for row in zip(*(column.cells for column in table), strict=True)]
    delimiter = delimiter if len(table) > 1 else ","  # one column shows no other
    entries = {name: column.entry for name, column in zip(names, table, strict=True)}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data, types, output = folder / "t.csv", folder / "t.json", folder / "out.csv"
        data.write_text(as_csv(names, rows, delimiter, quoting), encoding="utf-8", newline="")
        types.write_text(json.dumps({"columns": entries}), encoding="utf-8")
        output.write_bytes(b"old")
        said = impute(here, data, types, output, options)
        if said.status == 2:
            check_refused(said, output)
            return
        after = output.read_bytes().decode()
    found = list(csv.reader(io.StringIO(after, newline=""), delimiter=delimiter))[1:]
    for was, now in zip(rows, [row or [""] for row in found], strict=True):
        for column, x, y in zip(table, was, now, strict=False):
            if gap_at(column, x) == "fill":
                assert gap_at(column, y) is None
                assert fits(column, y)
            else:
                assert x == y


def impute(here: Callable[..., Any], data: Path, types: Path, output: Path, options: str) -> Any:
    """Run `glfm impute`; when it succeeds, check the summary against the list of cells."""
    short = ["--chains", "1", "--warmup", "2", "--draws", "2", "--threads", "1"]
    cells = output.with_name("cells.csv")
    beside = ["-o", output, "--cells", cells, "--json"]
    said = here("impute", data, "--types", types, *beside, *short, *options.split())
    assert said.status in (0, 2), said.stderr
    assert cells.exists() == (said.status == 0)
    if said.status == 0:
        summary = json.loads(said.stdout, parse_constant=lambda name: pytest.fail(name))
        with cells.open(encoding="utf-8", newline="") as file:
            listed = list(csv.DictReader(file))
        assert len(listed) == summary["cells_completed"]
        for cell in listed:
            if cell["type"] in ("real", "positive", "count"):
                assert float(cell["lower"]) <= float(cell["upper"])
                assert math.isfinite(float(cell["mean"]))
                assert 0 <= float(cell["sd"]) < math.inf
    return said


TYPED = {
    "real": [pa.float64(), pa.float32(), pa.float16(), pa.int32(), pa.decimal128(38, 3)],
    "positive": [pa.float64(), pa.float32(), pa.uint16(), pa.decimal128(9, 2)],
    "count": [pa.int64(), pa.int8(), pa.uint64(), pa.float64(), pa.float32()],
    "categorical": [pa.string(), pa.bool_(), pa.int8(), pa.dictionary(pa.int8(), pa.string())],
    "ordinal": [pa.int16(), pa.float64(), pa.dictionary(pa.int32(), pa.int64(), ordered=True)],
}


@st.composite
def typed_columns(draw: st.DrawFn, n_rows: int) -> tuple[str, pa.Array]:
    """Draw the type of a column and its cells as an Arrow array."""
    kind = draw(st.sampled_from(KINDS[:5]))
    arrow = draw(st.sampled_from(TYPED[kind]))
    inner = arrow.value_type if pa.types.is_dictionary(arrow) else arrow
    largest = 120 if kind in ("count", "positive") else draw(st.sampled_from([3, 120]))
    value: Any = st.integers(0 if kind in ("count", "positive") else -largest, largest)
    if pa.types.is_boolean(inner):
        value = st.booleans()
    elif pa.types.is_string(inner):
        value = st.sampled_from(["x", "y", "z"])
    elif kind == "ordinal":
        value = st.integers(1, 4)
    values = draw(st.lists(st.none() | value, min_size=n_rows, max_size=n_rows))
    if pa.types.is_floating(inner) and kind in ("real", "positive"):
        values = [None if v is None else v / 8 for v in values]
    if not pa.types.is_dictionary(arrow):
        return kind, pa.array(values, arrow)
    encoded = pa.array(values, inner).dictionary_encode()
    indices = encoded.indices.cast(arrow.index_type)
    return kind, pa.DictionaryArray.from_arrays(indices, encoded.dictionary, ordered=arrow.ordered)


@settings(max_examples=25)
@given(st.data(), OPTIONS)
def test_a_random_typed_table_is_completed_or_refused(
    here: Callable[..., Any], data: st.DataObject, options: str
) -> None:
    n_rows = data.draw(st.integers(1, 12))
    drawn = data.draw(st.lists(typed_columns(n_rows), min_size=1, max_size=4))
    names = [f"c{i}" for i in range(len(drawn))]
    table = pa.table([array for _, array in drawn], names=names)
    entries = {name: kind for name, (kind, _) in zip(names, drawn, strict=True)}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        types, output = folder / "t.json", folder / "out.arrow"
        types.write_text(json.dumps({"columns": entries}))
        write_table(table, folder / "t.arrow")
        output.write_bytes(b"old")
        said = impute(here, folder / "t.arrow", types, output, options)
        if said.status == 2:
            check_refused(said, output)
            return
        completed = read_table(output).select(names)
    assert completed.schema == table.schema
    for name, (kind, array) in zip(names, drawn, strict=True):
        was, now = array.to_pylist(), completed[name].to_pylist()
        filled = [y for x, y in zip(was, now, strict=True) if x is None]
        assert None not in now
        assert [y for x, y in zip(was, now, strict=True) if x is not None] == [
            x for x in was if x is not None
        ]
        if kind in ("categorical", "ordinal"):
            assert set(filled) <= set(was)
        elif kind != "real":
            assert all(0 <= value < 2**54 for value in filled)
        if kind == "count":
            assert all(value == int(value) for value in filled)
