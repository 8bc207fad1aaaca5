"""`glfm diagnose`: how far the draws of a saved fit can be trusted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from glfm_cli.cli import options
from glfm_cli.cli.console import Console, ExitStatus
from glfm_cli.cli.outputs import check_drawn
from glfm_cli.cli.sparkline import numbers, sparkline

if TYPE_CHECKING:
    from glfm_cli.diagnosis import Diagnosis

EXAMPLE = (
    "glfm impute sample_data/lung.csv --types sample_data/lung.types.yaml -o lung.csv "
    "--save lung.glfm && glfm diagnose lung.glfm"
)
MOST_QUANTITIES = 12  # rows of the table of quantities, the worst first
MOST_TRACES = 4

OPTIONS = {
    "plot": typer.Option(
        metavar="FILE",
        help="Also plot traces, and columns beside their replicates (.png, .svg or .pdf).",
    ),
    "replicates": typer.Option(
        min=99, metavar="N", help="Replicates of each column for the predictive check."
    ),
    "cells": typer.Option(min=0, metavar="N", help="Number of least certain cells to list."),
    "every": typer.Option("--all", help="List every quantity, not only the worst."),
    "strict": typer.Option(
        "--strict", help="End with status 3 if the result is not precise enough."
    ),
    "as_json": typer.Option("--json", help="Print one JSON object instead of text."),
}


@options.takes(own=OPTIONS)
def run(
    ctx: typer.Context,
    fit: options.Fit,
    plot: Path | None = None,
    replicates: int = 100,
    cells: int = 10,
    every: bool = False,
    strict: bool = False,
    as_json: bool = False,
    quiet: options.Quiet = False,
) -> int:
    """Check a saved fit: precision, convergence, fit to the data.

    Shows how far estimates would move with another seed, whether the chains agree (R-hat,
    effective sample sizes, traces), whether the model reproduces the observed columns, which
    completed cells are least certain, and what to do. Of a saved classifier: its starts, and the
    posterior of its number of experts.
    """
    from glfm_cli.cli import diagnose_experts, explore_experts
    from glfm_cli.diagnosis import diagnose_fit

    console: Console = ctx.obj
    console.quiet = quiet
    if explore_experts.dispatch(str(fit)):
        return diagnose_experts.run(ctx, str(fit), strict=strict, as_json=as_json)
    check_drawn(plot)
    result = diagnose_fit(fit, replicates=replicates, cells=cells)
    if as_json:
        console.result_as_json(result.to_dict())
    else:
        blocks = console.stdout.isatty()
        for line in describe(result, every=every, blocks=blocks):
            console.result(line + "\n")
    if plot is not None:
        from glfm_cli.plots import plot_diagnosis

        plot_diagnosis(result, plot)
    for text in result.notes:
        console.warn(text)
    if strict and not result.good:
        console.warn(f"--strict: {result.in_words()}")
        return ExitStatus.NOT_CONVERGED
    return ExitStatus.OK


def describe(result: Diagnosis, *, every: bool, blocks: bool) -> list[str]:
    """Return the lines that are printed.

    every : whether all quantities are listed
    blocks : whether traces are drawn; otherwise they are given as numbers
    """
    each = [f"{result.models.count(m)} of {m}" for m in dict.fromkeys(result.models)]
    chains = f"{result.chains} chains" + (f" ({', '.join(each)})" if each else "")
    lines = [
        f"{result.path}: {result.n_rows} rows, {chains}, {result.draws} draws",
        "",
        result.in_words(),
        "",
    ]
    if result.draws == result.chains and not any(q.gating for q in result.diagnostics):
        lines += ["The restarts, with their weights in predictions:", *_restarts(result)]
    else:
        lines += [
            "Convergence of single features and parameters:",
            *_quantities(result, every),
            "",
            *_traces(result, blocks),
        ]
    if result.checks is not None:
        lines += ["", *_checks(result)]
    if result.uncertain:
        lines += ["", *_cells(result)]
    if result.advice:
        lines += ["", "What to do:", *(f"  - {text}" for text in result.advice)]
    return lines


def _restarts(result: Diagnosis) -> list[str]:
    """Return a table of what each restart of an ascent ended with."""
    rows = [["restart", *(result.labels[name] for name in result.traces)]]
    for i in range(result.chains):
        ends = (_number(float(trace[i, 0]), ".5g") for trace in result.traces.values())
        rows.append([str(i + 1), *ends])
    return _aligned(rows, left=0)


def _quantities(result: Diagnosis, every: bool) -> list[str]:
    # The watched ones first, the worst at the top.
    ranked = sorted(result.diagnostics, key=lambda q: (not q.gating, -q.severity()))
    shown = ranked if every else ranked[:MOST_QUANTITIES]
    rows = [["R-hat", "ESS bulk", "ESS tail", "mean", "sd", "quantity"]]
    for q in shown:
        label = result.labels[q.name]
        rows.append(
            [
                _number(q.rhat, ".3f"),
                _number(q.ess_bulk, ".0f"),
                _number(q.ess_tail, ".0f"),
                _number(q.mean, ".4g"),
                _number(q.sd, ".3g"),
                label if q.gating else f"{label} (not watched)",
            ]
        )
    rest = len(ranked) - len(shown)
    more = [f"  and {rest} more, none worse (--all shows them)"] if rest else []
    return [*_aligned(rows, left=1), *more]


def _traces(result: Diagnosis, blocks: bool) -> list[str]:
    how = "" if blocks else ", as means of successive stretches"
    lines = [f"Traces, one line for each chain{how}:"]
    for name in result.worst(MOST_TRACES):
        trace = result.traces[name]
        low, high = float(trace.min()), float(trace.max())
        lines.append(f"  {result.labels[name]}, {low:.5g} to {high:.5g}")
        for chain in trace.tolist():
            lines.append("    " + (sparkline(chain, low, high) if blocks else numbers(chain)))
    return lines


def _checks(result: Diagnosis) -> list[str]:
    rows = [["p", "column", "summary", "observed", "replicated", "95 % of replicates"]]
    for check in result.checks or ():
        # Of levels, the one that is farthest off.
        shown = (
            check.summaries
            if not check.levels
            else (min(check.summaries, key=lambda one: one.p_value),)
        )
        for i, one in enumerate(shown):
            first = [_number(check.p_value, ".3f"), check.column] if i == 0 else ["", ""]
            name = f"share of {one.name}" if check.levels else one.name
            between = f"{one.lower:.4g} to {one.upper:.4g}"
            rows.append([*first, name, f"{one.observed:.4g}", f"{one.mean:.4g}", between])
    return [
        "Predictive check of columns (a small p: the model does not reproduce the "
        "column):",
        *_aligned(rows, left=2, first=1),
    ]


def _cells(result: Diagnosis) -> list[str]:
    rows = [["uncertainty", "row", "column", "guess"]]
    for cell in result.uncertain or ():
        rows.append([f"{cell.uncertainty:.2f}", str(cell.row), cell.column, cell.guess])
    return [
        "The least certain cells (1: only the distribution of the column is known):",
        *_aligned(rows, left=2),
    ]


def _aligned(rows: list[list[str]], *, left: int, first: int | None = None) -> list[str]:
    """Return rows of a table, the last `left` columns to the left (or those from `first` on)."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    start = len(widths) - left if first is None else first
    return [
        "  "
        + "  ".join(
            cell.ljust(width) if i >= start else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _number(value: float, how: str) -> str:
    return format(value, how) if value == value and abs(value) != float("inf") else "-"
