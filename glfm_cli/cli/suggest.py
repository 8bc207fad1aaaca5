"""`glfm suggest`: find out which unobserved cells to ask for next."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glfm_cli.cli import matrix, options
from glfm_cli.cli.console import Console
from glfm_cli.cli.report import counted, ending

if TYPE_CHECKING:
    from glfm_cli.acquisition import Suggestion
    from glfm_cli.acquisition.suggest import Job, Wish
    from glfm_cli.inference.sampling import Run

EXAMPLE = "glfm suggest sample_data/cbpp.csv --types sample_data/cbpp.types.yaml --count 5"
COUNT = 10

Count = Annotated[int, typer.Option("--count", min=1, metavar="N", help="How many cells.")]
RuleName = Annotated[
    str,
    typer.Option(
        "--rule",
        metavar="joint|uncertainty",
        help="joint: one by one the cell that tells most, given those before it. uncertainty: "
        "those that tell most each by itself.",
    ),
]
Cost = Annotated[
    Path | None,
    typer.Option(
        "--cost",
        metavar="FILE",
        help="What a cell costs: a table with a column 'cost' beside 'column', or, of triplets, "
        "beside the ids of rows, of columns or of both. Cells are then ranked by what they tell "
        "per unit of cost.",
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        metavar="NAME[,NAME...]",
        help="Of a table: the columns to choose from; all if left out.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]

# Options that a saved fit leaves without a meaning.
SAMPLING = ("types", "model", "chains", "warmup", "draws", "thin", "seed", "threads")
UNSAMPLED = (*SAMPLING, "time_limit", "settings", *matrix.OF_MATRICES)


def run(
    ctx: typer.Context,
    data: options.Data,
    types: options.Types = None,
    output: options.Output = None,
    count: Count = COUNT,
    rule: RuleName = "joint",
    cost: Cost = None,
    columns: Columns = None,
    model: options.Model = "glfm",
    chains: options.ChainsBySize = None,
    warmup: options.Warmup = options.WARMUP,
    draws: options.Draws = options.DRAWS,
    thin: options.Thin = options.THIN,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    time_limit: options.TimeLimit = None,
    settings: options.Settings = None,
    pairs: options.Pairs = None,
    all_pairs: options.AllPairs = False,
    row_features: options.RowFeatures = None,
    row_types: options.RowTypes = None,
    column_features: options.ColumnFeatures = None,
    column_types: options.ColumnTypes = None,
    missingness_features: options.MissingnessFeatures = None,
    strict: options.Strict = False,
    as_json: Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Find out which unobserved cells to ask for next.

    Of a table, of triplets, or of a saved fit (DATA is then its folder): the gaps whose values
    would tell most of all the others, in the order in which to ask for them, with what each
    adds to those before it.
    """
    from glfm_cli.acquisition import check_wish, finish, with_fit
    from glfm_cli.cli.outputs import check_outputs
    from glfm_cli.completion import as_schema, check_request
    from glfm_cli.exploration import is_saved_fit
    from glfm_cli.io import check_writable, read_table

    console: Console = ctx.obj
    console.quiet = quiet
    check_request("auto", 0.5, threads, time_limit)
    wish = check_wish(count, rule, _names(columns))
    inputs = {"the table itself": data, "the types file": types, "--cost": cost, "--pairs": pairs}
    inputs |= {"--row-features": row_features, "--column-features": column_features}
    check_outputs(inputs, {"--output": output})
    if output is not None and str(output) != "-":
        check_writable(output)
    price = None if cost is None else read_table(cost)
    if data != "-" and is_saved_fit(data):
        _check_nothing_to_sample(ctx)
        found = finish(*with_fit(data, wish, price, cost_file=str(cost)))
        return _report(console, found, output, strict, as_json)
    schema = None if types is None else as_schema(types)
    said = options.given(ctx, ("model", "chains", "warmup", "draws", "thin", "seed"))
    if matrix.dispatch(ctx, schema):
        sources = matrix.Sources(
            data,
            pairs,
            all_pairs,
            (row_features, column_features),
            (row_types, column_types),
            missingness_features,
        )
        job = _matrix_job(sources, schema, wish, (said, settings), (price, cost))
    else:
        job = _table_job(data, schema, wish, (said, settings), (price, cost))
    done = _sample(console, job, threads, time_limit)
    return _report(console, finish(done, job), output, strict, as_json)


def _names(columns: list[str] | None) -> list[str] | None:
    """Return the names that options list, parted by commas."""
    if columns is None:
        return None
    return [name.strip() for text in columns for name in text.split(",") if name.strip()]


def _check_nothing_to_sample(ctx: typer.Context) -> None:
    """Raise UsageError when options of sampling come with a saved fit."""
    from glfm_cli.errors import UsageError

    for name in options.given(ctx, UNSAMPLED):
        option = "--set" if name == "settings" else f"--{name.replace('_', '-')}"
        raise UsageError(
            f"{option} says how to sample, but a saved fit has been sampled",
            hint="Leave it out, or give the table itself.",
        )


def _table_job(
    data: str,
    schema: Any,
    wish: Wish,
    said: tuple[dict[str, Any], list[str] | None],
    costs: tuple[Any, Path | None],
) -> Job:
    from glfm_cli.acquisition import plan_table_cells
    from glfm_cli.errors import UsageError
    from glfm_cli.io import read_table
    from glfm_cli.settings import parse_assignments

    if schema is None:
        raise UsageError(
            "--types is missing: a table needs to be told what its columns mean",
            hint=f"`glfm types {data} -o types.yaml` writes a first types file.",
        )
    asked = {**said[0], "settings": parse_assignments(said[1] or [])}
    table = read_table(data)
    file = "standard input" if data == "-" else data
    return plan_table_cells(
        table, schema, wish, asked, costs[0], file=file, cost_file=str(costs[1])
    )


def _matrix_job(
    sources: matrix.Sources,
    schema: Any,
    wish: Wish,
    said: tuple[dict[str, Any], list[str] | None],
    costs: tuple[Any, Path | None],
) -> Job:
    from glfm_cli.acquisition import plan_matrix_cells
    from glfm_cli.io import read_table
    from glfm_cli.settings import parse_assignments

    file = "standard input" if sources.data == "-" else sources.data
    task = matrix.plan(sources, schema, {**said[0], "settings": parse_assignments(said[1] or [])})
    listed = None if sources.pairs is None else read_table(sources.pairs)
    pairs_file = str(sources.pairs)
    which = task.pairs(listed, sources.all_pairs, file=pairs_file)
    return plan_matrix_cells(
        task,
        which,
        wish,
        costs[0],
        file=file,
        pairs_file=pairs_file,
        cost_file=str(costs[1]),
    )


def _sample(console: Console, job: Job, threads: int | None, time_limit: float | None) -> Run:
    from glfm_cli.cli.progress import Progress
    from glfm_cli.inference.executors import available_threads

    with Progress(console, job.plan) as progress:
        return job.sample(
            threads=threads or available_threads(), time_limit=time_limit, observer=progress
        )


def _report(
    console: Console, found: Suggestion, output: Path | None, strict: bool, as_json: bool
) -> int:
    """Write the cells, say what the user should know, and return the exit status."""
    from glfm_cli.io import atomic_write, write_table

    if as_json:
        text = json.dumps(found.to_dict(), allow_nan=False, default=str) + "\n"
        if output is None or str(output) == "-":
            console.result(text)
        else:
            with atomic_write(output, "w") as file:
                file.write(text)
    else:
        write_table(found.to_table(), output or "-")
    diagnostics = found.diagnostics
    return ending(
        console,
        warnings=found.notes,
        stopped=found.stopped,
        draws=found.posterior.n_draws,
        note=f"{counted(found.cells.num_rows, 'cell')} of {found.n_candidates} to choose from, "
        f"{found.seconds:.1f} s. {diagnostics.summary()}",
        unconverged=diagnostics.summary() if strict and not diagnostics.converged() else None,
    )
