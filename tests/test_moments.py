"""Dates and durations: read, written back in the column's own style, kept in the types file."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glfm_cli import impute
from glfm_cli.encoding import encode
from glfm_cli.encoding.moments import moment_steps, typed_steps
from glfm_cli.encoding.support import Interval
from glfm_cli.errors import GlfmError
from glfm_cli.schema import Schema
from glfm_cli.schema.moments import DAY, Moments

SHORT: dict[str, Any] = {"chains": 1, "warmup": 5, "draws": 6, "threads": 1, "seed": 1}
N = 60
DAYS = [dt.date(2020, 1, 1) + dt.timedelta(days=9 * i + i % 5) for i in range(N)]
MISSING = [i % 6 == 2 for i in range(N)]


def completed(cells: list[Any], said: Any, kind: pa.DataType | None = None) -> pa.Array:
    """Return a column of which every sixth cell was empty, beside one that grows with it."""
    column = pa.array([None if gone else c for c, gone in zip(cells, MISSING, strict=True)], kind)
    table = pa.table({"when": column, "y": np.arange(N) / 10 + np.arange(N) % 7 / 7})
    return impute(table, {"columns": {"when": said, "y": "real"}}, **SHORT).table["when"]


@given(st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31)))
@pytest.mark.parametrize(
    "form", [None, "%d.%m.%Y", "%d/%m/%Y %H:%M", "%Y%m%dT%H%M%S", "%d %b %Y", "excel", "unix"]
)
def test_reading_undoes_writing(form: str | None, moment: dt.datetime) -> None:
    if form == "excel":
        moment = max(moment, dt.datetime(1900, 3, 1))
    moments = Moments("date", form)
    style = moments.style([])
    k = (moment - dt.datetime(1970, 1, 1)) // dt.timedelta(seconds=DAY // style.steps)
    text = style.write(k)
    number = moments.number(text)
    assert number is not None
    assert abs(number * style.steps - k) < 1e-3


@given(st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31)))
def test_a_week_is_its_monday(day: dt.date) -> None:
    year, week, _ = day.isocalendar()
    moments = Moments("date", "%G-W%V")
    monday = day - dt.timedelta(days=day.weekday())
    assert moments.number(f"{year:04d}-W{week:02d}") == (monday - dt.date(1970, 1, 1)).days
    assert moments.style([]).write((day - dt.date(1970, 1, 1)).days) == f"{year:04d}-W{week:02d}"


@given(st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31)), st.sampled_from("q-Q"))
def test_a_quarter_is_its_first_day(day: dt.date, between: str) -> None:
    quarter = (day.month - 1) // 3 + 1
    moments, text = Moments("date", f"%Y{between}%q"), f"{day.year:04d}{between}{quarter}"
    first = dt.date(day.year, 3 * quarter - 2, 1)
    assert moments.number(text) == (first - dt.date(1970, 1, 1)).days
    assert moments.style([text]).write((day - dt.date(1970, 1, 1)).days) == text
    assert moments.number(f"{day.year:04d}{between}{quarter + 4}") is None


@given(st.integers(0, 10**7), st.booleans())
def test_durations_are_read_as_they_are_written(k: int, seconds: bool) -> None:
    moments = Moments("duration")
    style = moments.style(["1:00:00" if seconds else "1:00"])
    number = moments.number(style.write(k))
    assert number is not None
    assert round(number * style.steps) == k


@pytest.mark.parametrize(
    ("cells", "more"),
    [
        (["1h 45min", "2h", "50min"], {0: "0min", 125: "2h 5min"}),
        (["1h 45min", "2h 0min", "0h 5min"], {60: "1h 0min"}),
        (["2 hours 5 minutes", "1 hour 1 minute"], {59: "59 minutes", 120: "2 hours"}),
        (["1h05", "2h30"], {60: "1h00", 9: "0h09"}),
        (["2 Std. 5 Min.", "50 Min."], {60: "1 Std."}),
    ],
)
def test_durations_in_words_are_written_as_they_are_read(
    cells: list[str], more: dict[int, str]
) -> None:
    moments = Moments("duration")
    style = moments.style(cells)
    assert [style.write(round(moments.number(one) or 0)) for one in cells] == cells
    assert {k: style.write(k) for k in more} == more
    assert [moments.number(text) for text in more.values()] == list(more)
    assert moments.number("1h5") is moments.number("5") is moments.number("") is None


@pytest.mark.parametrize(
    ("form", "cell"),
    [
        (None, str),
        ("%d.%m.%Y", lambda day: day.strftime("%d.%m.%Y")),
        ("%d.%m.%Y", lambda day: f"{day.day}.{day.month}.{day.year}"),
        ("%b %Y", lambda day: day.strftime("%b %Y")),
        ("%G-W%V", lambda day: day.strftime("%G-W%V")),
        ("%G-W%V", lambda day: "{}-W{}".format(*day.isocalendar())),
        ("%G-W%V-%u", lambda day: day.strftime("%G-W%V-%u")),
        (None, lambda day: f"{day} 10:{day.day:02d}:00"),
        ("excel", lambda day: str((day - dt.date(1899, 12, 30)).days)),
        ("unix", lambda day: str((day - dt.date(1970, 1, 1)).days * 86_400)),
    ],
)
def test_texts_are_completed_in_their_own_style(form: str | None, cell: Any) -> None:
    cells = [cell(day) for day in DAYS]
    said = {"type": "date"} | ({} if form is None else {"format": form})
    done = completed(cells, said).to_pylist()
    moments = Moments("date", form)
    style = moments.style(cells)
    for old, new, gone in zip(cells, done, MISSING, strict=True):
        assert new == old or gone
        number = moments.number(new)
        assert number is not None
        assert style.write(round(number * style.steps)) == new
        assert 17_000 < number < 20_000


@pytest.mark.parametrize(
    ("kind", "said", "cells"),
    [
        (pa.date32(), "date", DAYS),
        (pa.date64(), "date", DAYS),
        (pa.timestamp("us"), "date", [dt.datetime(d.year, d.month, d.day, 12) for d in DAYS]),
        (pa.timestamp("s", "UTC"), "date", [dt.datetime(d.year, d.month, d.day) for d in DAYS]),
        (pa.duration("ms"), "duration", [dt.timedelta(minutes=5 + i) for i in range(N)]),
        (pa.time32("s"), "duration", [dt.time(i % 24, 30) for i in range(N)]),
        (
            pa.int32(),
            {"type": "date", "format": "%Y%m%d"},
            [int(d.strftime("%Y%m%d")) for d in DAYS],
        ),
        (
            pa.int64(),
            {"type": "date", "format": "excel"},
            [(d - dt.date(1899, 12, 30)).days for d in DAYS],
        ),
        (
            pa.float64(),
            {"type": "date", "format": "unix"},
            [float((d - dt.date(1970, 1, 1)).days * 86_400 + 30) for d in DAYS],
        ),
    ],
    ids=str,
)
def test_columns_of_arrow_keep_type_and_cells(kind: pa.DataType, said: Any, cells: Any) -> None:
    done = completed(cells, said, kind)
    assert (done.type, done.null_count) == (kind, 0)
    kept = pa.array([not gone for gone in MISSING])
    assert done.filter(kept).equals(pa.chunked_array([pa.array(cells, kind)]).filter(kept))


@pytest.mark.parametrize(
    "write",
    [
        lambda day: f"{day:%d%b%Y}".upper(),
        lambda day: f"{day:%d%b%Y}".lower(),
        lambda day: f"{day:%d%b%Y}",
        lambda day: f"{day.day}{day:%b%Y}".upper(),
    ],
    ids=["02NOV2020", "02nov2020", "02Nov2020", "2NOV2020"],
)
def test_months_keep_their_letters_and_days_their_zeros(tmp_path: Path, write: Any) -> None:
    cells = [write(day) for day in DAYS]
    every = [DAYS[0] + dt.timedelta(days=k) for k in range(400)]
    style = Moments("date", "%d%b%Y").style(cells)
    assert [style.write((day - dt.date(1970, 1, 1)).days) for day in every] == [*map(write, every)]
    table = pa.table({"a": cells, "x": np.arange(N) / 9})
    types = {"columns": {"a": {"type": "date", "format": "%d%b%Y"}, "x": "real"}}
    impute(table, types, save=tmp_path / "f.glfm", **SHORT)
    new = pa.table({"a": pa.nulls(2, pa.string()), "x": [1.0, 2.0]})
    for text in impute(new, fit=tmp_path / "f.glfm", threads=1).table["a"].to_pylist():
        assert text == write(dt.datetime.strptime(text, "%d%b%Y"))


def test_a_date_written_in_another_way_does_not_change_how_others_are() -> None:
    cells = ["02NOV2020", "2Nov2020", "11DEC2020", "05JAN2021"]
    assert Moments("date", "%d%b%Y").style(cells).write(18_631) == "04JAN2021"
    half = ["11Nov2020", "12DEC2020"]
    assert Moments("date", "%d%b%Y").style(half).write(18_631) == "04Jan2021"


def test_dates_beside_date_times_keep_their_zeros() -> None:
    cells = ["2023-02-09", "2023-02-07 14:30", "2023-11-19", "2023-03-01"]
    assert Moments("date").style(cells).write(19395) == "2023-02-07"


def test_new_rows_without_a_date_are_completed_in_the_form_of_the_fit(tmp_path: Path) -> None:
    table = pa.table({"a": [f"{d.day}.{d.month}.{d.year}" for d in DAYS], "x": np.arange(N) / 9})
    types = {"columns": {"a": {"type": "date", "format": "%d.%m.%Y"}, "x": "real"}}
    impute(table, types, save=tmp_path / "f.glfm", **SHORT)
    new = pa.table({"a": pa.nulls(2, pa.string()), "x": [1.0, 2.0]})
    for text in impute(new, fit=tmp_path / "f.glfm", threads=1).table["a"].to_pylist():
        day = dt.datetime.strptime(text, "%d.%m.%Y")
        assert text == f"{day.day}.{day.month}.{day.year}"


def test_times_with_offsets_are_in_utc_and_stay_as_they_are() -> None:
    cells = [f"2024-10-27 0{i % 4}:{i:02d}:00+0{1 + i % 2}:00" for i in range(N)]
    found = completed(cells, {"type": "date", "format": "%Y-%m-%d %H:%M:%S%z"}).to_pylist()
    assert [text for text, gone in zip(found, MISSING, strict=True) if not gone] == [
        text for text, gone in zip(cells, MISSING, strict=True) if not gone
    ]
    assert {text[-6:] for text, gone in zip(found, MISSING, strict=True) if gone} == {"+00:00"}
    moments = Moments("date", "%Y-%m-%d %H:%M:%S%z")
    autumn = [moments.number(f"2024-10-27 02:30:00+0{k}:00") for k in (2, 1)]
    assert autumn[0] is not None
    assert autumn[1] is not None
    assert (autumn[1] - autumn[0]) * 24 == pytest.approx(1.0)


def test_a_date_that_follows_another_by_days_is_completed_within_days(seed: int) -> None:
    rng, n = np.random.default_rng(seed), 240
    sown = np.datetime64("2022-05-01") + rng.choice([0, 365, 731], n) + rng.integers(0, 20, n)
    flowers = sown + 90 + rng.integers(0, 9, n)
    gone = np.arange(n) % 6 == 2
    cells = pa.array(flowers, mask=gone)
    table = pa.table({"sown": sown, "flowers": cells, "y": rng.normal(size=n)})
    types = {"columns": {"sown": "date", "flowers": "date", "y": "real"}}
    found = impute(table, types, chains=4, seed=1, threads=1).table["flowers"].to_numpy()
    assert np.abs((found - flowers)[gone].astype(float)).max() < 15.0  # one season is 20 days


def test_bounds_and_codes_are_dates_and_hold() -> None:
    said = {"type": "date", "bounds": ["2020-01-01", "2021-06-30"], "missing": ["1900-01-01"]}
    cells = [
        str(day) if not gone else "1900-01-01" for day, gone in zip(DAYS, MISSING, strict=True)
    ]
    done = completed(cells, said).to_pylist()
    assert min(done) >= "2020-01-01"
    assert max(done) <= "2021-06-30"


def test_the_types_file_says_it_again() -> None:
    said = {
        "columns": {
            "a": "date",
            "b": {"type": "date", "format": "%d.%m.%Y", "bounds": ["01.02.2020", None]},
            "c": {"type": "duration", "bounds": ["0:00", "24:00"]},
            "d": {"type": "date", "bounds": ["2020-01-01 12:00", None]},
        }
    }
    schema = Schema.from_dict(said)
    assert Schema.from_yaml(schema.to_yaml()) == schema
    assert 'b: {type: date, bounds: ["01.02.2020", null], format: "%d.%m.%Y"}' in schema.to_yaml()


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ({"type": "date", "format": "%Q"}, "`format`, found '%Q', expected iso, excel, unix"),
        ({"type": "date", "format": "day"}, "`format`, found 'day', expected iso, excel, unix"),
        ({"type": "date", "format": "%Y-W%V"}, "`format`, found '%Y-W%V', expected iso, excel"),
        ({"type": "date", "format": "%m-%q"}, "`format`, found '%m-%q', expected iso, excel"),
        ({"type": "date", "format": "%Y-%m-%q"}, "`format`, found '%Y-%m-%q', expected iso"),
        ({"type": "date", "format": "%G-%m"}, "`format`, found '%G-%m', expected iso, excel"),
        ({"type": "real", "format": "%d.%m.%Y"}, "`format` does not go with this type"),
        ({"type": "duration", "format": "iso"}, "`format` does not go with type duration"),
        ({"type": "date", "decimal": ","}, "`decimal` does not go with type date"),
        ({"type": "date", "transform": "log"}, "`transform` does not go with type date"),
        ({"type": "date", "bounds": ["5", None]}, "`bounds`, found '5', expected a date such as"),
        ({"type": "date", "levels": ["a"]}, "`levels` does not go with type real"),
    ],
)
def test_what_does_not_go_together_is_refused(said: dict[str, Any], error: str) -> None:
    with pytest.raises(GlfmError) as caught:
        Schema.from_dict({"columns": {"a": said}})
    assert error in str(caught.value)


@pytest.mark.parametrize(
    ("cells", "said", "error"),
    [
        (
            ["31.01.2024", "2024-02-01"],
            {"type": "date", "format": "%d.%m.%Y"},
            "row 2: found '2024",
        ),
        (
            ["2024-02-30", "2024-02-01"],
            "date",
            "row 1: found '2024-02-30', expected a date such as",
        ),
        (["2024-02-01T10:00Z", "2024-02-01"], "date", "row 1: found '2024-02-01T10:00Z'"),
        (["1:30", "1:75"], "duration", "row 2: found '1:75', expected a duration such as 1:30"),
        ([5, 6], "date", "the table holds values of type int64 there, expected dates"),
        ([dt.date(2024, 1, 1), None], "duration", "expected durations or times of day"),
    ],
)
def test_a_cell_that_is_no_date_is_named(cells: list[Any], said: Any, error: str) -> None:
    table = pa.table({"a": cells, "b": [1.0, 2.0]})
    with pytest.raises(GlfmError) as caught:
        impute(table, {"columns": {"a": said, "b": "real"}}, **SHORT)
    assert error in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "form", "first", "step"),
    [
        (pa.date32(), "date", dt.date(2024, 3, 1), dt.timedelta(days=1)),
        (pa.timestamp("s"), "date", dt.datetime(2024, 3, 1, 5), dt.timedelta(hours=1)),
        (pa.duration("ms"), "duration", dt.timedelta(minutes=5), dt.timedelta(minutes=1)),
    ],
)
def test_steps_of_typed_columns_are_their_moments(
    kind: pa.DataType, form: str, first: Any, step: dt.timedelta
) -> None:
    table = pa.table({"when": pa.array([first, first + 4 * step], kind)})
    encoded = encode(table, Schema.from_dict({"columns": {"when": form}})).columns[0]
    style: Any = encoded.style
    k = round(encoded.x[0] * style.steps)
    at = style.steps * step // dt.timedelta(days=1 if form == "date" else 0, minutes=form != "date")
    found = typed_steps(encoded, [k, k + at, k + 3 * at], kind).to_pylist()
    assert found == [first, first + step, first + 3 * step]
    # None beyond what the column can hold, which need not be a step.
    x = encoded.x[0] + np.array([0.2, 5.9]) / style.steps
    inside = Interval(encoded.x[0], encoded.x[0] + 5.5 / style.steps)
    assert moment_steps(encoded, x, inside) == [k, k + 5]
