"""What scikit-learn expects of estimators: its errors, its seeds, its checks of rows."""

from __future__ import annotations

import math
import warnings
from importlib import import_module
from numbers import Integral, Real
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
    theirs = _exception("NotFittedError")
    if theirs is not None:
        kind = type("NotFittedError", (UsageError, theirs), {})
    return kind(f"this {name} is not fitted yet", hint="Call `fit` first.")


def _exception(name: str) -> Any:
    """Return an exception or warning of scikit-learn, None where that is not installed."""
    try:
        return getattr(import_module("sklearn.exceptions"), name)
    except ImportError:
        return None


def table_of_rows(X: Any) -> pa.Table:
    """Return rows as a table.

    Raises RowsError: they are no table, have no row, or hold an infinite number.
    """
    if hasattr(X, "tocsr"):
        raise RowsError(
            "sparse matrices are not taken", hint="Make the matrix dense: `X.toarray()`."
        )
    is_frame = hasattr(X, "__arrow_c_stream__") or hasattr(X, "iloc")
    if hasattr(X, "__array__") and not is_frame and not isinstance(X, np.ndarray):
        X = np.asarray(X)  # an array proper may have a mask, which this would drop
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


def table_of_new_rows(estimator: Any, X: Any) -> pa.Table:
    """Return rows as a table; those of a matrix have the columns that were fitted, in their order.

    Raises RowsError: they are no rows, or a matrix of another number of columns.
    """
    table = table_of_rows(X)
    if not isinstance(X, np.ndarray | list):
        return table
    if table.num_columns != estimator.n_features_in_:
        raise RowsError(
            f"X has {table.num_columns} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input"
        )
    return table.rename_columns(list(estimator.feature_names_in_))


def labels_of_rows(y: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return labels (n_rows,) to learn from, as objects, and which of them are there.

    Raises RowsError: they are no labels of so many rows, none is there, or they are all alike.
    """
    if np.asarray(y, dtype=object).shape == (n_rows, 1):
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected",
            _exception("DataConversionWarning") or UserWarning,
            stacklevel=4,
        )
    labels, there = read_labels(y, n_rows)
    numbers = [float(label) for label in labels[there] if isinstance(label, Real)]
    if any(math.isinf(label) for label in numbers):
        raise RowsError("Input y contains infinity")
    if not all(map(float.is_integer, numbers)):
        raise RowsError(
            "Unknown label type: y holds fractions, which are not labels",
            hint="Give labels as whole numbers or texts; a column of numbers is for `GlfmImputer`.",
        )
    if numbers and any(isinstance(label, str) for label in labels[there]):
        raise RowsError(
            "y mixes texts and numbers, which have no order", hint="Give all labels as texts."
        )
    if len(set(labels[there])) < 2:
        raise RowsError("y has one class only", expected="labels of at least two classes")
    return labels, there


def read_labels(y: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return labels (n_rows,) or (n_rows, 1) as objects (n_rows,), and which of them are there.

    Raises RowsError: they are not of so many rows, or all are missing.
    """
    if y is None:
        raise RowsError("the estimator requires y to be passed, but the target y is None")
    labels = np.array(y, dtype=object)
    if isinstance(y, np.ma.MaskedArray):
        labels[np.ma.getmaskarray(y)] = None
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels.ravel()
    if labels.shape != (n_rows,):
        raise RowsError("y", value=f"shape {labels.shape}", expected=f"({n_rows},)")
    there = np.array([_is_there(label) for label in labels], dtype=bool)
    if not there.any():
        raise RowsError("every label of y is missing", expected="labels of some rows")
    return labels, there


def _is_there(label: Any) -> bool:
    if label is None:
        return False
    itself = label == label  # NaN and NaT differ from themselves; pandas' NA says NA, not a boolean
    return isinstance(itself, bool | np.bool_) and bool(itself)


def same_labels(labels: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return (n,) bool, which labels are those of `others`; 1, 1.0 and "1" are the same one."""
    pairs = zip(labels.tolist(), others.tolist(), strict=True)
    return np.array([a == b or _label_text(a) == _label_text(b) for a, b in pairs], dtype=bool)


def _label_text(label: Any) -> str:
    is_whole = isinstance(label, float) and label.is_integer()
    return str(int(label)) if is_whole else str(label)


def seed_of(seed: int | None, random_state: Any) -> int | None:
    """Return the seed that `seed` or scikit-learn's `random_state` gives.

    Raises RowsError: `random_state` is neither a number nor a generator of some.
    """
    if seed is not None or random_state is None:
        return seed
    if isinstance(random_state, Integral):
        return int(random_state)
    draw = getattr(random_state, "integers", None) or getattr(random_state, "randint", None)
    if draw is None:
        expected = "a whole number, a RandomState or a Generator of NumPy"
        raise RowsError("random_state", value=random_state, expected=expected)
    return int(draw(2**31 - 1))
