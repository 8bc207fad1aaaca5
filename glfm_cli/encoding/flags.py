"""Columns that say which cells were completed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from glfm_cli.encoding.data import Data
from glfm_cli.errors import UsageError
from glfm_cli.io import is_text_table, mark_written_type

SUFFIX = "_imp"


def flag_columns(table: pa.Table, data: Data) -> pa.Table:
    """Return the table with a column NAME_imp for each that may be completed: 1 where it was.

    Also where no cell was missing: batches of rows have the same columns.

    Raises UsageError: the table already has a column of that name.
    """
    text, taken = is_text_table(table), set(table.column_names)
    columns, fields = table.columns, list(table.schema)
    for encoded in data.columns:
        if not encoded.column.completed:
            continue
        name = encoded.column.name + SUFFIX
        if name in taken:
            raise UsageError(
                "the table already has a column of the name that the flags need",
                column=name,
                hint="Rename that column, or leave out the flags.",
            )
        flags = pa.array(encoded.requested.astype(np.int8), pa.int8())
        field = pa.field(name, pa.int8())
        if text:
            flags = flags.cast(pa.string())
            field = mark_written_type(pa.field(name, pa.string()), "int8")
        columns.append(flags)
        fields.append(field)
        taken.add(name)
    return pa.table(columns, schema=pa.schema(fields, table.schema.metadata))
