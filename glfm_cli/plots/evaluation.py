"""Figures of an evaluation: scores by share hidden, by column, and how levels are calibrated."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

import glfm_cli.plots.style as style
from glfm_cli.errors import UsageError
from glfm_cli.evaluation import Evaluation
from glfm_cli.evaluation.grids import middle
from glfm_cli.evaluation.grids import percent as percent_text
from glfm_cli.evaluation.scores import BINS
from glfm_cli.evaluation.scoring import ALL, COLUMN
from glfm_cli.evaluation.summary import Line

MAX_COLUMNS = 48  # of one panel

# Okabe and Ito's, told apart with every kind of colour blindness; the form helps in print.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555", "#000000")
_FORMS = "os^DvP*X"
_DODGE = 0.012  # of the axis, between the whiskers of two methods
BENT_FROM = -20.0  # lowest score from which on a scale is bent
LINEAR_TO = 5.0  # how far from 0 it is straight
_BENT_TICKS = (-10000, -3000, -1000, -300, -100, -30, -10, -5, -2.5)
_WIDTH_NAME = 90.0  # points, of a column's name below a panel
_TITLES = {
    "error": "Error (lower is better)",
    "log_score": "Log score per cell (higher is better)",
    "columns": "Error of each column (lower is better)",
    "column_log_scores": "Log score of each column (higher is better)",
    "reliability": "How often levels came true",
}


def plot_evaluation(
    evaluation: Evaluation, path: str | os.PathLike[str] | None = None, *, kind: str = "all"
) -> Figure:
    """Draw the scores of an evaluation.

    Parameters
    ----------
    evaluation : Evaluation
        What `evaluate` returns.
    path : path, optional
        Where to write the figure; PNG, SVG or PDF by suffix, replaced only when complete.
    kind : str
        "error" or "log_score": mean over the repeats by share hidden, whiskers are standard
        errors. "columns" or "column_log_scores": the same for every column, at the middle rate.
        "reliability": how often levels came true, by how probable they were said to be, at
        that rate. "all": each of these that the results have.

    Raises
    ------
    UsageError
        There is no such kind.
    OutputError
        The suffix is another one, or the file cannot be written.
    """
    if kind != "all" and kind not in _TITLES:
        raise UsageError("kind of figure", value=kind, expected=" or ".join([*_TITLES, "all"]))
    requested = [one for one in _TITLES if kind in ("all", one)]
    drawn = [one for one in requested if _DRAWN[one](evaluation, None)]
    return style.finished(lambda: _figure(evaluation, drawn), path)


def _figure(evaluation: Evaluation, kinds: Sequence[str]) -> Figure:
    """Return a figure with a panel for each kind: narrow ones side by side, wide ones alone."""
    narrow = [kind for kind in kinds if kind in ("error", "log_score")]
    bands: list[list[str]] = [[*narrow]] if narrow else []
    bands += [[kind] for kind in kinds if kind.startswith("column")]
    if "reliability" in kinds:
        bands.append(["reliability"])
    alone = list(kinds) in (["error"], ["log_score"], ["reliability"])
    figure = style.sheet(5.0 if alone else 8.0, 0.5 + 3.1 * max(len(bands), 1))
    if not bands:
        return style.says_nothing(figure, "There is nothing to draw.")
    width = max(len(band) for band in bands)
    mosaic: Any = [band * (width // len(band)) for band in bands]
    panels = figure.subplot_mosaic(mosaic)
    for kind in kinds:
        axes = panels[kind]
        axes.set_title(_title(evaluation, kind), loc="left", fontsize=9)
        style.open_frame(axes)
        _DRAWN[kind](evaluation, axes)
    scores = {_SCORES[kind] for kind in kinds}
    shown = [
        method
        for method in evaluation.methods
        if any(x.method == method and x.what.score in scores for x in evaluation.lines)
    ]
    figure.legend(
        handles=[_handle(evaluation, method) for method in shown],
        loc="outside upper left",
        ncols=min(len(shown), 6 if len(bands) > 1 or len(narrow) > 1 else 4),
        frameon=False,
    )
    return figure


def _title(evaluation: Evaluation, kind: str) -> str:
    if kind in ("error", "log_score"):
        return _TITLES[kind]
    return f"{_TITLES[kind]}, {percent_text(middle(evaluation.rates))} hidden"


def _style(evaluation: Evaluation, method: str) -> dict[str, Any]:
    """Return colour and form of a method, the same in every panel."""
    i = evaluation.methods.index(method)
    colour, form = _COLOURS[i % len(_COLOURS)], _FORMS[i % len(_FORMS)]
    return {"color": colour, "marker": form, "markersize": 4.5}


def _handle(evaluation: Evaluation, method: str) -> Line2D:
    return Line2D([], [], label=style.short(method, _WIDTH_NAME, style.SMALL), linewidth=1.4,
                  **_style(evaluation, method))  # fmt: skip


def _lines(evaluation: Evaluation, score: str, scope: str) -> list[Line]:
    return [
        line
        for line in evaluation.lines
        if (line.what.score, line.what.scope) == (score, scope) and np.isfinite(line.mean)
    ]


def _curves(evaluation: Evaluation, axes: Axes | None, score: str) -> bool:
    """Draw a score by share hidden, a curve a method; return whether there is one."""
    lines = _lines(evaluation, score, ALL)
    if axes is None or not lines:
        return bool(lines)
    rates = np.array(evaluation.rates)
    reach = float(np.ptp(rates)) or 0.1
    for i, method in enumerate(evaluation.methods):
        own = sorted((x for x in lines if x.method == method), key=lambda x: x.rate)
        shift = reach * _DODGE * (i - (len(evaluation.methods) - 1) / 2)
        axes.errorbar(
            [x.rate + shift for x in own],
            [x.mean for x in own],
            yerr=[np.nan_to_num(x.se) for x in own],
            capsize=2.5,
            linewidth=1.4,
            **_style(evaluation, method),
        )
    axes.set_xticks(rates, [percent_text(rate) for rate in rates])
    axes.set_xlim(rates.min() - 0.1 * reach, rates.max() + 0.1 * reach)
    axes.yaxis.set_major_locator(MaxNLocator(6))
    axes.yaxis.set_major_formatter(FuncFormatter(style.plain))
    _bend(axes, [x.mean for x in lines])
    axes.set_xlabel(f"share of cells hidden ({evaluation.mechanism})", color=style.FAINT)
    return True


def _bend(axes: Axes, values: Sequence[float]) -> None:
    """Bend the scale of scores that run far below 0, so that those near it can be told apart."""
    if min(values) < BENT_FROM:
        axes.set_yscale("symlog", linthresh=LINEAR_TO)
        axes.yaxis.set_major_locator(FixedLocator([*_BENT_TICKS, 0, 2.5, 5]))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(style.plain))


def _columns(evaluation: Evaluation, axes: Axes | None, score: str) -> bool:
    """Draw a score of every column, columns of a type together; return whether there are any."""
    rate = middle(evaluation.rates)
    lines = [line for line in _lines(evaluation, score, COLUMN) if line.rate == rate]
    if axes is None or not lines:
        return bool(lines)
    kinds = {line.what.column: line.what.type for line in lines}
    order = {kind: i for i, kind in enumerate(("real", "positive", "count", "ordinal"))}
    names = sorted(kinds, key=lambda name: order.get(kinds[name], len(order)))
    left_out = len(names) - MAX_COLUMNS
    names = names[:MAX_COLUMNS]
    place = {name: i for i, name in enumerate(names)}
    n_methods = len(evaluation.methods)
    for i, method in enumerate(evaluation.methods):
        own = [x for x in lines if x.method == method and x.what.column in place]
        shift = 0.6 * ((i + 0.5) / n_methods - 0.5)
        axes.errorbar(
            [place[x.what.column] + shift for x in own],
            [x.mean for x in own],
            yerr=[np.nan_to_num(x.se) for x in own],
            linestyle="none",
            linewidth=1.0,
            **_style(evaluation, method),
        )
    starts = [i for i, name in enumerate(names) if i and kinds[name] != kinds[names[i - 1]]]
    for i in starts:
        axes.axvline(i - 0.5, color=style.OBSERVED, linewidth=0.6)
    taken = -1.0  # up to which column the last label reaches
    for i in [0, *starts]:
        lower = i < taken
        axes.annotate(kinds[names[i]], (i - 0.4, 1.0), xycoords=("data", "axes fraction"),
                      xytext=(0, -9 * lower), textcoords="offset points",
                      fontsize=7.5, color=style.FAINT, va="top")  # fmt: skip
        if not lower:
            taken = i + 0.11 * len(kinds[names[i]]) * max(len(names), 8) / 14
    levels = {e.column.name: len(e.levels) for e in evaluation.data.columns}
    labels = [
        style.short(
            name, _WIDTH_NAME, style.SMALL, tail=f" ({levels[name]})" if levels[name] else ""
        )
        for name in names
    ]
    axes.set_xticks(range(len(names)), labels, rotation=90, fontsize=7.5)
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.margins(y=0.12)
    axes.yaxis.set_major_formatter(FuncFormatter(style.plain))
    _bend(axes, [x.mean for x in lines])
    if left_out > 0:
        more = "column is" if left_out == 1 else "columns are"
        axes.set_xlabel(f"{left_out} more {more} not shown", color=style.FAINT)
    return True


def _reliability(evaluation: Evaluation, axes: Axes | None) -> bool:
    """Draw how often levels came true by their probability; return whether any had one."""
    rate = middle(evaluation.rates)
    curves = {method: _tallies(evaluation, method, rate) for method in evaluation.methods}
    curves = {method: curve for method, curve in curves.items() if curve.size}
    if axes is None or not curves:
        return bool(curves)
    axes.plot([0, 1], [0, 1], color=style.OBSERVED, linewidth=1.0, zorder=0)
    for method, (forecast, frequency) in curves.items():
        axes.plot(forecast, frequency, linewidth=1.2, **_style(evaluation, method))
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)
    axes.set_aspect("equal", anchor="W")
    axes.set_xlabel("probability that was given", color=style.FAINT)
    axes.set_ylabel("share that came true", color=style.FAINT)
    return True


def _tallies(evaluation: Evaluation, method: str, rate: float) -> np.ndarray:
    """Return (2, bins): mean forecast and share come true, pooled over the repeats."""
    totals = np.zeros((3, BINS))
    for fit in evaluation.fits:
        if (fit.id.method, fit.id.rate) != (method, rate):
            continue
        for score in fit.scores:
            name, _, number = score.score.rpartition("_")
            if name == "forecast":
                totals[:2, int(number) - 1] += (score.cells, score.cells * score.value)
            elif name == "frequency":
                totals[2, int(number) - 1] += score.cells * score.value
    n = totals[0]
    return (totals[1:, n > 0] / n[n > 0]) if n.any() else np.empty(0)


_SCORES = {
    "error": "error",
    "log_score": "log_score",
    "columns": "error",
    "column_log_scores": "log_score",
    "reliability": "forecast_1",
}
_DRAWN: dict[str, Callable[[Evaluation, Axes | None], bool]] = {
    "error": lambda evaluation, axes: _curves(evaluation, axes, "error"),
    "log_score": lambda evaluation, axes: _curves(evaluation, axes, "log_score"),
    "columns": lambda evaluation, axes: _columns(evaluation, axes, "error"),
    "column_log_scores": lambda evaluation, axes: _columns(evaluation, axes, "log_score"),
    "reliability": _reliability,
}
