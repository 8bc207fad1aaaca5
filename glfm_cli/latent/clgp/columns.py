"""From a table's columns to what the latent Gaussian process sees of them.

Numbers are y = g(x) of the column's margin, or the interval of y that the observation knows of a
count, a zero, or a level whose ends are fixed; the most frequent level is the reference.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.errors import SchemaError
from glfm_cli.latent.clgp.table import ColumnKind, ObservedTable
from glfm_cli.links.link import Cut, Link
from glfm_cli.links.observation import Params, of_levels


def kinds_of(links: Sequence[Link], xs: Sequence[Array]) -> tuple[ColumnKind, ...]:
    """Return what the columns are to the model.

    Raises SchemaError: there is link noise.
    """
    return tuple(_kind_of(link, x) for link, x in zip(links, xs, strict=True))


def observed_table(
    links: Sequence[Link],
    xs: Sequence[Array],
    params: Sequence[Params],
    kinds: tuple[ColumnKind, ...],
) -> ObservedTable:
    """Return the cells xs, (N,) a column with NaN where missing, as the model sees them."""
    shape = (len(links), len(xs[0]) if xs else 0)
    lower, upper = np.empty(shape), np.empty(shape)
    for d, (link, x, kind) in enumerate(zip(links, xs, kinds, strict=True)):
        if kind.kind == "number":
            lower[d], upper[d] = _ends(link, x, params[d])
        else:
            seen = ~np.isnan(x)
            lower[d] = x
            if kind.kind == "levels":
                lower[d, seen] = kind.codes[x[seen].astype(np.intp)]
            upper[d] = lower[d]
    return ObservedTable(kinds, lower, upper)


def _kind_of(link: Link, x: Array) -> ColumnKind:
    if isinstance(link, Cut):
        return ColumnKind("ordered", of_levels(link).n_levels)
    if link.discrete and not link.ordered:
        n_levels = of_levels(link).n_levels
        codes = x[~np.isnan(x)].astype(np.intp)
        return ColumnKind("levels", n_levels, int(np.argmax(np.bincount(codes, minlength=1))))
    if getattr(link, "noise", 0.0) > 0.0:
        raise SchemaError(
            "--set link_noise is not available in the model 'clgp': its columns have noise",
            hint="Leave it out.",
        )
    return ColumnKind("number")


def _ends(link: Link, x: Array, params: Params) -> tuple[Array, Array]:
    """Return what x says of y, (N,) each."""
    rng = np.random.default_rng(0)  # asked for by the protocol; no observation of numbers draws
    y = link.start(x)[1]
    lower, upper = np.empty(y.shape), np.empty(y.shape)
    link.bound(x, params, y, rng, lower, upper)
    missing = np.isnan(x if x.ndim == 1 else x[:, 0])
    lower[missing] = upper[missing] = np.nan
    return lower[:, 0], upper[:, 0]
