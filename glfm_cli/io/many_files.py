"""Parquet files in a folder or under a pattern, as one table: they must have the same columns.

Arrow would force all files into the columns of the first. Here a difference is an error, but for
those in which nothing is lost: another order of the columns (the first file's is taken), a column
without any type beside a typed one, and types of which one holds all values of the other as they
are (integers of one sign, texts, dictionaries whose indices differ in width).
"""

from __future__ import annotations

import glob
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa

from glfm_cli.errors import TableError
from glfm_cli.io.csv_read import check_names
from glfm_cli.io.location import Location
from glfm_cli.io.parquet_layout import with_layout


def read_many(place: Location, file: str) -> pa.Table:
    """Return the rows of all Parquet files in a folder or under a pattern, in order of their names.

    Folders named `year=2024` become a column `year`.

    Raises TableError: there is no such file, one cannot be read, or their columns differ.
    """
    with _refusals(file):
        table = open_many(place, file).to_table()
    if table.num_rows == 0:
        raise TableError("no Parquet file there has a row", file=file)
    return table


def batches_of_many(place: Location, file: str) -> Iterator[pa.Table]:
    """Yield the rows that `read_many` returns, some at a time.

    Raises TableError: as `read_many`.
    """
    with _refusals(file):
        opened = open_many(place, file)
        for batch in opened.to_batches(batch_readahead=1, fragment_readahead=1):
            yield pa.Table.from_batches([batch], opened.schema)


def open_many(place: Location, file: str) -> Any:
    """Return a `pyarrow.dataset.Dataset` whose schema has room for the values of every file.

    The footers of all files are read: O(number of files).

    Raises TableError: as `read_many`.
    """
    found = place.path if Path(place.path).is_dir() else _matching(place.path)
    if not found:
        raise TableError("cannot be read: no file has such a name", file=file)
    from pyarrow.dataset import FileSystemDataset, dataset

    with _refusals(file):
        opened = dataset(found, format="parquet", partitioning="hive")
    parts = list(opened.get_fragments())
    if not parts:
        raise TableError("holds no Parquet file", file=file)
    schema = _schema_of_all(parts, opened.schema)
    check_names(schema.names, file)
    schema = with_layout(schema, parts[0].metadata, groups=False)
    return FileSystemDataset(parts, schema, opened.format, opened.filesystem)


def _matching(pattern: str) -> list[str]:
    """Return the names that a pattern stands for; with ** those of files in any folder below."""
    names = sorted(glob.glob(pattern, recursive=True))
    return [name for name in names if Path(name).is_file()] if "**" in pattern else names


def _schema_of_all(parts: list[Any], inspected: pa.Schema) -> pa.Schema:
    """Return the columns of all files, in the order of the first.

    parts : fragments of a data set
    inspected : its schema, in which columns from the names of folders have their types
    """
    first = parts[0].path
    known = {name: (column, first) for name, column in _columns(parts[0], inspected).items()}
    for part in parts[1:]:
        columns = _columns(part, inspected)
        for name in (*known, *columns):
            if name not in columns:
                _refuse_lone(name, first, part.path, list(columns))
            if name not in known:
                _refuse_lone(name, part.path, first, list(known))
            (kept, source), column = known[name], columns[name]
            common = _common(kept.type, column.type)
            if common is None:
                raise TableError(
                    file=part.path,
                    column=name,
                    value=f"values of type {column.type}",
                    expected=f"{kept.type} as in {source}",
                    hint="Write the column with one type in all files, or give each file by "
                    "itself.",
                )
            room = kept.with_type(common).with_nullable(kept.nullable or column.nullable)
            known[name] = (room, source if common == kept.type else part.path)
    return pa.schema([column for column, _ in known.values()], inspected.metadata)


def _columns(part: Any, inspected: pa.Schema) -> dict[str, pa.Field]:
    """Return the columns of a file, those that the names of its folders give among them."""
    from pyarrow.dataset import get_partition_keys

    with _refusals(part.path):
        held = part.physical_schema
    columns = {column.name: column for column in held}
    for name in get_partition_keys(part.partition_expression):
        if name in columns:
            raise TableError(
                f"stands in the file, and in the name of its folder '{name}=...', too",
                file=part.path,
                column=name,
                hint="Drop the column from the files, or rename the folders.",
            )
        columns[name] = inspected.field(name)
    return columns


def _common(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the type, if any, in which the values of two types are what they were."""
    kinds = pa.types
    if one == other or kinds.is_null(other):
        return one
    if kinds.is_null(one):
        return other
    integers = kinds.is_signed_integer, kinds.is_unsigned_integer
    if any(both(one) and both(other) for both in integers):
        return max(one, other, key=lambda kind: kind.bit_width)
    if {one, other} == {pa.string(), pa.large_string()}:
        return pa.large_string()
    if kinds.is_dictionary(one) and kinds.is_dictionary(other) and one.ordered == other.ordered:
        index = _common(one.index_type, other.index_type)
        value = _common(one.value_type, other.value_type)
        if index is not None and value is not None:
            return pa.dictionary(index, value, one.ordered)
    return None


def _refuse_lone(name: str, there: str, lacking: str, others: list[str]) -> NoReturn:
    """Raise the error of a column that is in one file but not in another."""
    alike = [other for other in others if other.strip().lower() == name.strip().lower()]
    raise TableError(
        f"is not in this file, but in {there}" + (f"; here it is '{alike[0]}'" if alike else ""),
        file=lacking,
        column=name,
        hint="Rename it, so that all files have the same columns."
        if alike
        else "Write all files with the same columns (empty where a file knows nothing), or give "
        "each file by itself.",
    )


@contextmanager
def _refusals(file: str) -> Iterator[None]:
    """Turn what Arrow cannot read into a TableError."""
    try:
        yield
    except MemoryError:  # Arrow's own is an ArrowException, too
        raise
    except (pa.ArrowException, OSError) as error:
        raise TableError(
            f"cannot be read as Parquet ({' '.join(str(error).split())[:120]})",
            file=file,
            hint="A folder or pattern must hold nothing but Parquet files; one may be damaged or "
            "cut off.",
        ) from None
