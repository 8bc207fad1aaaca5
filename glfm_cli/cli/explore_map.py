"""What `glfm explore` prints and draws of a model that puts rows on a map."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console as RichConsole

    from glfm_cli.exploration import MapExploration

WIDEST = 100
MOST_COLUMNS = 40


def show(found: MapExploration, stdout: TextIO) -> None:
    """Print what was found; without blanks at the ends of lines where it goes to a file."""
    from rich.console import Console as RichConsole

    width = min(RichConsole(file=stdout).width, WIDEST)
    page = stdout if stdout.isatty() else io.StringIO()
    console = RichConsole(file=page, highlight=False, width=width)
    for line in found.headline():
        console.print(line, markup=False)
    _columns(console, found)
    _unusual(console, found)
    if isinstance(page, io.StringIO):
        stdout.writelines(line.rstrip() + "\n" for line in page.getvalue().splitlines())


def _columns(console: RichConsole, found: MapExploration) -> None:
    from rich.text import Text

    from glfm_cli.cli.explore_components import table_of
    from glfm_cli.exploration.words import percent

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
        console.print(f"and {left} more columns.", markup=False)


def _unusual(console: RichConsole, found: MapExploration) -> None:
    from rich.text import Text

    from glfm_cli.cli.explore_components import table_of

    rows = found.most_unusual()
    if not rows:
        return
    table = table_of(console, "The most unusual rows for their place")
    table.add_column("", no_wrap=True)
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
