"""Hidden files and folders beside their place, in which something is made before it appears whole.

A draft is locked while its process lives. What a killed process leaves has no lock, and whoever
writes there next removes it: it would fill the disk, and holds what the table holds.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # not a POSIX system: drafts are then not told from those in use
    fcntl = None  # type: ignore[assignment]

_DRAFT = re.compile(r"\..+\.[0-9a-f]{12}\.(tmp|new)")
_YOUNG = 10.0  # seconds in which a draft may not have its lock yet
_LETTERS = 40  # of the name, so that a draft's is not too long, whatever bytes a letter takes
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)


def draft_of(target: Path, ending: str = ".tmp") -> Path:
    """Return a free name for a draft of a file or folder."""
    return target.with_name(f"{_begin(target)}{secrets.token_hex(6)}{ending}")


def _begin(target: Path) -> str:
    return f".{target.name[:_LETTERS]}."


def hold(descriptor: int, *, wait: bool = False) -> bool | None:
    """Lock an open file or folder until it is closed; False when another process has its lock.

    wait : until the other process lets go
    None where there are no locks, as on some file systems that machines share.
    """
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        return False if error.errno in (errno.EWOULDBLOCK, errno.EACCES) else None
    return True


def old_drafts(parent: Path, begin: str = ".", ending: str = ".tmp") -> Iterator[Path]:
    """Yield the drafts in a folder, by their names' begin, that are not just being made."""
    for path in parent.iterdir():
        own = path.name.startswith(begin) and path.suffix == ending
        if own and _DRAFT.fullmatch(path.name):
            with suppress(OSError):  # gone by now
                if time.time() - path.lstat().st_mtime >= _YOUNG:
                    yield path


def clear_drafts(target: Path, ending: str = ".tmp") -> None:
    """Remove the drafts that killed processes left of a file, or, by `.new`, of a folder.

    What cannot be removed stays.
    """
    is_draft = stat.S_ISDIR if ending == ".new" else stat.S_ISREG
    with suppress(OSError):
        for path in old_drafts(target.parent, _begin(target), ending):
            with suppress(OSError):
                if is_draft(path.lstat().st_mode):
                    _remove_unless_held(path)


def _remove_unless_held(draft: Path) -> None:
    is_folder = draft.is_dir()
    how = os.O_RDONLY if is_folder else os.O_RDWR
    descriptor = os.open(draft, how | _NOFOLLOW | _NONBLOCK)
    try:
        if hold(descriptor):
            shutil.rmtree(draft) if is_folder else draft.unlink()
    finally:
        os.close(descriptor)
