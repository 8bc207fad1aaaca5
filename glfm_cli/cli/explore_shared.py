"""What `glfm explore` prints of what rows share by groups and in time."""

from __future__ import annotations

from rich.console import Console as RichConsole
from rich.text import Text

from glfm_cli.cli.pages import table_of
from glfm_cli.exploration import shared_words
from glfm_cli.exploration.shared import SharedByRows
from glfm_cli.exploration.words import without_middle

MOST_COLUMNS = 40
LONGEST_NAME = 18


def show(console: RichConsole, found: SharedByRows | None) -> None:
    """Print it, where there is any."""
    if found is None:
        return
    header, rows = shared_words.part_rows(found)
    table = table_of(console, shared_words.PARTS, "", *header)
    for name, *cells in rows[:MOST_COLUMNS]:
        table.add_row(Text(without_middle(name, LONGEST_NAME)), *cells)
    console.print(table)
    left = len(found.names) - MOST_COLUMNS
    if left > 0:
        console.print(Text(f"and {left} more columns."))
    if found.clock is None:
        return
    if not found.series:
        console.print(Text(f"\n{shared_words.NO_SERIES}"))
        return
    table = table_of(console, shared_words.SERIES, "", "share", "stability")
    table.add_column(shared_words.MOVES, ratio=1, overflow="fold")
    for row in shared_words.series_rows(found):
        table.add_row(*map(Text, row))
    console.print(table)
