"""What the columns of a fit are to rows that it has not seen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.encoding import Data, LearntColumn
from glfm_cli.encoding.number_style import NumberStyle
from glfm_cli.errors import TableError
from glfm_cli.links import Link
from glfm_cli.schema import Column
from glfm_cli.schema.moments import MomentStyle

_FARTHEST = 1e100  # on the latent scale; nothing there can be told apart


def learnt(
    columns: Sequence[Column],
    levels: Sequence[tuple[str, ...]],
    links: Sequence[Link],
    styles: Sequence[NumberStyle | MomentStyle | None],
) -> tuple[LearntColumn, ...]:
    """Return what is known of columns from a fit."""
    return tuple(
        LearntColumn(column, known, link.typical(), style)
        for column, known, link, style in zip(columns, levels, links, styles, strict=True)
    )


def check_intervals(links: Sequence[Link], data: Data, file: str | None) -> None:
    """Raise if a cell is an interval in a column where the fit has a value of its own probability.
    """
    for link, encoded in zip(links, data.columns, strict=True):
        if encoded.between.any() and link.n_latent > 1:
            raise TableError(
                "the cell is an interval, and the fit has seen a column with an atom and none",
                file=file,
                column=link.name,
                row=int(np.argmax(encoded.between)) + 1,
                hint="Leave the cell empty, or fit again with such cells.",
            )


def check_reach(links: Sequence[Link], xs: Sequence[Array], file: str | None) -> None:
    """Raise if an observed value has no finite place on the latent scale of its fitted link."""
    for link, x in zip(links, xs, strict=True):
        y = link.start(x)[1]
        bad = np.flatnonzero(~(np.abs(y) < _FARTHEST).all(axis=1))
        if bad.size:
            raise TableError(
                "the value lies too far from those that the fit has seen",
                file=file,
                column=link.name,
                row=int(bad[0]) + 1,
                value=float(x[bad[0]]),
                hint="Leave the cell empty, or fit again with such values.",
            )
