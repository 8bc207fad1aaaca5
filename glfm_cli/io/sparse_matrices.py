"""Sparse matrices as triplets: Matrix Market and SVMlight files, the cells that they list.

A row of the table is a listed cell: `row` and `column`, numbered as the file does, and `value`.
Rows of an SVMlight file are numbered from 1, and their labels left out. Files of names, one a line,
may stand behind a `?`: `counts.mtx?columns=vocabulary.txt&rows=documents.txt`.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.errors import OutputError, TableError
from glfm_cli.io.files import read_bytes
from glfm_cli.io.packed import PACKINGS, unpack

BANNER = "%%MatrixMarket matrix coordinate"
FIELDS = ("integer", "real", "pattern")


def read(data: bytes, layout: str, file: str, options: Mapping[str, str]) -> pa.Table:
    """Return the cells that a file lists.

    Raises TableError: the file is not of its format, or lists no cell; names the line. Or names do
        not fit.
    """
    text = data.decode("utf-8", "replace")
    row, column, value = (_matrix_market if layout == "mtx" else _svmlight)(text, file)
    if not row.size:
        raise TableError("lists no cell", file=file, expected="at least one")
    if np.array_equal(value, np.floor(value)) and np.abs(value).max() < 2**53:
        value = value.astype(np.int64)
    ids = {"row": row, "column": column}
    first = 0 if layout == "svmlight" and column.min() == 0 else 1
    for name, least in (("row", 1), ("column", first)):
        if f"{name}s" in options:
            ids[name] = _named(ids[name] - least, options[f"{name}s"], name)
    return pa.table(ids | {"value": value})


def _named(index: Array, file: str, what: str) -> pa.Array:
    """Return the names (n,) of rows or columns by their numbers from 0 on.

    Of lines that are cut at tabs, as those of genes are, the first part is the name.

    Raises TableError: a line is blank, a name is there twice, or there are too few.
    """
    data, packing = read_bytes(file), PACKINGS.get(Path(file).suffix.lower())
    data = data if packing is None else unpack(data, packing, file)
    lines = data.decode("utf-8-sig", "replace").splitlines()
    names = [line.partition("\t")[0].strip() for line in lines]
    known: set[str] = set()
    for number, name in enumerate(names, start=1):
        if not name or name in known:
            raise TableError(
                file=file, row=number, value=f"'{name}'", expected="a name on each line, each once"
            )
        known.add(name)
    if index.min() < 0:
        raise TableError(
            file=file, value=f"{what} {index.min()}", expected=f"a {what} from 0 on, as names have"
        )
    if index.max() >= len(names):
        raise TableError(
            f"has {len(names)} names",
            file=file,
            expected=f"at least {index.max() + 1}, for every {what} that the matrix lists",
        )
    return pa.array(names, pa.string()).take(pa.array(index))


def write(table: pa.Table, file: IO[Any], layout: str, shown: str) -> None:
    """Raise OutputError: predictions are no matrix."""
    raise OutputError(
        "sparse matrices are read, not written", file=shown, expected="a name ending in .csv"
    )


def _matrix_market(text: str, file: str) -> tuple[Array, Array, Array]:
    lines = text.splitlines()
    words = lines[0].split() if lines else []
    if not (lines and lines[0].lower().startswith(BANNER.lower()) and len(words) == 5):
        raise TableError(
            "is not a sparse Matrix Market file", file=file, expected=f"a first line '{BANNER} ...'"
        )
    field, symmetry = words[3].lower(), words[4].lower()
    if field not in FIELDS or symmetry != "general":
        raise TableError(
            file=file,
            value=f"{field} {symmetry}",
            expected=f"a general matrix of {', '.join(FIELDS)} values",
        )
    body = [line for line in lines[1:] if line.strip() and not line.startswith("%")]
    n_columns = 2 if field == "pattern" else 3
    try:
        sizes = [int(word) for word in body[0].split()]
        cells = np.loadtxt(io.StringIO("\n".join(body[1:])), ndmin=2) if body[1:] else None
        cells = np.empty((0, n_columns)) if cells is None else cells
        if len(sizes) != 3 or cells.shape != (sizes[2], n_columns):
            raise ValueError(f"{cells.shape[0]} cells")
        if np.any(cells[:, :2] != np.floor(cells[:, :2])):
            raise ValueError("a row or column that is no whole number")
    except (ValueError, IndexError) as error:
        raise TableError(
            f"cannot be read: {error}", file=file, expected="a line of sizes, then a cell a line"
        ) from None
    row, column = (cells[:, i].astype(np.int64) for i in range(2))
    for index, most, what in ((row, sizes[0], "row"), (column, sizes[1], "column")):
        wrong = (index < 1) | (index > most)
        if wrong.any():
            at = int(np.argmax(wrong))
            raise TableError(
                file=file, row=at + 1, value=f"{what} {index[at]}", expected=f"from 1 to {most}"
            )
    return row, column, np.ones(row.size) if field == "pattern" else cells[:, 2]


def _svmlight(text: str, file: str) -> tuple[Array, Array, Array]:
    row: list[int] = []
    column: list[int] = []
    value: list[float] = []
    n_rows = 0
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        n_rows += 1
        try:
            pairs = [word.split(":") for word in words[1:] if not word.startswith("qid:")]
            column += [int(index) for index, _ in pairs]
            value += [float(content) for _, content in pairs]
        except ValueError:
            raise TableError(
                f"line {number} is not a row", file=file, expected="a label, then INDEX:VALUE ..."
            ) from None
        row += [n_rows] * len(pairs)
    return np.array(row, np.int64), np.array(column, np.int64), np.array(value, np.float64)
