"""Numbers as cells: as text of sensible length, or rounded into an Arrow type."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.encoding.data import EncodedColumn
from glfm_cli.encoding.moments import moment_steps, typed_steps
from glfm_cli.encoding.numeric import code_value, numerals_of, stored_dtype
from glfm_cli.encoding.support import MAX_EXACT, Interval, support
from glfm_cli.schema.moments import MomentStyle

DIGITS = 7  # of a completed real number in text: more would pretend to a precision it has not
EXACT_DIGITS = 13  # where a formula must hold
MOST_DIGITS = 25  # of a number with as many decimals as its column: no double has more of use
_DOUBLE = np.dtype(np.float64)


def number_texts(encoded: EncodedColumn, fill: Array, ends: Array | None = None) -> list[str]:
    """Return completed numbers as text, inside the column's support and their own `ends` (n, 2).

    Counts are integers. Other numbers have 7 significant digits, more where the observed values
    differ by little compared with their size (years, dates as day numbers); in a column with a
    style of its own, as many decimals as the observed ones, or an exponent where those have one.
    """
    allowed = _allowed(encoded, _DOUBLE)
    style = encoded.style
    if isinstance(style, MomentStyle):
        return [style.write(k) for k in moment_steps(encoded, fill, allowed)]
    if encoded.column.integral:
        limit = int(MAX_EXACT)
        whole = _whole_numbers(encoded, fill, allowed, (-limit, limit))
        return [str(k) if style is None else style.write(Decimal(k)) for k in whole]
    if style is not None and style.places is not None and not style.exponent:
        return [style.write(n) for n in _with_places(encoded, fill, ends, allowed, style.places)]
    values = _with_digits(encoded, fill, ends, allowed)
    if style is not None:
        return [style.write(Decimal(repr(float(value)))) for value in values]
    return [_positional(value) for value in values]


def _with_places(
    encoded: EncodedColumn, fill: Array, ends: Array | None, allowed: Interval, places: int
) -> list[Decimal]:
    """Return numbers of so many decimals; by digits where that would be more than a double has."""
    largest = 10**MOST_DIGITS
    steps = _fixed_points(encoded, fill, allowed, places, largest)
    numbers = [_scaled(k, places) for k in steps]
    beyond = np.abs(fill) >= float(_scaled(largest, places))
    for i, value in zip(
        np.flatnonzero(beyond).tolist(),
        _with_digits(encoded, fill[beyond], None if ends is None else ends[beyond], allowed),
        strict=True,
    ):
        numbers[i] = Decimal(repr(float(value)))
    for i, (low, high) in enumerate([] if ends is None else ends):
        if low > float(numbers[i]) or float(numbers[i]) > high:  # never so with NaN
            numbers[i] = Decimal(f"{fill[i]:.{DIGITS - 1}e}")
    return numbers


def _with_digits(
    encoded: EncodedColumn, fill: Array, ends: Array | None, allowed: Interval
) -> Array:
    """Return numbers of as many significant digits as tell the values of the column apart."""
    digits = EXACT_DIGITS if encoded.exact else _digits(encoded)
    rounded = np.array([float(f"{value:.{digits - 1}e}") for value in fill])
    outside = ~allowed.contains(rounded)
    if ends is not None:
        outside |= (rounded < ends[:, 0]) | (rounded > ends[:, 1])
    rounded[outside] = allowed.clamp(fill[outside], _DOUBLE)
    return _off_codes(encoded, rounded, _DOUBLE)


def as_written(encoded: EncodedColumn, fill: Array) -> Array:
    """Return completed numbers as they are when their text is read again."""
    if not fill.size:
        return fill
    if isinstance(encoded.style, MomentStyle):
        steps = moment_steps(encoded, fill, _allowed(encoded, _DOUBLE))
        return np.array(steps, dtype=np.float64) / encoded.style.steps
    encoded = replace(encoded, exact=False)
    if encoded.style is None and not encoded.column.integral:  # whose text is that number's own
        return _with_digits(encoded, fill, None, _allowed(encoded, _DOUBLE)) + 0.0
    texts = number_texts(encoded, fill)
    plain = numerals_of(encoded.column).read(pa.array(texts, pa.string())).plain
    return np.array(plain.cast(pa.float64()).to_numpy(zero_copy_only=False))


def typed_numbers(encoded: EncodedColumn, fill: Array, kind: pa.DataType) -> pa.Array:
    """Return completed numbers as values of a numeric Arrow type, inside the column's support."""
    dtype = stored_dtype(kind)
    allowed = _allowed(encoded, dtype)
    if encoded.column.moment is not None:
        return typed_steps(encoded, moment_steps(encoded, fill, allowed), kind)
    if pa.types.is_floating(kind):
        if encoded.column.integral:
            limits = (0, int(min(MAX_EXACT, float(np.finfo(dtype).max))))
            fill = np.array(_whole_numbers(encoded, fill, allowed, limits), dtype=np.float64)
        values = allowed.clamp(fill, dtype)
        return pa.array(_off_codes(encoded, values, dtype), kind)
    if pa.types.is_decimal(kind):
        return _decimals(encoded, fill, allowed, kind)
    whole, bound = np.iinfo(kind.to_pandas_dtype()), int(MAX_EXACT)
    limits = (max(int(whole.min), -bound), min(int(whole.max), bound))
    return pa.array(_whole_numbers(encoded, fill, allowed, limits), kind)


def _allowed(encoded: EncodedColumn, dtype: np.dtype) -> Interval:
    return support(encoded.column, zero=bool(np.any(encoded.typical == 0.0)), dtype=dtype)


def _whole_numbers(
    encoded: EncodedColumn, fill: Array, allowed: Interval, limits: tuple[int, int]
) -> list[int]:
    """Return the integer nearest each value, inside support and type."""
    least, most = _reach(allowed, Decimal(1), limits)
    nearest = np.clip(np.rint(fill), least, most).astype(np.int64).tolist()
    return _beside_codes(encoded, nearest, fill, Decimal(1), (least, most))


def _decimals(
    encoded: EncodedColumn, fill: Array, allowed: Interval, kind: pa.DataType
) -> pa.Array:
    """Return the decimal of a type's scale nearest each value, inside support and type."""
    steps = _fixed_points(encoded, fill, allowed, kind.scale, 10**kind.precision - 1)
    return pa.array([_scaled(k, kind.scale) for k in steps], kind)


def _fixed_points(
    encoded: EncodedColumn, fill: Array, allowed: Interval, scale: int, largest: int
) -> list[int]:
    """Return the multiple of 10^-scale nearest each value, inside support and size."""
    step = Decimal(1).scaleb(-scale)
    least, most = _reach(allowed, step, (-largest, largest))
    nearest = [
        min(max(int((Decimal(value) / step).to_integral_value()), least), most)
        for value in fill.tolist()
    ]
    return _beside_codes(encoded, nearest, fill, step, (least, most))


def _scaled(k: int, scale: int) -> Decimal:
    """Return k * 10^-scale; built from digits, for arithmetic would round more than 28 of them."""
    return Decimal((k < 0, tuple(map(int, str(abs(k)))), -scale))


def _reach(allowed: Interval, step: Decimal, limits: tuple[int, int]) -> tuple[int, int]:
    """Return the least and largest multiple of `step` inside support and type."""
    first, last = allowed.multiples(step)
    least = limits[0] if first is None else max(first, limits[0])
    most = limits[1] if last is None else min(last, limits[1])
    return least, most


def _beside_codes(
    encoded: EncodedColumn, steps: list[int], fill: Array, step: Decimal, reach: tuple[int, int]
) -> list[int]:
    """Return the multiples, moved to the nearest other one where one is a missing code.

    A completed cell that reads as a code would be a missing cell again.
    """
    codes = (code_value(code.text, _DOUBLE, encoded.column) for code in encoded.column.missing)
    taken = {Decimal(repr(code)) / step for code in codes if code is not None}
    for i, k in enumerate(steps):
        if k in taken:
            around = range(k - len(taken), k + len(taken) + 1)
            free = [c for c in around if c not in taken and reach[0] <= c <= reach[1]]
            exact = Decimal(float(fill[i])) / step
            steps[i] = min(free, key=lambda c: abs(c - exact), default=k)
    return steps


def _off_codes(encoded: EncodedColumn, values: Array, dtype: np.dtype) -> Array:
    """Return the values, moved by one unit in the last place where one equals a missing code."""
    for code in encoded.column.missing:
        number = code_value(code.text, dtype, encoded.column)
        if number is not None:
            # Towards an observed value, which lies inside the support and is no code.
            towards = dtype.type(np.max(encoded.typical))
            values = np.where(values == number, np.nextafter(values, towards), values)
    return values


def _digits(encoded: EncodedColumn) -> int:
    """Return the significant digits that show differences among a column's values."""
    observed = encoded.typical
    size, spread = float(np.max(np.abs(observed))), float(np.ptp(observed / 2)) * 2
    if not spread > 0 or size <= spread:
        return DIGITS
    return min(17, DIGITS + math.floor(math.log10(size / spread)))


def _positional(value: float) -> str:
    """Return the shortest text that reads as this number, without exponent unless very long."""
    text = repr(float(value) + 0.0)
    if "e" in text and 1e-7 <= abs(value) < 1e16:
        text = np.format_float_positional(value, trim="-")
    return text.removesuffix(".0")
