"""What is said of a completed table at the end of a command."""

from __future__ import annotations

import json
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
    for text in (*completion.warnings, *(versions.warnings if versions else ())):
        console.warn(text)
    stopped = completion.run.stopped
    if stopped:
        kept = counted(completion.posterior.n_draws, "draw")
        console.warn(f"sampling ended early ({stopped}); the answer uses {kept}")
    console.note(
        f"{counted(completion.n_completed, 'cell')} completed in "
        f"{counted(completion.data.n_rows, 'row')}, "
        f"{completion.run.seconds:.1f} s. {completion.diagnostics.summary()}"
    )
    if stopped == "interrupted":
        return ExitStatus.INTERRUPTED
    if strict and not completion.diagnostics.converged():
        console.warn(f"--strict: {completion.diagnostics.summary()}")
        return ExitStatus.NOT_CONVERGED
    return ExitStatus.OK


def counted(n: int, what: str) -> str:
    """Return a number with its noun, in the plural where there is not one."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
