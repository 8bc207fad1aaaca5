"""Mixtures of normals as what tests compare: mean and variance of the whole."""

from __future__ import annotations

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.links.law import NormalMixture


def whole_of(law: object) -> tuple[Array, Array]:
    """Return mean and variance (n, s) of the latent numbers of cells, their parts together."""
    assert isinstance(law, NormalMixture)
    mean, within = law.moments()
    away = law.means - mean[:, None]
    return mean, within + np.sum(law.weights[:, :, None] * away**2, axis=1)
