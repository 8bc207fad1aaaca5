"""A saved fit appears as a whole: it is filled under another name, which is then changed."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shlex import quote

from glfm_cli.errors import OutputError, StoreError
from glfm_cli.io.drafts import draft_of, hold, old_drafts
from glfm_cli.store.folder import remove_folder, writing
from glfm_cli.store.lock import lock


@contextmanager
def new_folder(folder: Path, mode: int = 0o777) -> Iterator[tuple[Path, int]]:
    """Lend an empty folder to fill; at the end it gets its name, after an error it is removed.

    With it comes a descriptor that holds its lock, also when it has its name, until it is closed.
    What a killed process left half filled beside it is removed, too.

    Raises OutputError: something of that name exists, or it cannot be written.
    """
    check_free(folder)
    _clear(folder.parent)
    draft = draft_of(folder)
    with writing(folder):
        draft.mkdir(mode)
        held = -1
        try:
            held = lock(draft)
            yield draft, held
            _place(draft, folder)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            if held >= 0:
                os.close(held)
            raise


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
            hint=f"Continue it with --resume {quote(str(folder))}, or choose another name.",
        )
    if not folder.parent.is_dir():
        raise OutputError(
            "cannot be written: the folder it should be in does not exist", file=str(folder)
        )


def _clear(parent: Path) -> None:
    """Remove the drafts that no process holds any more."""
    with suppress(OSError):  # a folder that may be written to and not be listed
        for path in old_drafts(parent):
            if path.is_dir() and not path.is_symlink():
                _remove_unless_held(path)


def _remove_unless_held(draft: Path) -> None:
    with suppress(OSError, StoreError, OutputError):  # in use, somebody else's, or gone by now
        held = lock(draft)
        try:
            if hold(held):  # None: there are no locks here, so it may be in use
                remove_folder(draft)
        finally:
            os.close(held)


def as_open_as(path: Path) -> int:
    """Return the permission bits of a folder that those may read who may read `path`.

    Anybody, but for what the umask forbids, where there is no such file or folder yet.
    """
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return 0o777
    return 0o700 | mode & 0o666 | (mode & 0o444) >> 2
