"""A saved fit appears as a whole: it is filled under another name, which is then changed."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from glfm_cli.errors import OutputError, StoreError
from glfm_cli.store.folder import remove_folder, writing
from glfm_cli.store.lock import lock

_DRAFT = re.compile(r"\..+\.[0-9a-f]{12}\.tmp")
_YOUNG = 10.0  # seconds in which a draft may not have its lock yet


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Lend an empty folder to fill; at the end it gets its name, after an error it is removed.

    What a killed process left half filled beside it is removed, too.

    Raises OutputError: something of that name exists, or it cannot be written.
    """
    check_free(folder)
    _clear(folder.parent)
    draft = folder.with_name(f".{folder.name[:100]}.{secrets.token_hex(6)}.tmp")
    with writing(folder):
        draft.mkdir()
        held = -1
        try:
            held = lock(draft)
            yield draft
            _place(draft, folder)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        finally:
            if held >= 0:
                os.close(held)


def _place(draft: Path, folder: Path) -> None:
    try:
        os.rename(draft, folder)
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
            raise
        raise OutputError(
            "another run has begun to write here in the meantime",
            file=str(folder),
            hint="Wait until it ends, or choose another name.",
        ) from None


def check_free(folder: Path) -> None:
    """Raise OutputError when a new folder cannot have this name."""
    if os.path.lexists(folder):
        raise OutputError(
            "is already there, and a saved fit is never written over",
            file=str(folder),
            hint=f"Continue it with --resume {folder}, or choose another name.",
        )
    if not folder.parent.is_dir():
        raise OutputError(
            "cannot be written: the folder it should be in does not exist", file=str(folder)
        )


def _clear(parent: Path) -> None:
    """Remove the drafts that no process holds any more."""
    for path in parent.iterdir():
        if not _DRAFT.fullmatch(path.name) or path.is_symlink() or not path.is_dir():
            continue
        try:
            if time.time() - path.stat().st_mtime < _YOUNG:
                continue
            os.close(lock(path))
            remove_folder(path)
        except (OSError, StoreError, OutputError):  # in use, somebody else's, or gone by now
            continue
