"""Means over repeats, differences between methods, and which of them are more than noise.

Methods complete the same hidden cells, so their scores are compared in pairs, repeat by repeat: the
difference to the reference has a mean, and a Student interval over the repeats. The best
mean of a score is marked only if its paired difference to every other method has an interval
without 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from scipy.special import stdtrit

from glfm_cli.evaluation.results import Outcome, table_of
from glfm_cli.evaluation.scoring import ALL, COLUMN, TYPE

CONFIDENCE = 0.95
SECONDS, MEGABYTES = "seconds", "megabytes"
LOWER = frozenset(
    [
        *("perplexity", "perplexity_mixed", "rmse", "error", "mae", "nmae", "crps", "ncrps"),
        *("rps", "nrps", "brier", "calibration"),
    ]
)  # scores of which less is better
HIGHER = frozenset({"log_score", "recall_20", "ndcg_20"})

_TEXTS = ("score", "scope", "column", "type", "method")
_KINDS = {**dict.fromkeys(_TEXTS, pa.string()), "repeats": pa.int64(), "best": pa.bool_()}
SUMMARY = pa.schema(
    (name, _KINDS.get(name, pa.float64()))
    for name in (
        *("score", "scope", "column", "type", "rate", "method", "mean", "se", "repeats"),
        *("difference", "lower", "upper", "best"),
    )
)


class What(NamedTuple):
    """What a score is of."""

    score: str
    scope: str
    column: str
    type: str


class Line(NamedTuple):
    """One method's score at one rate, over the repeats.

    mean, se : its mean and standard error; se NaN for a single repeat
    repeats : how many it is the mean of
    difference, lower, upper : to the reference, in pairs, and its interval; NaN for the reference
    best : better than every other method by more than noise
    """

    what: What
    rate: float
    method: str
    mean: float
    se: float
    repeats: int
    difference: float
    lower: float
    upper: float
    best: bool


class Paired(NamedTuple):
    """The mean difference of two methods over the repeats that both have, and its interval."""

    difference: float
    lower: float
    upper: float


Values = Mapping[int, float]  # a score by repeat


def paired(a: Values, b: Values) -> Paired:
    """Return the mean of a - b over common repeats, with a Student interval.

    mean(d) +- t sd(d) / sqrt(n), t the quantile of n - 1 degrees of freedom; the ends are NaN
    for fewer than two repeats.
    """
    common = sorted(set(a) & set(b))
    if not common:
        return Paired(math.nan, math.nan, math.nan)
    d = np.array([a[repeat] - b[repeat] for repeat in common])
    mean, se = mean_and_error(d)
    if math.isnan(se):
        return Paired(mean, math.nan, math.nan)
    half = float(stdtrit(d.size - 1, (1 + CONFIDENCE) / 2)) * se
    return Paired(mean, mean - half, mean + half)


def mean_and_error(values: Sequence[float] | np.ndarray) -> tuple[float, float]:
    """Return the mean and its standard error sd / sqrt(n); NaN for a single value."""
    x = np.asarray(values, dtype=np.float64)
    if not np.isfinite(x).all():  # a log score of -inf has no spread
        return float(np.mean(x)), math.nan
    se = float(np.std(x, ddof=1) / np.sqrt(x.size)) if x.size > 1 else math.nan
    return float(np.mean(x)), se


def summarize(fits: Iterable[Outcome], methods: Sequence[str], reference: str) -> list[Line]:
    """Return one line a score, rate and method, in that order, methods as given.

    fits : those that failed have no scores
    methods : which methods to take; others are left out
    reference : the method that differences are taken to
    """
    found: dict[tuple[What, float], dict[str, dict[int, float]]] = {}
    for fit in fits:
        if fit.id.method not in methods:
            continue
        for what, value in _values(fit):
            by_method = found.setdefault((what, fit.id.rate), {})
            by_method.setdefault(fit.id.method, {})[fit.id.repeat] = value
    lines = []
    for (what, rate), by_method in sorted(found.items(), key=_order):
        best = best_of(by_method, what.score)
        for method in methods:
            if method not in by_method:
                continue
            values = by_method[method]
            mean, se = mean_and_error(list(values.values()))
            against = by_method.get(reference, {}) if method != reference else {}
            lines.append(
                Line(
                    what, rate, method, mean, se, len(values), *paired(values, against),
                    method == best,
                )
            )  # fmt: skip
    return lines


def best_of(by_method: Mapping[str, Values], score: str) -> str | None:
    """Return the method that is better than all others by more than noise; None if there is none.

    Of scores without a better direction, and of one method alone, none is best.
    """
    if score not in LOWER | HIGHER or len(by_method) < 2:
        return None
    sign = 1.0 if score in LOWER else -1.0
    means = {method: sign * mean_and_error(list(v.values()))[0] for method, v in by_method.items()}
    first = min(means, key=lambda method: means[method])
    for other, values in by_method.items():
        if other != first:
            apart = paired(by_method[first], values)
            end = apart.upper if sign > 0 else -apart.lower
            if not end < 0:
                return None
    return first


def to_table(lines: Iterable[Line]) -> pa.Table:
    """Return the lines of a summary as a table."""
    return table_of([(*line.what, *line[1:]) for line in lines], SUMMARY)


def _values(fit: Outcome) -> list[tuple[What, float]]:
    """Return the scores of a fit, what it cost among them; nothing of one that failed."""
    if fit.problem:
        return []
    found = [(What(s.score, s.scope, s.column, s.type), s.value) for s in fit.scores]
    found.append((What(SECONDS, ALL, "", ""), fit.seconds))
    if not math.isnan(fit.megabytes):
        found.append((What(MEGABYTES, ALL, "", ""), fit.megabytes))
    return found


def _order(item: tuple[tuple[What, float], object]) -> tuple[object, ...]:
    (what, rate), _ = item
    scope = (ALL, TYPE, COLUMN).index(what.scope)
    return scope, what.score, what.type, what.column, rate
