"""`glfm evaluate`: how far completed cells can be trusted, on a table of one's own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from glfm_cli.cli import options
from glfm_cli.cli.console import Console, ExitStatus
from glfm_cli.cli.evaluate_arguments import listed, parse_programs, parse_rates
from glfm_cli.cli.evaluate_compare import check_compare, compared, names_of
from glfm_cli.cli.outputs import check_drawn, check_outputs

EXAMPLE = (
    "glfm evaluate sample_data/airquality.csv --types sample_data/airquality.types.yaml "
    "--repeats 3 -o results.csv"
)

# Equal to those of `glfm_cli.evaluation`, which is not imported for `--help`; a test keeps it so.
METHODS = "auto,mean"
RATES = "0.1,0.3,0.5"
REPEATS = 5
TIMEOUT = 600.0

Tables = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA",
        help="The table, complete or not: CSV, Excel, SPSS, Parquet and others, by suffix; - is "
        "standard input. With --compare: one or more completed tables.",
    ),
]
OPTIONS = {
    "types": typer.Option(
        metavar="FILE",
        help="The types file: what each column means. `glfm types` writes a first one.",
    ),
    "output": typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write all scores to this table; rows are appended as fits end.",
    ),
    "resume": typer.Option(
        "--resume", help="Keep the results in --output, and run only the fits that are missing."
    ),
    "methods": typer.Option(
        metavar="NAME,...",
        help="Methods to compare: models (auto, glfm, ...), sibp (all columns Gaussian), marginal "
        "(no features), mean (mean, median, mode), draw (a random observed value), knn and "
        "iterative (scikit-learn), and names given by --method. For triplets: bsvd, mean, "
        "row-mean, column-mean, additive.",
    ),
    "program": typer.Option(
        "--method",
        metavar="NAME=COMMAND",
        help="Add another program, such as 'mice=Rscript mice.R {input} {types} {output} {seed}'; "
        "may be repeated.",
    ),
    "method_timeout": typer.Option(
        metavar="SECONDS", help="Stop a program of --method that takes longer for one table."
    ),
    "rates": typer.Option(metavar="R,...", help="Shares of observed cells to hide."),
    "repeats": typer.Option(metavar="N", help="Sets of hidden cells at each rate."),
    "mechanism": typer.Option(
        **options.one_of(
            ("mcar", "mar", "mnar", "observed", "stretches", "one-per-row", "new-rows")
        ),
        help="How cells are hidden. mcar: at random; mar: depending on other columns; mnar: "
        "depending on their own value; observed: in patterns of the table's own missing cells; "
        "stretches: in runs of rows like its own. For triplets: mcar, one-per-row; for counts "
        "also new-rows.",
    ),
    "reference": typer.Option(
        metavar="NAME", help="The method that others are compared to; default: the first."
    ),
    "jobs": typer.Option(
        min=1, metavar="N", help="Fits to run at the same time; default: one for each core."
    ),
    "compare": typer.Option(
        "--compare",
        help="Score tables completed elsewhere against --truth; nothing is hidden.",
    ),
    "truth": typer.Option(metavar="FILE", help="With --compare: the table with the true values."),
    "masked": typer.Option(
        metavar="FILE",
        help="With --compare: the table that was completed; only its missing cells are scored.",
    ),
    "plot": typer.Option(
        metavar="FILE",
        help="Also plot scores by share hidden and by column, and the calibration of levels (.png, "
        ".svg or .pdf).",
    ),
    "html": typer.Option(metavar="FILE", help="Also write a report as one self-contained page."),
    "as_json": typer.Option("--json", help="Print one JSON object instead of tables."),
}


SAMPLING = {name: one for name, one in options.BY_SIZE.items() if name != "model"}
SAMPLING["threads"] = options.shared(
    int | None,
    None,
    min=1,
    metavar="N",
    help="Chains of one fit to run at the same time; default: the cores divided among --jobs.",
)
COMPARED = (
    *("data", "types", "compare", "truth", "masked", "reference"),
    *("output", "plot", "html", "as_json", "quiet"),
)
QUIET = {"quiet": options.ENDING["quiet"]}


@options.takes(SAMPLING, options.ENGINE, options.FEATURES, QUIET, own=OPTIONS)
def run(
    ctx: typer.Context,
    data: Tables,
    types: Path,
    output: Path | None = None,
    resume: bool = False,
    methods: str = METHODS,
    program: list[str] | None = None,
    method_timeout: float = TIMEOUT,
    rates: str = RATES,
    repeats: int = REPEATS,
    mechanism: str = "mcar",
    reference: str | None = None,
    jobs: int | None = None,
    compare: bool = False,
    truth: Path | None = None,
    masked: Path | None = None,
    plot: Path | None = None,
    html: Path | None = None,
    as_json: bool = False,
) -> int:
    """Measure how accurate completed cells are on a table of yours.

    Observed cells are hidden, every method completes the table with the same cells hidden, and
    the results are scored against what was hidden: by column, by type and together, with standard
    errors and paired differences over repeats.
    """
    from glfm_cli.cli.evaluate_watch import EvaluationWatch
    from glfm_cli.evaluation import Design, evaluate

    console = options.console_of(ctx)
    outputs = {"--output": output, "--plot": plot, "--html": html}
    files = {"the types file": types, "the truth": truth, "the masked table": masked}
    tables = {
        "the table itself" if i == 0 else f"table {i + 1}": name for i, name in enumerate(data)
    }
    _check_files({**options.inputs_of(ctx), **tables, **files}, outputs, as_json)
    check_compare(data, compare, truth, masked)
    if compare:
        options.refuse(ctx, COMPARED, "completed tables are compared", "no model is fitted")
        evaluation = compared(data, truth, types, masked, reference, output)
        return _report(console, evaluation, names_of(data), outputs, as_json)
    written: dict[str, Any] = options.given(ctx, ("methods", "rates", "repeats", "mechanism"))
    for name, parse in (("methods", listed), ("rates", parse_rates)):
        if name in written:
            written[name] = parse(written[name])
    design = Design(
        **written,
        programs=parse_programs(program or []),
        method_timeout=method_timeout,
        reference=reference,
        jobs=jobs,
        output=None if output is None or str(output) == "-" else output,
        resume=resume,
    )
    with EvaluationWatch(console) as watch:
        evaluation = evaluate(
            data[0],
            types,
            sampling=options.sampling_of(ctx),
            matrix=options.matrix_of(ctx),
            design=design,
            observer=watch,
        )
    return _report(console, evaluation, names_of(data), outputs, as_json)


def _check_files(
    inputs: Mapping[str, str | Path | None], outputs: dict[str, Path | None], as_json: bool
) -> None:
    """Raise, before the work, what writing the outputs would raise after it."""
    from glfm_cli.errors import OutputError
    from glfm_cli.io.files import check_writable

    check_outputs(inputs, outputs, ["--json"] if as_json else [])
    for option, check in (("--plot", check_drawn), ("--html", check_writable)):
        path = outputs[option]
        if str(path) == "-":
            raise OutputError(f"{option} needs the name of a file", value="-")
        if path is not None:
            check(path)


def _report(
    console: Console,
    evaluation: Any,
    names: list[str],
    outputs: dict[str, Path | None],
    as_json: bool,
) -> int:
    """Print and draw the results, say how it went, and return the exit status."""
    from glfm_cli.cli.evaluate_text import summary_text
    from glfm_cli.io import write_table

    output = outputs["--output"]
    to_stdout = output is not None and str(output) == "-"
    if to_stdout:
        write_table(evaluation.to_table(), "-")
    if as_json:
        console.result_as_json(evaluation.to_dict())
    elif not to_stdout and evaluation.fits:
        console.result(summary_text(evaluation))
    if outputs["--plot"] is not None and evaluation.fits:
        from glfm_cli.plots import plot_evaluation

        plot_evaluation(evaluation, outputs["--plot"])
    if outputs["--html"] is not None and evaluation.fits:
        from glfm_cli.report import write_evaluation

        write_evaluation(evaluation, outputs["--html"], name=", ".join(names))
    for text in evaluation.warnings:
        console.warn(text)
    if evaluation.stopped == "interrupted":
        made = "the summary is of the fits that were made" if evaluation.fits else "no fit was made"
        console.warn(f"interrupted; {made}")
        if output is not None and not to_stdout:
            console.note("Results so far are saved; the same command with --resume continues.")
        else:
            console.note("No results are saved; with --output FILE they are, for --resume.")
        return ExitStatus.INTERRUPTED
    n_fits = len(evaluation.fits)
    console.note(f"{n_fits} fit{'' if n_fits == 1 else 's'}, {evaluation.seconds:.1f} s.")
    return ExitStatus.OK
