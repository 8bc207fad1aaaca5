"""Predict cells of a matrix that is given as triplets: the library's entrance."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from glfm_cli.completion import (
    SamplingOptions,
    SaveOptions,
    as_schema,
    check_request,
    check_with_fit,
)
from glfm_cli.completion.estimates import Estimate
from glfm_cli.completion.matrix.matrix import INTERVAL, MatrixCompletion
from glfm_cli.completion.matrix.new_units import with_fit
from glfm_cli.completion.matrix.saved import plan_matrix_session
from glfm_cli.completion.matrix.side import features_of
from glfm_cli.completion.new_rows import Unseen
from glfm_cli.errors import UsageError
from glfm_cli.inference.executors import available_threads
from glfm_cli.inference.sampling import Observer
from glfm_cli.io import read_table
from glfm_cli.schema import Schema
from glfm_cli.store import EVERY, Fit, load_fit


def impute_matrix(
    table: pa.Table | str | os.PathLike[str],
    types: Schema | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    *,
    pairs: pa.Table | str | os.PathLike[str] | None = None,
    all_pairs: bool = False,
    row_features: tuple[Any, Any] | None = None,
    column_features: tuple[Any, Any] | None = None,
    missingness_features: int | None = None,
    chains: int | None = None,
    warmup: int | None = None,
    draws: int | None = None,
    thin: int | None = None,
    seed: int | None = None,
    threads: int | None = None,
    time_limit: float | None = None,
    settings: Mapping[str, object] | None = None,
    save: str | os.PathLike[str] | None = None,
    resume: str | os.PathLike[str] | None = None,
    fit: Fit | str | os.PathLike[str] | None = None,
    unseen: Unseen = "error",
    no_data: bool = False,
    checkpoint: float = EVERY,
    estimate: Estimate = "auto",
    interval: float = INTERVAL,
    observer: Observer | None = None,
) -> tuple[pa.Table, MatrixCompletion]:
    """Predict cells of a matrix that is given as triplets.

    Parameters
    ----------
    table, types
        The triplets and what their columns are: roles row, column and value. With `resume` and
        `fit` the types are those of the folder.
    pairs : pyarrow.Table or path, optional
        The cells wanted, in columns named as those of the ids; all without a value if left out.
    all_pairs : bool
        Whether these may be more than ten million.
    row_features, column_features : (table, types), optional
        What is known of rows and of columns, a row each, with one column of role id. With
        `resume` and `fit` their types are those of the folder, and None will do here.
    missingness_features : int, optional
        So many leading singular vectors of the pattern of observed cells are covariates of rows
        and columns, too.
    chains, warmup, draws, thin, seed, threads, time_limit, settings, interval, observer
        As in `impute`.
    save, resume, fit, unseen, no_data, checkpoint
        As in `impute`; `fit` predicts cells of rows and columns that the fit has not seen, too.
    estimate : {"auto", "mean", "median", "mode"}
        As in `impute`; of binomial values it is the mean of the hit rate.

    Returns
    -------
    pyarrow.Table, MatrixCompletion
        The predictions (`MatrixCompletion.table_of`), and what they come from.
    """
    check_request(estimate, interval, threads, time_limit)
    file = None if isinstance(table, pa.Table) else str(table)
    said = {"types": types, "chains": chains, "warmup": warmup, "draws": draws, "thin": thin}
    said |= {"set": settings, "save": save, "resume": resume}
    said |= {"missingness-features": missingness_features}
    check_with_fit(fit is not None, said, unseen)
    data = _table(table)
    listed = None if pairs is None else _table(pairs)
    features = (features_of(row_features), features_of(column_features))
    workers = threads or available_threads()
    if fit is not None:
        fit = fit if isinstance(fit, Fit) else load_fit(fit)
        fitted = with_fit(fit, data, features, unseen=unseen, file=file)
        task, which = fitted.task, fitted.task.pairs(listed, all_pairs)
        run = fitted.run(seed=fit.seed if seed is None else seed, threads=workers)
    else:
        if types is None and resume is None:
            raise UsageError("triplets need their types", hint="Say which column has which role.")
        keeping = SaveOptions(
            None if save is None else Path(save),
            None if resume is None else Path(resume),
            with_data=not no_data,
            every=checkpoint,
        )
        requested = SamplingOptions(None, chains, warmup, draws, thin, seed, settings)
        schema = None if types is None else as_schema(types)
        task, session = plan_matrix_session(
            data,
            schema,
            requested,
            keeping,
            features,
            missingness_features=missingness_features,
            file=file,
        )
        which = task.pairs(listed, all_pairs)
        run = session.begun().sample(threads=workers, time_limit=time_limit, observer=observer)
    completion = MatrixCompletion.of(task, run, interval)
    return pa.concat_tables(completion.parts(which, estimate)), completion


def _table(given: pa.Table | str | os.PathLike[str]) -> pa.Table:
    return given if isinstance(given, pa.Table) else read_table(given)
