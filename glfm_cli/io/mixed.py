"""Columns that hold numbers and text: all text in Arrow, each cell written as what it was."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from glfm_cli.io.dialect import NUMBER

KEY = b"glfm.mixed"  # of a field: the texts that look like numbers though they are text
_NUMBER = re.compile(NUMBER, re.ASCII)


def mixed_column(values: Sequence[Any], texts: Sequence[str | None]) -> tuple[pa.Array, dict]:
    """Return a column of text, and the metadata of its field.

    Parameters
    ----------
    values : sequence
        Cells as the file holds them.
    texts : sequence of str or None
        The same as text.
    """
    lookalikes = {v for v in values if isinstance(v, str) and _NUMBER.fullmatch(v)}
    return pa.array(texts, pa.string()), {KEY: json.dumps(sorted(lookalikes)).encode()}


def cells_of(column: pa.Array, field: pa.Field) -> list[Any]:
    """Return the cells of a column to write: of a mixed one, numbers as numbers."""
    values: list[Any] = column.to_pylist()
    mixed = (field.metadata or {}).get(KEY)
    if mixed is None:
        return values
    texts = set(json.loads(mixed))
    return [_number(v) if v and v not in texts and _NUMBER.fullmatch(v) else v for v in values]


def _number(text: str) -> float | int:
    return int(text) if re.fullmatch(r"[+-]?\d{1,15}", text) else float(text)
