"""With how many components a chain of triplets begins.

In a large matrix a component that fits nothing but noise is slow to go, and one that is missing
hardly ever comes: where rows have few cells, a start with many is bad, and where components are
strong, one with few. So a tenth of the cells is hidden, some sweeps are made with 0, 1, 2, 5, ...
components held on, and a chain begins with those that foretell the hidden cells best. It is a
start and nothing else: the sweeps that follow see all cells.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.blocks import Each
from glfm_cli.latent.bsvd.config import SMALLEST
from glfm_cli.latent.bsvd.effects import draw_prior_means
from glfm_cli.latent.bsvd.moves import (
    BsvdState,
    draw_columns,
    draw_rows,
    fill_means,
    move_scales,
    scan,
    switch_on,
)
from glfm_cli.latent.model import Cells

HIDDEN = 0.1
SWEEPS, KEPT = 14, 7  # of each number of components, and the last of them that foretell
PATIENCE = 2  # numbers in a row that are worse than the best, and no more are tried
SIZES = (0, 1, 2, 5, 10, 20, 40)
EFFECTS = ("G_R", "G_C", "slope")


def choose_components(
    state: BsvdState, cells: Cells, y: Array, rng: np.random.Generator, each: Each
) -> None:
    """Switch on the components which foretell hidden cells best, as far as they were fitted.

    `state` has none, and effects and noise that some sweeps have fitted. O(m K^2) for every sweep.
    """
    matrix = state.matrix
    hidden = np.flatnonzero(rng.random(matrix.n_cells) < HIDDEN)
    if not hidden.size:
        return
    weight = matrix.weight.copy() if matrix.weight.size else np.ones(matrix.n_cells)
    row = np.searchsorted(matrix.rows.indptr, hidden, side="right") - 1
    of_rows, of_columns = state.precision
    precision = weight[hidden] * of_rows[row] * of_columns[matrix.rows.index[hidden]]
    weight[hidden] = 0.0
    seen = replace(state, matrix=replace(matrix, weight=weight))  # the arrays are those of `state`
    begin = best = _parts(state, 0)
    least, worse = np.inf, 0
    for size in SIZES:
        if size > state.s.size or worse == PATIENCE:
            break
        _put(state, begin)
        fill_means(state, each)
        switch_on(state, size, rng)
        mean, variance = _foretold(seen, cells, y, hidden, rng, each)
        # What the mean of many sweeps would lose: few of them add noise, the more so the more
        # components there are.
        loss = float(precision @ ((y[hidden] - mean) ** 2 - variance / KEPT))
        worse = 0 if loss < least else worse + 1
        if loss < least:
            best, least = _parts(state, size), loss
    noise = np.where(state.unit_noise, begin["noise"], best["noise"])
    _put(state, best | {"noise": noise})


def _parts(state: BsvdState, size: int) -> dict[str, Array]:
    """Return copies of what sweeps change, the first components alone."""
    parts = {name: getattr(state, name).copy() for name in ("noise", "s", "on", *EFFECTS)}
    k = np.arange(size)
    means = state.of_rows.save("rows", k) | state.of_columns.save("columns", k)
    parts |= {name: part.copy() for name, part in means.items()}
    return parts | {"U": state.U[:, :size].copy(), "V": state.V[:, :size].copy()}


def _put(state: BsvdState, parts: dict[str, Array]) -> None:
    """Write copies back into a state."""
    for name in ("noise", "s", "on", *EFFECTS, "U", "V"):
        part = parts[name]
        getattr(state, name)[..., : part.shape[-1]] = part
    k = np.arange(parts["U"].shape[1])
    state.of_rows.load(parts, "rows", k)
    state.of_columns.load(parts, "columns", k)


def _foretold(
    state: BsvdState, cells: Cells, y: Array, hidden: Array, rng: np.random.Generator, each: Each
) -> tuple[Array, Array]:
    """Return mean and variance of some cells over the last sweeps of rows, columns and scales."""
    kept = []
    for sweep in range(SWEEPS):
        _fit_noise(state, y, hidden.size, each)
        draw_rows(state, y, rng, each)
        draw_columns(state, cells, y, rng, each)
        draw_prior_means(state, rng)
        move_scales(state, rng)
        fill_means(state, each)
        if sweep >= SWEEPS - KEPT:
            kept.append(state.x[hidden])
    return np.mean(kept, axis=0), np.var(kept, axis=0, ddof=1)


def _fit_noise(state: BsvdState, y: Array, n_hidden: int, each: Each) -> None:
    """Set the noise variance to what is left; of levels, too, whose first y vary less than 1."""
    squares = y - state.x
    squares *= squares
    ones = np.ones(state.matrix.shape[1])
    left, _ = scan(state.matrix, squares, ones, state.precision, each)
    state.noise *= max(float(left.sum()) / max(y.size - n_hidden, 1), SMALLEST)
