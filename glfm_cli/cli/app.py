"""The command `glfm`: its commands, and how each way to fail ends.

A command is a module with a function `run` (whose docstring is its help) and one runnable
`EXAMPLE`; adding it to `COMMANDS` is all there is to do. Modules of commands import nothing
heavy before `run`, so that `glfm --help` is instant.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import Annotated, Any

import typer
from typer.main import get_command

from glfm_cli import __version__
from glfm_cli.cli import classify, diagnose, evaluate, explore, impute, suggest, types
from glfm_cli.cli.console import Console, ExitStatus
from glfm_cli.cli.signals import run_until_signalled
from glfm_cli.errors import UNCOMPILED, GlfmError, is_uncompiled

COMMANDS: dict[str, ModuleType] = {
    "classify": classify,
    "diagnose": diagnose,
    "evaluate": evaluate,
    "explore": explore,
    "impute": impute,
    "suggest": suggest,
    "types": types,
}

COMPLETE = "_GLFM_COMPLETE"
EXAMPLE = "glfm impute sample_data/pbc.csv --types sample_data/pbc.types.yaml"
# Wrong options and arguments; typer has no public name for the parent of its usage errors.
WrongUsage: type[Exception] = typer.BadParameter.__mro__[1]


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"glfm {__version__}")
        raise typer.Exit


def glfm(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Complete tables with missing values, explore them, and predict from them."""


_OF_STREAMS = (errno.EBADF, errno.ENOSPC, errno.EDQUOT)  # where no file is named
_LESS_MEMORY = "Close other programs or raise the limit (`ulimit -v`); `--threads 1` takes less."


def command() -> Any:
    """Return `glfm` with its commands, as the library below typer takes it."""
    app = typer.Typer(
        name="glfm",
        rich_markup_mode=None,
        context_settings={"help_option_names": ["--help", "-h"]},
    )
    app.callback(epilog=f"Example:  {EXAMPLE}")(glfm)
    for name, module in COMMANDS.items():
        app.command(name, epilog=f"Example:  {module.EXAMPLE}")(module.run)
    return get_command(app)


def run(arguments: Sequence[str], console: Console) -> int:
    """Run one command line and return its exit status."""
    return end(partial(_dispatch, arguments, console), console)


def end(action: Callable[[], int], console: Console) -> int:
    """Run an action and return its exit status; nothing escapes as a traceback."""
    try:
        status = action()
        console.clear()
        console.stdout.flush()
        return status
    except GlfmError as error:
        console.show(error)
        _debug(console)
        return error.exit_status
    except WrongUsage as error:
        console.error(*_usage_problem(error))
        return ExitStatus.USAGE
    except (KeyboardInterrupt, typer.Abort):
        return _interrupted(console)
    except BrokenPipeError:
        _discard_stdout()  # the reader, such as `head`, has seen enough
        return ExitStatus.OK
    except MemoryError:
        console.error("there is not enough memory for this table", _LESS_MEMORY)
        _debug(console)
        return ExitStatus.FAILED
    except OSError as error:
        if error.filename is None and error.errno in _OF_STREAMS:
            from glfm_cli.io.files import not_written

            refused = not_written(error, "standard output")
            console.show(refused)
            return refused.exit_status
        console.error(f"{error.filename or 'the system'}: {error.strerror or error}")
        _debug(console)
        return ExitStatus.FAILED
    except Exception as error:
        if _follows_interruption(error):
            return _interrupted(console)
        if isinstance(error, ImportError) and "map segment" in str(error):
            console.error("there is not enough memory to load glfm", _LESS_MEMORY)
            return ExitStatus.FAILED
        if is_uncompiled(error):
            console.error(UNCOMPILED)
            return ExitStatus.FAILED
        console.error(
            f"this is a bug in glfm {__version__}: {type(error).__name__}: {error}",
            "Please report it; with the environment variable GLFM_DEBUG=1 glfm shows where it is.",
        )
        _debug(console)
        return ExitStatus.FAILED


def _interrupted(console: Console) -> int:
    console.error("interrupted before the work was done")
    return ExitStatus.INTERRUPTED


def _follows_interruption(error: BaseException | None) -> bool:
    """Return whether an error is what Python, or a library, made of Ctrl-C."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _dispatch(arguments: Sequence[str], console: Console) -> int:
    whole = command()
    if COMPLETE in os.environ:  # a shell asks what may come next
        whole.main(list(arguments), prog_name="glfm")
    try:
        with whole.make_context("glfm", list(arguments), obj=console) as context:
            status = whole.invoke(context)
    except typer.Exit as done:
        return done.exit_code
    return status if isinstance(status, int) else ExitStatus.OK


def _usage_problem(error: Exception) -> tuple[str, str]:
    """Return the message and the hint for a wrong command line."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "glfm"
    say = getattr(error, "format_message", error.__str__)
    return say().rstrip("."), f"`{command} --help` lists its arguments and options."


def _discard_stdout() -> None:
    # What is still buffered would raise once more when Python flushes it at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _debug(console: Console) -> None:
    if os.environ.get("GLFM_DEBUG") == "1":
        traceback.print_exc(file=console.stderr)


def _reopen_closed() -> None:
    """Put a stand-in where a standard stream was closed, so that no other file takes its number.

    Nothing can be read from it, and writing results to it fails; messages have nowhere to go.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            mode = os.O_WRONLY if name == "stderr" else os.O_RDONLY
            os.dup2(os.open(os.devnull, mode), number)
            setattr(sys, name, open(number, "r" if name == "stdin" else "w"))  # noqa: SIM115


def main() -> None:
    """Run `glfm` on the process's arguments and end the process."""
    closed = sys.stdout is None
    _reopen_closed()
    for stream in (sys.stdout, sys.stderr):
        # Names and levels may hold any letter, whatever the terminal's own encoding.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    console = Console()
    action = partial(_alone, sys.argv[1:], console)
    status = run_until_signalled(partial(end, action, console))
    if closed:
        _discard_stdout()
    sys.exit(status)


def _alone(arguments: Sequence[str], console: Console) -> int:
    """Run a command line in a process that runs nothing else."""
    if not {"--help", "-h", "--version"}.intersection(arguments):
        import logging

        from glfm_cli.io.frames import leave_pandas_out

        leave_pandas_out()
        # It would say in every run that a home folder, as of a container, cannot be written to.
        logging.getLogger("matplotlib").setLevel(logging.ERROR)
    return _dispatch(arguments, console)
