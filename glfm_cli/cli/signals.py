"""Signals that ask a command to end: it ends as at Ctrl-C, with what there is so far."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType

from glfm_cli.cli.console import ExitStatus

# Ctrl-C's, a batch system's, and that of a terminal that was closed.
NAMES = ("SIGINT", "SIGTERM", "SIGHUP")


def run_until_signalled(action: Callable[[], int]) -> int:
    """Return the status of an action; of one that a signal interrupted, 128 and its number.

    A signal that the process was told to ignore, by nohup for one, stays ignored. After the action
    the process is as good as done, and a signal just ends it.
    """
    received: list[int] = []
    heeded: list[int] = []

    def interrupt(number: int, _: FrameType | None) -> None:
        received.append(number)
        raise KeyboardInterrupt

    for name in NAMES:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, interrupt)
            heeded.append(number)
    try:
        status = action()
    except KeyboardInterrupt:  # one more, while the first was answered
        status = ExitStatus.INTERRUPTED
    finally:
        for number in heeded:
            signal.signal(number, signal.SIG_DFL)
    return 128 + received[0] if received and status == ExitStatus.INTERRUPTED else status
