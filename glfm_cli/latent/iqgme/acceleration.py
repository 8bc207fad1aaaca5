"""Anderson acceleration of the coefficients, which the ascent moves ever more slowly.

An iteration maps coefficients w to g(w). Where labels are told well by features, the scores of a
row hold the coefficients back that they came from, and g(w) - w shrinks by little in a turn. The
next w is that which would not move if g were linear along the latest moves. [Anderson 1965]
Whoever takes it sees that the bound does not fall.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from glfm_cli.arrays import Array

MEMORY = 4  # moves that are looked back on


@dataclass(eq=False)
class Acceleration:
    """The latest coefficients and their moves.

    before, moves : (m, size) with size the number of coefficients; of each iteration w, g(w) - w
    """

    before: Array = field(default_factory=lambda: np.empty((0, 0)))
    moves: Array = field(default_factory=lambda: np.empty((0, 0)))

    def forget(self) -> None:
        """Begin anew."""
        self.before = self.moves = np.empty((0, 0))

    def ahead(self, before: Array, after: Array) -> Array | None:
        """Note that an iteration led from `before` to `after`; return what to go on with.

        None where too few moves are known.
        """
        w, move = before.ravel(), (after - before).ravel()
        if self.before.shape[1] != w.size:
            self.before = self.moves = np.empty((0, w.size))
        self.before = np.vstack([self.before, w])[-MEMORY:]
        self.moves = np.vstack([self.moves, move])[-MEMORY:]
        if len(self.moves) < 2:
            return None
        change = np.diff(self.moves, axis=0)
        share = np.linalg.lstsq(change.T, move, rcond=1e-8)[0]
        further = after.ravel() - share @ (np.diff(self.before, axis=0) + change)
        return np.asarray(further.reshape(after.shape))
