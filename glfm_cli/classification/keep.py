"""A classifier that is kept while it is fitted: in a new folder, or in that of an earlier run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from glfm_cli.classification.classifier import Classifier
from glfm_cli.classification.features import Calibrated
from glfm_cli.classification.header import ClassifierHeader, column_out
from glfm_cli.classification.saved import ClassifierStore, Keeping
from glfm_cli.classification.task import Task
from glfm_cli.classification.trained import learnt_features, learnt_target
from glfm_cli.completion import as_schema
from glfm_cli.errors import StoreError, UsageError
from glfm_cli.inference.run import Plan, Stop
from glfm_cli.latent.iqgme import IqgmeConfig
from glfm_cli.links import LinkConfig
from glfm_cli.schema import Schema
from glfm_cli.settings import apply_settings
from glfm_cli.store import hash_of_data, versions


def schema_and_settings(
    types: Schema | Mapping[str, Any] | str | os.PathLike[str] | None,
    settings: Mapping[str, object] | None,
) -> tuple[Schema, dict[str, Any]]:
    """Return what the columns mean, and the configurations of model and links."""
    if types is None:
        raise UsageError(
            "--types is missing: it says what the columns mean",
            hint="`glfm types TRAIN -o types.yaml` writes a first one.",
        )
    defaults = {"model": IqgmeConfig(), "links": LinkConfig()}
    return as_schema(types), apply_settings(defaults, dict(settings or {}))


def check_alone(shaping: Mapping[str, object]) -> None:
    """Raise UsageError when something that shapes a fit is said of one that is gone on with."""
    for name, value in shaping.items():
        if value is not None:
            raise UsageError(
                f"--{name} and --resume cannot be used together",
                hint=f"Leave out --{name}; it is as it was when the run was begun.",
            )


def keeping_for(
    folder: Path,
    task: Task,
    table: pa.Table,
    configs: Mapping[str, Any],
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
        config=configs["model"],
        link_config=configs["links"],
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
