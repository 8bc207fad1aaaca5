"""Numeric columns to numbers: strict decimal text, or Arrow's own numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from glfm_cli.arrays import Array
from glfm_cli.encoding.data import Mask
from glfm_cli.encoding.intervals import clip_ends, read_intervals, with_limits
from glfm_cli.encoding.moments import moments_of, style_of_moments, typed_moments
from glfm_cli.encoding.number_style import NumberStyle, learn_style
from glfm_cli.encoding.source import Source, is_null, to_mask
from glfm_cli.encoding.support import MAX_EXACT, check_support, fits, nearest_fit, support
from glfm_cli.io.dialect import NUMBER
from glfm_cli.io.numerals import MINUS, PLAIN, Numerals
from glfm_cli.schema import Column
from glfm_cli.schema.moments import MomentStyle

_NUMBER = re.compile(NUMBER, re.ASCII)


class Numbers(NamedTuple):
    """The cells of a column of numbers.

    x : (n_rows,) float64 in the column's own unit; NaN at an empty cell, null, NaN, missing code
        or interval
    left : (n_rows,) bool, missing by a code with `impute: false`
    ends : (n_rows, 2) float64, those of intervals, NaN at other cells; None where there are none
    unfit : (n_rows,) bool, numbers that the column cannot hold: missing and part of `left`, or in
        `x` the nearest that it can
    unread : (n_rows,) bool, texts that are no numbers: missing and part of `left`
    """

    x: Array
    left: Mask
    ends: Array | None
    unfit: Mask
    unread: Mask


def encode_numbers(
    source: Source,
    *,
    zeros: bool | None = None,
    intervals: bool = False,
    unfit_is_missing: bool = False,
    known: Array | None = None,
) -> Numbers:
    """Return what the cells of a column are.

    zeros : that of `check_support`
    intervals : whether cells may be known only to lie between two numbers
    unfit_is_missing : take numbers that do not fit, and texts that are none, for missing ones, and
        leave them as they are; not where most cells may be numbers in another form
    known : values of the column; take numbers that do not fit for the nearest that do instead

    Raises TableError: a cell is no number, or does not fit the column's type, bounds or transform;
        SchemaError: the column's Arrow type holds no numbers.
    """
    dtype, ends = stored_dtype(source.values.type), None
    unread = np.zeros(len(source.values), dtype=bool)
    if source.is_text:
        trimmed = pc.utf8_trim_whitespace(source.values)
        blank = is_null(trimmed) | to_mask(pc.equal(trimmed, ""))
        hits = [to_mask(pc.equal(trimmed, code.text.strip())) for code in source.column.missing]
        gone = np.logical_or.reduce([blank, *hits])
        present = pc.if_else(pa.array(gone), pa.scalar(None, trimmed.type), trimmed)
        numerals = numerals_of(source.column)
        if intervals and source.column.moment is None:
            present, ends = read_intervals(source, present, numerals)
            gone = gone if ends is None else gone | ~np.isnan(ends[:, 0])
        if unfit_is_missing:
            unread = _unread(source, present, numerals)
            present = pc.if_else(pa.array(unread), pa.scalar(None, present.type), present)
            gone |= unread
        if source.column.moment is not None:
            x = moments_of(source, present)
        else:
            x = _parse(source, present, gone, numerals)
    else:
        x = _typed_numbers(source) if source.column.moment is None else typed_moments(source)
        blank = np.isnan(x)
        hits = [blank if not code.text.strip() else blank & False for code in source.column.missing]
    left = unread.copy()
    for code, hit in zip(source.column.missing, hits, strict=True):
        value = code_value(code.text, dtype, source.column)
        hit = hit if value is None else hit | (x == value)
        x[hit] = np.nan
        if not code.impute:
            left |= hit
    infinite = np.isinf(x)
    if infinite.any():
        raise source.cell_error(
            infinite, "a finite number", "Write a null instead if the value is not known."
        )
    if intervals and (ends := with_limits(source, x, ends)) is not None:
        ends = clip_ends(source, ends, support(source.column, zero=True, dtype=dtype))
        between = ~np.isnan(ends[:, 0])
        # One number from end to end is no interval.
        x[between] = np.where(ends[between, 0] == ends[between, 1], ends[between, 0], np.nan)
        ends[~np.isnan(x)] = np.nan
    unfit = np.zeros(x.size, dtype=bool)
    if unfit_is_missing:
        zero = zeros is not False
        unfit = ~np.isnan(x) & ~fits(source.column, x, dtype, zero=zero)
        if known is None:
            x[unfit], left = np.nan, left | unfit
        else:
            x[unfit] = nearest_fit(source.column, x[unfit], dtype, known, zero=zero)
    check_support(source, x, dtype, zeros=zeros)
    return Numbers(x + 0.0, left, ends, unfit, unread)  # + 0.0: no negative zeros


def _unread(source: Source, present: pa.Array, numerals: Numerals) -> Mask:
    """Return which texts are no numbers, as a remark among them is.

    None where more than half of the cells have digits and are not read: a table in another form.
    """
    there = ~is_null(present)
    if (moments := source.column.moments) is not None:
        distinct = pc.unique(present.drop_null())
        good = [text for text in distinct.to_pylist() if moments.number(text) is not None]
        read = to_mask(pc.is_in(present, pa.array(good, present.type)))
    elif numerals == PLAIN:
        read = to_mask(pc.match_substring_regex(present, f"^(?:{NUMBER})$"))
    else:
        marks = numerals.read(present).marked
        marked, read = to_mask(marks), to_mask(pc.is_valid(marks))
        read &= marked == _is_usual(marked, read)
    unread = there & ~read
    figures = unread & to_mask(pc.match_substring_regex(present, r"\d"))
    return unread & False if 2 * figures.sum() > there.sum() else unread


def _is_usual(marked: Mask, read: Mask) -> bool:
    """Return whether units stand beside most numbers: 148 among many `148 cm` may be anything."""
    return 2 * int(marked.sum()) > int(read.sum())


def stored_dtype(kind: pa.DataType) -> np.dtype:
    """Return the floating type at whose precision a column's values are stored."""
    if pa.types.is_float32(kind) or pa.types.is_float16(kind):
        return np.dtype(kind.to_pandas_dtype())
    return np.dtype(np.float64)


def numerals_of(column: Column) -> Numerals:
    """Return how the types file says that a column writes its numbers."""
    return Numerals(
        column.decimal or ".", column.thousands or "", column.percent, column.unit or ""
    )


def style_of(source: Source, x: Array) -> NumberStyle | MomentStyle | None:
    """Return how the observed cells of a column are written; None where 7 digits will do."""
    observed = ~np.isnan(x)
    if source.column.moment is not None:
        return style_of_moments(source, observed, x)
    numerals = numerals_of(source.column)
    if not source.is_text:
        return None
    seen = pc.unique(pc.utf8_trim_whitespace(source.values.filter(pa.array(observed))))
    if numerals == PLAIN:
        return _style_of_exponents(seen)
    style = learn_style(numerals, seen.to_pylist())
    # A unit that stands beside no number is a note for figures.
    plain = numerals.decimal == "." and not numerals.thousands
    bare = plain and not style.before and not style.behind
    return _style_of_exponents(seen) if bare else style


def _style_of_exponents(seen: pa.Array) -> NumberStyle | None:
    """Return the style of plain numbers, most of which have an exponent; None where they do not."""
    for exponent in ("e", "E"):
        if 2 * to_mask(pc.match_substring(seen, exponent)).sum() > len(seen):
            return NumberStyle(exponent=exponent)
    return None


def code_value(text: str, dtype: np.dtype, column: Column) -> float | None:
    """Return the number that a missing code is, at a column's precision; None if it is none."""
    if column.moments is not None:
        return column.moments.number(text.strip())
    numerals = numerals_of(column)
    if numerals != PLAIN:
        text = numerals.read(pa.array([text.strip()])).plain[0].as_py() or text
    if _NUMBER.fullmatch(text.strip()) is None:
        return None
    value = float(text)
    with np.errstate(over="ignore"):
        return float(dtype.type(value)) if math.isfinite(value) else None


def is_numeric(source: Source) -> bool:
    """Return True when every observed cell of a column is a finite number."""
    kind = source.values.type
    if not source.is_text:
        return bool(
            pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        )
    trimmed = pc.utf8_trim_whitespace(source.values)
    codes = pa.array([code.text.strip() for code in source.column.missing], trimmed.type)
    gone = is_null(trimmed) | to_mask(pc.equal(trimmed, "")) | to_mask(pc.is_in(trimmed, codes))
    return bool(np.all(gone | to_mask(pc.match_substring_regex(trimmed, f"^(?:{NUMBER})$"))))


def _parse(source: Source, present: pa.Array, gone: Mask, numerals: Numerals) -> Array:
    """Return the numbers that texts are, NaN at the cells in `gone`, where they are null."""
    null = pa.scalar(None, present.type)
    if numerals != PLAIN:
        return _parse_written(source, present, gone, numerals)
    try:
        x = np.array(present.cast(pa.float64()).to_numpy(zero_copy_only=False))
    except pa.ArrowInvalid:
        strict = pc.match_substring_regex(present, f"^(?:{NUMBER})$")
        present = pc.replace_substring_regex(pc.if_else(strict, present, null), r"^\+", "")
        x = np.array(present.cast(pa.float64()).to_numpy(zero_copy_only=False))
    bad = ~gone & ~np.isfinite(x)
    if bad.any():
        text = source.values[int(np.argmax(bad))].as_py().strip()
        if _NUMBER.fullmatch(text):
            hint = "List it under `missing:` if it stands for a missing cell, or scale the column."
            raise source.cell_error(bad, "a number below 1.8e308 in size", hint)
        raise source.cell_error(bad, "a number", _number_hint(text) + _likewise(source.others(bad)))
    return x


def _parse_written(source: Source, present: pa.Array, gone: Mask, numerals: Numerals) -> Array:
    """Return the numbers that texts in a form of their own are, NaN at the cells in `gone`."""
    reading = numerals.read(present)
    marked, read = to_mask(reading.marked), to_mask(pc.is_valid(reading.marked))
    usual = _is_usual(marked, read)
    wrong = ~gone & (~read | (marked != usual))
    if wrong.any() and numerals == Numerals(unit=numerals.unit) and not usual:
        text = present[int(np.argmax(wrong))].as_py()
        others = source.others(wrong)
        raise source.cell_error(wrong, "a number", _number_hint(text) + _likewise(others))
    if wrong.any():
        good = ~gone & ~wrong
        like = present[int(np.argmax(good))].as_py() if good.any() else None
        raise _other_style(source, wrong, like, numerals)
    x = np.array(reading.plain.cast(pa.float64()).to_numpy(zero_copy_only=False))
    if not np.isfinite(x[~gone]).all():
        hint = "List it under `missing:` if it stands for a missing cell, or scale the column."
        raise source.cell_error(~gone & ~np.isfinite(x), "a number below 1.8e308 in size", hint)
    return x


def _other_style(source: Source, wrong: Mask, like: str | None, numerals: Numerals) -> Exception:
    """Return the error for cells that are not written as the others, or as the types file says."""
    rows = np.flatnonzero(wrong) + 1
    keys = [f'`decimal: "{numerals.decimal}"`'] if numerals.decimal != "." else []
    keys += [f'`thousands: "{numerals.thousands}"`'] if numerals.thousands else []
    keys += ["`percent: true`"] if numerals.percent else []
    keys += [f"`unit: {numerals.unit}`"] if numerals.unit else []
    expected = f"a number written like {like}" if like else "a number"
    if rows.size > 1:
        more = ", ..." if rows.size > 5 else ""
        expected += f" ({rows.size} cells are not: rows {', '.join(map(str, rows[:5]))}{more})"
    return source.cell_error(
        wrong,
        expected,
        f"Write all cells of the column alike; the types file says {' and '.join(keys)}. "
        "A text that stands for a missing cell is listed under `missing:`.",
    )


def _typed_numbers(source: Source) -> Array:
    """Return the values of a numeric Arrow column, NaN for null."""
    values, kind = source.values, source.values.type
    if pa.types.is_integer(kind):
        limit = int(MAX_EXACT)
        beyond = np.zeros(len(values), dtype=bool)
        if kind.bit_width == 64:
            beyond |= to_mask(pc.greater(values, pa.scalar(limit, kind)))
        if kind == pa.int64():
            beyond |= to_mask(pc.less(values, pa.scalar(-limit, kind)))
        if beyond.any():
            beyond &= ~to_mask(pc.is_in(values, _whole_codes(source.column, kind)))
        if beyond.any():
            raise source.cell_error(
                beyond,
                "an integer of at most 2^53 in size, the largest that is kept exactly",
                "Such numbers are mostly identifiers: give the column role id.",
            )
        values = values.cast(pa.float64(), safe=False)  # of larger numbers, codes alone are left
    elif pa.types.is_decimal(kind):
        # By way of text, which is exact where a direct cast may be off in the last digit.
        values = values.cast(pa.string()).cast(pa.float64())
    elif pa.types.is_floating(kind):
        values = values.cast(pa.float64()) if kind != pa.float16() else values
    elif pa.types.is_null(kind):
        return np.full(len(values), np.nan)
    else:
        raise _not_numeric(source)
    return np.array(values.to_numpy(zero_copy_only=False), dtype=np.float64)


def _whole_codes(column: Column, kind: pa.DataType) -> pa.Array:
    """Return the missing codes of a column that are numbers of an integer type."""
    limits, found = np.iinfo(kind.to_pandas_dtype()), []
    for code in column.missing:
        if re.fullmatch(r"[+-]?\d{1,20}", text := code.text.strip(), re.ASCII):
            found += [int(text)] if limits.min <= int(text) <= limits.max else []
    return pa.array(found, kind)


def _not_numeric(source: Source) -> Exception:
    kind = source.values.type
    if pa.types.is_boolean(kind):
        holds, hint = "true and false", "Give it type categorical."
    elif pa.types.is_temporal(kind):
        holds = f"dates or times ({kind})"
        hint = "Give it type date (or duration, for times of day)."
    else:
        holds, hint = f"values of type {kind}", "Set `role: ignore`."
    return source.schema_error(
        f"has type {source.column.type}, but the table holds {holds} there",
        expected="numbers",
        hint=hint,
    )


def _likewise(others: Sequence[str]) -> str:
    """Return which other texts the same column has that are no numbers."""
    return f" It also has {', '.join(map(repr, others))}." if others else ""


def _missing_hint(text: str) -> str:
    shown = text.replace('"', '\\"')
    add = f'add "{shown}" to the column\'s `missing:` in the types file.'
    return f"If it stands for a missing cell, {add}"


# How a text that is no plain number is perhaps written, and what says so.
_WRITTEN = (
    (r"[+-]?\d+(\.\d+)?\s*%", "`percent: true`"),
    (r"[+-]?\d+,\d+\s*%", '`decimal: ","` and `percent: true`'),
    (r"[+-]?\d{1,3}(,\d{3}){2,}(\.\d*)?|[+-]?\d{1,3}(,\d{3})+\.\d*", '`thousands: ","`'),
    (r"[+-]?\d{1,3},\d{3}", '`thousands: ","`, or `decimal: ","`'),
    (r"[+-]?\d{1,3}(\.\d{3})+,\d*", '`decimal: ","` and `thousands: "."`'),
    (r"[+-]?\d*,\d+([eE][+-]?\d+)?", '`decimal: ","`'),
    (r"[+-]?\d{1,3}([ \u00a0\u202f]\d{3})+(\.\d*)?", '`thousands: " "`'),
    (r"[+-]?\d{1,3}(['\u2019]\d{3})+(\.\d*)?", '`thousands: "\'"`'),
    (r"-[0-9]*\.?[0-9]+([eE][+-]?[0-9]+)?", f'`thousands: ","`, with which {MINUS[0]} is a minus,'),
    (r"\((\d+|\d{1,3}(,\d{3})+)(\.\d*)?\)", '`thousands: ","`, with which brackets are a minus,'),
    (r"\$\s*\d+(\.\d+)?", "`unit: $`"),
    (r"[+-]?\d+(\.\d+)?(?:\s*\u20ac|\s?[a-zA-Z]{2,3}|\s[a-zA-Z]+)", "its unit, as `unit: cm`,"),
)


def _number_hint(text: str) -> str:
    """Return the next step for a text that is no number."""
    signed = text.replace(MINUS[0], "-")  # by which a plain number alone is none
    for pattern, keys in _WRITTEN:
        if re.fullmatch(pattern, signed):
            return f"If the whole column is written so, add {keys} to it in the types file."
    if re.match(r"\d{1,4}[-/.:]\d{1,2}([-/.:]\d|$)", text):
        return (
            "If the whole column holds dates, give it type date, with its `format` if that is not "
            "2024-01-31; times and durations are of type duration."
        )
    return f"{_missing_hint(text)} If the column holds names, give it type categorical."
