"""What is said of a completed table at the end of a command."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from glfm_cli.cli.console import Console, ExitStatus
from glfm_cli.errors import counted


@dataclass(frozen=True)
class Occasion:
    """What a completion does not know of itself.

    seconds : that it took
    tables_alone : whether several versions were written, and no estimates
    of_fit : whether draws are those of a saved fit
    """

    seconds: float
    tables_alone: bool
    of_fit: bool


def report(console: Console, completion: Any, occasion: Occasion, *, strict: bool) -> int:
    """Say how a completion went, and return the exit status."""
    stopped = completion.run.stopped is not None
    versions = getattr(completion, "versions", None)
    compatible = versions.compatible if versions else None
    good = completion.precision.good
    seconds = None if occasion.of_fit else completion.run.seconds
    judged = completion.precision.summary(seconds, stopped=stopped, of_fit=occasion.of_fit)
    if compatible is not None:  # whose tables are not those of the run
        good, judged = compatible.told.settled, compatible.summary()
    elif occasion.tables_alone and versions and not versions.alike:
        good, judged = completion.precision.of_tables(len(versions))
    unconverged = strict and not good  # a warning gives the verdict then
    note = f"{completion.in_words()}, {occasion.seconds:.1f} s."
    note += "" if unconverged else f" {judged}"
    fitted = completion.posterior.n_draws > 0  # else a warning says why not
    return ending(
        console,
        warnings=(*completion.warnings, *(versions.warnings if versions else ())),
        stopped=completion.run.stopped,
        draws=completion.posterior.n_draws,
        note=note if fitted else None,
        unconverged=judged if unconverged else None,
        rest=completion.left_in_words(),
    )


def ending(
    console: Console,
    *,
    warnings: Sequence[str],
    stopped: str | None,
    draws: int | None,
    unconverged: str | None,
    note: str | None = None,
    rest: str | None = None,
) -> ExitStatus:
    """Say what the user should know of a fit that has ended, and return the exit status.

    stopped : why it ended early, if it did
    draws : how many there are, where it is a sample
    unconverged : what is not precise enough, where the user asked for a status that says so
    note : what was done
    rest : what was not done, and why
    """
    for text in warnings:
        console.warn(text)
    if stopped:
        what, used = ("the fit", "")
        if draws is not None:
            what, used = "sampling", f"; the answer uses {counted(draws, 'draw')}"
        console.warn(f"{what} ended early ({stopped}){used}")
    for done in (note, rest):
        if done is not None:
            console.note(done)
    if stopped == "interrupted":
        return ExitStatus.INTERRUPTED
    if unconverged is not None:
        console.warn(f"--strict: {unconverged}")
        return ExitStatus.NOT_CONVERGED
    return ExitStatus.OK
