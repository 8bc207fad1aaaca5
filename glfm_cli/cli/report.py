"""What is said of a completed table at the end of a command."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from glfm_cli.cli.console import Console, ExitStatus

if TYPE_CHECKING:
    from glfm_cli.completion import Completion
    from glfm_cli.completion import Multiple as Versions


def report(
    console: Console,
    completion: Completion,
    versions: Versions | None,
    strict: bool,
    as_json: bool,
) -> int:
    """Say how it went, and return the exit status."""
    if as_json:
        summary = completion.to_dict()
        if versions is not None:
            summary["multiple"] = versions.to_dict()
        console.result(json.dumps(summary, allow_nan=False) + "\n")
    said = completion.diagnostics.summary()
    return ending(
        console,
        warnings=(*completion.warnings, *(versions.warnings if versions else ())),
        stopped=completion.run.stopped,
        draws=completion.posterior.n_draws,
        note=f"{counted(completion.n_completed, 'cell')} completed in "
        f"{counted(completion.data.n_rows, 'row')}, {completion.run.seconds:.1f} s. {said}",
        unconverged=None if completion.diagnostics.converged() or not strict else said,
    )


def ending(
    console: Console,
    *,
    warnings: Sequence[str],
    stopped: str | None,
    draws: int | None,
    unconverged: str | None,
    note: str | None = None,
) -> ExitStatus:
    """Say what the user should know of a fit that has ended, and return the exit status.

    Parameters
    ----------
    console : Console
    warnings : sequence of str
    stopped : str, optional
        Why it ended early, if it did.
    draws : int, optional
        How many there are, where it is a sample.
    unconverged : str, optional
        What has not converged, where the user asked for a status that says so.
    note : str, optional
        What was done.
    """
    for text in warnings:
        console.warn(text)
    if stopped:
        what, used = ("the fit", "")
        if draws is not None:
            what, used = "sampling", f"; the answer uses {counted(draws, 'draw')}"
        console.warn(f"{what} ended early ({stopped}){used}")
    if note is not None:
        console.note(note)
    if stopped == "interrupted":
        return ExitStatus.INTERRUPTED
    if unconverged is not None:
        console.warn(f"--strict: {unconverged}")
        return ExitStatus.NOT_CONVERGED
    return ExitStatus.OK


def counted(n: int, what: str) -> str:
    """Return a number with its noun, in the plural where there is not one."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
