"""Guessing a types file: each kind of column, each kind of gap, and that the guess always works."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from glfm_cli.completion.prepare import with_types
from glfm_cli.encoding import encode
from glfm_cli.errors import TableError
from glfm_cli.guess import guess_schema
from glfm_cli.io import read_table
from glfm_cli.schema import Column, ColumnType, MissingCode, Role, Schema

ROWS = 200


def guessed(name: str, cells: Sequence[object] | pa.Array) -> tuple[Column, str]:
    """Return the guess for one column of cells and its reason, after checking that it works."""
    column = cells if isinstance(cells, pa.Array) else pa.array(list(cells))
    anchor = pa.array([f"{i % 7}.5" for i in range(len(column))])
    table = pa.table({name: column, "an anchor": anchor})
    guess = guess_schema(table)
    again = Schema.from_yaml(guess.to_yaml())
    assert again == guess.schema
    encode(table, again)
    return guess.schema.resolve(table.column_names)[0], guess.reasons[name]


def repeat(*cells: object, rows: int = ROWS) -> list[object]:
    """Return `rows` cells that go round and round through the given ones."""
    return [cells[i % len(cells)] for i in range(rows)]


def texts(numbers: Sequence[float] | np.ndarray) -> list[str]:
    return [f"{x:g}" for x in numbers]


def codes(column: Column) -> set[str]:
    return {code.text for code in column.missing}


# Kinds of columns ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "cells", "kind", "levels"),
    [
        ("x", texts(np.linspace(-3, 9, ROWS)), "real", None),
        ("x", texts(np.linspace(0.1, 9, ROWS)), "positive", None),
        ("x", texts(np.linspace(0, 9, ROWS)), "positive", None),
        ("x", texts(range(100, 100 + 3 * ROWS, 3)), "count", None),
        ("x", texts(range(-60, ROWS - 60)), "id", None),
        ("x", texts(range(-60, 2 * ROWS - 60, 2)), "real", None),
        ("n_visits", repeat("0", "1", "2", "3"), "count", None),
        ("year", texts(range(1900, 1900 + ROWS)), "real", None),
        ("x", repeat(*texts(range(1950, 2020))), "real", None),
        ("id", texts(range(1, ROWS + 1)), "id", None),
        ("patient_id", texts(range(7, 7 + 3 * ROWS, 3)), "id", None),
        ("patientID", repeat(*texts(range(100, 200))), "id", None),
        ("code", [f"P{i:03d}" for i in range(ROWS)], "id", None),
        ("x", [f"{i:05d}" for i in range(0, 2 * ROWS, 2)], "id", None),
        ("account", [f"{10**19 + i}" for i in range(ROWS)], "id", None),
        ("ward_id", repeat("1", "2", "3"), "categorical", ("1", "2", "3")),
        ("body_mass_index", texts(np.linspace(15, 45, ROWS)), "positive", None),
        ("x", repeat("0", "1"), "categorical", ("0", "1")),
        ("x", repeat("yes", "no"), "categorical", ("no", "yes")),
        ("x", repeat("Y", "N"), "categorical", ("N", "Y")),
        ("x", repeat("male", "female"), "categorical", ("female", "male")),
        ("q1", repeat("1", "2", "3", "4", "5"), "ordinal", ("1", "2", "3", "4", "5")),
        ("x", repeat("5", "3", "1", "2", "4"), "ordinal", ("1", "2", "3", "4", "5")),
        ("x", repeat("-2", "-1", "0", "1", "2"), "ordinal", ("-2", "-1", "0", "1", "2")),
        ("x", repeat("0", "0.5", "1", "1.5"), "ordinal", ("0", "0.5", "1", "1.5")),
        ("x", repeat("10", "20", "30"), "ordinal", ("10", "20", "30")),
        ("region", repeat("10", "25", "30"), "categorical", ("10", "25", "30")),
        ("x", repeat("01", "02", "10"), "categorical", ("01", "02", "10")),
        ("x", repeat("red", "green", "blue"), "categorical", ("blue", "green", "red")),
        ("x", repeat("high", "low", "mid"), "ordinal", ("low", "mid", "high")),
        (
            "x",
            repeat("Agree", "Neutral", "Strongly agree", "Strongly disagree", "Disagree"),
            "ordinal",
            ("Strongly disagree", "Disagree", "Neutral", "Agree", "Strongly agree"),
        ),
        (
            "x",
            repeat("always", "never", "often", "sometimes"),
            "ordinal",
            ("never", "sometimes", "often", "always"),
        ),
        ("x", repeat("65+", "18-24", "25-64", "<18"), "ordinal", ("<18", "18-24", "25-64", "65+")),
        (
            "x",
            repeat("1 - never", "2", "3", "4 - always"),
            "ordinal",
            ("1 - never", "2", "3", "4 - always"),
        ),
        (
            "x",
            [
                *texts(repeat(*range(1, 10), rows=190)),
                *repeat("0 - no pain", "10 - worst", rows=10),
            ],
            "ordinal",
            ("0 - no pain", *texts(range(1, 10)), "10 - worst"),
        ),
        ("x", repeat("1", "2", "3", "4 or more"), "ordinal", ("1", "2", "3", "4 or more")),
        (
            "x",
            repeat("primary", "tertiary", "secondary", "Prefer not to say"),
            "ordinal",
            ("primary", "secondary", "tertiary"),
        ),
        ("x", repeat("none", "mild", "severe", "refused"), "ordinal", ("none", "mild", "severe")),
        (
            "x",
            repeat("agree", "disagree", "Agree", "neutral", "don\u2019t know"),
            "ordinal",
            ("disagree", "neutral", "Agree"),
        ),
        ("x", repeat("10 - b", "2 - a", "1 - c"), "ordinal", ("1 - c", "2 - a", "10 - b")),
        ("stage", repeat("IV", "II", "I", "III"), "ordinal", ("I", "II", "III", "IV")),
        ("x", repeat("very_low", "low", "high"), "ordinal", ("very_low", "low", "high")),
        ("x", repeat("only"), "ignore", None),
        ("x", repeat("7", ""), "ignore", None),
        ("x", repeat("", None), "ignore", None),
        ("x", repeat("NA", "?"), "ignore", None),
        ("day", [f"2024-01-{i % 28 + 1:02d}" for i in range(ROWS)], "real", None),
        ("day", [f"{i % 28 + 1}/3/24" for i in range(ROWS)], "real", None),
        ("day", [f"{i % 28 + 1} March 2024" for i in range(ROWS)], "real", None),
        ("day", [f"202401{i % 28 + 1:02d}" for i in range(ROWS)], "real", None),
        ("t", repeat("12:30", "9:05 pm", "07:00:01"), "ignore", None),
        ("t", repeat("2024-01-31T12:30:00Z", "2024-02-01 09:00", "2024-03-01"), "ignore", None),
        ("note", [f"remark {i} on this" for i in range(ROWS)], "ignore", None),
        ("note", repeat(*[f"remark {i} on this" for i in range(150)]), "ignore", None),
        ("x", repeat("5%", "10%"), "categorical", ("5%", "10%")),
        ("x", repeat("1 star", "2 star", "3 star"), "ordinal", ("1 star", "2 star", "3 star")),
        ("x", repeat("1a", "2a", "3a"), "categorical", ("1a", "2a", "3a")),
        ("x", repeat("5 pm", "7 pm", "9 pm"), "categorical", ("5 pm", "7 pm", "9 pm")),
        ("x", repeat("1.2.3", "1.2.4", "1.10"), "categorical", ("1.10", "1.2.3", "1.2.4")),
    ],
)
def test_column_is_guessed(
    name: str, cells: list[str | None], kind: str, levels: tuple[str, ...] | None
) -> None:
    column, reason = guessed(name, cells)
    assert (str(column.type or column.role), column.levels) == (kind, levels), reason


# Dates ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "kind", "form"),
    [
        ("2024-01-{:02d}", "date", None),
        ("2024-01-{:02d}T10:30", "date", None),
        ("{:02d}.01.2024", "date", "%d.%m.%Y"),
        ("{}/3/24", "date", "%d/%m/%y"),
        ("3/{}/24", "date", "%m/%d/%y"),
        ("{} March 2024", "date", "%d %B %Y"),
        ("2024年3月{}日", "date", "%Y年%m月%d日"),
        ("Mar {}, 2024", "date", "%b %d, %Y"),
        ("202401{:02d}", "date", "%Y%m%d"),
        ("2024-01-{:02d} 10:30:05+02:00", "date", "%Y-%m-%d %H:%M:%S+02:00"),
        ("2024-01-{:02d}T10:30:05.000Z", "date", "%Y-%m-%dT%H:%M:%S.000Z"),
        ("3/{}/2024 01:30:00 PM", "date", "%m/%d/%Y %I:%M:%S %p"),
        ("41{:03d}", "date", "excel"),
        ("{}:45", "duration", None),
        ("2024-W{:02d}", "date", "%G-W%V"),
        ("2024W{}", "date", "%GW%V"),
        ("20{:02d}q3", "date", "%Yq%q"),  # of Stata
        ("20{:02d}-Q1", "date", "%Y-Q%q"),
        ("Q2 20{:02d}", "date", "Q%q %Y"),
        ("20{:02d}-Q5", None, None),
        ("2019w{}", None, None),  # of Stata, whose first week begins on 1 January
        ("2024-Q1 {}", None, None),
    ],
)
def test_dates_are_told_from_their_cells(cell: str, kind: str | None, form: str | None) -> None:
    column, reason = guessed("visit date", [cell.format(i % 28 + 1) for i in range(ROWS)])
    assert (column.moment, column.format) == (kind, form), reason


def test_rows_in_steps_of_time_are_offered_its_role() -> None:
    hours = [f"{1 + i // 24:02d}.01.2024 {i % 24:02d}:00" for i in range(ROWS)]
    offer = "`role: time` where values before and after a gap tell of it"
    assert offer in guessed("stamp", hours)[1]
    assert offer in guessed("stamp", hours[::-1])[1]
    for cells in ([*hours[:-1], ""], [hours[i % 50] for i in range(ROWS)]):
        assert "role: time" not in guessed("stamp", cells)[1]
    quarters = [f"{2000 + i // 4}-Q{i % 4 + 1}" for i in range(ROWS)]
    assert offer in guessed("period", quarters)[1]
    column, reason = guessed("ts", [str(1_772_323_200 + 600 * i) for i in range(ROWS)])
    assert (column.moment, column.format) == ("date", "unix")
    assert offer in reason
    assert "1970" not in guessed("serial", [str(1_772_323_200 + 7 * i * i) for i in range(ROWS)])[1]


def test_rows_that_are_like_those_before_them_are_a_series(seed: int) -> None:
    rng, n = np.random.default_rng(seed), 120
    hours = np.array([f"{1 + i // 24:02d}.01.2024 {i % 24:02d}:00" for i in range(n)])
    walk, noise = np.cumsum(rng.normal(size=(n, 2)), axis=0), rng.normal(size=(n, 2))
    shuffled = rng.permutation(n)

    def role(values: np.ndarray, **more: object) -> Role:
        columns = {"a": values[:, 0], "b": values[:, 1], "stamp": hours} | more
        schema = guess_schema(pa.table(columns)).schema
        return next(one.role for one in schema.columns if one.name == "stamp")

    time = Role.TIME
    assert role(walk) is time
    assert role(noise) is Role.FEATURE
    assert role(walk[shuffled]) is Role.FEATURE
    assert role(walk[shuffled], stamp=hours[shuffled]) is time
    assert role(walk, stamp=(3600 * np.arange(n)).astype("datetime64[s]")) is time
    for unit in ("us", "ns"):  # as pandas has them
        assert role(walk, stamp=(3600 * np.arange(n)).astype("M8[s]").astype(f"M8[{unit}]")) is time
    zoned = pa.array(3_600_000 * np.arange(n)).cast(pa.timestamp("ms", "Europe/Berlin"))
    assert role(walk, stamp=zoned) is time
    comma = {"b": [f"{x:.3f}".replace(".", ",") for x in walk[:, 1]]}
    assert role(walk, a=pa.nulls(n), **comma) is time
    assert role(walk, other=hours[::-1]) is Role.FEATURE  # which of the two is the time?
    table = pa.table({"stamp": hours, "a": walk[:, 0]})
    roles = [one.role for one in with_types(table, "auto")[1].columns]  # models may refuse that
    assert roles == [Role.FEATURE, Role.FEATURE]
    guess = guess_schema(table)
    assert guess.reasons["stamp"].startswith("dates; the day may be the month as well, seen as")
    assert "`role: time`, as values are like those before them" in guess.reasons["stamp"]


def test_hours_of_many_days_are_seen_with_the_hour() -> None:
    def seen_as(step: str, n: int) -> tuple[str, ...]:
        stamps = np.datetime64("2024-01-01", "s") + np.arange(n) * np.timedelta64(1, step)
        return guessed("stamp", pa.array(stamps))[0].seen_as

    assert seen_as("h", 200) == ("days", "hour")
    assert seen_as("h", 700) == ("days", "weekday", "hour")
    assert seen_as("h", 60) == seen_as("D", 200) == seen_as("s", 200) == ()
    at_any_time = [f"2024-01-{1 + i % 28:02d} {i * i % 24:02d}:{i % 60:02d}" for i in range(ROWS)]
    assert "weekday, hour]` for seasons" in guessed("seen", at_any_time)[1]


def test_meters_that_follow_the_hour_are_no_series(seed: int) -> None:
    rng, n = np.random.default_rng(seed), 24 * 40
    stamps = np.datetime64("2024-01-01", "s") + np.arange(n) * np.timedelta64(1, "h")
    hour, day = np.arange(n) % 24, np.arange(n) // 24
    open_ = (hour >= 7) & (hour < 18) & (day % 7 < 5)
    office, school = (k * open_ + rng.normal(20, 3, n) for k in (100, 60))
    outside = 10 + np.cumsum(rng.normal(0, 0.3, n))
    table = pa.table({"stamp": stamps, "office": office, "school": school, "outside": outside})
    guess = guess_schema(table)
    assert guess.schema.columns[0].role is Role.FEATURE
    assert guess.schema.columns[0].seen_as == ("days", "weekday", "hour")
    assert guess.reasons["stamp"].endswith("most columns follow the hour of the day more")
    weather = guess_schema(table.select(["stamp", "outside"]))
    assert weather.schema.columns[0].role is Role.TIME


def test_times_with_several_offsets_are_those_in_utc() -> None:
    times = [f"2024-03-31T{i % 24:02d}:00:00+0{1 + i % 2}:00" for i in range(ROWS)]
    column, reason = guessed("stamp", times)
    assert (column.moment, column.format) == ("date", "%Y-%m-%dT%H:%M:%S%z")
    assert reason.startswith("dates with several offsets, as in UTC, seen as days")
    hours = np.datetime64("2024-10-26", "s") + np.arange(ROWS) * np.timedelta64(1, "h")
    berlin = pa.array(hours).cast(pa.timestamp("s", "UTC")).cast(pa.timestamp("s", "Europe/Berlin"))
    texts = [when.as_py().isoformat(" ") for when in berlin]  # as pandas writes them
    assert len({text[-6:] for text in texts}) == 2
    assert guessed("stamp", texts)[0].seen_as == ("days", "hour")
    column, reason = guessed("stamp", [time.replace("+", ".5+") for time in times])
    assert column.role == Role.IGNORE
    assert reason.endswith("several offsets from UTC; write them all in one zone to model them")


@pytest.mark.parametrize("month", ["2019m{:02d}", "2019m{}"])
def test_months_as_stata_shows_them_are_dates(month: str) -> None:
    column, reason = guessed("period", [month.format(i % 12 + 1) for i in range(ROWS)])
    assert (column.moment, column.format) == ("date", "%Ym%m"), reason


def test_a_day_that_may_be_a_month_is_named() -> None:
    _, reason = guessed("x", [f"{i % 12 + 1}/{i % 11 + 1}/2024" for i in range(ROWS)])
    assert "the day may be the month as well" in reason


# Numbers as written --------------------------------------------------------------------------


def written(column: Column) -> dict[str, object]:
    """Return what the guess says of how the numbers are written."""
    said = {key: getattr(column, key) for key in ("decimal", "thousands", "unit", "percent")}
    return {key: value for key, value in said.items() if value}


@pytest.mark.parametrize(
    ("cells", "kind", "expected", "reason"),
    [
        ([f"{i},5" for i in range(ROWS)], "positive", {"decimal": ","}, "decimal commas"),
        (
            [f"{i}.041,3" for i in range(1, ROWS)],
            "positive",
            {"decimal": ",", "thousands": "."},
            "points between thousands",
        ),
        (
            [f"1,{i:03d}" for i in range(0, 3 * ROWS, 3)],
            "count",
            {"thousands": ","},
            "commas between thousands",
        ),
        (
            [f"1 {i:03d},25" for i in range(ROWS)],
            "positive",
            {"decimal": ",", "thousands": " "},
            "",
        ),
        ([f"1\u202f{i:03d}.5" for i in range(ROWS)], "positive", {"thousands": " "}, "spaces"),
        ([f"-1\u2019{i:03d}.5" for i in range(ROWS)], "real", {"thousands": "'"}, "apostrophes"),
        ([f"12,34,{i:03d}.5" for i in range(ROWS)], "positive", {"thousands": ","}, "commas"),
        ([f"{i}%" for i in range(ROWS)], "count", {"percent": True}, "in percent"),
        ([f"{i},5 %" for i in range(ROWS)], "positive", {"decimal": ",", "percent": True}, ""),
        ([f"${i}.50" for i in range(ROWS)], "positive", {"unit": "$"}, "in $"),
        ([f"-{i}.50 \u20ac" for i in range(ROWS)], "real", {"unit": "\u20ac"}, ""),
        ([f"{140 + i // 2} cm" for i in range(ROWS)], "count", {"unit": "cm"}, "in cm"),
        ([f"{i}.5mg/dL" for i in range(ROWS)], "positive", {"unit": "mg/dL"}, ""),
        ([f"{i},5E-03" for i in range(1, ROWS)], "positive", {"decimal": ","}, ""),
        (
            [*(f"{i},5" for i in range(ROWS)), "NA", "", "k.A."],
            "positive",
            {"decimal": ","},
            "k.A.",
        ),
    ],
)
def test_numbers_are_recognised_as_they_are_written(
    cells: list[str], kind: str, expected: dict[str, object], reason: str
) -> None:
    column, why = guessed("x", cells)
    assert (str(column.type), written(column)) == (kind, expected)
    assert reason in why


def test_the_reason_names_long_numbers_as_they_are_written() -> None:
    cells = [f"{i}.197,62 €" for i in range(1, ROWS)]
    assert f"numbers from 1.197,62 € to {ROWS - 1}.197,62 €, none" in guessed("x", cells)[1]


@pytest.mark.parametrize(
    "odd", ["1.234.567,5", "7,5", "7.5 kg", "7.5%"], ids=["points", "comma", "unit", "percent"]
)
def test_numbers_written_in_several_ways_are_left_out_with_the_reason(odd: str) -> None:
    column, why = guessed("x", [*(f"{i}.5" for i in range(ROWS)), odd])
    assert column.role == "ignore"
    assert why == f"ignored: numbers written in several ways, such as 0.5 and {odd}; " + (
        "write them alike to model them"
    )


def test_other_columns_tell_what_a_point_before_three_digits_is() -> None:
    thousands = [f"{i % 9 + 1}.{i:03d}" for i in range(ROWS)]
    german = pa.table({"x": thousands, "y": [f"{i},5" for i in range(ROWS)]})
    english = pa.table({"x": thousands, "y": [f"{i}.5" for i in range(ROWS)]})
    assert written(guess_schema(german).schema.columns[0]) == {"decimal": ",", "thousands": "."}
    assert written(guess_schema(english).schema.columns[0]) == {}


def test_thinning_frequencies_tell_a_count_from_a_scale() -> None:
    thin = ["0"] * 120 + ["1"] * 60 + ["2"] * 18 + ["3"] * 2
    even = repeat("0", "1", "2", "3")
    assert guessed("x", thin)[0].type == ColumnType.COUNT
    assert guessed("x", even)[0].type == ColumnType.COUNT
    assert guessed("pain score", even)[0].type == ColumnType.ORDINAL
    assert guessed("pain score", thin)[0].type == ColumnType.ORDINAL


@pytest.mark.parametrize(
    ("values", "kind"), [((0, 1, 2, 3), "ordinal"), ((2, 0, 3, 1), "categorical")]
)
def test_other_columns_tell_a_scale_from_codes(values: tuple[int, ...], kind: str) -> None:
    rng = np.random.default_rng(0)
    level = rng.integers(0, 4, 600)
    columns = {f"y{j}": 2.0 * level + rng.normal(size=600) for j in range(3)}
    table = pa.table({"x": np.array(values)[level] + 1, **columns})
    column, reason = guess_schema(table).schema.columns[0], guess_schema(table).reasons["x"]
    assert str(column.type) == kind, reason


PERSONS = [g for g in range(1, 31) for _ in range(3 + g % 4)]


@pytest.mark.parametrize(
    ("name", "cells", "kind"),
    [
        ("chick", PERSONS, "id"),
        ("x", PERSONS[::-1], "id"),
        ("x", [*PERSONS[40:], *PERSONS[:40], 30], "count"),  # neither together nor as many
        ("stratum", 4 * list(range(1, 26)), "id"),
        ("block", sorted(4 * list(range(1, 7))), "categorical"),
        ("class", [180 + 7 * g for g in PERSONS], "id"),
        ("schoolNR", [180 + 7 * g for g in PERSONS], "id"),
        ("hospital_no", [180 + 7 * g for g in PERSONS], "id"),
        ("no_of_cars", [180 + 7 * g for g in PERSONS], "count"),
        ("pupilNR", [17001 + 3 * g for g in range(60)], "id"),
        ("invoice_no", [17001 + 3 * g for g in range(60)][::-1], "id"),
        ("smoker_yes_cancer_no", [17001 + 3 * g for g in range(60)][::-1], "count"),
        ("number_of_steps", [17001 + 3 * g for g in range(60)], "count"),
        ("N1", 20 * [1, 2, 3, 4, 5, 6], "ordinal"),
        ("n_children", 20 * [1, 2, 3, 4, 5, 6], "count"),
        ("Floors", 20 * [1, 2, 3, 4, 5, 6], "count"),
        ("bedrooms", 20 * [0, 1, 2, 3, 4, 5], "count"),
        ("dose", [180 + 7 * g for g in PERSONS], "count"),
        ("visit", 20 * list(range(1, 6)), "count"),
        ("age", PERSONS, "count"),
        ("height", list(range(58, 73)), "count"),
        ("x", list(range(1, 16)), "id"),
    ],
)
def test_numbers_of_groups_are_told_by_how_they_stand_in_the_rows(
    name: str, cells: list[int], kind: str
) -> None:
    table = pa.table({name: cells, "y": np.random.default_rng(0).normal(size=len(cells))})
    column = guess_schema(table).schema.columns[0]
    assert str(column.type or column.role) == kind


def test_several_columns_of_the_same_numbers_are_answers() -> None:
    rng = np.random.default_rng(0)
    cells = {name: rng.integers(1, 5, ROWS) for name in "abc"}
    assert {c.type for c in guess_schema(pa.table(cells)).schema.columns} == {ColumnType.ORDINAL}
    alone = pa.table({"a": cells["a"]})
    assert guess_schema(alone).schema.columns[0].type == ColumnType.CATEGORICAL


@pytest.mark.parametrize(
    "levels",
    [
        ("niedrig", "mittel", "hoch"),
        ("L", "M", "H"),
        ("0-39g/day", "40-79", "80-119", "120+"),
        ("stimme gar nicht zu", "stimme eher nicht zu", "teils/teils", "stimme voll zu"),
        ("trifft nicht zu", "trifft eher nicht zu", "trifft eher zu", "trifft zu"),
        ("stimme nicht zu", "Teils-teils", "stimme zu", "stimme voll und ganz zu"),
        ("Jamais", "Rarement", "Parfois", "Souvent", "Toujours"),
        ("très mauvais", "mauvais", "moyen", "bon", "très bon"),
        ("nunca", "a veces", "a menudo", "siempre"),
        ("tres faible", "faible", "eleve"),
        ("muito insatisfeito", "insatisfeito", "satisfeito", "muito satisfeito"),
        ("péssimo", "ruim", "regular", "bom", "ótimo"),
        ("mai", "qualche volta", "spesso", "sempre"),
        ("per niente importante", "poco importante", "importante", "molto importante"),
        ("zeer slecht", "slecht", "matig", "goed", "zeer goed"),
        ("nooit", "zelden", "soms", "vaak", "altijd"),
    ],
    ids=lambda levels: levels[0],
)
def test_words_of_scales_are_known_in_seven_languages(levels: tuple[str, ...]) -> None:
    column, reason = guessed("x", repeat(*reversed(levels)))
    assert (column.type, column.levels) == (ColumnType.ORDINAL, levels), reason


def test_shares_and_percentages_get_bounds() -> None:
    assert guessed("share of votes", texts(np.linspace(0, 0.9, ROWS)))[0].bounds == (0, 1)
    assert guessed("pct_rural", texts(np.linspace(1, 99.5, ROWS)))[0].bounds == (0, 100)
    assert guessed("growth pct", texts(np.linspace(1, 250.5, ROWS)))[0].bounds == (None, None)


def test_ceilings_and_floors_are_atoms_at_a_bound() -> None:
    x = np.linspace(20.5, 130.0, ROWS)
    for name, cells, kind, bounds, atom in (
        ("pct", np.minimum(x, 100.0), "real", (0, 100), 100),
        ("score", np.minimum(x, 100.0), "real", (0, 100), 100),
        ("titre", np.maximum(x, 40.0), "real", (40, None), 40),
        ("change", np.minimum(x - 60.5, 39.5), "real", (None, 39.5), 39.5),
        ("pct", np.minimum(x, 129.0), "positive", (None, None), None),  # too few there
        ("rain", np.maximum(x - 60.0, 0.0), "positive", (None, None), 0),
        ("steps", np.rint(np.minimum(x, 100.0)), "count", (None, None), None),
        ("offset", np.where(x < 50.0, 60.25, x), "positive", (None, None), None),  # no end
    ):
        column, reason = guessed(name, texts(cells))
        assert (column.type, column.bounds, column.atom) == (kind, bounds, atom), reason
        ends = {100: "100, their ceiling, in", 40: "40, their floor, in", 39.5: "39.5, their ceil"}
        assert atom not in ends or ends[atom] in reason


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (pa.array(repeat(True, False)), "categorical"),
        (pa.array(repeat(1, 2, 3, None)), "categorical"),
        (pa.array(repeat(1.0, 2.0, 3.0, None)), "categorical"),
        (pa.array(np.linspace(0, 1, ROWS), pa.float32()), "positive"),
        (pa.array(repeat(0.5, 1.5)), "positive"),
        (pa.array(repeat(0.5, float("nan"), -1.25)), "real"),
        (pa.array(repeat(Decimal("1.50"), Decimal("2.25"), Decimal("3.00"))), "positive"),
        (pa.array(np.arange(0, 3 * ROWS, 3), pa.uint8(), safe=False), "count"),
        (pa.array(np.arange(ROWS) * 2**55), "id"),
        (pa.array(repeat(2**60, 2**61, 2**62)), "ignore"),
        (pa.array(repeat(1.5, float("inf"), 2.5)), "ignore"),
        (pa.array(repeat(0.0, 1.0, 2.0, -float("inf"))), "ignore"),
        (pa.array(repeat(1e300, 2e300, 3.5)), "positive"),
        (pa.array(repeat("1", "2", "3"), pa.large_string()), "categorical"),
        (pa.array(repeat(dt.date(2024, 1, 1), dt.date(2024, 1, 2))), "real"),
        (pa.array(repeat(dt.timedelta(1), dt.timedelta(2))), "positive"),
        (pa.array(repeat([1], [2])), "ignore"),
        (pa.array(repeat(b"a", b"b")), "ignore"),
        (pa.nulls(ROWS), "ignore"),
        (pa.array(repeat("b", "a", "c")).dictionary_encode(), "categorical"),
    ],
    ids=range(20),
)
def test_arrow_types_are_guessed(cells: pa.Array, kind: str) -> None:
    column, reason = guessed("x", cells)
    assert str(column.type or column.role) == kind, reason


def test_an_ordered_dictionary_keeps_its_order() -> None:
    indices = pa.array(repeat(2, 0, 1), pa.int8())
    cells = pa.DictionaryArray.from_arrays(indices, ["zero", "b", "a", "unused"], ordered=True)
    column, _ = guessed("x", cells)
    assert (column.type, column.levels) == (ColumnType.ORDINAL, ("zero", "b", "a", "unused"))


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64()], ids=str)
@pytest.mark.parametrize("ordered", [False, True])
def test_numbers_in_a_dictionary_are_levels(kind: pa.DataType, ordered: bool) -> None:
    shops = pa.array([204, 101, 307, 90, 555], kind)
    indices = pa.array(repeat(2, 0, 1, 3), pa.int8())
    cells = pa.DictionaryArray.from_arrays(indices, shops, ordered=ordered)
    column, _ = guessed("x", cells)
    assert column.type is (ColumnType.ORDINAL if ordered else ColumnType.CATEGORICAL)
    in_its_order = ("204", "101", "307", "90", "555")
    assert column.levels == (in_its_order if ordered else ("90", "101", "204", "307"))


def test_a_dictionary_of_too_many_numbers_is_left_out() -> None:
    cells = pa.array(np.arange(400) // 2).dictionary_encode()
    column, reason = guessed("x", cells)
    assert str(column.role) == "ignore", reason


def of_labels(folder: Path, labels: dict[int, str], suffix: str = "sav") -> tuple[Column, str]:
    """Return the guess for codes whose labels a file holds, without a level of measurement."""
    pyreadstat, pandas = pytest.importorskip("pyreadstat"), pytest.importorskip("pandas")
    path = folder / f"t.{suffix}"
    frame = pandas.DataFrame({"q": repeat(*map(float, labels)), "x": np.linspace(0, 9.5, ROWS)})
    getattr(pyreadstat, f"write_{suffix}")(frame, str(path), variable_value_labels={"q": labels})
    table = read_table(path)
    guess = guess_schema(table)
    assert Schema.from_yaml(guess.to_yaml()) == guess.schema
    assert len(encode(table, guess.schema).columns) == 2
    return guess.schema.columns[0], guess.to_yaml()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("suffix", ["sav", "dta"])
@pytest.mark.parametrize(
    ("labels", "kind", "missing"),
    [
        ({1: "stimme gar nicht zu", 2: "eher nicht", 3: "teils", 4: "eher", 5: "voll"}, "o", {}),
        ({1: "not at all", 2: "rather not", 3: "rather", 4: "fully"}, "o", {99: "don't know"}),
        ({1: "poor", 2: "fair", 3: "good"}, "o", {8: "Don\u2019t know", 9: "Refused"}),
        ({1: "sehr gut", 2: "gut", 3: "schlecht"}, "o", {-9: "verweigert"}),
        ({1: "zu klein", 2: "gerade recht", 3: "zu gro\u00df"}, "c", {98: "Wei\u00df nicht"}),
        (
            {1: "pas du tout", 2: "plut\u00f4t pas", 3: "tout \u00e0 fait"},
            "o",
            {0: "sans r\u00e9ponse"},
        ),
        ({1: "yes", 2: "no"}, "c", {9: "no answer"}),
        ({1: "yes", 2: "no", 3: "don't know"}, "c", {}),
        ({3: "west", 5: "north", 9: "east"}, "c", {}),
    ],
    ids=range(9),
)
def test_levels_of_labels_stand_in_the_order_of_their_codes(
    tmp_path: Path, suffix: str, labels: dict[int, str], kind: str, missing: dict[int, str]
) -> None:
    column, text = of_labels(tmp_path, labels | missing, suffix)
    assert column.levels == tuple(labels[code] for code in sorted(labels)), text
    assert column.ordinal == (kind == "o"), text
    assert codes(column) == set(missing.values())
    assert "may be one level" not in text


@pytest.mark.parametrize(
    "pair",
    [
        ("rather", "rather not"),
        ("einverstanden", "einverstanden, aber nicht ganz"),
        ("PG", "PG-13"),
    ],
)
def test_levels_that_differ_by_a_negation_or_number_are_not_one(pair: tuple[str, str]) -> None:
    table = pa.table({"q": repeat(*pair, "so so"), "x": texts(np.linspace(0, 9.5, ROWS))})
    assert "may be one level" not in guess_schema(table).to_yaml()


# Gaps ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "word",
    ["NA", "k.A.", "n/a", "NaN", "null", "?", ".", "-", "missing", "#NV", "#WERT!", "#¡VALOR!"],
)
def test_words_for_missing_are_codes_in_every_column(word: str) -> None:
    for others in (texts(range(0, 90, 3)), ["red", "green", "blue"], ["low", "mid", "high"]):
        column, reason = guessed("x", repeat(*others, word))
        assert codes(column) == {word}
        assert "taken for missing" in reason


def test_sentences_of_one_row_each_are_no_levels() -> None:
    said = [f"case {i} was seen twice" for i in range(12)]
    column, reason = guessed("note", repeat("", "nothing to add", rows=60) + said)
    assert column.role is Role.IGNORE
    assert "free text" in reason
    assert guessed("city", repeat("New York City", "Oslo", rows=60))[0].nominal


def test_writings_of_one_level_are_aliases_of_the_commonest() -> None:
    column, reason = guessed("smokes", repeat("Yes", "yes", "NO", "ja", "0"))
    assert (column.levels, set(column.aliases)) == (
        ("NO", "Yes"),
        {("yes", "Yes"), ("ja", "Yes"), ("0", "NO")},
    )
    assert "yes or no; written in several ways: " in reason
    column, _ = guessed("city", repeat("Rome", "rome", "Oslo", "Bern"))
    assert (column.levels, column.aliases) == (("Bern", "Oslo", "Rome"), (("rome", "Rome"),))
    assert guessed("code", repeat("a", "A", "b"))[0].aliases == ()


def test_a_text_that_recurs_among_dates_is_left_as_it_is() -> None:
    days = [f"{1 + i % 28:02d}.{1 + i % 12:02d}.24" for i in range(ROWS)]
    words = ["unb.", "", "unbekannt", *[""] * 5]
    cells = [words[i % 8] or day for i, day in enumerate(days)]
    column, reason = guessed("ill since", cells)
    assert set(column.missing) == {MissingCode("unbekannt"), MissingCode("unb.", impute=False)}
    assert column.missing == (MissingCode("unbekannt"), MissingCode("unb.", False))
    assert "unb. among dates, left as it is" in reason
    many = [("early", "late", "never")[i % 3] if i % 2 else d for i, d in enumerate(days)]
    assert guessed("ill since", many)[0].moment is None


def test_dates_in_several_forms_are_named_with_one_of_each() -> None:
    cells = [f"2023-05-{d:02d}" for d in range(1, 29)] + ["03.05.2023", "17.06.2023"]
    column, reason = guessed("seen", cells)
    assert column.role is Role.IGNORE
    assert "in several forms, 28 like 2023-05-01, 2 like 03.05.2023; write them alike" in reason


@pytest.mark.parametrize("word", ["none", "Unknown", "don't know", "weiß nicht"])
def test_doubtful_words_are_codes_among_numbers_and_levels_among_words(word: str) -> None:
    assert codes(guessed("x", repeat(*texts(range(0, 90, 3)), word))[0]) == {word}
    column, _ = guessed("x", repeat("red", "green", word))
    assert codes(column) == set()
    assert word in (column.levels or ())


def test_none_is_the_lowest_step_of_a_scale() -> None:
    assert guessed("pain", repeat("mild", "none", "severe"))[0].levels == (
        "none",
        "mild",
        "severe",
    )


def test_a_word_outside_a_scale_is_a_code() -> None:
    column, _ = guessed("x", repeat("agree", "neutral", "disagree", "don't know"))
    assert (column.type, codes(column)) == (ColumnType.ORDINAL, {"don't know"})


def test_a_refusal_is_no_level_and_an_unknown_may_be_none() -> None:
    column, reason = guessed("vote", repeat("A", "B", "C", "no answer", "refused"))
    assert (column.levels, codes(column)) == (("A", "B", "C"), {"no answer", "refused"})
    assert "no answer, refused taken for missing" in reason
    assert guessed("vaccine", repeat("accepted", "delayed", "refused"))[0].missing == ()
    table = pa.table({"x": repeat("red", "green", "unknown"), "y": texts(range(0, 600, 3))})
    text = guess_schema(table).to_yaml()
    assert (
        'unknown may stand for a missing cell; if so: levels: ["green", "red"], '
        'missing: ["unknown"]'
    ) in text
    pasted = 'levels: ["green", "red"], missing: ["unknown"]'
    corrected = Schema.from_yaml(text.replace('levels: ["green", "red", "unknown"]', pasted))
    assert len(encode(table, corrected).columns) == 2


def test_a_last_number_or_more_is_an_interval() -> None:
    for last in ("6 or more", "6+", "6 oder mehr", "6 ou plus", "6 o m\u00e1s"):
        column, reason = guessed("siblings", repeat("0", "1", "2", "3", "4", "5", last))
        assert (str(column.type), column.missing) == ("count", ())
        assert f"known only to lie in an interval: {last}" in reason


def test_what_was_not_asked_is_left_as_it_is() -> None:
    column, _ = guessed("x", repeat(*texts(range(0, 90, 3)), "not applicable"))
    assert column.missing == (MissingCode("not applicable", impute=False),)


def test_a_few_texts_among_numbers_are_left_as_they_are() -> None:
    cells = [*texts(np.linspace(5, 90, ROWS)), "<5", "see notes"]
    column, reason = guessed("x", cells)
    assert column.type == ColumnType.POSITIVE
    assert column.missing == (MissingCode("see notes", False),)
    assert "known only to lie in an interval: <5" in reason
    assert "left as it is" in reason


@pytest.mark.parametrize("n_between", [0, 10])
@pytest.mark.parametrize(
    ("word", "times", "imputed"),
    [
        ("not done", 6, True),
        ("not done", 30, True),
        ("not done", 80, True),
        ("nicht gemessen", 80, True),
        ("I/O Timeout", 80, True),
        ("Bad", 80, True),
        ("hemolysed", 6, False),
        ("hemolysed", 30, False),
        ("hemolysed", 60, False),
        ("ND", 30, False),
    ],
)
def test_a_text_that_recurs_among_numbers_is_a_code(
    word: str, times: int, imputed: bool, n_between: int
) -> None:
    between = repeat("<4.0", ">12", rows=n_between)
    numbers = repeat(*texts(np.linspace(4, 9, 31)), rows=ROWS - times - n_between)
    column, reason = guessed("x", [*numbers, *between, *[word] * times])
    assert column.type == ColumnType.POSITIVE, reason
    assert column.missing == (MissingCode(word, imputed),)
    assert f"{word} {'taken for missing' if imputed else 'among numbers, left as it is'}" in reason
    assert ("lie in an interval: <4.0, >12" in reason) == (n_between > 0)


def test_decimal_commas_are_read_beside_a_text_that_recurs() -> None:
    column, _ = guessed("x", [*(f"{i},5" for i in range(60)), *["verloren"] * 20])
    assert (column.decimal, codes(column)) == (",", {"verloren"})


@pytest.mark.parametrize("others", [("1", "2", "3"), ("5.5", "7.5", "9.5", "10.5")])
def test_a_text_that_recurs_beside_few_numbers_is_a_level(others: tuple[str, ...]) -> None:
    column, _ = guessed("x", repeat(*others, "other"))
    assert column.levels == (*others, "other")


def test_a_text_that_recurs_among_codes_is_a_level() -> None:
    column, _ = guessed("diagnosis code", repeat(*texts(range(250, 262)), "V45", "V45"))
    assert column.type == ColumnType.CATEGORICAL
    assert "V45" in (column.levels or ())


@pytest.mark.parametrize(
    ("numbers", "interval", "kind"),
    [
        (texts(range(30)), "<5", "count"),
        (texts(range(30)), "<0", "real"),
        (texts(range(30)), "<=0", "count"),
        (texts(range(30)), "<0.5", "positive"),
        (["-2", "-1", "0", "1", "2"], ">2", "real"),
        (texts(np.linspace(0.5, 9, 30)), "<0.5", "positive"),
        (texts(np.linspace(0.5, 9, 30)), "<-1.5", "real"),
        ([f"202401{d:02d}" for d in range(1, 29)], ">20240128", "count"),
    ],
)
def test_numbers_beside_an_interval_have_a_type_that_it_can_be_of(
    numbers: list[str], interval: str, kind: str
) -> None:
    column, reason = guessed("x", [*repeat(*numbers), interval])
    assert str(column.type) == kind, reason
    assert f"known only to lie in an interval: {interval}" in reason


def test_blank_cells_are_missing_without_a_code() -> None:
    column, reason = guessed("x", ["  ", *texts(range(0, 90, 3)), "", " "])
    assert (column.type, column.missing) == (ColumnType.COUNT, ())
    assert "2 blank cells taken for missing" in reason


@pytest.mark.parametrize(
    ("others", "found"),
    [
        (texts(range(0, 60, 2)), ["-1"]),
        (texts(range(0, 60, 2)), ["-9", "-8"]),
        (texts(range(0, 60, 2)), ["-99"]),
        (texts(np.linspace(0.5, 7.25, 50)), ["-1"]),
        (texts(np.linspace(-20, 35.5, 50)), ["-999"]),
        (texts(np.linspace(-20, 35.5, 50)), ["999.9"]),
        (texts(range(18, 90, 2)), ["999"]),
        (texts(range(20)), ["99"]),
        (texts(range(20)), ["97", "98", "99"]),
        (["1", "2", "3", "4", "5"], ["9"]),
        (["1", "2", "3", "4"], ["8", "9"]),
        (["1", "2"], ["9"]),
        (["10", "20", "30", "45"], ["-1"]),
        (["red", "green", "blue"], ["999"]),
    ],
)
def test_numbers_far_from_the_rest_are_codes(others: list[str], found: list[str]) -> None:
    column, reason = guessed("x", repeat(*others, *found))
    assert codes(column) == set(found), reason
    assert not set(column.levels or ()) & set(found)


@pytest.mark.parametrize(
    "cells",
    [
        repeat("-1", "0", "1"),
        repeat(*texts(range(-30, 30))),
        repeat(*texts(range(100))),
        repeat(*texts(range(60, 100))),
        repeat(*texts(np.linspace(-9.5, 9.5, 60))),
        repeat("3", "6", "7", "9"),
        repeat("1", "2", "3", "4", "5", "6", "7", "8", "9"),
        repeat(*texts(np.geomspace(1, 99_999, 40).round())),
    ],
    ids=range(8),
)
def test_ordinary_numbers_are_no_codes(cells: list[str]) -> None:
    assert codes(guessed("x", cells)[0]) == set()


def test_namibia_is_a_country_among_countries() -> None:
    names = ["AT", "BE", "CH", "DE", "ES", "FR", "GB", "IT", "LU", "NA", "NL", "PT"]
    column, _ = guessed("country", repeat(*names))
    assert "NA" in (column.levels or ())


def test_a_level_of_one_column_is_not_lost_to_the_code_of_another() -> None:
    names = ["AT", "BE", "CH", "DE", "ES", "FR", "GB", "IT", "LU", "NA", "NL", "PT"]
    table = pa.table({"country": repeat(*names), "x": repeat("1.5", "NA", "2.5", "3.5")})
    country, x = guess_schema(table).schema.resolve(table.column_names)
    assert (codes(country), codes(x)) == (set(), {"NA"})


# The whole -----------------------------------------------------------------------------------


def test_every_column_stands_in_the_file_with_its_reason() -> None:
    table = pa.table({"b": repeat("1.5", "2.5", "4.5"), 'a: "#x"': repeat("x", "y")})
    guess = guess_schema(table)
    text = guess.to_yaml("table.csv")
    assert guess.n_rows == ROWS
    assert list(guess.reasons) == ["b", 'a: "#x"']
    assert all(reason in text for reason in guess.reasons.values())
    assert "Guessed from table.csv: 200 rows, 2 columns" in text


@pytest.mark.parametrize(
    ("rows", "note"),
    [
        ([41], "# Empty row 41: delete it.\n"),
        ([7, 41], "# Empty rows 7, 41: delete them.\n"),
        ([1, 20, 40, 41, 42], "# Empty rows 1, 20, 40 and 2 more: delete them.\n"),
    ],
)
def test_empty_rows_are_named_and_make_no_id_repeat(rows: list[int], note: str) -> None:
    ids, numbers = [f"P{i}" for i in range(40)], texts(np.linspace(0.5, 9, 40))
    blank: list[str | None] = [None, "", "  "]
    for k, row in enumerate(rows):
        ids.insert(row - 1, blank[k % 3])  # type: ignore[arg-type]
        numbers.insert(row - 1, blank[(k + 1) % 3])  # type: ignore[arg-type]
    table = pa.table({"id": ids, "x": numbers})
    guess = guess_schema(table)
    assert note in guess.to_yaml()
    assert guess.notes == (note[2:-1],)
    assert guess.reasons["id"] == "every value is different, and the name is an id's"
    assert encode(table, guess.schema).n_rows == 40 + len(rows)


@pytest.mark.parametrize("form", ["P{}", "{}"])
def test_an_id_in_several_rows_is_offered_as_a_group(form: str) -> None:
    visits = [form.format(1000 + 7 * (i * 13 % 60)) for i in range(ROWS)]
    column, reason = guessed("patient_id", visits)
    assert column.role is Role.ID
    assert reason == (
        "the name is an id's; 60 different values, some in several rows; `role: group` if rows of "
        "one value belong together, as visits of a patient do"
    )
    for cells in ([*visits[:-1], None], [form.format(1000 + 7 * i) for i in range(190)] * 2):
        column, reason = guessed("patient_id", cells[:ROWS])  # a gap; ten ids typed twice
        assert column.role is Role.ID
        assert reason.endswith("different values, some in several rows")


@pytest.mark.parametrize(("form", "distinct"), [("F{:03}", 40), ("F{:03}", 120), ("Ann {}x", 120)])
def test_texts_that_come_again_in_all_rows_are_offered_as_a_group(form: str, distinct: int) -> None:
    firms = [form.format(i % distinct) for i in range(3 * distinct)]
    offered = "`role: group` if rows of one value belong together"
    assert offered in guessed("firm", firms)[1]
    assert offered not in guessed("firm", [*firms[:-1], None])[1]
    words = ["north", "south", "east", "west", *map("region {}".format, "abcdefgh")]
    for few in (words, [f"F{i}" for i in range(10)]):
        assert offered not in guessed("firm", few * 20)[1]
    panel = [word for word in words for _ in range(20)]
    assert offered in guessed("country", panel)[1]
    assert offered not in guessed("country", panel[: 20 * 10])[1]


def test_among_a_few_codes_of_two_letters_na_may_be_namibia() -> None:
    told = 'NA taken for missing; if it is Namibia: levels: ["BW", "DE", "NA", "ZA"], missing: []'
    column, reason = guessed("country", ["BW", "DE", "NA", "ZA"] * 10)
    assert column.levels == ("BW", "DE", "ZA")
    assert reason == f"3 different texts; {told}"
    for others in (["BW", "DE"], ["BW", "DE", "FRA"], ["bw", "de", "za"]):
        assert guessed("country", [*others, "NA"] * 10)[1].endswith("; NA taken for missing")


def test_columns_of_nearly_one_name_are_named() -> None:
    table = pa.table({"age": texts(range(0, 600, 3)), "Age ": texts(range(0, 600, 3))})
    note = 'Columns "age" and "Age " have nearly the same name: is one meant?'
    assert guess_schema(table).notes == (note,)


def test_a_column_that_is_nearly_empty_is_called_so() -> None:
    few = [*texts(np.linspace(3, 6.5, 8)), *[""] * (ROWS - 8)]
    assert "only 8 of 200 cells hold a value" in guessed("rare", few)[1]
    assert "only 9 of 200 cells hold a value" in guessed("rare", [*few[:-2], "not done", "2.5"])[1]
    assert "cells hold a value" not in guessed("x", [*texts(range(50)), *[""] * 150])[1]


def test_line_breaks_in_cells_and_names_stay_out_of_the_comments() -> None:
    table = pa.table({"a\nb": repeat("x\ny: 1", "z", "w"), "c\u2028": repeat("only\nthis")})
    guess = guess_schema(table)
    assert Schema.from_yaml(guess.to_yaml("two\nlines.csv")) == guess.schema


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pa.table({}), "has no rows"),
        (pa.table({"a": pa.array([], pa.string())}), "has no rows"),
        (pa.table({"a": repeat("x"), "id": texts(range(ROWS))}), "no column of the table can be"),
        (pa.Table.from_arrays([pa.array(["1"])] * 2, ["a", "a"]), "two columns of the table have"),
    ],
    ids=range(4),
)
def test_tables_without_anything_to_guess_are_errors(table: pa.Table, message: str) -> None:
    with pytest.raises(TableError, match=message):
        guess_schema(table)


@pytest.mark.parametrize("name", ["airquality", "lung", "messy", "pbc"])
def test_guess_for_the_sample_tables_runs_unchanged(sample_data: Path, name: str) -> None:
    table = read_table(sample_data / f"{name}.csv")
    schema = Schema.from_yaml(guess_schema(table).to_yaml())
    data = encode(table, schema)
    assert data.n_rows == table.num_rows
    assert len(data.columns) >= table.num_columns - 1


def test_guess_for_the_messy_table_is_what_a_person_would_write(sample_data: Path) -> None:
    table = read_table(sample_data / "messy.csv")
    found = {c.name: c for c in guess_schema(table).schema.resolve(table.column_names)}
    assert {name: str(c.type or c.role) for name, c in found.items()} == {
        "id": "id",
        "income": "positive",
        "visits": "count",
        "grade": "ordinal",
        "city": "categorical",
        "city_code": "categorical",
        "temperature": "real",
    }
    assert found["grade"].levels == ("low", "mid", "high")
    assert codes(found["visits"]) == codes(found["city_code"]) == {"-1"}
    assert "?" in codes(found["grade"])
    assert "NA" in codes(found["temperature"])


CELLS = st.one_of(
    st.sampled_from(
        ["", " ", "NA", "?", "none", "-1", "-9", "99", "999", "0", "1", "1.0", "-0.0", "01", "1e5"]
    ),
    st.sampled_from(["low", "high", "yes", "no", "I", "1-2", "12:30", "2024-01-31", "5%", "1,5"]),
    st.integers(-3, 12).map(str),
    st.floats(-1e3, 1e3).map(str),
    st.text(max_size=4),
)
COLUMNS = st.one_of(
    st.lists(CELLS | st.none(), min_size=1, max_size=4).map(lambda c: (c, pa.string())),
    st.lists(st.floats() | st.none(), min_size=1, max_size=5).map(lambda c: (c, pa.float64())),
    st.lists(st.floats(width=32), min_size=1, max_size=5).map(lambda c: (c, pa.float32())),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5).map(
        lambda c: (c, pa.int64())
    ),
    st.lists(st.integers(-9, 99) | st.none(), min_size=1, max_size=5).map(lambda c: (c, pa.int8())),
    st.lists(st.decimals(-99, 99, places=2) | st.none(), min_size=1, max_size=5).map(
        lambda c: (c, pa.decimal128(6, 2))
    ),
    st.lists(st.booleans() | st.none(), min_size=1, max_size=3).map(lambda c: (c, pa.bool_())),
)
NAMES = st.sampled_from(["id", "x", "n", "score", "zip code", "share", "year", ""]) | st.text(
    max_size=3
)


@given(st.dictionaries(NAMES, COLUMNS, min_size=1, max_size=3), st.integers(2, 60))
@example({"x": ([0.0, 1e308], pa.float64())}, 3)
@example({"x": ([0.0, 1.0, 2.0, -np.inf], pa.float64())}, 12)
@example({"x": ([0, 1, 2, -(2**53) - 1], pa.int64())}, 12)
def test_whatever_is_guessed_loads_and_runs_unchanged(
    columns: dict[str, tuple[list[object], pa.DataType]], rows: int
) -> None:
    arrays = {name: pa.array(repeat(*cells, rows=rows), t) for name, (cells, t) in columns.items()}
    table = pa.table({**arrays, "an anchor": repeat("1.5", "2.5", "4", rows=rows)})
    guess = guess_schema(table)
    schema = Schema.from_yaml(guess.to_yaml())
    assert schema == guess.schema
    assert len(encode(table, schema).columns) == sum(column.modelled for column in schema.columns)


NUMBERS = (
    st.integers(0, 12).map(str),
    st.integers(-3, 40).map(str),
    st.decimals(-9, 99, places=1).map(str),
    st.decimals(0, 99, places=2).map(lambda x: str(x).replace(".", ",")),
    st.integers(1000, 99_999).map(lambda x: f"{x:,}"),
    st.integers(1, 99).map(lambda x: f"{x}%"),
    st.integers(1, 99).map(lambda x: f"{x} kg"),
    st.integers(1, 31).map(lambda x: f"202401{x:02d}"),
    st.integers(0, 5).map(str) | st.sampled_from(["-9", "99", "999", "-99", "1e5", "007"]),
)
INTERVALS = st.builds(
    str.format,
    st.sampled_from(["<{}", ">{}", "<={}", "\u2265 {}", "{}+", "{} or more", "{0}-{0}9", "<{},5"]),
    st.integers(-3, 40),
)
TEXTS = st.sampled_from(
    """not done;NA;?;unknown;not applicable;n.a.;don't know;refused;hemolysed;lost;see note; ;<LOD
    1 - low;5 - high;2024-01-31;12:30;yes;no answer;low;high;Low;-;none""".replace("\n", ";").split(
        ";"
    )
)


@st.composite
def messy(draw: st.DrawFn) -> list[str]:
    """Draw a column of numbers, each in some rows, among intervals and texts."""
    numbers = draw(st.lists(draw(st.sampled_from(NUMBERS)), max_size=25))
    others = draw(st.lists(INTERVALS | TEXTS, max_size=4))
    return draw(st.integers(1, 8)) * numbers + draw(st.integers(1, 12)) * others + ["1", "4"]


@given(st.dictionaries(NAMES, messy(), min_size=1, max_size=2))
def test_the_types_file_of_messy_columns_is_accepted_by_their_table(
    columns: dict[str, list[str]],
) -> None:
    n = max(map(len, columns.values()))
    table = pa.table({name: repeat(*cells, rows=n) for name, cells in columns.items()})
    table = table.append_column("an anchor", pa.array(repeat("1.5", "2.5", "4", rows=n)))
    schema = Schema.from_yaml(guess_schema(table).to_yaml())
    assume(all(column.role != Role.ROW for column in schema.columns))  # no matrix
    assert len(encode(table, schema).columns) == sum(column.modelled for column in schema.columns)


def test_roles_of_unmodelled_columns_are_id_or_ignore(sample_data: Path) -> None:
    table = read_table(sample_data / "pbc.csv")
    roles = {column.role for column in guess_schema(table).schema.columns}
    assert roles == {Role.ID, Role.FEATURE}


def test_counts_of_few_pairs_without_zeros_are_triplets_whose_absent_pairs_are_zeros() -> None:
    table = read_table("sample_data/doc_words.csv")
    guess = guess_schema(table)
    found = {column.name: column for column in guess.schema.columns}
    roles = [found[name].role for name in ("section", "word", "count")]
    assert roles == [Role.ROW, Role.COLUMN, Role.VALUE]
    assert found["count"].absent == "zero"
    assert "the others are zeros" in guess.reasons["count"]
    assert Schema.from_yaml(guess.to_yaml()) == guess.schema
    counts = [int(value) for value in table["count"].to_pylist()]
    plain = table.set_column(2, "count", pa.array(counts))
    with_zero = plain.set_column(2, "count", pa.array([0, *counts[1:]]))
    twice = pa.concat_tables([plain, plain.slice(1, 1)])
    for other in (with_zero, twice):
        assert all(column.absent is None for column in guess_schema(other).schema.columns)


def ratings(seed: int, n: int = 900) -> pa.Table:
    """Return ratings of 40 films by 60 users, by numbers, no pair twice, with the time of each."""
    rng = np.random.default_rng(seed)
    pair = rng.choice(60 * 40, n, replace=False)
    return pa.table(
        {
            "userId": pair // 40 + 1,
            "film": pair % 40 * 7,
            "rating": [f"{half / 2:g}" for half in rng.integers(1, 11, size=n)],
            "timestamp": rng.integers(10**9, 2 * 10**9, size=n),
        }
    )


def test_ratings_by_number_of_user_and_film_are_triplets(seed: int) -> None:
    table = ratings(seed)
    guess = guess_schema(table)
    found = {column.name: column for column in guess.schema.columns}
    assert [one.role for one in found.values()] == [Role.ROW, Role.COLUMN, Role.VALUE, Role.IGNORE]
    assert found["rating"].type == ColumnType.ORDINAL
    assert found["rating"].absent is None
    assert Schema.from_yaml(guess.to_yaml()) == guess.schema


def test_what_one_side_determines_is_no_value_of_triplets(seed: int) -> None:
    table = ratings(seed)
    users, films = (table[name].to_pylist() for name in ("userId", "film"))
    stars = pa.array([float(text) for text in table["rating"].to_pylist()])
    table = table.set_column(2, "rating", stars)  # as Parquet stores halves
    table = table.append_column("title", pa.array([f"Film {film // 14}" for film in films]))
    table = table.append_column("age", pa.array([20 + user % 7 for user in users]))
    guess = guess_schema(table)
    found = {column.name: column for column in guess.schema.columns}
    assert [found[name].role for name in ("userId", "film", "rating")] == [
        Role.ROW, Role.COLUMN, Role.VALUE
    ]  # fmt: skip
    assert found["rating"].levels == tuple(f"{half / 2:g}" for half in range(1, 11))
    assert found["title"].role is found["age"].role is Role.IGNORE
    assert "--row-features" in guess.reasons["age"]
    assert "--column-features" in guess.reasons["title"]


@pytest.mark.parametrize("spoilt", ["a pair twice", "few rows", "a column more", "no whole number"])
def test_numbers_that_do_not_tell_the_rows_apart_as_pairs_are_no_triplets(
    spoilt: str, seed: int
) -> None:
    table = ratings(seed)
    if spoilt == "a pair twice":
        table = pa.concat_tables([table, table.slice(0, 1)])
    elif spoilt == "few rows":  # of which none comes twice by chance
        table = table.slice(0, 120)
    elif spoilt == "a column more":
        table = table.append_column("weight", pa.array(np.linspace(1, 2, 900)))
    else:
        films = pa.array([number + 0.5 for number in table["film"].to_pylist()])
        table = table.set_column(1, "film", films)
    roles = {column.role for column in guess_schema(table).schema.columns}
    assert not roles & {Role.ROW, Role.COLUMN}


def test_none_is_missing_in_every_column_of_a_table_that_writes_it_among_numbers() -> None:
    table = pa.table(
        {
            "x": [*texts(np.linspace(-3, 9, ROWS - 1)), "None"],
            "group": repeat("a", "b", "None"),
            "dose": repeat("low", "mid", "high", "None"),
            "pain": repeat("None", "Mild", "Severe"),
        }
    )
    found = {c.name: c for c in guess_schema(table).schema.resolve(table.column_names)}
    assert found["group"].levels == ("a", "b")
    assert found["dose"].levels == ("low", "mid", "high")
    assert found["pain"].levels == ("None", "Mild", "Severe")  # as such scales write it
    assert all("None" in codes(found[name]) for name in ("x", "group", "dose"))
    without = guess_schema(table.drop_columns(["x"])).schema
    assert next(c for c in without.columns if c.name == "group").levels == ("None", "a", "b")


def test_levels_that_a_file_declares_in_order_stay_though_no_row_has_them() -> None:
    declared = ["low", "mid", "high", "extra", "N/A"]
    cells = pa.DictionaryArray.from_arrays(
        pa.array(repeat(0, 1, 2), pa.int8()), pa.array(declared), ordered=True
    )
    column, reason = guessed("dose", cells)
    assert column.levels == ("low", "mid", "high", "extra")
    assert reason == "the file declares these levels and their order; no row has extra"


@pytest.mark.parametrize(
    ("words", "ordered"),
    [
        (("1-2 times a week", "3-4 times a week", "never", "5+ times a week"), True),
        (("less than 1 hour", "1-2 hours", "2 or more hours"), True),
        (("500-900", "1k-5k", "5-10k"), True),
        (("1-6 days", "1-3 weeks", "1-11 months"), False),
        (("1-2 times a week", "3-4 times a month", "5+ times a year"), False),
    ],
)
def test_ranges_are_steps_of_a_scale_in_one_unit(words: tuple[str, ...], ordered: bool) -> None:
    column, _ = guessed("how often", repeat(*words))
    assert column.ordinal == ordered
    if ordered:
        rest = [word for word in words if word != "never"]
        assert column.levels == (*(("never",) if "never" in words else ()), *rest)


def test_forms_of_redcap_have_levels() -> None:
    cells = repeat("0", *["2"] * 9, *["1"] * 2)
    assert guessed("visit_complete", cells)[0].levels == ("0", "1", "2")
    assert guessed("visits", cells)[0].type is ColumnType.COUNT


@pytest.mark.parametrize("said", ["Total", "mean:", None])
def test_a_last_row_that_sums_up_the_others_is_told(said: str | None) -> None:
    names = [f"site {i % 5}" for i in range(40)]
    x = list(np.round(np.random.default_rng(0).normal(size=40), 2))
    table = pa.table({"site": [*names, said or "site 1"], "x": [*x, sum(x)]})
    notes = [note.replace('"', "") for note in guess_schema(table).notes]
    told = [note for note in notes if f"Row 41 seems to sum up the others ({said})" in note]
    assert len(told) == (said is not None)


def test_amounts_in_parentheses_are_below_zero() -> None:
    x = np.round(np.random.default_rng(1).normal(0.0, 2000.0, ROWS), 2)
    cells = [f"${one:,.2f}" if one >= 0 else f"(${-one:,.2f})" for one in x]
    column, reason = guessed("balance", cells)
    assert (column.type, column.unit, column.thousands) == (ColumnType.REAL, "$", ",")
    assert "some below zero" in reason
    encoded = encode(pa.table({"balance": cells}), Schema((column,))).columns[0]
    assert np.array_equal(encoded.x, x)


@pytest.mark.parametrize("scale", [2000.0, 20.0])
def test_numbers_in_parentheses_are_below_zero_where_they_are_many(scale: float) -> None:
    x = np.round(np.random.default_rng(1).normal(0.0, scale, ROWS), 2)
    cells = [f"{one:,.2f}" if one >= 0 else f"({-one:,.2f})" for one in x]
    cells[3] = "-"
    column, reason = guessed("balance", cells)
    assert (column.type, column.thousands) == (ColumnType.REAL, ",")
    assert "some below zero" in reason
    assert reason.endswith('"-" may be 0, as accounts write it: then write 0 into these cells')
    encoded = encode(pa.table({"balance": cells}), Schema((column,))).columns[0]
    assert np.array_equal(np.delete(encoded.x, 3), np.delete(x, 3))


def test_a_few_numbers_in_parentheses_are_remarks() -> None:
    x = np.round(np.random.default_rng(1).normal(50.0, 10.0, ROWS), 2)
    cells = [f"({one})" if i < 3 else f"{one}" for i, one in enumerate(x)]
    column, _ = guessed("lead", cells)
    assert column.type is ColumnType.POSITIVE
    assert [(code.text, code.impute) for code in column.missing] == [
        (cell, False) for cell in cells[:3]
    ]
