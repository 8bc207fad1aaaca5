"""Numbers as people write them: read exactly, and written again in the same style."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glfm_cli import Schema, impute
from glfm_cli.encoding import encode
from glfm_cli.encoding.number_style import learn_style
from glfm_cli.encoding.values import as_written, number_texts
from glfm_cli.errors import TableError
from glfm_cli.io.numerals import PLAIN, Numerals

GERMAN = Numerals(",", ".")


@pytest.mark.parametrize(
    ("form", "cell", "number"),
    [
        (GERMAN, "3.041,30", "3041.30"),
        (GERMAN, "3041,3", "3041.3"),
        (GERMAN, "-1.234.567", "-1234567"),
        (GERMAN, "+,5", ",5".replace(",", ".")),
        (GERMAN, "1,5E-03", "1.5E-03"),
        (GERMAN, "\u22123,5", "-3.5"),
        (GERMAN, "3,041.30", None),
        (GERMAN, "30.41", None),
        (GERMAN, "0.415", None),
        (GERMAN, "3.04,1", None),
        (Numerals(".", ","), "12,34,567.5", "1234567.5"),
        (Numerals(".", " "), "12\u202f345", "12345"),
        (Numerals(".", "'"), "12\u2019345.5", "12345.5"),
        (Numerals(",", "", True), "8,6 %", "8.6"),
        (Numerals(",", "", True), "8,6", "8.6"),
        (Numerals(",", "", True), "8.6%", None),
        (Numerals(unit="cm"), "148cm", "148"),
        (Numerals(unit="cm"), "148 mm", None),
        (Numerals(".", ",", unit="$"), "-$1,234.50", "-1234.50"),
        (Numerals(".", ",", unit="$"), "$ -1,234.50", "-1234.50"),
        (Numerals(".", ",", unit="$"), "($2,793.60)", "-2793.60"),
        (Numerals(",", ".", unit="€"), "(2.793,60 €)", "-2793.60"),
        (Numerals(unit="$"), "(5)", None),
        (Numerals(unit="$"), "(-$5)", None),
        (Numerals(".", ",", unit="$"), "$(2,793.60)", "-2793.60"),
        (Numerals(".", ",", unit="$"), "$ (2,793.60)", "-2793.60"),
        (Numerals(",", "", True), "(8,6) %", "-8.6"),
        (Numerals(",", "", True), "((8,6) %)", None),
        (Numerals(".", ","), "(1,234.5)", "-1234.5"),
        (Numerals(".", ","), "(-5)", None),
        (PLAIN, "(5)", None),
        (PLAIN, "1,5", None),
        (PLAIN, "1e-5", "1e-5"),
    ],
)
def test_a_cell_is_read_in_its_form_and_in_no_other(
    form: Numerals, cell: str, number: str | None
) -> None:
    assert form.read(pa.array([cell])).plain.to_pylist() == [number]


@pytest.mark.parametrize(
    ("form", "cells", "number", "text"),
    [
        (GERMAN, ["3.041,30", "12,50"], "1234.5", "1.234,50"),
        (GERMAN, ["3041,30", "12,50"], "1234.5", "1234,50"),
        (GERMAN, ["3.041,3", "12,25"], "-1234.50", "-1.234,5"),
        (Numerals(".", ","), ["12,34,567", "5"], "1234567", "12,34,567"),
        (Numerals(".", " "), ["12\u202f345", "5"], "1234567", "1\u202f234\u202f567"),
        (Numerals(",", "", True), ["8,6 %", "12,5 %"], "7.3", "7,3 %"),
        (Numerals(unit="cm"), ["148 cm", "150 cm"], "99", "99 cm"),
        (Numerals(unit="cm"), ["148", "150"], "99", "99"),
        (Numerals(".", ",", unit="$"), ["-$5", "$1,200"], "-3400", "-$3,400"),
        (Numerals(".", ",", unit="$"), ["$-5", "$1,200"], "-3400", "$-3,400"),
        (Numerals(".", ",", unit="$"), ["($5)", "$1,200"], "-3400", "($3,400)"),
        (Numerals(".", ",", unit="$"), ["($5)", "$1,200"], "3400", "$3,400"),
        (Numerals(".", ","), ["(5.0)", "1,200.5"], "-3400", "(3,400.0)"),
        (Numerals(unit="EUR"), ["+5 EUR", "-3 EUR"], "4", "+4 EUR"),
        (Numerals(".", ","), ["+5", "−3", "−7", "0"], "-4", "−4"),
        (Numerals(".", ",", unit="$"), ["−$5", "-$3", "−$7"], "-4", "−$4"),
        (Numerals(","), ["1,50E-03", "2,25E+04"], "0.0123", "1,23E-02"),
    ],
)
def test_a_number_is_written_as_those_of_its_column(
    form: Numerals, cells: list[str], number: str, text: str
) -> None:
    assert learn_style(form, cells).write(Decimal(number)) == text


FORMS = st.sampled_from(
    [
        *(Numerals(",", group) for group in ("", ".", " ", "'")),
        *(Numerals(".", group) for group in ("", ",", " ", "'")),
        Numerals(",", ".", True),
        Numerals(".", ",", unit="$"),
        Numerals(".", "", unit="mg/dL"),
    ]
)


@given(
    FORMS,
    st.lists(st.integers(-(10**9), 10**9), min_size=1, max_size=9),
    st.integers(0, 4),
    st.sampled_from(["", " "]),
    st.booleans(),
)
def test_what_is_written_in_a_style_reads_as_the_same_number(
    form: Numerals, steps: list[int], places: int, space: str, before: bool
) -> None:
    numbers = [Decimal(k).scaleb(-places) for k in steps]
    body = [f"{abs(x):,.{places}f}".translate(str.maketrans(",.", "\0\1")) for x in numbers]
    body = [b.replace("\0", form.thousands).replace("\1", form.decimal) for b in body]
    mark = (form.mark + space, "") if before else ("", space + form.mark)
    mark = mark if form.mark else ("", "")
    signs = ["-" if x < 0 else "" for x in numbers]
    cells = [s + mark[0] + b + mark[1] for s, b in zip(signs, body, strict=True)]
    style = learn_style(form, cells)
    assert [style.write(x) for x in numbers] == cells
    read = form.read(pa.array(cells)).plain.cast(pa.float64()).to_numpy()
    assert np.array_equal(read, [float(x) for x in numbers])


def test_losses_are_completed_in_brackets_where_accounts_write_them_so() -> None:
    x = np.round(np.random.default_rng(4).normal(0.0, 900.0, 120), 2)
    cells: list[str | None] = [f"{a:,.2f}" if a >= 0 else f"({-a:,.2f})" for a in x]
    cells[:30] = [None] * 30
    table = pa.table({"sales": 2.0 * x + 5000.0, "profit": cells})
    types = {"columns": {"sales": "real", "profit": {"type": "real", "thousands": ","}}}
    done = impute(table, types, model="bsvd", chains=2, warmup=30, draws=30).table["profit"]
    texts = done.to_pylist()
    assert texts[30:] == cells[30:]
    below = [text.startswith("(") for text in texts[:30]]
    clear = np.abs(x[:30]) > 500.0
    assert np.array_equal(np.array(below)[clear], x[:30][clear] < 0.0)
    assert not any("-" in text for text in texts)


def test_brackets_alone_are_no_number_and_the_hint_says_what_reads_them() -> None:
    table = pa.table({"profit": ["4.5", "(3.25)"]})
    with pytest.raises(TableError) as caught:
        encode(table, Schema.from_dict({"columns": {"profit": "real"}}))
    assert '`thousands: ","`, with which brackets are a minus' in str(caught.value.hint)


@pytest.mark.parametrize(
    ("cell", "key", "minus"),
    [
        ("−5", 'thousands: ","', True),
        ("−.5e-3", 'thousands: ","', True),
        ("−5,25", 'decimal: ","', False),
        ("−8.6 %", "percent: true", False),
        ("−1,234.5", 'thousands: ","', False),
    ],
)
def test_a_minus_of_print_is_read_where_the_hint_says(
    cell: str, key: str, minus: bool, glfm: Any, tmp_path: Path
) -> None:
    """`glfm types` writes the key by itself; whoever names the type alone is told of it."""
    numbers = [cell.replace("−", sign) for sign in ("−", "") for _ in range(8)]
    lines = [f'"{number}",{i}' for i, number in enumerate(numbers)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b", *lines, ",3"]) + "\n")
    (tmp_path / "t.yaml").write_text("columns: {a: real, b: real}\n")
    run = "impute", "t.csv", "--types", "t.yaml", "-o", "o.csv", "--warmup", "5", "--draws", "5"
    refused = glfm(*run)
    assert refused.returncode == 2
    hint = f"Hint: If the whole column is written so, add `{key}`"
    assert hint + ", with which − is a minus, to it" * minus in refused.stderr
    (tmp_path / "t.yaml").write_text(f"columns: {{a: {{type: real, {key}}}, b: real}}\n")
    done = glfm(*run)
    assert done.returncode == 0, done.stderr
    assert "-" not in re.sub("e-", "", (tmp_path / "o.csv").read_text())  # completed ones, too


@pytest.mark.parametrize(
    ("cells", "more"),
    [
        (["1.5", "2000", "0.001"], {}),
        (["1.5", "-2000", "12"], {"missing": ["", {"value": "-9", "impute": True}]}),
        (["2001.5", "2002", "2003"], {"bounds": [2000, 2010]}),
        (["1e-5", "2.5e10", "3e2"], {}),
        (["1,5", "2.000,25", "3"], {"decimal": ",", "thousands": "."}),
        (["15 %", "20.5%", "3 %"], {"percent": True}),
        (["15", "20.5", "3"], {"percent": True}),
        (["15", "20.5", "3"], {"unit": "kg"}),
        (["3", "5", "8"], {"type": "count"}),
    ],
)
@given(x=st.lists(st.floats(-1e20, 1e20), min_size=1))
def test_completed_numbers_are_as_their_text_is_read_again(
    cells: list[str], more: dict[str, Any], x: list[float]
) -> None:
    schema = Schema.from_dict({"columns": {"y": {"type": "real", **more}}})
    encoded = encode(pa.table({"y": cells}), schema).columns[0]
    fill = np.append(np.array(x), [-9.0, -0.0, 1e-300, 1234567.8])
    texts = number_texts(encoded, fill)
    again = encode(pa.table({"y": [*cells, *texts]}), schema).columns[0].x[len(cells) :]
    np.testing.assert_array_equal(as_written(encoded, fill), again)
