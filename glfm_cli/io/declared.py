"""What a file declares of a column besides its values: a label, and values that mean missing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

LABEL_KEY, MISSING_KEY = b"glfm.label", b"glfm.missing"


class Declared(NamedTuple):
    """A label, and the texts of missing values."""

    label: str | None = None
    missing: tuple[str, ...] = ()


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
    return Declared(None if label is None else label.decode(), tuple(missing))
