"""Data frames of pandas to Arrow tables and back, dtypes and index kept; pandas is not imported."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pyarrow as pa

from glfm_cli.errors import TableError, UsageError


def is_frame(data: Any) -> bool:
    """Return whether an object is a pandas `DataFrame`."""
    kind = type(data)
    return kind.__name__ == "DataFrame" and kind.__module__.partition(".")[0] == "pandas"


def table_of(data: Any) -> pa.Table:
    """Return a table or data frame as a `pyarrow.Table`; missing values become null.

    Raises
    ------
    UsageError
        It is neither.
    TableError
        A column of a data frame mixes types.
    """
    if isinstance(data, pa.Table):
        return data
    if not is_frame(data):
        raise UsageError(
            "the data",
            value=f"a {type(data).__module__}.{type(data).__name__}",
            expected="a pandas.DataFrame or a pyarrow.Table",
            hint="A column needs a name: make it a frame by `pandas.DataFrame(data, columns=...)`.",
        )
    columns = []
    for place, name in enumerate(data.columns):
        try:
            columns.append(pa.chunked_array(_chunks(data.iloc[:, place])))
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            raise TableError(
                "the column holds values of several types",
                column=str(name),
                hint="Give the column one type, for example by `.astype(str)`.",
            ) from None
    return pa.table(columns, names=[str(name) for name in data.columns])


def _chunks(series: Any) -> list[pa.Array]:
    array = pa.Array.from_pandas(series)
    return array.chunks if isinstance(array, pa.ChunkedArray) else [array]


def table_of_numbers(matrix: Any) -> pa.Table:
    """Return a matrix of numbers (n, p) as a table of columns x0, x1, ...; NaN becomes null."""
    numbers = matrix.astype("float64")
    columns = [pa.array(column, from_pandas=True) for column in numbers.T]
    return pa.table(columns, names=[f"x{i}" for i in range(len(columns))])


def with_texts(table: pa.Table, name: str, texts: Any) -> pa.Table:
    """Return a table with one more column, of texts and None."""
    return table.append_column(name, pa.array(texts, pa.string()))


def frame_like(table: pa.Table, frame: Any, changed: Collection[str]) -> Any:
    """Return a copy of a data frame with some columns taken from a table, in their dtypes.

    Parameters
    ----------
    table : pyarrow.Table
        With the columns of `table_of(frame)`.
    frame : pandas.DataFrame
        Its index, its other columns and the dtypes are kept.
    changed : collection of str
        Columns to take.
    """
    out = frame.copy(deep=False)
    for place, name in enumerate(table.column_names):
        if name not in changed:
            continue
        old = frame.iloc[:, place]
        values = table.column(place).to_pandas()
        values.index = frame.index
        kept = values.astype(old.dtype)
        # A completed level that was no category of the column yet makes the categories longer.
        out.isetitem(place, values if kept.isna().any() and not values.isna().any() else kept)
    return out
