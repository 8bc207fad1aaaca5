"""Compressed files: gzip, bzip2, xz, Zstandard and zip archives with one table inside."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO

import pyarrow as pa

from glfm_cli.errors import TableError

GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"
ZIP = b"PK\x03\x04"
XZ = b"\xfd7zXZ\x00"
# A header of a table may begin with BZh; the first block of packed data goes on like this.
BZIP2 = tuple(b"BZh%d1AY&SY" % level for level in range(1, 10))
# By suffix.
PACKINGS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bzip2", ".xz": "xz", ".zip": "zip"}

_MAGIC: dict[str, bytes | tuple[bytes, ...]] = {
    "gzip": GZIP,
    "zstd": ZSTD,
    "bzip2": BZIP2,
    "xz": XZ,
    "zip": ZIP,
}
_NAMES = {"zstd": "Zstandard"}  # where they are called otherwise
_DAMAGED = (
    *(EOFError, OSError, ValueError, zlib.error, lzma.LZMAError, zipfile.BadZipFile),
    *(RuntimeError, NotImplementedError),
)
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the least date of a zip archive: the same table, the same bytes


def packing_of(data: bytes) -> str | None:
    """Return how bytes are packed, None where they are not."""
    return next((name for name, magic in _MAGIC.items() if data.startswith(magic)), None)


def unpack(data: bytes, packing: str, file: str) -> bytes:
    """Return the bytes inside.

    Raises TableError: they are packed in another way, cut off, or an archive of several files.
    """
    name = _NAMES.get(packing, packing)
    if not data.startswith(_MAGIC[packing]):
        suffix = next(key for key, value in PACKINGS.items() if value == packing)
        raise TableError(f"is not {name} data, though its name ends in {suffix}", file=file)
    try:
        if packing == "gzip":
            return gzip.decompress(data)
        if packing in ("bzip2", "xz"):
            return bz2.decompress(data) if packing == "bzip2" else lzma.decompress(data)
        if packing == "zstd":
            with pa.input_stream(pa.py_buffer(data), compression="zstd") as stream:
                return bytes(stream.read())
        return _only_member(data, file)
    except _DAMAGED:
        raise TableError(
            f"is damaged or cut off: its {name} data cannot be unpacked whole",
            file=file,
            hint="Copy or export it again.",
        ) from None


def _only_member(data: bytes, file: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        # Programs add folders and files of their own, which hold no table.
        members = [
            one
            for one in archive.infolist()
            if not one.is_dir() and not one.filename.startswith("__MACOSX/")
        ]
        if len(members) != 1:
            names = ", ".join(one.filename for one in members[:5]) or "nothing"
            raise TableError(
                f"the archive holds {len(members)} files",
                file=file,
                value=names,
                expected="one table",
                hint="Unpack it, and give the name of the table.",
            )
        return archive.read(members[0])


def write_packed(blocks: Iterator[bytes], file: IO[bytes], packing: str | None, name: str) -> None:
    """Write blocks of bytes to an open file, packed; `name` is that of the file in an archive.

    No time and no user's name go in, so that the same table gives the same bytes.
    """
    if packing is None:
        file.writelines(blocks)
    elif packing == "gzip":
        with gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) as packed:
            packed.writelines(blocks)
    elif packing in ("bzip2", "xz"):
        opened = bz2.BZ2File if packing == "bzip2" else lzma.LZMAFile
        with opened(file, "wb") as stream:
            stream.writelines(blocks)
    elif packing == "zstd":
        buffer = pa.BufferOutputStream()
        with pa.CompressedOutputStream(buffer, "zstd") as stream:
            for block in blocks:
                stream.write(block)
        file.write(buffer.getvalue())
    else:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            member = zipfile.ZipInfo(name, _EPOCH)
            member.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(member, "w") as inside:
                inside.writelines(blocks)
