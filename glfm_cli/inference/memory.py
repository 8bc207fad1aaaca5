"""The memory of processes, as the system tells it."""

from __future__ import annotations

import os
from pathlib import Path

SELF = Path("/proc/self")


def memory_in_use() -> float:
    """Return the resident memory of this process, kilobytes; its peak where only that is told."""
    try:
        return memory_of(SELF)["VmRSS"]
    except (OSError, KeyError):
        return peak_memory()


def peak_memory() -> float:
    """Return the most memory that this process ever had, kilobytes; NaN where not told."""
    try:
        import resource
    except ImportError:  # Windows
        return float("nan")
    peak = float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    return peak / 1024 if os.uname().sysname == "Darwin" else peak


def memory_of(folder: Path) -> dict[str, float]:
    """Return the memory lines of a process's status, kilobytes; OSError where there is none."""
    found = {}
    for line in (folder / "status").read_text().splitlines():
        name, _, value = line.partition(":")
        if value.strip().endswith(" kB"):
            found[name] = float(value.split()[0])
    return found
