"""Bytes in and out: whole files, standard streams, and files that appear all at once."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from glfm_cli.errors import OutputError, TableError, write_error
from glfm_cli.io.drafts import clear_drafts, draft_of, hold
from glfm_cli.io.web import download, is_address

PathLike = str | os.PathLike[str]

STANDARD = "-"


def read_bytes(source: PathLike) -> bytes:
    """Return all bytes of a file or web address, or of standard input when `source` is `-`."""
    try:
        if os.fspath(source) == STANDARD:
            return sys.stdin.buffer.read()
        if is_address(os.fspath(source)):
            return download(os.fspath(source))
        return Path(source).read_bytes()
    except OSError as error:
        reason = _reason(error, writing=False)
        raise TableError(reason, file=file_label(source), hint=_hint(error)) from None


def file_label(source: PathLike) -> str:
    """Return how messages call a file."""
    return "standard input" if os.fspath(source) == STANDARD else str(source)


def same_file(a: PathLike, b: PathLike) -> bool:
    """Return True when two paths lead to one file, through links too; a stream is never one."""
    if STANDARD in (os.fspath(a), os.fspath(b)):
        return False
    try:
        return os.path.samefile(a, b)
    except OSError:  # one of them does not exist (yet)
        return os.path.realpath(a) == os.path.realpath(b)


def is_device(path: PathLike) -> bool:
    """Return True for what is there but is neither file nor folder: a device or a pipe."""
    try:
        found = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(found) or stat.S_ISDIR(found))


@contextmanager
def atomic_write(path: PathLike, mode: str = "wb") -> Iterator[IO[Any]]:
    """Open a file that takes its name only when the block ends without an error.

    The bytes go to a temporary file in the same folder, which then replaces `path` in one step:
    a reader sees the old file or the new one, never a part. A symbolic link keeps pointing where
    it did and its target is replaced. A device or pipe, which cannot be replaced, is written
    directly.

    mode : "wb" or "w"; bytes or text; text is written as it is, without translating line ends

    Raises OutputError: the folder is missing or not writable, the disk is full, or `path` is a
        folder.
    """
    target = _target(path)
    options: dict[str, Any] = {} if "b" in mode else {"encoding": "utf-8", "newline": ""}
    try:
        kept_mode = replaceable(target, path)
        if kept_mode is None:
            with open(target, mode, **options) as file:
                yield file
            return
        with _temporary(target, kept_mode, mode, options) as file:
            yield file
    except BrokenPipeError:
        raise
    except OSError as error:
        raise not_written(error, str(path)) from error


def check_writable(path: PathLike) -> None:
    """Raise the OutputError that `atomic_write` would, before long work, and leave no trace."""
    target = _target(path)
    try:
        if replaceable(target, path) is not None:
            probe = draft_of(target)
            os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
            probe.unlink()
    except OSError as error:
        raise not_written(error, str(path)) from error


def _target(path: PathLike) -> Path:
    """Return the file that is written under a name, links followed.

    /dev/stdout leads to a pipe that has no name of its own, so such a one is opened as it is given.
    """
    return Path(path) if is_device(path) else Path(os.path.realpath(path))


def replaceable(target: Path, shown: PathLike) -> int | None:
    """Return the permission bits of a regular file, 0 when there is none yet, None for a device."""
    try:
        found = target.stat().st_mode
    except FileNotFoundError:
        return 0
    if stat.S_ISDIR(found):
        raise OutputError(
            "is a folder, so no file can be written there",
            file=str(shown),
            hint="Give the name of a file inside that folder.",
        )
    if not stat.S_ISREG(found):
        return None
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return stat.S_IMODE(found)


@contextmanager
def _temporary(
    target: Path, kept_mode: int, mode: str, options: dict[str, Any]
) -> Iterator[IO[Any]]:
    clear_drafts(target)
    name = draft_of(target)
    # Not tempfile: its files are private, and this one becomes an ordinary file of the user; it is
    # never open to others whom the file that it replaces is closed to.
    handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, kept_mode or 0o666)
    try:
        with open(handle, mode, **options) as file:
            if kept_mode:
                os.chmod(name, kept_mode)
            hold(file.fileno())
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, target)
    except BaseException:
        name.unlink(missing_ok=True)
        raise


def write_stdout(blocks: Iterator[bytes]) -> None:
    """Write blocks of bytes to standard output; a closed pipe raises BrokenPipeError."""
    try:
        for block in blocks:
            sys.stdout.buffer.write(block)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise not_written(error, "standard output") from error


# What went wrong, when reading and when writing.
_REASONS = {
    errno.ENOENT: ("there is no such file", "the folder it should be in does not exist"),
    errno.ENOTDIR: ("a part of its path is a file, not a folder",) * 2,
    errno.EISDIR: ("it is a folder, not a file",) * 2,
    errno.EACCES: ("no permission to read it", "no permission to write there"),
    errno.EPERM: ("no permission to read it", "no permission to write there"),
    errno.EROFS: ("the file system is read-only",) * 2,
    errno.ENOSPC: ("the disk is full",) * 2,
    errno.EDQUOT: ("the disk quota is used up",) * 2,
    errno.EBADF: ("it is closed",) * 2,
    errno.ENAMETOOLONG: ("its name is too long",) * 2,
}


def not_written(error: OSError, shown: str) -> OutputError:
    """Return the error of a file that cannot be written."""
    return write_error(error, _reason(error, writing=True), file=shown, hint=_hint(error))


def _reason(error: OSError, *, writing: bool) -> str:
    known = _REASONS.get(error.errno or 0)
    reason = known[writing] if known else str(error.strerror or error)
    return f"cannot be {'written' if writing else 'read'}: {reason}"


def _hint(error: OSError) -> str | None:
    if error.errno == errno.ENOENT:
        return "Check the path, and the folder the command runs in."
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "Free some space, or write to another disk."
    return None
