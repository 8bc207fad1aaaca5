"""Arguments and options that commands share: one name, one meaning, one help text.

A command takes whole groups of them: `@takes(SAMPLING, SAVING)` adds their options, which its
function finds in `ctx.params`; `sampling_of(ctx)` and its like make of them what the library takes.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from glfm_cli.options import (
    CHAINS,
    CHECKPOINT,
    DRAWS,
    SEED,
    THIN,
    WARMUP,
    MatrixOptions,
    Sampling,
    Saving,
)

if TYPE_CHECKING:
    from glfm_cli.cli.console import Console

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="The table: CSV, Excel, SPSS, Parquet and others, by suffix; - reads standard input.",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write the result to this file (replaced only on success), not to standard output.",
    ),
]
Types = Annotated[
    Path | None,
    typer.Option(
        "--types",
        metavar="FILE",
        help="The types file: what each column means (`glfm types` writes a first one); - is "
        "standard input, auto guesses.",
    ),
]
Fit = Annotated[
    Path,
    typer.Argument(metavar="DIR.glfm", help="The folder of a saved fit (`glfm impute --save`)."),
]
Save = Annotated[
    Path | None,
    typer.Option(
        "--save",
        metavar="DIR.glfm",
        help="Keep the fit in this new folder: to go on with it, apply it, or look into it.",
    ),
]
Resume = Annotated[
    Path | None,
    typer.Option(
        "--resume",
        metavar="DIR.glfm",
        help="Go on with the run kept in this folder: one cut short, or for more --chains or "
        "--draws.",
    ),
]
WithFit = Annotated[
    Path | None,
    typer.Option(
        "--fit",
        metavar="DIR.glfm",
        help="Complete the table with the fit kept in this folder; nothing is fitted anew.",
    ),
]
Unseen = Annotated[
    str,
    typer.Option(
        "--unseen",
        metavar="error|missing",
        help="With --fit: what a level is that the fit does not know; missing leaves it there.",
    ),
]
NoData = Annotated[
    bool, typer.Option("--no-data", help="Leave the (encoded) table out of the folder of --save.")
]
Checkpoint = Annotated[
    float,
    typer.Option(
        "--checkpoint",
        min=0,
        metavar="SECONDS",
        help="Time between two saved states of a chain; more where saving takes long.",
    ),
]
Record = Annotated[
    Path | None,
    typer.Option(
        "--record",
        metavar="FILE",
        help="Also write a run record (JSON): versions, options, seed, hashes, diagnostics.",
    ),
]
TracesTo = Annotated[
    Path | None,
    typer.Option(
        "--traces-to",
        metavar="FILE",
        help="Also write the traces of the chains as NetCDF (.nc), for ArviZ.",
    ),
]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="End with status 3 when the answer is not precise enough."),
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Check everything and say what would be done; write nothing."),
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="Say nothing but warnings and errors."),
]
Model = Annotated[str, typer.Option("--model", metavar="NAME", help="The latent model.")]
Seed = Annotated[
    int,
    typer.Option("--seed", min=0, metavar="N", help="The same seed gives the same result."),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads", min=1, metavar="N", help="Threads to use; as many as cores if left out."
    ),
]
Chains = Annotated[
    int, typer.Option("--chains", min=1, metavar="N", help="Independent chains to run.")
]
ChainsBySize = Annotated[
    int | None,
    typer.Option(
        "--chains",
        min=1,
        metavar="N",
        help="Independent chains to run; if left out 8, of a table with up to 40,000 cells 16.",
    ),
]
Warmup = Annotated[
    int, typer.Option("--warmup", min=0, metavar="N", help="Sweeps of each chain to discard first.")
]
Draws = Annotated[int, typer.Option("--draws", min=1, metavar="N", help="Draws to keep per chain.")]
Thin = Annotated[
    int, typer.Option("--thin", min=1, metavar="N", help="Sweeps from one kept draw to the next.")
]
TimeLimit = Annotated[
    float | None,
    typer.Option(
        "--time-limit",
        metavar="SECONDS",
        help="Stop sampling after this time and answer from the draws so far.",
    ),
]
Precise = Annotated[
    float | None,
    typer.Option(
        "--precision",
        metavar="X",
        help="Run more chains until another seed would move half of the estimates by less than X "
        "of their cell's standard deviation.",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Set a field of the model's configuration; may be repeated.",
    ),
]
Pairs = Annotated[
    Path | None,
    typer.Option(
        "--pairs",
        metavar="FILE",
        help="Of triplets: only the pairs of row and column listed in this table, not all that "
        "have no value.",
    ),
]
AllPairs = Annotated[
    bool,
    typer.Option("--all-pairs", help="Of triplets: more than ten million pairs, too."),
]
Recommend = Annotated[
    int | None,
    typer.Option(
        "--recommend",
        min=1,
        metavar="N",
        help="Of counts: the N columns with the largest rates of each row that has none of them.",
    ),
]
RecommendRows = Annotated[
    Path | None,
    typer.Option("--rows", metavar="FILE", help="Of --recommend: only the rows of this table."),
]
RowFeatures = Annotated[
    Path | None,
    typer.Option(
        "--row-features", metavar="FILE", help="Of triplets: a table of what is known of the rows."
    ),
]
RowTypes = Annotated[
    Path | None,
    typer.Option("--row-types", metavar="FILE", help="The types file of --row-features."),
]
ColumnFeatures = Annotated[
    Path | None,
    typer.Option(
        "--column-features",
        metavar="FILE",
        help="Of triplets: a table of what is known of the columns.",
    ),
]
ColumnTypes = Annotated[
    Path | None,
    typer.Option("--column-types", metavar="FILE", help="The types file of --column-features."),
]
MissingnessFeatures = Annotated[
    int | None,
    typer.Option(
        "--missingness-features",
        min=1,
        metavar="N",
        help="Of triplets: let N leading singular vectors of the pattern of observed cells be "
        "covariates of rows and columns.",
    ),
]


class Shared(NamedTuple):
    """An option that several commands have: its type and help, and its default."""

    option: Any
    default: Any


LENGTH = {
    "chains": Shared(Chains, CHAINS),
    "warmup": Shared(Warmup, WARMUP),
    "draws": Shared(Draws, DRAWS),
    "thin": Shared(Thin, THIN),
}
SAMPLING = {
    "model": Shared(Model, "glfm"),
    **LENGTH,
    "seed": Shared(Seed, SEED),
    "threads": Shared(Threads, None),
    "time_limit": Shared(TimeLimit, None),
    "settings": Shared(Settings, None),
}
FITTING = {
    "chains": LENGTH["chains"],
    **{name: SAMPLING[name] for name in ("seed", "threads", "time_limit", "settings")},
    "save": Shared(Save, None),
    "checkpoint": Shared(Checkpoint, CHECKPOINT),
    "strict": Shared(Strict, False),
    "quiet": Shared(Quiet, False),
}
BY_SIZE = {**SAMPLING, "chains": Shared(ChainsBySize, None)}
PRECISION = {"precision": Shared(Precise, None)}
SAVING = {
    "save": Shared(Save, None),
    "resume": Shared(Resume, None),
    "no_data": Shared(NoData, False),
    "checkpoint": Shared(Checkpoint, CHECKPOINT),
}
FEATURES = {
    "row_features": Shared(RowFeatures, None),
    "row_types": Shared(RowTypes, None),
    "column_features": Shared(ColumnFeatures, None),
    "column_types": Shared(ColumnTypes, None),
    "missingness_features": Shared(MissingnessFeatures, None),
}
RECOMMEND = {"recommend": Shared(Recommend, None), "rows": Shared(RecommendRows, None)}
PAIRS = {"pairs": Shared(Pairs, None), "all_pairs": Shared(AllPairs, False)}
ENDING = {
    "strict": Shared(Strict, False),
    "dry_run": Shared(DryRun, False),
    "quiet": Shared(Quiet, False),
}


def takes(*groups: Mapping[str, Shared]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds the options of groups to a command, behind its own."""
    shared = {name: one for group in groups for name, one in group.items()}

    def decorate(run: Callable[..., Any]) -> Callable[..., Any]:
        own = inspect.signature(run, eval_str=True)

        @functools.wraps(run)
        def command(**values: Any) -> Any:
            return run(**{name: value for name, value in values.items() if name in own.parameters})

        more = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=one.option
            )
            for name, one in shared.items()
        ]
        parameters = [*own.parameters.values(), *more]
        command.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {p.name: p.annotation for p in parameters}
        return command

    return decorate


def console_of(ctx: typer.Context) -> Console:
    """Return the console of a command, quiet if asked."""
    console: Console = ctx.obj
    console.quiet = ctx.params["quiet"]
    return console


def sampling_of(ctx: typer.Context, **settings: Any) -> Sampling:
    """Return what the user wrote of sampling; `settings` are laid over those of `--set`."""
    from glfm_cli.settings import parse_assignments

    names = [name for name in (*SAMPLING, *PRECISION) if name in ctx.params]
    written: dict[str, Any] = given(ctx, names)
    more = {name: value for name, value in settings.items() if value is not None}
    assigned = {**parse_assignments(written.get("settings") or []), **more}
    return Sampling(**{**written, "settings": assigned or None})


def saving_of(ctx: typer.Context, output: Path | None) -> Saving:
    """Return where the run is kept; beside `output` until that is written, if nowhere else."""
    from glfm_cli.cli.outputs import partial_of

    save, resume, every = (ctx.params[name] for name in ("save", "resume", "checkpoint"))
    partial = partial_of(output, save, resume)
    return Saving(save, resume, partial, not ctx.params["no_data"], every)


def matrix_of(ctx: typer.Context) -> MatrixOptions:
    """Return what the user wrote of triplets.

    Raises
    ------
    UsageError
        Types of features stand without features, or there are features without types where no
        saved run has these.
    """
    from glfm_cli.errors import UsageError

    found = ctx.params
    known = bool(found.get("fit") or found.get("resume"))
    features: dict[str, tuple[str, str | None] | None] = {}
    for side in ("row", "column"):
        path, types = found[f"{side}_features"], found[f"{side}_types"]
        features[side] = None if path is None else (str(path), types and str(types))
        if (path is None) == (types is None) or (types is None and known):
            continue
        there, absent = ("features", "types") if types is None else ("types", "features")
        raise UsageError(
            f"--{side}-{there} needs --{side}-{absent} FILE",
            hint="The one is a table, the other says what its columns mean.",
        )
    pairs = found.get("pairs")
    return MatrixOptions(
        None if pairs is None else str(pairs),
        bool(found.get("all_pairs")),
        found.get("recommend"),
        found.get("rows") and str(found["rows"]),
        features["row"],
        features["column"],
        found["missingness_features"],
    )


def inputs_of(ctx: typer.Context) -> dict[str, str | Path | None]:
    """Return the files that a command reads, by what they are; None where one was not given."""
    names = {"data": "the table itself", "types": "the types file"}
    names |= {n: f"--{n.replace('_', '-')}" for n in ("pairs", "rows", "cost", *list(FEATURES)[:4])}
    return {what: ctx.params[name] for name, what in names.items() if name in ctx.params}


def given(ctx: typer.Context, names: Iterable[str]) -> dict[str, Any]:
    """Return the options that the user wrote, by parameter name; a default is not written."""
    return {
        name: ctx.params[name]
        for name in names
        if getattr(ctx.get_parameter_source(name), "name", "") != "DEFAULT"
    }
