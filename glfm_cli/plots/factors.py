"""One page on the components of counts: their shares, how they go together, what leads them."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from glfm_cli.arrays import Array
from glfm_cli.exploration import FactorExploration
from glfm_cli.plots.pages import PANEL, drawn, percent_axis
from glfm_cli.plots.style import FAINT, PREDICTED, SMALL, distinct, titled

MOST_LEADING = 6  # components with a panel of their own
MOST_SHARES, MOST_NODES = 20, 24
LINE = 0.3  # correlation from which two components are joined
LABEL = (64.0, 9.0)  # width and height, in points, that a component's name takes


def plot_factors(found: FactorExploration, path: str | os.PathLike[str] | None = None) -> Figure:
    """Draw one page: shares, the correlations as a heat map and as a graph, leading columns."""
    draw: list[Callable[[Axes], None]] = [partial(_draw_shares, found=found)]
    if found.pairs:
        draw += [partial(_draw_correlations, found=found), partial(_draw_graph, found=found)]
    draw += [
        partial(_draw_leading, found=found, k=k)
        for k in range(min(len(found.components), MOST_LEADING))
    ]
    return drawn(draw, path)


def _draw_shares(axes: Axes, found: FactorExploration) -> None:
    titled(axes, "Components", "share of the expected counts")
    shown = found.components[:MOST_SHARES]
    share = np.array([component.share for component in shown])
    axes.barh(np.arange(share.size), share, 0.72, color=PREDICTED)
    names = [component.name for component in shown]
    axes.set_yticks(np.arange(share.size), names, fontproperties=SMALL)
    percent_axis(axes, share)


def _draw_correlations(axes: Axes, found: FactorExploration) -> None:
    titled(axes, "Correlations", "blue together, red opposed; those alike beside each other")
    order = found.order
    axes.imshow(found.correlations[np.ix_(order, order)], cmap="RdBu", vmin=-1.0, vmax=1.0)
    if order.size <= MOST_NODES:
        names = [found.components[k].name for k in order]
        axes.set_xticks(np.arange(order.size), names, rotation=90, fontproperties=SMALL)
        axes.set_yticks(np.arange(order.size), names, fontproperties=SMALL)
    axes.tick_params(length=0)


def _draw_graph(axes: Axes, found: FactorExploration) -> None:
    """Draw the largest components where the two leading eigenvectors of correlations put them."""
    titled(axes, "Who goes with whom", f"lines: |correlation| above {LINE:g}, red opposed")
    n = min(len(found.components), MOST_NODES)
    rho = found.correlations[:n, :n]
    values, vectors = np.linalg.eigh(rho)
    at = vectors[:, ::-1][:, :2] * np.sqrt(np.maximum(values[::-1][:2], 0.0))
    for j, k in zip(*np.nonzero(np.triu(np.abs(rho) > LINE, 1)), strict=True):
        colour, width = ("#b2182b" if rho[j, k] < 0 else "#2166ac"), 1.6 * abs(rho[j, k])
        axes.plot(*at[[j, k]].T, color=colour, linewidth=width, alpha=0.5, zorder=1)
    size = np.array([component.share for component in found.components[:n]])
    axes.scatter(at[:, 0], at[:, 1], s=20.0 + 300.0 * size / size.max(), color=PREDICTED, zorder=2)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.margins(0.25)
    figure: Any = axes.get_figure(root=True)
    points = axes.transData.transform(at) * 72.0 / figure.dpi
    for i, (point, down) in enumerate(zip(at, _apart(points), strict=True)):
        component = found.components[i]
        leading = (found.leading(component) or [""])[0]
        axes.annotate(
            f"{component.name} {leading}", point, (4, 4 - down), textcoords="offset points",
            fontproperties=SMALL,
        )  # fmt: skip
    axes.spines[:].set_color(FAINT)


def _apart(points: Array) -> list[float]:
    """Return how far down the texts at some points (n, 2) go, so that none covers another."""
    taken: list[tuple[float, float]] = []
    moved = []
    for x, y in points:
        down = 0.0
        while any(abs(x - a) < LABEL[0] and abs(y - down - b) < LABEL[1] for a, b in taken):
            down += LABEL[1]
        taken.append((x, y - down))
        moved.append(down)
    return moved


def _draw_leading(axes: Axes, found: FactorExploration, k: int) -> None:
    component = found.components[k]
    titled(axes, f"{component.name}: columns", "share of the component's counts")
    index = np.argsort(-component.weight, kind="stable")[: min(found.top, 8)]
    at = np.arange(index.size)
    axes.barh(at, component.weight[index], 0.72, color=PREDICTED)
    names = [str(found.columns[int(i)]) for i in index]
    axes.set_yticks(at, distinct(names, 72 * PANEL[0] / 3, SMALL), fontproperties=SMALL)
    percent_axis(axes, component.weight[index])
    axes.xaxis.set_major_locator(MaxNLocator(4))
