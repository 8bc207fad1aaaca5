"""A mixture of normals on eta, sampled: completes tables behind the `LatentModel` protocol.

    eta_n | z_n = h ~ N(mu_h, Sigma_h),   z_n ~ sticks(alpha), truncated to H;   y = eta + noise

the places of the experts of iQGME without their rules: every column is as any other. One sweep of
the blocked Gibbs sampler [Ishwaran and James 2001] draws, each exactly from its conditional,

    z_n, with eta_n integrated out; eta_n                (kernel _mixture)
    noise variances; sticks; (mu, Sigma)_h

and `finish` draws alpha. O(N H S^3 / 3) a sweep for S latent columns. Forecasts of missing cells
use the law of their eta given the row's observed ones, with the covariance of the utilities of a
column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from glfm_cli._kernels._mixture import fill_law, place_rows
from glfm_cli.arrays import Array
from glfm_cli.errors import NumericalError
from glfm_cli.latent.model import Cells, Pairs, Rows, Sizes, Spans, joined, take
from glfm_cli.latent.plain import PlainModel
from glfm_cli.links.law import ALL, GivenLatent, NormalMixture, RowsLaw, normal
from glfm_cli.settings import require_each, require_whole
from glfm_cli.streams import HYPER, ROWS, START, WEIGHTS, Streams

OCCUPIED = 0.01  # share of the rows from which a component is counted


@dataclass(frozen=True)
class MixtureConfig:
    """Choices of the mixture. Columns are on a latent scale of mean 0 and variance about 1.

    components : H, the most components there can be
    alpha_shape, alpha_rate : gamma prior of the stick-breaking parameter
    component_variance : prior variance of a column within a component
    component_degrees : degrees of freedom of the Wishart prior beyond the number of latent columns
    center_precision : how many rows the prior centre of a component is worth
    noise_shape, noise_rate : inverse-gamma prior of the noise variances of real, positive and
        count columns
    """

    components: int = 15
    alpha_shape: float = 1.0
    alpha_rate: float = 1.0
    component_variance: float = 0.5
    component_degrees: float = 2.0
    center_precision: float = 0.1
    noise_shape: float = 2.0
    noise_rate: float = 0.1

    def __post_init__(self) -> None:
        require_whole(self, components=(1, None))
        positive = "alpha_shape alpha_rate component_variance center_precision"
        positive += " noise_shape noise_rate"
        require_each(self, positive, lambda x: x > 0, "a number above 0")
        require_each(self, "component_degrees", lambda x: x > 1, "a number above 1")


@dataclass(eq=False)
class MixtureState:
    """Where a chain stands.

    z : (N,) int32 components;  eta : (N, S)
    sticks : (H - 1,) V;  mu : (H, S);  Sigma, root : (H, S, S), Sigma = root root', root lower
    noise : (D,) variances
    """

    config: MixtureConfig
    column: Array
    spans: Spans
    seen: Array
    unit_noise: Array
    z: Array
    eta: Array
    sticks: Array
    alpha: float
    mu: Array
    Sigma: Array
    root: Array
    noise: Array

    @property
    def log_pi(self) -> Array:
        """Return the log weights (H,) of the components."""
        with np.errstate(divide="ignore"):
            log_v = np.append(np.log(self.sticks), 0.0)
            log_rest = np.append(0.0, np.cumsum(np.log1p(-self.sticks)))
        return log_v + log_rest


@dataclass(frozen=True, eq=False)
class MixtureDraw:
    """A snapshot: where rows are, and everything that they share.

    eta : (N, S);  z : (N,);  seen : (N, S) uint8, 1 where y is observed
    """

    eta: Array
    z: Array
    seen: Array
    log_pi: Array
    mu: Array
    Sigma: Array
    noise: Array
    spans: Spans


class Mixture(PlainModel):
    """The mixture behind the `LatentModel` protocol."""

    name = "mixture"
    Config = MixtureConfig
    series_noise = 1.0  # normals of its own that are as narrow take the place of series

    def start(self, cells: Cells, config: MixtureConfig, streams: Streams) -> MixtureState:
        """Return components at random places, drawn given a random split of the rows."""
        state = _empty_state(cells, config)
        rng = streams.get(START)
        n = state.z.size
        state.z[:] = rng.integers(0, config.components, n)
        state.eta[:] = np.where(state.seen, cells.y, 0.0)
        state.eta += 0.1 * rng.standard_normal(state.eta.shape)
        _draw_components(state, rng)
        return state

    def update(self, state: MixtureState, cells: Cells, streams: Streams) -> None:
        """Draw components of rows, eta, noise variances, sticks and components.

        Raises NumericalError: a covariance lost positive definiteness.
        """
        if state.column.size == 0:
            return
        rng = streams.get(ROWS)
        _place(state, cells.y, rng)
        _draw_noise(state, cells.y, streams.get(HYPER))
        _draw_components(state, streams.get(WEIGHTS))

    def fill_eta(self, state: MixtureState, out: Array) -> None:
        out[:] = state.eta

    def finish(self, state: MixtureState, streams: Streams) -> None:
        """Draw alpha given the sticks."""
        config = state.config
        rest = float(np.sum(np.log1p(-state.sticks)))
        shape = config.alpha_shape + state.sticks.size
        state.alpha = streams.get(HYPER).gamma(shape) / (config.alpha_rate - rest)

    def trace(self, state: MixtureState) -> dict[str, float]:
        """Return how many components have a share that counts, and the largest share."""
        count = np.bincount(state.z, minlength=1)
        n = max(state.z.size, 1)
        return {
            "components": float(np.sum(count > OCCUPIED * n)),
            "largest_component": float(count.max(initial=0)) / n,
        }

    def draw(self, state: MixtureState) -> MixtureDraw:
        """Return a snapshot of the rows and the components."""
        return MixtureDraw(
            state.eta.copy(),
            state.z.copy(),
            state.seen,
            state.log_pi,
            state.mu.copy(),
            state.Sigma.copy(),
            state.noise.copy(),
            state.spans,
        )

    def cells_law(self, draw: MixtureDraw, rows: Rows) -> RowsLaw:
        """Return the law of missing cells of some rows, given z and the observed eta of the row.

        Observed eta are what they are.
        """
        assert not isinstance(rows, Pairs)
        return _ConditionalLaw(draw, rows)

    def joint(self, draw: MixtureDraw, rows: Rows, rng: np.random.Generator) -> GivenLatent:
        """Return the law of cells given eta, which is a joint draw already."""
        assert not isinstance(rows, Pairs)
        return GivenLatent(draw.eta[rows], draw.noise, draw.spans)

    def fold_in(
        self,
        draw: MixtureDraw,
        config: MixtureConfig,
        cells: Cells,
        refill: Callable[[Array], None],
        score: Callable[[RowsLaw, slice], Array],
        sweeps: int,
        rng: np.random.Generator,
    ) -> MixtureDraw:
        """Return the law of new rows, given the components of a draw."""
        state = _empty_state(cells, config)
        state.mu[:], state.Sigma[:], state.noise[:] = draw.mu, draw.Sigma, draw.noise
        state.root = np.linalg.cholesky(state.Sigma)
        state.eta[:] = rng.standard_normal(state.eta.shape)
        for _ in range(max(sweeps, 1) if state.column.size else 0):
            refill(state.eta)
            _place(state, cells.y, rng, draw.log_pi)
        return replace(draw, eta=state.eta, z=state.z, seen=state.seen)

    def resume(
        self, draw: MixtureDraw, cells: Cells, config: MixtureConfig, streams: Streams
    ) -> MixtureState:
        """Return the state of a draw; alpha is drawn."""
        state = _empty_state(cells, config)
        state.z[:], state.eta[:] = draw.z, draw.eta
        state.mu[:], state.Sigma[:], state.noise[:] = draw.mu, draw.Sigma, draw.noise
        state.root = np.linalg.cholesky(state.Sigma)
        pi = np.exp(draw.log_pi)
        left = np.maximum(np.cumsum(pi[::-1])[::-1][:-1], 1e-300)  # of the stick, before each break
        state.sticks = np.clip(pi[:-1] / left, 1e-300, 1.0 - 1e-15)
        self.finish(state, streams)
        return state

    def join_rows(self, draws: Sequence[MixtureDraw]) -> MixtureDraw:
        return joined(draws, "eta", "z", "seen")

    def warnings(self, state: MixtureState) -> list[str]:
        """Return whether the truncation was reached."""
        count = np.bincount(state.z, minlength=state.config.components)
        if state.config.components > 1 and np.all(count > OCCUPIED * state.z.size):
            return [
                f"all of the {state.config.components} components are in use; "
                "allow more with --set components=N"
            ]
        return []

    def save(self, state: MixtureState) -> dict[str, Array]:
        """Return components, sticks, alpha, noise and the rows' eta."""
        names = ("z", "eta", "sticks", "mu", "Sigma", "noise")
        arrays = {name: getattr(state, name) for name in names}
        return arrays | {"alpha": np.array(state.alpha, dtype=np.float64)}

    def load(
        self, arrays: Mapping[str, Array], cells: Cells, config: MixtureConfig
    ) -> MixtureState:
        state = _empty_state(cells, config)
        for name in ("eta", "sticks", "mu", "Sigma", "noise"):
            kept = getattr(state, name)
            kept[...] = take(arrays, name, np.float64, kept.shape)
        state.z[:] = take(arrays, "z", np.int32, state.z.shape)
        state.alpha = float(take(arrays, "alpha", np.float64, ()))
        if not (np.all(state.noise > 0.0) and state.alpha > 0.0):
            raise ValueError("'noise' or 'alpha' is not above 0")
        if np.any((state.sticks <= 0.0) | (state.sticks >= 1.0)):
            raise ValueError("'sticks' are not between 0 and 1")
        if np.any((state.z < 0) | (state.z >= config.components)):
            raise ValueError("'z' names a component that there is not")
        state.root = _root(state.Sigma)
        return state

    def pack(self, draw: MixtureDraw) -> dict[str, Array]:
        """Return where rows are, the components and the noise variances."""
        names = ("eta", "z", "log_pi", "mu", "Sigma", "noise")
        arrays = {name: getattr(draw, name) for name in names}
        return arrays | {"seen": np.packbits(draw.seen, axis=1)}

    def unpack(self, arrays: Mapping[str, Array], sizes: Sizes) -> MixtureDraw:
        N, S = sizes.rows, sizes.latent
        eta = take(arrays, "eta", np.float64, (N, S))
        z = take(arrays, "z", np.int32, (N,))
        packed = take(arrays, "seen", np.uint8, (N, -(-S // 8)))
        mu = take(arrays, "mu", np.float64, (None, S))
        H = mu.shape[0]
        Sigma = take(arrays, "Sigma", np.float64, (H, S, S))
        noise = take(arrays, "noise", np.float64, (sizes.columns,))
        log_pi = take(arrays, "log_pi", np.float64, (H,))
        if not np.all(noise > 0.0) or np.any((z < 0) | (z >= H)):
            raise ValueError("'noise' is not above 0, or 'z' names no component")
        _root(Sigma)
        seen = np.unpackbits(packed, axis=1, count=S)
        return MixtureDraw(eta, z, seen, log_pi, mu, Sigma, noise, sizes.spans)


def _root(Sigma: Array) -> Array:
    """Return lower factors; ValueError when a covariance is not positive definite."""
    try:
        return np.linalg.cholesky(Sigma)
    except np.linalg.LinAlgError:
        raise ValueError("'Sigma' has a matrix that is not positive definite") from None


def _empty_state(cells: Cells, config: MixtureConfig) -> MixtureState:
    """Return a state with standard normal components, every row in the first."""
    N, S = cells.y.shape
    H = config.components
    eye = np.tile(np.eye(S), (H, 1, 1))
    return MixtureState(
        config=config,
        column=cells.column,
        spans=cells.spans,
        seen=np.ascontiguousarray(cells.observed[:, cells.column]),
        unit_noise=cells.unit_noise,
        z=np.zeros(N, dtype=np.int32),
        eta=np.zeros((N, S)),
        sticks=np.full(H - 1, 0.5),
        alpha=1.0,
        mu=np.zeros((H, S)),
        Sigma=eye,
        root=eye.copy(),
        noise=np.where(cells.unit_noise != 0, 1.0, config.noise_rate),
    )


def _place(
    state: MixtureState, y: Array, rng: np.random.Generator, log_pi: Array | None = None
) -> None:
    """Draw z and eta of every row."""
    N, S = y.shape
    bad = place_rows(
        0, N, y, state.seen, state.log_pi if log_pi is None else np.array(log_pi), state.mu,
        state.Sigma, state.root, state.noise[state.column], rng.random((N,)),
        rng.standard_normal((N, S)), rng.standard_normal((N, S)), state.z, state.eta,
        np.empty(state.mu.shape[0]), np.empty((S, S)), np.empty(S), np.empty(S, dtype=np.intp),
    )  # fmt: skip
    _check(bad)


class _ConditionalLaw:
    """The law of the cells of some rows, given z and the eta of the columns that are seen.

    mean : (n, S);  cov : (n, S, W), of column s with those from the first of its own to itself
    """

    def __init__(self, draw: MixtureDraw, rows: slice | Array) -> None:
        self.draw = draw
        eta = np.ascontiguousarray(draw.eta[rows])
        N, S = eta.shape
        widths = [end - start for start, end in draw.spans]
        first = np.repeat([start for start, _ in draw.spans], widths).astype(np.intp)
        self.mean, self.cov = np.empty((N, S)), np.zeros((N, S, max(widths, default=0)))
        if S:
            bad = fill_law(
                0, N, np.ascontiguousarray(draw.seen[rows]), eta, draw.mu, draw.Sigma, np.zeros(S),
                np.ascontiguousarray(draw.z[rows]), first, self.mean, self.cov,
                np.empty((S, S)), np.empty((S, S)), np.empty(S), np.empty(S, dtype=np.intp),
            )  # fmt: skip
            _check(bad)

    def column(self, d: int, at: Array | slice = ALL) -> NormalMixture:
        """Return the law of the cells of column `d`, utilities with their covariance."""
        (start, end), noise = self.draw.spans[d], float(self.draw.noise[d])
        s = end - start
        if s == 1:
            return normal(self.mean[at, start], self.cov[at, start, 0] + noise)
        lower = self.cov[at, start:end, :s]  # zero above the diagonal
        cov = lower + np.swapaxes(np.tril(lower, -1), 1, 2) + noise * np.eye(s)
        variances = np.einsum("nss->ns", cov)
        mean = self.mean[at, start:end]
        return NormalMixture(np.ones((1, 1)), mean[:, None], variances[:, None], cov[:, None])


def _check(bad: int) -> None:
    if bad >= 0:
        raise NumericalError("a covariance of the mixture is not positive definite", row=bad + 1)


def _draw_noise(state: MixtureState, y: Array, rng: np.random.Generator) -> None:
    """Draw the noise variances that are not 1, given the residuals of observed y."""
    config = state.config
    square = np.where(state.seen != 0, (y - state.eta) ** 2, 0.0).sum(axis=0)
    count = state.seen.sum(axis=0, dtype=np.int64)
    for s, d in enumerate(state.column):
        if not state.unit_noise[d]:
            rate = config.noise_rate + 0.5 * square[s]
            state.noise[d] = rate / rng.gamma(config.noise_shape + 0.5 * count[s])


def _draw_components(state: MixtureState, rng: np.random.Generator) -> None:
    """Draw the sticks and every component's (mu, Sigma), given z and eta; O(N S^2 + H S^3).

    Raises NumericalError: a covariance is not positive definite.
    """
    config = state.config
    (H, S), eta = state.mu.shape, state.eta
    n = np.bincount(state.z, minlength=H).astype(np.float64)
    after = np.append(np.cumsum(n[::-1])[::-1], 0.0)[1:]
    # As a ratio of gammas a stick keeps its distance from 1.
    mine = rng.standard_gamma(1.0 + n[:-1])
    rest = rng.standard_gamma(state.alpha + after[:-1])
    state.sticks = np.clip(mine / (mine + rest), 1e-300, 1.0 - 1e-15)
    nu0, u0 = S + config.component_degrees, config.center_precision
    B_inv = np.empty((H, S, S))
    m = np.empty((H, S))
    for h in range(H):
        x = eta[state.z == h]
        m[h] = x.sum(axis=0) / (u0 + n[h])
        B_inv[h] = x.T @ x - (u0 + n[h]) * np.outer(m[h], m[h])
    B_inv += nu0 * config.component_variance * np.eye(S)
    nu = nu0 + n
    A = np.tril(rng.standard_normal((H, S, S)), -1)
    at = np.arange(S)
    A[:, at, at] = np.sqrt(rng.chisquare(nu[:, None] - at))
    try:
        L = np.linalg.cholesky(0.5 * (B_inv + np.swapaxes(B_inv, 1, 2)))
    except np.linalg.LinAlgError:  # of a prior variance that vanishes beside rows
        raise NumericalError(
            "a covariance of the mixture is not positive definite",
            hint="Take a larger `--set component_variance`.",
        ) from None
    # Lam = L'^-1 A A' L^-1 (Bartlett), so that Sigma = (L A'^-1) (L A'^-1)'.
    M = L @ np.swapaxes(np.linalg.inv(A), 1, 2)
    state.mu[:] = m + np.einsum("hst,ht->hs", M, rng.standard_normal((H, S))) / np.sqrt(
        u0 + n[:, None]
    )
    state.Sigma = np.ascontiguousarray(M @ np.swapaxes(M, 1, 2))
    state.root = np.linalg.cholesky(state.Sigma)
