"""The figure of a completed table: one panel a column, what was put in beside what was observed."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

import glfm_cli.plots.style as style
from glfm_cli.arrays import Array
from glfm_cli.completion import ColumnCompletion, Completion
from glfm_cli.completion.dependent import TableDraws
from glfm_cli.encoding import Relations
from glfm_cli.inference.posterior import Posterior
from glfm_cli.inference.predictive import predict
from glfm_cli.plots.panels import draw_levels, draw_numbers

MAX_PANELS = 12

_N_COLUMNS = 3
_PANEL = (3.3, 2.35)  # inches
_MASS = (np.arange(40) + 0.5) / 40  # probabilities whose quantiles stand for one predictive
_AT_MOST_CELLS, _AT_MOST_DRAWS = 300, 100  # of a column, whose predictives are pooled
_WIDTH = 176.0  # points, of the lines above a panel


def plot_completion(completion: Completion, path: str | os.PathLike[str] | None = None) -> Figure:
    """Plot completed beside observed values, one panel for each column.

    The columns with the most missing cells come first, 12 at most. A panel of numbers shows the
    histogram of the observed values, the predictive distribution averaged over the completed
    cells (which would lie on the histogram if those were a random part of the column), and a
    tick for each value put in. A panel of a level column shows the same three as shares of levels.

    Parameters
    ----------
    completion : Completion
        What `impute` returns.
    path : path, optional
        Where to write the figure; PNG, SVG or PDF by suffix, replaced only when complete.

    Raises
    ------
    OutputError
        The suffix is another one, or the file cannot be written.
    """
    parts = sorted(
        (part for part in completion.columns if part.estimate.size),
        key=lambda part: -part.estimate.size,
    )
    return style.finished(lambda: _figure(completion, parts[:MAX_PANELS], len(parts)), path)


def _figure(completion: Completion, parts: Sequence[ColumnCompletion], n_columns: int) -> Figure:
    n_wide = min(max(len(parts), 1), _N_COLUMNS)
    n_high = -(-max(len(parts), 1) // n_wide)
    figure = style.sheet(max(_PANEL[0] * n_wide, 5.0), _PANEL[1] * n_high + 0.55)
    if not parts:
        return style.says_nothing(figure, "There was nothing to complete.")
    panels = figure.subplots(n_high, n_wide, squeeze=False).ravel()
    pooled = _pooled(completion, parts)
    for axes, part, values in zip(panels, parts, pooled, strict=False):
        _frame(axes, part)
        if part.marginal.probabilities is None:
            draw_numbers(axes, part, values)
        else:
            draw_levels(axes, part)
    for axes in panels[len(parts) :]:
        axes.set_visible(False)
    figure.legend(
        handles=_legend(), loc="outside upper left", ncols=3 if n_wide > 1 else 1, frameon=False
    )
    left_out = n_columns - len(parts)
    if left_out:
        figure.supxlabel(
            f"{left_out} more columns with fewer missing cells were completed and are not shown.",
            fontsize=8,
            color=style.FAINT,
        )
    return figure


def _legend() -> list[Patch | Line2D]:
    return [
        Patch(facecolor=style.OBSERVED, label="observed cells"),
        Line2D(
            [],
            [],
            color=style.PREDICTED,
            linewidth=1.8,
            label="completed cells: predicted distribution",
        ),
        Line2D(
            [],
            [],
            color=style.PUT_IN,
            linestyle="none",
            marker="|",
            markersize=8,
            markeredgewidth=1.6,
            label="completed cells: values put in",
        ),
    ]


def _frame(axes: Axes, part: ColumnCompletion) -> None:
    """Write name, share of missing cells, label and unit above a panel, and clear its frame."""
    column = part.encoded.column
    n_missing, n_rows = part.estimate.size, part.encoded.x.size
    share = 100 * n_missing / n_rows
    percent = f"{share:.0f} %" if share >= 1 else "under 1 %"
    missing = f": {n_missing} missing, {percent}"
    title = style.squeezed(column.name, _WIDTH, style.TITLE, tail=missing)
    lines = style.in_two_lines(style.words_of(column), _WIDTH, style.SMALL)
    axes.set_title(
        "\n".join(lines) or " ", loc="left", fontproperties=style.SMALL, color=style.FAINT, pad=4
    )
    axes.annotate(
        title,
        (0, 1),
        (0, 6 + 11 * max(len(lines), 1)),
        xycoords="axes fraction",
        textcoords="offset points",
        fontproperties=style.TITLE,
    )
    style.open_frame(axes)


def _pooled(completion: Completion, parts: Sequence[ColumnCompletion]) -> list[Array]:
    """Return, per numeric part, quantiles of its cells' predictives as one sample; else empty."""
    position = {one.column.name: d for d, one in enumerate(completion.data.columns)}
    requested = {
        position[part.encoded.column.name]: style.spread(part.marginal.rows, _AT_MOST_CELLS)
        for part in parts
        if part.marginal.probabilities is None
    }
    drawn = _drawn(completion, requested.keys())
    rest = {d: rows for d, rows in requested.items() if d not in drawn}
    marginals = predict(_thinned(completion.posterior), rest, list(_MASS))
    samples = drawn | {d: one.quantiles.ravel() for d, one in marginals.items()}
    return [samples.get(position[part.encoded.column.name], np.empty(0)) for part in parts]


def _drawn(completion: Completion, columns: Collection[int]) -> dict[int, Array]:
    """Return the cells of columns that depend on columns, in joint draws that obey their rules."""
    dependent = Relations.of(completion.data.columns).numbers.intersection(columns)
    if not dependent:
        return {}
    rng, table = np.random.default_rng(0), TableDraws(completion.posterior, completion.data)
    draws = [table.draw(rng) for _ in _MASS]
    found = {d: np.concatenate([cells[d] for cells in draws]) for d in dependent}
    return {d: there for d, x in found.items() if (there := x[np.isfinite(x)]).size}


def _thinned(posterior: Posterior) -> Posterior:
    """Return the posterior with evenly spaced draws only: more would not be seen in a figure."""
    step = -(-posterior.n_draws // _AT_MOST_DRAWS)
    return replace(posterior, chains=tuple(chain[::step] for chain in posterior.chains))
