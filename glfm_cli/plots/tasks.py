"""The figure of tasks that share experts: how alike and near they are, which experts each uses."""

from __future__ import annotations

import os

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from glfm_cli.arrays import Array
from glfm_cli.classification import TaskUsage
from glfm_cli.plots.style import SMALL, TITLE, finished, sheet, squeezed

SHOWN = 0.005  # largest share from which an expert has a column
_CELL = 0.24  # inches


def plot_tasks(usage: TaskUsage, path: str | os.PathLike[str] | None = None) -> Figure:
    """Draw how alike and how near tasks are, and the share that each of the experts has in them.

    Written to `path`, as PNG, SVG or PDF by its suffix, if there is one.
    """
    return finished(lambda: _figure(usage), path)


def _figure(usage: TaskUsage) -> Figure:
    weights = usage.weights[:, usage.weights.max(axis=0) > SHOWN]
    J, S = weights.shape
    names = [squeezed(name, 90.0, SMALL) for name in usage.names]
    width = 4.0 + _CELL * (2 * J + max(S, 4))
    figure = sheet(width, 1.9 + _CELL * J)
    left, middle, right = figure.subplots(1, 3, width_ratios=(J, J, max(S, 4)))
    _shade(left, usage.similarity(), names, "Shared experts")
    _shade(middle, usage.nearness(), names, "Near experts, too")
    for axes in (left, middle):
        axes.set_xticks(np.arange(J), names, rotation=90, fontproperties=SMALL)
    image = _shade(right, weights, names, "Shares of experts")
    experts = [str(s + 1) for s in np.flatnonzero(usage.weights.max(axis=0) > SHOWN)]
    right.set_xticks(np.arange(S), experts, fontproperties=SMALL)
    figure.colorbar(image, ax=right, shrink=0.8, pad=0.02)
    return figure


def _shade(axes: Axes, values: Array, names: list[str], title: str) -> AxesImage:
    """Draw values from 0 to 1 as a chequered field, a row a task."""
    image = axes.imshow(values, cmap="Blues", vmin=0.0, vmax=1.0, aspect="equal")
    axes.set_title(title, loc="left", fontproperties=TITLE)
    axes.set_yticks(np.arange(len(names)), names, fontproperties=SMALL)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return image
