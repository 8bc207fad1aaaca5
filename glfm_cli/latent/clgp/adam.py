"""Adam's steps uphill, and the schedule of an ascent [Kingma and Ba 2015]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glfm_cli.arrays import Array

FIRST_DECAY, SECOND_DECAY, TINY = 0.9, 0.99, 1e-8
RAMP = 10  # iterations in which the rate rises
LAST_RATE = 0.02  # of the largest


@dataclass
class GradientMoments:
    """Running means of a gradient and of its square, of one array of parameters."""

    first: Array
    second: Array

    @classmethod
    def of(cls, parameters: Array) -> GradientMoments:
        """Return moments that have seen nothing."""
        return cls(np.zeros_like(parameters), np.zeros_like(parameters))

    def ascend(self, gradient: Array, rate: float, times: int, rows: Array | None = None) -> Array:
        """Return the step uphill for the `times`-th gradient, from 1 on, of all or of some rows."""
        at = ... if rows is None else rows
        first = FIRST_DECAY * self.first[at] + (1.0 - FIRST_DECAY) * gradient
        second = SECOND_DECAY * self.second[at] + (1.0 - SECOND_DECAY) * gradient * gradient
        self.first[at], self.second[at] = first, second
        unbiased = first / (1.0 - FIRST_DECAY**times)
        size = np.sqrt(second / (1.0 - SECOND_DECAY**times)) + TINY
        step: Array = rate * unbiased / size
        return step


def rate_at(iteration: int, n_iterations: int, largest: float) -> float:
    """Return the rate of an iteration, from 0 on: a ramp, then half a cosine down."""
    falling = 0.5 * (1.0 + np.cos(np.pi * iteration / n_iterations))
    ramp = min(1.0, (iteration + 1) / RAMP)
    return float(largest * ramp * (LAST_RATE + (1.0 - LAST_RATE) * falling))
