"""The figures and pages of `glfm explore`, drawn when the tables are written."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from glfm_cli.exploration import ComponentExploration, Exploration, FactorExploration

    Drawn = Exploration | ComponentExploration | FactorExploration

_LONGEST = 60  # letters of a column's name in the name of a file


def draw(
    found: Drawn, folder: Path | None = None, html: Path | None = None, plot: Path | None = None
) -> None:
    """Draw all figures and a page into a folder, and one page and one figure into files."""
    source = found.options["source"]
    name = source if source == "standard input" else Path(source).name
    drawn = {} if folder is None else _draw_all(found, folder)
    page = None if folder is None else folder / "report.html"
    pages = [path for path in (page, html) if path is not None]
    if pages:
        from glfm_cli.report import write_exploration

        write_exploration(found, *pages, name=name, drawn=drawn)
    if plot is not None:
        from glfm_cli.plots import plot_exploration

        plot_exploration(found, plot)


def _draw_all(found: Drawn, folder: Path) -> dict[str, Path]:
    """Draw every figure that the exploration has content for, as PNG files; return them by name."""
    from glfm_cli import plots
    from glfm_cli.exploration import Exploration

    if not isinstance(found, Exploration):
        path = folder / "overview.png"
        plots.plot_exploration(found, path)
        return {"overview": path}
    draw: dict[str, Callable[[Path], object]] = {
        "overview": partial(plots.plot_exploration, found),
        "traces": partial(plots.plot_traces, found),
        "fit": partial(plots.plot_fit, found),
    }
    for number, names in enumerate(plots.pages_of_columns(found), start=1):
        name = "columns" if number == 1 else f"columns_{number}"
        draw[name] = partial(plots.plot_columns, found, columns=names)
    if found.dependence is not None and len(found.scales) > 1:
        draw["dependence"] = partial(plots.plot_dependence, found)
    drawn = {name: folder / f"{name}.png" for name in draw}
    for scale in found.columns:
        if len(scale.encoded.levels) > 1 and scale.encoded.observed.any():
            key, name = f"shares {scale.d + 1}", re.sub(r"[^\w.-]+", "_", scale.name)[:_LONGEST]
            draw[key] = partial(plots.plot_shares, found, scale.name)
            drawn[key] = folder / f"shares_{scale.d + 1}_{name}.png"
    for key, path in drawn.items():
        draw[key](path)
    return drawn
