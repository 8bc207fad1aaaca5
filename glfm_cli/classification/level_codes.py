"""Levels as numbers of mean 0 and variance 1, and the noise with which experts see them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri

from glfm_cli.arrays import Array

BLUR = 0.25  # of the distance of levels; of a standard deviation of their scores


def level_codes(
    count: Array, indicated: Sequence[int | str | None], *, ordered: bool
) -> tuple[Array, Array]:
    """Return the features (R, A) of levels, and the variances (A,) with which they are seen.

    Features have mean 0 and variance 1 over the cells.

    count : (R,) observed cells of each level;  indicated : levels that have an indicator
    """
    share = (count + 0.5) / (count + 0.5).sum()  # levels without observed cells have some room
    if ordered:
        ends = ndtri(np.clip(np.append(0.0, np.cumsum(share)), 0.0, 1.0))
        density = np.exp(-0.5 * ends**2) / np.sqrt(2.0 * np.pi)
        codes = (-np.diff(density) / share)[:, None]
    else:
        codes = np.eye(count.size)[:, [r for r in indicated if isinstance(r, int)]]
    codes = codes - share @ codes
    codes = codes / np.sqrt(share @ codes**2)
    there = codes[count > 0]
    steps = max(len(there) - 1, 1) if ordered else 1
    return codes, (BLUR * (there.max(axis=0) - there.min(axis=0)) / steps) ** 2
