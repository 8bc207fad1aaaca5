"""Signals that ask a command to end: it ends as at Ctrl-C, with what there is so far."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType

from glfm_cli.cli.console import ExitStatus

NAMES = ("SIGTERM", "SIGHUP")  # a batch system's, and that of a terminal that was closed


def run_until_signalled(action: Callable[[], int]) -> int:
    """Return the status of an action; of one that a signal interrupted, 128 and its number.

    A signal that the process was told to ignore, by nohup for one, stays ignored.
    """
    received: list[int] = []

    def interrupt(number: int, _: FrameType | None) -> None:
        received.append(number)
        raise KeyboardInterrupt

    for name in NAMES:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, interrupt)
    status = action()
    return 128 + received[0] if received and status == ExitStatus.INTERRUPTED else status
