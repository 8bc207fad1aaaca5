"""Which cells of a table without a value stay as they are when it is completed, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from glfm_cli.encoding.data import EncodedColumn, Mask, NotCompleted
from glfm_cli.encoding.numeric import code_value, stored_dtype
from glfm_cli.encoding.source import Source, is_null, open_column, to_mask
from glfm_cli.schema import Column, Role

UNSEEN = "levels that the fit has not seen"
UNFIT = "numbers that the column of the fit cannot hold"
UNREAD = "texts that are no numbers"
SLIPS = "zeros far below all other values"


def not_completed(
    table: pa.Table,
    columns: Sequence[Column],
    encoded: Sequence[EncodedColumn],
    kept: Mapping[tuple[str, str], int] | None = None,
) -> tuple[NotCompleted, ...]:
    """Return what is not completed, in the order of the table's columns.

    encoded : those that are modelled
    kept : how many cells of a column hold a value that tells nothing, by (column, why)
    """
    modelled = {one.index: one for one in encoded}
    held: dict[str, dict[str, int]] = {}
    for (name, why), n in (kept or {}).items():
        held.setdefault(name, {})[why] = n
    found = []
    for index, column in enumerate(columns):
        if index not in modelled:
            gaps = missing_cells(open_column(table, index, column, None))
            found.append(NotCompleted(column.name, int(gaps.sum()), f"role {column.role}"))
            continue
        one = modelled[index]
        holding = held.get(column.name, {})
        gone = ~one.observed & ~one.requested & ~one.between
        if one.trials is not None:  # none of 0 is a value without a share
            gone &= missing_cells(open_column(table, index, column, None))
            unknown = gone & np.isnan(one.trials)
            why = f"no number of trials in '{column.trials}'"
            found.append(NotCompleted(column.name, int(unknown.sum()), why))
            gone &= ~unknown
        left = int(gone.sum()) - sum(holding.values())
        found.append(NotCompleted(column.name, left, _why(one.column)))
        found += [NotCompleted(column.name, n, why) for why, n in holding.items()]
    return tuple(one for one in found if one.cells)


def missing_cells(source: Source) -> Mask:
    """Return which cells of a column, modelled or not, are empty or hold a missing code."""
    values, codes = source.values, source.column.missing
    gone = is_null(values)
    if source.is_text:
        trimmed = pc.utf8_trim_whitespace(values)
        known = pa.array(["", *(code.text.strip() for code in codes)], trimmed.type)
        return gone | to_mask(pc.is_in(trimmed, known))
    if pa.types.is_floating(values.type):
        gone |= np.isnan(values.to_numpy(zero_copy_only=False).astype(float))
    if pa.types.is_floating(values.type) or pa.types.is_integer(values.type):
        dtype = stored_dtype(values.type)
        for code in codes:
            if (number := code_value(code.text, dtype, source.column)) is not None:
                gone |= values.to_numpy(zero_copy_only=False).astype(float) == number
    return gone


def _why(column: Column) -> str:
    if column.role is Role.PREDICTOR:
        return "role predictor"
    kept = [code.text or "empty" for code in column.missing if not code.impute]
    return f"impute: false for {', '.join(kept)}"
