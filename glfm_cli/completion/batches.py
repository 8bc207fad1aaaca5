"""Complete a file with a kept fit, some rows at a time: memory does not grow with its rows.

Each batch is read, encoded, folded in, completed and written before the next, by the random
numbers that it has when the table is read as a whole: the same bytes come out.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from glfm_cli.completion.complete import Filling, complete
from glfm_cli.completion.extremes import Extremes, cut_note
from glfm_cli.completion.files import Files
from glfm_cli.completion.new_rows import Fitted
from glfm_cli.completion.requests import Unseen
from glfm_cli.completion.result import (
    Completion,
    CompletionResult,
    column_summary,
    margin_of,
    summed_margins,
)
from glfm_cli.encoding import Data, NotCompleted, flag_columns
from glfm_cli.errors import counted
from glfm_cli.inference.folding import BATCH
from glfm_cli.inference.precision import Precision
from glfm_cli.inference.run import Observer, Run, tell
from glfm_cli.io import memory_needed, read_batches, rows_after, write_parts
from glfm_cli.io.files import file_label, is_device
from glfm_cli.io.row_notes import JoinedNotes, RowsNote
from glfm_cli.latent.capabilities import JoinsRows
from glfm_cli.streams import seed_of_batch

MOST_NOTES = 20
_MEMORY = Path("/proc/meminfo")


@dataclass(frozen=True)
class BatchedCompletion(CompletionResult):
    """What was completed in a file that was read in batches.

    data : sizes and notes of the table, without its columns
    per_column : what `to_dict` says of each
    cut : how many completed cells of each column its integer type is too small for
    extremes : which completed cells of each column, if any, are far outside what is observed
    """

    per_column: tuple[dict[str, Any], ...]
    n_columns: int
    cut: Mapping[str, int]
    extremes: Mapping[str, Extremes]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a user should know, one line each."""
        return (*super().warnings, *map(str, self.extremes.values()), *cut_note(self.cut))

    @property
    def n_completed(self) -> int:
        """The number of cells that were filled."""
        return sum(column["completed"] for column in self.per_column)

    def in_words(self) -> str:
        """Return what was done."""
        return (
            f"{counted(self.n_completed, 'cell')} completed in {counted(self.data.n_rows, 'row')}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the summary that `glfm impute --json` prints."""
        first = {
            "rows": self.data.n_rows,
            "columns": self.n_columns,
            "cells_completed": self.n_completed,
            "not_completed": [asdict(one) for one in self.data.not_completed],
        }
        return self.summary(first, {"per_column": list(self.per_column)})


@dataclass(frozen=True)
class BatchedImputation:
    """The completion of a file in batches that is ready to be made.

    sampled : the run that the fit comes from, where it was made for this
    n_rows : of the file, where they were counted
    """

    source: Any
    fitted: Fitted
    files: Files
    how: Filling
    unseen: Unseen
    notes: tuple[str, ...]
    sampled: Run | None = None
    n_rows: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return what would be done, as `--dry-run --json` prints it."""
        return {"draws": self.fitted.posterior.n_draws, "rows_in_a_batch": BATCH}

    def complete(
        self, observer: Observer | None = None, finish: Callable[[Any], None] | None = None
    ) -> BatchedCompletion:
        """Complete batch after batch and write what is requested; the table itself as it comes."""
        began, made = time.monotonic(), _Made()
        files, tables = self.files, read_batches(self.source, BATCH)
        with _Spool(files.cells) as cells, _Spool(files.probabilities) as levels:

            def parts() -> Iterator[pa.Table]:
                for number, table in enumerate(tables):
                    done = self._one(number, table, made)
                    cells.add(done.cells, made.n_rows)
                    levels.add(done.probabilities, made.n_rows)
                    made.add(done)
                    tell(observer, "completed", made.n_rows, self.n_rows)
                    yield flag_columns(done.table, done.data) if files.flags else done.table

            assert files.table is not None
            write_parts(parts(), files.table)
            cells.write()
            levels.write()
        assert made.precision is not None
        run = Run(self.fitted.posterior, None, time.monotonic() - began, self.fitted.notes)
        if self.sampled is not None:
            stopped, seconds = self.sampled.stopped, self.sampled.seconds + run.seconds
            run = replace(run, stopped=stopped, seconds=seconds)
        about = made.precision, self.how.interval, self.how.seed
        columns = tuple(made.columns.values())
        sizes = made.n_columns, made.cut, made.extremes
        found = BatchedCompletion(made.data(), run, *about, columns, *sizes)
        if finish is not None:
            finish(found)
        return found

    def _one(self, number: int, table: pa.Table, made: _Made) -> Completion:
        """Return a batch completed."""
        table = self.fitted.with_types(table)
        with rows_after(made.n_rows):
            data = self.fitted.encode(table, unseen=self.unseen, file=file_label(self.source))
        assert isinstance(data, Data)
        seed = seed_of_batch(self.how.seed, number)
        run = self.fitted.run(data, seed=seed, threads=self.how.threads)
        shown, known = self.files.needs_intervals, made.precision
        if known is not None and known.cells == 0:  # nothing was missing before
            known = None
        return complete(run, data, table, self.how, intervals=shown, precision=known)


def plan_batches(
    source: Any, fitted: Fitted, files: Files, how: Filling, unseen: Unseen, memory: int | None
) -> BatchedImputation | None:
    """Return the completion of a file in batches, None where it is to be read as a whole.

    So are files that fit into the memory, what cannot be read in batches, and what is asked of all
    rows together.
    """
    needed = memory_needed(source)
    grouped = fitted.groups is not None or not isinstance(fitted.posterior.model, JoinsRows)
    if needed is None or how.estimate == "draw" or files.whole or grouped:
        return None
    if needed <= (free_memory() // 2 if memory is None else memory):
        return None
    first = fitted.with_types(next(read_batches(source, BATCH)))
    data = fitted.encode(first, unseen=unseen, file=file_label(source))
    files.check(first, data)
    # What the first batch alone says of its rows is not true of the file.
    notes = (note for note in data.notes if not isinstance(note, RowsNote))
    return BatchedImputation(source, fitted, files, how, unseen, (*notes, *fitted.notes))


def free_memory() -> int:
    """Return the bytes of memory that are free, or could be."""
    try:
        lines = dict(line.split(":") for line in _MEMORY.read_text().splitlines())
        return int(lines["MemAvailable"].split()[0]) << 10
    except (OSError, KeyError, ValueError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@dataclass
class _Made:
    """What is known of the batches so far."""

    n_rows: int = 0
    n_columns: int = 0
    precision: Precision | None = None
    columns: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: JoinedNotes = field(default_factory=JoinedNotes)
    left: dict[tuple[str, str], int] = field(default_factory=dict)
    ids: tuple[str, ...] = ()
    cut: Counter[str] = field(default_factory=Counter)
    extremes: dict[str, Extremes] = field(default_factory=dict)

    def add(self, done: Completion) -> None:
        """Take note of a batch."""
        data = done.data
        self.notes.add(data.notes, self.n_rows)
        for name, extreme in done.extremes.items():
            self.extremes[name] = extreme.joined(self.extremes.get(name), self.n_rows)
        self.n_rows += data.n_rows
        self.cut.update(done.cut)
        self.n_columns, self.precision, self.ids = done.table.num_columns, done.precision, data.ids
        for one in data.not_completed:
            key = one.column, one.why
            self.left[key] = self.left.get(key, 0) + one.cells
        number = {encoded.column.name: d for d, encoded in enumerate(data.columns)}
        for part in done.columns:
            name = part.encoded.column.name
            new = column_summary(part, done.candidates(number[name]))
            new |= margin_of(part, data.weights)
            self.columns[name] = summed(self.columns.get(name, {}), new)

    def data(self) -> Data:
        """Return the sizes and notes of the table."""
        left = tuple(NotCompleted(name, n, why) for (name, why), n in self.left.items())
        return Data(self.n_rows, (), self.notes.told()[:MOST_NOTES], self.ids, left)


def summed(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Return what `column_summary` says of the cells of two parts of a column together."""
    a, b = one.get("completed", 0), other.get("completed", 0)
    found = {**one, **other, "completed": a + b}
    found["observed"] = one.get("observed", 0) + other["observed"]
    for name in ("mean", "mean_sd", "mean_probability"):
        if name in found:
            found[name] = (a * one.get(name, 0.0) + b * other.get(name, 0.0)) / max(a + b, 1)
    if "levels" in found:
        both = (one.get("levels", {}), other.get("levels", {}))
        found["levels"] = {name: sum(n.get(name, 0) for n in both) for name in found["levels"]}
    return found | summed_margins(one.get("margin"), other.get("margin"))


class _Spool:
    """Tables of one schema that wait in a file without a name until all are there."""

    def __init__(self, target: Path | str | None) -> None:
        self._target = target

    def __enter__(self) -> _Spool:
        if self._target is not None:
            nowhere = str(self._target) == "-" or is_device(self._target)
            beside = None if nowhere else Path(os.path.realpath(self._target))
            self._file = tempfile.TemporaryFile(dir=beside and beside.parent)
            self._writer: Any = None
        return self

    def __exit__(self, *_: object) -> None:
        if self._target is not None:
            self._file.close()

    def add(self, table: Callable[[], pa.Table], n_rows: int) -> None:
        """Take a table in, whose `row` counts from the end of `n_rows`."""
        if self._target is None:
            return
        part = table()
        row = pc.add(part.column("row"), n_rows)
        part = part.set_column(0, part.schema.field(0), row)
        if self._writer is None:
            self._writer = pa.ipc.new_stream(self._file, part.schema)
        self._writer.write_table(part)

    def write(self) -> None:
        """Write all of it."""
        if self._target is None:
            return
        self._writer.close()
        self._file.seek(0)
        opened = pa.ipc.open_stream(self._file)
        parts: Iterable[pa.Table] = (pa.Table.from_batches([batch]) for batch in opened)
        write_parts(_some(parts, opened.schema), self._target)


def _some(parts: Iterable[pa.Table], schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield tables, an empty one where there is none."""
    nothing = True
    for part in parts:
        yield part
        nothing = False
    if nothing:
        yield schema.empty_table()
