"""`glfm explore`: find out what structure is in a table."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glfm_cli.cli import options
from glfm_cli.cli.console import Console, ExitStatus

if TYPE_CHECKING:
    from glfm_cli.exploration import Exploration, Job, Request
    from glfm_cli.sampling import Run

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
Strict = Annotated[
    bool, typer.Option("--strict", help="End with status 3 when the chains have not converged.")
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
    bias: Bias = None,
    sample: Sample = "consensus",
    top: Top = TOP,
    columns: Columns = None,
    surprising: Surprising = 0,
    similar: Similar = None,
    dependence: Dependence = False,
    html: Html = None,
    plot: Plot = None,
    file_format: Format = "csv",
    strict: Strict = False,
    as_json: Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Find out what structure is in a table.

    Shows which groups of rows a table has, what marks each, and how sure that is: the features
    that a latent feature model finds, the patterns in which they occur, and how often other
    draws and chains find them again.
    """
    from glfm_cli.completion import check_request
    from glfm_cli.exploration import (
        check_folder,
        check_format,
        describe_run,
        is_saved_fit,
        make_request,
        open_fit,
        write_files,
    )
    from glfm_cli.io.files import check_writable
    from glfm_cli.settings import parse_assignments

    console: Console = ctx.obj
    console.quiet = quiet
    check_request("auto", 0.5, threads, time_limit)
    chosen: dict[str, object] = dict(parse_assignments(settings or []))
    if bias is not None:
        chosen["bias"] = bias
    outputs = {"--html": html, "--plot": plot, "--output": output}
    _check_outputs(data, types, outputs)
    check_format(file_format)
    if output is not None:
        check_folder(output)
    if html is not None:
        check_writable(html)
    if plot is not None:
        from glfm_cli.plots import check_figure

        check_figure(plot)
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
    else:
        said = {"model": model, "chains": chains, "warmup": warmup, "draws": draws, "thin": thin}
        said |= {"seed": seed, "settings": chosen}
        done, job = _fit(console, data, types, request, said, threads, time_limit)
    found = describe_run(done, job, request)
    name = "standard input" if data == "-" else Path(data).name
    if output is not None:
        write_files(found, output, file_format)
        _draw_all(found, output)
        _write_page(found, output / "report.html", name)
    if html is not None:
        _write_page(found, html, name)
    if plot is not None:
        found.plot_overview(plot)
    _show(console, found, as_json)
    return _report(console, found, strict)


_SAMPLING = ("types", "model", "chains", "warmup", "draws", "thin", "seed", "threads")
_UNSAMPLED = (*_SAMPLING, "time_limit", "settings", "bias")


def _check_nothing_to_sample(ctx: typer.Context) -> None:
    """Raise UsageError when options of sampling come with a saved fit."""
    from glfm_cli.errors import UsageError

    for name in options.given(ctx, _UNSAMPLED):
        option = "--set" if name == "settings" else f"--{name.replace('_', '-')}"
        raise UsageError(
            f"{option} says how to sample, but a saved fit has been sampled",
            hint="Leave it out, or give the table itself.",
        )


def _fit(
    console: Console,
    data: str,
    types: Path | None,
    request: Request,
    said: dict[str, Any],
    threads: int | None,
    time_limit: float | None,
) -> tuple[Run, Job]:
    """Read a table, and sample."""
    from glfm_cli.cli.progress import Progress
    from glfm_cli.errors import UsageError
    from glfm_cli.executors import available_threads
    from glfm_cli.exploration import prepare_exploration
    from glfm_cli.io import read_table
    from glfm_cli.sampling import sample

    table = read_table(data)
    if types is None:
        raise UsageError(
            "--types is missing: a table needs to be told what its columns mean",
            hint=f"`glfm types {data} -o types.yaml` writes a first types file.",
        )
    file = "standard input" if data == "-" else data
    job = prepare_exploration(table, types, request, **said, file=file)
    with Progress(console, job.plan) as progress:
        done = sample(
            job.problem,
            job.plan,
            threads=threads or available_threads(),
            time_limit=time_limit,
            observer=progress,
        )
    if done.stopped == "interrupted":
        console.note("Interrupted; exploring the draws so far.")
    return done, job


def _check_outputs(data: str, types: Path | None, outputs: dict[str, Path | None]) -> None:
    """Raise a GlfmError when an output cannot be written, or is an input or another output."""
    from glfm_cli.errors import UsageError
    from glfm_cli.io import same_file

    seen: list[tuple[str, Path]] = []
    for name, path in outputs.items():
        if path is None:
            continue
        if str(path) == "-":
            raise UsageError(f"{name} needs a name, not standard output")
        for what, other in (("the table itself", data), ("the types file", types)):
            if other is not None and same_file(path, other):
                raise UsageError(
                    f"{name} is {what}", file=str(path), hint="Choose another name for the output."
                )
        for other_name, other_path in seen:
            if same_file(path, other_path):
                raise UsageError(f"{name} and {other_name} name the same file", file=str(path))
        seen.append((name, path))


def _draw_all(found: Exploration, folder: Path) -> None:
    """Draw every figure that the exploration has content for, as PNG files."""
    found.plot_overview(folder / "overview.png")
    found.plot_columns(folder / "columns.png")
    found.plot_traces(folder / "traces.png")
    found.plot_fit(folder / "fit.png")
    if found.dependence is not None:
        found.plot_dependence(folder / "dependence.png")
    for scale in found.columns:
        if len(scale.encoded.levels) > 1 and scale.encoded.observed.any():
            name = re.sub(r"[^\w.-]+", "_", scale.name)
            found.plot_shares(scale.name, folder / f"shares_{scale.d + 1}_{name}.png")


def _write_page(found: Exploration, path: Path, name: str) -> None:
    from glfm_cli.report import write_exploration

    write_exploration(found, path, name=name)


def _show(console: Console, found: Exploration, as_json: bool) -> None:
    if as_json:
        console.result(json.dumps(found.to_dict(), allow_nan=False) + "\n")
        return
    from glfm_cli.cli.explore_text import show

    show(found, console.stdout)
    console.stdout.flush()  # before the warnings, which speak of it


def _report(console: Console, found: Exploration, strict: bool) -> int:
    """Say what the user should know, and return the exit status."""
    for text in found.warnings:
        console.warn(text)
    if found.stopped:
        n = found.posterior.n_draws
        console.warn(
            f"sampling ended early ({found.stopped}); the answer uses {n} "
            f"draw{'' if n == 1 else 's'}"
        )
    if found.stopped == "interrupted":
        return ExitStatus.INTERRUPTED
    if strict and not found.diagnostics.converged():
        console.warn(f"--strict: {found.diagnostics.summary()}")
        return ExitStatus.NOT_CONVERGED
    return ExitStatus.OK
