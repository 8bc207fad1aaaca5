"""`glfm impute`: complete a table."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import typer

from glfm_cli.cli import options
from glfm_cli.cli.console import ExitStatus
from glfm_cli.cli.outputs import check_drawn, check_outputs
from glfm_cli.cli.plan_text import show_plan
from glfm_cli.cli.progress import ProgressLine
from glfm_cli.cli.report import Occasion, report
from glfm_cli.options import Scaling

EXAMPLE = "glfm impute sample_data/pbc.csv --types sample_data/pbc.types.yaml -o completed.csv"

OPTIONS = {
    "estimate": typer.Option(
        **options.one_of(("auto", "mean", "median", "mode", "draw")),
        help="What fills a missing cell. auto: mean (real, positive), rounded mean (count), median "
        "(ordinal), most probable level (categorical). draw: one joint draw of all cells.",
    ),
    "interval": typer.Option(metavar="P", help="Probability of the intervals in --cells."),
    "flags": typer.Option("--flags", help="Add columns NAME_imp: 1 where a cell was completed."),
    "multiple": typer.Option(
        min=1,
        metavar="M",
        help="Multiple imputation: write the incomplete table and M completed ones, each a joint "
        "draw, stacked with columns .imp (0 to M) and .id, as mice in R reads them.",
    ),
    "analysis": typer.Option(
        metavar="FORMULA",
        help="With --multiple: the regression that will follow, such as 'y ~ age + sex * "
        "log(dose)'. Imputations agree with it, so that its coefficients are not biased towards "
        "zero.",
    ),
    "cells": typer.Option(
        metavar="FILE",
        help="Also write one row for each completed cell: estimate, mean, sd, interval, "
        "probability, Monte Carlo error.",
    ),
    "probabilities": typer.Option(
        metavar="FILE", help="Also write the probability of every level for every completed cell."
    ),
    "plot": typer.Option(
        metavar="FILE",
        help="Also plot completed beside observed values (.png, .svg or .pdf).",
    ),
    "draws_to": typer.Option(
        metavar="FILE", help="Also write every draw of every completed cell, best as .parquet."
    ),
    "as_json": typer.Option("--json", help="Print a summary as one JSON object; needs --output."),
}


@options.takes(
    *(options.BY_SIZE, options.SEVERAL, options.PRECISION, options.SAVING, options.SCALING),
    *(options.ENGINE, options.PAIRS, options.RECOMMEND, options.FEATURES, options.ENDING),
    own=OPTIONS,
)
def run(
    ctx: typer.Context,
    data: options.Data,
    types: options.Types = None,
    output: options.Output = None,
    fit: options.WithFit = None,
    unseen: options.Unseen = "error",
    estimate: str = "auto",
    interval: float = 0.95,
    flags: bool = False,
    multiple: int | None = None,
    analysis: str | None = None,
    cells: Path | None = None,
    probabilities: Path | None = None,
    plot: Path | None = None,
    draws_to: Path | None = None,
    traces_to: options.TracesTo = None,
    record: options.Record = None,
    as_json: bool = False,
) -> int:
    """Complete a table with missing values.

    Missing cells are filled from their predictive distributions, averaged over the draws of all
    chains. The types file says what columns mean and which cells are missing. Observed cells,
    rows, columns, their order and names come out as they went in.
    """
    console, began = options.console_of(ctx), time.monotonic()
    if output is not None:
        console.wait("reading the table")  # loading what that takes is the longer part

    from glfm_cli.completion import Files, impute, plan_imputation

    dry_run = ctx.params["dry_run"]
    named = (output or "-", cells, probabilities, flags, multiple, draws_to, traces_to, record)
    files = Files(*named, {} if plot is None else {"--plot": plot}, analysis)
    on_stdout = ["--json"] * as_json + ["the table"] * (output is None)
    outputs: dict[str, Path | None] = {name: Path(path) for name, path in files.by_option().items()}
    outputs |= {"--output": output, "--record": record, "--save": ctx.params["save"]}
    check_outputs(options.inputs_of(ctx), outputs, [] if dry_run else on_stdout)
    check_drawn(plot)
    sampling, saving = options.sampling_of(ctx), options.saving_of(ctx, output)
    matrix = options.matrix_of(ctx)
    scaling = Scaling(**{name: ctx.params[name] for name in options.SCALING})
    source = None if types is None else str(types)
    asked: dict[str, Any] = {"estimate": estimate, "interval": interval}
    asked |= {"fit": fit, "unseen": unseen}
    if dry_run:
        show_plan(
            console,
            plan_imputation(data, source, (sampling, saving, matrix, scaling), files, **asked),
            as_json,
        )
        return ExitStatus.OK

    def draw(completion: Any) -> None:
        from glfm_cli.plots import plot_completion

        plot_completion(completion, plot)

    with ProgressLine(console, "completing the table from") as watch:
        completion = impute(
            data,
            source,
            sampling=sampling,
            saving=saving,
            matrix=matrix,
            files=files,
            observer=watch,
            finish=None if plot is None else draw,
            **asked,
            **vars(scaling),
        )
        if as_json:
            console.result_as_json(completion.to_dict())
        occasion = Occasion(
            seconds=time.monotonic() - began,
            tables_alone=(cells, probabilities, plot) == (None, None, None),
            of_fit=fit is not None,
        )
        return report(console, completion, occasion, strict=ctx.params["strict"])
