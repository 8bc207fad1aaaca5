"""`glfm classify`: predict a label when features are missing."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from glfm_cli.cli import options
from glfm_cli.cli.classify_files import ClassifyFiles
from glfm_cli.cli.console import Console
from glfm_cli.cli.progress import FitProgress
from glfm_cli.cli.report import ending
from glfm_cli.errors import counted
from glfm_cli.options import Saving

if TYPE_CHECKING:
    from glfm_cli.classification import Classification

EXAMPLE = (
    "glfm classify sample_data/pbc.csv --types sample_data/pbc.types.yaml --target stage "
    "-o predictions.csv"
)

Train = Annotated[
    str,
    typer.Argument(
        metavar="TRAIN",
        help="The training rows: CSV, Excel, SPSS, Parquet and others; - is standard input.",
    ),
]
LEAST_SAID = 0.005  # weight of the labels' shares that is said
OPTIONS = {
    "target": typer.Option(
        metavar="COLUMN",
        help="The column to predict; default: the one of role target in the types file.",
    ),
    "predict": typer.Option(
        metavar="NEW",
        help="A table of rows to predict; default: the rows of TRAIN without a label.",
    ),
    "cv": typer.Option(
        metavar="N",
        help="Cross-validation: predict every labelled row of TRAIN by fits without it, in N "
        "folds, and print scores.",
    ),
    "unseen": typer.Option(
        **options.one_of(("error", "missing")),
        help="Whether a level of NEW that TRAIN does not have, a text among numbers, or a number "
        "that its column cannot hold, is an error; with missing, such levels and texts are taken "
        "for missing, and such a number for the nearest that the column can hold.",
    ),
    "resume": typer.Option(
        metavar="DIR.glfm",
        help="Continue the run on TRAIN that was cut short and is saved in this folder.",
    ),
    "fit": typer.Option(
        metavar="DIR.glfm",
        help="Predict the rows of TRAIN with the fit saved in this folder; nothing is fitted.",
    ),
    "complete": typer.Option(
        metavar="FILE",
        help="Also write NEW (or TRAIN) with every missing cell filled, the target's too.",
    ),
    "similarity": typer.Option(
        metavar="FILE",
        help="With a column of role task: also write how similar tasks are, as a table.",
    ),
    "nearness": typer.Option(
        metavar="FILE",
        help="As --similarity, but nearby experts count as partly shared.",
    ),
    "plot": typer.Option(
        metavar="FILE",
        help="With a column of role task: also plot how similar tasks are (.png, .svg or .pdf).",
    ),
    "as_json": typer.Option("--json", help="Print a summary as one JSON object; needs --output."),
}


@options.takes(options.FITTING, options.ENGINE, own=OPTIONS)
def run(
    ctx: typer.Context,
    data: Train,
    types: options.Types = None,
    target: str | None = None,
    predict: str | None = None,
    output: options.Output = None,
    cv: int | None = None,
    unseen: str = "error",
    resume: Path | None = None,
    fit: Path | None = None,
    complete: Path | None = None,
    similarity: Path | None = None,
    nearness: Path | None = None,
    plot: Path | None = None,
    as_json: bool = False,
) -> int:
    """Predict a label from columns with missing cells.

    Fits a mixture of experts to the training rows: each expert is a normal distribution of the
    features with linear coefficients for the label. Missing features are integrated out, not
    filled in first. A prediction is a probability for each label. With a column of role task,
    tasks share experts.
    """
    from glfm_cli.classification import classify
    from glfm_cli.completion.efforts import paced
    from glfm_cli.completion.requests import check_unseen
    from glfm_cli.io import write_table

    console, sampling = options.console_of(ctx), options.sampling_of(ctx)
    files = ClassifyFiles(output, complete, similarity, nearness, plot)
    files.check(data, types, predict, cv, as_json)
    save, every = ctx.params["save"], ctx.params["checkpoint"]
    starts = paced(sampling, "iqgme").length(options.STARTS)["chains"]
    with FitProgress(console, starts, cv) as watch:
        found = classify(
            data,
            types,
            target=target,
            predict=predict,
            cv=cv,
            fit=fit,
            sampling=sampling,
            saving=Saving(save, resume, checkpoint=every),
            unseen=check_unseen(unseen),
            complete=complete is not None,
            observer=watch,
        )
    files.write(found)
    # Where nothing is to be predicted, the fit was to be kept.
    if found.predictions is not None and (cv is None or output is not None):
        write_table(found.to_table(), output or "-")
    folder = save or resume
    if folder is not None and found.stopped:
        again = f"--resume {quote(str(folder))}"
        console.warn(f"the work so far is saved in {folder}; continue with {again}")
    return _report(console, found, ctx.params["strict"], as_json)


def _report(console: Console, found: Classification, strict: bool, as_json: bool) -> int:
    """Say how it went, and return the exit status."""
    if as_json:
        console.result_as_json(found.to_dict())
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
            if "trees" in fit:
                text += f", and by trees (weight {fit['trees']:.2f})"
            if fit.get("shares", 0.0) >= LEAST_SAID:
                text += f" and the labels' shares ({fit['shares']:.2f})"
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
