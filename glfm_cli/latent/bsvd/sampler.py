"""BSVD: a low-rank matrix whose components switch themselves on and off.

    x_ij = sum_k s_k z_k U_ik V_jk + r_i . G_R[j] + G_C[i] . c_j        y_ij ~ N(x_ij, sd2_j + v_ij)
           + c_i (g_j - mu), with slopes
    U_ik ~ N(0, 1/I)   V_jk ~ N(0, 1/J)   s_k ~ N(0, 1/alpha) above 0   z_k ~ Bern(p0)
    alpha I J ~ Gamma   sd2 ~ InvGamma    G_R[j] ~ N(mu, 1/tau)         G_C[i] ~ N(0, 1/tau)
    1/sqrt(tau) of intercepts ~ half-Cauchy, tau of covariates' weights ~ Gamma

    I, J     rows and columns of the matrix: of a table, its rows and its pseudo-columns
    p0       a / (a + b (K - 1)), pi_k ~ Beta(a/K, b(K-1)/K) integrated out
    r, c     known covariates of rows and columns, a constant among them: an intercept of its own
             for every column, and for every row of a matrix of one kind
    c, g     slope of a row, c_i ~ N(0, 1/tau), and intercept of a column, in G_R: the rows are
             straight lines in the columns' levels [Mandel 1961]
    v_ij     0, but of a binomial cell 1 / trials, see `beside_own`; noise of rows: `row_noise`
    left     [U | R | G_C | c] (I, q);   right  [s V | G_R | C | g - mu] (J, q);   x = left right'

[BSVD] C. Wang, "Non-parametric Bayesian learning with incomplete data",
thesis, 2010, chapter 5.
Departures, each because the printed sampler does not leave the posterior invariant or hardly
mixes: z_k and U_k are drawn together, with U_k and pi_k integrated out; switched-off components are
drawn anew from their prior; rows [U_i, G_C[i]] and columns [V_j, G_R[j]] are drawn as blocks; moves
along the scales of s, U and V, of intercepts, and of columns with unit noise; intercepts and their
priors.

Cost of a sweep with m observed cells and K components switched on: O(m K^2 + (I + J) K^3), and
some 5 ns a cell for each component that is looked at. Memory: 60 bytes a cell beside the factors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import glfm_cli.latent.bsvd.moves as moves
from glfm_cli.arrays import Array
from glfm_cli.latent.blocks import Each, thread_pool
from glfm_cli.latent.bsvd.beside_own import draw_noise_beside_own
from glfm_cli.latent.bsvd.births import bring_in, move_rank
from glfm_cli.latent.bsvd.config import BsvdConfig
from glfm_cli.latent.bsvd.design import Covariates
from glfm_cli.latent.bsvd.draw import BsvdDraw
from glfm_cli.latent.bsvd.effects import (
    draw_effect_precisions,
    draw_prior_means,
    move_intercepts,
)
from glfm_cli.latent.bsvd.matrix import Matrix
from glfm_cli.latent.bsvd.new_units import draw_new_units
from glfm_cli.latent.bsvd.prior_means import PriorMeans
from glfm_cli.latent.bsvd.rotations import rotate_components
from glfm_cli.latent.bsvd.row_noise import (
    FIRST_VARIATION,
    LEAST,
    MOST,
    draw_noise_of_rows,
)
from glfm_cli.latent.capabilities import Parts
from glfm_cli.latent.model import Cells, Pairs, Rows, Sizes, Sparse, joined, take
from glfm_cli.latent.plain import PlainModel
from glfm_cli.links.law import ALL, GivenLatent, NormalMixture, RowsLaw, normal
from glfm_cli.streams import HYPER, PARTS, ROWS, START, WEIGHTS, Streams

COMPONENTS = 10  # that a chain of a table starts with
# Defaults of a matrix by kind of value. People rate by numbers and by levels, and differ in range
# and reliability. Counts say too little of hidden cells to choose a chain's start by.
OF_VALUES: dict[str, dict[str, Any]] = {
    "real": {"slopes": True, "row_noise": True},
    "ordinal": {"slopes": True},
    "categorical": {"slopes": True},
    "count": {"initial_components": COMPONENTS},
}
LARGEST_NUMBER = 1e100  # in a saved state; products of two stay finite
FAILURES = 3  # births that do not come before a chain starts
FIRST_SWEEPS = 3  # of the blocks alone, before a chain starts to switch components


class Bsvd(PlainModel):
    """The low-rank model behind the `LatentModel` protocol."""

    name = "bsvd"
    Config = BsvdConfig
    layouts = frozenset({"dense", "sparse"})
    size = "rank"

    def config_for(self, kinds: Sequence[str], layout: str) -> BsvdConfig:
        """Return the defaults, which of a matrix depend on the kind of its values."""
        return BsvdConfig(**(OF_VALUES.get(kinds[0], {}) if layout == "sparse" else {}))

    def start(self, cells: Cells, config: BsvdConfig, streams: Streams) -> moves.BsvdState:
        """Return a state with a few components, after some sweeps of the blocks alone."""
        rng = streams.get(START)
        state = _empty_state(cells, config)
        n_rows, n_columns = state.matrix.shape
        chosen = config.initial_components is None and state.design.one_kind
        n = 0 if chosen else COMPONENTS
        n = n if config.initial_components is None else config.initial_components
        shape = (n_columns, min(n, state.s.size))
        moves.switch_on(state, rng.standard_normal(shape) / np.sqrt(max(n_columns, 1)))
        state.alpha = 1.0 / max(n_rows * n_columns, 1)
        if n_columns == 0:
            return state
        with thread_pool(cells.threads) as each:
            for _ in range(FIRST_SWEEPS):
                self._blocks(state, cells, streams, each)
            failed = 0
            while chosen and failed < FAILURES and not state.on.all():
                E = _residuals(state, cells)
                if bring_in(state, E, int(np.argmin(state.on)), rng, each):
                    self._blocks(state, cells, streams, each)
                    failed = 0
                else:
                    moves.fill_means(state, each)
                failed += 1
        return state

    def update(self, state: moves.BsvdState, cells: Cells, streams: Streams) -> None:
        """Draw components, rows, columns, scales and noise variances, given y.

        Raises NumericalError: the precision of a row or column lost positive definiteness.
        """
        if state.matrix.shape[1] == 0:
            return
        with thread_pool(cells.threads) as each:
            E = _residuals(state, cells)
            if state.design.one_kind:
                move_rank(state, E, streams.get(PARTS), each)
            moves.draw_components(state, E, streams.get(PARTS), each)
            self._blocks(state, cells, streams, each)

    def _blocks(self, state: moves.BsvdState, cells: Cells, streams: Streams, each: Each) -> None:
        """Draw rows and columns, then the scales, and the noise given all of them."""
        matrix = state.matrix
        y = matrix.values(cells.y)
        moves.draw_rows(state, y, streams.get(ROWS), each)
        rescaled = moves.draw_columns(state, cells, y, streams.get(WEIGHTS), each)
        if rescaled is not None:
            y = rescaled
            matrix.put(y, cells.y)
        moves.move_scales(state, streams.get(HYPER))
        if state.design.one_kind:
            rotate_components(state, streams.get(PARTS))
        moves.fill_means(state, each)
        if state.design.row_noise:
            draw_noise_of_rows(state, y, streams.get(HYPER), each)
        elif matrix.own.size:
            draw_noise_beside_own(state, y, streams.get(HYPER))
        else:
            moves.draw_noise(state, y, streams.get(HYPER))
        move_intercepts(state, y, streams.get(HYPER), each)

    def fill_eta(self, state: moves.BsvdState, out: Array) -> None:
        """Fill `out` with x: of every cell of a table, or of the observed cells of a matrix."""
        if state.matrix.place is None:
            out[:, 0] = state.x
        else:
            left, right = state.sides()
            np.matmul(left, right.T, out=out)

    def finish(self, state: moves.BsvdState, streams: Streams) -> None:
        """Draw alpha given the scales that are on, and precisions and mean of the effects."""
        config, rng = state.config, streams.get(HYPER)
        n_rows, n_columns = state.matrix.shape
        s = state.s[state.on]
        cells = max(n_rows * n_columns, 1)
        # Scales of components that are off are integrated out.
        rate = config.scale_rate + 0.5 * float(s @ s) / cells
        state.alpha = rng.gamma(config.scale_shape + 0.5 * s.size) / rate / cells
        draw_effect_precisions(state, rng)
        draw_prior_means(state, rng)

    def trace(self, state: moves.BsvdState) -> dict[str, float]:
        """Return the rank, the three largest singular values and alpha.

        The singular values are those of U S V' over sqrt(I J): of a component alone, the root of
        its mean square.
        """
        n_rows, n_columns = state.matrix.shape
        k = state.active
        largest = np.zeros(3)
        if k.size and n_columns:
            parts = (state.U[:, k], state.s[k] * state.V[:, k])
            left, right = (np.asarray(np.linalg.qr(part, mode="r")) for part in parts)
            values = np.linalg.svd(left @ right.T, compute_uv=False)[:3]
            largest[: values.size] = values / np.sqrt(n_rows * n_columns)
        own = {"row_noise_variation": state.variation} if state.design.row_noise else {}
        return own | {
            "rank": float(k.size),
            **{f"singular_{i + 1}": float(value) for i, value in enumerate(largest)},
            "scale_precision": state.alpha * n_rows * n_columns,
        }

    def draw(self, state: moves.BsvdState) -> BsvdDraw:
        """Return a snapshot of both sides and the noise."""
        state.at_cap = state.at_cap or (0 < state.s.size == int(state.on.sum()))
        left, right = state.sides()
        n_rows = left.shape[0]
        return BsvdDraw(
            left,
            right,
            state.noise.copy(),
            int(state.on.sum()),
            state.design.R.shape[1],
            state.tau.copy(),
            n_rows,
            state.s[state.on],
            state.mu,
            state.row_precision[: n_rows if state.design.row_noise else 0].copy(),
            state.variation,
            state.spans,
            state.of_rows.coefficients(state.active),
            state.of_columns.coefficients(state.active),
        )

    def noise_of(self, state: moves.BsvdState, d: int, rows: slice) -> float | Array:
        if not state.design.row_noise:
            return float(state.noise[d])
        cell = np.arange(*rows.indices(state.matrix.n_cells))
        row = np.searchsorted(state.matrix.rows.indptr, cell, side="right") - 1
        return state.noise[d] / state.row_precision[row]

    def cells_law(self, draw: BsvdDraw, rows: Rows) -> RowsLaw:
        if isinstance(rows, Pairs):
            return _LawOfPairs(draw, rows)
        return GivenLatent(draw.left[rows] @ draw.right.T, draw.noise, draw.spans)

    def parts(self, draw: BsvdDraw) -> Parts:
        """Return what x is made of, under one draw."""
        return draw.parts()

    def low_rank(self, draw: BsvdDraw) -> tuple[Array, Array]:
        k = draw.n_components
        return draw.left[:, :k], draw.right[:, :k]

    def noise_of_rows(self, draw: BsvdDraw, rows: Array) -> Array:
        return draw.noise_of_rows(rows)

    def fold_in(
        self,
        draw: BsvdDraw,
        config: BsvdConfig,
        cells: Cells,
        refill: Callable[[Array], None],
        score: Callable[[RowsLaw, slice], Array],
        sweeps: int,
        rng: np.random.Generator,
    ) -> BsvdDraw:
        """Return factors and effects of new rows of a table, given everything the columns have.

        Of a matrix, also those of new columns, behind those of the fit (`draw_new_units`).
        Each sweep lets `refill` draw what is known of y given x, then draws every row as a block
        given that; where all y are known, one is enough. O(n S K^2) a sweep.
        """
        k, p = draw.n_components, draw.n_row_covariates
        if isinstance(cells.layout, Sparse):
            return draw_new_units(draw, config, cells, refill, sweeps, rng)
        matrix = Matrix.of(cells)
        n = matrix.shape[0]
        design = Covariates.of(cells, matrix.shape, config)
        right = draw.right
        regressor = np.delete(right, slice(k, k + p), axis=1)
        prior = np.concatenate([np.full(k, float(draw.n_rows)), design.precision(draw.tau)[1]])
        regression = moves.Regression(
            precision=(np.ones(n), 1.0 / draw.noise[matrix.owner]),
            own=design.R,
            other=right[:, k : k + p],
            regressor=regressor,
            prior=prior,
            prior_linear=np.zeros(prior.size),
        )
        left = np.zeros((n, right.shape[1]))
        left[:, k : k + p] = design.R
        for _ in range(sweeps if right.size else 0):
            refill(left @ right.T)
            with thread_pool(1) as each:
                drawn = regression.solve(
                    matrix.rows, matrix.weight, matrix.values(cells.y), rng, each
                )
            coefficients = drawn.mean + drawn.deviation
            left[:, :k], left[:, k + p :] = coefficients[:, :k], coefficients[:, k:]
        return replace(draw, left=left)

    def join_rows(self, draws: Sequence[BsvdDraw]) -> BsvdDraw:
        return joined(draws, "left")

    def warnings(self, state: moves.BsvdState) -> list[str]:
        limit = state.config.max_components
        if state.at_cap and state.s.size == limit:
            return [
                f"the number of components reached its cap of {limit}; "
                "raise it with --set max_components=N"
            ]
        return []

    def save(self, state: moves.BsvdState) -> dict[str, Array]:
        """Return the components that are on, effects, noise, hyperparameters and the cap's flag.

        And the means x: both sides give them, but for rounding, on which the next bits depend.
        """
        k = state.active
        own = {"slope": state.slope} if state.design.slopes else {}
        if state.design.row_noise:
            own["row_precision"] = state.row_precision
            own["variation"] = np.array(state.variation, dtype=np.float64)
        own |= state.of_rows.save("rows", k) | state.of_columns.save("columns", k)
        return own | {
            "on": state.on.astype(np.uint8),
            "U": state.U[:, k],
            "V": state.V[:, k],
            "s": state.s[k],
            "G_R": state.G_R,
            "G_C": state.G_C,
            "noise": state.noise,
            "tau": state.tau,
            "alpha": np.array(state.alpha, dtype=np.float64),
            "mu": np.array(state.mu, dtype=np.float64),
            "at_cap": np.array(state.at_cap, dtype=np.uint8),
            "x": state.x,
        }

    def load(
        self, arrays: Mapping[str, Array], cells: Cells, config: BsvdConfig
    ) -> moves.BsvdState:
        state = _empty_state(cells, config)
        n_rows, n_columns = state.matrix.shape
        state.on[:] = take(arrays, "on", np.uint8, state.on.shape) != 0
        k = state.active
        state.U[:, k] = take(arrays, "U", np.float64, (n_rows, k.size))
        state.V[:, k] = take(arrays, "V", np.float64, (n_columns, k.size))
        state.s[k] = take(arrays, "s", np.float64, (k.size,))
        state.of_rows.load(arrays, "rows", k)
        state.of_columns.load(arrays, "columns", k)
        own = ["slope"] if state.design.slopes else []
        if state.design.row_noise:
            own.append("row_precision")
            state.variation = float(take(arrays, "variation", np.float64, ()))
            if not LEAST <= state.variation <= MOST:
                raise ValueError(f"'variation' is not from {LEAST:g} to {MOST:g}")
        for name in ("G_R", "G_C", "noise", "tau", "x", *own):
            kept = getattr(state, name)
            kept[...] = take(arrays, name, np.float64, kept.shape)
            if np.any(np.abs(kept) > LARGEST_NUMBER):
                raise ValueError(f"{name!r} has a number beyond {LARGEST_NUMBER:g}")
        if any(np.any(np.abs(side) > LARGEST_NUMBER) for side in (state.U, state.V, state.s)):
            raise ValueError(f"'U', 'V' or 's' has a number beyond {LARGEST_NUMBER:g}")
        state.alpha = float(take(arrays, "alpha", np.float64, ()))
        state.mu = float(take(arrays, "mu", np.float64, ()))
        state.at_cap = bool(take(arrays, "at_cap", np.uint8, ()))
        positive = (state.noise, state.tau, state.s[k], np.array([state.alpha]))
        if not all(np.all(values > 0.0) for values in (*positive, state.row_precision)):
            raise ValueError("'noise', 'tau', 's', 'alpha' or 'row_precision' is not above 0")
        state.matrix.weigh(float(state.noise[0]))
        return state

    def pack(self, draw: BsvdDraw) -> dict[str, Array]:
        """Return both sides, the noise variances, and what new rows need."""
        return draw.pack()

    def unpack(self, arrays: Mapping[str, Array], sizes: Sizes) -> BsvdDraw:
        return BsvdDraw.unpack(arrays, sizes)


def _residuals(state: moves.BsvdState, cells: Cells) -> Array:
    """Return y - x (m,), in the memory of x, which has to be filled anew."""
    return np.subtract(state.matrix.values(cells.y), state.x, out=state.x)


def _empty_state(cells: Cells, config: BsvdConfig) -> moves.BsvdState:
    """Return a state without components, effects 0 and scales 1."""
    matrix = Matrix.of(cells)
    n_rows, n_columns = matrix.shape
    K = min(config.max_components, n_rows, n_columns)
    design = Covariates.of(cells, matrix.shape, config)
    return moves.BsvdState(
        config=config,
        matrix=matrix,
        design=design,
        unit_noise=cells.unit_noise,
        spans=cells.spans,
        U=np.zeros((n_rows, K)),
        V=np.zeros((n_columns, K)),
        s=np.zeros(K),
        on=np.zeros(K, dtype=bool),
        G_R=np.zeros((n_columns, design.R.shape[1])),
        G_C=np.zeros((n_rows, design.C.shape[1])),
        slope=np.zeros((n_rows, int(design.slopes))),
        noise=np.ones(cells.unit_noise.size),
        alpha=1.0,
        tau=np.ones(4 + int(design.slopes)),
        mu=0.0,
        x=np.zeros(matrix.n_cells),
        row_precision=np.ones(n_rows),
        variation=FIRST_VARIATION if design.row_noise else 0.0,
        of_rows=PriorMeans.of(design.features[0], K),
        of_columns=PriorMeans.of(design.features[1], K),
    )


class _LawOfPairs:
    """The law of some cells of a matrix, its only column."""

    def __init__(self, draw: BsvdDraw, pairs: Pairs) -> None:
        self.draw, self.pairs = draw, pairs

    def column(self, d: int, at: Array | slice = ALL) -> NormalMixture:
        pairs, draw = self.pairs.take(at), self.draw
        noise = draw.noise_of_rows(pairs.row) if draw.row_precision.size else draw.noise[0]
        return normal(draw.means_at(pairs.row, pairs.column), noise)
