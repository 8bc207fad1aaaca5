"""Panels of an exploration: one column's distribution under each pattern, beside the whole table.

Patterns differ in colour and in the form of their line, so that they can be told apart in print.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

import glfm_cli.plots.style as style
from glfm_cli.arrays import Array
from glfm_cli.exploration import Exploration, Pattern
from glfm_cli.exploration.scales import Scale
from glfm_cli.links.margins import Interpolated
from glfm_cli.plots.panels import (
    N_BINS,
    WIDTH_LEVEL,
    edges_of,
    fewer,
    in_reach,
    label_numbers,
    prefers_log,
    space_log_ticks,
    ticks_of,
)

Position = Callable[[Array], Array]  # of a number on an axis

MAX_PATTERNS = 5
HATCHES = ("", "////", "....", "\\\\\\\\", "")
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#222222")
DASHES: tuple[Any, ...] = ("solid", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)), (0, (3, 1.2)))

_MAX_LEVELS = 5
_LEAST_POSITIVE = 0.95  # the part of the cells from which a log axis may leave out the others
_ROWS = 400  # of a pattern, whose distributions are averaged
_SMOOTH = np.array([1.0, 4.0, 6.0, 4.0, 1.0]) / 16  # over neighbouring bins
_WIDTH = 160.0  # points, of the lines above a panel, right of the longest names of levels
_NUMBER = 34.0  # points, of the longest number left of a panel
_AROUND = 16.0  # points, beside a panel and its numbers


def shown_patterns(found: Exploration) -> tuple[Pattern, ...]:
    """Return the patterns that figures have room for."""
    return found.top_patterns[:MAX_PATTERNS]


def legend_of(found: Exploration, *, bars: bool = False) -> list[Patch | Line2D]:
    """Return the keys of a figure, of lines or of bars: all rows, then each pattern."""
    keys: list[Patch | Line2D] = [Patch(facecolor=style.OBSERVED, label="all rows, observed")]
    for i, pattern in enumerate(shown_patterns(found)):
        on = style.short(found.features_on(pattern), 110, style.SMALL)
        name = f"{on} ({style.percent(round(pattern.share, 2))} of rows)"
        if bars:
            look: dict[str, Any] = {
                "facecolor": COLOURS[i],
                "edgecolor": "white",
                "hatch": HATCHES[i],
            }
            keys.append(Patch(label=name, linewidth=0.4, **look))
        else:
            look = {"color": COLOURS[i], "linestyle": DASHES[i]}
            keys.append(Line2D([], [], label=name, linewidth=2, **look))
    return keys


def draw_column(axes: Axes, found: Exploration, scale: Scale, width: float = _WIDTH) -> None:
    """Draw p(x | pattern) of a column for the patterns shown, on the observed distribution.

    Curves for real and positive columns, steps for counts, bars for levels. `width` is that of
    the lines above, in points.
    """
    if scale.encoded.levels:
        _draw_levels(axes, found, scale, width)
    else:
        head(axes, scale, width=width)
        _draw_numbers(axes, found, scale)


def room_above(names: Sequence[str], panel: float) -> float:
    """Return how wide lines above panels may be, in points, with such names left of their axes.

    panel : width of a panel, names and all
    """
    widest = max([style.width_of(name, style.PLAIN) for name in names], default=0.0)
    return panel - min(max(widest, _NUMBER), WIDTH_LEVEL) - _AROUND


def head(axes: Axes, scale: Scale, tail: str = "", width: float = _WIDTH) -> None:
    """Write name, label and unit above a panel, and clear its frame."""
    column = scale.encoded.column
    words = style.words_of(column)
    name = style.squeezed(column.name, width, style.TITLE, tail)
    axes.set_title(name, loc="left", fontproperties=style.TITLE, pad=14 if words else 5)
    if words:
        style.subtitle(axes, style.short(words, width, style.SMALL))
    style.open_frame(axes)


def _masses(found: Exploration, scale: Scale) -> list[Array]:
    """Return the mass of every bin of a scale under each pattern shown."""
    noise, params = float(found.shown.noise[scale.d]), found.shown.params[scale.d]
    some = (scale.some_of(pattern.rows, _ROWS) for pattern in shown_patterns(found))
    etas = (found.shown.eta_of(rows) for rows in some)
    return [scale.masses(eta, noise, params).mean(axis=0) for eta in etas]


def _draw_numbers(axes: Axes, found: Exploration, scale: Scale) -> None:
    edges, position = _axis(scale)
    if position is None:
        label_numbers(axes, scale.encoded)
    else:
        axes.set_xscale("function", functions=position) if edges[0] < 0 else axes.set_xscale("log")
        axes.xaxis.set_major_formatter(ticks_of(scale.encoded)[1])
        space_log_ticks(axes, edges, position[0])
    seen = in_reach(scale.encoded.x[scale.encoded.observed])
    axes.stairs(
        np.histogram(seen, edges)[0] / max(seen.size, 1), edges, fill=True, color=style.OBSERVED
    )
    forth, back = position or (np.array, np.array)
    middle = back((forth(edges[:-1]) + forth(edges[1:])) / 2)
    for i, mass in enumerate(_masses(found, replace(scale, at=edges))):
        inside = mass[1:-1]
        if isinstance(getattr(scale.link, "margin", None), Interpolated):
            # The column's own distribution, gaps and heaps included, is the model's margin.
            inside = np.convolve(np.pad(inside, 2, mode="edge"), _SMOOTH, mode="valid")
        if _whole(scale):
            axes.stairs(inside, edges, color=COLOURS[i], linewidth=1.5, baseline=None)
            axes.patches[-1].set_linestyle(DASHES[i])
        else:
            axes.plot(middle, inside, color=COLOURS[i], linestyle=DASHES[i], linewidth=1.6)
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.yaxis.set_major_formatter(FuncFormatter(style.percent))


def _whole(scale: Scale) -> bool:
    return scale.encoded.column.integral


def _axis(scale: Scale) -> tuple[Array, tuple[Position, Position] | None]:
    """Return the edges of a column's bins, and for a long tail a stretched axis: forth and back.

    Positive columns get a logarithmic axis, counts one of log(1 + x), which has room for 0.
    """
    seen = in_reach(scale.encoded.typical)
    low, high = np.quantile(seen, [0.002, 0.998], method="inverted_cdf")
    seen = seen[(seen >= low) & (seen <= high)]
    n_bins = int(np.clip(2 * np.sqrt(seen.size), 4, N_BINS))
    if _whole(scale):
        if low < 0 or not prefers_log(1 + seen):
            return edges_of(seen, seen, seen, whole=True, logarithmic=False, n_bins=n_bins), None
        ends = np.geomspace(1 + low, 2 + high, n_bins + 1) - 1  # from low to high + 1
        return np.unique(ends.round()) - 0.5, (np.log1p, np.expm1)
    positive = seen[seen > 0]
    logarithmic = positive.size >= _LEAST_POSITIVE * seen.size and prefers_log(positive)
    if logarithmic:
        seen = positive  # the few others have no place on such an axis
    edges = edges_of(seen, seen, seen, whole=False, logarithmic=logarithmic, n_bins=n_bins)
    return edges, (np.log10, lambda x: np.power(10.0, x)) if logarithmic else None


def _draw_levels(axes: Axes, found: Exploration, scale: Scale, width: float) -> None:
    base = found.baseline[found.scales.index(scale)].mass
    shares = np.stack([base, *_masses(found, scale)])
    levels, n_levels, tail = scale.encoded.levels, len(scale.encoded.levels), ""
    if n_levels > _MAX_LEVELS and not scale.ordered:  # those in which the patterns differ most
        order = np.argsort(-np.ptp(shares, axis=0), kind="stable")
        kept = np.sort(order[:_MAX_LEVELS])
        levels, shares = tuple(levels[r] for r in kept), shares[:, kept]
        tail = f": {_MAX_LEVELS} of {n_levels} levels"
    head(axes, scale, tail, width)
    labels, shares = fewer(levels, shares, ordered=scale.ordered, most=_MAX_LEVELS)
    grouped_bars(axes, labels, shares)


def grouped_bars(axes: Axes, labels: Sequence[str], shares: Array) -> None:
    """Draw shares (n, R) as bars: a wide grey one for the first group, narrow ones before it."""
    n_groups = shares.shape[0] - 1
    at = np.arange(len(labels))
    axes.barh(at, shares[0], 0.86, color=style.OBSERVED)
    height = 0.8 / max(n_groups, 1)
    for i in range(n_groups):
        offset = (i - (n_groups - 1) / 2) * height
        axes.barh(
            at + offset,
            shares[i + 1],
            height * 0.62,
            color=COLOURS[i],
            edgecolor="white",
            linewidth=0.4,
            hatch=HATCHES[i],
        )
    axes.set_yticks(at, list(labels))
    axes.set_ylim(-0.6, len(labels) - 0.4)
    style.bars_of_shares(axes, float(shares.max(initial=0.0)))
