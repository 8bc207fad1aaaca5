"""`glfm classify`: predict a label when features are missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glfm_cli.cli import options
from glfm_cli.cli.console import Console
from glfm_cli.cli.progress import FitProgress
from glfm_cli.cli.report import ending
from glfm_cli.errors import counted

if TYPE_CHECKING:
    from glfm_cli.classification import Classification

# Options that shape a fit, and so have no place beside one that was made before.
FITTING = (
    *("types", "target", "predict", "cv", "chains", "seed", "time_limit", "settings", "save"),
    *("resume", "checkpoint"),
)
SHAPING = ("types", "target", "cv", "chains", "seed", "settings", "save")  # a fit that goes on
EXAMPLE = (
    "glfm classify sample_data/pbc.csv --types sample_data/pbc.types.yaml --target stage "
    "-o predictions.csv"
)

Train = Annotated[
    str,
    typer.Argument(
        metavar="TRAIN",
        help="The training rows: CSV or TSV (also .gz), Parquet or Arrow; - reads standard input.",
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="COLUMN",
        help="The column to predict; the one of role target in the types file if left out.",
    ),
]
Predict = Annotated[
    str | None,
    typer.Option(
        "--predict",
        metavar="NEW",
        help="Rows to predict; if left out, the rows of TRAIN that have no label.",
    ),
]
CrossValidate = Annotated[
    int | None,
    typer.Option(
        "--cv",
        metavar="N",
        help="Instead predict every labelled row of TRAIN by fits without it, in N folds, and "
        "print how good that is.",
    ),
]
Unseen = Annotated[
    str,
    typer.Option(
        "--unseen",
        metavar="error|missing",
        help="What a level of NEW is that TRAIN does not have; as missing it tells nothing.",
    ),
]
Resume = Annotated[
    Path | None,
    typer.Option(
        "--resume",
        metavar="DIR.glfm",
        help="Go on with the run on TRAIN kept in this folder, which was cut short.",
    ),
]
WithFit = Annotated[
    Path | None,
    typer.Option(
        "--fit",
        metavar="DIR.glfm",
        help="Predict the rows of the table given first with the fit kept in this folder.",
    ),
]
Complete = Annotated[
    Path | None,
    typer.Option(
        "--complete",
        metavar="FILE",
        help="Also write NEW, or else TRAIN, with every gap filled, the target's among them.",
    ),
]
Similarity = Annotated[
    Path | None,
    typer.Option(
        "--similarity",
        metavar="FILE",
        help="Where a column has role task: also write how alike the tasks are, as a table.",
    ),
]
Nearness = Annotated[
    Path | None,
    typer.Option(
        "--nearness",
        metavar="FILE",
        help="The same where experts that lie near one another count as partly shared.",
    ),
]
Plot = Annotated[
    Path | None,
    typer.Option(
        "--plot",
        metavar="FILE",
        help="Where a column has role task: also draw how alike the tasks are (.png, .svg, .pdf).",
    ),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="End with status 3 when the fit has not converged.")
]
Json = Annotated[
    bool, typer.Option("--json", help="Print a summary as one JSON object; needs --output.")
]


def run(
    ctx: typer.Context,
    data: Train,
    types: options.Types = None,
    target: Target = None,
    predict: Predict = None,
    output: options.Output = None,
    cv: CrossValidate = None,
    unseen: Unseen = "error",
    chains: options.Chains = options.CHAINS,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    time_limit: options.TimeLimit = None,
    settings: options.Settings = None,
    save: options.Save = None,
    resume: Resume = None,
    checkpoint: options.Checkpoint = options.CHECKPOINT,
    fit: WithFit = None,
    complete: Complete = None,
    similarity: Similarity = None,
    nearness: Nearness = None,
    plot: Plot = None,
    strict: Strict = False,
    as_json: Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Predict a label when features are missing.

    A mixture of experts is fitted to the training rows, each expert a place where rows lie and a
    linear rule for their labels. Missing features are integrated out, never filled in first; every
    prediction is a probability for each label. Where a column has role task, tasks share experts.
    """
    from glfm_cli.classification import Predictions, classify, classify_rows
    from glfm_cli.cli.classify_files import TaskFiles
    from glfm_cli.cli.outputs import check_outputs
    from glfm_cli.completion.requests import check_unseen
    from glfm_cli.errors import UsageError
    from glfm_cli.io import check_target, check_writable, write_table
    from glfm_cli.settings import parse_assignments

    console: Console = ctx.obj
    console.quiet = quiet
    inputs: dict[str, str | Path | None] = {"the table itself": data, "the types file": types}
    inputs["the rows to predict"] = predict
    on_stdout = ["--json"] if as_json else []
    # Of a cross-validation the scores are what is asked for, and predictions only with -o.
    on_stdout += ["the table"] if output is None and cv is None else []
    about_tasks = TaskFiles(similarity, nearness, plot)
    outputs = {"--output": output, "--complete": complete, **about_tasks.by_option()}
    check_outputs(inputs, outputs, on_stdout)
    for name, path in outputs.items():
        if name != "--output" and path is not None and cv is not None:
            raise UsageError(
                f"--cv and {name} cannot be used together: --cv makes a fit for each fold",
                hint="Run the command twice.",
            )
    about_tasks.check(types)
    if predict == "-" and data == "-":
        raise UsageError("the training rows and --predict are both standard input")
    if output is not None:
        check_target(output, Predictions.example())
    if complete is not None:
        check_writable(complete)
    level = check_unseen(unseen)
    if fit is not None:
        _check_alone(ctx, "--fit", FITTING)
        requested = complete is not None
        found = classify_rows(data, fit, unseen=level, threads=threads, complete=requested)
    else:
        if resume is not None:
            _check_alone(ctx, "--resume", SHAPING)
        own = options.given(ctx, ("chains", "seed"))
        with FitProgress(console, chains, cv) as watch:
            found = classify(
                data,
                types,
                target=target,
                predict=predict,
                cv=cv,
                unseen=level,
                chains=own.get("chains"),
                seed=own.get("seed"),
                threads=threads,
                time_limit=time_limit,
                settings=parse_assignments(settings or []),
                save=save,
                resume=resume,
                checkpoint=checkpoint,
                complete=complete is not None,
                watch=watch,
            )
    about_tasks.write(found)
    if complete is not None and found.completed is not None:
        write_table(found.completed, complete)
    # Where nothing is to be predicted, the fit was to be kept.
    if found.predictions is not None and (cv is None or output is not None):
        write_table(found.to_table(), output or "-")
    folder = save or resume
    if folder is not None and found.stopped:
        console.warn(f"the work so far is kept in {folder}; go on with --resume {folder}")
    return _report(console, found, strict, as_json)


def _check_alone(ctx: typer.Context, beside: str, shaping: tuple[str, ...]) -> None:
    """Raise UsageError when options that shape a fit stand beside one that was made before."""
    from glfm_cli.errors import UsageError

    names = {param.name: param.opts[0] for param in ctx.command.params}
    for name in options.given(ctx, shaping):
        raise UsageError(
            f"{names[name]} and {beside} cannot be used together: nothing is fitted anew",
            hint=f"Leave out {names[name]}; it is as it was when the fit was made.",
        )


def _report(console: Console, found: Classification, strict: bool, as_json: bool) -> int:
    """Say how it went, and return the exit status."""
    if as_json:
        console.result(json.dumps(found.to_dict(), allow_nan=False) + "\n")
    elif found.cross_validation is not None:
        console.result(_scores_text(found))
    if found.note is not None:
        console.note(found.note[0].upper() + found.note[1:] + ".")
    return ending(
        console,
        warnings=found.warnings,
        stopped=found.stopped,
        draws=None,
        note=_summary(found),
        unconverged="the fit has not converged" if strict and not found.converged else None,
    )


def _summary(found: Classification) -> str:
    """Return one line on what was fitted and predicted."""
    from glfm_cli.classification.result import fit_summary

    parts = []
    if found.predictions is not None:
        parts.append(f"{counted(found.predictions.rows.size, 'row')} predicted")
    learnt = f"{counted(found.n_labelled, 'labelled row')} of {found.n_rows}"
    parts.append(f"learnt from {learnt}, {counted(found.n_features, 'feature')}")
    factors = found.trained.classifier.n_factors if found.trained is not None else 0
    text = ", ".join(parts) + (f" by {counted(factors, 'factor')}" if factors else "")
    if found.trained is not None:
        classifier = found.trained.classifier
        fit = fit_summary(classifier)
        how = "converged" if fit["converged"] else "not converged"
        text += f", by {counted(fit['experts'], 'expert')} ({how} after "
        if "bound" in fit:
            text += f"{counted(fit['iterations'], 'iteration')}, bound {fit['bound']:.2f})"
            if len(fit["averaged"]) > 1:
                text += f", averaged over {counted(len(fit['averaged']), 'start')}"
        else:
            text += f"{counted(fit['sweeps'], 'sweep')}, {counted(fit['draws'], 'draw')} kept)"
    text += f", {found.seconds:.1f} s."
    if found.scores is not None:
        text += " Of the rows with a label: " + ", ".join(
            f"{name.replace('_', ' ')} {value:.3f}" for name, value in found.scores.items()
        )
    return text


def _scores_text(found: Classification) -> str:
    """Return the table of a cross-validation's scores."""
    validated = found.cross_validation
    assert validated is not None
    names = list(next(iter(validated.scores.values())))
    shown = {name: name.replace("_", " ").replace("auc", "AUC") for name in names}
    width = max(map(len, validated.scores)) + 2
    lines = [
        f"'{found.target}' of {validated.rows.size} rows, each predicted by a fit without it "
        f"({validated.folds} folds)",
        "",
        " " * width + "".join(f"{shown[name]:>{len(shown[name]) + 3}}" for name in names),
    ]
    for method, scores in validated.scores.items():
        cells = "".join(f"{scores[name]:>{len(shown[name]) + 3}.3f}" for name in names)
        lines.append(f"{method:<{width}}{cells}")
    return "\n".join(lines) + "\n"
