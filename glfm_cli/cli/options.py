"""Arguments and options that commands share: one name, one meaning, one help text.

A command takes whole groups of them: `@takes(SAMPLING, SAVING)` adds their options, which its
function finds in `ctx.params`; `sampling_of(ctx)` and its like make of them what the library takes.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from glfm_cli.options import (
    CHAINS,
    CHECKPOINT,
    DRAWS,
    SEED,
    STARTS,
    THIN,
    WARMUP,
    MatrixOptions,
    Sampling,
    Saving,
)

if TYPE_CHECKING:
    from glfm_cli.cli.console import Console

NAMES = ("auto", "glfm", "forest", "mixture", "bsvd", "clgp", "cnpf")  # of models


def one_of(words: Sequence[str], metavar: str = "") -> dict[str, Any]:
    """Return what tells typer that an option takes one of some words, which shells complete."""

    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return {"metavar": metavar or "|".join(words), "autocompletion": complete}


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
        **one_of(("error", "missing")),
        help="With --fit: what a level is that the fit does not know, or a number that its column "
        "there cannot hold; missing leaves it there.",
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
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but warnings and errors.")]


class SharedOption(NamedTuple):
    """An option that several commands have: its type, its default, and what typer is told."""

    kind: Any
    default: Any
    option: Any


def shared(kind: Any, default: Any, *names: str, **how: Any) -> SharedOption:
    """Return a shared option; without names it has that of its parameter."""
    return SharedOption(kind, default, typer.Option(*names, **how))


def optional(kind: Any, metavar: str, text: str, **how: Any) -> SharedOption:
    """Return a shared option that is None where it is left out."""
    return shared(kind | None, None, metavar=metavar, help=text, **how)


LENGTH = {
    "chains": shared(int, CHAINS, min=1, metavar="N", help="Independent chains to run."),
    "warmup": shared(
        int, WARMUP, min=0, metavar="N", help="Sweeps of each chain to discard first."
    ),
    "draws": shared(int, DRAWS, min=1, metavar="N", help="Draws to keep per chain."),
    "thin": shared(int, THIN, min=1, metavar="N", help="Sweeps from one kept draw to the next."),
}
SAMPLING = {
    "model": shared(
        str,
        "glfm",
        **one_of(NAMES, "NAME"),
        help="The model: glfm, mixture, forest, bsvd or clgp, or auto, which weighs several; of "
        "triplets bsvd, of counts cnpf.",
    ),
    "effort": shared(
        str,
        "normal",
        **one_of(("quick", "normal", "thorough")),
        help="How much work is put in where the options below do not say; `glfm impute --dry-run` "
        "shows what each costs.",
    ),
    **LENGTH,
    "seed": shared(int, SEED, min=0, metavar="N", help="The same seed gives the same result."),
    "threads": optional(int, "N", "Threads to use; as many as cores if left out.", min=1),
    "time_limit": optional(
        float, "SECONDS", "Stop sampling after this time and answer from the draws so far."
    ),
    "settings": shared(
        list[str] | None,
        None,
        "--set",
        metavar="NAME=VALUE",
        help="Set a field of the model's configuration; may be repeated.",
    ),
}
BY_SIZE = {
    **SAMPLING,
    "chains": optional(
        int,
        "N",
        "Independent chains to run; if left out 7 (auto) or 8, of a table with up to 40,000 cells "
        "up to 16, as many as its estimates ask for.",
        min=1,
    ),
    "warmup": optional(
        int,
        "N",
        "Sweeps of each chain to discard first; if left out 60 (auto, glfm) or 100.",
        min=0,
    ),
    "thin": optional(
        int, "N", "Sweeps from one kept draw to the next; if left out 4 (auto, glfm) or 2.", min=1
    ),
}
SEVERAL = {
    "model": shared(
        str,
        "auto",
        **one_of(NAMES, "NAME"),
        help="The model: auto, which weighs glfm and forest, or one: glfm, which is taken where "
        "auto cannot be, forest, mixture, bsvd or clgp; of triplets bsvd, of counts cnpf.",
    ),
}
PRECISION = {
    "precision": shared(
        float | None,
        None,
        metavar="X",
        help="Run more chains until another seed would move half of the estimates by less than X "
        "of their cell's standard deviation.",
    )
}
SAVING = {
    "save": optional(
        Path,
        "DIR.glfm",
        "Keep the fit in this new folder: to go on with it, apply it, or look into it.",
    ),
    "resume": optional(
        Path,
        "DIR.glfm",
        "Go on with the run kept in this folder: one cut short, or for more --chains or --draws.",
    ),
    "no_data": shared(
        bool, False, "--no-data", help="Leave the (encoded) table out of the folder of --save."
    ),
    "checkpoint": shared(
        float,
        CHECKPOINT,
        min=0,
        metavar="SECONDS",
        help="Time between two saved states of a chain; more where saving takes long.",
    ),
}
SCALING = {
    "learn_rows": optional(
        str,
        "N|auto|all",
        "Of a large table: learn what its rows share from N of them, and complete all given that; "
        "auto takes all of one that is not large.",
    ),
    "memory": optional(
        str,
        "SIZE",
        "With --fit or --learn-rows: complete a file that takes more than SIZE (500M, 2G) in "
        "batches of rows; with --fit half of what is free if left out.",
    ),
}
ENGINE = {
    "engine": optional(
        str,
        "local|processes|dask",
        "Who does the work: this machine, chains in threads (local) or in processes, or the Dask "
        "cluster of --scheduler. The result is the same.",
    ),
    "scheduler": optional(
        str, "ADDRESS", "Of --engine dask: the address of its scheduler, as tcp://HOST:8786."
    ),
}
FEATURES = {
    "row_features": optional(Path, "FILE", "Of triplets: a table of what is known of the rows."),
    "row_types": optional(Path, "FILE", "The types file of --row-features."),
    "column_features": optional(
        Path, "FILE", "Of triplets: a table of what is known of the columns."
    ),
    "column_types": optional(Path, "FILE", "The types file of --column-features."),
    "missingness_features": optional(
        int,
        "N",
        "Of triplets: let N leading singular vectors of the pattern of observed cells be "
        "covariates of rows and columns.",
        min=1,
    ),
}
RECOMMEND = {
    "recommend": optional(
        int,
        "N",
        "Of triplets: the N columns of each row, of those it has no value in, with the highest "
        "expected values; of counts the likeliest to have one.",
        min=1,
    ),
    "rows": optional(Path, "FILE", "Of --recommend: only the rows of this table."),
}
PAIRS = {
    "pairs": optional(
        Path,
        "FILE",
        "Of triplets: only the pairs of row and column listed in this table, not all that have no "
        "value.",
    ),
    "all_pairs": shared(
        bool, False, "--all-pairs", help="Of triplets: more than ten million pairs, too."
    ),
}
ENDING = {
    "strict": shared(
        bool, False, "--strict", help="End with status 3 when the answer is not precise enough."
    ),
    "dry_run": shared(
        bool, False, "--dry-run", help="Check everything and say what would be done; write nothing."
    ),
    "quiet": shared(bool, False, "--quiet", "-q", help="Say nothing but warnings and errors."),
}
FITTING = {
    "effort": shared(
        str,
        "normal",
        **one_of(("quick", "normal", "thorough")),
        help="How much work is put in where --chains does not say: 2, 4 or 16 starts.",
    ),
    "chains": shared(int, STARTS, min=1, metavar="N", help="Starts of the fit, or its chains."),
    **{name: SAMPLING[name] for name in ("seed", "threads", "time_limit", "settings")},
    **{name: SAVING[name] for name in ("save", "checkpoint")},
    **{name: ENDING[name] for name in ("strict", "quiet")},
}


def takes(
    *groups: Mapping[str, SharedOption], own: Mapping[str, Any] = MappingProxyType({})
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds the options of groups to a command, behind its own.

    own : what typer is told of parameters of the command that are options of it alone
    """
    more = {name: one for group in groups for name, one in group.items()}

    def decorate(run: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(run, eval_str=True)
        named = signature.parameters

        @functools.wraps(run)
        def command(**values: Any) -> Any:
            return run(**{name: value for name, value in values.items() if name in named})

        parameters = [
            p.replace(annotation=Annotated[p.annotation, own[p.name]]) if p.name in own else p
            for p in named.values()
        ] + [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=one.default,
                annotation=Annotated[one.kind, one.option],
            )
            for name, one in more.items()
        ]
        command.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=parameters
        )
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

    names = [name for name in (*SAMPLING, *PRECISION, *ENGINE) if name in ctx.params]
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

    Raises UsageError: types of features stand without features, or there are features without types
        where no saved run has these.
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


def refuse(ctx: typer.Context, taken: Sequence[str], where: str, these: str) -> None:
    """Raise UsageError when the user wrote an option that is not among those taken."""
    from glfm_cli.errors import UsageError

    names = {param.name: param.opts[0] for param in ctx.command.params if param.name}
    for name in given(ctx, [name for name in names if name not in taken]):
        raise UsageError(
            f"{names[name]} has no place where {where}", hint=f"Leave out {names[name]}; {these}."
        )
