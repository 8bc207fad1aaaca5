"""Tables to CSV and TSV, in a given dialect."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, repeat

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from glfm_cli.errors import OutputError
from glfm_cli.io.csv_text import BYTE_ORDER_MARKS
from glfm_cli.io.dialect import Dialect, Quoting, rule_mask
from glfm_cli.io.units import rows_below

ROWS_PER_BLOCK = 1 << 16


def csv_blocks(
    table: pa.Table, dialect: Dialect, *, first: bool = True, last: bool = True
) -> Iterator[bytes]:
    """Yield the bytes of a table as CSV, a block of rows at a time.

    Of a table that comes in parts, the `first` begins with the header, and the `last` ends as
    the dialect's files do.
    """
    line_end = dialect.delimiter * dialect.blank_columns + dialect.newline
    if first:
        if dialect.bom:
            yield BYTE_ORDER_MARKS[dialect.encoding]
        if dialect.preamble:
            yield _encode(dialect.preamble.encode(), dialect)
        left_out = dialect.row_names and table.column_names[0] == ""
        names = pa.array(table.column_names[int(left_out) :], pa.string())
        header = _quote(names, dialect.header, dialect.delimiter).to_pylist()
        yield _encode((dialect.delimiter.join(header) + line_end).encode(), dialect)
        # Of a workbook no row has a quoting.
        quotings = chain(dialect.below, repeat(Quoting()))
        for cells, quoting in zip(rows_below(table), quotings, strict=False):
            row = pa.array([cells.get(name, "") for name in table.column_names])
            texts = _quote(row, quoting, dialect.delimiter).to_pylist()
            yield _encode((dialect.delimiter.join(texts) + line_end).encode(), dialect)
    for start in range(0, table.num_rows, ROWS_PER_BLOCK):
        block = table.slice(start, ROWS_PER_BLOCK)
        body = _rows(block, dialect, line_end)
        if last and start + block.num_rows == table.num_rows:
            body = body[: -len(dialect.newline)] + _tail(table, dialect).encode()
        yield _encode(body, dialect)


def _rows(block: pa.Table, dialect: Dialect, line_end: str) -> bytes:
    cells = []
    for name, column in zip(block.column_names, block.columns, strict=True):
        text = _as_text(column, name)
        quoting = dialect.columns.get(name, dialect.new_columns)
        cells.append(_quote(text, quoting, dialect.delimiter))
    cells[-1] = pc.binary_join_element_wise(cells[-1], _scalar(""), _scalar(line_end))
    lines = pc.binary_join_element_wise(*cells, _scalar(dialect.delimiter))
    # The texts of an Arrow array lie side by side in one buffer: here, the rows themselves.
    return _contiguous_bytes(lines)


def _contiguous_bytes(lines: pa.Array) -> bytes:
    offsets, data = lines.buffers()[1:]
    places = np.frombuffer(offsets, dtype=np.int64)[lines.offset : lines.offset + len(lines) + 1]
    return data[int(places[0]) : int(places[-1])].to_pybytes()


def _as_text(column: pa.ChunkedArray, name: str) -> pa.Array:
    """Return a column's values as text, empty where there is none."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if pa.types.is_floating(kind):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, kind), column)
        if kind == pa.float16():
            column = column.cast(pa.float32())
    try:
        if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            raise pa.ArrowNotImplementedError
        text = column.cast(pa.large_string())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        raise OutputError(
            f"CSV cannot hold values of type {kind}",
            column=name,
            hint="Write to a .parquet or .arrow file instead.",
        ) from None
    return pc.fill_null(_one_chunk(text), "")


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def _quote(text: pa.Array, quoting: Quoting, delimiter: str) -> pa.Array:
    """Return the cells with quotes where the quoting asks for them, and where they are needed."""
    needed = pc.match_substring_regex(text, f'^"|[\r\n{re.escape(delimiter)}]')
    mask = rule_mask(quoting.rule, text, delimiter)
    if quoting.exceptions:
        mask = pc.xor(mask, pc.is_in(text, pa.array(quoting.exceptions, text.type)))
    mask = pc.or_(mask, needed)
    if not pc.any(mask).as_py():
        return text
    inner = pc.replace_substring(text, '"', '""')
    quote = _scalar('"', text.type)
    wrapped = pc.binary_join_element_wise(quote, inner, quote, _scalar("", text.type))
    return pc.if_else(mask, wrapped, text)


def _scalar(text: str, kind: pa.DataType | None = None) -> pa.Scalar:
    return pa.scalar(text, kind or pa.large_string())


def _tail(table: pa.Table, dialect: Dialect) -> str:
    """Return what follows the last row; an empty last cell of a single column keeps its line."""
    if table.num_columns == 1 and not dialect.tail and not dialect.blank_columns:
        last = table.column(0)[-1].as_py()
        return dialect.newline if last in (None, "") else ""
    return dialect.tail


def _encode(data: bytes, dialect: Dialect) -> bytes:
    if dialect.encoding == "utf-8":
        return data
    text = data.decode()
    try:
        return text.encode(dialect.encoding)
    except UnicodeEncodeError as error:
        raise OutputError(
            f"the encoding of the table, {dialect.encoding}, has no letter '{text[error.start]}'",
            hint="Write to a .parquet file, or convert the table to UTF-8 first.",
        ) from None
