"""`glfm impute`: complete a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from glfm_cli.cli import options
from glfm_cli.cli.console import Console, ExitStatus
from glfm_cli.cli.plan_text import show_plan
from glfm_cli.cli.report import report

# Options that shape a fit, and so have no place beside one that was made before.
FITTING = (
    *("types", "model", "chains", "warmup", "draws", "thin", "time_limit", "settings"),
    *("save", "resume", "no_data", "checkpoint", "record", "missingness_features"),
)
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
Plot = Annotated[
    Path | None,
    typer.Option(
        "--plot",
        metavar="FILE",
        help="Also draw what was put in beside what was observed (.png, .svg or .pdf).",
    ),
]
Interval = Annotated[
    float,
    typer.Option("--interval", metavar="P", help="Probability of the intervals in --cells."),
]
Flags = Annotated[
    bool, typer.Option("--flags", help="Add a column NAME_imp, 1 where a cell was completed.")
]
Multiple = Annotated[
    int | None,
    typer.Option(
        "--multiple",
        min=1,
        metavar="M",
        help="Write M tables, each completed with a joint draw, stacked below the one with its "
        "gaps: columns .imp (0 to M) and .id, as mice in R reads them.",
    ),
]
DrawsTo = Annotated[
    Path | None,
    typer.Option(
        "--draws-to",
        metavar="FILE",
        help="Also write every kept draw of every completed cell, best as .parquet.",
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print a summary as one JSON object; needs --output.")
]


def run(
    ctx: typer.Context,
    data: options.Data,
    types: options.Types = None,
    output: options.Output = None,
    model: options.Model = "glfm",
    chains: options.ChainsBySize = None,
    warmup: options.Warmup = options.WARMUP,
    draws: options.Draws = options.DRAWS,
    thin: options.Thin = options.THIN,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    time_limit: options.TimeLimit = None,
    settings: options.Settings = None,
    save: options.Save = None,
    resume: options.Resume = None,
    fit: options.WithFit = None,
    unseen: options.Unseen = "error",
    no_data: options.NoData = False,
    checkpoint: options.Checkpoint = options.CHECKPOINT,
    estimate: Estimate = "auto",
    cells: Cells = None,
    probabilities: Probabilities = None,
    plot: Plot = None,
    record: options.Record = None,
    interval: Interval = 0.95,
    flags: Flags = False,
    multiple: Multiple = None,
    draws_to: DrawsTo = None,
    traces_to: options.TracesTo = None,
    pairs: options.Pairs = None,
    all_pairs: options.AllPairs = False,
    row_features: options.RowFeatures = None,
    row_types: options.RowTypes = None,
    column_features: options.ColumnFeatures = None,
    column_types: options.ColumnTypes = None,
    missingness_features: options.MissingnessFeatures = None,
    strict: options.Strict = False,
    as_json: Json = False,
    dry_run: options.DryRun = False,
    quiet: options.Quiet = False,
) -> int:
    """Complete a table with missing values.

    Every gap of the columns that the types file names is filled from its predictive
    distribution, averaged over the draws of all chains. Observed cells, rows, columns, their
    order and names come out as they went in.
    """
    from glfm_cli.cli.outputs import check_outputs, partial_of
    from glfm_cli.completion import (
        Files,
        SamplingOptions,
        SaveOptions,
        as_schema,
        check_multiple,
        check_request,
        check_with_fit,
        complete,
        plan_session,
        run_record,
        write_record,
    )
    from glfm_cli.inference.executors import available_threads
    from glfm_cli.io import check_writable, read_table
    from glfm_cli.settings import parse_assignments

    console: Console = ctx.obj
    console.quiet = quiet
    outputs = {"--output": output, "--cells": cells, "--probabilities": probabilities}
    outputs |= {"--plot": plot, "--draws-to": draws_to, "--traces-to": traces_to}
    outputs["--record"] = record
    on_stdout = ["--json"] if as_json else []
    on_stdout += ["the table"] if output is None else []
    inputs = {"the table itself": data, "the types file": types, "--pairs": pairs}
    inputs |= {"--row-features": row_features, "--row-types": row_types}
    inputs |= {"--column-features": column_features, "--column-types": column_types}
    check_outputs(inputs, outputs, [] if dry_run else on_stdout)
    chosen = check_request(estimate, interval, threads, time_limit)
    files = Files(output or "-", cells, probabilities, flags, multiple, draws_to, traces_to)
    workers = threads or available_threads()
    names = {param.name: param.opts[0].lstrip("-") for param in ctx.command.params}
    fitting = {names[name]: value for name, value in options.given(ctx, FITTING).items()}
    check_with_fit(fit is not None, fitting, unseen)
    from glfm_cli.cli import matrix

    schema = None if types is None else as_schema(types)
    of_triplets = matrix.dispatch(ctx, schema, fit or resume)
    sources = matrix.Sources(
        data,
        pairs,
        all_pairs,
        (row_features, column_features),
        (row_types, column_types),
        missingness_features,
    )
    own_seed = options.given(ctx, ("seed",)).get("seed")
    requested_of = matrix.Asked(
        chosen, interval, output, workers, time_limit, strict, as_json, dry_run
    )
    if fit is not None:
        from glfm_cli.cli.fitted import Asked, complete_with_fit
        from glfm_cli.store import load_fit

        if of_triplets:
            kept_fit = load_fit(fit)
            return matrix.complete_with_fit(
                console, sources, kept_fit, own_seed, unseen, requested_of
            )
        asked = Asked(chosen, interval, files, plot, unseen, own_seed, strict, as_json, dry_run)
        return complete_with_fit(console, data, fit, asked, workers)
    keeping = SaveOptions(save, resume, partial_of(output, save, resume), not no_data, checkpoint)
    said = options.given(ctx, ("model", "chains", "warmup", "draws", "thin", "seed"))
    requested = SamplingOptions(**said, settings=parse_assignments(settings or []))
    if of_triplets:
        return matrix.complete(console, sources, schema, requested, keeping, requested_of)
    table = read_table(data)
    file = "standard input" if data == "-" else data
    session = plan_session(table, schema, requested, keeping, file=file)
    sampled = session.problem.model.kind == "gibbs"
    n_draws = session.plan.chains * session.plan.draws if sampled else None
    check_multiple(multiple, chosen, n_draws)
    files.check(table, session.data)
    if plot is not None:
        from glfm_cli.plots import check_figure

        check_figure(plot)
    if record is not None:
        check_writable(record)
    if dry_run:
        show_plan(console, session, workers, as_json)
        return ExitStatus.OK
    from glfm_cli.cli.saved import Kept

    with Kept(console, session) as kept:
        run = kept.sample(workers, time_limit, task="completing the table from")
        completion = complete(
            run,
            session.data,
            table,
            seed=session.plan.seed,
            estimate=chosen,
            interval=interval,
            intervals=cells is not None,
            threads=workers,
        )
        versions = files.write(completion, table)
        if plot is not None:
            from glfm_cli.plots import plot_completion

            plot_completion(completion, plot)
        if record is not None:
            request: dict[str, Any] = {"estimate": chosen, "interval": interval}
            request |= {"flags": flags, "time_limit": time_limit, "multiple": multiple}
            written = {name: path for name, path in outputs.items() if path and path != record}
            said_of = (completion.diagnostics, completion.warnings)
            write_record(run_record(session, run, *said_of, request, written), record)
        return report(console, completion, versions, strict, as_json)
