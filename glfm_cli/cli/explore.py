"""`glfm explore`: find out what structure is in a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from glfm_cli.cli import options
from glfm_cli.cli.console import Console, ExitStatus
from glfm_cli.cli.outputs import check_outputs
from glfm_cli.cli.plan_text import show_plan
from glfm_cli.cli.progress import ProgressLine
from glfm_cli.cli.report import ending
from glfm_cli.errors import UsageError

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
AllFeatures = Annotated[
    bool,
    typer.Option(
        "--all-features", help="Also list features that say no more than chance, or the others."
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
Color = Annotated[
    str | None,
    typer.Option(
        "--color",
        metavar="COLUMN",
        help="With --model clgp: the column that colours the rows of the map; the one it explains "
        "best if left out.",
    ),
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
Fit = Annotated[
    Path | None,
    typer.Option(
        "--fit",
        metavar="DIR.glfm",
        help="Put the rows of DATA on the map of the fit kept in this folder; nothing is fitted.",
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


@options.takes(
    options.SAMPLING, options.ENGINE, options.SAVING, options.FEATURES, options.ENDING
)
def run(
    ctx: typer.Context,
    data: options.Data,
    types: options.Types = None,
    output: Folder = None,
    file_format: Format = "csv",
    bias: Bias = None,
    sample: Sample = "consensus",
    top: Top = TOP,
    columns: Columns = None,
    all_features: AllFeatures = False,
    surprising: Surprising = 0,
    similar: Similar = None,
    dependence: Dependence = False,
    color: Color = None,
    fit: Fit = None,
    html: Html = None,
    plot: Plot = None,
    record: options.Record = None,
    traces_to: options.TracesTo = None,
    as_json: Json = False,
) -> int:
    """Find out what structure is in a table.

    Shows which groups of rows a table has, what marks each, and how sure that is: the features
    that bind columns together by more than chance, judged by rows that had no part in finding
    them; the patterns in which they occur; and how often other chains find them again. With
    --model bsvd, of triplets, or of a saved fit of that model: its rank, and the rows and columns
    that its components tell apart. With --model clgp: a map of the rows, and what columns are on
    it. Of counts whose absent pairs are zeros: components and their correlations. Of a classifier
    that was kept: its experts.
    """
    from glfm_cli.cli import explore_experts, explore_files, explore_map
    from glfm_cli.exploration import (
        ExplorationFiles,
        MapExploration,
        Request,
        explore,
        plan_explore,
    )

    console = options.console_of(ctx)
    figures = {"--html": html, "--plot": plot}
    others = {name: path for name, path in figures.items() if path is not None}
    files = ExplorationFiles(output, file_format, traces_to, record, others)
    _check(ctx, files)
    if explore_experts.dispatch(data):
        return explore_experts.run(ctx, data, top, as_json)
    named = None if columns is None else tuple(columns)
    request = Request(
        *(sample, top, named, all_features, surprising, similar, dependence, color)  # type: ignore[arg-type]
    )
    sampling = options.sampling_of(ctx, bias=bias)
    saving = options.saving_of(ctx, output or html or plot)
    matrix, source = options.matrix_of(ctx), None if types is None else str(types)
    if ctx.params["dry_run"]:
        plan = plan_explore(data, source, (sampling, saving, matrix), request, fit)
        show_plan(console, plan, as_json)
        return ExitStatus.OK

    def finish(found: Any) -> None:
        of_map = isinstance(found, MapExploration)
        (explore_map if of_map else explore_files).draw(found, output, html, plot)

    with ProgressLine(console, "exploring") as watch:
        found = explore(
            data,
            source,
            sampling=sampling,
            saving=saving,
            matrix=matrix,
            request=request,
            files=files,
            fit=fit,
            observer=watch,
            finish=finish,
        )
    _show(console, found, as_json)  # the files are complete, whoever stops reading this
    return _report(console, found, ctx.params["strict"])


def _check(ctx: typer.Context, files: Any) -> None:
    """Raise, before the work, what writing the outputs would raise after it."""
    from glfm_cli.io import check_writable

    outputs = {"--output": files.folder, **files.others, "--record": files.record}
    outputs["--traces-to"] = files.traces
    for name, path in outputs.items():
        if str(path) == "-":
            raise UsageError(f"{name} needs a name, not standard output")
    check_outputs(options.inputs_of(ctx), outputs)
    files.check()
    if "--html" in files.others:
        check_writable(files.others["--html"])
    if "--plot" in files.others:
        from glfm_cli.plots import check_figure

        check_figure(files.others["--plot"])


def _show(console: Console, found: Any, as_json: bool) -> None:
    if as_json:
        console.result(json.dumps(found.to_dict(), allow_nan=False, default=str) + "\n")
        return
    from glfm_cli.cli import explore_components, explore_factors, explore_map, explore_text
    from glfm_cli.exploration import Exploration, FactorExploration, MapExploration

    show: Any = explore_components.show
    if isinstance(found, FactorExploration):
        show = explore_factors.show
    elif isinstance(found, MapExploration):
        show = explore_map.show
    elif isinstance(found, Exploration):
        show = explore_text.show
    show(found, console.stdout)
    console.stdout.flush()  # before the warnings, which speak of it


def _report(console: Console, found: Any, strict: bool) -> int:
    """Say what the user should know, and return the exit status."""
    from glfm_cli.exploration import Exploration, convergence_line

    line = found.diagnostics.summary()
    if isinstance(found, Exploration):
        line = convergence_line(found)
    return ending(
        console,
        warnings=found.notes,
        stopped=found.stopped,
        draws=found.posterior.n_draws,
        unconverged=line if strict and not found.diagnostics.converged() else None,
    )
