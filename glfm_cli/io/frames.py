"""Data of other libraries to Arrow tables and back, of the same kind; none of them is imported."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from glfm_cli.errors import TableError, UsageError

_OBJECTS = pa.opaque(pa.string(), "object", "pandas")  # of several types, or of none of Arrow's

_WHOLE = 2.0**53  # up to here every integer is a double

_FINE = ("ns", "ps", "fs", "as")  # units of time that Python has no objects of


@dataclass(frozen=True, kw_only=True, repr=False)
class AsGiven:
    """A result that remembers the data that it was made from."""

    given: Any = None

    def __repr__(self) -> str:
        """Return a line; the fields hold whole tables and all draws."""
        return f"<{type(self).__name__}: to_table() has its rows>"

    @property
    def output(self) -> Any:
        """The table of the result, of the kind that was given: pandas for pandas."""
        table = self.to_table()  # type: ignore[attr-defined]
        return table if isinstance(self.given, np.ndarray | list) else table_as(table, self.given)


class _NoPandas:
    """Finds that there is no pandas."""

    def find_spec(self, name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


def leave_pandas_out() -> None:
    """Let pyarrow do without pandas from now on, unless somebody imported it.

    It would import it, a quarter of a second, only to see that what becomes an array is not from
    there. For a process in which nothing becomes a frame through pyarrow.
    """
    if "pandas" not in sys.modules:
        sys.meta_path.insert(0, finder := _NoPandas())
        try:
            pa.array([0])  # it asks once
        finally:
            sys.meta_path.remove(finder)


def is_frame(data: Any) -> bool:
    """Return whether an object is a pandas `DataFrame`."""
    return type(data).__name__ == "DataFrame" and _library(data) == "pandas"


def table_of(data: Any) -> pa.Table:
    """Return data of any kind as a `pyarrow.Table`; missing values become null.

    Tables and frames of pyarrow, pandas, polars, DuckDB and whatever else has
    `__arrow_c_stream__`; a matrix of NumPy, or a list of rows, with columns x0, x1, ...

    Raises UsageError: it is none of them; TableError: a column of a data frame mixes types.
    """
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if hasattr(data, "__arrow_c_stream__") and not (is_frame(data) or _is_column(data)):
        if (level := getattr(sys.modules.get("polars"), "CompatLevel", None)) and _library(
            data
        ) == "polars":
            return data.to_arrow(compat_level=level.oldest())  # Arrow takes little from its views
        return pa.table(data)
    if isinstance(data, np.ndarray | list):
        return _table_of_matrix(_unmasked(data))
    if not is_frame(data):
        raise UsageError(
            "the data",
            value=f"a {type(data).__module__}.{type(data).__name__}",
            expected="a table of pyarrow, pandas, polars or DuckDB, or a NumPy matrix",
            hint=_mend(data),
        )
    columns = [_column(data.iloc[:, place]) for place in range(data.shape[1])]
    return pa.table(columns, names=[str(name) for name in data.columns])


def _mend(data: Any) -> str:
    """Return how something that is no table becomes one."""
    if hasattr(data, "collect"):  # LazyFrame of polars, frames of Spark
        return "It is not computed yet: give `data.collect()`."
    if isinstance(data, Mapping):
        return "Give `pandas.DataFrame(data)`, or `pyarrow.table(data)`."
    if _is_column(data):
        return "A column is not a table: give a frame, as `data.to_frame()` is."
    return "A column needs a name: make it a frame by `pandas.DataFrame(data, columns=...)`."


def _column(series: Any) -> pa.ChunkedArray:
    if hasattr(series.dtype, "fill_value"):  # sparse, which Arrow does not take
        series = series.sparse.to_dense()
    if texts := _interval_texts(series):
        series = series.cat.rename_categories(list(texts))
    try:
        array = pa.Array.from_pandas(series)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        # Nothing is known of such objects but how they show; `frame_like` keeps them themselves.
        pairs = zip(series.tolist(), series.isna(), strict=True)
        shown = [None if missing else str(value) for value, missing in pairs]
        array = pa.ExtensionArray.from_storage(_OBJECTS, pa.array(shown, pa.string()))
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def _interval_texts(series: Any) -> dict[str, Any]:
    """Return texts to intervals, of a column of such levels as `pandas.cut` makes; else none."""
    levels = getattr(series.dtype, "categories", None)
    if levels is None or type(levels).__name__ != "IntervalIndex":
        return {}
    return {str(level): level for level in levels}


def _is_column(data: Any) -> bool:
    """Return whether an object is a single column, which has an Arrow stream as a table has."""
    return type(data).__name__ in ("Series", "ChunkedArray")


def _unmasked(data: Any) -> np.ndarray:
    """Return rows as a plain array; cells under a mask become NaN, NaT, or None among objects.

    Raises UsageError: the rows are not equally long, or numbers are complex; TableError: a whole
        number is none of the doubles that a matrix of numbers is taken as.
    """
    try:
        matrix = np.asarray(data)
    except ValueError:  # rows of several lengths
        raise UsageError("the data", value="rows of several lengths", expected="a matrix") from None
    if isinstance(data, list) and matrix.dtype.kind in "SU":  # which makes texts of numbers too
        matrix = np.array(data, dtype=object)
    if np.iscomplexobj(matrix):
        raise UsageError("the data", value="complex numbers", expected="real ones")
    if _is_numeric(matrix.dtype):
        _check_whole(np.array(data, dtype=object) if isinstance(data, list) else data, matrix)
    if not isinstance(data, np.ma.MaskedArray) or not np.ma.is_masked(data):
        return matrix
    missing: Any
    if _is_numeric(matrix.dtype):
        matrix, missing = matrix.astype(np.float64), np.nan
    elif matrix.dtype.kind in "mM":
        matrix, missing = matrix.copy(), np.array("NaT", matrix.dtype)
    else:
        matrix, missing = matrix.astype(object), None
    matrix[np.ma.getmaskarray(data)] = missing
    return matrix


def _check_whole(data: Any, matrix: np.ndarray) -> None:
    """Raise TableError for a whole number of `data`, of the shape of `matrix`, that is no double.

    Cells under a mask may hold anything.
    """
    if data.dtype.kind not in "iuO" or matrix.ndim != 2 or not matrix.size:
        return
    far = np.argwhere((np.abs(matrix.astype(np.float64)) >= _WHOLE) & ~np.ma.getmaskarray(data))
    for row, j in far.tolist():
        cell = np.asarray(data)[row, j]
        if not isinstance(cell, float | np.floating) and int(float(cell)) != int(cell):
            raise TableError(
                "",
                row=row + 1,
                column=f"x{j}",
                value=str(cell),
                expected="numbers that doubles hold, as all integers up to 2^53, in a matrix",
                hint="Give a data frame, whose columns keep whole numbers, with role id for it.",
            )


def _is_numeric(kind: np.dtype) -> bool:
    return kind.kind in "biuf"


def _table_of_matrix(matrix: np.ndarray) -> pa.Table:
    if matrix.ndim != 2 or not matrix.shape[1]:
        raise UsageError(
            "the data",
            value=f"an array of shape {matrix.shape}",
            expected="a 2D array, rows by columns",
            hint="Give `pandas.DataFrame(data)`."
            if matrix.dtype.names or (matrix.size and isinstance(matrix.flat[0], Mapping))
            else "Reshape your data: a single column by `data.reshape(-1, 1)`.",
        )
    if _is_numeric(matrix.dtype):
        return table_of_numbers(matrix)
    columns = []
    for j, column in enumerate(matrix.T):
        try:
            columns.append(pa.array(_cells(column)))
        except OverflowError:
            message = "the column holds a whole number of more than 64 bits"
            raise TableError(message, column=f"x{j}") from None
        except UnicodeError:
            raise TableError("the column holds a text with half a letter", column=f"x{j}") from None
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            raise TableError("the column holds values of several types", column=f"x{j}") from None
    return pa.table(columns, names=[f"x{j}" for j in range(len(columns))])


def _cells(column: np.ndarray) -> Any:
    """Return the cells of a column that are no numbers as Arrow takes them, None where missing."""
    if column.dtype.kind in "mM" and np.datetime_data(column.dtype)[0] in _FINE:
        return column.astype(f"{column.dtype.kind}8[ns]")  # their list would be of counts
    return [None if x is None or _is_na(x) or x != x else x for x in column.tolist()]


def _is_na(cell: Any) -> bool:
    """Return whether a cell is the `NA` of pandas, which says neither yes nor no to comparisons."""
    return type(cell).__name__ == "NAType"


def table_like(table: pa.Table, given: Any, changed: Collection[str]) -> Any:
    """Return a completed table as what the data were given as.

    table : with the columns of `table_of(given)`, and new ones behind them
    changed : the columns that were completed
    """
    if is_frame(given):
        return frame_like(table, given, changed)
    if isinstance(given, np.ndarray | list):
        return _matrix_like(table, given)
    whole = table_as(table, given)
    if type(whole) is type(given) and hasattr(whole, "cast") and _library(given) == "polars":
        return whole.cast(_kept_types(whole.schema, given.schema))
    return whole


def _kept_types(new: Any, old: Any) -> dict[str, Any]:
    """Return the types of a polars frame, without those that cannot hold what completed them."""
    polars = sys.modules["polars"]

    def holds(kind: Any, completed: Any) -> bool:
        return kind != polars.Null and not (completed == polars.String and kind.is_numeric())

    return {n: kind for n, kind in old.items() if kind == new[n] or holds(kind, new[n])}


def _matrix_like(table: pa.Table, given: Any) -> np.ndarray:
    """Return a table as a matrix; cells that are still missing are masked if they were."""
    kind = np.asarray(given).dtype
    if _is_numeric(kind):
        columns = [column.to_numpy() for column in table.columns]
        matrix = np.column_stack(columns).astype(
            kind if np.issubdtype(kind, np.floating) else np.float64
        )
    else:
        matrix = np.array([column.to_pylist() for column in table.columns], dtype=object).T
    if not isinstance(given, np.ma.MaskedArray):
        return matrix
    nulls = [column.is_null(nan_is_null=True).to_numpy() for column in table.columns]
    return np.ma.masked_array(matrix, mask=np.column_stack(nulls))


def table_as(table: pa.Table, given: Any) -> Any:
    """Return a table as data of the library that `given` is of; else as it is."""
    if is_frame(given):
        return table.to_pandas()
    if _library(given) == "polars":
        return sys.modules["polars"].from_arrow(table)
    if _library(given) in ("duckdb", "_duckdb"):
        return sys.modules["duckdb"].from_arrow(table)
    return table


def _library(data: Any) -> str:
    return type(data).__module__.partition(".")[0]


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

    table : with the columns of `table_of(frame)`, and new ones behind them
    frame : its index, its other columns and the dtypes are kept
    changed : columns to take
    """
    out = frame.copy(deep=False)
    n_old = frame.shape[1]
    for name, column in zip(table.column_names[n_old:], table.columns[n_old:], strict=True):
        out[name] = column.to_pandas().to_numpy()
    for place, name in enumerate(table.column_names[:n_old]):
        if name not in changed:
            continue
        old = frame.iloc[:, place]
        values = table.column(place).to_pandas()
        values.index = frame.index
        if texts := _interval_texts(old):
            values = values.astype(object).map(texts)
        try:
            kept = values.astype(old.dtype)
        except (TypeError, ValueError):  # texts complete a column of NaN
            kept = values
        # A completed level that was no category of the column yet makes the categories longer.
        out.isetitem(place, values if kept.isna().any() and not values.isna().any() else kept)
    return out
