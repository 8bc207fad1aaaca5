"""A classifier that is kept while it is fitted: in a new folder, or in that of an earlier run."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from glfm_cli.classification.classifier import Classifier
from glfm_cli.classification.features import Calibrated
from glfm_cli.classification.fit import Fitting
from glfm_cli.classification.header import ClassifierHeader, column_out
from glfm_cli.classification.saved import ClassifierStore, Keeping
from glfm_cli.classification.task import Task
from glfm_cli.classification.trained import learnt_features, learnt_target
from glfm_cli.errors import StoreError
from glfm_cli.inference.run import Plan, Stop
from glfm_cli.store import hash_of_data, versions


def keeping_for(
    folder: Path,
    task: Task,
    table: pa.Table,
    how: Fitting,
    plan: Plan,
    found: ClassifierHeader | None,
    every: float,
) -> Keeping:
    """Return where a fit is kept; `found` is what an earlier run says of itself, if there is one.

    Raises
    ------
    StoreError
        The earlier run was of another table.
    """
    data_hash = hash_of_data(task.data)
    if found is not None:
        if found.data_hash != data_hash:
            raise StoreError(
                "was made with another table than the one given now",
                file=str(folder),
                hint="Give the table of the first run.",
            )
        return Keeping(folder, found, True, every)
    header = ClassifierHeader(
        config=how.config,
        link_config=how.links,
        plan=plan,
        schema=task.schema,
        table=tuple(table.column_names),
        features=(),
        target=column_out(learnt_target(task)),
        n_rows=task.data.n_rows,
        n_labelled=int(np.sum(~np.isnan(task.code))),
        data_hash=data_hash,
        versions=versions(),
    )
    return Keeping(folder, header, False, every)


def fit_and_keep(
    fit: Callable[..., Classifier], keeping: Keeping, task: Task, stop: Stop
) -> Classifier:
    """Return the classifier that `fit` gives, each of its states kept on the way."""
    began, learnt, stores = time.monotonic(), learnt_features(task), []

    def keep(seen: Calibrated) -> ClassifierStore:
        stores.append(keeping.begun(seen, learnt))
        return stores[0]

    try:
        classifier = fit(keep=keep)
        place = {known.column.name: d for d, known in enumerate(learnt)}
        seconds, ended = time.monotonic() - began, stop.reason is None
        stores[0].finish(classifier.pooling, place, seconds, ended)
        return classifier
    finally:
        for store in stores:
            store.close()
