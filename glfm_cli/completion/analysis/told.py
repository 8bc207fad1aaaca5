"""What versions for an analysis show while they are drawn: whether they can be trusted."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.special import stdtr

from glfm_cli.arrays import Array

MOST_OUTSIDE = 0.02  # of the law of missing responses
FEWEST = 3  # versions that can tell a drift from chance
CHANCE, GOAL = 0.01, 0.2  # of all coefficients together; standard deviations


@dataclass
class Told:
    """Traces (sweeps, p) of each version's coefficients, and how much of y's law lay outside."""

    traces: dict[int, Array] = field(default_factory=dict)
    outside: dict[int, float] = field(default_factory=dict)

    @property
    def too_far(self) -> float | None:
        """How much of the law of missing responses lies where none can, if considerable."""
        share = float(np.mean(list(self.outside.values()))) if self.outside else 0.0
        return share if share > MOST_OUTSIDE else None

    @property
    def drift(self) -> float | None:
        """How far the coefficients still moved, in standard deviations; None where none can tell.

        The largest of the moves from the second to the last third of the sweeps that versions have
        in common beyond chance [Student's t, bounded by the number of coefficients], else 0.
        """
        if len(self.traces) < FEWEST:
            return None
        traces = np.stack(list(self.traces.values()))
        third = traces.shape[1] // 3
        last = traces[:, -third:]
        moved = last.mean(axis=1) - traces[:, -2 * third : -third].mean(axis=1)
        n, p = moved.shape
        by_chance = np.maximum(moved.std(axis=0, ddof=1) / np.sqrt(n), np.finfo(float).tiny)
        beyond = 2.0 * p * stdtr(n - 1, -np.abs(moved.mean(axis=0)) / by_chance) < CHANCE
        sd = np.maximum(last.std(axis=(0, 1)), np.finfo(float).tiny)
        return float(np.max(np.where(beyond, np.abs(moved.mean(axis=0)) / sd, 0.0)))

    @property
    def settled(self) -> bool:
        """Whether nothing says that the coefficients still moved."""
        return (self.drift or 0.0) <= GOAL
