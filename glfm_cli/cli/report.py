"""What is said of a completed table at the end of a command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from glfm_cli.cli.console import Console, ExitStatus
from glfm_cli.errors import counted


def report(console: Console, completion: Any, *, strict: bool) -> int:
    """Say how a completion went, and return the exit status."""
    judged = completion.diagnostics.summary()
    versions = getattr(completion, "versions", None)
    return ending(
        console,
        warnings=(*completion.warnings, *(versions.warnings if versions else ())),
        stopped=completion.run.stopped,
        draws=completion.posterior.n_draws,
        note=f"{completion.in_words()}, {completion.run.seconds:.1f} s. {judged}",
        unconverged=None if completion.diagnostics.converged() or not strict else judged,
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
