"""The files that a completion becomes: checked before the work, written after it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from glfm_cli.completion.draws import SCHEMA
from glfm_cli.completion.multiple import Multiple, check_names
from glfm_cli.completion.result import PROBABILITIES, Completion, cells_schema
from glfm_cli.completion.traces import check_traces, write_traces
from glfm_cli.encoding import Data, flag_columns
from glfm_cli.io import check_target, write_parts, write_table


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
    multiple : int, optional
        Write so many completed versions, stacked below the table with its gaps, as the table.
    draws : path or "-", optional
        Every kept draw of every completed cell.
    traces : path, optional
        The traces of the run, as NetCDF.
    """

    table: Path | str = "-"
    cells: Path | str | None = None
    probabilities: Path | str | None = None
    flags: bool = False
    multiple: int | None = None
    draws: Path | str | None = None
    traces: Path | str | None = None

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
        if self.multiple is not None:
            check_names(table)
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
        if self.draws is not None:
            row = [pa.nulls(1, field.type) for field in SCHEMA]
            check_target(self.draws, pa.table(row, schema=SCHEMA))
        if self.traces is not None:
            check_traces(self.traces)

    def write(self, completion: Completion, source: pa.Table) -> Multiple | None:
        """Write every part, the completed table last, in the dialect of `source`.

        Return the versions when there are several.
        """
        if self.cells is not None:
            write_table(completion.cells(), self.cells)
        if self.probabilities is not None:
            write_table(completion.probabilities(), self.probabilities)
        if self.draws is not None:
            write_parts(completion.draws(), self.draws)
        if self.traces is not None:
            model = completion.posterior.model.name
            write_traces(
                self.traces, completion.traces, completion.data, model=model, seed=completion.seed
            )
        if self.multiple is not None:
            versions = completion.multiple(self.multiple)
            write_parts(versions.parts(flags=self.flags), self.table, like=source)
            return versions
        completed = completion.table
        if self.flags:
            completed = flag_columns(completed, completion.data)
        write_table(completed, self.table, like=source)
        return None
