"""`glfm explore`: find out what structure is in a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from glfm_cli.cli import options
from glfm_cli.cli.console import Console, ExitStatus
from glfm_cli.cli.outputs import check_drawn, check_outputs
from glfm_cli.cli.plan_text import show_plan
from glfm_cli.cli.progress import ProgressLine
from glfm_cli.cli.report import ending
from glfm_cli.errors import UsageError

EXAMPLE = "glfm explore sample_data/pbc.csv --types sample_data/pbc.types.yaml --html pbc.html"
TOP = 5

OPTIONS = {
    "output": typer.Option(
        "--output", "-o", metavar="DIR", help="Also write everything to files in this folder."
    ),
    "file_format": typer.Option(
        "--format", **options.one_of(("csv", "parquet")), help="Format of the tables in --output."
    ),
    "bias": typer.Option(
        "--bias/--no-bias",
        help="Whether all rows share a feature (an intercept), so that rows without other features "
        "are the common case (on by default).",
        show_default=False,
    ),
    "sample": typer.Option(
        **options.one_of(("consensus", "best", "held-out")),
        help="Which draw is shown. consensus: the one whose grouping of rows is closest to the "
        "average. best: highest log likelihood. held-out: best on cells hidden before the fit.",
    ),
    "top": typer.Option(
        metavar="N",
        help="Patterns to show (bsvd, cnpf: components, and rows and columns of each).",
    ),
    "columns": typer.Option(
        metavar="NAME[,NAME...]",
        help="Columns to describe and draw; default: all.",
    ),
    "all_features": typer.Option(
        "--all-features",
        help="Also list features that add no more than chance, or nothing to the others.",
    ),
    "surprising": typer.Option(metavar="N", help="Also list the N least expected cells and rows."),
    "similar": typer.Option(
        metavar="ROW", help="Also list the rows most similar to data row ROW (from 1)."
    ),
    "dependence": typer.Option(
        "--dependence", help="Also show the mutual information of columns."
    ),
    "color": typer.Option(
        metavar="COLUMN",
        help="With --model clgp: the column that colours the rows of the map; default: the one it "
        "explains best.",
    ),
    "fit": typer.Option(
        metavar="DIR.glfm",
        help="Put the rows of DATA on the map of the clgp fit saved in this folder.",
    ),
    "html": typer.Option(metavar="FILE", help="Also write a report as one self-contained page."),
    "plot": typer.Option(
        metavar="FILE", help="Also plot a one-page overview (.png, .svg or .pdf)."
    ),
    "as_json": typer.Option("--json", help="Print one JSON object instead of tables."),
}


@options.takes(
    *(options.SAMPLING, options.ENGINE, options.SAVING, options.FEATURES, options.ENDING),
    own=OPTIONS,
)
def run(
    ctx: typer.Context,
    data: options.Data,
    types: options.Types = None,
    output: Path | None = None,
    file_format: str = "csv",
    bias: bool | None = None,
    sample: str = "consensus",
    top: int = TOP,
    columns: list[str] | None = None,
    all_features: bool = False,
    surprising: int = 0,
    similar: int | None = None,
    dependence: bool = False,
    color: str | None = None,
    fit: Path | None = None,
    html: Path | None = None,
    plot: Path | None = None,
    record: options.Record = None,
    traces_to: options.TracesTo = None,
    as_json: bool = False,
) -> int:
    """Show groups of rows, components or a map of a table.

    By default: latent features of rows that bind columns together by more than chance, judged by
    rows that had no part in finding them; what distinguishes their rows; in which patterns they
    occur; and how often other chains find them again. With --model bsvd, or of triplets: the rank
    of the matrix, and the rows and columns that its components separate. With --model clgp: a map
    of the rows. Of counts whose absent pairs are zeros: components and their correlations. DATA
    may be the folder of a saved fit; that of a classifier shows its experts.
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

    def draw(found: Any, folder: Path | None) -> None:
        of_map = isinstance(found, MapExploration)
        (explore_map if of_map else explore_files).draw(found, folder, html, plot)

    files = ExplorationFiles(output, file_format, traces_to, record, others, draw)
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
    check_outputs(options.inputs_of(ctx), outputs | {"--save": ctx.params["save"]})
    files.check()
    if "--html" in files.others:
        check_writable(files.others["--html"])
    check_drawn(files.others.get("--plot"))


def _show(console: Console, found: Any, as_json: bool) -> None:
    if as_json:
        console.result_as_json(found.to_dict())
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
