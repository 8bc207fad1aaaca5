"""The latent columns of a table by name, and which way each of them points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.encoding import EncodedColumn
from glfm_cli.links import Link
from glfm_cli.links.law import normal


def latent_columns(
    columns: Sequence[EncodedColumn], links: Sequence[Link]
) -> tuple[pa.Table, Array]:
    """Return name and level of each latent column, and whether a higher one means a higher value.

    A categorical column has one for each level but its commonest, against which they stand.
    """
    names: list[str] = []
    levels: list[str | None] = []
    direction: list[float] = []
    for encoded, link in zip(columns, links, strict=True):
        codes = link.latent_levels()
        own = [encoded.levels[code] if isinstance(code, int) else code for code in codes]
        names += [encoded.column.name] * len(own)
        levels += own
        up = 1.0
        if not link.discrete:  # of two latent columns the last is of values
            params = link.start(np.array([np.nan]))[0]
            ends = np.zeros((2, len(own)))
            ends[:, -1] = [-1.0, 1.0]
            low, high = link.expected(normal(ends, 1.0), params)
            up = -1.0 if high < low else 1.0
        direction += [1.0] * (len(own) - 1) + [up] * (len(own) > 0)
    table = {"column": pa.array(names, pa.string()), "level": pa.array(levels, pa.string())}
    return pa.table(table), np.array(direction)
