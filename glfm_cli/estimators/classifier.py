"""The mixture of experts as a classifier of scikit-learn that accepts missing cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.classification import Classification
from glfm_cli.classification.classify import classify
from glfm_cli.completion import as_schema, is_guessed
from glfm_cli.completion.requests import Unseen
from glfm_cli.estimators.checks import (
    labels_of_rows,
    not_fitted,
    read_labels,
    same_labels,
    table_of_new_rows,
    table_of_rows,
)
from glfm_cli.estimators.guessed import guessed
from glfm_cli.estimators.imputer import Types
from glfm_cli.estimators.parameters import WithParameters
from glfm_cli.io.frames import with_texts
from glfm_cli.schema import Column, Role, Schema

TARGET = "y"


class GlfmClassifier(WithParameters):
    """Predicts labels of rows with missing cells; labels may be missing, too.

    Works in scikit-learn's `Pipeline`, `cross_val_score` and the rest. Takes a pandas `DataFrame`
    or a `pyarrow.Table`, or a matrix of numbers with NaN at gaps.

    Parameters
    ----------
    types : Schema, Guess, mapping or path, optional
        What the columns of X mean; guessed from them if left out, or "auto". A column
        that it calls the target is not looked at.
    effort, chains, seed, threads, settings
        As for `classify`, with its defaults.
    unseen : {"missing", "error"}
        What a level is, in new rows, that the fitted rows did not have; as "missing" it tells
        nothing, and a number that its column cannot hold is taken for the nearest that it can.

    Attributes
    ----------
    classes_ : (R,) the labels, sorted, of the type they have in y
    classification_ : Classification
        The fit; its `warnings` say what to know of the labels and of gaps.
    feature_names_in_ : (n_features_in_,) object
    n_features_in_ : int
    """

    classes_: Array
    classification_: Classification
    feature_names_in_: Array
    n_features_in_: int
    _estimator_type = "classifier"

    def __init__(
        self,
        types: Types | None = None,
        *,
        effort: str | None = None,
        chains: int | None = None,
        seed: int = 0,
        threads: int | None = None,
        settings: Mapping[str, object] | None = None,
        unseen: Unseen = "missing",
    ) -> None:
        self.types = types
        self.effort = effort
        self.chains = chains
        self.seed = seed
        self.threads = threads
        self.settings = settings
        self.unseen = unseen

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the mixture to rows X (n, p) and their labels y (n,), None or NaN where missing.

        Raises
        ------
        GlfmError
            The labels are all alike, or a column does not fit its type.
        KeyboardInterrupt
            At Ctrl-C; the classifier predicts by the fit so far, once it was under way.
        """
        table = table_of_rows(X)
        labels, there = labels_of_rows(y, table.num_rows)
        kinds = np.array(list(labels[there]))
        self.classes_, code = np.unique(kinds, return_inverse=True)
        texts = np.full(labels.size, None, dtype=object)
        texts[there] = [str(c) for c in code]
        name = TARGET
        while name in table.column_names:
            name += "_"
        whole = with_texts(table, name, texts)
        schema = _with_target(self._schema(table, X), table, name, self.classes_.size)
        self.classification_ = classify(
            whole,
            schema,
            target=name,
            predict=whole,
            effort=self.effort,
            chains=self.chains,
            seed=self.seed,
            threads=self.threads,
            settings=self.settings,
        )
        self.feature_names_in_ = np.array(table.column_names, dtype=object)
        self.n_features_in_ = table.num_columns
        if self.classification_.stopped == "interrupted":  # a search must not go on with half a fit
            raise KeyboardInterrupt
        return self

    def predict_proba(self, X: Any) -> Array:
        """Return (n, R) the probabilities of `classes_`."""
        if not self.__sklearn_is_fitted__():
            raise not_fitted(self)
        trained = self.classification_.trained
        assert trained is not None
        rows = table_of_new_rows(self, X)
        found = classify(rows, fit=trained, unseen=self.unseen, threads=self.threads)
        assert found.predictions is not None
        return found.predictions.p

    def predict_log_proba(self, X: Any) -> Array:
        """Return (n, R) the logarithms of the probabilities of `classes_`."""
        with np.errstate(divide="ignore"):  # there are zeros where `slips` is 0
            return np.asarray(np.log(self.predict_proba(X)))

    def predict(self, X: Any) -> Array:
        """Return (n,) the most probable label of each row."""
        p = self.predict_proba(X)
        return self.classes_[p.argmax(axis=1)]

    def score(self, X: Any, y: Any) -> float:
        """Return the share of right predictions among the rows with a label.

        y : (n,) or (n, 1), None or NaN where missing; 1, 1.0 and "1" are the same label

        Raises
        ------
        GlfmError
            There are not as many labels as rows, or all of them are missing.
        """
        predicted = self.predict(X)
        labels, there = read_labels(y, predicted.size)
        return float(same_labels(labels[there], predicted[there]).mean())

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classification_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
            input_tags=InputTags(allow_nan=True, string=True, categorical=True),
        )

    def _schema(self, table: Any, X: Any) -> Schema:
        if self.types is None or is_guessed(self.types):
            return guessed(table, X).schema
        return as_schema(self.types)


def _with_target(schema: Schema, table: Any, name: str, n_levels: int) -> Schema:
    """Return a schema with the target as one more column, and no other target."""
    others = tuple(column for column in schema.columns if column.role is not Role.TARGET)
    dropped = tuple(
        Column(column.name, role=Role.IGNORE)
        for column in schema.columns
        if column.role is Role.TARGET and column.name in table.column_names
    )
    levels = tuple(str(c) for c in range(n_levels))
    target = Column(name, Role.TARGET, levels=levels or None).of_levels()
    return Schema((*others, *dropped, target), schema.rest, schema.missing, schema.file)
