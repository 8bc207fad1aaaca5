"""Arguments and options that commands share: one name, one meaning, one help text."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

# Defaults of the sampling commands. They stand here, and not in the tasks, so that `--help` can
# show them without importing what samples; a test keeps both equal.
CHAINS = 8
WARMUP = 100
DRAWS = 20
THIN = 2
CHECKPOINT = 5.0

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
        help="The types file: what each column means (`glfm types` writes a first one).",
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
        help="Go on with the run kept in this folder: one cut short, or, with --draws, for more.",
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
    bool, typer.Option("--strict", help="End with status 3 when the chains have not converged.")
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


def given(ctx: typer.Context, names: Iterable[str]) -> dict[str, Any]:
    """Return the options that the user wrote, by parameter name; a default is not written."""
    return {
        name: ctx.params[name]
        for name in names
        if getattr(ctx.get_parameter_source(name), "name", "") != "DEFAULT"
    }
