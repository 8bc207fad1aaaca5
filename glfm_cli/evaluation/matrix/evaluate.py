"""Hide cells of a matrix, foretell them with several methods, and score the forecasts."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from glfm_cli.completion import as_schema, check_request
from glfm_cli.completion.matrix import Features, MatrixTask, features_of, plan_matrix
from glfm_cli.encoding import Triplets
from glfm_cli.errors import UsageError
from glfm_cli.evaluation.matrix.forecasts import BASELINES, Forecasts, of_model, scores
from glfm_cli.evaluation.matrix.holdouts import Asked, HoldOut, hold_out
from glfm_cli.inference.executors import available_threads
from glfm_cli.inference.sampling import Observer, Run
from glfm_cli.io import read_table
from glfm_cli.schema import Schema

MODEL = "bsvd"
METHODS = (MODEL, *BASELINES)
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
class Line:
    """One score of one method on one set of hidden cells."""

    method: str
    mechanism: str
    rate: float
    repeat: int
    score: str
    value: float
    cells: int


@dataclass(frozen=True)
class MatrixEvaluation:
    """The scores of an evaluation of triplets.

    lines : one a method, set of hidden cells and score
    stopped : why it ended early, None when it did not
    """

    lines: tuple[Line, ...]
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


def evaluate_matrix(
    table: pa.Table | str | os.PathLike[str],
    types: Schema | Mapping[str, Any] | str | os.PathLike[str],
    *,
    methods: Sequence[str] = METHODS,
    mechanism: str | None = None,
    rates: Sequence[float] | None = None,
    repeats: int | None = None,
    row_features: tuple[Any, Any] | Features = None,
    column_features: tuple[Any, Any] | Features = None,
    missingness_features: int | None = None,
    chains: int | None = None,
    warmup: int | None = None,
    draws: int | None = None,
    thin: int | None = None,
    seed: int = 0,
    threads: int | None = None,
    time_limit: float | None = None,
    settings: Mapping[str, object] | None = None,
    observer: Observer | None = None,
) -> MatrixEvaluation:
    """Hide cells of a matrix, foretell them with several methods, and score the forecasts.

    Parameters
    ----------
    table, types
        Triplets and what their columns are. A column of role `split` says which rows of the table
        are `train` and which `test`; then nothing is drawn.
    methods : sequence of str
        "bsvd", "mean" (of all cells), "row-mean", "column-mean".
    mechanism : {"mcar", "one-per-row"}
        Whether a share of all cells is hidden, the default, or one of every row that has two.
    rates, repeats
        Shares of the cells to hide, with "mcar", 0.1 if left out; sets of hidden cells at each,
        5 if left out.
    row_features, column_features, missingness_features
        As in `impute_matrix`, for the model.
    chains, warmup, draws, thin, threads, time_limit, settings, observer
        How the model is sampled, each time.
    seed : int
        Of the hidden cells and of the model.

    Raises
    ------
    GlfmError
        The table, its types or an option are wrong.
    """
    began = time.monotonic()
    check_request("auto", 0.5, threads, time_limit)
    _check(methods)
    file = None if isinstance(table, pa.Table) else str(table)
    data = table if isinstance(table, pa.Table) else read_table(table)
    sets = hold_out(data, as_schema(types), Asked(mechanism, rates, repeats), seed, file)
    options: dict[str, Any] = {"chains": chains, "warmup": warmup, "draws": draws, "thin": thin}
    options |= {"seed": seed, "settings": settings, "missingness_features": missingness_features}
    for name, given in (("row_features", row_features), ("column_features", column_features)):
        options[name] = features_of(given) if isinstance(given, tuple) else given

    def planned(train: Triplets) -> MatrixTask:
        return plan_matrix(train, **options)

    if MODEL in methods:
        planned(sets[0].train)  # what is wrong with an option is said before any work
    workers = threads or available_threads()
    lines: list[Line] = []
    warnings: dict[str, None] = {}
    stopped = None
    for held in sets:
        for method in methods:
            start = time.monotonic()
            if method == MODEL:
                task = planned(held.train)
                run = task.sample(threads=workers, time_limit=time_limit, observer=observer)
                found = of_model(task, run, held.test)
                warnings |= dict.fromkeys(_warnings(run))
                stopped = run.stopped
            else:
                found = BASELINES[method](held)
            lines += _lines(held, method, found, time.monotonic() - start)
        if stopped == "interrupted":
            break
    return MatrixEvaluation(tuple(lines), tuple(warnings), time.monotonic() - began, stopped)


def _check(methods: Sequence[str]) -> None:
    for method in methods:
        if method not in METHODS:
            raise UsageError("--methods", value=method, expected=", ".join(METHODS))
    if not methods or len(set(methods)) < len(methods):
        raise UsageError("--methods", value=",".join(methods), expected="each method once")


def _warnings(run: Run) -> list[str]:
    said = list(run.warnings)
    if run.stopped is not None:
        said.append(f"sampling ended early ({run.stopped}); its forecasts use what draws there are")
    return said


def _lines(held: HoldOut, method: str, found: Forecasts, seconds: float) -> list[Line]:
    n = held.test.row.size
    values = scores(held, found) | {"seconds": seconds}
    return [
        Line(method, held.mechanism, held.rate, held.repeat, name, value, n)
        for name, value in values.items()
    ]
