"""Time zones: what the clocks of one show."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from glfm_cli.arrays import Array

_DAY = 86_400  # seconds


def zone_of(kind: pa.DataType) -> str:
    """Return the time zone of an Arrow type, empty where it has none that Arrow knows."""
    zone = kind.tz if pa.types.is_timestamp(kind) else None
    return zone if zone and is_known(zone) else ""


def is_known(zone: str) -> bool:
    """Return whether Arrow knows a time zone: of most it needs the system's time zone data."""
    try:
        local_days(np.zeros(1), zone)
    except pa.ArrowInvalid:
        return False
    return True


def local_days(days: Array, zone: str) -> Array:
    """Return what clocks of a zone show, in days since 1970, at days (n,) of UTC; NaN stays.

    zone : a name such as Europe/Oslo or an offset such as +02:00; empty for UTC

    Raises pyarrow.ArrowInvalid: the zone is not known.
    """
    if zone in ("", "UTC"):
        return days
    known = ~np.isnan(days)
    seconds = days[known] * _DAY
    whole = np.rint(seconds)
    utc = pa.array(whole.astype(np.int64)).cast(pa.timestamp("s", zone))
    shown = pc.local_timestamp(utc).cast(pa.int64()).to_numpy()
    part = seconds - whole
    part[np.abs(part) < 1e-5] = 0.0  # a double of days has no more: midnight is of its own day
    found = days.copy()
    found[known] = (shown + part) / _DAY
    return found
