"""`glfm suggest`: find out which unobserved cells to ask for next."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from glfm_cli.cli import options
from glfm_cli.cli.console import Console
from glfm_cli.cli.outputs import check_outputs
from glfm_cli.cli.progress import ProgressLine
from glfm_cli.cli.report import ending
from glfm_cli.errors import counted

if TYPE_CHECKING:
    from glfm_cli.acquisition import Suggestion

EXAMPLE = "glfm suggest sample_data/cbpp.csv --types sample_data/cbpp.types.yaml --count 5"
COUNT = 10

OPTIONS = {
    "count": typer.Option(min=1, metavar="N", help="Number of cells to list."),
    "rule": typer.Option(
        **options.one_of(("variance", "joint", "uncertainty")),
        help="variance: one by one, the cell whose value most reduces the variance of the missing "
        "cells of its row (of triplets: and column), given those before it. joint: one by one, the "
        "cell most informative about all cells. uncertainty: the cells most informative alone.",
    ),
    "cost": typer.Option(
        metavar="FILE",
        help="Costs of cells: a table with a column 'cost' beside 'column' or, for triplets, "
        "beside the ids of rows, of columns or of both. Cells are ranked by gain per unit of cost.",
    ),
    "columns": typer.Option(
        metavar="NAME[,NAME...]", help="Of a table: the columns to choose from; default: all."
    ),
    "as_json": typer.Option("--json", help="Print one JSON object instead of a table."),
}


ENDING = {name: one for name, one in options.ENDING.items() if name != "dry_run"}


@options.takes(
    options.BY_SIZE, options.ENGINE, options.PAIRS, options.FEATURES, ENDING, own=OPTIONS
)
def run(
    ctx: typer.Context,
    data: options.Data,
    types: options.Types = None,
    output: options.Output = None,
    count: int = COUNT,
    rule: str = "variance",
    cost: Path | None = None,
    columns: list[str] | None = None,
    as_json: bool = False,
) -> int:
    """List the missing cells that are most worth measuring next.

    Lists the missing cells whose values would tell most about the others, in the order in which
    to ask for them, with what each adds to those before it. DATA is a table, triplets, or the
    folder of a saved fit.
    """
    from glfm_cli.acquisition import Choice, suggest
    from glfm_cli.io import check_writable

    console, began = options.console_of(ctx), time.monotonic()
    check_outputs(options.inputs_of(ctx), {"--output": output})
    if output is not None and str(output) != "-":
        check_writable(output)
    price = None if cost is None else str(cost)
    with ProgressLine(console, "choosing by") as watch:
        found = suggest(
            data,
            None if types is None else str(types),
            sampling=options.sampling_of(ctx),
            matrix=options.matrix_of(ctx),
            choice=Choice(count, rule, columns, price),  # type: ignore[arg-type]
            observer=watch,
        )
    seconds = time.monotonic() - began
    return _report(console, found, output, ctx.params["strict"], as_json, seconds)


def _report(
    console: Console,
    found: Suggestion,
    output: Path | None,
    strict: bool,
    as_json: bool,
    seconds: float,
) -> int:
    """Write the cells, say what the user should know, and return the exit status."""
    from glfm_cli.io import atomic_write, write_table

    if as_json:
        text = json.dumps(found.to_dict(), allow_nan=False, default=str) + "\n"
        if output is None or str(output) == "-":
            console.file(text)
        else:
            with atomic_write(output, "w") as file:
                file.write(text)
    else:
        write_table(found.to_table(), output or "-")
    summary = found.diagnostics.summary(found.names)
    unconverged = strict and not found.diagnostics.converged()  # a warning says why then
    return ending(
        console,
        warnings=found.notes,
        stopped=found.stopped,
        draws=found.posterior.n_draws,
        note=f"{found.cells.num_rows} of {counted(found.n_candidates, 'cell')} chosen, "
        f"{seconds:.1f} s." + ("" if unconverged else f" {summary}"),
        unconverged=summary if unconverged else None,
    )
