"""Observed cells of a matrix, stored by row and by column.

A table is the matrix of its pseudo-columns (`Cells.y`, dense); triplets are a matrix of their own
(`Sparse.entries`), of which only the observed cells are stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.blocks import HERE, UnitCells
from glfm_cli.latent.model import Cells, Sparse

PART = 1 << 18  # cells whose temporary numbers may be held at once

NONE = np.empty(0)


@dataclass(frozen=True)
class Matrix:
    """The observed cells, in row order.

    rows, columns : the same cells by row and by column
    place : (m,) int64, where each cell is in `Cells.y.ravel()`; None where they are all of it
    weight : (m,) float64, precision of a cell where they differ (`weigh`); else empty
    own, kind : (T,) float64, the variances that cells have beside the noise's, ascending, and which
        of them each has (m,); empty where they have none
    owner : (J,) int32, the table column whose noise each matrix column has
    """

    rows: UnitCells
    columns: UnitCells
    place: Array | None
    weight: Array
    own: Array
    kind: Array
    owner: Array

    @classmethod
    def of(cls, cells: Cells) -> Matrix:
        """Return the storage of the observed cells."""
        own, kind = NONE, NONE.astype(np.int64)
        if isinstance(cells.layout, Sparse):
            entries, place = cells.layout.entries, None
            (n_rows, n_columns), row, column = entries.shape, entries.row, entries.column
            owner = np.zeros(n_columns, dtype=np.int32)
            if cells.own is not None:
                own, kind = np.unique(cells.own, return_inverse=True)
        else:
            n_rows, n_columns = cells.y.shape
            place = np.flatnonzero(cells.observed[:, cells.column])
            row, column = np.divmod(place, max(n_columns, 1))
            owner = cells.column
        by_column = np.argsort(column, kind="stable").astype(np.int32)
        return cls(
            rows=UnitCells.of(row, column, HERE, n_rows),
            columns=UnitCells.of(column[by_column], row[by_column], by_column, n_columns),
            place=place,
            weight=np.ones(kind.size),
            own=own,
            kind=np.ravel(kind).astype(np.int32),
            owner=owner,
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.rows.n, self.columns.n

    @property
    def n_cells(self) -> int:
        """The number m of observed cells."""
        return int(self.rows.index.size)

    def weigh(self, noise: float) -> None:
        """Fill the precisions 1 / (noise + own) of cells that have variances of their own."""
        self.weight[:] = (1.0 / (noise + self.own))[self.kind] if self.own.size else 1.0

    def values(self, y: Array) -> Array:
        """Return the observed cells of `Cells.y` (m,), a copy or a view."""
        return y.ravel() if self.place is None else y.ravel()[self.place]

    def put(self, values: Array, y: Array) -> None:
        """Write observed cells back to `Cells.y`, in place."""
        if self.place is None:
            y[:, 0] = values
        else:
            y.reshape(-1)[self.place] = values

    def by_column(self, values: Array) -> Array:
        """Return numbers of the cells (m,), which are in row order, in column order."""
        out = np.empty_like(values)
        for part in self.parts():
            out[part] = values[self.columns.cell[part]]
        return out

    def parts(self) -> Iterator[slice]:
        """Yield the cells in parts, for what would need much memory if done with all at once."""
        for start in range(0, self.n_cells, PART):
            yield slice(start, start + PART)
