"""A numeric column on the scale of the model: its pseudo-observations, and their fitted density."""

from __future__ import annotations

from typing import cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from glfm_cli.arrays import Array
from glfm_cli.exploration import Exploration
from glfm_cli.exploration.scales import Scale
from glfm_cli.links.numeric import NumericLink
from glfm_cli.plots.patterns import head
from glfm_cli.plots.style import OBSERVED, PREDICTED

_MOST_BINS = 40
_MOST_ROWS = 1000  # whose densities are averaged
_BEYOND = 3.0  # standard deviations of the noise that the axis goes beyond the means


def has_scale(scale: Scale) -> bool:
    """Return whether a column's cells are numbers that differ, seen with noise of their own."""
    x = scale.encoded.x[scale.encoded.observed]
    return not scale.link.unit_noise and bool(x.size) and bool(x.min() < x.max())


def draw_fit(axes: Axes, found: Exploration, scale: Scale) -> None:
    """Draw a histogram of a column's pseudo-observations and the density fitted to them.

    That of a count is known to lie in an interval: its bar is as wide as that.
    """
    head(axes, scale)
    link, start = cast(NumericLink, scale.link), scale.span[0]
    n_rows = found.data.n_rows
    eta = found.shown.eta_of(np.arange(0, n_rows, max(1, n_rows // _MOST_ROWS)))[:, start]
    sd = float(np.sqrt(found.shown.noise[scale.d] + link.noise))
    ends = float(eta.min()) - _BEYOND * sd, float(eta.max()) + _BEYOND * sd
    x = scale.encoded.x[scale.encoded.observed]
    edges, share = _histogram(link, x, ends)
    axes.stairs(share / np.diff(edges), edges, fill=True, color=OBSERVED)
    at = np.linspace(min(ends[0], edges[0]), max(ends[1], edges[-1]), 200)
    density = np.exp(-0.5 * ((at[:, None] - eta) / sd) ** 2).mean(axis=1) / (sd * 2.5066282746)
    axes.plot(at, density, color=PREDICTED, linewidth=1.6)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(3))
    axes.xaxis.set_major_locator(MaxNLocator(5))


def _histogram(link: NumericLink, x: Array, ends: tuple[float, float]) -> tuple[Array, Array]:
    """Return the edges of bins (n + 1,) on the scale of the model, and the share (n,) in each.

    ends : where an interval is drawn to begin that has no lower end, or to end without an upper
    """
    n_bins = int(np.clip(2 * np.sqrt(x.size), 4, _MOST_BINS))
    if not link.integral:
        y = link.upper_end(x)
        y = y[np.isfinite(y)]
        low, high = (float(y.min()), float(y.max())) if y.size else ends
        return (edges := np.linspace(low, high, n_bins + 1)), np.histogram(y, edges)[0] / x.size
    values, counts = np.unique(x, return_counts=True)
    uppers = np.clip(link.upper_end(values), *ends)
    least = (ends[1] - ends[0]) / n_bins
    bounds, share, waiting = [ends[0]], [0.0], 0.0
    for upper, part in zip(uppers.tolist(), (counts / x.size).tolist(), strict=True):
        waiting += part
        if upper - bounds[-1] >= least:
            bounds.append(upper)
            share.append(waiting)
            waiting = 0.0
    if len(bounds) == 1:
        return np.array(ends), np.ones(1)
    share[-1] += waiting  # what is left is too narrow for a bar of its own
    return np.array(bounds), np.array(share[1:])
