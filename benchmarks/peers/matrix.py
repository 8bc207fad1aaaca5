"""A table with gaps as a matrix of numbers for other imputers, and back.

Numbers are standardised, skewed positive ones after a logarithm if asked; ordinal levels become
their ranks; of a category with R levels R - 1 or R columns of 0 and 1 are made.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

MODELLED = ("real", "positive", "count", "categorical", "ordinal")


@dataclass(frozen=True)
class Column:
    """A modelled column: its kind, levels where it has some, and its place in the matrix."""

    name: str
    kind: str
    levels: tuple[str, ...]
    start: int
    end: int


@dataclass
class Matrix:
    """A table as numbers: `values` (rows, width), NaN where missing."""

    table: pd.DataFrame
    columns: list[Column]
    values: np.ndarray

    def put_back(self, filled: np.ndarray) -> pd.DataFrame:
        """Return the table with its gaps filled from the matrix; known cells stay as they are."""
        out = self.table.copy()
        for column in self.columns:
            part = filled[:, column.start : column.end]
            gaps = np.isnan(self.values[:, column.start])
            out.loc[gaps, column.name] = texts(column, part[gaps], self.values[:, column.start])
        return out


def texts(column: Column, part: np.ndarray, known: np.ndarray) -> list[str]:
    """Return cells as text from their numbers, kept in the column's observed range."""
    if column.kind == "categorical":
        return [column.levels[i] for i in winners(column, part)]
    inside = np.clip(part[:, 0], np.nanmin(known), np.nanmax(known))
    if column.kind == "ordinal":
        return [column.levels[round(x)] for x in inside]
    if column.kind == "count":
        return [str(round(x)) for x in inside]
    return [repr(float(x)) for x in inside]


def winners(column: Column, part: np.ndarray) -> np.ndarray:
    """Return the level with the largest value; with R - 1 columns the last level has the rest."""
    if part.shape[1] < len(column.levels):
        part = np.column_stack([part, 1.0 - part.sum(axis=1)])
    return np.argmax(part, axis=1)


def read(data: str, types: str, *, drop_last: bool) -> Matrix:
    """Read a table and its types; `drop_last` leaves out the last level of every category."""
    table = pd.read_csv(data, dtype=str, keep_default_na=False, na_values=[""])
    entries = yaml.safe_load(Path(types).read_text(encoding="utf-8"))["columns"]
    columns: list[Column] = []
    parts: list[np.ndarray] = []
    width = 0
    for name, entry in entries.items():
        entry = {"type": entry} if isinstance(entry, str) else entry
        kind, role = entry.get("type"), entry.get("role")
        if kind not in MODELLED or role in ("id", "ignore") or table[name].isna().all():
            continue
        levels = tuple(map(str, entry.get("levels") or ()))
        part = numbers(table[name], kind, levels, drop_last=drop_last)
        columns.append(Column(name, kind, levels, width, width + part.shape[1]))
        parts.append(part)
        width += part.shape[1]
    return Matrix(table, columns, np.column_stack(parts))


def numbers(cells: pd.Series, kind: str, levels: tuple[str, ...], *, drop_last: bool) -> np.ndarray:
    """Return a column as (rows, 1) or (rows, levels) numbers, NaN where missing."""
    if kind not in ("categorical", "ordinal"):
        return pd.to_numeric(cells).to_numpy(dtype=float)[:, None]
    code = cells.map({level: i for i, level in enumerate(levels)}).to_numpy(dtype=float)[:, None]
    if kind == "ordinal":
        return code
    width = max(1, len(levels) - int(drop_last))
    return np.where(np.isnan(code), np.nan, code == np.arange(width))


def arguments() -> argparse.Namespace:
    """Return the files and the seed that a peer is started with."""
    parser = argparse.ArgumentParser()
    for name in ("input", "types", "output"):
        parser.add_argument(name)
    parser.add_argument("seed", type=int)
    return parser.parse_args()
