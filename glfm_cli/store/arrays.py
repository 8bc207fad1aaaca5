"""Named arrays to bytes and back: each set of arrays is one record batch of an Arrow IPC stream.

A batch has one row. A scalar is a plain field, an array a list field `name`, with a second list
field `name.shape` when it has several dimensions, so that arrays may change their length from
batch to batch and any Arrow reader can open the file.

A schema message followed by batch messages is a whole stream, so that a file grows by appending
batches and may be cut after any of them. Bytes from elsewhere are not trusted: messages are read
one by one, must be uncompressed (their size in memory is then at most their size on disk), are
validated in full, and only numbers are let in.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from glfm_cli.latent.model import Array

SHAPE = ".shape"
NOTE = "glfm"  # key of the text in a schema's metadata
MOST_FIELDS = 100_000
_KINDS = {
    pa.uint8(): np.dtype(np.uint8),
    pa.uint64(): np.dtype(np.uint64),
    pa.int32(): np.dtype(np.int32),
    pa.int64(): np.dtype(np.int64),
    pa.float32(): np.dtype(np.float32),
    pa.float64(): np.dtype(np.float64),
}
_ARROW = {kind: arrow for arrow, kind in _KINDS.items()}


class Malformed(ValueError):
    """Bytes that are not what was written; says in what way, a phrase without a full stop."""


def to_batch(arrays: Mapping[str, Array], note: str | None = None) -> pa.RecordBatch:
    """Return named arrays as a record batch of one row; lists share their memory.

    `note` is text that stands in the schema, hence once in a stream.
    """
    fields, columns = [], []
    for name, value in arrays.items():
        array = np.ascontiguousarray(value)
        kind = _ARROW[array.dtype]
        if np.ndim(value) == 0:
            fields.append(pa.field(name, kind, nullable=False))
            columns.append(pa.array(array.reshape(1), kind))
            continue
        fields.append(_list_field(name, kind))
        columns.append(_one_list(array.reshape(-1), fields[-1].type))
        if array.ndim > 1:
            fields.append(_list_field(name + SHAPE, pa.int64()))
            columns.append(_one_list(np.array(array.shape, dtype=np.int64), fields[-1].type))
    return pa.RecordBatch.from_arrays(
        columns, schema=pa.schema(fields, metadata={NOTE: note} if note else None)
    )


def to_stream(arrays: Mapping[str, Array]) -> bytes:
    """Return named arrays as a whole stream of one batch."""
    batch = to_batch(arrays)
    return b"".join([memoryview(batch.schema.serialize()), memoryview(batch.serialize())])


def read_batches(buffer: pa.Buffer) -> Iterator[dict[str, Array]]:
    """Yield the named arrays of every batch of a stream; they share the buffer's memory.

    Raises Malformed: the bytes are no such stream, or end within a message.
    """
    try:
        reader = pa.BufferReader(buffer)
        message = pa.ipc.read_message(reader)
        if message.type != "schema":
            raise Malformed("it does not begin with a schema")
        schema = pa.ipc.read_schema(message)
        _check_schema(schema)
        while reader.tell() < buffer.size:
            message = pa.ipc.read_message(reader)
            if message.type != "record batch":
                raise Malformed(f"it holds a message of the kind '{message.type}'")
            if _is_compressed(message.metadata.to_pybytes()):
                raise Malformed("it is compressed")
            batch = pa.ipc.read_record_batch(message, schema)
            batch.validate(full=True)
            yield _from_batch(batch)
    except (Malformed, MemoryError):  # Arrow's own MemoryError is an ArrowException, too
        raise
    except (pa.ArrowException, EOFError, OSError, OverflowError, ValueError, struct.error) as error:
        raise Malformed(f"it is broken or cut off ({_first_line(error)})") from None


def read_note(buffer: pa.Buffer) -> str:
    """Return the text in a stream's schema, empty when there is none; may raise Malformed."""
    try:
        metadata = pa.ipc.read_schema(pa.BufferReader(buffer)).metadata or {}
        return metadata.get(NOTE.encode(), b"").decode()
    except (pa.ArrowException, EOFError, OSError, ValueError) as error:
        raise Malformed(f"it is broken or cut off ({_first_line(error)})") from None


def read_one(buffer: pa.Buffer) -> dict[str, Array]:
    """Return the named arrays of a stream of exactly one batch; raise Malformed otherwise."""
    batches = list(read_batches(buffer))
    if len(batches) != 1:
        raise Malformed(f"it holds {len(batches)} record batches where 1 is expected")
    return batches[0]


def _list_field(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, pa.large_list(pa.field("item", kind, nullable=False)), nullable=False)


def _one_list(array: Array, kind: pa.DataType) -> pa.Array:
    offsets = pa.array([0, array.size], pa.int64())
    return pa.LargeListArray.from_arrays(offsets, pa.array(array), type=kind)


def _check_schema(schema: pa.Schema) -> None:
    if len(schema) > MOST_FIELDS:
        raise Malformed(f"it has {len(schema)} fields")
    if len(set(schema.names)) < len(schema):
        raise Malformed("two of its fields have one name")
    for field in schema:
        kind = field.type.value_type if pa.types.is_large_list(field.type) else field.type
        if kind not in _KINDS:
            raise Malformed(f"its field '{field.name[:60]}' is of type {str(field.type)[:60]}")


def _from_batch(batch: pa.RecordBatch) -> dict[str, Array]:
    if batch.num_rows != 1:
        raise Malformed(f"one of its batches has {batch.num_rows} rows where 1 is expected")
    flat = {name: _to_numpy(name, batch.column(i)) for i, name in enumerate(batch.schema.names)}
    arrays = {}
    for name, values in flat.items():
        if name.endswith(SHAPE):
            continue
        shape = flat.get(name + SHAPE)
        arrays[name] = values if shape is None else _shaped(name, values, shape)
    return arrays


def _to_numpy(name: str, column: pa.Array) -> Array:
    if column.null_count:
        raise Malformed(f"its field '{name[:60]}' has a null")
    if not pa.types.is_large_list(column.type):
        return column.to_numpy(zero_copy_only=True)[0]
    values = column.flatten()
    if values.null_count:
        raise Malformed(f"its field '{name[:60]}' has a null")
    return values.to_numpy(zero_copy_only=True)


def _shaped(name: str, values: Array, shape: Array) -> Array:
    sizes = [int(size) for size in shape]
    n_values = 1
    for size in sizes:
        n_values *= size
    if not 2 <= len(sizes) <= 3 or min(sizes) < 0 or n_values != values.size:
        raise Malformed(f"its field '{name[:60]}' has another length than its shape says")
    return values.reshape(sizes)


def _is_compressed(metadata: bytes) -> bool:
    """Return whether the flatbuffer of a record batch message has the field `compression`.

    Message {version, header_type, header, bodyLength, ...}, RecordBatch {length, nodes, buffers,
    compression, ...}, from Arrow's format/Message.fbs; pyarrow has no name for it.
    """
    message = struct.unpack_from("<I", metadata, 0)[0]
    at = message + _field(metadata, message, 2)
    batch = at + struct.unpack_from("<I", metadata, at)[0]
    return _field(metadata, batch, 3) != 0


def _field(data: bytes, table: int, index: int) -> int:
    """Return where a flatbuffer table has a field, counted from the table; 0 when it has not."""
    vtable = table - struct.unpack_from("<i", data, table)[0]
    if vtable < 0:
        raise Malformed("it is broken")
    size = struct.unpack_from("<H", data, vtable)[0]
    slot = 4 + 2 * index
    return int(struct.unpack_from("<H", data, vtable + slot)[0]) if slot < size else 0


def _first_line(error: BaseException) -> str:
    lines = str(error).splitlines()
    return lines[0][:120] if lines else type(error).__name__
