"""`glfm impute` of a table of triplets: predictions of the cells of a matrix, in long form."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from glfm_cli.cli import options
from glfm_cli.cli.console import Console, ExitStatus
from glfm_cli.cli.report import counted
from glfm_cli.errors import UsageError

if TYPE_CHECKING:
    from glfm_cli.completion import Wanted
    from glfm_cli.matrices import MatrixTask
    from glfm_cli.schema import Schema

OF_MATRICES = (
    *("pairs", "all_pairs", "row_features", "row_types", "column_features", "column_types"),
    "missingness_features",
)
OF_TABLES = (
    *("cells", "probabilities", "plot", "record", "flags", "multiple", "draws_to", "traces_to"),
    *("save", "resume", "no_data"),
)


@dataclass(frozen=True)
class Sources:
    """What is read: the triplets, the pairs wanted, and tables of rows and columns."""

    data: str
    pairs: Path | None
    all_pairs: bool
    features: tuple[Path | None, Path | None]
    types: tuple[Path | None, Path | None]
    missingness: int | None


@dataclass(frozen=True)
class Asked:
    """The options of the command that have their place with a matrix."""

    estimate: Any
    interval: float
    output: Path | None
    workers: int
    time_limit: float | None
    strict: bool
    as_json: bool


def is_asked(ctx: typer.Context, schema: Schema | None) -> bool:
    """Return whether the types are those of triplets; raise UsageError for misplaced options."""
    from glfm_cli.encoding import is_triplets

    triplets = schema is not None and is_triplets(schema)
    of_others = [name for name in (OF_TABLES if triplets else OF_MATRICES) if name in ctx.params]
    for name in options.given(ctx, of_others):
        option = f"--{name.replace('_', '-')}"
        if triplets:
            raise UsageError(
                f"{option} is about tables, and the types file describes triplets",
                hint="Predictions of a matrix come in long form, one row a pair.",
            )
        raise UsageError(
            f"{option} is about triplets, and the types file describes a table",
            hint="Triplets have columns with the roles row, column and value.",
        )
    return triplets


def complete(
    console: Console,
    sources: Sources,
    schema: Schema,
    wanted: Wanted,
    asked: Asked,
    dry_run: bool,
) -> int:
    """Predict the cells and return the exit status."""
    from glfm_cli.cli.progress import Progress
    from glfm_cli.io import check_target, read_table, write_parts
    from glfm_cli.matrices import MatrixCompletion

    if asked.estimate == "draw":
        raise UsageError(
            "--estimate draw is about tables, and the types file describes triplets",
            hint="Take auto, mean, median or mode.",
        )
    task = plan(sources, schema, vars(wanted))
    listed = None if sources.pairs is None else read_table(sources.pairs)
    which = task.pairs(listed, sources.all_pairs, file=str(sources.pairs))
    target = asked.output or "-"
    check_target(target, task.blank())
    if dry_run:
        _show(console, task, asked.as_json)
        return ExitStatus.OK
    with Progress(console, task.plan, 0) as progress:
        run = task.sample(threads=asked.workers, time_limit=asked.time_limit, observer=progress)
    completion = MatrixCompletion.of(task, run, asked.interval)
    write_parts(completion.parts(which, asked.estimate), target)
    return _report(console, completion, asked)


def plan(sources: Sources, schema: Schema, wanted: dict[str, Any]) -> MatrixTask:
    """Read the triplets and what is known of rows and columns; everything is checked.

    `wanted` are the options that fix a run's draws, as `plan_matrix` takes them.
    """
    from glfm_cli.io import read_table
    from glfm_cli.matrices import plan_matrix

    (rows, row_file), (columns, column_file) = _sides(sources)
    return plan_matrix(
        read_table(sources.data),
        schema,
        **wanted,
        row_features=rows,
        column_features=columns,
        missingness_features=sources.missingness,
        file="standard input" if sources.data == "-" else sources.data,
        feature_files=(row_file, column_file),
    )


def _sides(sources: Sources) -> list[tuple[Any, str | None]]:
    """Return (table, schema) of what is known of rows and of columns, with its file's name."""
    from glfm_cli.completion import as_schema
    from glfm_cli.io import read_table

    found: list[tuple[Any, str | None]] = []
    for side, features, types in zip(
        ("row", "column"), sources.features, sources.types, strict=True
    ):
        if (features is None) != (types is None):
            there, absent = ("features", "types") if types is None else ("types", "features")
            raise UsageError(
                f"--{side}-{there} needs --{side}-{absent} FILE",
                hint="The one is a table, the other says what its columns mean.",
            )
        if features is None or types is None:
            found.append((None, None))
        else:
            found.append(((read_table(features), as_schema(types)), str(features)))
    return found


def _show(console: Console, task: Any, as_json: bool) -> None:
    """Say what would be done."""
    n_rows, n_columns, n_cells = len(task.rows), len(task.columns), task.triplets.row.size
    if as_json:
        said = {"rows": n_rows, "columns": n_columns, "observed": n_cells}
        said |= {"chains": task.plan.chains, "sweeps": task.plan.sweeps}
        console.result(json.dumps(said) + "\n")
        return
    for line in (
        f"{counted(n_rows, 'row')}, {counted(n_columns, 'column')}, "
        f"{counted(n_cells, 'observed cell')}",
        f"{counted(task.plan.chains, 'chain')} of {counted(task.plan.sweeps, 'sweep')}, "
        f"{counted(task.plan.draws, 'draw')} kept from each",
    ):
        console.result(line + "\n")


def _report(console: Console, completion: Any, asked: Asked) -> int:
    """Say how it went, and return the exit status."""
    said = completion.to_dict()
    if asked.as_json:
        console.result(json.dumps(said, allow_nan=False) + "\n")
    for text in completion.run.warnings:
        console.warn(text)
    stopped, diagnostics = completion.run.stopped, completion.diagnostics
    if stopped:
        kept = counted(completion.posterior.n_draws, "draw")
        console.warn(f"sampling ended early ({stopped}); the answer uses {kept}")
    console.note(
        f"{counted(said['observed'], 'cell')} of {said['rows']} x {said['columns']}, "
        f"rank {said['rank']:.1f}, {completion.run.seconds:.1f} s. {diagnostics.summary()}"
    )
    if stopped == "interrupted":
        return ExitStatus.INTERRUPTED
    if asked.strict and not diagnostics.converged():
        console.warn(f"--strict: {diagnostics.summary()}")
        return ExitStatus.NOT_CONVERGED
    return ExitStatus.OK
