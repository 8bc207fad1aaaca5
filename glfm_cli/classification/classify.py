"""Predict a label when features, and some labels, are missing."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.classification.classifier import Classifier, fit_classifier
from glfm_cli.classification.complete import complete_features
from glfm_cli.classification.features import is_constant, take
from glfm_cli.classification.fit import Fitting
from glfm_cli.classification.folds import MODEL, check_folds, cross_validate
from glfm_cli.classification.gaps import telling_gaps
from glfm_cli.classification.keeping import Keeping, fit_and_keep
from glfm_cli.classification.result import Classification, Predictions, nothing_to_predict
from glfm_cli.classification.saved import load_trained, read_kept
from glfm_cli.classification.scores import all_scores
from glfm_cli.classification.task import Task, count_features, few_labels, make_task, shared_ids
from glfm_cli.classification.trained import NewRows, Trained, read_new_rows
from glfm_cli.completion.efforts import paced
from glfm_cli.completion.prepare import NamedTable, TableLike, Types, as_table, with_types
from glfm_cli.completion.requests import Unseen, check_unseen
from glfm_cli.encoding import EncodedColumn
from glfm_cli.errors import UsageError
from glfm_cli.inference.blas import one_blas_thread
from glfm_cli.inference.executors import available_threads, run_jobs, thread_pool
from glfm_cli.inference.sampling import Observer, Stop
from glfm_cli.inference.tasks import Runner, runner_of
from glfm_cli.latent.iqgme import IqgmeConfig
from glfm_cli.links import LinkConfig
from glfm_cli.options import STARTS, Sampling, Saving, gather, whole
from glfm_cli.settings import apply_settings
from glfm_cli.store import Header, check_free


@one_blas_thread()
def classify(
    table: TableLike,
    types: Types | None = None,
    *,
    target: str | None = None,
    predict: TableLike | None = None,
    cv: int | None = None,
    fit: Trained | str | os.PathLike[str] | None = None,
    sampling: Sampling | None = None,
    saving: Saving | None = None,
    unseen: Unseen = "error",
    complete: bool = False,
    observer: Observer | None = None,
    **options: Any,
) -> Classification:
    """Predict a label from columns with missing cells.

    Parameters
    ----------
    table : table, data frame or path
        The training rows. Rows without a label help to learn the distribution of the features,
        and are predicted unless `predict` or `cv` is given.
    types : Schema, Guess, mapping or path
        What the columns mean. Not needed with `resume` or `fit`.
    target : str, optional
        The column to predict, categorical or ordinal (whose order is not used); that of role
        target if left out.
    predict : table, data frame or path, optional
        Rows to predict. Their labels, if any, are used only to score the predictions.
    cv : int, optional
        Cross-validate with so many folds instead.
    fit : Trained or path, optional
        A saved classifier, `Classification.trained` or the folder given to `save`: it predicts
        the rows of `table`, and nothing is fitted.
    sampling, saving : Sampling, Saving
        The options; their fields are keywords of this function, too. Of `Sampling` there are
        `effort`, `chains` (starts of the fit, 4 if left out), `seed`, `settings`, `threads` and
        `time_limit`, at which the fit ends where it is, as at Ctrl-C, and of `cv` `engine` and
        `scheduler`; of `Saving` `save`, `resume` (which predicts as a run without a break does)
        and `checkpoint`.
    unseen : {"error", "missing"}
        Whether a level that the training rows do not have is an error, or is taken for missing;
        a number that its column cannot hold is then taken for the nearest that it can hold.
    complete : bool
        Also complete the features and the target of `predict`, or else of `table`.
    observer : Observer, optional
        Told after every iteration of every start.
    """
    sampling, saving = gather(options, sampling or Sampling(), saving or Saving())
    began, missing = time.monotonic(), check_unseen(unseen) == "missing"
    cv = whole("cv", cv, least=2)
    _check(sampling, saving, predict, cv)
    shaping: dict[str, object] = {"types": types, "target": target, "cv": cv}
    if fit is not None:
        shaping |= replace(sampling, threads=None).written() | saving.written()
        check_alone(shaping | {"predict": predict}, "--fit")
        found = _apply(table, fit, missing, complete, sampling.threads)
        return replace(found, seconds=time.monotonic() - began, given=table)
    if saving.resume is not None:
        shaping |= replace(sampling, threads=None, time_limit=None).written()
        check_alone(shaping, "--resume")
    source, file = as_table(table)
    request = plan_request(source, types, target, sampling, saving, file)
    new = None if predict is None else read_new_rows(request.task, *as_table(predict), missing)
    if cv is not None:
        request.check_folds(cv)
    elif new is None and not (request.keeping or complete or np.isnan(request.task.code).any()):
        raise nothing_to_predict()
    request.check_names(cv is not None or (new is not None and new.labelled), cv)
    threads, limit = sampling.threads or available_threads(), sampling.time_limit
    runner = runner_of(sampling.engine, sampling.scheduler, threads)
    if runner is not None and cv is None:
        raise UsageError("--engine is for the folds of --cv", hint="Leave it out, or add --cv.")
    stop = Stop(None if limit is None else began + limit)
    with thread_pool(threads) as pool:
        how = replace(request.how, pool=pool, stop=stop, observer=observer, threads=threads)
        request = replace(request, how=how)
        found = request.fitted(new, complete) if cv is None else request.validated(cv, runner)
    found = replace(found, given=table if predict is None else predict, stopped=stop.reason)
    return replace(found, seconds=time.monotonic() - began)


@dataclass(frozen=True, eq=False)
class FitRequest:
    """A classifier that is to be fitted, everything checked.

    how : by which configuration, and for how long;  keeping : where the fit is kept, if anywhere
    """

    task: Task
    table: pa.Table
    how: Fitting
    keeping: Keeping | None

    def check_folds(self, n_folds: int) -> None:
        """Raise when a fold would leave training rows without a label of each level."""
        task = self.task
        check_folds(task.code, task.levels, task.name, n_folds, task.groups)

    def check_names(self, known: bool, n_folds: int | None) -> None:
        """Raise UsageError, before a fit, when two columns of its predictions have one name.

        known : whether labels of the rows to predict are known
        """
        at = np.flatnonzero(~np.isnan(self.task.code) == known)[:1]
        p = np.ones((at.size, len(self.task.levels)))
        self._predictions(at, p, None if n_folds is None else 0 * at).to_table()

    def validated(self, n_folds: int, runner: Runner | None) -> Classification:
        """Return what cross-validation predicts, its folds fitted by `runner`."""
        task = self.task
        of_task = task.features, task.code, len(task.levels)
        found = cross_validate(*of_task, self.how, n_folds, runner, task.groups)
        p = found.p[MODEL]
        predictions = self._predictions(found.rows, p, found.fold)
        result = self._result(predictions, note=found.note, cross_validation=found)
        parted = shared_ids(task, self.table, n_folds)
        telling = self._telling(take(task.features, found.rows), task.code[found.rows], p)
        return replace(result, warnings=(*result.warnings, *parted, *telling))

    def fitted(self, new: NewRows | None, complete: bool) -> Classification:
        """Return a fit, and what it predicts: the rows without a label, or new ones."""
        task, how = self.task, self.how
        classifier = self._fit()
        trained = Trained.of(task, self.table, classifier, how.seed)
        by_experts = classifier.by_experts(task.features, how.pool)
        p = classifier.mixed(by_experts, task.features, how.pool)
        telling = self._telling(task.features, task.code, by_experts)
        if new is not None:
            found = _answer(trained, new, complete, how.pool)
            warnings = _warnings((*self._notes, *telling, *_learnt_from(task, new)), new)
            return replace(found, note=classifier.note, warnings=warnings)
        completed, rows = None, np.flatnonzero(np.isnan(task.code))
        predictions = self._predictions(rows, p[rows]) if rows.size else None
        if complete:
            completed = complete_features(trained, self.table, task.data, p, how.pool)
        found = self._result(
            predictions, trained=trained, note=classifier.note, completed=completed
        )
        return replace(found, warnings=(*found.warnings, *telling))

    def _telling(self, features: Sequence[EncodedColumn], code: Array, p: Array) -> tuple[str, ...]:
        """Return a note where gaps tell of labels that were foretold with p, and are not used."""
        if self.how.config.indicators:
            return ()
        used = [e for e in features if not is_constant(e)]  # others have no gaps that are features
        return telling_gaps(used, code, p, self.task.levels)

    def _fit(self) -> Classifier:
        """Fit in a thread of its own, so that Ctrl-C is heard here and the fit ends where it is."""
        task, stop = self.task, self.how.stop
        assert stop is not None
        job = partial(fit_classifier, task.features, task.code, len(task.levels), self.how)
        if self.keeping is not None:
            job = partial(fit_and_keep, job, self.keeping, task, stop)
        (classifier,) = run_jobs([job], threads=1, on_interrupt=stop.interrupt)
        return classifier

    def _predictions(self, rows: Array, p: Array, fold: Array | None = None) -> Predictions:
        """Return the predictions p of some rows of the table."""
        task = self.task
        ids = [name for name in task.data.ids if name in self.table.column_names]
        there = self.table.select(ids).take(pa.array(rows))
        return Predictions(task.name, task.levels, rows, p, task.code[rows], there, fold)

    @property
    def _notes(self) -> tuple[str, ...]:
        return (*self.task.notes, *few_labels(self.task))

    def _result(self, predictions: Predictions | None, **found: Any) -> Classification:
        task = self.task
        return Classification(
            target=task.name,
            levels=task.levels,
            n_rows=task.data.n_rows,
            n_labelled=int(np.sum(~np.isnan(task.code))),
            n_features=task.n_features,
            predictions=predictions,
            seed=self.how.seed,
            warnings=_warnings(self._notes, None),
            **found,
        )


def plan_request(
    table: pa.Table,
    types: Types | None,
    target: str | None,
    sampling: Sampling,
    saving: Saving,
    file: str | None,
) -> FitRequest:
    """Check everything about a fit and read its table; nothing is fitted or written yet."""
    kept: Header | None = None
    seen: tuple[str, ...] = ()
    if saving.resume is not None:
        kept, own = read_kept(Path(saving.resume))
        schema, target = kept.schema, own.target
        how = Fitting(kept.model_config, kept.link_config, kept.plan.chains, kept.plan.seed)
    elif types is None:
        raise UsageError(
            "--types is missing: it says what the columns mean",
            hint="`glfm types TRAIN -o types.yaml` writes a first one.",
        )
    else:
        read, schema = with_types(table, types)
        seen, sampling = read.notes if isinstance(read, NamedTable) else (), paced(sampling, MODEL)
        length = sampling.length(STARTS)
        defaults = {"model": IqgmeConfig(), "links": LinkConfig(rank_kurtosis=0.0)}
        configs = apply_settings(defaults, dict(sampling.settings or {}))
        how = Fitting(configs["model"], configs["links"], length["chains"], length["seed"])
    task, folder = make_task(table, schema, target, file), saving.resume or saving.save
    task = replace(task, notes=(*task.notes, *seen))
    if saving.save is not None:
        check_free(saving.save)
    keeping = None
    if folder is not None:
        keeping = Keeping.of(folder, task, table, how, kept)
        keeping = replace(keeping, every=saving.checkpoint)
    return FitRequest(task, table, how, keeping)


def _apply(
    table: TableLike,
    fit: Trained | str | os.PathLike[str],
    unseen_is_missing: bool,
    complete: bool,
    threads: int | None,
) -> Classification:
    """Return what a classifier that was fitted before says of the rows of a table."""
    trained = fit if isinstance(fit, Trained) else load_trained(fit)
    source, file = as_table(table)
    new = trained.read(source, unseen_is_missing=unseen_is_missing, file=file)
    with thread_pool(threads or available_threads()) as pool:
        return _answer(trained, new, complete, pool)


def _answer(
    trained: Trained, new: NewRows, complete: bool, pool: ThreadPoolExecutor | None
) -> Classification:
    """Return what a classifier says of new rows."""
    p = trained.probabilities(new.features, pool)
    name, rows = trained.target.column.name, np.arange(new.data.n_rows)
    ids = new.table.select([one for one in new.data.ids if one in new.table.column_names])
    predictions = Predictions(name, trained.levels, rows, p, new.code, ids)
    known = ~np.isnan(new.code)
    return Classification(
        target=name,
        levels=trained.levels,
        n_rows=trained.n_rows,
        n_labelled=trained.n_labelled,
        n_features=count_features(trained.features),
        trained=trained,
        predictions=predictions,
        scores=all_scores(new.code[known], p[known]) if known.any() else None,
        completed=complete_features(trained, new.table, new.data, p, pool) if complete else None,
        seed=trained.seed,
        warnings=_warnings((), new),
    )


def _warnings(notes: Sequence[str], new: NewRows | None) -> tuple[str, ...]:
    """Return what is to be said of the tables."""
    return (*notes, *(new.data.notes if new is not None else ()))


def _learnt_from(task: Task, new: NewRows) -> tuple[str, ...]:
    """Return a note where the rows to predict are those of the task, labels included."""
    pairs = [(new.code, task.code)]
    pairs += [(one.x, of.x) for one, of in zip(new.features, task.features, strict=True)]
    if not (new.labelled and all(np.array_equal(*pair, equal_nan=True) for pair in pairs)):
        return ()
    return (
        "the rows to predict are those that were learnt from: how well others are predicted "
        "--cv 5 tells, scores here do not",
    )


def check_alone(shaping: Mapping[str, object], beside: str) -> None:
    """Raise UsageError when something that shapes a fit is said of one that was made before."""
    for name, value in shaping.items():
        if value is not None:
            raise UsageError(
                f"--{name} and {beside} cannot be used together: nothing is fitted anew",
                hint=f"Leave out --{name}; it is as it was when the fit was made.",
            )


def _check(sampling: Sampling, saving: Saving, predict: object, cv: int | None) -> None:
    """Raise UsageError when options do not fit together."""
    for name in ("model", "warmup", "draws", "thin"):
        if getattr(sampling, name) is not None:
            raise UsageError(f"--{name} cannot be used here: the mixture of experts is fitted")
    if not saving.with_data:
        raise UsageError("--no-data cannot be used here: classifiers are saved without the table")
    for name, other in (("--predict", predict), ("--save", saving.save)):
        if cv is not None and other is not None:
            raise UsageError(
                f"--cv and {name} cannot be used together: --cv makes a fit for each fold",
                hint="Run the command twice, once for each.",
            )
