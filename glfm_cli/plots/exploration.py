"""Figures of an exploration: patterns by column and by level, traces, fit, dependence, overview."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

import glfm_cli.plots.style as style
from glfm_cli.arrays import Array
from glfm_cli.errors import UsageError
from glfm_cli.exploration import ComponentExploration, Exploration, FactorExploration
from glfm_cli.exploration.scales import Scale
from glfm_cli.plots.components import plot_components
from glfm_cli.plots.factors import plot_factors
from glfm_cli.plots.fit import draw_fit, has_scale
from glfm_cli.plots.pages import PANEL, draw_size, draw_trace, drawn, legend, percent_axis
from glfm_cli.plots.panels import WIDTH_LEVEL
from glfm_cli.plots.patterns import (
    COLOURS,
    HATCHES,
    draw_column,
    head,
    legend_of,
    room_above,
    shown_patterns,
)
from glfm_cli.plots.series import series_drawn

Path = str | os.PathLike[str]

MAX_COLUMNS = 12


def plot_exploration(
    found: Exploration | ComponentExploration | FactorExploration, path: Path | None = None
) -> Figure:
    """Draw one page: features, patterns, the columns they move most, and the chains.

    Of components: their shares, what leads them, what moves the cells, and the chains. Of rows in
    time the leading series that columns share, with bands of 50 and 95 %.

    Parameters
    ----------
    found : Exploration, ComponentExploration or FactorExploration
    path : path, optional
        Where to write the figure; PNG, SVG or PDF by suffix, replaced only when complete.

    Raises
    ------
    OutputError
        The suffix is another one, or the file cannot be written.
    """
    if isinstance(found, FactorExploration):
        return plot_factors(found, path)
    if not isinstance(found, Exploration):
        return plot_components(found, path)
    columns = _most_moved(found, 6)
    draw: list[Callable[[Axes], None]] = [
        partial(_draw_features, found=found),
        partial(_draw_patterns, found=found),
        partial(draw_trace, found=found, name="log_likelihood", title="Log likelihood"),
        *series_drawn(found.shared),
        *_columns_drawn(found, columns, _names_of(found)),
    ]
    return drawn(draw, path, legend_of(found))


def plot_columns(
    found: Exploration, path: Path | None = None, columns: Sequence[str] | None = None
) -> Figure:
    """Draw p(x | pattern) of columns, 12 at most: by default those that features move most.

    Parameters and errors are those of `plot_exploration`; `columns` names the columns to draw.
    """
    scales = _most_moved(found, MAX_COLUMNS) if columns is None else _named(found, columns)
    draw = _columns_drawn(found, scales[:MAX_COLUMNS])
    return drawn(draw, path, legend_of(found))


def pages_of_columns(found: Exploration) -> list[list[str]]:
    """Return the columns that `plot_columns` can draw, those first that features move most.

    As many lists as figures are needed.
    """
    names = [scale.name for scale in _most_moved(found, len(found.columns))]
    return [names[i : i + MAX_COLUMNS] for i in range(0, len(names), MAX_COLUMNS)]


def plot_shares(found: Exploration, column: str, path: Path | None = None) -> Figure:
    """Draw how often each pattern occurs in the rows of each level of a column.

    Parameters and errors are those of `plot_exploration`; `column` is categorical or ordinal.
    """
    (scale,) = _named(found, [column])
    levels = scale.encoded.levels
    if not levels:
        raise UsageError("patterns can be counted by level only", column=column)
    codes = scale.encoded.x
    counts = np.array([np.sum(codes == r) for r in range(len(levels))])
    present = np.flatnonzero(counts)
    shares = np.array(
        [
            [np.sum(codes[pattern.rows] == r) / counts[r] for r in present]
            for pattern in shown_patterns(found)
        ]
    ).reshape(len(shown_patterns(found)), present.size)
    order = np.arange(present.size) if scale.ordered else np.argsort(-shares[0], kind="stable")

    def figure_of_shares() -> Figure:
        figure = style.sheet(7.0, 1.3 + 0.19 * present.size)
        axes = figure.add_subplot()
        left = np.zeros(present.size)
        at = np.arange(present.size)
        for i, share in enumerate(shares[:, order]):
            look: dict[str, Any] = {"color": COLOURS[i], "hatch": HATCHES[i], "edgecolor": "white"}
            axes.barh(at, share, 0.78, left=left, linewidth=0.5, **look)
            left += share
        axes.barh(
            at, 1 - left, 0.78, left=left, color=style.OBSERVED, edgecolor="white", linewidth=0.5
        )
        names = style.distinct([levels[present[j]] for j in order], 100, style.SMALL)
        axes.set_yticks(at, names, fontproperties=style.SMALL)
        _count_rows(axes, counts[present[order]])
        axes.set_ylim(-0.6, present.size - 0.4)
        axes.invert_yaxis()
        axes.set_xlim(0, 1)
        axes.xaxis.set_major_formatter(FuncFormatter(style.percent))
        axes.tick_params(axis="y", length=0)
        head(axes, scale, ": share of rows with each pattern", width=345.0)
        others, *keys = legend_of(found, bars=True)
        others.set_label("any other pattern")
        legend(figure, [*keys, others])
        return figure

    return style.finished(figure_of_shares, path)


def plot_traces(found: Exploration, path: Path | None = None) -> Figure:
    """Draw the log likelihood and the number of features along the chains, and its posterior.

    Parameters and errors are those of `plot_exploration`.
    """
    draw: list[Callable[[Axes], None]] = [
        partial(draw_trace, found=found, name="log_likelihood", title="Log likelihood"),
        partial(draw_trace, found=found, name="features", title="Number of features"),
        partial(_draw_n_features, found=found),
    ]
    return drawn(draw, path)


def plot_fit(found: Exploration, path: Path | None = None) -> Figure:
    """Draw the pseudo-observations of numeric columns beside the density fitted to them.

    Parameters and errors are those of `plot_exploration`. A curve that misses the histogram tells
    that a column needs a transform. 12 columns at most; trials, columns with
    an atom and those whose cells are all equal have none.
    """
    numeric = [scale for scale in found.columns if not scale.encoded.levels and has_scale(scale)]
    draw = [partial(draw_fit, found=found, scale=scale) for scale in numeric[:MAX_COLUMNS]]
    keys: list[Patch | Line2D] = [
        Patch(facecolor=style.OBSERVED, label="observed cells, on the scale of the model"),
        Line2D([], [], color=style.PREDICTED, linewidth=2, label="the density fitted to them"),
    ]
    return drawn(list(draw), path, keys if draw else [], nothing="There is no numeric column.")


def plot_dependence(found: Exploration, path: Path | None = None) -> Figure:
    """Plot the mutual information of columns, scaled from 0 to 1.

    Parameters and errors are those of `plot_exploration`; the exploration must have been asked
    for the dependence.
    """
    one = found.dependence
    if one is None:
        raise UsageError("the dependence between columns was not asked for")
    n = len(one.names)
    if n < 2:
        return drawn([], path, nothing="There is only one column.")

    def figure_of_dependence() -> Figure:
        side = max(1.8, 0.27 * n)
        figure = style.sheet(3.4 + side, 1.9 + side)
        axes = figure.add_subplot()
        strength = np.ma.masked_invalid(one.strength)
        most = max(0.2, float(np.ceil(10 * strength.max()) / 10))
        image = axes.imshow(strength, cmap="cividis", vmin=0, vmax=most)
        names = style.distinct(one.names, 110, style.SMALL)
        axes.set_xticks(np.arange(n), names, rotation=90, fontproperties=style.SMALL)
        axes.set_yticks(np.arange(n), names, fontproperties=style.SMALL)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        style.titled(axes, "Mutual information of columns", "0 nothing, 1 everything")
        figure.colorbar(
            image, ax=axes, shrink=0.8, pad=0.02, ticks=MaxNLocator(5), format=style.plain
        )
        if n <= 12:
            for a in range(n):
                for b in range(n):
                    if a != b:
                        value = float(one.strength[a, b])
                        colour = "white" if value < 0.55 * most else "black"
                        axes.text(b, a, f"{value:.2f}"[1:] if value < 1 else "1", ha="center",
                                  va="center", fontsize=7, color=colour)  # fmt: skip
        return figure

    return style.finished(figure_of_dependence, path)


# ------------------------------------------------------------------------------------ panels


def _count_rows(axes: Axes, counts: Array) -> None:
    """Write right of every bar how many rows it stands for."""
    look: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
    look |= {"fontproperties": style.SMALL, "color": style.FAINT, "va": "center"}
    for place, n in enumerate(counts):  # as wide as what stands above, for which there is room
        axes.annotate(f"{n:,}", (1, place), (7, 0), **look).set_in_layout(False)
    axes.annotate("rows", (1, 1), (7, 4), **{**look, "xycoords": "axes fraction", "va": "bottom"})


def _draw_features(axes: Axes, found: Exploration) -> None:
    style.titled(axes, "Features", "share of rows; dark: found again by other chains")
    names = [feature.name for feature in found.features]
    share = np.array([feature.share for feature in found.features])
    stability = np.array([feature.stability for feature in found.features])
    at = np.arange(len(names))
    axes.barh(at, share, 0.72, color=style.OBSERVED)
    axes.barh(at, share * stability, 0.72, color=style.PREDICTED)
    axes.set_yticks(at, names)
    percent_axis(axes, share)
    if not names:
        axes.set_xticks([])
        axes.text(
            0.5, 0.5, "There is none.", ha="center", transform=axes.transAxes, color=style.TEXT
        )


def _draw_patterns(axes: Axes, found: Exploration) -> None:
    style.titled(axes, "Patterns", "share of rows")
    patterns = shown_patterns(found)
    share = np.array([pattern.share for pattern in patterns])
    names = _names_of(found)
    at = np.arange(len(names))
    for i in range(at.size):
        axes.barh(at[i], share[i], 0.72, color=COLOURS[i])
    axes.set_yticks(at, names)
    percent_axis(axes, share)


def _draw_n_features(axes: Axes, found: Exploration) -> None:
    values = [draw.trace.get("features", 0.0) for draw in found.posterior.draws()]
    shares = np.bincount(np.array(values).astype(int)) / len(values)
    draw_size(axes, "Number of features", np.arange(shares.size), shares)


# ------------------------------------------------------------------------------------ pages


def _most_moved(found: Exploration, at_most: int) -> list[Scale]:
    """Return the columns asked for, those first that the features of patterns move most."""
    size = dict.fromkeys((scale.d for scale in found.columns), 0.0)
    for feature in found.main or found.features:
        for effect in feature.effects:
            if effect.scale.d in size:
                size[effect.scale.d] += effect.size * min(feature.share, 1 - feature.share)
    ranked = sorted(found.columns, key=lambda scale: -size[scale.d])
    return [scale for scale in ranked if scale.encoded.observed.any()][:at_most]


def _columns_drawn(
    found: Exploration, scales: Sequence[Scale], beside: Sequence[str] = ()
) -> list[Callable[[Axes], None]]:
    """Return what draws the panel of each column, the lines above as long as there is room.

    beside : names left of other panels of the figure
    """
    levels = [level for scale in scales for level in scale.encoded.levels]
    width = room_above([*levels, *beside], 72 * PANEL[0])
    return [partial(draw_column, found=found, scale=scale, width=width) for scale in scales]


def _names_of(found: Exploration) -> list[str]:
    """Return what the patterns shown are called in a panel."""
    names = [found.features_on(one).replace(" + ", "+") for one in shown_patterns(found)]
    return [style.short(name, WIDTH_LEVEL, style.PLAIN) for name in names]


def _named(found: Exploration, names: Sequence[str]) -> list[Scale]:
    by_name = {scale.name: scale for scale in found.scales}
    for name in names:
        if name not in by_name:
            raise UsageError("no such modelled column", column=name)
    return [by_name[name] for name in names]
