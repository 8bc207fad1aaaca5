"""At most one run writes to a saved fit at a time."""

from __future__ import annotations

import os
from pathlib import Path

from glfm_cli.errors import StoreError
from glfm_cli.io.drafts import hold
from glfm_cli.store.folder import LOCK, open_inside, writing


def lock(folder: Path) -> int:
    """Return a descriptor that holds the folder's lock until it is closed, or the process ends.

    On a file system without locks, as some shared ones are, two runs are not told apart.

    Raises StoreError: another process writes to the folder, or has just removed it.
    """
    path = folder / LOCK
    if not os.path.lexists(path):
        with writing(path):
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o666))
    descriptor = open_inside(folder, LOCK, os.O_RDWR)
    if hold(descriptor) is False or not _is_at(descriptor, path):
        os.close(descriptor)
        raise StoreError(
            "another run of glfm is writing to it",
            file=str(folder),
            hint="Wait until it ends, or end it.",
        )
    return descriptor


def _is_at(descriptor: int, path: Path) -> bool:
    """Return False when the run that had the lock has taken the file away meanwhile."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except OSError:
        return False
