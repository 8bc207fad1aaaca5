"""What `glfm explore` prints of a model with components: rank, components and covariates."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console as RichConsole
from rich.text import Text

from glfm_cli.cli import explore_shared
from glfm_cli.cli.pages import page, table_of
from glfm_cli.errors import counted
from glfm_cli.exploration import ComponentExploration
from glfm_cli.exploration.words import percent

WIDEST = 100
MOST_EXPLAINED = 40  # columns listed on the terminal


def show(found: ComponentExploration, stdout: TextIO) -> None:
    """Print what was found."""
    with page(stdout, WIDEST) as console:
        _headline(console, found)
        _components(console, found)
        _goes_with(console, found)
        _shares(console, found)
        explore_shared.show(console, found.shared)
        _effects(console, found)


def _headline(console: RichConsole, found: ComponentExploration) -> None:
    facts = found.to_dict()
    columns = "column" if found.variance else "latent column"
    for line in (
        f"{counted(facts['rows'], 'row')}, {counted(facts['columns'], columns)}, "
        f"{counted(facts['chains'], 'chain')} with {counted(facts['draws'], 'draw')} in all, "
        f"{found.seconds:.1f} s.",
        f"Rank {facts['rank']['mean']:.1f} (95 %: {facts['rank']['lower']} to "
        f"{facts['rank']['upper']}).",
        found.diagnostics.summary(),
    ):
        console.print(line)


def _components(console: RichConsole, found: ComponentExploration) -> None:
    if not found.components:
        console.print("\nNo component: rows and columns have nothing in common.")
        return
    table = table_of(console, "Components of the completed matrix", "", "size", "share")
    table.add_column("columns", ratio=3)
    table.add_column("rows", ratio=2)
    for c in found.components:
        table.add_row(
            c.name,
            f"{c.size:.2f} ±{c.size_sd:.2f}",
            percent(c.share),
            Text(_signed(found.leading(c, "column"))),
            Text(_signed(found.leading(c, "row"))),
        )
    console.print(table)


def _goes_with(console: RichConsole, found: ComponentExploration) -> None:
    """Print, of every component, the covariates that go with it for sure."""
    rows = [
        (component.name, one)
        for component in found.components
        for one in component.goes_with[: found.top]
        if one.sure
    ]
    if not rows:
        return
    title = "Covariates that components go with: correlations with their scores"
    table = table_of(console, title, "")
    table.add_column("covariate")
    for name in ("correlation", "95 %", "by chance"):
        table.add_column(name, justify="right", no_wrap=True)
    last = ""
    for name, one in rows:
        amount = one.correlation
        inside = f"{amount.lower:+.2f} to {amount.upper:+.2f}"
        shown = "" if name == last else name
        cells = f"{amount.mean:+.2f}", inside, f"±{one.chance:.2f}"
        table.add_row(shown, Text(f"{one.name} ({one.side}s)"), *cells)
        last = name
    console.print(table)


def _signed(leading: list[tuple[str, float, float]]) -> str:
    """Return names behind their signs, those whose sign is not sure in brackets."""
    texts = [f"{'+' if score > 0 else '−'}{name}" for name, score, _ in leading]
    return ", ".join(
        text if abs(score) > 2 * sd else f"({text})"
        for text, (_, score, sd) in zip(texts, leading, strict=True)
    )


def _shares(console: RichConsole, found: ComponentExploration) -> None:
    facts = found.to_dict()
    if found.variance:
        title = "Shares of the variance"
        rows = [(part["part"], part) for part in facts["variance"]]
    else:
        title = "Share of each column's variance explained by other columns, through the components"
        rows = sorted(
            ((part["column"], part) for part in facts["explained"]),
            key=lambda one: -one[1]["share"],
        )
    table = table_of(console, title, "", "share", "95 %")
    for name, part in rows[:MOST_EXPLAINED]:
        low, high = percent(part["lower"]), percent(part["upper"])
        table.add_row(Text(name), percent(part["share"]), f"{low} to {high}")
    console.print(table)
    if len(rows) > MOST_EXPLAINED:
        console.print(f"and {len(rows) - MOST_EXPLAINED} more columns.")


def _effects(console: RichConsole, found: ComponentExploration) -> None:
    if not found.effects:
        return
    table = table_of(
        console, "Covariates: what one standard deviation more does, on the latent scale"
    )
    table.add_column("of", no_wrap=True)
    table.add_column("covariate")
    for name in ("mean", "95 %", "spread"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in sorted(found.effects, key=lambda e: (e.side, -abs(e.mean.mean) - e.spread.mean)):
        table.add_row(
            f"{one.side}s",
            Text(one.name),
            f"{one.mean.mean:+.2f}",
            f"{one.mean.lower:+.2f} to {one.mean.upper:+.2f}",
            f"{one.spread.mean:.2f}",
        )
    console.print(table)
