"""All scores of one fit: of every column, of the columns of a type, and of all together.

Scores in a column's own unit (`mae`, `crps`) stand in the rows of columns only; divided by
the column's range (by R - 1 for levels) they are `nmae`, `ncrps`, which can be averaged. How a
score of a type, or of all, comes from those of its columns:

    over columns   the mean, each column alike      error, nmae, ncrps, nrps, brier, width_50, ...
    over cells     the mean, each cell alike        log_score, coverage_50, ...
    pooled         from the columns' tallies        calibration
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import glfm_cli.evaluation.scores as scores
from glfm_cli.arrays import Array
from glfm_cli.encoding import EncodedColumn, level_numbers, successes_of
from glfm_cli.encoding.trials import trials_of
from glfm_cli.evaluation.task import AT, ENDS, GRID_START, LEVELS, Prediction

OVER_COLUMNS = (
    "rmse",  # of matrices alone, which have one column
    "error",
    "nmae",
    "ncrps",
    "nrps",
    "brier",
    *(f"width_{100 * p:.0f}" for p in LEVELS),
)
OVER_CELLS = ("log_score", *(f"coverage_{100 * p:.0f}" for p in LEVELS))
COLUMN, TYPE, ALL = "column", "type", "all"  # scopes


class Score(NamedTuple):
    """One row of results: a score, and what it is of."""

    scope: str  # COLUMN, TYPE or ALL
    column: str  # its name, or "" for a type or all
    type: str  # its type, or "" for all
    score: str
    value: float
    cells: int


@dataclass(frozen=True)
class _Scored:
    """One column's hidden cells, scored."""

    encoded: EncodedColumn
    cells: int
    values: Mapping[str, float]
    tally: scores.Reliability | None


def spans(columns: Sequence[EncodedColumn]) -> dict[int, float]:
    """Return the range of every column that has one, by its number: R - 1 for levels.

    Of the whole table, before anything is hidden, as in [GLFM section 5.1].
    """
    found = {}
    for d, encoded in enumerate(columns):
        if encoded.column.binomial:
            span = 1.0  # of rates
        elif encoded.levels:
            span = len(encoded.levels) - 1.0
        else:
            seen = encoded.x[encoded.observed]  # none of a column whose cells are all intervals
            span = float(seen.max() / 2 - seen.min() / 2) * 2 if seen.size else 0.0
        if 0 < span < np.inf:
            found[d] = span
    return found


def score_all(
    columns: Sequence[EncodedColumn],
    span: Mapping[int, float],
    truth: Mapping[int, Array],
    predictions: Mapping[int, Prediction],
) -> list[Score]:
    """Return every score of one fit.

    span : ranges, as `spans` gives them
    truth : mapping of int to (n,) float64; column number to the hidden values or codes
    predictions : for the same columns and cells
    """
    parts = [
        _score_column(columns[d], span.get(d), x, predictions[d]) for d, x in sorted(truth.items())
    ]
    rows = []
    for part in parts:
        column = part.encoded.column
        for name, value in part.values.items():
            rows.append(Score(COLUMN, column.name, str(column.type), name, value, part.cells))
    kinds = dict.fromkeys(part.encoded.column.type for part in parts)
    for kind in sorted(kinds, key=str):
        chosen = [part for part in parts if part.encoded.column.type == kind]
        rows += _together(TYPE, str(kind), chosen)
    return rows + _together(ALL, "", parts) + _bins(parts)


def _score_column(
    encoded: EncodedColumn, span: float | None, x: Array, prediction: Prediction
) -> _Scored:
    """Return the scores of one column; those over its range are left out when it has none."""
    values: dict[str, float] = {}
    column, tally = encoded.column, None
    if column.binomial:
        return _Scored(encoded, int(x.size), _score_rates(x, prediction), None)
    if column.nominal:
        values["error"] = scores.share_wrong(x, prediction.estimate)
    else:
        values["mae"] = scores.mean_absolute_error(x, prediction.estimate)
        if span is not None:
            values["nmae"] = values["mae"] / span
            values["error"] = (
                scores.normalized_rmse(x, prediction.estimate, span)
                if column.numeric
                else scores.rank_displacement(x, prediction.estimate, len(encoded.levels))
            )
    if prediction.mean is not None:
        numbers = level_numbers(encoded.levels)[x.astype(np.intp)] if encoded.levels else x
        values["rmse"] = float(np.sqrt(np.mean((prediction.mean - numbers) ** 2)))
    if prediction.log_score is not None:
        values["log_score"] = float(np.mean(prediction.log_score))
    if prediction.quantiles is not None:
        q = prediction.quantiles
        values["crps"] = float(np.mean(scores.crps(x, q[:, GRID_START:])))
        if span is not None:
            values["ncrps"] = values["crps"] / span
        values |= _intervals(x, q, span)
    if prediction.probabilities is not None:
        p = prediction.probabilities
        tally = scores.reliability(x, p)
        values["calibration"] = scores.calibration_error(tally)
        if column.nominal:
            values["brier"] = float(np.mean(scores.brier_score(x, p)))
        else:
            values["rps"] = float(np.mean(scores.ranked_probability_score(x, p)))
            if span is not None:
                values["nrps"] = values["rps"] / span
            values |= _intervals(x, level_quantiles(p), span)
    return _Scored(encoded, int(x.size), values, tally)


def _score_rates(x: Array, prediction: Prediction) -> dict[str, float]:
    """Return the scores of success rates, each of which counts as often as it has trials."""
    trials = trials_of(x)
    away = prediction.estimate - successes_of(x) / trials
    rmse = float(np.sqrt(np.average(away**2, weights=trials)))
    mae = float(np.average(np.abs(away), weights=trials))
    values = {"rmse": rmse, "error": rmse, "mae": mae, "nmae": mae}
    if prediction.log_score is not None:
        values["log_score"] = float(np.mean(prediction.log_score))
    return values


def level_quantiles(p: Array) -> Array:
    """Return (n, len(AT)): the lowest code whose cumulative probability reaches each of `AT`."""
    cdf = np.cumsum(p, axis=1)
    codes = np.sum(cdf[:, None, :] < np.array(AT)[:, None] - 1e-12, axis=2)
    return np.minimum(codes, p.shape[1] - 1).astype(np.float64)


def _intervals(x: Array, q: Array, span: float | None) -> dict[str, float]:
    """Return coverage, and width over the range, of the central intervals."""
    values = {}
    for level, (low, high) in ENDS.items():
        name = f"{100 * level:.0f}"
        values[f"coverage_{name}"] = float(np.mean(scores.covered(x, q[:, low], q[:, high])))
        if span is not None:
            # Divided first: the difference of two large ends might overflow.
            values[f"width_{name}"] = float(np.mean(q[:, high] / span - q[:, low] / span))
    return values


def _together(scope: str, kind: str, parts: Sequence[_Scored]) -> list[Score]:
    """Return the scores of several columns together.

    A log score only where each of the columns has one: methods would else be compared on
    different cells.
    """
    rows = []
    for name in (*OVER_COLUMNS, *OVER_CELLS):
        having = [part for part in parts if name in part.values]
        if not having or (name == "log_score" and len(having) < len(parts)):
            continue
        weight = [part.cells if name in OVER_CELLS else 1 for part in having]
        value = float(np.average([part.values[name] for part in having], weights=weight))
        cells = sum(part.cells for part in having)
        rows.append(Score(scope, "", kind, name, value, cells))
    tally = _pooled(parts)
    if tally is not None:
        cells = sum(part.cells for part in parts if part.tally is not None)
        rows.append(Score(scope, "", kind, "calibration", scores.calibration_error(tally), cells))
    return rows


def _pooled(parts: Sequence[_Scored]) -> scores.Reliability | None:
    tallies = [part.tally for part in parts if part.tally is not None]
    if not tallies:
        return None
    total = tallies[0]
    for tally in tallies[1:]:
        total = total + tally
    return total


def _bins(parts: Sequence[_Scored]) -> list[Score]:
    """Return the tally of all levels by bins: forecasts, their mean, and the share come true."""
    tally = _pooled(parts)
    rows: list[Score] = []
    if tally is None:
        return rows
    for b in range(scores.BINS):
        n = int(tally.n[b])
        if n:
            for name, total in (("forecast", tally.p[b]), ("frequency", tally.successes[b])):
                rows.append(Score(ALL, "", "", f"{name}_{b + 1}", float(total) / n, n))
    return rows
