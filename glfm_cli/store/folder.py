"""The files of a saved fit: found, opened and replaced without ever leaving their folder.

A folder from elsewhere may hold symbolic links, devices or hard links that lead to other files.
Files have fixed names, are opened without following links, must be regular, and are only written
to when the folder alone owns them.
"""

from __future__ import annotations

import errno
import mmap
import os
import re
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa

from glfm_cli.errors import StoreError, write_error

HEADER, TYPES, LINKS, DATA, LOCK = "run.json", "types.yaml", "links.arrow", "data.arrow", "lock"
MATRIX = "matrix.arrow"
_KNOWN = re.compile(
    r"(run\.json|types\.yaml|(links|data|matrix|constants|pooling)\.arrow|lock|chain-\d+\.\w+\.arrow)"
)
_TEMPORARY = re.compile(r"\.[\w.-]+\.[0-9a-f]{12}\.tmp")
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)  # opening a pipe must not wait for its other end
_BINARY = getattr(os, "O_BINARY", 0)


def draws_name(chain: int) -> str:
    """Return the name of the file with the draws of a chain."""
    return f"chain-{chain}.draws.arrow"


def state_name(chain: int) -> str:
    """Return the name of the file with the last state of a chain."""
    return f"chain-{chain}.state.arrow"


def check_folder(folder: Path) -> None:
    """Raise StoreError unless `folder` is a folder with a file run.json in it."""
    hint = "`glfm impute` and `glfm classify` make such a folder with --save DIR.glfm."
    if not folder.exists():
        raise StoreError("there is no such folder", file=str(folder), hint=hint)
    if not folder.is_dir():
        raise StoreError("is a file, not the folder of a saved fit", file=str(folder), hint=hint)
    if not os.path.lexists(folder / HEADER):
        raise StoreError(f"has no {HEADER}, so it is not a saved fit", file=str(folder), hint=hint)


def open_inside(folder: Path, name: str, flags: int = os.O_RDONLY) -> int:
    """Return a descriptor of a regular file of the folder.

    Raises StoreError: it is missing, a link, no regular file, or cannot be opened; or it is to be
        written and is another name of a file elsewhere.
    """
    path = folder / name
    try:
        found = os.lstat(path)
        if stat.S_ISLNK(found.st_mode):
            raise StoreError(
                "is a link to another place, which a saved fit never holds", file=str(path)
            )
        descriptor = os.open(path, flags | _NOFOLLOW | _NONBLOCK | _BINARY)
    except FileNotFoundError:
        raise StoreError("is missing", file=str(path), hint=_whole()) from None
    except OSError as error:
        reason = "is a link" if error.errno == errno.ELOOP else error.strerror or str(error)
        raise StoreError(f"cannot be opened: {reason}", file=str(path)) from None
    found = os.fstat(descriptor)
    problem = None
    if not stat.S_ISREG(found.st_mode):
        problem = "is not an ordinary file"
    elif flags != os.O_RDONLY and found.st_nlink > 1:
        problem = "is also the file of another name (a hard link), so it is not written to"
    if problem is not None:
        os.close(descriptor)
        raise StoreError(problem, file=str(path), hint="Copy the folder, and use the copy.")
    return descriptor


def read_small(folder: Path, name: str, most: int) -> bytes:
    """Return the bytes of a file that is at most `most` bytes long."""
    with open(open_inside(folder, name), "rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise StoreError(
            "is far too long", file=str(folder / name), expected=f"at most {most} bytes"
        )
    return content


def map_file(folder: Path, name: str) -> pa.Buffer:
    """Return the bytes of a file as a buffer that is paged in when it is read.

    The buffer stays valid when the file is removed, and costs address space only.
    """
    with open(open_inside(folder, name), "rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return pa.py_buffer(b"")
        return pa.py_buffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def replace_file(folder: Path, name: str, parts: Sequence[bytes | pa.Buffer]) -> None:
    """Write a file of the folder in one step: after a crash it is the old one or the new one.

    Raises OutputError: the disk is full, or the folder is not writable.
    """
    temporary = folder / f".{name}.{secrets.token_hex(6)}.tmp"
    with writing(folder / name):
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o666)
        try:
            with open(handle, "wb", buffering=0) as file:
                for part in parts:
                    write_all(file.fileno(), memoryview(part))
                os.fsync(file.fileno())
            os.replace(temporary, folder / name)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_folder(folder)


def write_all(descriptor: int, content: memoryview) -> None:
    """Write all bytes; the system may take them in several parts."""
    content = content.cast("B")
    while content.nbytes:
        content = content[os.write(descriptor, content) :]


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, where the system can."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:  # some network file systems cannot; the names then last as they will
        pass
    finally:
        os.close(descriptor)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn the system's errors while a file of the folder is written into an OutputError."""
    try:
        yield
    except OSError as error:
        hint = "Free some space, or write to another disk." if error.errno == errno.ENOSPC else None
        reason = error.strerror or str(error)
        problem = f"cannot be written: {reason}"
        raise write_error(error, problem, file=str(path), hint=hint) from error


def clear_temporaries(folder: Path) -> None:
    """Remove what a killed process left half written."""
    for path in folder.iterdir():
        if _TEMPORARY.fullmatch(path.name):
            path.unlink(missing_ok=True)


def remove_folder(folder: Path) -> None:
    """Remove a saved fit: its own files, then the folder unless there is something else in it.

    The lock, which the caller has, goes last: until then no other run takes the folder for its own.
    """
    for path in sorted(folder.iterdir(), key=lambda path: path.name == LOCK):
        if _KNOWN.fullmatch(path.name) or _TEMPORARY.fullmatch(path.name):
            path.unlink(missing_ok=True)
    with suppress(FileNotFoundError):
        if not any(folder.iterdir()):
            folder.rmdir()


def _whole() -> str:
    return "Copy the whole folder once more, or make a new one with `glfm impute ... --save`."
