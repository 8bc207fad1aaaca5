"""`glfm impute`: complete a table."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glfm_cli.cli import options
from glfm_cli.cli.console import Console, ExitStatus

if TYPE_CHECKING:
    from glfm_cli.completion import Completion

EXAMPLE = "glfm impute sample_data/pbc.csv --types sample_data/pbc.types.yaml -o completed.csv"

Estimate = Annotated[
    str,
    typer.Option(
        "--estimate",
        metavar="auto|mean|median|mode|draw",
        help="What fills a gap. auto: the mean (real, positive), the rounded mean (count), the "
        "median (ordinal), the mode (categorical). draw: one joint draw of all gaps.",
    ),
]
Cells = Annotated[
    Path | None,
    typer.Option(
        "--cells",
        metavar="FILE",
        help="Also write one row a completed cell: estimate, mean, sd, interval, probability.",
    ),
]
Probabilities = Annotated[
    Path | None,
    typer.Option(
        "--probabilities",
        metavar="FILE",
        help="Also write the probability of every level in every completed cell.",
    ),
]
Interval = Annotated[
    float,
    typer.Option("--interval", metavar="P", help="Probability of the intervals in --cells."),
]
Flags = Annotated[
    bool, typer.Option("--flags", help="Add a column NAME_imp, 1 where a cell was completed.")
]
Strict = Annotated[
    bool, typer.Option("--strict", help="End with status 3 when the chains have not converged.")
]
Json = Annotated[
    bool, typer.Option("--json", help="Print a summary as one JSON object; needs --output.")
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Check everything and say what would be done; write nothing."),
]


def run(
    ctx: typer.Context,
    data: options.Data,
    types: options.Types,
    output: options.Output = None,
    model: options.Model = "glfm",
    chains: options.Chains = options.CHAINS,
    warmup: options.Warmup = options.WARMUP,
    draws: options.Draws = options.DRAWS,
    thin: options.Thin = options.THIN,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    time_limit: options.TimeLimit = None,
    settings: options.Settings = None,
    estimate: Estimate = "auto",
    cells: Cells = None,
    probabilities: Probabilities = None,
    interval: Interval = 0.95,
    flags: Flags = False,
    strict: Strict = False,
    as_json: Json = False,
    dry_run: DryRun = False,
    quiet: options.Quiet = False,
) -> int:
    """Complete a table with missing values.

    Every gap of the columns that the types file names is filled from its predictive
    distribution, averaged over the draws of all chains. Observed cells, rows, columns, their
    order and names come out as they went in.
    """
    from glfm_cli.completion import check_request, complete, prepare
    from glfm_cli.errors import UsageError
    from glfm_cli.executors import available_threads
    from glfm_cli.io import check_writable, read_table
    from glfm_cli.sampling import sample
    from glfm_cli.settings import parse_assignments

    console: Console = ctx.obj
    console.quiet = quiet
    if as_json and output is None and not dry_run:
        raise UsageError(
            "--json prints a summary on standard output, so the table needs a file",
            hint="Add -o FILE.",
        )
    _check_outputs(
        data, types, {"--output": output, "--cells": cells, "--probabilities": probabilities}
    )
    check_request(estimate, interval, threads, time_limit)
    table = read_table(data)
    problem, encoded, plan = prepare(
        table,
        types,
        model=model,
        chains=chains,
        warmup=warmup,
        draws=draws,
        thin=thin,
        seed=seed,
        settings=parse_assignments(settings or []),
        file="standard input" if data == "-" else data,
    )
    workers = threads or available_threads()
    if dry_run:
        _show_plan(console, problem, encoded, plan, workers, as_json)
        return ExitStatus.OK
    for path in (output, cells, probabilities):
        if path is not None and str(path) != "-":
            check_writable(path)
    if flags:
        from glfm_cli.encoding import flag_columns

        flag_columns(table, encoded)  # a clash of names is said before the work begins
    from glfm_cli.cli.progress import Progress

    with Progress(console, plan) as progress:
        done = sample(problem, plan, threads=workers, time_limit=time_limit, observer=progress)
    completion = complete(done, encoded, table, seed=seed, estimate=estimate, interval=interval)
    _write(completion, table, output, cells, probabilities, flags)
    return _report(console, completion, plan.sweeps, strict, as_json)


def _check_outputs(data: str, types: Path, outputs: dict[str, Path | None]) -> None:
    """Raise UsageError when two outputs are one file, or an output is an input."""
    from glfm_cli.errors import UsageError
    from glfm_cli.io import same_file

    seen: list[tuple[str, Path]] = []
    for name, path in outputs.items():
        if path is None:
            continue
        for what, other in (("the table itself", data), ("the types file", types)):
            if str(path) != "-" and str(other) != "-" and same_file(path, other):
                raise UsageError(
                    f"{name} is {what}", file=str(path), hint="Choose another name for the output."
                )
        for other_name, other_path in seen:
            if str(path) == str(other_path) or (str(path) != "-" and same_file(path, other_path)):
                raise UsageError(f"{name} and {other_name} name the same file", file=str(path))
        seen.append((name, path))


def _write(
    completion: Completion,
    table: Any,
    output: Path | None,
    cells: Path | None,
    probabilities: Path | None,
    flags: bool,
) -> None:
    from glfm_cli.encoding import flag_columns
    from glfm_cli.io import write_table

    if cells is not None:
        write_table(completion.cells(), cells)
    if probabilities is not None:
        write_table(completion.probabilities(), probabilities)
    completed = completion.table
    if flags:
        completed = flag_columns(completed, completion.data)
    write_table(completed, output if output is not None else "-", like=table)


def _report(
    console: Console, completion: Completion, sweeps: int, strict: bool, as_json: bool
) -> int:
    """Say how it went, and return the exit status."""
    if as_json:
        console.result(json.dumps(completion.to_dict(), allow_nan=False) + "\n")
    for text in completion.warnings:
        console.warn(text)
    stopped = completion.run.stopped
    if stopped:
        kept = completion.posterior.n_draws
        console.warn(f"sampling ended early ({stopped}); the answer uses {kept} draws")
    console.note(
        f"{completion.n_completed} cells completed in {completion.data.n_rows} rows, "
        f"{completion.run.seconds:.1f} s. {completion.diagnostics.summary()}"
    )
    if stopped == "interrupted":
        return ExitStatus.INTERRUPTED
    if strict and not completion.diagnostics.converged():
        console.warn(f"--strict: {completion.diagnostics.summary()}")
        return ExitStatus.NOT_CONVERGED
    return ExitStatus.OK


def _show_plan(
    console: Console, problem: Any, data: Any, plan: Any, workers: int, as_json: bool
) -> None:
    """Say what would be done, with the time measured on a few sweeps and the memory needed."""
    from glfm_cli.completion import foresee

    forecast = foresee(problem, data, plan, workers)
    if as_json:
        console.result(json.dumps(forecast) + os.linesep)
        return
    lines = [
        f"{forecast['rows']} rows, {forecast['modelled_columns']} modelled columns, "
        f"{forecast['latent_columns']} latent columns",
        f"{forecast['cells_to_complete']} cells to complete",
        *(f"  {name}: {count}" for name, count in forecast["gaps"].items() if count),
        f"{plan.chains} chains of {plan.sweeps} sweeps, {plan.draws} draws kept from each, "
        f"{workers} at a time",
        f"about {forecast['seconds']:.0f} s and {forecast['megabytes']:.0f} MB",
    ]
    for line in lines:
        console.result(line + "\n")
    for text in data.notes:
        console.warn(text)
