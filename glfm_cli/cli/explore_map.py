"""What `glfm explore` prints and draws of a model that puts rows on a map."""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

from rich.console import Console as RichConsole
from rich.text import Text

from glfm_cli.cli.pages import page, table_of
from glfm_cli.exploration import MapExploration
from glfm_cli.exploration.words import percent

WIDEST = 100
MOST_COLUMNS = 40


def show(found: MapExploration, stdout: TextIO) -> None:
    """Print what was found."""
    with page(stdout, WIDEST) as console:
        for line in found.headline():
            console.print(line)
        _columns(console, found)
        _unusual(console, found)


def _columns(console: RichConsole, found: MapExploration) -> None:
    table = table_of(console, "Columns on the map")
    for name in ("", "explained", "along x1", "along x2"):
        table.add_column(name, justify="right" if name == "explained" else "left", no_wrap=True)
    for one in found.map.columns[:MOST_COLUMNS]:
        along = [
            f"{percent(float(share)):>5} {way}"
            for share, way in zip(one.along, one.towards, strict=True)
        ]
        table.add_row(Text(one.name), percent(one.explained), *map(Text, along))
    console.print(table)
    left = len(found.map.columns) - MOST_COLUMNS
    if left > 0:
        console.print(f"and {left} more columns.")


def _unusual(console: RichConsole, found: MapExploration) -> None:
    rows = found.most_unusual()
    if not rows:
        return
    table = table_of(console, "The most unusual rows for their place", "")
    table.add_column("what is unusual")
    for row in rows:
        table.add_row(Text(found.label(row)), Text(found.unusual(row) or ""))
    console.print(table)


def draw(
    found: MapExploration,
    folder: Path | None = None,
    html: Path | None = None,
    plot: Path | None = None,
) -> None:
    """Draw the map and its page into a folder, and into files."""
    figures = [path for path in (folder and folder / "map.png", plot) if path is not None]
    pages = [path for path in (folder and folder / "report.html", html) if path is not None]
    if figures:
        from glfm_cli.plots import plot_map

        for path in figures:
            plot_map(found, path)
    if pages:
        from glfm_cli.report import write_map

        write_map(found, *pages)
