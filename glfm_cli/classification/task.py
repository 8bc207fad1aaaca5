"""A table split into its target and its features, everything about the labels checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.classification.tasks import as_task, with_readable_task
from glfm_cli.encoding import Data, EncodedColumn, LearntColumn, encode
from glfm_cli.errors import SchemaError, TableError, UsageError
from glfm_cli.schema import Role, Schema, with_calendar

MOST_LEVELS = 50
FEW_LABELS = 10  # of one level, below which a fit is warned about
TOGETHER = 1.5  # rows for each value of an id, from which they may belong together


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be predicted, and from what.

    target : the encoded target, its levels those of the types file or learnt
    levels : (R,) the levels that occur, R from 2
    code : (n,) float64, place of each row's level in `levels`; NaN where missing
    features : the other modelled columns, and the one that names tasks
    groups : (n,) int64, what each row belongs to, None where no column has role group: it tells
        nothing, and is an id but for folds
    """

    schema: Schema
    data: Data
    target: EncodedColumn
    levels: tuple[str, ...]
    code: Array
    features: tuple[EncodedColumn, ...]
    notes: tuple[str, ...]
    groups: Array | None = None

    @property
    def name(self) -> str:
        """Return the target's name."""
        return self.target.column.name

    @property
    def n_features(self) -> int:
        """Return how many columns there are to predict from."""
        return count_features(self.features)


def count_features(columns: Sequence[EncodedColumn | LearntColumn]) -> int:
    """Return how many of the columns are to predict from."""
    return sum(known.column.role is not Role.TASK for known in columns)


def make_task(table: pa.Table, schema: Schema, target: str | None, file: str | None) -> Task:
    """Return the task that a table and its types pose.

    target : the column to predict; the one of role target if left out
    file : the table's name in errors

    Raises GlfmError: the cells, the types or the target are wrong; the error says where.
    """
    name = _target_name(table, schema, target)
    schema = schema.without_time()
    role = {c.name: c.role for c in with_calendar(schema.resolve(table.column_names))}
    data = encode(table, with_readable_task(schema), file=file)
    data, schema, groups = _read_groups(data, schema, role)
    if data.weights is not None:
        raise SchemaError(
            "role weight is not used by a classifier",
            file=schema.file,
            column=next(n for n, one in role.items() if one is Role.WEIGHT),
            hint="Give the column role predictor or ignore; `glfm impute` and `explore` take it.",
        )
    by_value = next((e.column for e in data.columns if e.column.missingness is not None), None)
    if by_value is not None:
        raise SchemaError(
            f"a classifier takes no `missingness: {by_value.missingness}`",
            file=schema.file,
            column=by_value.name,
            hint="Leave it out: `--set indicators=true` makes a feature of what is missing.",
        )
    data = _read_tasks(data, role, file)
    encoded = next((e for e in data.columns if e.column.name == name), None)
    if encoded is None or role[name] is Role.TASK:
        raise SchemaError(
            f"the target has role {role[name]}, so it has no levels",
            file=schema.file,
            column=name,
            hint=f"Give '{name}' the type categorical in the types file.",
        )
    if not encoded.column.levelled:
        raise SchemaError(
            f"the target has type {encoded.column.type}",
            file=schema.file,
            column=name,
            expected="type categorical or ordinal",
            hint=f"Where its values are codes of classes, give '{name}' the type categorical; "
            "numbers are completed, with their uncertainty, by `glfm impute`.",
        )
    levels, code, notes = _labels(encoded, file)
    features = tuple(e for e in data.columns if e is not encoded)
    if not count_features(features):
        raise SchemaError(
            "no column is left to predict the target from",
            file=schema.file,
            column=name,
            expected="at least one more column with a type",
        )
    notes = [*data.notes, *notes]
    return Task(schema, data, encoded, levels, code, features, tuple(notes), groups)


def _read_groups(
    data: Data, schema: Schema, role: Mapping[str, Role]
) -> tuple[Data, Schema, Array | None]:
    """Return the data and the schema with groups as ids, and what each row belongs to."""
    if data.groups is None:
        return data, schema, None
    ids = tuple(name for name, one in role.items() if one in (Role.ID, Role.GROUP))
    columns = (replace(c, role=Role.ID) if c.role is Role.GROUP else c for c in schema.columns)
    as_ids = replace(data, groups=None, ids=ids, id_cells=None)
    return as_ids, replace(schema, columns=tuple(columns)), data.groups.code


def _read_tasks(data: Data, role: Mapping[str, Role], file: str | None) -> Data:
    """Return the data with the task column under its role; of a single task without it."""
    at = next((d for d, e in enumerate(data.columns) if role[e.column.name] is Role.TASK), None)
    if at is None:
        return data
    task = as_task(data.columns[at], file)
    others = (*data.columns[:at], *data.columns[at + 1 :])
    if np.unique(task.x).size > 1:
        return replace(data, columns=(*others, task))
    note = f"column '{task.column.name}': all rows belong to one task, so the column is not used"
    return replace(data, columns=others, notes=(*data.notes, note))


def _target_name(table: pa.Table, schema: Schema, target: str | None) -> str:
    if target is not None:
        if target not in table.column_names:
            near = get_close_matches(str(target), table.column_names, n=1)
            raise UsageError(
                "--target: the table has no such column",
                value=f"'{target}'",
                hint=f"Did you mean '{near[0]}'?" if near else None,
            )
        return target
    columns = schema.resolve(table.column_names)
    found = [column.name for column in columns if column.role is Role.TARGET]
    if not found:
        raise UsageError(
            "no target is named", hint="Add --target COLUMN, or `role: target` in the types file."
        )
    return found[0]


def shared_ids(task: Task, table: pa.Table, n_folds: int) -> tuple[str, ...]:
    """Return a note on the first column of ids whose values rows share, so that folds part them."""
    if task.groups is not None:
        return ()
    for name in task.data.ids:
        values = table[name].drop_null() if name in table.column_names else pa.array([])
        n_values = len(values.unique())
        if n_folds <= n_values <= len(values) / TOGETHER:
            return (
                f"column '{name}': rows share its {n_values} values, and are in different folds; "
                "with role group those of a value are held out together",
            )
    return ()


def few_labels(task: Task) -> tuple[str, ...]:
    """Return a note on labels of few rows, if there are some."""
    count = np.bincount(task.code[~np.isnan(task.code)].astype(np.intp))
    each = zip(task.levels, count, strict=True)
    few = [f"'{level}' ({n})" for level, n in each if n < FEW_LABELS]
    return (f"column '{task.name}': few rows are labelled {', '.join(few[:5])}",) if few else ()


def _labels(encoded: EncodedColumn, file: str | None) -> tuple[tuple[str, ...], Array, list[str]]:
    """Return the levels that occur, the codes among them, and notes."""
    name = encoded.column.name
    seen = encoded.x[encoded.observed].astype(np.intp)
    count = np.bincount(seen, minlength=len(encoded.levels))
    there = np.flatnonzero(count)
    if there.size < 2:
        raise TableError(
            f"every observed label is '{encoded.levels[int(there[0])]}'",
            file=file,
            column=name,
            expected="at least two different labels",
        )
    if there.size > MOST_LEVELS:
        raise TableError(
            f"has {there.size} different labels",
            file=file,
            column=name,
            expected=f"at most {MOST_LEVELS}",
            hint="Merge rare labels, or use a column with fewer levels.",
        )
    place = np.full(len(encoded.levels), np.nan)
    place[there] = np.arange(there.size)
    code = np.full(encoded.x.size, np.nan)
    code[encoded.observed] = place[seen]
    absent = [f"'{level}'" for level, n in zip(encoded.levels, count, strict=True) if not n]
    notes = []
    if absent:
        notes.append(
            f"column '{name}': no row is labelled {', '.join(absent[:5])}"
            + (", ..." if len(absent) > 5 else "")
            + "; such labels are never predicted"
        )
    return tuple(encoded.levels[int(i)] for i in there), code, notes
