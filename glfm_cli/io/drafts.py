"""Hidden files and folders beside their place, in which something is made before it appears whole.

A draft is locked while its process lives. What a killed process leaves has no lock, and whoever
writes there next removes it: it would fill the disk, and holds what the table holds.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # not a POSIX system: drafts are then not told from those in use
    fcntl = None  # type: ignore[assignment]

_DRAFT = re.compile(r"\..+\.[0-9a-f]{12}\.tmp")
_YOUNG = 10.0  # seconds in which a draft may not have its lock yet
_LETTERS = 40  # of the name, so that a draft's is not too long, whatever bytes a letter takes
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)


def draft_of(target: Path) -> Path:
    """Return a free name for a draft of a file or folder."""
    return target.with_name(f".{target.name[:_LETTERS]}.{secrets.token_hex(6)}.tmp")


def hold(descriptor: int) -> bool | None:
    """Lock an open file until it is closed; False when another process has its lock.

    None where there are no locks, as on some file systems that machines share.
    """
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return False if error.errno in (errno.EWOULDBLOCK, errno.EACCES) else None
    return True


def old_drafts(parent: Path, begin: str = ".") -> Iterator[Path]:
    """Yield the drafts in a folder, by the begin of their names, that are not just being made."""
    for path in parent.iterdir():
        if path.name.startswith(begin) and _DRAFT.fullmatch(path.name):
            with suppress(OSError):  # gone by now
                if time.time() - path.lstat().st_mtime >= _YOUNG:
                    yield path


def clear_drafts(target: Path) -> None:
    """Remove the drafts of a file that killed processes left; what cannot be removed stays."""
    with suppress(OSError):
        for path in old_drafts(target.parent, f".{target.name[:_LETTERS]}."):
            with suppress(OSError):
                if not stat.S_ISREG(path.lstat().st_mode):
                    continue
                descriptor = os.open(path, os.O_RDWR | _NOFOLLOW | _NONBLOCK)
                try:
                    if hold(descriptor):
                        path.unlink()
                finally:
                    os.close(descriptor)
