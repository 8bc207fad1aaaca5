"""The files that a completion becomes: checked before the work, written after it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from glfm_cli.completion.result import PROBABILITIES, Completion, cells_schema
from glfm_cli.encoding import Data, flag_columns
from glfm_cli.io import check_target, write_table


@dataclass(frozen=True)
class Files:
    """Where the parts of a completion go.

    Parameters
    ----------
    table : path or "-"
        The completed table.
    cells, probabilities : path or "-", optional
        The completed cells, and the probabilities of their levels.
    flags : bool
        Whether the completed table gets a column NAME_imp for each completed one.
    """

    table: Path | str = "-"
    cells: Path | str | None = None
    probabilities: Path | str | None = None
    flags: bool = False

    def check(self, table: pa.Table, data: Data) -> None:
        """Raise now what `write` would raise after the work: names, formats, folders.

        Raises
        ------
        UsageError
            A name does not tell a format, or two columns would have one name.
        OutputError
            A folder is missing or not writable, or a format cannot hold a column's type.
        """
        if self.flags:
            table = flag_columns(table, data)
        first = table.slice(0, 1)
        check_target(self.table, first)
        if self.cells is not None:
            ids = first.select(list(data.ids))
            schema = cells_schema(ids.schema)
            row = [
                ids[field.name] if field.name in data.ids else pa.nulls(1, field.type)
                for field in schema
            ]
            check_target(self.cells, pa.table(row, schema=schema))
        if self.probabilities is not None:
            row = [pa.nulls(1, field.type) for field in PROBABILITIES]
            check_target(self.probabilities, pa.table(row, schema=PROBABILITIES))

    def write(self, completion: Completion, source: pa.Table) -> None:
        """Write every part, the completed table last, in the dialect of `source`."""
        if self.cells is not None:
            write_table(completion.cells(), self.cells)
        if self.probabilities is not None:
            write_table(completion.probabilities(), self.probabilities)
        completed = completion.table
        if self.flags:
            completed = flag_columns(completed, completion.data)
        write_table(completed, self.table, like=source)
