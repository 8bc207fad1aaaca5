"""Joint draws of cells: one posterior draw gives all of them, as multiple imputation asks for.

Rows are visited in blocks, so that memory does not grow with their number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.inference.equations import Equations, RowsOfDraw
from glfm_cli.inference.posterior import Draw, Posterior
from glfm_cli.links import RowsLaw, of_numbers

BLOCK_ROWS = 1024
TRIES = 200  # at two cells of which one is less than the other
MOST_AT_ONCE = 4096  # cells of a column

Ends = Mapping[int, Array]
NO_ENDS: Ends = {}


def draw_jointly(
    posterior: Posterior,
    cells: Mapping[int, Array],
    rng: np.random.Generator,
    draw: Draw | None = None,
    ends: Ends = NO_ENDS,
    less: Sequence[tuple[int, int]] = (),
    equations: Equations | None = None,
    held: Array | None = None,
) -> dict[int, Array]:
    """Return one value or level code for each cell, all from one posterior draw.

    cells : mapping of int to (n,) int; column number to the ascending row indices
    rng : gives the values, and chooses the draw where none is given
    draw : the one to take
    ends : mapping of int to (n, 2) float64; what cells are known to lie between, NaN
        at those of which nothing is known
    less : columns of which the first is less than the second in every row
    equations : that hold in every row
    held : (N,) bool; the rows alone in which they have to; every one if left out
    """
    if draw is None:
        draw = posterior.choose(rng)
    draw = posterior.for_one_table(draw, rng)
    drawn: dict[int, list[Array]] = {d: [] for d in cells}
    n_rows = max((int(rows[-1]) + 1 for rows in cells.values() if rows.size), default=0)
    for start in range(0, n_rows, BLOCK_ROWS):
        block = slice(start, min(start + BLOCK_ROWS, n_rows))
        law = posterior.joint(draw, block, rng)
        inside = {
            d: slice(*np.searchsorted(rows, [block.start, block.stop])) for d, rows in cells.items()
        }
        here = {d: rows - start for d, which in inside.items() if (rows := cells[d][which]).size}
        known = {d: ends[d][inside[d]] for d in ends if d in here}
        sample = partial(_sample, posterior, draw, law, rng, here, known)
        found = {d: sample(d, np.arange(rows.size)) for d, rows in here.items()}
        for first, second in less:
            if first in here and second in here:
                _redraw((first, second), here, found, sample)
        if equations is not None and equations.moved:
            which = None if held is None else held[block]
            equations.redraw(RowsOfDraw(block, draw, law, here, known), found, rng, which)
        for d, x in found.items():
            drawn[d].append(x)
    return {d: np.concatenate(part) if part else np.empty(0) for d, part in drawn.items()}


def _sample(
    posterior: Posterior,
    draw: Draw,
    law: RowsLaw,
    rng: np.random.Generator,
    rows: Mapping[int, Array],
    ends: Ends,
    d: int,
    at: Array,
    times: int = 1,
) -> Array:
    """Return draws of the cells `at` of those of a column, inside their ends if there are some.

    times : how often all of them are drawn, one time after the other
    """
    link, params, own = posterior.links[d], draw.params[d], law.column(d, rows[d][at])
    if times > 1:
        own, at = own.take(np.tile(np.arange(at.size), times)), np.tile(at, times)
    x = link.sample(own, params, rng)
    if d in ends:
        which, known = known_of(ends[d][at])
        x[which] = of_numbers(link).sample_between(own.take(which), params, rng, known)
    return x


def _redraw(
    pair: tuple[int, int],
    rows: Mapping[int, Array],
    found: Mapping[int, Array],
    sample: Callable[..., Array],
) -> None:
    """Draw both cells of a row anew until the first is less than the second, in place.

    So they are drawn given that it is; what is left after `TRIES` times is made equal. Each time
    twice as many are drawn at once, of which the first that is right is taken: few rows may need
    many.
    """
    first, second = pair
    _, low, high = np.intersect1d(rows[first], rows[second], return_indices=True)
    tries, several = 0, 1
    while tries < TRIES:
        wrong = found[first][low] >= found[second][high]
        low, high = low[wrong], high[wrong]
        if not low.size:
            return
        n = max(1, min(several, TRIES - tries, MOST_AT_ONCE // low.size))
        x, y = (sample(d, at, n).reshape(n, -1) for d, at in ((first, low), (second, high)))
        chosen = np.argmax(x < y, axis=0), np.arange(low.size)
        found[first][low], found[second][high] = x[chosen], y[chosen]
        tries, several = tries + n, 2 * several
    found[first][low] = np.minimum(found[first][low], found[second][high])


def known_of(ends: Array) -> tuple[Array, Array]:
    """Return where something is known, and what."""
    at = np.flatnonzero(~np.isnan(ends[:, 0]))
    return at, ends[at]
