"""Figures of several panels, and what panels of an exploration have in common."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

import glfm_cli.plots.style as style
from glfm_cli.exploration import Explored

Path = str | os.PathLike[str]

PANEL = (3.4, 2.25)  # inches
_WIDE = 3


def drawn(
    draw: Sequence[Callable[[Axes], None]],
    path: Path | None,
    keys: Sequence[Patch | Line2D] = (),
    nothing: str = "",
) -> Figure:
    """Return a figure with a panel for each of `draw`, and a legend of `keys`."""
    n_wide = min(max(len(draw), 1), _WIDE)
    n_high = -(-max(len(draw), 1) // n_wide)

    def figure_of_all() -> Figure:
        figure = style.sheet(max(PANEL[0] * n_wide, 5.0), PANEL[1] * n_high + 0.55)
        if not draw:
            style.says_nothing(figure, nothing)
        for i, one in enumerate(draw):
            one(figure.add_subplot(n_high, n_wide, i + 1))
        legend(figure, keys)
        return figure

    return style.finished(figure_of_all, path)


def legend(figure: Figure, keys: Sequence[Patch | Line2D]) -> None:
    """Put a legend above the panels, when there are keys."""
    if not keys:
        return
    width = figure.get_size_inches()[0]
    longest = max(len(str(key.get_label())) for key in keys)
    wide = 2.3 if longest <= 36 else 3.3  # inches
    figure.legend(
        handles=keys,
        loc="outside upper left",
        ncols=max(1, min(len(keys), int(width // wide))),
        frameon=False,
        prop=style.SMALL,
        handlelength=2.6,
    )


def draw_trace(axes: Axes, found: Explored, name: str, title: str) -> None:
    """Draw a traced quantity along the chains."""
    style.titled(axes, title, "kept draws; a line is a chain")
    for c, chain in enumerate(found.posterior.chains):
        values = [draw.trace.get(name, np.nan) for draw in chain]
        at = np.arange(1, len(values) + 1)
        axes.plot(at, values, color=style.CHAINS[c % len(style.CHAINS)], linewidth=1.0,
                  marker="." if len(values) < 3 else None)  # fmt: skip
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=name == "features"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    axes.spines[["top", "right"]].set_visible(False)


def draw_size(axes: Axes, title: str, values: np.ndarray, shares: np.ndarray) -> None:
    """Draw in which shares of the draws a number has each of its values."""
    style.titled(axes, title, "share of the draws of all chains")
    axes.bar(values, shares, 0.8, color=style.PREDICTED)
    there = values[shares > 0]
    axes.set_xlim(there.min() - 0.8, there.max() + 0.8)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.yaxis.set_major_formatter(FuncFormatter(style.percent))
    axes.spines[["top", "right"]].set_visible(False)


def percent_axis(axes: Axes, share: np.ndarray) -> None:
    """Make the horizontal axis one of shares, bars from the top."""
    style.bars_of_shares(axes, float(share.max(initial=0.0)))
    axes.spines[["top", "right"]].set_visible(False)
