"""GLFM: a latent feature model with an Indian buffet process prior, by collapsed Gibbs sampling.

    alpha ~ Gamma(a, b)                    Z ~ IBP(alpha), plus a bias column of ones
    sB2 ~ InvGamma                         sd2_d ~ InvGamma
    b_ks ~ N(0, sd2_d(s) sB2)              y_ns ~ N(z_n b_s, sd2_d(s))

[GLFM] Valera, Pradier, Lomeli and Ghahramani, "General Latent Feature Models for Heterogeneous
Datasets", JMLR 21 (2020), sections 3 and 4. Departures, each because the printed formula does
not leave the posterior invariant or mixes badly:

- the predictive of a row is N(z P^-1 lambda, sd2 (1 + z P^-1 z')) [eq. 13 prints z lambda and
  z P z' + sd2]; both branches of a bit's conditional carry their prior;
- weights are scaled by the noise (`prior_scale="noise"`), the one reading under which a single P
  serves all columns; `"independent"` is the unscaled prior, one P per noise variance;
- new features are drawn from their exact conditional, not from Poisson(alpha/N);
- a row's own missing pseudo-observations are integrated out while its bits are drawn, and drawn
  anew straight after ("row-blocked");
- features are visited in a fresh random order for every row (a fixed scan is biased);
- noise variances are drawn with the weights integrated out, with squared residuals (footnote 2
  lacks the square); alpha and sB2 are sampled; categorical and ordinal columns have unit noise,
  and a move of their own along their scale, which would otherwise creep [Liu and Sabatti 2000];
- after the weights every bit is drawn once more, given them and with the pseudo-observations of
  categorical, ordinal and count cells integrated out (`refine`): these were drawn with the bits in
  view, and where a row has many they hold its bits where they are;
- with `components` there is a linear part beside the features (linear.py), with `known_features`
  levels of complete columns are features, which are not drawn (known_features.py).

Cost of a sweep: O(N (K^2 + K S)); memory O(N S).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from glfm_cli._kernels import _glfm, _glfm_bits
from glfm_cli._kernels._predictive import pick_columns
from glfm_cli.arrays import Array
from glfm_cli.errors import NumericalError
from glfm_cli.latent.glfm.known_features import KnownFeatures
from glfm_cli.latent.glfm.linear import LinearPart
from glfm_cli.latent.glfm.state import (
    GlfmConfig,
    GlfmDraw,
    GlfmState,
    with_work_space,
)
from glfm_cli.latent.model import Cells, Pairs, Refill, Rows, Sizes, joined, take
from glfm_cli.latent.plain import PlainModel
from glfm_cli.links.law import GivenLatent, RowsLaw
from glfm_cli.streams import BITS, HYPER, ROWS, START, WEIGHTS, Streams

CANDIDATES = 256  # fitted rows whose bits a new row may start with
_COUNTED_ROWS = 1 << 14  # whose bits are unpacked at once to be counted
_SCORED_ROWS = 1 << 10  # compared with all candidates at once


class Glfm(PlainModel):
    """The latent feature model behind the `LatentModel` protocol."""

    name = "glfm"
    Config = GlfmConfig
    leaves = frozenset({"missingness: probit"})  # features follow what is seen too closely
    size = "features"
    refines = True
    series_noise = 1.0 / 3.0
    inner_sweeps = 3  # from the bits of a row that resembles the new one

    def start(self, cells: Cells, config: GlfmConfig, streams: Streams) -> GlfmState:
        """Return a state with a few random features and zero weights."""
        rng = streams.get(START)
        n_rows, n_latent = cells.y.shape
        known = KnownFeatures.of(cells, config.known_features)
        bias = int(config.bias)
        fixed = bias + len(known)
        capacity = config.max_features + fixed
        Z = np.zeros((n_rows, capacity), dtype=np.uint8)
        Z[:, :bias] = 1
        Z[:, bias:fixed] = known.bits(cells, Z[:, bias:fixed])
        n_random = min(config.initial_features, config.max_features)
        random = rng.random((n_rows, n_random)) < config.initial_share
        random = random[:, random.any(axis=0)]
        n_columns = fixed + random.shape[1]
        Z[:, fixed:n_columns] = random
        return with_work_space(
            cells,
            config,
            Z=Z,
            n_columns=n_columns,
            B=np.zeros((capacity, n_latent)),
            noise=np.ones(cells.unit_noise.size),
            alpha=1.0 if config.alpha is None else config.alpha,
            weight_variance=1.0 if config.weight_variance is None else config.weight_variance,
            linear=LinearPart.start(
                cells.y, cells.observed[:, cells.column], config.components, rng
            ),
            known=known,
        )

    def update(self, state: GlfmState, cells: Cells, streams: Streams) -> None:
        """Draw Z with missing pseudo-observations, then the noise variances, B, U and V.

        All but the last two see y less the linear part.

        Raises NumericalError: P lost positive definiteness, which finite data and settings do not
            cause.
        """
        if cells.y.shape[1] == 0:
            return
        config, layout, linear = state.config, state.layout, state.linear
        y = cells.y
        if linear.size:
            y = y - linear.U @ linear.V
            cells.scale_group += linear.scale_group(cells.spans)
        sd = np.sqrt(state.noise)[cells.column]
        scale = layout.scales(state.noise)
        tau, bias_var = state.weight_variance / scale, config.bias_variance / scale
        shared = (y, cells.observed, cells.column, layout.segments, sd, tau, bias_var, state.Z)
        state.n_columns, status = _glfm.sweep(
            *shared,
            state.n_columns,
            state.fixed,
            state.alpha,
            state.work,
            state.iwork,
            streams.get(ROWS),
        )
        if status == 0:
            status = _glfm.draw_weights(
                *shared, state.n_columns, state.fixed, state.work, state.iwork,
                cells.unit_noise, cells.scale_group, cells.factor, config.noise_shape,
                config.noise_rate, int(config.prior_scale == "noise"), state.noise, state.B,
                streams.get(WEIGHTS),
            )  # fmt: skip
        self._shuffle(state, streams.get(WEIGHTS))
        state.counts = state.Z.sum(axis=0, dtype=np.int64)
        state.odds = None
        if len(cells.lower) < len(y):  # what blocks of rows share, so that none waits for another
            with_it, without = state.counts, len(y) + 1 - state.counts
            gamma = streams.get(BITS).standard_gamma
            state.odds = np.log(gamma(np.maximum(with_it, 1))) - np.log(gamma(without))
        if status != 0:
            raise NumericalError(
                "the feature model's covariance lost positive definiteness",
                hint="Look for columns with extreme values, or set `transform: rank` for them.",
            )
        if linear.size:
            self._draw_linear(state, cells, streams.get(WEIGHTS))

    def _shuffle(self, state: GlfmState, rng: np.random.Generator) -> None:
        """Put the features in an order at random, which in the model has no meaning.

        `refine` draws bits in this order. Rows leave features behind and add new ones at the end,
        so that the order tells of the past, and a scan by it would not be exact.
        """
        named = slice(state.fixed, state.n_columns)
        order = named.start + rng.permutation(state.n_columns - named.start)
        state.Z[:, named] = state.Z.take(order, axis=1)
        state.B[named] = state.B[order]

    def _draw_linear(self, state: GlfmState, cells: Cells, rng: np.random.Generator) -> None:
        """Draw U and V given the rest, then the missing pseudo-observations given all."""
        linear, observed = state.linear, cells.observed[:, cells.column]
        factor, noise = cells.factor[cells.column], state.noise[cells.column]
        cells.y *= factor
        linear.V *= factor
        eta = np.empty_like(cells.y)
        _glfm.fill_eta(state.Z, state.B, state.n_columns, eta)
        E = cells.y - eta
        linear.draw_rows(E, observed, noise, rng)
        linear.draw_columns(E, observed, noise, rng)
        linear.draw_variances(rng)
        eta += linear.U @ linear.V
        row, s = np.nonzero(observed == 0)
        cells.y[row, s] = eta[row, s] + np.sqrt(noise[s]) * rng.standard_normal(s.size)

    def fill_eta(self, state: GlfmState, out: Array) -> None:
        _glfm.fill_eta(state.Z, state.B, state.n_columns, out)
        if state.linear.size:
            out += state.linear.U @ state.linear.V

    def refine(
        self, state: GlfmState, cells: Cells, eta: Array, streams: Streams, rows: slice
    ) -> None:
        """Draw the bits of a run of rows given B, with y integrated over its intervals."""
        y, Z, counts = cells.y[rows], state.Z[rows], state.counts
        if state.odds is not None:
            counts = Z.sum(axis=0, dtype=np.int64)
        n_work, n_iwork = _glfm_bits.work_sizes(y.shape[1])
        _glfm_bits.update_bits(
            y, cells.observed[rows], cells.column, cells.known, cells.lower[: len(y)],
            cells.upper[: len(y)], np.sqrt(state.noise)[cells.column], cells.spread, state.B,
            Z, state.n_columns, state.fixed, counts, state.Z.shape[0],
            True, eta[rows], np.empty(n_work), np.empty(n_iwork, dtype=np.int32),
            streams.get(BITS, rows.start // max(len(cells.lower), 1)), state.odds,
        )  # fmt: skip

    def finish(self, state: GlfmState, streams: Streams) -> None:
        """Draw alpha | K ~ Gamma(a + K, rate b + H_N), and sB2 given the non-bias weights."""
        config, rng = state.config, streams.get(HYPER)
        n_features = state.n_columns - state.fixed
        if config.alpha is None:
            harmonic = np.sum(1.0 / np.arange(1, state.Z.shape[0] + 1))
            state.alpha = rng.gamma(config.alpha_shape + n_features) / (
                config.alpha_rate + harmonic
            )
        if config.weight_variance is None:
            B = state.B[state.fixed : state.n_columns]
            noise = state.noise[state.layout.column] if config.prior_scale == "noise" else 1.0
            shape = config.weight_variance_shape + B.size / 2
            rate = config.weight_variance_rate + np.sum(B**2 / noise) / 2
            state.weight_variance = rate / rng.gamma(shape)

    def holds_levels(self, config: GlfmConfig) -> bool:
        """Return whether levels of complete columns are features, see `KnownFeatures`."""
        return config.known_features > 0

    def holding_none(self, config: GlfmConfig) -> GlfmConfig:
        """Return the configuration without known features."""
        return replace(config, known_features=0)

    def held_columns(self, draw: GlfmDraw) -> Sequence[int]:
        """Return the columns of known features."""
        return list(np.unique(draw.known.pairs[:, 0]).tolist())

    def trace(self, state: GlfmState) -> dict[str, float]:
        """Return the number of features, the three largest shares, alpha and sB2."""
        counts = state.Z[:, state.fixed : state.n_columns].sum(axis=0, dtype=np.int64)
        shares = np.zeros(3)
        largest = np.sort(counts)[::-1][:3] / state.Z.shape[0]
        shares[: largest.size] = largest
        return {
            "features": float(state.n_columns - state.fixed),
            "alpha": state.alpha,
            "weight_variance": state.weight_variance,
            **{f"share_{i + 1}": float(share) for i, share in enumerate(shares)},
        }

    def draw(self, state: GlfmState) -> GlfmDraw:
        used = state.n_columns
        state.at_cap |= used == state.Z.shape[1] and state.config.max_features > 0
        return GlfmDraw(
            bits=np.packbits(state.Z[:, :used], axis=1),
            n_columns=used,
            B=state.B[:used].copy(),
            noise=state.noise.copy(),
            spans=state.layout.spans,
            linear=state.linear.copy(),
            known=state.known,
        )

    def features(self, draw: GlfmDraw, rows: slice | Array) -> Array:
        return np.unpackbits(draw.bits[rows], axis=1, count=draw.n_columns)

    def weights(self, draw: GlfmDraw) -> Array:
        return draw.B

    def cells_law(self, draw: GlfmDraw, rows: Rows) -> GivenLatent:
        """Return the law of cells given eta = z_n B + u_n V."""
        assert not isinstance(rows, Pairs)
        eta = self.features(draw, rows).astype(np.float64) @ draw.B
        if draw.linear.size:
            eta += draw.linear.U[rows] @ draw.linear.V
        return GivenLatent(eta, draw.noise, draw.spans)

    def fold_in(
        self,
        draw: GlfmDraw,
        config: GlfmConfig,
        cells: Cells,
        refill: Refill,
        score: Callable[[RowsLaw, slice], Array],
        sweeps: int,
        rng: np.random.Generator,
    ) -> GlfmDraw:
        """Return bits and U of new rows, given V, the weights, noise and feature counts of a draw.

        P(z_k = 1) = m_k / (N + 1) for the features of the N fitted rows, m_k of which have it;
        new rows get no features of their own. Each sweep lets `refill` draw what is known of the
        pseudo-observations given eta, then draws every bit given that, intervals integrated
        over, and U. The start is that of one of CANDIDATES fitted rows, drawn by how well they
        explain the new row: features hang together, and single bits find the way slowly. Known
        features are those of its cells, or where these are missing those of that fitted row.
        O(n K S) a sweep.
        """
        n_rows, n_fitted = cells.y.shape[0], draw.bits.shape[0]
        counts = np.zeros(draw.n_columns, dtype=np.int64)
        for start in range(0, n_fitted, _COUNTED_ROWS):
            rows = slice(start, start + _COUNTED_ROWS)
            counts += self.features(draw, rows).sum(axis=0, dtype=np.int64)
        among = np.sort(rng.choice(n_fitted, min(CANDIDATES, n_fitted), replace=False))
        candidates = self.features(draw, among)
        means = self.cells_law(draw, among)
        best = np.empty(n_rows, dtype=np.intp)
        for start in range(0, n_rows, _SCORED_ROWS):
            rows = slice(start, min(start + _SCORED_ROWS, n_rows))
            p = score(means, rows)
            if cells.of_fit is not None:  # the bits of the row itself tell what is hidden of it
                p[cells.of_fit[rows, None] == among] = -1e30
            p -= p.max(axis=1, keepdims=True)
            pick_columns(np.exp(p, out=p), rng.random(len(p)), best[rows])
        Z, linear, noise = candidates[best], draw.linear, draw.noise[cells.column]
        bias, fixed = int(config.bias), int(config.bias) + len(draw.known)
        Z[:, bias:fixed] = draw.known.bits(cells, Z[:, bias:fixed])
        linear = replace(linear, U=linear.U[among][best])
        observed = cells.observed[:, cells.column]
        eta = Z @ draw.B + linear.U @ linear.V if len(draw.known) else means.eta[best]
        n_work, n_iwork = _glfm_bits.work_sizes(cells.column.size)
        work, iwork = np.empty(n_work), np.empty(n_iwork, dtype=np.int32)
        for _ in range(sweeps if draw.B.size + linear.V.size else 0):
            refill(eta, bounds_alone=linear.size == 0)
            _glfm_bits.update_bits(
                cells.y, cells.observed, cells.column, cells.known, cells.lower, cells.upper,
                np.sqrt(noise), cells.spread, draw.B, Z, draw.n_columns, fixed, counts,
                n_fitted + 1, False, eta, work, iwork, rng,
            )  # fmt: skip
            if linear.size:
                eta -= linear.U @ linear.V
                linear.draw_rows(cells.y - eta, observed, noise, rng)
                eta += linear.U @ linear.V
        return replace(draw, bits=np.packbits(Z, axis=1), linear=linear)

    def resume(
        self, draw: GlfmDraw, cells: Cells, config: GlfmConfig, streams: Streams
    ) -> GlfmState:
        """Return the state of a draw without the features that no row has; alpha, sB2 are drawn."""
        Z = self.features(draw, slice(None))
        used = Z.any(axis=0) | (np.arange(Z.shape[1]) < int(config.bias))
        draw = replace(
            draw, bits=np.packbits(Z[:, used], axis=1), n_columns=int(used.sum()), B=draw.B[used]
        )
        scalars = {"alpha": config.alpha, "weight_variance": config.weight_variance}
        arrays = {name: np.array(1.0 if x is None else x) for name, x in scalars.items()}
        arrays["at_cap"] = np.zeros((), dtype=np.uint8)
        state = self.load({**self.pack(draw), **arrays}, cells, config)
        self.finish(state, streams)
        return state

    def join_rows(self, draws: Sequence[GlfmDraw]) -> GlfmDraw:
        linear = joined([draw.linear for draw in draws], "U")
        return replace(joined(draws, "bits"), linear=linear)

    def warnings(self, state: GlfmState) -> list[str]:
        if state.at_cap and state.config.max_features < GlfmConfig().max_features:
            return [
                f"the number of features reached its cap of {state.config.max_features}; "
                "raise it with --set max_features=N"
            ]
        return []

    def save(self, state: GlfmState) -> dict[str, Array]:
        """Return Z (packed), B, noise, alpha, sB2, the linear part and the cap's flag.

        A sweep computes Z'Z, P^-1 and their like anew from Z and y, so that the work arrays
        carry nothing from one sweep to the next.
        """
        used = state.n_columns
        return {
            "bits": np.packbits(state.Z[:, :used], axis=1),
            "n_columns": np.array(used, dtype=np.int64),
            "B": state.B[:used],
            "noise": state.noise,
            "alpha": np.array(state.alpha, dtype=np.float64),
            "weight_variance": np.array(state.weight_variance, dtype=np.float64),
            "at_cap": np.array(state.at_cap, dtype=np.uint8),
            **state.linear.pack(),
            **state.known.pack(),
        }

    def load(self, arrays: Mapping[str, Array], cells: Cells, config: GlfmConfig) -> GlfmState:
        n_rows, n_latent = cells.y.shape
        draw = self.unpack(arrays, Sizes(n_rows, n_latent, cells.spans))
        bias, used = int(config.bias), draw.n_columns
        fixed = bias + len(draw.known)
        capacity = config.max_features + fixed
        if not fixed <= used <= capacity:
            raise ValueError(f"'n_columns' is {used}, expected a number from {fixed} to {capacity}")
        Z = np.zeros((n_rows, capacity), dtype=np.uint8)
        if draw.linear.size != min(config.components, n_latent):
            raise ValueError(f"'omega' has {draw.linear.size} components, not those of the run")
        Z[:, :used] = self.features(draw, slice(None))
        if not Z[:, :bias].all():
            raise ValueError("'bits' has a row without the bias")
        if np.any(Z[:, bias:fixed] != draw.known.bits(cells, Z[:, bias:fixed])):
            raise ValueError("'bits' has a row without the features that it is known to have")
        B = np.zeros((capacity, n_latent))
        B[:used] = draw.B
        scalars = [take(arrays, name, np.float64, ()) for name in ("alpha", "weight_variance")]
        if min(scalars) <= 0.0:
            raise ValueError("'alpha' or 'weight_variance' is not above 0")
        return with_work_space(
            cells,
            config,
            Z=Z,
            n_columns=used,
            B=B,
            noise=draw.noise.copy(),
            alpha=float(scalars[0]),
            weight_variance=float(scalars[1]),
            at_cap=bool(take(arrays, "at_cap", np.uint8, ())),
            linear=draw.linear.copy(),
            known=draw.known,
        )

    def pack(self, draw: GlfmDraw) -> dict[str, Array]:
        """Return the packed bits, the number of columns in use, B, noise variances, U and V."""
        return {
            "bits": draw.bits,
            "n_columns": np.array(draw.n_columns, dtype=np.int64),
            "B": draw.B,
            "noise": draw.noise,
            **draw.linear.pack(),
            **draw.known.pack(),
        }

    def unpack(self, arrays: Mapping[str, Array], sizes: Sizes) -> GlfmDraw:
        used = int(take(arrays, "n_columns", np.int64, ()))
        if used < 0:
            raise ValueError(f"'n_columns' is {used}, expected a number from 0")
        noise = take(arrays, "noise", np.float64, (sizes.columns,))
        if not np.all(noise > 0.0):
            raise ValueError("'noise' has a variance that is not above 0")
        return GlfmDraw(
            bits=take(arrays, "bits", np.uint8, (sizes.rows, -(-used // 8))),
            n_columns=used,
            B=take(arrays, "B", np.float64, (used, sizes.latent)),
            noise=noise,
            spans=sizes.spans,
            linear=LinearPart.unpack(arrays, sizes.rows, sizes.latent),
            known=KnownFeatures.unpack(arrays, sizes.columns),
        )


class LinearGlfm(Glfm):
    """The same with a linear part, as a candidate beside the one without."""

    name = "linear"
    kept_beside = 1

    def config_beside(self, search: bool) -> GlfmConfig:
        """Return as many components as pay beside trees."""
        return GlfmConfig(components=5)
