"""What `glfm explore` prints of counts: components, and which of them come together."""

from __future__ import annotations

import math
from typing import TextIO

from rich.console import Console as RichConsole
from rich.text import Text

from glfm_cli.cli.pages import page, table_of
from glfm_cli.errors import counted
from glfm_cli.exploration import FactorExploration
from glfm_cli.exploration.factors import CorrelatedPair
from glfm_cli.exploration.words import percent

WIDEST = 110
MOST = 60  # components listed on the terminal


def show(found: FactorExploration, stdout: TextIO) -> None:
    """Print what was found."""
    with page(stdout, WIDEST) as console:
        _show(console, found)


def _show(console: RichConsole, found: FactorExploration) -> None:
    restarts = counted(len(found.posterior.chains), "restart")
    sizes = f"{counted(len(found.rows), 'row')}, {counted(len(found.columns), 'column')}"
    console.print(f"{sizes}, {restarts}, {found.seconds:.1f} s.")
    console.print(found.diagnostics.summary())
    table = table_of(console, "Components", "", "share", "again")
    table.add_column("columns by weight", ratio=1)
    table.add_column("by lift", ratio=1)
    for c in found.components[:MOST]:
        again = "" if math.isnan(c.stability) else percent(c.stability)
        named = (", ".join(found.leading(c, by_lift=by_lift)) for by_lift in (False, True))
        table.add_row(c.name, percent(c.share), again, *map(Text, named))
    console.print(table)
    if len(found.components) > MOST:
        console.print(f"and {len(found.components) - MOST} more components.")
    together = [pair for pair in found.pairs if pair.correlation > 0.0][: found.top]
    opposed = [pair for pair in found.pairs[::-1] if pair.correlation < 0.0][: found.top]
    for title, pairs in (("Come together", together), ("Exclude each other", opposed)):
        if not pairs:
            continue
        table = table_of(console, title, "", "correlation", "same sign")
        table.add_column("columns", ratio=1)
        for pair in pairs:
            again = "" if math.isnan(pair.agreement) else percent(pair.agreement)
            name, words = _named(found, pair)
            table.add_row(name, f"{pair.correlation:+.2f}", again, Text(words))
        console.print(table)
    if found.correlations.any() and not found.pairs:
        console.print("No two components are more correlated than independent ones.")


def _named(found: FactorExploration, pair: CorrelatedPair) -> tuple[str, str]:
    """Return the names of a pair, and the columns that lead both."""
    both = [found.components[k] for k in (pair.first, pair.second)]
    words = " | ".join(", ".join(found.leading(c)[:3]) for c in both)
    return " ".join(c.name for c in both), words
