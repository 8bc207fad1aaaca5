"""Types with which Arrow itself computes little: guessed, completed and given back like others."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from glfm_cli.io import read_table, write_table

ROWS = 60
WORDS = [None if i % 7 == 3 else "xyz"[i % 3] for i in range(ROWS)]
AMOUNTS = [None if i % 7 == 5 else Decimal(i * 37 % 101) / 4 for i in range(ROWS)]


def dictionary(values: list[Any], kind: pa.DataType) -> pa.Array:
    encoded = pa.array(values).dictionary_encode()
    return pa.DictionaryArray.from_arrays(encoded.indices, encoded.dictionary.cast(kind))


RUNS = pa.RunEndEncodedArray.from_arrays([20, 30, ROWS], ["x", None, "y"])
COLUMNS = {
    "views of text": (pa.array(WORDS, pa.string_view()), "categorical"),
    "views in a dictionary": (dictionary(WORDS, pa.string_view()), "categorical"),
    "decimals of 32 bits": (pa.array(AMOUNTS, pa.decimal32(7, 2)), "positive"),
    "decimals of 64 bits": (pa.array(AMOUNTS, pa.decimal64(12, 2)), "positive"),
    "levels of 64 bits": (pa.array(AMOUNTS, pa.decimal64(12, 2)), "categorical"),
    "decimals in a dictionary": (dictionary(AMOUNTS, pa.decimal32(7, 2)), "real"),
    "runs": (RUNS, "categorical"),
}


def put(desk, values: pa.Array, kind: str = "ignore") -> pa.Table:
    """Write a table in two batches, and its types; return it."""
    a = np.random.default_rng(0).normal(size=ROWS)
    table = pa.table({"id": range(ROWS), "a": pa.array(a, mask=a > 1), "q": values})
    write_table(pa.concat_tables([table.slice(0, 25), table.slice(25)]), "t.arrow")
    role = "role: ignore" if kind == "ignore" else f"type: {kind}"
    desk.put("types.yaml", f"columns: {{id: id, a: real, q: {{{role}}}}}")
    return table


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_is_completed_in_its_own_type(desk, here: Callable, name: str) -> None:
    values, kind = COLUMNS[name]
    table = put(desk, values, kind)
    guessed = here("types", "t.arrow")
    assert guessed.status == 0, guessed.stderr
    assert "q: " in guessed.stdout
    assert desk.impute("-o", "out.arrow", table="t.arrow").status == 0
    after = read_table("out.arrow")
    assert after.schema.equals(table.schema)
    before = [x.as_py() for x in values]
    new = [x.as_py() for chunk in after["q"].chunks for x in chunk]
    assert [n for o, n in zip(before, new, strict=True) if o is not None] == [
        o for o in before if o is not None
    ]
    assert None not in new


NO_LEVELS = {
    "lists": pa.array([[1]] * ROWS),
    "views of bytes": pa.array([b"ab"] * ROWS, pa.binary_view()),
    "bytes of fixed size": pa.array([b"ab"] * ROWS, pa.binary(2)),
    "uuids": pa.array([bytes(16)] * ROWS, pa.uuid()),
    "intervals": pa.array([(1, 2, 3)] * ROWS, pa.month_day_nano_interval()),
}


@pytest.mark.parametrize("name", NO_LEVELS)
def test_what_has_no_levels_is_refused_and_passes_through(desk, here: Callable, name: str) -> None:
    table = put(desk, NO_LEVELS[name], "categorical")
    assert here("types", "t.arrow").status == 0
    error = "t.arrow, column 'q': has type categorical, but the table holds values of type"
    said = desk.check_rejected(error, desk.impute, "-o", "out.arrow", table="t.arrow")
    assert said.lines("Hint") == ["Hint: Set `role: ignore`."]
    put(desk, NO_LEVELS[name])
    assert desk.impute("-o", "out.arrow", table="t.arrow").status == 0
    assert read_table("out.arrow")["q"].combine_chunks().equals(table["q"].combine_chunks())


TWICE = {
    "uuids": pa.array([bytes(16)] * ROWS, pa.uuid()),
    "a dictionary as polars writes it": pa.array([None, "b"] * (ROWS // 2)).cast(
        pa.dictionary(pa.uint32(), pa.string())
    ),
}


@pytest.mark.parametrize("name", TWICE)
def test_rows_that_stand_twice_are_told_whatever_they_hold(desk, here: Callable, name: str) -> None:
    ids = pa.array([*range(ROWS - 1), 0])
    held = TWICE[name].take(pa.array([*range(ROWS - 1), 0]))
    table = put(desk, held).set_column(0, "id", ids)
    table = table.set_column(1, "a", pa.array([*np.arange(ROWS - 1) / 3, 0.0]))
    write_table(table, "t.arrow")
    assert "# Rows 1 and 60 are the same." in here("types", "t.arrow").stdout
