"""Dates and durations: how they are written, and the number that each is.

A date is a number of days since 1970-01-01, with a fraction where it has a time of day; a duration,
or a time of day alone, is a number of minutes. Both are written back at the resolution that the
column has: days, minutes or seconds.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import product
from typing import Literal, get_args

Kind = Literal["date", "duration"]
Letters = Literal["as named", "upper", "lower"]
MOMENTS: dict[Kind, str] = {"date": "real", "duration": "positive"}  # the type of each kind

ISO, EXCEL, UNIX = "iso", "excel", "unix"
EPOCH = datetime(1970, 1, 1)
EXCEL_EPOCH = 25_569  # the serial number of 1970-01-01
DAY = 86_400  # seconds
FIRST, LAST = (float((one - EPOCH.date()).days) for one in (date.min, date.max))

_ISO = re.compile(r"\d{4}-\d\d-\d\d(?:(?P<between>[T ])\d\d:\d\d(?P<seconds>:\d\d)?)?")
_SERIAL = re.compile(r"\d{1,7}(?:\.\d+)?")
_SECONDS = re.compile(r"-?\d{1,12}(?:\.0*)?")
_DURATION = re.compile(r"(\d{1,6}):([0-5]\d)(?::([0-5]\d))?")
_SPELLED = re.compile(  # 1h 45min, 2 hours, 50 m, 1h05
    r"(?=\d+ ?[a-z])(?:(?P<hours>\d{1,6})(?P<h> ?(?:h|hrs?|hours?|std\.?)))?(?P<between> ?)"
    r"(?:(?P<minutes>\d{1,6})(?P<m> ?(?:m|mins?\.?|minutes?))|(?P<bare>[0-5]\d))?",
    re.IGNORECASE,
)
_PADDED = {"%d": "day", "%m": "month", "%H": "hour"}
_NAMED = re.compile("%[aAbBp]")
_FINER = (("%S", DAY), ("%M", 1440), ("%H", 24), ("%I", 24))  # steps a day, by the directive
DIRECTIVES = frozenset("aAbBdmyYHIpMSj%GVuzq")
_WITHIN_WEEK = re.compile("%[aAu]")


@dataclass(frozen=True)
class Moments:
    """How a types file says that a column writes dates or durations.

    format : of dates, one of strptime's, with %q for the quarter, `iso`, `excel` (a serial number)
        or `unix` (seconds since 1970); None is ISO
    """

    kind: Kind
    format: str | None = None

    @property
    def in_words(self) -> str:
        """What a cell must be, for messages."""
        if self.kind == "duration":
            return "a duration such as 1:30 (hours:minutes) or 1:30:00"
        if self.format in (None, ISO):
            return "a date such as 2024-01-31 or 2024-01-31 12:30"
        numbers = {EXCEL: "a serial number", UNIX: "whole seconds since 1970"}
        return f"a date as {numbers.get(str(self.format), self.format)}"

    def number(self, text: str) -> float | None:
        """Return the number that a cell is, None if it is none of this form."""
        if self.kind == "duration":
            if found := _DURATION.fullmatch(text):
                return int(found[1]) * 60.0 + int(found[2]) + int(found[3] or 0) / 60.0
            found = _SPELLED.fullmatch(text)
            return found and float(sum(_spelled(found)))
        if self.format == EXCEL:
            return float(text) - EXCEL_EPOCH if _SERIAL.fullmatch(text) else None
        if self.format == UNIX:
            days = float(text) / DAY if _SECONDS.fullmatch(text) else FIRST - 1.0
            return days if FIRST <= days <= LAST else None
        try:
            if self.format not in (None, ISO):
                form = str(self.format)
                if "%V" in form and not _WITHIN_WEEK.search(form):  # a week is its Monday
                    form, text = f"{form} %u", f"{text} 1"
                if "%q" in form:
                    form, text = _by_month(form, text)
                return _days(datetime.strptime(text, form))
            return _days(datetime.fromisoformat(text)) if _ISO.fullmatch(text) else None
        except (ValueError, OverflowError):
            return None

    def text(self, number: float) -> str:
        """Return a number as such a cell, a date with its time only if it has one."""
        style = self.style([])
        if style.form == "%Y-%m-%d" and not float(number).is_integer():
            style = MomentStyle("%Y-%m-%d %H:%M:%S", DAY)
        return style.write(round(number * style.steps))

    def style(self, texts: Iterable[str]) -> MomentStyle:
        """Return how the cells of a column, each of this form, are written."""
        cells = list(texts)
        if self.kind == "duration":
            found = [match for match in map(_DURATION.fullmatch, cells) if match]
            if len(found) < len(cells):
                return MomentStyle(_spelling(cells), steps=1, width=1)
            seconds = any(match[3] for match in found)
            zeros = any(match[1].startswith("0") and len(match[1]) > 1 for match in found)
            width = min(len(match[1]) for match in found) if zeros else 1
            return MomentStyle("duration", steps=60 if seconds else 1, width=width)
        if self.format == EXCEL:
            whole = all(float(text).is_integer() for text in cells)
            return MomentStyle(EXCEL, steps=1 if whole else DAY)
        if self.format == UNIX:
            return MomentStyle(UNIX, steps=DAY)
        form = self.format
        if form in (None, ISO):
            forms = Counter(_iso_format(text) for text in cells)
            form = forms.most_common(1)[0][0] if forms else "%Y-%m-%d"
            return MomentStyle(form, steps_of(form))  # always with zeros
        assert form is not None
        return self._style_of(form, cells)

    def _style_of(self, form: str, cells: list[str]) -> MomentStyle:
        """Return the zeros and letters of a format in which most cells are written.

        At a tie the first of: with zeros, without; 02Nov2020, 02NOV2020, 02nov2020.
        """
        steps = steps_of(form)
        numbers = [round((self.number(cell) or 0) * steps) for cell in cells]
        best, most = MomentStyle(form, steps), -1
        for width, letters in product((2, 1), get_args(Letters)):
            style = MomentStyle(form, steps, width, letters)
            same = sum(style.write(k) == cell for k, cell in zip(numbers, cells, strict=True))
            if same > most:
                best, most = style, same
            if most == len(cells):
                break
        return best


@dataclass(frozen=True)
class MomentStyle:
    """How the dates or durations of a column are written.

    form : a format of strptime, `excel`, `unix`, "duration", or how hours and minutes are spelled:
        both, hours alone and minutes alone, such as %hh %mmin|%hh|%mmin
    steps : how many steps of its resolution a day, or of a duration a minute, has
    width : digits that days, weeks, months and hours have at least
    letters : of names of months and days, and of AM and PM
    zone : whose clock the parts of a date are read from, where the column has a time zone
    """

    form: str
    steps: int
    width: int = 2
    letters: Letters = "as named"
    zone: str = ""

    def write(self, k: int) -> str:
        """Return the cell of a date or duration that is k steps."""
        if "%h" in self.form:
            return _spell(self.form, *divmod(k, 60))
        if self.form == "duration":
            minutes, seconds = divmod(k, self.steps)
            text = f"{minutes // 60:0{self.width}d}:{minutes % 60:02d}"
            return f"{text}:{seconds:02d}" if self.steps > 1 else text
        if self.form == EXCEL:
            serial = EXCEL_EPOCH + k / self.steps
            return str(round(serial)) if self.steps == 1 else f"{serial:.5f}"
        if self.form == UNIX:
            return str(k)
        moment = EPOCH + timedelta(seconds=k * (DAY // self.steps))
        form = self.form.replace("%Y", f"{moment.year:04d}").replace("%z", "+00:00")
        of_week = moment.isocalendar()
        form = form.replace("%G", f"{of_week.year:04d}")
        form = form.replace("%q", str((moment.month + 2) // 3))
        if self.width == 1:
            form = form.replace("%V", str(of_week.week))
            for directive, name in _PADDED.items():
                form = form.replace(directive, str(getattr(moment, name)))
        if self.letters != "as named":
            form = _NAMED.sub(lambda one: self._lettered(moment.strftime(one[0])), form)
        return moment.strftime(form)

    def _lettered(self, name: str) -> str:
        return name.upper() if self.letters == "upper" else name.lower()


def steps_of(form: str) -> int:
    """Return how many steps of a format's resolution a day has."""
    return next((steps for directive, steps in _FINER if directive in form), 1)


def _spelled(found: re.Match[str]) -> tuple[int, int]:
    """Return the minutes of the hours, and the others, of a duration in words."""
    return 60 * int(found["hours"] or 0), int(found["minutes"] or found["bare"] or 0)


def _spelling(cells: Iterable[str]) -> str:
    """Return how most of the durations that are in words spell hours and minutes."""
    found = [one for one in map(_SPELLED.fullmatch, cells) if one]
    padded = any(re.match("0.", one["minutes"] or one["bare"] or "") for one in found)
    m = "%M" if padded else "%m"
    both = [one for one in found if one["h"] and (one["minutes"] or one["bare"])]
    kinds = Counter((f"%h{one['h']}", one["between"], f"{m}{one['m'] or ''}") for one in both)
    hours = Counter(f"%h{one['h']}" for one in found if one not in both and one["h"])
    minutes = Counter(f"{m}{one['m']}" for one in found if one not in both and not one["h"])
    alone = [count.most_common(1)[0][0] if count else "" for count in (hours, minutes)]
    of = kinds.most_common(1)[0][0] if kinds else (alone[0] or "%hh", " ", alone[1] or f"{m}min")
    whole = "".join(of)
    zeros = [of[2] == m or any(_spelled(one)[k] == 0 for one in both) for k in (1, 0)]
    ends = [whole if zero else of[2 * k] for k, zero in enumerate(zeros)]  # 2h 0min, or 2h
    return "|".join((whole, alone[0] or ends[0], alone[1] or ends[1]))


def _spell(form: str, hours: int, minutes: int) -> str:
    """Return hours and minutes as `form` spells them, the unit of a single one without its s."""
    whole, no_minutes, no_hours = form.split("|")
    text = whole if hours and minutes else no_minutes if hours else no_hours
    for letter, number in (("h", hours), ("m", minutes)):
        if number == 1:
            text = re.sub(rf"(%{letter} ?[a-z]{{2,}})s\b", r"\1", text, flags=re.IGNORECASE)
        text = text.replace(f"%{letter}", str(number))
    return text.replace("%M", f"{minutes:02d}")


def _by_month(form: str, text: str) -> tuple[str, str]:
    """Return a format with a quarter, and its cell, by the first month of the quarter.

    Raises ValueError: the cell is none of this format.
    """
    pattern = re.escape(form).replace("%Y", r"\d{4}").replace("%y", r"\d\d")
    found = re.fullmatch(pattern.replace("%q", "([1-4])"), text)
    if found is None:
        raise ValueError
    month = f"{3 * int(found[1]) - 2:02d}"
    return form.replace("%q", "%m"), text[: found.start(1)] + month + text[found.end(1) :]


def _iso_format(text: str) -> str:
    found = _ISO.fullmatch(text)
    if found is None or not found["between"]:
        return "%Y-%m-%d"
    return f"%Y-%m-%d{found['between']}%H:%M" + (":%S" if found["seconds"] else "")


def _days(moment: datetime) -> float:
    """Return the days since 1970-01-01, of a time with an offset those in UTC."""
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    return (moment - EPOCH) / timedelta(days=1)
