"""Cross-validation: every labelled row predicted by a fit that has not seen its label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

import glfm_cli.classification.baselines as baselines
from glfm_cli.arrays import Array
from glfm_cli.classification.classifier import fit_classifier
from glfm_cli.classification.features import take
from glfm_cli.classification.fit import Fitting
from glfm_cli.classification.scores import LEAST, all_scores
from glfm_cli.classification.stratified import grouped_folds, stratified_folds
from glfm_cli.encoding import EncodedColumn
from glfm_cli.errors import TableError, UsageError
from glfm_cli.inference.run import Deadline, Stop
from glfm_cli.inference.tasks import Runner

MODEL = "iqgme"


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """What cross-validation gives.

    folds : how many;  rows : (m,) the labelled rows, ascending;  fold : (m,) of each
    p : name of a method to (m, R) probabilities, each from a fit without the row
    scores : name of a method to its scores over all rows
    note : that of the first fold's classifier; that the shares of labels would do as well
    """

    folds: int
    rows: Array
    fold: Array
    p: dict[str, Array]
    scores: dict[str, dict[str, float]]
    note: str | None = None


def check_folds(
    code: Array, levels: Sequence[str], name: str, n_folds: int, groups: Array | None = None
) -> None:
    """Raise when a fold would leave training rows without a label of each level."""
    labelled = ~np.isnan(code)
    kinds = code[labelled].astype(np.intp)
    most, what = kinds.size, "labelled rows"
    if groups is not None:
        both = np.unique(np.stack([groups[labelled], kinds]), axis=1)
        most, what = np.unique(both[0]).size, "groups of labelled rows"
    if n_folds > most:
        raise UsageError("--cv", value=n_folds, expected=f"at most {most}, the {what}")
    count = np.bincount(kinds)
    if groups is not None:
        each = np.bincount(both[1])
        alone = int(np.argmin(each))
        if each[alone] < 2:
            raise TableError(
                f"all rows labelled '{levels[alone]}' are of one group, and --cv holds it out",
                column=name,
                expected="at least two groups with each label",
            )
    rare = int(np.argmin(count))
    if count[rare] < 2:
        raise TableError(
            f"only one row is labelled '{levels[rare]}', and --cv holds it out",
            column=name,
            expected="at least two rows of each label",
        )


def cross_validate(
    columns: Sequence[EncodedColumn],
    code: Array,
    n_levels: int,
    how: Fitting,
    n_folds: int,
    runner: Runner | None = None,
    groups: Array | None = None,
) -> CrossValidation:
    """Predict every labelled row from the others, those of its group left out as well.

    Rows without a label are in no fold, and teach nothing here. With scikit-learn installed the
    same folds are predicted by logistic regression. Folds are fitted by `runner`, one after another
    here if left out; other arguments are those of `fit_classifier`.
    """
    rows = np.flatnonzero(~np.isnan(code))
    own, rng = code[rows], np.random.default_rng([how.seed, n_folds])
    if groups is None:
        fold = stratified_folds(own, n_folds, rng)
    else:
        fold = grouped_folds(own, groups[rows], n_folds, rng)
    work = _Folds(take(columns, rows), own, n_levels, how, fold)
    notes: list[str | None] = [None] * n_folds
    p: dict[str, Array] = {}

    def keep(k: int, answer: _OfFold) -> None:
        notes[k] = answer.note
        for name, values in answer.p.items():
            p.setdefault(name, np.empty((rows.size, n_levels)))[fold == k] = values
        if how.stop is not None:
            how.stop.reason = how.stop.reason or answer.stopped

    if runner is None:
        for k in range(n_folds):
            keep(k, work.predicted(k))
    else:
        end = Deadline(None if how.stop is None else how.stop.deadline)
        alone = replace(work, how=replace(how, pool=None, stop=None, observer=None, threads=1))
        runner(_predict_fold, (alone, end), range(n_folds), on_result=keep)
    scores = {name: all_scores(own, values) for name, values in p.items()}
    warnings = (next((note for note in notes if note), None), _no_better(own, p[MODEL], fold))
    return CrossValidation(
        n_folds, rows, fold, p, scores, "; ".join(filter(None, warnings)) or None
    )


def _no_better(code: Array, p: Array, fold: Array) -> str | None:
    """Return a warning where probabilities p (m, R) are hardly better than the labels' shares."""
    kinds, n_folds = code.astype(int), int(fold.max()) + 1
    others = [np.bincount(kinds[fold != k], minlength=p.shape[1]) for k in range(n_folds)]
    counts = np.array(others)[fold]
    at = np.arange(code.size), kinds
    ours, shares = (np.log(np.maximum(x[at], LEAST)) for x in (p, counts / counts.sum(1)[:, None]))
    se = float(np.std(ours - shares, ddof=1)) / np.sqrt(code.size)
    if ours.mean() - shares.mean() > 2.0 * se:
        return None
    return (
        f"the features hardly predict the label: the log score is {ours.mean():.3f}, and "
        f"{shares.mean():.3f} if every row gets the shares of the labels: not "
        f"better by two standard errors of the difference ({se:.3f} each)"
    )


class _OfFold(NamedTuple):
    """What a fold is predicted to be, why its fit ended early, and what to know of it."""

    p: dict[str, Array]
    stopped: str | None
    note: str | None


@dataclass(frozen=True)
class _Folds:
    """Labelled rows, and which fold each is in."""

    columns: Sequence[EncodedColumn]
    code: Array
    n_levels: int
    how: Fitting
    fold: Array

    def predicted(self, k: int) -> _OfFold:
        """Predict a fold from all others."""
        inside, outside = np.flatnonzero(self.fold != k), np.flatnonzero(self.fold == k)
        train, test = take(self.columns, inside), take(self.columns, outside)
        how, own = self.how, self.code[inside]
        model = fit_classifier(train, own, self.n_levels, how)
        p = {MODEL: model.probabilities(test, how.pool)}
        if baselines.available() and self.columns:
            of_train = (train, own, test, self.n_levels)
            p |= baselines.baseline_probabilities(*of_train, how.links, how.seed)
        return _OfFold(p, None if how.stop is None else how.stop.reason, model.note)


def _predict_fold(work: tuple[_Folds, Deadline], k: int) -> _OfFold:
    folds, end = work
    return replace(folds, how=replace(folds.how, stop=Stop(end.at))).predicted(k)
