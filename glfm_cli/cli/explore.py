"""`glfm explore`: find out what structure is in a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glfm_cli.cli import matrix, options
from glfm_cli.cli.console import Console, ExitStatus
from glfm_cli.cli.explore_files import Outputs
from glfm_cli.cli.report import counted, ending

if TYPE_CHECKING:
    from glfm_cli.exploration import Exploration, Job, Request

EXAMPLE = "glfm explore sample_data/pbc.csv --types sample_data/pbc.types.yaml --html pbc.html"
TOP = 5

Sample = Annotated[
    str,
    typer.Option(
        "--sample",
        metavar="consensus|best|held-out",
        help="Which draw is shown. consensus: the one whose rows go together most as on average. "
        "best: the highest log likelihood. held-out: the best on cells hidden before the fit.",
    ),
]
Bias = Annotated[
    bool | None,
    typer.Option(
        "--bias/--no-bias",
        help="Whether all rows share a bias feature, so that a pattern without features is the "
        "common case (on by default).",
        show_default=False,
    ),
]
Top = Annotated[int, typer.Option("--top", metavar="N", help="How many patterns to show.")]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        metavar="NAME[,NAME...]",
        help="The columns that words and figures speak of; all if left out.",
    ),
]
Surprising = Annotated[
    int,
    typer.Option("--surprising", metavar="N", help="Also list the N least expected cells, rows."),
]
Similar = Annotated[
    int | None,
    typer.Option(
        "--similar", metavar="ROW", help="Also list the rows most like data row ROW (from 1)."
    ),
]
Dependence = Annotated[
    bool,
    typer.Option("--dependence", help="Also show how much columns tell of each other."),
]
Folder = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="DIR",
        help="Also write everything to files in this folder.",
    ),
]
Format = Annotated[
    str,
    typer.Option("--format", metavar="csv|parquet", help="Format of the tables in --output."),
]
Html = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Also write a report as one self-contained page."),
]
Plot = Annotated[
    Path | None,
    typer.Option(
        "--plot", metavar="FILE", help="Also draw a one-page overview (.png, .svg or .pdf)."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]


def run(
    ctx: typer.Context,
    data: options.Data,
    types: options.Types = None,
    output: Folder = None,
    model: options.Model = "glfm",
    chains: options.Chains = options.CHAINS,
    warmup: options.Warmup = options.WARMUP,
    draws: options.Draws = options.DRAWS,
    thin: options.Thin = options.THIN,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    time_limit: options.TimeLimit = None,
    settings: options.Settings = None,
    save: options.Save = None,
    resume: options.Resume = None,
    no_data: options.NoData = False,
    checkpoint: options.Checkpoint = options.CHECKPOINT,
    bias: Bias = None,
    sample: Sample = "consensus",
    top: Top = TOP,
    columns: Columns = None,
    surprising: Surprising = 0,
    similar: Similar = None,
    dependence: Dependence = False,
    row_features: options.RowFeatures = None,
    row_types: options.RowTypes = None,
    column_features: options.ColumnFeatures = None,
    column_types: options.ColumnTypes = None,
    missingness_features: options.MissingnessFeatures = None,
    html: Html = None,
    plot: Plot = None,
    file_format: Format = "csv",
    record: options.Record = None,
    traces_to: options.TracesTo = None,
    strict: options.Strict = False,
    as_json: Json = False,
    dry_run: options.DryRun = False,
    quiet: options.Quiet = False,
) -> int:
    """Find out what structure is in a table.

    Shows which groups of rows a table has, what marks each, and how sure that is: the features
    that a latent feature model finds, the patterns in which they occur, and how often other
    draws and chains find them again. With --model bsvd, of triplets, or of a saved fit of that
    model: its rank, and the rows and columns that its components tell apart. Of a classifier that
    was kept: its experts.
    """
    from glfm_cli.completion import check_request
    from glfm_cli.exploration import describe_run, is_saved_fit, make_request, open_fit
    from glfm_cli.inference.executors import available_threads

    console: Console = ctx.obj
    console.quiet = quiet
    check_request("auto", 0.5, threads, time_limit)
    outputs = Outputs(output, file_format, html, plot, record, traces_to)
    outputs.check(data, types)
    from glfm_cli.cli import explore_experts, explore_matrix

    if explore_experts.dispatch(data):
        return explore_experts.run(ctx, data, top, as_json)
    if explore_matrix.dispatch(ctx):
        sources = matrix.Sources(
            data,
            None,
            False,
            (row_features, column_features),
            (row_types, column_types),
            missingness_features,
        )
        asked = explore_matrix.Asked(top, threads, time_limit, output, file_format, strict, as_json)
        return explore_matrix.run(ctx, sources, asked)
    request = make_request(
        sample=sample,
        top=top,
        columns=None if columns is None else tuple(columns),
        surprising=surprising,
        similar=similar,
        dependence=dependence,
    )
    if data != "-" and is_saved_fit(data):
        _check_nothing_to_sample(ctx)
        done, job = open_fit(data, request)
        if dry_run:
            _show_fit(console, job, done.posterior.n_draws, as_json)
            return ExitStatus.OK
        found = describe_run(done, job, request)
        outputs.write(found)
        _show(console, found, as_json)
        return _report(console, found, strict)
    keeping = (save, resume, outputs.partial(save, resume), not no_data, checkpoint)
    job = _prepare(ctx, request, keeping)
    assert job.session is not None
    workers = threads or available_threads()
    if dry_run:
        from glfm_cli.cli.plan_text import show_plan

        show_plan(console, job.session, workers, as_json, explored=job.data)
        return ExitStatus.OK
    from glfm_cli.cli.saved import Kept

    with Kept(console, job.session) as kept:
        done = kept.sample(workers, time_limit, task="exploring", forecasts=False)
        found = describe_run(done, job, request)
        outputs.write(found)
        if record is not None:
            outputs.write_record(job.session, done, found, time_limit)
    _show(console, found, as_json)  # the files are complete, whoever stops reading this
    return _report(console, found, strict)


_SAMPLING = ("types", "model", "chains", "warmup", "draws", "thin", "seed", "threads")
_KEEPING = ("save", "resume", "no_data", "checkpoint", "record")
_UNSAMPLED = (*_SAMPLING, "time_limit", "settings", "bias", *_KEEPING)


def _check_nothing_to_sample(ctx: typer.Context) -> None:
    """Raise UsageError when options of sampling come with a saved fit."""
    from glfm_cli.exploration import check_nothing_to_sample

    check_nothing_to_sample(options.given(ctx, _UNSAMPLED))


def _prepare(ctx: typer.Context, request: Request, keeping: tuple[Any, ...]) -> Job:
    """Read a table and check everything; nothing is sampled or written yet."""
    from glfm_cli.completion import SamplingOptions, SaveOptions, as_schema
    from glfm_cli.exploration import prepare_exploration
    from glfm_cli.io import read_table
    from glfm_cli.settings import parse_assignments

    data, types = ctx.params["data"], ctx.params["types"]
    settings: dict[str, object] = dict(parse_assignments(ctx.params["settings"] or []))
    if ctx.params["bias"] is not None:
        settings["bias"] = ctx.params["bias"]
    said = options.given(ctx, ("model", "chains", "warmup", "draws", "thin", "seed"))
    requested, where = SamplingOptions(**said, settings=settings), SaveOptions(*keeping)
    schema = None if types is None else as_schema(types)
    file = "standard input" if data == "-" else data
    return prepare_exploration(read_table(data), schema, request, requested, where, file=file)


def _show_fit(console: Console, job: Job, n_draws: int, as_json: bool) -> None:
    """Say what would be done with a saved fit."""
    said = {"rows": job.data.n_rows, "modelled_columns": len(job.data.columns), "draws": n_draws}
    if as_json:
        console.result(json.dumps(said) + "\n")
        return
    console.result(
        f"{counted(said['rows'], 'row')}, {counted(said['modelled_columns'], 'modelled column')}\n"
        f"nothing to sample: the fit has {counted(n_draws, 'draw')}\n"
    )


def _show(console: Console, found: Exploration, as_json: bool) -> None:
    if as_json:
        console.result(json.dumps(found.to_dict(), allow_nan=False) + "\n")
        return
    from glfm_cli.cli.explore_text import show

    show(found, console.stdout)
    console.stdout.flush()  # before the warnings, which speak of it


def _report(console: Console, found: Exploration, strict: bool) -> int:
    """Say what the user should know, and return the exit status."""
    from glfm_cli.exploration import convergence_line

    lacking = strict and not found.diagnostics.converged()
    return ending(
        console,
        warnings=found.warnings,
        stopped=found.stopped,
        draws=found.posterior.n_draws,
        unconverged=convergence_line(found) if lacking else None,
    )
