"""One page on the components of a matrix: their shares, what leads them, and the chains."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from glfm_cli.exploration import Component, ComponentExploration
from glfm_cli.plots.pages import PANEL, draw_size, draw_trace, drawn, percent_axis
from glfm_cli.plots.series import series_drawn
from glfm_cli.plots.style import FAINT, PREDICTED, SMALL, distinct, titled

MOST_LEADING = 4  # components with a panel of their own


def plot_components(
    found: ComponentExploration, path: str | os.PathLike[str] | None = None
) -> Figure:
    """Draw one page: shares of components and of variance, leading columns, and the chains."""
    draw: list[Callable[[Axes], None]] = [partial(_draw_shares, found=found)]
    if found.variance:
        draw.append(partial(_draw_variance, found=found))
    values, n = np.unique(np.concatenate(found.ranks), return_counts=True)
    size = {"title": "Number of components", "values": values, "shares": n / n.sum()}
    draw.append(partial(draw_size, **size))
    draw.append(partial(draw_trace, found=found, name="log_likelihood", title="Log likelihood"))
    draw += series_drawn(found.shared)
    draw += [
        partial(_draw_leading, found=found, component=component)
        for component in found.components[:MOST_LEADING]
    ]
    return drawn(draw, path)


def _draw_shares(axes: Axes, found: ComponentExploration) -> None:
    titled(axes, "Components", "share of the mean square of the low-rank mean")
    share = np.array([component.share for component in found.components])
    axes.barh(np.arange(share.size), share, 0.72, color=PREDICTED)
    axes.set_yticks(np.arange(share.size), [component.name for component in found.components])
    percent_axis(axes, share)


def _draw_variance(axes: Axes, found: ComponentExploration) -> None:
    titled(axes, "Shares of the variance", "lines: where 95 % of the draws lie")
    share = np.array([part.mean for part in found.variance])
    at = np.arange(share.size)
    axes.barh(at, share, 0.72, color=PREDICTED)
    upper = np.array([part.upper for part in found.variance])
    axes.hlines(at, [part.lower for part in found.variance], upper, color=FAINT)
    axes.set_yticks(at, distinct([part.name for part in found.variance], 110, SMALL))
    percent_axis(axes, upper)


def _draw_leading(axes: Axes, found: ComponentExploration, component: Component) -> None:
    titled(axes, f"{component.name}: columns", "largest scores, ± 2 sd")
    names, score, sd = zip(*found.leading(component, "column"), strict=True)
    at = np.arange(len(names))
    axes.hlines(at, np.subtract(score, np.multiply(2, sd)), np.add(score, np.multiply(2, sd)))
    axes.plot(score, at, "o", color=PREDICTED, markersize=4)
    axes.axvline(0.0, color=FAINT, linewidth=0.8)
    axes.set_yticks(at, distinct(names, 72 * PANEL[0] / 3, SMALL))
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.spines[["top", "right"]].set_visible(False)
