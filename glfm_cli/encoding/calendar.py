"""The predictors that stand beside columns of dates, which follow from these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.encoding.data import EncodedColumn
from glfm_cli.errors import SchemaError
from glfm_cli.io.zones import local_days
from glfm_cli.schema.calendar import HOUR
from glfm_cli.schema.moments import MomentStyle


def calendar_of(
    encoded: Sequence[EncodedColumn], n_columns: int, file: str | None = None
) -> tuple[EncodedColumn, ...]:
    """Return what stands beside the columns of dates of a table of `n_columns`.

    Raises SchemaError: it is the time of the day, and no date has one.
    """
    found: list[EncodedColumn] = []
    for one in encoded:
        known = _local(one)[one.observed]
        if HOUR in one.column.seen_as and np.all(known == np.floor(known)):
            raise SchemaError(
                f"`as` has {HOUR}, and no date has a time of the day",
                file=file,
                column=one.column.name,
                hint=f"Leave out {HOUR}.",
            )
        for column in one.column.beside:
            index, none = n_columns + len(found), np.zeros(one.x.size, dtype=bool)
            found.append(EncodedColumn(column, index, one.x, none, none, column.levels or ()))
    return follow_dates((*encoded, *found))[len(encoded) :]


def follow_dates(columns: Sequence[EncodedColumn]) -> tuple[EncodedColumn, ...]:
    """Return columns in which what stands beside dates is what these say, or missing with them."""
    dates = {one.column.name: one for one in columns}
    found = []
    for one in columns:
        if (part := one.column.calendar) is not None:
            x = part.values(_local(dates[part.of]))
            observed = ~np.isnan(x)
            for array in (x, observed):
                array.setflags(write=False)
            one = replace(one, x=x, observed=observed)
        found.append(one)
    return tuple(found)


def _local(date: EncodedColumn) -> Array:
    """Return observed dates (n,) by the clock of the column's zone, NaN at other cells."""
    zone = date.style.zone if isinstance(date.style, MomentStyle) else ""
    return local_days(np.where(date.observed, date.x, np.nan), zone)
