"""The summary of an evaluation as text for a terminal."""

from __future__ import annotations

from glfm_cli.evaluation import Evaluation
from glfm_cli.evaluation.grids import Grid, headline_grids, opening

_BETWEEN = "   "


def summary_text(evaluation: Evaluation) -> str:
    """Return the headline scores of all columns together: methods down, rates across."""
    parts = [opening(evaluation), *map(grid_text, headline_grids(evaluation))]
    return "\n\n".join(parts) + "\n"


def grid_text(grid: Grid) -> str:
    """Return a grid as aligned lines below its title."""
    rows = [grid.header, *grid.rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(grid.header))]
    lines = [grid.title]
    for row in rows:
        line = _BETWEEN.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        lines.append(f"  {line}".rstrip())
    return "\n".join(lines)
