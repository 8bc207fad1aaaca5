"""What tests of series in time share: their correlations, and proposals that are known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from glfm_cli.arrays import Array


def smooth(time: Array, step: float, lengths: Sequence[float] | Array) -> Array:
    """Return correlations of a series at some times."""
    away = np.abs(time[:, None] - time) / step
    (long, short), gap = lengths, lengths[0] - lengths[1]
    return np.asarray((long * np.exp(-away / long) - short * np.exp(-away / short)) / gap)


class Scripted:
    """Random numbers of one proposal: a step of logs, and its uniform."""

    def __init__(self, step: Sequence[float] | Array, u: float) -> None:
        self.step, self.u, self.calls = np.array(step), u, 0

    def integers(self, *args: int) -> int:
        return 0

    def random(self) -> float:
        return self.u

    def standard_normal(self, n: int) -> Array:
        self.calls += 1
        return self.step if self.calls == 2 else np.zeros(n)  # the first call is of no step
