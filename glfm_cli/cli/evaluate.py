"""`glfm evaluate`: how far completed cells can be trusted, on a table of one's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glfm_cli.cli import options
from glfm_cli.cli.console import Console, ExitStatus

if TYPE_CHECKING:
    from glfm_cli.evaluation import Evaluation

EXAMPLE = (
    "glfm evaluate sample_data/airquality.csv --types sample_data/airquality.types.yaml "
    "--repeats 3 -o results.csv"
)

# Equal to those of `glfm_cli.evaluation`, which is not imported for `--help`; a test keeps it so.
METHODS = "glfm,sibp,mean"
RATES = "0.1,0.3,0.5"
REPEATS = 5
TIMEOUT = 600.0

Tables = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA",
        help="The table, with or without gaps: CSV or TSV (also .gz), Parquet or Arrow; - reads "
        "standard input. With --compare the completed tables, one or more.",
    ),
]
Types = Annotated[
    Path,
    typer.Option("--types", metavar="FILE", help="The types file: what each column means."),
]
Rates = Annotated[
    str,
    typer.Option("--rates", metavar="R,...", help="Shares of the observed cells to hide."),
]
Repeats = Annotated[
    int, typer.Option("--repeats", metavar="N", help="Sets of hidden cells at each rate.")
]
Methods = Annotated[
    str,
    typer.Option(
        "--methods",
        metavar="NAME,...",
        help="What completes the table: a model (glfm), sibp (all columns Gaussian), marginal (no "
        "features), mean (mean, median, mode), draw (a random observed value), knn and iterative "
        "(with scikit-learn), and those of --method.",
    ),
]
Program = Annotated[
    list[str] | None,
    typer.Option(
        "--method",
        metavar="NAME=COMMAND",
        help="Add another program, such as 'mice=Rscript mice.R {input} {types} {output} {seed}'; "
        "may be repeated.",
    ),
]
MethodTimeout = Annotated[
    float,
    typer.Option(
        "--method-timeout", metavar="SECONDS", help="End a program that takes longer for a table."
    ),
]
Mechanism = Annotated[
    str,
    typer.Option(
        "--mechanism",
        metavar="mcar|mar|mnar|observed",
        help="What being hidden depends on: nothing; other columns; the value itself; or it "
        "imitates the table's own gaps.",
    ),
]
Reference = Annotated[
    str | None,
    typer.Option(
        "--reference",
        metavar="NAME",
        help="The method that others are compared to; the first if left out.",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write every score to this table, which grows as results come.",
    ),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on with the results in --output; repeat none of them.")
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        min=1,
        metavar="N",
        help="Fits to make at the same time; as many as cores if left out.",
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        min=1,
        metavar="N",
        help="Chains of one fit to run at the same time; as many as cores for each job if left "
        "out.",
    ),
]
Compare = Annotated[
    bool,
    typer.Option(
        "--compare",
        help="Score completed tables made elsewhere, against --truth; nothing is hidden here.",
    ),
]
Truth = Annotated[
    Path | None,
    typer.Option("--truth", metavar="FILE", help="With --compare: the table with the true values."),
]
Masked = Annotated[
    Path | None,
    typer.Option(
        "--masked",
        metavar="FILE",
        help="With --compare: the table that was completed; only its gaps are scored.",
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print the summary as one JSON object instead of text.")
]


def run(
    ctx: typer.Context,
    data: Tables,
    types: Types,
    output: Output = None,
    resume: Resume = False,
    methods: Methods = METHODS,
    program: Program = None,
    method_timeout: MethodTimeout = TIMEOUT,
    rates: Rates = RATES,
    repeats: Repeats = REPEATS,
    mechanism: Mechanism = "mcar",
    reference: Reference = None,
    chains: options.Chains = options.CHAINS,
    warmup: options.Warmup = options.WARMUP,
    draws: options.Draws = options.DRAWS,
    thin: options.Thin = options.THIN,
    seed: options.Seed = 0,
    threads: Threads = None,
    time_limit: options.TimeLimit = None,
    settings: options.Settings = None,
    jobs: Jobs = None,
    as_json: Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Find out how far completed cells can be trusted.

    Observed cells are hidden, every method completes the table on the same hidden cells, and the
    answers are scored against what was hidden: by column, by type and together, with standard
    errors and paired differences over repeats.
    """
    from glfm_cli.cli.evaluate_watch import Watch
    from glfm_cli.cli.outputs import check_outputs
    from glfm_cli.evaluation import evaluate
    from glfm_cli.settings import parse_assignments

    console: Console = ctx.obj
    console.quiet = quiet
    table = _one_table(data)
    inputs: dict[str, str | Path | None] = {"the table itself": table, "the types file": types}
    check_outputs(inputs, {"--output": output}, ["--json"] if as_json else [])
    with Watch(console) as watch:
        evaluation = evaluate(
            table,
            types,
            methods=_listed(methods),
            programs=parse_programs(program or []),
            method_timeout=method_timeout,
            rates=parse_rates(rates),
            repeats=repeats,
            mechanism=mechanism,
            reference=reference,
            chains=chains,
            warmup=warmup,
            draws=draws,
            thin=thin,
            seed=seed,
            threads=threads,
            time_limit=time_limit,
            settings=parse_assignments(settings or []),
            jobs=jobs,
            output=None if output is None or str(output) == "-" else output,
            resume=resume,
            observer=watch,
        )
    return _report(console, evaluation, output, as_json)


def parse_rates(text: str) -> list[float]:
    """Return the numbers of a comma-separated list."""
    from glfm_cli.errors import UsageError

    rates = []
    for part in _listed(text):
        try:
            rates.append(float(part))
        except ValueError:
            raise UsageError(
                "--rates", value=f"'{part}'", expected="numbers between 0 and 1, such as 0.1,0.3"
            ) from None
    return rates


def parse_programs(items: list[str]) -> dict[str, str]:
    """Return the commands of `NAME=COMMAND` texts, by name."""
    from glfm_cli.errors import UsageError

    programs: dict[str, str] = {}
    for item in items:
        name, equals, command = item.partition("=")
        name = name.strip()
        if not equals or not name or any(c in name for c in " ,{}"):
            raise UsageError(
                f"--method {item}",
                expected="NAME=COMMAND",
                hint="For example 'mice=Rscript mice.R {input} {types} {output} {seed}'.",
            )
        if name in programs:
            raise UsageError(f"--method {name}", value="the name twice", expected="each name once")
        programs[name] = command.strip()
    return programs


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _one_table(data: list[str]) -> str:
    from glfm_cli.errors import UsageError

    if len(data) > 1:
        raise UsageError(
            "more than one table",
            value=f"'{data[1]}'",
            expected="one",
            hint="To score completed tables, add --compare and --truth.",
        )
    return data[0]


def _report(console: Console, evaluation: Evaluation, output: Path | None, as_json: bool) -> int:
    """Print the results, say how it went, and return the exit status."""
    from glfm_cli.cli.evaluate_text import summary_text
    from glfm_cli.io import write_table

    to_stdout = output is not None and str(output) == "-"
    if to_stdout:
        write_table(evaluation.to_table(), "-")
    if as_json:
        console.result(json.dumps(evaluation.to_dict(), allow_nan=False) + "\n")
    elif not to_stdout:
        console.result(summary_text(evaluation))
    for text in evaluation.warnings:
        console.warn(text)
    n_fits = len(evaluation.fits)
    console.note(f"{n_fits} fit{'' if n_fits == 1 else 's'}, {evaluation.seconds:.1f} s.")
    if evaluation.stopped == "interrupted":
        console.warn("interrupted; the summary is of the fits that were made")
        if output is not None and not to_stdout:
            console.note("Results so far are kept; the same command with --resume goes on.")
        return ExitStatus.INTERRUPTED
    return ExitStatus.OK
