"""The headline scores as grids of words, methods down and rates across, for terminal and page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from glfm_cli.evaluation.evaluation import Evaluation
from glfm_cli.evaluation.scoring import ALL, COLUMN
from glfm_cli.evaluation.summary import Line


@dataclass(frozen=True)
class Headline:
    """A score that is shown: what it is called, which way is better, digits after the point."""

    score: str
    title: str
    better: str
    digits: int


HEADLINES = (
    Headline("perplexity", "Perplexity of hidden counts", "lower is better", 1),
    Headline("perplexity_mixed", "The same, a tenth of the unigram mixed in", "lower is better", 1),
    Headline("recall_20", "Recall of 20 recommended columns", "higher is better", 3),
    Headline("ndcg_20", "Discounted gain of the 20", "higher is better", 3),
    Headline("rmse", "RMSE of the mean", "lower is better", 4),
    Headline("error", "Error", "lower is better", 4),
    Headline("log_score", "Log score per cell", "higher is better", 3),
    Headline("ncrps", "CRPS over the column's range, numbers", "lower is better", 4),
    Headline("coverage_95", "Share inside intervals of 95 %", "0.95 is right", 3),
    Headline("calibration", "Calibration error of level probabilities", "lower is better", 3),
    Headline("seconds", "Seconds a fit", "", 2),
    Headline("megabytes", "Memory of a fit, MB", "", 1),
)
COMPARED = ("perplexity", "rmse", "error", "log_score")


@dataclass(frozen=True)
class Grid:
    """A table of words: the first of the header and of each row names the row."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def opening(evaluation: Evaluation) -> str:
    """Return what was hidden, in a sentence or two."""
    shares = ", ".join(percent(rate) for rate in evaluation.rates)
    if evaluation.repeats == 1:
        return f"{shares} of the cells hidden once ({evaluation.mechanism})."
    return (
        f"{shares} of the cells hidden {evaluation.repeats} times ({evaluation.mechanism}). "
        "Mean ± standard error; * better than every other method by more than noise."
    )


def headline_grids(evaluation: Evaluation) -> list[Grid]:
    """Return a grid for each headline score of all columns together, some with differences."""
    grids = []
    for headline in HEADLINES:
        lines = _lines(evaluation, headline.score, ALL)
        if not any(math.isfinite(line.mean) for line in lines):
            continue
        title = f"{headline.title} ({headline.better})" if headline.better else headline.title
        grids.append(
            _grid(title, evaluation, {_at(x): mean_text(x, headline.digits) for x in lines})
        )
        if headline.score in COMPARED:
            different = {
                _at(line): _difference(line, headline.digits)
                for line in lines
                if line.method != evaluation.reference and math.isfinite(line.difference)
            }
            if different and evaluation.repeats > 1:
                title = f"{headline.title}: difference to {evaluation.reference}, 95 % interval"
                grids.append(_grid(title, evaluation, different))
    return grids


def column_grid(evaluation: Evaluation, headline: Headline, rate: float) -> Grid | None:
    """Return a score of each column at one rate, methods across; None if no column has it."""
    lines = [x for x in _lines(evaluation, headline.score, COLUMN) if x.rate == rate]
    if not lines:
        return None
    methods = [m for m in evaluation.methods if any(line.method == m for line in lines)]
    cells = {(x.what.column, x.method): mean_text(x, headline.digits) for x in lines}
    kind = {x.what.column: x.what.type for x in lines}
    names = [e.column.name for e in evaluation.data.columns if e.column.name in kind]
    rows = tuple(
        (name, kind[name], *(cells.get((name, method), "-") for method in methods))
        for name in names
    )
    title = f"{headline.title} of each column, {percent(rate)} hidden"
    return Grid(title, ("column", "type", *methods), rows)


def _lines(evaluation: Evaluation, score: str, scope: str) -> list[Line]:
    return [x for x in evaluation.lines if (x.what.score, x.what.scope) == (score, scope)]


def _at(line: Line) -> tuple[str, float]:
    return line.method, line.rate


def _grid(title: str, evaluation: Evaluation, cells: dict[tuple[str, float], str]) -> Grid:
    methods = [m for m in evaluation.methods if any(key[0] == m for key in cells)]
    rates: Sequence[float] = evaluation.rates
    rows = tuple((m, *(cells.get((m, rate), "-") for rate in rates)) for m in methods)
    return Grid(title, ("", *(percent(rate) for rate in rates)), rows)


def mean_text(line: Line, digits: int) -> str:
    """Return a mean with its standard error, and a star where it is the best beyond noise."""
    text = f"{line.mean:.{digits}f}"
    if math.isfinite(line.se):
        text += f" ±{line.se:.{digits}f}"
    return text + ("*" if line.best else "")


def _difference(line: Line, digits: int) -> str:
    text = f"{line.difference:+.{digits}f}"
    if math.isnan(line.lower):
        return text
    return f"{text} [{line.lower:+.{digits}f}, {line.upper:+.{digits}f}]"


def percent(rate: float) -> str:
    """Return a share in percent, as short as it can be said."""
    return f"{100 * rate:.3g} %"


def middle(rates: Iterable[float]) -> float:
    """Return the rate in the middle, the lower of two: where columns are shown one by one."""
    ordered = sorted(rates)
    return ordered[(len(ordered) - 1) // 2]
