"""What classification gives: probabilities of levels for rows, and how the fit went."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.classification.classifier import Classifier
from glfm_cli.classification.folds import MODEL, CrossValidation
from glfm_cli.classification.trained import Trained
from glfm_cli.errors import UsageError
from glfm_cli.io.frames import AsGiven

ROW, PREDICTED, FOLD = "row", "predicted", "fold"


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predicted labels of some rows.

    rows : (m,) their places in their table, from 0
    p : (m, R) probabilities of the levels
    code : (m,) their true levels as far as known, else NaN
    ids : the table's columns of role id, at these rows
    fold : (m,) the fold that each was held out in, for cross-validation
    """

    target: str
    levels: tuple[str, ...]
    rows: Array
    p: Array
    code: Array
    ids: pa.Table
    fold: Array | None = None

    @classmethod
    def example(cls) -> pa.Table:
        """Return a table of predictions with columns of the kinds that one has."""
        one = cls("", ("0", "1"), np.zeros(1, int), np.full((1, 2), 0.5), np.zeros(1), pa.table({}))
        return one.to_table()

    def to_table(self) -> pa.Table:
        """Return one row a prediction: its row (from 1), ids, known label, predicted one, p_LEVEL.

        Raises UsageError: two columns would have one name.
        """
        names = np.array(self.levels, dtype=object)
        columns: list[tuple[str, Any]] = [(ROW, pa.array(self.rows + 1, pa.int64()))]
        columns += [(name, self.ids[name]) for name in self.ids.column_names]
        if self.fold is not None:
            columns.append((FOLD, pa.array(self.fold + 1, pa.int64())))
        known = ~np.isnan(self.code)
        if known.any():
            place = np.where(known, self.code, 0).astype(np.intp)
            columns.append((self.target, pa.array(names[place], pa.string(), mask=~known)))
        columns.append((PREDICTED, pa.array(names[self.p.argmax(axis=1)], pa.string())))
        columns += [(f"p_{level}", pa.array(self.p[:, r])) for r, level in enumerate(self.levels)]
        column_names = [name for name, _ in columns]
        twice = next(
            (name for i, name in enumerate(column_names) if name in column_names[:i]), None
        )
        if twice is not None:
            raise UsageError(
                "the table of predictions would have two columns of this name",
                column=twice,
                hint="Rename the column of the table.",
            )
        return pa.table([values for _, values in columns], names=column_names)


@dataclass(frozen=True, eq=False, repr=False)
class Classification(AsGiven):
    """A fitted mixture of experts, its predictions and their scores.

    trained : what was fitted; None after a cross-validation, which makes a fit for each fold
    predictions : of new rows, of the rows without a label, or of the folds; None when none are
    scores : of the predictions, where their labels are known
    cross_validation : None unless asked for
    completed : the table whose features were to be completed, None unless asked for
    stopped : why the fit ended early, None when it did not
    note : what the table decided of the experts' form, None where there is nothing to say
    """

    target: str
    levels: tuple[str, ...]
    n_rows: int
    n_labelled: int
    n_features: int
    seed: int
    warnings: tuple[str, ...]
    trained: Trained | None = None
    predictions: Predictions | None = None
    scores: dict[str, float] | None = None
    cross_validation: CrossValidation | None = None
    completed: pa.Table | None = None
    seconds: float = 0.0
    stopped: str | None = None
    note: str | None = None

    @property
    def converged(self) -> bool:
        """Return whether the fit met its tolerance."""
        return self.trained is None or self.trained.classifier.converged

    def to_table(self) -> pa.Table:
        """Return the predictions, one row each."""
        if self.predictions is None:
            raise nothing_to_predict()
        return self.predictions.to_table()

    def to_dict(self) -> dict[str, Any]:
        """Return the summary that `glfm classify --json` prints."""
        out: dict[str, Any] = {
            "target": self.target,
            "levels": list(self.levels),
            "rows": self.n_rows,
            "labelled": self.n_labelled,
            "features": self.n_features,
            "model": MODEL,
            "seed": self.seed,
            "seconds": round(self.seconds, 3),
            "stopped": self.stopped,
            "warnings": list(self.warnings),
        }
        if self.trained is not None:
            out["fit"] = fit_summary(self.trained.classifier)
            if self.trained.tasks is not None:
                out["tasks"] = self.trained.tasks.to_dict()
        if self.predictions is not None:
            out["predicted"] = int(self.predictions.rows.size)
        if self.scores is not None:
            out["scores"] = finite(self.scores)
        if self.cross_validation is not None:
            cv = self.cross_validation
            scores = {name: finite(values) for name, values in cv.scores.items()}
            out["cross_validation"] = {"folds": cv.folds, "scores": scores}
        return out


def fit_summary(classifier: Classifier) -> dict[str, Any]:
    """Return how a fit went, with None for the bounds of starts that were not begun."""
    fitted = classifier.fitted
    out: dict[str, Any] = {"experts": classifier.n_experts, "converged": classifier.converged}
    if fitted.draws:
        agreed = {"rhat": classifier.rhat}
        return out | {"draws": len(fitted.draws), "sweeps": fitted.sweeps, **finite(agreed)}
    own = classifier.members[0].own
    if own is not None:
        out["own_precision"] = own.omega
    if classifier.pooling is not None:
        out["pooling"] = dict(classifier.pooling.weights)
    if classifier.trees is not None:
        _, out["trees"], out["shares"] = map(float, classifier.trees.mixing.weights)
    return out | {
        "factors": classifier.n_factors,
        "averaged": [member.weight for member in classifier.members],
        "bound": float(fitted.bounds[-1]),
        "iterations": int(fitted.bounds.size),
        "starts": [float(end) if math.isfinite(end) else None for end in fitted.ends],
    }


def finite(scores: dict[str, float]) -> dict[str, float | None]:
    """Return scores as JSON holds them: None for what is no number."""
    return {name: value if math.isfinite(value) else None for name, value in scores.items()}


def nothing_to_predict() -> UsageError:
    """Return the error of a fit that no row asks for."""
    return UsageError(
        "there is nothing to predict: every row has a label",
        hint="Give new rows with --predict FILE, or judge the model with --cv 10.",
    )
