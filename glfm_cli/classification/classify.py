"""Predict a label when features, and some labels, are missing."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.classification.classifier import fit_classifier
from glfm_cli.classification.complete import complete_features
from glfm_cli.classification.fit import Watch, plan_of
from glfm_cli.classification.folds import cross_validate
from glfm_cli.classification.header import read_classifier_header
from glfm_cli.classification.keep import (
    check_alone,
    fit_and_keep,
    keeping_for,
    schema_and_settings,
)
from glfm_cli.classification.result import Classification, Predictions, nothing_to_predict
from glfm_cli.classification.saved import load_trained
from glfm_cli.classification.scores import all_scores
from glfm_cli.classification.task import Task, count_features, make_task
from glfm_cli.classification.trained import NewRows, Trained, read_new_rows
from glfm_cli.completion import TableLike, as_table
from glfm_cli.completion.requests import Unseen, check_unseen
from glfm_cli.encoding import NO_GAPS
from glfm_cli.errors import TableError, UsageError
from glfm_cli.inference.executors import available_threads, run_jobs, thread_pool
from glfm_cli.inference.sampling import Stop
from glfm_cli.schema import Schema
from glfm_cli.store import EVERY, check_free

CHAINS = 8
SEED = 0
FEW_LABELS = 10  # of one level, below which a fit is warned about


def classify(
    table: TableLike,
    types: Schema | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    *,
    target: str | None = None,
    predict: TableLike | None = None,
    cv: int | None = None,
    unseen: Unseen = "error",
    chains: int | None = None,
    seed: int | None = None,
    threads: int | None = None,
    time_limit: float | None = None,
    settings: Mapping[str, object] | None = None,
    save: str | os.PathLike[str] | None = None,
    resume: str | os.PathLike[str] | None = None,
    checkpoint: float = EVERY,
    complete: bool = False,
    watch: Watch | None = None,
) -> Classification:
    """Predict a label from features that may be missing.

    Parameters
    ----------
    table : table, data frame, matrix or path
        The training rows. Rows without a label help to learn where rows lie, and are predicted
        unless `predict` or `cv` asks for something else.
    types : Schema, mapping or path
        What the columns mean. Not needed with `resume`.
    target : str, optional
        The column to predict, categorical or ordinal (whose order is not used); that of role
        target if left out.
    predict : table, data frame, matrix or path, optional
        Rows to predict. Labels that they have are not looked at but to score the predictions.
    cv : int, optional
        Cross-validate with so many folds instead.
    unseen : {"error", "missing"}
        What a level is, in `predict`, that the training rows do not have; as "missing" it tells
        nothing.
    chains, seed : int
        Starts of the fit (8 if left out), and what they are drawn from (0).
    threads : int, optional
        By default as many as there are processors; the result does not depend on it.
    time_limit : float, optional
        Seconds after which the fit ends where it is, as it does at Ctrl-C; folds are not cut
        short by that.
    settings : mapping, optional
        Fields of the model's and the links' configuration, by name.
    save : path, optional
        A new folder NAME.glfm to keep the fit in; `classify_rows` takes it.
    resume : path, optional
        The folder of an earlier run of this table to go on with, however it ended. What shapes the
        fit is taken from there; predictions are those of one uninterrupted run.
    checkpoint : float
        Seconds between two saved states; less often where saving takes long.
    complete : bool
        Also complete the features of `predict`, or else of `table`, and the target's gaps there.
    watch : callable, optional
        Told start, iteration and bound after every iteration.

    Returns
    -------
    Classification

    Raises
    ------
    GlfmError
        The tables, the types or an option are wrong; the error says where and what to do.
    """
    missing = check_unseen(unseen) == "missing"
    if resume is None:
        schema, configs = schema_and_settings(types, settings)
        chains, seed = CHAINS if chains is None else chains, SEED if seed is None else seed
        kept = None
    else:
        shaping = {"types": types, "target": target, "cv": cv, "chains": chains, "seed": seed}
        check_alone(shaping | {"set": settings or None, "save": save})
        kept = read_classifier_header(Path(resume))
        schema, target = kept.schema, kept.target["name"]
        configs = {"model": kept.config, "links": kept.link_config}
        chains, seed = kept.plan.chains, kept.plan.seed
    _check(predict, cv, chains, seed, threads, time_limit)
    given = table if predict is None else predict
    table, file = as_table(table)
    task = make_task(table, schema, target, file)
    new = None
    if predict is not None:
        source, other = as_table(predict)
        new = read_new_rows(task, source, missing, other)
    if cv is not None:
        _check_folds(task, cv)
    elif new is None and not (save or resume or complete or np.isnan(task.code).any()):
        raise nothing_to_predict()
    if save is not None:
        _check_save(save, cv)
    fold = Path(save) if save is not None else Path(resume) if resume is not None else None
    keeping = None
    if fold is not None:
        plan = plan_of(configs["model"], chains, seed)
        keeping = keeping_for(fold, task, table, configs, plan, kept, checkpoint)
    began = time.monotonic()
    stop = Stop(None if time_limit is None else began + time_limit)
    said: dict[str, Any] = {"chains": chains, "seed": seed, "stop": stop, "watch": watch}
    said["threads"] = workers = threads or available_threads()
    levels = len(task.levels)
    trained = predictions = validated = completed = None
    with thread_pool(workers) as pool:
        if cv is not None:
            validated = cross_validate(
                task.features, task.code, levels, configs["model"], configs["links"],
                n_folds=cv, pool=pool, **said,
            )  # fmt: skip
            p = validated.p["iqgme"]
            predictions = _predictions(task, table, validated.rows, p, task.code, validated.fold)
        else:
            fit = partial(
                fit_classifier,
                task.features, task.code, levels, configs["model"], configs["links"],
                pool=pool, **said,
            )  # fmt: skip
            # In a thread of its own, so that Ctrl-C is heard here and the fit ends where it is.
            job = fit if keeping is None else partial(fit_and_keep, fit, keeping, task, stop)
            (classifier,) = run_jobs([job], threads=1, on_interrupt=stop.interrupt)
            trained = Trained.of(task, table, classifier, seed)
            if new is not None:
                p = classifier.probabilities(new.features, pool)
                rows = np.arange(new.data.n_rows)
                predictions = _predictions(task, new.table, rows, p, new.code)
                if complete:
                    completed = complete_features(trained, new.table, new.data, p, pool)
            elif complete or np.isnan(task.code).any():
                p = classifier.probabilities(task.features, pool)
                rows = np.flatnonzero(np.isnan(task.code))
                if rows.size:
                    predictions = _predictions(task, table, rows, p[rows], task.code)
                if complete:
                    completed = complete_features(trained, table, task.data, p, pool)
    return Classification(
        target=task.name,
        levels=task.levels,
        n_rows=task.data.n_rows,
        n_labelled=int(np.sum(~np.isnan(task.code))),
        n_features=task.n_features,
        trained=trained,
        predictions=predictions,
        scores=_scores(predictions) if new is not None else None,
        cross_validation=validated,
        completed=completed,
        seed=seed,
        seconds=time.monotonic() - began,
        stopped=stop.reason,
        warnings=_warnings((*task.notes, *_few(task)), new, complete),
        note=validated.note if validated is not None else classifier.note,
        given=given,
    )


def classify_rows(
    table: TableLike,
    fit: Trained | str | os.PathLike[str],
    *,
    unseen: Unseen = "error",
    threads: int | None = None,
    complete: bool = False,
) -> Classification:
    """Predict labels with a classifier that was fitted before.

    Parameters
    ----------
    table : table, data frame, matrix or path
        Rows to predict, as `predict` of `classify`.
    fit : Trained or path
        `Classification.trained`, or the folder that `save` named.
    unseen, threads, complete
        As for `classify`.

    Raises
    ------
    GlfmError
        The table is not like the one of the fit, or the folder is damaged.
    """
    missing = check_unseen(unseen) == "missing"
    began = time.monotonic()
    trained = fit if isinstance(fit, Trained) else load_trained(fit)
    given = table
    table, file = as_table(table)
    new = trained.read(table, unseen_is_missing=missing, file=file)
    with thread_pool(threads or available_threads()) as pool:
        p = trained.probabilities(new.features, pool)
        completed = complete_features(trained, table, new.data, p, pool) if complete else None
    name = trained.target.column.name
    ids = table.select(list(new.data.ids))
    rows = np.arange(new.data.n_rows)
    predictions = Predictions(name, trained.levels, rows, p, new.code, ids)
    return Classification(
        target=name,
        levels=trained.levels,
        n_rows=trained.n_rows,
        n_labelled=trained.n_labelled,
        n_features=count_features(trained.features),
        trained=trained,
        predictions=predictions,
        scores=_scores(predictions),
        cross_validation=None,
        completed=completed,
        seed=trained.seed,
        seconds=time.monotonic() - began,
        stopped=None,
        warnings=_warnings((), new, complete),
        given=given,
    )


def _check_save(save: str | os.PathLike[str], cv: int | None) -> None:
    if cv is not None:
        raise UsageError(
            "--cv and --save cannot be used together: --cv makes a fit for each fold",
            hint="Run the command twice.",
        )
    check_free(Path(save))


def _predictions(
    task: Task, table: pa.Table, rows: Array, p: Array, code: Array, fold: Array | None = None
) -> Predictions:
    """Return the predictions of some rows of a table, p being theirs and `code` the table's."""
    ids = [name for name in task.data.ids if name in table.column_names]
    there = table.select(ids).take(pa.array(rows))
    return Predictions(task.name, task.levels, rows, p, code[rows], there, fold)


def _scores(predictions: Predictions | None) -> dict[str, float] | None:
    """Return the scores of the predictions whose labels are known, None when there are none."""
    if predictions is None:
        return None
    known = ~np.isnan(predictions.code)
    return all_scores(predictions.code[known], predictions.p[known]) if known.any() else None


def _warnings(notes: Sequence[str], new: NewRows | None, complete: bool) -> tuple[str, ...]:
    """Return what is to be said of the tables; that one has no gap matters to who fills them."""
    found = (*notes, *(new.data.notes if new is not None else ()))
    return tuple(note for note in found if complete or note != NO_GAPS)


def _few(task: Task) -> list[str]:
    count = np.bincount(task.code[~np.isnan(task.code)].astype(np.intp))
    few = [
        f"'{level}' ({n})" for level, n in zip(task.levels, count, strict=True) if n < FEW_LABELS
    ]
    if not few:
        return []
    return [f"column '{task.name}': few rows are labelled {', '.join(few[:5])}"]


def _check(
    predict: object,
    cv: int | None,
    chains: int,
    seed: int,
    threads: int | None,
    time_limit: float | None,
) -> None:
    """Raise UsageError when options are out of range or do not fit together."""
    whole = {"--chains": (chains, 1), "--seed": (seed, 0)}
    whole |= {} if threads is None else {"--threads": (threads, 1)}
    whole |= {} if cv is None else {"--cv": (cv, 2)}
    for name, (value, least) in whole.items():
        if not isinstance(value, Integral) or value < least:
            raise UsageError(name, value=value, expected=f"a whole number from {least}")
    if time_limit is not None and not 0 < time_limit < float("inf"):
        raise UsageError("--time-limit", value=time_limit, expected="seconds above 0")
    if cv is not None and predict is not None:
        raise UsageError(
            "--cv and --predict cannot be used together: --cv makes a fit for each fold",
            hint="Run the command twice.",
        )


def _check_folds(task: Task, cv: int) -> None:
    """Raise when a fold would leave training rows without a label of each level."""
    code = task.code[~np.isnan(task.code)].astype(np.intp)
    if cv > code.size:
        raise UsageError("--cv", value=cv, expected=f"at most {code.size}, the labelled rows")
    count = np.bincount(code)
    rare = int(np.argmin(count))
    if count[rare] < 2:
        raise TableError(
            f"only one row is labelled '{task.levels[rare]}', and --cv holds it out",
            column=task.name,
            expected="at least two rows of each label",
        )
