"""Cross-validation: every labelled row predicted by a fit that has not seen its label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import glfm_cli.classification.baselines as baselines
from glfm_cli.arrays import Array
from glfm_cli.classification.classifier import fit_classifier
from glfm_cli.classification.features import take
from glfm_cli.classification.fit import Fitting
from glfm_cli.classification.scores import all_scores
from glfm_cli.encoding import EncodedColumn
from glfm_cli.errors import TableError, UsageError

MODEL = "iqgme"


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """What cross-validation gives.

    folds : how many;  rows : (m,) the labelled rows, ascending;  fold : (m,) of each
    p : name of a method to (m, R) probabilities, each from a fit without the row
    scores : name of a method to its scores over all rows
    note : that of the first fold's classifier
    """

    folds: int
    rows: Array
    fold: Array
    p: dict[str, Array]
    scores: dict[str, dict[str, float]]
    note: str | None = None


def check_folds(code: Array, levels: Sequence[str], name: str, n_folds: int) -> None:
    """Raise when a fold would leave training rows without a label of each level."""
    count = np.bincount(code[~np.isnan(code)].astype(np.intp))
    if n_folds > count.sum():
        raise UsageError(
            "--cv", value=n_folds, expected=f"at most {count.sum()}, the labelled rows"
        )
    rare = int(np.argmin(count))
    if count[rare] < 2:
        raise TableError(
            f"only one row is labelled '{levels[rare]}', and --cv holds it out",
            column=name,
            expected="at least two rows of each label",
        )


def stratified_folds(code: Array, n_folds: int, rng: np.random.Generator) -> Array:
    """Return a fold (m,) for each row, levels spread over folds as evenly as can be."""
    order = rng.permutation(code.size)
    order = order[np.argsort(code[order], kind="stable")]
    fold = np.empty(code.size, dtype=np.intp)
    fold[order] = np.arange(code.size) % n_folds
    return fold


def cross_validate(
    columns: Sequence[EncodedColumn],
    code: Array,
    n_levels: int,
    how: Fitting,
    n_folds: int,
) -> CrossValidation:
    """Predict every labelled row from the others.

    Rows without a label are in no fold, and teach nothing here. With scikit-learn installed the
    same folds are predicted by logistic regression. Arguments are those of `fit_classifier`.
    """
    rows = np.flatnonzero(~np.isnan(code))
    here, own = take(columns, rows), code[rows]
    fold = stratified_folds(own, n_folds, np.random.default_rng([how.seed, n_folds]))
    names = (MODEL, *(baselines.NAMES if baselines.available() and columns else ()))
    p = {name: np.empty((rows.size, n_levels)) for name in names}
    note = None
    for k in range(n_folds):
        inside, outside = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        train, test = take(here, inside), take(here, outside)
        model = fit_classifier(train, own[inside], n_levels, how)
        note = note or model.note
        p[MODEL][outside] = model.probabilities(test, how.pool)
        if len(names) > 1:
            of_train = (train, own[inside], test, n_levels)
            others = baselines.baseline_probabilities(*of_train, how.links, how.seed)
            for name, values in others.items():
                p[name][outside] = values
    scores = {name: all_scores(own, values) for name, values in p.items()}
    return CrossValidation(n_folds, rows, fold, p, scores, note)
