"""What scikit-learn expects of estimators: its errors, its seeds, its checks of rows."""

from __future__ import annotations

import warnings
from contextlib import suppress
from numbers import Integral
from typing import Any

import numpy as np
import pyarrow as pa

from glfm_cli.errors import GlfmError, UsageError
from glfm_cli.io.frames import table_of


class RowsError(UsageError, ValueError):
    """The rows cannot be used; a ValueError, as scikit-learn's own estimators raise."""


def not_fitted(estimator: object) -> GlfmError:
    """Return the error of an estimator without `fit`; scikit-learn's own too, where it is there."""
    name = type(estimator).__name__
    kind: Any = RowsError
    try:
        from sklearn.exceptions import NotFittedError

        kind = type("NotFittedError", (UsageError, NotFittedError), {})
    except ImportError:
        pass
    error: GlfmError = kind(f"this {name} is not fitted yet", hint="Call `fit` first.")
    return error


def table_of_rows(X: Any) -> pa.Table:
    """Return rows as a table.

    Raises
    ------
    RowsError
        They are no table, have no row, or hold an infinite number.
    """
    if hasattr(X, "tocsr"):
        raise RowsError(
            "sparse matrices are not taken", hint="Make the matrix dense: `X.toarray()`."
        )
    if hasattr(X, "__array__") and not hasattr(X, "__arrow_c_stream__") and not hasattr(X, "iloc"):
        X = np.asarray(X)
    if isinstance(X, np.ndarray | list):
        _check_matrix(np.asarray(X))
    try:
        table = table_of(X)
    except UsageError as error:
        raise RowsError(
            error.problem, value=error.value, expected=error.expected, hint=error.hint
        ) from None
    if not table.num_rows:
        raise RowsError(f"0 sample(s) (shape={table.shape}) while a minimum of 1 is required")
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_floating(column.type):
            values = column.to_numpy()
            if np.isinf(values.astype(np.float64)).any():
                raise RowsError("X contains infinity", column=name)
    return table


def _check_matrix(matrix: np.ndarray) -> None:
    """Raise RowsError, in scikit-learn's words, when an array is no matrix of rows."""
    if np.iscomplexobj(matrix):
        raise RowsError("Complex data not supported")
    if matrix.ndim != 2:
        raise RowsError(
            f"expected a 2D array, got shape {matrix.shape}. Reshape your data, a single column "
            "by X.reshape(-1, 1)"
        )
    for i, what in enumerate(("sample", "feature")):
        if not matrix.shape[i]:
            raise RowsError(f"0 {what}(s) (shape={matrix.shape}) while a minimum of 1 is required.")


def check_width(estimator: Any, n: int) -> None:
    """Raise RowsError when rows have another number of columns than those that were fitted."""
    if n != estimator.n_features_in_:
        raise RowsError(
            f"X has {n} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input"
        )


def seed_of(seed: int | None, random_state: Any) -> int | None:
    """Return the seed that `seed` or scikit-learn's `random_state` gives."""
    if seed is not None or random_state is None:
        return seed
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(random_state.randint(2**31 - 1))


def labels_of(y: Any, n_rows: int) -> np.ndarray:
    """Return the labels (n_rows,) of rows as objects; None or NaN where missing.

    Raises
    ------
    RowsError
        There is not one for each row, or they are numbers between whole ones, or infinite.
    """
    if y is None:
        raise RowsError("a fit requires y to be passed, but the target y is None")
    if hasattr(y, "tocsr"):
        raise RowsError("sparse labels are not taken", hint="Make them dense: `y.toarray()`.")
    plain = np.asarray(y)
    if plain.shape == (n_rows, 1) and n_rows > 1:
        _warn_of_column()
        plain = plain[:, 0]
    if plain.shape != (n_rows,):
        raise RowsError("y", value=f"shape {plain.shape}", expected=f"({n_rows},)")
    if plain.dtype.kind == "f":
        if np.isinf(plain).any():
            raise RowsError("y contains infinity")
        if np.any(plain[~np.isnan(plain)] % 1.0):
            raise RowsError("Unknown label type: continuous", hint="GlfmImputer predicts numbers.")
    return plain.astype(object)


def _warn_of_column() -> None:
    """Warn as scikit-learn's own estimators do, with its kind of warning where it is there."""
    kind: type[Warning] = UserWarning
    with suppress(ImportError):
        from sklearn.exceptions import DataConversionWarning as kind  # type: ignore[no-redef]
    warnings.warn("A column-vector y was passed when a 1d array was expected", kind, stacklevel=4)
