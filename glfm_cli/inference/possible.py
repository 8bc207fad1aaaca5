"""Which values the cells of some rows can have, under one draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.encoding.data import EncodedColumn
from glfm_cli.inference.posterior import Draw
from glfm_cli.links import Link, RowsLaw, of_numbers
from glfm_cli.links.observation import HasAtom


class RowsOfDraw(NamedTuple):
    """Some rows of a table, under one draw.

    at : which of its rows;  law : of their cells
    rows, ends : by column the rows of missing cells, counted from the block's first, and what these
        are known to lie between (n, 2)
    """

    at: slice
    draw: Draw
    law: RowsLaw
    rows: Mapping[int, Array]
    ends: Mapping[int, Array]


class Possible:
    """What the columns of a table can hold.

    less : pairs of columns, the first of which is less in every row
    """

    def __init__(
        self,
        columns: Sequence[EncodedColumn],
        links: Sequence[Link],
        less: Sequence[tuple[int, int]],
    ) -> None:
        self.columns, self.links, self.less = columns, links, less
        # Values that have a probability of their own, NaN where there is none.
        self.atoms = [one.at if isinstance(one, HasAtom) else np.nan for one in links]

    def allowed(
        self, d: int, at: Array, x: Array, cells: Mapping[int, Array], ends: Mapping[int, Array]
    ) -> Array:
        """Return which values (n, M) bounds and other cells of the rows `at` (n,) allow."""
        link = of_numbers(self.links[d])
        good = np.isfinite(x) & (x >= link.lower) & (x <= link.upper)
        if link.integral:
            good &= x == np.rint(x)
        if d in ends:
            low, high = ends[d][at].T
            good &= ~(x < low[:, None]) & ~(x > high[:, None])
        for pair in self.less:
            if d in pair:
                low, high = (x if d == s else cells[s][at][:, None] for s in pair)
                good &= ~(low >= high)
        return good
