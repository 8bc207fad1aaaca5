"""Rows of a file that is not read as a whole, which what all rows share is learnt from.

One pass chooses them (`learning_rows`); the first row of each level and of missing cells, and the
rows of the least and the largest numbers, are among them in any case.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.completion.learning_rows import Codes, RowChooser
from glfm_cli.encoding import encode_numbers, open_column
from glfm_cli.encoding.levels import distinct_texts
from glfm_cli.encoding.source import is_null
from glfm_cli.inference.folding import BATCH
from glfm_cli.io import read_batches, rows_after
from glfm_cli.io.files import PathLike, file_label
from glfm_cli.schema import Column, Schema

Ends = dict[tuple[str, int], tuple[float, int]]  # by column and side: the value, and its row


def sample_rows(source: PathLike, schema: Schema, n: int, seed: int) -> tuple[pa.Table, int]:
    """Return about n rows of a file, in their order, and how many it has.

    They are more than n where each level, and each column's ends, take more.

    Raises GlfmError: a cell does not fit its column; rows are counted from the first of the file.
    """
    chooser, file = RowChooser(n, seed), file_label(source)
    held: pa.Table = None
    ends: Ends = {}
    for table in read_batches(source, BATCH):
        with rows_after(chooser.n_rows):
            codes = [
                _codes(table, index, column, file, chooser.n_rows, ends)
                for index, column in enumerate(schema.resolve(table.column_names))
                if column.modelled
            ]
        kept = chooser.add(table.num_rows, codes, [row for _, row in ends.values()])
        plain = table.replace_schema_metadata(None)
        held = (plain if held is None else pa.concat_tables([held, plain])).take(kept)
    must = [row for _, row in ends.values()] + [int(s.row[0]) for s in chooser.strata.values()]
    rows = chooser.chosen(must)
    return held.take(np.searchsorted(chooser.row, rows)), chooser.n_rows


def _codes(
    table: pa.Table, index: int, column: Column, file: str | None, before: int, ends: Ends
) -> Codes:
    """Return the levels of a column, or which cells are known, of rows after the first `before`."""
    source = open_column(table, index, column, file)
    if column.type is None or column.binomial:
        return column.name, is_null(source.values).astype(int), ["known", "missing"]
    if not column.numeric:
        labels, of_row = distinct_texts(source)
        return column.name, of_row, labels
    x = encode_numbers(source, intervals=True).x
    _see_ends(column.name, x, before, ends)
    return column.name, np.isnan(x).astype(int), ["known", "missing"]


def _see_ends(name: str, x: Array, before: int, ends: Ends) -> None:
    known = np.flatnonzero(~np.isnan(x))
    if known.size:
        for sign in (1, -1):
            at = known[np.argmin(sign * x[known])]
            new = float(sign * x[at]), before + int(at)
            ends[name, sign] = min(ends.get((name, sign), new), new)
