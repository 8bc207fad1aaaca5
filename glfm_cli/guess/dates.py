"""Guess how a column writes dates, times of day or durations."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import glfm_cli.guess.names as names
from glfm_cli.arrays import Array, is_clock
from glfm_cli.guess.profile import Kind, Profile
from glfm_cli.guess.verdict import Verdict, ignore
from glfm_cli.io.numerals import MINUS
from glfm_cli.schema import Column, ColumnType
from glfm_cli.schema.calendar import DAYS, HOUR, MONTH, WEEKDAY
from glfm_cli.schema.moments import EPOCH, EXCEL, ISO, UNIX, Moments

_MONTH = "(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_TIME = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?\s*(?:[ap]\.?m\.?)?\s*(?:z|utc|[+-]\d{2}:?\d{2})?"
_DAY = (
    r"(?:\d{4}[-/.]\d{1,2}(?:[-/.]\d{1,2})?"
    r"|\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d{2})|(?:0?[1-9]|1[0-2])[-/](?:19|20)\d{2}"
    rf"|\d{{1,2}}[ -]?{_MONTH}[ ,.-]*(?:\d{{4}}|\d{{2}})"
    rf"|{_MONTH}\.? ?\d{{1,2}},? +\d{{4}}"
    rf"|{_MONTH}[ .-]+\d{{4}}"
    r"|\d{4}年\d{1,2}月\d{1,2}日"
    r"|\d{4}-?[mw]\d{1,2}"
    r"|\d{4}[-/ ]?q\d|q\d[-/ ]?\d{4})"
)
_BASIC = r"\d{8}[t ](?:\d\d:\d\d(?::\d\d)?|\d{4}(?:\d\d)?)\s?(?:z|utc|[+-]\d{2}:?\d{2})?"
DATE = rf"(?i)^\s*(?:{_DAY}(?:[t ]+{_TIME})?|{_TIME}|{_BASIC})\s*$"
_ZONED = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d|\d{8})(?P<between>[ T])(?P<time>\d\d:\d\d(?::\d\d)?|\d{4}(?:\d\d)?)"
    r"(?P<end>(?:[.,]\d+)?\s?(?:Z|UTC|[+-]\d\d:?\d\d)?)"
)
_SIGNED = rf"^\s*[+{MINUS}]?\d+:\d\d(?::\d\d)?\s*$"
_IN_WORDS = (  # 45 min 10 s, PT2H20M
    r"(?i)^\s*(?:\d+ ?(?:m|mins?|minutes?) ?\d+ ?(?:s|secs?|seconds?)"
    r"|-?P(?:\d+D)?T(?:\d+H)?(?:\d+M)?(?:[\d.]+S)?)\s*$"
)
_IN_YEARS = (  # 2y 3m, 1 year 6 months, 18 months
    r"(?i)^\s*(?:\d+ ?(?:y|yrs?|years?|jahre?|ans?|años?)\.?)?[ ,]*"
    r"(?:\d+ ?(?:m|mos?|mths?|months?|monate?|mois|mes(?:es)?)\.?)?\s*$"
)
_CLOCKS = {4: "%H%M", 5: "%H:%M", 6: "%H%M%S", 8: "%H:%M:%S"}  # by the length of a time

# The first of those that read every cell is taken; day first is read before month first.
_DAYS = (
    "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%y",
    "%d/%m/%y", "%m/%d/%y", "%d-%m-%y", "%m-%d-%y", "%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%d-%b-%y",
    "%d%b%Y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y", "%B %d %Y", "%b %Y", "%B %Y", "%b-%Y", "%Y-%m",
    "%Ym%m", "%Y/%m", "%m/%Y", "%m-%Y", "%Y%m%d", "%Y-%m-%d", "%Y年%m月%d日",
)  # fmt: skip
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p", "T%H:%M:%S", "T%H:%M")
_WEEKS = ("%G-W%V", "%GW%V")  # with a capital W: 2019w5 of Stata is no week of ISO 8601
_QUARTERS = tuple(
    form.format(between, letter)
    for form in ("%Y{0}{1}%q", "{1}%q{0}%Y")
    for between in ("", "-", " ", "/")
    for letter in "qQ"
)
_FORMATS = (ISO, *(day + time for time in _TIMES for day in _DAYS))
SERIALS = (10_000, 80_000)  # of Excel, from 1927 to 2119
DIGITS = {"%Y%m%d": 1, "%Y%m%d%H": 10**2, "%Y%m%d%H%M": 10**4, "%Y%m%d%H%M%S": 10**6}
SECONDS = (6.3e8, 2.3e9)  # since 1970, from 1989 to 2042
BELOW_ZERO = "durations, some below zero; write them as numbers"
LEAST_DURATIONS = 10  # different ones, beside which none is a level
LEAST_HOURS = 4  # times of the day, from which rows may follow a daily cycle
LEAST_CYCLES = 4  # days or weeks that rows span, from which they may follow such a cycle
BESIDE = "`role: time` where values before and after a gap tell of it"


def judge_dates(column: Profile) -> Verdict | None:
    """Return the guess for a column of dates or times; None where it holds something else."""
    if column.kind is Kind.DATE:
        return _date(column, None, "dates")
    if column.kind is Kind.DURATION:
        if column.matches("^-").any():
            return ignore(column.name, BELOW_ZERO)
        return _duration(column)
    x, whole = column.numbers, column.is_number.all() and column.all_whole
    in_steps = column.n_observed == column.n_rows and is_clock(np.repeat(x, column.counts))
    if in_steps and names.is_date(column.name) and SERIALS[0] <= x.min() and x.max() <= SERIALS[1]:
        return _date(column, EXCEL, "serial numbers of dates, by the name and their size")
    if whole and column.n_distinct >= 3:
        if in_steps and SECONDS[0] <= x.min() and x.max() <= SECONDS[1]:
            return _date(column, UNIX, "seconds since 1970, by their size and steps")
        for digits, unit in DIGITS.items():
            within = 18000101 * unit <= x.min() and x.max() < 21001232 * unit
            if within and _reads(digits, column):
                return _date(column, digits, "dates as numbers")
        if names.is_date(column.name) and x.min() >= SERIALS[0] and x.max() <= SERIALS[1]:
            return _date(column, EXCEL, "serial numbers of dates, by the name and their size")
        return None
    if column.kind is Kind.TEXT and (why := _durations_unread(column)):
        return ignore(column.name, why)
    if column.kind is not Kind.TEXT:
        return None
    if _spells_durations(column):
        return _duration(column)
    if not column.matches(DATE).all():
        return None
    texts = column.words()
    durations = Moments("duration")
    if all(durations.number(text) is not None for text in texts):
        return _duration(column)
    weeks = _WEEKS if column.matches("W").all() else ()
    quarters = _QUARTERS if column.matches("(?i)q").all() else ()
    forms = (*_FORMATS, *_with_zone(texts), *weeks, *quarters)
    form = next((one for one in forms if _reads(one, column)), None)
    if form is None:
        return ignore(column.name, _several(column))
    other = form.replace("%d", "%x").replace("%m", "%d").replace("%x", "%m")
    swapped = form.startswith("%d") and "%m" in form and _reads(other, column)
    note = "; the day may be the month as well" if swapped else ""
    if form.endswith("%z"):
        note = " with several offsets, as in UTC"
    return _date(column, None if form == ISO else form, f"dates{note}")


def _spells_durations(column: Profile) -> bool:
    """Return whether all texts are durations such as 1h 45min, some of hours and minutes."""
    if column.n_distinct < LEAST_DURATIONS or not column.matches(r"(?i)\d ?[hs].*\d").any():
        return False
    return all(Moments("duration").number(text) is not None for text in column.words())


def _durations_unread(column: Profile) -> str:
    """Return what to do with durations in a form that is not read: with a sign, or in words."""
    if column.n_distinct < LEAST_DURATIONS:
        return ""
    if column.matches(_SIGNED).all() and column.matches(f"^[{MINUS}]").any():
        return BELOW_ZERO
    if column.matches(_IN_WORDS).all():
        return f"durations, such as {column.words()[0].strip()}; write them as 1:30, or as numbers"
    both = column.matches(r"\d\D+\d")
    if both.any() and column.matches(_IN_YEARS).all():
        return f"durations, such as {column.keep(both).words()[0].strip()}; write them in months"
    return ""


def _with_zone(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the format of times behind which an offset from UTC stands, such as +02:00 or Z.

    Where it is always the same it is no part of the time; of several it is.
    """
    found = [_ZONED.fullmatch(text.strip()) for text in texts]
    known = [one for one in found if one]
    days = {"%Y-%m-%d" if "-" in one["day"] else "%Y%m%d" for one in known}
    times = {_CLOCKS[len(one["time"])] for one in known}
    between, ends = ({one[part] for one in known} for part in ("between", "end"))
    if len(known) < len(found) or max(map(len, (days, between, times))) > 1:
        return ()
    end = ends.pop() if len(ends) == 1 else "%z"
    return (days.pop() + between.pop() + times.pop() + end,)


def _several(column: Profile) -> str:
    """Return what is to be said of dates that no one format reads."""
    found, left = [], np.ones(column.n_distinct, dtype=bool)
    texts = column.words()
    for _ in range(3):
        read = {one: _read_by(one, texts) & left for one in _FORMATS}
        most = max(read, key=lambda one: int(column.counts[read[one]].sum()))
        if read[most].any():
            cells = int(column.counts[read[most]].sum())
            found.append(f"{cells} like {texts[int(np.argmax(read[most]))].strip()}")
            left &= ~read[most]
    if len({one["end"] for one in map(_ZONED.fullmatch, texts) if one}) > 1:
        return "times with several offsets from UTC; write them all in one zone to model them"
    if len(found) < 2 or left.any():
        return "dates or times in a form that is not read; see type date"
    return f"dates in several forms, {', '.join(found)}; write them alike to model them"


def _read_by(form: str, texts: Sequence[str]) -> NDArray[np.bool_]:
    moments = Moments("date", form)
    return np.array([moments.number(text) is not None for text in texts], dtype=bool)


def _reads(form: str, column: Profile) -> bool:
    """Return whether a format reads every text of a column."""
    moments, texts = Moments("date", form), column.words()
    return all(moments.number(text) is not None for text in texts)


def _date(column: Profile, form: str | None, what: str) -> Verdict:
    made = Column(column.name, type=ColumnType.REAL, moment="date", format=form)
    days = _days(column, form)
    daily = days is not None and _is_daily(days)
    if days is None or not _in_steps(column, days):
        more = [MONTH, WEEKDAY, HOUR] if daily else [MONTH, WEEKDAY]
        seasons = f"`as: [{', '.join((DAYS, *more))}]` for seasons, too"
        return Verdict(made, f"{what}, seen as days; {seasons}")
    if not daily:
        seasons = f"`as: [{DAYS}, {MONTH}, {WEEKDAY}]` for seasons, too"
        return Verdict(made, f"{what}, seen as days; {BESIDE}; {seasons}")
    weekly = np.ptp(days) >= 7.0 * LEAST_CYCLES
    made = replace(made, seen_as=(DAYS, WEEKDAY, HOUR) if weekly else (DAYS, HOUR))
    return Verdict(made, f"{what}, seen as {', '.join(made.seen_as)}; {BESIDE}")


def in_steps(column: Profile, form: str | None) -> bool:
    """Return whether each row has a date, hardly ever the same, mostly in equal steps."""
    days = _days(column, form)
    return days is not None and _in_steps(column, days)


def _in_steps(column: Profile, days: Array) -> bool:
    if column.n_observed < column.n_rows or column.n_distinct < 0.9 * column.n_rows:
        return False
    return is_clock(days)


def _is_daily(days: Array) -> bool:
    """Return whether times have many hours of several days."""
    hours = np.unique(np.round(days % 1.0, 6))
    return len(hours) >= LEAST_HOURS and bool(np.ptp(days) >= LEAST_CYCLES)


def _days(column: Profile, form: str | None) -> Array | None:
    """Return the distinct dates (n_distinct,) in days since 1970, None where one is not read."""
    moments = Moments("date", form)
    typed = column.kind is Kind.DATE
    days = [_day_of(text) if typed else moments.number(text) for text in column.words()]
    return None if None in days else np.array(days, dtype=np.float64)


def days_in(column: pa.ChunkedArray, form: str | None) -> Array:
    """Return the cells (n,) of a column of dates in days since 1970, NaN where one has none.

    form : how they are written, None of ISO 8601 and of Arrow's own types
    """
    typed = pa.types.is_temporal(column.type)
    return _read_all(column, _day_of if typed else Moments("date", form).number)


def minutes_in(column: pa.ChunkedArray) -> Array:
    """Return the cells (n,) of a column of times of day or durations in minutes, NaN of none."""
    if pa.types.is_duration(column.type):  # whose texts have no units
        return np.full(len(column), math.nan)
    return _read_all(column, Moments("duration").number)


def _read_all(column: pa.ChunkedArray, number: Callable[[str], float | None]) -> Array:
    read = (number(text or "") for text in column.cast(pa.string()).to_pylist())
    return np.array([math.nan if one is None else one for one in read])


def _day_of(text: str) -> float | None:
    """Return the days since 1970 of Arrow's text of a date or time; in a time zone, those in UTC.

    It has the fractions of a second that the type has, whatever the values are.
    """
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            moment = moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None
    return (moment - EPOCH) / timedelta(days=1)


def _duration(column: Profile) -> Verdict:
    made = Column(column.name, type=ColumnType.POSITIVE, moment="duration")
    return Verdict(made, "times of day or durations, seen as a number of minutes")
