"""At most one run writes to a saved fit at a time."""

from __future__ import annotations

import os
from pathlib import Path

from glfm_cli.errors import StoreError
from glfm_cli.store.folder import LOCK, open_inside, writing

try:
    import fcntl
except ImportError:  # not a POSIX system: two runs on one folder are then not told apart
    fcntl = None  # type: ignore[assignment]


def lock(folder: Path) -> int:
    """Return a descriptor that holds the folder's lock until it is closed, or the process ends.

    Raises StoreError: another process writes to the folder.
    """
    path = folder / LOCK
    if not os.path.lexists(path):
        with writing(path):
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o666))
    descriptor = open_inside(folder, LOCK, os.O_RDWR)
    if fcntl is not None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise StoreError(
                "another run of glfm is writing to it",
                file=str(folder),
                hint="Wait until it ends, or end it.",
            ) from None
    return descriptor
