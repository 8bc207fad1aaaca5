"""Cells of which an interval is known: drawn inside it, by trees that have not seen them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from glfm_cli._kernels._variates import fill_truncated_normal
from glfm_cli.arrays import Array
from glfm_cli.links.intervals import log_interval
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
    part = _cut(law, low, high).pick(rng)
    mean, sd = part.mean[:, -1], np.sqrt(part.variances[:, -1])
    u = np.empty(mean.size)
    fill_truncated_normal(
        np.zeros(mean.size), 1.0, (low - mean) / sd, (high - mean) / sd, rng, u
    )
    return np.clip(mean + sd * u, low, high).astype(np.float32)


def _cut(law: NormalMixture, low: Array, high: Array) -> NormalMixture:
    """Return a law whose normals weigh what they have between low and high (n,)."""
    if law.n_components == 1:
        return law
    mean, sd = law.means[:, :, -1], np.sqrt(law.variances[:, :, -1])
    log_mass = log_interval((low[:, None] - mean) / sd, (high[:, None] - mean) / sd)
    most = log_mass.max(axis=1, keepdims=True)
    weights = law.weights * np.exp(log_mass - np.where(most > -np.inf, most, 0.0))
    total = weights.sum(axis=1, keepdims=True)
    usual = np.broadcast_to(law.weights, weights.shape)
    return law._replace(weights=np.where(total > 0.0, weights, usual))
