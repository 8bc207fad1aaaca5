"""`glfm explore` with the low-rank model: rank, components and covariates."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import typer

from glfm_cli.cli import matrix, options
from glfm_cli.cli.console import Console
from glfm_cli.cli.report import counted, ending

if TYPE_CHECKING:
    from rich.console import Console as RichConsole

    from glfm_cli.exploration import MatrixExploration, MatrixJob
    from glfm_cli.inference.sampling import Run

MODEL = "bsvd"
OF_COMPLETION = (*("save", "resume", "no_data", "checkpoint", "record", "traces_to", "dry_run"),)
SAMPLING = (
    *("types", "model", "chains", "warmup", "draws", "thin", "seed", "threads", "time_limit"),
    *("settings", "bias"),
)
OF_FEATURES = ("sample", "columns", "surprising", "similar", "dependence", "html", "plot")
WIDEST = 100
MOST_EXPLAINED = 40  # columns listed on the terminal


@dataclass(frozen=True)
class Asked:
    """The options of the command that have their place here."""

    top: int
    threads: int | None
    time_limit: float | None
    output: Path | None
    file_format: str
    strict: bool
    as_json: bool


def dispatch(ctx: typer.Context) -> bool:
    """Return whether the low-rank model is to be explored; raise for misplaced options."""
    from glfm_cli.completion import as_schema
    from glfm_cli.encoding import is_triplets
    from glfm_cli.exploration import is_saved_fit
    from glfm_cli.store import check_folder, read_header

    data, types = ctx.params["data"], ctx.params["types"]
    if data != "-" and is_saved_fit(data):
        check_folder(Path(data))
        return read_header(Path(data)).model == MODEL
    if types is not None and is_triplets(as_schema(types)):
        return True
    matrix.dispatch(ctx, None)
    return bool(ctx.params["model"] == MODEL)


def run(ctx: typer.Context, sources: matrix.Sources, asked: Asked) -> int:
    """Sample unless DATA is a fit, show what was found, and return the exit status."""
    from glfm_cli.exploration import describe_matrix, fit_job, is_saved_fit, write_files

    console: Console = ctx.obj
    _check_options(ctx)
    if sources.data != "-" and is_saved_fit(sources.data):
        _check_nothing_to_sample(ctx)
        done, job = fit_job(sources.data, asked.top)
    else:
        job = _job(ctx, sources, asked.top)
        done = _sample(console, job, asked)
    found = describe_matrix(done, job)
    if asked.output is not None:
        write_files(found, asked.output, asked.file_format)
    if asked.as_json:
        console.result(json.dumps(found.to_dict(), allow_nan=False, default=str) + "\n")
    else:
        show(found, console.stdout)
        console.stdout.flush()
    return _report(console, found, asked.strict)


def _check_options(ctx: typer.Context) -> None:
    """Raise UsageError for options that have no place here."""
    from glfm_cli.errors import UsageError

    for name in options.given(ctx, OF_FEATURES):
        raise UsageError(
            f"--{name} is about binary features, which the low-rank model has none of",
            hint="Leave it out, or explore with --model glfm.",
        )
    for name in options.given(ctx, OF_COMPLETION):
        raise UsageError(
            f"--{name.replace('_', '-')} does not go with an exploration by the low-rank model",
            hint="`glfm impute --model bsvd` has it; a table's fit that it saves can be explored.",
        )


def _check_nothing_to_sample(ctx: typer.Context) -> None:
    """Raise UsageError when options of sampling come with a saved fit."""
    from glfm_cli.exploration import check_nothing_to_sample

    given = options.given(ctx, (*SAMPLING, *matrix.OF_MATRICES[2:]))
    check_nothing_to_sample(given)


def _job(ctx: typer.Context, sources: matrix.Sources, top: int) -> MatrixJob:
    from glfm_cli.completion import as_schema
    from glfm_cli.encoding import is_triplets
    from glfm_cli.errors import UsageError
    from glfm_cli.exploration import matrix_job, table_job
    from glfm_cli.io import read_table
    from glfm_cli.settings import parse_assignments

    types = ctx.params["types"]
    if types is None:
        raise UsageError(
            "--types is missing: a table needs to be told what its columns mean",
            hint=f"`glfm types {sources.data} -o types.yaml` writes a first types file.",
        )
    schema = as_schema(types)
    requested = options.given(ctx, ("model", "chains", "warmup", "draws", "thin", "seed"))
    settings: dict[str, object] = dict(parse_assignments(ctx.params["settings"] or []))
    if ctx.params["bias"] is not None:
        settings["bias"] = ctx.params["bias"]
    requested["settings"] = settings
    file = "standard input" if sources.data == "-" else sources.data
    if is_triplets(schema):
        return matrix_job(matrix.plan(sources, schema, requested), top, file=file)
    return table_job(read_table(sources.data), schema, requested, top, file=file)


def _sample(console: Console, job: MatrixJob, asked: Asked) -> Run:
    from glfm_cli.cli.progress import Progress
    from glfm_cli.inference.executors import available_threads

    workers = asked.threads or available_threads()
    with Progress(console, job.plan) as progress:
        return job.sample(threads=workers, time_limit=asked.time_limit, observer=progress)


def show(found: MatrixExploration, stdout: TextIO) -> None:
    """Print what was found; without blanks at the ends of lines where it goes to a file."""
    from rich.console import Console as RichConsole

    width = min(RichConsole(file=stdout).width, WIDEST)
    page = stdout if stdout.isatty() else io.StringIO()
    console = RichConsole(file=page, highlight=False, width=width)
    said = found.to_dict()
    columns = "column" if found.variance else "latent column"
    for line in (
        f"{counted(said['rows'], 'row')}, {counted(said['columns'], columns)}, "
        f"{counted(said['chains'], 'chain')} with {counted(said['draws'], 'draw')} in all, "
        f"{found.seconds:.1f} s.",
        f"Rank {said['rank']['mean']:.1f} (95 %: {said['rank']['lower']} to "
        f"{said['rank']['upper']}).",
        found.diagnostics.summary(),
    ):
        console.print(line, markup=False)
    _components(console, found)
    _shares(console, found)
    _effects(console, found)
    if isinstance(page, io.StringIO):
        stdout.writelines(line.rstrip() + "\n" for line in page.getvalue().splitlines())


def _components(console: RichConsole, found: MatrixExploration) -> None:
    from rich.text import Text

    from glfm_cli.exploration.words import percent

    if not found.components:
        console.print("\nNo component: rows and columns have nothing in common.", markup=False)
        return
    table = _table(console, "Components of the completed matrix")
    for name in ("", "size", "share"):
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    table.add_column("columns", ratio=3)
    table.add_column("rows", ratio=2)
    for c in found.components:
        table.add_row(
            c.name,
            f"{c.size:.2f} ±{c.size_sd:.2f}",
            percent(c.share),
            Text(_signed(found.leading(c, "column"))),
            Text(_signed(found.leading(c, "row"))),
        )
    console.print(table)


def _signed(leading: list[tuple[str, float, float]]) -> str:
    """Return names behind their signs, those whose sign is not sure in brackets."""
    texts = [f"{'+' if score > 0 else '−'}{name}" for name, score, _ in leading]
    return ", ".join(
        text if abs(score) > 2 * sd else f"({text})"
        for text, (_, score, sd) in zip(texts, leading, strict=True)
    )


def _shares(console: RichConsole, found: MatrixExploration) -> None:
    from rich.text import Text

    from glfm_cli.exploration.words import percent

    said = found.to_dict()
    if found.variance:
        table = _table(console, "Shares of the variance")
        rows = [(part["part"], part) for part in said["variance"]]
    else:
        table = _table(console, "What the components explain of each column's variance")
        rows = sorted(
            ((part["column"], part) for part in said["explained"]), key=lambda one: -one[1]["share"]
        )
    for name in ("", "share", "95 %"):
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    for name, part in rows[:MOST_EXPLAINED]:
        low, high = percent(part["lower"]), percent(part["upper"])
        table.add_row(Text(name), percent(part["share"]), f"{low} to {high}")
    console.print(table)
    if len(rows) > MOST_EXPLAINED:
        console.print(f"and {len(rows) - MOST_EXPLAINED} more columns.", markup=False)


def _effects(console: RichConsole, found: MatrixExploration) -> None:
    from rich.text import Text

    if not found.effects:
        return
    table = _table(
        console, "Covariates: what one standard deviation more does, on the latent scale"
    )
    table.add_column("of", no_wrap=True)
    table.add_column("covariate")
    for name in ("mean", "95 %", "spread"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in sorted(found.effects, key=lambda e: (e.side, -abs(e.mean.mean) - e.spread.mean)):
        table.add_row(
            f"{one.side}s",
            Text(one.name),
            f"{one.mean.mean:+.2f}",
            f"{one.mean.lower:+.2f} to {one.mean.upper:+.2f}",
            f"{one.spread.mean:.2f}",
        )
    console.print(table)


def _table(console: RichConsole, title: str) -> Any:
    """Print a title, and return a table to fill."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    console.print()
    console.print(Text(title, style="bold"))
    return Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))


def _report(console: Console, found: MatrixExploration, strict: bool) -> int:
    """Say what the user should know, and return the exit status."""
    diagnostics = found.diagnostics
    return ending(
        console,
        warnings=found.notes,
        stopped=found.stopped,
        draws=found.posterior.n_draws,
        unconverged=diagnostics.summary() if strict and not diagnostics.converged() else None,
    )
