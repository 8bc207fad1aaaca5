"""What the columns of X mean where nobody says it: features, whatever they seem to number."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from glfm_cli.encoding import NotCompleted
from glfm_cli.errors import TableError
from glfm_cli.guess import Guess, guess_features
from glfm_cli.schema import Column, Role, Schema

MOST_NAMED = 12


def guessed(table: pa.Table, X: Any) -> Guess:
    """Return a guess of the types; of a matrix, whose columns all count, none is left out.

    table : X as a table
    """
    if not isinstance(X, np.ndarray | list):
        return guess_features(table)
    try:
        guess = guess_features(table)
    except TableError:  # no column varies
        schema = Schema(tuple(Column(n, role=Role.IGNORE) for n in table.column_names))
        guess = Guess(schema, dict.fromkeys(table.column_names, ""), table.num_rows)
    columns = tuple(
        Column(column.name).of_numbers()
        if not column.modelled and _holds_numbers(table[column.name])
        else column
        for column in guess.schema.columns
    )
    return replace(guess, schema=replace(guess.schema, columns=columns))


def warn_of_empty(table: pa.Table) -> None:
    """Warn of columns without a value, whose cells an imputer leaves missing."""
    empty = [f"'{name}'" for name in table.column_names if _is_empty(table[name])]
    if empty:
        _warn(
            f"no row has a value in {_named(empty)}: nothing can be put into these cells, and they "
            "stay missing"
        )


def warn_of_left_out(table: pa.Table, guess: Guess, left: Sequence[NotCompleted]) -> None:
    """Warn of missing cells of columns with values that a guess leaves out, with its reasons."""
    unmodelled = {column.name for column in guess.schema.columns if not column.modelled}
    named = [
        f"{one.cells} in '{one.column}' ({guess.reasons[one.column].removeprefix('ignored: ')})"
        for one in left
        if one.column in unmodelled and not _is_empty(table[one.column])
    ]
    if named:
        _warn(
            f"missing cells of columns that are left out stay missing: {_named(named)}. Drop these "
            "columns, or say by `types` what they hold."
        )


def _warn(message: str) -> None:
    warnings.warn(message, UserWarning, stacklevel=4)


def _named(parts: Sequence[str]) -> str:
    return ", ".join(parts[:MOST_NAMED]) + ", ..." * (len(parts) > MOST_NAMED)


def _is_empty(cells: pa.ChunkedArray) -> bool:
    gone = cells.is_null(nan_is_null=pa.types.is_floating(cells.type))
    return bool(gone.to_numpy().all())


def _holds_numbers(cells: pa.ChunkedArray) -> bool:
    kind = cells.type
    return cells.null_count < len(cells) and bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind)
    )
