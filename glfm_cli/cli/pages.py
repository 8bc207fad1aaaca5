"""Text and tables on the terminal: as wide as it is, plain when they go to a file."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from rich import box
from rich.console import Console as RichConsole
from rich.console import ConsoleOptions
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from glfm_cli.cli.console import visible


class _Paper(RichConsole):
    """Shows texts as they are: no markup, and no control character that is not its own."""

    def render(self, renderable: Any, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        if isinstance(renderable, str):
            renderable = visible(renderable)
        elif isinstance(renderable, Text):
            renderable = renderable.copy()
            renderable.plain = visible(renderable.plain)
        return super().render(renderable, options)


@contextmanager
def page(stdout: TextIO, widest: int) -> Iterator[RichConsole]:
    """Yield what to print on; lines have no blanks at their ends where it goes to a file."""
    to_terminal = stdout.isatty()
    text = stdout if to_terminal else io.StringIO()
    width = min(RichConsole(file=stdout).width, widest)
    yield _Paper(file=text, highlight=False, markup=False, emoji=False, width=width)
    if isinstance(text, io.StringIO) and not to_terminal:
        stdout.writelines(line.rstrip() + "\n" for line in text.getvalue().splitlines())


def table_of(console: RichConsole, title: str, *names: str, padding: int = 1) -> Table:
    """Print a title, as wide as the page and not as the table, and return a table to fill.

    names : headings of its first columns, which hold numbers but where the heading is empty
    """
    console.print()
    console.print(Text(title, style="bold"))
    around = (0, padding, 0, 0)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=around)
    for name in names:
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    return table
