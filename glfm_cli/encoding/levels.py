"""Categorical and ordinal columns to level codes, and levels back to values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from glfm_cli.arrays import Array
from glfm_cli.encoding.data import Mask
from glfm_cli.encoding.source import Source, is_null, is_text_type, text_of
from glfm_cli.errors import GlfmError
from glfm_cli.io.dialect import NUMBER
from glfm_cli.schema.phrases import closest, is_number
from glfm_cli.schema.text import flow

_INTEGRAL = re.compile(r"(-?(?:0|[1-9]\d*))\.0+", re.ASCII)
_MOST_DIGITS = 1000
_NUMBER = re.compile(NUMBER, re.ASCII)
_TRUTH = {"true": ("true", "True", "TRUE", "1"), "false": ("false", "False", "FALSE", "0")}


def level_numbers(levels: Sequence[str]) -> Array:
    """Return levels (R,) as numbers: what they say, or 1 to R where one says none."""
    if all(map(is_number, levels)):
        return np.array([float(level) for level in levels])
    return np.arange(1.0, len(levels) + 1.0)


def encode_levels(source: Source) -> tuple[Array, Mask, tuple[str, ...]]:
    """Return a column's level codes, the cells to be left as they are, and the levels.

    Codes (n_rows,) are 0..R-1, NaN at an empty cell, null, NaN or missing code; the levels are
    those of the types file, or those learnt from the observed cells.

    Raises TableError: a cell is none of the listed levels; SchemaError: levels cannot be learnt, or
        the column's Arrow type cannot hold a listed level.
    """
    column = source.column
    texts, of_row = distinct_texts(source)
    missing, left = _missing(source, texts)
    seen = [text for text, gone in zip(texts, missing, strict=True) if text and not gone]
    levels = column.levels if column.levels is not None else _learn(source, seen)
    place = _places(source, levels)
    if column.levels is not None:
        unknown = _unknown(texts, missing, place)
        if unknown.any():
            raise _unknown_level(source, unknown[of_row], texts, of_row)
        _check_castable(source, levels, place, set(seen))
    return _codes(texts, missing, place)[of_row], left[of_row], levels


def encode_known_levels(
    source: Source, levels: tuple[str, ...], *, unseen_is_missing: bool | None
) -> tuple[Array, Mask, dict[str, int]]:
    """Return the codes of levels that a fit has learnt, and the cells to be left as they are.

    Codes (n_rows,) are NaN at a missing cell, and at an unseen level if that is taken as one, which
    is then left, too. The third are the levels that the fit does not know, with their numbers of
    cells.

    Raises TableError: a cell holds such a level, and `unseen_is_missing` is false; None where
        nobody can ask for that.
    """
    texts, of_row = distinct_texts(source)
    missing, left = _missing(source, texts)
    place = _places(source, levels)
    unknown = _unknown(texts, missing, place)
    if unknown.any() and not unseen_is_missing:
        mend = "Treat such cells as missing with `--unseen missing`, or fit again with this level."
        if unseen_is_missing is None:
            mend = "Fit again with this level, or leave the row out."
        text = texts[int(np.argmax(unknown))] or ""
        if not is_number(text) and (near := closest(text, levels)) is not None:
            mend = f"If '{near}' is meant, write it so. {mend}"
        known = f"a level that the fit has seen: {_listed(levels)}"
        raise source.cell_error(unknown[of_row], known, mend)
    seen = {str(t) for t, gone, new in zip(texts, missing, unknown, strict=True) if not gone | new}
    _check_castable(source, levels, place, seen)
    code = _codes(texts, np.logical_or(missing, unknown).tolist(), place)
    cells = np.bincount(of_row, minlength=len(texts)).tolist()
    new_levels = {str(texts[i]): cells[i] for i in np.flatnonzero(unknown)}
    return code[of_row], (left | unknown)[of_row], new_levels


def _missing(source: Source, texts: list[str | None]) -> tuple[list[bool], Mask]:
    """Return which distinct texts are missing, and which of them are to be left."""
    codes = {level_key(code.text): code.impute for code in source.column.missing}
    missing = [text is None or text in codes for text in texts]
    return missing, np.array([not codes.get(text or "", True) for text in texts], dtype=bool)


def _unknown(texts: list[str | None], missing: list[bool], place: dict[str, int]) -> Mask:
    """Return which distinct texts are neither missing nor levels."""
    return np.array([not g and t not in place for t, g in zip(texts, missing, strict=True)])


def _codes(texts: list[str | None], missing: list[bool], place: dict[str, int]) -> Array:
    return np.array(
        [np.nan if gone else place[str(t)] for t, gone in zip(texts, missing, strict=True)]
    )


def distinct_texts(source: Source) -> tuple[list[str | None], Array]:
    """Return the distinct values of a column as level texts, and which one each row has.

    A value that is empty, null or NaN gives None.
    """
    kind = source.values.type
    if not _has_levels(kind):
        raise source.schema_error(
            f"has type {source.column.type}, but the table holds values of type {kind} there",
            hint="Set `role: ignore`.",
            expected="text, numbers, booleans or dates",
        )
    encoded = pc.dictionary_encode(source.values, null_encoding="encode")
    if pa.types.is_null(kind):
        return [None], np.zeros(len(source.values), dtype=np.int64)
    values = encoded.dictionary
    empty = is_null(values)
    if pa.types.is_floating(kind):
        empty |= np.isnan(values.to_numpy(zero_copy_only=False).astype(float))
    texts = text_of(values).to_pylist()
    trim_zeros = pa.types.is_decimal(kind)
    keys: list[str | None] = []
    for text, gone in zip(texts, empty, strict=True):
        key = None if gone else level_key(_shortest(text) if trim_zeros else text)
        keys.append(key or None)
    return keys, encoded.indices.to_numpy(zero_copy_only=False)


def _has_levels(kind: pa.DataType) -> bool:
    """Return whether values of a type are words, numbers or dates, each with a text of its own."""
    types = pa.types
    others = (
        *(types.is_nested, types.is_interval, types.is_fixed_size_binary),
        *(types.is_binary, types.is_large_binary),
    )
    return not isinstance(kind, pa.BaseExtensionType) and not any(of(kind) for of in others)


def level_key(text: str) -> str:
    """Return what two writings of one level share: 11 and 11.0 are one, as are `a` and ` a `."""
    trimmed = text.strip()
    integral = _INTEGRAL.fullmatch(trimmed)
    if integral is None:
        return trimmed
    return "0" if integral[1] == "-0" else integral[1]


def truth_writings(levels: Sequence[str]) -> dict[str, str]:
    """Return other writings of levels that are true and false, as programs have them.

    Arrow writes true, Python True, R TRUE, and pandas 1.0 where some are missing.
    """
    level = {one.casefold(): one for one in levels}
    if len(levels) != len(_TRUTH) or level.keys() != _TRUTH.keys():
        return {}
    return {text: level[one] for one, texts in _TRUTH.items() for text in texts}


def level_value(text: str, kind: pa.DataType) -> pa.Scalar:
    """Return a level as a value of an Arrow type; pyarrow.ArrowInvalid if it cannot be one."""
    if is_text_type(kind):
        return pa.scalar(text, kind)
    truth = text.casefold() == "true"
    if pa.types.is_boolean(kind):
        if text.casefold() not in _TRUTH:
            raise pa.ArrowInvalid(text)
        return pa.scalar(truth)
    if text.casefold() in _TRUTH and (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return pa.scalar(int(truth)).cast(kind)
    if kind == pa.float16():
        return pa.scalar(np.float16(text), kind)
    return pa.scalar(level_key(text)).cast(kind)


def can_hold(levels: Sequence[str], kind: pa.DataType) -> bool:
    """Return whether all levels are values of an Arrow type."""
    try:
        for level in levels:
            level_value(level, kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError):
        return False
    return True


def _shortest(decimal: str) -> str:
    return decimal.rstrip("0").rstrip(".") if "." in decimal else decimal


def _learn(source: Source, seen: list[str]) -> tuple[str, ...]:
    """Return the levels of a column whose types file lists none, in a sensible order."""
    other = {level_key(text): level_key(level) for text, level in source.column.aliases}
    present = {other.get(text, text) for text in seen}
    if source.ordered is not None:
        in_order = [level_key(t) for t in text_of(source.ordered).to_pylist() if t is not None]
        return tuple(dict.fromkeys(text for text in in_order if text in present))
    if not source.column.ordinal:
        return tuple(sorted(present, key=_natural))
    for text in sorted(present, key=_natural):
        if _NUMBER.fullmatch(text) is None:
            raise source.schema_error(
                f"has type ordinal and no `levels`, and '{text}' is not a number to order by",
                hint="List its levels from low to high: `levels: [low, mid, high]`.",
            )
    levels = sorted(present, key=float)
    for low, high in pairwise(levels):
        if float(low) == float(high):
            raise source.schema_error(
                f"has type ordinal and no `levels`, and '{low}' and '{high}' are the same number",
                hint="List its levels from low to high, or write them alike in the table.",
            )
    return tuple(levels)


def _natural(text: str) -> tuple[bool, float, list[tuple[bool, int, str]], str]:
    """Return a sorting key: numbers by size first, then text, digits in it by their value."""
    number = float(text) if _NUMBER.fullmatch(text) else np.inf
    parts = [
        (False, int(part), part) if part.isdecimal() and len(part) <= _MOST_DIGITS
        # Of more digits Python makes no number.
        else (True, 0, part.casefold())
        for part in re.split(r"(\d+)", text)
    ]
    return number == np.inf, number, parts, text


def _places(source: Source, levels: tuple[str, ...]) -> dict[str, int]:
    """Return the code of each level, by its key."""
    place: dict[str, int] = {}
    for code, level in enumerate(levels):
        key = level_key(level)
        if key in place:
            raise source.schema_error(
                f"levels '{levels[place[key]]}' and '{level}' are the same value",
                hint="Keep one of them in `levels`.",
            )
        place[key] = code
    for text, level in source.column.aliases:
        if level_key(level) in place:
            place.setdefault(level_key(text), place[level_key(level)])
    for text, level in truth_writings(levels).items():
        place.setdefault(text, place[level_key(level)])
    return place


def _check_castable(
    source: Source, levels: tuple[str, ...], place: dict[str, int], seen: set[str]
) -> None:
    """Raise SchemaError for a listed level the column could not hold if it were completed."""
    kind = source.values.type
    for key in place.keys() - seen:
        level = levels[place[key]]
        if not can_hold([level], kind):
            raise source.schema_error(
                f"level '{level}' cannot stand in a column of Arrow type {kind}",
                hint="Remove it from `levels`, or write the levels as the table holds them.",
            )


def _unknown_level(
    source: Source, unknown: Mask, texts: list[str | None], of_row: Array
) -> GlfmError:
    levels = source.column.levels or ()
    text = texts[of_row[int(np.argmax(unknown))]] or ""
    starts = (level for level in levels if text.casefold().startswith(level.casefold()))
    near = closest(text, levels) or next(starts, None)
    if near is not None:
        other = flow({"aliases": {near: [text]}})[1:-1]
        hint = f"If the table means '{near}' by it, give the column `{other}`."
    else:
        hint = "If it is another writing of a level, list it in `aliases`."
    hint += f" Or add '{text}' to `levels`, or to `missing:` if it stands for a missing cell."
    if others := source.others(unknown):
        hint += f" The column also has {', '.join(map(repr, others))}."
    return source.cell_error(unknown, f"one of {_listed(levels)}", hint)


def _listed(levels: tuple[str, ...]) -> str:
    return ", ".join(levels[:8]) + (f", ... ({len(levels)} levels)" if len(levels) > 8 else "")
