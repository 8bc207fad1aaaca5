"""Folders whose files appear together."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from glfm_cli.errors import OutputError
from glfm_cli.io.drafts import clear_drafts, draft_of, hold
from glfm_cli.io.files import PathLike, atomic_write, not_written, replaceable


@contextmanager
def whole_folder(folder: PathLike, last: str, old: Collection[str] = ()) -> Iterator[Path]:
    """Lend an empty folder, whose files are in `folder` when the block ends without an error.

    A new folder appears in one step. Of one that is there each file is replaced in one step, after
    all of them are complete; so it is whole, or has the former file `last`.

    last : name of the file that comes last
    old : names of files that are removed when the block does not make them anew

    Raises OutputError: something cannot be written; the folder is then as it was.
    """
    target = Path(os.path.realpath(folder))
    is_there = target.is_dir()
    beside = target / last if is_there else target
    clear_drafts(beside, ".new")
    draft, descriptor = draft_of(beside, ".new"), -1
    try:
        draft.mkdir(0o700 if is_there else 0o777)
        descriptor = os.open(draft, os.O_RDONLY)
        hold(descriptor)
        yield draft
        if target.is_dir():  # by now, perhaps
            _move_into(draft, target, last, old)
        else:
            os.rename(draft, target)
    except OutputError as error:
        if error.file is not None:
            error.file = error.file.replace(str(draft), str(folder))
        raise
    except OSError as error:
        raise not_written(error, str(folder)) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        if descriptor >= 0:
            os.close(descriptor)


def _move_into(draft: Path, target: Path, last: str, old: Collection[str]) -> None:
    """Replace the files of a folder by those of a draft, and remove old ones, `last` at the end."""
    descriptor = os.open(target, os.O_RDONLY)
    try:
        hold(descriptor, wait=True)  # two runs do not mix their files
        names = sorted((path.name for path in draft.iterdir()), key=lambda name: name == last)
        modes = {name: replaceable(target / name, target / name) for name in names}
        for name in {*old}.difference(names):
            with suppress(FileNotFoundError, IsADirectoryError, PermissionError):
                (target / name).unlink()
        for name in names:
            place, mode = target / name, modes[name]
            if place.is_symlink() or mode is None:  # it stays a link, or a device
                with open(draft / name, "rb") as source, atomic_write(place) as file:
                    shutil.copyfileobj(source, file)
                continue
            if mode:
                os.chmod(draft / name, mode)
            os.replace(draft / name, place)
    finally:
        os.close(descriptor)
