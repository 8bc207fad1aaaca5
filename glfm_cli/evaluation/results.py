"""The results: one row a method, rate, repeat, column and score; on disk while they come.

Every fit appends its rows at once and ends them with the row `completed`, so that a run which was
stopped, at whatever point, can go on: rows behind the last `completed` are dropped, and fits that
have theirs are not made again. When all fits are made the file is written anew, in order.

A table in plain CSV is appended to in place; other formats cannot be, and grow as
`NAME.partial`, which is removed when the table itself stands.
"""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, Self

import pyarrow as pa

from glfm_cli.errors import OutputError, UsageError
from glfm_cli.evaluation.scoring import Score
from glfm_cli.io import atomic_write, check_target, read_table, write_table

FIT = "fit"  # the scope of what a fit cost and how it ended
COMPLETED = "completed"
SUFFIX = ".partial"

_KINDS = {"rate": pa.float64(), "repeat": pa.int64(), "value": pa.float64(), "cells": pa.int64()}
RESULTS = pa.schema(
    (name, _KINDS.get(name, pa.string()))
    for name in (
        *("method", "mechanism", "rate", "repeat", "scope", "column", "type", "score"),
        *("value", "cells", "note", "key"),
    )
)


class OutcomeId(NamedTuple):
    """Which fit a row belongs to."""

    method: str
    mechanism: str
    rate: float
    repeat: int


class Outcome(NamedTuple):
    """What one method did with one set of hidden cells.

    scores : empty when it failed
    problem : why it failed, or ""
    key : of the table and masks, and of the method and its settings, as "xxxxxxxx-xxxxxxxx"
    """

    id: OutcomeId
    key: str
    scores: tuple[Score, ...]
    seconds: float
    megabytes: float
    problem: str = ""

    def records(self) -> list[tuple[object, ...]]:
        """Return its rows of the results, in the order of `RESULTS`."""
        rows: list[tuple[object, ...]] = [
            (*self.id, *score, "", self.key) for score in self.scores
        ]  # fmt: skip
        for name, value, note in (
            ("seconds", self.seconds, ""),
            ("megabytes", self.megabytes, ""),
            (COMPLETED, 0.0 if self.problem else 1.0, self.problem),
        ):
            rows.append((*self.id, FIT, "", "", name, value, 0, note, self.key))
        return rows


def to_table(fits: Iterable[Outcome]) -> pa.Table:
    """Return the results of fits as a table."""
    return table_of([record for fit in fits for record in fit.records()], RESULTS)


def table_of(records: Sequence[Sequence[object]], schema: pa.Schema) -> pa.Table:
    """Return records as the rows of a table, empty where a number is NaN."""
    arrays = [
        pa.array([_none(record[i]) for record in records], field.type)
        for i, field in enumerate(schema)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def from_records(records: Sequence[Sequence[object]]) -> list[Outcome]:
    """Return the fits that have their last row; the rows of others are left out."""
    fits: list[Outcome] = []
    open_rows: dict[tuple[OutcomeId, str], list[tuple[Score, str]]] = {}
    for record in records:
        method, mechanism, rate, repeat, scope, column, kind, name, value, cells, note, key = record
        fit = OutcomeId(str(method), str(mechanism), float(str(rate)), int(str(repeat)))
        words = (str(scope), str(column or ""), str(kind or ""), str(name))
        score = Score(*words, _number(value), int(str(cells)))
        rows = open_rows.setdefault((fit, str(key)), [])
        rows.append((score, str(note or "")))
        if name == COMPLETED:
            fits.append(_fit_of(fit, str(key), open_rows.pop((fit, str(key)))))
    return fits


def _fit_of(fit: OutcomeId, key: str, rows: Sequence[tuple[Score, str]]) -> Outcome:
    cost = {score.score: score.value for score, _ in rows if score.scope == FIT}
    problem = rows[-1][1] if cost[COMPLETED] == 0.0 else ""
    return Outcome(
        id=fit,
        key=key,
        scores=tuple(score for score, _ in rows if score.scope != FIT),
        seconds=cost.get("seconds", math.nan),
        megabytes=cost.get("megabytes", math.nan),
        problem=problem,
    )


def _none(value: object) -> object:
    return None if isinstance(value, float) and math.isnan(value) else value


def _number(value: object) -> float:
    return math.nan if value in (None, "") else float(str(value))


# ------------------------------------------------------------------------------ on disk


class Results:
    """Where results go while they come, and the file that they become.

    path : the table; the suffix gives its format
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        in_place = self.path.suffix.lower() == ".csv"
        self.growing = self.path if in_place else self.path.with_name(self.path.name + SUFFIX)

    def check(self, resume: bool) -> None:
        """Raise, before the work, when the file cannot be written or holds results already."""
        check_target(self.path, to_table([]).slice(0, 0))
        for path in {self.path, self.growing}:
            if not resume and path.exists() and path.stat().st_size:
                raise UsageError(
                    "there are results in this file already",
                    file=str(path),
                    hint="Add --resume to continue with them, or remove the file to start again.",
                )

    def load(self) -> list[Outcome]:
        """Return the fits that are on disk, complete ones only."""
        fits = from_records(_read_growing(self.growing)) if self.growing.exists() else []
        if self.path != self.growing and self.path.exists():
            known = {fit.id for fit in fits}
            fits += [fit for fit in self._load_table() if fit.id not in known]
        return fits

    def _load_table(self) -> list[Outcome]:
        table = read_table(self.path)
        if table.column_names != RESULTS.names:
            raise _foreign(self.path)
        try:
            columns = [column.to_pylist() for column in table.columns]
            return from_records(list(zip(*columns, strict=True)))
        except ValueError:
            raise _foreign(self.path) from None

    def begin(self, fits: Sequence[Outcome]) -> Self:
        """Start the growing file with the fits that are there already."""
        with atomic_write(self.growing, "w") as file:
            file.write(_csv([RESULTS.names]))
            for fit in fits:
                file.write(_csv(fit.records()))
        return self

    def add(self, fit: Outcome) -> None:
        """Append the rows of one fit; they are on disk when this returns."""
        try:
            with self.growing.open("a", encoding="utf-8", newline="") as file:
                file.write(_csv(fit.records()))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise OutputError(
                f"cannot be written: {error.strerror or error}",
                file=str(self.growing),
                hint="The results so far are saved; --resume continues with them.",
            ) from error

    def finish(self, fits: Sequence[Outcome]) -> None:
        """Write the table, in order, and remove what grew beside it."""
        if self.growing == self.path:
            self.begin(fits)
            return
        write_table(to_table(fits), self.path)
        self.growing.unlink(missing_ok=True)


def _csv(records: Iterable[Sequence[object]]) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    for record in records:
        writer.writerow([_text(value) for value in record])
    return text.getvalue()


def _text(value: object) -> object:
    if isinstance(value, float):
        return "" if math.isnan(value) else repr(value)
    return value


def _read_growing(path: Path) -> list[list[str]]:
    """Return the records of a file that may end in the middle of one."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise OutputError(f"cannot be read: {error.strerror or error}", file=str(path)) from None
    if not text:
        return []
    records = list(csv.reader(io.StringIO(text, newline="")))
    if not records or records[0] != RESULTS.names:
        raise _foreign(path)
    if records[-1] and (len(records[-1]) != len(RESULTS.names) or not text.endswith("\n")):
        records.pop()  # it was being written when the run was stopped
    try:
        from_records(records[1:])
    except ValueError:
        raise _foreign(path) from None
    return records[1:]


def _foreign(path: Path) -> UsageError:
    return UsageError(
        "is not a table of results that can be continued",
        file=str(path),
        expected=f"the columns {', '.join(RESULTS.names)}",
        hint="Choose another --output.",
    )
