"""Hide cells of a matrix, predict them with several methods, and score the forecasts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from glfm_cli.completion import TableLike, as_table
from glfm_cli.completion.matrix import MatrixTask, features_of, plan_matrix
from glfm_cli.encoding import Triplets
from glfm_cli.errors import UsageError
from glfm_cli.evaluation.design import Design
from glfm_cli.evaluation.matrix.forecasts import BASELINES, Forecasts, of_model, scores
from glfm_cli.evaluation.matrix.holdouts import HoldOut, hold_out
from glfm_cli.inference.executors import available_threads
from glfm_cli.inference.sampling import Run
from glfm_cli.io import check_target, write_table
from glfm_cli.io.frames import AsGiven
from glfm_cli.latent import MODELS
from glfm_cli.options import MatrixOptions, Sampling
from glfm_cli.schema import Schema

HIGHER = frozenset({"log_likelihood"})  # of which more is better
NO_VERDICT = frozenset({"rank", "seconds"})

RESULTS = pa.schema(
    {
        "method": pa.string(),
        "mechanism": pa.string(),
        "rate": pa.float64(),
        "repeat": pa.int64(),
        "score": pa.string(),
        "value": pa.float64(),
        "cells": pa.int64(),
    }
)


@dataclass(frozen=True)
class ScoreLine:
    """One score of one method on one set of hidden cells."""

    method: str
    mechanism: str
    rate: float
    repeat: int
    score: str
    value: float
    cells: int


@dataclass(frozen=True)
class MatrixEvaluation(AsGiven):
    """The scores of an evaluation of triplets.

    lines : one a method, set of hidden cells and score
    stopped : why it ended early, None when it did not
    """

    lines: tuple[ScoreLine, ...]
    warnings: tuple[str, ...]
    seconds: float
    stopped: str | None = None

    def to_table(self) -> pa.Table:
        """Return one row a method, set of hidden cells and score."""
        columns = {name: [getattr(line, name) for line in self.lines] for name in RESULTS.names}
        return pa.table(columns, schema=RESULTS)

    def summary(self) -> list[dict[str, Any]]:
        """Return mean and standard error over repeats of every method, rate and score.

        `difference`, and `difference_se`, are to the first method, in pairs of repeats.
        """
        values: dict[tuple[str, float], dict[str, dict[int, float]]] = {}
        for line in self.lines:
            of_method = values.setdefault((line.score, line.rate), {}).setdefault(line.method, {})
            of_method[line.repeat] = line.value
        found: list[dict[str, Any]] = []
        for (score, rate), methods in values.items():
            first = next(iter(methods.values()))
            for method, repeats in methods.items():
                said: dict[str, Any] = {"score": score, "rate": rate, "method": method}
                said |= dict(zip(("mean", "se"), _mean(list(repeats.values())), strict=True))
                said["repeats"] = len(repeats)
                missing = [value - first[r] for r, value in repeats.items() if r in first]
                if repeats is not first and missing and score not in NO_VERDICT:
                    names = ("difference", "difference_se")
                    said |= dict(zip(names, _mean(missing), strict=True))
                found.append(said)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return what `glfm evaluate --json` prints."""
        return {
            "mechanism": self.lines[0].mechanism if self.lines else None,
            "scores": self.summary(),
            "seconds": round(self.seconds, 3),
            "stopped": self.stopped,
            "warnings": list(self.warnings),
        }


def _mean(values: Sequence[float]) -> tuple[float, float | None]:
    """Return mean and standard error; None for the latter of a single value."""
    error = None
    if len(values) > 1:
        error = float(np.std(values, ddof=1) / np.sqrt(len(values)))
    return float(np.mean(values)), error


def evaluate_triplets(
    table: TableLike,
    schema: Schema,
    sampling: Sampling,
    matrix: MatrixOptions,
    design: Design,
) -> MatrixEvaluation:
    """Hide cells of a matrix, predict them with several methods, and score the forecasts.

    A column of role `split` says which rows of the table are `train` and which `test`; then
    nothing is drawn.

    Raises
    ------
    GlfmError
        The table, its types or an option are wrong.
    """
    began = time.monotonic()
    design.check_triplets()
    models = [name for name, model in MODELS.items() if "sparse" in model.layouts]
    methods = (models[0], *BASELINES) if design.methods is None else tuple(design.methods)
    _check(methods, (*models, *BASELINES))
    data, file = as_table(table)
    if design.output is not None:
        check_target(design.output, RESULTS.empty_table())
    sampling = replace(sampling, seed=sampling.seed or 0)
    sets = hold_out(data, schema, design, sampling.seed or 0, file)
    features = features_of(matrix.row_features), features_of(matrix.column_features)
    missingness = matrix.missingness_features

    def planned(train: Triplets, model: str) -> MatrixTask:
        own = replace(sampling, model=model)
        return plan_matrix(train, own, features=features, missingness_features=missingness)

    for model in models:
        if model in methods:
            planned(sets[0].train, model)  # what is wrong with an option is said before any work
    workers = sampling.threads or available_threads()
    lines: list[ScoreLine] = []
    warnings: dict[str, None] = {}
    stopped = None
    for held in sets:
        for method in methods:
            start = time.monotonic()
            if method in models:
                task = planned(held.train, method)
                run = task.sample(threads=workers, time_limit=sampling.time_limit)
                found = of_model(task, run, held.test)
                warnings |= dict.fromkeys(_warnings(run))
                stopped = run.stopped
            else:
                found = BASELINES[method](held)
            lines += _lines(held, method, found, time.monotonic() - start)
        if stopped == "interrupted":
            break
    seconds = time.monotonic() - began
    result = MatrixEvaluation(tuple(lines), tuple(warnings), seconds, stopped)
    if design.output is not None:
        write_table(result.to_table(), design.output)
    return result


def _check(methods: Sequence[str], known: Sequence[str]) -> None:
    for method in methods:
        if method not in known:
            raise UsageError("--methods", value=method, expected=", ".join(known))
    if not methods or len(set(methods)) < len(methods):
        raise UsageError("--methods", value=",".join(methods), expected="each method once")


def _warnings(run: Run) -> list[str]:
    said = list(run.warnings)
    if run.stopped is not None:
        said.append(f"sampling ended early ({run.stopped}); its forecasts use what draws there are")
    return said


def _lines(held: HoldOut, method: str, found: Forecasts, seconds: float) -> list[ScoreLine]:
    n = held.test.row.size
    values = scores(held, found) | {"seconds": seconds}
    return [
        ScoreLine(method, held.mechanism, held.rate, held.repeat, name, value, n)
        for name, value in values.items()
    ]
