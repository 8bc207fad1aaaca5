"""Panels of series that columns share, against time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

import glfm_cli.plots.style as style
from glfm_cli.exploration.shared import SharedByRows, SharedSeries
from glfm_cli.exploration.shared_words import in_words
from glfm_cli.plots.pages import PANEL
from glfm_cli.plots.panels import label_numbers

MOST = 3  # series with a panel of their own


def series_drawn(found: SharedByRows | None) -> list[Callable[[Axes], None]]:
    """Return what draws the panel of each of the leading series."""
    if found is None:
        return []
    return [partial(_draw, found=found, one=one) for one in found.series[:MOST]]


def _draw(axes: Axes, found: SharedByRows, one: SharedSeries) -> None:
    """Draw mean and bands; of several groups those of the one with most times."""
    assert found.clock is not None
    group = int(np.argmax(np.bincount(found.code)))
    shown = found.code == group
    x = found.clock.x[found.rows[shown]]
    lower, low, high, upper = one.bands[:, shown]
    of_group = f", {found.labels[group]}" if found.labels else ""
    words = f"bands of 50 and 95 %{of_group}: {in_words(found, one)}"
    title = f"{one.name}: a series that columns share"
    style.titled(axes, title, style.short(words, 72.0 * PANEL[0] - 40.0, style.SMALL))
    axes.fill_between(x, lower, upper, color=style.PREDICTED, alpha=0.2, linewidth=0)
    axes.fill_between(x, low, high, color=style.PREDICTED, alpha=0.35, linewidth=0)
    axes.plot(x, one.mean[shown], color=style.PREDICTED, linewidth=0.8)
    label_numbers(axes, found.clock)
    axes.yaxis.set_major_locator(MaxNLocator(4))
    style.open_frame(axes)
