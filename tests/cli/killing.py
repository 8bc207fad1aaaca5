"""`glfm` in processes that are interrupted or killed while they run."""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from glfm_cli.cli import app
from glfm_cli.cli.console import Console
from glfm_cli.cli.signals import run_until_signalled

# One server with everything imported, from which each process is forked within milliseconds.
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["glfm_cli.cli.impute", "glfm_cli.completion", "killing"])


def _run(
    arguments: list[str], folder: str, said: str, largest: int | None, toys: tuple[str, ...]
) -> None:
    for toy in toys:
        importlib.import_module(toy).register()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # ignored when the tests run under nohup
    os.chdir(folder)
    if largest is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    with open(said, "w", encoding="utf-8") as stderr:
        console = Console(sys.stdout, stderr)
        status = run_until_signalled(partial(app.run, arguments, console))
    os._exit(status)


class Command:
    """A command line in a process of its own, started at once.

    largest : bytes that a file may have, as where the disk is full
    toys : modules whose `register` is called first
    """

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        largest: int | None = None,
        toys: tuple[str, ...] = (),
    ) -> None:
        self._said = folder / "stderr.txt"
        target = (list(arguments), str(folder), str(self._said), largest, toys)
        self._process = _FORKS.Process(target=_run, args=target, daemon=True)
        with contextlib.chdir(Path(__file__).parents[2]):  # whose package the server imports
            self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def stderr(self) -> str:
        return self._said.read_text(encoding="utf-8")

    def end(self, seconds: float = 120) -> int:
        """Wait for the process and return its status; negative when a signal killed it."""
        self._process.join(seconds)
        assert self._process.exitcode is not None, "it did not end"
        return self._process.exitcode

    def stop(self, after: float, how: signal.Signals = signal.SIGKILL) -> int:
        """Send a signal after so many seconds, unless it has ended, and return its status."""
        self._process.join(after)
        if self._process.exitcode is None:
            os.kill(self.pid, how)
        return self.end()

    def wait_for(self, path: Path, seconds: float = 60) -> None:
        """Wait until a file is there."""
        self.wait_until(path.exists, seconds)

    def wait_until(self, happened: Callable[[], bool], seconds: float = 60) -> None:
        """Wait until something has happened while the process runs."""
        deadline = time.monotonic() + seconds
        while not happened():
            assert time.monotonic() < deadline, self.stderr
            assert self._process.exitcode is None, self.stderr
            time.sleep(0.002)
