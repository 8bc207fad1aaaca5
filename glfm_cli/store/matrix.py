"""What a saved fit of triplets says of its matrix: ids, observed cells, and covariates.

`matrix.arrow` has the ids of rows and columns as text, and the numbers by which covariates are
made; `data.arrow` row, column and value of the observed cells, and the covariates.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.encoding import Ids, encode_ids, open_column, text_of
from glfm_cli.errors import StoreError, TableError
from glfm_cli.inference.chain import inner
from glfm_cli.latent.model import FLOAT_MAX, take
from glfm_cli.schema import Column
from glfm_cli.store.arrays import read_one, to_stream
from glfm_cli.store.folder import DATA, MATRIX, map_file

SIDES = ("row", "column")


@dataclass(frozen=True)
class MatrixCells:
    """The observed cells of a matrix, ascending by row, then by column, and covariates.

    row, column : (m,) int32;  x : (m,) float64, values or codes as the link takes them
    R, C : (I, p) and (J, q) float64, covariates of rows and columns, without the intercepts
    """

    row: Array
    column: Array
    x: Array
    R: Array
    C: Array


@dataclass(frozen=True)
class MatrixHeader:
    """What run.json says of a matrix.

    n_columns, n_cells : of the matrix; its rows are `Header.n_rows`
    ids : names of the columns with the ids of rows and of columns
    kinds : the Arrow types of these
    covariates : of rows and of columns, by name
    missingness : how many covariates were asked for that the pattern of observed cells gives
    sides : what is text of how the covariates of rows, and of columns, are made; None without
    content_hash : SHA-256 of matrix.arrow
    """

    n_columns: int
    n_cells: int
    ids: tuple[str, str]
    kinds: tuple[str, str]
    covariates: tuple[tuple[str, ...], tuple[str, ...]]
    missingness: int | None
    sides: tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]
    content_hash: str

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        found: dict[str, Any] = {"columns": self.n_columns, "cells": self.n_cells}
        for i, side in enumerate(SIDES):
            found[side] = {
                "ids": self.ids[i],
                "kind": self.kinds[i],
                "covariates": list(self.covariates[i]),
                "features": self.sides[i],
            }
        return found | {"missingness": self.missingness, "sha256": self.content_hash}

    @classmethod
    def from_dict(cls, entries: Mapping[str, Any]) -> MatrixHeader:
        """Return what `to_dict` gave; raise ValueError, TypeError or KeyError otherwise."""
        parts = [entries[side] for side in SIDES]
        features = [part["features"] for part in parts]
        few = entries["missingness"]
        numbers = [entries["columns"], entries["cells"], *([] if few is None else [few])]
        if any(type(n) is not int or not 1 <= n < 2**40 for n in numbers):
            raise ValueError("a size is no whole number from 1")
        if not all(one is None or isinstance(one, dict) for one in features):
            raise ValueError("'features' is no mapping")
        texts = [[str(part[name]) for part in parts] for name in ("ids", "kind")]
        covariates = [tuple(map(str, part["covariates"])) for part in parts]
        return cls(
            n_columns=numbers[0],
            n_cells=numbers[1],
            ids=(texts[0][0], texts[0][1]),
            kinds=(texts[1][0], texts[1][1]),
            covariates=(covariates[0], covariates[1]),
            missingness=few,
            sides=(features[0], features[1]),
            content_hash=str(entries["sha256"]),
        )


@dataclass(frozen=True)
class StoredMatrix:
    """What a saved fit keeps of its matrix.

    rows, columns : the ids
    sides : numbers of how the covariates of rows, and of columns, are made; None without
    cells : None when they were left out by `--no-data`
    """

    rows: Ids
    columns: Ids
    sides: tuple[Mapping[str, Array] | None, Mapping[str, Array] | None]
    cells: MatrixCells | None


def matrix_arrays(
    ids: tuple[Ids, Ids], sides: tuple[Mapping[str, Array] | None, Mapping[str, Array] | None]
) -> dict[str, Array]:
    """Return the content of matrix.arrow."""
    found: dict[str, Array] = {}
    for name, one, side in zip(SIDES, ids, sides, strict=True):
        found |= _text_arrays(name, text_of(one.values).to_pylist())
        if one.labels:
            found |= _text_arrays(f"{name}.label", one.labels)
        for key, value in (side or {}).items():
            found[f"{name}.side.{key}"] = value
    return found


def _text_arrays(name: str, texts: Sequence[str]) -> dict[str, Array]:
    encoded = [text.encode() for text in texts]
    ends = np.cumsum([len(text) for text in encoded], dtype=np.int64)
    return {f"{name}.text": np.frombuffer(b"".join(encoded), np.uint8), f"{name}.ends": ends}


def hash_of_content(arrays: Mapping[str, Array]) -> str:
    """Return the SHA-256 of a file with these arrays."""
    return hashlib.sha256(to_stream(arrays)).hexdigest()


def cell_arrays(cells: MatrixCells) -> dict[str, Array]:
    """Return the content of data.arrow; 0 stands in pairs that are missing among zeros."""
    missing = np.flatnonzero(np.isnan(cells.x))
    found = {**vars(cells), "x": np.nan_to_num(cells.x)}
    return found | ({"missing": missing} if missing.size else {})


def hash_of_matrix(
    ids: tuple[Ids, Ids], value: Column, levels: tuple[str, ...], cells: MatrixCells
) -> str:
    """Return the SHA-256 of everything that the model sees of a matrix."""
    entries = [value.name, str(value.type), *levels, *(one.name for one in ids)]
    digest = hashlib.sha256(b"glfm matrix" + json.dumps(entries).encode())
    for one in ids:
        digest.update(json.dumps(one.keys).encode())
    for array in (cells.row, cells.column, cells.x, cells.R, cells.C):
        digest.update(str(array.shape).encode() + np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def read_matrix(folder: Path, header: MatrixHeader, n_rows: int, with_cells: bool) -> StoredMatrix:
    """Return what a saved fit keeps of its matrix, every part of it checked.

    Raises StoreError: a file is missing or broken.
    """
    name = MATRIX
    sizes = (n_rows, header.n_columns)
    try:
        buffer = map_file(folder, name)
        if hashlib.sha256(memoryview(buffer)).hexdigest() != header.content_hash:
            raise ValueError("its hash is another")
        arrays = read_one(buffer)
        rows, columns = (
            _read_ids(arrays, side, header.ids[i], header.kinds[i], sizes[i])
            for i, side in enumerate(SIDES)
        )
        sides = [
            None if entries is None else inner(arrays, f"{side}.side.")
            for side, entries in zip(SIDES, header.sides, strict=True)
        ]
        name = DATA
        cells = _read_cells(folder, header, sizes) if with_cells else None
    except (ValueError, TableError, pa.ArrowException) as error:
        raise StoreError(f"cannot be used: {error}", file=str(folder / name)) from None
    return StoredMatrix(rows, columns, (sides[0], sides[1]), cells)


def _read_ids(arrays: Mapping[str, Array], side: str, name: str, kind: str, n: int) -> Ids:
    texts = _read_texts(arrays, side, n)
    values = pa.array(texts, pa.large_string())
    with suppress(pa.ArrowException, ValueError):  # of a kind without alias, text will do
        values = values.cast(pa.type_for_alias(kind))
    ids, _ = encode_ids(open_column(pa.table({name: values}), 0, Column(name), None))
    if len(ids) != n:
        raise ValueError(f"an id of the {side}s is there twice")
    if f"{side}.label.text" in arrays:
        ids = replace(ids, labels=tuple(_read_texts(arrays, f"{side}.label", n)))
    return ids


def _read_texts(arrays: Mapping[str, Array], name: str, n: int) -> list[str]:
    content = take(arrays, f"{name}.text", np.uint8, (None,)).tobytes()
    ends = take(arrays, f"{name}.ends", np.int64, (n,))
    starts = np.concatenate([[0], ends[:-1]])
    if np.any(ends < starts) or ends[-1] != len(content) or ends[0] < 0:
        raise ValueError(f"the texts '{name}' do not end where they should")
    return [content[a:b].decode("utf-8") for a, b in zip(starts, ends, strict=True)]


def _read_cells(folder: Path, header: MatrixHeader, sizes: tuple[int, int]) -> MatrixCells:
    arrays = read_one(map_file(folder, DATA))
    m = (header.n_cells,)
    row, column = (take(arrays, name, np.int32, m) for name in SIDES)
    x = take(arrays, "x", np.float64, m, largest=FLOAT_MAX)
    if "missing" in arrays:
        missing = take(arrays, "missing", np.int64, (None,))
        if missing.min(initial=0) < 0 or missing.max(initial=0) >= x.size:
            raise ValueError("a missing pair lies outside the matrix")
        x = x.copy()
        x[missing] = np.nan
    R = take(arrays, "R", np.float64, (sizes[0], len(header.covariates[0])), largest=FLOAT_MAX)
    C = take(arrays, "C", np.float64, (sizes[1], len(header.covariates[1])), largest=FLOAT_MAX)
    for index, n in zip((row, column), sizes, strict=True):
        if index.min() < 0 or index.max() >= n:
            raise ValueError("a cell lies outside the matrix")
    flat = row.astype(np.int64) * sizes[1] + column
    if np.any(np.diff(flat) <= 0):
        raise ValueError("its cells are not in order")
    return MatrixCells(row, column, x, R, C)
