"""A saved fit while a run writes to it: made as a whole, opened again, removed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Self

import numpy as np

import glfm_cli.inference.chains as chains
from glfm_cli.arrays import Array
from glfm_cli.encoding import Data
from glfm_cli.errors import StoreError
from glfm_cli.inference.recalibration import Recalibration
from glfm_cli.inference.sampling import Plan
from glfm_cli.latent.model import Problem
from glfm_cli.links import Link
from glfm_cli.store.arrays import to_stream
from glfm_cli.store.content import data_out, links_out, read_links
from glfm_cli.store.drafts import new_folder
from glfm_cli.store.folder import (
    DATA,
    HEADER,
    LINKS,
    TYPES,
    clear_temporaries,
    remove_folder,
    replace_file,
    writing,
)
from glfm_cli.store.header import Header
from glfm_cli.store.lock import lock
from glfm_cli.store.log import EVERY, Extent, FolderLog, Layout


class Store:
    """A saved fit that a run writes to; hand it to `sample` as its keeper.

    It holds the folder's lock until it is closed or removed.
    """

    def __init__(
        self,
        folder: Path,
        header: Header,
        links: tuple[Link, ...],
        every: float = EVERY,
        layout: Layout | None = None,
        *,
        held: int | None = None,
    ) -> None:
        self.folder, self.header = folder, header
        self._layout = layout or Layout.of(header, links)
        self._every = every
        self._lock = lock(folder) if held is None else held

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        header: Header,
        links: tuple[Link, ...],
        data: Data | None,
        *,
        more: Mapping[str, Mapping[str, Array]] | None = None,
        every: float = EVERY,
        content: bytes | None = None,
        layout: Layout | None = None,
        mode: int = 0o777,
    ) -> Self:
        """Write a new folder, which appears as a whole, and return it open.

        `more` are named arrays of further files, which a fit of triplets has; `content` stands for
        the constants of `links`, and `layout` for what follows from them; `mode` has the permission
        bits of the folder, but for what the umask forbids.

        Raises OutputError: something of that name exists, or it cannot be written.
        """
        folder = Path(path)
        with new_folder(folder, mode) as (draft, held):
            content = links_out(links) if content is None else content
            header = replace(header, links_hash=hashlib.sha256(content).hexdigest())
            replace_file(draft, LINKS, [content])
            replace_file(draft, TYPES, [header.schema.to_yaml().encode()])
            if data is not None:
                replace_file(draft, DATA, [data_out(data)])
            for name, arrays in (more or {}).items():
                replace_file(draft, name, [to_stream(arrays)])
            replace_file(draft, HEADER, [header.to_json().encode()])
        return cls(folder, header, links, every, layout, held=held)

    @classmethod
    def reopen(
        cls,
        path: str | os.PathLike[str],
        header: Header,
        links: tuple[Link, ...],
        *,
        every: float = EVERY,
    ) -> Store:
        """Return a folder open for more draws; `header` has the plan to go on with.

        Raises StoreError: its links are not those of this table, or another run writes to it.
        """
        folder = Path(path)
        stored = read_links(folder, header, header.columns())
        for ours, theirs in zip(links, stored, strict=True):
            if not _same(ours.constants(), theirs.constants()):
                raise StoreError(
                    f"the link of column '{ours.name}' is not the one that this table gives",
                    file=str(folder / LINKS),
                )
        store = cls(folder, header, links, every)
        with writing(folder):
            clear_temporaries(folder)
        return store

    def close(self) -> None:
        """Let go of the folder."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    @property
    def begun(self) -> bool:
        """Whether the folder has a draw or a state of a chain."""
        return any(path.stat().st_size for path in self.folder.glob("chain-*"))

    def chain(self, index: int) -> FolderLog:
        """Open the log of a chain."""
        return FolderLog(self.folder, index, self._layout, self.header.plan.seed, self._every)

    def check(self, problem: Problem) -> tuple[Extent, ...]:
        """Return how far every chain has come, after checking that each can be gone on with.

        Raises StoreError: a state or a stream of draws is broken, or not of this problem and seed.
        """
        load = partial(chains.load, problem)
        return tuple(self.chain(i).check(load) for i in range(self.header.plan.chains))

    def plan_for(self, plan: Plan) -> None:
        """Note the plan that the run goes on with."""
        self.header = replace(self.header, plan=plan)
        replace_file(self.folder, HEADER, [self.header.to_json().encode()])

    def finish(self, seconds: float, recalibration: Recalibration | None = None) -> None:
        """Note the time that sampling took, and how the draws' forecasts are corrected."""
        seconds += self.header.seconds
        self.header = replace(self.header, seconds=seconds, recalibration=recalibration)
        replace_file(self.folder, HEADER, [self.header.to_json().encode()])

    def remove(self) -> None:
        """Remove the folder: the run it kept is complete, and its result is elsewhere."""
        with writing(self.folder):
            remove_folder(self.folder)
        self.close()


def discard(folder: Path) -> None:
    """Remove a saved fit that nobody writes to, whole or broken; other files in it are left.

    Raises StoreError: it is no folder, or another run writes to it.
    """
    if folder.is_symlink() or not folder.is_dir():
        raise StoreError(
            "is in the way of a run's partial work", file=str(folder), hint="Move or remove it."
        )
    held = lock(folder)
    try:
        with writing(folder):
            remove_folder(folder)
    finally:
        os.close(held)


def _same(a: Mapping[str, Array], b: Mapping[str, Array]) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)
