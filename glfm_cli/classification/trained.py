"""A fitted classifier with all it needs to read and predict other tables."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.classification.classifier import Classifier
from glfm_cli.classification.task import Task
from glfm_cli.classification.tasks import TaskUsage
from glfm_cli.encoding import Data, EncodedColumn, LearntColumn, encode_rows, with_types
from glfm_cli.schema import Schema


@dataclass(frozen=True, eq=False)
class NewRows:
    """Rows to predict.

    code : (n,) their labels as far as the table has them, else NaN
    """

    table: pa.Table
    data: Data
    features: tuple[EncodedColumn, ...]
    code: Array

    @property
    def labelled(self) -> bool:
        """Whether a label of them is known."""
        return not np.isnan(self.code).all()


@dataclass(frozen=True, eq=False)
class Trained:
    """A fitted classifier and the columns it was fitted to.

    columns : names of all columns of the training table, in its order
    features : what the training rows taught of every feature, constant ones too
    target : the target, its levels those that occur
    n_rows, n_labelled : of the training table
    seed : of the fit
    """

    schema: Schema
    columns: tuple[str, ...]
    features: tuple[LearntColumn, ...]
    target: LearntColumn
    classifier: Classifier
    n_rows: int
    n_labelled: int
    seed: int

    @classmethod
    def of(cls, task: Task, table: pa.Table, classifier: Classifier, seed: int) -> Trained:
        """Return the classifier of a task with what the task's table taught."""
        return cls(
            task.schema,
            tuple(table.column_names),
            learnt_features(task),
            learnt_target(task),
            classifier,
            task.data.n_rows,
            int(np.sum(~np.isnan(task.code))),
            seed,
        )

    @property
    def tasks(self) -> TaskUsage | None:
        """Return which experts each task uses, None where there is one task."""
        classifier = self.classifier
        if classifier.task is None:
            return None
        known = next(known for known in self.features if known.column.name == classifier.task)
        return TaskUsage(classifier.task, known.levels, classifier.usage)

    @property
    def levels(self) -> tuple[str, ...]:
        """Return the labels that can be predicted."""
        return self.target.levels

    def read(
        self, table: pa.Table, *, unseen_is_missing: bool = False, file: str | None = None
    ) -> NewRows:
        """Return new rows as the training table's columns; the target may be absent.

        Raises TableError: a feature is missing, a cell does not fit, or a level is none that the
            fit has seen; with `unseen_is_missing` such a level of a feature tells nothing, and a
            number counts as the nearest that its column can hold.
        """
        return read_rows(table, self.schema, self.features, self.target, unseen_is_missing, file)

    def probabilities(
        self, features: Sequence[EncodedColumn], pool: ThreadPoolExecutor | None = None
    ) -> Array:
        """Return (n, R) the probabilities of the labels."""
        return self.classifier.probabilities(features, pool)


def read_new_rows(
    task: Task, table: pa.Table, file: str | None, unseen_is_missing: bool
) -> NewRows:
    """Return new rows as the columns of a task, before anything is fitted; see `Trained.read`."""
    features, target = learnt_features(task), learnt_target(task)
    return read_rows(table, task.schema, features, target, unseen_is_missing, file)


def read_rows(
    table: pa.Table,
    schema: Schema,
    features: Sequence[LearntColumn],
    target: LearntColumn,
    unseen_is_missing: bool,
    file: str | None,
) -> NewRows:
    """Return the rows of a table as columns that were learnt."""
    table = with_types(table, [*features, target])
    name = target.column.name
    has_target = name in table.column_names
    if not has_target:
        schema = replace(schema, columns=tuple(c for c in schema.columns if c.name != name))
    data = encode_rows(
        table,
        schema,
        [*features, target] if has_target else features,
        unseen_is_missing=unseen_is_missing,
        nearest=True,  # features are only scores, and a fraction of a year says much
        file=file,
    )
    if has_target:
        return NewRows(table, data, data.columns[:-1], data.columns[-1].x)
    return NewRows(table, data, data.columns, np.full(data.n_rows, np.nan))


def learnt_features(task: Task) -> tuple[LearntColumn, ...]:
    """Return what a task's rows taught of its features."""
    return tuple(_learnt(encoded) for encoded in task.features)


def learnt_target(task: Task) -> LearntColumn:
    """Return the target with the levels that occur."""
    return replace(_learnt(task.target), levels=task.levels)


def _learnt(encoded: EncodedColumn) -> LearntColumn:
    return LearntColumn(encoded.column, encoded.levels, encoded.typical)
