"""Dates as they come round: season, weekday and hour stand beside the number of days."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glfm_cli import impute, load_fit
from glfm_cli.arrays import Array
from glfm_cli.completion import prepare
from glfm_cli.completion.new_rows import Fitted
from glfm_cli.encoding import encode, with_known
from glfm_cli.errors import GlfmError, StoreError
from glfm_cli.inference.hidden_cells import without_cells
from glfm_cli.inference.sampling import sample
from glfm_cli.inference.scoring import forecasts
from glfm_cli.io.zones import local_days
from glfm_cli.schema import Schema
from glfm_cli.schema.calendar import WEEKDAYS, CalendarPart

EPOCH = dt.datetime(1970, 1, 1)
N = 240
TYPES: dict[str, Any] = {"day": {"type": "date", "as": ["days", "month", "weekday"]}, "y": "real"}
SHORT: dict[str, Any] = {"model": "bsvd", "chains": 2, "warmup": 20, "draws": 10, "seed": 1}


def seasons() -> tuple[pa.Table, Array]:
    """Return a table whose numbers go by season and weekday, an eighth missing, and the truth."""
    rng = np.random.default_rng(0)
    days = [dt.date(2018, 1, 1) + dt.timedelta(days=int(k)) for k in rng.integers(0, 2000, N)]
    angle = 2 * np.pi * np.array([day.timetuple().tm_yday for day in days]) / 365.25
    y = 3 * np.cos(angle) + 2 * np.array([day.weekday() == 6 for day in days])
    y = y + 0.3 * rng.normal(size=N)
    gone = rng.random((2, N)) < [[0.05], [0.2]]
    return pa.table({"day": pa.array(days, mask=gone[0]), "y": pa.array(y, mask=gone[1])}), y


@given(st.datetimes(dt.datetime(1600, 1, 1), dt.datetime(2400, 12, 31)))
def test_parts_are_those_of_the_calendar(moment: dt.datetime) -> None:
    moment = moment.replace(microsecond=0)
    days = np.array([(moment - EPOCH) / dt.timedelta(days=1), np.nan])
    first = dt.datetime(moment.year, 1, 1)
    of_year = (moment - first) / (dt.datetime(moment.year + 1, 1, 1) - first)
    of_day = (moment.hour * 3600 + moment.minute * 60 + moment.second) / 86_400
    weekday = CalendarPart("day", "weekday").values(days)
    assert WEEKDAYS[int(weekday[0])] == moment.strftime("%A")
    for part, turns in (("month", of_year), ("hour", of_day)):
        cosine = CalendarPart("day", part, "cosine").values(days)
        sine = CalendarPart("day", part, "sine").values(days)
        assert cosine[0] == pytest.approx(np.cos(2 * np.pi * turns), abs=1e-6)
        assert sine[0] == pytest.approx(np.sin(2 * np.pi * turns), abs=1e-6)
        assert np.isnan([weekday[1], cosine[1], sine[1]]).all()


def test_what_comes_round_tells_of_other_columns() -> None:
    table, y = seasons()
    gone = np.isnan(table["y"].to_numpy())
    error = {}
    for said in (TYPES, TYPES | {"day": "date"}):
        done = impute(table, {"columns": said}, **SHORT).table
        assert done.column_names == ["day", "y"]
        assert done["day"].null_count == 0
        error[len(str(said))] = np.sqrt(np.mean((done["y"].to_numpy() - y)[gone] ** 2))
    seen, plain = error.values()
    assert seen < 0.45 * plain


def test_a_fit_completes_rows_that_it_knows_and_others(tmp_path: Path) -> None:
    table, y = seasons()
    done = impute(table, {"columns": TYPES}, save=tmp_path / "f.glfm", **SHORT).table
    again = impute(table, fit=tmp_path / "f.glfm", seed=1).table
    assert again.equals(done)
    some = table.slice(0, 40).select(["y", "day"])
    new = impute(some, fit=load_fit(tmp_path / "f.glfm"), seed=1).table
    assert new.column_names == ["y", "day"]
    assert new["y"].null_count == new["day"].null_count == 0
    gone = some["y"].is_null().to_numpy()
    assert np.sqrt(np.mean((new["y"].to_numpy() - y[:40])[gone] ** 2)) < 0.8


def test_what_hides_a_date_hides_what_stands_beside_it() -> None:
    table, _ = seasons()
    data = encode(table, Schema.from_dict({"columns": TYPES}))
    assert data.beside == ((2, 0), (3, 0), (4, 0))
    day = data.columns[0]
    hidden = pa.table({"day": pa.nulls(N, pa.date32()), "y": table["y"]})
    with pytest.raises(GlfmError, match="no cell of it is observed"):
        encode(hidden, Schema.from_dict({"columns": TYPES}))
    object.__setattr__(day, "observed", day.observed & (np.arange(N) > 100))
    assert not np.any([part.observed[:101] for part in with_known(data).columns[2:]])


def test_hidden_dates_are_not_told_by_their_parts() -> None:
    problem, _, plan = prepare(seasons()[0], {"columns": TYPES}, **SHORT)
    posterior = sample(problem, plan).posterior
    folded, hidden = without_cells(posterior, problem)
    assert hidden.keys() == {0, 1}
    xs = [x.copy() for x in problem.xs]
    for part in (2, 3, 4):
        xs[part][hidden[0][0]] = 0.0
    other, _ = without_cells(posterior, replace(problem, xs=tuple(xs)))
    for d, found in forecasts(folded, hidden).items():
        np.testing.assert_array_equal(found, forecasts(other, hidden)[d])


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ({"type": "date", "as": ["month"]}, "expected days and other parts"),
        ({"type": "date", "as": ["days", "days"]}, "each once"),
        ({"type": "date", "as": ["days", "moon"]}, "found 'moon'"),
        ({"type": "real", "as": ["days"]}, "expected type date"),
        ({"type": "date", "as": ["days", "hour"]}, "no date has a time of the day"),
    ],
)
def test_what_cannot_be_seen_is_refused(said: Any, error: str) -> None:
    with pytest.raises(GlfmError, match=error):
        impute(seasons()[0], {"columns": {"day": said, "y": "real"}}, **SHORT)


def test_the_types_file_says_it_again() -> None:
    schema = Schema.from_dict({"columns": TYPES})
    assert Schema.from_yaml(schema.to_yaml()) == schema


@pytest.mark.parametrize(
    ("kind", "form", "step"),
    [
        (pa.date32(), "%Y-%m-%d", dt.timedelta(days=1)),
        (pa.timestamp("us"), "%Y-%m-%d %H:%M", dt.timedelta(minutes=7)),
        (pa.timestamp("s"), "%Y-%m-%d %H:%M:%S", dt.timedelta(seconds=7)),
    ],
)
def test_intervals_of_typed_dates_are_dates(kind: pa.DataType, form: str, step: Any) -> None:
    days = [dt.datetime(2024, 1, 1) + i * step for i in range(40)]
    cells = [None if i % 9 == 0 else day for i, day in enumerate(days)]
    column = pa.array(cells, pa.timestamp("us")).cast(kind)
    table = pa.table({"x": np.arange(40.0), "d": column})
    types = {"columns": {"x": "real", "d": "date"}}
    done = impute(table, types, chains=1, warmup=5, draws=4, threads=1).cells()
    for name in ("lower", "upper"):
        for text in done[name].to_pylist():
            assert abs(dt.datetime.strptime(text, form) - days[20]) < 100 * step


def test_parts_of_zoned_times_are_those_of_its_clocks(tmp_path: Path) -> None:
    """The numbers of days, and what completes a date, stay those of UTC."""
    hours = np.datetime64("2024-03-29T21:30", "s") + np.arange(0, 96, 3) * np.timedelta64(1, "h")
    when = pa.array(hours, mask=np.arange(32) == 5)
    zoned = when.cast(pa.timestamp("s", "Europe/Oslo"))
    y = pa.array(np.arange(32.0))
    types = {"when": {"type": "date", "as": ["days", "weekday", "hour"]}, "y": "real"}
    schema = Schema.from_dict({"columns": types})
    data = encode(pa.table({"when": zoned, "y": y}), schema)
    clock = encode(pa.table({"when": pc.local_timestamp(zoned), "y": y}), schema)
    for d in (2, 3, 4):
        np.testing.assert_array_equal(data.columns[d].x, clock.columns[d].x)
    utc = encode(pa.table({"when": when, "y": y}), schema)
    np.testing.assert_array_equal(data.columns[0].x, utc.columns[0].x)
    done = impute(pa.table({"when": zoned, "y": y}), schema, save=tmp_path / "f.glfm", **SHORT)
    assert done.table["when"].type == zoned.type
    assert done.table["when"].null_count == 0
    fitted = Fitted.of_fit(load_fit(tmp_path / "f.glfm"))
    elsewhere = zoned.cast(pa.timestamp("s", "Asia/Tokyo"))
    same = fitted.encode(pa.table({"when": elsewhere, "y": y}))
    np.testing.assert_array_equal(same.columns[2].x, data.columns[2].x)


def test_a_fit_of_a_zone_that_this_machine_does_not_know_says_so(tmp_path: Path) -> None:
    hours = np.datetime64("2024-03-29T21:30", "s") + np.arange(30) * np.timedelta64(1, "h")
    zoned = pa.array(hours).cast(pa.timestamp("s", "Europe/Oslo"))
    table = pa.table({"when": zoned, "y": pa.array(np.arange(30.0), mask=np.arange(30) == 5)})
    impute(table, {"columns": {"when": "date", "y": "real"}}, save=tmp_path / "f.glfm", **SHORT)
    run = tmp_path / "f.glfm" / "run.json"
    run.write_text(run.read_text().replace("Europe/Oslo", "Europe/Nowhere"))
    with pytest.raises(StoreError, match="column 'when': the time zone 'Europe/Nowhere' is not"):
        load_fit(tmp_path / "f.glfm")


@pytest.mark.parametrize("zone", ["Europe/Oslo", "America/New_York", "-05:30"])
def test_midnight_by_the_clocks_of_a_zone_is_of_its_own_day(zone: str) -> None:
    nights = pa.array(np.arange(18_000, 20_000) * 86_400).cast(pa.timestamp("s"))
    utc = pc.assume_timezone(nights, zone) if "/" in zone else None
    moments = np.arange(18_000, 20_000) * 86_400 + 5.5 * 3600 if utc is None else utc.cast("int64")
    days = np.asarray(moments, dtype=np.float64) / 86_400
    np.testing.assert_array_equal(local_days(days, zone), np.arange(18_000.0, 20_000.0))
    late = days + 0.3 / 86_400  # parts of a second stay
    np.testing.assert_allclose(local_days(late, zone) % 1.0, 0.3 / 86_400, rtol=1e-4)
