"""Numeric columns to numbers: strict decimal text, or Arrow's own numbers."""

from __future__ import annotations

import math
import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from glfm_cli.arrays import Array
from glfm_cli.encoding.data import Mask
from glfm_cli.encoding.source import Source, is_null, to_mask
from glfm_cli.encoding.support import MAX_EXACT, check_support
from glfm_cli.io.dialect import NUMBER

_NUMBER = re.compile(NUMBER, re.ASCII)


def encode_numbers(source: Source, *, zeros: bool | None = None) -> tuple[Array, Mask]:
    """Return a column's values and the cells to be left as they are.

    `zeros` is that of `check_support`.

    Returns
    -------
    x : (n_rows,) float64
        In the column's own unit; NaN at an empty cell, null, NaN or missing code.
    left : (n_rows,) bool
        Missing by a code with `impute: false`.

    Raises
    ------
    TableError
        A cell is no number, or does not fit the column's type, bounds or transform.
    SchemaError
        The column's Arrow type holds no numbers.
    """
    dtype = stored_dtype(source.values.type)
    if source.is_text:
        trimmed = pc.utf8_trim_whitespace(source.values)
        blank = is_null(trimmed) | to_mask(pc.equal(trimmed, ""))
        hits = [to_mask(pc.equal(trimmed, code.text.strip())) for code in source.column.missing]
        gone = np.logical_or.reduce([blank, *hits])
        x = _parse(source, trimmed, gone)
    else:
        x = _typed_numbers(source)
        blank = np.isnan(x)
        hits = [blank if not code.text.strip() else blank & False for code in source.column.missing]
    left = np.zeros(x.size, dtype=bool)
    for code, hit in zip(source.column.missing, hits, strict=True):
        value = code_value(code.text, dtype)
        hit = hit if value is None else hit | (x == value)
        x[hit] = np.nan
        if not code.impute:
            left |= hit
    infinite = np.isinf(x)
    if infinite.any():
        raise source.cell_error(
            infinite, "a finite number", "Write a null instead if the value is not known."
        )
    check_support(source, x, dtype, zeros=zeros)
    return x + 0.0, left  # + 0.0: no negative zeros


def stored_dtype(kind: pa.DataType) -> np.dtype:
    """Return the floating type at whose precision a column's values are stored."""
    if pa.types.is_float32(kind) or pa.types.is_float16(kind):
        return np.dtype(kind.to_pandas_dtype())
    return np.dtype(np.float64)


def code_value(text: str, dtype: np.dtype) -> float | None:
    """Return the number that a missing code is, at a column's precision; None if it is none."""
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


def _parse(source: Source, trimmed: pa.Array, gone: Mask) -> Array:
    """Return the numbers that texts are, NaN at the cells in `gone`."""
    null = pa.scalar(None, trimmed.type)
    present = pc.if_else(pa.array(gone), null, trimmed)
    try:
        x = np.array(present.cast(pa.float64()).to_numpy(zero_copy_only=False))
    except pa.ArrowInvalid:
        strict = pc.match_substring_regex(present, f"^(?:{NUMBER})$")
        present = pc.replace_substring_regex(pc.if_else(strict, present, null), r"^\+", "")
        x = np.array(present.cast(pa.float64()).to_numpy(zero_copy_only=False))
    bad = ~gone & ~np.isfinite(x)
    if bad.any():
        text = trimmed[int(np.argmax(bad))].as_py()
        if _NUMBER.fullmatch(text):
            hint = "List it under `missing:` if it stands for a gap, or scale the column."
            raise source.cell_error(bad, "a number below 1.8e308 in size", hint)
        raise source.cell_error(bad, "a number", _number_hint(text))
    return x


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
            raise source.cell_error(
                beyond,
                "an integer of at most 2^53 in size, the largest that is kept exactly",
                "Such numbers are mostly identifiers: give the column role id.",
            )
        values = values.cast(pa.float64())
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


def _not_numeric(source: Source) -> Exception:
    kind = source.values.type
    if pa.types.is_boolean(kind):
        holds, hint = "true and false", "Give it type categorical."
    elif pa.types.is_temporal(kind):
        holds = f"dates or times ({kind})"
        hint = "Set `role: ignore`, or turn it into a number first, such as days since a start."
    else:
        holds, hint = f"values of type {kind}", "Set `role: ignore`."
    return source.schema_error(
        f"has type {source.column.type}, but the table holds {holds} there",
        expected="numbers",
        hint=hint,
    )


def _missing_hint(text: str) -> str:
    shown = text.replace('"', '\\"')
    return f'If it stands for a gap, add "{shown}" to the column\'s `missing:` in the types file.'


def _number_hint(text: str) -> str:
    """Return the next step for a text that is no number."""
    if re.fullmatch(r"[+-]?\d+([.,]\d+)?\s*%", text):
        return "Remove the percent sign from the whole column."
    if re.fullmatch(r"[+-]?\d{1,3}(,\d{3}){2,}(\.\d*)?|[+-]?\d{1,3}(,\d{3})+\.\d*", text):
        return "Remove the thousands separators from the column."
    if re.fullmatch(r"[+-]?\d{1,3}(,\d{3})", text):
        return "A comma is not read: remove it if it separates thousands, or write a decimal point."
    if re.fullmatch(r"[+-]?\d*,\d+([eE][+-]?\d+)?|[+-]?\d{1,3}(\.\d{3})+,\d*", text):
        return "Write the column with decimal points; decimal commas are not read."
    if re.fullmatch(r"[+-]?\d{1,3}([ '\u2019\u00a0\u202f_]\d{3})+([.,]\d*)?", text):
        return "Remove the thousands separators from the column."
    if re.fullmatch(r"[$\u20ac\u00a3\u00a5]\s*[\d.,]+|[\d.,]+\s*[$\u20ac\u00a3\u00a5]", text):
        return "Remove the currency sign from the whole column."
    if re.match(r"\d{1,4}[-/.:]\d{1,2}([-/.:]\d|$)", text):
        return "Dates and times are not modelled: set `role: ignore`, or turn them into numbers."
    return f"{_missing_hint(text)} If the column holds names, give it type categorical."
