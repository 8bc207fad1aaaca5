"""The state of a fit, saved and loaded bit for bit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.cnpf.config import CnpfConfig
from glfm_cli.latent.cnpf.counts import Counts
from glfm_cli.latent.cnpf.rows import Rows
from glfm_cli.latent.cnpf.stochastic import Averages
from glfm_cli.latent.cnpf.tables import Globals, columns_of, padded
from glfm_cli.latent.model import take

WINDOW = 6  # bounds that convergence is judged by


@dataclass
class CnpfState:
    """A fit under way, updated in place.

    rows : q of all rows; None where steps are made from minibatches, which start rows anew
    steps : passes, or minibatches, so far;  bounds : the last of them
    order, averages : of minibatches: the rows of the epoch under way in their order
    """

    config: CnpfConfig
    shared: Globals
    rows: Rows | None
    steps: int = 0
    bounds: list[float] = field(default_factory=list)
    order: Array = field(default_factory=lambda: np.empty(0, np.int64))
    averages: Averages | None = None


def save_state(state: CnpfState) -> dict[str, Array]:
    """Return everything that the next step depends on, as named arrays."""
    s, T = state.shared, state.config.components
    arrays = {
        "w": s.w,
        "c": np.array(s.c),
        "l": s.l,
        "A": s.A,
        "B": s.B,
        "own_B": s.own_B,
        "column_rate": np.array(s.column_rate),
        "steps": np.array(state.steps, dtype=np.int64),
        "bounds": np.array(state.bounds, dtype=np.float64),
    }
    if state.rows is not None:
        rows = state.rows
        arrays |= {"n": rows.n[:, :T].copy(), "m": rows.m, "cov": rows.cov, "g": rows.g}
    if state.averages is not None:
        averages = state.averages
        arrays |= {"order": state.order, "K": averages.K, "R": averages.R}
        arrays["hessian"] = averages.hessian
    return arrays


def load_state(arrays: Mapping[str, Array], counts: Counts, config: CnpfConfig) -> CnpfState:
    """Return the state that `save_state` was given.

    Raises ValueError: the arrays are no state of these counts and settings, with a phrase that says
        why.
    """
    n_rows, n_columns = counts.shape
    T, D = config.components, config.n_locations
    missing = columns_of(config, counts).seen.size
    shared = load_shared(arrays, (T, D), n_columns, missing)
    steps = int(take(arrays, "steps", np.int64, ()))
    bounds = take(arrays, "bounds", np.float64, (None,))
    if steps < 0 or bounds.size > WINDOW:
        raise ValueError("'steps' or 'bounds' is out of range")
    state = CnpfState(config, shared, None, steps, bounds.tolist())
    if config.minibatch_of(n_rows) == n_rows:
        state.rows = _load_rows(arrays, counts, config)
        return state
    order = take(arrays, "order", np.int64, (n_rows,))
    if not np.array_equal(np.sort(order), np.arange(n_rows)):
        raise ValueError("'order' is not an order of the rows")
    state.order = order.copy()
    K, R = (take(arrays, name, np.float64, (T,)).copy() for name in ("K", "R"))
    hessian = take(arrays, "hessian", np.float64, (T, D, D)).copy()
    if np.any(K < 0.0) or np.any(R < 0.0):
        raise ValueError("'K' or 'R' is below 0")
    state.averages = Averages(K, R, hessian)
    return state


def load_shared(
    arrays: Mapping[str, Array], sizes: tuple[int, int], n_columns: int, missing: int
) -> Globals:
    """Return what rows share; ValueError where an array is missing, of another shape or range.

    sizes : T and D
    """
    T, D = sizes
    shapes = {"w": (T,), "c": (), "A": (n_columns, T), "B": (T,), "own_B": (missing, T)}
    shapes["column_rate"] = ()
    found = {name: take(arrays, name, np.float64, shape) for name, shape in shapes.items()}
    for name, array in found.items():
        if np.any(array <= 0.0):
            raise ValueError(f"'{name}' is not above 0")
    location = take(arrays, "l", np.float64, (T, D))
    w, A, B, own = (found[name].copy() for name in ("w", "A", "B", "own_B"))
    return Globals(w, float(found["c"]), location.copy(), A, B, own, float(found["column_rate"]))


def _load_rows(arrays: Mapping[str, Array], counts: Counts, config: CnpfConfig) -> Rows:
    U, F = counts.shape[0], config.n_free
    J = F if config.diagonal else F * (F + 1) // 2
    n = take(arrays, "n", np.float64, (U, config.components))
    m = take(arrays, "m", np.float64, (U, F))
    cov = take(arrays, "cov", np.float64, (U, J))
    g = take(arrays, "g", np.float64, (U if config.topics else 0,))
    i = np.arange(F)
    variances = cov[:, i if config.diagonal else i * (i + 3) // 2]
    if np.any(n < 0.0) or np.any(g < 0.0) or np.any(variances <= 0.0):
        raise ValueError("'n', 'g' or 'cov' is out of range")
    return Rows(padded(n), m.copy(), cov.copy(), g.copy())
