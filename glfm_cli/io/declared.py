"""What a file declares of a column besides its values: a label, and values that mean missing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date, time
from typing import NamedTuple

import pyarrow as pa

LABEL_KEY, MISSING_KEY = b"glfm.label", b"glfm.missing"
STATISTICS_KEY = b"glfm.statistics"  # of a field: what its file of SPSS, Stata or SAS says of it


class Declared(NamedTuple):
    """A label, the texts of missing values, the code of each value label, and labels of texts."""

    label: str | None = None
    missing: tuple[str, ...] = ()
    codes: tuple[tuple[str, float], ...] = ()
    meanings: tuple[tuple[str, str], ...] = ()  # of codes that stay as they are: -1, not applicable


NOTHING_DECLARED = Declared()


def declare(label: str | None, missing: Sequence[str]) -> dict[bytes, bytes]:
    """Return the metadata of a field that says so."""
    metadata = {LABEL_KEY: label.encode()} if label else {}
    return metadata | ({MISSING_KEY: json.dumps(list(missing)).encode()} if missing else {})


def declared(field: pa.Field) -> Declared:
    """Return what a field's metadata says."""
    metadata = field.metadata or {}
    label = metadata.get(LABEL_KEY)
    missing = json.loads(metadata.get(MISSING_KEY, b"[]"))
    kept = json.loads(metadata.get(STATISTICS_KEY, b"{}"))
    named = kept.get("codes", ())
    codes = tuple((text.strip(), float(code)) for text, code in named if not isinstance(code, str))
    meanings = tuple((shown_code(code), text) for code, text in kept.get("labels", ()))
    return Declared(None if label is None else label.decode(), tuple(missing), codes, meanings)


def shown_code(value: str | float | date | time) -> str:
    """Return a code as text; Stata's letters with the point in front that Stata shows."""
    if isinstance(value, str):
        return f".{value}" if len(value) == 1 and value.isalpha() else value
    if isinstance(value, date | time):  # with its time or without
        return value.isoformat()
    return str(int(value)) if float(value).is_integer() else repr(value)
