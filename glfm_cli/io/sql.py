"""Tables and queries of SQLite and DuckDB databases, read in place."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa

from glfm_cli.errors import TableError
from glfm_cli.io.csv_read import check_names
from glfm_cli.io.extras import need
from glfm_cli.io.formats import SQLITE
from glfm_cli.io.location import Location
from glfm_cli.io.mixed import table_of_cells


def read_database(place: Location, layout: str, file: str) -> pa.Table:
    """Return the table or the answer to the query that stands behind the `?`.

    A database with one table needs neither. Nothing is written.

    Raises
    ------
    TableError
        There is no such file or table, or the query fails.
    UsageError
        duckdb is not installed.
    """
    path = Path(place.path)
    if not path.is_file():
        raise TableError("cannot be read: there is no such file", file=file)
    with path.open("rb") as stream:
        is_sqlite = stream.read(len(SQLITE)) == SQLITE
    if is_sqlite != (layout == "sqlite"):
        kind = "an" if is_sqlite else "no"
        raise TableError(f"is {kind} SQLite database", file=file, hint="Is its suffix right?")
    table = (_sqlite if is_sqlite else _duckdb)(place, file)
    check_names(table.column_names, file)
    if table.num_rows == 0:
        raise TableError("the table or query has no rows", file=file)
    return table


def _query(place: Location, names: list[str], file: str) -> str:
    if "query" in place.options:
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
    return 'SELECT * FROM "{}"'.format(str(name).replace('"', '""'))


def _sqlite(place: Location, file: str) -> pa.Table:
    address = f"file:{quote(str(Path(place.path).resolve()))}?mode=ro"
    try:
        with sqlite3.connect(address, uri=True) as base:
            listed = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"
            names = [name for (name,) in base.execute(listed) if not name.startswith("sqlite_")]
            cursor = base.execute(_query(place, names, file))
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
            names = [row[0] for row in base.execute("SHOW TABLES").fetchall()]
            return base.sql(_query(place, names, file)).to_arrow_table()
    except duckdb.Error as error:
        raise TableError(
            f"cannot be read ({' '.join(str(error).split())[:120]})", file=file
        ) from None
