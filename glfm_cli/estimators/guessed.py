"""What the columns of X mean where nobody says it: features, whatever they seem to number."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from glfm_cli.errors import TableError
from glfm_cli.guess import guess_features
from glfm_cli.schema import Column, Role, Schema


def guessed_schema(table: pa.Table, X: Any) -> Schema:
    """Return a guess of the types; of a matrix, whose columns all count, none is left out.

    table : X as a table
    """
    if not isinstance(X, np.ndarray | list):
        return guess_features(table).schema
    try:
        schema = guess_features(table).schema
    except TableError:  # no column varies
        schema = Schema(tuple(Column(n, role=Role.IGNORE) for n in table.column_names))
    columns = tuple(
        Column(column.name).of_numbers()
        if not column.modelled and _holds_numbers(table[column.name])
        else column
        for column in schema.columns
    )
    return replace(schema, columns=columns)


def _holds_numbers(cells: pa.ChunkedArray) -> bool:
    kind = cells.type
    return cells.null_count < len(cells) and bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind)
    )
