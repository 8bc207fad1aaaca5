"""The latent feature model as an imputer of scikit-learn, which is not needed to use it."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Self

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.completion import (
    Completion,
    Filling,
    Fitted,
    as_schema,
    check_estimate,
    is_guessed,
    plan_session,
)
from glfm_cli.completion.complete import complete
from glfm_cli.completion.estimates import Estimate
from glfm_cli.completion.requests import INTERVAL, Unseen, check_unseen
from glfm_cli.encoding import Data
from glfm_cli.estimators.checks import (
    RowsError,
    not_fitted,
    seed_of,
    table_of_new_rows,
    table_of_rows,
)
from glfm_cli.estimators.guessed import guessed, warn_of_empty, warn_of_left_out
from glfm_cli.estimators.output import WithOutput
from glfm_cli.estimators.parameters import WithParameters
from glfm_cli.guess import Guess
from glfm_cli.inference.blas import one_blas_thread
from glfm_cli.inference.executors import available_threads
from glfm_cli.io.frames import is_frame, table_like
from glfm_cli.options import Sampling, Saving
from glfm_cli.schema import Schema

INDICATOR = "missingindicator_"

Types = Schema | Mapping[str, Any] | str | os.PathLike[str]


class GlfmImputer(WithOutput, WithParameters):
    """Fills missing cells of tables, and of new rows given the fitted table.

    Works in scikit-learn's `Pipeline`, with `clone` and the rest. Takes tables and frames of
    pandas, polars, pyarrow and DuckDB, and matrices of NumPy, and gives the same kind back.

    Parameters
    ----------
    types : Schema, Guess, mapping or path, optional
        What the columns mean, as for `impute`; guessed from the table if left out, or "auto".
    model, effort, chains, warmup, draws, thin, seed, threads, settings, estimate
        As for `impute`, with its defaults.
    unseen : {"missing", "error"}
        What a level is, in new rows, that the fitted table did not have; as "missing" it tells
        nothing about its row, and stays where it is.
    add_indicator : bool
        Whether a column `missingindicator_NAME` follows for each column that had any in the
        fitted table: true where a row has one.
    random_state : int, numpy.random.RandomState or numpy.random.Generator, optional
        What scikit-learn calls the seed; used where `seed` is left out.

    Attributes
    ----------
    completion_ : Completion
        The fitted table completed, with its uncertainty and its diagnostics.
    schema_ : Schema
        What the columns were taken to mean.
    feature_names_in_ : (n_features_in_,) object
        Names of the columns.
    n_features_in_ : int
    """

    completion_: Completion
    schema_: Schema
    feature_names_in_: np.ndarray
    n_features_in_: int
    _input = ("allow_nan", "string", "categorical")

    def __init__(
        self,
        types: Types | None = None,
        *,
        model: str | None = None,
        effort: str | None = None,
        chains: int | None = None,
        warmup: int | None = None,
        draws: int | None = None,
        thin: int | None = None,
        seed: int | None = None,
        threads: int | None = None,
        settings: Mapping[str, object] | None = None,
        estimate: Estimate = "auto",
        unseen: Unseen = "missing",
        add_indicator: bool = False,
        random_state: Any = None,
    ) -> None:
        self.types = types
        self.model = model
        self.effort = effort
        self.chains = chains
        self.warmup = warmup
        self.draws = draws
        self.thin = thin
        self.seed = seed
        self.threads = threads
        self.settings = settings
        self.estimate = estimate
        self.unseen = unseen
        self.add_indicator = add_indicator
        self.random_state = random_state

    @one_blas_thread()
    def fit(self, X: Any, y: object = None) -> Self:
        """Sample the model of a table; `y` is not used.

        Warns of columns whose missing cells stay as they are: without a value, or left out where
        types are guessed.

        Raises
        ------
        KeyboardInterrupt
            At Ctrl-C; the imputer completes by the draws so far, once there were any.
        """
        check_estimate(self.estimate, INTERVAL)
        check_unseen(self.unseen)
        table = table_of_rows(X)
        guess: Guess | None = None
        if self.types is None or is_guessed(self.types):
            guess = guessed(table, X)
            warn_of_empty(table)
            schema = guess.schema
        else:
            schema = as_schema(self.types)
        options = {field.name: getattr(self, field.name, None) for field in fields(Sampling)}
        options["seed"] = seed_of(self.seed, self.random_state)
        session = plan_session(table, schema, Sampling(**options), Saving())
        workers = self._workers()
        run = session.sample()
        assert isinstance(session.data, Data)
        seed = session.plan.seed
        self._fitted = Fitted.of_run(schema, session.data, session.problem, run.posterior, seed)
        how = Filling(seed, self.estimate, threads=workers)
        self.completion_ = complete(run, session.data, table, how)
        if guess:
            warn_of_left_out(table, guess, session.data.not_completed)
        empty = _empty_cells(table, session.data) if self.add_indicator else {}
        self._indicated = [name for name, cells in empty.items() if cells.any()]
        self.schema_ = schema
        self.feature_names_in_ = np.array(table.column_names, dtype=object)
        self.n_features_in_ = table.num_columns
        if run.stopped == "interrupted":  # a search must not go on with half a fit
            raise KeyboardInterrupt
        return self

    @one_blas_thread()
    def transform(self, X: Any) -> Any:
        """Return the rows with their missing cells filled; nothing is fitted anew.

        The fitted table is completed as in `fit_transform`; other rows are folded in.

        Raises
        ------
        UsageError
            There was no `fit` yet.
        GlfmError
            The rows are not like those of the fitted table.
        """
        if not self.__sklearn_is_fitted__():
            raise not_fitted(self)
        fitted = self._fitted
        table = fitted.with_types(table_of_new_rows(self, X))
        data = fitted.encode(table, unseen=self.unseen)
        assert isinstance(data, Data)
        workers = self._workers()
        run = fitted.run(data, seed=fitted.seed, threads=workers)
        done = complete(run, data, table, Filling(fitted.seed, self.estimate, threads=workers))
        return self._given_back(done, X)

    def fit_transform(self, X: Any, y: object = None) -> Any:
        """Sample the model of a table and return it completed; `y` is not used."""
        return self._given_back(self.fit(X, y).completion_, X)

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        """Return the names of the columns, which stay as they are, and those of indicators.

        input_features : (n_features_in_,) names in place of those of the fitted columns
        """
        if not self.__sklearn_is_fitted__():
            raise not_fitted(self)
        own = self.feature_names_in_
        names = own if input_features is None else np.asarray(input_features, dtype=object)
        if names.shape != own.shape:
            raise RowsError("input_features", value=names.size, expected=f"{own.size} names")
        added = [INDICATOR + names[list(own).index(name)] for name in self._indicated]
        return np.array([*names, *added], dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "completion_")

    def _workers(self) -> int:
        return self.threads or available_threads()

    def _given_back(self, completion: Completion, X: Any) -> Any:
        """Return a completed table, and its indicators, as what it was given as."""
        table = completion.table
        empty = _empty_cells(table, completion.data) if self._indicated else {}
        if self._indicated:
            added = pa.table({INDICATOR + name: empty[name] for name in self._indicated})
            columns, fields = [*table.columns, *added.columns], [*table.schema, *added.schema]
            table = pa.table(columns, schema=pa.schema(fields, table.schema.metadata))
        chosen = self._output
        if chosen == "polars":
            return importlib.import_module(chosen).from_arrow(table)
        if chosen == "pandas" and not is_frame(X):
            return table.to_pandas()
        filled = {p.encoded.column.name for p in completion.columns if p.estimate.size}
        return table_like(table, X, filled)


def _empty_cells(table: pa.Table, data: Data) -> dict[str, Array]:
    """Return where each column of a table has missing cells, bool (n,).

    Cells of columns that are left out stay as they are in a completed table, too.
    """
    modelled = {encoded.column.name: ~encoded.observed for encoded in data.columns}
    return {
        name: modelled.get(name, column.is_null(nan_is_null=True).to_numpy())
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
