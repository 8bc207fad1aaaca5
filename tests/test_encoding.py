"""Encoding: every observed cell checked and kept, every wanted gap filled in its column's form."""

from __future__ import annotations

import contextlib
import math
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from glfm_cli import impute
from glfm_cli.encoding import (
    Data,
    EncodedColumn,
    decode,
    encode,
    flag_columns,
    successes_of,
    trials_of,
)
from glfm_cli.errors import GlfmError, NumericalError, SchemaError, TableError, UsageError
from glfm_cli.io import read_table, write_table
from glfm_cli.io.csv_read import read
from glfm_cli.schema import Schema, read_schema

NAN = math.nan


def csv(*cells: str) -> pa.Table:
    """Return a CSV table of one column `v`."""
    quoted = ['"' + cell.replace('"', '""') + '"' for cell in cells]
    return read("\n".join(["v", *quoted, ""]).encode(), "tsv", "t.csv", {})


def schema(said: Any, **others: Any) -> Schema:
    return Schema.from_dict({"glfm": 1, "columns": {"v": said, **others}})


def only(table: pa.Table, said: Any) -> EncodedColumn:
    return encode(table, schema(said)).columns[0]


def values(table: pa.Table, said: Any) -> list[float]:
    return [None if math.isnan(x) else x for x in only(table, said).x.tolist()]


def completed(table: pa.Table, said: Any, *fills: float) -> list[Any]:
    """Return the column after its missing cells were filled."""
    data = encode(table, schema(said))
    result = decode(table, data, {"v": np.array(fills)})
    assert result.schema.field("v").type == table.schema.field("v").type
    again = encode(result, schema(said)).columns[0]
    seen = data.columns[0].observed
    assert np.array_equal(again.x[seen], data.columns[0].x[seen]) or data.columns[0].levels
    assert not again.requested.any()
    return result.column("v").to_pylist()


# Text to numbers ----------------------------------------------------------------------------


def test_numbers_are_read_in_every_strict_writing() -> None:
    table = csv("1", "-2.5", "+3", ".5", "5.", "1e3", "2E-2", " 7 ", "007", "-0", "", "  ")
    assert values(table, "real") == [1, -2.5, 3, 0.5, 5, 1000, 0.02, 7, 7, 0, None, None]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=8))
def test_numbers_are_read_exactly(numbers: list[float]) -> None:
    assert values(csv(*map(repr, numbers)), "real") == numbers


@pytest.mark.parametrize(
    ("cell", "hint"),
    [
        ("abc", "missing:"),
        ("NA", 'add "NA"'),
        ("nan", "missing:"),
        ("inf", "missing:"),
        ("-Infinity", "missing:"),
        ("1e400", "scale the column"),
        ("1,5", '`decimal: ","`'),
        ("1.234,5", '`thousands: "."`'),
        ("1,234,567", "thousands"),
        ("1,234.5", "thousands"),
        ("1,234", '`thousands: ","`, or `decimal: ","`'),
        ("1 234", "thousands"),
        ("12%", "percent"),
        ("$12.50", "`unit: $`"),
        ("148 cm", "unit"),
        ("2020-01-31", "type date"),
        ("12:30", "of type duration"),
        ("0x1F", "missing:"),
        ("1_000", "missing:"),
        ("1e", "missing:"),
        ("--1", "missing:"),
        ("1 2", "missing:"),
        ("٣", "missing:"),
    ],
)
def test_text_that_is_no_number_is_refused(cell: str, hint: str) -> None:
    with pytest.raises(TableError) as caught:
        encode(csv("1", "", cell, "x"), schema("real"), file="t.csv")
    error = caught.value
    assert (error.file, error.row, error.column, error.value) == ("t.csv", 3, "v", f"'{cell}'")
    assert hint in str(error.hint)


# Types and their supports -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "cell", "expected"),
    [
        ("positive", "-3", "0 or above"),
        ("count", "-1", "whole number"),
        ("count", "2.5", "whole number"),
        ("count", "1e16", "whole number"),
        ({"type": "real", "bounds": [0, 10]}, "10.5", "between 0 and 10 (`bounds`)"),
        ({"type": "count", "bounds": [1, None]}, "0", "1 or above (`bounds`)"),
        ({"type": "real", "transform": "log"}, "0", "above 0 (`transform: log`)"),
        ({"type": "count", "transform": "log"}, "0", "above 0"),
        ({"type": "real", "transform": "log1p"}, "-1", "above -1"),
        ({"type": "real", "transform": "sqrt"}, "-0.1", "0 or above"),
        ({"type": "real", "transform": "logit"}, "1", "between 0 and 1, both excluded"),
        ({"type": "real", "transform": "log", "reflect": 10}, "10", "below 10"),
        ({"type": "positive", "transform": "log", "reflect": 10}, "12", "reflect: 10"),
    ],
)
def test_values_outside_the_support_are_refused(said: Any, cell: str, expected: str) -> None:
    with pytest.raises(TableError) as caught:
        encode(csv("0.5" if "logit" in str(said) else "2", "", cell), schema(said))
    assert caught.value.row == 3
    assert expected in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("said", "cells"),
    [
        ("positive", ["0", "0.0", "3"]),
        ({"type": "positive", "transform": "log"}, ["0", "3"]),
        ({"type": "positive", "transform": "logit"}, ["0", "0.3"]),
        ({"type": "positive", "transform": "log", "reflect": 4}, ["0", "3"]),
        ("count", ["0", "3.0", "9007199254740992"]),
        ({"type": "count", "transform": "log1p"}, ["0", "3"]),
        ({"type": "real", "transform": "sqrt"}, ["0", "3"]),
        ({"type": "real", "bounds": [-1, 1]}, ["-1", "1"]),
        ({"type": "real", "transform": "logit", "bounds": [0.25, 0.75]}, ["0.3", "0.7"]),
        ("real", ["1e300", "-1e300", "5e-324"]),
    ],
)
def test_values_at_the_edge_of_the_support_are_taken(said: Any, cells: list[str]) -> None:
    assert values(csv(*cells), said) == [float(cell) for cell in cells]


def test_a_positive_column_of_zeros_is_refused() -> None:
    with pytest.raises(SchemaError, match="every observed value is 0"):
        encode(csv("0", "", "0.0"), schema("positive"))


# Missing cells ------------------------------------------------------------------------------


def test_codes_match_as_text_and_as_numbers() -> None:
    said = {"type": "real", "missing": ["-9", "NA", {"value": "-1", "impute": False}]}
    column = only(csv("-9", "-9.0", "NA", " NA ", "-1", "-1.00", "", "2"), said)
    assert column.observed.tolist() == [False] * 7 + [True]
    assert column.requested.tolist() == [True, True, True, True, False, False, True, False]


def test_codes_match_levels_as_text() -> None:
    said = {"type": "categorical", "missing": ["?", {"value": "-1", "impute": False}]}
    column = only(csv("a", "?", "-1", "-1.0", " ? ", ""), said)
    assert column.requested.tolist() == [False, True, False, False, True, True]
    assert column.levels == ("a",)


def test_codes_match_typed_numbers() -> None:
    table = pa.table({"v": pa.array([1.5, -9.0, None, NAN], pa.float32())})
    said = {"type": "real", "missing": [{"value": "-9", "impute": False}]}
    assert only(table, said).requested.tolist() == [False, False, True, True]


@pytest.mark.parametrize(("kind", "code"), [("int64", -(2**63)), ("uint64", 2**64 - 1)])
def test_codes_may_be_larger_than_exact_numbers(kind: str, code: int) -> None:
    """The smallest number of 64 bits is what arrays of integers have for NaN."""
    table = pa.table({"v": pa.array([1, code, 3, 4], kind)})
    said = {"type": "real", "missing": [str(code)]}
    assert only(table, said).requested.tolist() == [False, True, False, False]
    near = pa.table({"v": pa.array([1, code, 3, code - 1 if code > 0 else code + 1], kind)})
    with pytest.raises(TableError, match=r"row 4.*2\^53"):
        only(near, said)


def test_empty_cells_can_be_left_alone() -> None:
    said = {"type": "real", "missing": [{"value": "", "impute": False}, "NA"]}
    assert only(csv("1", "", "NA"), said).requested.tolist() == [False, False, True]


def test_predictors_are_never_wanted() -> None:
    column = only(csv("1", "", "3"), {"type": "real", "role": "predictor"})
    assert column.observed.tolist() == [True, False, True]
    assert not column.requested.any()


@pytest.mark.parametrize(
    ("cells", "kind"), [(["1", "", "2.5"], "real"), (["1", "", "x"], "categorical")]
)
def test_a_predictor_without_type_gets_one(cells: list[str], kind: str) -> None:
    data = encode(csv(*cells), schema("predictor"))
    assert data.columns[0].column.type == kind
    assert f"taken as {kind}" in data.notes[0]


@pytest.mark.parametrize("said", ["real", "count", "categorical", "ordinal", "predictor"])
def test_a_column_without_observed_cells_is_refused(said: str) -> None:
    with pytest.raises(TableError) as caught:
        encode(csv("", " "), schema(said))
    assert "role: ignore" in str(caught.value.hint)
    with pytest.raises(TableError):
        encode(pa.table({"v": pa.nulls(2)}), schema(said))


# Levels -------------------------------------------------------------------------------------


def test_learnt_levels_are_in_a_sensible_order() -> None:
    assert only(csv("b10", "10", "B2", "9", "a"), "categorical").levels == (
        "9", "10", "a", "B2", "b10",
    )  # fmt: skip
    assert only(csv("10", "9", "-1", "2.5"), "ordinal").levels == ("-1", "2.5", "9", "10")


def test_listed_levels_give_the_codes() -> None:
    said = {"type": "ordinal", "levels": ["low", "mid", "high"]}
    assert values(csv("high", " low ", "", "mid"), said) == [2, 0, None, 1]


@pytest.mark.parametrize(
    "array",
    [
        pa.array([11, 12, None]),
        pa.array([11.0, 12.0, NAN]),
        pa.array([Decimal("11.00"), Decimal("12.00"), None]),
        pa.array(["11", "12", None]),
        pa.array(["11.0", "12", ""]),
        pa.array([11, 12, None], pa.uint8()).dictionary_encode(),
    ],
)
def test_integral_levels_are_the_same_in_every_type(array: pa.Array) -> None:
    column = only(pa.table({"v": array}), {"type": "categorical", "levels": ["11", "12", "13"]})
    assert column.x[:2].tolist() == [0, 1]
    assert column.requested.tolist() == [False, False, True]


def test_levels_of_other_types_are_their_text() -> None:
    columns = {
        "bool": pa.array([True, False]),
        "half": pa.array([0.5, 0.1], pa.float32()),
        "day": pa.array([date(2020, 1, 2), date(2020, 1, 1)]),
        "text": pa.array(["007", "no"]),
    }
    data = encode(pa.table(columns), Schema.from_dict({"rest": "categorical"}))
    assert [column.levels for column in data.columns] == [
        ("false", "true"), ("0.1", "0.5"), ("2020-01-01", "2020-01-02"), ("007", "no"),
    ]  # fmt: skip


def test_an_ordered_dictionary_gives_the_order() -> None:
    array = pa.DictionaryArray.from_arrays([1, 0, None], ["mid", "high", "unused"], ordered=True)
    assert only(pa.table({"v": array}), "ordinal").levels == ("mid", "high")


@pytest.mark.parametrize(
    ("cells", "said", "error", "match"),
    [
        (["mid", "hgh"], {"type": "ordinal", "levels": ["mid", "high"]}, TableError, "'hgh'"),
        (["a", "b"], "ordinal", SchemaError, "'a' is not a number"),
        (["1", "1.00", "01"], "ordinal", SchemaError, "same number"),
        (["1"], {"type": "categorical", "levels": ["1", "1.0"]}, SchemaError, "same value"),
    ],
)
def test_levels_that_do_not_fit_are_refused(
    cells: list[str], said: Any, error: type[GlfmError], match: str
) -> None:
    with pytest.raises(error, match=match) as caught:
        encode(csv(*cells), schema(said))
    assert caught.value.hint


def test_an_unknown_level_comes_with_the_closest_one() -> None:
    with pytest.raises(TableError, match=r"row 2.*expected one of low, high") as caught:
        encode(csv("low", "Hihg"), schema({"type": "ordinal", "levels": ["low", "high"]}))
    assert "'high'" in str(caught.value.hint)


def test_a_listed_level_that_the_column_cannot_hold_is_refused() -> None:
    with pytest.raises(SchemaError, match="'low' cannot stand in a column of Arrow type int64"):
        encode(pa.table({"v": [1, 2]}), schema({"type": "ordinal", "levels": ["low", "1", "2"]}))


# Arrow types --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("array", "said", "error", "match"),
    [
        (pa.array([1, 2**53 + 1]), "real", TableError, "row 2.*2\\^53"),
        (pa.array([1, -(2**60)]), "real", TableError, "row 2"),
        (pa.array([1, 2**63], pa.uint64()), "count", TableError, "row 2"),
        (pa.array([1.0, math.inf]), "real", TableError, "row 2: found inf"),
        (pa.array([1.5, None]), "count", TableError, "row 1.*whole number"),
        (pa.array([True, False]), "count", SchemaError, "true and false"),
        (pa.array([date(2020, 1, 1)]), "real", SchemaError, "dates or times"),
        (pa.array([datetime(2020, 1, 1)]), "positive", SchemaError, "dates or times"),
        (pa.array([[1.0]]), "real", SchemaError, "list"),
        (pa.array([b"x"]), "categorical", SchemaError, "binary"),
        (pa.array([[1.0]]), "categorical", SchemaError, "list"),
    ],
)
def test_arrow_values_that_do_not_fit_are_refused(
    array: pa.Array, said: str, error: type[GlfmError], match: str
) -> None:
    with pytest.raises(error, match=match):
        encode(pa.table({"v": array}), schema(said))


def test_roles_of_other_models_are_refused() -> None:
    with pytest.raises(SchemaError, match="task"):
        encode(pa.table({"v": [1], "w": [2]}), schema({"role": "task"}, w="count"))


# Successes among trials ---------------------------------------------------------------------

HITS: Any = {"type": "binomial", "trials": "w", "missing": [{"value": "9", "impute": False}]}


def test_successes_are_shares_with_their_trials() -> None:
    table = pa.table({"v": ["1", "", "0", "", "9", ""], "w": ["4", "5", "0", "", "7", "0"]})
    for role in ("ignore", "count"):
        data = encode(table, schema(HITS, w=role))
        hits = data.columns[0]
        assert hits.x[0] == 0.25
        assert hits.observed.tolist() == [True, *[False] * 5]
        assert hits.requested.tolist() == [False, True, False, False, False, True]
        assert trials_of(hits.scored[:1])[0] == 4.0
        assert successes_of(hits.scored[:1])[0] == 1.0
        assert data.ends[0].tolist() == [[0.0, 5.0], [0.0, 0.0]]
        why = [(one.cells, one.why) for one in data.not_completed if one.column == "v"]
        assert why == [(1, "no number of trials in 'w'"), (1, "impute: false for 9")]
        filled = decode(table, data, {"v": np.array([3.0, 0.0]), "w": np.array([2.0])})
        assert filled["v"].to_pylist() == ["1", "3", "0", "", "9", "0"]


@pytest.mark.parametrize(
    ("hits", "trials", "error"),
    [
        (["1", "5"], ["4", "3"], "row 2: found 5 successes, expected at most the 3 trials"),
        (["1", "5"], ["4", ""], "row 2: found 5 successes, expected the number of trials where"),
        (["1", "1.5"], ["4", "4"], "column 'v', row 2: found '1.5', expected a whole number of"),
        (["1", "1"], ["4", "-4"], "column 'w', row 2: found '-4', expected a whole number of"),
        (["", ""], ["4", "4"], "column 'v': no cell of it is observed"),
    ],
)
def test_successes_that_cannot_be_are_refused(
    hits: list[str], trials: list[str], error: str
) -> None:
    with pytest.raises(TableError) as raised:
        encode(pa.table({"v": hits, "w": trials}), schema(HITS | {"missing": []}, w="ignore"))
    assert error in raised.value.message()


# Back into the table ------------------------------------------------------------------------


def test_completed_text_numbers_are_short_and_plain() -> None:
    assert completed(csv("1.50", "", "", "", "007"), "real", 2.123456789, 1e-6, -0.0) == [
        "1.50", "2.123457", "0.000001", "0", "007",
    ]  # fmt: skip
    assert completed(csv("3", "", "1e3"), "real", 1234567890.0) == ["3", "1234568000", "1e3"]
    assert completed(csv("3.0", "", "5"), "count", 4.0) == ["3.0", "4", "5"]


def test_numbers_that_differ_by_little_keep_more_digits() -> None:
    table = csv("1600000000", "1600000001", "")
    assert completed(table, "real", 1600000000.25)[2] == "1600000000.25"


def test_completed_levels_are_written_as_in_the_column() -> None:
    said = {"type": "categorical", "levels": ["11", "12", "13"]}
    assert completed(csv("11.0", "11", "11.0", "12", "", "", ""), said, 0, 1, 2)[4:] == [
        "11.0", "12", "13",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("array", "said", "fills", "expected"),
    [
        (pa.array([3, None, 5], pa.int8()), "count", [4.4], 4),
        (pa.array([3, None, 5], pa.int8()), "real", [500.0], 127),
        (pa.array([3, None, 5], pa.uint16()), "real", [-7.0], 0),
        (pa.array([3, None, 5]), "positive", [0.2], 1),
        (pa.array([0, None, 5]), "positive", [0.2], 0),
        (pa.array([3, None, 5]), {"type": "real", "bounds": [2.5, 5.5]}, [5.6], 5),
        (pa.array([3, None, 5]), {"type": "real", "transform": "log"}, [0.1], 1),
        (
            pa.array([3, None, 5]),
            {"type": "real", "transform": "log", "reflect": 6},
            [5.9],
            5,
        ),
        (pa.array([3, None, 5]), {"type": "count", "missing": ["4"]}, [4.1], 5),
        (pa.array([3.5, None]), "real", [0.1], 0.1),
        (pa.array([3.5, None], pa.float32()), "real", [0.1], float(np.float32(0.1))),
        (pa.array([3.5, None], pa.float32()), "positive", [1e-60], float(np.float32(1e-45))),
        (pa.array([3.5, None], pa.float32()), "real", [1e300], float(np.finfo("f4").max)),
        (pa.array([Decimal("1.50"), None]), "real", [2.126], Decimal("2.13")),
        (pa.array([Decimal("1.50"), None]), "positive", [0.001], Decimal("0.01")),
        (pa.array([Decimal("9.50"), None]), "real", [123.0], Decimal("9.99")),
        (pa.array([True, None, False]), "categorical", [1.0], True),
        (pa.array([7, None, 8]), "categorical", [1.0], 8),
        (pa.array([7.0, NAN, 8.0]), "ordinal", [1.0], 8.0),
        (pa.array(["x", None], pa.large_string()), "categorical", [0.0], "x"),
        (pa.array(["x", ""], pa.string()), "categorical", [0.0], "x"),
        (pa.array(["x", None], pa.string_view()), "categorical", [0.0], "x"),
        (pa.array(["1.5", None]), "real", [2.5], "2.5"),
        (pa.array([date(2020, 1, 1), None]), "categorical", [0.0], date(2020, 1, 1)),
        (pa.array([0.5, None], pa.float16()), "real", [0.25], 0.25),
        (pa.array([2, None, 4]).dictionary_encode(), "count", [3.0], 3),
        (pa.array([1.0, None], pa.float64()), "count", [2.4], 2.0),
    ],
)  # fmt: skip
def test_completed_cells_take_the_type_of_their_column(
    array: pa.Array, said: Any, fills: list[float], expected: Any
) -> None:
    table = pa.table({"v": array})
    assert completed(table, said, *fills)[1] == expected


def test_dictionaries_keep_index_type_order_and_values() -> None:
    array = pa.DictionaryArray.from_arrays(
        pa.array([1, None, 0, None], pa.int8()), ["low", "high"], ordered=True
    )
    table = pa.table({"v": pa.chunked_array([array, array])})
    said = {"type": "ordinal", "levels": ["low", "high", "top"]}
    data = encode(table, schema(said))
    result = decode(table, data, {"v": np.array([0.0, 1.0, 2.0, 2.0])}).column("v")
    assert result.type == array.type
    assert result.to_pylist() == ["high", "low", "low", "high", "high", "top", "low", "top"]
    assert result.chunk(0).dictionary.to_pylist() == ["low", "high", "top"]


def test_what_is_not_wanted_is_left_alone() -> None:
    table = pa.table(
        {
            "v": pa.array([1, None, -9]),
            "p": pa.array([None, 2.0, 3.0]),
            "note": pa.array(["", None, "x"]),
        }
    )
    said = Schema.from_dict(
        {
            "rest": "ignore",
            "columns": {
                "v": {"type": "count", "missing": [{"value": -9, "impute": False}]},
                "p": {"type": "real", "role": "predictor"},
            },
        }
    )
    result = decode(table, encode(table, said), {"v": np.array([4.0])})
    assert result.to_pydict() == {**table.to_pydict(), "v": [1, 4, -9]}
    assert result.schema.equals(table.schema, check_metadata=True)


def test_a_fill_that_is_not_finite_names_its_row() -> None:
    table = csv("1", "", "3", "")
    data = encode(table, schema("real"))
    with pytest.raises(NumericalError) as caught:
        decode(table, data, {"v": np.array([1.0, NAN])})
    assert (caught.value.row, caught.value.column) == (4, "v")


@pytest.mark.parametrize("fills", [{"v": np.zeros(3)}, {"v": np.array([7.0])}, {}])
def test_fills_that_break_the_contract_are_refused(fills: dict[str, Any]) -> None:
    table = csv("a", "b", "")
    with pytest.raises((ValueError, KeyError)):
        decode(table, encode(table, schema("categorical")), fills)


def test_csv_numbers_become_numbers_in_parquet(tmp_path: Path) -> None:
    table = read(b"id,v,n,g\n01,1.5,3,a\n,,NA,\n3,-9,4,b\n", "csv", "t.csv", {})
    said = Schema.from_dict(
        {
            "columns": {
                "id": "id",
                "v": {"type": "real", "missing": [{"value": "-9", "impute": False}]},
                "n": {"type": "count", "role": "predictor", "missing": ["NA"]},
                "g": "categorical",
            }
        }
    )
    data = encode(table, said)
    result = flag_columns(decode(table, data, {"v": np.array([2.25]), "g": np.array([1.0])}), data)
    write_table(result, tmp_path / "t.parquet")
    out = read_table(tmp_path / "t.parquet")
    assert out.to_pydict() == {
        "id": ["01", None, "3"],
        "v": [1.5, 2.25, -9.0],
        "n": [3, None, 4],
        "g": ["a", "b", "b"],
        "v_imp": [0, 1, 0],
        "g_imp": [0, 1, 0],
    }
    assert [str(kind) for kind in out.schema.types] == [
        "string", "double", "int64", "string", "int8", "int8",
    ]  # fmt: skip
    assert out.schema.field("v").metadata is None


def test_flags_follow_the_form_of_the_table() -> None:
    text = csv("1", "")
    data = encode(text, schema("real"))
    assert flag_columns(text, data).column("v_imp").to_pylist() == ["0", "1"]
    typed = pa.table({"v": [1, None]})
    flags = flag_columns(typed, encode(typed, schema("real"))).column("v_imp")
    assert (flags.type, flags.to_pylist()) == (pa.int8(), [0, 1])
    with pytest.raises(UsageError, match="already has a column"):
        flag_columns(text.append_column("v_imp", text.column("v")), data)


# Warnings -----------------------------------------------------------------------------------

LOG = [str(x) for x in range(30, 60)]


@pytest.mark.parametrize(
    ("cells", "said", "note"),
    [
        (["3", "", "3.0"], "real", "every observed cell is 3"),
        (["a", "", "a"], "categorical", "every observed cell is 'a'"),
        (["3", ""], "real", "only one cell is observed"),
        (["0", "2", "", "0"], "positive", "2 cells are 0"),
        ([f"x{i}" for i in range(101)], "categorical", "101 levels"),
        (["1", "2", ""], "real", "row 3 has no observed value"),
        (["1", "", "", "2"], "real", "2 rows (the first: row 2)"),
        (["1", ""], "real", "only one column is modelled"),
        ([*LOG, *["-999.25"] * 3], "real", "3 cells are -999.25, far from all others; if that"),
        ([*LOG, *["9999"] * 3], "count", "set `missing: [9999]`"),
    ],
)
def test_notes_warn_of_what_weakens_the_completion(cells: list[str], said: str, note: str) -> None:
    assert any(note in line for line in encode(csv(*cells), schema(said)).notes)


@pytest.mark.parametrize("levels", [None, ["no", "yes"]])
def test_other_writings_of_a_level_are_that_level(levels: list[str] | None) -> None:
    said = {"type": "categorical", "aliases": {"yes": ["Yes", "1"], "no": ["N"]}}
    types = Schema.from_dict({"columns": {"v": said | ({"levels": levels} if levels else {})}})
    assert Schema.from_yaml(types.to_yaml()) == types
    table = csv("yes", "1.0", "N", "", "no", " Yes ")
    data = encode(table, types)
    assert data.columns[0].levels == ("no", "yes")
    np.testing.assert_array_equal(data.columns[0].x, [1, 1, 0, np.nan, 0, 1])
    made = decode(table, data, {"v": np.array([1.0])})
    assert made["v"].to_pylist() == ["yes", "1.0", "N", "yes", "no", " Yes "]


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ([*LOG, "-999.25", "-999.25"], "real"),  # outliers
        ([*LOG, *["80"] * 3], "count"),
        ([*LOG, *["0"] * 3], "real"),
        ([*LOG, *["999"] * 5], {"type": "real", "atom": 999}),
    ],
)
def test_numbers_that_may_be_values_are_not_called_codes(cells: list[str], said: Any) -> None:
    assert not any("far from all" in line for line in encode(csv(*cells), schema(said)).notes)


def test_an_ordinary_table_has_no_notes(sample_data: Path) -> None:
    table = read_table(sample_data / "pbc.csv")
    assert encode(table, read_schema(sample_data / "pbc.types.yaml")).notes == ()


# Properties ---------------------------------------------------------------------------------

FINITE = st.floats(-1e6, 1e6).map(lambda x: x + 0.0)
COLUMNS: dict[str, tuple[str, st.SearchStrategy[Any], pa.DataType]] = {
    "real": ("real", FINITE, pa.float64()),
    "real32": ("real", st.floats(-1e6, 1e6, width=32), pa.float32()),
    "integer": ("real", st.integers(-(2**53), 2**53), pa.int64()),
    "positive": ("positive", st.floats(0, 1e6), pa.float64()),
    "count": ("count", st.integers(0, 2**53), pa.int64()),
    "short": ("count", st.integers(0, 255), pa.uint8()),
    "money": ("real", st.decimals(-999, 999, places=2), pa.decimal128(9, 2)),
    "name": ("categorical", st.sampled_from(["a", "b c", "1.0", "é"]), pa.string()),
    "code": ("categorical", st.integers(-3, 3), pa.int16()),
    "flag": ("categorical", st.booleans(), pa.bool_()),
    "grade": ("ordinal", st.integers(1, 5), pa.int32()),
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[pa.Table, Schema]:
    chosen = draw(st.lists(st.sampled_from(list(COLUMNS)), min_size=1, max_size=4, unique=True))
    n_rows = draw(st.integers(1, 8))
    arrays = {}
    for name in chosen:
        _, cells, kind = COLUMNS[name]
        column = draw(st.lists(cells | st.none(), min_size=n_rows, max_size=n_rows))
        assume(any(cell is not None for cell in column))
        arrays[name] = pa.array(column, kind)
    assume("positive" not in arrays or any(arrays["positive"].drop_null().to_pylist()))
    types = {name: COLUMNS[name][0] for name in chosen}
    return pa.table(arrays), Schema.from_dict({"columns": types})


def random_fills(data: Data, wild: bool) -> dict[str, np.ndarray]:
    """Return level codes, and numbers near the observed ones or, if wild, far outside."""
    rng = np.random.default_rng(1)
    fills = {}
    for encoded in data.columns:
        n = int(encoded.requested.sum())
        if encoded.levels:
            fills[encoded.column.name] = rng.integers(len(encoded.levels), size=n).astype(float)
        else:
            seen = rng.choice(encoded.x[encoded.observed], n)
            fills[encoded.column.name] = rng.normal(seen, 1.0) * (1e20 if wild else 1.0)
    return fills


def assert_completed(table: pa.Table, result: pa.Table, data: Data, said: Schema) -> None:
    again = encode(result, said)
    for before, after in zip(data.columns, again.columns, strict=True):
        assert after.observed.all()
        seen = np.flatnonzero(before.observed)
        rows = pa.array(seen)
        assert np.array_equal(
            [before.levels[int(x)] for x in before.x[seen]] if before.levels else before.x[seen],
            [after.levels[int(x)] for x in after.x[seen]] if after.levels else after.x[seen],
        )
        name = before.column.name
        assert result.column(name).take(rows).equals(table.column(name).take(rows))
        assert result.schema.field(name).type == table.schema.field(name).type


@given(pair=tables(), wild=st.booleans())
def test_decoding_fills_the_gaps_and_keeps_the_rest(
    pair: tuple[pa.Table, Schema], wild: bool
) -> None:
    table, said = pair
    data = encode(table, said)
    assert_completed(table, decode(table, data, random_fills(data, wild)), data, said)


@given(pair=tables(), wild=st.booleans())
def test_decoding_csv_fills_the_gaps_and_keeps_the_text(
    tmp_path_factory: pytest.TempPathFactory, pair: tuple[pa.Table, Schema], wild: bool
) -> None:
    typed, said = pair
    path = tmp_path_factory.getbasetemp() / "property.csv"
    write_table(typed, path)
    table = read_table(path)
    assume(table.num_rows == typed.num_rows)
    data = encode(table, said)
    result = decode(table, data, random_fills(data, wild))
    assert_completed(table, result, data, said)
    write_table(result, path)
    assert read_table(path).to_pydict() == result.to_pydict()


@given(
    st.lists(st.text(max_size=6), min_size=1, max_size=6),
    st.sampled_from(["real", "positive", "count", "categorical", "ordinal"]),
)
def test_any_text_is_encoded_or_refused(cells: list[str], said: str) -> None:
    table = pa.table({"v": pa.array(cells)})
    with contextlib.suppress(TableError, SchemaError):
        column = only(table, said)
        assert np.array_equal(column.observed, ~np.isnan(column.x))


def test_codes_are_floats_with_and_without_gaps() -> None:
    schema = Schema.from_dict({"columns": {"a": "categorical", "b": "categorical"}})
    data = encode(pa.table({"a": ["x", "y", "x"], "b": ["x", None, "y"]}), schema)
    assert [column.x.dtype for column in data.columns] == [np.float64, np.float64]


@pytest.mark.parametrize(
    ("entry", "cells", "hint"),
    [
        ("count", ["3", "n/a", "forty", "n/a ", "1980 ?"], " It also has 'forty', '1980 ?'."),
        ({"type": "ordinal", "levels": ["a", "b"]}, ["a", "A", "c", "d"], " also has 'c', 'd'."),
        ("count", ["3", "n/a"], None),
    ],
)
def test_the_error_of_a_cell_names_the_others_like_it(
    entry: Any, cells: list[str], hint: str | None
) -> None:
    with pytest.raises(GlfmError) as caught:
        impute(pa.table({"x": cells}), {"columns": {"x": entry}})
    assert caught.value.row == 2
    assert ("also has" in str(caught.value.hint)) is (hint is not None)
    assert str(caught.value.hint).endswith(hint or "")
