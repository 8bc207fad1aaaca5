"""Fits of matrices that are kept in a folder: begun, gone on with, and loaded again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from glfm_cli.completion.matrix.matrix import MatrixData
from glfm_cli.completion.matrix.side import Features, SideCode, features_of
from glfm_cli.encoding import EncodedColumn, Triplets
from glfm_cli.errors import StoreError, UsageError
from glfm_cli.options import MatrixOptions
from glfm_cli.schema import Schema
from glfm_cli.store import (
    Fit,
    MatrixCells,
    MatrixHeader,
    hash_of_matrix,
    hash_of_types,
)
from glfm_cli.store.folder import DATA, TYPES
from glfm_cli.store.matrix import SIDES


def cells_of(data: MatrixData) -> MatrixCells:
    """Return the observed cells of a matrix and its covariates."""
    triplets, sides = data.triplets, (data.rows, data.others)
    R, C = (
        np.empty((len(ids), 0)) if part is None else part
        for ids, part in zip(sides, data.covariates, strict=True)
    )
    return MatrixCells(triplets.row, triplets.column, triplets.value.x, R, C)


def hash_of_cells(data: MatrixData) -> str:
    """Return the SHA-256 of everything that the model sees of a matrix."""
    value = data.triplets.value
    return hash_of_matrix((data.rows, data.others), value.column, value.levels, cells_of(data))


def features_to_continue(
    matrix: MatrixOptions, header: MatrixHeader, folder: Path
) -> MatrixOptions:
    """Return the options of a matrix with which a run goes on as it was begun.

    Raises UsageError, StoreError: they say something else.
    """
    if matrix.missingness_features not in (None, header.missingness):
        raise UsageError(
            "--missingness-features",
            value=matrix.missingness_features,
            expected=f"{header.missingness}, with which {folder} was started",
            hint="Leave it out; only --draws may change when a run is resumed.",
        )
    given = (features_of(matrix.row_features), features_of(matrix.column_features))
    rows, columns = (
        same_side(one, side, text, folder)
        for one, side, text in zip(given, SIDES, header.sides, strict=True)
    )
    return replace(
        matrix, row_features=rows, column_features=columns, missingness_features=header.missingness
    )


def same_side(given: Features, side: str, header_of_side: Any, folder: Path) -> Features:
    """Return the features of a side with the types that a fit was made with.

    Raises UsageError, StoreError: the fit has such features and none are given, or the other way
        round, or other types.
    """
    if header_of_side is None:
        if given is None:
            return None
        raise UsageError(
            f"--{side}-features", expected=f"none: {folder} was made without features of {side}s"
        )
    if given is None:
        raise UsageError(
            f"--{side}-features FILE is missing",
            hint=f"{folder} was made with features of {side}s; its types are saved there.",
        )
    kept = Schema.from_yaml(str(header_of_side.get("types")), file=str(folder / TYPES))
    if given.schema is not None and hash_of_types(given.schema) != hash_of_types(kept):
        raise StoreError(
            f"was made with other --{side}-types than those given now",
            file=str(folder),
            hint=f"Leave --{side}-types out to use its own, or start a new run.",
        )
    return replace(given, schema=kept)


def matrix_of_fit(fit: Fit) -> MatrixData:
    """Return the matrix of a saved fit.

    Without its cells (`--no-data`) it has none that are observed.

    Raises StoreError: it is a fit of a table, or its cells are not those that it was made from.
    """
    stored, header, (link,) = fit.matrix, fit.header, fit.links
    if stored is None or header.matrix is None:
        raise StoreError(
            "is a fit of a table, which has no pairs",
            file=str(fit.path),
            hint="Fits of triplets come from `glfm impute --save` of a table with roles row, "
            "column and value.",
        )
    cells = stored.cells
    none = np.empty(0, np.int32)
    row, column, x = none, none, np.empty(0)
    if cells is not None:
        row, column, x = cells.row, cells.column, cells.x
    try:
        link.check_cells(x)
    except ValueError as error:
        raise StoreError(f"cannot be used: {error}", file=str(fit.path / DATA)) from None
    seen = np.ones(x.size, dtype=bool)
    modelled = header.modelled[0]
    value = EncodedColumn(fit.columns[0], modelled.index, x, seen, ~seen, modelled.levels)
    R, C = (None, None) if cells is None else (cells.R, cells.C)
    covariates = [part if part is not None and part.shape[1] else None for part in (R, C)]
    codes = [
        None
        if header_of_side is None
        else SideCode.load(header_of_side, arrays or {}, str(fit.path))
        for header_of_side, arrays in zip(header.matrix.sides, stored.sides, strict=True)
    ]
    data = MatrixData(
        Triplets(stored.rows, stored.columns, row, column, value),
        (covariates[0], covariates[1]),
        header.matrix.covariates,
        (codes[0], codes[1]),
        header.matrix.missingness,
        has_cells=cells is not None,
    )
    if cells is not None and hash_of_cells(data) != header.data_hash:
        raise StoreError(
            "is not the matrix that the fit was made with: its hash is another",
            file=str(fit.path / DATA),
        )
    return data
