"""The latent Gaussian process of an observed table: what is done with one restart."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.clgp.ascent import ClgpState, begun
from glfm_cli.latent.clgp.blocks import RowBlock, cut
from glfm_cli.latent.clgp.bound import bound_of_rows, bound_of_shared, evaluate
from glfm_cli.latent.clgp.config import ClgpConfig
from glfm_cli.latent.clgp.draws import ClgpDraw
from glfm_cli.latent.clgp.features import Inducing
from glfm_cli.latent.clgp.parameters import Places, Shared
from glfm_cli.latent.clgp.relevance import LEAST_RELEVANCE, relevances
from glfm_cli.latent.clgp.starts import first_places, first_shared
from glfm_cli.latent.clgp.table import ObservedTable
from glfm_cli.latent.model import take
from glfm_cli.streams import START, Streams

COMPARISONS = 20  # samples of the bound that restarts are compared by
QUARTER = 4  # the last of so many parts of an ascent should rise no more
FEWER = 3  # the restart that has fewer dimensions
RISE = 2.0  # standard errors


def start(
    table: ObservedTable, config: ClgpConfig, streams: Streams, chain: int = 0
) -> ClgpState:
    """Return the state that a chain, a restart, begins with.

    The first two start unshaken, and every second, 1, 3, ..., with a lower penalty of places:
    some tables are laid out better with one, some without. The fourth has half the dimensions
    where nobody says how many, unshaken.
    """
    rng = streams.get(START)
    sizes = config.sizes(len(table.kinds))
    Q = sizes[-1] if chain == FEWER else sizes[0]
    places = first_places(table, Q, chain > 1 and chain != FEWER, rng)
    first_penalty = config.first_penalty if chain % 2 else 1.0
    return begun(config, first_shared(table, places, config, rng), places, first_penalty)


def bound(
    state: ClgpState, table: ObservedTable, pool: ThreadPoolExecutor | None = None
) -> float:
    """Return the bound under normals that are common to all restarts, so that these compare.

    Block by block: memory of O(block), whatever the table's length.
    """
    config, Q = state.config, state.places.m.shape[1]
    inducing = Inducing.of(state.shared)
    total = bound_of_shared(state.shared, table.slots)
    for number, rows in enumerate(cut(np.arange(table.n_rows))):
        rng = Streams(0, number).get(START)  # no run's seed: as nodes of a rule of integration
        block = RowBlock.drawn(table, rows, COMPARISONS, config.category_samples, Q, rng)
        evaluated = evaluate([block], state.places, state.shared, table.slots, inducing, pool)
        total += bound_of_rows(evaluated, state.places)
    return total


def draw(state: ClgpState, table: ObservedTable) -> ClgpDraw:
    """Return a snapshot of q."""
    return ClgpDraw.of(table, state.shared, state.places, state.config)


def trace(state: ClgpState) -> dict[str, float]:
    """Return how many dimensions have a part in what columns are, and `converged`."""
    used = np.sum(
        relevances(state.shared, state.places.m, np.exp(2.0 * state.places.log_sd))
        >= LEAST_RELEVANCE
    )
    return {"dimensions_used": float(used), "converged": float(converged(state))}


def converged(state: ClgpState) -> bool:
    """Return whether the bound rose in the last quarter by no more than its noise."""
    last = np.array(state.bounds[-max(len(state.bounds) // QUARTER, 4) :])
    if last.size < 4:
        return False
    half = last.size // 2
    earlier, later = last[:half], last[half:]
    error = np.sqrt(earlier.var() / earlier.size + later.var() / later.size)
    return bool(later.mean() - earlier.mean() <= RISE * error)


def warnings(state: ClgpState) -> list[str]:
    """Return what a user should know of a finished restart."""
    if not converged(state):
        return ["the bound of a restart was still rising; raise --set iterations=N"]
    return []


def save(state: ClgpState) -> dict[str, Array]:
    """Return everything that the next iteration depends on, besides table and streams."""
    arrays = state.shared.arrays() | {"m": state.places.m, "log_sd": state.places.log_sd}
    for name, moments in (state.moments | state.row_moments).items():
        arrays[f"{name}_first"], arrays[f"{name}_second"] = moments.first, moments.second
    arrays |= {"order": state.order, "first_penalty": np.array(state.first_penalty)}
    return arrays | {"bounds": np.array(state.bounds, dtype=np.float64)}


def load(arrays: Mapping[str, Array], table: ObservedTable, config: ClgpConfig) -> ClgpState:
    """Return the state that `save` was given; ValueError when it is none of this table."""
    N = table.n_rows
    shared = Shared.taken(arrays, table.slots).copy()
    M, Q = shared.Z.shape
    sized = Q in config.sizes(len(table.kinds)) and config.n_inducing(N) == M
    if not sized or bool(shared.n_linear) != (config.kernel != "rbf"):
        raise ValueError("'Z' is not of the settings' dimensions, inducing points and kernel")
    places = Places.taken(arrays, N, Q)
    first_penalty = float(take(arrays, "first_penalty", np.float64, ()))
    places = Places(places.m.copy(), places.log_sd.copy())
    state = begun(config, shared, places, first_penalty)
    for name, moments in (state.moments | state.row_moments).items():
        for part in ("first", "second"):
            kept = getattr(moments, part)
            kept[...] = take(arrays, f"{name}_{part}", np.float64, kept.shape)
        if np.any(moments.second < 0.0):
            raise ValueError(f"'{name}_second' has a negative number")
    state.order = take(arrays, "order", np.int64, (N,)).copy()
    if not np.array_equal(np.sort(state.order), np.arange(N)):
        raise ValueError("'order' is no order of the rows")
    state.bounds = [float(bound) for bound in take(arrays, "bounds", np.float64, (None,))]
    return state
