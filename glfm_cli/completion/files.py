"""The files that a completion becomes: checked before the work, written after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from glfm_cli.completion.draws import SCHEMA
from glfm_cli.completion.matrix.matrix import MatrixData
from glfm_cli.completion.multiple import check_names, numbered
from glfm_cli.completion.result import PROBABILITIES, Completion, cells_schema
from glfm_cli.completion.traces import check_traces, write_traces
from glfm_cli.encoding import Data, flag_columns
from glfm_cli.errors import UsageError
from glfm_cli.io import (
    check_cells,
    check_target,
    check_writable,
    renamed_note,
    write_parts,
    write_table,
)


@dataclass(frozen=True)
class Files:
    """The output files of a completion.

    Parameters
    ----------
    table : path or "-", optional
        The completed table, or the predictions of pairs.
    cells, probabilities : path or "-", optional
        The completed cells, and the probabilities of their levels.
    flags : bool
        Whether the completed table gets a column NAME_imp for each completed one.
    multiple : int, optional
        Write so many completed versions, stacked below the incomplete table, as the table.
    draws : path or "-", optional
        Every kept draw of every completed cell.
    traces : path, optional
        The traces of the run, as NetCDF.
    record : path, optional
        What makes the run again: versions, options, hashes, diagnostics.
    others : mapping of str to path
        What `finish` of `impute` writes, by the option that names each; the record hashes them.
    analysis : str, optional
        The regression that the versions are for, such as "y ~ x * g".
    """

    table: Path | str | None = None
    cells: Path | str | None = None
    probabilities: Path | str | None = None
    flags: bool = False
    multiple: int | None = None
    draws: Path | str | None = None
    traces: Path | str | None = None
    record: Path | str | None = None
    others: Mapping[str, Path | str] = field(default_factory=dict)
    analysis: str | None = None

    @property
    def needs_intervals(self) -> bool:
        """Whether somebody looks at the intervals of numbers: who gets the result alone may."""
        return self.cells is not None or self.table is None

    @property
    def whole(self) -> bool:
        """Whether something is asked of all rows together, or nothing is written."""
        asked = (self.multiple, self.draws, self.traces, self.record, *self.others.values())
        return self.table is None or any(one is not None for one in asked)

    def by_option(self) -> dict[str, Path | str]:
        """Return every file but the record, by the option that names it."""
        named = {"--output": None if self.table == "-" else self.table, "--cells": self.cells}
        named |= {"--probabilities": self.probabilities, "--draws-to": self.draws}
        named |= {"--traces-to": self.traces}
        return {name: path for name, path in named.items() if path is not None} | dict(self.others)

    def check_for_pairs(self, of_fit: bool) -> None:
        """Raise UsageError when something is asked for that is about tables alone."""
        named: dict[str, object] = {"--flags": self.flags or None, "--multiple": self.multiple}
        named |= {"--analysis": self.analysis}
        for name in [*self.by_option(), *(n for n, v in named.items() if v is not None)]:
            if name not in ("--output", "--traces-to"):
                what = "the fit is of" if of_fit else "the types file describes"
                raise UsageError(
                    f"{name} is for tables, but {what} triplets",
                    hint="Predictions of a matrix come in long form, one row a pair.",
                )

    def check(self, table: pa.Table, data: Data | MatrixData) -> None:
        """Raise now what `write` would raise after the work: names, formats, folders.

        Raises
        ------
        UsageError
            A name does not tell a format, or two columns would have one name.
        OutputError
            A folder is missing or not writable, or a format cannot hold a column's type.
        """
        if self.traces is not None:
            check_traces(self.traces)
        if self.record is not None:
            check_writable(self.record)
        if not isinstance(data, Data):
            if self.table is not None:
                check_target(self.table, data.blank())
            return
        if self.analysis is not None and self.multiple is None:
            raise UsageError("--analysis needs --multiple M")
        if self.flags:
            table = flag_columns(table, data)
        if self.multiple is not None:
            check_names(table)
        first = table.slice(0, 1)
        if self.table is not None:
            written = first if self.multiple is None else numbered(first, 0)
            check_cells(self.table, table)
            check_target(self.table, written, (1 + (self.multiple or 0)) * table.num_rows)
        if self.cells is not None:
            ids = first.select(list(data.ids))
            schema = cells_schema(ids.schema)
            row = [
                ids[field.name] if field.name in data.ids else pa.nulls(1, field.type)
                for field in schema
            ]
            check_cells(self.cells, table.select(list(data.ids)))
            n_cells = sum(int(encoded.requested.sum()) for encoded in data.columns)
            check_target(self.cells, pa.table(row, schema=schema), n_cells)
        for path, schema in ((self.probabilities, PROBABILITIES), (self.draws, SCHEMA)):
            if path is not None:
                row = [pa.nulls(1, field.type) for field in schema]
                check_target(path, pa.table(row, schema=schema))

    def notes(self, table: pa.Table) -> tuple[str, ...]:
        """Return what a user should know of how the completed table is written, one line each."""
        note = None if self.table is None else renamed_note(self.table, table.column_names)
        return () if note is None else (note,)

    def write(self, completion: Any, source: pa.Table) -> Any:
        """Write every part, the completed table last, in the dialect of `source`.

        Return the completion, with its versions when there are several.
        """
        if self.traces is not None:
            model = completion.posterior.model.name
            write_traces(
                self.traces, completion.traces(), completion.data, model=model, seed=completion.seed
            )
        if not isinstance(completion, Completion):
            if self.table is not None:
                write_parts(completion.parts(), self.table)
            return completion
        if self.cells is not None:
            write_table(completion.cells(), self.cells)
        if self.probabilities is not None:
            write_table(completion.probabilities(), self.probabilities)
        if self.draws is not None:
            write_parts(completion.draws(), self.draws)
        if self.multiple is not None:
            versions = completion.multiple(self.multiple, self.analysis)
            completion = replace(completion, versions=versions)
        if self.table is None:
            return completion
        if completion.versions is not None:
            write_parts(completion.versions.parts(flags=self.flags), self.table, like=source)
            return completion
        completed = completion.table
        if self.flags:
            completed = flag_columns(completed, completion.data)
        write_table(completed, self.table, like=source)
        return completion
