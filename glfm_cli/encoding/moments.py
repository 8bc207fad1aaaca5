"""Columns of dates and durations to numbers and back, as text, numbers or Arrow's own types."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from glfm_cli.arrays import Array
from glfm_cli.encoding.data import EncodedColumn, Mask
from glfm_cli.encoding.source import Source, is_null
from glfm_cli.encoding.support import Interval
from glfm_cli.io.zones import zone_of
from glfm_cli.schema.moments import DAY, EXCEL, FIRST, LAST, UNIX, Moments, MomentStyle

# How steps of a day are written, where a column has a type of its own for them.
_FORMS = {1: "%Y-%m-%d", 1440: "%Y-%m-%d %H:%M", DAY: "%Y-%m-%d %H:%M:%S"}
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def moments_of(source: Source, present: pa.Array) -> Array:
    """Return the numbers that cells are, NaN where `present` is null.

    Raises TableError: a cell is no date or duration as the types file says; names the first.
    """
    moments = source.column.moments
    assert moments is not None
    distinct = pc.dictionary_encode(present)
    found = [moments.number(text) for text in distinct.dictionary.to_pylist()]
    number = np.array([np.nan, *(np.nan if one is None else one for one in found)])
    x = number[distinct.indices.fill_null(-1).to_numpy(zero_copy_only=False) + 1]
    wrong = np.isnan(x) & ~is_null(present)
    if wrong.any():
        hint = "List it under the column's `missing:` if it stands for a missing cell"
        if moments.kind == "date":
            hint += ', or say how the dates are written: `format: "%d.%m.%Y"`'
        raise source.cell_error(wrong, moments.in_words, f"{hint}.")
    return x


def typed_moments(source: Source) -> Array:
    """Return the numbers (n,) that dates, times and numbers of an Arrow column are, NaN for null.

    Raises TableError, SchemaError: the column holds something else.
    """
    values, moments = source.values, source.column.moments
    assert moments is not None
    per_unit = _ticks(values.type, moments)
    if per_unit is not None:
        whole = values.cast(pa.int32()) if values.type.bit_width == 32 else values
        ticks = pc.fill_null(whole.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
        return np.where(is_null(values), np.nan, ticks / per_unit)
    if moments.format is not None and moments.kind == "date":
        if pa.types.is_integer(values.type):
            return moments_of(source, values.cast(pa.string()))
        if moments.format in (EXCEL, UNIX) and pa.types.is_floating(values.type):
            known = [None if v is None or v != v else f"{v:.12g}" for v in values.to_pylist()]
            return moments_of(source, pa.array(known, pa.string()))
    raise source.schema_error(
        f"has type {moments.kind}, but the table holds values of type {values.type} there",
        expected="dates" if moments.kind == "date" else "durations or times of day",
        hint='Numbers need a `format`: excel for serial numbers, unix for seconds, or "%Y%m%d".'
        if moments.kind == "date"
        else "Give it type positive, or `role: ignore`.",
    )


def _ticks(kind: pa.DataType, moments: Moments) -> int | None:
    """Return how many ticks of an Arrow type a day, or of a duration a minute, has."""
    unit = DAY if moments.kind == "date" else 60
    if moments.kind == "date":
        if pa.types.is_date(kind):
            return 1 if pa.types.is_date32(kind) else DAY * 1000
        return unit * _PER_SECOND[kind.unit] if pa.types.is_timestamp(kind) else None
    if pa.types.is_time(kind) or pa.types.is_duration(kind):
        return unit * _PER_SECOND[kind.unit]
    return None


def style_of_moments(source: Source, observed: Mask, x: Array) -> MomentStyle:
    """Return how the observed cells of a column are written, or their resolution."""
    moments = source.column.moments
    assert moments is not None
    if source.is_text or not pa.types.is_temporal(source.values.type):
        seen = pc.unique(source.values.filter(pa.array(observed))).cast(pa.string())
        return moments.style(pc.utf8_trim_whitespace(seen).to_pylist())
    zone = zone_of(source.values.type)
    every = list(_FORMS.items()) if moments.kind == "date" else [(1, "duration"), (60, "duration")]
    for steps, form in every[:-1]:
        at = x[observed] * steps
        if np.allclose(at, np.rint(at), rtol=0, atol=1e-6):
            return MomentStyle(form, steps, zone=zone)
    return MomentStyle(every[-1][1], every[-1][0], zone=zone)


def moment_steps(encoded: EncodedColumn, fill: Array, allowed: Interval) -> list[int]:
    """Return the step of the column's resolution nearest each value, inside its support.

    A step that reads as a missing code is left for the nearest other one.
    """
    style, moments = encoded.style, encoded.column.moments
    assert isinstance(style, MomentStyle)
    assert moments is not None
    if moments.kind == "date":
        allowed = allowed.meet(Interval(FIRST, LAST))
    least, most = allowed.lower * style.steps, allowed.upper * style.steps
    first = math.ceil(least - 1e-6) + (allowed.lower_open and least == round(least))
    last = math.inf if math.isinf(most) else math.floor(most + 1e-6)
    codes = (moments.number(code.text.strip()) for code in encoded.column.missing)
    taken = {round(code * style.steps) for code in codes if code is not None}
    found = []
    for value in fill.tolist():
        k = round(min(max(round(value * style.steps), first), last))
        free = [c for c in range(k - len(taken), k + len(taken) + 1) if c not in taken]
        inside = [c for c in free if first <= c <= last]
        found.append(min(inside, key=lambda c: abs(c - value * style.steps), default=k))
    return found


def typed_steps(encoded: EncodedColumn, steps: list[int], kind: pa.DataType) -> pa.Array:
    """Return steps of a column's resolution as values of its Arrow type."""
    style, moments = encoded.style, encoded.column.moments
    assert isinstance(style, MomentStyle)
    assert moments is not None
    per_unit = _ticks(kind, moments)
    if per_unit is None:
        return pa.array([float(style.write(k)) for k in steps]).cast(kind)
    ticks = [k * per_unit // style.steps for k in steps]
    if pa.types.is_time(kind):  # of one day
        ticks = [min(tick, 1440 * per_unit - 1) for tick in ticks]
    return pa.array(ticks, pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind)
