"""`glfm explore` of a classifier that was kept: its experts, and how alike its tasks are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from glfm_cli.cli import options
from glfm_cli.cli.console import Console, ExitStatus
from glfm_cli.errors import counted

if TYPE_CHECKING:
    from glfm_cli.classification.experts import Expert, ExpertsFound

TAKEN = ("data", "top", "as_json", "quiet", "threads")
WIDTH = 100


def dispatch(data: str) -> bool:
    """Return whether a classifier is to be explored."""
    if data == "-" or not Path(data).is_dir():
        return False
    from glfm_cli.classification import is_classifier

    return is_classifier(data)


def run(ctx: typer.Context, data: str, top: int, as_json: bool) -> int:
    """Show the experts of a classifier.

    Raises UsageError: an option has no place here; StoreError: the folder is damaged.
    """
    from glfm_cli.classification import describe_experts, load_trained
    from glfm_cli.errors import UsageError

    console: Console = ctx.obj
    options.refuse(ctx, TAKEN, "a classifier is explored", "--top and --json have one")
    if top < 1:
        raise UsageError("--top", value=top, expected="a whole number from 1")
    found = describe_experts(load_trained(data))
    if as_json:
        console.result_as_json(found.to_dict(top))
    else:
        console.result(show(found, top))
    return ExitStatus.OK


def show(found: ExpertsFound, top: int) -> str:
    """Return the experts as text."""
    from glfm_cli.classification.belief import in_words

    learnt = f"learnt from {counted(found.n_labelled, 'labelled row')} of {found.n_rows}"
    lines = [f"{counted(len(found.experts), 'expert')} for '{found.target}', {learnt}"]
    lines += in_words(found.after, found.before)
    for expert in found.experts:
        lines += ["", *_expert(expert, top)]
    if found.tasks is not None:
        lines += ["", "Shares of the experts in each task"]
        order = (-found.tasks.weights.mean(axis=0)).argsort(kind="stable")[: len(found.experts)]
        for name, weights in zip(found.tasks.names, found.tasks.weights[:, order], strict=True):
            lines.append(f"  {name:<12} " + " ".join(f"{weight:5.2f}" for weight in weights))
    return "\n".join(lines) + "\n"


def _expert(expert: Expert, top: int) -> list[str]:
    labels = ", ".join(f"{name} {p:.2f}" for name, p in expert.labels.items())
    lines = [f"Expert {expert.number}: {100 * expert.share:.1f} % of the rows; {labels}"]
    places = []
    for place in expert.places:
        if place.share is None:
            extent = f"{place.center:.4g} ({place.low:.4g} to {place.high:.4g})"
        else:
            extent = f"{place.center} ({100 * place.share:.0f} %)"
        places.append(f"{place.column} {extent}")
    lines += _wrapped("where   ", places)
    for label in expert.labels:
        drives = [drive for drive in expert.strongest(top) if drive.label == label]
        if drives:
            texts = [f"{drive.feature} {drive.effect:+.2f} ± {drive.sd:.2f}" for drive in drives]
            lines += _wrapped(f"'{label}' with", texts)
    return lines


def _wrapped(head: str, parts: list[str]) -> list[str]:
    """Return parts, separated by commas, on indented lines that are not too wide."""
    lines, current = [], f"  {head}"
    indent = " " * len(current)
    for i, part in enumerate(parts):
        text = f" {part}" + ("," if i + 1 < len(parts) else "")
        if len(current) + len(text) > WIDTH and current.strip():
            lines.append(current)
            current = indent
        current += text
    return [*lines, current]
