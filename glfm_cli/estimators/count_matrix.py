"""Matrices of counts as scikit-learn's users have them: sparse of SciPy, arrays, data frames."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import coo_array, issparse

from glfm_cli.arrays import Array
from glfm_cli.errors import TableError
from glfm_cli.latent.cnpf import Counts
from glfm_cli.schema.phrases import did_you_mean


def counts_of(X: Any, n_columns: int | None = None, threads: int = 1) -> Counts:
    """Return a matrix as counts; a cell that a sparse matrix does not store is a zero.

    n_columns : that it must have

    Raises TableError: it is no matrix of whole numbers from 0 on, has another number of columns,
        stores a pair twice, or is empty; names the first cell that is wrong, from 1.
    """
    row, column, count, shape = _sparse(X) if issparse(X) else _dense(X)
    if n_columns is not None and shape[1] != n_columns:
        raise TableError(
            value=f"{shape[1]} columns", expected=f"{n_columns}, as in the fitted matrix"
        )
    if 0 in shape:
        raise TableError(value=f"{shape[0]} x {shape[1]}", expected="at least one row and column")
    if not (np.issubdtype(count.dtype, np.number) or count.dtype == np.bool_):
        raise TableError(value=f"values of type {count.dtype}", expected="counts")
    if np.issubdtype(count.dtype, np.complexfloating):
        raise TableError(value="complex numbers", expected="counts")
    return Counts.of(row, column, count.astype(np.float64), shape, threads=threads)


def names_of(X: Any) -> Array | None:
    """Return the names of a data frame's columns, None where they are not all text."""
    names = getattr(X, "columns", None)
    if names is None or not all(isinstance(name, str) for name in names):
        return None
    return np.array(list(names), dtype=object)


def with_names(X: Any, names: Array | None) -> Any:
    """Return a frame with the columns that were fitted, in their order; others as they are.

    names : of the fitted columns, None where they had none

    Raises TableError: columns of such names are missing, or others are there.
    """
    own = names_of(X)
    if own is None or names is None:
        return X
    for these, those, problem in (
        (names, own, "the frame lacks a column of the fitted matrix"),
        (own, names, "the fitted matrix had no such column"),
    ):
        known = set(those)
        odd = [name for name in these if name not in known]
        if odd:
            raise TableError(problem, column=odd[0], hint=did_you_mean(odd[0], those))
    return X[list(names)]


def _sparse(X: Any) -> tuple[Array, Array, Array, tuple[int, int]]:
    """Return the stored cells of a sparse matrix as they are: duplicates are not added up."""
    if X.ndim != 2:
        raise TableError(value=f"{X.ndim} dimension(s)", expected="a matrix of counts")
    if X.format not in ("csr", "csc", "coo"):
        X = coo_array(X)
    coo = X.tocoo()
    return coo.row, coo.col, coo.data, coo.shape


def _dense(X: Any) -> tuple[Array, Array, Array, tuple[int, int]]:
    """Return the cells of an array that are not zero."""
    values = np.asarray(X)
    if values.ndim != 2:
        raise TableError(value=f"{values.ndim} dimension(s)", expected="a matrix of counts")
    if values.dtype == object:
        try:
            values = values.astype(np.float64)
        except (TypeError, ValueError):
            raise TableError(value="values that are no numbers", expected="counts") from None
    row, column = np.nonzero(values)
    return row, column, values[row, column], values.shape
