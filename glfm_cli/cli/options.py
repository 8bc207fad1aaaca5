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
        help="The table: CSV, Excel, SPSS, Parquet and others, by suffix; - is standard input.",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write the result to this file, not to standard output; it is replaced only on "
        "success.",
    ),
]
Types = Annotated[
    Path | None,
    typer.Option(
        "--types",
        metavar="FILE",
        help="The types file: what each column means. `glfm types` writes a first one; - is "
        "standard input; auto guesses the types.",
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
        help="Complete the table with the fit saved in this folder; nothing is fitted anew.",
    ),
]
Unseen = Annotated[
    str,
    typer.Option(
        "--unseen",
        **one_of(("error", "missing")),
        help="With --fit: whether a level that the fit does not know, a number that its column "
        "cannot hold, or a text among numbers, is an error, or is left as it is and taken for "
        "missing.",
    ),
]
Record = Annotated[
    Path | None,
    typer.Option(
        "--record",
        metavar="FILE",
        help="Also write a record of the run (JSON): versions, options, seed, hashes, diagnostics.",
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
QUIET = "Show no progress and no notes, only results, warnings and errors."
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help=QUIET)]


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
    "chains": shared(int, CHAINS, min=1, metavar="N", help="Number of independent chains."),
    "warmup": shared(
        int, WARMUP, min=0, metavar="N", help="Sweeps to discard at the start of each chain."
    ),
    "draws": shared(int, DRAWS, min=1, metavar="N", help="Draws to keep of each chain."),
    "thin": shared(int, THIN, min=1, metavar="N", help="Sweeps from one kept draw to the next."),
}
SAMPLING = {
    "model": shared(
        str,
        "glfm",
        **one_of(NAMES, "NAME"),
        help="The model: glfm (features of rows), bsvd (components; always of triplets), clgp (a "
        "map of rows), or of counts cnpf (components).",
    ),
    "effort": shared(
        str,
        "normal",
        **one_of(("quick", "normal", "thorough")),
        help="Overall amount of work, unless the options below say; `glfm impute --dry-run` shows "
        "what each level costs.",
    ),
    **LENGTH,
    "seed": shared(int, SEED, min=0, metavar="N", help="Seed of the random numbers."),
    "threads": optional(int, "N", "Threads to use; default: one for each core.", min=1),
    "time_limit": optional(
        float, "SECONDS", "Stop sampling after this time and use the draws so far."
    ),
    "settings": shared(
        list[str] | None,
        None,
        "--set",
        metavar="NAME=VALUE",
        help="Change a setting of the model; its page in docs/models lists them. May be repeated.",
    ),
}
BY_SIZE = {
    **SAMPLING,
    "model": shared(
        str,
        "glfm",
        **one_of(NAMES, "NAME"),
        help="The model: glfm, bsvd, mixture, forest or clgp, or auto, which weighs several; for "
        "triplets bsvd, for counts cnpf.",
    ),
    "chains": optional(
        int,
        "N",
        "Number of independent chains; default: 7 (auto) or 8, and up to 16 in tables with up to "
        "40,000 cells, as many as precision asks for.",
        min=1,
    ),
    "warmup": optional(
        int,
        "N",
        "Sweeps to discard at the start of each chain; default: 60 (auto, glfm) or 100.",
        min=0,
    ),
    "thin": optional(
        int, "N", "Sweeps from one kept draw to the next; default: 4 (auto, glfm) or 2.", min=1
    ),
}
SEVERAL = {
    "model": shared(
        str,
        "auto",
        **one_of(NAMES, "NAME"),
        help="The model: auto, which weighs glfm and forest by how well they predict hidden cells "
        "(glfm alone where forest cannot be used), glfm, bsvd, mixture, forest or clgp; for "
        "triplets bsvd, for counts cnpf.",
    ),
}
PRECISION = {
    "precision": shared(
        float | None,
        None,
        metavar="X",
        help="Run more chains until, with another seed, half of the estimates would move by less "
        "than X standard deviations of their cell.",
    )
}
SAVING = {
    "save": optional(
        Path,
        "DIR.glfm",
        "Save the fit to this new folder, to resume, apply, explore or diagnose it.",
    ),
    "resume": optional(
        Path,
        "DIR.glfm",
        "Continue the run saved in this folder: one cut short, or for more --chains or --draws.",
    ),
    "no_data": shared(
        bool, False, "--no-data", help="With --save: leave the (encoded) table out of the folder."
    ),
    "checkpoint": shared(
        float,
        CHECKPOINT,
        min=0,
        metavar="SECONDS",
        help="Time between two saved states of a chain; longer where saving is slow.",
    ),
}
SCALING = {
    "learn_rows": optional(
        str,
        "N|auto|all",
        "For large tables: fit the model to a sample of N rows, then complete all rows with it; "
        "auto: 10,000 rows of a table with more than 20,000, else all.",
    ),
    "memory": optional(
        str,
        "SIZE",
        "With --fit or --learn-rows: complete a file that would take more than SIZE (500M, 2G) in "
        "batches of rows; default with --fit: half of the free memory.",
    ),
}
ENGINE = {
    "engine": optional(
        str,
        "local|processes|dask",
        "Where the work is done: in threads (local) or processes of this machine, or on the Dask "
        "cluster of --scheduler. The result is the same.",
    ),
    "scheduler": optional(
        str, "ADDRESS", "With --engine dask: address of its scheduler, such as tcp://HOST:8786."
    ),
}
FEATURES = {
    "row_features": optional(Path, "FILE", "For triplets: a table of covariates of rows."),
    "row_types": optional(Path, "FILE", "The types file of --row-features."),
    "column_features": optional(Path, "FILE", "For triplets: a table of covariates of columns."),
    "column_types": optional(Path, "FILE", "The types file of --column-features."),
    "missingness_features": optional(
        int,
        "N",
        "For triplets: use N leading singular vectors of the pattern of observed cells as further "
        "covariates.",
        min=1,
    ),
}
RECOMMEND = {
    "recommend": optional(
        int,
        "N",
        "For triplets: list for each row the N columns with the highest expected values among "
        "those without a value; for counts those likeliest to have one.",
        min=1,
    ),
    "rows": optional(Path, "FILE", "With --recommend: only for the rows in this table."),
}
PAIRS = {
    "pairs": optional(
        Path,
        "FILE",
        "For triplets: only the pairs of row and column in this table, not all pairs without a "
        "value.",
    ),
    "all_pairs": shared(
        bool, False, "--all-pairs", help="For triplets: allow more than ten million pairs."
    ),
}
ENDING = {
    "strict": shared(
        bool, False, "--strict", help="End with status 3 if the result is not precise enough."
    ),
    "dry_run": shared(
        bool,
        False,
        "--dry-run",
        help="Check everything and print the plan with its cost; write nothing.",
    ),
    "quiet": shared(bool, False, "--quiet", "-q", help=QUIET),
}
FITTING = {
    "effort": shared(
        str,
        "normal",
        **one_of(("quick", "normal", "thorough")),
        help="Number of starts, unless --chains says: 2, 4 or 16.",
    ),
    "chains": shared(
        int,
        STARTS,
        min=1,
        metavar="N",
        help="Starts of the fit; with --set inference=gibbs, chains.",
    ),
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
            hint="One is a table, the other its types file.",
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
            f"{names[name]} cannot be used where {where}", hint=f"Leave out {names[name]}; {these}."
        )
