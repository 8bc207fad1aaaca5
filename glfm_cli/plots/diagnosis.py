"""The figure of a diagnosis: traces of the chains, and columns beside their replicates."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

import glfm_cli.plots.style as style
from glfm_cli.diagnosis import ColumnCheck, Diagnosis

MAX_TRACES = 6
MAX_COLUMNS = 12
MAX_LEVELS = 8

_WIDE = 3
_PANEL = (3.3, 2.1)  # inches
_INTERVAL = (0.025, 0.975)
_WIDTH = 190.0  # points, of the line above a panel


def plot_diagnosis(diagnosis: Diagnosis, path: str | os.PathLike[str] | None = None) -> Figure:
    """Plot the traces of the worst quantities, and each column beside its replicates.

    Parameters
    ----------
    diagnosis : Diagnosis
        What `diagnose_fit` returns.
    path : path, optional
        Where to write the figure; PNG, SVG or PDF by suffix, replaced only when complete.

    Returns
    -------
    matplotlib.figure.Figure
        At most 6 traces and 12 columns, those that fit worst first.

    Raises
    ------
    OutputError
        The suffix is another one, or the file cannot be written.
    """
    return style.finished(lambda: _figure(diagnosis), path)


def _figure(diagnosis: Diagnosis) -> Figure:
    names = diagnosis.worst(MAX_TRACES)
    checks = sorted(diagnosis.checks or (), key=lambda check: check.p_value)[:MAX_COLUMNS]
    n_rows = -(-len(names) // _WIDE) + -(-len(checks) // _WIDE)
    figure = style.sheet(_WIDE * _PANEL[0], max(1, n_rows) * _PANEL[1] + 0.5)
    grid = figure.add_gridspec(max(1, n_rows), _WIDE)
    for i, name in enumerate(names):
        axes = figure.add_subplot(grid[i // _WIDE, i % _WIDE])
        _draw_trace(axes, diagnosis, name)
    first = -(-len(names) // _WIDE)
    for i, check in enumerate(checks):
        axes = figure.add_subplot(grid[first + i // _WIDE, i % _WIDE])
        _draw_check(axes, check)
    handles: list[Line2D | Patch] = [
        Line2D([], [], color=style.FAINT, label="a line: the trace of a chain")
    ]
    if checks:
        handles += [
            Patch(color=style.OBSERVED, label="observed"),
            Line2D(
                [], [], color=style.PREDICTED, label="made by the model, with 95 % of its columns"
            ),
        ]
    figure.legend(
        handles=handles,
        loc="outside upper center",
        ncols=len(handles),
        frameon=False,
        prop=style.SMALL,
    )
    return figure


def _draw_trace(axes: Axes, diagnosis: Diagnosis, name: str) -> None:
    for i, chain in enumerate(diagnosis.traces[name]):
        at = np.arange(1, chain.size + 1)
        axes.plot(at, chain, color=style.CHAINS[i % len(style.CHAINS)], linewidth=0.8)
    quantity = diagnosis.diagnostics[name]
    rhat = f", R-hat {quantity.rhat:.2f}" if np.isfinite(quantity.rhat) else ""
    _title(axes, diagnosis.labels[name], rhat)
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(4))
    _plain(axes)


def _draw_check(axes: Axes, check: ColumnCheck) -> None:
    low, high = np.quantile(check.replicated, _INTERVAL, axis=0)
    mean = check.replicated.mean(axis=0)
    if check.levels:
        _draw_levels(axes, check, mean, low, high)
    else:
        axes.stairs(check.observed, check.edges, fill=True, color=style.OBSERVED)
        axes.stairs(mean, check.edges, color=style.PREDICTED, linewidth=1.2, baseline=None)
        middle = check.edges[:-1] / 2 + check.edges[1:] / 2
        axes.vlines(middle, low, high, color=style.PREDICTED, linewidth=0.8)
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.yaxis.set_major_locator(MaxNLocator(3))
    _title(axes, check.column, f", p = {check.p_value:.2g}")
    _plain(axes)


def _draw_levels(
    axes: Axes, check: ColumnCheck, mean: np.ndarray, low: np.ndarray, high: np.ndarray
) -> None:
    shown = _commonest(check.observed)
    at = np.arange(len(shown))
    axes.bar(at, check.observed[shown], 0.7, color=style.OBSERVED)
    axes.errorbar(
        at,
        mean[shown],
        yerr=np.stack([mean[shown] - low[shown], high[shown] - mean[shown]]),
        linestyle="none",
        marker="_",
        markersize=9,
        color=style.PREDICTED,
        elinewidth=0.8,
    )
    axes.set_xticks(
        at, [style.squeezed(check.levels[r], _WIDTH / len(shown) - 6, style.PLAIN) for r in shown]
    )


def _commonest(shares: np.ndarray) -> Sequence[int]:
    """Return the codes of the commonest levels, in their own order."""
    order = np.argsort(-shares, kind="stable")[:MAX_LEVELS]
    return [int(code) for code in np.sort(order)]


def _title(axes: Axes, name: str, rest: str) -> None:
    axes.set_title(
        style.squeezed(name, _WIDTH, style.TITLE, rest), fontproperties=style.TITLE, loc="left"
    )


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=7)
