"""Fits of matrices that are kept in a folder: begun, gone on with, and loaded again."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from glfm_cli.completion import SamplingOptions, SaveOptions, Session
from glfm_cli.completion.matrix.matrix import Features, MatrixTask, plan_matrix
from glfm_cli.completion.matrix.side import SideCode
from glfm_cli.completion.session import PARTIAL, header_to_go_on_with, version_notes
from glfm_cli.encoding import Data, EncodedColumn, Triplets, encode_triplets
from glfm_cli.errors import StoreError, UsageError
from glfm_cli.inference.chain import Problem
from glfm_cli.latent.model import Entries
from glfm_cli.schema import Schema
from glfm_cli.store import (
    Fit,
    Header,
    MatrixCells,
    MatrixHeader,
    Modelled,
    cell_arrays,
    hash_of_content,
    hash_of_matrix,
    hash_of_types,
    matrix_arrays,
    versions,
)
from glfm_cli.store.folder import DATA, MATRIX, TYPES
from glfm_cli.store.matrix import SIDES


def plan_matrix_session(
    table: pa.Table,
    schema: Schema | None,
    requested: SamplingOptions,
    keeping: SaveOptions,
    features: tuple[Features, Features],
    *,
    missingness_features: int | None = None,
    file: str | None = None,
) -> tuple[MatrixTask, Session]:
    """Check everything, encode the cells and calibrate the link; nothing is written yet.

    Raises
    ------
    GlfmError
        A table, its types or an option are wrong, or do not belong to the run to go on with.
    """
    if keeping.resume is not None:
        return _going_on(table, schema, requested, keeping, features, missingness_features, file)
    assert schema is not None
    task = plan_matrix(
        encode_triplets(table, schema, file=file),
        **vars(requested),
        row_features=features[0],
        column_features=features[1],
        missingness_features=missingness_features,
    )
    return task, _session(task, schema, tuple(table.column_names), keeping, file)


def _session(
    task: MatrixTask, schema: Schema, names: tuple[str, ...], keeping: SaveOptions, file: str | None
) -> Session:
    problem, value = task.problem, task.triplets.value
    ids, cells = (task.rows, task.columns), cells_of(task)
    codes = [None if code is None else code.arrays() for code in task.codes]
    said = [None if code is None else code.to_dict() for code in task.codes]
    content = matrix_arrays(ids, (codes[0], codes[1]))
    matrix = MatrixHeader(
        n_columns=len(task.columns),
        n_cells=cells.row.size,
        ids=(task.rows.name, task.columns.name),
        kinds=(str(task.rows.values.type), str(task.columns.values.type)),
        covariates=task.covariates,
        missingness=task.missingness,
        sides=(said[0], said[1]),
        content_hash=hash_of_content(content),
    )
    header = Header(
        model=problem.model.name,
        model_config=problem.config,
        link_config=problem.link_config,
        plan=task.plan,
        schema=schema,
        n_rows=len(task.rows),
        table=names,
        modelled=(Modelled(value.column.name, str(value.column.type), value.index, value.levels),),
        ids=(),
        notes=(),
        data_hash=_hash(task),
        types_hash=hash_of_types(schema),
        has_data=keeping.with_data,
        file=file,
        versions=versions(),
        matrix=matrix,
    )
    more = {MATRIX: content}
    if keeping.with_data:
        more[DATA] = cell_arrays(cells)
    data = Data(len(task.rows), ())
    return Session(problem, data, task.plan, keeping, header, more)


def cells_of(task: MatrixTask) -> MatrixCells:
    """Return the observed cells of a matrix and its covariates."""
    problem = task.problem
    assert problem.entries is not None
    R, C = (
        np.empty((n, 0)) if part is None else part
        for n, part in zip(
            problem.entries.shape, (problem.row_features, problem.column_features), strict=True
        )
    )
    return MatrixCells(problem.entries.row, problem.entries.column, problem.xs[0], R, C)


def _hash(task: MatrixTask) -> str:
    value = task.triplets.value
    ids = (task.rows, task.columns)
    return hash_of_matrix(ids, value.column, value.levels, cells_of(task))


def _going_on(
    table: pa.Table,
    schema: Schema | None,
    requested: SamplingOptions,
    keeping: SaveOptions,
    features: tuple[Features, Features],
    missingness: int | None,
    file: str | None,
) -> tuple[MatrixTask, Session]:
    folder = keeping.resume
    assert folder is not None
    header, plan = header_to_go_on_with(schema, requested, folder)
    if header.matrix is None:
        raise StoreError("is a fit of a table, and triplets are given", file=str(folder))
    if missingness not in (None, header.matrix.missingness):
        raise UsageError(
            "--missingness-features",
            value=missingness,
            expected=f"{header.matrix.missingness}, with which {folder} was begun",
            hint="Leave it out; only --draws may change when a run goes on.",
        )
    settings = {**asdict(header.model_config), **asdict(header.link_config)}
    given = [
        same_side(one, side, said, folder)
        for one, side, said in zip(features, SIDES, header.matrix.sides, strict=True)
    ]
    task = plan_matrix(
        encode_triplets(table, header.schema, file=file),
        model=header.model,
        settings=settings,
        row_features=given[0],
        column_features=given[1],
        missingness_features=header.matrix.missingness,
        **asdict(plan),
    )
    session = _session(task, header.schema, tuple(table.column_names), keeping, file)
    if session.header.data_hash != header.data_hash:
        raise StoreError(
            "was made with other cells or features than those given now",
            file=str(folder),
            hint="Give the tables of the first run.",
        )
    header = replace(header, plan=plan, file=file)
    return task, replace(
        session,
        header=header,
        partial=folder.name.endswith(PARTIAL),
        notes=version_notes(header, folder),
    )


def same_side(given: Features, side: str, said: Any, folder: Path) -> Features:
    """Return the features of a side with the types that a fit was made with.

    Raises
    ------
    UsageError, StoreError
        The fit has such features and none are given, or the other way round, or other types.
    """
    if said is None:
        if given is None:
            return None
        raise UsageError(
            f"--{side}-features", expected=f"none: {folder} was made without features of {side}s"
        )
    if given is None:
        raise UsageError(
            f"--{side}-features FILE is missing",
            hint=f"{folder} was made with features of {side}s; its types are kept there.",
        )
    kept = Schema.from_yaml(str(said.get("types")), file=str(folder / TYPES))
    if given.schema is not None and hash_of_types(given.schema) != hash_of_types(kept):
        raise StoreError(
            f"was made with other --{side}-types than those given now",
            file=str(folder),
            hint=f"Leave --{side}-types out to use its own, or start a new run.",
        )
    return replace(given, schema=kept)


def task_of_fit(fit: Fit) -> MatrixTask:
    """Return the matrix of a saved fit.

    Without its cells (`--no-data`) it has none that are observed.

    Raises
    ------
    StoreError
        It is a fit of a table, or its cells are not those that it was made from.
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
    entries = Entries(row, column, (len(stored.rows), len(stored.columns)))
    R, C = (None, None) if cells is None else (cells.R, cells.C)
    features = [part if part is not None and part.shape[1] else None for part in (R, C)]
    problem = Problem(
        fit.model, fit.config, fit.links, (x,), fit.link_config, entries, features[0], features[1]
    )
    codes = [
        None if said is None else SideCode.load(said, arrays or {}, str(fit.path))
        for said, arrays in zip(header.matrix.sides, stored.sides, strict=True)
    ]
    triplets = Triplets(stored.rows, stored.columns, row, column, value)
    task = MatrixTask(
        problem,
        fit.plan,
        triplets,
        stored.rows,
        stored.columns,
        header.matrix.covariates,
        (codes[0], codes[1]),
        header.matrix.missingness,
        has_cells=cells is not None,
    )
    if cells is not None and _hash(task) != header.data_hash:
        raise StoreError(
            "is not the matrix that the fit was made with: its hash is another",
            file=str(fit.path / DATA),
        )
    return task
