"""`glfm evaluate` of a table of triplets: how far predictions of its cells can be trusted."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from glfm_cli.cli import options
from glfm_cli.cli.console import Console, ExitStatus
from glfm_cli.cli.matrix import Sources
from glfm_cli.errors import UsageError

if TYPE_CHECKING:
    from glfm_cli.evaluation.matrix import MatrixEvaluation

OF_TABLES = (
    *("resume", "program", "method_timeout", "reference", "jobs", "compare", "truth", "masked"),
    *("plot", "html"),
)
TITLES = {
    "rmse": "RMSE of the mean (lower is better)",
    "mae": "MAE of the median (lower is better)",
    "nmae": "MAE over that of a blind guess (lower is better)",
    "log_likelihood": "Log likelihood per cell (higher is better)",
    "rank": "Rank",
    "seconds": "Seconds a fit",
}


@dataclass(frozen=True)
class Asked:
    """The options of the command that have their place with triplets."""

    sampling: dict[str, Any]  # chains, warmup, draws, thin, seed, threads, time_limit, settings
    output: Path | None
    as_json: bool


def run(ctx: typer.Context, sources: Sources, asked: Asked, parsed: dict[str, Any]) -> int:
    """Evaluate, print and write the scores, and return the exit status.

    `parsed` has methods, rates and repeats where the user gave them.
    """
    from glfm_cli.completion import as_schema
    from glfm_cli.evaluation.matrix import evaluate_matrix
    from glfm_cli.io import check_target, read_table, write_table

    console: Console = ctx.obj
    for name in options.given(ctx, OF_TABLES):
        option = "--method" if name == "program" else f"--{name.replace('_', '-')}"
        raise UsageError(f"{option} is about tables, and the types file describes triplets")
    sources.check(types_are_known=False)
    rows, columns = sources.features()
    if asked.output is not None and str(asked.output) != "-":
        from glfm_cli.evaluation.matrix.evaluate import RESULTS

        check_target(asked.output, RESULTS.empty_table())
    found = evaluate_matrix(
        read_table(sources.data),
        as_schema(ctx.params["types"]),
        **parsed,
        row_features=rows,
        column_features=columns,
        missingness_features=sources.missingness,
        **asked.sampling,
    )
    if asked.output is not None:
        write_table(found.to_table(), asked.output)
    if asked.as_json:
        console.result(json.dumps(found.to_dict(), allow_nan=False) + "\n")
    elif str(asked.output) != "-":
        console.result(text_of(found))
    for text in found.warnings:
        console.warn(text)
    if found.stopped == "interrupted":
        console.warn("interrupted; the summary is of the fits that were made")
        return ExitStatus.INTERRUPTED
    return ExitStatus.OK


def text_of(found: MatrixEvaluation) -> str:
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
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    lines = [
        "  " + "   ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]
    return "\n".join([title, *lines])


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
