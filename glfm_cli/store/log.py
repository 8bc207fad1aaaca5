"""One chain on disk: a stream that grows by a batch a draw, and the state that goes with it.

The state says how many draws, and how many bytes of the stream, lead to it, and the checksum of
those bytes. It is replaced in one step after the stream has reached the disk, so that a killed
run leaves at worst some bytes too many behind the last state; they are cut off, and the draws in
them are made again, the same.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.errors import StoreError
from glfm_cli.inference.chain import check_all_params, inner, spans_of
from glfm_cli.inference.chains import AnyChain
from glfm_cli.inference.posterior import Draw
from glfm_cli.latent.model import LatentModel, Sizes, take
from glfm_cli.links import Link, Params
from glfm_cli.store.arrays import Malformed, read_batches, read_note, read_one, to_batch, to_stream
from glfm_cli.store.folder import (
    draws_name,
    map_file,
    open_inside,
    replace_file,
    state_name,
    write_all,
    writing,
)
from glfm_cli.store.header import Header
from glfm_cli.streams import Streams

EVERY = 5.0  # seconds between two saved states, by default
SHARE = 0.02  # of the time, at most, that saving takes


@dataclass(frozen=True)
class Layout:
    """What the draws of a fit look like: the model, its links, and the size of the table.

    n_columns : of a matrix, or latent ones of a classifier; None of a table, which has those of
        its links
    """

    model: LatentModel
    links: tuple[Link, ...]
    n_rows: int
    n_columns: int | None = None

    @classmethod
    def of(cls, header: Header, links: tuple[Link, ...]) -> Layout:
        """Return that of a fit."""
        n_columns = None if header.matrix is None else header.matrix.n_columns
        return cls(header.latent, links, header.n_rows, n_columns)

    @property
    def sizes(self) -> Sizes:
        """Return the sizes of the table."""
        spans = spans_of(self.links)
        n_latent = spans[-1][1] if self.n_columns is None else self.n_columns
        return Sizes(self.n_rows, n_latent, spans)

    def pack(self, draw: Draw) -> dict[str, Array]:
        """Return a draw as named arrays: `latent.*`, and `params` and `trace` as `Names` says.

        Few arrays, however many columns there are: each costs time and bytes in every draw.
        """
        arrays = {f"latent.{name}": v for name, v in self.model.pack(draw.latent).items()}
        flat = [np.ravel(value) for p in draw.params for value in p.values()]
        arrays["params"] = np.concatenate(flat) if flat else np.empty(0)
        arrays["trace"] = np.array(list(draw.trace.values()), dtype=np.float64)
        return arrays

    def unpack(self, arrays: Mapping[str, Array], names: Names) -> Draw:
        """Return the draw that `pack` was given; ValueError says why it cannot be one."""
        sizes = [size for _, _, size in names.params]
        params: list[Params] = [{} for _ in self.links]
        values = take(arrays, "params", np.float64, (sum(sizes),))
        parts = np.split(values, np.cumsum(sizes)[:-1]) if sizes else []
        for (d, name, _), part in zip(names.params, parts, strict=True):
            params[d][name] = part
        check_all_params(self.links, params)
        trace = np.asarray(arrays.get("trace"))
        if trace.dtype != np.float64 or trace.shape != (len(names.trace),):
            raise ValueError("'trace' is not a number for each name in the schema")
        latent = self.model.unpack(inner(arrays, "latent."), self.sizes)
        return Draw(latent, tuple(params), dict(zip(names.trace, trace.tolist(), strict=True)))


@dataclass(frozen=True)
class Names:
    """What the numbers in the arrays `params` and `trace` of every draw of a stream are.

    params : (column, name, size) of each array of parameters, in order
    trace : names of the traced scalars
    """

    params: tuple[tuple[int, str, int], ...]
    trace: tuple[str, ...]

    @classmethod
    def of(cls, draw: Draw) -> Names:
        """Return the names of a draw."""
        sizes = [(d, name, v.size) for d, p in enumerate(draw.params) for name, v in p.items()]
        return cls(tuple(sizes), tuple(draw.trace))

    def to_text(self) -> str:
        """Return the text that stands in the stream's schema."""
        return json.dumps({"params": self.params, "trace": self.trace})

    @classmethod
    def from_text(cls, text: str, n_columns: int) -> Names:
        """Return what `to_text` was given; raise ValueError when it is something else."""
        wrong = ValueError("its schema does not name parameters and traces")
        try:
            entry = json.loads(text)
            params = tuple((d, name, size) for d, name, size in entry["params"])
            trace = tuple(entry["trace"])
        except (ValueError, TypeError, KeyError, RecursionError):
            raise wrong from None
        sound = all(
            type(d) is int
            and 0 <= d < n_columns
            and isinstance(name, str)
            and type(size) is int
            and 0 <= size < 2**40
            for d, name, size in params
        )
        if not sound or not all(isinstance(name, str) for name in trace):
            raise wrong
        if len({one[:2] for one in params}) < len(params) or len(set(trace)) < len(trace):
            raise wrong
        if "log_likelihood" not in trace and "bound" not in trace:
            raise ValueError("it does not trace the log likelihood")
        return cls(params, trace)


@dataclass(frozen=True)
class Extent:
    """How far a chain has come: sweeps and draws made, and the stream's bytes with checksum."""

    sweeps: int = 0
    draws: int = 0
    n_bytes: int = 0
    checksum: int = 0


def read_state(folder: Path, index: int) -> tuple[Extent, dict[str, Array]] | None:
    """Return how far a chain has come, and its state's arrays; None when nothing was saved.

    Raises StoreError: the file is broken.
    """
    name = state_name(index)
    if not os.path.lexists(folder / name):
        return None
    try:
        arrays = read_one(map_file(folder, name))
        numbers = [int(take(arrays, key, np.int64, ())) for key in ("sweep", *_EXTENT)]
        if min(numbers) < 0:
            raise Malformed("it counts below 0")
    except ValueError as error:
        raise broken(folder, name, error) from None
    return Extent(*numbers), arrays


_EXTENT = ("log.draws", "log.bytes", "log.checksum")


def read_draws(folder: Path, index: int, extent: Extent, layout: Layout) -> tuple[Draw, ...]:
    """Return the draws of a chain that its state vouches for; their arrays stay on disk.

    Raises StoreError: the stream is shorter, damaged, or holds something else.
    """
    if extent.draws == 0:
        return ()
    name = draws_name(index)
    buffer = map_file(folder, name)
    if buffer.size < extent.n_bytes:
        raise StoreError(
            "is cut off",
            file=str(folder / name),
            value=f"{buffer.size} bytes",
            expected=f"at least {extent.n_bytes}",
        )
    buffer = buffer.slice(0, extent.n_bytes)
    if zlib.crc32(memoryview(buffer)) != extent.checksum:
        raise broken(folder, name, Malformed("its checksum is another"))
    try:
        names = Names.from_text(read_note(buffer), len(layout.links))
        draws = tuple(layout.unpack(arrays, names) for arrays in read_batches(buffer))
        if len(draws) != extent.draws:
            raise Malformed(f"it holds {len(draws)} draws where {extent.draws} are expected")
    except ValueError as error:
        raise broken(folder, name, error) from None
    return draws


def broken(folder: Path, name: str, error: ValueError) -> StoreError:
    """Return the error of a file whose content is wrong."""
    return StoreError(f"cannot be used: {error}", file=str(folder / name))


class FolderLog:
    """The log of one chain in a folder; a context manager that closes its file.

    index : which chain
    seed : of the run; a saved random state must come from it
    every : seconds between two saved states; 0 saves after each sweep. Where writing is slow they
        come more rarely, so that it takes at most 2 % of the time.
    """

    def __init__(self, folder: Path, index: int, layout: Layout, seed: int, every: float) -> None:
        self._folder, self._index, self._layout = folder, index, layout
        self._key = Streams(seed, index).save()["key"]
        self._every = every
        self._extent = Extent()
        self._schema: pa.Schema | None = None
        self._descriptor = -1
        self._next = 0.0

    def __enter__(self) -> FolderLog:
        self._next = time.monotonic() + self._every
        return self

    def __exit__(self, *error: object) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def check(self, load: Callable[[Mapping[str, Array]], AnyChain]) -> Extent:
        """Return how far the chain has come; raise StoreError unless it can be gone on with."""
        found = read_state(self._folder, self._index)
        if found is None:
            return Extent()
        extent, arrays = found
        read_draws(self._folder, self._index, extent, self._layout)
        self._load(load, arrays)
        if os.path.lexists(self._folder / draws_name(self._index)):
            os.close(open_inside(self._folder, draws_name(self._index), os.O_RDWR))
        return extent

    def _load(
        self, load: Callable[[Mapping[str, Array]], AnyChain], arrays: Mapping[str, Array]
    ) -> AnyChain:
        try:
            if not np.array_equal(arrays.get("random.key", np.empty(0)), self._key):
                raise ValueError("its random state is not that of this seed and chain")
            return load(arrays)
        except ValueError as error:
            raise broken(self._folder, state_name(self._index), error) from None

    def resume(self, load: Callable[[Mapping[str, Array]], AnyChain]) -> AnyChain | None:
        """Return the chain saved last, after cutting off what the stream has beyond it."""
        name = draws_name(self._index)
        found = read_state(self._folder, self._index)
        chain = None
        if found is not None:
            self._extent = found[0]
            chain = self._load(load, found[1])
        path = self._folder / name
        with writing(path):
            if not os.path.lexists(path):
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
                os.close(os.open(path, flags, 0o666))
            self._descriptor = open_inside(self._folder, name, os.O_RDWR)
            os.ftruncate(self._descriptor, self._extent.n_bytes)
            os.lseek(self._descriptor, 0, os.SEEK_END)
        if self._extent.n_bytes:
            self._schema = pa.ipc.read_schema(map_file(self._folder, name))
        return chain

    def append(self, draw: Draw) -> None:
        """Write one more draw to the end of the stream."""
        batch = to_batch(self._layout.pack(draw), Names.of(draw).to_text())
        parts = [batch.serialize()]
        if self._schema is None:
            self._schema = batch.schema
            parts.insert(0, batch.schema.serialize())
        assert batch.schema.equals(self._schema, check_metadata=True), (
            "all draws of a chain have the same arrays"
        )
        extent, checksum, length = self._extent, self._extent.checksum, 0
        with writing(self._folder / draws_name(self._index)):
            for part in parts:
                view = memoryview(part)
                write_all(self._descriptor, view)
                checksum = zlib.crc32(view, checksum)
                length += view.nbytes
        self._extent = Extent(0, extent.draws + 1, extent.n_bytes + length, checksum)

    def due(self) -> bool:
        return time.monotonic() >= self._next

    def save(self, arrays: Mapping[str, Array]) -> None:
        """Make all draws so far durable, then the state they lead to."""
        began = time.monotonic()
        with writing(self._folder / draws_name(self._index)):
            os.fsync(self._descriptor)
        counts = (self._extent.draws, self._extent.n_bytes, self._extent.checksum)
        log = {name: np.array(n, np.int64) for name, n in zip(_EXTENT, counts, strict=True)}
        replace_file(self._folder, state_name(self._index), [to_stream({**arrays, **log})])
        now = time.monotonic()
        pause = max(self._every, (now - began) / SHARE) if self._every else 0.0
        self._next = now + pause

    def forget(self, arrays: Mapping[str, Array]) -> None:
        """Save the state as one that no draw leads to, then cut all draws off."""
        self._extent, self._schema = Extent(), None
        self.save(arrays)
        with writing(self._folder / draws_name(self._index)):
            os.ftruncate(self._descriptor, 0)
            os.lseek(self._descriptor, 0, os.SEEK_SET)

    def draws(self) -> tuple[Draw, ...]:
        """Return every draw; their arrays stay on disk."""
        return read_draws(self._folder, self._index, self._extent, self._layout)
