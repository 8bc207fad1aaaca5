"""An exploration on the terminal: readable at 80 columns, plain when it is not a terminal."""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING, Any, TextIO

from rich import box
from rich.cells import cell_len
from rich.console import Console as RichConsole
from rich.table import Table
from rich.text import Text

from glfm_cli.exploration import convergence_line, remainder_line, sample_line, tables
from glfm_cli.exploration.lines import NO_FEATURE
from glfm_cli.exploration.words import named, number, percent, typical, with_error

if TYPE_CHECKING:
    from glfm_cli.exploration import Exploration

MOST_PATTERNS = 5  # side by side; more are in the files
MOST_COLUMNS = 40
LONGEST_NAME = 18
LEAST_ROOM = 8  # letters of a distribution in the table of typical rows
WIDEST = 100


def show(found: Exploration, stdout: TextIO) -> None:
    """Print an exploration; without blanks at the ends of lines where it goes to a file."""
    width = min(RichConsole(file=stdout).width, WIDEST)
    if stdout.isatty():
        _show(RichConsole(file=stdout, highlight=False, width=width), found)
        return
    page = io.StringIO()
    _show(RichConsole(file=page, highlight=False, width=width), found)
    stdout.writelines(line.rstrip() + "\n" for line in page.getvalue().splitlines())


def _show(console: RichConsole, found: Exploration) -> None:
    for line in headline(found):
        console.print(Text(line))
    _features(console, found)
    _patterns(console, found)
    _typical(console, found)
    if found.surprising is not None:
        _listed(console, "The least expected cells", tables.surprising_cells(found))
        _listed(console, "The least expected rows", tables.surprising_rows(found))
    if found.similar is not None:
        title = f"The rows most like row {found.similar.row + 1}"
        _listed(console, title, tables.similar(found))
    if found.dependence is not None and len(found.scales) > 1:
        table = tables.dependence(found)
        _listed(console, "Columns that tell most of each other", table.slice(0, 10))
        if table.num_rows > 10:
            console.print(Text(f"and {table.num_rows - 10} more pairs."))


def headline(found: Exploration) -> list[str]:
    """Return the fit in three lines."""
    counted = [
        _counted(found.data.n_rows, "row"),
        _counted(len(found.scales), "column"),
        f"{_counted(len(found.posterior.chains), 'chain')} "
        f"with {_counted(found.posterior.n_draws, 'draw')} in all",
    ]
    return [
        f"{', '.join(counted)}, {found.seconds:.1f} s.",
        sample_line(found),
        convergence_line(found),
    ]


def _features(console: RichConsole, found: Exploration) -> None:
    if not found.features:
        console.print()
        console.print(Text(NO_FEATURE))
        _remainder(console, found)
        return
    table = _table(console, "Features")
    for name in ("", "rows", "explains", "stability", "in halves"):
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    table.add_column("its rows against the others", ratio=1, overflow="fold")
    for feature in found.features:
        table.add_row(
            feature.name,
            percent(feature.share),
            percent(feature.explained),
            with_error(feature.stability, feature.stability_error),
            "" if math.isnan(feature.halves) else with_error(feature.halves, feature.halves_error),
            Text(found.in_words(feature)),
        )
    console.print(table)
    _remainder(console, found)


def _remainder(console: RichConsole, found: Exploration) -> None:
    line = remainder_line(found)
    if line:
        console.print(Text(line))


def _patterns(console: RichConsole, found: Exploration) -> None:
    if not found.main:
        return
    names = " ".join(feature.name for feature in found.main)
    table = _table(console, f"Patterns of {names}")
    table.add_column("", no_wrap=True)
    for name in ("rows", "share", "cumulative", "stability"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("features", ratio=1)
    for pattern in found.top_patterns:
        table.add_row(
            pattern.name,
            str(pattern.rows.size),
            percent(pattern.share),
            percent(pattern.cumulative),
            percent(pattern.stability),
            found.features_on(pattern),
        )
    console.print(table)
    others = len(found.patterns) - len(found.top_patterns)
    if others:
        console.print(Text(f"and {_counted(others, 'more pattern')}."))


def _typical(console: RichConsole, found: Exploration) -> None:
    labels = [named(scale, LONGEST_NAME) for scale in found.columns[:MOST_COLUMNS]]
    longest = max(map(cell_len, labels), default=0)
    widest = max([LEAST_ROOM, *(len(pattern.name) for pattern in found.top_patterns)])
    n_patterns = (console.width - longest) // (widest + 1) - 1
    patterns = found.top_patterns[: max(1, min(MOST_PATTERNS, n_patterns))]
    seen = [found.baseline, *(pattern.profiles for pattern in patterns)]
    each = (console.width - longest) // (1 + len(patterns))  # letters, what is between included
    place = {scale.d: i for i, scale in enumerate(found.scales)}
    for padding in (1, 0):  # closer together where some would take two lines otherwise
        room = max(widest, each - 1 - padding)
        rows = [
            [typical(scale, profiles[place[scale.d]], room) for profiles in seen]
            for scale in found.columns[:MOST_COLUMNS]
        ]
        if each > LEAST_ROOM + 2 or not any("\n" in text for row in rows for text in row):
            break
    title = "Typical rows: the mean, or the likeliest level with its probability"
    table = _table(console, title, padding)
    table.add_column("", no_wrap=True)
    for name in ("all rows", *(pattern.name for pattern in patterns)):
        table.add_column(name, justify="right", overflow="fold", max_width=room)
    for label, row in zip(labels, rows, strict=True):
        table.add_row(Text(label), *map(Text, row))
    console.print(table)
    left = len(found.columns) - MOST_COLUMNS
    if left > 0:
        console.print(Text(f"and {_counted(left, 'more column')}."))


def _listed(console: RichConsole, title: str, content: Any) -> None:
    """Print an Arrow table as it is, numbers rounded."""
    table = _table(console, title)
    for name in content.column_names:
        numeric = str(content.schema.field(name).type) in ("double", "int64")
        table.add_column(name, justify="right" if numeric else "left")
    for row in content.to_pylist():
        table.add_row(*(Text(_cell(value)) for value in row.values()))
    console.print(table)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return number(value)
    return "" if value is None else str(value)


def _table(console: RichConsole, title: str, padding: int = 1) -> Table:
    """Print a title, as wide as the page and not as the table, and return a table to fill."""
    console.print()
    console.print(Text(title, style="bold"))
    around = (0, padding, 0, 0)
    return Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=around)


def _counted(n: int, what: str) -> str:
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"
