"""The errors a user can meet: one line that says what, where, found and expected, and a hint."""

from __future__ import annotations

import errno
import json
import re
import shlex
from pathlib import Path

UNCOMPILED = (
    f"the kernels of glfm are not compiled in {Path(__file__).parent}, the folder that Python took"
    " it from; install glfm with `pip install`, and start outside its checkout or add -e"
)


class GlfmError(Exception):
    """An error of the user's making, or one that the user can mend.

    Parameters
    ----------
    problem : str
        What is wrong, a phrase without a full stop; left out when `found`/`expected` say it.
    file, row, column : optional
        Where: the file, the data row counted from 1 (the header is not a row), the column's name.
    value, expected : optional
        What was found there, and what would have been right.
    hint : optional
        The next step, a full sentence.
    """

    exit_status = 2

    def __init__(
        self,
        problem: str = "",
        *,
        file: str | None = None,
        row: int | None = None,
        column: str | None = None,
        value: object = None,
        expected: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.problem = problem
        self.file = file
        self.row = row
        self.column = column
        self.value = value
        self.expected = expected
        self.hint = hint
        super().__init__()

    def __str__(self) -> str:
        """Return message and hint in words of Python: of arguments where commands have options."""
        hint = f". {self.hint}" if self.hint else ""
        return _in_python(self.message() + hint)

    def message(self) -> str:
        """Return the one line shown after `Error:`."""
        where = []
        if self.file is not None:
            where.append(str(self.file))
        if self.column is not None:
            where.append(f"column '{self.column}'")
        if self.row is not None:
            where.append(f"row {self.row}")
        parts = [self.problem] if self.problem else []
        if self.value is not None:
            text = str(self.value)
            parts.append(f"found {text if len(text) <= 60 else text[:57] + '...'}")
        if self.expected is not None:
            parts.append(f"expected {self.expected}")
        line = ": ".join(part for part in (", ".join(where), ", ".join(parts)) if part)
        return " ".join(line.split())


class UsageError(GlfmError):
    """The options of a command do not fit together, or name something that is not there."""


class TypesMissingError(UsageError):
    """A table was given without its types; in the words of Python."""

    def __init__(self, file: str | None = None) -> None:
        super().__init__(
            "the types of the columns are missing",
            file=file,
            hint='Give them as `types`; "auto" takes those that `guess_schema` returns.',
        )

    def of_command(self) -> UsageError:
        """Return the error in the words of the command line."""
        name = self.file if self.file is not None and Path(self.file).is_file() else None
        data = "DATA" if name is None else shlex.quote(name)
        return UsageError(
            "--types FILE is missing",
            hint=f"`glfm types {data} -o types.yaml` writes a first one; `--types auto` uses "
            "the guess as it is.",
        )


class SchemaError(GlfmError):
    """The types file is wrong, or does not fit the table."""


class TableError(GlfmError):
    """The table cannot be read, or a cell does not fit its column's type."""


class OutputError(GlfmError):
    """A result cannot be written where it was asked for."""


class WriteError(OutputError):
    """The system failed while a result was written: a full disk, a broken device."""

    exit_status = 1


def write_error(
    error: OSError, problem: str, *, file: str | None = None, hint: str | None = None
) -> OutputError:
    """Return what the system's refusal to write is: the user's to mend, or a failure (status 1)."""
    kind = OutputError if error.errno in _MENDABLE else WriteError
    return kind(problem, file=file, hint=hint)


_MENDABLE = {
    *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.EPERM, errno.EROFS),
    *(errno.EEXIST, errno.ENOTEMPTY, errno.ENAMETOOLONG, errno.EINVAL, errno.ELOOP),
    errno.EBADF,  # of a closed standard stream
}


class NumericalError(GlfmError):
    """The numbers broke down inside a model."""

    exit_status = 1


def broke_down(error: Exception) -> NumericalError:
    """Return what to raise when a step of a model ends in an error of linear algebra."""
    return NumericalError(f"the numbers of the model broke down: {error}")


class StoreError(GlfmError):
    """A saved fit is broken, or is not one of this table, these types or these options."""


_CHOICES = "model|engine|effort|estimate|learn-rows|rule|mechanism|unseen"
_IN_PYTHON = (
    (r"--set (\w+)=(\w+)", r'settings={"\1": \2}'),
    (r"--set (\w+)(?=[:,]| is not)", r'settings["\1"]'),
    (r"--set\b", "settings"),
    (
        r"""--resume ('(?:[^']|'"'"')*'|(?![a-z]+ )[^\s,']*[^\s,.'])""",
        lambda found: "resume=" + json.dumps(shlex.split(found[1])[0], ensure_ascii=False),
    ),
    (r"--no-data\b", "with_data=False"),
    (rf"--({_CHOICES}) (?!is |and |or |cannot |needs )(\w[\w-]*)", r'--\1="\2"'),
    (r"--([a-z][\w-]*) ([A-Z\d](?:[\w.]*\w)?)", r"--\1=\2"),
    (r"(?<![\w-])--([a-z][\w-]*)", lambda found: found[1].replace("-", "_")),
)


def _in_python(text: str) -> str:
    """Return a text with arguments of Python where it has options, but for whole commands."""
    parts = re.split("(`glfm [^`]*`)", text)
    for pattern, words in _IN_PYTHON:
        parts[::2] = [re.sub(pattern, words, part) for part in parts[::2]]
    return "".join(parts)


def counted(n: int, what: str) -> str:
    """Return a number with its noun, in the plural where there is not one."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def is_uncompiled(error: Exception) -> bool:
    """Return whether an import failed because the compiled kernels are not there."""
    name = error.name if isinstance(error, ImportError) else None
    return (name or "").startswith("glfm_cli._kernels")
