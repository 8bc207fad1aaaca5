"""Tables that are read some rows at a time: CSV and TSV, Parquet, and Arrow files and streams."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from glfm_cli.errors import GlfmError, TableError
from glfm_cli.io.csv_read import Top
from glfm_cli.io.csv_read import read as read_csv
from glfm_cli.io.csv_split import line_end, row_ends
from glfm_cli.io.csv_text import BYTE_ORDER_MARKS, SNIFFED_BYTES, find_header, sniff_delimiter
from glfm_cli.io.dialect import dialect_of
from glfm_cli.io.files import PathLike, file_label, is_device
from glfm_cli.io.footnotes import MOST
from glfm_cli.io.formats import ARROW_FILE, CSV_LAYOUTS, Format, format_of_location
from glfm_cli.io.location import locate
from glfm_cli.io.many_files import batches_of_many
from glfm_cli.io.parquet_layout import with_layout
from glfm_cli.io.units import rows_below

_PIECE = 4 << 20  # bytes read at once
_FEW_ROWS = 100  # of which the top is told
# Memory by size of file.
_GROWTH = {"csv": 12, "tsv": 12, "txt": 12, "parquet": 10, "arrow": 3, "arrows": 3}
_PACKED = 6  # times which a packed text is larger


def memory_needed(source: PathLike) -> int | None:
    """Return about how many bytes it takes to complete a file as a whole; None if not batched."""
    if not isinstance(source, str | os.PathLike):
        return None
    place = locate(source)
    if place.is_standard or place.is_web or place.options or is_device(place.path):
        return None
    files = _files(source)
    if not files or not all(Path(file).is_file() for file in files):
        return None
    kind = Format("parquet") if place.is_many else format_of_location(place, None)
    if kind.layout not in _GROWTH or kind.packing in ("zip", "xz"):
        return None
    packed = 1 if kind.packing is None else _PACKED
    return sum(os.path.getsize(file) for file in files) * packed * _GROWTH[kind.layout]


def read_batches(source: PathLike, n_rows: int) -> Iterator[pa.Table]:
    """Yield the rows of a table in order, `n_rows` at a time, the last batch with what is left.

    As `read_table` reads them, for files of which `memory_needed` is known; O(n_rows) memory.

    Raises TableError: the file is damaged, no UTF-8 text, or its rows are uneven; rows are counted
        from its first.
    """
    place, file = locate(source), file_label(source)
    if place.is_many:
        yield from _sized(batches_of_many(place, file), n_rows, file)
        return
    kind = format_of_location(place, None)
    if kind.layout in CSV_LAYOUTS:
        with pa.input_stream(place.path, compression=_compression(kind)) as stream:
            yield from _readable(_of_csv(stream, kind.layout, n_rows, file), file)
    else:
        batches = _of_parquet if kind.layout == "parquet" else _of_arrow
        yield from _sized(batches(place.path, n_rows), n_rows, file)


@contextmanager
def rows_after(n_rows: int) -> Iterator[None]:
    """Let errors inside count rows from the first of a table, of which `n_rows` came before."""
    try:
        yield
    except GlfmError as error:
        if error.row is None or n_rows == 0:
            raise
        error.row += n_rows
        raise


def _files(source: PathLike) -> list[str]:
    place = locate(source)
    if not place.is_many:
        return [place.path]
    if Path(place.path).is_dir():
        return sorted(str(path) for path in Path(place.path).rglob("*") if path.is_file())
    found = glob.glob(place.path, recursive=True)
    return sorted(file for file in found if Path(file).is_file() or "**" not in place.path)


def _compression(kind: Format) -> str | None:
    return {"gzip": "gzip", "zstd": "zstd", "bzip2": "bz2"}.get(kind.packing or "")


def _sized(batches: Iterator[pa.Table], n_rows: int, file: str) -> Iterator[pa.Table]:
    """Yield tables of `n_rows` rows each."""
    waiting: list[pa.Table] = []
    there = 0
    for batch in _readable(batches, file):
        waiting.append(batch)
        there += batch.num_rows
        while there >= n_rows:
            table = pa.concat_tables(waiting)
            yield table.slice(0, n_rows)
            waiting, there = [table.slice(n_rows)], there - n_rows
    if there:
        yield pa.concat_tables(waiting)


def _readable(batches: Iterator[pa.Table], file: str) -> Iterator[pa.Table]:
    """Yield what another yields, and turn what cannot be read into a TableError."""
    try:
        yield from batches
    except MemoryError:  # Arrow's own is an ArrowException, too
        raise
    except (pa.ArrowException, OSError) as error:
        raise TableError(
            f"cannot be read ({' '.join(str(error).split())[:120]})",
            file=file,
            hint="It may be damaged or cut off: copy or export it again.",
        ) from None


def _of_parquet(path: str, n_rows: int) -> Iterator[pa.Table]:
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path, pre_buffer=False) as opened:
        metadata = with_layout(opened.schema_arrow, opened.metadata).metadata
        for batch in opened.iter_batches(n_rows):
            table = pa.Table.from_batches([batch], opened.schema_arrow)
            yield table.replace_schema_metadata(metadata)


def _of_arrow(path: str, n_rows: int) -> Iterator[pa.Table]:
    with pa.memory_map(path) as source:
        if source.read(len(ARROW_FILE)) == ARROW_FILE:
            opened: Any = pa.ipc.open_file(source)
            batches = (opened.get_batch(i) for i in range(opened.num_record_batches))
        else:
            source.seek(0)
            opened = batches = pa.ipc.open_stream(source)
        for batch in batches:
            yield pa.Table.from_batches([batch], opened.schema)


# ------------------------------------------------------------------------------ CSV


def _of_csv(stream: IO[bytes], layout: str, n_rows: int, file: str) -> Iterator[pa.Table]:
    """Yield batches of a text, each read as a file of its own under the same top."""
    most = max(_PIECE, SNIFFED_BYTES)
    head = stream.read(most)
    marks = [mark for mark in BYTE_ORDER_MARKS.values() if head.startswith(mark)]
    mark = marks[0] if marks else b""
    if mark not in (b"", BYTE_ORDER_MARKS["utf-8"]):
        raise _not_in_batches("it is not UTF-8", file)
    newline, text = line_end(head), head[len(mark) :]
    skipped, delimiter = find_header(text) if text.strip() else (0, None)
    body = text[skipped:]
    delimiter = "\t" if layout == "tsv" else delimiter or sniff_delimiter(body)
    ends = row_ends(body, newline)
    few = int(ends[min(ends.size, _FEW_ROWS) - 1]) + 1 if ends.size else len(body)
    if ends.size < _FEW_ROWS and len(head) < most:
        few = len(body)  # all of a small file: its last row may be without a line end
    first = read_csv(mark + text[: skipped + few], layout, file, {})
    below, dialect = len(rows_below(first)), dialect_of(first)
    header = int(ends[below]) + 1 if ends.size > below else len(body)
    top, known = head[: len(mark) + skipped + header], Top(
        skipped, delimiter, below, dialect is not None and dialect.row_names
    )
    done = 0
    single = delimiter.encode() not in body[:header]
    for rows, last in _cut(stream, head[len(top) :], n_rows, newline, single):
        with rows_after(done):
            if done % n_rows:
                raise _not_in_batches("its quotes are not all around cells", file)
            try:
                rows.decode()
            except UnicodeDecodeError:
                raise _not_in_batches("it is not UTF-8", file) from None
            table = read_csv(top + rows, layout, file, {}, known._replace(ends=last))
        done += table.num_rows
        for start in range(0, table.num_rows, n_rows):
            yield table.slice(start, n_rows)


def _not_in_batches(why: str, file: str) -> TableError:
    return TableError(
        f"cannot be read in batches: {why}",
        file=file,
        hint="Give more --memory, so that it is read as a whole, or convert it first.",
    )


def _cut(
    stream: IO[bytes], held: bytes, n_rows: int, newline: int, single: bool
) -> Iterator[tuple[bytes, bool]]:
    """Yield the text of `n_rows` rows at a time, and whether it is the last.

    Blank lines at the end stay with the last; in a table of a `single` column they are rows. So do
    the last few lines, of which notes under the table may be the first.
    """
    ready: bytes | None = None
    while True:
        ends = row_ends(held, newline)
        while ends.size < n_rows and (piece := stream.read(_PIECE)):
            held += piece
            ends = row_ends(held, newline)
        at = int(ends[n_rows - 1]) + 1 if ends.size >= n_rows else len(held)
        rows, held = held[:at], held[at:] or stream.read(_PIECE)
        blank = not rows.strip() and (not single or not held)
        if ready is not None and (blank or (not held and ends.size <= MOST)):
            ready += rows
        else:
            if ready is not None:
                yield ready, False
            ready = rows
        if not held:
            yield ready, True
            return
