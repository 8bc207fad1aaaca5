"""Dates as they come round: the time of the year, the day of the week, the time of the day.

With `as: [days, month]` a column of dates has predictors beside its number of days, one or two for
each part, which follow from it.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from glfm_cli.arrays import Array

DAYS, MONTH, WEEKDAY, HOUR = PARTS = ("days", "month", "weekday", "hour")
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
FIRST_WEEKDAY = 3  # of 1970-01-01, counted from Monday
Wave = Literal["cosine", "sine"]
WAVES: tuple[Wave, ...] = ("cosine", "sine")


class CalendarPart(NamedTuple):
    """What a predictor tells of a date: its weekday, or a coordinate on the circle of a period.

    of : the column of dates
    """

    of: str
    part: str
    wave: Wave | None = None

    def values(self, days: Array) -> Array:
        """Return the predictor (n,) of dates (n,) in days since 1970-01-01, NaN where these are."""
        found = np.full(days.size, np.nan)
        known = ~np.isnan(days)
        at, whole = days[known], np.floor(days[known])
        if self.wave is None:
            found[known] = (whole + FIRST_WEEKDAY) % len(WEEKDAYS)
            return found
        turns = at - whole
        if self.part == MONTH:
            year = whole.astype("datetime64[D]").astype("datetime64[Y]")
            ends = year, year + np.timedelta64(1, "Y")
            first, last = (end.astype("datetime64[D]").astype(np.float64) for end in ends)
            turns = (at - first) / (last - first)
        found[known] = (np.cos if self.wave == "cosine" else np.sin)(2.0 * np.pi * turns)
        return found


def parts_of_date(name: str, parts: tuple[str, ...]) -> tuple[CalendarPart, ...]:
    """Return what stands beside the number of days of a column of dates."""
    waves: dict[str, tuple[Wave | None, ...]] = {MONTH: WAVES, WEEKDAY: (None,), HOUR: WAVES}
    return tuple(CalendarPart(name, part, w) for part in parts for w in waves.get(part, ()))
