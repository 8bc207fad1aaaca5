"""What `glfm types` sees in tables of personnel, field trials, buildings, freight and the sky."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pytest

from glfm_cli.completion.impute import impute
from glfm_cli.guess import guess_schema
from glfm_cli.schema import ColumnType, MissingCode, Role
from glfm_cli.schema.moments import Moments
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


@pytest.mark.parametrize("name", ["Energy class", "energy_label", "Energieklasse", "DPE"])
def test_classes_of_energy_are_in_order(name: str) -> None:
    classes = ("A++", "A+", "A", "B", "C", "D", "E")
    column, reason = guessed(name, repeat(*classes[::-1]))
    assert (column.type, column.levels) == (ColumnType.ORDINAL, classes), reason
    marks = ("A", "A-", "B+", "B", "B-", "C+", "D")
    assert guessed("grade", repeat(*sorted(marks)))[0].levels == marks
    assert guessed("blood", repeat("A+", "A-", "B+", "B-"))[0].type is ColumnType.CATEGORICAL
    assert guessed("class", repeat(*"ABCD"))[0].type is ColumnType.CATEGORICAL


def test_ratings_of_performance_are_a_scale() -> None:
    steps = ("Unsatisfactory", "Needs improvement", "Meets expectations", "Exceeds expectations")
    column, reason = guessed("Review", repeat(*steps[::-1], "Not rated"))
    assert (column.type, column.levels) == (ColumnType.ORDINAL, steps), reason
    assert column.missing == (MissingCode("Not rated", impute=False),)


@pytest.mark.parametrize("dash", "-–—")
def test_a_dash_among_amounts_may_be_nothing(dash: str) -> None:
    cells = [f"£{1000 + 37 * i:,}" if i % 3 else dash for i in range(ROWS)]
    column, reason = guessed("Bonus", cells)
    assert codes(column) == {dash}
    note = f'"{dash}" may be 0, as accounts write it: then write 0 into these cells'
    assert reason.endswith(note)
    table = pa.table({"Bonus": cells, "y": [float(i % 7) for i in range(ROWS)]})
    said = dict(guess_schema(table).codes)
    assert said["Bonus"] == ([dash], 67)
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
    hours = [f"{i / 10}" if i % 9 else f"about {i}" for i in repeat(*range(1, 60))]
    assert guessed("hours", hours)[1].startswith("ignored: numbers, but 20 cells are none, such as")
    miles = [f"{9 + 3 * i},000 km" if i % 9 else f"{9 + 3 * i}k" for i in range(ROWS)]
    assert guessed("mileage", miles)[1].endswith("12,000 km and 9k; write them alike to model them")
    assert guessed("mileage", [one for one in miles if one[-1] == "k"] * 2)[0].unit == "k"
    budget = [f"${1 + 0.1 * i:.1f}M" if i % 9 else "Unknown" for i in range(ROWS)]
    assert guessed("budget", budget)[1].startswith("ignored: numbers between a currency and a unit")
    icd = [f"{200 + i / 10}" if i % 9 else f"V{i % 40}" for i in repeat(*range(1, 70))]
    assert guessed("diagnosis", icd)[0].levels


def test_codes_with_leading_zeros_are_not_called_texts_among_numbers() -> None:
    reason = guessed("depot", [f"{1067 + 37 * i % 9000:05d}" for i in range(ROWS)] * 2)[1]
    assert reason.startswith("ignored: text; 200 different ones are too many levels")


def test_sums_of_flags_are_codes() -> None:
    bits = np.random.default_rng(1).random((ROWS, 4)) < 0.2
    flags = [str(x) for x in bits @ np.array([1, 4, 16, 2048])]
    for name in ("flags", "QC_FLAG", "qa_bitmask"):
        column, reason = guessed(name, flags)
        assert column.type is ColumnType.CATEGORICAL, reason
    assert guessed("n_flags", flags)[0].type is ColumnType.COUNT
    assert guessed("flags", repeat("0", "1", "2"))[0].type is not ColumnType.CATEGORICAL


@pytest.mark.parametrize(
    ("form", "guess"),
    [
        ("%Y-%m-%dT%H:%MZ", "%Y-%m-%dT%H:%MZ"),
        ("%Y-%m-%d %H:%M+02:00", "%Y-%m-%d %H:%M+02:00"),
        ("%Y-%m-%dT%H:%M%z", "%Y-%m-%dT%H:%M%z"),
        ("%Y%m%dT%H%M%SZ", "%Y%m%dT%H%M%SZ"),
        ("%Y%m%d %H:%M", "%Y%m%d %H:%M"),
        ("%Y%m%d%H", "%Y%m%d%H"),
        ("%Y%m%d%H%M", "%Y%m%d%H%M"),
        ("%Y%m%d%H%M%S", "%Y%m%d%H%M%S"),
    ],
)
def test_stamps_of_loggers_and_receivers_are_dates(form: str, guess: str) -> None:
    zones = [timezone(timedelta(hours=1 + i % 2)) for i in range(40)]
    start = datetime(2024, 3, 1, 6, 10)
    stamps = [
        (start + i * timedelta(hours=7, minutes=13)).replace(tzinfo=zone).strftime(form)
        for i, zone in enumerate(zones)
    ]
    table = pa.table({"stamp": [None, *stamps[1:]], "x": [float(i * i % 13) for i in range(40)]})
    schema = guess_schema(table).schema
    assert (schema.columns[0].moment, schema.columns[0].format) == ("date", guess)
    done = impute(table, schema, model="glfm", chains=1, warmup=2, draws=2).table
    assert done["stamp"].to_pylist()[1:] == stamps[1:]
    read = Moments("date", guess)
    assert read.number(done["stamp"][0].as_py()) is not None
    if stamps[0].isdigit():
        numbers = table.set_column(0, "stamp", table["stamp"].cast(pa.int64()))
        assert guess_schema(numbers).schema.columns[0].format == guess
        done = impute(numbers, "auto", model="glfm", chains=1, warmup=2, draws=2).table
        assert done["stamp"].to_pylist()[1:] == list(map(int, stamps[1:]))


def test_long_codes_are_no_stamps() -> None:
    codes_of_12 = [f"{202403020745 + 37 * i}" for i in range(ROWS)]  # of minutes up to 99
    assert guessed("meter", codes_of_12)[0].moment is None


def test_durations_that_are_not_read_are_no_categories() -> None:
    minutes = range(-60, 120, 3)
    signed = [f"{'-' * (m < 0)}{abs(m) // 60:02d}:{abs(m) % 60:02d}" for m in minutes] * 3
    reason = guessed("delay", signed)[1]
    assert reason == "ignored: durations, some below zero; write them as numbers"
    assert guessed("delay", [one.lstrip("-") for one in signed])[0].moment == "duration"
    for form in ("{} min {} s", "PT{}H{}M"):
        column, reason = guessed("stay", [form.format(m // 60, m % 60) for m in minutes if m > 0])
        assert (column.role, reason[:25]) == (Role.IGNORE, "ignored: durations, such "), form
    for form in ("{}h {}min", "{} hrs {} minutes", "{}h{:02d}"):
        spelled = [form.format(m // 60, m % 60) for m in minutes if m > 0]
        assert guessed("stay", [*spelled, "2h", "3h"])[0].moment == "duration", form
    assert guessed("well", [f"{k}h{k % 7}" for k in range(20)] * 5)[0].levels
    assert guessed("wall", [f"{k} m" for k in range(20)] * 5)[0].unit == "m"


def test_a_minus_of_print_is_one() -> None:
    cells = [f"{k}".replace("-", "−") for k in range(-50, 40)]
    column, reason = guessed("delay", cells * 2)
    assert (column.type, column.thousands) == (ColumnType.REAL, ","), reason
    table = pa.table({"x": [None, *cells[1:]], "y": [float(k * k % 13) for k in range(90)]})
    done = impute(table, "auto", model="glfm", chains=1, warmup=2, draws=2).table
    assert done["x"].to_pylist()[1:] == cells[1:]
    assert "-" not in done["x"][0].as_py()


def test_sentinels_of_magnitudes_and_their_errors_are_missing() -> None:
    errors = [f"{0.01 + 0.003 * (i % 50):.3f}" if i % 8 else "99.999" for i in range(ROWS)]
    column, reason = guessed("e_mag", errors)
    assert (column.type, codes(column)) == (ColumnType.POSITIVE, {"99.999"}), reason


def test_numbers_with_errors_or_in_fortran_are_left_out_with_a_note() -> None:
    with_errors = [f"{20 + 0.01 * i:.2f}±0.0{i % 9 + 1}" for i in range(ROWS)]
    assert guessed("mag", with_errors)[1] == (
        'ignored: numbers with errors, such as "20.00±0.01"; make two columns of them'
    )
    fortran = [f"{1.5 + i:.3E}".replace("E", "D") for i in range(ROWS)]
    reason = guessed("flux", fortran)[1]
    assert reason.endswith('such as "1.500D+00"; write E for the D of their exponents')


def test_postcodes_are_codes() -> None:
    assert guessed("PLZ", [f"{10115 + 37 * (i % 40)}" for i in range(ROWS)])[0].levels
    reason = guessed("plz5", [f"{10115 + 37 * i}" for i in range(ROWS)])[1]
    assert "codes by their name" in reason


def test_counts_of_one_range_by_chance_are_no_answers_to_questions() -> None:
    rng = np.random.default_rng(6)
    few = {f"c{k}": np.minimum(rng.poisson(1.5, 400), 5) for k in range(3)}
    shots, blocks, fouls = few.values()
    more = {f"x{k}": rng.normal(size=400) for k in range(2)}
    apart = {"3P": shots, "x": more["x0"], "BLK": blocks, "y": more["x1"], "PF": fouls}
    together = {"tired": shots, "sad": blocks, "tense": fouls}
    stem = {"q1": shots, "x": more["x0"], "q2": blocks, "y": more["x1"], "q3": fouls}
    count, scale = ColumnType.COUNT, ColumnType.ORDINAL
    for columns, kind in ((apart, count), (together, scale), (stem, scale)):
        table = pa.table({k: [f"{v:g}" for v in x] for k, x in columns.items()})
        types = {one.name: one.type for one in guess_schema(table).schema.columns}
        assert {types[k] for k in columns if k not in "xy"} == {kind}


@pytest.mark.parametrize(
    "steps",
    [
        "Less than high school/High school graduate/Some college/Associate's degree"
        "/Bachelor’s degree/Master's degree/Doctorate",
        "minimal/mild/moderat/mittelschwer/schwer",
    ],
)
def test_degrees_of_forms_and_of_severity_are_in_order(steps: str) -> None:
    levels = tuple(steps.split("/"))
    column, reason = guessed("q", repeat(*sorted(levels)))
    assert (column.type, column.levels) == (ColumnType.ORDINAL, levels), reason
