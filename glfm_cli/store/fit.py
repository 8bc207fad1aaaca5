"""A saved fit as a whole: written at the start of a run, loaded after it."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from glfm_cli.encoding import Data, EncodedColumn
from glfm_cli.errors import OutputError, StoreError
from glfm_cli.latent.latent import Array, LatentModel, take
from glfm_cli.links.constants import constants_of, link_from
from glfm_cli.links.link import Link, LinkConfig
from glfm_cli.posterior import Posterior
from glfm_cli.sampling import Plan, Problem, inner, load_chain, spans_of
from glfm_cli.schema import Column, Schema
from glfm_cli.store.arrays import read_one, to_stream
from glfm_cli.store.folder import (
    DATA,
    HEADER,
    LINKS,
    TYPES,
    check_folder,
    clear_temporaries,
    map_file,
    remove_folder,
    replace_file,
    writing,
)
from glfm_cli.store.header import Header, hash_of_data, read_header
from glfm_cli.store.lock import lock
from glfm_cli.store.log import EVERY, Extent, FolderLog, Layout, broken, read_draws, read_state


@dataclass(frozen=True)
class Fit:
    """A saved fit, loaded: everything that a task needs, with or without the table.

    Attributes
    ----------
    path : Path
        Its folder.
    schema : Schema
        The types as they were given, patterns included.
    table_columns : tuple of str
        Names of all columns of the fitted table, in its order, modelled or not.
    columns : tuple of Column
        The D modelled columns in the table's order, names and types resolved.
    levels : tuple of tuple of str
        Per modelled column its levels by code, learnt ones included; empty for numbers.
    links : tuple of Link
        Per modelled column, with the constants that the draws belong to.
    posterior : Posterior
        The draws of the chains that count. Their arrays are read-only and stay on disk until
        they are used, so that a fit takes little memory.
    data : Data or None
        The encoded table; None when it was left out by `--no-data`.
    n_rows : int
        Rows of the fitted table.
    plan : Plan
        Chains, warm-up, draws, thinning and seed.
    model, config, link_config
        The latent model, its configuration and that of the links.
    extents : tuple of Extent
        Per chain of the plan, the sweeps and draws it has made.
    header : Header
        All that run.json says: versions, hashes, seconds.
    notes : tuple of str
        What a user should know, one line each: chains that do not count, a run cut short.
    """

    path: Path
    header: Header
    columns: tuple[Column, ...]
    links: tuple[Link, ...]
    posterior: Posterior
    data: Data | None
    extents: tuple[Extent, ...]
    notes: tuple[str, ...]

    @property
    def schema(self) -> Schema:
        return self.header.schema

    @property
    def table_columns(self) -> tuple[str, ...]:
        return self.header.table

    @property
    def levels(self) -> tuple[tuple[str, ...], ...]:
        return tuple(column.levels for column in self.header.modelled)

    @property
    def n_rows(self) -> int:
        return self.header.n_rows

    @property
    def plan(self) -> Plan:
        return self.header.plan

    @property
    def seed(self) -> int:
        return self.header.plan.seed

    @property
    def model(self) -> LatentModel:
        return self.header.latent

    @property
    def config(self) -> Any:
        return self.header.model_config

    @property
    def link_config(self) -> LinkConfig:
        return self.header.link_config


def load_fit(path: str | os.PathLike[str]) -> Fit:
    """Return a saved fit, every part of it checked before it is trusted.

    Parameters
    ----------
    path : path
        The folder `NAME.glfm` that `save=` or `--save` wrote. It may be of a run that was cut
        short: the draws up to its last checkpoint are there.

    Raises
    ------
    StoreError
        It is no saved fit, is broken, or was written by a newer version; or no draw was kept
        before the run was cut short.
    """
    folder = Path(path)
    check_folder(folder)
    header = read_header(folder)
    columns = header.columns()
    links = read_links(folder, header, columns)
    layout = Layout(header.latent, links, header.n_rows)
    found = [read_state(folder, index) for index in range(header.plan.chains)]
    extents = tuple(Extent() if one is None else one[0] for one in found)
    del found
    chains = [read_draws(folder, i, extent, layout) for i, extent in enumerate(extents)]
    kept = tuple(chain for chain in chains if chain)
    if not kept:
        most = max(extent.sweeps for extent in extents)
        raise StoreError(
            f"no draw was kept before the run ended: it had made {most} of its "
            f"{header.plan.warmup} warm-up sweeps",
            file=str(folder),
            hint=f"Go on with `glfm impute ... --resume {folder}`.",
        )
    return Fit(
        path=folder,
        header=header,
        columns=columns,
        links=links,
        posterior=Posterior(header.latent, links, spans_of(links), kept),
        data=read_data(folder, header, columns) if header.has_data else None,
        extents=extents,
        notes=_notes(header.plan, extents),
    )


def _notes(plan: Plan, extents: Sequence[Extent]) -> tuple[str, ...]:
    notes = []
    kept = sum(extent.draws > 0 for extent in extents)
    if kept < len(extents):
        notes.append(f"only {kept} of {len(extents)} chains kept draws; only they count")
    done = sum(extent.draws for extent in extents)
    if done < plan.chains * plan.draws:
        notes.append(f"the run was cut short: {done} of {plan.chains * plan.draws} draws are there")
    return tuple(notes)


class Store:
    """A saved fit that a run writes to; hand it to `sample` as its keeper.

    Used as a context manager, it holds the folder's lock until its end.
    """

    def __init__(
        self, folder: Path, header: Header, links: tuple[Link, ...], every: float = EVERY
    ) -> None:
        self.folder, self.header = folder, header
        self._layout = Layout(header.latent, links, header.n_rows)
        self._every = every
        self._lock = lock(folder)

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        header: Header,
        links: tuple[Link, ...],
        data: Data | None,
        *,
        every: float = EVERY,
    ) -> Store:
        """Write a new folder, which appears as a whole, and return it open.

        Raises
        ------
        OutputError
            Something of that name exists, or it cannot be written.
        """
        folder = Path(path)
        check_free(folder)
        draft = folder.with_name(f".{folder.name[:100]}.{secrets.token_hex(6)}.tmp")
        with writing(folder):
            draft.mkdir()
            try:
                constants = {
                    f"{d}.{name}": value
                    for d, link in enumerate(links)
                    for name, value in constants_of(link).items()
                }
                constants["columns"] = np.array(len(links), dtype=np.int64)
                content = to_stream(constants)
                header = replace(header, links_hash=hashlib.sha256(content).hexdigest())
                replace_file(draft, LINKS, [content])
                replace_file(draft, TYPES, [header.schema.to_yaml().encode()])
                if data is not None:
                    replace_file(draft, DATA, [to_stream(_data_out(data))])
                replace_file(draft, HEADER, [header.to_json().encode()])
                os.rename(draft, folder)
            except BaseException:
                remove_folder(draft)
                raise
        return cls(folder, header, links, every)

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

        Raises
        ------
        StoreError
            Its links are not those of this table, or another run writes to it.
        """
        folder = Path(path)
        stored = read_links(folder, header, header.columns())
        for ours, theirs in zip(links, stored, strict=True):
            if not _same(constants_of(ours), constants_of(theirs)):
                raise StoreError(
                    f"the link of column '{ours.name}' is not the one that this table gives",
                    file=str(folder / LINKS),
                )
        store = cls(folder, header, links, every)
        with writing(folder):
            clear_temporaries(folder)
        return store

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the folder."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def chain(self, index: int) -> FolderLog:
        """Open the log of a chain."""
        return FolderLog(self.folder, index, self._layout, self.header.plan.seed, self._every)

    def check(self, problem: Problem) -> tuple[Extent, ...]:
        """Return how far every chain has come, after checking that each can be gone on with.

        Raises
        ------
        StoreError
            A state or a stream of draws is broken, or not of this problem and seed.
        """
        load = partial(load_chain, problem)
        return tuple(self.chain(i).check(load) for i in range(self.header.plan.chains))

    def plan_for(self, plan: Plan) -> None:
        """Note the plan that the run goes on with."""
        self.header = replace(self.header, plan=plan)
        replace_file(self.folder, HEADER, [self.header.to_json().encode()])

    def finish(self, seconds: float) -> None:
        """Note the time that sampling took."""
        self.header = replace(self.header, seconds=self.header.seconds + seconds)
        replace_file(self.folder, HEADER, [self.header.to_json().encode()])

    def remove(self) -> None:
        """Remove the folder: the run it kept is complete, and its result is elsewhere."""
        self.close()
        with writing(self.folder):
            remove_folder(self.folder)


def check_free(folder: Path) -> None:
    """Raise OutputError when a new folder cannot have this name."""
    if os.path.lexists(folder):
        raise OutputError(
            "is already there, and a saved fit is never written over",
            file=str(folder),
            hint=f"Go on with it by --resume {folder}, or choose another name.",
        )
    if not folder.parent.is_dir():
        raise OutputError(
            "cannot be written: the folder it shall stand in does not exist", file=str(folder)
        )


def discard(folder: Path) -> None:
    """Remove a saved fit that nobody writes to, whole or broken; other files in it are left.

    Raises
    ------
    StoreError
        It is no folder, or another run writes to it.
    """
    if folder.is_symlink() or not folder.is_dir():
        raise StoreError(
            "is in the way of a run's partial work", file=str(folder), hint="Move or remove it."
        )
    os.close(lock(folder))
    with writing(folder):
        remove_folder(folder)


def read_links(folder: Path, header: Header, columns: Sequence[Column]) -> tuple[Link, ...]:
    """Return the links of a saved fit from their constants."""
    buffer = map_file(folder, LINKS)
    try:
        if hashlib.sha256(memoryview(buffer)).hexdigest() != header.links_hash:
            raise ValueError("its hash is another")
        constants = read_one(buffer)
        if int(take(constants, "columns", np.int64, ())) != len(columns):
            raise ValueError(f"it is not of {len(columns)} columns")
        links = []
        for d, (column, modelled) in enumerate(zip(columns, header.modelled, strict=True)):
            part = inner(constants, f"{d}.")
            try:
                links.append(link_from(column, len(modelled.levels), part, header.link_config))
            except ValueError as error:
                raise ValueError(f"column '{column.name}': {error}") from None
    except ValueError as error:
        raise broken(folder, LINKS, error) from None
    return tuple(links)


def _data_out(data: Data) -> dict[str, Array]:
    arrays: dict[str, Array] = {"rows": np.array(data.n_rows, dtype=np.int64)}
    for d, encoded in enumerate(data.columns):
        arrays[f"{d}.x"] = np.where(encoded.observed, encoded.x, 0.0)
        arrays[f"{d}.observed"] = np.packbits(encoded.observed)
        arrays[f"{d}.wanted"] = np.packbits(encoded.wanted)
    return arrays


def read_data(folder: Path, header: Header, columns: Sequence[Column]) -> Data:
    """Return the encoded table of a saved fit; it must be the one that was hashed."""
    n_rows = header.n_rows
    try:
        arrays = read_one(map_file(folder, DATA))
        encoded = []
        for d, (column, modelled) in enumerate(zip(columns, header.modelled, strict=True)):
            packed = (-(-n_rows // 8),)
            observed, wanted = (
                np.unpackbits(take(arrays, f"{d}.{name}", np.uint8, packed), count=n_rows) == 1
                for name in ("observed", "wanted")
            )
            x = np.where(observed, take(arrays, f"{d}.x", np.float64, (n_rows,)), np.nan)
            for array in (x, observed, wanted):
                array.setflags(write=False)
            part = EncodedColumn(column, modelled.index, x, observed, wanted, modelled.levels)
            encoded.append(part)
    except ValueError as error:
        raise broken(folder, DATA, error) from None
    data = Data(n_rows, tuple(encoded), header.notes, header.ids)
    if hash_of_data(data) != header.data_hash:
        raise StoreError(
            "is not the table that the fit was made with: its hash is another",
            file=str(folder / DATA),
        )
    return data


def _same(a: Mapping[str, Array], b: Mapping[str, Array]) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)
