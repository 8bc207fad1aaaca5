"""Cells of which an interval is known: drawn inside it, by trees that have not seen them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from glfm_cli._kernels._variates import fill_truncated_normal
from glfm_cli.arrays import Array
from glfm_cli.links.law import CellLaw, NormalMixture
from glfm_cli.links.link import Link
from glfm_cli.links.numeric import NumericLink

Ends = Mapping[int, tuple[Array, Array, Array]]  # by column: rows, lower and upper ends of z
TREES, LEFT_OUT = 8, 4  # of a column with intervals in a step, and how many do not see a row


def ends_of(links: Sequence[Link], xs: Sequence[Array]) -> Ends:
    """Return where cells are intervals, of the columns that have some."""
    return {
        d: link.between(x)
        for d, (link, x) in enumerate(zip(links, xs, strict=True))
        if isinstance(link, NumericLink) and x.ndim == 2
    }


def draw_inside(law: CellLaw, low: Array, high: Array, rng: np.random.Generator) -> Array:
    """Return cells (n,) drawn from the laws of numbers, given that low < z < high."""
    assert isinstance(law, NormalMixture)
    part = law.pick(rng)
    mean, sd = part.mean[:, -1], np.sqrt(part.variances[:, -1])
    u = np.empty(mean.size)
    fill_truncated_normal(
        np.zeros(mean.size), 1.0, (low - mean) / sd, (high - mean) / sd, rng, u
    )
    return np.clip(mean + sd * u, low, high).astype(np.float32)
