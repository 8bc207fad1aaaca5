"""An exploration on the terminal: readable at 80 columns, plain when it is not a terminal."""

from __future__ import annotations

import math
from typing import Any, TextIO

from rich.cells import cell_len
from rich.console import Console as RichConsole
from rich.text import Text

from glfm_cli.cli import explore_shared
from glfm_cli.cli.pages import page, table_of
from glfm_cli.exploration import (
    Exploration,
    agreement_line,
    remainder_line,
    sample_line,
    tables,
)
from glfm_cli.exploration.lines import missing_line, no_feature_line
from glfm_cli.exploration.words import cell_text, left_out, named, percent, typical, with_error

MOST_PATTERNS = 5  # side by side; more are in the files
MOST_COLUMNS = 40
LONGEST_NAME = 18
LEAST_ROOM = 8  # letters of a distribution in the table of typical rows
WIDEST = 100


def show(found: Exploration, stdout: TextIO) -> None:
    """Print an exploration."""
    with page(stdout, WIDEST) as console:
        for line in headline(found):
            console.print(Text(line))
        _features(console, found)
        _patterns(console, found)
        _typical(console, found)
        explore_shared.show(console, found.shared)
        if gaps := missing_line(found):
            console.print(Text(gaps))
        if found.surprising is not None:
            _listed(console, "The least expected cells", tables.surprising_cells(found))
            _listed(console, "The least expected rows", tables.surprising_rows(found))
        if found.similar is not None:
            title = f"The rows most like row {found.similar.row + 1}"
            _listed(console, title, tables.similar(found))
        if found.dependence is not None and len(found.scales) > 1:
            table = tables.dependence(found)
            _listed(console, "Columns with most mutual information", table.slice(0, 10))
            if table.num_rows > 10:
                console.print(Text(f"and {table.num_rows - 10} more pairs."))


def headline(found: Exploration) -> list[str]:
    """Return the fit in three lines."""
    sizes = f"{_counted(found.data.n_rows, 'row')}, {_counted(len(found.scales), 'column')}"
    draws = (
        f"{_counted(len(found.posterior.chains), 'chain')} "
        f"with {_counted(found.posterior.n_draws, 'draw')} in all"
    )
    return [
        f"{sizes}, {draws}, {found.seconds:.1f} s.",
        sample_line(found),
        agreement_line(found),
    ]


def _features(console: RichConsole, found: Exploration) -> None:
    if not found.features:
        console.print()
        console.print(Text(no_feature_line(found)))
        _remainder(console, found)
        return
    numbers = ("rows", "explains", "stability", "in halves")
    table = table_of(console, "Features", "", *numbers)
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
    numbers = ("rows", "share", "cumulative", "stability")
    table = table_of(console, f"Patterns of {names}", "", *numbers)
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
    seen = [found.baseline, *(pattern.typical for pattern in patterns)]
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
    table = table_of(console, title, "", padding=padding)
    for name in ("all rows", *(pattern.name for pattern in patterns)):
        table.add_column(name, justify="right", overflow="fold", max_width=room)
    for label, row in zip(labels, rows, strict=True):
        table.add_row(Text(label), *map(Text, row))
    console.print(table)
    left = len(found.columns) - MOST_COLUMNS
    if left > 0:
        console.print(Text(f"and {_counted(left, 'more column')}."))
    if text := left_out(found.columns[:MOST_COLUMNS]):
        console.print(Text(text))


def _listed(console: RichConsole, title: str, content: Any) -> None:
    """Print an Arrow table as it is, numbers rounded."""
    table = table_of(console, title)
    for name in content.column_names:
        numeric = str(content.schema.field(name).type) in ("double", "int64")
        table.add_column(name, justify="right" if numeric else "left")
    for row in content.to_pylist():
        table.add_row(*(Text(cell_text(value)) for value in row.values()))
    console.print(table)


def _counted(n: int, what: str) -> str:
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"
