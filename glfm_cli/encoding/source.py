"""One column of a table as it is read: its values, and errors that name a cell of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from glfm_cli.encoding.data import Mask
from glfm_cli.errors import SchemaError, TableError
from glfm_cli.io.arrow_types import computable, holds_anything
from glfm_cli.schema import Column

MOST_OTHERS = 4  # texts that an error names beside the first


@dataclass(frozen=True)
class Source:
    """The values of one column, out of chunks and dictionaries.

    values : one value a row; text as `large_string`
    ordered : the values of an ordered dictionary, in its order
    """

    column: Column
    values: pa.Array
    ordered: pa.Array | None = None
    file: str | None = None

    @property
    def is_text(self) -> bool:
        """True when the values are text."""
        return pa.types.is_large_string(self.values.type)

    def cell_error(
        self, bad: Mask, expected: str, hint: str | None, problem: str = ""
    ) -> TableError:
        """Return the error for the first cell of a mask."""
        row = int(np.argmax(bad))
        text = text_of(self.values.slice(row, 1))[0].as_py()
        return TableError(
            problem,
            file=self.file,
            row=row + 1,
            column=self.column.name,
            value=f"'{text}'" if self.is_text else text,
            expected=expected,
            hint=hint,
        )

    def others(self, bad: Mask) -> list[str]:
        """Return the texts of the cells of a mask that differ from the first, a few of them."""
        rows = np.flatnonzero(bad)
        texts = text_of(self.values.take(pa.array(rows))).unique().to_pylist()
        known = dict.fromkeys(text.strip() for text in texts)
        return list(known)[1 : 1 + MOST_OTHERS]

    def schema_error(self, problem: str, hint: str, expected: str | None = None) -> SchemaError:
        """Return an error about the column as a whole."""
        return SchemaError(
            problem, file=self.file, column=self.column.name, expected=expected, hint=hint
        )


def open_column(table: pa.Table, index: int, column: Column, file: str | None) -> Source:
    """Return one column of a table as a source."""
    values = computable(one_chunk(table.column(index)))
    ordered = None
    if pa.types.is_dictionary(values.type):
        if values.type.ordered:
            ordered = plain(values.dictionary)
        values = values.dictionary_decode()
    return Source(column, plain(values), ordered, file)


def open_modelled(table: pa.Table, index: int, column: Column, file: str | None) -> Source:
    """Return one column that is to be modelled.

    Raises TableError: it holds values of several types.
    """
    if holds_anything(table.schema.field(index).type):
        raise TableError(
            "the column holds values of several types",
            file=file,
            column=column.name,
            hint="Give all its values one type (numbers or text), or set `role: ignore`.",
        )
    return open_column(table, index, column, file)


def plain(values: pa.Array) -> pa.Array:
    """Return values with text, of whichever Arrow type, as `large_string`."""
    return values.cast(pa.large_string()) if is_text_type(values.type) else values


def is_text_type(kind: pa.DataType) -> bool:
    """Return True for the Arrow types of text."""
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def one_chunk(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array, its dictionaries made one."""
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def text_of(values: pa.Array) -> pa.Array:
    """Return values as text: floats in their shortest form, booleans as true and false."""
    if pa.types.is_floating(values.type):
        # NumPy's text is the shortest that reads back as the same value, in every width.
        numbers = values.to_numpy(zero_copy_only=False)
        texts = [None if v is None else str(v) for v in numbers]
        return pa.array(texts, pa.large_string(), mask=is_null(values))
    return values.cast(pa.large_string())


def is_null(values: pa.Array) -> Mask:
    """Return which values are null, (n,) bool."""
    return to_mask(pc.is_null(values))


def to_mask(values: pa.Array) -> Mask:
    """Return an Arrow boolean array as a NumPy one that can be written to; null is False."""
    return np.array(pc.fill_null(values, False).to_numpy(zero_copy_only=False), dtype=bool)
