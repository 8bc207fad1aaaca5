"""The streams of a command, what it says on them, and the status it ends with."""

from __future__ import annotations

import json
import re
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TextIO

from glfm_cli.errors import GlfmError, TypesMissingError

LONGEST = 4000  # characters of a message
CLEAR = "\x1b[K"  # erases the rest of a terminal's line
# What a terminal obeys, and what turns the order of letters round; line ends and tabs are text.
_CONTROL = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class ExitStatus(IntEnum):
    """How a command ended, as its exit status."""

    OK = 0  # done; also when a time limit ended the sampling, with a warning
    FAILED = 1  # failed inside: a bug, a full disk, numbers that broke down
    USAGE = 2  # wrong usage, table or types file
    NOT_CONVERGED = 3  # not precise enough, under --strict
    INTERRUPTED = 130  # Ctrl-C; while sampling, after writing what there is so far


def visible(text: str) -> str:
    """Return a text whose control characters are written out, as `\\x1b` is.

    Names and cells come from elsewhere: what they say is shown, and never done.
    """
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


@dataclass
class Console:
    """Results on stdout, everything else on stderr.

    stdout, stderr : the process's own unless a test swaps them
    quiet : say nothing but warnings and errors
    """

    stdout: TextIO = field(default_factory=lambda: sys.stdout)
    stderr: TextIO = field(default_factory=lambda: sys.stderr)
    quiet: bool = False
    _waiting: bool = False

    @property
    def shows_progress(self) -> bool:
        """True when stderr is a terminal and the user did not ask for quiet."""
        return not self.quiet and self.stderr.isatty()

    def wait(self, text: str) -> None:
        """Show on a terminal what is going on, until something else is said."""
        if self.shows_progress:
            self._waiting = True
            self._write(f"\r{text}{CLEAR}")

    def clear(self) -> None:
        """Take away what `wait` showed."""
        if self._waiting:
            self._waiting = False
            self._write(f"\r{CLEAR}")

    def result(self, text: str) -> None:
        """Write a result that people read."""
        self.clear()
        self.stdout.write(visible(text))

    def file(self, text: str) -> None:
        """Write the content of a file: as it is, unless a terminal shows it."""
        self.clear()
        self.stdout.write(visible(text) if self.stdout.isatty() else text)

    def result_as_json(self, value: object) -> None:
        """Write a result as one JSON object on one line."""
        self.file(json.dumps(value, allow_nan=False, default=str) + "\n")

    def note(self, text: str) -> None:
        """Say what was done, unless quiet."""
        if not self.quiet:
            self._say(text)

    def warn(self, text: str) -> None:
        """Say what the user should know of the result, on one line."""
        self._say(f"Warning: {text}")

    def error(self, text: str, hint: str | None = None) -> None:
        """Say what went wrong on one line, and the next step on one more."""
        self._say(f"Error: {text}")
        if hint:
            self._say(f"Hint: {hint}")

    def show(self, error: GlfmError) -> None:
        """Say what went wrong and the next step."""
        if isinstance(error, TypesMissingError):
            error = error.of_command()
        self.error(error.message(), error.hint)

    def _say(self, text: str) -> None:
        self.clear()
        text = " ".join(text.split())
        if len(text) > LONGEST:  # it quotes a cell or a name, which may be as long as a book
            text = f"{text[: LONGEST - 500]} ... {text[-500:]}"
        # One write: other processes that write to the same terminal cannot come between.
        self._write(visible(text) + "\n")

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # nobody listens any more: the work goes on
            self.stderr.write(text)
            self.stderr.flush()
