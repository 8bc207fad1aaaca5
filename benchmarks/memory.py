"""The memory of this process, as Linux tells it."""

from __future__ import annotations

from pathlib import Path


def status(field: str) -> float:
    """Return the bytes that the system gives under a name for this process, NaN without it."""
    file = Path("/proc/self/status")
    lines = file.read_text().splitlines() if file.exists() else []
    found = [line for line in lines if line.startswith(field)]
    return 1024.0 * int(found[0].split()[1]) if found else float("nan")


def forget_peak() -> None:
    """Let the peak of this process's memory start anew, where the system can."""
    file = Path("/proc/self/clear_refs")
    if file.exists():
        file.write_text("5")
