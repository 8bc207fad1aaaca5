"""What `glfm types` sees in tables of personnel, field trials and buildings."""

from __future__ import annotations

import pyarrow as pa

from glfm_cli.guess import guess_schema
from glfm_cli.schema import ColumnType, MissingCode, Role
from tests.test_guess import ROWS, codes, guessed, repeat


def test_codes_of_grades_in_a_row_are_in_order() -> None:
    grades = [f"G{i}" for i in range(1, 12)]
    column, reason = guessed("Pay grade", repeat(*grades[::-1]))
    assert (column.type, column.levels) == (ColumnType.ORDINAL, tuple(grades)), reason
    column, _ = guessed("EPC", repeat(*"CABEDG", "Unknown"))
    assert (column.type, column.levels) == (ColumnType.ORDINAL, tuple("ABCDEG"))
    assert codes(column) == {"Unknown"}
    for name, cells in (("plot", grades), ("grade", ["A", "M", "T", "Z"]), ("grade", "ABC")):
        assert guessed(name, repeat(*cells))[0].type is ColumnType.CATEGORICAL
    mixed = repeat("G1", "G2", "H3", "H4")
    assert guessed("grade", mixed)[0].type is ColumnType.CATEGORICAL


def test_ratings_of_performance_are_a_scale() -> None:
    steps = ("Unsatisfactory", "Needs improvement", "Meets expectations", "Exceeds expectations")
    column, reason = guessed("Review", repeat(*steps[::-1], "Not rated"))
    assert (column.type, column.levels) == (ColumnType.ORDINAL, steps), reason
    assert column.missing == (MissingCode("Not rated", impute=False),)


def test_a_dash_among_amounts_may_be_nothing() -> None:
    cells = [f"£{1000 + 37 * i:,}" if i % 3 else "-" for i in range(ROWS)]
    column, reason = guessed("Bonus", cells)
    assert codes(column) == {"-"}
    assert reason.endswith('"-" may be 0, as accounts write it: then write 0 into these cells')
    table = pa.table({"Bonus": cells, "y": [float(i % 7) for i in range(ROWS)]})
    said = dict(guess_schema(table).codes)
    assert said["Bonus"] == (["-"], 67)
    assert "accounts" not in guessed("height", [cell.replace("£", "") for cell in cells])[1]


def test_remarks_are_no_categories_where_most_have_none() -> None:
    column, reason = guessed("Remarks", repeat("", "hail", "", "bird damage", "resown"))
    assert (column.role, reason[:16]) == (Role.IGNORE, "ignored: remarks")
    assert guessed("Remarks", repeat("hail", "none seen", "resown"))[0].levels
    assert guessed("damage", repeat("", "hail", "", "bird damage", "resown"))[0].levels


def test_numbers_in_several_units_or_among_words_are_named() -> None:
    areas = [f"{500 + 7 * i} m²" if i % 9 else f"{5000 + 7 * i} sq ft" for i in range(ROWS)]
    reason = guessed("area", areas)[1]
    assert reason.endswith("such as 507 m² and 5000 sq ft; write them alike to model them")
    years = [f"{1800 + i}" if i % 9 else f"c. {1800 + i}" for i in repeat(*range(160))]
    reason = guessed("built", years)[1]
    assert reason.startswith("ignored: numbers, but 23 cells are none, such as c. 1800 and c. 1809")
