"""Every kept draw of every completed cell, as a long table that comes in parts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from glfm_cli.completion.dependent import TableDraws
from glfm_cli.encoding import Data
from glfm_cli.inference.posterior import Posterior
from glfm_cli.streams import DRAWS, Streams

PART_ROWS = 1 << 18  # a part, and so a row group of Parquet, ends with the draw that passes it

SCHEMA = pa.schema(
    {
        "chain": pa.int32(),
        "draw": pa.int32(),
        "row": pa.int64(),
        "column": pa.string(),
        "value": pa.float64(),
        "level": pa.string(),
    }
)


def draw_parts(posterior: Posterior, data: Data, seed: int) -> Iterator[pa.Table]:
    """Yield one row a draw and completed cell: chain, draw, row, column, and value or level.

    All cells of a draw are drawn jointly. Chains, draws and rows count from 1. At least one
    part; memory is that of PART_ROWS rows, or of one draw if that has more.
    """
    missing = data.missing
    where = [
        pa.table(
            {"row": rows + 1, "column": [data.columns[d].column.name] * rows.size},
            schema=pa.schema([SCHEMA.field("row"), SCHEMA.field("column")]),
        )
        for d, rows in missing.items()
    ]
    waiting: list[pa.Table] = []
    n_rows, n_yielded = 0, 0
    joint = TableDraws(posterior, data)
    for c, chain in enumerate(posterior.chains):
        for t, draw in enumerate(chain):
            rng = Streams(seed, c).get(DRAWS, t)
            drawn = joint.draw(rng, draw)
            for place, (d, values) in zip(where, drawn.items(), strict=True):
                there = ~np.isnan(values)
                part = place.filter(pa.array(there))
                waiting.append(_part(c, t, part, values[there], data.columns[d].levels))
                n_rows += values.size
            if n_rows >= PART_ROWS:
                yield pa.concat_tables(waiting).combine_chunks()
                waiting, n_rows, n_yielded = [], 0, n_yielded + 1
    if waiting or not n_yielded:
        yield pa.concat_tables([SCHEMA.empty_table(), *waiting]).combine_chunks()


def _part(
    chain: int, draw: int, place: pa.Table, values: np.ndarray, levels: tuple[str, ...]
) -> pa.Table:
    """Return the rows of one draw of one column."""
    n = values.size
    numbers, names = values, pa.nulls(n, pa.string())
    if levels:
        names = pa.array(levels, pa.string()).take(pa.array(values.astype(np.int64)))
        numbers = pa.nulls(n, pa.float64())
    columns = {
        "chain": np.full(n, chain + 1, np.int32),
        "draw": np.full(n, draw + 1, np.int32),
        "row": place["row"],
        "column": place["column"],
        "value": numbers,
        "level": names,
    }
    return pa.table(columns, schema=SCHEMA)
