"""With which components a chain of triplets begins.

In a large matrix a component that fits nothing but noise is slow to go, and one that is missing is
slow to come. So the residuals of effects, in units of their noise and divided by the roots of the
cells of row and column, are compared with themselves under random signs, which leave nothing but
noise: components are looked for where singular values are larger than these [Hong, Sheng and
Dobriban 2020], and begin as the singular vectors say. A tenth of the cells is hidden meanwhile, and
only components which foretell these better are taken: all, or else the first half of them, and so
on; then what is left is looked at again. It is a start and nothing else: the sweeps that follow see
all cells, bring components in and take them away.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds

import glfm_cli.latent.bsvd.moves as moves
from glfm_cli.arrays import Array
from glfm_cli.latent.blocks import Each
from glfm_cli.latent.bsvd.config import SMALLEST
from glfm_cli.latent.bsvd.effects import draw_prior_means
from glfm_cli.latent.model import Cells

HIDDEN = 0.1
SWEEPS, KEPT = 14, 7  # with components that are tried, and the last of them that foretell
ROUNDS = 3  # looks at the residuals
FLIPS = 3  # random signs, of which the largest singular value counts
FIRST = 10  # singular values that are looked at first
EFFECTS = ("G_R", "G_C", "slope")


def choose_components(
    state: moves.BsvdState, cells: Cells, y: Array, rng: np.random.Generator, each: Each
) -> None:
    """Switch on the components that residuals show and hidden cells confirm, as far as fitted.

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

    def loss() -> float:
        """Return what the mean of many sweeps would lose: that of few has noise of its own."""
        mean, variance = _foretold(seen, cells, y, hidden, rng, each)
        return float(precision @ ((y[hidden] - mean) ** 2 - variance / KEPT))

    first = state.noise.copy()
    least, best = loss(), _parts(state)
    for _ in range(ROUNDS):
        V, before = _missing(seen, y - state.x, rng), least
        while V.shape[1]:
            moves.switch_on(state, V)
            found = loss()
            if found < least:
                least, best = found, _parts(state)
                break
            _put(state, best)
            moves.fill_means(state, each)
            V = V[:, : V.shape[1] // 2]
        if least == before:
            break
    _put(state, best | {"noise": np.where(state.unit_noise, first, best["noise"])})


def _parts(state: moves.BsvdState) -> dict[str, Array]:
    """Return copies of what sweeps change, of the components that are on."""
    k = state.active
    parts = {name: getattr(state, name) for name in ("noise", "on", *EFFECTS)}
    parts |= state.of_rows.save("rows", k) | state.of_columns.save("columns", k)
    parts |= {name: getattr(state, name)[..., k] for name in ("s", "U", "V")}
    return {name: part.copy() for name, part in parts.items()}


def _put(state: moves.BsvdState, parts: dict[str, Array]) -> None:
    """Write copies back into a state."""
    for name in ("noise", "on", *EFFECTS):
        getattr(state, name)[...] = parts[name]
    k = state.active
    for name in ("s", "U", "V"):
        getattr(state, name)[..., k] = parts[name]
    state.of_rows.load(parts, "rows", k)
    state.of_columns.load(parts, "columns", k)


def _missing(state: moves.BsvdState, E: Array, rng: np.random.Generator) -> Array:
    """Return V (J, n), columns of length 1, of the n components that residuals (m,) show, the
    largest first."""
    matrix = state.matrix
    (n_rows, n_columns), indptr, index = matrix.shape, matrix.rows.indptr, matrix.rows.index
    most = min(state.s.size - state.active.size, min(n_rows, n_columns) - 1)
    if most < 1:
        return np.empty((n_columns, 0))
    of_rows, of_columns = state.precision
    cells = np.diff(indptr), np.diff(matrix.columns.indptr)
    a, b = (1.0 / np.sqrt(n + max(float(n.mean()), 1.0)) for n in cells)
    scaled = E * np.repeat(a * np.sqrt(of_rows), cells[0]) * (b * np.sqrt(of_columns))[index]
    if matrix.weight.size:
        scaled *= np.sqrt(matrix.weight)

    def decomposed(values: Array, k: int) -> tuple[Array, Array]:
        """Return the k largest singular values, and V' (k, J)."""
        A = sparse.csr_matrix((values, index, indptr), shape=matrix.shape)
        first = rng.standard_normal(min(matrix.shape))
        _, size, vectors = svds(A, k, v0=first, return_singular_vectors="vh")
        return size[::-1], vectors[::-1]

    flipped = (scaled * rng.choice([-1.0, 1.0], E.size) for _ in range(FLIPS))
    noise = max(float(decomposed(values, 1)[0][0]) for values in flipped)
    k = min(FIRST, most)
    while True:
        size, vectors = decomposed(scaled, k)
        if size.min() <= noise or k == most:
            break
        k = min(2 * k, most)
    found = b[:, None] * vectors[size > noise].T
    return found / np.linalg.norm(found, axis=0)


def _foretold(
    state: moves.BsvdState,
    cells: Cells,
    y: Array,
    hidden: Array,
    rng: np.random.Generator,
    each: Each,
) -> tuple[Array, Array]:
    """Return mean and variance of some cells over the last sweeps of rows, columns and scales."""
    kept = []
    for sweep in range(SWEEPS):
        _fit_noise(state, y, hidden.size, each)
        moves.draw_rows(state, y, rng, each)
        moves.draw_columns(state, cells, y, rng, each)
        draw_prior_means(state, rng)
        moves.move_scales(state, rng)
        moves.fill_means(state, each)
        if sweep >= SWEEPS - KEPT:
            kept.append(state.x[hidden])
    return np.mean(kept, axis=0), np.var(kept, axis=0, ddof=1)


def _fit_noise(state: moves.BsvdState, y: Array, n_hidden: int, each: Each) -> None:
    """Set the noise variance to what is left; of levels, too, whose first y vary less than 1."""
    squares = y - state.x
    squares *= squares
    ones = np.ones(state.matrix.shape[1])
    left, _ = moves.scan(state.matrix, squares, ones, state.precision, each)
    state.noise *= max(float(left.sum()) / max(y.size - n_hidden, 1), SMALLEST)
