"""How much time and memory one fit takes."""

from __future__ import annotations

import contextlib
import ctypes
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from glfm_cli.inference.memory import SELF, memory_of, peak_memory


@dataclass
class Cost:
    """Seconds and megabytes of a fit, filled in when it ends; megabytes NaN where not known."""

    seconds: float = float("nan")
    megabytes: float = float("nan")
    elsewhere: float = 0.0  # the most that other processes of the fit had, kilobytes

    def note(self, kilobytes: float) -> None:
        """Take in the memory that other processes of the fit have at the moment."""
        self.elsewhere = max(self.elsewhere, kilobytes)


@contextlib.contextmanager
def measured(cost: Cost) -> Iterator[None]:
    """Measure the block: its wall-clock time, and its peak memory beyond what was there before.

    On Linux the system's high-water mark is reset first, so that every fit has its own. Elsewhere
    the mark only ever grows, and a fit that needed less than an earlier one shows 0. Memory of
    external programs is that of all their processes together, looked at every 0.1 s.
    """
    _give_back()
    before = _reset()
    began = time.monotonic()
    try:
        yield
    finally:
        cost.seconds = time.monotonic() - began
        grown = _high_water() - before
        cost.megabytes = max(cost.elsewhere, grown, 0.0) / 1024


def _give_back() -> None:
    """Return freed memory to the system: what is kept for later would hide what a fit needs."""
    with contextlib.suppress(OSError, AttributeError):  # not Linux with the usual C library
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def _reset() -> float:
    """Forget the high-water mark where that can be done; return the memory in use, kilobytes."""
    try:
        (SELF / "clear_refs").write_text("5")
        return memory_of(SELF)["VmRSS"]
    except (OSError, KeyError):
        return _high_water()


def _high_water() -> float:
    try:
        return memory_of(SELF)["VmHWM"]
    except (OSError, KeyError):
        return peak_memory()


def group_memory(group: int) -> float:
    """Return the resident memory of a process group, kilobytes; 0 where /proc does not tell."""
    total = 0.0
    try:
        folders = [entry for entry in os.listdir("/proc") if entry.isdecimal()]
    except OSError:
        return total
    for entry in folders:
        try:
            if os.getpgid(int(entry)) == group:
                total += memory_of(Path("/proc") / entry).get("VmRSS", 0.0)
        except (OSError, ValueError):
            continue  # it has ended meanwhile
    return total
