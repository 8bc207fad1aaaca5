"""The figure of a map: the rows, those unsure with an ellipse, and columns as surfaces beside."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import EllipseCollection
from matplotlib.colors import LogNorm, Normalize, to_hex, to_rgba_array
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

import glfm_cli.plots.style as style
from glfm_cli.arrays import Array
from glfm_cli.exploration import MapExploration, RowMap
from glfm_cli.exploration.map_result import Surface
from glfm_cli.exploration.scales import Scale
from glfm_cli.exploration.words import percent
from glfm_cli.plots.panels import prefers_log, ticks_of

RAMP = "viridis"
LEVELS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#7f6000")
OTHERS = "#b0b0b0"
MOST_SURFACES = 6
ELLIPSES = 200  # rows, at most, that have one
SHADE = 2.0  # of all ellipses together, where they lie on each other

_SIZES = {1: (8.6, 6.2), 2: (11.0, 6.2)}  # inches, by how many surfaces are side by side


@dataclass(frozen=True)
class Shades:
    """How a column is coloured: numbers and ordered levels along a ramp, others by level.

    shade : per row from 0 to 1 along the ramp, or the number of the level's colour
    stops : shades and texts for a legend;  ramp : whether there is a ramp
    """

    shade: Array
    stops: tuple[tuple[float, str], ...]
    ramp: bool

    def colours(self) -> Any:
        """Return the colours (N, 4)."""
        if self.ramp:
            return matplotlib.colormaps[RAMP](self.shade)
        return to_rgba_array([*LEVELS, OTHERS])[self.shade.astype(np.intp)]


def palette() -> tuple[list[str], list[str]]:
    """Return the ramp as 64 colours for screens, and the colours of levels, the last of others."""
    return [to_hex(c) for c in matplotlib.colormaps[RAMP](np.linspace(0, 1, 64))], [*LEVELS, OTHERS]


def shades_of(shown: RowMap, scale: Scale) -> Shades:
    """Return how a column colours the rows of a map.

    Numbers lie between their 2nd and 98th percentile, on a log scale where that shows more. Levels
    beyond the seven most frequent share a colour.
    """
    x, levels = shown.values[scale.d], scale.encoded.levels
    if levels and not scale.ordered:
        counts = np.bincount(x.astype(np.intp), minlength=len(levels))
        common = np.sort(np.argsort(-counts, kind="stable")[: len(LEVELS)])
        number = np.full(len(levels), len(LEVELS))
        number[common] = np.arange(common.size)
        stops = [(float(i), levels[r]) for i, r in enumerate(common)]
        if len(levels) > common.size:
            stops.append((float(len(LEVELS)), f"{len(levels) - common.size} others"))
        return Shades(number[x.astype(np.intp)].astype(float), tuple(stops), ramp=False)
    if levels:
        last = max(len(levels) - 1, 1)
        some = sorted({i * last // 4 for i in range(5)} & set(range(len(levels))))
        return Shades(x / last, tuple((i / last, levels[i]) for i in some), ramp=True)
    log = x.size > 0 and prefers_log(x)
    y = np.log(x) if log else x
    low, high = np.quantile(y, [0.02, 0.98]) if y.size else (0.0, 1.0)
    size = high - low if high > low else 1.0
    middle = low + 0.5 * size
    ends = np.exp([low, middle, high]) if log else np.array([low, middle, high])
    stops = [(t, f"{value:.3g}") for t, value in zip((0.0, 0.5, 1.0), ends, strict=True)]
    return Shades(np.clip((y - low) / size, 0.0, 1.0), tuple(stops), ramp=True)


def plot_map(found: MapExploration, path: str | os.PathLike[str] | None = None) -> Figure:
    """Draw the rows on their map, coloured by a column, and surfaces of columns beside it.

    Parameters
    ----------
    found : MapExploration
    path : path, optional
        Where to write the figure; PNG, SVG or PDF by suffix, replaced only when complete.

    Raises
    ------
    OutputError
        The suffix names no format, or the file cannot be written.
    """
    return style.finished(partial(_drawn, found), path)


def _drawn(found: MapExploration) -> Figure:
    surfaces = found.map.surfaces[:MOST_SURFACES]
    wide = 2 if len(surfaces) > 3 else 1
    figure = style.sheet(*(_SIZES[wide]))
    parts: Any = figure.subfigures(1, 2, width_ratios=(1.45, 0.58 * wide))
    left, right = parts
    _draw_rows(left.add_subplot(), found)
    for i, surface in enumerate(surfaces):
        axes = right.add_subplot(-(-len(surfaces) // wide), wide, i + 1)
        _draw_surface(axes, surface, found)
    return figure


def _draw_rows(axes: Axes, found: MapExploration) -> None:
    shown, scale = found.map, found.map.scales[found.map.color]
    shades = shades_of(shown, scale)
    colours, given = shades.colours(), ~shown.completed[scale.d]
    if shown.new:
        axes.scatter(
            shown.base[:, 0], shown.base[:, 1], s=9, color="#d9dcdf", linewidths=0, zorder=1
        )
    _draw_ellipses(axes, shown, colours)
    size = float(np.clip(9000.0 / max(len(colours), 1), 6.0, 26.0))
    for rows, look in (
        (given, {"facecolors": colours[given], "edgecolors": "white", "linewidths": 0.25}),
        (~given, {"facecolors": "white", "edgecolors": colours[~given], "linewidths": 1.1}),
    ):
        axes.scatter(shown.position[rows, 0], shown.position[rows, 1], **look, s=size, zorder=3)
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.04)
    _plain_axes(axes)
    axes.set_title("The rows by place", loc="left", fontproperties=style.TITLE, pad=16)
    new = f", {len(shown.base):,} of the map in grey" if shown.new else ""
    unsure = "; ellipses: places that are unsure (1 sd)" if shown.unsure(ELLIPSES).size else ""
    style.subtitle(axes, f"{len(colours):,} rows{new}{unsure}")
    for axis, name in enumerate(("x1", "x2")):
        columns = found.on_axis(axis)[:3]
        directions = ", ".join(f"{one.name} {_towards(one.towards[axis])}" for one in columns)
        label = style.short(f"{name} → {directions}" if directions else name, 330.0, style.SMALL)
        (axes.set_ylabel if axis else axes.set_xlabel)(label, fontproperties=style.SMALL)
    _legend(axes, scale, shades, bool(given.all()))


def _towards(text: str) -> str:
    """Return which way a column goes, as an arrow or a level."""
    return {"higher": "↑", "lower": "↓"}.get(text, text)


def _draw_ellipses(axes: Axes, shown: RowMap, colours: Any) -> None:
    """Draw one sd of the places that are the least sure, if much less than others."""
    most = shown.unsure(ELLIPSES)
    if not most.size:
        return
    major, minor, angle = shown.ellipses(most)
    inside, edge = colours[most].copy(), colours[most].copy()
    inside[:, 3], edge[:, 3] = min(0.1, SHADE / most.size), 0.25  # or many would cover the map
    look: dict[str, Any] = {"facecolors": inside, "edgecolors": edge}
    look |= {"linewidths": 0.5, "zorder": 2, "units": "xy"}
    look |= {"offsets": shown.position[most], "transOffset": axes.transData}
    axes.add_collection(EllipseCollection(2 * major, 2 * minor, np.degrees(angle), **look))


def _legend(axes: Axes, scale: Scale, shades: Shades, complete: bool) -> None:
    """Say below the map what its colours are."""
    unit = scale.encoded.column.unit
    name = scale.name + (f" ({unit})" if unit else "")
    texts = style.distinct([text for _, text in shades.stops], 70.0, style.SMALL)
    tones = matplotlib.colormaps[RAMP]
    keys = []
    for (shade, _), text in zip(shades.stops, texts, strict=True):
        colour = tones(shade) if shades.ramp else [*LEVELS, OTHERS][int(shade)]
        keys.append(_dot(colour, text))
    if not complete:
        keys.append(_dot("#777777", "completed", hollow=True))
    look: dict[str, Any] = {
        "frameon": False,
        "prop": style.SMALL,
        "title_fontproperties": style.TITLE,
    }
    look |= {"handletextpad": 0.1, "columnspacing": 1.2, "alignment": "left"}
    title = style.squeezed(name, 400.0, style.TITLE)
    axes.figure.legend(handles=keys, loc="outside lower left", ncols=8, title=title, **look)


def _dot(colour: Any, text: str, *, hollow: bool = False) -> Line2D:
    look: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 5.5}
    face = "white" if hollow else colour
    return Line2D([], [], markerfacecolor=face, markeredgecolor=colour, label=text, **look)


def _draw_surface(axes: Axes, surface: Surface, found: MapExploration) -> None:
    """Draw what is expected of a column, or how probable one of its levels is, where rows are."""
    scale, x, y, levels = surface.scale, surface.x1, surface.x2, surface.scale.encoded.levels
    (column,) = (one for one in found.map.columns if one.d == scale.d)
    limits: dict[str, Any] = {}
    z, what = surface.mean, "expected level" if levels else "expected"
    if levels and not scale.ordered and surface.probabilities is not None:
        p = surface.probabilities
        level = len(levels) - 1 if len(levels) == 2 else int(np.argmax(p.std(axis=(0, 1))))
        z, what, limits = p[:, :, level], f"probability of {levels[level]}", {"vmin": 0, "vmax": 1}
    near = z[surface.far <= 1.2]
    limits = limits or {"vmin": float(near.min()), "vmax": float(near.max())}
    log = not levels and prefers_log(found.map.values[scale.d]) and limits["vmin"] > 0.0
    norm = (LogNorm if log else Normalize)(**limits)
    image = axes.pcolormesh(x, y, z, cmap=RAMP, norm=norm, shading="gouraud", zorder=1)
    image.set_rasterized(True)
    at = (np.geomspace if log else np.linspace)(limits["vmin"], limits["vmax"], 7)[1:-1]
    if limits["vmax"] > limits["vmin"]:
        axes.contour(x, y, z, at, colors="white", linewidths=0.5, alpha=0.7, zorder=2)
    axes.contourf(x, y, surface.far, [1.0, np.inf], colors=["white"], zorder=3)
    look: dict[str, Any] = {"s": 1.2, "color": "#444444", "alpha": 0.35, "linewidths": 0}
    axes.scatter(found.map.base[:, 0], found.map.base[:, 1], zorder=4, **look)
    ordered = bool(levels) and scale.ordered
    bar = axes.figure.colorbar(image, cax=axes.inset_axes((1.05, 0.0, 0.06, 1.0)))
    bar.outline.set_visible(False)
    bar.minorlocator = NullLocator()
    ticks = FixedLocator([float(f"{v:.2g}") for v in at[::2]])
    locator, formatter = ticks_of(scale.encoded, 4)
    bar.locator = ticks if log else MaxNLocator(4, integer=True) if ordered else locator
    bar.formatter = FuncFormatter(partial(_level_text, levels)) if ordered else formatter
    bar.update_ticks()
    bar.ax.tick_params(length=0, labelsize=7)
    axes.set_aspect("equal", adjustable="box")
    _plain_axes(axes)
    title = style.squeezed(scale.name, 110.0, style.TITLE)
    axes.set_title(title, loc="left", fontproperties=style.TITLE, pad=13)
    style.subtitle(
        axes, style.short(f"{what}; explained {percent(column.explained)}", 140.0, style.SMALL)
    )


def _level_text(levels: Sequence[str], code: float, _: object = None) -> str:
    """Return a level by its code; a formatter of ticks."""
    at = round(code)
    return style.squeezed(levels[at], 40.0, style.SMALL) if 0 <= at < len(levels) else ""


def _plain_axes(axes: Axes) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set(color="#d8d8d8", zorder=5)
