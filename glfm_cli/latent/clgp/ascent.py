"""The ascent of the bound: its state, and one iteration.

An iteration looks at rows under fresh normals, and so tells the bound of the parameters it found
without bias; then it moves q(e) by Newton's step on those normals, and all else by Adam's, along
the gradient at the new q(e). Where cells are Gaussian, that is the gradient of the collapsed bound,
by the envelope theorem.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.clgp.adam import GradientMoments, rate_at
from glfm_cli.latent.clgp.blocks import RowBlock, cut
from glfm_cli.latent.clgp.bound import bound_of_rows, bound_of_shared, evaluate, gradient
from glfm_cli.latent.clgp.config import ClgpConfig
from glfm_cli.latent.clgp.features import Inducing
from glfm_cli.latent.clgp.parameters import LEAST_NOISE, MOST_LOG, Places, Shared
from glfm_cli.latent.clgp.table import ObservedTable
from glfm_cli.latent.clgp.weights import renew_basis, update_weights
from glfm_cli.latent.model import Progress
from glfm_cli.streams import ROWS, START, Streams

ASCENDED = ("Z", "log_ell", "log_rho", "log_a", "b", "log_noise", "steps")  # by Adam
RENEWAL = 10  # iterations that V stays
CAREFUL, CAREFUL_STEP = 5, 0.5  # first iterations, in which q(e) goes half the way
SOLVES, CAREFUL_SOLVES = 4, 10  # steps of conjugate gradients
ROW_RATE = 0.1  # the largest rate of rows, where batches see each row seldom
FORGET = 0.6  # power by which the steps of q(e) become smaller, where batches are looked at


@dataclass
class ClgpState:
    """One restart's state, updated in place.

    moments : of Adam, by name of the parameters;  row_moments : of m and log_sd
    first_penalty : weight of KL_x in the first iteration
    order : (N,) int64, rows as the present pass takes them, in batches
    bounds : bound before every iteration so far
    """

    config: ClgpConfig
    shared: Shared
    places: Places
    moments: dict[str, GradientMoments]
    row_moments: dict[str, GradientMoments]
    first_penalty: float
    order: Array
    bounds: list[float] = field(default_factory=list)

    @property
    def iteration(self) -> int:
        """How many iterations were made."""
        return len(self.bounds)

    @property
    def n_batches(self) -> int:
        """In how many batches a pass takes the table."""
        return n_batches(self.config, self.order.size)

    @property
    def n_iterations(self) -> int:
        """After how many iterations the ascent is done."""
        return n_iterations(self.config, self.order.size)


def n_batches(config: ClgpConfig, n_rows: int) -> int:
    """Return in how many batches a pass takes a table."""
    return max(1, -(-n_rows // config.batch))


def n_iterations(config: ClgpConfig, n_rows: int) -> int:
    """Return after how many iterations the ascent of a table is done."""
    batches = n_batches(config, n_rows)
    return max(config.iterations, config.passes * batches if batches > 1 else 0)


def begun(config: ClgpConfig, shared: Shared, places: Places, first_penalty: float) -> ClgpState:
    """Return a state that has made no iteration yet."""
    return ClgpState(
        config=config,
        shared=shared,
        places=places,
        moments={name: GradientMoments.of(getattr(shared, name)) for name in ASCENDED},
        row_moments={name: GradientMoments.of(getattr(places, name)) for name in ("m", "log_sd")},
        first_penalty=first_penalty,
        order=np.arange(places.m.shape[0]),
    )


def step(
    state: ClgpState, table: ObservedTable, streams: Streams, pool: ThreadPoolExecutor | None = None
) -> Progress:
    """Make one iteration, in place, and tell the bound it found, before it moved.

    The pool works on blocks of rows, and changes no bit. n = T rows of the table or batch:
    O(n P (6 M + 2 P + 40 S)) flops, and the cells twice; memory of O(n (M + P + S)).

    Raises NumericalError: the kernel of the inducing points lost its rank.
    """
    rows, scale = _next_batch(state, streams)
    shared, places, slots = state.shared, state.places, table.slots
    blocks = [
        drawn_block(state, table, part, streams, number) for number, part in enumerate(cut(rows))
    ]
    inducing = Inducing.of(shared)
    evaluated = evaluate(blocks, places, shared, slots, inducing, pool)
    bound = scale * bound_of_rows(evaluated, places) + bound_of_shared(shared, slots)
    t = state.iteration
    if t % RENEWAL == 0:
        evaluated, inducing = renew_basis(shared, evaluated, inducing)
    careful = t < CAREFUL
    size = CAREFUL_STEP if careful else 1.0
    if state.n_batches > 1:
        size *= (1.0 + t / RENEWAL) ** -FORGET
    solves = CAREFUL_SOLVES if careful else SOLVES
    evaluated = update_weights(shared, evaluated, slots, scale, size, solves, pool)
    penalty = penalty_at(t / (state.config.warm_up * state.n_iterations), state.first_penalty)
    of_rows, of_shared = gradient(
        evaluated, places, shared, slots, inducing, scale, penalty, of_weights=False, pool=pool
    )
    rate = rate_at(t, state.n_iterations, state.config.learning_rate)
    for name, moments in state.moments.items():
        moved = getattr(shared, name) + moments.ascend(of_shared[name], rate, t + 1)
        setattr(shared, name, np.asarray(np.clip(moved, -MOST_LOG, MOST_LOG)))
    shared.log_noise = np.maximum(shared.log_noise, np.log(LEAST_NOISE))
    times = t // state.n_batches + 1
    faster = min(state.n_batches, max(1.0, ROW_RATE / state.config.learning_rate))
    for name, moments in state.row_moments.items():
        values = getattr(places, name)
        values[rows] += moments.ascend(getattr(of_rows, name), rate * faster, times, rows)
    places.log_sd[rows] = np.clip(places.log_sd[rows], -MOST_LOG, 0.0)
    state.bounds.append(bound)
    return Progress(bound, state.iteration >= state.n_iterations, noisy=True)


def penalty_at(share: float, first: float) -> float:
    """Return the weight of KL_x after a share of the warm-up: from `first` to 1."""
    return first + (1.0 - first) * min(1.0, share)


def drawn_block(
    state: ClgpState, table: ObservedTable, rows: Array, streams: Streams, number: int
) -> RowBlock:
    """Return the block of a number with fresh normals, from the stream of that number."""
    config, Q = state.config, state.places.m.shape[1]
    rng = streams.get(ROWS, number)
    return RowBlock.drawn(table, rows, config.samples, config.category_samples, Q, rng)


def _next_batch(state: ClgpState, streams: Streams) -> tuple[Array, float]:
    """Return the rows of this iteration, and by how much they count; a pass takes each once."""
    number = state.iteration % state.n_batches
    if state.n_batches == 1:
        return state.order, 1.0
    if number == 0:
        state.order = streams.get(START).permutation(state.order)
    rows = np.sort(np.array_split(state.order, state.n_batches)[number])
    return rows, state.order.size / rows.size
