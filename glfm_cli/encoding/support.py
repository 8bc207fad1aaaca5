"""Which values a numeric column can hold: by its type, its bounds and its transform."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.encoding.data import Mask
from glfm_cli.encoding.source import Source
from glfm_cli.guess.stray import STRAY_CODES
from glfm_cli.schema import Column, Transform

MAX_EXACT = 2.0**53  # up to here every integer is a double of its own

_EXACT = Context(prec=400)  # the exact quotient of a double by a power of ten fits


@dataclass(frozen=True)
class Interval:
    """An interval of the real line, its ends inside or outside."""

    lower: float = -math.inf
    upper: float = math.inf
    lower_open: bool = False
    upper_open: bool = False

    def contains(self, x: Array) -> Mask:
        """Return which values lie inside; NaN does not."""
        above = x > self.lower if self.lower_open else x >= self.lower
        below = x < self.upper if self.upper_open else x <= self.upper
        return above & below

    def meet(self, other: Interval) -> Interval:
        """Return the part two intervals share."""
        lower, upper = max(self.lower, other.lower), min(self.upper, other.upper)
        return Interval(
            lower,
            upper,
            any(i.lower_open for i in (self, other) if i.lower == lower),
            any(i.upper_open for i in (self, other) if i.upper == upper),
        )

    def mirrored(self, at: float) -> Interval:
        """Return the values x for which `at - x` lies in this interval."""
        return Interval(at - self.upper, at - self.lower, self.upper_open, self.lower_open)

    def clamp(self, x: Array, dtype: np.dtype) -> Array:
        """Return the nearest values inside, as numbers of a floating type."""
        limits = np.finfo(dtype)
        with np.errstate(over="ignore"):  # too large for the type: brought back by its limits
            y = np.clip(x.astype(dtype), limits.min, limits.max)
        lower, upper = dtype.type(self.lower), dtype.type(self.upper)
        up, down = dtype.type(np.inf), dtype.type(-np.inf)
        y = np.maximum(y, np.nextafter(lower, up) if self.lower_open else lower)
        return np.minimum(y, np.nextafter(upper, down) if self.upper_open else upper)

    def multiples(self, step: Decimal) -> tuple[int | None, int | None]:
        """Return the least and largest k with k * step inside, None where there is no end."""
        first = last = None
        if math.isfinite(self.lower):
            exact = _EXACT.divide(Decimal(self.lower), step)
            first = int(exact.to_integral_value(ROUND_CEILING))
            first += self.lower_open and exact == first
        if math.isfinite(self.upper):
            exact = _EXACT.divide(Decimal(self.upper), step)
            last = int(exact.to_integral_value(ROUND_FLOOR))
            last -= self.upper_open and exact == last
        return first, last


def support(column: Column, *, zero: bool, dtype: np.dtype) -> Interval:
    """Return the values that can stand in a completed cell.

    column : a numeric column
    zero : whether 0 is among the values of a positive column: it is if one was observed
    dtype : of the stored values; bounds are taken at its precision
    """
    whole = _by_type(column, zero=zero).meet(_by_bounds(column, dtype))
    return whole.meet(_by_transform(column))


def fits(column: Column, x: Array, dtype: np.dtype, *, zero: bool) -> Mask:
    """Return which numbers a column can hold; `zero` and `dtype` are those of `support`."""
    whole = np.floor(x) == x if column.integral else True
    found: Mask = support(column, zero=zero, dtype=dtype).contains(x) & whole
    return found


def nearest_fit(column: Column, x: Array, dtype: np.dtype, known: Array, *, zero: bool) -> Array:
    """Return the nearest numbers that a column can hold; where there is none, the nearest known.

    known : values of the column; `zero` and `dtype` are those of `support`
    """
    inside = support(column, zero=zero, dtype=dtype)
    y = np.rint(x) if column.integral else x
    lower = known.min() if inside.lower_open else inside.lower
    upper = known.max() if inside.upper_open else inside.upper
    # Only what lies outside goes to an end: between it and the least known value numbers fit.
    y = np.where(inside.contains(y) | (y > lower), y, lower)
    return np.where(inside.contains(y) | (y < upper), y, upper)


def check_support(source: Source, x: Array, dtype: np.dtype, *, zeros: bool | None = None) -> None:
    """Raise TableError when an observed value does not fit type, bounds or transform.

    x : (n_rows,) float64; NaN where not observed
    dtype : of the stored values
    zeros : whether a positive column had zeros when the model learnt it; None when it learns it now
    """
    column, seen = source.column, ~np.isnan(x)
    hint = (
        f"Set `type: real` for '{column.name}' in the types file, or list the value under "
        "`missing:` if it stands for a missing cell."
    )
    if np.isin(x[seen & (x < 0)][:1], STRAY_CODES).any():
        hint = (
            "List it under `missing:` if it stands for a missing cell, or set `type: real` for "
            f"'{column.name}' in the types file."
        )
    if column.integral:
        bad = seen & ((x < 0) | (x > MAX_EXACT) | (np.floor(x) != x))
        if bad.any():
            raise source.cell_error(bad, "a whole number from 0 to 2^53 (type count)", hint)
    if column.positive:
        bad = seen & (x < 0)
        if bad.any():
            raise source.cell_error(bad, "a value of 0 or above (type positive)", hint)
        if zeros is False and np.any(x == 0):
            raise source.cell_error(
                x == 0,
                "a value above 0: the fit has seen no 0 in this column",
                "Fit again with a table that has zeros there, or leave the cell empty.",
            )
        if zeros is None and seen.any() and not np.any(x[seen] > 0):
            raise source.schema_error(
                "has type positive, but every observed value is 0",
                expected="at least one value above 0",
                hint="Give it type count or real, or `role: ignore`.",
            )
    _check_inside(source, seen, x, _by_bounds(column, dtype), "bounds")
    _check_inside(source, seen, x, _by_transform(column), f"transform: {column.transform}")


def _check_inside(source: Source, seen: Mask, x: Array, allowed: Interval, reason: str) -> None:
    bad = seen & ~allowed.contains(x)
    if not bad.any():
        return
    if reason == "bounds":
        hint = "Widen `bounds`, or list the value under `missing:` if it stands for a missing cell."
    elif source.column.reflect is not None:
        hint = "Set `reflect` above the column's largest value."
        reason += f" with reflect: {source.column.reflect:.12g}"
    else:
        hint = _TRANSFORM_HINTS[source.column.transform or Transform.NONE]
    moments = source.column.moments
    if reason == "bounds" and moments is not None:
        ends = ("no limit" if b is None else moments.text(b) for b in source.column.bounds)
        raise source.cell_error(bad, f"a value between {' and '.join(ends)} (`bounds`)", hint)
    raise source.cell_error(bad, f"{_described(allowed)} (`{reason}`)", hint)


_TRANSFORM_HINTS = {
    Transform.LOG: "Use `transform: log1p`, or leave the transform out.",
    Transform.LOG1P: "Leave the transform out.",
    Transform.SQRT: "Leave the transform out.",
    Transform.LOGIT: "Leave the transform out, or set `bounds` around all values.",
}


def _by_type(column: Column, *, zero: bool) -> Interval:
    if column.positive:
        return Interval(lower=0.0, lower_open=not zero)
    if column.integral:
        return Interval(0.0, MAX_EXACT)
    return Interval()


def _by_bounds(column: Column, dtype: np.dtype) -> Interval:
    # A float32 column holds 0.1 as 0.100000001: its bounds are rounded in the same way.
    lower, upper = column.bounds
    return Interval(
        -math.inf if lower is None else float(dtype.type(lower)),
        math.inf if upper is None else float(dtype.type(upper)),
    )


def _by_transform(column: Column) -> Interval:
    if column.transform is Transform.LOG:
        # A zero in a positive column stands for an interval, which has a logarithm.
        interval = column.positive and column.reflect is None
        domain = Interval(lower=0.0, lower_open=not interval)
    elif column.transform is Transform.LOG1P:
        domain = Interval(lower=-1.0, lower_open=True)
    elif column.transform is Transform.SQRT:
        domain = Interval(lower=0.0)
    elif column.transform is Transform.LOGIT:
        return _logit_domain(column)
    else:
        return Interval()
    return domain if column.reflect is None else domain.mirrored(column.reflect)


def _logit_domain(column: Column) -> Interval:
    lower, upper = column.bounds
    unit = Interval(0.0, 1.0)
    if column.reflect is not None:
        unit = unit.mirrored(column.reflect)
    interval = column.positive and column.reflect is None and not lower
    return Interval(
        unit.lower if lower is None else lower,
        unit.upper if upper is None else upper,
        lower_open=not interval,
        upper_open=True,
    )


def _described(allowed: Interval) -> str:
    lower, upper = f"{allowed.lower:.12g}", f"{allowed.upper:.12g}"
    if math.isinf(allowed.upper):
        return f"a value above {lower}" if allowed.lower_open else f"a value of {lower} or above"
    if math.isinf(allowed.lower):
        return f"a value below {upper}" if allowed.upper_open else f"a value of {upper} or below"
    between = f"a value between {lower} and {upper}"
    return f"{between}, both excluded" if allowed.lower_open or allowed.upper_open else between
