"""Residuals that stay as they are while a component moves: sums over them, and what they show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.blocks import HERE, Each, UnitCells
from glfm_cli.latent.bsvd.moves import BsvdState, scan_side

STEPS = 20  # of bidiagonalisation
LEAST = 1e-10  # of the first length: what is left over is rounding


@dataclass(frozen=True)
class Residuals:
    """Residuals E (m,) and weights of cells, in the order of the rows' cells and of the columns'.

    Each side reads them one after another: a pass by column takes half as long as one that looks
    up where a cell is.
    """

    sides: tuple[UnitCells, UnitCells]
    E: tuple[Array, Array]
    weight: tuple[Array, Array]
    precision: tuple[Array, Array]
    each: Each

    @classmethod
    def of(cls, state: BsvdState, E: Array, each: Each) -> Self:
        """Return them as they are now; `E` in row order."""
        matrix = state.matrix
        weight, by_column = matrix.weight, matrix.by_column
        return cls(
            (matrix.rows, replace(matrix.columns, cell=HERE)),
            (E, by_column(E)),
            (weight, by_column(weight) if weight.size else weight),
            state.precision,
            each,
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.sides[0].n, self.sides[1].n

    def sums(self, V: Array, *, by_column: bool = False) -> tuple[Array, Array]:
        """Return sum_j w E V_j and sum_j w V_j^2 of every row (I,).

        By column the same (J,) sums over rows, V being (I,).
        """
        at = int(by_column)
        own, other = self.precision[at], self.precision[1 - at]
        return scan_side(self.sides[at], self.weight[at], self.E[at], V, own, other, self.each)


def leading_vector(
    along: Callable[[Array], Array], back: Callable[[Array], Array], start: Array
) -> Array:
    """Return about the right singular vector (J,) of the largest singular value of a matrix A.

    A V = U B with orthonormal U and V and a B of two diagonals, from V_1 ~ A'start
    [Golub and Kahan 1965].

    along, back : from x (J,) to A x, and from x (I,) to A'x
    """
    v = back(start)
    first = float(np.linalg.norm(v))
    if first == 0.0:
        return np.ones(v.size)
    V, U, B = [v / first], list[Array](), np.zeros((STEPS, STEPS))
    for k in range(STEPS):
        u, B[k, k] = _beside(along(V[k]), U)
        if k + 1 == STEPS or B[k, k] <= LEAST * B[0, 0]:
            break
        U.append(u)
        v, length = _beside(back(u), V)
        if length <= LEAST * B[0, 0]:
            break
        V.append(v)
        B[k, k + 1] = length
    found = np.linalg.svd(B[: len(V), : len(V)])[2][0]
    return np.asarray(found @ np.array(V))


def _beside(x: Array, others: list[Array]) -> tuple[Array, float]:
    """Return the part of x that is orthogonal to others, at length 1, and its length."""
    for other in others:
        x = x - (x @ other) * other
    length = float(np.linalg.norm(x))
    return x / (length or 1.0), length
