"""What is to be seen to in the rows of a table: empty ones, totals, those that stand twice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from glfm_cli.guess.names import words
from glfm_cli.guess.verdict import Verdict
from glfm_cli.schema import Role
from glfm_cli.schema.text import quoted, scalar

MOST_SHOWN = 3
_SUMMARIES = words(
    """total totals sum mean means average median sd summe gesamt mittelwert durchschnitt somme
    moyenne suma media promedio totale totaal gemiddelde"""
) | {"grand total", "overall", "total general", "total général", "std dev"}
_TOTALS = words("total totals sum summe gesamt insgesamt somme totale totaal subtotal") | {
    *("grand total", "sub total", "sub-total", "total general", "total général", "zwischensumme"),
}
MOST_TOTALS = 1 / 3  # of the rows


def notes_of(
    table: pa.Table, verdicts: Sequence[Verdict], empty: NDArray[np.intp]
) -> tuple[str, ...]:
    """Return what is to be seen to in the table itself.

    empty : places of rows without a value
    """
    ids = [i for i, verdict in enumerate(verdicts) if verdict.column.role is Role.ID]
    same = _repeated_rows(table, ids[0], empty) if ids else None
    foot = _summary_row(table, empty)
    notes = (_empty_rows(empty), foot, same, *_alike_names(table.column_names))
    return tuple(note for note in notes if note is not None)


def _empty_rows(empty: NDArray[np.intp]) -> str | None:
    if not empty.size:
        return None
    shown = ", ".join(str(row + 1) for row in empty[:MOST_SHOWN])
    more = f" and {empty.size - MOST_SHOWN} more" if empty.size > MOST_SHOWN else ""
    return (
        f"Empty row {shown}: delete it."
        if empty.size == 1
        else (f"Empty rows {shown}{more}: delete them.")
    )


def _summary_row(table: pa.Table, empty: NDArray[np.intp]) -> str | None:
    """Return that the last row sums up the others, where one of its cells says so and is alone."""
    rows = np.setdiff1d(np.arange(table.num_rows), empty)
    for column in table.columns if rows.size > 2 else ():
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            continue
        text = str(column[int(rows[-1])].as_py() or "")
        once = pc.sum(pc.equal(column, text)).as_py() == 1
        if once and text.casefold().strip(" :.") in _SUMMARIES:
            return f"Row {rows[-1] + 1} seems to sum up the others ({scalar(text)}): delete it."
    return _summary_rows(table)


def _summary_rows(table: pa.Table) -> str | None:
    """Return that some rows sum up others, as those of each origin to the destination Total."""
    for name in table.column_names:
        column = table.column(name)
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            continue
        counts = pc.value_counts(column.combine_chunks()).to_pylist()
        said = [one for one in counts if (one["values"] or "").casefold().strip(" :.") in _TOTALS]
        n_rows = sum(one["counts"] for one in said)
        if len(said) == 1 and len(counts) > 2 and MOST_TOTALS * table.num_rows >= n_rows:
            rows, seem = ("row", "seems") if n_rows == 1 else ("rows", "seem")
            word = said[0]["values"]
            return (
                f"{n_rows} {rows} {seem} to sum up others ({scalar(name)} is {scalar(word)}): "
                "leave them out if so."
            )
    return None


def _alike_names(names: Sequence[str]) -> list[str]:
    """Return which columns have names that differ in spaces and capitals alone."""
    alike: dict[str, list[str]] = defaultdict(list)
    for name in names:
        alike[" ".join(name.casefold().split())].append(name)
    return [
        f"Columns {' and '.join(map(quoted, group))} have nearly the same name: is one meant?"
        for group in alike.values()
        if len(group) > 1
    ]


def _repeated_rows(table: pa.Table, key: int, empty: NDArray[np.intp]) -> str | None:
    """Return which rows are the same in all columns, None where none are.

    key : place of the column whose values name the rows
    """
    rows = np.setdiff1d(np.arange(table.num_rows), empty)
    group = np.zeros(rows.size, dtype=np.int64)
    for i in (key, *range(table.num_columns)):
        column = table.column(i).combine_chunks().take(pa.array(rows))
        if isinstance(column.type, pa.BaseExtensionType):
            column = column.storage
        if pa.types.is_nested(column.type):
            return None
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        indices = column.indices.cast(pa.int64())  # of polars they have no sign
        cells = indices.fill_null(-1).to_numpy(zero_copy_only=False)
        pairs = np.stack([group, cells], axis=1)
        _, group, sizes = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
        group = group.reshape(-1)
        rows, group = rows[sizes[group] > 1], group[sizes[group] > 1]
    same = [rows[group == one] + 1 for one in np.unique(group)]
    if not same:
        return None
    shown = [" and ".join(map(str, one)) for one in sorted(map(list, same))[:MOST_SHOWN]]
    more = len(same) - len(shown)
    return f"Rows {', '.join(shown)}{f' and {more} more such' if more else ''} are the same."
