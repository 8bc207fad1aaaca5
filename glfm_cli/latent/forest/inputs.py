"""What a regression sees of cells: numbers, codes of ordered levels, and indicators."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glfm_cli.arrays import Array


@dataclass(frozen=True, eq=False)
class Inputs:
    """The P inputs that D columns make.

    column : (P,) int64, of which column each input is
    value : (P,) float64, the cell of which it is the indicator; NaN: it is the cell itself
    atom : (P,) float64, the cell that is not one number among others, seen as 0; NaN for none
    """

    column: Array
    value: Array
    atom: Array

    @classmethod
    def of(cls, levels: Array, nominal: Array, atom: Array) -> Inputs:
        """Return those of columns, told as `Kinds` has them."""
        found: list[tuple[int, float, float]] = []
        parts = zip(levels.tolist(), nominal.tolist(), atom.tolist(), strict=True)
        for d, (n_levels, unordered, at) in enumerate(parts):
            if unordered:
                found += [(d, float(level), np.nan) for level in range(n_levels == 2, n_levels)]
            else:
                found.append((d, np.nan, at))
            if not np.isnan(at):
                found.append((d, at, np.nan))
        column, value, atoms = np.array(found).reshape(-1, 3).T
        return cls(column.astype(np.int64), value, atoms)

    def see(self, z: Array) -> Array:
        """Return the inputs (n, P) of rows whose cells are z (D, n)."""
        x: Array = z[self.column]
        for p in np.flatnonzero(~np.isnan(self.value)):
            x[p] = x[p] == self.value[p]
        for p in np.flatnonzero(~np.isnan(self.atom)):
            x[p] = np.where(x[p] == self.atom[p], 0.0, x[p])
        return x.T
