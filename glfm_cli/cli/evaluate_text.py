"""The summary of an evaluation as text for a terminal."""

from __future__ import annotations

from typing import Any

from glfm_cli.evaluation import Evaluation, MatrixEvaluation
from glfm_cli.evaluation.grids import Grid, headline_grids, opening

_BETWEEN = "   "
TITLES = {
    "rmse": "RMSE of the mean (lower is better)",
    "mae": "MAE of the median (lower is better)",
    "nmae": "MAE over that of a blind guess (lower is better)",
    "log_likelihood": "Log likelihood per cell (higher is better)",
    "rank": "Rank",
    "seconds": "Seconds a fit",
}


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


def matrix_text(found: MatrixEvaluation) -> str:
    """Return the summary as text: one block a score, methods down, rates across."""
    lines = found.lines
    repeats = len({(line.rate, line.repeat) for line in lines}) // len({n.rate for n in lines})
    cells = {line.cells for line in lines}
    counted = f"{min(cells)} to {max(cells)}" if len(cells) > 1 else str(min(cells))
    times = "once" if repeats == 1 else f"{repeats} times"
    parts = [
        f"{counted} cells hidden {times} ({lines[0].mechanism}). Mean ± standard error; "
        "in brackets the difference to the first method."
    ]
    rows = found.summary()
    for score, title in TITLES.items():
        of_score = [row for row in rows if row["score"] == score]
        if of_score:
            parts.append(_block(title, of_score))
    return "\n\n".join(parts) + "\n"


def _block(title: str, rows: list[dict[str, Any]]) -> str:
    rates = list(dict.fromkeys(row["rate"] for row in rows))
    cells = {(row["method"], row["rate"]): _cell(row) for row in rows}
    table = [["", *(f"{100 * rate:.3g} %" for rate in rates)]]
    for method in dict.fromkeys(row["method"] for row in rows):
        table.append([method, *(cells.get((method, rate), "") for rate in rates)])
    return grid_text(Grid(title, tuple(table[0]), tuple(map(tuple, table[1:]))))


def _cell(row: dict[str, Any]) -> str:
    digits = 1 if row["score"] in ("rank", "seconds") else 4
    text = _number(row["mean"], row["se"], digits, "")
    if row.get("difference") is not None:
        gap = _number(row["difference"], row["difference_se"], digits, "+")
        text += f" ({gap})"
    return text


def _number(mean: float, error: float | None, digits: int, sign: str) -> str:
    text = f"{mean:{sign}.{digits}f}"
    return text if error is None else f"{text} ±{error:.{digits}f}"
