"""The shape of a number's law: the members of its leaves, in order, as parts that weigh the same.

Members are often no sample of one normal: most have the same value, or they are of two groups of
rows. A normal with their mean and variance gives values between these what is due to them, and its
median is its mean. So each part of them is a normal of the law, which keeps its mean and variance:
by these, and not by their shape, laws are drawn to what forecasts of unseen cells have been.
"""

from __future__ import annotations

import numpy as np

from glfm_cli.arrays import Array

PARTS = 4
SMOOTH = 0.1  # share of a law's variance, at least, that each of its normals has


def parted(mean: Array, var: Array, parts: Array) -> tuple[Array, Array]:
    """Return means and variances (n, C) of C normals of equal weight, of some cells.

    mean, var : (n,) of their mixture
    parts : (n, C, 2) mean and variance of parts of the members, all 0 where the shape is not known

    Distances from the mean are those of the parts, or less where the law is narrower than its
    members; what they lack of the variance is added to each part's.
    """
    away = parts[:, :, 0] - parts[:, :, 0].mean(axis=1, keepdims=True)
    within = parts[:, :, 1]
    own = np.mean(away**2 + within, axis=1)
    share = np.minimum((1.0 - SMOOTH) * var / np.maximum(own, SMOOTH * var), 1.0)
    means: Array = mean[:, None] + np.sqrt(share)[:, None] * away
    variances: Array = share[:, None] * within + (var - share * own)[:, None]
    return means, variances
