"""`glfm impute` of a table of triplets: predictions of the cells of a matrix, in long form."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from glfm_cli.cli import options
from glfm_cli.cli.console import Console, ExitStatus
from glfm_cli.cli.report import counted, ending
from glfm_cli.errors import UsageError

if TYPE_CHECKING:
    from glfm_cli.completion import SamplingOptions, SaveOptions
    from glfm_cli.completion.matrix import Features, MatrixTask
    from glfm_cli.schema import Schema
    from glfm_cli.store import Fit

OF_MATRICES = (
    *("pairs", "all_pairs", "row_features", "row_types", "column_features", "column_types"),
    "missingness_features",
)
OF_TABLES = (
    *("cells", "probabilities", "plot", "record", "flags", "multiple", "draws_to", "traces_to"),
)


@dataclass(frozen=True)
class Sources:
    """What is read: the triplets, the pairs wanted, and tables of rows and columns."""

    data: str
    pairs: Path | None
    all_pairs: bool
    tables: tuple[Path | None, Path | None]
    types: tuple[Path | None, Path | None]
    missingness: int | None

    def features(self) -> tuple[Features, Features]:
        """Return the tables of what is known of rows and of columns."""
        from glfm_cli.completion import as_schema
        from glfm_cli.completion.matrix import FeatureTable
        from glfm_cli.io import read_table

        found: list[Features] = []
        for path, types in zip(self.tables, self.types, strict=True):
            schema = None if types is None else as_schema(types)
            found.append(
                None if path is None else FeatureTable(read_table(path), schema, str(path))
            )
        return found[0], found[1]

    @property
    def file(self) -> str:
        """The name of the triplets in messages."""
        return "standard input" if self.data == "-" else self.data

    def check(self, types_are_known: bool) -> None:
        """Raise UsageError when features lack their types, or the other way round."""
        for side, path, types in zip(("row", "column"), self.tables, self.types, strict=True):
            if (path is None) == (types is None) or (types is None and types_are_known):
                continue
            there, absent = ("features", "types") if types is None else ("types", "features")
            raise UsageError(
                f"--{side}-{there} needs --{side}-{absent} FILE",
                hint="The one is a table, the other says what its columns mean.",
            )


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
    dry_run: bool


def dispatch(ctx: typer.Context, schema: Schema | None, kept: Path | None = None) -> bool:
    """Return whether the types are those of triplets; raise UsageError for misplaced options.

    Without types those of the fit in the folder `kept` count.
    """
    from glfm_cli.encoding import is_triplets
    from glfm_cli.store import check_folder, read_header

    if schema is None and kept is not None:
        check_folder(kept)
        triplets = read_header(kept).matrix is not None
    else:
        triplets = schema is not None and is_triplets(schema)
    what = "the types file describes" if kept is None or schema is not None else "the fit is of"
    of_others = [name for name in (OF_TABLES if triplets else OF_MATRICES) if name in ctx.params]
    for name in options.given(ctx, of_others):
        option = f"--{name.replace('_', '-')}"
        if triplets:
            raise UsageError(
                f"{option} is about tables, and {what} triplets",
                hint="Predictions of a matrix come in long form, one row a pair.",
            )
        raise UsageError(
            f"{option} is about triplets, and {what} a table",
            hint="Triplets have columns with the roles row, column and value.",
        )
    return triplets


def complete(
    console: Console,
    sources: Sources,
    schema: Schema | None,
    requested: SamplingOptions,
    keeping: SaveOptions,
    asked: Asked,
) -> int:
    """Predict the cells, sampling them anew, and return the exit status."""
    from glfm_cli.cli.saved import Kept
    from glfm_cli.completion.matrix import MatrixCompletion, plan_matrix_session
    from glfm_cli.io import check_target, read_table, write_parts

    _check(asked)
    sources.check(types_are_known=keeping.resume is not None)
    task, session = plan_matrix_session(
        read_table(sources.data),
        schema,
        requested,
        keeping,
        sources.features(),
        missingness_features=sources.missingness,
        file=sources.file,
    )
    listed = None if sources.pairs is None else read_table(sources.pairs)
    which = task.pairs(listed, sources.all_pairs, file=str(sources.pairs))
    target = asked.output or "-"
    check_target(target, task.blank())
    if asked.dry_run:
        _show(console, task, asked.as_json)
        return ExitStatus.OK
    with Kept(console, session) as kept:
        run = kept.sample(asked.workers, asked.time_limit, task="predicting the pairs from")
        completion = MatrixCompletion.of(task, run, asked.interval)
        write_parts(completion.parts(which, asked.estimate), target)
        return _report(console, completion, asked)


def complete_with_fit(
    console: Console, sources: Sources, fit: Fit, seed: int | None, unseen: Any, asked: Asked
) -> int:
    """Predict cells with a fit that was made before, and return the exit status."""
    from glfm_cli.completion.matrix import MatrixCompletion, with_fit
    from glfm_cli.io import check_target, read_table, write_parts

    _check(asked)
    sources.check(types_are_known=True)
    table, features = read_table(sources.data), sources.features()
    fitted = with_fit(fit, table, features, unseen=unseen, file=sources.file)
    task = fitted.task
    listed = None if sources.pairs is None else read_table(sources.pairs)
    which = task.pairs(listed, sources.all_pairs, file=str(sources.pairs))
    target = asked.output or "-"
    check_target(target, task.blank())
    if asked.dry_run:
        _show(console, task, asked.as_json)
        return ExitStatus.OK
    run = fitted.run(seed=fit.seed if seed is None else seed, threads=asked.workers)
    completion = MatrixCompletion.of(task, run, asked.interval)
    write_parts(completion.parts(which, asked.estimate), target)
    return _report(console, completion, asked)


def _check(asked: Asked) -> None:
    if asked.estimate == "draw":
        raise UsageError(
            "--estimate draw is about tables, and the types file describes triplets",
            hint="Take auto, mean, median or mode.",
        )


def plan(sources: Sources, schema: Schema, requested: dict[str, Any]) -> MatrixTask:
    """Read the triplets and what is known of rows and columns; everything is checked.

    `wanted` are the options that fix a run's draws, as `plan_matrix` takes them.
    """
    from glfm_cli.completion.matrix import plan_matrix
    from glfm_cli.encoding import encode_triplets
    from glfm_cli.io import read_table

    sources.check(types_are_known=False)
    rows, columns = sources.features()
    return plan_matrix(
        encode_triplets(read_table(sources.data), schema, file=sources.file),
        **requested,
        row_features=rows,
        column_features=columns,
        missingness_features=sources.missingness,
    )


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
    diagnostics = completion.diagnostics
    return ending(
        console,
        warnings=completion.run.warnings,
        stopped=completion.run.stopped,
        draws=completion.posterior.n_draws,
        note=f"{counted(said['observed'], 'cell')} of {said['rows']} x {said['columns']}, "
        f"rank {said['rank']:.1f}, {completion.run.seconds:.1f} s. {diagnostics.summary()}",
        unconverged=diagnostics.summary() if asked.strict and not diagnostics.converged() else None,
    )
