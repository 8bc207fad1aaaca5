"""A command in a process of its own, seen through a terminal."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Self


class OnTerminal:
    """`glfm` whose stderr is a terminal; nothing is left running at the end of a `with`."""

    def __init__(self, repository: Path, *arguments: str | Path) -> None:
        self.terminal, end = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "glfm_cli", *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=end,
            env={**os.environ, "PYTHONPATH": str(repository), "TERM": "xterm", "COLUMNS": "120"},
        )
        os.close(end)
        self.seen = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.terminal)

    def wait_for(self, text: bytes, seconds: float = 60) -> None:
        """Read the terminal until a text appears."""
        deadline = time.monotonic() + seconds
        while text not in self.seen:
            assert time.monotonic() < deadline, self.seen[-500:]
            if not self.read():
                raise AssertionError(f"it ended without {text!r}: {self.seen[-500:]!r}")

    def read(self) -> bool:
        """Read what the terminal shows; False when the process has closed it."""
        if select.select([self.terminal], [], [], 0.1)[0]:
            try:
                self.seen += os.read(self.terminal, 65536)
            except OSError:
                return False
        return True

    def press_ctrl_c(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def end(self) -> int:
        """Wait for the process and return its status."""
        deadline = time.monotonic() + 60
        while self.read() and time.monotonic() < deadline:
            pass
        return self.process.wait(timeout=10)
