"""Tables and queries of SQLite and DuckDB databases; a table is written as a new one of its own."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from glfm_cli.errors import OutputError, TableError
from glfm_cli.io.csv_read import check_names
from glfm_cli.io.extras import need
from glfm_cli.io.formats import SQLITE
from glfm_cli.io.location import Location
from glfm_cli.io.mixed import cells_of, table_of_cells


def read_database(place: Location, layout: str, file: str) -> pa.Table:
    """Return the table or the answer to the query that stands behind the `?`.

    A database with one table needs neither. Nothing is written.

    Raises TableError: there is no such file or table, or the query fails; UsageError: duckdb is not
        installed.
    """
    path = Path(place.path)
    if not path.is_file():
        raise TableError("cannot be read: there is no such file", file=file)
    with path.open("rb") as stream:
        is_sqlite = stream.read(len(SQLITE)) == SQLITE
    if is_sqlite != (layout == "sqlite"):
        kind = "an" if is_sqlite else "not an"
        raise TableError(f"is {kind} SQLite database", file=file, hint="Check its suffix.")
    table = (_sqlite if is_sqlite else _duckdb)(place, file)
    check_names(table.column_names, file)
    if table.num_rows == 0:
        raise TableError("the table or query has no rows", file=file)
    return table


def _query(place: Location, names: list[str], file: str) -> str:
    if "query" in place.options:
        if "table" in place.options:
            both = "`table` and `query` are both given"
            raise TableError(both, file=file, expected="one of them")
        return place.options["query"]
    name = place.options.get("table") or (names[0] if len(names) == 1 else None)
    if name not in names:
        raise TableError(
            "has no such table" if name else "holds several tables",
            file=file,
            value=name,
            expected=", ".join(names[:12]) or "a table",
            hint=f"Name one: {place.path}?table={names[0]}" if names else None,
        )
    return f"SELECT * FROM {_quoted(str(name))}"


def _quoted(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))


def _sqlite(place: Location, file: str) -> pa.Table:
    address = f"file:{quote(str(Path(place.path).resolve()))}?mode=ro"
    try:
        with sqlite3.connect(address, uri=True) as base:
            cursor = base.execute(_query(place, _tables(base, "sqlite"), file))
            header = [column[0] for column in cursor.description or ()]
            rows = cursor.fetchall()
    except sqlite3.Error as error:
        raise TableError(f"cannot be read ({error})", file=file) from None
    finally:
        if "base" in locals():
            base.close()
    check_names(header, file)
    return table_of_cells(header, list(zip(*rows, strict=True)) or [()] * len(header), file)


def _duckdb(place: Location, file: str) -> pa.Table:
    duckdb = need("duckdb", "sql", file)
    try:
        with duckdb.connect(place.path, read_only=True) as base:
            answer = base.sql(_query(place, _tables(base, "duckdb"), file))
            return pa.table({}) if answer is None else answer.to_arrow_table()
    except duckdb.Error as error:
        raise TableError(
            f"cannot be read ({' '.join(str(error).split())[:120]})", file=file
        ) from None


_LISTED = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name",
    "duckdb": "SHOW TABLES",
}


def _tables(base: Any, layout: str) -> list[str]:
    names = (row[0] for row in base.execute(_LISTED[layout]).fetchall())
    return [name for name in names if not name.startswith("sqlite_")]


def check_database(place: Location, layout: str, file: str) -> str:
    """Return the name of the table that shall be written, which must not be there yet.

    Raises OutputError: no table is named, it is there, or the file is no such database.
    """
    name = place.options.get("table")
    if name is None:
        raise OutputError(
            "a database needs the name of the table to write",
            file=file,
            hint=f"Write it behind the name: {place.path}?table=completed",
        )
    if Path(place.path).is_file():
        with _opened(place, layout, file) as base:
            if name in _tables(base, layout):
                raise OutputError(
                    f"the database has a table '{name}' already",
                    file=file,
                    hint="Choose another name; tables are not replaced.",
                )
    return name


def write_database(table: pa.Table, place: Location, layout: str, file: str) -> None:
    """Write a table as a new one of a database, in one transaction; the file is made if needed.

    Raises OutputError: the table is there already, or the database refuses it; UsageError: duckdb
        is not installed.
    """
    name, is_new = check_database(place, layout, file), not Path(place.path).exists()
    try:
        with _opened(place, layout, file) as base:
            if layout == "duckdb":
                base.register("glfm_written", table)
                base.execute(f"CREATE TABLE {_quoted(name)} AS SELECT * FROM glfm_written")
                return
            columns = ", ".join(f"{_quoted(f.name)} {_kind(f.type)}" for f in table.schema)
            base.execute(f"CREATE TABLE {_quoted(name)} ({columns})")
            marks = ", ".join("?" * table.num_columns)
            for batch in table.to_batches(max_chunksize=1 << 14):
                cells = [
                    map(_plain, cells_of(column, field))
                    for column, field in zip(batch.columns, table.schema, strict=True)
                ]
                base.executemany(
                    f"INSERT INTO {_quoted(name)} VALUES ({marks})", zip(*cells, strict=True)
                )
    except BaseException:
        if is_new:
            Path(place.path).unlink(missing_ok=True)
        raise


@contextmanager
def _opened(place: Location, layout: str, file: str) -> Iterator[Any]:
    """Open a database to be written; what is done with it is done whole or not at all."""
    library: Any = sqlite3 if layout == "sqlite" else need("duckdb", "sql", file)
    base = None
    try:
        base = library.connect(place.path)
        base.execute("BEGIN")
        yield base
        base.commit()
    except (library.Error, OverflowError) as error:
        raise OutputError(
            f"cannot be written ({' '.join(str(error).split())[:120]})",
            file=file,
            hint="Write to a .csv or .parquet file instead.",
        ) from None
    finally:
        if base is not None:
            base.close()  # what was not committed is undone


def _kind(kind: pa.DataType) -> str:
    """Return the SQLite type whose columns keep such values."""
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return "INTEGER"
    return "REAL" if pa.types.is_floating(kind) else ""


def _plain(value: Any) -> Any:
    """Return a value as one of SQLite's own."""
    if value is None or isinstance(value, int | float | str | bytes):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
